"""The parts of the class's picture that the course's own picture lacks: columns in three looks, shares, rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lessons_lib.show.measure import SMALL, TITLE, text_width
from lessons_lib.show.picture import (
    CARD,
    CARD_WIDTH,
    INK,
    KEPT_FILL,
    LINE,
    MARGIN,
    MEMORY,
    MUTED,
    READ,
    READ_FILL,
    WRITE,
    WRITE_FILL,
    Picture,
)

Look = Literal["outlined", "pale", "solid"]
LEFT, RIGHT = MARGIN + 8, CARD_WIDTH - MARGIN - 8
_LOOKS = {"outlined": (READ_FILL, READ), "pale": ("#8fd3bd", KEPT_FILL), "solid": (KEPT_FILL, KEPT_FILL)}
_SHARES = (MEMORY, "#e7ecf0")


class ClassPicture(Picture):
    """A card for figures of a class."""

    def part(self, y: float, title: object, note: object = "") -> None:
        """The heading of a part, its top edge at ``y``: a line above it, a note at the right."""
        self.text(LEFT, y + 18, title, size=TITLE, bold=True)
        if note:
            self.text(RIGHT, y + 18, note, anchor="end", colour=MUTED)

    def separator(self, y: float) -> None:
        """A pale line across the card."""
        self._box(MARGIN, y, CARD_WIDTH - 2 * MARGIN, 1, radius=0, fill=LINE, stroke="none")

    def stage(self, x: float, y_bottom: float, width: float, height: float, look: Look, number: int) -> None:
        """A column with its number above it; the second look has a frame within, so that no colour is needed."""
        fill, stroke = _LOOKS[look]
        if height > 0:
            self._box(x, y_bottom - height, width, height, radius=2, fill=fill, stroke=stroke, stroke_width=1.5)
        if height > 8 and look == "pale":
            self._box(
                x + 3.5, y_bottom - height + 3.5, width - 7, height - 7, radius=1, fill="none", stroke=KEPT_FILL
            )
        self.text(x + width / 2, y_bottom - height - 5, number, anchor="middle", bold=True)

    def key(self, x: float, y: float, look: Look, words: object) -> float:
        """An entry of the legend, baseline at ``y``; gives where the next one starts."""
        fill, stroke = _LOOKS[look]
        self._box(x, y - 11, 14, 13, radius=2, fill=fill, stroke=stroke, stroke_width=1.5)
        if look == "pale":
            self._box(x + 3, y - 8, 8, 7, radius=1, fill="none", stroke=KEPT_FILL)
        self.text(x + 20, y, words, colour=MUTED)
        return x + 20 + _likely_width(str(words), SMALL) + 18

    def share_of(
        self, x: float, y: float, width: float, height: float, *, place: int, right: bool, labels: Sequence[str]
    ) -> None:
        """A choice's share of a bar, with the first of ``labels`` that it has room for; the true one is dark."""
        fill, stroke, colour = (KEPT_FILL, KEPT_FILL, CARD) if right else (_SHARES[place % 2], MUTED, INK)
        self._box(x, y, width, height, radius=2, fill=fill, stroke=stroke)
        words = next((label for label in labels if _likely_width(label, SMALL) + min(6, 3 * len(label)) <= width), "")
        if words:
            self.text(x + width / 2, y + height / 2 + 4.5, words, anchor="middle", colour=colour, bold=right)

    def wrong_bar(self, x: float, y: float, width: float, full: float, height: float) -> None:
        """How many of ``full`` gave a wrong answer: a bar in the colour of a warning, in a pale frame."""
        self._box(x, y, full, height, radius=2, fill=MEMORY, stroke=LINE)
        self._box(x, y, max(2.0, width), height, radius=2, fill=WRITE_FILL, stroke=WRITE)

    def solved_bar(self, x: float, y: float, full: float, solved: float, starred: float, height: float) -> None:
        """Who solved a puzzle, and, dark within it, who did so at the best; each a number of pixels."""
        self._box(x, y, full, height, radius=2, fill=MEMORY, stroke=LINE)
        if solved > 0:
            self._box(x, y, solved, height, radius=2, fill="#8fd3bd", stroke=KEPT_FILL)
        if starred > 0:
            self._box(x, y + 4, starred, height - 8, radius=1, fill=KEPT_FILL, stroke="none")


def _likely_width(words: str, size: float) -> float:
    """How wide words are, rather than at most: Chinese characters take what is estimated, others a little less."""
    full = sum(text_width(character, 1) >= 1 for character in words)
    return size * full + (text_width(words, size) - size * full) * 0.88


def lines_of(words: str, size: float, width: float, most: int) -> list[str]:
    """``words`` in at most ``most`` lines of ``width`` pixels, the last one cut; Chinese breaks anywhere."""
    lines, line = [], ""
    for piece in _pieces(words):
        if line and _likely_width((line + piece).rstrip(), size) > width:
            lines.append(line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    lines.append(line.rstrip())
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1].rstrip('，。,. ')}…"]
    return lines


def _pieces(words: str) -> list[str]:
    """Words with the space behind them; each Chinese character alone, its punctuation with it; long words in bits."""
    pieces: list[str] = []
    for character in words:
        previous = pieces[-1] if pieces else ""
        whole = previous and previous[-1] != " " and character.isascii() and previous[-1].isascii()
        if (whole and len(previous) < 30) or character in "，。；：！？、）” ":
            pieces[-1:] = [previous + character]
        else:
            pieces.append(character)
    return pieces
