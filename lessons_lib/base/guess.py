"""The number in a guess that somebody typed, and its unit.

Bytes are binary throughout the course, so ``256 MB`` is taken for ``256 MiB``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import NamedTuple

_BYTES = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4}
_SECONDS = {"ns": -9, "µs": -6, "ms": -3, "s": 0}

# As typed, in lower case and NFKC, which turns both micro signs into the Greek letter.
_SPELLINGS: dict[str, str] = {
    "b": "B",
    "byte": "B",
    "bytes": "B",
    "字节": "B",
    **{spelling: unit for unit in _BYTES for spelling in (unit.lower(), f"{unit[0].lower()}b") if unit != "B"},
    "ns": "ns",
    "纳秒": "ns",
    "μs": "µs",
    "us": "µs",
    "微秒": "µs",
    "ms": "ms",
    "毫秒": "ms",
    **dict.fromkeys(("s", "sec", "second", "seconds", "秒"), "s"),
    **dict.fromkeys(("×", "x", "倍", "times", "fold", "-fold"), "×"),
    **dict.fromkeys(("%", "percent"), "%"),
}
_UNITS = "|".join(sorted(map(re.escape, _SPELLINGS), key=len, reverse=True))
_MAGNITUDES = {"万": 4, "亿": 8, "thousand": 3, "million": 6, "billion": 9}
_NUMBER = re.compile(
    r"(?<![a-z0-9_.])(?P<number>[-−]?(?!0\d)(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]?\d{1,3})?|[-−]?\.\d+)"
    r"(?:\s*/\s*(?P<below>\d+(?:\.\d+)?))?"
    rf"(?:\s*(?P<magnitude>{'|'.join(_MAGNITUDES)}))?"
    rf"(?:\s*(?P<unit>{_UNITS})(?![a-z]))?"
)
# Digits that count nothing: telephone numbers, dates, times, versions, names. One number and a range are none of these.
_NO_NUMBER = re.compile(
    r"(?<![\w.,])0\d[\d.]*(?:[ -]\d+)*"  # 0123 456
    r"|\d+(?P<joint>[-–:/])\d+(?:(?P=joint)\d+)+"  # 2026-11-29, 12:30:05
    r"|\d+(?:\.\d+){2,}"  # 3.11.2
    r"|\d{2,}(?:[ -]\d{3,}){2,}"  # 138 1234 5678
    r"|(?<![\w.,])\d{11,}(?!\d|\s*(?:b|byte|bytes|字节)(?![a-z]))"  # 13812345678
    r"|(?:[a-z]+[-_]|#)\d[\w-]*"  # sm_75, id-3, #5
    r"|\d+(?!e[-+]?\d)[a-z]+\d\w*"  # 16x16, 3f9a2
)
_LONGEST = 1_000  # characters looked at


class GuessedNumber(NamedTuple):
    """A number as typed; ``unit``: B to TiB, ns to s, ×, %, or blank."""

    number: float
    unit: str


def number_in(words: str, unit: str | None = None) -> GuessedNumber | None:
    """The first number with a unit in ``words``, or else the first number; ``None`` where there is none.

    Understands ``1,024``, ``1e6``, ``3/4``, ``4.6 万``, full-width digits, and units in Chinese or English. What counts
    nothing is no number: ``0123``, a date, a version, digits within a name.

    Args:
        unit: in which the number is wanted, ``""`` for a count: one in a unit of another kind is passed over.
    """
    text = _NO_NUMBER.sub("\n", unicodedata.normalize("NFKC", words[:_LONGEST]).lower())
    found = [number for match in _NUMBER.finditer(text) if (number := _number(match)) is not None]
    if unit is not None:
        found = [number for number in found if in_unit(number.number, number.unit, unit) is not None]
    return next((number for number in found if number.unit), found[0] if found else None)


def in_unit(number: float, unit: str, wanted: str) -> float | None:
    """``number`` in ``wanted`` units; as it is where no unit was typed, ``None`` where the units do not agree."""
    if unit in ("", wanted):
        return number
    if unit in _BYTES and wanted in _BYTES:
        return number * 1024.0 ** (_BYTES[unit] - _BYTES[wanted])
    if unit in _SECONDS and wanted in _SECONDS:
        return number * 10.0 ** (_SECONDS[unit] - _SECONDS[wanted])
    return None


def _number(match: re.Match[str]) -> GuessedNumber | None:
    number = float(match["number"].replace(",", "").replace("−", "-"))
    if match["below"]:
        below = float(match["below"])
        number = number / below if below else math.inf
    number *= 10.0 ** _MAGNITUDES.get(match["magnitude"], 0)
    unit = _SPELLINGS.get(match["unit"] or "", "")
    return GuessedNumber(number, unit) if math.isfinite(number) else None
