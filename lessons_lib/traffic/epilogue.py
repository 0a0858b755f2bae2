"""A GEMM with bias and GELU behind it, as three kernels, two or one: bytes first, then an interval of time."""

from __future__ import annotations

from dataclasses import dataclass

from lessons_lib.base.gpus import Gpu, require_gpu
from lessons_lib.base.roofline import Interval, program_interval
from lessons_lib.base.validate import require_int
from lessons_lib.traffic.model import Operator, PlanTraffic, plan_traffic

_GRAPH = (
    Operator("matmul", ("x", "w"), "z"),
    Operator("bias", ("z", "b"), "h"),
    Operator("gelu", ("h",), "y"),
)
# The plans by their number of kernels. Two is what a library GEMM with a bias epilogue gives.
_PLANS = {
    3: (("matmul",), ("bias",), ("gelu",)),
    2: (("matmul", "bias"), ("gelu",)),
    1: (("matmul", "bias", "gelu"),),
}


@dataclass(frozen=True)
class EpiloguePlan:
    """One way to run the three operators.

    Args:
        traffic: bytes by kernel, as ``plan_traffic`` counts them.
        time: interval in seconds between full overlap of compute and memory and none.
    """

    traffic: PlanTraffic
    time: Interval


def epilogue_plans(
    m: int, k: int, n: int, gpu: Gpu, element_bytes: int = 2, launch_seconds: float = 0.0
) -> dict[int, EpiloguePlan]:
    """``gelu(x @ w + b)`` for x [m, k], w [k, n], b [n], by number of kernels: 3, 2 and 1.

    Args:
        m, k, n: sizes, each at least 1.
        gpu: whose stated rates bound the time.
        element_bytes: of every tensor, at least 1 (fp16: 2).
        launch_seconds: what each launch adds, in seconds; 0 when launches queue ahead of a busy GPU.

    Counts ``2 m n k`` operations for the GEMM and none for the pointwise operators: in kernels of their own, their
    few operations per element hide behind their bytes; what they cost inside an epilogue is left out. Assumes that
    the GEMM reads each operand once.

    Raises:
        ValueError: a size is not an integer or is below 1, or ``launch_seconds`` is not a number of at least 0.
    """
    m, k, n = require_int("m", m, 1), require_int("k", k, 1), require_int("n", n, 1)
    gpu = require_gpu("gpu", gpu)
    size = require_int("element_bytes", element_bytes, 1)
    result = m * n * size
    tensors = {"x": m * k * size, "w": k * n * size, "b": n * size, "z": result, "h": result, "y": result}
    plans = {}
    for count, kernels in _PLANS.items():
        traffic = plan_traffic(_GRAPH, kernels, tensors, outputs=("y",))
        work = [
            (2 * m * n * k if "matmul" in kernel["operators"] else 0, kernel["read_bytes"] + kernel["write_bytes"])
            for kernel in traffic["kernels"]
        ]
        plans[count] = EpiloguePlan(traffic, program_interval(work, gpu.tensor_flops, gpu.bandwidth, launch_seconds))
    return plans
