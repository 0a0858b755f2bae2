"""The course's picture for a compiled kernel: what one thread block takes of the chip, and what falls off it.

Registers and shared memory are vessels. A register spill is what everything is that leaves the chip: an arrow down into
device memory and one back up.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.kernels.compiler.compiled import CompileReport, family_words, share_words, tile_words
from lessons_lib.kernels.compiler.estimate import Estimate
from lessons_lib.show.picture import (
    BODY,
    CARD_WIDTH,
    INK,
    MARGIN,
    MEMORY_LABEL,
    MUTED,
    WRITE,
    Picture,
    text_width,
)

_HEIGHT = 542
_LEFT, _RIGHT = 36.0, 470.0
_KERNEL_TOP, _KERNEL_BOTTOM = 88.0, 276.0
_METER_WIDTH, _METER_FULL, _METER_BOTTOM = 84.0, 98.0, 250.0
_REGISTERS_X, _SHARED_X = 76.0, 280.0
_TENSORS_X = _SHARED_X + _METER_WIDTH / 2
_MEMORY_TOP, _MEMORY_HEIGHT = 318.0, 66.0
_TENSOR_TOP = _MEMORY_TOP + 8
_SIDE_X = 500.0
_STRIP_TITLE, _STRIP_BOTTOM = 408.0, 496.0
_STRIP_FULL, _STRIP_MOST = 54.0, 76.0
_REGISTER_BYTES = 4
_FULL_BYTES = 16  # of one load: the thickest arrow

_TITLE = Text(zh="{kernel}，{dtype}，数据块 {tile}", en="{kernel}, {dtype}, tile {tile}")
_ROW_TITLE = Text(zh="{kernel}，{dtype}，一行 {tile} 个元素", en="{kernel}, {dtype}, a row of {tile}")
_BLOCK = Text(zh="线程块：{block}", en="thread block: {block}")
_REGISTERS = Text(zh="每线程寄存器", en="registers per thread")
_SHARED = Text(zh="每线程块共享内存", en="shared memory per block")
_SPILLED = Text(zh="溢出的值", en="spilled values")
_TENSORS = Text(zh="输入和输出", en="inputs and output")
_SPILL = Text(zh="每线程溢出 {bytes}", en="spill {bytes} per thread")
_LOAD = Text(zh="每次最多读 {bytes}", en="widest load {bytes}")
_ON_ONE_SM = Text(zh="一个 SM 上的线程块", en="blocks on one SM")
_SLOTS = Text(zh="占用率", en="occupancy")
_SLOT_WORDS = Text(zh="{warps} / {slots} 个 warp，{share}", en="{warps} of {slots} warps, {share}")
_LIMITED = Text(zh="受限于", en="limited by")
_UNIT = Text(zh="乘加单元", en="multiplies on")
_AMD = Text(zh="AMD 的规则不同，未计算", en="not modelled for AMD")
_MOST = Text(zh="上限 {limit}", en="limit {limit}")
_STRIP = Text(zh="每线程寄存器，试过的数据块", en="registers per thread, tiles tried so far")
_UNTRIED, _REFUSED = "?", "✗"
_ESTIMATED = Text(zh="公式估算的下限", en="lower bound by formula")
_NO_SPILL = Text(zh="没有寄存器溢出", en="no register spill")
_SPILL_TITLE = Text(zh="寄存器溢出，每线程 {bytes}", en="spills {bytes} per thread")
_OVER = Text(zh="启动不了：共享内存 {asked} > {limit}", en="does not launch: {asked} > {limit} shared memory")
_NO_FIGURES = Text(zh="没有编译结果", en="no figures")
_LABEL = Text(
    zh="{title}，{gpu}：寄存器 {registers}，溢出 {spill}，共享内存 {shared}",
    en="{title} on the {gpu}: {registers} registers, spill {spill}, shared memory {shared}",
)


@dataclass(frozen=True)
class TriedTile:
    """A tile of the strip and what its compile gave; ``report`` is ``None`` for one that nobody has tried."""

    tile: tuple[int, ...]
    report: CompileReport | None


@dataclass(frozen=True)
class CompilerView:
    """What the picture shows: a report, an estimate where there is no compiler, and the tiles of the strip."""

    report: CompileReport
    estimate: Estimate | None
    tiles: tuple[TriedTile, ...]


def draw_report(view: CompilerView) -> str:
    """The thread block, its vessels, the SM and the tiles tried so far as an SVG string."""
    found = view.report
    named = _ROW_TITLE if len(found.tile) == 1 else _TITLE
    title = named.format(kernel=found.kernel, dtype=found.dtype, tile=found.tile_words)
    picture = Picture(_HEIGHT, _spoken(view, str(title)), prefix="compiled")
    made_by = (
        found.gpu.target if found.triton_version is None else f"{found.gpu.target}, Triton {found.triton_version}"
    )
    picture.heading(title, [(f"{found.gpu.name}, {made_by}", False), (str(_headline(view)), True)])
    picture.chip_label(_KERNEL_TOP - 10)
    block = _BLOCK.format(block=found.block_words)
    picture.kernel(_LEFT, _KERNEL_TOP, _RIGHT - _LEFT, _KERNEL_BOTTOM - _KERNEL_TOP, str(block))
    picture.memory_band(_MEMORY_TOP, _MEMORY_HEIGHT, MEMORY_LABEL)
    if found.compiled:
        _draw_meters(picture, found, found.registers_per_thread or 0, found.shared_bytes or 0)
        _draw_passages(picture, found)
        _draw_sm(picture, found)
    elif view.estimate is not None:
        _draw_meters(picture, found, view.estimate.registers, view.estimate.shared_bytes)
        _draw_tensors(picture, 5.0)
        _draw_words(picture, _SIDE_X, 122, CARD_WIDTH - MARGIN - 8 - _SIDE_X, f"{found.verdict}")
    else:
        picture.tensor(_TENSORS_X, _TENSOR_TOP, 180, str(_TENSORS), None)
        _draw_words(picture, _LEFT + 16, 140, _RIGHT - _LEFT - 32, str(found.verdict))
    _draw_strip(picture, view)
    return picture.svg()


def _spoken(view: CompilerView, title: str) -> str:
    found = view.report
    if not found.compiled:
        return f"{title}, {found.gpu.name}: {found.verdict}"
    return str(
        _LABEL.format(
            title=title,
            gpu=found.gpu.name,
            registers=found.registers_per_thread,
            spill=found.spill_words,
            shared=format_bytes(found.shared_bytes or 0),
        )
    )


def _headline(view: CompilerView) -> Text:
    found = view.report
    if found.status == "over_shared":
        asked, limit = format_bytes(found.shared_bytes or 0), format_bytes(found.gpu.shared_bytes_per_block)
        return _OVER.format(asked=asked, limit=limit)
    if found.compiled:
        return _SPILL_TITLE.format(bytes=format_bytes(found.spill_bytes)) if found.spill_bytes else _NO_SPILL
    return _NO_FIGURES if view.estimate is None else _ESTIMATED


# -- the thread block --------------------------------------------------------------------------------------------


def _draw_meters(picture: Picture, found: CompileReport, registers: int, shared: int) -> None:
    gpu = found.gpu
    for x, used, limit, filled, most, name in (
        (_REGISTERS_X, registers, gpu.max_registers_per_thread, str(registers), None, _REGISTERS),
        (_SHARED_X, shared, gpu.shared_bytes_per_block, format_bytes(shared), format_bytes, _SHARED),
    ):
        words = str(limit) if most is None else most(limit)
        picture.meter(x, _METER_BOTTOM, _METER_WIDTH, _METER_FULL, used / limit, limit=words, filled=filled)
        picture.text(x + _METER_WIDTH / 2, _METER_BOTTOM + 18, name, anchor="middle", colour=MUTED)


def _draw_passages(picture: Picture, found: CompileReport) -> None:
    """What goes between the block and memory: its tensors, as wide as its loads, and what it had to spill."""
    _draw_tensors(picture, _arrow_width(found.load_bytes))
    if found.load_bytes:
        words = _LOAD.format(bytes=format_bytes(found.load_bytes))
        picture.text(_TENSORS_X + 24, _KERNEL_BOTTOM + 26, words)
    if not found.spill_bytes:
        return
    spill_x = _REGISTERS_X + _METER_WIDTH / 2
    picture.write_arrow(spill_x - 22, _KERNEL_BOTTOM + 2, _TENSOR_TOP - 2, 5)
    picture.read_arrow(spill_x, _TENSOR_TOP - 2, _KERNEL_BOTTOM + 2, 5)
    picture.tensor(spill_x, _TENSOR_TOP, 120, str(_SPILLED), None)
    words = _SPILL.format(bytes=format_bytes(found.spill_bytes))
    picture.text(spill_x + 16, _KERNEL_BOTTOM + 26, words, colour=WRITE, bold=True)


def _draw_tensors(picture: Picture, width: float) -> None:
    picture.read_arrow(_TENSORS_X - 24, _TENSOR_TOP - 2, _KERNEL_BOTTOM + 2, width)
    picture.write_arrow(_TENSORS_X + 4, _KERNEL_BOTTOM + 2, _TENSOR_TOP - 2, width)
    picture.tensor(_TENSORS_X, _TENSOR_TOP, 180, str(_TENSORS), None)


def _arrow_width(load_bytes: int | None) -> float:
    """From 2 to 7 pixels for loads of 2 to 16 bytes; in between where no thread loads for itself."""
    if not load_bytes:
        return 5.0
    return 2.0 + 5.0 * (min(max(load_bytes, 2), _FULL_BYTES) - 2) / (_FULL_BYTES - 2)


# -- the SM ------------------------------------------------------------------------------------------------------


def _draw_sm(picture: Picture, found: CompileReport) -> None:
    """How many such blocks one SM holds, what keeps more off it, and which unit multiplies."""
    y = _KERNEL_TOP + 12
    held = found.occupancy
    if held is None:
        y = _draw_fact(picture, y, _ON_ONE_SM, [str(_AMD)])
    else:
        y = _draw_fact(picture, y, _ON_ONE_SM, [str(held["blocks_per_sm"])])
        shown = min(held["blocks_per_sm"], 16)
        picture.squares(_SIDE_X + 36 + 5 * shown, y - 37, shown)
        slots = _SLOT_WORDS.format(
            warps=held["active_warps"], slots=found.gpu.warps_per_sm, share=share_words(held["occupancy"])
        )
        y = _draw_fact(picture, y, _SLOTS, [str(slots)])
        y = _draw_fact(picture, y, _LIMITED, [str(found.limiter_words())])
    _draw_fact(picture, y, _UNIT, [family_words(found.instruction_family)])


def _draw_fact(picture: Picture, y: float, name: Text, lines: list[str]) -> float:
    picture.text(_SIDE_X, y, name, colour=MUTED)
    for row, words in enumerate(lines):
        picture.text(_SIDE_X, y + 19 + 18 * row, words, size=BODY, bold=True)
    return y + 28 + 18 * len(lines)


# -- the tiles ---------------------------------------------------------------------------------------------------


def _draw_strip(picture: Picture, view: CompilerView) -> None:
    """Registers and spill of every tile that has been compiled in this setting, against the limit."""
    limit = view.report.gpu.max_registers_per_thread
    top = _STRIP_BOTTOM - _STRIP_FULL
    left, right = MARGIN + 8.0, CARD_WIDTH - MARGIN - 8.0
    picture.text(left, _STRIP_TITLE, _STRIP, colour=MUTED)
    picture.text(right, _STRIP_TITLE, _MOST.format(limit=limit), anchor="end", colour=MUTED)
    step = (right - left) / len(view.tiles)
    width = min(64.0, step - 16)
    for index, tried in enumerate(view.tiles):
        middle = left + step * (index + 0.5)
        current = tried.tile == view.report.tile
        figures = _draw_tile(picture, middle, width, tried.report, current, limit)
        name = f"{'▸ ' if current else ''}{tile_words(tried.tile).replace(' ', '')}"
        colour = INK if current else MUTED
        picture.text(middle, _STRIP_BOTTOM + 17, name, anchor="middle", bold=current, colour=colour)
        picture.text(middle, _STRIP_BOTTOM + 34, figures, anchor="middle", bold=current, colour=colour)
    picture.rule(left, right, _STRIP_BOTTOM)
    picture.rule(left, right, top)


def _draw_tile(
    picture: Picture, middle: float, width: float, found: CompileReport | None, current: bool, limit: int
) -> str:
    """One column; returns the figures to write beneath it."""
    x = middle - width / 2
    if found is None or not found.compiled or found.registers_per_thread is None:
        picture.empty_column(x, _STRIP_BOTTOM, width, _STRIP_FULL)
        return _UNTRIED if found is None or found.status == "no_triton" else _REFUSED
    kept = _STRIP_FULL * min(1.0, found.registers_per_thread / limit)
    spilled = 0.0
    if found.spill_bytes:
        share = found.spill_bytes / (_REGISTER_BYTES * limit)
        spilled = min(max(4.0, _STRIP_FULL * share), _STRIP_MOST - kept)
    picture.column(x, _STRIP_BOTTOM, width, kept, spilled, current=current)
    registers = str(found.registers_per_thread)
    return f"{registers} + {format_bytes(found.spill_bytes)}" if found.spill_bytes else registers


# -- words that need more than a line ----------------------------------------------------------------------------


def _draw_words(picture: Picture, x: float, y: float, width: float, words: str) -> None:
    for row, line in enumerate(wrapped(words, width, BODY)[:6]):
        picture.text(x, y + 20 * row, line, size=BODY)


def wrapped(words: str, width: float, size: float) -> list[str]:
    """``words`` in lines of at most ``width`` pixels, broken at spaces and around Chinese characters; a single piece
    that is too long for a line is cut."""
    lines, line = [], ""
    for piece in _pieces(words):
        if line and text_width((line + piece).rstrip(), size) > width:
            lines.append(line.rstrip())
            line = ""
        while text_width(piece.rstrip(), size) > width:
            fits = next(end for end in range(len(piece), 0, -1) if text_width(piece[:end], size) <= width)
            lines.append(piece[:fits])
            piece = piece[fits:]
        line += piece
    return [*lines, line.rstrip()] if line.strip() else lines


def _pieces(words: str) -> list[str]:
    """Words with the space behind them; each Chinese character for itself, with the punctuation that follows it."""
    pieces: list[str] = []
    for character in words:
        wide = unicodedata.east_asian_width(character) in "WF"
        closing = unicodedata.category(character) in ("Po", "Pe", "Pf") and wide
        previous = pieces[-1] if pieces else ""
        new = not previous or previous.endswith(" ") or (wide and not closing)
        new = new or (not wide and unicodedata.east_asian_width(previous[-1]) in "WF")
        if new:
            pieces.append(character)
        else:
            pieces[-1] += character
    return pieces
