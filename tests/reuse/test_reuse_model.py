"""Q2's calculators: checkpoints 9 and 10, their refusals, and what must grow with what."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.units import KIB
from lessons_lib.reuse.model import compare_reuse, onchip_reuse, produced_reuse, retile
from lessons_lib.traffic.model import fusion_traffic

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


@pytest.mark.parametrize("call", [onchip_reuse, produced_reuse, compare_reuse, retile])
@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None, float("nan")], ids=repr)
def test_a_bad_argument_is_refused_by_name(call: Callable[..., Any], name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*{re.escape(repr(value))}.*\n{name} ") as caught:
        call(**{**ARGUMENTS, name: value})
    assert ("type" in str(caught.value)) == (type(value) is not int)


def test_a_quotient_too_large_for_a_float_is_infinite() -> None:
    assert onchip_reuse(10**400, 1, 1)["budget_utilization"] == float("inf")


# -- produced tiles ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reuse", "read", "produced"), [(1, 0, 64), (3, 64, 128)])
def test_checkpoint_10(reuse: int, read: int, produced: int) -> None:
    assert compare_reuse(32 * KIB, reuse, 96 * KIB) == {
        "fits_onchip": True,
        "read_tile_avoided_bytes": read * KIB,
        "produced_tile_avoided_bytes": produced * KIB,
    }
    assert produced_reuse(32 * KIB, reuse, 96 * KIB) == {
        "fits_onchip": True,
        "avoided_write_bytes": 32 * KIB,
        "avoided_read_bytes": reuse * 32 * KIB,
        "avoided_bytes": produced * KIB,
        "budget_utilization": pytest.approx(1 / 3),
    }


def test_a_produced_tile_that_does_not_fit_avoids_nothing() -> None:
    result = produced_reuse(128 * KIB, 3, 96 * KIB)
    assert (result["fits_onchip"], result["avoided_bytes"]) == (False, 0)
    assert (result["avoided_write_bytes"], result["avoided_read_bytes"]) == (0, 0)
    assert compare_reuse(128 * KIB, 3, 96 * KIB) == {
        "fits_onchip": False,
        "read_tile_avoided_bytes": 0,
        "produced_tile_avoided_bytes": 0,
    }


@given(positive, positive, positive)
def test_producing_on_chip_avoids_two_tiles_more(tile: int, reuse: int, budget: int) -> None:
    both = compare_reuse(tile, reuse, budget)
    difference = both["produced_tile_avoided_bytes"] - both["read_tile_avoided_bytes"]
    assert difference == (2 * tile if both["fits_onchip"] else 0)
    assert both["read_tile_avoided_bytes"] == onchip_reuse(tile, reuse, budget)["avoided_read_bytes"]


@given(positive)
def test_a_boundary_of_q1_is_a_produced_tile_read_once(tile: int) -> None:
    boundary = fusion_traffic(2, tile, 2)["intermediate_bytes"]
    assert produced_reuse(tile, 1, tile)["avoided_bytes"] == boundary


# -- re-tiling -----------------------------------------------------------------------------------------------


def test_checkpoint_9() -> None:
    assert retile(128 * KIB, 3, 96 * KIB) == {
        "fits_whole": False,
        "pieces": 2,
        "piece_bytes": 64 * KIB,
        "last_piece_bytes": 64 * KIB,
        "avoided_whole_bytes": 0,
        "avoided_read_bytes": 256 * KIB,
        "budget_utilization": pytest.approx(2 / 3),
    }


def test_what_fits_is_not_cut_and_a_remainder_is_a_smaller_piece() -> None:
    whole = retile(32 * KIB, 3, 96 * KIB)
    assert (whole["fits_whole"], whole["pieces"], whole["piece_bytes"]) == (True, 1, 32 * KIB)
    assert whole["avoided_whole_bytes"] == whole["avoided_read_bytes"] == 64 * KIB
    ragged = retile(7, 2, 3)
    assert (ragged["pieces"], ragged["piece_bytes"], ragged["last_piece_bytes"]) == (3, 3, 1)


@given(positive, positive, positive)
def test_every_tile_can_be_cut_to_fit_and_no_fewer_pieces_would(tile: int, reuse: int, budget: int) -> None:
    cut = retile(tile, reuse, budget)
    pieces, piece, last = cut["pieces"], cut["piece_bytes"], cut["last_piece_bytes"]
    assert 1 <= last <= piece <= budget
    assert (pieces - 1) * piece + last == tile
    assert (pieces - 1) * budget < tile
    assert cut["budget_utilization"] <= 1
    assert cut["fits_whole"] is (pieces == 1)
    assert cut["avoided_whole_bytes"] == onchip_reuse(tile, reuse, budget)["avoided_read_bytes"]
    assert cut["avoided_read_bytes"] >= cut["avoided_whole_bytes"]
    by_piece = (pieces - 1) * onchip_reuse(piece, reuse, budget)["avoided_read_bytes"]
    assert cut["avoided_read_bytes"] == by_piece + onchip_reuse(last, reuse, budget)["avoided_read_bytes"]


@given(positive, positive, positive, positive)
def test_a_larger_budget_never_needs_more_pieces(tile: int, reuse: int, budget: int, more: int) -> None:
    assert retile(tile, reuse, budget + more)["pieces"] <= retile(tile, reuse, budget)["pieces"]
    assert retile(tile + more, reuse, budget)["pieces"] >= retile(tile, reuse, budget)["pieces"]
