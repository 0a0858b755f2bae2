"""Row kernels: residual + RMSNorm + weight, and softmax. One program a row.

A reduction does not end a fusion: a program that holds its whole row reads it once, reduces it, and goes on with the
values in its registers. A longer row (``launch.LARGEST_RESIDENT_ROW``) it goes through twice, block by block: once to
reduce, once to write.
"""
# ruff: noqa: N803

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from lessons_lib.base.validate import bad_argument, require_bool, require_real
from lessons_lib.kernels.checks import output_like, require_operands, require_shape
from lessons_lib.kernels.device import launching
from lessons_lib.kernels.language import tl, triton
from lessons_lib.kernels.launch import WIDE, DtypeName, row_launch
from lessons_lib.kernels.source import KernelSource

if TYPE_CHECKING:
    import torch

# -- residual + RMSNorm + weight -----------------------------------------------------------------------------------


def rmsnorm_reference(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """``(y, x + residual)`` in PyTorch, operator by operator; the norm in fp32 (float64 for float64) of the sum as rounded."""
    import torch

    summed = x + residual
    wide = summed.to(torch.promote_types(summed.dtype, torch.float32))
    mean = wide.square().mean(dim=-1, keepdim=True)
    normalized = wide * torch.rsqrt(mean + eps)
    return (normalized * weight).to(summed.dtype), summed


@triton.jit
def _load_sum(x_block, residual_block, inside, EVICT: tl.constexpr):
    """x + residual in fp32, rounded to their dtype: the sum that is stored, and the one that is normalized."""
    x = tl.load(x_block, mask=inside, other=0.0, eviction_policy=EVICT)
    residual = tl.load(residual_block, mask=inside, other=0.0, eviction_policy=EVICT)
    return (x.to(tl.float32) + residual.to(tl.float32)).to(x.dtype).to(tl.float32)


@triton.jit
def rmsnorm_kernel(
    x_ptr,
    residual_ptr,
    weight_ptr,
    y_ptr,
    sum_ptr,
    columns,
    x_stride,
    residual_stride,
    y_stride,
    sum_stride,
    eps,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
    RETURN_SUM: tl.constexpr,
):
    """One program, one row of ``STEPS`` blocks of ``BLOCK`` columns; with one step the row is resident.

    Tensors ``[rows, columns]`` with strides in elements from row to row, ``weight [columns]``.
    """
    row = tl.program_id(0).to(tl.int64)  # 64 bits before the multiplication by a stride
    x_row = x_ptr + row * x_stride
    residual_row = residual_ptr + row * residual_stride
    y_row = y_ptr + row * y_stride
    sum_row = sum_ptr + row * sum_stride
    column = tl.arange(0, BLOCK)
    if STEPS == 1:
        inside = column < columns
        summed = _load_sum(x_row + column, residual_row + column, inside, "evict_first")
        # Asked for now, it arrives while the row is reduced; the next row wants it again.
        weight = tl.load(weight_ptr + column, mask=inside, other=0.0, eviction_policy="evict_last")
        if RETURN_SUM:
            tl.store(sum_row + column, summed.to(sum_ptr.dtype.element_ty), mask=inside)
        factor = tl.rsqrt(tl.sum(summed * summed, axis=0) / columns + eps)
        y = summed * factor * weight.to(tl.float32)
        tl.store(y_row + column, y.to(y_ptr.dtype.element_ty), mask=inside)
    else:
        wide_block = tl.full((), BLOCK, tl.int64)
        squares = tl.zeros((BLOCK,), dtype=tl.float32)
        for step in range(STEPS):
            start = wide_block * step
            inside = column < columns - start
            # The second pass reads them again: may L2 keep them until then, and not longer.
            summed = _load_sum(x_row + start + column, residual_row + start + column, inside, "evict_last")
            squares += summed * summed
        factor = tl.rsqrt(tl.sum(squares, axis=0) / columns + eps)
        for step in range(STEPS):
            start = wide_block * step
            inside = column < columns - start
            summed = _load_sum(x_row + start + column, residual_row + start + column, inside, "evict_first")
            weight = tl.load(weight_ptr + start + column, mask=inside, other=0.0, eviction_policy="evict_last")
            if RETURN_SUM:
                tl.store(sum_row + start + column, summed.to(sum_ptr.dtype.element_ty), mask=inside)
            y = summed * factor * weight.to(tl.float32)
            tl.store(y_row + start + column, y.to(y_ptr.dtype.element_ty), mask=inside)


@overload
def fused_residual_rmsnorm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = ...,
    *,
    return_sum: Literal[True] = ...,
    block: int | None = ...,
    out: torch.Tensor | None = ...,
    sum_out: torch.Tensor | None = ...,
) -> tuple[torch.Tensor, torch.Tensor]: ...


@overload
def fused_residual_rmsnorm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = ...,
    *,
    return_sum: Literal[False],
    block: int | None = ...,
    out: torch.Tensor | None = ...,
) -> torch.Tensor: ...


def fused_residual_rmsnorm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-6,
    *,
    return_sum: bool = True,
    block: int | None = None,
    out: torch.Tensor | None = None,
    sum_out: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor] | torch.Tensor:
    """s = x + residual, y = s / sqrt(mean(s^2) + eps) * weight over each row, in one kernel.

    ``s`` is rounded to the dtype of ``x`` first, whether it is returned or not, and ``y`` follows from the rounded
    ``s``, as in vLLM's and Liger-Kernel's fused kernels: so ``y`` is the norm of the very sum that the next layer gets.
    From there on everything is fp32 until ``y`` is rounded, once.

    A row within ``launch.LARGEST_RESIDENT_ROW`` elements moves 4 tensors through memory with the sum, 3 without.
    A longer one reads ``x`` and ``residual`` twice; L2 may serve the second time.

    Args:
        x, residual: ``[M, N]``, float16, bfloat16 or float32, any M and N; rows contiguous, any stride between them.
        weight: ``[N]``, dtype and device of ``x``.
        eps: at least 0.
        return_sum: whether ``s`` is also written and returned.
        block: columns at a time, a power of two; one below N makes two passes. By default ``launch.row_launch``'s.
        out, sum_out: where to write ``y`` and ``s``, ``[M, N]``; they share no memory with an input or each other. By
            default new tensors.

    Returns:
        ``(y, s)``, or ``y`` alone; ``[M, N]``, dtype and device of ``x``.

    Raises:
        ValueError: an argument does not fit; nothing has been launched. See ``checks.require_operands``.
        CannotLaunchError: no kernel runs here.
    """
    require_operands({"x": (x, 2), "residual": (residual, 2), "weight": (weight, 1)})
    rows, columns = x.shape
    require_shape("residual", residual, (rows, columns), "x", x)
    require_shape("weight", weight, (columns,), "x", x)
    eps = require_real("eps", eps, 0.0)
    require_bool("return_sum", return_sum)
    if sum_out is not None and not return_sum:
        raise bad_argument(
            "sum_out",
            zh="return_sum=False 时不写出 x + residual，不需要它",
            en="with return_sum=False there is no sum to write to it",
        )
    launch = row_launch(rows, columns, block)
    inputs = {"x": x, "residual": residual, "weight": weight}
    y = output_like(out, (rows, columns), inputs)
    summed = output_like(sum_out, (rows, columns), {**inputs, "out": y}, "sum_out") if return_sum else y
    with launching(x):
        rmsnorm_kernel[(launch.programs,)](
            x,
            residual,
            weight,
            y,
            summed,  # without a sum never written: any pointer will do
            columns,
            x.stride(0),
            residual.stride(0),
            y.stride(0),
            summed.stride(0),
            eps,
            STEPS=launch.steps,
            BLOCK=launch.block,
            RETURN_SUM=return_sum,
            num_warps=launch.num_warps,
            num_stages=launch.num_stages,
        )
    return (y, summed) if return_sum else y


def rmsnorm_source(
    dtype: DtypeName, columns: int = WIDE, block: int | None = None, *, return_sum: bool = True
) -> KernelSource:
    """What the compiler is given for rows of ``columns`` elements.

    Raises:
        ValueError: ``columns`` or ``block`` is not valid.
    """
    launch = row_launch(1, columns, block)
    pointers = ("x_ptr", "residual_ptr", "weight_ptr", "y_ptr", "sum_ptr")
    integers = ("columns", "x_stride", "residual_stride", "y_stride", "sum_stride")
    return KernelSource(
        function=rmsnorm_kernel,
        signature=dict.fromkeys(pointers, f"*{dtype}") | dict.fromkeys(integers, "i32") | {"eps": "fp32"},
        constexprs={"STEPS": launch.steps, "BLOCK": launch.block, "RETURN_SUM": return_sum},
        pointers=pointers,
        sizes=integers,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )


# -- softmax -------------------------------------------------------------------------------------------------------

# The lowest finite fp32. Not -inf: a lane that has met nothing else would compute -inf - -inf, which is NaN.
_LOWEST = tl.constexpr(-3.4028234663852886e38)


def softmax_reference(x: torch.Tensor) -> torch.Tensor:
    """Softmax over rows in PyTorch, in five passes of a kernel each, every intermediate rounded to the dtype of ``x``."""
    highest = x.amax(dim=-1, keepdim=True)
    shifted = x - highest
    weights = shifted.exp()
    total = weights.sum(dim=-1, keepdim=True)
    return weights / total


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, x_stride, y_stride, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """One program, one row of ``STEPS`` blocks of ``BLOCK`` columns; with one step the row is resident.

    Tensors ``[rows, columns]`` with strides in elements from row to row.
    """
    row = tl.program_id(0).to(tl.int64)  # 64 bits before the multiplication by a stride
    x_row = x_ptr + row * x_stride
    y_row = y_ptr + row * y_stride
    column = tl.arange(0, BLOCK)
    if STEPS == 1:
        inside = column < columns
        x = tl.load(x_row + column, mask=inside, other=-float("inf"), eviction_policy="evict_first").to(tl.float32)
        weights = tl.exp(x - tl.max(x, axis=0))
        y = weights / tl.sum(weights, axis=0)
        tl.store(y_row + column, y.to(y_ptr.dtype.element_ty), mask=inside)
    else:
        # Each lane keeps the highest value it has met and the sum of exp(value - highest), scaled anew when a higher
        # one comes: one exponential an element. The lanes meet once, after the last block.
        wide_block = tl.full((), BLOCK, tl.int64)
        highest = tl.full((BLOCK,), _LOWEST, dtype=tl.float32)
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for step in range(STEPS):
            start = wide_block * step
            inside = column < columns - start
            x = tl.load(x_row + start + column, mask=inside, other=-float("inf"), eviction_policy="evict_last")
            x = x.to(tl.float32)
            higher = x > highest
            smaller = tl.exp(-tl.abs(x - highest))
            total = tl.where(higher, total * smaller + 1.0, total + smaller)
            highest = tl.where(higher, x, highest)
        row_highest = tl.max(highest, axis=0)
        row_total = tl.sum(total * tl.exp(highest - row_highest), axis=0)
        for step in range(STEPS):
            start = wide_block * step
            inside = column < columns - start
            x = tl.load(x_row + start + column, mask=inside, other=-float("inf"), eviction_policy="evict_first")
            y = tl.exp(x.to(tl.float32) - row_highest) / row_total
            tl.store(y_row + start + column, y.to(y_ptr.dtype.element_ty), mask=inside)


def fused_softmax(x: torch.Tensor, *, block: int | None = None, out: torch.Tensor | None = None) -> torch.Tensor:
    """Softmax over each row in one kernel, in fp32 until the result is rounded.

    As ``torch.softmax``: a row that holds NaN or +inf, or nothing but -inf, becomes NaN; a -inf elsewhere becomes 0.

    A row within ``launch.LARGEST_RESIDENT_ROW`` elements is read once and written once, a longer one read twice; L2
    may serve the second time.

    Args:
        x: ``[M, N]``, float16, bfloat16 or float32, any M and N; rows contiguous, any stride between them.
        block: columns at a time, a power of two; one below N makes two passes. By default ``launch.row_launch``'s.
        out: where to write, ``[M, N]``; shares no memory with ``x``. By default a new tensor.

    Returns:
        ``[M, N]``, dtype and device of ``x``.

    Raises:
        ValueError: an argument does not fit; nothing has been launched. See ``checks.require_operands``.
        CannotLaunchError: no kernel runs here.

    Source of the one pass that finds highest and sum together: M. Milakov and N. Gimelshein, Online normalizer
    calculation for softmax, arXiv:1805.02867.
    """
    require_operands({"x": (x, 2)})
    rows, columns = x.shape
    launch = row_launch(rows, columns, block)
    y = output_like(out, (rows, columns), {"x": x})
    with launching(x):
        softmax_kernel[(launch.programs,)](
            x,
            y,
            columns,
            x.stride(0),
            y.stride(0),
            STEPS=launch.steps,
            BLOCK=launch.block,
            num_warps=launch.num_warps,
            num_stages=launch.num_stages,
        )
    return y


def softmax_source(dtype: DtypeName, columns: int = WIDE, block: int | None = None) -> KernelSource:
    """What the compiler is given for rows of ``columns`` elements.

    Raises:
        ValueError: ``columns`` or ``block`` is not valid.
    """
    launch = row_launch(1, columns, block)
    pointers = ("x_ptr", "y_ptr")
    integers = ("columns", "x_stride", "y_stride")
    return KernelSource(
        function=softmax_kernel,
        signature=dict.fromkeys(pointers, f"*{dtype}") | dict.fromkeys(integers, "i32"),
        constexprs={"STEPS": launch.steps, "BLOCK": launch.block},
        pointers=pointers,
        sizes=integers,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )
