"""A kernel of this course run once on tensors of a given shape, and held against PyTorch in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from lessons_lib.kernels.checks import torch_dtype, torch_dtype_name
from lessons_lib.kernels.device import device_limits
from lessons_lib.kernels.launch import DtypeName, KernelName
from lessons_lib.kernels.tuning import likely_configs

if TYPE_CHECKING:
    from torch import Tensor

    Pair: TypeAlias = tuple[Tensor, Tensor]


def largest_error(kernel: KernelName, shape: tuple[int, ...], dtype: DtypeName, device: str, gap: int = 0) -> float:
    """The largest |result - reference| / (|reference| + its root mean square) over all that the kernel returns.

    Infinite where a result is NaN or infinite and its reference is not. The root mean square keeps a reference that
    happens to lie near 0 from deciding alone.

    Args:
        kernel: a name in ``KERNELS``, called through its wrapper with its defaults; ``linear`` with the likeliest
            configuration.
        shape: ``(rows, columns)``; of ``linear`` ``(m, n, k)``.
        dtype: of every tensor: normal deviates, the same on every machine.
        device: as PyTorch names it.
        gap: elements between the rows of x.

    Raises:
        ValueError: the wrapper refuses the tensors.
    """
    import torch

    generator = torch.Generator().manual_seed(0)

    def normal(*size: int, apart: int = 0, scale: float = 1.0) -> Tensor:
        width = size[-1]
        wide = torch.randn((*size[:-1], width + apart), generator=generator) * scale
        return wide.to(device=device, dtype=torch_dtype(dtype))[..., :width]

    with torch.no_grad():
        return max(_error(result, reference) for result, reference in _CALLS[kernel](normal, shape, gap))


def _error(result: Tensor, reference: Tensor) -> float:
    import torch

    size = reference.abs() + reference.square().mean().sqrt()
    deviation = (result.double() - reference).abs() / size
    return float(torch.nan_to_num(deviation, nan=math.inf).max())


# -- each kernel's call, and the same operators of PyTorch on the same values in float64 -------------------------------

Normal: TypeAlias = Callable[..., Any]


def _chain(normal: Normal, shape: tuple[int, ...], gap: int) -> list[Pair]:
    from lessons_lib.kernels.chain import chain_reference, fused_chain

    operands = (normal(*shape, apart=gap), normal(shape[1]), normal(shape[1]), normal(*shape))
    return [(fused_chain(*operands), chain_reference(*_wide(operands)))]


def _epilogue(normal: Normal, shape: tuple[int, ...], gap: int) -> list[Pair]:
    from lessons_lib.kernels.epilogue import epilogue_reference, fused_epilogue

    operands = (normal(*shape, apart=gap), normal(shape[1]))
    return [(fused_epilogue(*operands), epilogue_reference(*_wide(operands)))]


def _rmsnorm(normal: Normal, shape: tuple[int, ...], gap: int) -> list[Pair]:
    from lessons_lib.kernels.row import fused_residual_rmsnorm, rmsnorm_reference

    operands = (normal(*shape, apart=gap), normal(*shape), normal(shape[1]))
    return list(zip(fused_residual_rmsnorm(*operands), rmsnorm_reference(*_wide(operands)), strict=True))


def _softmax(normal: Normal, shape: tuple[int, ...], gap: int) -> list[Pair]:
    from lessons_lib.kernels.row import fused_softmax, softmax_reference

    x = normal(*shape, apart=gap)
    return [(fused_softmax(x), softmax_reference(x.double()))]


def _linear(normal: Normal, shape: tuple[int, ...], gap: int) -> list[Pair]:
    from lessons_lib.kernels.linear import fused_linear, linear_reference

    m, n, k = shape
    operands = (normal(m, k, apart=gap), normal(k, n, scale=1 / math.sqrt(k)), normal(n))
    # Named, lest a GPU compile and time several for each shape tried.
    config = likely_configs(device_limits(), torch_dtype_name(operands[0]), m, n, k)[0]
    return [(fused_linear(*operands, config=config), linear_reference(*_wide(operands)))]


def _wide(operands: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(operand.double() for operand in operands)


_CALLS: Mapping[KernelName, Callable[[Normal, tuple[int, ...], int], list[Pair]]] = {
    "chain": _chain,
    "rmsnorm": _rmsnorm,
    "softmax": _softmax,
    "linear": _linear,
    "epilogue": _epilogue,
}
