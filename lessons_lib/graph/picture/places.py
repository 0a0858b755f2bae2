"""Places on the card: boxes, lines, and all that a layout consists of.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lessons_lib.graph.picture.folding import Repeat

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle; pixels."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height

    @property
    def x(self) -> float:
        """The middle, from left to right."""
        return self.left + self.width / 2

    @property
    def y(self) -> float:
        """The middle, from top to bottom."""
        return self.top + self.height / 2

    def grown(self, by: float) -> Box:
        """The same with ``by`` more pixels on each side."""
        return Box(self.left - by, self.top - by, self.width + 2 * by, self.height + 2 * by)

    def overlaps(self, other: Box) -> bool:
        """Whether the two share more than an edge."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


@dataclass(frozen=True)
class TensorPlace:
    """A tensor's box in memory and its capsule on chip: in one place, unless both may be there at once (``apart``).

    ``write`` and ``link``: where the arrow into the box and the line to the capsule stand, from left to right.
    """

    memory: Box
    capsule: Box
    write: float
    link: float
    apart: bool


@dataclass(frozen=True)
class Route:
    """An edge's two ways: from the box in memory and from the capsule, each down to the upper edge of its reader."""

    memory: tuple[Point, ...]
    chip: tuple[Point, ...]


@dataclass(frozen=True)
class InputPlace:
    """A box of one graph input, or of several together, and the ways to the operators that read it.

    ``again``: another box of it stands above.
    """

    tensors: tuple[str, ...]
    box: Box
    again: bool
    reads: tuple[tuple[str, tuple[Point, ...]], ...]


@dataclass(frozen=True)
class FoldPlace:
    """The frame around a repeated run."""

    repeat: Repeat
    box: Box


@dataclass(frozen=True)
class Layout:
    """Everything's place on a card ``CARD_WIDTH`` wide and ``height`` high.

    Args:
        ops: operators shown -> their boxes; nexts: operators of the next copy that a repeated run leads to.
        tensors: tensors that operators shown make -> their places.
        edges: indices into ``graph.edges`` -> their ways.
        inputs: boxes of graph inputs; one that is read far apart has several.
        again: edges whose tensor lies far above -> where it is drawn again, just above its reader.
        strips: the strips of memory, from top to bottom.
        streets: heights at which a line may cross the whole card and meet no box.
        passages: for each street but the last, where a line may go down to the next one.
    """

    height: float
    ops: Mapping[str, Box]
    nexts: Mapping[str, Box]
    tensors: Mapping[str, TensorPlace]
    edges: Mapping[int, Route]
    inputs: tuple[InputPlace, ...]
    again: Mapping[int, Box]
    strips: tuple[Box, ...]
    folds: tuple[FoldPlace, ...]
    streets: tuple[float, ...]
    passages: tuple[tuple[float, ...], ...]
