"""act(x @ w + bias): a GEMM that adds the bias and applies the activation while its tile is still in registers."""
# ruff: noqa: N803

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessons_lib.base.gpus import Gpu, require_gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import divided_up
from lessons_lib.base.validate import bad_argument, require_choice, require_int, shown
from lessons_lib.kernels.activations import activate, torch_activation
from lessons_lib.kernels.checks import output_like, require_operands, require_shape
from lessons_lib.kernels.device import device_limits, launching
from lessons_lib.kernels.epilogue import fused_epilogue
from lessons_lib.kernels.language import tl, triton
from lessons_lib.kernels.launch import (
    ACTIVATIONS,
    ELEMENT_BYTES,
    GROUP_M,
    ActivationName,
    DtypeName,
    LinearConfig,
    LinearLaunch,
    reaches_tensor_cores,
    require_power_of_two,
)
from lessons_lib.kernels.source import KernelSource
from lessons_lib.kernels.tuning import choose_config

if TYPE_CHECKING:
    import torch


def linear_reference(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None, activation: ActivationName = "gelu_tanh"
) -> torch.Tensor:
    """act(x @ w + bias) in PyTorch, an operator a line and a kernel each, every intermediate rounded to their dtype."""
    product = x @ w
    shifted = product if bias is None else product + bias
    return torch_activation(shifted, activation)


@triton.jit
def linear_kernel(
    x_ptr,
    w_ptr,
    bias_ptr,
    y_ptr,
    m,
    n,
    k,
    x_stride,
    w_stride_k,
    w_stride_n,
    y_stride,
    STEPS: tl.constexpr,
    MASKED: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """One program, one ``BLOCK_M x BLOCK_N`` tile of the result, in ``STEPS`` steps of ``BLOCK_K`` along k.

    ``x [m, k]`` and ``y [m, n]`` with strides in elements from row to row, ``w [k, n]`` with any strides,
    ``bias [n]``. ``MASKED``: a tile may reach beyond an edge; without it m, n and k are whole tiles.
    """
    # GROUP_M row tiles share a column of w before the next column begins, so that L2 serves both operands.
    program = tl.program_id(0)
    tiles_m = (m - 1) // BLOCK_M + 1  # tl.cdiv's m + BLOCK_M - 1 could overflow
    tiles_n = (n - 1) // BLOCK_N + 1
    group = program // (GROUP_M * tiles_n)
    within = program % (GROUP_M * tiles_n)
    height = tl.minimum(tiles_m - group * GROUP_M, GROUP_M)
    row_tile = group * GROUP_M + within % height
    column_tile = within // height

    # Lanes count from the tile's corner: 64 bits before a multiplication by a stride, and 32 in what is compared.
    first_row, first_column = row_tile * BLOCK_M, column_tile * BLOCK_N
    row, column, inner = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    row_inside, column_inside = row < m - first_row, column < n - first_column
    wide_row, wide_column, wide_inner = row.to(tl.int64), column.to(tl.int64), inner.to(tl.int64)
    x_corner = x_ptr + first_row.to(tl.int64) * x_stride
    w_corner = w_ptr + first_column.to(tl.int64) * w_stride_n
    x_tile = x_corner + wide_row[:, None] * x_stride + inner[None, :]
    w_tile = w_corner + wide_inner[:, None] * w_stride_k + wide_column[None, :] * w_stride_n
    w_step = tl.full((), BLOCK_K, tl.int64) * w_stride_k

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(STEPS):
        if MASKED:
            inner_inside = inner < k - step * BLOCK_K
            x = tl.load(x_tile, mask=row_inside[:, None] & inner_inside[None, :], other=0.0)
            w = tl.load(w_tile, mask=inner_inside[:, None] & column_inside[None, :], other=0.0)
        else:
            x = tl.load(x_tile)
            w = tl.load(w_tile)
        accumulator = tl.dot(x, w, accumulator, input_precision="ieee")
        x_tile += BLOCK_K
        w_tile += w_step

    # The epilogue: what otherwise takes further kernels, each of which reads the product and writes it again.
    if HAS_BIAS:
        bias = tl.load(bias_ptr + first_column + column, mask=column_inside, other=0.0)
        accumulator += bias.to(tl.float32)[None, :]
    y = activate(accumulator, ACTIVATION).to(y_ptr.dtype.element_ty)
    y_tile = y_ptr + first_row.to(tl.int64) * y_stride + first_column + wide_row[:, None] * y_stride + column[None, :]
    if MASKED:
        tl.store(y_tile, y, mask=row_inside[:, None] & column_inside[None, :])
    else:
        tl.store(y_tile, y)


def fused_linear(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: ActivationName = "gelu_tanh",
    *,
    config: LinearConfig | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """act(x @ w + bias) in one kernel, with an fp32 accumulator that is rounded once, when it is stored.

    fp32 operands are multiplied exactly (no TF32). Where Triton reaches no tensor cores, ``linear_advice`` says so,
    and ``library_linear`` is the faster plan.

    Args:
        x: ``[M, K]``, float16, bfloat16 or float32, any M and K; rows contiguous, any stride between them.
        w: ``[K, N]``, any strides (``weight.t()`` of an ``nn.Linear`` too), dtype and device of ``x``.
        bias: ``[N]``, dtype and device of ``x``, or ``None``.
        activation: a name in ``launch.ACTIVATIONS``.
        config: the tile and its launch; by default ``tuning.choose_config``'s: on a GPU the first call for a shape
            compiles several and times them, which takes some seconds.
        out: where to write, ``[M, N]``; shares no memory with an input. By default a new tensor.

    Returns:
        ``[M, N]``, dtype and device of ``x``.

    Raises:
        ValueError: an argument does not fit; nothing has been launched. See ``checks.require_operands``. Also
            bfloat16 in the interpreter, whose ``dot`` gets it wrong.
        CannotLaunchError: no kernel runs here, or no configuration compiles for this GPU.
    """
    dtype = _require_linear(x, w, bias, activation, dot=True)
    (m, k), n = x.shape, w.shape[1]
    if config is not None:
        require_config(config)
    inputs = {"x": x, "w": w} if bias is None else {"x": x, "w": w, "bias": bias}
    y = output_like(out, (m, n), inputs)

    def launch(chosen: LinearConfig) -> Any:
        return _launch(LinearLaunch(m, n, k, chosen), x, w, bias, y, activation)

    with launching(x):
        if config is None:
            gpu = device_limits()
            probe = None if gpu is None else _GpuProbe(launch)
            aligned = all(stride % 16 == 0 for stride in (x.stride(0), max(w.stride()), y.stride(0)))
            variant = (activation, bias is None, w.stride(1) == 1, aligned)
            config = choose_config(gpu, dtype, m, n, k, probe, variant)
        launch(config)
    return y


def library_linear(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None, activation: ActivationName = "gelu_tanh"
) -> torch.Tensor:
    """act(x @ w + bias) in two kernels: the library's GEMM, then bias and activation fused into one.

    The plan for a GPU where Triton reaches no tensor cores: the library does. The product is rounded once more than
    in ``fused_linear``. Without bias and activation it is the GEMM alone.

    Args:
        x, w, bias, activation: as of ``fused_linear``.

    Returns:
        ``[M, N]``, dtype and device of ``x``.

    Raises:
        ValueError: an argument does not fit; nothing has been launched.
        CannotLaunchError: no kernel runs here.
    """
    _require_linear(x, w, bias, activation, dot=False)
    product = x @ w
    if bias is None and activation == "none":
        return product
    return fused_epilogue(product, product.new_zeros(w.shape[1]) if bias is None else bias, activation)


def linear_advice(gpu: Gpu | None, dtype: DtypeName) -> Text | None:
    """Why ``library_linear`` is the better plan on ``gpu`` for this dtype; ``None`` where it is not known to be.

    Args:
        gpu: ``None`` for the interpreter, whose speed says nothing.
        dtype: of the operands.

    Raises:
        ValueError: ``gpu`` is neither a ``Gpu`` nor ``None``, or there is no such dtype.
    """
    require_choice("dtype", dtype, ELEMENT_BYTES)
    if gpu is None or require_gpu("gpu", gpu).vendor == "AMD" or reaches_tensor_cores(gpu, dtype):
        return None
    reason = _EXACT_FP32 if dtype == "fp32" else _NO_TENSOR_CORES.format(name=gpu.name, target=gpu.target)
    return _USE_LIBRARY.format(reason=reason)


_NO_TENSOR_CORES = Text(
    zh="在 {name}（{target}）上，Triton 的 dot 用不上张量核心，只做普通的乘加",
    en="On {name} ({target}) Triton's dot reaches no tensor cores and does plain multiply-adds",
)
_EXACT_FP32 = Text(
    zh="fp32 的 dot 保持精确（不用 TF32），NVIDIA 的张量核心做不了，只做普通的乘加",
    en="An fp32 dot is kept exact (no TF32), which no tensor core of NVIDIA's does, so it does plain multiply-adds",
)
_USE_LIBRARY = Text(
    zh="{reason}。这里推荐的方案是 library_linear：库 GEMM 加一个融合尾声核函数；一个核函数的方案照样能运行，只是更慢。",
    en="{reason}. The plan to use here is library_linear, the library's GEMM and one fused epilogue kernel; the "
    "one-kernel plan still runs, slower.",
)


def linear_source(
    dtype: DtypeName,
    config: LinearConfig,
    activation: ActivationName = "gelu_tanh",
    *,
    masked: bool = False,
    k: int = 4096,
) -> KernelSource:
    """What the compiler is given for contiguous operands with a bias.

    Args:
        dtype: of the operands and the result.
        config: the tile and its launch.
        activation: a name in ``launch.ACTIVATIONS``.
        masked: whether tiles reach beyond an edge, as a launch has it unless m, n and k are whole tiles.
        k: which gives the number of steps, at least 1.

    Raises:
        ValueError: ``config`` or ``activation`` is not valid.
    """
    require_choice("activation", activation, ACTIVATIONS)
    require_config(config)
    pointers = ("x_ptr", "w_ptr", "bias_ptr", "y_ptr")
    integers = ("m", "n", "k", "x_stride", "w_stride_k", "y_stride")
    tile = {"BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "BLOCK_K": config.block_k, "GROUP_M": GROUP_M}
    return KernelSource(
        function=linear_kernel,
        signature=dict.fromkeys(pointers, f"*{dtype}") | dict.fromkeys(integers, "i32"),
        constexprs={
            "w_stride_n": 1,  # a launch turns an argument that is 1 into a constant
            "STEPS": divided_up(require_int("k", k, 1), config.block_k),
            "MASKED": masked,
            "HAS_BIAS": True,
            "ACTIVATION": activation,
            **tile,
        },
        pointers=pointers,
        sizes=integers,
        num_warps=config.num_warps,
        num_stages=config.num_stages,
    )


def require_config(config: object) -> LinearConfig:
    """``config`` itself, if it is a ``LinearConfig`` that ``tl.dot`` and a launch accept.

    Raises:
        ValueError: it is something else, a side of its tile is below 16 or no power of two, its warps are no power
            of two up to 32, or it has no stage.
    """
    if not isinstance(config, LinearConfig):
        raise bad_argument(
            "config",
            zh=f"需要 LinearConfig，收到的是 {shown(config)}（{type(config).__name__}）",
            en=f"it must be a LinearConfig, got {shown(config)} ({type(config).__name__})",
        )
    for side in ("block_m", "block_n", "block_k"):
        require_power_of_two(f"config.{side}", getattr(config, side), _SMALLEST_SIDE)
    require_choice("config.num_warps", config.num_warps, (1, 2, 4, 8, 16, 32))
    require_int("config.num_stages", config.num_stages, 1)
    return config


_SMALLEST_SIDE = 16  # of an operand of tl.dot


# -- one launch ------------------------------------------------------------------------------------------------


def _require_linear(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, activation: str, *, dot: bool
) -> DtypeName:
    require_choice("activation", activation, ACTIVATIONS)
    operands: dict[str, tuple[object, int]] = {"x": (x, 2), "w": (w, 2)}
    if bias is not None:
        operands["bias"] = (bias, 1)
    dtype = require_operands(operands, dot=dot, any_stride=("w",))
    require_shape("w", w, (x.shape[1], w.shape[1]), "x", x)
    if bias is not None:
        require_shape("bias", bias, (w.shape[1],), "w", w)
    return dtype


def _launch(
    launch: LinearLaunch,
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None,
    y: torch.Tensor,
    activation: ActivationName,
) -> Any:
    block_m, block_n, block_k = launch.config.tile
    return linear_kernel[(launch.programs,)](
        x,
        w,
        y if bias is None else bias,  # without a bias never read: any pointer will do
        y,
        launch.m,
        launch.n,
        launch.k,
        x.stride(0),
        w.stride(0),
        w.stride(1),
        y.stride(0),
        STEPS=launch.steps,
        MASKED=bool(launch.m % block_m or launch.n % block_n or launch.k % block_k),
        HAS_BIAS=bias is not None,
        ACTIVATION=activation,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP_M=GROUP_M,
        num_warps=launch.config.num_warps,
        num_stages=launch.config.num_stages,
    )


@dataclass(frozen=True)
class _GpuProbe:
    """Asks the GPU, by launching on the very tensors of a call: every trial writes the right result."""

    launch: Callable[[LinearConfig], Any]

    def spills(self, config: LinearConfig) -> int:
        return int(getattr(self.launch(config), "n_spills", 0) or 0)

    def seconds(self, config: LinearConfig) -> float:
        from triton.testing import do_bench

        return float(do_bench(lambda: self.launch(config), return_mode="median")) / 1e3
