"""Q2: a tile against a local budget, and the reads that a resident tile avoids."""

from __future__ import annotations

from typing import TypedDict

from lessons_lib.base.units import divided_up, quotient
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


class ProducedReuse(TypedDict):
    """What ``produced_reuse`` returns."""

    fits_onchip: bool
    avoided_write_bytes: int
    avoided_read_bytes: int
    avoided_bytes: int
    budget_utilization: float


def produced_reuse(tile_bytes: int, reuse_count: int, onchip_budget_bytes: int) -> ProducedReuse:
    """As ``onchip_reuse``, for a tile that is *produced* on chip and not read from memory.

    ``avoided_bytes = tile_bytes x (reuse_count + 1)`` if the tile fits, else 0: neither the one write nor any of the
    reads reaches memory. That is two tiles more than a tile that is only read, whose first read remains: fusing a
    producer with its consumer (Q1's ``2 x tile`` a boundary) is this function with ``reuse_count = 1``.

    Args:
        tile_bytes: size of the tile in bytes, at least 1.
        reuse_count: how often the tile is read after it was produced, at least 1.
        onchip_budget_bytes: what the tile may occupy, in bytes, at least 1.

    Returns:
        ``fits_onchip``; ``avoided_write_bytes`` (one tile) and ``avoided_read_bytes`` (``reuse_count`` tiles) in
        bytes; ``avoided_bytes``, their sum; ``budget_utilization``, the quotient tile / budget.

    Assumes what ``onchip_reuse`` does, and that nothing outside the kernel needs the tile: an output is written
    all the same, which leaves the reads as savings.

    Raises:
        ValueError: an argument is not an integer (``True`` and ``1.0`` are none) or is below 1.
    """
    read = onchip_reuse(tile_bytes, reuse_count, onchip_budget_bytes)
    writes = int(tile_bytes) if read["fits_onchip"] else 0
    reads = writes * int(reuse_count)
    return {
        "fits_onchip": read["fits_onchip"],
        "avoided_write_bytes": writes,
        "avoided_read_bytes": reads,
        "avoided_bytes": writes + reads,
        "budget_utilization": read["budget_utilization"],
    }


class ReuseComparison(TypedDict):
    """What ``compare_reuse`` returns."""

    fits_onchip: bool
    read_tile_avoided_bytes: int
    produced_tile_avoided_bytes: int


def compare_reuse(tile_bytes: int, reuse_count: int, onchip_budget_bytes: int) -> ReuseComparison:
    """The same tile, read ``reuse_count`` times: come from memory, or produced on chip.

    Returns:
        ``fits_onchip``; ``read_tile_avoided_bytes``: ``tile x (reuse_count - 1)``, see ``onchip_reuse``;
        ``produced_tile_avoided_bytes``: ``tile x (reuse_count + 1)``, see ``produced_reuse``; both 0 if it does not
        fit.

    Raises:
        ValueError: as ``onchip_reuse``.
    """
    read = onchip_reuse(tile_bytes, reuse_count, onchip_budget_bytes)
    produced = produced_reuse(tile_bytes, reuse_count, onchip_budget_bytes)
    return {
        "fits_onchip": read["fits_onchip"],
        "read_tile_avoided_bytes": read["avoided_read_bytes"],
        "produced_tile_avoided_bytes": produced["avoided_bytes"],
    }


class Retiling(TypedDict):
    """What ``retile`` returns."""

    fits_whole: bool
    pieces: int
    piece_bytes: int
    last_piece_bytes: int
    avoided_whole_bytes: int
    avoided_read_bytes: int
    budget_utilization: float


def retile(tile_bytes: int, reuse_count: int, onchip_budget_bytes: int) -> Retiling:
    """Cut a tile into the fewest equal pieces that fit the budget, one after another: what does that avoid?

    ``pieces = ceil(tile / budget)`` of ``ceil(tile / pieces)`` bytes each; where that leaves a remainder the last
    piece is smaller, as the last, masked block of a kernel is. Each piece is read from memory once and then found on
    chip, so together they avoid ``tile_bytes x (reuse_count - 1)``: all that the whole tile would have avoided had it
    fitted. A tile that does not fit is no verdict on a fusion: a smaller tile fits any budget of at least 1 byte.

    Args:
        tile_bytes, reuse_count, onchip_budget_bytes: as in ``onchip_reuse``.

    Returns:
        ``fits_whole``: no cut is needed (then ``pieces`` is 1); ``pieces``; ``piece_bytes``: of each but perhaps the
        last; ``last_piece_bytes``; ``avoided_whole_bytes``: reads avoided without a cut; ``avoided_read_bytes``:
        reads avoided by all pieces together; ``budget_utilization``: piece / budget, at most 1.

    Assumes that all ``reuse_count`` readers can work on one piece before the next is loaded, as elementwise
    operators and the blocks of a GEMM can. A reader that needs the whole tile at once (the maximum of a row) has to
    carry a partial result from piece to piece, or reads the tile again. Smaller pieces may also raise the number of
    times that *other* operands are read: see ``reuse.gemm``.

    Raises:
        ValueError: as ``onchip_reuse``.
    """
    whole = onchip_reuse(tile_bytes, reuse_count, onchip_budget_bytes)
    size, budget = int(tile_bytes), int(onchip_budget_bytes)
    pieces = divided_up(size, budget)
    piece = divided_up(size, pieces)
    last = size - (pieces - 1) * piece  # at least 1, for with one piece fewer the tile would not have fitted
    return {
        "fits_whole": whole["fits_onchip"],
        "pieces": pieces,
        "piece_bytes": piece,
        "last_piece_bytes": last,
        "avoided_whole_bytes": whole["avoided_read_bytes"],
        "avoided_read_bytes": size * (int(reuse_count) - 1),
        "budget_utilization": quotient(piece, budget),
    }
