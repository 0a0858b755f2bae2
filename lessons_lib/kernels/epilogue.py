"""y = act(x + bias) in one kernel: what a GEMM leaves to do, where it cannot do it itself.

On a device where Triton reaches no tensor cores this kernel after the library's GEMM is the plan to take.
"""
# ruff: noqa: N803

from __future__ import annotations

from typing import TYPE_CHECKING

from lessons_lib.base.validate import require_choice
from lessons_lib.kernels.activations import activate, torch_activation
from lessons_lib.kernels.checks import output_like, require_operands, require_shape
from lessons_lib.kernels.device import launching
from lessons_lib.kernels.language import tl, triton
from lessons_lib.kernels.launch import ACTIVATIONS, WIDE, ActivationName, DtypeName, elementwise_launch
from lessons_lib.kernels.source import KernelSource

if TYPE_CHECKING:
    import torch


def epilogue_reference(x: torch.Tensor, bias: torch.Tensor, activation: ActivationName = "gelu_tanh") -> torch.Tensor:
    """The same in PyTorch, an operator a kernel, the sum rounded to the dtype of ``x``."""
    return torch_activation(x + bias, activation)


@triton.jit
def epilogue_kernel(
    x_ptr,
    bias_ptr,
    y_ptr,
    rows,
    columns,
    x_stride,
    y_stride,
    ACTIVATION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program, one ``BLOCK_M x BLOCK_N`` tile, as in ``chain_kernel``; fp32 from the load to the store."""
    program = tl.program_id(0)
    tiles_n = (columns - 1) // BLOCK_N + 1
    row = (program // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = (program % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (row < rows) & (column < columns)

    value = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(bias_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
    value = activate(value, ACTIVATION)
    tl.store(y_ptr + row * y_stride + column, value.to(y_ptr.dtype.element_ty), mask=inside)


def fused_epilogue(
    x: torch.Tensor,
    bias: torch.Tensor,
    activation: ActivationName = "gelu_tanh",
    *,
    tile: tuple[int, int] | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """act(x + bias), computed in fp32 and rounded once.

    Args:
        x: ``[M, N]``, float16, bfloat16 or float32; rows contiguous, any stride between them.
        bias: ``[N]``, dtype and device of ``x``.
        activation: one of ``launch.ACTIVATIONS``.
        tile: rows and columns of one program's tile, powers of two; by default 1024 elements.
        out: where to write, ``[M, N]``; shares no memory with an input. By default a new tensor.

    Returns:
        ``[M, N]``, dtype and device of ``x``.

    Raises:
        ValueError: an argument does not fit; nothing has been launched. See ``checks.require_operands``.
        CannotLaunchError: no kernel runs here.
    """
    require_choice("activation", activation, ACTIVATIONS)
    require_operands({"x": (x, 2), "bias": (bias, 1)})
    rows, columns = x.shape
    require_shape("bias", bias, (columns,), "x", x)
    launch = elementwise_launch(rows, columns, tile)
    y = output_like(out, (rows, columns), {"x": x, "bias": bias})
    with launching(x):
        epilogue_kernel[(launch.programs,)](
            x,
            bias,
            y,
            rows,
            columns,
            x.stride(0),
            y.stride(0),
            ACTIVATION=activation,
            BLOCK_M=launch.block_m,
            BLOCK_N=launch.block_n,
            num_warps=launch.num_warps,
            num_stages=launch.num_stages,
        )
    return y


def epilogue_source(
    dtype: DtypeName, tile: tuple[int, int] | None = None, activation: ActivationName = "gelu_tanh"
) -> KernelSource:
    """What the compiler is given, as a launch on a wide tensor would.

    Raises:
        ValueError: ``tile`` or ``activation`` is not valid.
    """
    require_choice("activation", activation, ACTIVATIONS)
    launch = elementwise_launch(WIDE, WIDE, tile)
    pointers = ("x_ptr", "bias_ptr", "y_ptr")
    integers = ("rows", "columns", "x_stride", "y_stride")
    return KernelSource(
        function=epilogue_kernel,
        signature=dict.fromkeys(pointers, f"*{dtype}") | dict.fromkeys(integers, "i32"),
        constexprs={"ACTIVATION": activation, "BLOCK_M": launch.block_m, "BLOCK_N": launch.block_n},
        pointers=pointers,
        sizes=integers,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )
