"""The compiler's panel: what is drawn is what was compiled, a spill is two arrows more, nothing leaves the card."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from example_report import CLEAN

from lessons_lib import use_language
from lessons_lib.base.gpus import GPUS, T4
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.kernels.compiler import report as report_module
from lessons_lib.kernels.compiler.compiled import FAMILY_WORDS, CompileReport, compiler_error, tile_words
from lessons_lib.kernels.compiler.drawing import CompilerView, TriedTile, draw_report, wrapped
from lessons_lib.kernels.compiler.estimate import estimate_needs
from lessons_lib.kernels.compiler.panel import CompilerPanel
from lessons_lib.kernels.compiler.report import compile_report, default_launch, triton_version
from lessons_lib.kernels.launch import KERNELS
from lessons_lib.reuse.gemm import accumulator_registers, resident_buffers, tile_operand_bytes
from lessons_lib.show.picture import CARD_WIDTH, KEPT_FILL, READ, WRITE, text_width

SVG = "{http://www.w3.org/2000/svg}"
needs_triton = pytest.mark.skipif(triton_version() is None, reason="needs Triton")
WIDTHS = tuple((1, width) for width in (256, 512, 1024, 2048, 4096, 8192))


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LESSONS_CACHE", str(tmp_path_factory.mktemp("compiled")))
        yield


EXAMPLE = dataclasses.replace(CLEAN, gpu=T4, registers_per_thread=64, shared_bytes=16_384)


def picture(found: CompileReport, tried: dict[tuple[int, ...], CompileReport] | None = None) -> ElementTree.Element:
    """What the panel draws, without the widgets around it."""
    reports = {found.tile: found} if tried is None else tried
    tiles = tuple(TriedTile(tile, reports.get(tile)) for tile in sorted({*WIDTHS, found.tile}))
    return ElementTree.fromstring(draw_report(CompilerView(found, None, tiles)))


def words(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def boxes(root: ElementTree.Element) -> list[ElementTree.Element]:
    return list(root.iter(f"{SVG}rect"))


def number(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name, 0))


def shafts(root: ElementTree.Element, colour: str) -> list[float]:
    """Widths of the arrows of this colour: lines, and not the hatching, which is thinner."""
    lines = [path for path in root.iter(f"{SVG}path") if path.get("stroke") == colour]
    return [width for path in lines if (width := number(path, "stroke-width")) >= 2]


def columns(root: ElementTree.Element) -> list[ElementTree.Element]:
    """The strip's columns, from left to right."""
    return sorted(
        (box for box in boxes(root) if box.get("fill") == KEPT_FILL and number(box, "width") == 64),
        key=lambda box: number(box, "x"),
    )


# -- the panel ---------------------------------------------------------------------------------------------------


@needs_triton
def test_result_picture_and_table_follow_every_control() -> None:
    panel = CompilerPanel()
    moves: dict[str, Any] = {
        "gpu": "A100 (40 GB)",
        "dtype": "fp32",
        "tile": (1, 4096),
        "num_warps": 8,
        "multiple_of_16": False,
        "kernel": "linear",
        "num_stages": 4,
    }
    for name, value in moves.items():
        before = panel.static_forms()
        setattr(panel, name, value)
        after = panel.static_forms()
        assert after["image/svg+xml"] != before["image/svg+xml"], name
        assert panel._picture_view.value == after["image/svg+xml"]
        assert after["text/plain"] != before["text/plain"], name
        found = panel.result
        assert (found.gpu.name, found.kernel, found.dtype) == (panel.gpu, panel.kernel, panel.dtype)
        assert (found.tile, found.num_warps, found.num_stages) == (panel.tile, panel.num_warps, panel.num_stages)
        assert found.sizes_multiple_of_16 == panel.multiple_of_16


@needs_triton
def test_the_result_is_the_compile_report() -> None:
    panel = CompilerPanel()
    panel.set(gpu="A10", tile=(1, 2048), num_warps=8)
    assert panel.result == compile_report("chain", "A10", "fp16", (1, 2048), 8, 1)


@needs_triton
def test_the_spill_cliff_grows_as_tiles_are_tried() -> None:
    panel = CompilerPanel()
    panel.multiple_of_16 = False
    for tile in ((1, 512), (1, 2048), (1, 8192)):
        panel.tile = tile
    table = panel.table(panel.result)
    tried = {row[0]: row for row in table.rows}
    assert [row[1] == "?" for row in table.rows] == [True, False, False, False, True, False]
    assert table.marked == 5
    assert int(tried["1 × 512"][1]) < int(tried["1 × 2,048"][1]) < int(tried["1 × 8,192"][1]) == 255
    assert tried["1 × 2,048"][2] == "none"
    assert tried["1 × 8,192"][2].endswith(" B")
    root = ElementTree.fromstring(panel.static_forms()["image/svg+xml"])
    heights = [number(box, "height") for box in columns(root)]
    assert heights == sorted(heights)
    assert len(heights) == 4
    panel.multiple_of_16 = True
    assert [row[1] == "?" for row in panel.table(panel.result).rows] == [True, True, False, True, True, False]
    assert "no register spill" in words(ElementTree.fromstring(panel.static_forms()["image/svg+xml"]))
    panel.multiple_of_16 = False
    assert panel.table(panel.result).rows == table.rows, "what was tried in a setting stays in it"


@needs_triton
def test_another_kernel_brings_its_own_launch_and_says_so() -> None:
    panel = CompilerPanel()
    for kernel in ("linear", "softmax", "epilogue", "rmsnorm", "chain"):
        panel.kernel = kernel
        assert (panel.tile, panel.num_warps, panel.num_stages) == default_launch(kernel, T4, "fp16")
        assert panel.result.status == "ok"
        assert "defaults of its launch" in panel._note_view.value
        assert panel.result.tile in dict(panel.controls["tile"].options).values()


@needs_triton
def test_a_tile_that_another_gpu_does_not_offer_is_replaced_and_the_panel_says_so() -> None:
    own = default_launch("linear", GPUS["MI300X"], "fp16")[0]
    panel = CompilerPanel()
    panel.set(gpu="MI300X", kernel="linear")
    assert panel.tile == own
    panel.gpu = "T4"
    offered = dict(panel.controls["tile"].options).values()
    assert (panel.tile == own) == (own in offered)
    if own not in offered:
        assert panel.tile == default_launch("linear", T4, "fp16")[0]
        assert "not offered here" in panel._note_view.value


@needs_triton
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gpu", "T5"),
        ("gpu", None),
        ("kernel", "attention"),
        ("dtype", "fp8"),
        ("tile", (1, 1000)),
        ("tile", (64, 64, 32)),
        ("tile", 1024),
        ("num_warps", 3),
        ("num_warps", True),
        ("num_stages", 0),
        ("num_stages", 6),
        ("multiple_of_16", 1),
    ],
)
def test_a_bad_value_names_itself_and_changes_nothing(name: str, value: object) -> None:
    panel = CompilerPanel()
    before, shown = {key: control.value for key, control in panel.controls.items()}, panel.static_forms()
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        setattr(panel, name, value)
    assert {key: control.value for key, control in panel.controls.items()} == before
    assert panel.static_forms() == shown


@needs_triton
def test_a_bad_value_after_a_good_one_puts_every_control_back() -> None:
    panel = CompilerPanel()
    panel.set(tile=(1, 2048), num_warps=8)
    before, shown = {key: control.value for key, control in panel.controls.items()}, panel.static_forms()
    with pytest.raises(ValueError, match="num_warps"):
        panel.set(kernel="linear", tile=(64, 64, 32), num_warps=5)
    assert {key: control.value for key, control in panel.controls.items()} == before
    assert panel.static_forms() == shown


@needs_triton
@pytest.mark.parametrize("language", ["zh", "en"])
def test_what_a_gpu_cannot_do_is_said_in_the_card_and_above_it(language: str) -> None:
    use_language(language)
    panel = CompilerPanel()
    panel.dtype = "bf16"
    assert panel.result.status == "unsupported"
    assert "bfloat16" in panel._note_view.value
    root = ElementTree.fromstring(panel.static_forms()["image/svg+xml"])
    assert any("bfloat16" in line for line in words(root))
    assert "✗" in panel.static_forms()["text/plain"]
    inside(root)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_without_triton_the_formulas_stand_in_and_are_called_so(
    language: str, kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_language(language)
    monkeypatch.setattr(report_module, "triton_version", lambda: None)
    panel = CompilerPanel()
    panel.set(gpu="A100 (40 GB)", kernel=kernel)
    assert panel.result.status == "no_triton"
    root = ElementTree.fromstring(panel.static_forms()["image/svg+xml"])
    assert ("公式估算的下限" if language == "zh" else "lower bound by formula") in words(root)
    least = estimate_needs(kernel, GPUS["A100 (40 GB)"], "fp16", panel.tile, panel.num_warps, panel.num_stages)
    assert str(least.registers) in words(root)
    assert format_bytes(least.shared_bytes) in words(root)
    assert f"≥ {least.registers}" in panel.static_forms()["text/plain"]
    assert "Triton" in panel.static_forms()["text/plain"]
    inside(root)
    panel.num_warps = 8 if panel.num_warps != 8 else 4
    assert ("公式" if language == "zh" else "formulas") in panel._note_view.value


def test_the_estimate_is_lesson_two_s_formulas() -> None:
    for gpu in GPUS.values():
        least = estimate_needs("linear", gpu, "fp32", (128, 64, 32), 8, 3)
        assert least.registers == accumulator_registers(gpu, 128, 64, 8)["registers_per_thread"]
        buffers = resident_buffers(gpu, 3)
        assert least.shared_bytes == tile_operand_bytes(128, 64, 32, buffers, 4)["total_bytes"]
    assert estimate_needs("chain", T4, "fp16", (2, 1024), 4, 1) == dataclasses.replace(
        least, registers=16, shared_bytes=0
    )


@needs_triton
def test_the_compiler_never_needs_less_than_the_estimate() -> None:
    for kernel, tile in (("chain", (1, 4096)), ("softmax", (8192,)), ("linear", (64, 64, 32))):
        found = compile_report(kernel, T4, "fp16", tile)  # type: ignore[arg-type]
        least = estimate_needs(kernel, T4, "fp16", tile, found.num_warps, found.num_stages)  # type: ignore[arg-type]
        assert found.registers_per_thread is not None
        assert found.shared_bytes is not None
        assert found.registers_per_thread >= least.registers
        assert found.shared_bytes >= least.shared_bytes


# -- the picture -------------------------------------------------------------------------------------------------


def test_a_spill_is_two_arrows_more_and_a_tensor_more_in_memory() -> None:
    clean, spilling = picture(EXAMPLE), picture(dataclasses.replace(EXAMPLE, spill_bytes=408))
    assert (len(shafts(clean, READ)), len(shafts(clean, WRITE))) == (1, 1)
    assert (len(shafts(spilling, READ)), len(shafts(spilling, WRITE))) == (2, 2)
    assert "spilled values" not in words(clean)
    assert "spilled values" in words(spilling)
    assert "spill 408 B per thread" in words(spilling)
    assert "spills 408 B per thread" in words(spilling)
    assert "no register spill" in words(clean)


@pytest.mark.parametrize(("load_bytes", "width"), [(1, 2.0), (2, 2.0), (8, 4.14), (16, 7.0), (32, 7.0), (0, 5.0)])
def test_arrows_are_as_wide_as_the_loads(load_bytes: int, width: float) -> None:
    root = picture(dataclasses.replace(EXAMPLE, load_bytes=load_bytes))
    assert shafts(root, READ) == pytest.approx([width], abs=0.01)
    assert (f"widest load {format_bytes(load_bytes)}" in words(root)) == (load_bytes > 0)


@pytest.mark.parametrize(("registers", "shared"), [(16, 0), (64, 16_384), (255, 65_536), (255, 98_304)])
def test_vessels_fill_by_the_share_of_the_limit_and_shared_memory_spills_over(registers: int, shared: int) -> None:
    status: Any = "over_shared" if shared > T4.shared_bytes_per_block else "ok"
    root = picture(dataclasses.replace(EXAMPLE, registers_per_thread=registers, shared_bytes=shared, status=status))
    vessels = [box for box in boxes(root) if number(box, "width") == 84 and box.get("fill") == KEPT_FILL]
    full = next(number(box, "height") for box in boxes(root) if number(box, "width") == 84) / 1.3
    for box, share in zip(vessels, (registers / 255, shared / 65_536), strict=True):
        assert number(box, "height") == pytest.approx(max(2.0, full * min(1.0, share)))
    over = [box for box in boxes(root) if number(box, "width") == 84 and box.get("stroke") == WRITE]
    assert len(over) == int(shared > 65_536)
    assert [line for line in words(root) if line in ("255", "64 KiB")], "the limits"
    said = [line for line in words(root) if line.startswith("does not launch: 96 KiB > 64 KiB")]
    assert bool(said) == (status == "over_shared")


def test_there_is_a_square_for_each_resident_block() -> None:
    for gpu, warps in itertools.product(GPUS.values(), (1, 4, 16)):
        found = dataclasses.replace(EXAMPLE, gpu=gpu, num_warps=warps, registers_per_thread=40)
        root = picture(found)
        squares = [box for box in boxes(root) if number(box, "width") == number(box, "height") == 8]
        held = found.occupancy
        assert len(squares) == (0 if held is None else min(16, held["blocks_per_sm"]))
        if held is None:
            assert "not modelled for AMD" in words(root)
        else:
            assert str(held["blocks_per_sm"]) in words(root)
            assert f"{held['active_warps']} of {gpu.warps_per_sm} warps, {100 * held['occupancy']:.3g}%" in words(
                root
            )


def test_the_strip_shows_tried_tiles_the_current_one_marked_and_refusals() -> None:
    tried = {
        (1, 512): dataclasses.replace(EXAMPLE, tile=(1, 512), registers_per_thread=51),
        (1, 1024): EXAMPLE,
        (1, 4096): dataclasses.replace(EXAMPLE, tile=(1, 4096), registers_per_thread=255, spill_bytes=1020),
        (1, 8192): dataclasses.replace(EXAMPLE, tile=(1, 8192), status="timeout"),
    }
    root = picture(EXAMPLE, tried)
    assert [number(box, "height") for box in columns(root)] == pytest.approx([54 * 51 / 255, 54 * 64 / 255, 54.0])
    (spilled,) = [box for box in boxes(root) if number(box, "width") == 64 and box.get("stroke") == WRITE]
    assert number(spilled, "height") == pytest.approx(76 - 54), "cut where it would leave the strip"
    said = words(root)
    assert "▸ 1×1,024" in said
    assert said.count("?") == 2
    assert said.count("✗") == 1
    assert "255 + 1,020 B" in said


STATES = {
    "clean": {},
    "spilling": {"registers_per_thread": 255, "spill_bytes": 123_456},
    "over": {"status": "over_shared", "shared_bytes": 1_000_000},
    "narrow": {"load_bytes": 1, "registers_per_thread": 16, "shared_bytes": 0},
    "timeout": {
        "status": "timeout",
        "detail": Text(zh="20 秒内没有编译完，放弃了", en="not compiled within 20 s: given up"),
    },
    "failed": {"status": "failed", "detail": compiler_error("no_such_name is not defined " + "and so on, " * 20)},
    "one word": {"status": "failed", "detail": compiler_error("x" * 200)},
}


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("gpu", GPUS)
def test_nothing_leaves_the_card_and_no_words_meet(language: str, state: str, gpu: str) -> None:
    use_language(language)
    changes: dict[str, Any] = STATES[state]
    gemm = (*((128, 128, 16 << depth) for depth in range(5)), (128, 256, 64), (256, 256, 32))
    for family, (kernel, tiles) in itertools.product(FAMILY_WORDS, (("rmsnorm", ((16_384,),)), ("linear", gemm))):
        found = dataclasses.replace(
            EXAMPLE, gpu=GPUS[gpu], kernel=kernel, tile=tiles[-1], instruction_family=family, num_warps=16, **changes
        )
        reports = tuple(TriedTile(tile, dataclasses.replace(found, tile=tile)) for tile in tiles)
        inside(ElementTree.fromstring(draw_report(CompilerView(found, None, reports))))


def inside(root: ElementTree.Element) -> None:
    """Boxes and words lie within the card, words are at least 12 px and do not meet each other."""
    height = number(root, "height")
    for box in boxes(root):
        assert 0 <= number(box, "x") <= number(box, "x") + number(box, "width") <= CARD_WIDTH
        assert 0 <= number(box, "y") <= number(box, "y") + number(box, "height") <= height
    taken: list[tuple[float, float, float, float, str]] = []
    for element in root.iter(f"{SVG}text"):
        size, x, baseline = number(element, "font-size"), number(element, "x"), number(element, "y")
        said = element.text or ""
        assert size >= 12
        wide = text_width(said, size)
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[element.get("text-anchor", "start")]
        assert left >= 8, said
        assert left + wide <= CARD_WIDTH - 8, said
        assert size <= baseline <= height - 4, said
        for other_left, other_right, other_baseline, other_size, other in taken:
            apart = left >= other_right or left + wide <= other_left
            assert apart or abs(baseline - other_baseline) >= max(size, other_size), (said, other)
        taken.append((left, left + wide, baseline, size, said))


def test_a_screen_reader_hears_the_figures() -> None:
    root = picture(dataclasses.replace(EXAMPLE, spill_bytes=24))
    assert root.get("aria-label") == (
        "chain, fp16, tile 1 × 1,024 on the T4: 64 registers, spill 24 B per thread, shared memory 16 KiB"
    )
    failed = dataclasses.replace(EXAMPLE, status="failed", detail=compiler_error("<no>"))
    assert picture(failed).get("aria-label") == "chain, fp16, tile 1 × 1,024, T4: the compiler says: <no>"


@pytest.mark.parametrize(
    ("said", "width"),
    [
        ("the compiler says: one two three four five six seven eight", 120),
        ("编译器报错：这一行中文没有空格，但也要在行宽之内折行，标点不放在行首。", 100),
        ("x" * 90, 100),
        ("中文和 English 混排 of several words，两种都要折", 90),
        ("", 50),
    ],
)
def test_long_words_are_broken_into_lines_that_fit_and_nothing_is_lost(said: str, width: float) -> None:
    lines = wrapped(said, width, 13)
    assert all(text_width(line, 13) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == said.replace(" ", "")
    assert not any(line[0] in "，。：" for line in lines)


def test_tiles_read_the_same_everywhere() -> None:
    assert tile_words((128, 1024)) == "128 × 1,024"
