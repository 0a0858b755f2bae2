"""Q2: a tile against a local budget, and the reads that a resident tile avoids."""

from __future__ import annotations

from typing import TypedDict

from lessons_lib.base.units import quotient
from lessons_lib.base.validate import require_int


class OnchipReuse(TypedDict):
    """What ``onchip_reuse`` returns."""

    fits_onchip: bool
    avoided_read_bytes: int
    budget_utilization: float


def onchip_reuse(tile_bytes: int, reuse_count: int, onchip_budget_bytes: int) -> OnchipReuse:
    """Does a tile fit the on-chip budget, and how many bytes of logical reads does it avoid there?

    ``avoided_read_bytes = tile_bytes x (reuse_count - 1)`` if the tile fits, else 0: the first read has to
    come from memory, the others find the tile on chip. A tile exactly as large as the budget fits.

    Args:
        tile_bytes: size of the tile in bytes, at least 1.
        reuse_count: how often the tile is read in all, the first time included; at least 1.
        onchip_budget_bytes: what the tile may occupy, in bytes, at least 1.

    Returns:
        ``fits_onchip``; ``avoided_read_bytes`` in bytes; ``budget_utilization``, the quotient tile / budget
        (above 1 when the tile does not fit).

    Assumes that the tile stays on chip through all its reads. Other temporaries, the granularity of
    allocation and synchronization are left out: this checks a local budget, it does not prove that a fusion
    succeeds. A tile that does not fit avoids nothing *as it is*; cut into smaller tiles it may.

    Raises:
        ValueError: an argument is not an integer (``True`` and ``1.0`` are none) or is below 1.
    """
    tile_bytes = require_int("tile_bytes", tile_bytes, 1)
    reuse_count = require_int("reuse_count", reuse_count, 1)
    onchip_budget_bytes = require_int("onchip_budget_bytes", onchip_budget_bytes, 1)
    fits = tile_bytes <= onchip_budget_bytes
    return {
        "fits_onchip": fits,
        "avoided_read_bytes": tile_bytes * (reuse_count - 1) if fits else 0,
        "budget_utilization": quotient(tile_bytes, onchip_budget_bytes),
    }
