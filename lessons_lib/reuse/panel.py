"""The Q2 panel: a tile, its readers and a budget; the cliff where it stops fitting, and the way back."""

from __future__ import annotations

from typing import TypedDict

from lessons_lib.base.gpus import GPUS
from lessons_lib.base.text import Text, sentences
from lessons_lib.base.units import KIB, MIB, format_bytes
from lessons_lib.reuse.drawing import ReuseView, draw_reuse, share_words
from lessons_lib.reuse.plan import (
    BLOCK_THREADS,
    EXAMPLE_BUDGET,
    OTHER_REGISTERS,
    ReusePlan,
    budget_of,
    resident_blocks,
    reuse_plan,
)
from lessons_lib.show.controls import check_box, choice_buttons, choice_list, int_slider, size_slider
from lessons_lib.show.panel import Panel, Parameter
from lessons_lib.show.table import Table

EXAMPLE = "example"
_LEVELS = (
    (Text(zh="寄存器", en="registers"), "registers"),
    (Text(zh="共享内存", en="shared memory"), "shared"),
    (Text(zh="L2 缓存", en="L2 cache"), "l2"),
)
_GPUS = ((Text(zh="例子：96 KiB", en="example: 96 KiB"), EXAMPLE), *((name, name) for name in GPUS))
_YES, _NO = Text(zh="放得下", en="fits"), Text(zh="放不下", en="does not fit")
_NOTE = Text(
    zh="只核对这一个数据块的容量。其他临时值、分配粒度和同步没有算进去；放得下不等于融合成功，更不等于更快。",
    en="This checks the capacity for one tile alone. Other temporaries, allocation granularity and synchronization "
    "are left out; a tile that fits proves neither a fusion nor a speed-up.",
)
_BLOCKS_NOTE = Text(
    zh="驻留的线程块数这样计算：每个线程块 {threads} 个线程，每个线程在数据块之外再用 {registers} 个寄存器。",
    en="Resident blocks: {threads} threads per block, {registers} registers per thread beside the tile.",
)
_UNSURE = Text(
    zh="厂商文档没有明确给出 {gpu} 的这项预算。", en="No vendor document states this budget of the {gpu} plainly."
)
_EXAMPLE_LEVEL = Text(
    zh="例子的预算固定是 96 KiB，与层次无关；要比较层次，先选一块 GPU。",
    en="The example's budget is 96 KiB at every level: choose a GPU to tell levels apart.",
)


class ReuseResult(TypedDict):
    """``ReusePanel.result``: the plan shown, the budget it was held against, and blocks on one SM."""

    plan: ReusePlan
    budget_bytes: int
    blocks_per_sm: int | None


class ReusePanel(Panel):
    """Tile size, number of readers, GPU and level as controls; produced on chip and cut to fit as switches."""

    lesson = "02"

    tile_bytes = Parameter(
        lambda: size_slider(Text(zh="数据块大小", en="tile size"), 32 * KIB, smallest=KIB, largest=128 * MIB)
    )
    reuse_count = Parameter(lambda: int_slider(Text(zh="读几次", en="reads"), 3, 1, 8))
    gpu = Parameter(lambda: choice_list(Text(zh="预算", en="budget"), _GPUS, EXAMPLE))
    level = Parameter(lambda: choice_buttons(Text(zh="层次", en="level"), _LEVELS, "shared"))
    produced = Parameter(lambda: check_box(Text(zh="在片上产生", en="produced on chip"), False))
    cut = Parameter(lambda: check_box(Text(zh="切到放得下", en="cut to fit"), False))

    def constrain(self, moved: str) -> Text | None:
        return _EXAMPLE_LEVEL if moved == "level" and self.gpu == EXAMPLE else None

    def remark(self) -> Text | None:
        if self.gpu == EXAMPLE:
            return None
        field = {"registers": "registers_per_sm", "shared": "shared_bytes_per_block", "l2": "l2_bytes"}[self.level]
        return _UNSURE.format(gpu=self.gpu) if GPUS[self.gpu].is_unsure(field) else None

    def compute(self) -> ReuseResult:
        plan = self._plan(self.produced, self.cut)
        return {"plan": plan, "budget_bytes": self._budget(), "blocks_per_sm": self._blocks(plan["piece_bytes"])}

    def picture(self, result: ReuseResult) -> str:
        return draw_reuse(
            ReuseView(
                result["plan"],
                self.tile_bytes,
                self.reuse_count,
                result["budget_bytes"],
                self.produced,
                result["blocks_per_sm"],
            )
        )

    def table(self, result: ReuseResult) -> Table:
        columns = (
            Text(zh="方案", en="plan"),
            Text(zh="片上", en="on chip"),
            Text(zh="占预算", en="of budget"),
            Text(zh="逻辑读写", en="logical traffic"),
            Text(zh="省下", en="avoided"),
            Text(zh="线程块/SM", en="blocks/SM"),
        )
        ways = [(produced, cut) for produced in (False, True) for cut in (False, True)]
        counted = result["blocks_per_sm"] is not None
        blocks = "" if not counted else _BLOCKS_NOTE.format(threads=BLOCK_THREADS, registers=OTHER_REGISTERS)
        return Table(
            [str(column) for column in columns],
            [self._row(produced, cut) for produced, cut in ways],
            marked=ways.index((self.produced, self.cut)),
            note=sentences(_NOTE, blocks).strip(),
        )

    def _row(self, produced: bool, cut: bool) -> list[str]:
        plan = self._plan(produced, cut)
        blocks = self._blocks(plan["piece_bytes"])
        return [
            _way(produced, cut, plan),
            str(_YES if plan["fits_onchip"] else _NO),
            share_words(plan["budget_utilization"]),
            format_bytes(plan["moved_bytes"]),
            format_bytes(plan["avoided_bytes"]),
            "–" if blocks is None else str(blocks),
        ]

    def _plan(self, produced: bool, cut: bool) -> ReusePlan:
        return reuse_plan(self.tile_bytes, self.reuse_count, self._budget(), produced=produced, cut=cut)

    def _budget(self) -> int:
        return EXAMPLE_BUDGET if self.gpu == EXAMPLE else budget_of(GPUS[self.gpu], self.level)

    def _blocks(self, piece_bytes: int) -> int | None:
        return None if self.gpu == EXAMPLE else resident_blocks(GPUS[self.gpu], self.level, piece_bytes)


def _way(produced: bool, cut: bool, plan: ReusePlan) -> str:
    whole = Text(zh="整块", en="whole")
    pieces = f"{plan['pieces']:,} × {format_bytes(plan['piece_bytes'])}"
    words = Text(zh="片上产生，{how}", en="produced, {how}") if produced else Text(zh="读入，{how}", en="read, {how}")
    return str(words.format(how=pieces if cut else whole))
