"""Where a graph's operators, tensors and edges stand in its picture: the same for every grouping.

From top to bottom: operators in rows (``layers``), beneath each row the strip of memory in which their results lie if
they are written, beside the graph inputs that the next row reads. Every edge has two ways to its reader, from the
tensor's box in memory and from its capsule on chip; they differ at most where they begin. All lines are horizontal or
vertical and keep clear of all boxes.

Pure: the standard library and this package only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.picture.channels import Crossing, assign_tracks, spread_out
from lessons_lib.graph.picture.folding import Folding, Repeat
from lessons_lib.graph.picture.layers import (
    BESIDE_LANE,
    BETWEEN_INPUTS,
    BETWEEN_LANES,
    BETWEEN_OPS,
    BETWEEN_TENSORS,
    Layers,
    Slot,
    layers_of,
    op_width,
)
from lessons_lib.graph.picture.places import (
    Box as Box,
    FoldPlace as FoldPlace,
    InputPlace as InputPlace,
    Layout as Layout,
    Point as Point,
    Route as Route,
    TensorPlace as TensorPlace,
)
from lessons_lib.graph.picture.sketch import Node, Wire
from lessons_lib.show.measure import CARD_WIDTH, MARGIN

TOP = 142.0
"""Pixels above the first strip: title, numbers, legend."""
OP_HEIGHT, TENSOR_HEIGHT, CAPSULE_HEIGHT = 28.0, 22.0, 18.0

_WRITE_GAP = 21.0  # from an operator to its tensors: room for the write arrow
_TRACK, _FIRST_TRACK, _LAST_TRACK = 12.0, 9.0, 17.0
STREET_ABOVE, STREET_BELOW = 11.5, 13.0  # from the operators' edges: clear of outlines and of the strip below
_NARROWEST_GAP = 11.0  # between two boxes, for a corridor to pass
_FOLD_HEAD, _FOLD_FOOT = 30.0, 12.0
_BOTTOM = 22.0
_LEFT, _RIGHT = MARGIN + 8.0, CARD_WIDTH - MARGIN - 8.0
_PASSES = 10
_PORT_LEFT, _PORT_RIGHT = 24.0, 14.0  # a kernel's number stands at the top left corner
_ROUNDS = 3  # ends and starts of wires move towards each other so often
_NEARLY = 9.0  # pixels off the straight line that are taken away
_FARS = (10, 5, 3, 2)  # rows that a wire may be long, tried in this order
_MOST_LANES = 10  # beside each other in one row, before that counts as crowded


def layout_of(graph: OpGraph, folding: Folding | None = None) -> Layout:
    """The places of a graph, or of what a folding shows of it; the same graph always gets the same ones."""
    folding = folding or Folding(graph.launching, (), tuple(range(len(graph.edges))))
    known: dict[tuple[str, ...], Layout] = graph.__dict__.setdefault("_layouts", {})
    if folding.shown not in known:
        known[folding.shown] = _Placing(graph, _fitting_layers(graph, folding)).layout()
    return known[folding.shown]


def _fitting_layers(graph: OpGraph, folding: Folding) -> Layers:
    """Rows in order; where long wires make them too crowded, tensors are drawn again above their readers instead."""
    for far in _FARS:
        layers = layers_of(graph, folding, far)
        layers.sketch.order_rows()
        nodes = layers.sketch.nodes
        rows = [[nodes[index] for index in row] for row in layers.sketch.rows]
        if all(_needed(row) <= _RIGHT - _LEFT and sum(n.kind == "lane" for n in row) <= _MOST_LANES for row in rows):
            break
    return layers


def _needed(row: Sequence[Node]) -> float:
    """Pixels that a row takes."""
    return sum(node.width for node in row) + sum(_between(a, b) for a, b in pairwise(row))


class _Placing:
    def __init__(self, graph: OpGraph, layers: Layers) -> None:
        self.graph, self.layers, self.sketch = graph, layers, layers.sketch
        self.nodes, self.wires = self.sketch.nodes, self.sketch.wires
        self.x = [0.0] * len(self.nodes)
        self.slot_shift = {
            slot.tensor: shift for slots in layers.slots.values() for slot, shift in _slot_shifts(slots)
        }
        self.slots = {slot.tensor: slot for slots in layers.slots.values() for slot in slots}
        self.targets = [0.0] * len(self.wires)  # where each wire ends
        self.starts: list[tuple[float, float]] = [(0.0, 0.0)] * len(self.wires)  # from memory, from the capsule

    def layout(self) -> Layout:
        self._place_nodes()
        for _ in range(_ROUNDS):
            self._place_ends()
            self._place_starts()
        for number in range(len(self.wires)):
            self._straighten(number)
        tracks, counts = self._tracks()
        tops = self._tops(counts)
        return self._finished(tracks, tops)

    # -- from left to right ----------------------------------------------------------------------------------

    def _place_nodes(self) -> None:
        for row in self.sketch.rows:
            self._settle(row, [CARD_WIDTH / 2] * len(row), [1.0] * len(row))
        for number in range(_PASSES):
            down = number % 2 == 0
            for row in self.sketch.rows if down else reversed(self.sketch.rows):
                self._pull(row, above=down or number >= _PASSES - 2, below=not down or number >= _PASSES - 2)
        self._straighten_lanes()
        left = min(self.x[i] - node.width / 2 for i, node in enumerate(self.nodes))
        right = max(self.x[i] + node.width / 2 for i, node in enumerate(self.nodes))
        self.x = [round(x + (CARD_WIDTH - left - right) / 2, 1) for x in self.x]

    def _pull(self, row: Sequence[int], *, above: bool, below: bool) -> None:
        """Move a row's nodes to where their wires are straight, as far as they can all be."""
        wished, weights = [], []
        for index in row:
            total, pulled = 0.02, 0.02 * self.x[index]
            node = self.nodes[index]
            for wires, towards_source in ((node.ins if above else [], True), (node.outs if below else [], False)):
                for number in wires:
                    wire = self.wires[number]
                    weight = self._weight(wire)
                    source = self.x[wire.source] + self._out_shift(wire)
                    target = self.x[wire.target] + self._in_shift(wire)
                    move = source - target if towards_source else target - source
                    total, pulled = total + weight, pulled + weight * (self.x[index] + move)
            wished.append(pulled / total)
            weights.append(total)
        self._settle(row, wished, weights)

    def _straighten_lanes(self) -> None:
        """Move the lanes of each long wire to one line, as far as their neighbours leave room, the longest wire first."""
        chains: list[list[int]] = []
        for index, node in enumerate(self.nodes):
            if node.kind == "lane" and self.nodes[self.wires[node.ins[0]].source].kind != "lane":
                chain = [index]
                while self.nodes[below := self.wires[self.nodes[chain[-1]].outs[0]].target].kind == "lane":
                    chain.append(below)
                chains.append(chain)
        place = self.sketch.places()
        for chain in sorted(chains, key=lambda chain: -len(chain)):
            while chain:
                chain = self._straighten_chain(chain, place)

    def _straighten_chain(self, chain: list[int], place: Sequence[int]) -> list[int]:
        """Align as many lanes from the first one on as have a line in common; returns the others."""
        low, high, count = -math.inf, math.inf, 0
        for index in chain:
            left, right = self._leeway(index, place)
            if max(low, left) > min(high, right):
                break
            low, high, count = max(low, left), min(high, right), count + 1
        first, last = self.wires[self.nodes[chain[0]].ins[0]], self.wires[self.nodes[chain[count - 1]].outs[0]]
        ends = (self.x[first.source] + self._out_shift(first), self.x[last.target] + self._in_shift(last))
        middle = sum(self.x[index] for index in chain[:count]) / count
        wish = min(ends, key=lambda x: abs(min(max(x, low), high) - x) + 0.1 * abs(x - middle))
        for index in chain[:count]:
            self.x[index] = round(min(max(wish, low), high), 1)
        return chain[count:]

    def _leeway(self, index: int, place: Sequence[int]) -> tuple[float, float]:
        """How far left and right a lane may move."""
        row, node = self.sketch.rows[self.nodes[index].row], self.nodes[index]
        left, right = _LEFT, _RIGHT
        if place[index] > 0:
            other = row[place[index] - 1]
            left = self.x[other] + self.nodes[other].width / 2 + _between(self.nodes[other], node)
        if place[index] < len(row) - 1:
            other = row[place[index] + 1]
            right = self.x[other] - self.nodes[other].width / 2 - _between(node, self.nodes[other])
        return min(left, self.x[index]), max(right, self.x[index])

    def _weight(self, wire: Wire) -> float:
        kinds = {self.nodes[wire.source].kind, self.nodes[wire.target].kind}
        return 0.15 if kinds & {"input", "again"} else 6.0 if kinds == {"lane"} else 2.0 if "lane" in kinds else 3.0

    def _out_shift(self, wire: Wire) -> float:
        return self.slot_shift.get(wire.tensor, 0.0) if self.nodes[wire.source].kind == "op" else 0.0

    def _in_shift(self, wire: Wire) -> float:
        """Where a wire ends, from its reader's middle: its readers' wires side by side, in the order they come from."""
        node = self.nodes[wire.target]
        if node.kind == "lane" or len(node.ins) == 1:
            return 0.0
        order = sorted(node.ins, key=lambda number: self.x[self.wires[number].source])
        step = min(18.0, (op_width(self.graph.op(node.name)) - 40) / max(1, len(order) - 1))
        place = next(i for i, number in enumerate(order) if self.wires[number] is wire)
        return step * (place - (len(order) - 1) / 2)

    def _settle(self, row: Sequence[int], wished: Sequence[float], weights: Sequence[float]) -> None:
        if not row:
            return
        nodes = [self.nodes[index] for index in row]
        spare = _RIGHT - _LEFT - sum(node.width for node in nodes)
        between = [_between(a, b) for a, b in pairwise(nodes)]
        shrunk = max(0.1, min(1.0, spare / sum(between))) if between else 1.0
        gaps = [
            0.0,
            *((a.width + b.width) / 2 + shrunk * gap for (a, b), gap in zip(pairwise(nodes), between, strict=True)),
        ]
        low, high = _LEFT + nodes[0].width / 2, _RIGHT - nodes[-1].width / 2
        for index, x in zip(row, spread_out(wished, weights, gaps, low, high), strict=True):
            self.x[index] = round(x, 1)

    def _place_ends(self) -> None:
        """Where wires end at the upper edge of their readers: straight below where they start, if that fits."""
        for index, node in enumerate(self.nodes):
            if node.kind == "lane":
                for number in node.ins:
                    self.targets[number] = self.x[index]
            elif node.ins:
                half = self._op_width(node) / 2
                low, high = self.x[index] - half + _PORT_LEFT, self.x[index] + half - _PORT_RIGHT
                ordered = sorted(node.ins, key=lambda number: (self._start(number), number))
                gap = min(18.0, (high - low) / max(1, len(ordered) - 1))
                wished = [self._start(number) for number in ordered]
                ends = spread_out(wished, [1.0] * len(ordered), [gap] * len(ordered), low, high)
                for number, x in zip(ordered, ends, strict=True):
                    self.targets[number] = round(x, 1)

    def _start(self, number: int) -> float:
        wire = self.wires[number]
        known = self.starts[number][1]
        return known or self.x[wire.source] + self._out_shift(wire)

    def _place_starts(self) -> None:
        """Where wires start at the lower edge of a capsule and of a box in memory."""
        for index, node in enumerate(self.nodes):
            by_tensor: dict[str, list[int]] = {}
            for number in node.outs:
                by_tensor.setdefault(self.wires[number].tensor, []).append(number)
            for tensor, numbers in by_tensor.items():
                if node.kind == "lane":
                    chip = memory = [self.x[index]] * len(numbers)
                elif node.kind in ("input", "again"):
                    chip = memory = self._spread(numbers, self.x[index], node.width)
                else:
                    slot, middle = self.slots[tensor], self.x[index] + self.slot_shift[tensor]
                    if slot.apart:
                        left, right = _apart(slot, middle)
                        chip = self._spread(numbers, left, slot.capsule)
                        memory = self._spread(numbers, right, slot.memory)
                    else:
                        chip = memory = self._spread(numbers, middle, min(slot.capsule, slot.memory))
                for number, m, c in zip(numbers, memory, chip, strict=True):
                    self.starts[number] = (m, c)

    def _spread(self, numbers: Sequence[int], middle: float, width: float) -> list[float]:
        """Starts within a box, as near to the ends of their wires as they can be."""
        order = sorted(range(len(numbers)), key=lambda i: (self.targets[numbers[i]], i))
        low, high = middle - width / 2 + 8, middle + width / 2 - 8
        gap = min(16.0, (high - low) / max(1, len(numbers) - 1))
        wished = [self.targets[numbers[i]] for i in order]
        found = [0.0] * len(numbers)
        for i, x in zip(order, spread_out(wished, [1.0] * len(order), [gap] * len(order), low, high), strict=True):
            found[i] = round(x, 1)
        return found

    def _straighten(self, number: int) -> None:
        """Move the end of a wire that is nearly straight right below its start, if its neighbours leave room."""
        wire, (memory, chip) = self.wires[number], self.starts[number]
        node, end = self.nodes[wire.target], self.targets[number]
        if node.kind == "lane" or memory != chip or not 0.5 <= abs(chip - end) < _NEARLY:
            return
        half = self._op_width(node) / 2
        others = [self.targets[other] for other in node.ins if other != number]
        near_edge = min(chip - self.x[wire.target] + half - 20, self.x[wire.target] + half - 10 - chip)
        if near_edge >= 0 and all(abs(other - chip) >= 11 and (other < chip) == (other < end) for other in others):
            self.targets[number] = chip

    def _op_width(self, node: Node) -> float:
        return self.layers.op_widths[node.name] if node.kind == "op" else node.width

    # -- from top to bottom ----------------------------------------------------------------------------------

    def _tracks(self) -> tuple[list[int], list[int]]:
        """The track of each wire, and how many there are beneath each row."""
        tracks, counts = [0] * len(self.wires), []
        for row in self.sketch.rows:
            numbers = [number for index in row for number in self.nodes[index].outs]
            crossings = [Crossing(tuple(set(self.starts[n])), self.targets[n]) for n in numbers]
            found, count = assign_tracks(crossings)
            for number, track in zip(numbers, found, strict=True):
                tracks[number] = track
            counts.append(count)
        return tracks, counts

    def _tops(self, counts: Sequence[int]) -> list[_RowTops]:
        y, tops = TOP, []
        heads = {fold.first for fold in self.layers.folds}
        feet = {fold.last for fold in self.layers.folds}
        for number, row in enumerate(self.sketch.rows):
            kinds = {self.nodes[index].kind for index in row}
            y += _FOLD_HEAD if number in heads else 0.0
            op = y
            y += OP_HEIGHT if kinds & {"op", "next"} else 0.0
            tensor = y + (_WRITE_GAP if "op" in kinds else 0.0)
            has_strip = bool(kinds & {"op", "input", "again"})
            y = tensor + TENSOR_HEIGHT if has_strip else y
            tops.append(_RowTops(op, tensor, y, has_strip, bool(kinds & {"op", "next"})))
            if number < len(self.sketch.rows) - 1 and (row or number in heads):
                y += _FIRST_TRACK + _TRACK * max(0, counts[number] - 1) + _LAST_TRACK
            y += _FOLD_FOOT if number in feet else 0.0
        return tops

    # -- the result ------------------------------------------------------------------------------------------

    def _finished(self, tracks: Sequence[int], tops: Sequence[_RowTops]) -> Layout:
        ops, nexts, tensors = dict[str, Box](), dict[str, Box](), dict[str, TensorPlace]()
        again = dict[int, Box]()
        for index, node in enumerate(self.nodes):
            if node.kind in ("op", "next"):
                width = self._op_width(node)
                box = Box(round(self.x[index] - width / 2, 1), tops[node.row].op, width, OP_HEIGHT)
                (ops if node.kind == "op" else nexts)[node.name] = box
            if node.kind == "op":
                for slot in self.layers.slots[node.name]:
                    middle = self.x[index] + self.slot_shift[slot.tensor]
                    tensors[slot.tensor] = _tensor_place(slot, middle, tops[node.row].tensor, ops[node.name])
            if node.kind == "again":
                left = round(self.x[index] - node.width / 2, 1)
                again[self.wires[node.outs[0]].edge] = Box(left, tops[node.row].tensor, node.width, TENSOR_HEIGHT)
        strips = tuple(
            Box(MARGIN, top.tensor - 5, CARD_WIDTH - 2 * MARGIN, TENSOR_HEIGHT + 10) for top in tops if top.has_strip
        )
        streets, passages = self._streets(tops)
        return Layout(
            height=round(max(top.bottom for top in tops) + _BOTTOM),
            ops=MappingProxyType(ops),
            nexts=MappingProxyType(nexts),
            tensors=MappingProxyType(tensors),
            edges=MappingProxyType(self._routes(tracks, tops)),
            inputs=self._inputs(tracks, tops),
            again=MappingProxyType(again),
            strips=strips,
            folds=tuple(self._fold_place(fold.repeat, fold.first, fold.last, tops) for fold in self.layers.folds),
            streets=streets,
            passages=passages,
        )

    def _routes(self, tracks: Sequence[int], tops: Sequence[_RowTops]) -> dict[int, Route]:
        routes = {}
        for number, wire in enumerate(self.wires):
            if wire.edge >= 0 and self.nodes[wire.source].kind in ("op", "again"):
                memory, chip = self.starts[number]
                place = tops[self.nodes[wire.source].row].tensor
                lift = (TENSOR_HEIGHT - CAPSULE_HEIGHT) / 2
                routes[wire.edge] = Route(
                    self._way(number, memory, place + TENSOR_HEIGHT, tracks, tops),
                    self._way(number, chip, place + TENSOR_HEIGHT - lift, tracks, tops),
                )
        return routes

    def _way(
        self, number: int, x: float, y: float, tracks: Sequence[int], tops: Sequence[_RowTops]
    ) -> tuple[Point, ...]:
        """From a start through lanes to the reader."""
        points = [(x, y)]
        while True:
            wire = self.wires[number]
            target = self.targets[number]
            if abs(target - points[-1][0]) >= 0.5:
                track = tops[self.nodes[wire.source].row].bottom + _FIRST_TRACK + _TRACK * tracks[number]
                points += [(points[-1][0], track), (target, track)]
            node = self.nodes[wire.target]
            if node.kind != "lane":
                return (*points, (points[-1][0], tops[node.row].op))
            number = node.outs[0]

    def _inputs(self, tracks: Sequence[int], tops: Sequence[_RowTops]) -> tuple[InputPlace, ...]:
        found, seen = list[InputPlace](), set[str]()
        for index, node in sorted(enumerate(self.nodes), key=lambda item: (item[1].row, item[0])):
            if node.kind == "input":
                top = tops[node.row].tensor
                box = Box(round(self.x[index] - node.width / 2, 1), top, node.width, TENSOR_HEIGHT)
                reads = tuple(
                    (self.wires[n].reader, self._way(n, self.starts[n][0], box.bottom, tracks, tops))
                    for n in node.outs
                )
                found.append(InputPlace(node.tensors, box, node.name in seen, reads))
                seen.add(node.name)
        return tuple(found)

    def _fold_place(self, repeat: Repeat, first: int, last: int, tops: Sequence[_RowTops]) -> FoldPlace:
        top = tops[first].op - _FOLD_HEAD + 4
        bottom = tops[last].bottom + _FOLD_FOOT - 2
        return FoldPlace(repeat, Box(MARGIN - 9, top, CARD_WIDTH - 2 * MARGIN + 18, bottom - top))

    def _streets(self, tops: Sequence[_RowTops]) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
        """Above and below each row's operators, and between their boxes down from one to the other."""
        streets, passages = list[float](), list[tuple[float, ...]]()
        with_ops = [number for number, top in enumerate(tops) if top.has_ops]
        for number, after in pairwise([*with_ops, len(tops)]):
            streets += [tops[number].op - STREET_ABOVE, tops[number].op + OP_HEIGHT + STREET_BELOW]
            below = [index for row in self.sketch.rows[number:after] for index in row]
            passages += [self._gaps(self.sketch.rows[number]), self._gaps(below)]
        return tuple(streets), tuple(passages[:-1])

    def _gaps(self, nodes: Sequence[int]) -> tuple[float, ...]:
        """The middles of the gaps between boxes, and beside the outermost ones."""
        halves = ((self.x[i], self.nodes[i].width / 2) for i in nodes if self.nodes[i].kind != "lane")
        found, left = [], MARGIN + 2.0
        for low, high in [*sorted((x - half, x + half) for x, half in halves), (CARD_WIDTH - left, CARD_WIDTH)]:
            if low - left > _NARROWEST_GAP:
                found.append(round((left + low) / 2, 1))
            left = max(left, high)
        return tuple(found)


@dataclass(frozen=True)
class _RowTops:
    """Of a row: the upper edges of its operators and of its tensors, and its lower edge."""

    op: float
    tensor: float
    bottom: float
    has_strip: bool
    has_ops: bool


def _between(left: Node, right: Node) -> float:
    """Pixels between two neighbours of a row."""
    kinds = {left.kind, right.kind}
    if "lane" in kinds:
        return BETWEEN_LANES if kinds == {"lane"} else BESIDE_LANE
    given = kinds & {"input", "again"}
    return BETWEEN_OPS if not given else BETWEEN_INPUTS if kinds <= {"input", "again"} else BETWEEN_TENSORS + 4


def _slot_shifts(slots: Sequence[Slot]) -> list[tuple[Slot, float]]:
    """How far each tensor's room is from its operator's middle."""
    x = -(sum(slot.width for slot in slots) + 14.0 * (len(slots) - 1)) / 2
    found = []
    for slot in slots:
        found.append((slot, x + slot.width / 2))
        x += slot.width + 14.0
    return found


def _apart(slot: Slot, middle: float) -> tuple[float, float]:
    """The middles of a capsule and of the box in memory beside it."""
    left = middle - slot.width / 2
    return left + slot.capsule / 2, left + slot.capsule + BETWEEN_TENSORS + slot.memory / 2


def _tensor_place(slot: Slot, middle: float, top: float, op: Box) -> TensorPlace:
    capsule, memory = _apart(slot, middle) if slot.apart else (middle, middle)
    lift = (TENSOR_HEIGHT - CAPSULE_HEIGHT) / 2
    return TensorPlace(
        Box(round(memory - slot.memory / 2, 1), top, slot.memory, TENSOR_HEIGHT),
        Box(round(capsule - slot.capsule / 2, 1), top + lift, slot.capsule, CAPSULE_HEIGHT),
        write=round(min(max(memory, op.left + 12), op.right - 12), 1),
        link=round(min(max(capsule, op.left + 10), op.right - 10), 1),
        apart=slot.apart,
    )
