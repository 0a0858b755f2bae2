"""What every kernel demands of its tensors, checked before a launch: a kernel given nonsense writes nonsense.

Each refusal is a bilingual ``ValueError`` that names the argument. Wrappers call ``require_operands``, then
``require_shape`` for each operand that must fit another, then ``output_like``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from lessons_lib.base.validate import bad_argument, shown
from lessons_lib.kernels.launch import DtypeName
from lessons_lib.kernels.mode import TritonSetup, require_runnable

if TYPE_CHECKING:
    import torch

_NAMES: dict[str, DtypeName] = {"torch.float16": "fp16", "torch.bfloat16": "bf16", "torch.float32": "fp32"}


def torch_dtype_name(tensor: torch.Tensor, name: str = "tensor") -> DtypeName:
    """``"fp16"``, ``"bf16"`` or ``"fp32"``.

    Raises:
        ValueError: ``tensor`` holds integers, float64 or something else that no kernel here takes.
    """
    known = _NAMES.get(str(tensor.dtype))
    if known is None:
        raise bad_argument(
            name,
            zh=f"数据类型要是 float16、bfloat16 或 float32，收到的是 {_dtype(tensor)}",
            en=f"its dtype must be float16, bfloat16 or float32, got {_dtype(tensor)}",
        )
    return known


def torch_dtype(dtype: DtypeName) -> torch.dtype:
    """The PyTorch dtype of this name."""
    import torch

    return {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}[dtype]


def require_operands(
    operands: Mapping[str, tuple[object, int]], *, dot: bool = False, any_stride: Collection[str] = ()
) -> DtypeName:
    """The dtype that all operands share, once they are fit for a kernel and a kernel can be launched.

    Args:
        operands: argument name -> (what was given, how many dimensions it must have); the first is what the others
            must agree with.
        dot: whether the kernel multiplies matrices with ``tl.dot``, which the interpreter gets wrong in bfloat16.
        any_stride: names whose last dimension need not be contiguous.

    Raises:
        ValueError: an operand is no dense tensor, has the wrong number of dimensions or no element, holds integers
            or a dtype that this device lacks, differs from the first in dtype or device, wants a gradient, has a
            last dimension that is not contiguous, or lies on a device that the kernels here do not run on.
        CannotLaunchError: the operands are right, and no kernel runs here.
    """
    tensors = {name: _require_dense(name, value, dims) for name, (value, dims) in operands.items()}
    first_name, first = next(iter(tensors.items()))
    dtype = torch_dtype_name(first, first_name)
    for name, tensor in tensors.items():
        _require_same(name, tensor, first_name, first)
        _require_no_gradient(name, tensor)
        if name not in any_stride:
            _require_contiguous_rows(name, tensor)
    setup = require_runnable()
    _require_device(first_name, first, setup)
    _require_bf16(first_name, dtype, setup, dot)
    return dtype


def require_shape(name: str, tensor: torch.Tensor, expected: tuple[int, ...], match: str, of: torch.Tensor) -> None:
    """Refuse ``tensor`` unless its shape is ``expected``, which follows from the shape of the argument ``match``.

    Raises:
        ValueError: another shape.
    """
    if tensor.shape != expected:
        got, other = tuple(tensor.shape), tuple(of.shape)
        raise bad_argument(
            name,
            zh=f"{match} 的形状是 {other}，所以它应为 {expected}，收到的是 {got}",
            en=f"{match} has shape {other}, so it must have shape {expected}, got {got}",
        )


def output_like(
    out: object, shape: tuple[int, ...], inputs: Mapping[str, torch.Tensor], name: str = "out"
) -> torch.Tensor:
    """Where a kernel writes: ``out`` if it is given and fit for it, else a new tensor.

    Args:
        out: ``None``, or a tensor whose last dimension is contiguous.
        shape: of the result.
        inputs: what the kernel reads, by argument name; dtype and device of the result are those of the first.
        name: the argument that ``out`` was given as.

    Raises:
        ValueError: ``out`` has another shape, dtype or device, wants a gradient, is not contiguous in its last
            dimension, or shares memory with an input or with itself (``expand``): which element is read before which
            is written, no one knows.
    """
    first_name, first = next(iter(inputs.items()))
    if out is None:
        return first.new_empty(shape)
    tensor = _require_dense(name, out, len(shape))
    if tensor.shape != shape:
        got = tuple(tensor.shape)
        raise bad_argument(name, zh=f"形状应为 {shape}，收到的是 {got}", en=f"it must have shape {shape}, got {got}")
    _require_same(name, tensor, first_name, first)
    _require_no_gradient(name, tensor)
    _require_contiguous_rows(name, tensor)
    if _overlaps_itself(tensor):
        raise bad_argument(
            name,
            zh="它的多行共用同一块内存（例如来自 expand），无法写入",
            en="several of its rows share memory (from expand, say), so it cannot be written to",
        )
    for other_name, other in inputs.items():
        if share_memory(tensor, other):
            raise bad_argument(
                name,
                zh=f"它和输入 {other_name} 有一部分内存重叠，请另外分配",
                en=f"it shares memory with the input {other_name}; give it memory of its own",
            )
    return tensor


def share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether an element of one may lie on an element of the other.

    Exact for tensors of one row stride, as two column ranges of one matrix are; for others, whether their spans meet.
    """
    start, end = _span(one)
    other_start, other_end = _span(other)
    if end <= other_start or other_end <= start:
        return False
    pitch, width = _pitch(one), _row_bytes(one)
    if pitch is None or pitch != _pitch(other) or max(width, _row_bytes(other)) > pitch:
        return True
    shift = (other_start - start) % pitch
    return shift < width or shift + _row_bytes(other) > pitch


# -- one check each --------------------------------------------------------------------------------------------


def _require_dense(name: str, value: object, dims: int) -> torch.Tensor:
    import torch

    if not isinstance(value, torch.Tensor):
        raise bad_argument(
            name,
            zh=f"需要 PyTorch 张量（torch.Tensor），收到的是 {shown(value)}（{type(value).__name__}）",
            en=f"it must be a PyTorch tensor (torch.Tensor), got {shown(value)} ({type(value).__name__})",
        )
    if value.layout != torch.strided:
        raise bad_argument(
            name,
            zh=f"需要普通的稠密张量，收到的布局是 {value.layout}",
            en=f"it must be an ordinary dense tensor, got layout {value.layout}",
        )
    if value.dim() != dims:
        got = tuple(value.shape)
        raise bad_argument(
            name,
            zh=f"需要 {dims} 维，收到的是 {value.dim()} 维，形状 {got}",
            en=f"it must have {dims} dimension{'s' if dims > 1 else ''}, got {value.dim()}, shape {got}",
        )
    if value.numel() == 0:
        got = tuple(value.shape)
        raise bad_argument(name, zh=f"它是空的，形状 {got}", en=f"it is empty, shape {got}")
    return value


def _require_same(name: str, tensor: torch.Tensor, first_name: str, first: torch.Tensor) -> None:
    if tensor.dtype != first.dtype:
        raise bad_argument(
            name,
            zh=f"数据类型要和 {first_name} 一样是 {_dtype(first)}，收到的是 {_dtype(tensor)}",
            en=f"its dtype must be that of {first_name}, {_dtype(first)}, got {_dtype(tensor)}",
        )
    if tensor.device != first.device:
        raise bad_argument(
            name,
            zh=f"要和 {first_name} 在同一个设备 {first.device} 上，它在 {tensor.device} 上",
            en=f"it must be on the device of {first_name}, {first.device}, and is on {tensor.device}",
        )


def _require_no_gradient(name: str, tensor: torch.Tensor) -> None:
    import torch

    if tensor.requires_grad and torch.is_grad_enabled():
        raise bad_argument(
            name,
            zh="它要求梯度，而这里的核函数只有前向；请放进 torch.no_grad() 里，或用 .detach()",
            en="it requires grad, and the kernels here are forward only; use torch.no_grad() or .detach()",
        )


def _require_contiguous_rows(name: str, tensor: torch.Tensor) -> None:
    if tensor.shape[-1] > 1 and tensor.stride(-1) != 1:
        raise bad_argument(
            name,
            zh=f"最后一维要连续（步长为 1），收到的步长是 {tuple(tensor.stride())}；可以用 .contiguous()",
            en=f"its last dimension must be contiguous (stride 1), got strides {tuple(tensor.stride())}; "
            "use .contiguous()",
        )


def _require_device(name: str, tensor: torch.Tensor, setup: TritonSetup) -> None:
    if tensor.device.type == setup.device:
        return
    if setup.on_gpu:
        raise bad_argument(
            name,
            zh=f"它在 {tensor.device} 上，而核函数在 GPU 上运行；请用 .to('cuda') 搬过去",
            en=f"it is on {tensor.device}, and kernels run on the GPU here; move it with .to('cuda')",
        )
    raise bad_argument(
        name,
        zh=f"它在 {tensor.device} 上，而这里用解释器在 CPU 上运行核函数；请用 .to('cpu') 搬过来",
        en=f"it is on {tensor.device}, and the interpreter runs kernels on the CPU here; move it with .to('cpu')",
    )


def _require_bf16(name: str, dtype: DtypeName, setup: TritonSetup, dot: bool) -> None:
    if dtype != "bf16" or (setup.bf16_dot if dot else setup.bf16):
        return
    if setup.mode == "interpreter":
        raise bad_argument(
            name,
            zh="Triton 的解释器算 bfloat16 的 dot 会悄悄出错；请用 float16 或 float32，或者换到 GPU 上",
            en="Triton's interpreter gets dot of bfloat16 silently wrong; use float16 or float32, or a GPU",
        )
    capability = ".".join(map(str, setup.capability or ("?",)))
    raise bad_argument(
        name,
        zh=f"这块 GPU（计算能力 {capability}）没有 bfloat16，要 8.0 以上；请用 float16 或 float32",
        en=f"this GPU (compute capability {capability}) has no bfloat16, which needs 8.0; use float16 or float32",
    )


# -- where the elements lie ------------------------------------------------------------------------------------


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses from the first element's to the byte past the last one's."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + int(last + 1) * tensor.element_size()


def _pitch(tensor: torch.Tensor) -> int | None:
    """Bytes from a row to the next, of a matrix of contiguous rows; else ``None``."""
    if tensor.dim() != 2 or (tensor.shape[1] > 1 and tensor.stride(1) != 1):
        return None
    return int(tensor.stride(0) * tensor.element_size()) or None


def _row_bytes(tensor: torch.Tensor) -> int:
    return int(tensor.shape[-1] * tensor.element_size())


def _overlaps_itself(tensor: torch.Tensor) -> bool:
    return bool(tensor.dim() > 1 and tensor.shape[0] > 1 and tensor.stride(0) < tensor.shape[1])


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
