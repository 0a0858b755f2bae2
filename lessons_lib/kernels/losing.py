"""Two cases that fusion loses, or wins for another reason: a GEMM without tensor cores, and a tiny tensor."""

from __future__ import annotations

from dataclasses import dataclass

from lessons_lib.base.gpus import Gpu, require_gpu
from lessons_lib.base.roofline import Interval, program_interval
from lessons_lib.base.units import KIB
from lessons_lib.base.validate import require_int, require_real
from lessons_lib.kernels.launch import DtypeName, reaches_tensor_cores
from lessons_lib.traffic.epilogue import epilogue_plans

LAUNCH_SECONDS = 5e-6  # what the tables assume; a launch takes a host a few microseconds
TINY_BYTES = 64 * KIB
GEMM_SHAPE = (4096, 1024, 4096)  # m, k, n


@dataclass(frozen=True)
class GemmPlans:
    """``gelu(x @ w + b)`` three ways: predicted seconds; ``fused`` is one Triton kernel."""

    separate: Interval
    library_then_epilogue: Interval
    fused: Interval
    on_tensor_cores: bool


def gemm_plans(gpu: Gpu, dtype: DtypeName = "fp16", shape: tuple[int, int, int] = GEMM_SHAPE) -> GemmPlans:
    """What the three plans take, given which units of ``gpu`` Triton's GEMM reaches.

    The library's GEMM runs at ``gpu.tensor_flops`` in any case; Triton's at that rate where it reaches the matrix
    units, else at ``gpu.fp32_flops``. Pointwise kernels are bound by bytes.

    Args:
        shape: ``(m, k, n)`` of ``x [m, k]``, ``w [k, n]``.

    Raises:
        ValueError: as ``epilogue_plans``.
    """
    gpu = require_gpu("gpu", gpu)
    m, k, n = shape
    plans = epilogue_plans(m, k, n, gpu)
    matmul = plans[3].traffic["kernels"][0]
    once = plans[1].traffic["kernels"][0]
    result = 2 * m * n
    operations = 2 * m * n * k
    tensor_cores = reaches_tensor_cores(gpu, dtype)
    rate = gpu.tensor_flops if tensor_cores else gpu.fp32_flops
    library = (operations, matmul["read_bytes"] + matmul["write_bytes"])
    epilogue = (0, 2 * result + 2 * n)
    return GemmPlans(
        separate=plans[3].time,
        library_then_epilogue=program_interval([library, epilogue], gpu.tensor_flops, gpu.bandwidth),
        fused=program_interval([(operations, once["read_bytes"] + once["write_bytes"])], rate, gpu.bandwidth),
        on_tensor_cores=tensor_cores,
    )


def tiny_chain(gpu: Gpu, tensor_bytes: int = TINY_BYTES, launch_seconds: float = LAUNCH_SECONDS) -> dict[int, float]:
    """Seconds of the four-operator chain on a tensor too small to hide launches, by number of kernels.

    Each kernel takes its launch or its bytes, whichever is longer: the GPU waits for the host.
    """
    bandwidth = require_gpu("gpu", gpu).bandwidth
    size = require_int("tensor_bytes", tensor_bytes, 1)
    launch = require_real("launch_seconds", launch_seconds, 0)
    return {
        groups: sum(max(launch, moved / bandwidth) for moved in kernel_bytes(groups, size)) for groups in (4, 2, 1)
    }


def kernel_bytes(groups: int, size: int) -> list[int]:
    """Each kernel reads one tensor and writes one; the last also reads the residual."""
    return [2 * size] * (groups - 1) + [3 * size]
