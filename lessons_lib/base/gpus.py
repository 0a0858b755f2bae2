"""GPUs by their datasheets: peak rates, memory and the limits of one multiprocessor, each value with its source.

Rates are decimal and dense (no sparsity): 312 TFLOP/s is ``312e12``, 1555 GB/s is ``1555e9``. Bytes are bytes.
A value for which we found no vendor document, or documents that disagree, is listed in ``Gpu.unsure``; whoever shows
it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Generic, Literal, TypeVar

from lessons_lib.base.units import KIB, MIB
from lessons_lib.base.validate import bad_argument, require_choice, shown

Vendor = Literal["NVIDIA", "AMD"]


@dataclass(frozen=True, repr=False)
class Gpu:
    """What a vendor states; a kernel reaches less.

    "SM" is NVIDIA's multiprocessor and AMD's compute unit (CU), "warp" NVIDIA's warp and AMD's wavefront, "block"
    NVIDIA's thread block and AMD's workgroup, "shared" NVIDIA's shared memory and AMD's LDS.

    Args:
        name: as a learner knows it.
        vendor: ``"NVIDIA"`` or ``"AMD"``.
        target: what a compiler calls it: ``sm_75``, ``gfx942``.
        memory_kind: of the device memory: ``GDDR6``, ``HBM2``, ...
        bandwidth: of the device memory, bytes per second.
        fp32_flops: fp32 operations per second outside the tensor cores.
        tensor_flops: dense fp16 operations per second of the tensor cores, fp32 accumulation; bf16 runs at the same
            rate where ``bf16`` is true.
        bf16: whether the tensor cores know bfloat16.
        sm_count: multiprocessors.
        l2_bytes: L2 cache of the whole GPU.
        shared_bytes_per_block: the most that one block may have, opted in to where the vendor asks for that.
        shared_bytes_per_sm: what the blocks resident on one SM share.
        shared_allocation_unit: bytes to which a block's shared memory is rounded up.
        shared_reserved_per_block: bytes that the system takes from the SM for each block, on top of what it asks for.
        warp_size: threads of a warp.
        warps_per_sm, threads_per_sm, blocks_per_sm: the most resident on one SM; ``None``: not known.
        threads_per_block: the most in one block.
        registers_per_sm: 32-bit registers; on all NVIDIA GPUs here also the most for one block.
        register_allocation_unit: registers to which the need of one warp is rounded up.
        max_registers_per_thread: beyond it a compiler spills.
        sources: field -> the document that its value comes from.
        unsure: fields whose value is the best we found, but no vendor's plain statement.
    """

    name: str
    vendor: Vendor
    target: str
    memory_kind: str
    bandwidth: float
    fp32_flops: float
    tensor_flops: float
    bf16: bool
    sm_count: int
    l2_bytes: int
    shared_bytes_per_block: int
    shared_bytes_per_sm: int
    shared_allocation_unit: int
    shared_reserved_per_block: int
    warp_size: int
    warps_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int | None
    threads_per_block: int
    registers_per_sm: int
    register_allocation_unit: int
    max_registers_per_thread: int
    sources: Mapping[str, str] = field(compare=False)
    unsure: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"Gpu({self.name!r})"

    @property
    def source(self) -> str:
        """The documents behind bandwidth and tensor rate, each once."""
        return "; ".join(dict.fromkeys((self.sources["bandwidth"], self.sources["tensor_flops"])))

    def source_of(self, name: str) -> str:
        """The document that field ``name`` comes from.

        Raises:
            ValueError: there is no such field, or it is no figure (``name``, ``vendor``, ``target``).
        """
        require_choice("name", name, FIGURES)
        return self.sources[name]

    def is_unsure(self, name: str) -> bool:
        """Whether field ``name`` must be shown as unsure.

        Raises:
            ValueError: as ``source_of``.
        """
        require_choice("name", name, FIGURES)
        return name in self.unsure


FIGURES = tuple(
    entry.name for entry in fields(Gpu) if entry.name not in ("name", "vendor", "target", "sources", "unsure")
)


def require_gpu(name: str, value: object) -> Gpu:
    """``value`` itself, if it is a ``Gpu``.

    Raises:
        ValueError: it is something else, a GPU's name included; the message says where to find the GPUs.
    """
    if isinstance(value, Gpu):
        return value
    raise bad_argument(
        name,
        zh=f"需要一个 Gpu（例如 GPUS['T4']），收到的是 {shown(value)}（{type(value).__name__}）",
        en=f"it must be a Gpu (GPUS['T4'], say), got {shown(value)} ({type(value).__name__})",
    )


# -- building one, so that each figure stands beside its source ----------------------------------------------

_T = TypeVar("_T", covariant=True)


@dataclass(frozen=True)
class _Stated(Generic[_T]):
    """A figure and the document that states it; ``sure=False``: the best we have, but not a vendor's statement."""

    value: _T
    source: str
    sure: bool = True


@dataclass(frozen=True)
class _Limits:
    """What all GPUs of one compile target have in common."""

    vendor: Vendor
    target: str
    bf16: _Stated[bool]
    shared_bytes_per_block: _Stated[int]
    shared_bytes_per_sm: _Stated[int]
    shared_allocation_unit: _Stated[int]
    shared_reserved_per_block: _Stated[int]
    warp_size: _Stated[int]
    warps_per_sm: _Stated[int]
    threads_per_sm: _Stated[int]
    blocks_per_sm: _Stated[int | None]
    threads_per_block: _Stated[int]
    registers_per_sm: _Stated[int]
    register_allocation_unit: _Stated[int]
    max_registers_per_thread: _Stated[int]


def _gpu(
    name: str,
    limits: _Limits,
    *,
    memory_kind: _Stated[str],
    bandwidth: _Stated[float],
    fp32_flops: _Stated[float],
    tensor_flops: _Stated[float],
    sm_count: _Stated[int],
    l2_bytes: _Stated[int],
) -> Gpu:
    product: dict[str, _Stated[object]] = {
        "memory_kind": memory_kind,
        "bandwidth": bandwidth,
        "fp32_flops": fp32_flops,
        "tensor_flops": tensor_flops,
        "sm_count": sm_count,
        "l2_bytes": l2_bytes,
    }
    stated = product | {entry: getattr(limits, entry) for entry in FIGURES if entry not in product}
    return Gpu(
        name=name,
        vendor=limits.vendor,
        target=limits.target,
        memory_kind=memory_kind.value,
        bandwidth=bandwidth.value,
        fp32_flops=fp32_flops.value,
        tensor_flops=tensor_flops.value,
        bf16=limits.bf16.value,
        sm_count=sm_count.value,
        l2_bytes=l2_bytes.value,
        shared_bytes_per_block=limits.shared_bytes_per_block.value,
        shared_bytes_per_sm=limits.shared_bytes_per_sm.value,
        shared_allocation_unit=limits.shared_allocation_unit.value,
        shared_reserved_per_block=limits.shared_reserved_per_block.value,
        warp_size=limits.warp_size.value,
        warps_per_sm=limits.warps_per_sm.value,
        threads_per_sm=limits.threads_per_sm.value,
        blocks_per_sm=limits.blocks_per_sm.value,
        threads_per_block=limits.threads_per_block.value,
        registers_per_sm=limits.registers_per_sm.value,
        register_allocation_unit=limits.register_allocation_unit.value,
        max_registers_per_thread=limits.max_registers_per_thread.value,
        sources={entry: stated[entry].source for entry in FIGURES},
        unsure=frozenset(entry for entry in FIGURES if not stated[entry].sure),
    )


# -- NVIDIA --------------------------------------------------------------------------------------------------

_GUIDE = (
    "NVIDIA CUDA C++ Programming Guide, Compute Capabilities, table Technical Specifications per Compute Capability"
)
_FEATURES = "NVIDIA CUDA C++ Programming Guide, Compute Capabilities, table Feature Support per Compute Capability"
_HEADER = "NVIDIA cuda_occupancy.h (CUDA 13.1, in Triton 3.7.1's wheel)"
_RESERVED = (
    "NVIDIA Ampere, Ada, Hopper and Blackwell tuning guides: CUDA reserves 1 KB of shared memory per thread block"
)


def _nvidia(
    target: str, *, bf16: bool, shared_kib_per_block: int, shared_kib_per_sm: int, warps: int, blocks: int
) -> _Limits:
    ampere_or_later = target != "sm_75"
    return _Limits(
        vendor="NVIDIA",
        target=target,
        bf16=_Stated(bf16, _FEATURES),
        shared_bytes_per_block=_Stated(shared_kib_per_block * KIB, _GUIDE),
        shared_bytes_per_sm=_Stated(shared_kib_per_sm * KIB, _GUIDE),
        shared_allocation_unit=_Stated(128 if ampere_or_later else 256, _HEADER),
        shared_reserved_per_block=_Stated(KIB, _RESERVED) if ampere_or_later else _Stated(0, _HEADER),
        warp_size=_Stated(32, _GUIDE),
        warps_per_sm=_Stated(warps, _GUIDE),
        threads_per_sm=_Stated(warps * 32, _GUIDE),
        blocks_per_sm=_Stated(blocks, _GUIDE),
        threads_per_block=_Stated(1024, _GUIDE),
        registers_per_sm=_Stated(65_536, _GUIDE),
        register_allocation_unit=_Stated(256, _HEADER),
        max_registers_per_thread=_Stated(255, _GUIDE),  # the header allows 256; no compiler emits that many
    )


_SM_75 = _nvidia("sm_75", bf16=False, shared_kib_per_block=64, shared_kib_per_sm=64, warps=32, blocks=16)
_SM_80 = _nvidia("sm_80", bf16=True, shared_kib_per_block=163, shared_kib_per_sm=164, warps=64, blocks=32)
_SM_86 = _nvidia("sm_86", bf16=True, shared_kib_per_block=99, shared_kib_per_sm=100, warps=48, blocks=16)
_SM_89 = _nvidia("sm_89", bf16=True, shared_kib_per_block=99, shared_kib_per_sm=100, warps=48, blocks=24)
_SM_90 = _nvidia("sm_90", bf16=True, shared_kib_per_block=227, shared_kib_per_sm=228, warps=64, blocks=32)
_SM_100 = _nvidia("sm_100", bf16=True, shared_kib_per_block=227, shared_kib_per_sm=228, warps=64, blocks=32)

_TURING = "NVIDIA Turing GPU Architecture whitepaper, WP-09183-001, appendix on Tesla T4"
T4 = _gpu(
    "T4",
    _SM_75,
    memory_kind=_Stated("GDDR6", _TURING),
    bandwidth=_Stated(320e9, _TURING),
    fp32_flops=_Stated(8.1e12, _TURING),
    tensor_flops=_Stated(65e12, _TURING),
    sm_count=_Stated(40, _TURING),
    l2_bytes=_Stated(4 * MIB, _TURING),
)

_A10_SHEET = "NVIDIA A10 Tensor Core GPU datasheet"
A10 = _gpu(
    "A10",
    _SM_86,
    memory_kind=_Stated("GDDR6", _A10_SHEET),
    bandwidth=_Stated(600e9, _A10_SHEET),
    fp32_flops=_Stated(31.2e12, _A10_SHEET),
    tensor_flops=_Stated(125e12, _A10_SHEET),
    sm_count=_Stated(72, f"{_A10_SHEET}: 72 RT cores, and GA102 has one in each SM"),
    l2_bytes=_Stated(6 * MIB, "NVIDIA Ampere GA102 GPU Architecture whitepaper: GA102 has 6144 KB"),
)

_L4_SHEET = "NVIDIA L4 Tensor Core GPU datasheet"
L4 = _gpu(
    "L4",
    _SM_89,
    memory_kind=_Stated("GDDR6", _L4_SHEET),
    bandwidth=_Stated(300e9, _L4_SHEET),
    fp32_flops=_Stated(30.3e12, _L4_SHEET),
    tensor_flops=_Stated(121e12, f"{_L4_SHEET}: 242 with sparsity, half of it dense"),
    sm_count=_Stated(58, "deviceQuery on an L4, bottlerocket-kernel-kit pull request 139: no datasheet", sure=False),
    l2_bytes=_Stated(48 * MIB, "NVIDIA Ada GPU Architecture whitepaper: AD104 has 49152 KB"),
)

_AMPERE = "NVIDIA A100 Tensor Core GPU Architecture whitepaper, V1.0, table of A100 40 GB specifications"
A100 = _gpu(
    "A100 (40 GB)",
    _SM_80,
    memory_kind=_Stated("HBM2", _AMPERE),
    bandwidth=_Stated(1555e9, _AMPERE),
    fp32_flops=_Stated(19.5e12, _AMPERE),
    tensor_flops=_Stated(312e12, _AMPERE),
    sm_count=_Stated(108, _AMPERE),
    l2_bytes=_Stated(40 * MIB, _AMPERE),
)

_H100_SHEET = "NVIDIA H100 Tensor Core GPU datasheet, column H100 SXM"
_HOPPER = "NVIDIA H100 Tensor Core GPU Architecture whitepaper, table of H100 SXM5 specifications"
H100 = _gpu(
    "H100 SXM",
    _SM_90,
    memory_kind=_Stated("HBM3", _HOPPER),
    bandwidth=_Stated(3350e9, _H100_SHEET),
    fp32_flops=_Stated(67e12, _H100_SHEET),
    tensor_flops=_Stated(989e12, f"{_H100_SHEET}: 1,979 with sparsity, half of it dense"),
    sm_count=_Stated(132, _HOPPER),
    l2_bytes=_Stated(50 * MIB, _HOPPER),
)

_H200_SHEET = "NVIDIA H200 Tensor Core GPU datasheet, column H200 SXM"
_AS_H100 = "taken from the H100 SXM, which has the same GH100 chip: the H200 datasheet does not state it"
H200 = _gpu(
    "H200",
    _SM_90,
    memory_kind=_Stated("HBM3e", _H200_SHEET),
    bandwidth=_Stated(4800e9, _H200_SHEET),
    fp32_flops=_Stated(67e12, _H200_SHEET),
    tensor_flops=_Stated(989e12, f"{_H200_SHEET}: 1,979 with sparsity, half of it dense"),
    sm_count=_Stated(132, _AS_H100, sure=False),
    l2_bytes=_Stated(50 * MIB, _AS_H100, sure=False),
)

_B200_SHEET = "NVIDIA HGX B200 and DGX B200 specifications, an eighth of the eight GPUs"
_B200_QUERY = "device query of a B200, pytorch/ao pull request 4002"
B200 = _gpu(
    "B200",
    _SM_100,
    memory_kind=_Stated("HBM3e", _B200_SHEET),
    bandwidth=_Stated(8000e9, f"{_B200_SHEET}: up to 8 TB/s; {_B200_QUERY} computes 7.67 TB/s", sure=False),
    fp32_flops=_Stated(
        80e12, "reported from NVIDIA's Blackwell architecture brief, HGX B200 at 1,000 W; not read", sure=False
    ),
    tensor_flops=_Stated(2250e12, f"{_B200_SHEET}: 4.5 PFLOP/s with sparsity, half of it dense"),
    sm_count=_Stated(148, f"{_B200_QUERY}: no datasheet", sure=False),
    l2_bytes=_Stated(126 * MIB, f"NVIDIA Blackwell Tuning Guide: 126 MB; {_B200_QUERY} says 126.5 MiB", sure=False),
)

# -- AMD -----------------------------------------------------------------------------------------------------

_MI300X_SHEET = "AMD Instinct MI300X Accelerator data sheet"
_ROCM = "AMD ROCm documentation, AMD GPU specifications, row MI300X"
_LLVM = "LLVM, User Guide for AMDGPU Backend, code object and kernel descriptor of gfx90a and gfx942"
_LLVM_WAVES = "LLVM's AMDGPU backend: 8 waves a SIMD and 4 SIMDs a CU since gfx90a; no AMD datasheet"

_GFX942 = _Limits(
    vendor="AMD",
    target="gfx942",
    bf16=_Stated(True, _MI300X_SHEET),
    shared_bytes_per_block=_Stated(64 * KIB, _ROCM),
    shared_bytes_per_sm=_Stated(64 * KIB, _ROCM),
    shared_allocation_unit=_Stated(512, _LLVM, sure=False),
    shared_reserved_per_block=_Stated(0, "no document mentions a reservation", sure=False),
    warp_size=_Stated(64, _ROCM),
    warps_per_sm=_Stated(32, _LLVM_WAVES, sure=False),
    threads_per_sm=_Stated(2048, f"32 x 64; {_LLVM_WAVES}", sure=False),
    blocks_per_sm=_Stated(None, "no document found", sure=False),
    threads_per_block=_Stated(1024, "LLVM, User Guide for AMDGPU Backend, amdgpu-flat-work-group-size"),
    registers_per_sm=_Stated(131_072, f"{_ROCM}: a VGPR file of 512 KiB"),
    register_allocation_unit=_Stated(512, f"{_LLVM}: VGPRs in steps of 8, in each of 64 lanes"),
    max_registers_per_thread=_Stated(512, f"{_LLVM}: architectural and accumulation VGPRs together"),
)

MI300X = _gpu(
    "MI300X",
    _GFX942,
    memory_kind=_Stated("HBM3", _MI300X_SHEET),
    bandwidth=_Stated(5300e9, _MI300X_SHEET),
    fp32_flops=_Stated(163.4e12, _MI300X_SHEET),
    tensor_flops=_Stated(1307e12, f"{_MI300X_SHEET}: 1307.4"),
    sm_count=_Stated(304, _ROCM),
    l2_bytes=_Stated(32 * MIB, f"{_ROCM}: 4 MiB in each of 8 dies, and a die sees its own only"),
)

GPUS = {gpu.name: gpu for gpu in (T4, A10, L4, A100, H100, H200, B200, MI300X)}
