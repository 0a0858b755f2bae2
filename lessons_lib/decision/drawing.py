"""The course's picture for a decision: four gates in a row, and what they add up to."""

from __future__ import annotations

from lessons_lib.base.text import Text
from lessons_lib.decision.model import CONDITION_NAMES, STATUS_NAMES, Decision, Status
from lessons_lib.show.picture import CARD_WIDTH, MARGIN, MUTED, ON_CHIP, WRITE, Picture

_HEIGHT = 250
_GATE_TOP = 78
_MARKS: dict[Status, tuple[str, str]] = {"pass": ("✓", ON_CHIP), "fail": ("✗", WRITE), "not_checked": ("?", MUTED)}
_TITLES = {
    "met": Text(zh="四个条件都核对过，都成立", en="All four conditions are checked and hold"),
    "refused": Text(zh="有条件不成立", en="A condition fails"),
    "open": Text(zh="还有条件没有核对", en="Conditions are still unchecked"),
}
_NEXT = {
    "met": Text(zh="可以融合；快不快，去量", en="It may be fused. Is it faster? Measure"),
    "refused": Text(zh="这个方案不行；换一个方案再核对", en="Not like this: change the plan and check again"),
    "open": Text(zh="先核对，再下结论", en="Check first, then conclude"),
}


def draw_decision(decision: Decision) -> str:
    """The four gates and the outcome as an SVG string."""
    title = _TITLES[decision.outcome]
    picture = Picture(_HEIGHT, str(decision.words), prefix="decision")
    picture.heading(title, [])
    step = (CARD_WIDTH - 2 * MARGIN - 16) / len(decision.statuses)
    for index, (condition, status) in enumerate(decision.statuses.items()):
        mark, colour = _MARKS[status]
        left = MARGIN + 8 + step * index
        picture.gate(
            left + 4, _GATE_TOP, step - 8, str(CONDITION_NAMES[condition]), str(STATUS_NAMES[status]), mark, colour
        )
    picture.text(MARGIN + 12, _GATE_TOP + 120, decision.words)
    picture.text(MARGIN + 12, _GATE_TOP + 146, f"→ {_NEXT[decision.outcome]}", size=14, bold=True)
    return picture.svg()
