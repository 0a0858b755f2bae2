"""The course's picture for one program of a kernel: the blocks it reads and writes, and what it keeps on chip."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lessons_lib.base.text import Text
from lessons_lib.base.units import divided_up
from lessons_lib.kernels.launch import KernelName, RowLaunch
from lessons_lib.kernels.walk import Access, Operand, Phase, ProgramWalk, Span, first_element
from lessons_lib.show.picture import CARD_WIDTH, INK, MARGIN, MUTED, SMALL, Picture, text_width

_HEIGHT = 544
_KERNEL_LEFT, _KERNEL_TOP, _KERNEL_HEIGHT = 36.0, 118.0, 100.0
_OPERATOR_TOP, _OPERATOR_HEIGHT = 146.0, 36.0
_MEMORY_TOP, _MEMORY_HEIGHT = 256.0, 276.0
_MATRIX_TOP = _MEMORY_TOP + 18
_MATRIX_HEIGHT, _MATRIX_WIDTH = 148.0, 148.0  # the most that a tensor's blocks take, lanes beyond its edge included
_VECTOR_HEIGHT = 12.0
_LARGEST_ELEMENT = 14.0
_LABEL_TOP = _MATRIX_TOP + _MATRIX_HEIGHT + 20
_NUMBER_HEIGHT = 14.0  # of a cell that a program's number fits in

_TITLE = Text(zh="{kernel}：程序 {program}", en="{kernel}: program {program}")
_GRID = Text(zh="数据块 {tile}，程序 0 … {last}", en="tile {tile}, programs 0 … {last}")
_READS = Text(zh="读 {terms} 个元素", en="reads {terms} elements")
_WRITES = Text(zh="写 {terms} 个元素", en="writes {terms} elements")
_WRITES_NONE = Text(zh="这一步不写", en="writes nothing in this step")
_MASKED = Text(zh="被掩码屏蔽的位置 {masked} / {lanes}", en="masked lanes {masked} of {lanes}")
_PROGRAM = Text(zh="程序 {program} · {phase}", en="program {program} · {phase}")
_PHASES: Mapping[Phase, Text] = {
    "whole": Text(zh="只有一步：加载、计算、写出", en="one step: load, compute, store"),
    "reduce": Text(zh="第一遍：归约列 {columns}", en="first pass: reduce columns {columns}"),
    "write": Text(zh="第二遍：写出列 {columns}", en="second pass: write columns {columns}"),
    "accumulate": Text(zh="沿 k 循环：k = {columns}", en="loop over k: k = {columns}"),
    "epilogue": Text(zh="循环之后：尾声，写出", en="after the loop: epilogue, then store"),
}
_LEGEND = Text(
    zh="斜线：被掩码屏蔽 · 双框：多个程序都读",
    en="hatched: masked · double frame: several programs read it",
)
_LEGEND_OF_STEPS = Text(
    zh="{legend} · 彩色虚框：本程序各步合起来的范围", en="{legend} · coloured dashes: all its steps"
)
_READERS = Text(zh="{count} 个程序", en="{count} {noun}")
_LABEL = Text(
    zh="{kernel} 的程序 {program}（共 {programs} 个）：读 {reads}；写 {writes}",
    en="{kernel}, program {program} of {programs}: reads {reads}; writes {writes}",
)
_NOTHING = Text(zh="无", en="nothing")


@dataclass(frozen=True)
class _Inside:
    """A kernel's operators in order, what is kept on chip after each but the last, and which of them a phase uses."""

    operators: tuple[str, ...]
    kept: tuple[str, ...]
    working: Mapping[Phase, tuple[int, ...]]
    alive: Mapping[Phase, tuple[int, ...]]

    def works(self, position: int, phase: Phase) -> bool:
        return position in self.working.get(phase, range(len(self.operators)))

    def lives(self, position: int, phase: Phase) -> bool:
        return position in self.alive.get(phase, range(len(self.kept)))


_INSIDE: Mapping[KernelName, _Inside] = {
    "chain": _Inside(("+ bias", "gelu", "× scale", "+ residual"), ("t1", "t2", "t3"), {}, {}),
    "epilogue": _Inside(("+ bias", "gelu"), ("t1",), {}, {}),
    "rmsnorm": _Inside(
        ("+ residual", "mean of squares", "÷ rms", "× weight"),
        ("sum", "rms", "t1"),
        {"reduce": (0, 1), "write": (0, 2, 3)},
        {"reduce": (0, 1), "write": (0, 1, 2)},
    ),
    "softmax": _Inside(("max", "sum of exp", "exp ÷ sum"), ("max", "sum"), {"reduce": (0, 1), "write": (2,)}, {}),
    "linear": _Inside(
        ("dot", "+ bias", "gelu"),
        ("accumulator", "t1"),
        {"accumulate": (0,), "epilogue": (1, 2)},
        {"accumulate": (0,)},
    ),
}


def draw_walk(walk: ProgramWalk) -> str:
    """One program at one step as an SVG string."""
    picture = Picture(_HEIGHT, _described(walk), prefix="walk")
    picture.heading(_TITLE.format(kernel=walk.kernel, program=walk.program), _figures(walk))
    picture.chip_label(_KERNEL_TOP - 10)
    picture.memory_band(_MEMORY_TOP, _MEMORY_HEIGHT)
    legend = _LEGEND if len(walk.steps) == 1 else _LEGEND_OF_STEPS.format(legend=_LEGEND)
    picture.text(MARGIN + 8, _MEMORY_TOP + _MEMORY_HEIGHT - 32, legend, colour=MUTED)
    _draw_kernel(picture, walk)
    frame = _Frame.of(walk)
    for position, operand in enumerate(walk.operands):
        _draw_operand(picture, walk, operand, frame, frame.centre(position))
    return picture.svg()


def span_words(span: Span) -> str:
    """The indices that exist, as Python slices them: ``16:32``."""
    return f"{span.inside.start}:{span.inside.stop}"


def readers_words(operand: Operand) -> str:
    """How many programs touch each element, and how often each: ``4 programs``, ``1 program × 2``."""
    words = _READERS.format(count=operand.programs, noun="program" if operand.programs == 1 else "programs")
    return str(words) if operand.times == 1 else f"{words} × {operand.times}"


# -- the heading ----------------------------------------------------------------------------------------------------


def _figures(walk: ProgramWalk) -> list[tuple[str, bool]]:
    tile = " × ".join(map(str, walk.launch.tile))
    masked = sum(access.masked for access in walk.accesses)
    lanes = masked + sum(access.elements for access in walk.accesses)
    writes = _WRITES.format(terms=_terms(walk.stores)) if walk.stores else _WRITES_NONE
    return [
        (str(_GRID.format(tile=tile, last=f"{walk.programs - 1:,}")), False),
        (str(_READS.format(terms=_terms(walk.loads))), True),
        (str(writes), True),
        (str(_MASKED.format(masked=f"{masked:,}", lanes=f"{lanes:,}")), False),
    ]


def _terms(accesses: tuple[Access, ...]) -> str:
    """``1,024 + 64 = 1,088``: the elements of each block, and their sum where there is more than one."""
    counts = [access.elements for access in accesses]
    terms = " + ".join(f"{count:,}" for count in counts)
    return terms if len(counts) == 1 else f"{terms} = {sum(counts):,}"


def _described(walk: ProgramWalk) -> str:
    return str(
        _LABEL.format(
            kernel=walk.kernel,
            program=walk.program,
            programs=walk.programs,
            reads=_listed(walk.loads),
            writes=_listed(walk.stores),
        )
    )


def _listed(accesses: tuple[Access, ...]) -> str:
    named = [f"{access.operand.name} {_slice_words(access)}" for access in accesses]
    return ", ".join(named) if named else str(_NOTHING)


def _slice_words(access: Access) -> str:
    columns = span_words(access.columns)
    return f"[{columns}]" if access.operand.vector else f"[{span_words(access.rows)}, {columns}]"


# -- the chip -------------------------------------------------------------------------------------------------------


def _draw_kernel(picture: Picture, walk: ProgramWalk) -> None:
    width = CARD_WIDTH - 2 * _KERNEL_LEFT
    phase = _PHASES[walk.phase].format(columns=span_words(walk.loads[0].columns))
    name = _PROGRAM.format(program=walk.program, phase=phase)
    picture.kernel(_KERNEL_LEFT, _KERNEL_TOP, width, _KERNEL_HEIGHT, str(name))
    inside = _INSIDE[walk.kernel]
    pitch = width / len(inside.operators)
    box = min(136.0, pitch - 26)
    centres = [_KERNEL_LEFT + pitch * (position + 0.5) for position in range(len(inside.operators))]
    for position, (name_of, centre) in enumerate(zip(inside.operators, centres, strict=True)):
        idle = not inside.works(position, walk.phase)
        picture.operator(centre - box / 2, _OPERATOR_TOP, box, _OPERATOR_HEIGHT, name_of, idle=idle)
    for position, kept in enumerate(inside.kept):
        if inside.lives(position, walk.phase):
            left, right = centres[position] + box / 2, centres[position + 1] - box / 2
            picture.link(left, right, _OPERATOR_TOP + _OPERATOR_HEIGHT / 2)
            picture.capsule((left + right) / 2, _KERNEL_TOP + _KERNEL_HEIGHT - 15, kept)


# -- memory ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    """Where the operands stand, and how many pixels an element takes: alike for all of them."""

    left: float
    pitch: float
    column: float
    row: float

    @classmethod
    def of(cls, walk: ProgramWalk) -> _Frame:
        inside = CARD_WIDTH - 2 * (MARGIN + 8)
        pitch = min(_MATRIX_WIDTH + 60, inside / len(walk.operands))
        width = min(_MATRIX_WIDTH, pitch - 20)
        columns = max(_padded(operand)[1] for operand in walk.operands)
        rows = max(_padded(operand)[0] for operand in walk.operands if not operand.vector)
        return cls(
            left=(CARD_WIDTH - pitch * len(walk.operands)) / 2,
            pitch=pitch,
            column=min(_LARGEST_ELEMENT, width / columns),
            row=min(_LARGEST_ELEMENT, _MATRIX_HEIGHT / rows),
        )

    def centre(self, position: int) -> float:
        return self.left + self.pitch * (position + 0.5)

    def height(self, operand: Operand, rows: float) -> float:
        return _VECTOR_HEIGHT * rows if operand.vector else self.row * rows


def _padded(operand: Operand) -> tuple[int, int]:
    """Rows and columns of all blocks together: the tensor and the lanes beyond its edge."""
    (rows, columns), (height, width) = operand.shape, operand.block
    return divided_up(rows, height) * height, divided_up(columns, width) * width


def _draw_operand(picture: Picture, walk: ProgramWalk, operand: Operand, frame: _Frame, centre: float) -> None:
    rows, columns = operand.shape
    left = centre - frame.column * _padded(operand)[1] / 2
    picture.matrix(
        left,
        _MATRIX_TOP,
        frame.column * columns,
        frame.height(operand, rows),
        _cuts(columns, operand.block[1], frame.column),
        _cuts(rows, operand.block[0], frame.height(operand, 1)),
    )
    access = next((access for access in walk.accesses if access.operand == operand), None)
    _draw_share(picture, walk, operand, frame, left)
    if access is not None:
        _draw_access(picture, access, frame, left)
    if operand.written and not operand.vector:
        _draw_numbers(picture, walk, operand, frame, left)
    _draw_label(picture, operand, access, centre)


def _cuts(length: int, block: int, pixels: float) -> list[float]:
    """Where blocks meet, in pixels; none where they would lie too close to be told apart."""
    return [pixels * cut for cut in range(block, length, block)] if pixels * block >= 4 else []


def _draw_share(picture: Picture, walk: ProgramWalk, operand: Operand, frame: _Frame, left: float) -> None:
    """All that the program touches of the operand in any step, where that is more than one block or another step's."""
    steps = [step.loads + step.stores for step in walk.steps]
    blocks = [access for step in steps for access in step if access.operand == operand]
    if len(steps) == 1:
        return
    rows, columns = [block.rows.inside for block in blocks], [block.columns.inside for block in blocks]
    top, bottom = min(span.start for span in rows), max(span.stop for span in rows)
    first, last = min(span.start for span in columns), max(span.stop for span in columns)
    picture.share(
        left + frame.column * first,
        _MATRIX_TOP + frame.height(operand, top),
        frame.column * (last - first),
        frame.height(operand, bottom - top),
        written=operand.written,
    )


def _draw_access(picture: Picture, access: Access, frame: _Frame, left: float) -> None:
    """The block, the lanes beyond the tensor's edge, and the arrow to or from the kernel."""
    operand, rows, columns = access.operand, access.rows, access.columns
    x, y = left + frame.column * columns.start, _MATRIX_TOP + frame.height(operand, rows.start)
    width, height = frame.column * len(columns.inside), frame.height(operand, len(rows.inside))
    full_width, full_height = frame.column * columns.lanes, frame.height(operand, rows.lanes)
    if full_width > width:
        picture.hatched(x + width, y, full_width - width, full_height)
    if full_height > height:
        picture.hatched(x, y + height, width, full_height - height)
    picture.block(
        x, y, width, max(2.0, height), written=operand.written, shared=not operand.written and operand.programs > 1
    )
    middle, thick = x + width / 2, _arrow_width(access.elements)
    bottom, top = _KERNEL_TOP + _KERNEL_HEIGHT + 2, _MATRIX_TOP - 6
    if operand.written:
        picture.write_arrow(middle, bottom, top, thick)
    else:
        picture.read_arrow(middle, top, bottom, thick)


def _arrow_width(elements: int) -> float:
    """Wider for more elements: 2 px for 16 or fewer, one more for four times as many, 7 px at the most."""
    return min(7.0, max(2.0, 2 + math.log(max(1, elements) / 16, 4)))


def _draw_numbers(picture: Picture, walk: ProgramWalk, operand: Operand, frame: _Frame, left: float) -> None:
    """Which program writes which block, or which row, where the numbers have room."""
    height, width = operand.block
    if isinstance(walk.launch, RowLaunch):
        width = operand.shape[1]
    widest = text_width(str(walk.programs - 1), SMALL)
    if frame.row * height < _NUMBER_HEIGHT or frame.column * width < widest:
        return
    for program in range(walk.programs):
        row, column = first_element(walk.launch, program)
        rows, columns = min(height, operand.shape[0] - row), min(width, operand.shape[1] - column)
        if frame.row * rows < _NUMBER_HEIGHT or frame.column * columns < widest:
            continue
        own = program == walk.program
        x = left + frame.column * (column + columns / 2)
        y = _MATRIX_TOP + frame.row * (row + rows / 2) + SMALL * 0.36
        picture.text(x, y, program, anchor="middle", colour=INK if own else MUTED, bold=own)


def _draw_label(picture: Picture, operand: Operand, access: Access | None, centre: float) -> None:
    rows, columns = operand.shape
    shape = f"[{columns}]" if operand.vector else f"[{rows}, {columns}]"
    picture.text(centre, _LABEL_TOP, f"{operand.name} {shape}", anchor="middle", bold=access is not None)
    words = "–" if access is None else _slice_words(access)
    picture.text(centre, _LABEL_TOP + 17, words, anchor="middle", colour=MUTED if access is None else INK)
    mark = "▼" if operand.written else "▲"
    again = operand.programs * operand.times > 1
    picture.text(
        centre,
        _LABEL_TOP + 34,
        f"{mark} {readers_words(operand)}",
        anchor="middle",
        colour=INK if again else MUTED,
        bold=again,
    )
