"""The picture says what the model says, and stays readable up to 12 operators."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from lessons_lib import TrafficPanel, use_language
from lessons_lib.show.picture import CARD_WIDTH, ON_CHIP, READ, WRITE, text_width

pytestmark = pytest.mark.once

SVG = "{http://www.w3.org/2000/svg}"
SETTINGS = [
    (ops, groups, compulsory, side)
    for ops in range(1, 13)
    for groups in sorted({1, (ops + 1) // 2, ops})
    for compulsory in (False, True)
    for side in (False, True)
]


def drawn(ops: int, groups: int, compulsory: bool, side: bool, tensor_bytes: int = 2**26) -> ElementTree.Element:
    panel = TrafficPanel()
    panel.set(num_ops=ops, fused_groups=groups, compulsory=compulsory, side_input=side, tensor_bytes=tensor_bytes)
    return ElementTree.fromstring(panel.static_forms()["image/svg+xml"])


def arrows(root: ElementTree.Element, colour: str) -> int:
    """Arrow shafts of one colour; the legend has none."""
    return sum(line.get("stroke") == colour for line in root.iter(f"{SVG}path"))


def words(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


@pytest.mark.parametrize(("ops", "groups", "compulsory", "side"), SETTINGS)
def test_arrows_kernels_and_capsules_match_the_model(ops: int, groups: int, compulsory: bool, side: bool) -> None:
    root = drawn(ops, groups, compulsory, side)
    inputs = (2 if side else 1) if compulsory else 0
    assert arrows(root, READ) == groups - 1 + inputs
    assert arrows(root, WRITE) == groups - 1 + (1 if compulsory else 0)
    outlines = [box for box in root.iter(f"{SVG}rect") if box.get("stroke") == ON_CHIP]
    assert len(outlines) == groups
    names = words(root)
    kept = [name for name in names if re.fullmatch(r"t\d+", name)]
    assert sorted(kept) == sorted(f"t{position}" for position in range(1, ops))
    assert names.count("r") == int(side)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(("ops", "groups", "compulsory", "side"), SETTINGS[::3])
@pytest.mark.parametrize("tensor_bytes", [2**20, 2**26, 2**30])
def test_nothing_leaves_the_card_and_no_text_is_small(
    language: str, ops: int, groups: int, compulsory: bool, side: bool, tensor_bytes: int
) -> None:
    use_language(language)
    root = drawn(ops, groups, compulsory, side, tensor_bytes)
    for box in root.iter(f"{SVG}rect"):
        left, width = float(box.get("x", 0)), float(box.get("width", 0))
        assert left >= 0
        assert left + width <= CARD_WIDTH
    for element in root.iter(f"{SVG}text"):
        assert float(element.get("font-size", 0)) >= 12
        x, wide = float(element.get("x", 0)), text_width(element.text or "", float(element.get("font-size", 0)))
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[element.get("text-anchor", "start")]
        assert left >= 8, element.text
        assert left + wide <= CARD_WIDTH - 8, element.text


def test_fusing_lifts_a_tensor_straight_up() -> None:
    """The tensor keeps its place along x when it moves from memory into a kernel."""

    def place(root: ElementTree.Element) -> tuple[float, float]:
        found = next(element for element in root.iter(f"{SVG}text") if element.text == "t1")
        return float(found.get("x", 0)), float(found.get("y", 0))

    (x_memory, y_memory), (x_chip, y_chip) = place(drawn(4, 4, False, False)), place(drawn(4, 2, False, False))
    assert x_memory == x_chip
    assert y_chip < y_memory


def test_the_arithmetic_stands_in_the_picture() -> None:
    assert "intermediate 2 × 3 × 64 MiB = 384 MiB" in words(drawn(4, 4, False, False))
    assert "total 320 MiB" in words(drawn(4, 2, True, True))
