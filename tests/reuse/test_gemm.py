"""A GEMM tile: checkpoints 12 and 13, Triton's buffers, and operands that tiles read again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.gpus import A10, A100, B200, GPUS, H100, H200, L4, MI300X, T4, Gpu
from lessons_lib.base.units import MIB
from lessons_lib.reuse.gemm import (
    TENSOR_MEMORY_NOTE,
    accumulator_registers,
    gemm_traffic,
    resident_buffers,
    tile_operand_bytes,
)

blocks = st.integers(1, 2**20)
gpus = st.sampled_from(list(GPUS.values()))


def refusal(argument: str, *told: str) -> str:
    words = ".*".join(map(re.escape, told))
    return rf"(?s)^参数 {argument} .*{words}.*。\n{argument} .*{words}.*\.$"


# -- operands ------------------------------------------------------------------------------------------------


def test_checkpoint_12() -> None:
    assert tile_operand_bytes(128, 128, 32) == {
        "a_bytes": 8192,
        "b_bytes": 8192,
        "bytes_per_buffer": 16_384,
        "buffers": 1,
        "total_bytes": 16_384,
    }
    two, three = (tile_operand_bytes(128, 256, 64, buffers)["total_bytes"] for buffers in (2, 3))
    assert (two, three) == (98_304, 147_456)
    assert (T4.shared_bytes_per_block, A10.shared_bytes_per_block, A100.shared_bytes_per_block) == (
        65_536,
        101_376,
        166_912,
    )
    assert T4.shared_bytes_per_block < two < A10.shared_bytes_per_block < three < A100.shared_bytes_per_block
    assert three > MI300X.shared_bytes_per_block  # it compiles for gfx942 all the same


@given(blocks, blocks, blocks, st.integers(1, 9), st.integers(1, 8))
def test_operands_add_up(block_m: int, block_n: int, block_k: int, buffers: int, element: int) -> None:
    tile = tile_operand_bytes(block_m, block_n, block_k, buffers, element)
    assert tile["a_bytes"] == tile_operand_bytes(block_n, block_m, block_k, buffers, element)["b_bytes"]
    assert tile["total_bytes"] == buffers * (tile["a_bytes"] + tile["b_bytes"])
    for bigger in (
        tile_operand_bytes(block_m + 1, block_n, block_k, buffers, element),
        tile_operand_bytes(block_m, block_n + 1, block_k, buffers, element),
        tile_operand_bytes(block_m, block_n, block_k + 1, buffers, element),
        tile_operand_bytes(block_m, block_n, block_k, buffers + 1, element),
        tile_operand_bytes(block_m, block_n, block_k, buffers, element + 1),
    ):
        assert bigger["total_bytes"] > tile["total_bytes"]


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        (T4, [1, 1, 1, 1]),
        (A10, [1, 1, 2, 3]),
        (L4, [1, 1, 2, 3]),
        (A100, [1, 1, 2, 3]),
        (MI300X, [1, 1, 2, 3]),
        (H100, [1, 2, 3, 4]),
        (H200, [1, 2, 3, 4]),
        (B200, [1, 2, 3, 4]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_buffers_are_not_stages(gpu: Gpu, expected: list[int]) -> None:
    assert [resident_buffers(gpu, stages) for stages in (1, 2, 3, 4)] == expected


@given(gpus, st.integers(1, 100))
def test_more_stages_never_have_fewer_buffers(gpu: Gpu, stages: int) -> None:
    assert 1 <= resident_buffers(gpu, stages) <= resident_buffers(gpu, stages + 1) <= stages + 1


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ValueError, match=refusal("gpu", "sm_121")):
        resident_buffers(replace(B200, target="sm_121"), 3)


# -- the accumulator -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gpu", "warps", "expected"), [(A100, 4, 128), (A100, 8, 64), (MI300X, 4, 64), (T4, 4, 128)])
def test_checkpoint_13(gpu: Gpu, warps: int, expected: int) -> None:
    assert accumulator_registers(gpu, 128, 128, warps) == {
        "accumulator_bytes": 65_536,
        "threads": warps * gpu.warp_size,
        "values_per_thread": expected,
        "place": "registers",
        "registers_per_thread": expected,
        "fits": True,
        "note": None,
    }


def test_blackwell_keeps_it_in_tensor_memory() -> None:
    result = accumulator_registers(B200, 128, 128, 4)
    assert (result["values_per_thread"], result["registers_per_thread"]) == (128, 0)
    assert (result["place"], result["fits"], result["note"]) == ("tensor_memory", None, TENSOR_MEMORY_NOTE)
    assert "tensor memory" in TENSOR_MEMORY_NOTE.en


def test_where_the_accumulator_alone_is_too_large() -> None:
    assert [accumulator_registers(A100, 128, n, 4)["fits"] for n in (128, 254, 255, 256)] == [True, True, True, False]
    assert accumulator_registers(MI300X, 256, 256, 2)["fits"] is True
    assert accumulator_registers(A100, 3, 3, 1)["values_per_thread"] == 1


@given(gpus, blocks, blocks, st.integers(1, 64))
def test_registers_hold_the_accumulator_and_warps_share_it(gpu: Gpu, block_m: int, block_n: int, warps: int) -> None:
    result = accumulator_registers(gpu, block_m, block_n, warps)
    share = result["values_per_thread"]
    assert (share - 1) * result["threads"] < block_m * block_n <= share * result["threads"]
    assert accumulator_registers(gpu, block_m, block_n, warps + 1)["values_per_thread"] <= share
    assert accumulator_registers(gpu, block_m + 1, block_n, warps)["values_per_thread"] >= share
    assert result["accumulator_bytes"] == 4 * block_m * block_n


# -- operands read again -------------------------------------------------------------------------------------


def test_a_gemm_by_hand() -> None:
    assert gemm_traffic(4096, 4096, 1024, 128, 256) == {
        "a_reads": 16,
        "b_reads": 32,
        "a_bytes": 128 * MIB,
        "b_bytes": 256 * MIB,
        "c_bytes": 32 * MIB,
        "total_bytes": 416 * MIB,
        "once_bytes": 48 * MIB,
        "ratio": pytest.approx(416 / 48),
    }


def test_a_ragged_gemm_by_hand() -> None:
    result = gemm_traffic(5, 7, 3, 2, 4, element_bytes=1)
    assert (result["a_reads"], result["b_reads"]) == (2, 3)
    assert result["total_bytes"] == 2 * 15 + 3 * 21 + 35


@given(blocks, blocks, blocks, blocks, blocks, st.integers(1, 8), blocks)
def test_larger_tiles_never_read_more(
    m: int, n: int, k: int, block_m: int, block_n: int, element: int, more: int
) -> None:
    result = gemm_traffic(m, n, k, block_m, block_n, element)
    total = result["total_bytes"]
    assert gemm_traffic(m, n, k, block_m + more, block_n, element)["total_bytes"] <= total
    assert gemm_traffic(m, n, k, block_m, block_n + more, element)["total_bytes"] <= total
    assert result["total_bytes"] >= result["once_bytes"] == element * (m * k + k * n + m * n)
    assert result["ratio"] >= 1
    assert gemm_traffic(m, n, k, m, n, element)["ratio"] == 1
    assert gemm_traffic(m, n, k, 1, 1, element)["total_bytes"] == element * m * n * (2 * k + 1)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5), st.integers(1, 13), st.integers(1, 13))
def test_counting_tile_by_tile_gives_the_formula(m: int, n: int, k: int, block_m: int, block_n: int) -> None:
    counted = 0
    for row in range(0, m, block_m):
        for column in range(0, n, block_n):
            height, width = min(block_m, m - row), min(block_n, n - column)
            counted += height * k + k * width + height * width
    assert gemm_traffic(m, n, k, block_m, block_n, 1)["total_bytes"] == counted


# -- refusals ------------------------------------------------------------------------------------------------

CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (tile_operand_bytes, {"block_m": 1, "block_n": 1, "block_k": 1, "buffers": 1, "element_bytes": 1}),
    (gemm_traffic, {"m": 1, "n": 1, "k": 1, "block_m": 1, "block_n": 1, "element_bytes": 1}),
    (accumulator_registers, {"gpu": T4, "block_m": 1, "block_n": 1, "num_warps": 1}),
    (resident_buffers, {"gpu": T4, "num_stages": 1}),
]


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None], ids=repr)
@pytest.mark.parametrize(("call", "arguments"), CALLS, ids=[call.__name__ for call, _ in CALLS])
def test_a_bad_argument_is_refused_by_name(call: Callable[..., Any], arguments: dict[str, Any], value: Any) -> None:
    call(**arguments)
    for name in arguments:
        with pytest.raises(ValueError, match=refusal(name, repr(value))):
            call(**{**arguments, name: value})
