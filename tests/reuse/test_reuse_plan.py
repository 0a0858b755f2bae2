"""The plan behind the Q2 panel: it agrees with the three calculators of the lesson, whatever the switches say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.gpus import A10, GPUS, MI300X, T4, Gpu
from lessons_lib.base.units import KIB, MIB
from lessons_lib.reuse.model import onchip_reuse, produced_reuse, retile
from lessons_lib.reuse.occupancy import occupancy
from lessons_lib.reuse.plan import (
    BLOCK_THREADS,
    EXAMPLE_BUDGET,
    LEVELS,
    OTHER_REGISTERS,
    budget_of,
    resident_blocks,
    reuse_plan,
)

sizes = st.integers(min_value=1, max_value=2**40)
counts = st.integers(min_value=1, max_value=2**20)
switches = st.booleans()


@given(sizes, counts, sizes)
def test_a_whole_tile_that_is_read_is_onchip_reuse(tile: int, count: int, budget: int) -> None:
    plan, model = reuse_plan(tile, count, budget, produced=False, cut=False), onchip_reuse(tile, count, budget)
    assert plan["fits_onchip"] == model["fits_onchip"]
    assert plan["avoided_bytes"] == model["avoided_read_bytes"]
    assert plan["budget_utilization"] == model["budget_utilization"]
    assert (plan["pieces"], plan["piece_bytes"]) == (1, tile)
    assert plan["moved_bytes"] == (tile if model["fits_onchip"] else count * tile)


@given(sizes, counts, sizes)
def test_a_whole_tile_that_is_produced_is_produced_reuse(tile: int, count: int, budget: int) -> None:
    plan, model = reuse_plan(tile, count, budget, produced=True, cut=False), produced_reuse(tile, count, budget)
    assert plan["fits_onchip"] == model["fits_onchip"]
    assert plan["avoided_bytes"] == model["avoided_bytes"]
    assert plan["budget_utilization"] == model["budget_utilization"]
    assert plan["moved_bytes"] == (0 if model["fits_onchip"] else (count + 1) * tile)


@given(sizes, counts, sizes)
def test_a_tile_that_is_cut_is_retile(tile: int, count: int, budget: int) -> None:
    plan, model = reuse_plan(tile, count, budget, produced=False, cut=True), retile(tile, count, budget)
    assert plan["fits_onchip"] is True
    for key in ("pieces", "piece_bytes", "budget_utilization"):
        assert plan[key] == model[key]  # type: ignore[literal-required]
    assert plan["avoided_bytes"] == model["avoided_read_bytes"]


@given(sizes, counts, sizes, switches)
def test_cutting_brings_back_what_a_large_budget_would_have_given(
    tile: int, count: int, budget: int, produced: bool
) -> None:
    cut = reuse_plan(tile, count, budget, produced=produced, cut=True)
    ample = reuse_plan(tile, count, tile, produced=produced, cut=False)
    assert (cut["avoided_bytes"], cut["moved_bytes"]) == (ample["avoided_bytes"], ample["moved_bytes"])
    assert cut["piece_bytes"] <= budget


@given(sizes, counts, sizes, switches, switches)
def test_what_is_left_and_what_is_avoided_are_all_there_was(
    tile: int, count: int, budget: int, produced: bool, cut: bool
) -> None:
    plan = reuse_plan(tile, count, budget, produced=produced, cut=cut)
    assert plan["moved_bytes"] + plan["avoided_bytes"] == (count + (1 if produced else 0)) * tile
    assert plan["fits_onchip"] == (plan["piece_bytes"] <= budget)


def test_checkpoint_9_by_the_plan() -> None:
    small = reuse_plan(32 * KIB, 3, EXAMPLE_BUDGET, produced=False, cut=False)
    assert (small["fits_onchip"], small["avoided_bytes"]) == (True, 65536)
    large = reuse_plan(128 * KIB, 3, EXAMPLE_BUDGET, produced=False, cut=False)
    assert (large["fits_onchip"], large["avoided_bytes"], large["moved_bytes"]) == (False, 0, 384 * KIB)
    cut = reuse_plan(128 * KIB, 3, EXAMPLE_BUDGET, produced=False, cut=True)
    assert (cut["pieces"], cut["piece_bytes"], cut["avoided_bytes"]) == (2, 64 * KIB, 256 * KIB)
    boundary = reuse_plan(32 * KIB, 1, EXAMPLE_BUDGET, produced=True, cut=False)
    assert (boundary["avoided_bytes"], boundary["moved_bytes"]) == (64 * KIB, 0)


@pytest.mark.parametrize("name", ["produced", "cut"])
@pytest.mark.parametrize("value", [1, 0, None, "yes"], ids=repr)
def test_a_switch_is_a_bool(name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"produced": False, "cut": False, name: value}
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        reuse_plan(1, 1, 1, **arguments)


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("value", [0, -1, True, 1.0, None], ids=repr)
def test_a_bad_number_is_refused_by_name(position: int, value: Any) -> None:
    arguments: list[Any] = [1, 1, 1]
    arguments[position] = value
    name = ("tile_bytes", "reuse_count", "onchip_budget_bytes")[position]
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        reuse_plan(*arguments, produced=False, cut=False)


# -- budgets of real GPUs -----------------------------------------------------------------------------------------


def test_budgets_of_the_t4_are_those_of_its_data_sheet() -> None:
    assert [budget_of(T4, level) for level in LEVELS] == [256 * KIB, 64 * KIB, 4 * MIB]


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_each_level_has_its_own_field(gpu: Gpu) -> None:
    assert budget_of(gpu, "registers") == 4 * gpu.registers_per_sm
    assert budget_of(gpu, "shared") == gpu.shared_bytes_per_block
    assert budget_of(gpu, "l2") == gpu.l2_bytes


@pytest.mark.parametrize("level", ["l1", "", None, 2], ids=repr)
def test_an_unknown_level_is_refused_with_those_there_are(level: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)^参数 level .*\nlevel must be one of: 'registers', 'shared', 'l2'"):
        budget_of(T4, level)


# -- resident blocks ----------------------------------------------------------------------------------------------


def test_a_t4_holds_two_blocks_of_32_kib_and_one_of_64() -> None:
    assert [resident_blocks(T4, "shared", kib * KIB) for kib in (32, 64, 128)] == [2, 1, 0]


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_no_answer_for_the_l2_nor_for_amd(gpu: Gpu) -> None:
    assert resident_blocks(gpu, "l2", KIB) is None
    amd = gpu.vendor == "AMD"
    assert (resident_blocks(gpu, "shared", KIB) is None) == (resident_blocks(gpu, "registers", KIB) is None) == amd


def test_the_amd_gpu_is_there_to_have_no_answer() -> None:
    assert MI300X.vendor == "AMD"
    assert [resident_blocks(MI300X, level, 1) for level in LEVELS] == [None, None, None]


@given(st.sampled_from([gpu for gpu in GPUS.values() if gpu.vendor == "NVIDIA"]), st.integers(1, 2**18))
def test_a_piece_in_shared_memory_is_the_occupancy_of_its_block(gpu: Gpu, piece: int) -> None:
    expected = occupancy(gpu, BLOCK_THREADS, OTHER_REGISTERS, piece)["blocks_per_sm"]
    assert resident_blocks(gpu, "shared", piece) == expected
    assert (expected == 0) == (piece > gpu.shared_bytes_per_block)


@given(st.sampled_from([gpu for gpu in GPUS.values() if gpu.vendor == "NVIDIA"]), st.integers(1, 2**20))
def test_a_piece_in_registers_is_spread_over_the_threads(gpu: Gpu, piece: int) -> None:
    registers = OTHER_REGISTERS + -(-piece // (4 * BLOCK_THREADS))
    spills = registers > gpu.max_registers_per_thread
    expected = 0 if spills else occupancy(gpu, BLOCK_THREADS, registers)["blocks_per_sm"]
    assert resident_blocks(gpu, "registers", piece) == expected


def test_the_last_register_before_a_spill() -> None:
    room = (A10.max_registers_per_thread - OTHER_REGISTERS) * 4 * BLOCK_THREADS
    assert resident_blocks(A10, "registers", room) == 1
    assert resident_blocks(A10, "registers", room + 1) == 0
    assert budget_of(A10, "registers") > room, "the register file has room that no such block can use"
