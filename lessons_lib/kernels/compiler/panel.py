"""The compiler's panel: any kernel, any GPU, no GPU needed; meters, the spill cliff, and blocks on one SM."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lessons_lib.base.gpus import GPUS
from lessons_lib.base.text import Text, sentences
from lessons_lib.base.units import format_bytes
from lessons_lib.kernels.compiler.compiled import (
    NONE,
    UNKNOWN,
    CompileReport,
    family_words,
    load_words,
    sentence,
    tile_words,
)
from lessons_lib.kernels.compiler.drawing import CompilerView, TriedTile, draw_report
from lessons_lib.kernels.compiler.estimate import Estimate, estimate_needs
from lessons_lib.kernels.compiler.report import compile_report, default_launch
from lessons_lib.kernels.launch import ELEMENT_BYTES, KERNELS, KernelName
from lessons_lib.show.controls import check_box, choice_buttons, choice_list, int_slider
from lessons_lib.show.panel import Panel, Parameter
from lessons_lib.show.table import Table

_LIMIT_SECONDS = 20.0  # a panel must not keep a learner waiting for a tile that no one would launch
_FIRST_GPU = "T4"
_ELEMENTWISE = tuple((1, width) for width in (256, 512, 1024, 2048, 4096, 8192))
_ROWS = tuple((width,) for width in (512, 1024, 2048, 4096, 8192, 16384))
_GEMM = ((32, 32, 32), (64, 64, 32), (128, 64, 32), (128, 128, 32), (128, 128, 64), (128, 256, 64))
_TILES: dict[KernelName, tuple[tuple[int, ...], ...]] = {
    "chain": _ELEMENTWISE,
    "epilogue": _ELEMENTWISE,
    "rmsnorm": _ROWS,
    "softmax": _ROWS,
    "linear": _GEMM,
}
_WARPS = (1, 2, 4, 8, 16)

_CHANGED_KERNEL = Text(
    zh="换了核函数：数据块、warp 数和级数改为它启动时的默认值。",
    en="Another kernel: tile, warps and stages are now the defaults of its launch.",
)
_CHANGED_TILE = Text(
    zh="这里不列刚才的数据块：改为启动时的默认值。",
    en="That tile is not offered here: it is now the default of the kernel's launch.",
)
_COMPILING = Text(zh="正在编译，最多等 {limit:g} 秒……", en="compiling, {limit:g} s at most …")
_NO_TRITON = Text(
    zh="这里没有 Triton：画的是第 02 课公式给出的下限，不是编译结果。",
    en="There is no Triton here: this shows lower bounds from lesson 02's formulas, not a compiler's results.",
)
_COLUMNS = (
    Text(zh="数据块", en="tile"),
    Text(zh="每线程寄存器", en="registers"),
    Text(zh="溢出", en="spill"),
    Text(zh="共享内存", en="shared memory"),
    Text(zh="线程块/SM", en="blocks/SM"),
    Text(zh="每次最多读", en="widest load"),
    Text(zh="乘加单元", en="multiplies on"),
)
_LIMITS = Text(
    zh="{kernel}，{dtype}，{block}。{gpu} 的上限：每线程 {registers} 个寄存器，每线程块 {shared} 共享内存。",
    en="{kernel}, {dtype}, {block}. Limits of the {gpu}: {registers} registers per thread, {shared} of shared "
    "memory per block.",
)
_MARKS = Text(
    zh="? 表示还没试过，括号里是占用率。",
    en="?: not tried yet; occupancy in brackets.",
)
_AT_LEAST = Text(zh="≥ {count}", en="≥ {count}")


class CompilerPanel(Panel):
    """GPU, kernel, dtype, tile, warps, stages and whether sizes are multiples of 16, compiled as each of them moves.

    ``result`` is the ``CompileReport``. Tiles that have been tried in a setting stay in its picture and table.
    """

    lesson = "05"

    gpu = Parameter(lambda: choice_list(Text(zh="GPU", en="GPU"), [(name, name) for name in GPUS], _FIRST_GPU))
    kernel = Parameter(lambda: choice_buttons(Text(zh="核函数", en="kernel"), KERNELS, "chain"))
    dtype = Parameter(lambda: choice_buttons(Text(zh="类型", en="dtype"), tuple(ELEMENT_BYTES), "fp16"))
    tile = Parameter(lambda: choice_list(Text(zh="数据块", en="tile"), _choices(_ELEMENTWISE), (1, 1024)))
    num_warps = Parameter(lambda: choice_buttons(Text(zh="warp 数", en="warps"), _WARPS, 4))
    num_stages = Parameter(lambda: int_slider(Text(zh="级数", en="stages"), 1, 1, 5))
    multiple_of_16 = Parameter(
        lambda: check_box(Text(zh="各个大小是 16 的倍数", en="sizes are multiples of 16"), True)
    )

    def __init__(self) -> None:
        self._tried: dict[tuple[object, ...], dict[tuple[int, ...], CompileReport]] = {}
        super().__init__()

    def constrain(self, moved: str) -> Text | None:
        if moved == "kernel":
            tile, warps, stages = self._default()
            self._offer(tile)
            self.controls["num_warps"].value = warps
            self.controls["num_stages"].value = stages
            return _CHANGED_KERNEL
        if moved in ("gpu", "dtype") and self._offer(self.tile):
            return _CHANGED_TILE
        return None

    def _offer(self, tile: tuple[int, ...]) -> bool:
        """Offer the kernel's tiles and choose ``tile``, or the launch's own and True where it is not among them."""
        tiles = self._tiles()
        self.controls["tile"].options = _choices(tiles)
        self.controls["tile"].value = tile if tile in tiles else self._default()[0]
        return tile not in tiles

    def remark(self) -> Text | None:
        found: CompileReport = self.result
        if found.status == "no_triton":
            return _NO_TRITON
        # What failed is told inside the card, at length.
        quiet = found.status == "failed" or (found.status == "ok" and not found.spills)
        return None if quiet else sentence(found.verdict)

    def compute(self) -> CompileReport:
        self._note_view.value = f"<i>{_COMPILING.format(limit=_LIMIT_SECONDS)}</i>"
        found = compile_report(
            self.kernel,
            GPUS[self.gpu],
            self.dtype,
            self.tile,
            self.num_warps,
            self.num_stages,
            self.multiple_of_16,
            limit_seconds=_LIMIT_SECONDS,
        )
        self._tiles_tried()[self.tile] = found
        return found

    def picture(self, result: CompileReport) -> str:
        tried = self._tiles_tried()
        tiles = tuple(TriedTile(tile, tried.get(tile)) for tile in self._tiles())
        estimate = self._estimate(self.tile) if result.status == "no_triton" else None
        return draw_report(CompilerView(result, estimate, tiles))

    def table(self, result: CompileReport) -> Table:
        tiles = self._tiles()
        gpu = result.gpu
        shared = format_bytes(gpu.shared_bytes_per_block)
        limits = _LIMITS.format(
            kernel=result.kernel,
            dtype=result.dtype,
            block=result.block_words,
            gpu=gpu.name,
            registers=gpu.max_registers_per_thread,
            shared=shared,
        )
        if result.status == "no_triton":
            notes: tuple[Text, ...] = (limits, _NO_TRITON)
        else:
            notes = (limits, _MARKS, result.made_by if result.compiled else sentence(result.verdict))
        return Table(
            [str(column) for column in _COLUMNS],
            [self._row(tile, result.status == "no_triton") for tile in tiles],
            marked=tiles.index(self.tile),
            note=sentences(*notes),
        )

    def _row(self, tile: tuple[int, ...], estimated: bool) -> list[str]:
        found = self._tiles_tried().get(tile)
        name = tile_words(tile)
        if estimated:
            least = self._estimate(tile)
            registers, shared = _AT_LEAST.format(count=least.registers), format_bytes(least.shared_bytes)
            return [name, str(registers), UNKNOWN, str(_AT_LEAST.format(count=shared)), *([UNKNOWN] * 3)]
        if found is None:
            return [name, *(["?"] * 6)]
        if not found.compiled:
            return [name, "✗", *([UNKNOWN] * 5)]
        return [
            name,
            UNKNOWN if found.registers_per_thread is None else str(found.registers_per_thread),
            UNKNOWN
            if found.spill_bytes is None
            else format_bytes(found.spill_bytes)
            if found.spill_bytes
            else str(NONE),
            format_bytes(found.shared_bytes or 0),
            found.blocks_words,
            load_words(found.load_bytes),
            family_words(found.instruction_family),
        ]

    def _estimate(self, tile: tuple[int, ...]) -> Estimate:
        return estimate_needs(self.kernel, GPUS[self.gpu], self.dtype, tile, self.num_warps, self.num_stages)

    def _default(self) -> tuple[tuple[int, ...], int, int]:
        return default_launch(self.kernel, GPUS[self.gpu], self.dtype)

    def _tiles(self) -> tuple[tuple[int, ...], ...]:
        """The kernel's tiles, its launch's own among them, from small to large."""
        return tuple(sorted({*_TILES[self.kernel], self._default()[0]}, key=lambda tile: (math.prod(tile), tile)))

    def _tiles_tried(self) -> dict[tuple[int, ...], CompileReport]:
        """Reports by tile for the present setting of all other controls."""
        setting = tuple(control.value for name, control in self.controls.items() if name != "tile")
        return self._tried.setdefault(setting, {})


def _choices(tiles: Sequence[tuple[int, ...]]) -> list[tuple[str, tuple[int, ...]]]:
    return [(tile_words(tile), tile) for tile in tiles]
