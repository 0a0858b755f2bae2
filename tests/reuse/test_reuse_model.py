"""Q2's calculator: checkpoint 9, its refusals, and what must grow with what."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.units import KIB
from lessons_lib.reuse.model import onchip_reuse

ARGUMENTS = {"tile_bytes": 32 * KIB, "reuse_count": 3, "onchip_budget_bytes": 96 * KIB}
positive = st.integers(min_value=1, max_value=2**80)


def test_a_tile_that_fits_is_read_from_memory_once() -> None:
    assert onchip_reuse(32 * KIB, 3, 96 * KIB) == {
        "fits_onchip": True,
        "avoided_read_bytes": 65536,
        "budget_utilization": pytest.approx(1 / 3),
    }


def test_a_tile_that_does_not_fit_avoids_nothing_until_it_is_cut() -> None:
    assert onchip_reuse(128 * KIB, 3, 96 * KIB) == {
        "fits_onchip": False,
        "avoided_read_bytes": 0,
        "budget_utilization": pytest.approx(4 / 3),
    }
    assert 2 * onchip_reuse(64 * KIB, 3, 96 * KIB)["avoided_read_bytes"] == 256 * KIB


def test_the_edges() -> None:
    assert onchip_reuse(96 * KIB, 2, 96 * KIB)["fits_onchip"] is True
    assert onchip_reuse(96 * KIB + 1, 2, 96 * KIB)["fits_onchip"] is False
    assert onchip_reuse(32 * KIB, 1, 96 * KIB)["avoided_read_bytes"] == 0
    assert onchip_reuse(2**70, 2**70, 2**70)["avoided_read_bytes"] == 2**70 * (2**70 - 1)


@given(positive, positive, positive, positive)
def test_a_bigger_tile_never_fits_better_and_more_reuse_never_avoids_less(
    tile: int, reuse: int, budget: int, more: int
) -> None:
    result = onchip_reuse(tile, reuse, budget)
    bigger = onchip_reuse(tile + more, reuse, budget)
    assert result["fits_onchip"] or not bigger["fits_onchip"]
    assert bigger["budget_utilization"] >= result["budget_utilization"]
    assert onchip_reuse(tile, reuse + more, budget)["avoided_read_bytes"] >= result["avoided_read_bytes"]
    assert onchip_reuse(tile, reuse, budget + more)["avoided_read_bytes"] >= result["avoided_read_bytes"]
    assert result["avoided_read_bytes"] in (0, tile * (reuse - 1))


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None, float("nan")], ids=repr)
def test_a_bad_argument_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*{re.escape(repr(value))}.*\n{name} ") as caught:
        onchip_reuse(**{**ARGUMENTS, name: value})
    assert ("type" in str(caught.value)) == (type(value) is not int)


def test_a_quotient_too_large_for_a_float_is_infinite() -> None:
    assert onchip_reuse(10**400, 1, 1)["budget_utilization"] == float("inf")
