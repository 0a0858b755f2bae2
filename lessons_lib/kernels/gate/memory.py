"""Where the checker's four tensors lie in one piece of memory, with guard bands between them. Pure numbers.

An index counts elements from the start of that memory. Reading or writing past a tensor lands in a band, so that it is
seen, and tells which tensor it was meant for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from lessons_lib.kernels.gate.cases import TENSORS, GateCase, TensorName

BAND = 1 << 14  # elements
ALIGNMENT = 64  # elements: a tensor starts at a multiple of 16 bytes, as PyTorch's own do

AccessKind = Literal["load", "store", "atomic"]


@dataclass(frozen=True)
class Place:
    """An element as the tensor's stride reads it: ``row`` or ``column`` is out of range where it belongs to none."""

    tensor: TensorName
    row: int
    column: int
    offset: int


@dataclass(frozen=True)
class Access:
    """One load or store of one program: each lane's index, and the lanes that the mask left on."""

    kind: AccessKind
    program: int
    lanes: tuple[int, ...]
    mask: tuple[bool, ...]

    @property
    def active(self) -> list[tuple[int, int]]:
        """(lane, index) of every lane that touched memory."""
        return [(lane, index) for lane, index in enumerate(self.lanes) if self.mask[lane]]

    @property
    def touched(self) -> set[int]:
        return {index for _, index in self.active}


@dataclass(frozen=True)
class MemoryMap:
    """The layout of a case: band, gate, band, bias, band, up, band, y, band."""

    case: GateCase

    @cached_property
    def starts(self) -> dict[TensorName, int]:
        starts: dict[TensorName, int] = {}
        free = BAND
        for tensor in TENSORS:
            starts[tensor] = free
            free += -(-self.span(tensor) // ALIGNMENT) * ALIGNMENT + BAND
        return starts

    @cached_property
    def size(self) -> int:
        return self.starts["y"] + -(-self.span("y") // ALIGNMENT) * ALIGNMENT + BAND

    def rows(self, tensor: TensorName) -> int:
        return 1 if tensor == "bias" else self.case.rows

    def span(self, tensor: TensorName) -> int:
        """Elements from the first to the last, gaps included."""
        return (self.rows(tensor) - 1) * self.case.stride(tensor) + self.case.columns

    def place(self, index: int) -> Place:
        """The tensor nearest to ``index``, and the row and column that its stride gives."""
        tensor = min(TENSORS, key=lambda name: self._distance(name, index))
        offset = index - self.starts[tensor]
        row, column = divmod(offset, self.case.stride(tensor))
        if self.rows(tensor) == 1 and offset >= 0:
            row, column = 0, offset
        return Place(tensor, row, column, offset)

    def is_element(self, place: Place) -> bool:
        return 0 <= place.row < self.rows(place.tensor) and 0 <= place.column < self.case.columns

    def allows(self, kind: AccessKind, index: int) -> bool:
        """A load may touch anything from a tensor's first element to its last; a store only elements of y."""
        place = self.place(index)
        if kind == "load":
            return 0 <= place.offset < self.span(place.tensor)
        return place.tensor == "y" and self.is_element(place)

    def elements(self, tensor: TensorName, value: Callable[[int, int], float]) -> Iterator[tuple[int, float]]:
        """(index, value) of every element of a tensor, row by row."""
        start, stride = self.starts[tensor], self.case.stride(tensor)
        for row in range(self.rows(tensor)):
            for column in range(self.case.columns):
                yield start + row * stride + column, value(row, column)

    def _distance(self, tensor: TensorName, index: int) -> int:
        offset = index - self.starts[tensor]
        return max(0, -offset, offset - self.span(tensor) + 1)
