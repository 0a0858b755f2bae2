"""Q2: how many blocks of a kernel are resident on one SM, by NVIDIA's own rules.

The rules are those of NVIDIA's ``cuda_occupancy.h`` for compute capability 7.5 to 10.0, with all of an SM's shared
memory available to blocks (the largest carve-out) and one barrier a block; tests hold this module to that header.
AMD counts otherwise (two kinds of registers, waves per SIMD), so an AMD GPU is refused rather than computed wrongly.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from lessons_lib.base.gpus import Gpu, require_gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import divided_up, quotient
from lessons_lib.base.validate import bad_argument, require_int

Limiter = Literal["warps", "registers", "shared_memory", "blocks"]

_SUB_PARTITIONS = 4  # each has its own quarter of the registers: cuda_occupancy.h, 7.x to 10.x

NOT_MODELLED = Text(
    zh="这里的占用率按 NVIDIA 的规则计算；AMD 的规则不同（两类寄存器、按 SIMD 计 wave），本课程没有实现，"
    "也不会拿 NVIDIA 的公式代替",
    en="occupancy is computed by NVIDIA's rules here; AMD's differ (two kinds of registers, waves per SIMD), this "
    "course does not model them, and NVIDIA's formula does not stand in for them",
)


class BlockLimits(TypedDict):
    """Blocks that one SM could hold if each resource were the only one; ``None``: it does not limit at all."""

    warps: int
    registers: int
    shared_memory: int | None
    blocks: int


class Occupancy(TypedDict):
    """What ``occupancy`` returns."""

    launches: bool
    blocks_per_sm: int
    active_warps: int
    occupancy: float
    limiters: tuple[Limiter, ...]
    block_limits: BlockLimits
    warps_per_block: int
    allocated_registers_per_block: int
    allocated_shared_bytes_per_block: int


def is_modelled(gpu: Gpu) -> bool:
    """Whether ``occupancy`` knows the rules of this GPU's vendor.

    Raises:
        ValueError: ``gpu`` is not a ``Gpu``.
    """
    return require_gpu("gpu", gpu).vendor == "NVIDIA"


def occupancy(
    gpu: Gpu, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int = 0
) -> Occupancy:
    """Blocks resident on one SM, the share of warp slots they fill, and what limits them.

    ``blocks_per_sm`` is the least of four:

    - warps: ``warps_per_sm // warps`` with ``warps = ceil(threads / 32)``;
    - registers: each warp takes ``registers x 32`` rounded up to 256, from one of four quarters of the register
      file: ``4 x (16384 // that) // warps``;
    - shared memory: ``shared_bytes_per_sm // (asked + reserved)``, rounded up to 256 B (7.x) or 128 B (8.0 on), with
      0 (7.x) or 1 KiB (8.0 on) reserved; 0 if a block asks for more than the opt-in limit;
    - blocks: the SM's own limit.

    Args:
        gpu: an NVIDIA ``Gpu``.
        threads_per_block: at least 1; more than the GPU's limit (1024) does not launch.
        registers_per_thread: as the compiler reports, from 1 to 255 (what needs more is spilled by the compiler).
        shared_bytes_per_block: static and dynamic together, in bytes, 0 or more.

    Returns:
        ``launches``: at least one block fits; ``blocks_per_sm``; ``active_warps`` on one SM; ``occupancy``: active
        warps / warp slots, from 0 to 1; ``limiters``: which of ``"warps"``, ``"registers"``, ``"shared_memory"``,
        ``"blocks"`` give the least (for a kernel that does not launch: those that forbid it); ``block_limits``: the
        four numbers, ``shared_memory`` being ``None`` where a block takes none; ``warps_per_block``;
        ``allocated_registers_per_block`` and ``allocated_shared_bytes_per_block``: after rounding and reservation.

    Assumes a grid large enough to fill the SM, no clusters and one barrier a block. Higher occupancy hides more
    latency, it is no measure of speed.

    Raises:
        ValueError: ``gpu`` is not a ``Gpu`` or not from NVIDIA (``is_modelled`` asks first), or an argument is not
            an integer (``True`` and ``1.0`` are none) or is out of range.

    Source: NVIDIA ``cuda_occupancy.h``, ``cudaOccMaxActiveBlocksPerMultiprocessor``.
    """
    if not is_modelled(gpu):
        raise bad_argument("gpu", zh=f"{gpu.name}：{NOT_MODELLED.zh}", en=f"{gpu.name}: {NOT_MODELLED.en}")
    threads = require_int("threads_per_block", threads_per_block, 1)
    registers = require_int("registers_per_thread", registers_per_thread, 1, gpu.max_registers_per_thread)
    shared = require_int("shared_bytes_per_block", shared_bytes_per_block, 0)

    warps = divided_up(threads, gpu.warp_size)
    registers_per_warp = _rounded_up(registers * gpu.warp_size, gpu.register_allocation_unit)
    allocated_shared = _rounded_up(shared + gpu.shared_reserved_per_block, gpu.shared_allocation_unit)
    limits: BlockLimits = {
        "warps": gpu.warps_per_sm // warps if threads <= gpu.threads_per_block else 0,
        "registers": _SUB_PARTITIONS * (gpu.registers_per_sm // _SUB_PARTITIONS // registers_per_warp) // warps,
        "shared_memory": _shared_limit(gpu, allocated_shared),
        "blocks": _known_block_limit(gpu),
    }
    per_resource: dict[Limiter, int | None] = {
        "warps": limits["warps"],
        "registers": limits["registers"],
        "shared_memory": limits["shared_memory"],
        "blocks": limits["blocks"],
    }
    blocks = min(limit for limit in per_resource.values() if limit is not None)
    return {
        "launches": blocks > 0,
        "blocks_per_sm": blocks,
        "active_warps": blocks * warps,
        "occupancy": quotient(blocks * warps, gpu.warps_per_sm),
        "limiters": tuple(name for name, limit in per_resource.items() if limit == blocks),
        "block_limits": limits,
        "warps_per_block": warps,
        "allocated_registers_per_block": registers_per_warp * warps,
        "allocated_shared_bytes_per_block": allocated_shared,
    }


def _shared_limit(gpu: Gpu, allocated: int) -> int | None:
    if allocated > gpu.shared_bytes_per_block + gpu.shared_reserved_per_block:
        return 0
    return gpu.shared_bytes_per_sm // allocated if allocated else None


def _known_block_limit(gpu: Gpu) -> int:
    if gpu.blocks_per_sm is None:
        raise bad_argument(
            "gpu",
            zh=f"{gpu.name} 的 blocks_per_sm 未知，无法计算占用率",
            en=f"blocks_per_sm of {gpu.name} is not known, so there is no occupancy",
        )
    return gpu.blocks_per_sm


def _rounded_up(count: int, step: int) -> int:
    return step * divided_up(count, step)
