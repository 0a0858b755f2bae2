"""Checks on what a learner passes in; every refusal names the argument, in both languages."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable
from numbers import Integral, Real

from lessons_lib.base.text import Text

_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxlong = _SHOWN.maxother = 80

_MOST_DIGITS = 1000
_MOST_BITS = (10**_MOST_DIGITS - 1).bit_length()


def require_int(name: str, value: object, minimum: int | None = None, maximum: int | None = None) -> int:
    """``value`` as a plain ``int``, if it is an integer within ``[minimum, maximum]``.

    Any ``numbers.Integral`` passes, NumPy's included; ``bool`` does not, nor does ``1.0``. There is no limit on size but
    one: Python writes no integer of over 4300 digits, and what follows from this one must be shown.

    Raises:
        ValueError: not an integer, out of range, or of over 1000 digits; the message names ``name`` and what was given.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _wrong_type(name, value, Text(zh="整数（int）", en="an integer (int)"))
    number = int(value)
    _require_range(name, number, minimum, maximum)
    if number.bit_length() > _MOST_BITS:
        raise _out_of_range(
            name, number, Text(zh=f"不超过 {_MOST_DIGITS} 位", en=f"of at most {_MOST_DIGITS} digits")
        )
    return number


def require_real(name: str, value: object, minimum: float | None = None, *, above: float | None = None) -> float:
    """``value`` as a ``float``, if it is a finite real number, at least ``minimum`` and more than ``above``.

    Raises:
        ValueError: not a number (``bool`` counts as none), not finite, or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _wrong_type(name, value, Text(zh="数字（int 或 float）", en="a number (int or float)"))
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _out_of_range(name, value, Text(zh="是有限的数", en="finite"))
    _require_range(name, number, minimum, None)
    if above is not None and number <= above:
        raise _out_of_range(name, number, Text(zh=f"大于 {above}", en=f"greater than {above}"))
    return number


def require_bool(name: str, value: object) -> bool:
    """``value`` itself, if it is ``True`` or ``False`` and nothing that merely looks like it.

    Raises:
        ValueError: not a ``bool``.
    """
    if not isinstance(value, bool):
        raise _wrong_type(name, value, Text(zh="True 或 False（bool）", en="True or False (bool)"))
    return value


def require_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Refuse ``value`` unless it equals one of ``choices``.

    Raises:
        ValueError: it equals none; the message lists them.
    """
    options = list(choices)
    if not any(same(value, option) for option in options):
        listed = ", ".join(repr(option) for option in options)
        raise _out_of_range(name, value, Text(zh=f"是下列之一：{listed}", en=f"one of: {listed}"))


def require_items(name: str, value: object) -> tuple[object, ...]:
    """``value`` as a tuple, if it is iterable and not a single string.

    Raises:
        ValueError: a string, which would fall apart into letters, or something that is not iterable.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise _wrong_type(name, value, Text(zh="列表或元组（list、tuple）", en="a list or a tuple"))
    return tuple(value)


def require_name(name: str, value: object) -> str:
    """``value`` as it is, if it is a string with something in it.

    Raises:
        ValueError: not a ``str``, or blank.
    """
    if not isinstance(value, str):
        raise _wrong_type(name, value, Text(zh="字符串（str）", en="a string (str)"))
    if not value.strip():
        raise _out_of_range(name, value, Text(zh="非空", en="non-empty"))
    return value


def bad_argument(name: str, zh: str, en: str) -> ValueError:
    """A bilingual refusal of argument ``name`` for a reason of its own, told in ``zh`` and ``en``."""
    return ValueError(f"参数 {name} 的值不对：{zh}。\n{name} is not valid: {en}.")


def _require_range(name: str, number: float, minimum: float | None, maximum: float | None) -> None:
    if (minimum is None or number >= minimum) and (maximum is None or number <= maximum):
        return
    if maximum is None:
        bounds = Text(zh=f"不小于 {minimum}", en=f"at least {minimum}")
    elif minimum is None:
        bounds = Text(zh=f"不大于 {maximum}", en=f"at most {maximum}")
    else:
        bounds = Text(zh=f"在 {minimum} 到 {maximum} 之间", en=f"between {minimum} and {maximum}")
    raise _out_of_range(name, number, bounds)


def _wrong_type(name: str, value: object, wanted: Text) -> ValueError:
    message = Text(
        zh="参数 {name} 的类型不对：需要{wanted}，收到的是 {value}（{kind}）。",
        en="{name} has the wrong type: it must be {wanted}, got {value} ({kind}).",
    )
    return ValueError(message.format(name=name, wanted=wanted, value=shown(value), kind=type(value).__name__).both)


def _out_of_range(name: str, value: object, bounds: Text) -> ValueError:
    message = Text(
        zh="参数 {name} 的值不对：必须{bounds}，收到的是 {value}。",
        en="{name} must be {bounds}, got {value}.",
    )
    return ValueError(message.format(name=name, bounds=bounds, value=shown(value)).both)


def shown(value: object) -> str:
    """``repr`` of what was given, cut to a line; Python refuses to write integers of over 4300 digits."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"<int: {value.bit_length()} bits>"
    try:
        return _SHOWN.repr(value)
    except Exception:  # a repr of the learner's own may fail, or hold an integer too long to write
        return f"<{type(value).__name__}>"


def same(value: object, other: object) -> bool:
    """Whether two values are equal; no where they cannot be compared, as an array with a word."""
    try:
        return bool(value == other)
    except Exception:
        return False
