"""The Q2 panel and its picture: arrows are the passages that are left, and nothing leaves the card."""

from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

from lessons_lib import ReusePanel, use_language
from lessons_lib.base.gpus import GPUS
from lessons_lib.base.units import KIB, MIB, format_bytes
from lessons_lib.reuse.drawing import ReuseView, draw_reuse
from lessons_lib.reuse.plan import EXAMPLE_BUDGET, LEVELS, budget_of, resident_blocks, reuse_plan
from lessons_lib.show.picture import CARD_WIDTH, CHIP, KEPT_FILL, ON_CHIP, READ, WRITE, text_width

SVG = "{http://www.w3.org/2000/svg}"
ARROW = "5"  # stroke width: what spills over the meter is hatched in the colour of a write
BUDGETS = [("example", "shared"), *itertools.product(GPUS, LEVELS)]


def picture(
    tile: int,
    count: int = 3,
    *,
    gpu: str = "example",
    level: Any = "shared",
    produced: bool = False,
    cut: bool = False,
) -> ElementTree.Element:
    """What the panel draws, without the widgets around it."""
    budget = EXAMPLE_BUDGET if gpu == "example" else budget_of(GPUS[gpu], level)
    plan = reuse_plan(tile, count, budget, produced=produced, cut=cut)
    blocks = None if gpu == "example" else resident_blocks(GPUS[gpu], level, plan["piece_bytes"])
    return ElementTree.fromstring(draw_reuse(ReuseView(plan, tile, count, budget, produced, blocks)))


def arrows(root: ElementTree.Element, colour: str) -> int:
    shafts = [path for path in root.iter(f"{SVG}path") if path.get("stroke-width") == ARROW]
    return sum(path.get("stroke") == colour for path in shafts)


def words(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def squares(root: ElementTree.Element) -> int:
    return len([box for box in boxes(root) if number(box, "width") == number(box, "height") == 8])


def boxes(root: ElementTree.Element) -> list[ElementTree.Element]:
    return list(root.iter(f"{SVG}rect"))


def number(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name, 0))


# -- the panel ----------------------------------------------------------------------------------------------------


def test_result_picture_and_table_follow_every_control() -> None:
    panel = ReusePanel()
    moves = {"tile_bytes": 128 * KIB, "reuse_count": 5, "gpu": "T4", "level": "l2", "produced": True}
    for name, value in moves.items():
        before = panel.static_forms()
        setattr(panel, name, value)
        after = panel.static_forms()
        assert after["image/svg+xml"] != before["image/svg+xml"], name
        assert panel._picture_view.value == after["image/svg+xml"]
        assert after["text/plain"] != before["text/plain"], name
    panel.level = "shared"  # where 128 KiB do not fit
    before = panel.static_forms()
    panel.cut = True
    assert panel.static_forms()["image/svg+xml"] != before["image/svg+xml"]
    assert panel.static_forms()["text/plain"] != before["text/plain"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tile_bytes", 3),
        ("tile_bytes", float(32 * KIB)),
        ("tile_bytes", 256 * MIB),
        ("reuse_count", 0),
        ("reuse_count", 9),
        ("reuse_count", True),
        ("reuse_count", 3.0),
        ("gpu", "T5"),
        ("gpu", None),
        ("level", "l1"),
        ("produced", 1),
        ("cut", "yes"),
    ],
)
def test_a_bad_value_names_itself_and_changes_nothing(name: str, value: object) -> None:
    panel = ReusePanel()
    before, shown = {key: control.value for key, control in panel.controls.items()}, panel.static_forms()
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        setattr(panel, name, value)
    assert {key: control.value for key, control in panel.controls.items()} == before
    assert panel.static_forms() == shown


def test_the_example_has_one_budget_and_says_so() -> None:
    panel = ReusePanel()
    for level in LEVELS:
        panel.level = level
        assert panel.result["budget_bytes"] == 96 * KIB
        assert panel.result["blocks_per_sm"] is None
    panel.level = "registers"
    assert "96 KiB at every level" in panel._note_view.value
    panel.gpu = "T4"
    assert "96 KiB at every level" not in panel._note_view.value
    assert panel.result["budget_bytes"] == budget_of(GPUS["T4"], "registers")


def test_an_unsure_budget_is_called_so_and_only_that() -> None:
    panel = ReusePanel()
    fields = {"registers": "registers_per_sm", "shared": "shared_bytes_per_block", "l2": "l2_bytes"}
    for gpu, level in itertools.product(GPUS, LEVELS):
        panel.set(gpu=gpu, level=level)
        said = "No vendor document" in panel._note_view.value
        assert said == (fields[level] in GPUS[gpu].unsure), (gpu, level)


def test_some_budget_is_unsure() -> None:
    assert GPUS["B200"].is_unsure("l2_bytes"), "else the test above proves nothing"


@pytest.mark.parametrize(
    ("gpu", "level"),
    [("example", "l2"), ("T4", "shared"), ("A10", "registers"), ("B200", "l2"), ("MI300X", "shared")],
)
@pytest.mark.parametrize("tile", [32 * KIB, 128 * KIB])
def test_the_panel_shows_the_plan_and_all_four_ways(gpu: str, level: Any, tile: int) -> None:
    panel = ReusePanel()
    panel.set(gpu=gpu, level=level, tile_bytes=tile, reuse_count=4, produced=True)
    budget = 96 * KIB if gpu == "example" else budget_of(GPUS[gpu], level)
    assert panel.result["plan"] == reuse_plan(tile, 4, budget, produced=True, cut=False)
    blocks = None if gpu == "example" else resident_blocks(GPUS[gpu], level, tile)
    assert panel.result["blocks_per_sm"] == blocks
    table = panel.table(panel.result)
    assert table.marked == 2
    ways = list(itertools.product((False, True), repeat=2))
    for row, (produced, cut) in zip(table.rows, ways, strict=True):
        plan = reuse_plan(tile, 4, budget, produced=produced, cut=cut)
        piece = plan["piece_bytes"]
        assert row[0].startswith("produced" if produced else "read")
        assert row[0].endswith(f"{plan['pieces']} × {format_bytes(piece)}" if cut else "whole")
        assert row[1] == ("fits" if plan["fits_onchip"] else "does not fit")
        assert row[3:5] == [format_bytes(plan["moved_bytes"]), format_bytes(plan["avoided_bytes"])]
        blocks = None if gpu == "example" else resident_blocks(GPUS[gpu], level, piece)
        assert row[5] == ("–" if blocks is None else str(blocks))


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["tile_bytes", "reuse_count", "gpu", "level", "produced", "cut"]), st.integers(0, 30)
        ),
        max_size=8,
    )
)
def test_no_sequence_of_moves_parts_the_result_from_the_controls(moves: list[tuple[str, int]]) -> None:
    panel = ReusePanel()
    for name, index in moves:
        control = panel.controls[name]
        if name == "reuse_count":
            control.value = 1 + index % 8
        elif name in ("produced", "cut"):
            control.value = bool(index % 2)
        else:
            control.value = control.options[index % len(control.options)][1]
    budget = 96 * KIB if panel.gpu == "example" else budget_of(GPUS[panel.gpu], panel.level)
    assert panel.result["plan"] == reuse_plan(
        panel.tile_bytes, panel.reuse_count, budget, produced=panel.produced, cut=panel.cut
    )


# -- the picture --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize(("tile", "cut"), [(32 * KIB, False), (128 * KIB, False), (128 * KIB, True)])
def test_arrows_are_the_passages_that_are_left(count: int, tile: int, cut: bool) -> None:
    fits = tile <= 96 * KIB or cut
    for produced in (False, True):
        root = picture(tile, count, produced=produced, cut=cut)
        if fits:
            assert (arrows(root, READ), arrows(root, WRITE)) == (0 if produced else 1, 0)
        else:
            assert (arrows(root, READ), arrows(root, WRITE)) == (count, 1 if produced else 0)
        plan = reuse_plan(tile, count, EXAMPLE_BUDGET, produced=produced, cut=cut)
        assert (arrows(root, READ) + arrows(root, WRITE)) * tile == plan["moved_bytes"]
        risers = [path for path in root.iter(f"{SVG}path") if path.get("stroke") == ON_CHIP]
        assert len(risers) == (count + (1 if produced else 0) if fits else 0)
        names = words(root)
        assert [name for name in names if name.startswith("use ")] == [f"use {i}" for i in range(1, count + 1)]
        assert names.count("make") == int(produced)
        assert ("never in memory" in names) == (fits and produced)
        assert (f"tile {format_bytes(tile)}" in names) == (not (cut and produced)), "in memory, or whole on chip"


@pytest.mark.parametrize("count", range(1, 9))
def test_every_arrow_stands_under_an_operator(count: int) -> None:
    root = picture(128 * KIB, count, produced=True)
    uses = [text for text in root.iter(f"{SVG}text") if (text.text or "").split()[0] in ("use", "make")]
    shafts = [path for path in root.iter(f"{SVG}path") if path.get("stroke-width") == ARROW]
    across = [float(path.get("d", "").split(",")[0].lstrip("M")) for path in shafts]
    assert [path.get("stroke") for path in shafts] == [WRITE] + [READ] * count, "the maker writes, each use reads"
    assert across == pytest.approx([float(text.get("x", 0)) for text in uses])


@pytest.mark.parametrize(("tile", "share"), [(KIB, 1 / 96), (32 * KIB, 1 / 3), (128 * KIB, 4 / 3), (2 * MIB, 21.3)])
def test_the_meter_fills_by_share_and_spills_over_its_line(tile: int, share: float) -> None:
    root = picture(tile)
    column = [box for box in boxes(root) if number(box, "width") == 84]
    (vessel,) = [box for box in column if number(box, "height") == 195]
    (filled,) = [box for box in column if box.get("fill") == KEPT_FILL]
    over = [box for box in column if box.get("stroke") == WRITE]
    full, bottom = number(vessel, "height") / 1.3, number(vessel, "y") + number(vessel, "height")
    assert number(filled, "height") == pytest.approx(max(2, full * min(share, 1)))
    assert number(filled, "y") + full * min(share, 1) == pytest.approx(bottom)
    assert len(over) == (1 if share > 1 else 0)
    for box in over:
        assert number(box, "height") == pytest.approx(full * min(share - 1, 0.3))
        assert number(box, "y") + number(box, "height") == pytest.approx(bottom - full), "it stands on the line"
        assert number(box, "y") >= number(vessel, "y") - 0.01, "it stays inside the vessel's outline"


def test_a_full_meter_does_not_spill() -> None:
    root = picture(64 * KIB, gpu="T4")
    assert "budget 64 KiB, used 100%" in words(root)
    assert not [box for box in boxes(root) if box.get("stroke") == WRITE]


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("level", LEVELS)
def test_there_is_a_square_for_each_resident_block(gpu: str, level: Any) -> None:
    for tile in (KIB, 32 * KIB, 128 * KIB):
        root, blocks = picture(tile, gpu=gpu, level=level), resident_blocks(GPUS[gpu], level, tile)
        assert squares(root) == (blocks or 0)
        assert [name for name in words(root) if "one SM" in name] == (
            [] if blocks is None else [f"blocks on one SM: {blocks}"]
        )


@pytest.mark.parametrize(("tile", "drawn_pieces", "said"), [(128 * KIB, 2, "2"), (2 * MIB, 16, "22")])
def test_pieces_are_drawn_and_the_first_is_the_one_on_chip(tile: int, drawn_pieces: int, said: str) -> None:
    root = picture(tile, cut=True)
    bar = [box for box in boxes(root) if number(box, "height") == 28]
    assert [box.get("fill") for box in bar] == [KEPT_FILL] + [CHIP] * (drawn_pieces - 1)
    assert any(name.startswith(f"piece 1 of {said}, ") for name in words(root))


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(("gpu", "level"), BUDGETS)
def test_nothing_leaves_the_card_whatever_the_budget(language: str, gpu: str, level: str) -> None:
    use_language(language)
    for tile, produced, cut in itertools.product((KIB, 128 * KIB, 128 * MIB), (False, True), (False, True)):
        inside(picture(tile, 8, gpu=gpu, level=level, produced=produced, cut=cut))


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("count", range(1, 9))
def test_nothing_leaves_the_card_nor_its_box_whatever_the_readers(language: str, count: int) -> None:
    use_language(language)
    for tile, produced, cut in itertools.product((32 * KIB, 2 * MIB), (False, True), (False, True)):
        root = picture(tile, count, gpu="T4", produced=produced, cut=cut)
        inside(root)
        operators = [box for box in boxes(root) if (number(box, "height"), number(box, "rx")) == (34, 6)]
        assert len(operators) == count + int(produced)
        end = 0.0
        for box in operators:
            left, width = number(box, "x"), number(box, "width")
            assert left > end, "they stand apart"
            end = left + width
            (name,) = [
                text for text in root.iter(f"{SVG}text") if left < number(text, "x") < end and in_row(text, box)
            ]
            assert text_width(name.text or "", number(name, "font-size")) <= width - 4


def in_row(text: ElementTree.Element, box: ElementTree.Element) -> bool:
    return number(box, "y") < number(text, "y") < number(box, "y") + number(box, "height")


def inside(root: ElementTree.Element) -> None:
    """Every box and every text of a card lie within it, and no text is below 12 px."""
    height = number(root, "height")
    for box in boxes(root):
        assert 0 <= number(box, "x") <= number(box, "x") + number(box, "width") <= CARD_WIDTH
        assert 0 <= number(box, "y") <= number(box, "y") + number(box, "height") <= height
    for element in root.iter(f"{SVG}text"):
        size, x = number(element, "font-size"), number(element, "x")
        assert size >= 12
        wide = text_width(element.text or "", size)
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[element.get("text-anchor", "start")]
        assert left >= 8, element.text
        assert left + wide <= CARD_WIDTH - 8, element.text
        assert size <= number(element, "y") <= height - 4, element.text


def test_the_panel_draws_this_picture() -> None:
    panel = ReusePanel()
    panel.set(gpu="T4", level="shared", tile_bytes=128 * KIB, reuse_count=5, produced=True, cut=True)
    expected = ElementTree.tostring(picture(128 * KIB, 5, gpu="T4", produced=True, cut=True))
    assert ElementTree.tostring(ElementTree.fromstring(panel.static_forms()["image/svg+xml"])) == expected


def test_a_screen_reader_hears_the_numbers() -> None:
    root = picture(128 * KIB, cut=True)
    assert root.get("aria-label") == (
        "A 128 KiB tile read 3 times, budget 96 KiB, used 67%, logical traffic avoided 256 KiB"
    )
