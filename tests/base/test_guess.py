"""The number in a typed guess: units in both languages, and no number where there is none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.guess import in_unit, number_in


@pytest.mark.parametrize(
    ("words", "number", "unit"),
    [
        ("256", 256, ""),
        ("256 MiB", 256, "MiB"),
        ("约256MB，不变", 256, "MiB"),
        ("6 ops in 3 groups: 256 MiB", 256, "MiB"),  # what has a unit is what was asked for
        ("1,024 KiB", 1024, "KiB"),
        ("１２８ ｍｉｂ", 128, "MiB"),
        ("3/4", 0.75, ""),
        ("1e6", 1e6, ""),
        ("4.6 万次", 46_000, ""),
        ("2 million calls", 2e6, ""),
        ("快 4 倍", 4, "×"),
        ("4x", 4, "×"),
        ("4× or so", 4, "×"),
        ("33%", 33, "%"),
        ("86 µs", 86, "µs"),
        ("86 μs", 86, "µs"),
        ("3 微秒", 3, "µs"),
        ("-3", -3, ""),
        (".5", 0.5, ""),
        ("第8次", 8, ""),
        ("between 2 and 3", 2, ""),
    ],
)
def test_the_number_and_its_unit_are_found(words: str, number: float, unit: str) -> None:
    found = number_in(words)
    assert found is not None
    assert found.number == pytest.approx(number)
    assert found.unit == unit


@pytest.mark.parametrize("words", ["", "a lot", "t1 goes", "没有变化", "v2", "9e999", "0/0", "…"])
def test_words_hold_no_number(words: str) -> None:
    assert number_in(words) is None


@pytest.mark.parametrize(
    "words",
    [
        "phone 0123",
        "0123",
        "0123 456789",
        "007",
        "13812345678",
        "138 1234 5678",
        "555-123-4567",
        "2026-11-29",
        "12:30:05",
        "Python 3.11.2",
        "192.168.0.1",
        "sm_75",
        "RFC-9110",
        "room #5",
        "16x16",
        "3f9a2",
        "第08次",
    ],
)
def test_digits_that_count_nothing_are_no_number(words: str) -> None:
    assert number_in(words) is None


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("0", 0),
        ("0.5", 0.5),
        ("1.05", 1.05),
        ("1,005", 1005),
        ("2-3", 2),
        ("1.5 – 2.5", 1.5),
        ("3:1", 3),
        ("384, my phone is 0123 456", 384),
        ("on sm_75 about 12", 12),
        ("402653184", 402653184),
        ("34359738368 bytes", 34359738368),
        ("1e06", 1e6),
        ("8th call", 8),
        ("46512calls", 46512),
    ],
)
def test_a_number_beside_such_digits_or_like_them_still_counts(words: str, number: float) -> None:
    found = number_in(words)
    assert found is not None
    assert found.number == number


@pytest.mark.parametrize(
    ("words", "unit", "number"),
    [
        ("256", "MiB", 256),
        ("256 MiB", "MiB", 256),
        ("0.25 GiB", "MiB", 0.25),
        ("3 ms", "MiB", None),
        ("2×", "MiB", None),
        ("twice, 2×, so 256", "MiB", 256),
        ("256 of it, in 3 ms", "MiB", 256),
        ("1.7", "×", 1.7),
        ("快 1.7 倍", "×", 1.7),
        ("48 MiB", "×", None),
        ("第 8 次", "", 8),
        ("4 s / 86 µs = 46,512 calls", "", 46512),
        ("8 MiB", "", None),
    ],
)
def test_a_number_in_a_unit_of_another_kind_is_no_answer(words: str, unit: str, number: float | None) -> None:
    found = number_in(words, unit)
    assert (found and found.number) == number


@given(st.text("0123456789.,-:/ ax_eKM字节B#\n"), st.sampled_from([None, "", "MiB", "×"]))
def test_whatever_is_typed_gives_a_number_of_the_wanted_kind_or_none(words: str, unit: str | None) -> None:
    found = number_in(words, unit)
    assert found is None or math.isfinite(found.number)
    assert found is None or unit is None or in_unit(found.number, found.unit, unit) is not None


@given(st.text())
def test_whatever_is_typed_gives_a_finite_number_or_none(words: str) -> None:
    found = number_in(words)
    assert found is None or math.isfinite(found.number)


def test_a_long_guess_takes_no_time() -> None:
    assert number_in("1," * 500_000) is not None
    assert number_in("x" * 10**6) is None
    for digits in ("1-" * 500, "1 " * 500, "a1" * 500, "0" * 1000, "1." * 500, "12 " * 300):
        number_in(digits)


def test_units_of_one_kind_are_converted_and_others_refused() -> None:
    assert in_unit(0.25, "GiB", "MiB") == 256
    assert in_unit(256, "", "MiB") == 256
    assert in_unit(2, "ms", "µs") == pytest.approx(2000)
    assert in_unit(3, "×", "×") == 3
    assert in_unit(3, "%", "MiB") is None
    assert in_unit(3, "s", "MiB") is None
