"""Which row of the picture each operator stands in, and how wide everything is: independent of any grouping.

Rows follow the longest path, but an operator that makes more than it reads (a mask, a scalar) moves down to its readers;
no row is wider than the card. A repeated run has rows of its own, so that a frame fits around it.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lessons_lib.base.units import format_bytes
from lessons_lib.graph.opgraph import GraphOp, OpGraph, OpKind
from lessons_lib.graph.picture.folding import Folding, Repeat
from lessons_lib.graph.picture.sketch import Node, Sketch
from lessons_lib.show.measure import BODY, CARD_WIDTH, MARGIN, SMALL, bold_width, shortened, text_width

BETWEEN_OPS = 22.0  # pixels from one operator to the next: room for the outlines of both
BETWEEN_INPUTS, BETWEEN_LANES, BESIDE_LANE, BETWEEN_TENSORS = 10.0, 14.0, 17.0, 12.0
ROOM = CARD_WIDTH - 2 * MARGIN - 16.0
ICON = 19.0
NEXT, NEXT_WIDTH = "↓ ", 16.0  # before the label of an operator of the next copy
AGAIN = "↑ "  # before the name of a tensor that has its place further up
ICON_KINDS: tuple[OpKind, ...] = ("reduction", "gemm", "injective", "opaque")

_NARROWEST_OP, _WIDEST_OP = 72.0, 150.0
_OUTPUT_WORD = 48.0  # "output" or its Chinese, whichever is wider
_NAME = 82.0
_NARROW_NAME = 62.0
_MOST_INPUTS = 5  # boxes of graph inputs for one operator; the rest share the last one
_NEAR = 2  # rows down to which readers of a graph input share a box
_LANE = 20.0  # pixels to reckon with for a lane, before it is known what stands beside it
_FEW_AGAIN = 4  # tensors drawn again above one operator, before they leave out their sizes


@dataclass(frozen=True)
class Slot:
    """Room for a tensor beneath its operator: its capsule, and its box in memory.

    ``apart``: both may be there at once (it has several readers, or is kept and read), so that each has its own room;
    otherwise one takes the other's place.
    """

    tensor: str
    capsule: float
    memory: float
    apart: bool

    @property
    def width(self) -> float:
        """In pixels."""
        return self.capsule + BETWEEN_TENSORS + self.memory if self.apart else max(self.capsule, self.memory)


@dataclass(frozen=True)
class FoldRows:
    """The rows of a repeated run: its graph inputs, its operators, and those of the next copy."""

    repeat: Repeat
    first: int
    last: int


@dataclass
class Layers:
    """A graph in rows.

    ``op_widths`` and ``slots`` by operator that is shown; ``folds`` from top to bottom.
    """

    sketch: Sketch = field(default_factory=Sketch)
    op_widths: dict[str, float] = field(default_factory=dict)
    slots: dict[str, tuple[Slot, ...]] = field(default_factory=dict)
    folds: list[FoldRows] = field(default_factory=list)


def op_words(op: GraphOp) -> str:
    """An operator's label, as short as its box must be; its name where that only adds a number, as messages say it."""
    room = _WIDEST_OP - 18 - (ICON if op.kind in ICON_KINDS else 0)
    return shortened(op.name if op.name.startswith(op.label) else op.label, BODY, room)


def tensor_words(name: str, *, narrow: bool = False) -> str:
    """A tensor's name, as short as its box must be."""
    return shortened(name, SMALL, _NARROW_NAME if narrow else _NAME)


def layers_of(graph: OpGraph, folding: Folding, far: int) -> Layers:
    """The rows of what is shown, not ordered yet.

    Args:
        far: rows from which on a tensor is drawn again just above its reader, in place of a long wire.
    """
    return _Layering(graph, folding, far).layers()


class _Layering:
    def __init__(self, graph: OpGraph, folding: Folding, far: int) -> None:
        self.graph, self.folding, self.wiring, self.far = graph, folding, graph.wiring, far
        self.result = Layers()
        self.shown = {name: index for index, name in enumerate(folding.shown)}
        self.edges = [(self._first(graph.edges[i].producer), graph.edges[i].consumer, i) for i in folding.shown_edges]
        self.ins: dict[str, list[str]] = {name: [] for name in folding.shown}
        self.outs: dict[str, list[str]] = {name: [] for name in folding.shown}
        for producer, consumer, _ in self.edges:
            if consumer in self.shown:
                self.ins[consumer].append(producer)
                self.outs[producer].append(consumer)
        self.given = {name: self._given(name) for name in folding.shown}
        self.widths: dict[str, float] = {}
        self.rows: dict[str, int] = {}

    def _first(self, op: str) -> str:
        return self.folding.copies_of(op)[0]

    def layers(self) -> Layers:
        self._measure()
        base, ghosts = 1, dict[str, int]()
        for names, repeat in self._segments():
            first = base
            base = self._place(names, base + 1 if repeat else base)
            if repeat:
                nexts = dict.fromkeys(c for p, c, _ in self.edges if c not in self.shown and p in set(names))
                base = self._place_next(list(nexts), base, ghosts)
                self.result.folds.append(FoldRows(repeat, first, base - 1))
        self._build(ghosts)
        return self.result

    # -- sizes -----------------------------------------------------------------------------------------------

    def _measure(self) -> None:
        readers: dict[str, int] = {}
        for _, _, index in self.edges:
            tensor = self.shown_tensor(self.graph.edges[index].tensor)
            readers[tensor] = readers.get(tensor, 0) + 1
        for name in self.folding.shown:
            slots = tuple(self._slot(root, readers) for root in self.wiring.outs[self.wiring.ids[name]])
            wide = sum(slot.width for slot in slots) + 14.0 * (len(slots) - 1)
            alone = len(slots) == 1 and not slots[0].apart
            narrow = op_width(self.graph.op(name))
            self.result.slots[name] = slots
            self.result.op_widths[name] = narrow if alone else max(narrow, wide)
            self.widths[name] = max(self.result.op_widths[name], wide)

    def shown_tensor(self, tensor: str) -> str:
        """The tensor in the first copy that stands for this one."""
        producer = self.graph.producers[tensor]
        place = self.graph.op(producer).outputs.index(tensor)
        return self.graph.op(self._first(producer)).outputs[place]

    def _slot(self, root: int, readers: Mapping[str, int]) -> Slot:
        name, count = self.wiring.tensor_names[root], readers.get(self.wiring.tensor_names[root], 0)
        kept = is_kept(self.graph, self.folding, name)
        apart = count > 1 or (kept and count > 0)
        words = _OUTPUT_WORD if kept else text_width(tensor_words(name, narrow=apart), SMALL)
        size = text_width(format_bytes(self.wiring.sizes[root]), SMALL)
        capsule = max(30.0, bold_width(tensor_words(name, narrow=apart), SMALL) + 16)
        return Slot(name, capsule, words + 6 + size + 16, apart)

    def _given(self, name: str) -> list[int]:
        """The graph inputs that an operator reads, those that are too small to count left out."""
        reads = self.wiring.reads[self.wiring.ids[name]]
        roots = dict.fromkeys(read.root for read in reads)
        return [root for root in roots if self.wiring.producer[root] < 0 and self.wiring.sizes[root] > 0]

    def input_width(self, roots: Sequence[int]) -> float:
        """Of the box of one graph input, or of several together."""
        name, size = self.wiring.tensor_names[roots[0]], sum(self.wiring.sizes[root] for root in roots)
        words = AGAIN + tensor_words(name, narrow=True) if len(roots) == 1 else f"+ {len(roots)}"
        return text_width(words, SMALL) + 6 + text_width(format_bytes(size), SMALL) + 14

    # -- rows ------------------------------------------------------------------------------------------------

    def _segments(self) -> list[tuple[list[str], Repeat | None]]:
        """What is shown in runs: repeated ones, and the operators between them."""
        repeats = {repeat.first[0]: repeat for repeat in self.folding.repeats}
        found: list[tuple[list[str], Repeat | None]] = []
        within: frozenset[str] = frozenset()
        for name in self.folding.shown:
            if name in repeats:
                within = frozenset(repeats[name].first)
                found.append(([], repeats[name]))
            elif name not in within and (not found or found[-1][1] is not None):
                found.append(([], None))
            found[-1][0].append(name)
        return found

    def _wished(self, names: Sequence[str]) -> dict[str, int]:
        """Rows counted from 0 by longest path; who makes more than it reads stands just above its readers."""
        inside, wish = set(names), dict[str, int]()
        for name in names:
            wish[name] = max((wish[p] + 1 for p in self.ins[name] if p in inside), default=0)
        for _ in range(4):
            for name in reversed(names):
                readers = [wish[c] for c in self.outs[name] if c in inside]
                if readers and len(self.outs[name]) > len(self.ins[name]):
                    wish[name] = min(readers) - 1
        return wish

    def _place(self, names: Sequence[str], base: int) -> int:
        """Give each operator its row, as many to a row as fit; returns the first row that is free."""
        wish, row, step = self._wished(names), base, 0
        waiting = sorted(names, key=lambda name: (wish[name], self.shown[name]))
        while waiting:
            ready = [n for n in waiting if all(self.rows.get(p, row) < row for p in self.ins[n])]
            wanted = [n for n in ready if wish[n] <= step] or ready[:1]
            taken = self._fitting(wanted, row)  # none where the row above has no room for what they read
            self.rows.update(dict.fromkeys(taken, row))
            waiting = [n for n in waiting if n not in set(taken)]
            row += 1
            step += not any(n in wanted for n in waiting)
        return row

    def _fitting(self, wanted: Sequence[str], row: int) -> list[str]:
        """The first of the operators, as many as one row has room for, lanes of longer wires included."""
        used, above = self._lanes(row) * _LANE, self._used(row - 1)
        crowded = any(at == row - 1 for at in self.rows.values())
        taken: list[str] = []
        for name in wanted:
            near = sum(row - self.rows[p] <= self.far for p in self.ins[name])
            wide = self.widths[name] + BETWEEN_OPS - near * _LANE
            fed = self._fed(name, row)
            if (taken and used + wide > ROOM) or ((taken or crowded) and above + fed > ROOM):
                continue
            taken.append(name)
            used, above = used + wide, above + fed
        return taken

    def _fed(self, name: str, row: int) -> float:
        """Pixels in the row above for what an operator reads, other than by wires."""
        again = [p for p in self.ins[name] if row - self.rows[p] > self.far]
        width = sum(self._again_width(self.graph.op(p).outputs[0], len(again)) + BETWEEN_INPUTS for p in again)
        given = self.given[name][:_MOST_INPUTS]
        return width + sum(self.input_width([root]) + BETWEEN_INPUTS for root in given)

    def _lanes(self, row: int) -> int:
        """Wires from above that end in this row or further down."""
        waiting = ((p, c) for p, c, _ in self.edges if p in self.rows and self.rows[p] < row)
        return sum(self.rows.get(c, row) >= row and row - self.rows[p] <= self.far for p, c in waiting)

    def _used(self, row: int) -> float:
        """Pixels that the operators of a row take, and the lanes beside them."""
        mine = [name for name, at in self.rows.items() if at == row]
        wide = sum(self.widths[name] + BETWEEN_OPS for name in mine)
        return wide + max(0, self._lanes(row) - sum(len(self.ins[name]) for name in mine)) * _LANE

    def _place_next(self, names: Sequence[str], base: int, ghosts: dict[str, int]) -> int:
        """Rows for the operators of the next copy."""
        row, used = base, 0.0
        for name in names:
            width = op_width(self.graph.op(name)) + NEXT_WIDTH + BETWEEN_OPS
            if used and used + width > ROOM:
                row, used = row + 1, 0.0
            ghosts[name], used = row, used + width
        return row + 1 if names else base

    # -- nodes and wires -------------------------------------------------------------------------------------

    def _build(self, ghosts: Mapping[str, int]) -> None:
        sketch, node = self.result.sketch, dict[str, int]()
        for name in self.folding.shown:
            node[name] = sketch.add(Node("op", name, self.rows[name], self.widths[name]))
        for name, row in ghosts.items():
            node[name] = sketch.add(Node("next", name, row, op_width(self.graph.op(name)) + NEXT_WIDTH))
        distant: dict[str, int] = {}
        for producer, consumer, _ in self.edges:
            distant[consumer] = distant.get(consumer, 0) + (
                self._row(node, consumer) - self.rows[producer] > self.far
            )
        for producer, consumer, index in self.edges:
            tensor = self.shown_tensor(self.graph.edges[index].tensor)
            source, row = node[producer], self._row(node, consumer)
            if row - self.rows[producer] > self.far:
                width = self._again_width(tensor, distant[consumer])
                source = sketch.add(Node("again", tensor, row - 1, width, (tensor,)))
            sketch.connect(source, node[consumer], tensor, index)
        for roots, readers in self._input_boxes():
            row = min(self.rows[name] for name in readers) - 1
            names = tuple(self.wiring.tensor_names[root] for root in roots)
            box = sketch.add(Node("input", names[0], row, self.input_width(roots), names))
            for name in readers:
                sketch.connect(box, node[name], names[0], -1)

    def _row(self, node: Mapping[str, int], name: str) -> int:
        return self.result.sketch.nodes[node[name]].row

    def _again_width(self, tensor: str, count: int) -> float:
        """Of a tensor drawn again, one of ``count`` above the same operator."""
        name = bold_width(AGAIN + tensor_words(tensor, narrow=True), SMALL) + 14
        size = text_width(format_bytes(self.graph.tensor(tensor).bytes), SMALL) + 6
        return name + size if count <= _FEW_AGAIN else min(name, max(8.0, ROOM / count - BETWEEN_INPUTS))

    def _input_boxes(self) -> list[tuple[list[int], list[str]]]:
        """Graph inputs with their readers: near ones share a box; what a single operator reads beyond a few is put together."""
        readers: dict[int, list[str]] = {}
        for name in self.folding.shown:
            for root in self.given[name]:
                readers.setdefault(root, []).append(name)
        boxes: list[tuple[list[int], list[str]]] = []
        for name in self.folding.shown:
            own = [root for root in self.given[name] if len(readers[root]) == 1]
            own.sort(key=lambda root: -self.wiring.sizes[root])
            alone = own if len(self.given[name]) <= _MOST_INPUTS else own[: _MOST_INPUTS - 1]
            kept_order = [root for root in self.given[name] if root in alone]
            boxes += [([root], [name]) for root in kept_order]
            if len(own) > len(alone):
                boxes.append((own[len(alone) :], [name]))
        for root, names in readers.items():
            if len(names) > 1:
                boxes += [([root], near) for near in self._near(names)]
        return boxes

    def _near(self, names: Sequence[str]) -> list[list[str]]:
        """Readers of one tensor, those that stand in rows close to each other together."""
        found: list[list[str]] = []
        for name in sorted(names, key=lambda name: (self.rows[name], self.shown[name])):
            if found and self.rows[name] - self.rows[found[-1][0]] <= _NEAR:
                found[-1].append(name)
            else:
                found.append([name])
        return found


def op_width(op: GraphOp) -> float:
    """Pixels that an operator's box needs for its words and its icon."""
    words = bold_width(op_words(op), BODY) + 18 + (ICON if op.kind in ICON_KINDS else 0)
    return min(_WIDEST_OP, max(_NARROWEST_OP, words))


def is_kept(graph: OpGraph, folding: Folding, tensor: str) -> bool:
    """Whether a tensor, or its like in another copy, must be in memory at the end."""
    wiring = graph.wiring
    place = graph.op(graph.producers[tensor]).outputs.index(tensor)
    likes = folding.copies_of(graph.producers[tensor])
    return any(wiring.kept[wiring.outs[wiring.ids[name]][place]] for name in likes)
