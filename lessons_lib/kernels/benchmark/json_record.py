"""Frozen dataclasses as JSON and back; a file that does not fit is refused, naming the place in it.

A file may come from anyone: every key, type and length is checked before anything is built from it.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, shown

LONGEST_TEXT = 400
LONGEST_LIST = 64
_LONGEST_SHOWN = 100

UNRECORDED: Mapping[str, bool] = types.MappingProxyType({"unrecorded": True})
"""``field(metadata=UNRECORDED)``: not part of the file."""


def to_json(value: object) -> object:
    """``value`` with dataclasses as dictionaries and tuples as lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {entry.name: to_json(getattr(value, entry.name)) for entry in recorded_fields(type(value))}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def from_json(kind: Any, value: object, path: str) -> Any:
    """``value``, as ``json.loads`` gives it, as a ``kind``.

    Args:
        kind: a dataclass, ``X | None``, ``tuple[X, ...]``, ``Literal[...]``, ``bool``, ``int``, ``float``, ``str``.
        path: how to name the value in a refusal, ``experiments[2].rows`` say.

    Raises:
        ValueError: it is none; the message names the place, in both languages.
    """
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, value, path)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return None if value is None else from_json(inner, value, path)
    if origin is tuple:
        if not isinstance(value, list) or len(value) > LONGEST_LIST:
            raise _refusal(path, f"列表，最多 {LONGEST_LIST} 项", f"a list of at most {LONGEST_LIST} items", value)
        return tuple(from_json(arguments[0], item, f"{path}[{index}]") for index, item in enumerate(value))
    if origin is Literal:
        if not any(type(value) is type(choice) and value == choice for choice in arguments):
            listed = ", ".join(map(repr, arguments))
            raise _refusal(path, f"下列之一：{listed}", f"one of: {listed}", value)
        return value
    return _plain(kind, value, path)


def recorded_fields(kind: type) -> tuple[dataclasses.Field[Any], ...]:
    """The fields of a dataclass that a file holds."""
    return tuple(entry for entry in dataclasses.fields(kind) if not entry.metadata.get("unrecorded"))


def _record(kind: type, value: object, path: str) -> Any:
    names = [entry.name for entry in recorded_fields(kind)]
    if not isinstance(value, dict) or set(value) != set(names):
        listed = ", ".join(names)
        given = list(value) if isinstance(value, dict) else value
        raise _refusal(path, f"对象，键正好是：{listed}", f"an object with exactly the keys {listed}", given)
    hints = get_type_hints(kind)
    fields = {name: from_json(hints[name], value[name], f"{path}.{name}") for name in names}
    try:
        return kind(**fields)
    except ValueError as error:
        zh, _, en = str(error).partition("\n")
        raise bad_argument(path, zh=zh.rstrip("。"), en=(en or zh).rstrip(".")) from error


def _plain(kind: Any, value: object, path: str) -> object:
    if kind is str:
        if not isinstance(value, str) or len(value) > LONGEST_TEXT or not value.isprintable():
            raise _refusal(
                path,
                f"可打印的字符串，最多 {LONGEST_TEXT} 个字符",
                f"a printable string of at most {LONGEST_TEXT} characters",
                value,
            )
        return value
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        number = _finite(value)
        if number is not None:
            return number
    words = _KINDS[kind]
    raise _refusal(path, words.zh, words.en, value)


def _finite(value: float) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


_KINDS: Mapping[type, Text] = {
    bool: Text(zh="true 或 false", en="true or false"),
    int: Text(zh="整数", en="an integer"),
    float: Text(zh="有限的数", en="a finite number"),
}


def _refusal(path: str, zh: str, en: str, value: object) -> ValueError:
    given = shown(value)
    given = given if len(given) <= _LONGEST_SHOWN else f"{given[:_LONGEST_SHOWN]}…"
    return bad_argument(path, zh=f"需要{zh}，文件里是 {given}", en=f"it must be {en}, the file has {given}")
