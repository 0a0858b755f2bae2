"""Whether a row kernel goes over each large tensor by one kind of row only. Internal to this floor.

Reductions share a kernel if their rows are the same; a tensor that reaches one of them directly and the other through a
transposition is gone over by rows and by columns all the same, and would be read twice. So what a reduction, or an
operator behind one, asks of its inputs is followed back to memory, and must agree there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from lessons_lib.graph.kernel_bytes import RowStream
from lessons_lib.graph.spaces import Flags, Shape, moved_in_row, refolded, row_flags
from lessons_lib.graph.wiring import Read, Step, Wiring

Order = Flags | str
"""Row flags of a tensor, or the name of what moved it in a way that flags do not describe."""


@dataclass(frozen=True)
class Asked:
    """In what order an operator goes over a tensor."""

    order: Order
    op: int


def two_orders(wiring: Wiring, ops: Sequence[int], behind: Mapping[int, Order]) -> tuple[int, int, int] | None:
    """Two operators that go over one large tensor by different rows, and the tensor; ``None`` if there are none.

    ``behind``: the order of each root that the kernel makes behind a reduction.
    """
    stream = RowStream(wiring, [op for op in ops if wiring.kinds[op] == "reduction"])
    asked: dict[int, Asked] = {}
    for op in reversed(ops):
        order, by = _own_order(wiring, op, behind, asked)
        if order is None:
            continue
        for read in wiring.reads[op]:
            if read.root in behind or not (stream.full(read.numel) or stream.full(wiring.numels[read.root])):
                continue
            wanted = _before_views(read, _of_input(wiring, op, read, order))
            known = asked.setdefault(read.root, Asked(wanted, by))
            if not _same(wiring.shapes[read.root], known.order, wanted):
                return by, known.op, read.root
    return None


def _own_order(
    wiring: Wiring, op: int, behind: Mapping[int, Order], asked: Mapping[int, Asked]
) -> tuple[Order | None, int]:
    """The order in which an operator runs over its output (a reduction: its input), and who wants it so."""
    if wiring.kinds[op] == "reduction":
        return row_flags(len(wiring.reads[op][0].shape), wiring.axes[op] or ()), op
    for root in wiring.outs[op]:
        if root in behind:
            return behind[root], op
    for root in wiring.outs[op]:
        if root in asked:
            return asked[root].order, asked[root].op
    return None, op


def _of_input(wiring: Wiring, op: int, read: Read, order: Order) -> Order:
    """The order in which an operator that runs in ``order`` goes over one of its inputs, as it sees it."""
    if isinstance(order, str):
        return order
    if wiring.kinds[op] == "reduction":
        return _shrunk(wiring.reads[op][0].shape, order, read.shape)
    shape = wiring.shapes[wiring.outs[op][0]]
    if wiring.kinds[op] != "injective":
        return _shrunk(shape, order, read.shape)
    return _back(Step(read.shape, shape, wiring.axes[op], wiring.names[op]), order)


def _before_views(read: Read, order: Order) -> Order:
    for step in reversed(read.steps):
        if isinstance(order, str):
            return order
        order = _back(step, order)
    return order


def _back(step: Step, order: Flags) -> Order:
    """The order of what goes into a move or a view, given that of what comes out."""
    if step.axes == ():
        if prod(step.before) == prod(step.after):
            return refolded(step.after, order, step.before) or step.name
        return _shrunk(step.after, order, step.before)
    if step.axes is None:
        return step.name
    guess = order if len(step.before) == len(step.after) else _with_axis(order, step)
    return guess if guess is not None and _stays(step, guess) else step.name


def _with_axis(order: Flags, step: Step) -> Flags | None:
    """The flags with the axis put back that ``select`` took away: it lay in the row."""
    if len(step.before) != len(step.after) + 1 or step.axes is None or len(step.axes) != 1:
        return None
    return (*order[: step.axes[0]], False, *order[step.axes[0] :])


def _stays(step: Step, flags: Flags) -> bool:
    return step.axes is not None and moved_in_row(step.before, flags, step.axes, step.after) is not None


def _shrunk(shape: Shape, order: Flags, target: Shape) -> Flags:
    """The flags of an input that stretches to ``shape``."""
    lead = len(shape) - len(target)
    return tuple(extent != 1 and order[axis + lead] for axis, extent in enumerate(target))


def _same(shape: Shape, one: Order, other: Order) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return all(a == b for extent, a, b in zip(shape, one, other, strict=True) if extent != 1)
