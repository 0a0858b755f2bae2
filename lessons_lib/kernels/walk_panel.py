"""The tile walk: choose a kernel and a program, and see the blocks it reads and writes."""

from __future__ import annotations

from typing import Any

from lessons_lib.base.text import Text, sentences
from lessons_lib.kernels.launch import GROUP_M, KERNELS, KernelName
from lessons_lib.kernels.walk import Access, ProgramWalk, walk
from lessons_lib.kernels.walk_drawing import draw_walk, readers_words, span_words
from lessons_lib.show.controls import choice_buttons, choice_list, int_slider
from lessons_lib.show.panel import Panel, Parameter
from lessons_lib.show.table import Table

DEFAULT = "default"
_OWN = (Text(zh="启动时的默认值", en="as in a launch"), DEFAULT)
_ELEMENTWISE_TILES: tuple[tuple[object, object], ...] = (_OWN, ("16 × 16", (16, 16)), ("8 × 32", (8, 32)))
_ROW_TILES: tuple[tuple[object, object], ...] = (_OWN, ("16", (16,)), ("32", (32,)))
_LINEAR_TILES: tuple[tuple[object, object], ...] = (
    ("16 × 16 × 16", (16, 16, 16)),
    ("32 × 16 × 16", (32, 16, 16)),
    ("16 × 32 × 32", (16, 32, 32)),
    _OWN,
)
_TILES: dict[KernelName, tuple[tuple[object, object], ...]] = {
    "chain": _ELEMENTWISE_TILES,
    "rmsnorm": _ROW_TILES,
    "softmax": _ROW_TILES,
    "linear": _LINEAR_TILES,
    "epilogue": _ELEMENTWISE_TILES,
}
# As many rows as can be told apart: a program of a row kernel works on one of them.
_MOST_ROWS: dict[KernelName, int] = {"chain": 64, "rmsnorm": 24, "softmax": 24, "linear": 160, "epilogue": 64}

_MOVED_ROWS = Text(
    zh="{kernel} 的图最多画 {rows} 行：已改为 {rows}。", en="{kernel} is drawn with at most {rows} rows."
)
_MOVED = {
    "program": Text(
        zh="现在只有 {count} 个程序：已改看程序 {last}。", en="There are {count} programs now: moved to {last}."
    ),
    "step": Text(
        zh="现在每个程序只有 {count} 步：已改看第 {last} 步。", en="A program has {count} steps now: moved to {last}."
    ),
}
_NOTE = Text(
    zh="数的是程序发出的加载和写出。几个程序读同一块时，后读的常由 L2 缓存供给；GPU 也不保证程序的先后。",
    en="These are the loads and stores that programs issue. What several programs read, L2 often serves after the first; "
    "and a GPU promises no order between programs.",
)
_GROUPED = Text(
    zh="程序按组编号：同组的 {group} 个行数据块先都用 w 的同一列，再换下一列。",
    en="Programs are numbered in groups: {group} row tiles share a column of w before the next column begins.",
)
_READ, _WRITE = Text(zh="▲ 读", en="▲ read"), Text(zh="▼ 写", en="▼ write")


class TileWalkPanel(Panel):
    """Kernel, sizes, tile, program and step as controls; ``result`` is what ``walk`` returns for them.

    ``rows`` and ``columns`` are those of the result, ``inner`` is k of ``linear`` and unused elsewhere.
    ``tile`` is ``"default"`` or one of the small tiles offered for the kernel.
    """

    lesson = "05"

    kernel = Parameter(lambda: choice_buttons(Text(zh="核函数", en="kernel"), KERNELS, "chain"))
    rows = Parameter(lambda: int_slider(Text(zh="行数", en="rows"), 24, 1, _MOST_ROWS["chain"]))
    columns = Parameter(lambda: int_slider(Text(zh="列数", en="columns"), 50, 1, 64))
    inner = Parameter(lambda: int_slider(Text(zh="内维 K", en="inner size K"), 40, 1, 64))
    tile = Parameter(lambda: choice_list(Text(zh="数据块", en="tile"), _ELEMENTWISE_TILES, DEFAULT))
    program = Parameter(lambda: int_slider(Text(zh="程序", en="program"), 0, 0, 1))
    step = Parameter(lambda: int_slider(Text(zh="步", en="step"), 0, 0, 0))

    def constrain(self, moved: str) -> Text | None:
        note = self._fit_kernel() if moved in ("", "kernel") else None
        for name in ("program", "step"):
            count = self._walk(0, 0).programs if name == "program" else len(self._walk(self.program, 0).steps)
            note = self._bound(name, count) or note
        self._show("inner", self.kernel == "linear")
        self._show("step", self.controls["step"].max > 0)
        return note

    def compute(self) -> ProgramWalk:
        return self._walk(self.program, self.step)

    def picture(self, result: ProgramWalk) -> str:
        return draw_walk(result)

    def table(self, result: ProgramWalk) -> Table:
        columns = (
            Text(zh="张量", en="tensor"),
            Text(zh="读写", en="moves"),
            Text(zh="行", en="rows"),
            Text(zh="列", en="columns"),
            Text(zh="元素", en="elements"),
            Text(zh="屏蔽的位置", en="masked lanes"),
            Text(zh="由几个程序访问", en="touched by"),
        )
        grouped = [_GROUPED.format(group=GROUP_M)] if self.kernel == "linear" else []
        return Table(
            [str(column) for column in columns],
            [_row(access) for access in result.accesses],
            note=sentences(_NOTE, *grouped),
        )

    def _fit_kernel(self) -> Text | None:
        """Offer the kernel's own tiles and no more rows than its picture can show."""
        tiles = [(str(words), value) for words, value in _TILES[self.kernel]]
        if list(self.controls["tile"].options) != tiles:
            self.controls["tile"].options = tiles
        most, rows = _MOST_ROWS[self.kernel], self.controls["rows"]
        too_many = rows.value > most
        rows.max = most
        return _MOVED_ROWS.format(kernel=self.kernel, rows=most) if too_many else None

    def _bound(self, name: str, count: int) -> Text | None:
        control = self.controls[name]
        too_far = control.value >= count
        control.max = count - 1
        return _MOVED[name].format(count=count, last=count - 1) if too_far else None

    def _show(self, name: str, shown: bool) -> None:
        self.controls[name].layout.display = None if shown else "none"

    def _walk(self, program: int, step: int) -> ProgramWalk:
        sizes = (self.rows, self.columns, self.inner) if self.kernel == "linear" else (self.rows, self.columns)
        tile: Any = None if self.tile == DEFAULT else self.tile
        return walk(self.kernel, sizes, program, step, tile)


def _row(access: Access) -> list[str]:
    rows = "–" if access.operand.vector else span_words(access.rows)
    return [
        access.operand.name,
        str(_WRITE if access.operand.written else _READ),
        rows,
        span_words(access.columns),
        f"{access.elements:,}",
        f"{access.masked:,}",
        readers_words(access.operand),
    ]
