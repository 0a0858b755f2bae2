"""Occupancy: cases by hand, NVIDIA's answers in a table, and NVIDIA's header itself where it can be compiled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from occupancy_oracle import FACTORS, FIELDS, TABLE, TARGETS, Oracle, OracleMissingError, Question, oracle, questions

from lessons_lib.base.gpus import A10, A100, B200, GPUS, H100, H200, L4, MI300X, T4, Gpu
from lessons_lib.base.units import KIB
from lessons_lib.reuse.occupancy import NOT_MODELLED, Occupancy, is_modelled, occupancy

NVIDIA = [gpu for gpu in GPUS.values() if gpu.vendor == "NVIDIA"]
BY_TARGET: dict[int, Gpu] = {75: T4, 80: A100, 86: A10, 89: L4, 90: H100, 100: B200}

gpus = st.sampled_from(NVIDIA)
threads = st.one_of(st.sampled_from([32, 64, 128, 256, 512, 1024]), st.integers(1, 1100))
registers = st.integers(1, 255)
shared = st.one_of(st.just(0), st.integers(0, 12_000), st.integers(0, 240_000))


def as_oracle(result: Occupancy) -> dict[str, int]:
    limits = result["block_limits"]
    return {
        "blocks_per_sm": result["blocks_per_sm"],
        "limiting_factors": sum(FACTORS[name] for name in result["limiters"]),
        "limit_warps": limits["warps"],
        "limit_registers": limits["registers"],
        "limit_shared_memory": -1 if limits["shared_memory"] is None else limits["shared_memory"],
        "limit_blocks": limits["blocks"],
        "allocated_registers_per_block": result["allocated_registers_per_block"],
        "allocated_shared_bytes_per_block": result["allocated_shared_bytes_per_block"],
    }


# -- against NVIDIA ------------------------------------------------------------------------------------------


def test_nvidias_table() -> None:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    assert "cuda_occupancy.h 12.1, CUDA_VERSION 13010" in table["origin"]
    assert [tuple(row[:4]) for row in table["rows"]] == list(questions())
    asked = {row[4 + FIELDS.index("limiting_factors")] for row in table["rows"]}
    assert asked >= set(FACTORS.values()), "the table has a case for each limiter alone"
    for row in table["rows"]:
        target, *question = row[:4]
        assert as_oracle(occupancy(BY_TARGET[target], *question)) == dict(zip(FIELDS, row[4:], strict=True)), row


@pytest.fixture(scope="module")
def nvidia() -> Iterator[Oracle]:
    try:
        with oracle() as running:
            yield running
    except OracleMissingError as missing:
        pytest.skip(str(missing))


@settings(max_examples=600)
@given(st.sampled_from(TARGETS), threads, registers, shared)
def test_nvidias_header(nvidia: Oracle, target: int, block: int, regs: int, smem: int) -> None:
    question: Question = (target, block, regs, smem)
    assert as_oracle(occupancy(BY_TARGET[target], block, regs, smem)) == nvidia(question), question


def test_the_table_is_what_the_header_says(nvidia: Oracle) -> None:
    for row in json.loads(TABLE.read_text(encoding="utf-8"))["rows"]:
        assert list(nvidia(tuple(row[:4])).values()) == row[4:]


# -- by hand -------------------------------------------------------------------------------------------------


def test_an_elementwise_kernel_fills_the_sm() -> None:
    assert occupancy(A100, 128, 32) == {
        "launches": True,
        "blocks_per_sm": 16,
        "active_warps": 64,
        "occupancy": 1.0,
        "limiters": ("warps", "registers"),
        "block_limits": {"warps": 16, "registers": 16, "shared_memory": 164, "blocks": 32},
        "warps_per_block": 4,
        "allocated_registers_per_block": 4096,
        "allocated_shared_bytes_per_block": KIB,
    }


@pytest.mark.parametrize(
    ("gpu", "question", "blocks", "limiters"),
    [
        (T4, (32, 32, 0), 16, ("blocks",)),
        (T4, (128, 33, 0), 8, ("warps",)),  # 33 registers are allocated as 40
        (A100, (128, 33, 0), 12, ("registers",)),
        (A100, (160, 48, 0), 8, ("registers",)),  # 4 x (16384 // 1536) warps // 5
        (A100, (128, 32, 48 * KIB), 3, ("shared_memory",)),
        (A100, (128, 32, 53 * KIB + 683), 2, ("shared_memory",)),  # 3 x (that + 1 KiB) fit, 3 x (rounded) do not
        (T4, (128, 32, 32 * KIB), 2, ("shared_memory",)),  # nothing reserved on 7.5
        (A10, (128, 32, 50 * KIB), 1, ("shared_memory",)),
        (H100, (1024, 64, 0), 1, ("registers",)),
    ],
    ids=str,
)
def test_one_limiter(gpu: Gpu, question: tuple[int, int, int], blocks: int, limiters: tuple[str, ...]) -> None:
    result = occupancy(gpu, *question)
    assert (result["blocks_per_sm"], result["limiters"]) == (blocks, limiters)
    assert result["occupancy"] == blocks * result["warps_per_block"] / gpu.warps_per_sm


@pytest.mark.parametrize(
    ("gpu", "question", "limiters"),
    [
        (T4, (128, 32, 64 * KIB + 1), ("shared_memory",)),
        (A100, (128, 32, 163 * KIB + 1), ("shared_memory",)),
        (A100, (1024, 65, 0), ("registers",)),
        (A100, (1025, 32, 0), ("warps",)),
        (H100, (1025, 255, 228 * KIB), ("warps", "registers", "shared_memory")),
    ],
    ids=str,
)
def test_what_does_not_launch(gpu: Gpu, question: tuple[int, int, int], limiters: tuple[str, ...]) -> None:
    result = occupancy(gpu, *question)
    assert result["launches"] is False
    assert (result["blocks_per_sm"], result["active_warps"], result["occupancy"]) == (0, 0, 0)
    assert result["limiters"] == limiters


@pytest.mark.parametrize("gpu", NVIDIA, ids=str)
def test_the_opt_in_limit_itself_launches(gpu: Gpu) -> None:
    assert occupancy(gpu, 128, 32, gpu.shared_bytes_per_block)["blocks_per_sm"] == 1


def test_a_block_may_not_have_all_that_the_sm_has() -> None:
    limited = replace(A100, shared_bytes_per_block=48 * KIB)
    assert occupancy(limited, 128, 32, 48 * KIB)["blocks_per_sm"] == 3
    assert occupancy(limited, 128, 32, 48 * KIB + 1)["limiters"] == ("shared_memory",)
    assert occupancy(limited, 128, 32, 48 * KIB + 1)["launches"] is False


def test_checkpoint_12_as_occupancy() -> None:
    two, three = 98_304, 147_456
    assert [occupancy(gpu, 256, 128, two)["launches"] for gpu in (T4, A10, A100)] == [False, True, True]
    assert [occupancy(gpu, 256, 128, three)["launches"] for gpu in (T4, A10, A100)] == [False, False, True]


def test_h100_and_h200_agree() -> None:
    assert occupancy(H100, 384, 168, 100_000) == occupancy(H200, 384, 168, 100_000)


# -- what must hold ------------------------------------------------------------------------------------------


@given(gpus, threads, registers, shared, st.integers(0, 200), st.integers(0, 100_000))
def test_needing_more_is_never_better(gpu: Gpu, block: int, regs: int, smem: int, more: int, bytes_: int) -> None:
    result = occupancy(gpu, block, regs, smem)
    blocks = result["blocks_per_sm"]
    assert occupancy(gpu, block, min(255, regs + more), smem)["blocks_per_sm"] <= blocks
    assert occupancy(gpu, block, regs, smem + bytes_)["blocks_per_sm"] <= blocks
    assert occupancy(gpu, block + more, regs, smem)["blocks_per_sm"] <= blocks
    assert 0 <= result["occupancy"] <= 1
    assert result["limiters"]
    assert result["launches"] is (blocks > 0)


@given(gpus, threads, registers, shared)
def test_the_blocks_fit_together_and_one_more_would_not(gpu: Gpu, block: int, regs: int, smem: int) -> None:
    result = occupancy(gpu, block, regs, smem)
    blocks = result["blocks_per_sm"]
    assert gpu.blocks_per_sm is not None
    assert blocks <= gpu.blocks_per_sm
    assert result["active_warps"] <= gpu.warps_per_sm
    assert blocks * result["allocated_registers_per_block"] <= gpu.registers_per_sm
    assert blocks * result["allocated_shared_bytes_per_block"] <= gpu.shared_bytes_per_sm
    if blocks and result["limiters"] == ("shared_memory",):
        assert (blocks + 1) * result["allocated_shared_bytes_per_block"] > gpu.shared_bytes_per_sm


# -- refusals ------------------------------------------------------------------------------------------------


def refusal(argument: str, *told: str) -> str:
    words = ".*".join(map(re.escape, told))
    return rf"(?s)^参数 {argument} .*{words}.*。\n{argument} .*{words}.*\.$"


def test_amd_is_refused_and_never_computed_by_nvidias_formula() -> None:
    assert [is_modelled(gpu) for gpu in (T4, B200, MI300X)] == [True, True, False]
    with pytest.raises(ValueError, match=refusal("gpu", "MI300X", "NVIDIA")) as caught:
        occupancy(MI300X, 256, 64, 0)
    assert NOT_MODELLED.zh in str(caught.value)
    assert NOT_MODELLED.en in str(caught.value)


def test_an_nvidia_gpu_with_an_unknown_limit_is_refused() -> None:
    with pytest.raises(ValueError, match=refusal("gpu", "T4")):
        occupancy(replace(T4, blocks_per_sm=None), 128, 32)


ARGUMENTS: dict[str, Any] = {"threads_per_block": 128, "registers_per_thread": 32, "shared_bytes_per_block": 0}


@pytest.mark.parametrize("value", [-1, True, 1.0, "1", None, float("nan")], ids=repr)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_bad_argument_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=refusal(name, repr(value))):
        occupancy(T4, **{**ARGUMENTS, name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("threads_per_block", 0), ("registers_per_thread", 0), ("registers_per_thread", 256)]
)
def test_the_ends_of_the_ranges(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=refusal(name, str(value))):
        occupancy(T4, **{**ARGUMENTS, name: value})


@pytest.mark.parametrize("value", ["T4", None], ids=repr)
def test_what_is_no_gpu_is_refused(value: Any) -> None:
    for call in (lambda: occupancy(value, 128, 32), lambda: is_modelled(value)):
        with pytest.raises(ValueError, match=refusal("gpu", repr(value))):
            call()
