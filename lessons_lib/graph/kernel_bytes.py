"""What one kernel reads and writes: each tensor once, and what it must read again.

A kernel reads again in two cases, both explained in ``grouping``: a row that does not fit on chip is read once for
each pass over it, and two chained GEMMs read their right operands once for each block of rows. Internal to this floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessons_lib.base.units import divided_up
from lessons_lib.graph.spaces import row_count
from lessons_lib.graph.wiring import Read, Wiring


@dataclass(frozen=True)
class KernelBytes:
    """Root -> bytes read and written by one kernel, re-reads included; ``passes``: over a row that does not fit."""

    reads: dict[int, int]
    writes: dict[int, int]
    passes: int

    @property
    def total(self) -> int:
        """Bytes read and written."""
        return sum(self.reads.values()) + sum(self.writes.values())


def kernel_bytes(wiring: Wiring, ops: Sequence[int], budget: int, block_rows: int) -> KernelBytes:
    """The bytes of a kernel of ``ops`` (ascending) with ``budget`` bytes on chip for a block."""
    made = wiring.made_by(ops)
    reads = wiring.read_bytes(ops, made)
    written = wiring.written(ops)
    writes = {root: wiring.sizes[root] for root in written}
    passes = 1
    if len(ops) > 1:
        chain = gemm_chain(wiring, ops)
        if chain is not None:
            for read, extra in _operand_rereads(wiring, chain, made, block_rows):
                reads[read.root] += extra
        elif longest_row(wiring, ops) > budget:
            again = row_rereads(wiring, ops)
            passes = 1 + max(again.values(), default=0)
            for root, times in again.items():
                size = reads.get(root, wiring.sizes[root])
                reads[root] = reads.get(root, 0) + times * size
    return KernelBytes(reads, writes, passes)


# -- rows -----------------------------------------------------------------------------------------------------


def longest_row(wiring: Wiring, ops: Sequence[int]) -> int:
    """Bytes of the longest row that a reduction among ``ops`` reads; 0 if there is none."""
    return max((wiring.row_bytes[op] for op in ops if wiring.kinds[op] == "reduction"), default=0)


def row_rereads(wiring: Wiring, ops: Sequence[int]) -> dict[int, int]:
    """Root -> how many times more than once it is read if rows do *not* stay on chip; empty: one pass is enough.

    The *level* of an operator is the number of reductions that must be finished before it. A reduction, and an operator
    whose full-size result is written, goes over its rows at its own level; what it needs from earlier operators is
    computed again from memory, or read back if the kernel wrote it at an earlier level.
    """
    reductions = [op for op in ops if wiring.kinds[op] == "reduction"]
    if not reductions:
        return {}
    inside, written = set(ops), set(wiring.written(ops))
    level = _levels(wiring, ops, inside)
    stream = RowStream(wiring, reductions)
    needed: dict[int, set[int]] = {}
    for op in ops:
        goes_over_rows = op in reductions or any(
            root in written and stream.full(wiring.numels[root]) for root in wiring.outs[op]
        )
        if goes_over_rows:
            _collect(wiring, op, level, inside, written, stream, needed)
    made = wiring.made_by(ops)
    # What the kernel made and wrote itself is read back at every level that is noted; a tensor from memory, but once.
    times = {root: len(levels) - (root not in made) for root, levels in needed.items()}
    return {root: count for root, count in times.items() if count}


class RowStream:
    """Which tensors are gone over row by row: those with more than a value a row and more than a row."""

    def __init__(self, wiring: Wiring, reductions: list[int]) -> None:
        first = reductions[0]
        form = wiring.structures[first]
        assert form is not None
        self.rows = row_count(form)
        self.row = wiring.reads[first][0].numel // max(1, self.rows)

    def full(self, numel: int) -> bool:
        return numel > self.rows and (self.rows == 1 or numel > self.row)


def _levels(wiring: Wiring, ops: Sequence[int], inside: set[int]) -> dict[int, int]:
    level: dict[int, int] = {}
    for op in ops:  # ascending, so that predecessors come first
        before = (p for p in wiring.preds[op] if p in inside)
        level[op] = max((level[p] + (wiring.kinds[p] == "reduction") for p in before), default=0)
    return level


def _collect(
    wiring: Wiring,
    sink: int,
    level: dict[int, int],
    inside: set[int],
    written: set[int],
    stream: RowStream,
    needed: dict[int, set[int]],
) -> None:
    """Note what going over the rows for ``sink`` reads, at the level of ``sink``."""
    stack, seen = [sink], {sink}
    while stack:
        for read in wiring.reads[stack.pop()]:
            producer = wiring.producer[read.root]
            if not stream.full(read.numel) and not stream.full(wiring.numels[read.root]):
                continue
            if producer not in inside:
                needed.setdefault(read.root, set()).add(level[sink])
            elif wiring.kinds[producer] == "reduction":
                continue
            elif read.root in written and level[producer] < level[sink]:
                needed.setdefault(read.root, set()).add(level[sink])
            elif producer not in seen:
                seen.add(producer)
                stack.append(producer)


# -- two GEMMs, one behind the other --------------------------------------------------------------------------


def gemm_chain(wiring: Wiring, ops: Sequence[int]) -> tuple[int, int] | None:
    """The two GEMMs of a kernel whose second takes its left operand, directly or not, from the first."""
    gemms = [op for op in ops if wiring.kinds[op] == "gemm"]
    if len(gemms) != 2:
        return None
    first, second = gemms
    inside, stack, seen = set(ops), [wiring.producer[wiring.reads[second][0].root]], set[int]()
    while stack:
        op = stack.pop()
        if op == first:
            return first, second
        if op in inside and op not in seen:
            seen.add(op)
            stack.extend(wiring.preds[op])
    return None


def block_count(wiring: Wiring, gemm: int, block_rows: int) -> int:
    """How many blocks of rows a matrix multiplication goes through, in one matrix of its batch."""
    left = wiring.reads[gemm][0].shape
    return divided_up(left[-2], block_rows) if len(left) > 1 else 1


def _operand_rereads(
    wiring: Wiring, chain: tuple[int, int], made: set[int], block_rows: int
) -> list[tuple[Read, int]]:
    """The right operands from memory, and what reading them once a block adds to reading them once."""
    blocks = max(1, block_count(wiring, chain[0], block_rows))
    rights = [wiring.reads[gemm][1] for gemm in chain]
    return [
        (read, blocks * read.bytes - min(read.bytes, wiring.sizes[read.root]))
        for read in rights
        if read.root not in made
    ]
