"""Which usual mistake gives the wrong index that a kernel used. Pure numbers.

A program's home is one block of one row: ``row, block = divmod(program, blocks)``, and lane ``l`` of it belongs at
column ``block * BLOCK + l``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lessons_lib.kernels.gate.cases import GateCase, TensorName
from lessons_lib.kernels.gate.memory import Access, MemoryMap, Place


@dataclass(frozen=True)
class _Lane:
    """Where one lane belongs."""

    program: int
    row: int
    block: int
    lane: int


_Formula = Callable[[GateCase, int, _Lane], int]  # (case, stride of the tensor, lane) -> offset


def index_cause(case: GateCase, tensor: TensorName, accesses: Sequence[Access], wrong: Access) -> str:
    """The first usual mistake that gives every index of ``tensor`` in accesses of one kind; ``""`` if none does.

    Lanes that a mask turned off count as well: they say what the kernel meant.

    Args:
        accesses: all that the kernel touched; those of the kind and width of ``wrong`` must agree.
        wrong: an access with an index that is not the right one.
    """
    memory = MemoryMap(case)
    start, stride = memory.starts[tensor], case.stride(tensor)
    alike = [access for access in accesses if _is_alike(memory, tensor, access, wrong)] or [wrong]
    for cause, formula in _BIAS_MISTAKES if tensor == "bias" else _MATRIX_MISTAKES:
        if all(
            index - start == formula(case, stride, _home(case, access.program, lane))
            for access in alike
            for lane, index in enumerate(access.lanes)
        ):
            return cause
    return ""


def touches(memory: MemoryMap, access: Access, tensor: TensorName) -> bool:
    """Whether the first lane, one that is on if there is one, lies in the tensor or nearest to it."""
    first = access.active[0][1] if access.active else access.lanes[0]
    return memory.place(first).tensor == tensor


def ran_over(memory: MemoryMap, access: Access, lane: int, place: Place) -> bool:
    """Whether this lane lies past the end of the row that the access began in, as without a mask."""
    case = memory.case
    first_lane, first_index = access.active[0]
    first = memory.place(first_index)
    if first_lane == lane or first.tensor != place.tensor or not memory.is_element(first):
        return False
    if (first.column - first_lane) % len(access.lanes):  # no block begins here: the row itself is misplaced
        return False
    past = first.column + place.offset - first.offset
    return case.columns <= past < first.column + case.block


def _is_alike(memory: MemoryMap, tensor: TensorName, access: Access, wrong: Access) -> bool:
    return access.kind == wrong.kind and len(access.lanes) == len(wrong.lanes) and touches(memory, access, tensor)


def _home(case: GateCase, program: int, lane: int) -> _Lane:
    row, block = divmod(program, case.blocks)
    return _Lane(program, row, block, lane)


def _column(case: GateCase, at: _Lane) -> int:
    return at.block * case.block + at.lane


def _floor_index(case: GateCase, stride: int, at: _Lane) -> int:
    """With ``columns // BLOCK`` blocks in a row, not rounded up; the interpreter divides by 0 to 0."""
    blocks = case.columns // case.block
    row, block = divmod(at.program, blocks) if blocks else (0, at.program)
    return row * stride + block * case.block + at.lane


def _swapped_index(case: GateCase, stride: int, at: _Lane) -> int:
    block, row = divmod(at.program, case.blocks)
    return row * stride + block * case.block + at.lane


# The offset that each usual mistake gives. Where two give the same everywhere, the first is named.
_MATRIX_MISTAKES: tuple[tuple[str, _Formula], ...] = (
    ("stride_ignored", lambda case, stride, at: at.row * case.columns + _column(case, at)),
    ("stride_of_gate", lambda case, stride, at: at.row * case.stride("gate") + _column(case, at)),
    ("stride_of_up", lambda case, stride, at: at.row * case.stride("up") + _column(case, at)),
    ("stride_of_y", lambda case, stride, at: at.row * case.stride("y") + _column(case, at)),
    ("floor_division", _floor_index),
    ("row_is_program", lambda case, stride, at: at.program * stride + at.lane),
    ("row_is_program", lambda case, stride, at: at.program * stride + _column(case, at)),
    ("row_is_program", lambda case, stride, at: at.program * stride + at.program * case.block + at.lane),
    ("block_is_program", lambda case, stride, at: at.row * stride + at.program * case.block + at.lane),
    ("row_and_block_swapped", _swapped_index),
    ("row_missing", lambda case, stride, at: _column(case, at)),
    ("block_missing", lambda case, stride, at: at.row * stride + at.lane),
    ("block_not_scaled", lambda case, stride, at: at.row * stride + at.block + at.lane),
    ("row_not_scaled", lambda case, stride, at: at.row + _column(case, at)),
)
_BIAS_MISTAKES: tuple[tuple[str, _Formula], ...] = (
    ("bias_by_row", lambda case, stride, at: at.row),
    ("bias_like_matrix", lambda case, stride, at: at.program * case.block + at.lane),
    ("bias_like_matrix", lambda case, stride, at: at.row * case.columns + _column(case, at)),
    ("bias_like_matrix", lambda case, stride, at: at.row * case.stride("gate") + _column(case, at)),
    ("bias_first_only", lambda case, stride, at: 0),
    ("block_missing", lambda case, stride, at: at.lane),
    ("block_not_scaled", lambda case, stride, at: at.block + at.lane),
    ("bias_by_program", lambda case, stride, at: at.program),
    ("floor_division", lambda case, stride, at: _floor_index(case, 0, at)),
)
