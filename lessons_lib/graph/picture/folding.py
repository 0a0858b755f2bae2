"""Repeated layers of a graph, drawn once: which operators and edges are shown, and what each of them stands for.

Found are *tandem repeats*: runs of operators that follow each other in topological order, copy after copy, and that agree
in kinds, labels, shapes and wiring (every copy has weights of its own). Candidates for a period are the distances at
which an operator's like comes back, so that a model of thousands of operators takes a fraction of a second.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.wiring import Wiring

FEWEST_COPIES = 3
SHORTEST_RUN = 3
"""Operators of a run that is worth folding: a chain of equal operators stays as it is."""

_NEVER = 1 << 60
_MOST_SKIPPED = 6  # how often an operator's like may stand within one run, and its period be found all the same
_MOST_PERIODS = 400


@dataclass(frozen=True)
class Repeat:
    """A run of operators that comes at least three times in a row.

    Args:
        copies: the runs, each in topological order; operators at the same place of two copies are alike.
    """

    copies: tuple[tuple[str, ...], ...]

    @property
    def first(self) -> tuple[str, ...]:
        """The copy that is drawn."""
        return self.copies[0]


@dataclass(frozen=True)
class Folding:
    """What is drawn of a graph, and what it stands for.

    Args:
        shown: launching operators that are drawn, in the graph's order.
        repeats: the runs of which only the first copy is drawn.
        shown_edges: indices into ``graph.edges`` of the edges that are drawn: those whose two ends are shown, one for all
            that lead from a copy to the next, and those that lead from the last copy on.
    """

    shown: tuple[str, ...]
    repeats: tuple[Repeat, ...]
    shown_edges: tuple[int, ...]
    _ops: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: MappingProxyType({}), repr=False, compare=False
    )
    _edges: Mapping[int, tuple[int, ...]] = field(
        default_factory=lambda: MappingProxyType({}), repr=False, compare=False
    )

    def copies_of(self, op: str) -> tuple[str, ...]:
        """The same operator in every copy, in order; only itself where nothing repeats."""
        return self._ops.get(op, (op,))

    def copies_of_edge(self, index: int) -> tuple[int, ...]:
        """The same edge in every copy, or from each copy to the next; only itself where nothing repeats."""
        return self._edges.get(index, (index,))


def fold(graph: OpGraph) -> Folding:
    """The graph with each run of operators that comes three times or more shown once.

    A run has at least ``SHORTEST_RUN`` operators. The first copy may take from other operators what the later ones take
    from the copy before; the last one may be read by others, and its results may be kept.
    """
    known: dict[str, Folding] = graph.__dict__.setdefault("_foldings", {})
    if "folding" not in known:
        known["folding"] = _fold(graph)
    return known["folding"]


def _fold(graph: OpGraph) -> Folding:
    names = graph.wiring.names
    repeats = tuple(
        Repeat(tuple(names[start + k * period : start + (k + 1) * period] for k in range(copies)))
        for start, period, copies in _Search(graph).runs(0, len(names))
    )
    places = {
        name: (number, k, spot)
        for number, repeat in enumerate(repeats)
        for k, copy in enumerate(repeat.copies)
        for spot, name in enumerate(copy)
    }
    ops = {name: copies for repeat in repeats for copies in zip(*repeat.copies, strict=True) for name in copies}
    shown = tuple(name for name in names if ops.get(name, (name,))[0] == name)
    classes = _edge_classes(graph, places)
    edges = {index: members for members in classes for index in members}
    return Folding(
        shown,
        repeats,
        tuple(sorted(members[0] for members in classes)),
        MappingProxyType(ops),
        MappingProxyType(edges),
    )


def _edge_classes(graph: OpGraph, places: Mapping[str, tuple[int, int, int]]) -> list[tuple[int, ...]]:
    """The edges that are one and the same in different copies, those of the earlier copies first."""
    outputs = {tensor: place for op in graph.ops for place, tensor in enumerate(op.outputs)}
    found: dict[Hashable, list[int]] = {}
    for index, edge in enumerate(graph.edges):
        source, target = places.get(edge.producer), places.get(edge.consumer)
        key: Hashable = index
        if target is not None and (source is None or source[0] != target[0]):
            key = (edge.tensor, target[0], target[2])  # one tensor for every copy, or what only the first copy takes
        elif source is not None and target is not None:
            key = (source[0], source[2], outputs[edge.tensor], target[1] - source[1], target[2])
        found.setdefault(key, []).append(index)
    return [tuple(members) for members in found.values()]


# -- finding repeats ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Candidate:
    """A run found; the best saves the most operators, has the fewest tensors between copies, and starts early."""

    start: int
    period: int
    copies: int
    between: tuple[int, int]

    @property
    def saved(self) -> int:
        """Operators that need not be drawn."""
        return (self.copies - 1) * self.period

    @property
    def rank(self) -> tuple[int, int, tuple[int, int], int]:
        return (-self.saved, self.period, self.between, self.start)


class _Search:
    def __init__(self, graph: OpGraph) -> None:
        self.wiring = graph.wiring
        likes: dict[Hashable, int] = {}
        self.likes = [likes.setdefault(_likeness(graph, op), len(likes)) for op in range(len(self.wiring.names))]
        outs = self.wiring.outs
        self.out_place = {root: place for roots in outs for place, root in enumerate(roots)}

    def runs(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Start, period and number of copies of every repeat in a range of operators, from left to right."""
        best: _Candidate | None = None
        for period in self._periods(low, high):
            for first, last in self._alike(period, low, high):
                most = (last - first) // period * period  # saved, if all goes well
                if best is None or most >= best.saved:
                    found = self._candidate(period, first, last)
                    best = min((c for c in (best, found) if c is not None), key=lambda c: c.rank, default=None)
        if best is None:
            return
        end = best.start + best.period * best.copies
        yield from self.runs(low, best.start)
        yield best.start, best.period, best.copies
        yield from self.runs(end, high)

    def _periods(self, low: int, high: int) -> list[int]:
        """Distances between operators that are alike, the most frequent first."""
        spots: dict[int, list[int]] = {}
        for op in range(low, high):
            spots.setdefault(self.likes[op], []).append(op)
        found: Counter[int] = Counter()
        for places in spots.values():
            for skipped in range(1, 1 + _MOST_SKIPPED):
                found.update(b - a for a, b in zip(places, places[skipped:], strict=False))
        longest = (high - low) // FEWEST_COPIES
        ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return [p for p, times in ranked if SHORTEST_RUN <= p <= longest and times > 1][:_MOST_PERIODS]

    def _candidate(self, period: int, first: int, last: int) -> _Candidate | None:
        """The best run of a period where the operators ``first`` to ``last`` are each like the one a period later."""
        if self._is_chain(first, period):
            return None
        earliest = [self._earliest_start(op, period) for op in range(first, last)]
        starts = range(first, min(first + period, last - 2 * period + 1))
        ranked = sorted((-((last - s) // period), self._between(s, period), s) for s in starts)
        found: list[_Candidate] = []
        for most, between, start in ranked:
            copies = self._copies(start, period, earliest[start - first :])
            if copies >= FEWEST_COPIES:
                found.append(_Candidate(start, period, copies, between))
            if copies == 1 - most:
                break  # no other start has more copies, or less between them
        return min(found, key=lambda c: c.rank, default=None)

    def _alike(self, period: int, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Ranges of operators that are each like the one a period later, long enough for three copies."""
        likes, first = self.likes, low
        for op in range(low, high - period + 1):
            if op == high - period or likes[op] != likes[op + period]:
                if op - first >= (FEWEST_COPIES - 1) * period:
                    yield first, op
                first = op + 1

    def _earliest_start(self, op: int, period: int) -> int:
        """Where a run may start, at the earliest, for ``op`` and its like a period later to read the same things."""
        earliest = 0
        for one, other in zip(self.wiring.reads[op], self.wiring.reads[op + period], strict=True):
            earliest = max(earliest, self._same_source(one.root, other.root, period))
        return earliest

    def _same_source(self, one: int, other: int, period: int) -> int:
        producer, later = self.wiring.producer[one], self.wiring.producer[other]
        if one == other:
            return producer + 1  # one tensor for all copies: it must be made before them
        if producer < 0 and later < 0:
            return 0  # weights of their own
        shifted = producer >= 0 and later == producer + period and self.out_place[one] == self.out_place[other]
        return 0 if shifted else _NEVER

    def _copies(self, start: int, period: int, earliest: Sequence[int]) -> int:
        """How many copies there are from ``start`` on; 0 where the first one does not fit the others."""
        if not all(
            need <= start or self._enters(start + i, start, period) for i, need in enumerate(earliest[:period])
        ):
            return 0
        count = period
        while count < len(earliest) and earliest[count] <= start:
            count += 1
        copies = 1 + count // period
        for copy in range(copies):
            if copy > 0 and not self._reads_close(start, copy, period):
                return copy
            last = copy == copies - 1
            if not last and not (self._stays_close(start, copy, period) and self._weights_match(start, copy, period)):
                return copy + 1
        return copies

    def _enters(self, op: int, start: int, period: int) -> bool:
        """Whether an operator of the first copy reads from before the copies what its like reads from the first copy."""
        for one, other in zip(self.wiring.reads[op], self.wiring.reads[op + period], strict=True):
            producer, later = self.wiring.producer[one.root], self.wiring.producer[other.root]
            entry = producer < start <= later < start + period
            if not entry and self._same_source(one.root, other.root, period) > start:
                return False
        return True

    def _reads_close(self, start: int, copy: int, period: int) -> bool:
        """Whether a copy reads from itself, from the one before, and beyond that what the first copy reads, too."""
        wiring, low = self.wiring, start + copy * period
        for spot in range(period):
            for read, model in zip(wiring.reads[low + spot], wiring.reads[start + spot], strict=True):
                producer = wiring.producer[read.root]
                near = producer < 0 or low - period <= producer < low + period
                if not near and read.root != model.root:
                    return False
        return True

    def _stays_close(self, start: int, copy: int, period: int) -> bool:
        """Whether a copy that is not the last one is read by itself and the next only, and keeps what the first keeps."""
        wiring, low = self.wiring, start + copy * period
        for spot in range(period):
            roots, model = wiring.outs[low + spot], wiring.outs[start + spot]
            if any(wiring.kept[a] != wiring.kept[b] for a, b in zip(roots, model, strict=True)):
                return False
            if any(not low <= reader < low + 2 * period for root in roots for reader in wiring.readers[root]):
                return False
        return True

    def _weights_match(self, start: int, copy: int, period: int) -> bool:
        """Whether graph inputs of a copy stand for those of the next one by one."""
        wiring, pairs = self.wiring, dict[int, int]()
        for op in range(start + copy * period, start + (copy + 1) * period):
            for one, other in zip(wiring.reads[op], wiring.reads[op + period], strict=True):
                given = wiring.producer[one.root] < 0 and wiring.producer[other.root] < 0
                if given and pairs.setdefault(one.root, other.root) != other.root:
                    return False
        return len(set(pairs.values())) == len(pairs)

    def _between(self, start: int, period: int) -> tuple[int, int]:
        """Tensors and edges from a copy to the next: fewest where a layer ends."""
        wiring, end = self.wiring, start + period
        outs = (root for op in range(start, end) for root in wiring.outs[op])
        leaving = [sum(reader >= end for reader in wiring.readers[root]) for root in outs]
        return sum(count > 0 for count in leaving), sum(leaving)

    def _is_chain(self, start: int, period: int) -> bool:
        """Whether a run consists of shorter ones, too short to be worth folding."""
        run = self.likes[start : start + period]
        steps = (step for step in range(1, SHORTEST_RUN) if period % step == 0)
        return any(run[step:] == run[:-step] for step in steps)


def _likeness(graph: OpGraph, index: int) -> Hashable:
    """All that two operators must have in common but where their inputs come from."""
    wiring: Wiring = graph.wiring
    op = graph.op(wiring.names[index])
    reads = tuple(
        (
            read.shape,
            read.bytes,
            tuple((step.before, step.after, step.axes) for step in read.steps),
            wiring.dtypes[read.root],
            wiring.shapes[read.root],
        )
        for read in wiring.reads[index]
    )
    outs = tuple((wiring.shapes[root], wiring.dtypes[root], wiring.sizes[root]) for root in wiring.outs[index])
    return op.kind, "" if op.label == op.name else op.label, op.axes, op.row_bytes, op.operations, reads, outs
