"""The parts of the course's one picture: the chip above, memory below, a white card around both.

A kernel is a rounded outline in the chip band, a materialized tensor a box in the memory band with a write arrow
down and a read arrow up, a tensor kept on chip a filled capsule inside its kernel. Colour never stands alone:
direction, shape and label say the same. Coordinates are pixels of a card ``CARD_WIDTH`` wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Literal

import drawsvg

from lessons_lib.base.language import language_tag
from lessons_lib.base.text import Text
from lessons_lib.show.measure import (
    BODY as BODY,
    CARD_WIDTH as CARD_WIDTH,
    MARGIN as MARGIN,
    SMALL as SMALL,
    TITLE as TITLE,
    text_width as text_width,
)

# Okabe-Ito, told apart in every common form of colour blindness.
READ, WRITE, ON_CHIP = "#0072B2", "#D55E00", "#009E73"
PREDICTED = "#5b6b7b"
KEPT_FILL = "#00795a"  # ON_CHIP, dark enough for white words upon it
READ_FILL, WRITE_FILL = "#d6e8f5", "#fbe3d6"
INK, MUTED, LINE, CARD, MEMORY, CHIP = "#1b1f24", "#57606a", "#d0d7de", "#ffffff", "#f6f8fa", "#eef6f3"

FONTS = "system-ui, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans SC', sans-serif"

CHIP_LABEL = Text(zh="片上", en="on chip")
MEMORY_LABEL = Text(zh="显存", en="device memory")
READ_LABEL = Text(zh="读", en="read")
WRITE_LABEL = Text(zh="写", en="write")
KEPT_LABEL = Text(zh="留在片上", en="kept on chip")


class Picture:
    """One card that parts are added to; ``svg()`` gives the finished drawing as a string.

    Args:
        height: of the card in pixels; the width is always ``CARD_WIDTH``.
        label: what a screen reader says in place of the picture.
        prefix: of the element ids, so that two pictures on one page never share an id.
        role: ``"img"``, or ``"group"`` of a picture with parts that can be pressed.
    """

    def __init__(self, height: int, label: str, prefix: str, *, role: Literal["img", "group"] = "img") -> None:
        self._drawing = drawsvg.Drawing(
            CARD_WIDTH,
            height,
            id_prefix=prefix,
            role=role,
            aria_label=escape(label),  # the drawing library escapes text, but no attribute
            lang=language_tag(),
            style=f"width:100%;max-width:{CARD_WIDTH}px;height:auto;display:block;font-family:{FONTS}",
        )
        self._box(0.5, 0.5, CARD_WIDTH - 1, height - 1, radius=10, fill=CARD, stroke=LINE)

    def svg(self) -> str:
        """The picture as an ``<svg>`` element without an XML header, ready to stand in HTML."""
        return str(self._drawing.as_svg(header=""))

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
        """``words`` with the baseline at ``y``; the drawing library escapes them."""
        weight = "600" if bold else "400"
        self._drawing.append(
            drawsvg.Text(str(words), size, x, y, text_anchor=anchor, fill=colour, font_weight=weight)
        )

    def heading(self, title: object, figures: list[tuple[str, bool]]) -> None:
        """The title at the top left and, right-aligned line by line, the numbers with their arithmetic."""
        self.text(MARGIN + 8, 34, title, size=TITLE, bold=True)
        for row, (words, bold) in enumerate(figures):
            self.text(CARD_WIDTH - MARGIN - 8, 34 + 20 * row, words, size=BODY, anchor="end", bold=bold)

    def chip_label(self, y: float) -> None:
        """The name of the upper band, which has no outline of its own: the kernels are its outline."""
        self.text(MARGIN + 8, y, CHIP_LABEL, colour=MUTED)

    def memory_band(
        self, y: float, height: float, words: object = MEMORY_LABEL, *, right: float = CARD_WIDTH - MARGIN
    ) -> None:
        """The lower band from the left margin to ``right``, its name and the legend on its last line."""
        self._box(MARGIN, y, right - MARGIN, height, radius=8, fill=MEMORY, stroke=LINE)
        baseline = y + height - 12
        self.text(MARGIN + 8, baseline, words, colour=MUTED)
        # From the right: each entry starts where its estimated width ends at the one before it.
        x = right - 4
        for mark, label, colour in (("▼", WRITE_LABEL, WRITE), ("▲", READ_LABEL, READ), ("●", KEPT_LABEL, ON_CHIP)):
            x -= text_width(str(label), SMALL) + 34
            self.text(x, baseline, mark, colour=colour)
            self.text(x + 16, baseline, label)

    def kernel(self, x: float, y: float, width: float, height: float, name: str) -> None:
        """One launch: a rounded outline, its name inside the top left corner."""
        self._box(x, y, width, height, radius=10, fill=CHIP, stroke=ON_CHIP, stroke_width=1.5)
        self.text(x + 8, y + 17, name, colour="#00664a", bold=True)

    def operator(self, x: float, y: float, width: float, height: float, name: str, *, idle: bool = False) -> None:
        """One operator inside a kernel, its name centred; dashed while it has nothing to do."""
        dash = {"stroke_dasharray": "4 3"} if idle else {}
        self._box(x, y, width, height, radius=6, fill=CARD, stroke=MUTED if idle else INK, **dash)
        size = BODY if text_width(name, BODY) <= width - 6 else SMALL
        colour = MUTED if idle else INK
        self.text(x + width / 2, y + height / 2 + 5, name, size=size, anchor="middle", colour=colour, bold=not idle)

    def link(self, x_from: float, x_to: float, y: float) -> None:
        """A value handed from one operator to the next without leaving the chip."""
        self._drawing.append(drawsvg.Line(x_from, y, x_to, y, stroke=ON_CHIP, stroke_width=4))

    def capsule(self, x: float, y: float, name: str) -> None:
        """A tensor kept on chip, centred at ``(x, y)``."""
        width = max(28.0, text_width(name, SMALL) + 14)
        self._box(x - width / 2, y - 9, width, 18, radius=9, fill=KEPT_FILL, stroke="none")
        self.text(x, y + 4, name, anchor="middle", colour=CARD, bold=True)

    def tensor(self, x: float, y: float, width: float, name: str, size: str | None, *, counted: bool = True) -> None:
        """A tensor in memory, centred at ``x``, top edge at ``y``, 34 px high; dashed when not counted."""
        dash = {} if counted else {"stroke_dasharray": "4 3"}
        self._box(x - width / 2, y, width, 34, radius=5, fill=CARD, stroke=MUTED, **dash)
        colour = INK if counted else MUTED
        if size is None:
            self.text(x, y + 21, name, anchor="middle", colour=colour)
        else:
            self.text(x, y + 14, name, anchor="middle", colour=colour)
            self.text(x, y + 29, size, anchor="middle", colour=MUTED)

    def matrix(
        self, x: float, y: float, width: float, height: float, columns: Sequence[float], rows: Sequence[float]
    ) -> None:
        """A tensor in memory, element by element to scale, cut at ``columns`` and ``rows`` (pixels from its corner)."""
        self._box(x, y, width, height, radius=0, fill=CARD, stroke=MUTED)
        for cut in columns:
            self._drawing.append(drawsvg.Line(x + cut, y, x + cut, y + height, stroke=LINE, stroke_width=1))
        for cut in rows:
            self._drawing.append(drawsvg.Line(x, y + cut, x + width, y + cut, stroke=LINE, stroke_width=1))

    def block(self, x: float, y: float, width: float, height: float, *, written: bool, shared: bool = False) -> None:
        """The part of a matrix that is read or written now; a second frame around one that others read too."""
        fill, stroke = (WRITE_FILL, WRITE) if written else (READ_FILL, READ)
        self._box(x, y, width, height, radius=0, fill=fill, stroke=stroke, stroke_width=2)
        if shared:
            self._box(x - 3.5, y - 3.5, width + 7, height + 7, radius=2, fill="none", stroke=stroke, stroke_width=1.5)

    def share(self, x: float, y: float, width: float, height: float, *, written: bool) -> None:
        """The part of a matrix that is read or written sooner or later: a dashed frame."""
        stroke = WRITE if written else READ
        self._box(x, y, width, height, radius=0, fill="none", stroke=stroke, stroke_width=1.5, stroke_dasharray="5 4")

    def hatched(self, x: float, y: float, width: float, height: float) -> None:
        """Lanes that a mask switches off: diagonal lines, within the frame, and nothing beneath."""
        self._box(x, y, width, height, radius=0, fill=CARD, stroke=MUTED, stroke_width=1)
        for offset in range(7, int(width + height), 7):
            # From the left or the bottom edge, up at 45 degrees, to the top or the right edge.
            left, bottom = max(0.0, offset - height), min(float(offset), height)
            right, top = min(float(offset), width), max(0.0, offset - width)
            self._drawing.append(drawsvg.Line(x + left, y + bottom, x + right, y + top, stroke=MUTED, stroke_width=1))

    def riser(self, x: float, y_top: float, y_bottom: float) -> None:
        """A value handed up to an operator from a tile kept on chip."""
        self._drawing.append(drawsvg.Line(x, y_top, x, y_bottom, stroke=ON_CHIP, stroke_width=4))

    def kept_bar(self, x: float, y: float, width: float, height: float, name: str, *, pieces: int = 1) -> None:
        """A tile kept on chip; cut into ``pieces`` of which the first is there and the others follow."""
        step = width / pieces
        for index in range(pieces):
            fill = KEPT_FILL if index == 0 else CHIP
            self._box(
                x + step * index, y, step - (3 if pieces > 1 else 0), height, radius=8, fill=fill, stroke=ON_CHIP
            )
        if pieces == 1:
            self.text(x + width / 2, y + height / 2 + 5, name, anchor="middle", colour=CARD, bold=True)
        else:
            self.text(x, y + height + 16, name, bold=True)

    def meter(
        self, x: float, y_bottom: float, width: float, full: float, share: float, *, limit: str, filled: str
    ) -> None:
        """A budget as a vessel: ``full`` pixels are the budget, ``share`` of it is filled, what is above spills over.

        Args:
            limit: words beside the budget's line; filled: words for what fills the vessel.
        """
        top, line = y_bottom - full * 1.3, y_bottom - full
        inside, level = full * min(share, 1.0), full * min(share, 1.3)
        self._box(x, top, width, full * 1.3, radius=6, fill=MEMORY, stroke=LINE)
        self._box(x, y_bottom - inside, width, max(2.0, inside), radius=4, fill=KEPT_FILL, stroke="none")
        if level > full:
            self._box(x, y_bottom - level, width, level - full, radius=4, fill=WRITE_FILL, stroke=WRITE)
            for step in range(int(x) + 8, int(x + width), 8):
                shaft = drawsvg.Line(step, y_bottom - level, step - 6, line, stroke=WRITE, stroke_width=1.5)
                self._drawing.append(shaft)
        self._drawing.append(drawsvg.Line(x - 8, line, x + width + 8, line, stroke=INK, stroke_width=2))
        self.text(x + width + 12, line + 4, limit)
        deep = inside > 24
        baseline = y_bottom - (inside - 18 if deep else inside + 6)
        self.text(x + width / 2, baseline, filled, anchor="middle", colour=CARD if deep else INK, bold=True)

    def column(
        self, x: float, y_bottom: float, width: float, kept: float, spilled: float = 0.0, *, current: bool = False
    ) -> None:
        """A column of ``kept`` pixels, and hatched upon it, in the colour of a write, ``spilled`` pixels."""
        outline = INK if current else "none"
        self._box(x, y_bottom - kept, width, max(1.0, kept), radius=2, fill=KEPT_FILL, stroke=outline, stroke_width=2)
        if spilled > 0:
            top, bottom = y_bottom - kept - spilled, y_bottom - kept
            self._box(x, top, width, spilled, radius=2, fill=WRITE_FILL, stroke=WRITE)
            for step in range(int(x) + 8, int(x + width), 8):
                self._drawing.append(drawsvg.Line(step, top, step - 6, bottom, stroke=WRITE, stroke_width=1.5))

    def empty_column(self, x: float, y_bottom: float, width: float, height: float) -> None:
        """The place of a column whose figure nobody has asked for: dashed."""
        self._box(x, y_bottom - height, width, height, radius=2, fill="none", stroke=MUTED, stroke_dasharray="4 3")

    def squares(self, x_middle: float, y: float, count: int) -> None:
        """``count`` small squares in a row, for things that can be counted."""
        left = x_middle - count * 5
        for index in range(count):
            self._box(left + 10 * index, y, 8, 8, radius=1, fill=CHIP, stroke=ON_CHIP)

    def rule(self, x_left: float, x_right: float, y: float) -> None:
        """A horizontal line to measure against."""
        self._drawing.append(drawsvg.Line(x_left, y, x_right, y, stroke=INK, stroke_width=1.5))

    def line(self, points: list[tuple[float, float]], colour: str) -> None:
        """A curve through ``points``; fewer than two draw nothing."""
        if len(points) > 1:
            flat = [coordinate for point in points for coordinate in point]
            self._drawing.append(drawsvg.Lines(*flat, fill="none", stroke=colour, stroke_width=3))

    def dot(self, x: float, y: float, colour: str) -> None:
        """A mark upon a curve."""
        self._drawing.append(drawsvg.Circle(x, y, 6, fill=colour, stroke=CARD, stroke_width=2))

    def gate(self, x: float, y: float, width: float, name: str, state: str, mark: str, colour: str) -> None:
        """A condition, 84 px high: its mark and state under its name; dashed where nobody has looked."""
        dash = {} if mark != "?" else {"stroke_dasharray": "5 4"}
        self._box(x, y, width, 84, radius=10, fill=CARD, stroke=colour, stroke_width=2.5, **dash)
        self.text(x + width / 2, y + 24, name, size=BODY, anchor="middle", bold=True)
        self.text(x + width / 2, y + 52, mark, size=22, anchor="middle", colour=colour, bold=True)
        self.text(x + width / 2, y + 72, state, anchor="middle", colour=MUTED)

    def read_arrow(self, x: float, y_memory: float, y_chip: float, width: float, *, counted: bool = True) -> None:
        """Up: from memory at ``y_memory`` into a kernel at ``y_chip``."""
        self._arrow(x, y_memory, y_chip, width, READ if counted else MUTED, counted)

    def write_arrow(self, x: float, y_chip: float, y_memory: float, width: float, *, counted: bool = True) -> None:
        """Down: from a kernel at ``y_chip`` into memory at ``y_memory``."""
        self._arrow(x, y_chip, y_memory, width, WRITE if counted else MUTED, counted)

    def interval_bar(self, x_zero: float, x_low: float, x_high: float, y: float, height: float) -> None:
        """A prediction: solid up to its low end, hatched on to its high end."""
        if x_low > x_zero:
            self._box(x_zero, y, x_low - x_zero, height, radius=2, fill=PREDICTED, stroke="none")
        self._box(x_low, y, max(1.0, x_high - x_low), height, radius=0, fill="#e6eaee", stroke=PREDICTED)
        for x in range(int(x_low) + 6, int(x_high), 6):
            self._drawing.append(drawsvg.Line(x, y, x - 4, y + height, stroke=PREDICTED, stroke_width=1))

    def measured_mark(self, x: float, y: float, height: float) -> None:
        """A measurement: a dark line across the bar with a triangle above it."""
        self._drawing.append(drawsvg.Line(x, y - 3, x, y + height + 3, stroke=INK, stroke_width=2.5))
        self._drawing.append(drawsvg.Lines(x - 5, y - 9, x + 5, y - 9, x, y - 2, close=True, fill=INK))

    def _arrow(self, x: float, y_from: float, y_to: float, width: float, colour: str, counted: bool) -> None:
        head = 8.0 if y_to > y_from else -8.0
        dash = {} if counted else {"stroke_dasharray": "4 3"}
        self._drawing.append(
            drawsvg.Line(x, y_from, x, y_to - head, stroke=colour, stroke_width=width if counted else 1.5, **dash)
        )
        half = 3.5 + width / 2
        self._drawing.append(
            drawsvg.Lines(x - half, y_to - head, x + half, y_to - head, x, y_to, close=True, fill=colour)
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
        self._drawing.append(drawsvg.Rectangle(x, y, width, height, rx=radius, fill=fill, stroke=stroke, **style))
