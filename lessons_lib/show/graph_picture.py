"""The parts of the course's picture that a graph needs: lines with corners, kernels of any shape, parts to press.

A graph has thousands of parts and is drawn anew at every press, so they are written down directly instead of one object
each. All that comes from outside, names above all, goes through ``_escaped``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from html import escape
from itertools import pairwise
from typing import Literal

import drawsvg

from lessons_lib.base.text import Text
from lessons_lib.show.measure import BODY, MARGIN, SMALL, bold_width, text_width
from lessons_lib.show.picture import (
    CARD,
    CHIP,
    INK,
    KEPT_FILL,
    KEPT_LABEL,
    LINE,
    MEMORY,
    MEMORY_LABEL,
    MUTED,
    ON_CHIP,
    READ,
    READ_LABEL,
    WRITE,
    WRITE_LABEL,
    Picture,
)

Point = tuple[float, float]
Icon = Literal["reduction", "gemm", "injective", "opaque"]

SELECTED = "#AA4499"
_HEAD = 8.0
_FOCUS = "#0b57d0"
_KERNEL_LABEL = Text(zh="核函数", en="kernel")
_AGAIN_LABEL = Text(zh="同一次读，不重复计", en="already counted")
_BY_HAND_LABEL = Text(zh="通用编译器默认不会生成", en="not made by general compilers")
_WIDTH_LABEL = Text(zh="线越宽，字节越多", en="wider: more bytes")


class GraphPicture(Picture):
    """A card with a graph on it.

    Args:
        height, label, prefix: see ``Picture``.
        live: some parts can be pressed; see ``pressable``.
    """

    def __init__(self, height: int, label: str, prefix: str, *, live: bool) -> None:
        self._live, self._class, self._parts = live, f"{_escaped(prefix)}-part", list[str]()
        super().__init__(height, label, prefix, role="group" if live else "img")
        if live:
            self._parts.append(f"<style>{_STYLE.replace('PART', self._class)}</style>")

    def svg(self) -> str:
        """See ``Picture.svg``; to be called once."""
        self._drawing.append(drawsvg.Raw("\n".join(self._parts)))
        return super().svg()

    # -- parts that belong together --------------------------------------------------------------------------

    @contextmanager
    def part(self, title: str) -> Iterator[None]:
        """What is added within belongs together and has a tooltip."""
        self._parts.append(f"<g><title>{_escaped(title)}</title>")
        yield
        self._parts.append("</g>")

    @contextmanager
    def pressable(self, data: Mapping[str, int], label: str, *, pressed: bool) -> Iterator[None]:
        """A part that can be focused and pressed in a live picture, and is an ordinary one in any other.

        Args:
            data: names and values of its ``data-`` attributes, without that prefix.
            label: what a screen reader and the tooltip say; pressed: whether it is on.
        """
        if not self._live:
            with self.part(label):
                yield
            return
        attributes = "".join(f' data-{name}="{value}"' for name, value in data.items())
        said, on = _escaped(label), "true" if pressed else "false"
        self._parts.append(
            f'<g class="{self._class}"{attributes} tabindex="0" role="button" aria-pressed="{on}" aria-label="{said}">'
            f"<title>{said}</title>"
        )
        yield
        self._parts.append("</g>")

    # -- lines -----------------------------------------------------------------------------------------------

    def arrow(self, points: Sequence[Point], colour: str, width: float, *, dashed: bool = False) -> None:
        """A line with round corners through ``points`` and a head at its end."""
        (x, y), (px, py) = points[-1], points[-2]
        length = math.hypot(x - px, y - py) or 1.0
        dx, dy = (x - px) / length, (y - py) / length
        self._line([*points[:-1], (x - dx * (_HEAD - 1), y - dy * (_HEAD - 1))], colour, width, dashed=dashed)
        half, back_x, back_y = 3.5 + width / 2, x - dx * _HEAD, y - dy * _HEAD
        left, right = (back_x - dy * half, back_y + dx * half), (back_x + dy * half, back_y - dx * half)
        self._path(f"M{_spot(left)}L{_spot(right)}L{_spot((x, y))}Z", f'fill="{colour}"')

    def kept_line(self, points: Sequence[Point]) -> None:
        """A value handed on without leaving the chip."""
        self._line(points, ON_CHIP, 4)

    def hit_line(self, points: Sequence[Point]) -> None:
        """An invisible wide line that takes a press, and shows the focus."""
        if self._live:
            self._path(_way(tuple(points), 6), 'class="hit" fill="none" stroke="#000" stroke-opacity="0"')

    def _line(self, points: Sequence[Point], colour: str, width: float, *, dashed: bool = False) -> None:
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self._path(_way(tuple(points), 6), f'fill="none" stroke="{colour}" stroke-width="{width:.3g}"{dash}')

    def _path(self, d: str, style: str) -> None:
        self._parts.append(f'<path d="{d}" {style}/>')

    # -- boxes -----------------------------------------------------------------------------------------------

    def strip(self, x: float, y: float, width: float, height: float) -> None:
        """A strip of memory."""
        self._box(x, y, width, height, radius=6, fill=MEMORY, stroke="#e4e8ed")

    def frame(self, x: float, y: float, width: float, height: float, words: str, pill: str) -> None:
        """Around what repeats: a dashed frame, a pill with how often and words beside it, at the top left."""
        self._box(x, y, width, height, radius=12, fill="none", stroke=MUTED, stroke_dasharray="7 5")
        wide = text_width(pill, BODY) + 16
        self._box(x + 10, y - 10, wide + _legend_width(words) + 20, 20, radius=0, fill=CARD, stroke="none")
        self._box(x + 14, y - 11, wide, 22, radius=11, fill=MUTED, stroke="none")
        self.text(x + 14 + wide / 2, y + 5, pill, size=BODY, anchor="middle", colour=CARD, bold=True)
        self.text(x + 22 + wide, y + 4, words, colour=MUTED)

    def kernel_shape(self, loops: Sequence[Sequence[Point]], *, dashed: bool) -> None:
        """One launch, whatever its shape; dashed where no general compiler makes it."""
        d = "".join(_way(tuple(loop), 8, closed=True) for loop in loops)
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self._path(d, f'fill="{CHIP}" fill-rule="evenodd" stroke="{ON_CHIP}" stroke-width="1.5"{dash}')

    def badge(self, x: float, y: float, number: object) -> None:
        """A kernel's number, its left end at ``x``, centred at ``y``."""
        width = max(18.0, text_width(str(number), SMALL) + 9)
        self._box(x, y - 9, width, 18, radius=9, fill=KEPT_FILL, stroke=CARD, stroke_width=1.5)
        self.text(x + width / 2, y + 4.5, number, anchor="middle", colour=CARD, bold=True)

    def operator_box(
        self, x: float, y: float, width: float, height: float, words: str, icon: Icon | None, *, ghost: bool = False
    ) -> None:
        """One operator, with the icon of its kind; dashed where it stands elsewhere and is only hinted at."""
        dash = {"stroke_dasharray": "4 3"} if ghost else {}
        self._box(x, y, width, height, radius=6, fill=CARD, stroke=MUTED if ghost else INK, **dash)
        shift = 0.0
        if icon is not None:
            shift = 11.0
            self.icon(max(x + 11, x + width / 2 - bold_width(words, BODY) / 2 - 1.5), y + height / 2, icon)
        size = BODY if bold_width(words, BODY) <= width - 2 * shift else SMALL
        colour = MUTED if ghost else INK
        baseline = y + height / 2 + 4.5
        self.text(x + width / 2 + shift, baseline, words, size=size, anchor="middle", colour=colour, bold=not ghost)

    def halo(self, x: float, y: float, width: float, height: float) -> None:
        """Around a box that can be pressed: seen only while it has the focus."""
        if self._live:
            self._box(x - 2, y - 2, width + 4, height + 4, radius=8, fill="none", stroke="none", class_="halo")

    def ring(self, x: float, y: float, width: float, height: float) -> None:
        """Around an operator that is selected."""
        self._box(x - 4, y - 4, width + 8, height + 8, radius=9, fill="none", stroke=SELECTED, stroke_width=3)

    def memory_box(
        self, x: float, y: float, width: float, height: float, name: str, size: str, *, output: bool, counted: bool
    ) -> None:
        """A tensor in memory: its name and size on one line; a thick frame for an output, dashed if not counted."""
        dash = {} if counted else {"stroke_dasharray": "4 3"}
        stroke, thick = (INK, 2) if output else (MUTED, 1)
        self._box(x, y, width, height, radius=4, fill=CARD, stroke=stroke, stroke_width=thick, **dash)
        weight = ' font-weight="600"' if output else ""
        self._parts.append(
            f'<text x="{x + width / 2:.6g}" y="{y + height / 2 + 4:.6g}" font-size="{SMALL}" text-anchor="middle" '
            f'fill="{MUTED}"><tspan fill="{INK if counted else MUTED}"{weight}>{_escaped(name)}</tspan>'
            f'<tspan dx="5">{_escaped(size)}</tspan></text>'
        )

    def kept_capsule(self, x: float, y: float, width: float, height: float, words: str) -> None:
        """A tensor kept on chip."""
        self._box(x, y, width, height, radius=9, fill=KEPT_FILL, stroke="none")
        self.text(x + width / 2, y + height / 2 + 4, words, anchor="middle", colour=CARD, bold=True)

    def note(self, x: float, y: float, words: str) -> None:
        """A few words beside a kernel, in its colour."""
        self.text(x, y, words, colour="#00664a", bold=True)

    def icon(self, x: float, y: float, kind: Icon) -> None:
        """What kind an operator is, centred at ``(x, y)``, 12 px wide: GEMM a grid, reduction a funnel, ..."""
        style = f'fill="none" stroke="{MUTED}" stroke-width="1.5" stroke-linejoin="round"'
        shapes = {
            "gemm": "m-5.5,-5.5h11v11h-11zm0,5.5h11m-5.5,-5.5v11",
            "reduction": "m-6,-5h12l-6,7zm6,7v4.5",
            "injective": "m-6,-3.5h4l4,7h4m-12,0h4l4,-7h4",
            "opaque": "m-5,-5h10v10h-10z",
        }
        solid = f'fill="{MUTED}"'
        self._path(f"M{_spot((x, y))}{shapes[kind]}", solid if kind == "opaque" else style)

    # -- legend ----------------------------------------------------------------------------------------------

    def legend(self, y: float, icons: Sequence[tuple[Icon, str]], *, again: bool, by_hand: bool) -> None:
        """Two lines, baselines at ``y`` and 20 below: the parts of the picture; icons, and what dashed lines mean.

        Args:
            icons: with their names; again: some read arrows are dashed; by_hand: some outlines are.
        """
        x = MARGIN + 8.0
        self._box(x, y - 13, 28, 17, radius=6, fill=CHIP, stroke=ON_CHIP, stroke_width=1.5)
        x = self._entry(x + 34, y, _KERNEL_LABEL)
        self._box(x, y - 12, 24, 15, radius=3, fill=CARD, stroke=MUTED)
        x = self._entry(x + 30, y, MEMORY_LABEL)
        for label, colour in ((WRITE_LABEL, WRITE), (READ_LABEL, READ)):
            self.arrow([(x, y - 4), (x + 24, y - 4)], colour, 3)
            x = self._entry(x + 30, y, label)
        self.kept_line([(x, y - 4), (x + 34, y - 4)])
        self._box(x + 8, y - 10, 18, 12, radius=6, fill=KEPT_FILL, stroke="none")
        x = self._entry(x + 40, y, KEPT_LABEL)
        self.text(x, y, _WIDTH_LABEL, colour=MUTED)
        x = MARGIN + 8.0
        for kind, words in icons:
            self.icon(x + 6, y + 16, kind)
            x = self._entry(x + 18, y + 20, words) - 4
        x += 4
        if again:
            self.arrow([(x, y + 16), (x + 26, y + 16)], READ, 1.6, dashed=True)
            x = self._entry(x + 32, y + 20, _AGAIN_LABEL)
        if by_hand:
            self._box(x, y + 7, 28, 17, radius=6, fill=CHIP, stroke=ON_CHIP, stroke_width=1.5, stroke_dasharray="5 3")
            self._entry(x + 34, y + 20, _BY_HAND_LABEL)

    def _entry(self, x: float, y: float, words: object) -> float:
        self.text(x, y, words, colour=MUTED)
        return x + _legend_width(str(words)) + 16

    # -- written down directly -------------------------------------------------------------------------------

    def text(
        self,
        x: float,
        y: float,
        words: object,
        *,
        size: int = SMALL,
        anchor: Literal["start", "middle", "end"] = "start",
        colour: str = INK,
        bold: bool = False,
    ) -> None:
        """See ``Picture.text``."""
        weight = ' font-weight="600"' if bold else ""
        side = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._parts.append(
            f'<text x="{x:.6g}" y="{y:.6g}" font-size="{size}"{side} fill="{colour}"{weight}>{_escaped(words)}</text>'
        )

    def _box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        radius: float,
        fill: str,
        stroke: str,
        **style: object,
    ) -> None:
        more = "".join(f' {key.rstrip("_").replace("_", "-")}="{value}"' for key, value in style.items())
        self._parts.append(
            f'<rect x="{x:.6g}" y="{y:.6g}" width="{width:.6g}" height="{height:.6g}" rx="{radius}" '
            f'fill="{fill}" stroke="{stroke}"{more}/>'
        )


@lru_cache(maxsize=16384)
def _way(points: tuple[Point, ...], radius: float, *, closed: bool = False) -> str:
    """``rounded_path`` remembered: most lines come again at every press."""
    return rounded_path(points, radius, closed=closed)


def rounded_path(points: Sequence[Point], radius: float, *, closed: bool = False) -> str:
    """Path data through ``points``, its corners rounded as far as the pieces between them are long enough."""
    corners = [points[0], *(after for at, after in pairwise(points) if at != after)]
    around = [corners[-1], *corners, corners[0]] if closed else corners
    steps: list[str] = []
    for before, at, after in zip(around, around[1:], around[2:], strict=False):
        one, other = math.dist(before, at), math.dist(at, after)
        cut = min(radius, one / 2, other / 2)
        enter, leave = _towards(at, before, cut / one), _towards(at, after, cut / other)
        steps.append(f"{_spot(enter)}Q{_spot(at)} {_spot(leave)}")
    if closed:
        return f"M{'L'.join(steps)}Z"
    return f"M{'L'.join([_spot(corners[0]), *steps, _spot(corners[-1])])}"


def _towards(at: Point, other: Point, share: float) -> Point:
    return at[0] + (other[0] - at[0]) * share, at[1] + (other[1] - at[1]) * share


def _spot(point: Point) -> str:
    return f"{point[0]:.6g},{point[1]:.6g}"


def _escaped(words: object) -> str:
    """For text and for an attribute; what XML does not allow at all becomes a replacement character."""
    said = str(words)
    if not said.isprintable():
        said = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in said)
    return escape(said)


def _legend_width(words: str) -> float:
    """What words of a legend take, less careful than ``text_width``: nothing is cut where it is wrong."""
    full = bold_width(words, SMALL)
    return full * (0.92 if words.isascii() else 1.0)


_STYLE = f"""
.PART{{cursor:pointer;outline:none}}
.PART>.hit{{stroke-width:15;pointer-events:stroke}}
.PART:hover>.hit{{stroke:{INK};stroke-opacity:.1}}
.PART:focus>.hit{{stroke:{_FOCUS};stroke-opacity:.28}}
.PART:hover>.halo{{stroke:{LINE};stroke-width:3}}
.PART:focus>.halo{{stroke:{_FOCUS};stroke-width:3}}
"""
