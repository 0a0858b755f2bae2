"""The plans of the benchmark as PyTorch calls, and what each must compute, in float64.

A workload holds one experiment's tensors; its plans take no argument and return their outputs. The expected values
are computed here from the definitions, block of rows by block of rows, by none of the code that is timed.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lessons_lib.base.text import Text
from lessons_lib.kernels.benchmark.prediction import Experiment, PlanName
from lessons_lib.kernels.launch import DtypeName

if TYPE_CHECKING:
    from torch import Tensor

    Outputs: TypeAlias = tuple[Tensor, ...]

EPS = 1e-6
_ROWS_AT_ONCE = 2**22  # elements of one block of the check: 32 MiB in float64

# (of the root mean square, of the value). fp16: an intermediate, perhaps 8 times as large as the result, is rounded to
# 1 in 2048 several times on the way.
TOLERANCES: Mapping[DtypeName, tuple[float, float]] = {
    "fp16": (8e-3, 4e-3),
    "bf16": (6e-2, 3e-2),
    "fp32": (2e-6, 2e-5),
}


@dataclass(frozen=True)
class PlanCall:
    """One plan, ready to run.

    Args:
        run: computes everything anew and returns the outputs, each ``[rows, ...]``.
        expected: the right outputs for rows ``start`` to ``stop``, in float64; ``None``: nothing to compare.
    """

    run: Callable[[], Outputs]
    expected: Callable[[int, int], Outputs] | None


@dataclass(frozen=True)
class Workload:
    """An experiment's plans; ``absent`` says of those that are not here why."""

    plans: Mapping[PlanName, PlanCall]
    absent: Mapping[PlanName, Text]
    tolerance: tuple[float, float]


def make_workload(experiment: Experiment, device: str, *, compiled: bool = True, liger: bool = True) -> Workload:
    """Tensors on ``device`` and the plans over them, calibrations included; the same values every time.

    Args:
        compiled, liger: leave ``torch.compile`` or Liger-Kernel out, as a rehearsal on a CPU does.
    """
    import torch

    makers: Mapping[str, Callable[[_Maker], None]] = {
        "chain": _add_chain,
        "rmsnorm": _add_rmsnorm,
        "softmax": _add_softmax,
        "linear": _add_linear,
    }
    generator = torch.Generator(device).manual_seed(0)
    maker = _Maker(torch, experiment, device, generator, compiled, liger)
    makers[experiment.kernel](maker)
    return Workload(
        {name: maker.calls[name] for name in (*experiment.calibrations, *experiment.plans) if name in maker.calls},
        maker.absent,
        TOLERANCES[experiment.dtype],
    )


def largest_error(outputs: Sequence[Tensor], call: PlanCall, tolerance: tuple[float, float]) -> float:
    """The largest deviation from the expected values, as a share of ``common x rms + relative x |expected|``.

    ``rms`` is that of the expected values of some rows: an output of small values, a softmax say, is held to its own
    size, and a value that happens to lie near 0 to that of its neighbours.

    Infinite where a value is NaN or infinite and should not be, or where a shape is not the expected one.
    """
    import torch

    if call.expected is None:
        return 0.0
    worst = 0.0
    rows = outputs[0].shape[0]
    for start, stop in _row_blocks(rows, max(output.numel() // max(1, rows) for output in outputs)):
        expected = call.expected(start, stop)
        if len(expected) != len(outputs):
            return math.inf
        for got, right in zip(outputs, expected, strict=True):
            block = got[start:stop].double()
            if block.shape != right.shape:
                return math.inf
            allowed = tolerance[0] * right.square().mean().sqrt() + tolerance[1] * right.abs()
            deviation = torch.where(block == right, 0.0, (block - right).abs() / allowed)
            worst = max(worst, float(torch.nan_to_num(deviation, nan=math.inf, posinf=math.inf).max()))
    return worst


def poison(outputs: Sequence[Tensor]) -> None:
    """NaN into every element: whoever gets this memory next and leaves some of it out is found out."""
    for output in outputs:
        output.fill_(math.nan)


def _row_blocks(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    step = max(1, _ROWS_AT_ONCE // max(1, columns))
    for start in range(0, rows, step):
        yield start, min(rows, start + step)


class _Maker:
    """What the experiments share while their plans are put together."""

    def __init__(
        self, torch: Any, experiment: Experiment, device: str, generator: Any, compiled: bool, liger: bool
    ) -> None:
        self.torch, self.experiment, self.device, self.generator = torch, experiment, device, generator
        self.with_compiled, self.with_liger = compiled, liger
        self.dtype = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}[experiment.dtype]
        self.calls: dict[PlanName, PlanCall] = {}
        self.absent: dict[PlanName, Text] = {}

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        values = self.torch.randn(shape, generator=self.generator, dtype=self.dtype, device=self.device)
        return values.mul_(scale)

    def matrix(self) -> Tensor:
        return self.normal(self.experiment.rows, self.experiment.columns)

    def vector(self) -> Tensor:
        return self.normal(self.experiment.columns)

    def add_compiled(self, function: Callable[..., Any], arguments: Sequence[Any], expected: Any) -> None:
        if not self.with_compiled:
            self.absent["compiled"] = _LEFT_OUT
            return
        compiled = self.torch.compile(function, dynamic=False, fullgraph=True)
        self.calls["compiled"] = PlanCall(lambda: _as_tuple(compiled(*arguments)), expected)

    def add_liger(self, name: str, module: str, arguments: Sequence[Any], expected: Any) -> None:
        if not self.with_liger:
            self.absent["liger"] = _LEFT_OUT
            return
        function = liger_function(name, module)
        if function is None:
            self.absent["liger"] = _NO_LIGER
            return
        self.calls["liger"] = PlanCall(lambda: _as_tuple(function.apply(*arguments)), expected)


def liger_function(name: str, module: str) -> Any:
    """One of Liger-Kernel's autograd functions; ``None`` where it or the package is not there."""
    for place in ("liger_kernel.ops", f"liger_kernel.ops.{module}"):  # newer versions export it, older do not
        try:
            return getattr(importlib.import_module(place), name)
        except (ImportError, AttributeError):
            continue
        except Exception:  # a Triton too new or too old for it fails in its own ways while it is imported
            return None
    return None


# -- the chain, and the same on a tiny tensor ------------------------------------------------------------------


def _add_chain(maker: _Maker) -> None:
    from lessons_lib.kernels.chain import chain_reference, fused_chain

    x, residual, bias, scale = maker.matrix(), maker.matrix(), maker.vector(), maker.vector()
    arguments = (x, bias, scale, residual)

    def expected(start: int, stop: int) -> Outputs:
        shifted = x[start:stop].double() + bias.double()
        return (residual[start:stop].double() + scale.double() * gelu_tanh_64(shifted),)

    maker.calls["operators"] = PlanCall(lambda: (chain_reference(*arguments),), expected)
    maker.calls["groups_4"] = PlanCall(lambda: (fused_chain(*arguments, groups=4),), expected)
    maker.calls["groups_2"] = PlanCall(lambda: (fused_chain(*arguments, groups=2),), expected)
    maker.calls["fused"] = PlanCall(lambda: (fused_chain(*arguments),), expected)
    maker.add_compiled(chain_reference, arguments, expected)
    if maker.experiment.clock == "host":
        _add_launches(maker)
    else:
        _add_copies(maker, x)


def _add_copies(maker: _Maker, x: Tensor) -> None:
    """Two ways to move a tensor, for a library's copy is not always the fastest."""
    target = maker.torch.empty_like(x)

    def expected(start: int, stop: int) -> Outputs:
        return (x[start:stop].double(),)

    maker.calls["copy"] = PlanCall(lambda: (target.copy_(x),), expected)
    maker.calls["copy_kernel"] = PlanCall(lambda: (maker.torch.mul(x, 1.0, out=target),), expected)


def _add_launches(maker: _Maker) -> None:
    """A launch with next to nothing in it: by PyTorch, and by a wrapper of ours with all its checks."""
    from lessons_lib.kernels.chain import fused_chain

    one = maker.normal(1, 1)
    vector = one.view(1)
    maker.calls["launch"] = PlanCall(lambda: (one + one,), lambda start, stop: (2 * one[start:stop].double(),))
    maker.calls["wrapper"] = PlanCall(lambda: (fused_chain(one, vector, vector, one),), None)


# -- rows ----------------------------------------------------------------------------------------------------


def _add_rmsnorm(maker: _Maker) -> None:
    from lessons_lib.kernels.row import fused_residual_rmsnorm

    torch, columns = maker.torch, maker.experiment.columns
    x, residual, weight = maker.matrix(), maker.matrix(), maker.vector()

    def operators(x: Tensor, residual: Tensor, weight: Tensor) -> Outputs:
        summed = x + residual
        squares = summed * summed
        mean = squares.mean(-1, keepdim=True)
        inverse = torch.rsqrt(mean + EPS)
        return (summed * inverse * weight, summed)

    def library(x: Tensor, residual: Tensor, weight: Tensor) -> Outputs:
        summed = x + residual
        return (torch.nn.functional.rms_norm(summed, (columns,), weight, EPS), summed)

    def in_fp32(x: Tensor, residual: Tensor, weight: Tensor) -> Outputs:
        summed = x + residual
        wide = summed.float()
        inverse = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)
        return ((wide * inverse * weight.float()).to(x.dtype), summed)

    def expected(start: int, stop: int) -> Outputs:
        summed = x[start:stop].double() + residual[start:stop].double()
        mean = (summed * summed).mean(-1, keepdim=True)
        return (summed / torch.sqrt(mean + EPS) * weight.double(), summed)

    arguments = (x, residual, weight)
    maker.calls["operators"] = PlanCall(lambda: operators(*arguments), expected)
    maker.calls["library"] = PlanCall(lambda: library(*arguments), expected)
    maker.calls["fused"] = PlanCall(lambda: _as_tuple(fused_residual_rmsnorm(*arguments, EPS)), expected)
    maker.add_compiled(in_fp32, arguments, expected)
    maker.add_liger("LigerFusedAddRMSNormFunction", "fused_add_rms_norm", (*arguments, EPS), expected)


def _add_softmax(maker: _Maker) -> None:
    from lessons_lib.kernels.row import fused_softmax

    torch = maker.torch
    x = maker.matrix()

    def operators(x: Tensor) -> Tensor:
        largest = x.amax(-1, keepdim=True)
        weights = torch.exp(x - largest)
        total = weights.sum(-1, keepdim=True)
        return weights / total

    def library(x: Tensor) -> Tensor:
        return torch.softmax(x, -1)

    def expected(start: int, stop: int) -> Outputs:
        wide = x[start:stop].double()
        weights = torch.exp(wide - wide.amax(-1, keepdim=True))
        return (weights / weights.sum(-1, keepdim=True),)

    maker.calls["operators"] = PlanCall(lambda: (operators(x),), expected)
    maker.calls["library"] = PlanCall(lambda: (library(x),), expected)
    maker.calls["fused"] = PlanCall(lambda: (fused_softmax(x),), expected)
    maker.add_compiled(operators, (x,), expected)
    maker.add_liger("LigerSoftmaxFunction", "softmax", (x,), expected)


# -- GEMM with an epilogue -----------------------------------------------------------------------------------


def _add_linear(maker: _Maker) -> None:
    from lessons_lib.kernels.linear import fused_linear, library_linear

    torch, experiment = maker.torch, maker.experiment
    inner = experiment.inner or 1
    x, bias = maker.normal(experiment.rows, inner), maker.vector()
    w = maker.normal(inner, experiment.columns, scale=1 / math.sqrt(inner))
    gelu = torch.nn.functional.gelu

    def operators(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
        return gelu(x @ w + bias, approximate="tanh")

    def product(start: int, stop: int) -> Tensor:
        return x[start:stop].double() @ wide_w

    def expected(start: int, stop: int) -> Outputs:
        return (gelu_tanh_64(product(start, stop) + bias.double()),)

    wide_w = w.double()
    arguments = (x, w, bias)
    maker.calls["gemm"] = PlanCall(lambda: (x @ w,), lambda start, stop: (product(start, stop),))
    maker.calls["operators"] = PlanCall(lambda: (operators(*arguments),), expected)
    maker.calls["library_bias"] = PlanCall(lambda: (gelu(torch.addmm(bias, x, w), approximate="tanh"),), expected)
    if hasattr(torch, "_addmm_activation"):
        maker.calls["library"] = PlanCall(lambda: (torch._addmm_activation(bias, x, w, use_gelu=True),), expected)
    else:
        maker.absent["library"] = _NO_LIBRARY
    maker.calls["gemm_then_epilogue"] = PlanCall(lambda: (library_linear(*arguments),), expected)
    maker.calls["fused"] = PlanCall(lambda: (fused_linear(*arguments),), expected)
    maker.add_compiled(operators, arguments, expected)


def gelu_tanh_64(x: Tensor) -> Tensor:
    """GELU by its tanh formula, of a float64 tensor."""
    import torch

    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _as_tuple(outputs: Any) -> Outputs:
    return outputs if isinstance(outputs, tuple) else (outputs,)


_LEFT_OUT = Text(zh="这次没有安排", en="left out of this run")
_NO_LIGER = Text(zh="没有安装 Liger-Kernel（或版本太旧）", en="Liger-Kernel is not installed, or too old")
_NO_LIBRARY = Text(zh="这个版本的 PyTorch 没有这个算子", en="this version of PyTorch has no such operator")
