"""Two cases that fusion loses, or wins for another reason: a GEMM without tensor cores, and a tiny tensor.

Both are experiments of the benchmark; here they are predicted from a GPU's datasheet alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lessons_lib.base.gpus import Gpu, require_gpu
from lessons_lib.base.roofline import Interval
from lessons_lib.base.validate import require_int, require_real
from lessons_lib.kernels.benchmark.prediction import (
    LAUNCH_SECONDS,
    TINY_BYTES,
    Experiment,
    PlanName,
    datasheet_rates,
    experiments,
    predict_plan,
)

_BY_NAME: Mapping[str, Experiment] = {experiment.name: experiment for experiment in experiments(quick=True)}
GEMM, TINY = _BY_NAME["linear_k1024"], _BY_NAME["tiny"]
CHAIN_PLANS: Mapping[int, PlanName] = {4: "groups_4", 2: "groups_2", 1: "fused"}


@dataclass(frozen=True)
class GemmPlans:
    """``gelu(x @ w + b)`` three ways: predicted seconds; ``fused`` is one Triton kernel."""

    separate: Interval
    library_then_epilogue: Interval
    fused: Interval
    on_tensor_cores: bool


def gemm_plans(gpu: Gpu) -> GemmPlans:
    """What the three plans of ``GEMM`` take, given which units of ``gpu`` Triton's GEMM reaches.

    Raises:
        ValueError: ``gpu`` is not a ``Gpu``.
    """
    rates = datasheet_rates(require_gpu("gpu", gpu))

    def seconds(plan: PlanName) -> Interval:
        found = predict_plan(GEMM, plan, rates)
        assert found is not None  # a datasheet states every rate
        return found

    return GemmPlans(
        seconds("operators"), seconds("gemm_then_epilogue"), seconds("fused"), on_tensor_cores=rates.tensor_cores
    )


def tiny_chain(gpu: Gpu, tensor_bytes: int = TINY_BYTES, launch_seconds: float = LAUNCH_SECONDS) -> dict[int, float]:
    """Seconds of the four-operator chain on a tensor too small to hide launches, by number of kernels.

    Each kernel takes its launch or its bytes, whichever is longer: the GPU waits for the host. ``tensor_bytes`` is
    rounded down to whole rows of ``TINY``.
    """
    row = TINY.columns * TINY.element_bytes
    chain = replace(TINY, rows=require_int("tensor_bytes", tensor_bytes, row) // row)
    launch = require_real("launch_seconds", launch_seconds, 0)
    rates = datasheet_rates(require_gpu("gpu", gpu), launch_seconds=launch)
    times = {groups: predict_plan(chain, plan, rates) for groups, plan in CHAIN_PLANS.items()}
    return {groups: time.low for groups, time in times.items() if time is not None}
