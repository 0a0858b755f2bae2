"""What a kernel needs at the least, by the formulas of lesson 02, where no compiler can be asked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lessons_lib.base.gpus import Gpu
from lessons_lib.kernels.launch import ELEMENT_BYTES, DtypeName, KernelName
from lessons_lib.reuse.gemm import accumulator_registers, resident_buffers, tile_operand_bytes


@dataclass(frozen=True)
class Estimate:
    """Lower bounds: ``registers`` a thread for one fp32 value of each element of its tile; ``shared_bytes`` a block."""

    registers: int
    shared_bytes: int


def estimate_needs(
    kernel: KernelName, gpu: Gpu, dtype: DtypeName, tile: tuple[int, ...], num_warps: int, num_stages: int
) -> Estimate:
    """Registers for the tile itself (a GEMM's accumulator; not on sm_100), shared memory for a GEMM's operands.

    Addresses, operands and every other value come on top, a reduction takes a few bytes of shared memory.
    """
    if kernel == "linear":
        block_m, block_n, block_k = tile
        buffers = resident_buffers(gpu, num_stages)
        operands = tile_operand_bytes(block_m, block_n, block_k, buffers, ELEMENT_BYTES[dtype])
        accumulator = accumulator_registers(gpu, block_m, block_n, num_warps)
        return Estimate(accumulator["registers_per_thread"], operands["total_bytes"])
    return Estimate(-(-math.prod(tile) // (num_warps * gpu.warp_size)), 0)
