"""A graph and its kernels in the course's picture language: fusing lifts tensors out of memory into a kernel.

Positions come from ``layout`` and do not depend on the grouping; only what passes through memory, and what is inside a
kernel, differs from one grouping to the next.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cached_property, lru_cache

from lessons_lib.base.text import Text
from lessons_lib.base.units import count_of, format_bytes, format_range, format_seconds
from lessons_lib.graph.grouping import Cost, Grouping, Mark
from lessons_lib.graph.opgraph import KIND_NAMES, GraphEdge, OpGraph
from lessons_lib.graph.picture.folding import Folding
from lessons_lib.graph.picture.layers import AGAIN, NEXT, is_kept, op_words, tensor_words
from lessons_lib.graph.picture.layout import Box, InputPlace, Layout, Point, layout_of
from lessons_lib.graph.picture.moves import operator_table as operator_table
from lessons_lib.graph.picture.outlines import Outline, corridor, outline_of
from lessons_lib.show.graph_picture import GraphPicture, Icon
from lessons_lib.show.measure import CARD_WIDTH, SMALL, TITLE, shortened, text_width
from lessons_lib.show.picture import MEMORY_LABEL, READ, WRITE

_ICONS: tuple[Icon, ...] = ("reduction", "gemm", "injective", "opaque")
_THINNEST, _WIDEST, _MOST = 1.8, 7.0, 8.0

_TITLE = Text(zh="{ops} 个算子，{kernels} 个核函数", en="{ops}, {kernels}")
_LAUNCHES = Text(zh="启动 {launches} 次", en="launches: {launches}")
_TRAFFIC = Text(zh="读 {read} + 写 {written} = {total}", en="read {read} + written {written} = {total}")
_TIME = Text(zh="耗时（roofline）{time}", en="time (roofline) {time}")
_DESCRIBED = Text(
    zh="{title}：启动 {launches} 次，从显存读 {read}，写 {written}，合计 {total}",
    en="{title}: launches: {launches}, read from device memory {read}, written {written}, total {total}",
)
_OUTPUT = Text(zh="输出", en="output")
_BY_HAND = Text(zh="手写或模板", en="by hand or template")
_COPIES = Text(zh="只画其中一份；改这一份，各份一起改", en="one copy is drawn; what you change changes in all")
_THROUGH_MEMORY = Text(
    zh="{tensor}（{size}）：{a} → {b}，经过显存", en="{tensor} ({size}): {a} → {b}, through device memory"
)
_ON_CHIP = Text(zh="{tensor}（{size}）：{a} → {b}，留在片上", en="{tensor} ({size}): {a} → {b}, stays on chip")
_SAME_READ = Text(zh="；同一核函数只读一次", en="; the same kernel reads it once")
_READ = Text(zh="{tensor}：核函数 {kernel} 读 {size}", en="{tensor}: kernel {kernel} reads {size}")
_WRITTEN = Text(zh="{tensor}：核函数 {kernel} 写 {size}", en="{tensor}: kernel {kernel} writes {size}")
_OPERATOR = Text(zh="{name}：{kind}，核函数 {kernel}", en="{name}: {kind}, kernel {kernel}")
_NEXT = Text(zh="下一份里的 {words}", en="in the next copy: {words}")
_KERNEL = Text(zh="核函数 {number}：读 {read}，写 {written}", en="kernel {number}: reads {read}, writes {written}")
_IN_PASSES = Text(zh="扫描 {passes} 趟", en="{passes} passes")
_PASSES = Text(zh="，扫描 {passes} 趟", en=", in {passes} passes")


def draw_graph(
    graph: OpGraph,
    grouping: Grouping,
    cost: Cost,
    *,
    marks: Sequence[Mark] = (),
    folding: Folding | None = None,
    selected: Collection[str] = (),
    live: bool = False,
    title: Text | str | None = None,
    prefix: str = "graph",
) -> str:
    """The graph and its kernels as an SVG string.

    Args:
        grouping: one of ``graph``; cost: its ``grouping.cost``; marks: its ``grouping.marks``.
        folding: ``fold(graph)``: repeated runs are drawn once.
        selected: names of operators with a ring around them.
        live: edges and operators carry ``data-edge`` (a position in ``graph.edges``) and ``data-op`` (a position in
            ``graph.launching``), and can be focused.
        title: at the top left; ``None``: how many operators and kernels.
        prefix: of ids and classes, so that two pictures on one page do not share any.
    """
    return _Drawing(graph, grouping, cost, marks, folding, frozenset(selected), live, title, prefix).svg()


class _Drawing:
    def __init__(
        self,
        graph: OpGraph,
        grouping: Grouping,
        cost: Cost,
        marks: Sequence[Mark],
        folding: Folding | None,
        selected: frozenset[str],
        live: bool,
        title: Text | str | None,
        prefix: str,
    ) -> None:
        self.graph, self.grouping, self.cost, self.selected = graph, grouping, cost, selected
        self.folding = folding or Folding(graph.launching, (), tuple(range(len(graph.edges))))
        self.layout: Layout = layout_of(graph, folding)
        self.home = {name: index for index, group in enumerate(grouping.groups) for name in group}
        self.marked = {mark.group for mark in marks}
        self.title = str(title) if title is not None else self._title()
        self.picture = GraphPicture(round(self.layout.height), self._described(), prefix, live=live)
        self.largest = max((tensor.bytes for tensor in graph.tensors), default=1) or 1
        self.read_already: set[tuple[int, str]] = set()

    def svg(self) -> str:
        self._head()
        self._grounds()
        self._kernels()
        self._inputs()
        for index in self.folding.shown_edges:
            self._edge(index)
        self._tensors()
        self._operators()
        self._badges()
        return self.picture.svg()

    # -- title, numbers, legend ------------------------------------------------------------------------------

    def _title(self) -> str:
        ops, kernels = len(self.graph.launching), len(self.grouping)
        words = (
            _TITLE.format(ops=ops, kernels=kernels).zh,
            f"{count_of(ops, 'operator')}, {count_of(kernels, 'kernel')}",
        )
        return str(Text(zh=words[0], en=words[1]))

    def _sums(self) -> dict[str, str]:
        cost = self.cost
        return {
            "read": _size(cost.read_bytes),
            "written": _size(cost.write_bytes),
            "total": _size(cost.total_bytes),
        }

    def _described(self) -> str:
        return str(_DESCRIBED.format(title=self.title, launches=self.cost.launches, **self._sums()))

    def _head(self) -> None:
        time = format_range(self.cost.time.low, self.cost.time.high, format_seconds)
        launches = str(_LAUNCHES.format(launches=self.cost.launches))
        room = CARD_WIDTH - 80 - text_width(launches, TITLE)
        figures = [
            (launches, True),
            (str(_TRAFFIC.format(**self._sums())), False),
            (str(_TIME.format(time=time)), False),
        ]
        self.picture.heading(shortened(self.title, TITLE, room), figures)
        kinds = {self.graph.op(name).kind for name in self.folding.shown}
        icons = [(icon, str(KIND_NAMES[icon])) for icon in _ICONS if icon in kinds]
        self.picture.legend(100, icons, again=self._reads_again, by_hand=bool(self.marked))

    def _grounds(self) -> None:
        """The strips of memory, the first one that has room with its name, and frames around what repeats."""
        words = str(MEMORY_LABEL)
        named = False
        for strip in self.layout.strips:
            self.picture.strip(strip.left, strip.top, strip.width, strip.height)
            label = Box(strip.left + 8, strip.top, text_width(words, SMALL), strip.height)
            if not named and not any(label.grown(8).overlaps(thing) for thing in self._things):
                self.picture.text(label.left, strip.y + 4, words, colour="#57606a")
                named = True
        for fold in self.layout.folds:
            box, copies = fold.box, f"× {len(fold.repeat.copies)}"
            self.picture.frame(box.left, box.top, box.width, box.height, str(_COPIES), copies)

    @cached_property
    def _things(self) -> list[Box]:
        """All that words of their own must not touch: boxes with a margin, and lines."""
        layout = self.layout
        boxes = [box.grown(9) for place in (layout.ops, layout.nexts) for box in place.values()]
        for place in layout.tensors.values():
            boxes += [place.memory.grown(4), place.capsule.grown(5)]
            boxes.append(Box(place.link - 7, place.capsule.top - 24, 14, 24))
            boxes.append(Box(place.write - 7, place.memory.top - 24, 14, 24))
        boxes += [box.grown(4) for box in layout.again.values()]
        lines = [way for route in layout.edges.values() for way in (route.memory, route.chip)]
        for given in layout.inputs:
            boxes.append(given.box.grown(3))
            lines += [points for _, points in given.reads]
        return boxes + [piece for line in lines for piece in corridor(line, 8)]

    # -- kernels ---------------------------------------------------------------------------------------------

    def _kernels(self) -> None:
        for number, outline in self.outlines.items():
            spent = self.cost.groups[number]
            words = _KERNEL.format(number=number + 1, read=_size(spent.read_bytes), written=_size(spent.write_bytes))
            passes = str(_PASSES.format(passes=spent.passes)) if spent.passes > 1 else ""
            with self.picture.part(f"{words}{passes}"):
                self.picture.kernel_shape(outline.loops, dashed=number in self.marked)

    @cached_property
    def outlines(self) -> dict[int, Outline]:
        """Kernel -> its outline; only kernels of which an operator is shown."""
        ops: dict[int, list[str]] = {}
        for name in self.layout.ops:
            ops.setdefault(self.home[name], []).append(name)
        for name in self.layout.nexts:  # hinted at: inside only where its kernel reaches over to the next copy
            if self.home[name] in ops:
                ops[self.home[name]].append(name)
        edges: dict[int, list[int]] = {number: [] for number in ops}
        tensors: dict[int, dict[str, None]] = {number: {} for number in ops}
        for index in self.folding.shown_edges:
            edge = self.graph.edges[index]
            number = self.home[edge.consumer]
            if self._inside(edge) and self._shown(edge.producer) in ops.get(number, ()):
                edges[number].append(index)
                tensors[number][self._tensor(edge)] = None
        return {n: outline_of(self.layout, ops[n], edges[n], list(tensors[n])) for n in sorted(ops)}

    def _badges(self) -> None:
        """The number of each kernel, at each of its parts, and words where only a hand or a pattern makes it, or where
        it goes over its rows several times."""
        for number, outline in self.outlines.items():
            for box in outline.starts:
                self.picture.badge(box.left - 12, box.top - 4, number + 1)
            passes = self.cost.groups[number].passes
            notes = [str(_BY_HAND)] if number in self.marked else []
            notes += [str(_IN_PASSES.format(passes=passes))] if passes > 1 else []
            if notes:
                self._note(number, " · ".join(notes))

    def _note(self, number: int, words: str) -> None:
        """Words beside one of a kernel's operators, where there is room; the dashed outline says the same."""
        width = text_width(words, SMALL)
        taken = [*self._things, *(box for outline in self.outlines.values() for box in outline.pieces)]
        for name in self.grouping.groups[number]:
            if name not in self.layout.ops:
                continue
            op = self.layout.ops[name]
            for left in (op.right + 14, op.left - 14 - width):
                room = Box(left, op.top + 4, width, 18)
                inside = room.left > 26 and room.right < CARD_WIDTH - 26
                if inside and not any(room.overlaps(box) for box in taken):
                    self.picture.note(left, op.y + 4.5, words)
                    return

    # -- edges and tensors -----------------------------------------------------------------------------------

    def _shown(self, op: str) -> str:
        return self.folding.copies_of(op)[0]

    def _tensor(self, edge: GraphEdge) -> str:
        """The tensor of the first copy that stands for an edge's."""
        outputs = self.graph.op(edge.producer).outputs
        return self.graph.op(self._shown(edge.producer)).outputs[outputs.index(edge.tensor)]

    def _inside(self, edge: GraphEdge) -> bool:
        return self.home[edge.producer] == self.home[edge.consumer]

    def _width(self, size: int) -> float:
        """Of an arrow: grows with the root of the bytes, the graph's largest tensor being ``_WIDEST``."""
        return min(_MOST, _THINNEST + (_WIDEST - _THINNEST) * math.sqrt(size / self.largest))

    def _edge(self, index: int) -> None:
        edge, route = self.graph.edges[index], self.layout.edges[index]
        inside = self._inside(edge)
        words = (_ON_CHIP if inside else _THROUGH_MEMORY).format(
            tensor=edge.tensor, size=_size(edge.bytes), a=edge.producer, b=edge.consumer
        )
        key = (self.home[edge.consumer], edge.tensor)
        again = not inside and key in self.read_already
        said = f"{words}{_SAME_READ if again else ''}"
        with self.picture.pressable({"edge": index}, said, pressed=inside):
            if inside:
                self.picture.hit_line(route.chip)
                place = self.layout.tensors[self._tensor(edge)]
                if index not in self.layout.again:
                    self._link(place.link, place.capsule)
                self.picture.kept_line(route.chip)
            else:
                self.picture.hit_line(route.memory)
                size = self.cost.groups[key[0]].reads.get(edge.tensor, edge.bytes)
                self._read(route.memory, size, again=again)
                self.read_already.add(key)
            if index in self.layout.again:
                self._again(index, edge, inside)

    @property
    def _reads_again(self) -> bool:
        """Whether some kernel has two operators that read the same from memory."""
        edges = (self.graph.edges[index] for index in self.folding.shown_edges)
        through = [(edge.tensor, edge.consumer) for edge in edges if not self._inside(edge)]
        given = [
            (tensor, reader) for place in self.layout.inputs for tensor in place.tensors for reader, _ in place.reads
        ]
        keys = [(self.home[reader], tensor) for tensor, reader in (*through, *given)]
        return len(set(keys)) < len(keys)

    def _link(self, x: float, capsule: Box) -> None:
        """From an operator down to the capsule of what it makes."""
        self.picture.kept_line([(x, capsule.top - 23), (x, capsule.y)])

    def _read(self, points: Sequence[Point], size: int, *, again: bool) -> None:
        """A read arrow; dashed where there is nothing to count, or where the kernel has read the same already."""
        counted = size > 0 and not again
        self.picture.arrow(points, READ, self._width(size) if counted else 1.6, dashed=not counted)

    def _again(self, index: int, edge: GraphEdge, inside: bool) -> None:
        """A tensor that lies far above, once more beside its reader."""
        box, name = self.layout.again[index], AGAIN + tensor_words(edge.tensor, narrow=True)
        size = _size(self.graph.tensor(edge.tensor).bytes)
        if text_width(f"{name} {size}", SMALL) > box.width:
            name, size = shortened(name, SMALL, box.width - 6), ""
        if inside:
            self.picture.kept_capsule(box.left + 2, box.top + 2, box.width - 4, box.height - 4, name)
        else:
            self.picture.memory_box(
                box.left, box.top, box.width, box.height, name, size, output=False, counted=edge.bytes > 0
            )

    def _inputs(self) -> None:
        for given in self.layout.inputs:
            for reader, points in given.reads:
                kernel = self.home[reader]
                keys = [(kernel, tensor) for tensor in given.tensors]
                size = sum(self.cost.groups[kernel].reads.get(tensor, 0) for tensor in given.tensors)
                names = ", ".join(given.tensors)
                words = _READ.format(tensor=names, kernel=kernel + 1, size=_size(size))
                with self.picture.part(str(words)):
                    self._read(points, size, again=all(key in self.read_already for key in keys))
                self.read_already.update(keys)
            self._input_box(given)

    def _input_box(self, given: InputPlace) -> None:
        box, sizes = given.box, [self.graph.tensor(tensor).bytes for tensor in given.tensors]
        name = tensor_words(given.tensors[0], narrow=True) if len(sizes) == 1 else f"+ {len(sizes)}"
        with self.picture.part(", ".join(self._full(tensor) for tensor in given.tensors)):
            self.picture.memory_box(
                box.left,
                box.top,
                box.width,
                box.height,
                (AGAIN if given.again else "") + name,
                _size(sum(sizes)),
                output=False,
                counted=True,
            )

    def _full(self, tensor: str) -> str:
        """A tensor's whole name, its shape, its type and its size."""
        found = self.graph.tensor(tensor)
        shape = " × ".join(str(extent) for extent in found.shape) or "1"
        return f"{found.name}: {shape} {found.dtype}, {_size(found.bytes)}"

    def _tensors(self) -> None:
        """What operators make: in memory with a write arrow, on chip as a capsule, or both."""
        in_memory, on_chip = self._states
        for name, place in self.layout.tensors.items():
            kernel = self.home[self.graph.producers[name]]
            with self.picture.part(self._full(name)):
                if name in in_memory:
                    self._written(name, kernel)
                if name in on_chip:
                    words = tensor_words(name, narrow=place.apart)
                    box = place.capsule
                    self.picture.kept_capsule(box.left, box.top, box.width, box.height, words)

    @cached_property
    def _states(self) -> tuple[set[str], set[str]]:
        """The tensors drawn in memory, and those drawn on chip."""
        in_memory = {t for t in self.layout.tensors if is_kept(self.graph, self.folding, t)}
        on_chip: set[str] = set()
        for index in self.folding.shown_edges:
            edge = self.graph.edges[index]
            if self._inside(edge):
                if index not in self.layout.again:
                    on_chip.add(self._tensor(edge))
            else:
                in_memory.add(self._tensor(edge))
        # A tensor that nobody reads, or that only others read by way of a far box, is written all the same.
        for name in self.layout.tensors:
            kernel = self.home[self.graph.producers[name]]
            if name in self.cost.groups[kernel].writes:
                in_memory.add(name)
        return in_memory, on_chip

    def _written(self, name: str, kernel: int) -> None:
        place, tensor = self.layout.tensors[name], self.graph.tensor(name)
        size = self.cost.groups[kernel].writes.get(name, tensor.bytes)
        box, counted = place.memory, size > 0
        start = (place.write, box.top - 21.0)
        with self.picture.part(str(_WRITTEN.format(tensor=name, kernel=kernel + 1, size=_size(size)))):
            self.picture.arrow(
                [start, (place.write, box.top)], WRITE, self._width(size) if counted else 1.6, dashed=not counted
            )
        kept = is_kept(self.graph, self.folding, name)
        words = str(_OUTPUT) if kept else tensor_words(name, narrow=place.apart)
        self.picture.memory_box(
            box.left, box.top, box.width, box.height, words, _size(tensor.bytes), output=kept, counted=counted
        )

    # -- operators -------------------------------------------------------------------------------------------

    def _operators(self) -> None:
        for name, box in self.layout.nexts.items():
            op = self.graph.op(name)
            with self.picture.part(str(_NEXT.format(words=self._operator_words(name)))):
                words = NEXT + op_words(op)
                self.picture.operator_box(box.left, box.top, box.width, box.height, words, _icon(op.kind), ghost=True)
        for name, box in self.layout.ops.items():
            op, number = self.graph.op(name), self.graph.wiring.ids[name]
            said, chosen = self._operator_words(name), name in self.selected
            with self.picture.pressable({"op": number}, said, pressed=chosen):
                self.picture.operator_box(box.left, box.top, box.width, box.height, op_words(op), _icon(op.kind))
                self.picture.halo(box.left, box.top, box.width, box.height)
                if chosen:
                    self.picture.ring(box.left, box.top, box.width, box.height)

    def _operator_words(self, name: str) -> str:
        op = self.graph.op(name)
        return str(_OPERATOR.format(name=op.words, kind=KIND_NAMES[op.kind], kernel=self.home[name] + 1))


_size = lru_cache(maxsize=4096)(format_bytes)


def _icon(kind: str) -> Icon | None:
    return next((icon for icon in _ICONS if icon == kind), None)
