"""From what a kernel did in one case to the first fault and its likely cause. Pure numbers.

First what the kernel touched (``gate_indices`` names a wrong index). Only where every index is right can the
arithmetic be wrong (``gate_arithmetic``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lessons_lib.kernels.gate.arithmetic import arithmetic_cause
from lessons_lib.kernels.gate.cases import GateCase, TensorName
from lessons_lib.kernels.gate.indices import index_cause, ran_over, touches
from lessons_lib.kernels.gate.memory import Access, MemoryMap, Place

Detail = str | int | float
Element = tuple[int, int]  # row, column
Fault = Literal["outside", "writes_input", "unwritten", "written_twice", "too_much", "wrong_value", "narrow"]

_INPUTS: tuple[TensorName, ...] = ("gate", "up", "bias")


@dataclass(frozen=True)
class Observation:
    """One case as it came out.

    Attributes:
        got: y as the kernel left it, row by row.
        unwritten: elements of y that still hold what they held before.
        changed: the first element that is none of y's and was written all the same.
        accesses: what each program touched, in order; ``None`` where it could not be watched.
        violation: the access at which the kernel was stopped.
        narrow: a pointer moved by a 32-bit row offset, as (tensor, program).
    """

    case: GateCase
    got: Sequence[Sequence[float]]
    unwritten: frozenset[Element] = frozenset()
    changed: Place | None = None
    accesses: tuple[Access, ...] | None = None
    violation: Access | None = None
    narrow: tuple[TensorName, int] | None = None

    @property
    def memory(self) -> MemoryMap:
        return MemoryMap(self.case)

    def stores(self, program: int | None = None) -> list[Access]:
        """What a program, or every program, wrote."""
        written = [access for access in self.accesses or () if access.kind != "load"]
        return [access for access in written if program in (None, access.program)]


@dataclass(frozen=True)
class Finding:
    """One fault: what is wrong, where (``details``), and the likely ``cause``, ``""`` if unknown."""

    fault: Fault
    cause: str = ""
    details: Mapping[str, Detail] = field(default_factory=dict)


def diagnose(seen: Observation) -> Finding | None:
    """The first fault of a case, with its likely cause; ``None`` when there is none."""
    checks = (_stopped, _changed, _unwritten, _written_twice, _too_much, _wrong_value, _narrow)
    return next((finding for check in checks if (finding := check(seen)) is not None), None)


# -- where it wrote -----------------------------------------------------------------------------------------------


def _stopped(seen: Observation) -> Finding | None:
    access, memory = seen.violation, seen.memory
    if access is None:
        return None
    lane, index = next((lane, index) for lane, index in access.active if not memory.allows(access.kind, index))
    place = memory.place(index)
    details = _at(place.row, place.column, access.program) | {"tensor": place.tensor, "kind": access.kind}
    if access.kind != "load" and place.tensor != "y":
        return Finding("writes_input", "", details)
    if ran_over(memory, access, lane, place):
        return Finding("outside", "no_mask", details)
    watched = (*(seen.accesses or ()), access)
    return Finding("outside", index_cause(seen.case, place.tensor, watched, access), details)


def _changed(seen: Observation) -> Finding | None:
    """Without a trace: what the guard bands, the gaps between rows and the inputs say."""
    place, case = seen.changed, seen.case
    if place is None:
        return None
    program = _home(case, place.row, place.column)
    details = _at(place.row, place.column, program) | {"tensor": place.tensor, "kind": "store"}
    if place.tensor != "y":
        return Finding("writes_input", "", details)
    padded = case.blocks * case.block
    return Finding("outside", "no_mask" if case.columns <= place.column < padded else "", details)


def _unwritten(seen: Observation) -> Finding | None:
    if not seen.unwritten:
        return None
    case = seen.case
    row, column = min(seen.unwritten)
    program = _home(case, row, column)
    details = _at(row, column, program)
    if len(seen.unwritten) == case.rows * case.columns:
        return Finding("unwritten", "stores_nothing", details)
    if seen.accesses is None:
        return Finding("unwritten", _missing_pattern(seen), details)
    stores = seen.stores(program)
    if not stores:
        return Finding("unwritten", "no_store", details)
    if seen.memory.starts["y"] + row * case.stride("y") + column in {
        lane for store in stores for lane in store.lanes
    }:
        return Finding("unwritten", "mask_too_small", details)
    cause = index_cause(case, "y", seen.accesses, stores[0]) or _missing_pattern(seen)
    return Finding("unwritten", cause, details)


def _missing_pattern(seen: Observation) -> str:
    """A cause from the pattern of missing elements alone."""
    case = seen.case
    beyond_first_block = {(row, column) for row in range(case.rows) for column in range(case.block, case.columns)}
    if beyond_first_block and seen.unwritten == beyond_first_block:
        return "block_missing"
    rows = {row for row, _ in seen.unwritten}
    return "row_missing" if 0 not in rows and len(seen.unwritten) == len(rows) * case.columns else ""


def _written_twice(seen: Observation) -> Finding | None:
    for (row, column), programs in sorted(_writers(seen).items()):
        if len(programs) > 1:
            details = _at(row, column, programs[0]) | {"other": programs[-1]}
            return Finding("written_twice", _rewrite_cause(seen, programs), details)
    return None


def _rewrite_cause(seen: Observation, programs: Sequence[int]) -> str:
    memory = seen.memory
    for store in (store for program in programs for store in seen.stores(program)):
        if any(ran_over(memory, store, lane, memory.place(index)) for lane, index in store.active):
            return "no_mask"
    return index_cause(seen.case, "y", seen.accesses or (), seen.stores(programs[-1])[0])


def _too_much(seen: Observation) -> Finding | None:
    """One program that did the work of several."""
    written: dict[int, int] = {}
    for programs in _writers(seen).values():
        written[programs[0]] = written.get(programs[0], 0) + 1
    for program, count in sorted(written.items()):
        if count > seen.case.block:
            return Finding("too_much", "", {"program": program, "count": count})
    return None


def _writers(seen: Observation) -> dict[Element, list[int]]:
    """The programs that wrote each element of y, in order, each once."""
    memory = seen.memory
    writers: dict[Element, list[int]] = {}
    for store in seen.stores():
        for _, index in store.active:
            place = memory.place(index)
            programs = writers.setdefault((place.row, place.column), [])
            if store.program not in programs:
                programs.append(store.program)
    return writers


def _narrow(seen: Observation) -> Finding | None:
    if seen.narrow is None:
        return None
    tensor, program = seen.narrow
    return Finding("narrow", "narrow_offset", {"tensor": tensor, "program": program})


# -- what it wrote -----------------------------------------------------------------------------------------------


def _wrong_value(seen: Observation) -> Finding | None:
    case = seen.case
    for row in range(case.rows):
        for column in range(case.columns):
            got, expected = seen.got[row][column], case.y(row, column)
            if not case.agrees(got, expected):
                writers = _writers(seen).get((row, column)) or [_home(case, row, column)]
                details = _at(row, column, writers[0]) | {"got": got, "expected": expected}
                fault = _read_fault(seen, (row, column), writers[0], details)
                return fault or Finding("wrong_value", arithmetic_cause(case, seen.got), details)
    return None


def _read_fault(seen: Observation, element: Element, program: int, details: dict[str, Detail]) -> Finding | None:
    """What the program that wrote the element read for it, where that is not what it should have read."""
    memory, case, accesses = seen.memory, seen.case, seen.accesses or ()
    target = memory.starts["y"] + element[0] * case.stride("y") + element[1]
    stores = [store for store in seen.stores(program) if target in store.touched]
    if not stores:
        return None
    loads = [access for access in accesses if access.kind == "load" and access.program == program]
    if stores[-1].kind == "atomic":
        return Finding("wrong_value", "atomic", details)
    if any(touches(memory, load, "y") for load in loads):
        return Finding("wrong_value", "reads_y", details)
    reads = [_read(memory, loads, tensor, element, stores[-1].lanes.index(target)) for tensor in _INPUTS]
    gate, up, _ = (None if read.place is None else (read.place.row, read.place.column) for read in reads)
    if gate == up and gate not in (None, element):  # what was read belongs together: it was stored in the wrong place
        return Finding("wrong_value", index_cause(case, "y", accesses, stores[-1]), {**details, "of": "y"})
    for read in reads:
        if read.fault == "wrong_index" and read.load is not None:
            cause = index_cause(case, read.tensor, accesses, read.load)
            return Finding("wrong_value", cause or "wrong_index", {**details, **read.details()})
        if read.fault:
            return Finding("wrong_value", read.fault, {**details, "of": read.tensor})
    return None


@dataclass(frozen=True)
class _Read:
    """What one lane read of a tensor; ``fault`` is ``""`` where that is the right element."""

    tensor: TensorName
    fault: str
    load: Access | None = None
    place: Place | None = None

    def details(self) -> dict[str, Detail]:
        words: dict[str, Detail] = {"of": self.tensor}
        return words if self.place is None else words | {"read_row": self.place.row, "read_column": self.place.column}


def _read(memory: MemoryMap, loads: Sequence[Access], tensor: TensorName, element: Element, lane: int) -> _Read:
    row, column = element
    wanted = memory.starts[tensor] + (0 if tensor == "bias" else row * memory.case.stride(tensor)) + column
    meant = [(load, _lane_of(load, lane)) for load in loads if touches(memory, load, tensor)]
    hits = [load.mask[at] for load, at in meant if load.lanes[at] == wanted]
    if hits:
        return _Read(tensor, "" if any(hits) else "masked_read", place=memory.place(wanted))
    for load, at in meant:
        return _Read(tensor, "wrong_index", load, memory.place(load.lanes[at]))
    return _Read(tensor, "not_read")


def _lane_of(load: Access, lane: int) -> int:
    """The lane of a load whose value this lane of the result has: one element is read for all."""
    return lane if lane < len(load.lanes) else 0


def _at(row: int, column: int, program: int) -> dict[str, Detail]:
    return {"tensor": "y", "row": row, "column": column, "program": program}


def _home(case: GateCase, row: int, column: int) -> int:
    """The program whose block holds this element."""
    return max(0, row) * case.blocks + min(max(0, column) // case.block, case.blocks - 1)
