"""What the lesson's measurements are expected to take: kernels, bytes and operations of every plan, and intervals.

An *experiment* is one computation at one size; a *plan* is one way to run it. Bytes come from the course's formulas
(lessons 01 and 02), times from rates: a datasheet's, or those measured in the same run. Pure numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from lessons_lib.base.gpus import GPUS, Gpu, require_gpu
from lessons_lib.base.roofline import Interval, kernel_interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import KIB, MIB
from lessons_lib.base.validate import bad_argument, require_bool, require_choice, require_int, require_real
from lessons_lib.kernels.launch import (
    CHAIN_OPERATORS,
    ELEMENT_BYTES,
    DtypeName,
    chain_groups,
    reaches_tensor_cores,
    row_launch,
)
from lessons_lib.reuse.rows import rmsnorm_traffic, softmax_traffic
from lessons_lib.traffic.epilogue import epilogue_plans
from lessons_lib.traffic.model import Operator, PlanTraffic, plan_traffic

ExperimentName = Literal["chain", "rmsnorm", "softmax", "linear_k256", "linear_k1024", "linear_k4096", "tiny"]
ExperimentKernel = Literal["chain", "rmsnorm", "softmax", "linear"]
Clock = Literal["device", "host"]
PlanName = Literal[
    "operators",
    "groups_4",
    "groups_2",
    "library_bias",
    "library",
    "compiled",
    "liger",
    "gemm_then_epilogue",
    "fused",
    "copy",
    "copy_kernel",
    "gemm",
    "launch",
    "wrapper",
]

EXPERIMENTS: tuple[ExperimentName, ...] = get_args(ExperimentName)
# Timed for the prediction's sake: they are no plans for the experiment's own computation.
CALIBRATIONS: tuple[PlanName, ...] = ("copy", "copy_kernel", "gemm", "launch", "wrapper")
PLANS: Mapping[ExperimentKernel, tuple[PlanName, ...]] = {
    "chain": ("operators", "groups_4", "groups_2", "compiled", "fused"),
    "rmsnorm": ("operators", "library", "compiled", "liger", "fused"),
    "softmax": ("operators", "library", "compiled", "liger", "fused"),
    "linear": ("operators", "library_bias", "library", "compiled", "gemm_then_epilogue", "fused"),
}

LAUNCH_SECONDS = 5e-6  # assumed without a measurement: a launch takes a host a few microseconds
TINY_BYTES = 64 * KIB
QUICK_BYTES = 64 * MIB
FULL_BYTES = 256 * MIB
LARGEST_SIZE = 2**40  # of rows, columns, ...: far above any GPU's memory

_COLUMNS = 4096


@dataclass(frozen=True)
class Experiment:
    """One computation at one size.

    Args:
        name: which of ``EXPERIMENTS``.
        kernel: what is computed: ``chain``, ``rmsnorm`` (residual added first, the sum an output too), ``softmax``,
            or ``linear`` (bias and GELU behind the GEMM).
        dtype: of every tensor.
        rows, columns: of the output, at least 1.
        inner: the GEMM's inner dimension; ``None`` for the others.
        clock: ``"device"``: kernels alone, launches queue ahead of a busy GPU; ``"host"``: call after call by the
            host's clock, where launches rule.

    Raises:
        ValueError: a field is of the wrong type or out of range, or ``inner`` does not go with ``kernel``.
    """

    name: ExperimentName
    kernel: ExperimentKernel
    dtype: DtypeName
    rows: int
    columns: int
    inner: int | None = None
    clock: Clock = "device"

    def __post_init__(self) -> None:
        require_choice("name", self.name, EXPERIMENTS)
        require_choice("kernel", self.kernel, PLANS)
        require_choice("dtype", self.dtype, ELEMENT_BYTES)
        require_choice("clock", self.clock, get_args(Clock))
        require_int("rows", self.rows, 1, LARGEST_SIZE)
        require_int("columns", self.columns, 1, LARGEST_SIZE)
        if (self.inner is None) == (self.kernel == "linear"):
            raise bad_argument("inner", zh="只有 linear 有内维，也必须有", en="linear has one, the others have none")
        if self.inner is not None:
            require_int("inner", self.inner, 1, LARGEST_SIZE)

    @property
    def element_bytes(self) -> int:
        return ELEMENT_BYTES[self.dtype]

    @property
    def tensor_bytes(self) -> int:
        """Bytes of the output, and of every other matrix but a GEMM's operands."""
        return self.rows * self.columns * self.element_bytes

    @property
    def plans(self) -> tuple[PlanName, ...]:
        """The plans that compute it, the unfused one first and the one fused kernel last."""
        return PLANS[self.kernel]

    @property
    def calibrations(self) -> tuple[PlanName, ...]:
        """What is timed in the same rounds so that the prediction stands on this device's own rates."""
        if self.clock == "host":
            return ("launch", "wrapper")
        by_kernel: Mapping[ExperimentKernel, tuple[PlanName, ...]] = {
            "chain": ("copy", "copy_kernel"),
            "linear": ("gemm",),
        }
        return by_kernel.get(self.kernel, ())

    @property
    def gemm_operations(self) -> int:
        """``2 m n k``; 0 where there is no GEMM."""
        return 2 * self.rows * self.columns * self.inner if self.inner else 0

    def halved(self) -> Experiment:
        """The same with half the rows, at least 1."""
        return replace(self, rows=max(1, self.rows // 2))


def experiments(quick: bool = False, tensor_bytes: int | None = None) -> tuple[Experiment, ...]:
    """The experiments of one run, the most telling first.

    Args:
        quick: 64 MiB tensors in place of 256 MiB, and two GEMMs in place of three.
        tensor_bytes: of each matrix of the chain and of the row kernels, at least 4096 fp32 elements, rounded down
            to whole rows; those of the GEMMs are fixed: m = n = 4096.

    Raises:
        ValueError: ``quick`` is not a ``bool``, or ``tensor_bytes`` is not an integer or is too small.
    """
    quick = require_bool("quick", quick)
    size = QUICK_BYTES if quick else FULL_BYTES
    if tensor_bytes is not None:
        size = require_int("tensor_bytes", tensor_bytes, _COLUMNS * ELEMENT_BYTES["fp32"], LARGEST_SIZE)
    inner: tuple[tuple[ExperimentName, int], ...] = (("linear_k1024", 1024), ("linear_k4096", 4096))
    if not quick:
        inner = (("linear_k256", 256), *inner)
    return (
        Experiment("chain", "chain", "fp16", _rows(size, "fp16"), _COLUMNS),
        Experiment("rmsnorm", "rmsnorm", "fp16", _rows(size, "fp16"), _COLUMNS),
        *(Experiment(name, "linear", "fp16", 4096, 4096, k) for name, k in inner),
        Experiment("tiny", "chain", "fp16", _rows(TINY_BYTES, "fp16"), _COLUMNS, clock="host"),
        Experiment("softmax", "softmax", "fp32", _rows(size, "fp32"), _COLUMNS),
    )


def _rows(tensor_bytes: int, dtype: DtypeName) -> int:
    return tensor_bytes // (_COLUMNS * ELEMENT_BYTES[dtype])


# -- kernels of a plan ---------------------------------------------------------------------------------------

Unit = Literal["fp32", "gemm"]


@dataclass(frozen=True)
class KernelCost:
    """One kernel: logical bytes, operations, and the units that carry those out."""

    operations: int
    read_bytes: int
    write_bytes: int
    unit: Unit = "fp32"

    @property
    def traffic_bytes(self) -> int:
        return self.read_bytes + self.write_bytes


# Operations an element, an exponential and a division as one each: counted from the kernels' formulas.
_CHAIN_OPERATIONS = {"bias": 1, "gelu": 10, "scale": 1, "residual": 1}
_ROW_OPERATIONS = 5

# The vectors bias and scale have no size: too small to count, as in checkpoint 17 of the course.
_CHAIN_GRAPH = (
    Operator("bias", ("x", "b"), "t1"),
    Operator("gelu", ("t1",), "t2"),
    Operator("scale", ("t2", "s"), "t3"),
    Operator("residual", ("t3", "r"), "y"),
)
_CHAIN_GROUPS: Mapping[PlanName, int] = {"operators": 4, "groups_4": 4, "groups_2": 2, "compiled": 1, "fused": 1}
_LINEAR_KERNELS: Mapping[PlanName, int] = {
    "operators": 3,
    "library_bias": 2,
    "library": 1,
    "compiled": 2,
    "gemm_then_epilogue": 2,
    "fused": 1,
}


def plan_kernels(experiment: Experiment, plan: PlanName, tensor_cores: bool = True) -> tuple[KernelCost, ...]:
    """The kernels that a plan launches, in order, as the course's formulas count them.

    ``compiled`` is what a compiler that fuses everything it may would launch: one kernel, or for a GEMM the library's
    and one behind it. ``library`` is one fused kernel of the library (for ``rmsnorm`` after an addition of its own),
    ``library_bias`` a GEMM with the bias inside and GELU behind it.

    Args:
        tensor_cores: whether our one-kernel GEMM reaches the matrix units; the library's does in any case.

    Raises:
        ValueError: ``plan`` does not belong to the experiment.
    """
    require_choice("plan", plan, (*experiment.plans, *experiment.calibrations))
    if plan in CALIBRATIONS:
        return _calibration_kernels(experiment, plan)
    builders: Mapping[ExperimentKernel, Callable[[], tuple[KernelCost, ...]]] = {
        "chain": lambda: _chain_kernels(experiment, _CHAIN_GROUPS[plan]),
        "rmsnorm": lambda: _rmsnorm_kernels(experiment, plan),
        "softmax": lambda: _softmax_kernels(experiment, plan),
        "linear": lambda: _linear_kernels(experiment, plan, tensor_cores),
    }
    return builders[experiment.kernel]()


def plan_bytes(experiment: Experiment, plan: PlanName) -> int:
    """Logical bytes of all the plan's kernels together."""
    return sum(kernel.traffic_bytes for kernel in plan_kernels(experiment, plan))


def launches_are_certain(experiment: Experiment, plan: PlanName) -> bool:
    """Whether the count of launches is ours to know; libraries and compilers decide theirs themselves."""
    return plan in ("groups_4", "groups_2", "fused") or (experiment.kernel == "chain" and plan == "operators")


def _chain_kernels(experiment: Experiment, groups: int) -> tuple[KernelCost, ...]:
    names = [CHAIN_OPERATORS[first : last + 1] for first, last in chain_groups(groups)]
    matrices = dict.fromkeys(("x", "r", "t1", "t2", "t3", "y"), experiment.tensor_bytes)
    traffic = plan_traffic(_CHAIN_GRAPH, names, {**matrices, "b": 0, "s": 0}, outputs=("y",))
    elements = experiment.rows * experiment.columns
    return tuple(
        KernelCost(
            elements * sum(_CHAIN_OPERATIONS[name] for name in kernel["operators"]),
            kernel["read_bytes"],
            kernel["write_bytes"],
        )
        for kernel in traffic["kernels"]
    )


def _rmsnorm_kernels(experiment: Experiment, plan: PlanName) -> tuple[KernelCost, ...]:
    elements, matrix = experiment.rows * experiment.columns, experiment.tensor_bytes
    add = KernelCost(elements, 2 * matrix, matrix)
    one_to_one = KernelCost(elements, matrix, matrix)
    if plan == "operators":
        mean, vector = KernelCost(elements, matrix, 0), KernelCost(2 * experiment.rows, 0, 0)
        # square, mean, + eps, rsqrt, x scale, x weight: the two on vectors move next to nothing, but are launched
        return (add, one_to_one, mean, vector, vector, one_to_one, one_to_one)
    if plan == "library":
        return (add, KernelCost((_ROW_OPERATIONS - 1) * elements, matrix, matrix))
    traffic = rmsnorm_traffic(experiment.rows, experiment.columns, experiment.element_bytes, True, True)
    total = traffic["resident_bytes"] if _row_is_resident(experiment, plan) else traffic["two_pass_bytes"]
    return (KernelCost(_ROW_OPERATIONS * elements, total - 2 * matrix, 2 * matrix),)


def _softmax_kernels(experiment: Experiment, plan: PlanName) -> tuple[KernelCost, ...]:
    elements, matrix = experiment.rows * experiment.columns, experiment.tensor_bytes
    vector = experiment.rows * experiment.element_bytes
    if plan == "operators":
        reduction = KernelCost(elements, matrix, vector)
        with_vector = KernelCost(elements, matrix + vector, matrix)
        exponential = KernelCost(elements, matrix, matrix)
        return (reduction, with_vector, exponential, reduction, with_vector)
    traffic = softmax_traffic(experiment.rows, experiment.columns, experiment.element_bytes)
    total = traffic["resident_bytes"] if _row_is_resident(experiment, plan) else traffic["two_pass_bytes"]
    return (KernelCost(_ROW_OPERATIONS * elements, total - matrix, matrix),)


def _row_is_resident(experiment: Experiment, plan: PlanName) -> bool:
    """Ours knows; that the others keep a row on chip is assumed."""
    return plan != "fused" or row_launch(experiment.rows, experiment.columns).resident


def _linear_kernels(experiment: Experiment, plan: PlanName, tensor_cores: bool) -> tuple[KernelCost, ...]:
    unit: Unit = "gemm" if tensor_cores or plan != "fused" else "fp32"
    return tuple(
        KernelCost(
            experiment.gemm_operations if "matmul" in kernel["operators"] else 0,
            kernel["read_bytes"],
            kernel["write_bytes"],
            unit if "matmul" in kernel["operators"] else "fp32",
        )
        for kernel in _epilogue_traffic(experiment, _LINEAR_KERNELS[plan])["kernels"]
    )


def _epilogue_traffic(experiment: Experiment, kernels: int) -> PlanTraffic:
    any_gpu = GPUS["T4"]  # the bytes are the same on every one
    m, n, k = experiment.rows, experiment.columns, experiment.inner or 1
    return epilogue_plans(m, k, n, any_gpu, experiment.element_bytes)[kernels].traffic


def _calibration_kernels(experiment: Experiment, plan: PlanName) -> tuple[KernelCost, ...]:
    if plan == "gemm":
        gemm = _epilogue_traffic(experiment, 3)["kernels"][0]
        return (KernelCost(experiment.gemm_operations, gemm["read_bytes"], gemm["write_bytes"], "gemm"),)
    if plan in ("copy", "copy_kernel"):
        return (KernelCost(0, experiment.tensor_bytes, experiment.tensor_bytes),)
    return (KernelCost(0, 0, 0),)


# -- time ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rates:
    """What a device does in a second, by its datasheet or as measured.

    Args:
        bandwidth: bytes per second, above 0.
        fp32_flops: operations per second outside the matrix units; ``None`` where unknown: arithmetic is then left
            out, and an interval shrinks to its lower end.
        gemm_flops: operations per second of a library GEMM; ``None`` where unknown: no GEMM is then predicted.
        tensor_cores: whether Triton's ``dot`` reaches the matrix units.
        launch_seconds: what a launch by PyTorch costs the host, where nothing hides it.
        wrapper_seconds: what a call of one of our wrappers costs the host; at least ``launch_seconds``.
        measured: whether bandwidth and GEMM rate were measured, and not taken from a datasheet.

    Raises:
        ValueError: a rate is not a number or is out of range.
    """

    bandwidth: float
    fp32_flops: float | None
    gemm_flops: float | None
    tensor_cores: bool
    launch_seconds: float = LAUNCH_SECONDS
    wrapper_seconds: float = LAUNCH_SECONDS
    measured: bool = False

    def __post_init__(self) -> None:
        require_real("bandwidth", self.bandwidth, above=0)
        for name, rate in (("fp32_flops", self.fp32_flops), ("gemm_flops", self.gemm_flops)):
            if rate is not None:
                require_real(name, rate, above=0)
        require_real("launch_seconds", self.launch_seconds, 0)
        require_real("wrapper_seconds", self.wrapper_seconds, self.launch_seconds)

    def flops(self, unit: Unit) -> float | None:
        return self.gemm_flops if unit == "gemm" else self.fp32_flops


def datasheet_rates(gpu: Gpu, dtype: DtypeName = "fp16", launch_seconds: float = LAUNCH_SECONDS) -> Rates:
    """The rates that the vendor states; a launch costs the host ``launch_seconds``, an assumption.

    Raises:
        ValueError: ``gpu`` is not a ``Gpu``, or ``launch_seconds`` is not a number of at least 0.
    """
    gpu = require_gpu("gpu", gpu)
    launch_seconds = require_real("launch_seconds", launch_seconds, 0)
    matrix_units = dtype != "fp32"  # library GEMMs of fp32 stay exact unless told otherwise
    return Rates(
        bandwidth=gpu.bandwidth,
        fp32_flops=gpu.fp32_flops,
        gemm_flops=gpu.tensor_flops if matrix_units else gpu.fp32_flops,
        tensor_cores=reaches_tensor_cores(gpu, dtype),
        launch_seconds=launch_seconds,
        wrapper_seconds=launch_seconds,
    )


def predict_plan(experiment: Experiment, plan: PlanName, rates: Rates) -> Interval | None:
    """The seconds that a plan takes: each kernel between its two roofline bounds overlapped and added up.

    By the device's clock launches cost nothing: they queue ahead. By the host's clock a kernel takes at least the
    longer of its launch and its work, and at most both, the launch at the cost of one whole call of our wrapper.

    Returns ``None`` where a rate that it stands on is unknown: a GEMM's, or for one without tensor cores fp32's.

    Raises:
        ValueError: ``plan`` does not belong to the experiment.
    """
    kernels = plan_kernels(experiment, plan, rates.tensor_cores)
    bounds = [_kernel_seconds(kernel, rates) for kernel in kernels]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return None
    if experiment.clock == "host":
        dearest = rates.launch_seconds if plan == "operators" else rates.wrapper_seconds
        known = [Interval(max(bound.low, rates.launch_seconds), bound.high + dearest) for bound in known]
    return Interval(math.fsum(bound.low for bound in known), math.fsum(bound.high for bound in known))


def _kernel_seconds(kernel: KernelCost, rates: Rates) -> Interval | None:
    flops = rates.flops(kernel.unit)
    if flops is not None:
        return kernel_interval(kernel.operations, kernel.traffic_bytes, flops, rates.bandwidth)
    if kernel.operations > kernel.traffic_bytes * _POINTWISE_OPERATIONS_PER_BYTE:
        return None  # arithmetic that no bandwidth hides
    seconds = kernel.traffic_bytes / rates.bandwidth
    return Interval(seconds, seconds)


_POINTWISE_OPERATIONS_PER_BYTE = 16  # more than any of the elementwise and row kernels here; a GEMM has far more


# -- names for the eye ---------------------------------------------------------------------------------------

EXPERIMENT_WORDS: Mapping[ExperimentName, Text] = {
    "chain": Text(zh="四算子链", en="chain of four operators"),
    "rmsnorm": Text(zh="残差 + RMSNorm", en="residual + RMSNorm"),
    "softmax": Text(zh="softmax", en="softmax"),
    "linear_k256": Text(zh="矩阵乘 + 偏置 + GELU，K = 256", en="GEMM + bias + GELU, K = 256"),
    "linear_k1024": Text(zh="矩阵乘 + 偏置 + GELU，K = 1024", en="GEMM + bias + GELU, K = 1024"),
    "linear_k4096": Text(zh="矩阵乘 + 偏置 + GELU，K = 4096", en="GEMM + bias + GELU, K = 4096"),
    "tiny": Text(zh="很小的张量，四算子链", en="tiny tensor, chain of four operators"),
}
PLAN_WORDS: Mapping[PlanName, Text] = {
    "operators": Text(zh="PyTorch 逐个算子", en="PyTorch, operator by operator"),
    "groups_4": Text(zh="Triton，4 个核函数", en="Triton, 4 kernels"),
    "groups_2": Text(zh="Triton，2 个核函数", en="Triton, 2 kernels"),
    "library_bias": Text(zh="库的矩阵乘含偏置，再做 GELU", en="library GEMM with bias, then GELU"),
    "library": Text(zh="库的融合算子", en="library's fused operator"),
    "compiled": Text(zh="torch.compile", en="torch.compile"),
    "liger": Text(zh="Liger-Kernel", en="Liger-Kernel"),
    "gemm_then_epilogue": Text(zh="库的矩阵乘 + 一个尾声核函数", en="library GEMM + one epilogue kernel"),
    "fused": Text(zh="Triton，1 个融合核函数", en="Triton, 1 fused kernel"),
    "copy": Text(zh="拷贝", en="copy"),
    "copy_kernel": Text(zh="乘以 1 的一遍", en="a pass that multiplies by 1"),
    "gemm": Text(zh="只做矩阵乘", en="GEMM alone"),
    "launch": Text(zh="一次启动", en="one launch"),
    "wrapper": Text(zh="一次包装函数调用", en="one call of a wrapper"),
}
