"""Whether operators may share one kernel: the rules that a single group obeys or breaks, and the words for it.

``grouping`` explains the rules; here they are applied, operator by operator in topological order. What an operator
makes inside the kernel is either *free* (computed from memory alone, so any thread can compute any element of it) or
*held*: it depends on a reduction or a GEMM of the same kernel, so a thread block has its own rows or tile and no other.
Internal to this floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lessons_lib.base.gpus import Gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.graph import rule_words as told
from lessons_lib.graph.kernel_bytes import (
    KernelBytes,
    gemm_chain,
    kernel_bytes,
    longest_row,
    row_rereads,
)
from lessons_lib.graph.orientation import two_orders
from lessons_lib.graph.spaces import (
    Flags,
    Shape,
    Structure,
    aligned,
    broadcasts_to,
    moved_in_row,
    refolded,
    row_count,
    rows_alone,
    structure,
)
from lessons_lib.graph.wiring import Read, Step, Wiring

Rule = Literal["cycle", "opaque", "reduction", "row", "gemm", "output", "space", "disconnected"]
MarkRule = Literal["two_gemms", "prologue"]

_ACCUMULATOR_BYTES = 4  # GEMMs accumulate in fp32


@dataclass(frozen=True)
class Fault:
    """A broken rule inside one group, by operator positions.

    ``permanent``: no operator that joins the group mends it; ``passes``: a kernel could live with it by going over its
    rows several times.
    """

    rule: Rule
    ops: tuple[int, ...]
    words: Text
    permanent: bool = False
    passes: bool = False


@dataclass(frozen=True)
class HandMark:
    """Legal, but no general compiler builds it."""

    rule: MarkRule
    ops: tuple[int, ...]
    words: Text


class Kernels:
    """The groups of one graph on one GPU: what each breaks and moves, worked out once."""

    def __init__(self, wiring: Wiring, gpu: Gpu, block_rows: int) -> None:
        self.wiring, self.gpu, self.block_rows = wiring, gpu, block_rows
        self._judged: dict[tuple[int, ...], tuple[tuple[Fault, ...], tuple[HandMark, ...]]] = {}
        self._bytes: dict[tuple[int, ...], KernelBytes] = {}

    def judge(self, ops: Sequence[int]) -> tuple[tuple[Fault, ...], tuple[HandMark, ...]]:
        """Every rule that a group (ascending) breaks by itself, and its marks."""
        key = tuple(ops)
        found = self._judged.get(key)
        if found is None:
            found = self._judged[key] = _Walk(self, key).judge() if len(key) > 1 else ((), ())
        return found

    def bytes(self, ops: Sequence[int]) -> KernelBytes:
        """What a group (ascending) reads and writes."""
        key = tuple(ops)
        found = self._bytes.get(key)
        if found is None:
            budget = self.gpu.shared_bytes_per_block
            found = self._bytes[key] = kernel_bytes(self.wiring, key, budget, self.block_rows)
        return found


@dataclass(frozen=True)
class _Held:
    """What a block has of a tensor: which axes count its rows, and where it came from.

    ``moved``: by whom its elements were sent elsewhere, so that they line up only with what moved the same way.
    ``gemms``: bit 1 and 2 for the kernel's first and second GEMM; 0: it hangs on reductions alone, and whole rows are
    on chip. ``full``: more than one value a row.
    """

    flags: Flags | None
    full: bool
    moved: str
    gemms: int
    reduced: bool
    origin: int


class _BrokenError(Exception):
    """A fault behind which the walk would only guess."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class _Walk:
    """One pass over a group in topological order."""

    def __init__(self, kernels: Kernels, ops: tuple[int, ...]) -> None:
        self.kernels, self.wiring, self.ops = kernels, kernels.wiring, ops
        kinds = self.wiring.kinds
        self.reductions = [op for op in ops if kinds[op] == "reduction"]
        self.gemms = [op for op in ops if kinds[op] == "gemm"]
        self.made: dict[int, _Held | None] = {}
        self.marks: list[HandMark] = []
        self.chain = gemm_chain(self.wiring, ops) if len(self.gemms) == 2 else None
        self.form: Structure = ()

    def judge(self) -> tuple[tuple[Fault, ...], tuple[HandMark, ...]]:
        try:
            self._check_company()
            for op in self.ops:
                held = self._make(op)
                for root in self.wiring.outs[op]:
                    self.made[root] = held
            self._check_orders()
        except _BrokenError as broken:
            return (broken.fault,), ()
        faults = [fault for fault in (self._space(), self._row(), self._output(), self._connection()) if fault]
        return tuple(faults), tuple(self.marks)

    # -- which kinds keep company ----------------------------------------------------------------------------

    def _check_company(self) -> None:
        wiring = self.wiring
        for op in self.ops:
            if wiring.kinds[op] == "opaque":
                raise self._broken("opaque", (op,), told.OPAQUE, op=op)
        if self.reductions:
            form = wiring.structures[self.reductions[0]]
            assert form is not None
            self.form = form
            for op in self.reductions[1:]:
                if wiring.structures[op] != form:
                    raise self._broken_rows(self.reductions[0], op)
        if len(self.gemms) > 2:
            raise self._broken("gemm", tuple(self.gemms), told.THREE_GEMMS, op=self.gemms[2])
        if self.gemms and self.reductions and self.chain is None:
            self._refuse_company(self.gemms[0], self.reductions[0])
        if len(self.gemms) == 2:
            self._check_pair(*self.gemms)

    def _refuse_company(self, gemm: int, reduction: int) -> None:
        before, inside = [gemm], set(self.ops)
        for op in before:  # grows: everything in the group that the GEMM needs
            before += [p for p in self.wiring.preds[op] if p in inside and p not in before]
        if reduction in before:
            raise self._open("gemm", (reduction, gemm), told.INTO_GEMM, op=gemm, origin=reduction)
        raise self._open("gemm", (gemm, reduction), told.GEMM_AND_REDUCTION)

    def _check_pair(self, first: int, second: int) -> None:
        wiring = self.wiring
        if self.chain is None:
            if wiring.numels[wiring.outs[first][0]] != wiring.numels[wiring.outs[second][0]]:
                raise self._open("space", (first, second), told.TWO_GEMM_SPACES, a=first, b=second)
        elif not (_is_matmul(wiring, first) and _is_matmul(wiring, second)):
            raise self._broken("gemm", (first, second), told.NOT_MATMUL, a=first, b=second)
        words = told.GEMMS_SIDE_BY_SIDE if self.chain is None else told.TWO_GEMMS
        self.marks.append(HandMark("two_gemms", (first, second), self._say(words, a=first, b=second)))

    # -- one operator ----------------------------------------------------------------------------------------

    def _make(self, op: int) -> _Held | None:
        """What the kernel has of this operator's outputs; ``None``: free."""
        kind = self.wiring.kinds[op]
        if kind == "gemm":
            return self._make_gemm(op)
        held = [(read, self._carried(read)) for read in self.wiring.reads[op] if self.made.get(read.root)]
        if kind == "reduction":
            return self._make_reduction(op, held)
        if not held:
            return None
        shape = self.wiring.shapes[self.wiring.outs[op][0]]
        return self._moved(op, held, shape) if kind == "injective" else self._combined(op, held, shape)

    def _carried(self, read: Read) -> _Held:
        held = self.made[read.root]
        assert held is not None
        for step in read.steps:
            held = self._through(held, step)
        return held

    def _through(self, held: _Held, step: Step) -> _Held:
        """The same data seen through a view, or copied in another order."""
        size_kept = _numel(step.before) == _numel(step.after)
        if held.moved or (held.gemms and not (step.axes == () and size_kept)):
            return held if step.axes == () and size_kept else replace(held, flags=None, moved=step.name)
        if held.flags is None:
            return held
        flags: Flags | None = None
        if step.axes == ():
            if size_kept:
                flags = refolded(step.before, held.flags, step.after)
            elif broadcasts_to(step.before, step.after):
                flags = tuple(bool(flag) for flag in aligned(step.before, held.flags, step.after))
        elif step.axes is not None:
            flags = moved_in_row(step.before, held.flags, step.axes, step.after)
        if flags is None and held.gemms and not held.reduced:
            return replace(held, flags=None)  # a tile in the same order: it lines up with its own size only
        return replace(held, flags=flags) if flags is not None else replace(held, flags=None, moved=step.name)

    def _combined(self, op: int, held: list[tuple[Read, _Held]], shape: Shape) -> _Held:
        """An elementwise operator on ``shape``: everything held must line up."""
        first, gemms = held[0][1], self._sources(op, held)
        reduced = any(item.reduced for _, item in held)
        numel = _numel(shape)
        if any(item.moved for _, item in held):
            if any(item.moved != first.moved or read.numel != numel for read, item in held):
                raise self._broken(self._rule(gemms), (op, first.origin), told.MOVED, op=op, origin=first.origin)
            return replace(first, gemms=gemms, reduced=reduced)
        if any(item.gemms and item.full and read.numel != numel for read, item in held):
            raise self._broken("gemm", (op, first.origin), told.TILE_STRETCHED, op=op, origin=first.origin)
        flags = self._merged_flags(held, shape)
        if not reduced:
            return _Held(flags, True, "", gemms, False, first.origin)
        if flags is None or structure(shape, flags) not in (self.form, rows_alone(self.form)):
            origin = next(item.origin for _, item in held if item.reduced)
            raise self._broken("reduction", (op, origin), told.OTHER_ROWS, op=op, origin=origin)
        full = structure(shape, flags) != rows_alone(self.form)
        return _Held(flags, full, "", gemms, True, next(item.origin for _, item in held if item.reduced))

    def _sources(self, op: int, held: list[tuple[Read, _Held]]) -> int:
        """The GEMMs that ``op`` hangs on, as bits. Behind a chain only one value a row is left of its first GEMM."""
        gemms = full = 0
        for _, item in held:
            gemms |= item.gemms
            full |= item.gemms if item.full else 0
        if self.chain is None or gemms != 3:
            return gemms
        if full != 2:
            raise self._broken("gemm", (op, *self.chain), told.ACROSS_CHAIN, op=op, a=self.chain[0], b=self.chain[1])
        return 2

    def _merged_flags(self, held: list[tuple[Read, _Held]], shape: Shape) -> Flags | None:
        """One flag an axis of ``shape`` on which all agree; axes along which everything held stretches lie in the row."""
        merged: list[bool | None] = [None] * len(shape)
        for read, item in held:
            if item.flags is None or len(item.flags) != len(read.shape):
                return None
            for axis, flag in enumerate(aligned(read.shape, item.flags, shape)):
                if flag is not None and merged[axis] not in (None, flag):
                    return None
                merged[axis] = merged[axis] if flag is None else flag
        return tuple(bool(flag) for flag in merged)

    def _moved(self, op: int, held: list[tuple[Read, _Held]], shape: Shape) -> _Held:
        """An injective operator on something held: within the row, or as the addresses that the kernel writes to."""
        axes = self.wiring.axes[op]
        first = held[0][1]
        if axes and all(not item.gemms and not item.moved and item.flags is not None for _, item in held):
            flags = {moved_in_row(read.shape, item.flags or (), axes, shape) for read, item in held}
            common = flags.pop() if len(flags) == 1 else None
            if common is not None and structure(shape, common) in (self.form, rows_alone(self.form)):
                return replace(first, flags=common, full=structure(shape, common) != rows_alone(self.form))
        if len(self.wiring.reads[op]) > 1:
            rule = self._rule(first.gemms)
            raise self._broken(rule, (op, first.origin), told.MOVED_TOGETHER, op=op, origin=first.origin)
        return self._through(first, Step(held[0][0].shape, shape, axes, self.wiring.names[op]))

    def _make_reduction(self, op: int, held: list[tuple[Read, _Held]]) -> _Held:
        read = self.wiring.reads[op][0]
        shape, axes = read.shape, self.wiring.axes[op] or ()
        gemms = 0
        if held:
            item = self._combined(op, held, shape)
            if item.moved or item.flags is None:
                raise self._broken(self._rule(item.gemms), (op, item.origin), told.MOVED, op=op, origin=item.origin)
            if any(row == (axis in axes) for axis, row in enumerate(item.flags) if shape[axis] != 1):
                raise self._broken("reduction", (op, item.origin), told.ACROSS_ROWS, op=op, origin=item.origin)
            gemms = item.gemms
        if self.gemms and gemms != 1:
            raise self._open("gemm", (op, self.gemms[0]), told.GEMM_AND_REDUCTION)
        rank = len(self.wiring.shapes[self.wiring.outs[op][0]])
        return _Held((True,) * rank, False, "", gemms, True, op)

    def _make_gemm(self, op: int) -> _Held:
        wiring = self.wiring
        for place, read in enumerate(wiring.reads[op]):
            if read.root not in self.made:
                continue
            source = wiring.producer[read.root]
            if self.made[read.root] is not None:
                item = self._carried(read)
                rows_kept = item.flags is not None and structure(read.shape, item.flags) == structure(
                    read.shape, (True,) * (len(read.shape) - 1) + (False,)
                )
                chained = self.chain is not None and op == self.chain[1] and item.gemms == 1
                if not (place == 0 and chained and item.full and not item.moved and rows_kept):
                    origin = item.origin
                    words = told.INTO_RIGHT if place == 1 and item.gemms else told.INTO_GEMM
                    raise self._open("gemm", (origin, op), words, op=op, origin=origin)
            elif place < 2:
                self.marks.append(HandMark("prologue", (source, op), self._say(told.PROLOGUE, a=source, op=op)))
        rank = len(wiring.shapes[wiring.outs[op][0]])
        bit = 1 << self.gemms.index(op)
        return _Held((True,) * (rank - 1) + (False,) * min(1, rank), True, "", bit, False, op)

    def _check_orders(self) -> None:
        """No large tensor may be gone over by two kinds of rows."""
        if self.gemms or not self.reductions:
            return
        behind = {root: held.moved or held.flags or () for root, held in self.made.items() if held is not None}
        found = two_orders(self.wiring, self.ops, behind)
        if found is not None:
            a, b, root = found
            words = told.TWO_ORDERS.format(
                tensor=self.wiring.tensor_names[root], a=self.wiring.names[a], b=self.wiring.names[b]
            )
            raise _BrokenError(Fault("reduction", (a, b), words, permanent=True))

    # -- the group as a whole --------------------------------------------------------------------------------

    def _space(self) -> Fault | None:
        """Everything written must belong to the one space that the kernel iterates over."""
        wiring = self.wiring
        sizes = {}
        if self.gemms:
            sizes[wiring.numels[wiring.outs[self.gemms[-1]][0]]] = self.gemms[-1]
        for op in self.reductions:
            sizes[wiring.reads[op][0].numel] = op
            sizes[row_count(self.form)] = op
        for root in wiring.written(self.ops):
            maker = wiring.producer[root]
            if self.made[root] is not None:
                continue
            if not sizes:
                sizes[wiring.numels[root]] = maker
            if wiring.numels[root] not in sizes:
                other = next(iter(sizes.values()))
                return self._fault("space", (other, maker), told.SPACE, a=other, b=maker)
        return None

    def _row(self) -> Fault | None:
        wiring, gpu = self.wiring, self.kernels.gpu
        budget = gpu.shared_bytes_per_block
        if self.chain is not None:
            kept = _chain_bytes(wiring, self.chain, self.kernels.block_rows)
            if kept <= budget:
                return None
            return self._fault(
                "row", self.chain, told.CHAIN_ROW, a=self.chain[0], b=self.chain[1], row=kept, budget=budget
            )
        row = longest_row(wiring, self.ops)
        if row <= budget or not row_rereads(wiring, self.ops):
            return None
        op = max(self.reductions, key=lambda found: wiring.row_bytes[found])
        return replace(self._fault("row", (op,), told.ROW, op=op, row=row, budget=budget), passes=True)

    def _output(self) -> Fault | None:
        """Between two chained GEMMs a normalized matrix exists tile by tile only, and never in its final form."""
        if self.chain is None:
            return None
        for root in self.wiring.written(self.ops):
            held = self.made[root]
            if held is not None and held.reduced and held.full and held.gemms == 1:
                op = self.wiring.producer[root]
                return self._fault("output", (op,), told.OUTPUT, op=op, b=self.chain[1])
        return None

    def _connection(self) -> Fault | None:
        """Operators that share no tensor, not even through others, save nothing by sharing a kernel."""
        touches, by_root = self.wiring.touches, dict[int, list[int]]()
        for op in self.ops:
            for root in touches[op]:
                by_root.setdefault(root, []).append(op)
        reached, waiting = {self.ops[0]}, [self.ops[0]]
        while waiting:
            for root in touches[waiting.pop()]:
                fresh = [op for op in by_root.pop(root, ()) if op not in reached]
                reached.update(fresh)
                waiting += fresh
        apart = next((op for op in self.ops if op not in reached), None)
        if apart is None:
            return None
        return self._fault("disconnected", (self.ops[0], apart), told.DISCONNECTED, a=self.ops[0], b=apart)

    # -- words -----------------------------------------------------------------------------------------------

    def _rule(self, gemms: int) -> Rule:
        return "gemm" if gemms else "reduction"

    def _broken(self, rule: Rule, ops: tuple[int, ...], words: Text, **values: int) -> _BrokenError:
        """A fault that stays, whatever joins the group."""
        return _BrokenError(replace(self._fault(rule, ops, words, **values), permanent=True))

    def _open(self, rule: Rule, ops: tuple[int, ...], words: Text, **values: int) -> _BrokenError:
        """A fault that goes once the operators that are missing between two chained GEMMs join the group."""
        return _BrokenError(self._fault(rule, ops, words, **values))

    def _fault(self, rule: Rule, ops: tuple[int, ...], words: Text, **values: int) -> Fault:
        return Fault(rule, ops, self._say(words, **values))

    def _broken_rows(self, a: int, b: int) -> _BrokenError:
        wiring = self.wiring
        words = told.DIFFERENT_ROWS.format(
            a=wiring.names[a],
            b=wiring.names[b],
            a_axes=wiring.axes[a],
            b_axes=wiring.axes[b],
            a_shape=wiring.reads[a][0].shape,
            b_shape=wiring.reads[b][0].shape,
        )
        return _BrokenError(Fault("reduction", (a, b), words, permanent=True))

    def _say(self, words: Text, **values: int) -> Text:
        """``words`` with operators by name and bytes in units."""
        names = self.wiring.names
        sizes = {key: format_bytes(value) for key, value in values.items() if key in ("row", "budget")}
        ops = {key: names[value] for key, value in values.items() if key not in sizes}
        return words.format(**ops, **sizes, gpu=self.kernels.gpu.name, rows=self.kernels.block_rows)


def never_together(wiring: Wiring, a: int, b: int, by_hand: bool) -> bool:
    """Whether no legal group can hold both operators, by their kinds alone; ``a`` comes before ``b``."""
    kinds = {wiring.kinds[a], wiring.kinds[b]}
    if "opaque" in kinds:
        return True
    if kinds == {"reduction"}:
        return wiring.structures[a] != wiring.structures[b]
    if by_hand:
        return False
    if kinds in ({"gemm"}, {"gemm", "reduction"}):
        return True
    made = wiring.outs[a]
    return wiring.kinds[b] == "gemm" and any(read.root in made for read in wiring.reads[b][:2])


def _numel(shape: Shape) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def _is_matmul(wiring: Wiring, op: int) -> bool:
    """Rows of the left operand times the right one (or its transpose, as ``linear`` has it): no convolution."""
    left, right = (read.shape for read in wiring.reads[op][:2])
    out = wiring.shapes[wiring.outs[op][0]]
    if min(len(left), len(right), len(out)) < 2 or len(left) != len(out) or left[:-1] != out[:-1]:
        return False
    k, n = left[-1], out[-1]
    return right[-2:] == (k, n) or right == (n, k)


def _chain_bytes(wiring: Wiring, chain: tuple[int, int], block_rows: int) -> int:
    """What a block of rows must keep between two chained GEMMs: what the first one makes, or what the second one adds
    up, whichever is less; the other is gone through piece by piece."""
    first, second = chain
    between, result = wiring.outs[first][0], wiring.outs[second][0]
    rows = min(block_rows, wiring.shapes[result][-2])
    element = wiring.sizes[between] // max(1, wiring.numels[between])
    return rows * min(wiring.shapes[between][-1] * element, wiring.shapes[result][-1] * _ACCUMULATOR_BYTES)
