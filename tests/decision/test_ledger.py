"""Q3's ledgers: checkpoint 14, break-even against counting call by call, and refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.units import MIB
from lessons_lib.decision.ledger import (
    WHEN,
    LedgerPoint,
    When,
    compile_ledger,
    compile_series,
    layout_ledger,
    layout_series,
)

sizes = st.integers(min_value=0, max_value=2**80)
small = st.integers(min_value=0, max_value=60)
whens = st.sampled_from(WHEN)
LIMIT = 200  # calls counted; with at most 60 of cost in steps of 1, every answer lies below


def test_an_activation_converted_each_call_never_pays() -> None:
    assert layout_ledger(8 * MIB, 8 * MIB, "each_call", 100) == {
        "reorder_bytes": 16 * MIB,
        "cost_bytes": 1600 * MIB,
        "saved_bytes": 800 * MIB,
        "net_bytes": -800 * MIB,
        "break_even_calls": None,
        "gains_from_call": None,
    }


def test_a_weight_converted_once_breaks_even_at_eight_and_gains_from_nine() -> None:
    ledger = layout_ledger(32 * MIB, 8 * MIB, "once", 8)
    assert ledger == {
        "reorder_bytes": 64 * MIB,
        "cost_bytes": 64 * MIB,
        "saved_bytes": 64 * MIB,
        "net_bytes": 0,
        "break_even_calls": 8,
        "gains_from_call": 9,
    }
    assert layout_ledger(32 * MIB, 8 * MIB, "once", 9)["net_bytes"] == 8 * MIB


def test_the_edges() -> None:
    nothing = layout_ledger(0, 8, "each_call", 3)
    assert (nothing["cost_bytes"], nothing["net_bytes"], nothing["break_even_calls"]) == (0, 24, 1)
    even = layout_ledger(4, 8, "each_call", 5)
    assert (even["net_bytes"], even["break_even_calls"], even["gains_from_call"]) == (0, 1, None)
    useless = layout_ledger(4, 0, "once", 5)
    assert (useless["net_bytes"], useless["break_even_calls"]) == (-8, None)
    assert layout_ledger(4, 8, "once", 0)["net_bytes"] == -8, "a weight is converted before the first call"
    assert layout_ledger(4, 8, "each_call", 0)["net_bytes"] == 0
    assert layout_ledger(1, 1)["cost_bytes"] == 2


def first(holds: Callable[[int], bool]) -> int | None:
    return next((calls for calls in range(1, LIMIT) if holds(calls)), None)


def simulated(reordered: int, saved: int, when: When, calls: int) -> int:
    net = -2 * reordered if when == "once" else 0
    for _ in range(calls):
        net += saved
        if when == "each_call":
            net -= reordered  # read
            net -= reordered  # written
    return net


@given(small, small, whens)
def test_break_even_is_what_counting_call_by_call_finds(reordered: int, saved: int, when: When) -> None:
    ledger = layout_ledger(reordered, saved, when)
    assert ledger["break_even_calls"] == first(lambda calls: simulated(reordered, saved, when, calls) >= 0)
    assert ledger["gains_from_call"] == first(lambda calls: simulated(reordered, saved, when, calls) > 0)


@given(small, small, whens, st.integers(min_value=0, max_value=50))
def test_the_net_is_what_counting_call_by_call_finds(reordered: int, saved: int, when: When, calls: int) -> None:
    ledger = layout_ledger(reordered, saved, when, calls)
    assert ledger["net_bytes"] == simulated(reordered, saved, when, calls)
    assert ledger["net_bytes"] == ledger["saved_bytes"] - ledger["cost_bytes"]


@given(sizes, sizes, sizes, whens, sizes, sizes)
def test_a_ledger_is_monotone(reordered: int, saved: int, more: int, when: When, calls: int, later: int) -> None:
    ledger = layout_ledger(reordered, saved, when, calls)
    assert layout_ledger(reordered + more, saved, when, calls)["net_bytes"] <= ledger["net_bytes"]
    assert layout_ledger(reordered, saved + more, when, calls)["net_bytes"] >= ledger["net_bytes"]
    if when == "once":
        assert layout_ledger(reordered, saved, when, calls + later)["net_bytes"] >= ledger["net_bytes"]
    gains, even = ledger["gains_from_call"], ledger["break_even_calls"]
    if gains is not None:
        assert even in (gains, gains - 1)
        assert layout_ledger(reordered, saved, when, gains)["net_bytes"] > 0
        assert layout_ledger(reordered, saved, when, gains - 1)["net_bytes"] <= 0


@pytest.mark.parametrize("name", ["reordered_tensor_bytes", "saved_bytes_per_call", "calls"])
@pytest.mark.parametrize("value", [-1, True, 1.0, "1", None], ids=repr)
def test_a_bad_number_of_the_layout_ledger_is_refused_by_name(name: str, value: Any) -> None:
    arguments = {"reordered_tensor_bytes": 8, "saved_bytes_per_call": 8, "when": "once", "calls": 1, name: value}
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*{re.escape(repr(value))}.*\n{name} "):
        layout_ledger(**arguments)


@pytest.mark.parametrize("when", ["never", "", None, True, 1], ids=repr)
def test_when_is_once_or_each_call(when: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)^参数 when .*\nwhen must be one of: 'once', 'each_call'"):
        layout_ledger(8, 8, when)


# -- compiling --------------------------------------------------------------------------------------------------


def test_a_tenth_of_a_second_is_a_tenth() -> None:
    assert compile_ledger(4, 0.1, 40) == {
        "cost_seconds": 4.0,
        "saved_seconds": 4.0,
        "net_seconds": 0.0,
        "break_even_calls": 40,
        "gains_from_call": 41,
    }
    assert compile_ledger(0.3, 0.1)["break_even_calls"] == 3
    assert compile_ledger(1.0, 3e-7)["break_even_calls"] == 3_333_334


def test_a_slower_kernel_never_repays_its_compilation() -> None:
    ledger = compile_ledger(2.0, -0.5, 4)
    assert (ledger["net_seconds"], ledger["break_even_calls"], ledger["gains_from_call"]) == (-4.0, None, None)
    assert compile_ledger(0.0, -0.5)["break_even_calls"] is None
    assert compile_ledger(0.0, 0.0)["break_even_calls"] == 1


@given(small, st.integers(min_value=-60, max_value=60), st.integers(min_value=0, max_value=50))
def test_milliseconds_break_even_as_counting_finds(cost: int, saved: int, calls: int) -> None:
    ledger = compile_ledger(cost / 1000, saved / 1000, calls)
    assert ledger["break_even_calls"] == first(lambda count: saved * count >= cost)
    assert ledger["gains_from_call"] == first(lambda count: saved * count > cost)
    assert ledger["net_seconds"] == float(Fraction(saved * calls - cost, 1000))


@pytest.mark.parametrize("name", ["compile_seconds", "saved_seconds_per_call", "calls"])
@pytest.mark.parametrize(
    "value", [True, "1", None, float("nan"), float("inf"), 10**400], ids=lambda value: repr(value)[:9]
)
def test_a_bad_number_of_the_compile_ledger_is_refused_by_name(name: str, value: Any) -> None:
    arguments = {"compile_seconds": 1.0, "saved_seconds_per_call": 0.1, "calls": 1, name: value}
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        compile_ledger(**arguments)


def test_negative_compile_time_is_refused() -> None:
    with pytest.raises(ValueError, match="compile_seconds must be at least 0"):
        compile_ledger(-1, 0.1)
    with pytest.raises(ValueError, match="calls must be at least 0"):
        compile_ledger(1, 0.1, -1)


# -- drawing ----------------------------------------------------------------------------------------------------


def test_a_series_holds_every_call_where_it_can() -> None:
    series = layout_series(32 * MIB, 8 * MIB, "once", 10)
    assert [point.calls for point in series] == list(range(11))
    assert series[0] == LedgerPoint(0, -64 * MIB)
    assert series[8].net == 0
    assert series[10].net == 16 * MIB
    assert compile_series(4, 0.5, 2) == ((0, -4.0), (1, -3.5), (2, -3.0))


@given(st.integers(min_value=1, max_value=10**9), st.integers(min_value=2, max_value=50))
def test_a_long_series_keeps_both_ends_and_its_size(last: int, points: int) -> None:
    series = layout_series(3, 1, "once", last, points)
    calls = [point.calls for point in series]
    assert (calls[0], calls[-1]) == (0, last)
    assert len(calls) == min(points, last + 1)
    assert calls == sorted(set(calls))
    assert all(point.net == point.calls - 6 for point in series)


@pytest.mark.parametrize(("name", "value"), [("last_call", 0), ("last_call", 1.5), ("points", 1), ("points", None)])
def test_a_bad_series_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        layout_series(
            **{"reordered_tensor_bytes": 1, "saved_bytes_per_call": 1, "when": "once", "last_call": 3, name: value}
        )
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        compile_series(**{"compile_seconds": 1, "saved_seconds_per_call": 1, "last_call": 3, name: value})
