"""The curve of a ledger: below zero until break-even, above it after, and every word in its own place."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from lessons_lib import use_language
from lessons_lib.show.curve import draw_net
from lessons_lib.show.picture import CARD_WIDTH, ON_CHIP, WRITE, text_width

SVG = "{http://www.w3.org/2000/svg}"
Point = tuple[float, float]


def net(cost: float, gain: float, calls: int) -> list[tuple[int, float]]:
    return [(call, gain * call - cost) for call in range(calls + 1)]


def drawn(points: Sequence[tuple[int, float]], now: tuple[int, float] | None = None) -> ElementTree.Element:
    svg = draw_net(
        points,
        points[-1] if now is None else now,
        lambda value: f"{value:.4g} s",
        title="Ledger",
        figures=[("even", True)],
        label="net",
        prefix="curve",
    )
    return ElementTree.fromstring(svg)


def strokes(root: ElementTree.Element, colour: str) -> list[list[Point]]:
    """The points of every line of the curve that has this colour."""
    paths = [path for path in root.iter(f"{SVG}path") if path.get("stroke") == colour]
    return [
        [(float(x), float(y)) for x, y in (pair.lstrip("ML").split(",") for pair in path.get("d", "").split())]
        for path in paths
    ]


def zero_line(root: ElementTree.Element) -> float:
    (rule,) = [path for path in root.iter(f"{SVG}path") if path.get("stroke-width") == "1.5"]
    return float(rule.get("d", "").split(",")[1].split()[0])


def dot(root: ElementTree.Element) -> tuple[float, float, str]:
    (mark,) = root.iter(f"{SVG}circle")
    return float(mark.get("cx", 0)), float(mark.get("cy", 0)), mark.get("fill", "")


def across(root: ElementTree.Element, share: float) -> float:
    """Where ``share`` of the calls stands along the zero line."""
    (rule,) = [path for path in root.iter(f"{SVG}path") if path.get("stroke-width") == "1.5"]
    left, right = (float(end.lstrip("ML").split(",")[0]) for end in rule.get("d", "").split())
    return left + (right - left) * share


def test_it_crosses_zero_at_break_even_where_the_colours_meet() -> None:
    root = drawn(net(64, 8, 16))
    (behind,), (ahead,) = strokes(root, WRITE), strokes(root, ON_CHIP)
    zero = zero_line(root)
    assert behind[-1] == ahead[0] == pytest.approx((across(root, 8 / 16), zero))
    assert all(y > zero for _, y in behind[:-2])  # pixels count down
    assert all(y < zero for _, y in ahead[1:])


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 40))
def test_wherever_the_points_lie_no_part_has_the_wrong_colour(cost: int, gain: int, calls: int) -> None:
    points = net(cost, gain, calls)
    root = drawn(points)
    zero = zero_line(root)
    assert all(y >= zero - 0.01 for stroke in strokes(root, WRITE) for _, y in stroke)
    assert all(y <= zero + 0.01 for stroke in strokes(root, ON_CHIP) for _, y in stroke)
    if points[-1][1] > 0:
        (behind,), (ahead,) = strokes(root, WRITE), strokes(root, ON_CHIP)
        assert behind[-1] == ahead[0] == pytest.approx((across(root, cost / gain / calls), zero), abs=0.01)
    else:
        assert strokes(root, ON_CHIP) == []


@pytest.mark.parametrize(
    "points", [net(4, 0, 16), net(60, 0.001, 1000), net(0, -2, 16)], ids=["flat", "slow", "falls"]
)
def test_what_is_never_even_lies_wholly_below(points: list[tuple[int, float]]) -> None:
    root = drawn(points)
    ((*rest, last),) = strokes(root, WRITE)
    assert strokes(root, ON_CHIP) == []
    assert all(y >= zero_line(root) for _, y in [*rest, last])
    assert last[1] > zero_line(root)
    assert dot(root)[2] == WRITE


def test_what_costs_nothing_lies_wholly_above() -> None:
    root = drawn(net(0, 2, 16))
    assert strokes(root, WRITE) == []
    ((first, *rest),) = strokes(root, ON_CHIP)
    assert first == (across(root, 0), zero_line(root))
    assert all(y < zero_line(root) for _, y in rest)


def test_nothing_at_all_is_a_line_on_zero() -> None:
    root = drawn(net(0, 0, 16))
    (line,) = strokes(root, WRITE)
    assert {y for _, y in line} == {zero_line(root)}


@pytest.mark.parametrize("calls", [0, 1, 7, 8, 9, 16])
def test_the_dot_lies_on_the_curve_in_its_colour_and_says_its_value(calls: int) -> None:
    points = net(64, 8, 16)
    root = drawn(points, points[calls])
    x, y, colour = dot(root)
    on_curve = [point for stroke in strokes(root, WRITE) + strokes(root, ON_CHIP) for point in stroke]
    assert any(point == pytest.approx((x, y)) for point in on_curve)
    assert x == pytest.approx(across(root, calls / 16))
    assert colour == (WRITE if calls < 8 else ON_CHIP)
    value = abs(8 * calls - 64)
    expected = "0 s" if calls == 8 else f"{'ahead' if calls > 8 else 'behind'} {value} s"
    assert expected in [text.text for text in root.iter(f"{SVG}text") if text.get("font-weight") == "600"]


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(("cost", "gain"), list(itertools.product([0, 1, 64, 10**6], [-3, 0, 0.001, 8, 10**6])))
@pytest.mark.parametrize("calls", [16, 100])
def test_words_stay_inside_and_apart(language: str, cost: float, gain: float, calls: int) -> None:
    use_language(language)
    points = net(cost, gain, calls)
    for now in (points[0], points[1], points[calls // 4], points[calls // 2], points[-1]):
        root = drawn(points, now)
        height = float(root.get("height", 0))
        boxes = [box(text) for text in root.iter(f"{SVG}text")]
        for left, top, right, bottom, words in boxes:
            assert 8 <= left <= right <= CARD_WIDTH - 8, words
            assert 0 <= top <= bottom <= height, words
        for first, second in itertools.combinations(boxes, 2):
            beside = first[2] <= second[0] or second[2] <= first[0]
            assert beside or first[3] <= second[1] or second[3] <= first[1], (first, second)


def box(text: ElementTree.Element) -> tuple[float, float, float, float, str]:
    """Where a text stands, by an upper estimate of its width: left, top, right, bottom, and its words."""
    size, words = float(text.get("font-size", 0)), text.text or ""
    assert size >= 12
    x, y, wide = float(text.get("x", 0)), float(text.get("y", 0)), text_width(words, size)
    left = {"start": x, "middle": x - wide / 2, "end": x - wide}[text.get("text-anchor", "start")]
    return left, y - 0.8 * size, left + wide, y + 0.2 * size, words


def test_the_axis_says_its_ends() -> None:
    words = [text.text for text in drawn(net(64, 8, 2000)).iter(f"{SVG}text")]
    assert {"0", "2,000 calls", "0 s", "-64 s", "1.594e+04 s"} <= set(words)
