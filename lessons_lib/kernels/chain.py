"""The course's chain, y = residual + scale * gelu_tanh(x + bias): one kernel for any run of its four operators.

``chain_kernel`` holds all four operators and compiles those from ``FIRST`` to ``LAST``. Launched four times, twice or
once it is three real executions of one piece of code; they differ in what crosses device memory in between.
"""
# ruff: noqa: N803

from __future__ import annotations

from typing import TYPE_CHECKING

from lessons_lib.base.validate import require_int
from lessons_lib.kernels.activations import gelu_tanh
from lessons_lib.kernels.checks import output_like, require_operands, require_shape
from lessons_lib.kernels.device import launching
from lessons_lib.kernels.language import tl, triton
from lessons_lib.kernels.launch import CHAIN_OPERATORS, WIDE, DtypeName, chain_groups, elementwise_launch
from lessons_lib.kernels.source import KernelSource

if TYPE_CHECKING:
    import torch


def chain_reference(x: torch.Tensor, bias: torch.Tensor, scale: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """The chain in PyTorch, an operator a line and a kernel each, every intermediate rounded to the dtype of ``x``."""
    from torch.nn import functional

    shifted = x + bias
    activated = functional.gelu(shifted, approximate="tanh")
    scaled = activated * scale
    return residual + scaled


@triton.jit
def chain_kernel(
    x_ptr,
    bias_ptr,
    scale_ptr,
    residual_ptr,
    y_ptr,
    rows,
    columns,
    x_stride,
    residual_stride,
    y_stride,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program, one ``BLOCK_M x BLOCK_N`` tile; programs run row by row. In fp32 from the load to the store.

    Tensors ``[rows, columns]`` with strides in elements from row to row, vectors ``[columns]``.
    """
    program = tl.program_id(0)
    tiles_n = (columns - 1) // BLOCK_N + 1  # tl.cdiv's columns + BLOCK_N - 1 could overflow
    # 64 bits before the multiplication: a tensor may have more than 2**31 elements.
    row = (program // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = (program % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (row < rows) & (column < columns)

    value = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    if FIRST == 0:
        value += tl.load(bias_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
    if FIRST <= 1 and LAST >= 1:
        value = gelu_tanh(value)
    if FIRST <= 2 and LAST >= 2:
        value *= tl.load(scale_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
    if LAST == 3:
        value += tl.load(residual_ptr + row * residual_stride + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * y_stride + column, value.to(y_ptr.dtype.element_ty), mask=inside)


def fused_chain(
    x: torch.Tensor,
    bias: torch.Tensor,
    scale: torch.Tensor,
    residual: torch.Tensor,
    *,
    groups: int = 1,
    tile: tuple[int, int] | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """residual + scale * gelu_tanh(x + bias) in ``groups`` kernels.

    Each kernel computes in fp32 and rounds once, when it stores: fewer groups, fewer roundings. So the results agree
    with ``chain_reference`` within the dtype's rounding, and not bit by bit.

    Args:
        x, residual: ``[M, N]``, float16, bfloat16 or float32, any M and N; rows contiguous, any stride between them.
        bias, scale: ``[N]``, dtype and device of ``x``.
        groups: 4, 2 or 1 kernels (``launch.chain_groups``); between two of them ``[M, N]`` goes through memory.
        tile: rows and columns of one program's tile, powers of two; by default 1024 elements.
        out: where to write, ``[M, N]``; shares no memory with an input. By default a new tensor.

    Returns:
        ``[M, N]``, dtype and device of ``x``.

    Raises:
        ValueError: an argument does not fit; nothing has been launched. See ``checks.require_operands``.
        CannotLaunchError: no kernel runs here.
    """
    require_operands({"x": (x, 2), "bias": (bias, 1), "scale": (scale, 1), "residual": (residual, 2)})
    rows, columns = x.shape
    require_shape("bias", bias, (columns,), "x", x)
    require_shape("scale", scale, (columns,), "x", x)
    require_shape("residual", residual, (rows, columns), "x", x)
    launch = elementwise_launch(rows, columns, tile)
    runs = chain_groups(groups)
    y = output_like(out, (rows, columns), {"x": x, "bias": bias, "scale": scale, "residual": residual})

    value = x
    with launching(x):
        for first, last in runs:
            result = y if (first, last) == runs[-1] else x.new_empty((rows, columns))
            chain_kernel[(launch.programs,)](
                value,
                bias,
                scale,
                residual,
                result,
                rows,
                columns,
                value.stride(0),
                residual.stride(0),
                result.stride(0),
                FIRST=first,
                LAST=last,
                BLOCK_M=launch.block_m,
                BLOCK_N=launch.block_n,
                num_warps=launch.num_warps,
                num_stages=launch.num_stages,
            )
            value = result
    return y


def chain_source(
    dtype: DtypeName, tile: tuple[int, int] | None = None, first: int = 0, last: int = len(CHAIN_OPERATORS) - 1
) -> KernelSource:
    """What the compiler is given for operators ``first`` to ``last``, as a launch on a wide tensor would.

    Raises:
        ValueError: ``first`` and ``last`` are no run of operators, or ``tile`` is not valid.
    """
    require_int("first", first, 0, len(CHAIN_OPERATORS) - 1)
    require_int("last", last, first, len(CHAIN_OPERATORS) - 1)
    launch = elementwise_launch(WIDE, WIDE, tile)
    pointers = ("x_ptr", "bias_ptr", "scale_ptr", "residual_ptr", "y_ptr")
    integers = ("rows", "columns", "x_stride", "residual_stride", "y_stride")
    return KernelSource(
        function=chain_kernel,
        signature=dict.fromkeys(pointers, f"*{dtype}") | dict.fromkeys(integers, "i32"),
        constexprs={"FIRST": first, "LAST": last, "BLOCK_M": launch.block_m, "BLOCK_N": launch.block_n},
        pointers=pointers,
        sizes=integers,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )
