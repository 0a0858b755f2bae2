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


@given(st.text())
def test_whatever_is_typed_gives_a_finite_number_or_none(words: str) -> None:
    found = number_in(words)
    assert found is None or math.isfinite(found.number)


def test_a_long_guess_takes_no_time() -> None:
    assert number_in("1," * 500_000) is not None
    assert number_in("x" * 10**6) is None


def test_units_of_one_kind_are_converted_and_others_refused() -> None:
    assert in_unit(0.25, "GiB", "MiB") == 256
    assert in_unit(256, "", "MiB") == 256
    assert in_unit(2, "ms", "µs") == pytest.approx(2000)
    assert in_unit(3, "×", "×") == 3
    assert in_unit(3, "%", "MiB") is None
    assert in_unit(3, "s", "MiB") is None
