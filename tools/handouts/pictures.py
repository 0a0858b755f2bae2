"""The picture of each handout: the lesson's panel, as it opens where that gives no answer away."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lessons_lib import GraphCanvas, LayoutPanel, ReusePanel, TileWalkPanel, TrafficPanel
from lessons_lib.show.live import LiveBox
from tools.handouts.values import gated_residual


def picture(number: str) -> str:
    """An SVG string in the current language."""
    return _PANELS[number]().static_forms()["image/svg+xml"]


def _in_two_groups() -> TrafficPanel:
    """Lesson 00 has no panel of its own: it shows what the next one is about."""
    panel = TrafficPanel()
    panel.set(fused_groups=2)
    return panel


def _no_votes_answer() -> TrafficPanel:
    """Not as the panel opens: that is the first vote's own case, with its answer written out."""
    panel = TrafficPanel()
    panel.set(num_ops=5, fused_groups=5, tensor_bytes=16 * 2**20)
    return panel


_PANELS: Mapping[str, Callable[[], LiveBox]] = {
    "00": _in_two_groups,
    "01": _no_votes_answer,
    "02": ReusePanel,
    "03": LayoutPanel,
    "04": lambda: GraphCanvas(gated_residual()),
    "05": TileWalkPanel,
}
