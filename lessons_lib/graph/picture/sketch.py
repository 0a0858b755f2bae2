"""What a picture of a graph consists of before it has positions: nodes in rows, and wires between them.

A row has two halves: operators above, and below them the tensors that they make, beside the graph inputs that the next
row reads. Wires lead from the tensors of a row to the operators of the next one; a longer wire passes the rows between
as *lanes*. The method is that of layered drawing (K. Sugiyama et al., 1981): rows first, then the order within each row,
by barycentres and exchanges of neighbours, so that few wires cross.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

NodeKind = Literal["op", "next", "input", "again", "lane"]

_SWEEPS = 12
_MOST_EXCHANGED = 400  # nodes up to which neighbours are exchanged, after the sweeps


@dataclass
class Node:
    """An operator with its tensors, the next copy's operator, graph inputs, a tensor drawn again, or a wire on its way.

    ``width`` in pixels; ``ins`` and ``outs`` are positions in ``Sketch.wires``, a lane has one of each.
    """

    kind: NodeKind
    name: str
    row: int
    width: float
    tensors: tuple[str, ...] = ()
    ins: list[int] = field(default_factory=list)
    outs: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Wire:
    """From a node to one in the next row: part of edge ``edge`` of the graph (-1: of a graph input) to ``reader``."""

    source: int
    target: int
    tensor: str
    edge: int
    reader: str


@dataclass
class Sketch:
    """Nodes, wires between neighbouring rows, and the nodes of each row from left to right; rows count from 0."""

    nodes: list[Node] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)

    def add(self, node: Node) -> int:
        """Put a node at the right end of its row."""
        while len(self.rows) <= node.row:
            self.rows.append([])
        self.nodes.append(node)
        self.rows[node.row].append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def connect(self, source: int, target: int, tensor: str, edge: int) -> None:
        """Wires from one node to another below it, with a lane in each row between."""
        last, reader = source, self.nodes[target].name
        for row in range(self.nodes[source].row + 1, self.nodes[target].row):
            lane = self.add(Node("lane", "", row, 0.0))
            self._wire(Wire(last, lane, tensor, edge, reader))
            last = lane
        self._wire(Wire(last, target, tensor, edge, reader))

    def _wire(self, wire: Wire) -> None:
        self.wires.append(wire)
        self.nodes[wire.source].outs.append(len(self.wires) - 1)
        self.nodes[wire.target].ins.append(len(self.wires) - 1)

    # -- the order within rows -------------------------------------------------------------------------------

    def order_rows(self) -> None:
        """Order each row so that few wires cross; the same sketch is always ordered the same way."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(_SWEEPS):
            if fewest == 0:
                break
            self._sweep(down=sweep % 2 == 0)
            if len(self.nodes) <= _MOST_EXCHANGED:
                self._exchange()
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def places(self) -> list[int]:
        """Node -> its place in its row."""
        place = [0] * len(self.nodes)
        for row in self.rows:
            for index, node in enumerate(row):
                place[node] = index
        return place

    def above(self, node: int) -> list[int]:
        """The nodes that its wires come from."""
        return [self.wires[wire].source for wire in self.nodes[node].ins]

    def below(self, node: int) -> list[int]:
        """The nodes that its wires lead to."""
        return [self.wires[wire].target for wire in self.nodes[node].outs]

    def _sweep(self, *, down: bool) -> None:
        place = [float(p) for p in self.places()]
        for row in self.rows if down else reversed(self.rows):
            key = {}
            for node in row:
                near = self.above(node) if down else self.below(node)
                key[node] = sum(place[other] for other in near) / len(near) if near else place[node]
            row.sort(key=lambda node: (key[node], place[node]))
            for index, node in enumerate(row):
                place[node] = index

    def _exchange(self) -> None:
        """Exchange neighbours as long as that takes crossings away."""
        place = self.places()
        for row in self.rows:
            improved = True
            while improved:
                improved = False
                for index in range(len(row) - 1):
                    left, right = row[index], row[index + 1]
                    if self._gain(left, right, place) > 0:
                        row[index], row[index + 1] = right, left
                        place[left], place[right] = index + 1, index
                        improved = True

    def _gain(self, left: int, right: int, place: Sequence[int]) -> int:
        """Crossings that go when two neighbours change places."""
        gain = 0
        for near in (self.above, self.below):
            mine, theirs = [place[n] for n in near(left)], [place[n] for n in near(right)]
            gain += sum((a > b) - (a < b) for a in mine for b in theirs)
        return gain

    def _crossings(self) -> int:
        place, total = self.places(), 0
        for row in self.rows:
            ends = sorted((place[node], place[other]) for node in row for other in self.below(node))
            total += _inversions([target for _, target in ends])
        return total


def _inversions(values: Sequence[int]) -> int:
    """Pairs in the wrong order, counted while sorting by halves."""
    if len(values) < 2:
        return 0
    if len(values) <= 12:
        return sum(a > b for index, a in enumerate(values) for b in values[index + 1 :])
    half = len(values) // 2
    count = _inversions(values[:half]) + _inversions(values[half:])
    left, right = sorted(values[:half]), sorted(values[half:])
    index = 0
    for value in right:
        while index < len(left) and left[index] <= value:
            index += 1
        count += len(left) - index
    return count
