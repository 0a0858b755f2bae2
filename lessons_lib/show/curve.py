"""One curve that starts below zero and may rise above it: a cost first, gains later."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lessons_lib.base.text import Text
from lessons_lib.show.picture import CARD_WIDTH, INK, MUTED, ON_CHIP, WRITE, Picture

_HEIGHT = 308
_LEFT, _RIGHT = 120.0, CARD_WIDTH - 60.0
_TOP, _BOTTOM = 92.0, 246.0
_LINE = 16.0  # two words one below the other
_CALLS = Text(zh="{count} 次调用", en="{count} calls")
_AHEAD, _BEHIND = Text(zh="净省", en="ahead"), Text(zh="还亏着", en="behind")


def draw_net(
    points: Sequence[tuple[int, float]],
    now: tuple[int, float],
    written: Callable[[float], str],
    *,
    title: str,
    figures: list[tuple[str, bool]],
    label: str,
    prefix: str,
) -> str:
    """The curve as an SVG string, zero line drawn, the present number of calls marked.

    Args:
        points: (calls, net) pairs, at least two, calls ascending.
        now: the pair that is marked.
        written: a net value as words: bytes or seconds.
        title, figures: the heading of the card.
        label: what a screen reader says in place of the picture.
        prefix: of element ids, one per kind of picture.
    """
    picture = Picture(_HEIGHT, label, prefix)
    picture.heading(title, figures)
    most = max(1, points[-1][0])
    values = [net for _, net in points] + [0.0]
    low, high = min(values), max(values)
    reach = (high - low) or 1.0

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return _LEFT + (_RIGHT - _LEFT) * point[0] / most, _BOTTOM - (_BOTTOM - _TOP) * (point[1] - low) / reach

    zero = place((0, 0.0))[1]
    picture.rule(_LEFT, _RIGHT, zero)
    picture.text(_LEFT - 10, zero + 4, written(0), anchor="end", colour=MUTED)
    if low < 0:
        lowest = max(place((0, low))[1], zero + _LINE)
        picture.text(_LEFT - 10, lowest + 4, written(low), anchor="end", colour=MUTED)
    if high > 0:
        highest = min(place((0, high))[1], zero - _LINE)
        picture.text(_LEFT - 10, highest + 4, written(high), anchor="end", colour=MUTED)
    behind, ahead = _cut_at_zero(points)
    picture.line([place(point) for point in behind], WRITE)
    picture.line([place(point) for point in ahead], ON_CHIP)
    x, y = place(now)
    picture.dot(x, y, ON_CHIP if now[1] >= 0 else WRITE)
    state = _AHEAD if now[1] > 0 else _BEHIND
    words = f"{state} {written(abs(now[1]))}" if now[1] else written(0)
    _place_words(picture, x, y, words, rising=points[-1][1] >= points[0][1])
    picture.text(_LEFT, _BOTTOM + 42, "0", anchor="middle", colour=MUTED)
    picture.text(_RIGHT, _BOTTOM + 42, _CALLS.format(count=f"{most:,}"), anchor="end", colour=MUTED)
    return picture.svg()


def _place_words(picture: Picture, x: float, y: float, words: str, *, rising: bool) -> None:
    """Beside the dot, on the side where the curve is not."""
    if x > _LEFT + 140:
        picture.text(x - 12, y - 8 if rising else y + 18, words, anchor="end", colour=INK, bold=True)
    else:
        picture.text(x + 12, y + 18 if rising else y - 8, words, colour=INK, bold=True)


def _cut_at_zero(
    points: Sequence[tuple[int, float]],
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """The part that is not above zero and the part that is; a rising curve is cut where it crosses."""
    behind: list[tuple[float, float]] = [point for point in points if point[1] <= 0]
    ahead: list[tuple[float, float]] = [point for point in points if point[1] > 0]
    if behind and ahead:
        (x0, y0), (x1, y1) = behind[-1], ahead[0]
        crossing = (x0 - y0 * (x1 - x0) / (y1 - y0), 0.0)
        behind, ahead = [*behind, *([crossing] if y0 else [])], [crossing, *ahead]
    return behind, ahead
