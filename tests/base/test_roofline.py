"""Roofline intervals: checkpoints 5 and 6, by the closed form and by counting a plan's bytes."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.roofline import (
    Interval,
    compute_bound_k,
    epilogue_speedup,
    kernel_interval,
    program_interval,
    speedup_interval,
)
from lessons_lib.traffic.model import Operator, plan_traffic

A100 = {"peak_flops": 312e12, "bandwidth": 1555e9}
T4 = {"peak_flops": 65e12, "bandwidth": 320e9}
M = N = 4096

amounts = st.floats(min_value=0, max_value=1e18)
rates = st.floats(min_value=1e6, max_value=1e16)


def refusal(argument: str) -> str:
    name = re.escape(argument)
    return rf"(?s)^参数 {name} .*。\n{name} .*\.$"


def gemm_epilogue(k: int, *plan: list[str]) -> list[tuple[int, int]]:
    """``(operations, bytes)`` of each kernel of an fp16 GEMM, bias and GELU; pointwise operations count as 0."""
    size = {"a": 2 * M * k, "b": 2 * k * N, "bias": 2 * N, **dict.fromkeys(["c", "d", "y"], 2 * M * N)}
    operators = [
        Operator("gemm", ["a", "b"], "c"),
        Operator("add", ["c", "bias"], "d"),
        Operator("gelu", ["d"], "y"),
    ]
    kernels = plan_traffic(operators, plan, size, ["y"])["kernels"]
    return [
        (2 * M * N * k if "gemm" in kernel["operators"] else 0, kernel["read_bytes"] + kernel["write_bytes"])
        for kernel in kernels
    ]


THREE: list[list[str]] = [["gemm"], ["add"], ["gelu"]]
TWO: list[list[str]] = [["gemm", "add"], ["gelu"]]
ONE: list[list[str]] = [["gemm", "add", "gelu"]]


def test_a_kernel_lies_between_the_greater_bound_and_the_sum() -> None:
    interval = kernel_interval(operations=3e12, traffic_bytes=2e12, peak_flops=1e12, bandwidth=1e12)
    assert interval == Interval(3.0, 5.0)
    assert kernel_interval(0, 2**70, 1e12, 2.0**70) == Interval(1.0, 1.0)


@given(amounts, amounts, rates, rates)
def test_the_sum_is_at_most_twice_the_maximum(work: float, size: float, peak: float, bandwidth: float) -> None:
    interval = kernel_interval(work, size, peak, bandwidth)
    assert interval.low <= interval.high <= 2 * interval.low
    assert kernel_interval(work * 2, size, peak, bandwidth).low >= interval.low
    assert kernel_interval(work, size * 2, peak, bandwidth).high >= interval.high
    assert kernel_interval(work, size, peak, bandwidth * 2).high <= interval.high


def test_checkpoint_5_in_milliseconds() -> None:
    gemm, bias, gelu = (kernel_interval(work, size, **A100).low * 1e3 for work, size in gemm_epilogue(1024, *THREE))
    assert gemm == pytest.approx(0.1101, abs=5e-5)
    assert bias == pytest.approx(0.0432, abs=5e-5)
    assert gelu == pytest.approx(0.0432, abs=5e-5)


def test_checkpoint_5_as_intervals_of_ratios() -> None:
    three, two, one = (program_interval(gemm_epilogue(1024, *plan), **A100) for plan in (THREE, TWO, ONE))
    speedup = speedup_interval(three, one)
    assert three.low / one.low == pytest.approx(1.784, abs=5e-4)
    assert three.high / one.high == pytest.approx(1.606, abs=5e-4)
    assert (speedup.low, speedup.high) == (three.high / one.high, three.low / one.low)
    assert speedup_interval(two, one).high == pytest.approx(1.392, abs=5e-4)
    assert 1.7 in speedup
    assert 1.8 not in speedup
    assert 1.6 not in speedup


@pytest.mark.parametrize(
    ("gpu", "k", "expected"),
    [
        (A100, 1024, 1.784),
        (A100, 4096, 1.196),
        (A100, 16384, 1.049),
        (T4, 1024, 1.793),
        (T4, 4096, 1.198),
        (T4, 16384, 1.050),
    ],
)
def test_checkpoint_6(gpu: dict[str, float], k: int, expected: float) -> None:
    closed = epilogue_speedup(k, **gpu)
    assert closed == pytest.approx(expected, abs=6e-4)
    counted = speedup_interval(
        program_interval(gemm_epilogue(k, *THREE), **gpu), program_interval(gemm_epilogue(k, *ONE), **gpu)
    )
    assert counted.high == pytest.approx(closed, rel=2e-4)  # the bias vector is all that differs


def test_the_closed_form_for_one_pass_and_other_elements() -> None:
    assert epilogue_speedup(1024, **A100, passes=1) == pytest.approx(1.392, abs=5e-4)
    assert epilogue_speedup(1024, **A100, passes=0) == 1
    assert epilogue_speedup(1024, 1024, 1, element_bytes=4, passes=3) == 13


@pytest.mark.parametrize(("gpu", "k"), [(A100, 222.4), (T4, 225.5)])
def test_where_the_gemm_becomes_compute_bound(gpu: dict[str, float], k: float) -> None:
    edge = compute_bound_k(M, N, **gpu)
    assert edge == pytest.approx(k, abs=0.05)

    def bounds(inner: int) -> tuple[float, float]:
        size = 2 * (M * inner + inner * N + M * N)
        return 2 * M * N * inner / gpu["peak_flops"], size / gpu["bandwidth"]

    compute, memory = bounds(math.ceil(edge))
    assert compute >= memory
    compute, memory = bounds(math.floor(edge))
    assert compute < memory


def test_a_thin_gemm_never_becomes_compute_bound() -> None:
    assert compute_bound_k(1, N, **A100) == math.inf
    assert compute_bound_k(2, 2, peak_flops=1, bandwidth=1, element_bytes=2) == math.inf
    # With m = n and one-byte elements, 2 m n equals (peak / bandwidth) x (m + n) at m = peak / bandwidth:
    assert compute_bound_k(257, 257, 256, 1, element_bytes=1) == pytest.approx(128 * 257)
    assert compute_bound_k(256, 256, 256, 1, element_bytes=1) == math.inf


def test_launches_add_their_seconds_to_both_ends() -> None:
    kernels = [(0, 10), (10, 0), (10, 10)]
    assert program_interval(kernels, 10, 10) == Interval(3.0, 4.0)
    assert program_interval(kernels, 10, 10, launch_seconds=0.5) == Interval(4.5, 5.5)


def test_the_ends_of_a_speedup_are_sorted() -> None:
    assert speedup_interval(Interval(4, 4), Interval(1, 2)) == Interval(2, 4)
    assert speedup_interval(Interval(2, 4), Interval(1, 1)) == Interval(2, 4)
    assert speedup_interval(Interval(0, 1), Interval(1, 1)) == Interval(0, 1)


@pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf, -1], ids=repr)
@pytest.mark.parametrize("name", ["operations", "traffic_bytes", "peak_flops", "bandwidth"])
def test_a_bad_kernel_is_refused_by_name(name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"operations": 1, "traffic_bytes": 1, "peak_flops": 1, "bandwidth": 1}
    with pytest.raises(ValueError, match=refusal(name)):
        kernel_interval(**{**arguments, name: value})


@pytest.mark.parametrize("name", ["peak_flops", "bandwidth"])
def test_a_rate_is_above_zero(name: str) -> None:
    rate: dict[str, Any] = {"peak_flops": 1, "bandwidth": 1, name: 0}
    for call in (
        lambda: kernel_interval(1, 1, **rate),
        lambda: program_interval([(1, 1)], **rate),
        lambda: epilogue_speedup(1, **rate),
        lambda: compute_bound_k(1, 1, **rate),
    ):
        with pytest.raises(ValueError, match=refusal(name)):
            call()


@pytest.mark.parametrize(
    ("kernels", "name"),
    [
        ([], "kernels"),
        (5, "kernels"),
        ([(1, 1), 5], "kernels[1]"),
        ([(1, 1, 1)], "kernels[0]"),
        ([(-1, 1)], "kernels[0][0]"),
        ([(1, "1")], "kernels[0][1]"),
    ],
)
def test_bad_kernels_are_refused_by_name(kernels: Any, name: str) -> None:
    with pytest.raises(ValueError, match=refusal(name)):
        program_interval(kernels, 1, 1)


def test_other_bad_arguments_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=refusal("launch_seconds")):
        program_interval([(1, 1)], 1, 1, launch_seconds=-1e-6)
    with pytest.raises(ValueError, match=refusal("after")):
        speedup_interval(Interval(1, 1), Interval(0, 1))
    with pytest.raises(ValueError, match=refusal("low")):
        Interval(2, 1)
    with pytest.raises(ValueError, match=refusal("high")):
        Interval(1, math.inf)


@pytest.mark.parametrize("value", [0, -1, True, 1.0, None], ids=repr)
@pytest.mark.parametrize("name", ["k", "element_bytes", "m", "n"])
def test_a_bad_shape_is_refused_by_name(name: str, value: Any) -> None:
    call, given_ = (compute_bound_k, {"m": 1, "n": 1}) if name in "mn" else (epilogue_speedup, {"k": 1})
    arguments: dict[str, Any] = {**given_, "peak_flops": 1, "bandwidth": 1, name: value}
    with pytest.raises(ValueError, match=refusal(name)):
        call(**arguments)


def test_passes_is_a_natural_number() -> None:
    with pytest.raises(ValueError, match=refusal("passes")):
        epilogue_speedup(1, 1, 1, passes=-1)
