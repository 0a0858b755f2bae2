"""Bytes, seconds and ratios as a learner reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.units import GIB, KIB, MIB, format_bytes, format_ratio, format_seconds

BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"]
TIME_UNITS = ["ns", "µs", "ms", "s"]


def read_back(shown: str, units: list[str], step: int) -> float:
    number, unit = shown.split()
    return float(number.replace(",", "")) * float(step) ** units.index(unit)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1,023 B"),
        (1024, "1 KiB"),
        (1025, "1,025 B"),
        (1536, "1.5 KiB"),
        (1023 * KIB, "1,023 KiB"),
        (MIB - 10, "1 MiB"),
        (MIB, "1 MiB"),
        (GIB - 1, "1 GiB"),
        (64 * MIB, "64 MiB"),
        (402653184, "384 MiB"),
        (184557568, "176 MiB"),
        (2**70, "1 ZiB"),
        (2**80 * 5000, "5,000 YiB"),
        (-3 * MIB, "-3 MiB"),
        (10**400, "∞ YiB"),
        (-(10**400), "-∞ YiB"),
    ],
)
def test_bytes(count: int, shown: str) -> None:
    assert format_bytes(count) == shown


@given(st.integers(min_value=0, max_value=2**89))
def test_bytes_never_show_1024_of_a_unit_and_stay_close(count: int) -> None:
    shown = format_bytes(count)
    assert shown.split()[0] != "1,024"
    assert read_back(shown, BYTE_UNITS, 1024) == pytest.approx(count, rel=0.0051)


@given(st.integers(min_value=0, max_value=2**89), st.integers(min_value=0, max_value=2**60))
def test_more_bytes_never_read_as_fewer_beyond_rounding(count: int, more: int) -> None:
    fewer, others = (read_back(format_bytes(n), BYTE_UNITS, 1024) for n in (count, count + more))
    assert fewer <= others * 1.0051


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.01843, "18.4 ms"),
        (1.0, "1 s"),
        (0.9996, "1 s"),
        (0.9994, "999 ms"),
        (1e-3, "1 ms"),
        (9.996e-4, "1 ms"),
        (43.16e-6, "43.2 µs"),
        (1e-6, "1 µs"),
        (5e-9, "5 ns"),
        (3.2e-10, "0.32 ns"),
        (3600, "3,600 s"),
        (-0.002, "-2 ms"),
        (math.inf, "∞ s"),
        (10**400, "∞ s"),
        (-(10**400), "-∞ s"),
    ],
)
def test_seconds(seconds: float, shown: str) -> None:
    assert format_seconds(seconds) == shown


@given(st.floats(min_value=1e-11, max_value=1e6))
def test_seconds_stay_close(seconds: float) -> None:
    shown = format_seconds(seconds)
    assert read_back(shown, TIME_UNITS, 1000) * 1e-9 == pytest.approx(seconds, rel=0.0051)
    assert shown.endswith(" s") or float(shown.split()[0].replace(",", "")) < 1000


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        (1, "1×"),
        (1.6667, "1.67×"),
        (1 / 3, "0.333×"),
        (0.0004126, "0.000413×"),
        (9.996, "10×"),
        (99.96, "100×"),
        (10.04, "10×"),
        (1234.5, "1,234×"),
        (100.4, "100×"),
        (0, "0×"),
        (-0.5, "-0.5×"),
        (math.inf, "∞×"),
        (-math.inf, "-∞×"),
        (math.nan, "NaN×"),
    ],
)
def test_ratios(ratio: float, shown: str) -> None:
    assert format_ratio(ratio) == shown


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (2 * 11 * 64 * MIB, "1,408 MiB"),
        (3 * 2**29, "1.5 GiB"),
        (50_339_840, "48 MiB"),
        (7000, "7,000 B"),
        (10_001 * 2**20, "9.77 GiB"),
        (2**70, "1 ZiB"),
        (2**2000, "∞ YiB"),
    ],
)
def test_bytes_are_not_rounded_where_a_smaller_unit_is_exact(count: int, text: str) -> None:
    assert format_bytes(count) == text
