"""Which operators could ever share a kernel: the graph falls into regions that a planner may treat one by one.

Two operators are *apart* if no legal grouping has them in one kernel: their kinds forbid it (``never_together``), or a
path leads from one to the other over an edge whose two ends are apart, so that a kernel with both would wait for
itself. Regions are what remains connected through shared tensors when apart pairs are not joined; every group of every
legal grouping lies within one. Internal to this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from lessons_lib.graph.rules import never_together
from lessons_lib.graph.wiring import Wiring

_MOST_BITS = 20_000  # operators up to which sets of ancestors are kept: n * n / 8 bytes each


class Apartness:
    """Who is apart from whom. Sets of operators are integers, one bit an operator."""

    def __init__(self, wiring: Wiring, by_hand: bool) -> None:
        self.wiring, self.by_hand = wiring, by_hand
        count = len(wiring.names)
        self.complete = count <= _MOST_BITS
        self.before = [0] * count
        """All ancestors; zeros where the graph is too large (``complete`` is false)."""
        self.cut_before = [0] * count
        """Ancestors with a path over an edge whose ends are apart."""
        self.cut_after = [0] * count
        if self.complete:
            self._fill()

    def _fill(self) -> None:
        wiring = self.wiring
        cut_edges = [
            {p for p in wiring.preds[op] if never_together(wiring, p, op, self.by_hand)}
            for op in range(len(wiring.names))
        ]
        for op, preds in enumerate(wiring.preds):
            before = cut = 0
            for p in preds:
                above = self.before[p] | 1 << p
                before |= above
                cut |= above if p in cut_edges[op] else self.cut_before[p]
            self.before[op], self.cut_before[op] = before, cut
        after = [0] * len(wiring.names)
        for op in range(len(wiring.names) - 1, -1, -1):
            cut = 0
            for s in wiring.succs[op]:
                after[op] |= after[s] | 1 << s
                cut |= (after[s] | 1 << s) if op in cut_edges[s] else self.cut_after[s]
            self.cut_after[op] = cut

    def apart(self, a: int, b: int) -> bool:
        """Whether no legal grouping has both in one kernel."""
        first, second = (a, b) if a < b else (b, a)
        return bool(self.cut_before[second] >> first & 1) or never_together(self.wiring, first, second, self.by_hand)


def find_regions(apartness: Apartness) -> list[list[int]]:
    """The regions, each ascending, in the order of their first operators."""
    wiring = apartness.wiring
    parent = list(range(len(wiring.names)))

    def top(op: int) -> int:
        while parent[op] != op:
            parent[op] = parent[parent[op]]
            op = parent[op]
        return op

    for a, b in _joined(apartness):
        parent[top(a)] = top(b)
    regions: dict[int, list[int]] = {}
    for op in range(len(wiring.names)):
        regions.setdefault(top(op), []).append(op)
    return list(regions.values())


def _joined(apartness: Apartness) -> Iterator[tuple[int, int]]:
    """Enough of the pairs that share a tensor and are not apart to connect every region."""
    wiring = apartness.wiring
    alone = {op for op, kind in enumerate(wiring.kinds) if kind == "opaque"}
    shy = 0  # GEMMs and reductions keep away from a GEMM
    for op, kind in enumerate(wiring.kinds):
        if kind in ("gemm", "reduction") and not apartness.by_hand:
            shy |= 1 << op
    for root, readers in enumerate(wiring.readers):
        producer = wiring.producer[root]
        company = [op for op in readers if op not in alone]
        if producer >= 0:
            yield from ((producer, op) for op in company if not apartness.apart(producer, op))
        yield from _joined_readers(apartness, company, shy)


def _joined_readers(apartness: Apartness, readers: list[int], shy: int) -> Iterator[tuple[int, int]]:
    waiting = 0
    for op in readers:
        waiting |= 1 << op
    while waiting:
        first = waiting & -waiting
        waiting ^= first
        stack = [first.bit_length() - 1]
        while stack:
            op = stack.pop()
            found = waiting & ~(apartness.cut_before[op] | apartness.cut_after[op])
            if apartness.wiring.kinds[op] == "gemm":
                found &= ~shy
            waiting ^= found
            for other in bits(found):
                yield op, other
                stack.append(other)


def bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def least_bytes(apartness: Apartness, region: list[int]) -> int:
    """A lower bound of the bytes that a region's kernels read and write, whatever the grouping.

    A tensor is written if it is kept or if some reader is apart from its producer (and from another region every
    reader is); it is read by as many kernels as it has readers that are apart from its producer and from each other.
    """
    wiring, inside = apartness.wiring, set(region)
    total = 0
    for root in sorted({read.root for op in region for read in wiring.reads[op]} | wiring.made_by(region)):
        producer = wiring.producer[root]
        readers = [op for op in wiring.readers[root] if op in inside]
        if producer in inside:
            readers = [op for op in readers if apartness.apart(producer, op)]
            elsewhere = any(op not in inside for op in wiring.readers[root])
            total += wiring.sizes[root] if wiring.kept[root] or readers or elsewhere else 0
        total += _least_reads(apartness, root, readers)
    return total


def _least_reads(apartness: Apartness, root: int, readers: list[int]) -> int:
    wiring = apartness.wiring
    sizes = {op: wiring.read_bytes([op], ()).get(root, 0) for op in readers}
    loners = ("opaque",) if apartness.by_hand else ("opaque", "gemm")
    chosen = [op for op in readers if wiring.kinds[op] in loners]  # all apart from each other
    for op in sorted(readers, key=lambda found: -sizes[found]):
        if len(chosen) > _MOST_COMPARED:
            break
        if op not in chosen and all(apartness.apart(op, other) for other in chosen):
            chosen.append(op)
    least = sum(sizes[op] for op in chosen)
    return max(least, max(sizes.values(), default=0))


_MOST_COMPARED = 32
