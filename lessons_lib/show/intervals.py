"""Predicted intervals of time as bars, with the measurement, where there is one, as a mark upon them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessons_lib.base.roofline import Interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_range, format_seconds
from lessons_lib.show.picture import CARD_WIDTH, INK, MUTED, Picture

_TOP, _ROW, _BAR = 66, 40, 18
_LEFT, _RIGHT = 170, CARD_WIDTH - 190
_PREDICTED = Text(zh="预测区间", en="predicted interval")
_MEASURED = Text(zh="实测", en="measured")


@dataclass(frozen=True)
class IntervalRow:
    """One bar: its name, the predicted seconds and, once there is one, the measured seconds."""

    name: str
    predicted: Interval
    measured: float | None = None


def draw_intervals(title: str, rows: Sequence[IntervalRow], label: str, prefix: str) -> str:
    """The rows as an SVG string on one common axis from zero.

    Args:
        title: the heading of the card.
        rows: at least one, drawn top down.
        label: what a screen reader says in place of the picture.
        prefix: of element ids, one per kind of picture.
    """
    picture = Picture(_TOP + _ROW * len(rows) + 34, label, prefix)
    picture.heading(title, [])
    longest = max(max(row.predicted.high, row.measured or 0.0) for row in rows)
    for index, row in enumerate(rows):
        _draw_row(picture, _TOP + _ROW * index, row, (_RIGHT - _LEFT) / longest)
    _draw_legend(picture, _TOP + _ROW * len(rows) + 14, measured=any(row.measured is not None for row in rows))
    return picture.svg()


def _draw_row(picture: Picture, y: float, row: IntervalRow, scale: float) -> None:
    low, high = _LEFT + row.predicted.low * scale, _LEFT + row.predicted.high * scale
    picture.text(_LEFT - 12, y + 14, row.name, anchor="end", bold=True)
    picture.interval_bar(_LEFT, low, high, y, _BAR)
    picture.text(_RIGHT + 14, y + 14, format_range(row.predicted.low, row.predicted.high, format_seconds))
    if row.measured is not None:
        picture.measured_mark(_LEFT + row.measured * scale, y, _BAR)
        picture.text(_RIGHT + 14, y + 30, f"{_MEASURED} {format_seconds(row.measured)}", colour=INK, bold=True)


def _draw_legend(picture: Picture, y: float, *, measured: bool) -> None:
    picture.interval_bar(_LEFT, _LEFT, _LEFT + 28, y - 10, 10)
    picture.text(_LEFT + 36, y, _PREDICTED, colour=MUTED)
    if measured:
        picture.measured_mark(_LEFT + 180, y - 10, 10)
        picture.text(_LEFT + 190, y, _MEASURED, colour=MUTED)
