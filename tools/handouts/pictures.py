"""The picture of each handout: a lesson's panel in a state that answers no vote and no guess, figures left blank."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lessons_lib import DecisionPanel, GraphCanvas, ReusePanel, TileWalkPanel, TrafficPanel, examine
from lessons_lib.base.units import MIB
from lessons_lib.show.live import LiveBox
from tools.handouts.values import gated_residual
from tools.say import Stop

# Where the top right corner of a card has its figures, one under the other.
_CORNER = ((732, 34), (732, 54), (732, 74))
_TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')
_LABEL = re.compile(r'aria-label="[^"]*"')
# A product that is written out before its result would tell how to come by it.
_PRODUCT, _FIGURE = re.compile(r"\(?\d[^=+]*[×−][^=+]*= "), re.compile(r"\d[\d,.]*")
_SHORT, _LONG = "_" * 10, "_" * 60


@dataclass(frozen=True)
class _Picture:
    """A panel, the places (x, y) of the words in its picture that a learner is to fill in, and the panel then."""

    panel: Callable[[], LiveBox]
    blanks: tuple[tuple[float, float], ...]
    solved: Callable[[], LiveBox] | None = None


def picture(number: str, *, answers: bool = True) -> str:
    """An SVG string in the current language; without ``answers`` its figures are blanks to fill in.

    Raises:
        Stop: the picture has no words where they are to be left out, so that they would stand elsewhere.
    """
    chosen = _PICTURES[number]
    solved = _svg(chosen.solved or chosen.panel)
    if answers:
        return solved
    left = {(float(x), float(y)): words for x, y, words in _TEXT.findall(solved)}
    left = {place: left.get(place, "") for place in chosen.blanks}

    def blank(found: re.Match[str]) -> str:
        place = (float(found[1]), float(found[2]))
        if place not in left:
            return found[0]
        words = left.pop(place)
        ruled = _FIGURE.sub(_SHORT, _PRODUCT.sub("", words)) if place in _CORNER else _LONG
        return found[0].replace(f">{found[3]}<", f">{ruled}<")

    svg = _svg(chosen.panel)
    svg = _LABEL.sub('aria-label=""', _TEXT.sub(blank, svg))  # a reader aloud would have the figures from the label
    if left:
        where = sorted(left)
        raise Stop(
            f"第 {number} 课的图在 {where} 没有文字", f"The picture of lesson {number} has no words at {where}"
        )
    return svg


def _svg(panel: Callable[[], LiveBox]) -> str:
    return panel().static_forms()["image/svg+xml"]


def _traffic(fused_groups: int, tensor_mib: int = 64) -> TrafficPanel:
    panel = TrafficPanel()
    panel.set(fused_groups=fused_groups, tensor_bytes=tensor_mib * MIB)
    return panel


def _one_use() -> ReusePanel:
    """A tile that comes in once for the one use it has; the vote asks about three."""
    panel = ReusePanel()
    panel.set(reuse_count=1)
    return panel


def _one_condition() -> DecisionPanel:
    """As the lesson opens it. The ledger would tell what the vote asks: a conversion is paid off, it forbids nothing."""
    seen = examine("gemm").plans[0].evidence
    return DecisionPanel(item for item in seen if item.condition == "semantics_match")


_PICTURES: Mapping[str, _Picture] = {
    "00": _Picture(lambda: _traffic(2, 8), _CORNER[:2]),  # lesson 00 has no panel: what the next one is about
    "01": _Picture(lambda: _traffic(1), _CORNER[:2], lambda: _traffic(4)),  # the vote's arrows are to be drawn
    "02": _Picture(_one_use, _CORNER[1:2], ReusePanel),
    "03": _Picture(_one_condition, ((28, 34), (32, 198), (32, 224))),
    "04": _Picture(lambda: GraphCanvas(gated_residual()), _CORNER),
    "05": _Picture(TileWalkPanel, ()),
}
