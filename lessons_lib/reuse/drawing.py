"""The course's picture for one tile and its readers, with the budget as a meter beside it."""

from __future__ import annotations

from dataclasses import dataclass

from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_ratio
from lessons_lib.reuse.plan import ReusePlan
from lessons_lib.show.picture import MEMORY_LABEL, MUTED, Picture

_HEIGHT = 400
_LEFT, _RIGHT = 36.0, 520.0
_KERNEL_TOP, _KERNEL_BOTTOM = 116.0, 246.0
_OPERATOR_TOP, _OPERATOR_HEIGHT = 142.0, 34.0
_TILE_TOP, _TILE_HEIGHT = 192.0, 28.0
_MEMORY_TOP, _MEMORY_HEIGHT = 290.0, 94.0
_TENSOR_TOP = _MEMORY_TOP + 14
_METER_X, _METER_WIDTH = 578.0, 84.0
_METER_BOTTOM, _METER_FULL = 330.0, 150.0

_TITLE = Text(zh="{tile} 的数据块，读 {count} 次", en="a {tile} tile, read {count}×")
_BUDGET = Text(zh="预算 {budget}，占 {share}", en="budget {budget}, used {share}")
_AVOIDED_READ = Text(zh="省下 ({count} − 1) × {tile} = {avoided}", en="avoided ({count} − 1) × {tile} = {avoided}")
_AVOIDED_MADE = Text(zh="省下 ({count} + 1) × {tile} = {avoided}", en="avoided ({count} + 1) × {tile} = {avoided}")
_AVOIDED_NONE = Text(zh="放不下：省下 0 B", en="does not fit: nothing avoided")
_KERNEL = Text(zh="核函数", en="kernel")
_MAKE, _USE = Text(zh="产生", en="make"), Text(zh="用", en="use")
_IN_MEMORY = Text(zh="数据块 {tile}", en="tile {tile}")
_NOT_IN_MEMORY = Text(zh="不经过显存", en="never in memory")
_KEPT = Text(zh="数据块 {tile}", en="tile {tile}")
_KEPT_PIECE = Text(zh="第 1 块，共 {pieces} 块，每块 {piece}", en="piece 1 of {pieces}, {piece} each")
_BLOCKS = Text(zh="每个 SM {blocks} 个线程块", en="blocks on one SM: {blocks}")
_LABEL = Text(
    zh="一个 {tile} 的数据块被读 {count} 次，预算 {budget}，占 {share}，省下的逻辑读写是 {avoided}",
    en="A {tile} tile read {count} times, budget {budget}, used {share}, logical traffic avoided {avoided}",
)


def share_words(share: float) -> str:
    """A share of the budget: per cent, or a ratio from ten times on."""
    if share >= 10:
        return format_ratio(share)
    return f"{share:.0%}" if share >= 0.01 else "< 1%"


@dataclass(frozen=True)
class ReuseView:
    """What the picture shows: a plan and what it was made from; bytes.

    ``blocks``: resident on one SM, ``None`` where that has no answer.
    """

    plan: ReusePlan
    tile_bytes: int
    reuse_count: int
    budget_bytes: int
    produced: bool
    blocks: int | None

    @property
    def share(self) -> str:
        """How much of the budget one piece takes."""
        share = self.plan["budget_utilization"]
        return share_words(share)


def draw_reuse(view: ReuseView) -> str:
    """The tile, its readers and the meter as an SVG string."""
    words = {
        "tile": format_bytes(view.tile_bytes),
        "count": view.reuse_count,
        "budget": format_bytes(view.budget_bytes),
        "share": view.share,
        "avoided": format_bytes(view.plan["avoided_bytes"]),
    }
    picture = Picture(_HEIGHT, str(_LABEL.format(**words)), prefix="reuse")
    avoided = _AVOIDED_MADE if view.produced else _AVOIDED_READ
    sum_of = avoided if view.plan["fits_onchip"] else _AVOIDED_NONE
    picture.heading(
        _TITLE.format(**words), [(str(_BUDGET.format(**words)), False), (str(sum_of.format(**words)), True)]
    )
    picture.chip_label(_KERNEL_TOP - 10)
    picture.memory_band(_MEMORY_TOP, _MEMORY_HEIGHT, MEMORY_LABEL, right=_RIGHT + 16)
    picture.kernel(_LEFT, _KERNEL_TOP, _RIGHT - _LEFT, _KERNEL_BOTTOM - _KERNEL_TOP, str(_KERNEL))

    centres = _draw_readers(picture, view)
    if view.plan["fits_onchip"]:
        _draw_kept(picture, view, centres)
    else:
        _draw_passages(picture, view, centres)
    _draw_meter(picture, view)
    return picture.svg()


def _draw_readers(picture: Picture, view: ReuseView) -> list[float]:
    """The operators, maker first where there is one; returns where their middles stand."""
    names = [f"{_USE} {number}" for number in range(1, view.reuse_count + 1)]
    names = ([str(_MAKE)] if view.produced else []) + names
    step = (_RIGHT - _LEFT - 16) / len(names)
    width = min(88.0, step - 8)
    centres = [_LEFT + 8 + step * (index + 0.5) for index in range(len(names))]
    for name, centre in zip(names, centres, strict=True):
        picture.operator(centre - width / 2, _OPERATOR_TOP, width, _OPERATOR_HEIGHT, name)
    return centres


def _draw_kept(picture: Picture, view: ReuseView, centres: list[float]) -> None:
    """The tile stays on chip: every operator is linked to it, and memory gives it once or never."""
    plan = view.plan
    left, right = _LEFT + 16, _RIGHT - 16
    for centre in centres:
        picture.riser(centre, _OPERATOR_TOP + _OPERATOR_HEIGHT, _TILE_TOP)
    if plan["pieces"] > 1:
        label = _KEPT_PIECE.format(pieces=f"{plan['pieces']:,}", piece=format_bytes(plan["piece_bytes"]))
    else:
        label = _KEPT.format(tile=format_bytes(view.tile_bytes))
    picture.kept_bar(left, _TILE_TOP, right - left, _TILE_HEIGHT, str(label), pieces=min(plan["pieces"], 16))
    middle = (_LEFT + _RIGHT) / 2
    if view.produced:
        picture.text(middle, _TENSOR_TOP + 21, _NOT_IN_MEMORY, anchor="middle", colour=MUTED)
        return
    picture.read_arrow(middle, _TENSOR_TOP - 2, _KERNEL_BOTTOM + 2, 5)
    _draw_in_memory(picture, view)


def _draw_passages(picture: Picture, view: ReuseView, centres: list[float]) -> None:
    """The tile does not stay: each reader fetches it anew, and a maker has to write it first."""
    for index, centre in enumerate(centres):
        if view.produced and index == 0:
            picture.write_arrow(centre, _KERNEL_BOTTOM + 2, _TENSOR_TOP - 2, 5)
        else:
            picture.read_arrow(centre, _TENSOR_TOP - 2, _KERNEL_BOTTOM + 2, 5)
    _draw_in_memory(picture, view)


def _draw_in_memory(picture: Picture, view: ReuseView) -> None:
    name = str(_IN_MEMORY.format(tile=format_bytes(view.tile_bytes)))
    picture.tensor((_LEFT + _RIGHT) / 2, _TENSOR_TOP, _RIGHT - _LEFT - 20, name, None)


def _draw_meter(picture: Picture, view: ReuseView) -> None:
    limit = format_bytes(view.budget_bytes)
    piece = format_bytes(view.plan["piece_bytes"])
    picture.meter(
        _METER_X, _METER_BOTTOM, _METER_WIDTH, _METER_FULL, view.plan["budget_utilization"], limit=limit, filled=piece
    )
    if view.blocks is not None:
        middle = _METER_X + _METER_WIDTH / 2
        picture.text(middle, _METER_BOTTOM + 24, _BLOCKS.format(blocks=view.blocks), anchor="middle", bold=True)
        picture.squares(middle, _METER_BOTTOM + 34, min(view.blocks, 16))
