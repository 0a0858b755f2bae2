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
from lessons_lib.reuse.plan import LEVELS, budget_of, resident_blocks, reuse_plan
from lessons_lib.show.picture import CARD_WIDTH, CHIP, KEPT_FILL, ON_CHIP, READ, WRITE, text_width

SVG = "{http://www.w3.org/2000/svg}"
ARROW = "5"  # stroke width: what spills over the meter is hatched in the colour of a write
BUDGETS = [("example", "shared"), *itertools.product(GPUS, LEVELS)]
TILES = (KIB, 32 * KIB, 96 * KIB // 3 * 4, 2 * MIB, 128 * MIB)


def drawn(**values: Any) -> tuple[ReusePanel, ElementTree.Element]:
    panel = ReusePanel()
    panel.set(**values)
    return panel, ElementTree.fromstring(panel.static_forms()["image/svg+xml"])


def arrows(root: ElementTree.Element, colour: str) -> int:
    shafts = [path for path in root.iter(f"{SVG}path") if path.get("stroke-width") == ARROW]
    return sum(path.get("stroke") == colour for path in shafts)


def words(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def squares(root: ElementTree.Element) -> int:
    return sum(box.get("width") == box.get("height") == "8" for box in root.iter(f"{SVG}rect"))


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


@pytest.mark.parametrize(("gpu", "level"), list(itertools.product(GPUS, LEVELS)))
def test_an_unsure_budget_is_called_so_and_only_that(gpu: str, level: str) -> None:
    panel = ReusePanel()
    panel.set(gpu=gpu, level=level)
    field = {"registers": "registers_per_sm", "shared": "shared_bytes_per_block", "l2": "l2_bytes"}[level]
    assert ("No vendor document" in panel._note_view.value) == (field in GPUS[gpu].unsure)


def test_some_budget_is_unsure() -> None:
    assert GPUS["B200"].is_unsure("l2_bytes"), "else the test above proves nothing"


@pytest.mark.parametrize(("gpu", "level"), BUDGETS)
@pytest.mark.parametrize("tile", TILES)
def test_the_panel_shows_the_plan_and_all_four_ways(gpu: str, level: Any, tile: int) -> None:
    panel, _ = drawn(gpu=gpu, level=level, tile_bytes=tile, reuse_count=4, produced=True)
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


@settings(max_examples=60)
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
    for produced in (False, True):
        panel, root = drawn(tile_bytes=tile, reuse_count=count, produced=produced, cut=cut)
        fits = tile <= 96 * KIB or cut
        assert panel.result["plan"]["fits_onchip"] == fits
        if fits:
            assert (arrows(root, READ), arrows(root, WRITE)) == (0 if produced else 1, 0)
        else:
            assert (arrows(root, READ), arrows(root, WRITE)) == (count, 1 if produced else 0)
        assert (arrows(root, READ) + arrows(root, WRITE)) * tile == panel.result["plan"]["moved_bytes"]
        risers = [path for path in root.iter(f"{SVG}path") if path.get("stroke") == ON_CHIP]
        assert len(risers) == (count + (1 if produced else 0) if fits else 0)
        names = words(root)
        assert [name for name in names if name.startswith("use ")] == [f"use {i}" for i in range(1, count + 1)]
        assert names.count("make") == int(produced)
        assert ("never in memory" in names) == (fits and produced)
        assert f"tile {format_bytes(tile)}" in names or (fits and produced and cut)


@pytest.mark.parametrize("count", range(1, 9))
def test_every_arrow_stands_under_an_operator(count: int) -> None:
    _, root = drawn(tile_bytes=128 * KIB, reuse_count=count, produced=True)
    uses = [text for text in root.iter(f"{SVG}text") if (text.text or "").split()[0] in ("use", "make")]
    shafts = [path for path in root.iter(f"{SVG}path") if path.get("stroke-width") == ARROW]
    across = [float(path.get("d", "").split(",")[0].lstrip("M")) for path in shafts]
    assert across == pytest.approx([float(text.get("x", 0)) for text in uses])


@pytest.mark.parametrize(("tile", "share"), [(KIB, 1 / 96), (32 * KIB, 1 / 3), (128 * KIB, 4 / 3), (2 * MIB, 21.3)])
def test_the_meter_fills_by_share_and_spills_over_its_line(tile: int, share: float) -> None:
    _, root = drawn(tile_bytes=tile)
    boxes = [box for box in root.iter(f"{SVG}rect") if box.get("width") == "84"]
    (vessel,) = [box for box in boxes if float(box.get("height", 0)) == pytest.approx(195)]
    (filled,) = [box for box in boxes if box.get("fill") == KEPT_FILL]
    over = [box for box in boxes if box.get("stroke") == WRITE]
    full = float(vessel.get("height", 0)) / 1.3
    assert float(filled.get("height", 0)) == pytest.approx(max(2, full * min(share, 1)), abs=0.01)
    bottom = float(vessel.get("y", 0)) + float(vessel.get("height", 0))
    assert float(filled.get("y", 0)) + full * min(share, 1) == pytest.approx(bottom, abs=0.01)
    if share <= 1:
        assert over == []
    else:
        (box,) = over
        line = bottom - full
        assert float(box.get("height", 0)) == pytest.approx(full * min(share - 1, 0.3))
        assert float(box.get("y", 0)) + float(box.get("height", 0)) == pytest.approx(line)
        assert float(box.get("y", 0)) >= float(vessel.get("y", 0)) - 0.01, "it stays inside the vessel's outline"


def test_a_full_meter_does_not_spill() -> None:
    _, root = drawn(gpu="T4", tile_bytes=64 * KIB)
    assert "budget 64 KiB, used 100%" in words(root)
    assert not [box for box in root.iter(f"{SVG}rect") if box.get("stroke") == WRITE]


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("tile", [KIB, 32 * KIB, 128 * KIB])
def test_there_is_a_square_for_each_resident_block(gpu: str, level: Any, tile: int) -> None:
    _, root = drawn(gpu=gpu, level=level, tile_bytes=tile)
    blocks = resident_blocks(GPUS[gpu], level, tile)
    assert squares(root) == (blocks or 0)
    assert (f"blocks on one SM: {blocks}" in words(root)) == (blocks is not None)


@pytest.mark.parametrize(("tile", "drawn_pieces", "said"), [(128 * KIB, 2, "2"), (2 * MIB, 16, "22")])
def test_pieces_are_drawn_and_the_first_is_the_one_on_chip(tile: int, drawn_pieces: int, said: str) -> None:
    _, root = drawn(tile_bytes=tile, cut=True)
    bar = [box for box in root.iter(f"{SVG}rect") if box.get("height") == "28"]
    assert [box.get("fill") for box in bar] == [KEPT_FILL] + [CHIP] * (drawn_pieces - 1)
    assert any(name.startswith(f"piece 1 of {said}, ") for name in words(root))


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(("gpu", "level"), BUDGETS)
@pytest.mark.parametrize("count", [1, 3, 8])
def test_nothing_leaves_the_card_and_no_text_is_small(language: str, gpu: str, level: str, count: int) -> None:
    use_language(language)
    for tile, produced, cut in itertools.product(TILES, (False, True), (False, True)):
        _, root = drawn(gpu=gpu, level=level, tile_bytes=tile, reuse_count=count, produced=produced, cut=cut)
        inside(root)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("count", range(1, 9))
def test_names_of_operators_fit_their_boxes(language: str, count: int) -> None:
    use_language(language)
    _, root = drawn(reuse_count=count, produced=True)
    boxes = [box for box in root.iter(f"{SVG}rect") if box.get("height") == "34" and box.get("rx") == "6"]
    assert len(boxes) == count + 1
    right_of_last = 0.0
    for box in boxes:
        left, width = float(box.get("x", 0)), float(box.get("width", 0))
        assert left > right_of_last
        right_of_last = left + width
        (name,) = [
            t for t in root.iter(f"{SVG}text") if left < float(t.get("x", 0)) < left + width and in_row(t, box)
        ]
        assert text_width(name.text or "", float(name.get("font-size", 0))) <= width - 4


def in_row(text: ElementTree.Element, box: ElementTree.Element) -> bool:
    top = float(box.get("y", 0))
    return top < float(text.get("y", 0)) < top + float(box.get("height", 0))


def inside(root: ElementTree.Element) -> None:
    """Every box and every text of a card lie within it, and no text is below 12 px."""
    height = float(root.get("height", 0))
    for box in root.iter(f"{SVG}rect"):
        left, width = float(box.get("x", 0)), float(box.get("width", 0))
        top, tall = float(box.get("y", 0)), float(box.get("height", 0))
        assert 0 <= left <= left + width <= CARD_WIDTH
        assert 0 <= top <= top + tall <= height
    for element in root.iter(f"{SVG}text"):
        size = float(element.get("font-size", 0))
        assert size >= 12
        x, wide = float(element.get("x", 0)), text_width(element.text or "", size)
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[element.get("text-anchor", "start")]
        assert left >= 8, element.text
        assert left + wide <= CARD_WIDTH - 8, element.text
        assert size <= float(element.get("y", 0)) <= height - 4, element.text


def test_a_screen_reader_hears_the_numbers() -> None:
    _, root = drawn(tile_bytes=128 * KIB, cut=True)
    assert root.get("aria-label") == (
        "A 128 KiB tile read 3 times, budget 96 KiB, used 67%, logical traffic avoided 256 KiB"
    )
