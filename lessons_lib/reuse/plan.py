"""Q2 for the panel: one tile, one budget, whole or cut to fit, read from memory or produced on chip."""

from __future__ import annotations

from typing import Literal, TypedDict

from lessons_lib.base.gpus import Gpu
from lessons_lib.base.units import KIB, divided_up, quotient
from lessons_lib.base.validate import require_bool, require_choice
from lessons_lib.reuse.model import onchip_reuse, retile
from lessons_lib.reuse.occupancy import is_modelled, occupancy

Level = Literal["registers", "shared", "l2"]
LEVELS: tuple[Level, ...] = ("registers", "shared", "l2")

EXAMPLE_BUDGET = 96 * KIB

# A block as kernels often have it, to say how many are resident: its threads, and registers beside the tile's own.
BLOCK_THREADS = 256
OTHER_REGISTERS = 32


class ReusePlan(TypedDict):
    """What ``reuse_plan`` returns; bytes."""

    fits_onchip: bool
    pieces: int
    piece_bytes: int
    budget_utilization: float
    moved_bytes: int
    avoided_bytes: int


def reuse_plan(tile_bytes: int, reuse_count: int, budget_bytes: int, *, produced: bool, cut: bool) -> ReusePlan:
    """What one way of handling a tile moves and avoids.

    Args:
        tile_bytes, reuse_count, budget_bytes: as in ``onchip_reuse``.
        produced: the tile is made on chip (``reuse_count + 1`` passages through memory to avoid) instead of being
            read from memory (``reuse_count - 1`` to avoid).
        cut: cut the tile into the fewest pieces that fit, see ``retile``.

    Returns:
        ``fits_onchip``: a piece fits (without a cut the piece is the tile); ``pieces``; ``piece_bytes``;
        ``budget_utilization``: piece / budget; ``moved_bytes``: logical traffic that is left; ``avoided_bytes``.

    Raises:
        ValueError: as ``onchip_reuse``, or a switch is not a ``bool``.
    """
    whole = onchip_reuse(tile_bytes, reuse_count, budget_bytes)
    pieces = retile(tile_bytes, reuse_count, budget_bytes)
    produced, cut = require_bool("produced", produced), require_bool("cut", cut)
    fits = whole["fits_onchip"] or cut
    passages = int(reuse_count) + (1 if produced else 0)
    avoided = (passages if produced else passages - 1) * int(tile_bytes) if fits else 0
    piece = pieces["piece_bytes"] if cut else int(tile_bytes)
    return {
        "fits_onchip": fits,
        "pieces": pieces["pieces"] if cut else 1,
        "piece_bytes": piece,
        "budget_utilization": quotient(piece, int(budget_bytes)),
        "moved_bytes": passages * int(tile_bytes) - avoided,
        "avoided_bytes": avoided,
    }


def budget_of(gpu: Gpu, level: Level) -> int:
    """Bytes that one level of a GPU offers: all registers of an SM, the shared memory of a block, the whole L2.

    Raises:
        ValueError: there is no such level.
    """
    require_choice("level", level, LEVELS)
    return {
        "registers": 4 * gpu.registers_per_sm,
        "shared": gpu.shared_bytes_per_block,
        "l2": gpu.l2_bytes,
    }[level]


def resident_blocks(gpu: Gpu, level: Level, piece_bytes: int) -> int | None:
    """Blocks of ``BLOCK_THREADS`` threads on one SM when each keeps ``piece_bytes`` at ``level``.

    In shared memory each thread takes ``OTHER_REGISTERS`` registers; in registers the piece is spread over the
    threads on top of these. 0: such a block does not launch, or would spill.

    Returns ``None`` where there is no answer: the L2 belongs to no block, and AMD's rules are not modelled.
    """
    if level == "l2" or not is_modelled(gpu):
        return None
    if level == "shared":
        return occupancy(gpu, BLOCK_THREADS, OTHER_REGISTERS, piece_bytes)["blocks_per_sm"]
    registers = OTHER_REGISTERS + divided_up(piece_bytes, 4 * BLOCK_THREADS)
    if registers > gpu.max_registers_per_thread:
        return 0
    return occupancy(gpu, BLOCK_THREADS, registers)["blocks_per_sm"]
