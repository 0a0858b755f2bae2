"""Q2 for a GEMM ``C[m, n] = A[m, k] B[k, n]``: what one tile occupies on chip, and how often operands are read."""

from __future__ import annotations

from typing import Literal, TypedDict

from lessons_lib.base.gpus import Gpu, require_gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import divided_up, quotient
from lessons_lib.base.validate import bad_argument, require_int

# -- operands in shared memory -------------------------------------------------------------------------------


class TileOperands(TypedDict):
    """What ``tile_operand_bytes`` returns."""

    a_bytes: int
    b_bytes: int
    bytes_per_buffer: int
    buffers: int
    total_bytes: int


def tile_operand_bytes(
    block_m: int, block_n: int, block_k: int, buffers: int = 1, element_bytes: int = 2
) -> TileOperands:
    """Shared memory that the operand tiles of one GEMM block take.

    ``buffers x element_bytes x (block_m x block_k + block_k x block_n)``.

    Args:
        block_m, block_n, block_k: the tile, at least 1 each.
        buffers: copies of both operand tiles resident at once, at least 1. This is *not* Triton's ``num_stages``:
            ``resident_buffers`` gives the one from the other.
        element_bytes: bytes of an element, at least 1 (fp16 and bf16: 2).

    Returns:
        ``a_bytes`` and ``b_bytes`` of one buffer; ``bytes_per_buffer``, their sum; ``buffers`` as given;
        ``total_bytes``. Compare the last with ``Gpu.shared_bytes_per_block``: what compiles need not launch.

    Assumes that both operands pass through shared memory, without padding, barriers (some bytes on sm_90 and later)
    or a staging buffer for the epilogue.

    Raises:
        ValueError: an argument is not an integer (``True`` and ``1.0`` are none) or is below 1.
    """
    block_m, block_n = require_int("block_m", block_m, 1), require_int("block_n", block_n, 1)
    block_k, buffers = require_int("block_k", block_k, 1), require_int("buffers", buffers, 1)
    element_bytes = require_int("element_bytes", element_bytes, 1)
    a, b = element_bytes * block_m * block_k, element_bytes * block_k * block_n
    return {
        "a_bytes": a,
        "b_bytes": b,
        "bytes_per_buffer": a + b,
        "buffers": buffers,
        "total_bytes": buffers * (a + b),
    }


_ONE_BUFFER = ("sm_75",)
_STAGES_LESS_ONE = ("sm_80", "sm_86", "sm_89", "gfx942")
_ALL_STAGES = ("sm_90", "sm_100")


def resident_buffers(gpu: Gpu, num_stages: int) -> int:
    """Buffers of the operands that Triton allocates in shared memory for a GEMM loop with ``num_stages``.

    ======================== =============================================
    sm_75                    1 (no asynchronous copies, no pipelining)
    sm_80, sm_86, sm_89      ``num_stages - 1`` from 2 on, else 1
    gfx942                   ``num_stages - 1`` from 2 on, else 1
    sm_90, sm_100            ``num_stages``
    ======================== =============================================

    Args:
        gpu: its ``target`` must be in the table.
        num_stages: as given to Triton, at least 1.

    Source: ``metadata.shared`` of a GEMM compiled ahead of time: Triton 3.6 and 3.9, and 3.7.1 for every row, sm_89
    included. On gfx942 with one stage only one of the two operands passes through shared memory: 1 is an upper bound.
    A property of those versions, not of the hardware.

    Raises:
        ValueError: ``gpu`` is not a ``Gpu`` or its target is not in the table; ``num_stages`` is not an integer or
            is below 1.
    """
    target = require_gpu("gpu", gpu).target
    stages = require_int("num_stages", num_stages, 1)
    if target in _ONE_BUFFER:
        return 1
    if target in _STAGES_LESS_ONE:
        return max(1, stages - 1)
    if target in _ALL_STAGES:
        return stages
    raise bad_argument(
        "gpu",
        zh=f"不知道 Triton 在 {target} 上为 num_stages 分配几份缓冲",
        en=f"how many buffers Triton allocates for num_stages on {target} is not known",
    )


# -- the accumulator -----------------------------------------------------------------------------------------

_IN_TENSOR_MEMORY = ("sm_100",)

TENSOR_MEMORY_NOTE = Text(
    zh="Blackwell（sm_100）的张量核心把累加器放在张量内存（tensor memory）里，不占线程的寄存器；"
    "尾声逐块读回寄存器时才占用",
    en="Blackwell's (sm_100) tensor cores keep the accumulator in tensor memory and not in the threads' registers; "
    "only the epilogue reads it back into registers, part by part",
)


class Accumulator(TypedDict):
    """What ``accumulator_registers`` returns."""

    accumulator_bytes: int
    threads: int
    values_per_thread: int
    place: Literal["registers", "tensor_memory"]
    registers_per_thread: int
    fits: bool | None
    note: Text | None


def accumulator_registers(gpu: Gpu, block_m: int, block_n: int, num_warps: int) -> Accumulator:
    """Registers that the fp32 accumulator of a GEMM tile takes from each thread.

    ``ceil(block_m x block_n / (num_warps x warp_size))``: one 32-bit register a value, spread evenly.

    Args:
        gpu: its ``warp_size`` counts (32 on NVIDIA, 64 on AMD's gfx942).
        block_m, block_n: the tile of the result, at least 1 each.
        num_warps: warps of the block, at least 1.

    Returns:
        ``accumulator_bytes`` of the whole tile; ``threads`` of the block; ``values_per_thread``, by the formula;
        ``place``: ``"registers"``, or ``"tensor_memory"`` on Blackwell (sm_100); ``registers_per_thread``:
        ``values_per_thread``, or 0 in tensor memory; ``fits``: whether that is at most
        ``Gpu.max_registers_per_thread``, with nothing left for addresses and operands, so that a kernel spills well
        before (``None`` in tensor memory, whose capacity is not modelled); ``note``: a ``Text`` on tensor memory,
        else ``None``.

    Raises:
        ValueError: ``gpu`` is not a ``Gpu``; another argument is not an integer or is below 1.
    """
    gpu = require_gpu("gpu", gpu)
    values = require_int("block_m", block_m, 1) * require_int("block_n", block_n, 1)
    threads = require_int("num_warps", num_warps, 1) * gpu.warp_size
    share = divided_up(values, threads)
    in_tensor_memory = gpu.target in _IN_TENSOR_MEMORY
    return {
        "accumulator_bytes": 4 * values,
        "threads": threads,
        "values_per_thread": share,
        "place": "tensor_memory" if in_tensor_memory else "registers",
        "registers_per_thread": 0 if in_tensor_memory else share,
        "fits": None if in_tensor_memory else share <= gpu.max_registers_per_thread,
        "note": TENSOR_MEMORY_NOTE if in_tensor_memory else None,
    }


# -- operands read again and again ---------------------------------------------------------------------------


class GemmTraffic(TypedDict):
    """What ``gemm_traffic`` returns."""

    a_reads: int
    b_reads: int
    a_bytes: int
    b_bytes: int
    c_bytes: int
    total_bytes: int
    once_bytes: int
    ratio: float


def gemm_traffic(m: int, n: int, k: int, block_m: int, block_n: int, element_bytes: int = 2) -> GemmTraffic:
    """Logical bytes of a GEMM whose result is computed tile by tile: its operands are read again for each tile.

    A tile of C needs ``block_m`` rows of A and ``block_n`` columns of B. So all of A is read ``ceil(n / block_n)``
    times, all of B ``ceil(m / block_m)`` times, and C is written once. Larger tiles never read more.

    Args:
        m, n, k: the GEMM ``C[m, n] = A[m, k] B[k, n]``, at least 1 each.
        block_m, block_n: the tile of C, at least 1 each; one larger than the matrix counts as the whole.
        element_bytes: bytes of an element of A, B and C, at least 1 (fp16: 2).

    Returns:
        ``a_reads`` and ``b_reads``: how often each operand is read in all; ``a_bytes``, ``b_bytes``, ``c_bytes`` and
        ``total_bytes`` moved; ``once_bytes``: each operand read once, C written once; ``ratio``: total / once.

    These are *logical* reads: neighbouring tiles share operands in L2, so DRAM sees less. No split of k, and masked
    elements beyond an edge are not read.

    Raises:
        ValueError: an argument is not an integer (``True`` and ``1.0`` are none) or is below 1.
    """
    m, n, k = require_int("m", m, 1), require_int("n", n, 1), require_int("k", k, 1)
    block_m, block_n = require_int("block_m", block_m, 1), require_int("block_n", block_n, 1)
    element_bytes = require_int("element_bytes", element_bytes, 1)
    a, b, c = element_bytes * m * k, element_bytes * k * n, element_bytes * m * n
    a_reads, b_reads = divided_up(n, block_n), divided_up(m, block_m)
    total, once = a * a_reads + b * b_reads + c, a + b + c
    return {
        "a_reads": a_reads,
        "b_reads": b_reads,
        "a_bytes": a * a_reads,
        "b_bytes": b * b_reads,
        "c_bytes": c,
        "total_bytes": total,
        "once_bytes": once,
        "ratio": quotient(total, once),
    }
