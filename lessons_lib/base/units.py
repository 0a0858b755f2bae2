"""Units and how they are written: bytes in powers of two, rates in powers of ten."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

from lessons_lib.base.validate import bad_argument, shown

KIB = 2**10
MIB = 2**20
GIB = 2**30

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB")
_TIME_UNITS = ("ns", "µs", "ms", "s")


def format_bytes(count: int) -> str:
    """``count`` bytes in the largest binary unit that shows 1 or more: ``67108864`` -> ``"64 MiB"``.

    Where three digits would round, but the next smaller unit gives a whole number of at most four, that one is
    taken: 1408 MiB reads "1,408 MiB" and not "1.38 GiB", so that arithmetic shown to learners adds up.

    Raises:
        ValueError: ``count`` is no number.
    """
    _require_number("count", count)
    unit = _largest_unit(count, _BYTE_UNITS, 1024)
    if unit and _is_rounded(quotient(count, 1024**unit)):
        whole, rest = divmod(count, 1024 ** (unit - 1))
        unit -= 1 if rest == 0 and abs(whole) < 10_000 else 0
    return f"{_significant(quotient(count, 1024**unit))} {_BYTE_UNITS[unit]}"


def format_seconds(seconds: float) -> str:
    """``seconds`` with three significant digits: ``0.01843`` -> ``"18.4 ms"``.

    Raises:
        ValueError: ``seconds`` is no number.
    """
    _require_number("seconds", seconds)
    if seconds == 0:
        return "0 s"
    nanoseconds = quotient(seconds, 1) * 1e9
    unit = _largest_unit(nanoseconds, _TIME_UNITS, 1000)
    return f"{_significant(nanoseconds / 1000**unit)} {_TIME_UNITS[unit]}"


def format_ratio(ratio: float) -> str:
    """A speed-up or a quotient with three significant digits: ``1.6667`` -> ``"1.67×"``."""
    return f"{_significant(ratio)}×"


def _largest_unit(number: float, units: tuple[str, ...], step: int) -> int:
    """The position of the largest unit, each ``step`` of the one before, in which ``number`` shows 1 or more.

    The number is compared as it will be shown, so that 1023.99 KiB reads "1 MiB" and never "1,024 KiB".
    """
    unit = 0
    while unit < len(units) - 1 and _shown_size(quotient(number, step**unit)) >= step:
        unit += 1
    return unit


def _shown_size(number: float) -> float:
    """The absolute value, rounded as ``_significant`` rounds from 100 on."""
    return round(abs(number)) if math.isfinite(number) else math.inf


def format_range(low: float, high: float, written: Callable[[float], str]) -> str:
    """``low – high``, each as ``written`` gives it; one of them where both read the same."""
    return written(low) if written(low) == written(high) else f"{written(low)} – {written(high)}"


def quotient(numerator: float, denominator: int) -> float:
    """``numerator / denominator`` (above 0) for numbers of any size; infinite where no float is large enough."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def divided_up(count: int, step: int) -> int:
    """How many steps hold ``count``, the last one perhaps not full: ``count / step`` rounded up, without a float."""
    return -(-count // step)


def count_of(number: int, noun: str) -> str:
    """A count with its English noun: ``1 group``, ``2 groups``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _require_number(name: str, value: object) -> None:
    """NaN and infinity pass: they are written as what they are."""
    if isinstance(value, bool) or not isinstance(value, Real):
        given = shown(value)
        raise bad_argument(name, zh=f"需要数字，收到的是 {given}", en=f"it must be a number, got {given}")


def _is_rounded(number: float) -> bool:
    """Whether three significant digits leave something of ``number`` out."""
    return math.isfinite(number) and round(number, _decimals(number)) != number


def _decimals(number: float) -> int:
    """How many decimals three significant digits have; 0 for 0 and from 100 on."""
    return max(0, 2 - math.floor(math.log10(abs(number)))) if number else 0


def _significant(number: float) -> str:
    """Three significant digits without an exponent; whole numbers stay whole, infinity is ``∞``."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if number == int(number):
        return f"{int(number):,}"
    decimals = _decimals(number)
    shown = f"{number:,.{decimals}f}"
    return shown.rstrip("0").rstrip(".") if decimals else shown
