"""The tile walk's panel and picture: blocks to scale, arrows for what moves now, nothing outside the card."""

from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

from lessons_lib import use_language
from lessons_lib.kernels.launch import KERNELS
from lessons_lib.kernels.walk import Operand, ProgramWalk, walk
from lessons_lib.kernels.walk_drawing import draw_walk
from lessons_lib.kernels.walk_panel import TileWalkPanel
from lessons_lib.show.picture import CARD, CARD_WIDTH, INK, MUTED, READ, READ_FILL, WRITE, WRITE_FILL, text_width

SVG = "{http://www.w3.org/2000/svg}"
TILES: dict[str, list[Any]] = {
    "chain": [None, (16, 16), (8, 32)],
    "epilogue": [None, (16, 16), (8, 32)],
    "rmsnorm": [None, (16,), (32,)],
    "softmax": [None, (16,), (32,)],
    "linear": [None, (16, 16, 16), (32, 16, 16), (16, 32, 32)],
}
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "chain": [(24, 50), (1, 1), (64, 64), (1, 64), (64, 1)],
    "epilogue": [(24, 50), (1, 1), (64, 64)],
    "rmsnorm": [(24, 50), (1, 1), (24, 64), (24, 1)],
    "softmax": [(24, 50), (1, 1), (24, 64)],
    "linear": [(24, 50, 40), (1, 1, 1), (160, 64, 64), (160, 1, 64), (1, 64, 1)],
}
STATES = [
    (kernel, shape, tile) for kernel in KERNELS for shape, tile in itertools.product(SHAPES[kernel], TILES[kernel])
]


def drawn(found: ProgramWalk) -> ElementTree.Element:
    return ElementTree.fromstring(draw_walk(found))


def number(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name, 0))


def boxes(root: ElementTree.Element, **attributes: str) -> list[ElementTree.Element]:
    found = root.iter(f"{SVG}rect")
    return [
        box for box in found if all(box.get(name.replace("_", "-")) == value for name, value in attributes.items())
    ]


def words(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def arrows(root: ElementTree.Element, colour: str) -> int:
    """Arrow heads: closed shapes filled with the colour."""
    return sum(path.get("fill") == colour and path.get("d", "").endswith("Z") for path in root.iter(f"{SVG}path"))


def hatched_boxes(root: ElementTree.Element) -> list[ElementTree.Element]:
    """Masked lanes: their frame is as thin as their lines."""
    return boxes(root, fill=CARD, stroke=MUTED, stroke_width="1")


def blocks(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [box for box in boxes(root) if box.get("fill") in (READ_FILL, WRITE_FILL)]


def ends(kernel: Any, shape: tuple[int, ...], tile: Any) -> list[ProgramWalk]:
    """The first, a middle and the last step of the first and of the last program."""
    first = walk(kernel, shape, 0, tile=tile)
    steps, programs = len(first.steps), first.programs
    return [
        walk(kernel, shape, program, step, tile)
        for program in sorted({0, programs - 1})
        for step in sorted({0, steps // 2, steps - 1})
    ]


# -- the picture ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "shape", "tile"), STATES)
def test_there_is_a_block_and_an_arrow_for_each_access_of_the_step(kernel: Any, shape: Any, tile: Any) -> None:
    for found in ends(kernel, shape, tile):
        root = drawn(found)
        assert arrows(root, READ) == len(found.loads)
        assert arrows(root, WRITE) == len(found.stores)
        filled = [box.get("fill") for box in blocks(root)]
        assert filled.count(READ_FILL) == len(found.loads)
        assert filled.count(WRITE_FILL) == len(found.stores)
        hatched = hatched_boxes(root)
        assert bool(hatched) == any(access.masked for access in found.accesses)
        frames = [box for box in boxes(root, fill="none") if box.get("stroke-dasharray") is None]
        assert len(frames) == sum(access.operand.programs > 1 for access in found.loads), "double frame: re-read"
        shares = boxes(root, fill="none", stroke_dasharray="5 4")
        assert len(shares) == (len(found.operands) if len(found.steps) > 1 else 0)


def test_blocks_are_drawn_to_scale_and_where_they_are() -> None:
    found = walk("chain", (24, 50), 3, tile=(8, 32))  # rows 8 to 16, columns 32 to 50
    root = drawn(found)
    matrices = [box for box in boxes(root, fill="#ffffff") if number(box, "width") == number(outline(root), "width")]
    x, block = matrices[0], blocks(root)[0]
    across, down = number(x, "width") / 50, number(x, "height") / 24
    assert number(block, "x") == pytest.approx(number(x, "x") + 32 * across)
    assert number(block, "y") == pytest.approx(number(x, "y") + 8 * down)
    assert number(block, "width") == pytest.approx(18 * across)
    assert number(block, "height") == pytest.approx(8 * down)
    (beside, *_) = hatched_boxes(root)
    assert number(beside, "x") == pytest.approx(number(x, "x") + number(x, "width")), "masked lanes are outside"
    assert number(beside, "width") == pytest.approx(14 * across)


def outline(root: ElementTree.Element) -> ElementTree.Element:
    """The first matrix: a white box with square corners."""
    return next(box for box in boxes(root, fill="#ffffff") if number(box, "rx") == 0)


def test_the_hatching_stays_within_the_masked_lanes() -> None:
    for found in ends("linear", (24, 50, 40), None) + ends("chain", (1, 1), None):
        root = drawn(found)
        areas = hatched_boxes(root)
        for path in root.iter(f"{SVG}path"):
            if path.get("stroke") == "#57606a" and path.get("stroke-width") == "1":
                start, end = path.get("d", "").lstrip("M").split(" L")
                points = [tuple(map(float, point.split(","))) for point in (start, end)]
                assert any(all(inside_box(point, area) for point in points) for area in areas)


def inside_box(point: tuple[float, ...], box: ElementTree.Element) -> bool:
    x, y = number(box, "x"), number(box, "y")
    across, down = point[0] - x, point[1] - y
    return -0.01 <= across <= number(box, "width") + 0.01 and -0.01 <= down <= number(box, "height") + 0.01


def test_the_numbers_in_the_result_are_the_programs_that_write_there() -> None:
    found = walk("linear", (160, 64, 64), 33, tile=(16, 16, 16))
    numbers = [word for word in words(drawn(found)) if word.isdigit()]
    assert sorted(map(int, numbers)) == list(range(40))
    bold = [
        text.text
        for text in drawn(found).iter(f"{SVG}text")
        if (text.text or "").isdigit() and text.get("fill") == INK
    ]
    assert bold == ["33"]


def test_an_operator_that_waits_is_dashed() -> None:
    def waiting(step: int) -> list[str]:
        root = drawn(walk("linear", (16, 16, 32), 0, step, (16, 16, 16)))
        idle = boxes(root, stroke_dasharray="4 3")
        return [word for box in idle for word, text in named(root) if inside_box(text, box)]

    assert waiting(0) == waiting(1) == ["+ bias", "gelu"]
    assert waiting(2) == ["dot"]


def named(root: ElementTree.Element) -> list[tuple[str, tuple[float, float]]]:
    return [(text.text or "", (number(text, "x"), number(text, "y"))) for text in root.iter(f"{SVG}text")]


def test_the_heading_adds_up() -> None:
    root = drawn(walk("chain", (24, 50), 1))
    assert words(root)[:5] == [
        "chain: program 1",
        "tile 16 × 64, programs 0 … 1",
        "reads 400 + 50 + 50 + 400 = 900 elements",
        "writes 400 elements",
        "masked lanes 1,900 of 3,200",
    ]


def test_a_screen_reader_hears_what_moves() -> None:
    assert drawn(walk("linear", (24, 50, 40), 5, 3, (16, 16, 16))).get("aria-label") == (
        "linear, program 5 of 8: reads bias [32:48]; writes y [16:24, 32:48]"
    )
    assert drawn(walk("softmax", (2, 20), 1, 0, (16,))).get("aria-label") == (
        "softmax, program 1 of 2: reads x [1:2, 0:16]; writes nothing"
    )


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(("kernel", "shape", "tile"), STATES)
def test_nothing_leaves_the_card_and_no_words_meet(language: str, kernel: Any, shape: Any, tile: Any) -> None:
    use_language(language)
    for found in ends(kernel, shape, tile):
        root = drawn(found)
        height = number(root, "height")
        for box in boxes(root):
            assert 0 <= number(box, "x") <= number(box, "x") + number(box, "width") <= CARD_WIDTH
            assert 0 <= number(box, "y") <= number(box, "y") + number(box, "height") <= height
        texts = [extent(text) for text in root.iter(f"{SVG}text")]
        for _, left, right, top, bottom in texts:
            assert left >= 8 and right <= CARD_WIDTH - 8 and top >= 0 and bottom <= height - 4
        for one, other in itertools.combinations(texts, 2):
            apart = one[2] <= other[1] or other[2] <= one[1] or one[4] <= other[3] or other[4] <= one[3]
            assert apart, (one[0], other[0])


def extent(text: ElementTree.Element) -> tuple[str, float, float, float, float]:
    size, x, y = number(text, "font-size"), number(text, "x"), number(text, "y")
    assert size >= 12
    wide = text_width(text.text or "", size)
    left = {"start": x, "middle": x - wide / 2, "end": x - wide}[text.get("text-anchor", "start")]
    return text.text or "", left, left + wide, y - 0.8 * size, y + 0.1 * size


@pytest.mark.parametrize(("kernel", "shape", "tile"), STATES)
def test_matrices_stand_apart_and_above_their_names(kernel: Any, shape: Any, tile: Any) -> None:
    for found in ends(kernel, shape, tile):
        root = drawn(found)
        named_at = {word.split(" ")[0]: place for word, place in named(root) if " [" in word}
        across = sorted(place[0] for place in named_at.values())
        room = min((b - a for a, b in itertools.pairwise(across)), default=CARD_WIDTH)
        for operand in found.operands:
            x, y = named_at[operand.name]
            parts = area(root, operand, x, room)
            assert parts
            for box in parts:
                assert number(box, "y") + number(box, "height") <= y - 12
                assert x - room / 2 <= number(box, "x")
                assert number(box, "x") + number(box, "width") <= x + room / 2


def area(root: ElementTree.Element, operand: Operand, x: float, room: float) -> list[ElementTree.Element]:
    """The boxes in memory whose middle is in the operand's column."""
    square = [box for box in boxes(root) if number(box, "rx") in (0, 2) and number(box, "y") > 256]
    return [box for box in square if abs(number(box, "x") + number(box, "width") / 2 - x) < room / 2]


# -- the panel --------------------------------------------------------------------------------------------------


def test_result_picture_and_table_follow_every_control() -> None:
    panel = TileWalkPanel()
    moves: dict[str, object] = {
        "kernel": "linear",
        "rows": 40,
        "columns": 33,
        "inner": 20,
        "tile": (16, 32, 32),
        "program": 2,
        "step": 1,
    }
    for name, value in moves.items():
        before = panel.static_forms()
        setattr(panel, name, value)
        after = panel.static_forms()
        assert after["image/svg+xml"] != before["image/svg+xml"], name
        assert panel._picture_view.value == after["image/svg+xml"]
    assert panel.result == walk("linear", (40, 33, 20), 2, 1, (16, 32, 32))
    assert panel.static_forms()["image/svg+xml"] == draw_walk(panel.result)


def test_the_table_is_the_picture_in_words() -> None:
    panel = TileWalkPanel()
    panel.set(kernel="rmsnorm", rows=6, columns=50, tile=(16,), program=5, step=7)
    table = panel.table(panel.result)
    assert [list(row) for row in table.rows] == [
        ["x", "▲ read", "5:6", "48:50", "2", "14", "1 program × 2"],
        ["residual", "▲ read", "5:6", "48:50", "2", "14", "1 program × 2"],
        ["weight", "▲ read", "–", "48:50", "2", "14", "6 programs"],
        ["y", "▼ write", "5:6", "48:50", "2", "14", "1 program"],
        ["sum", "▼ write", "5:6", "48:50", "2", "14", "1 program"],
    ]


def test_a_kernel_brings_its_own_tiles_rows_and_sliders() -> None:
    panel = TileWalkPanel()
    panel.rows = 64
    assert panel.controls["inner"].layout.display == "none"
    panel.kernel = "softmax"
    assert (panel.rows, panel.tile) == (24, "default")
    assert "at most 24 rows" in panel._note_view.value
    assert panel.controls["step"].layout.display == "none", "a resident row has one step"
    panel.tile = (16,)
    assert panel.controls["step"].layout.display is None
    panel.kernel = "linear"
    assert panel.controls["inner"].layout.display is None
    assert panel.tile == (16, 16, 16)
    with pytest.raises(ValueError, match=r"(?s)^参数 tile .*\ntile "):
        panel.tile = (16,)


def test_a_program_or_step_that_is_gone_moves_to_the_last_and_says_so() -> None:
    panel = TileWalkPanel()
    panel.set(kernel="linear", rows=64, program=15, step=3)
    panel.rows = 16
    assert panel.program == 3 == panel.result.programs - 1
    assert "moved to 3" in panel._note_view.value
    panel.inner = 16
    assert panel.step == 1 == len(panel.result.steps) - 1
    assert "moved to 1" in panel._note_view.value
    panel.program = 0
    assert "moved" not in panel._note_view.value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", "gemm"),
        ("rows", 0),
        ("rows", 65),
        ("columns", 65),
        ("columns", True),
        ("inner", 0),
        ("tile", (4, 4)),
        ("tile", None),
        ("program", 2),
        ("program", -1),
        ("step", 1),
    ],
)
def test_a_bad_value_names_itself_and_changes_nothing(name: str, value: object) -> None:
    panel = TileWalkPanel()
    before, shown = {key: control.value for key, control in panel.controls.items()}, panel.static_forms()
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        setattr(panel, name, value)
    assert {key: control.value for key, control in panel.controls.items()} == before
    assert panel.static_forms() == shown


def test_a_refused_set_puts_kernel_tile_and_bounds_back() -> None:
    panel = TileWalkPanel()
    panel.set(kernel="linear", rows=150, tile=(32, 16, 16), program=19, step=2)
    before, shown = {key: control.value for key, control in panel.controls.items()}, panel.static_forms()
    with pytest.raises(ValueError, match="rows"):
        panel.set(kernel="softmax", tile=(16,), rows=25)
    assert {key: control.value for key, control in panel.controls.items()} == before
    assert panel.static_forms() == shown
    assert panel.controls["rows"].max == 160
    panel.program = 19


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["kernel", "rows", "columns", "inner", "tile", "program", "step"]), st.integers(0, 200)
        ),
        max_size=8,
    )
)
def test_no_sequence_of_moves_parts_the_result_from_the_controls(moves: list[tuple[str, int]]) -> None:
    panel = TileWalkPanel()
    for name, index in moves:
        control = panel.controls[name]
        if name == "kernel":
            control.value = KERNELS[index % len(KERNELS)]
        elif name == "tile":
            control.value = control.options[index % len(control.options)][1]
        else:
            control.value = control.min + index % (control.max - control.min + 1)
    shape = (panel.rows, panel.columns, panel.inner) if panel.kernel == "linear" else (panel.rows, panel.columns)
    tile = None if panel.tile == "default" else panel.tile
    assert panel.result == walk(panel.kernel, shape, panel.program, panel.step, tile)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_panel_speaks_the_edition_s_language(language: str) -> None:
    use_language(language)
    panel = TileWalkPanel()
    panel.kernel = "linear"
    plain = panel.static_forms()["text/plain"]
    assert ("8 row tiles share a column of w" in plain) == (language == "en")
    assert ("8 个行数据块" in plain) == (language == "zh")
