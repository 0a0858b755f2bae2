"""Groupings side by side: what each reads and writes as a bar, with its launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.show.picture import CARD_WIDTH, INK, MARGIN, MUTED, READ_LABEL, WRITE_LABEL, Picture, text_width

_TOP, _ROW, _BAR = 58, 32, 18
_LEFT, _RIGHT = 178, CARD_WIDTH - 210


@dataclass(frozen=True)
class TrafficBar:
    """One bar; ``read_bytes`` and ``write_bytes`` of 0 with a total: a bound, which is only a line."""

    name: Text
    launches: int
    read_bytes: int
    write_bytes: int
    total_bytes: int
    own: bool = False


def draw_comparison(title: Text, bars: Sequence[TrafficBar], prefix: str) -> str:
    """The bars as an SVG string on one axis from zero.

    Args:
        bars: at least one, drawn top down; the learner's ``own`` is set off.
        prefix: of element ids.
    """
    said = "; ".join(f"{bar.name} {format_bytes(bar.total_bytes)}" for bar in bars)
    picture = Picture(_TOP + _ROW * len(bars) + 34, f"{title}: {said}", prefix)
    picture.heading(title, [])
    scale = (_RIGHT - _LEFT) / max(1, *(bar.total_bytes for bar in bars))
    for index, bar in enumerate(bars):
        _draw_bar(picture, _TOP + _ROW * index, bar, scale)
    _draw_legend(picture, _TOP + _ROW * len(bars) + 16)
    return picture.svg()


def _draw_bar(picture: Picture, y: float, bar: TrafficBar, scale: float) -> None:
    name = f"▸ {bar.name}" if bar.own else str(bar.name)
    picture.text(_LEFT - 12, y + 14, name, anchor="end", bold=bar.own)
    read, write = bar.read_bytes * scale, bar.write_bytes * scale
    if bar.read_bytes or bar.write_bytes:
        picture.block(_LEFT, y, max(1.0, read), _BAR, written=False)
        picture.block(_LEFT + read, y, max(1.0, write), _BAR, written=True)
        words = _FIGURES.format(traffic=format_bytes(bar.total_bytes), launches=_launches(bar.launches))
    else:
        end = _LEFT + bar.total_bytes * scale
        picture.line([(end, y - 2), (end, y + _BAR + 2)], INK)
        words = Text(zh="≥ {traffic}", en="≥ {traffic}").format(traffic=format_bytes(bar.total_bytes))
    picture.text(_LEFT + bar.total_bytes * scale + 10, y + 14, words, bold=bar.own)


def _draw_legend(picture: Picture, y: float) -> None:
    x = float(_LEFT)
    for label, written in ((READ_LABEL, False), (WRITE_LABEL, True)):
        picture.block(x, y - 10, 18, 10, written=written)
        picture.text(x + 26, y, label, colour=MUTED)
        x += 26 + text_width(str(label), 12) + 24
    picture.text(MARGIN + 8, y, _AXIS, colour=MUTED)


def _launches(count: int) -> Text:
    return (_ONE if count == 1 else _MANY).format(count=count)


_FIGURES = Text(zh="{traffic} · {launches}", en="{traffic} · {launches}")
_ONE = Text(zh="{count} 次启动", en="{count} launch")
_MANY = Text(zh="{count} 次启动", en="{count} launches")
_AXIS = Text(zh="显存读写", en="device memory traffic")
