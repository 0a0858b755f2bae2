"""Numbers that nothing has: every calculator refuses them in both languages, or answers with what can be shown."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest

import lessons_lib

GPU = lessons_lib.GPUS["A100 (40 GB)"]
CALLS: dict[str, tuple[Any, ...]] = {
    "accumulator_registers": (GPU, 64, 64, 4),
    "attention_traffic": (64, 64, 16, 64, 2),
    "chain_traffic": (4, 100, 2, 0),
    "compare_reuse": (16, 4, 64),
    "compile_ledger": (1.0, 1e-3, 5),
    "compute_bound_k": (64, 64, 1e12, 1e12, 2),
    "epilogue_plans": (64, 64, 64, GPU, 2, 1e-6),
    "epilogue_speedup": (64, 1e12, 1e12, 2, 2),
    "fake": ((4, 4), "float32"),
    "format_bytes": (5,),
    "format_seconds": (5.0,),
    "fusion_decision": (True, True, True, True, 5),
    "fusion_traffic": (4, 100, 2),
    "gemm_traffic": (64, 64, 64, 16, 16, 2),
    "kernel_interval": (1e9, 1e9, 1e12, 1e12),
    "layout_ledger": (100, 10, "each_call", 5),
    "occupancy": (GPU, 128, 32, 0),
    "onchip_reuse": (16, 4, 64),
    "produced_reuse": (16, 4, 64),
    "program_interval": ([(1e9, 1e9)], 1e12, 1e12, 1e-6),
    "resident_buffers": (GPU, 3),
    "retile": (16, 4, 64),
    "rmsnorm_traffic": (16, 16, 2),
    "softmax_traffic": (16, 16, 4),
    "tensor_of": ("x", (4, 4)),
    "tile_operand_bytes": (16, 16, 16, 2, 2),
}
HOSTILE = (10**400, -(10**400), 10**5000, 2**63, 2**62, 10**30, 1e308, 1e-308, 5e-324, math.nan, math.inf, -1, 0)
NO_NUMBERS = (True, "x", None, 1j)
NUMBERS = [
    (name, position)
    for name, arguments in CALLS.items()
    for position, value in enumerate(arguments)
    if isinstance(value, (int, float, tuple, list)) and not isinstance(value, bool)
]


def with_number(name: str, position: int, number: object) -> tuple[Any, ...]:
    arguments = list(CALLS[name])
    if isinstance(arguments[position], tuple):
        arguments[position] = (4, number)
    elif isinstance(arguments[position], list):
        arguments[position] = [(number, 1e9)]
    else:
        arguments[position] = number
    return tuple(arguments)


def refused(call: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """The refusal; blank where there is none and the answer can be shown."""
    try:
        repr(call(*arguments))
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("name", "position"), NUMBERS, ids=lambda value: str(value))
def test_a_number_that_nothing_has_is_refused_in_both_languages_or_shown(name: str, position: int) -> None:
    call = getattr(lessons_lib, name)
    for number in HOSTILE:
        said = refused(call, with_number(name, position, number))
        assert not said or ("\n" in said and not said.isascii()), (number, said)


@pytest.mark.parametrize(("name", "position"), NUMBERS, ids=lambda value: str(value))
def test_what_is_no_number_is_refused_by_name(name: str, position: int) -> None:
    call = getattr(lessons_lib, name)
    argument = list(inspect.signature(call).parameters)[position]
    for value in NO_NUMBERS:
        if value is None and argument == "keys":  # as many as there are queries
            continue
        said = refused(call, with_number(name, position, value)).splitlines()
        named = "x.shape[1]" if name == "tensor_of" else argument
        assert len(said) == 2 and all(named in line for line in said), (value, said)


@pytest.mark.parametrize(
    ("name", "position", "number"),
    [
        ("fusion_traffic", 1, 10**5000),
        ("chain_traffic", 1, 10**5000),
        ("gemm_traffic", 2, 10**5000),
        ("onchip_reuse", 1, 10**5000),
        ("layout_ledger", 0, 10**5000),
        ("occupancy", 1, 10**5000),
        ("compute_bound_k", 0, 10**400),
        ("compute_bound_k", 4, 2**63),
        ("epilogue_speedup", 0, 10**400),
        ("epilogue_speedup", 4, 10**400),
        ("kernel_interval", 0, 10**400),
    ],
    ids=lambda value: str(value)[:20] if value != 10**5000 else "10**5000",
)
def test_what_cannot_be_computed_or_written_is_refused_by_name(name: str, position: int, number: int) -> None:
    call = getattr(lessons_lib, name)
    argument = list(inspect.signature(call).parameters)[position]
    first, second = refused(call, with_number(name, position, number)).splitlines()
    assert first.startswith(f"参数 {argument} ") and second.startswith(f"{argument} "), (first, second)


def test_other_results_are_exact_at_any_size() -> None:
    moved = lessons_lib.fusion_traffic(4, 10**400, 2)
    assert moved["intermediate_bytes"] == 2 * 10**400


def test_the_rate_that_makes_a_time_too_long_for_a_float_is_named() -> None:
    for position, rate in ((2, "peak_flops"), (3, "bandwidth")):
        assert refused(lessons_lib.kernel_interval, with_number("kernel_interval", position, 5e-324)).count(rate) == 2
    launching = lessons_lib.program_interval
    assert refused(launching, ([(1, 1)] * 2, 1, 1, 1.7e308)).count("launch_seconds") == 2
    assert refused(launching, ([(1e308, 0)] * 2, 1, 1, 0)).count("kernels") == 2
    assert refused(launching, ([(1e308, 1e308)], 1, 1, 0)).count("traffic_bytes") == 2
