"""What a kernel touches, lane by lane, seen from inside Triton's interpreter.

The interpreter reads and writes through four functions of a compiled module; they are wrapped while a case runs. A lane
that is not allowed is kept and stops the kernel *before* it reads or writes, so that no bug of a learner's can bring
the process down. These are private parts of Triton: ``probe`` runs a kernel whose accesses are known, and where it does
not see them (another version), the checker falls back to its guard bands.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc"

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lessons_lib.kernels.gate.cases import GateCase, TensorName
from lessons_lib.kernels.gate.memory import Access, AccessKind, MemoryMap

# Where the pointers and the mask stand among the arguments of each function.
_FUNCTIONS: dict[str, tuple[AccessKind, int, int | None]] = {
    "load": ("load", 0, 1),
    "store": ("store", 0, 2),
    "atomic_rmw": ("atomic", 1, 3),
    "atomic_cas": ("atomic", 0, None),
}
_NARROW_BYTES = 4


class OutsideError(Exception):
    """Raised inside the kernel to stop it at an access that is not allowed."""


@dataclass
class Trace:
    """The accesses of one launch, in order.

    ``violation``: the access that was stopped. ``narrow``: the first pointer that was moved to another row by a 32-bit
    offset, as (tensor, program); such an offset wraps around past 2**31 elements.
    """

    memory: MemoryMap
    base_address: int
    element_bytes: int
    accesses: list[Access] = field(default_factory=list)
    violation: Access | None = None
    narrow: tuple[TensorName, int] | None = None

    def note(self, kind: AccessKind, program: int, addresses: Any, mask: Any) -> None:
        """Keep an access; ``addresses`` and ``mask`` are arrays of one shape, or views of an array's memory.

        Raises:
            OutsideError: a lane that the mask left on is not allowed.
        """
        lanes = tuple(self._index(address) for address in _flat(addresses.tolist()))
        on = (True,) * len(lanes) if mask is None else tuple(bool(lane) for lane in _flat(mask.tolist()))
        access = Access(kind, program, lanes, on)
        if all(self.memory.allows(kind, index) for _, index in access.active):
            self.accesses.append(access)
            return
        self.violation = self.violation or access
        raise OutsideError

    def note_offset(self, program: int, pointers: Any, offsets: Any) -> None:
        """Keep the first 32-bit offset that reaches beyond the blocks of one row."""
        case = self.memory.case
        if self.narrow is not None or offsets.dtype.itemsize > _NARROW_BYTES:
            return
        if offsets.size and int(offsets.max()) >= case.blocks * case.block:
            first = next(_flat(pointers.tolist()))
            self.narrow = (self.memory.place(self._index(first)).tensor, program)

    def _index(self, address: int) -> int:
        return (int(address) - self.base_address) // self.element_bytes


def _flat(items: Any) -> Iterator[Any]:
    """The innermost items of nested lists, in order."""
    if not isinstance(items, list):
        yield items
        return
    for item in items:
        yield from _flat(item)


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Have ``trace`` see every access while the block runs."""
    from triton.runtime import interpreter

    builder: Any = interpreter.interpreter_builder
    original = interpreter._interpreter
    interpreter._interpreter = _Watched(original, builder, trace)
    builder.create_addptr = partial(_moved, builder, trace, builder.create_addptr)
    try:
        yield
    finally:
        interpreter._interpreter = original
        del builder.create_addptr


class _Watched:
    """The interpreter's compiled module, with its four functions wrapped."""

    def __init__(self, module: Any, builder: Any, trace: Trace) -> None:
        self._module, self._builder, self._trace = module, builder, trace

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._module, name)
        return partial(self._call, name, function) if name in _FUNCTIONS else function

    def _call(self, name: str, function: Any, *arguments: Any) -> Any:
        kind, pointers, mask = _FUNCTIONS[name]
        program = int(self._builder.grid_idx[0])
        self._trace.note(kind, program, arguments[pointers], None if mask is None else arguments[mask])
        return function(*arguments)


def _moved(builder: Any, trace: Trace, add: Any, pointer: Any, offset: Any) -> Any:
    trace.note_offset(int(builder.grid_idx[0]), pointer.data, offset.data)
    return add(pointer, offset)


def probe() -> bool:
    """Whether the accesses of a kernel that is known are seen as they are; never raises."""
    try:
        return _probe_sees_all()
    except Exception:
        return False


def _probe_sees_all() -> bool:
    import torch

    from lessons_lib.kernels.gate.probe import BLOCK, probe_kernel

    memory = MemoryMap(GateCase(1, 2 * BLOCK - 1, BLOCK))
    arena = torch.zeros(memory.size, dtype=torch.float32)
    trace = Trace(memory, arena.data_ptr(), arena.element_size())
    x, y = memory.starts["gate"], memory.starts["y"]
    with tracing(trace):
        probe_kernel[(2,)](arena[x:], arena[y:], memory.case.columns, BLOCK=BLOCK)
    expected: list[Access] = []
    for program, columns in enumerate((range(BLOCK), range(BLOCK, 2 * BLOCK))):
        mask = tuple(column < memory.case.columns for column in columns)
        expected.append(Access("load", program, tuple(x + column for column in columns), mask))
        expected.append(Access("store", program, tuple(y + column for column in columns), mask))
    return trace.accesses == expected and bool((arena[y : y + memory.case.columns] == 1).all())
