"""Which operator a kernel's bytes are put down to, and the table that says so: the picture's text twin.

A tensor that a kernel reads is put down to the first operator in it that uses it, one that it writes to the operator
that makes it: so that the bytes of all operators add up to the grouping's cost.
"""

from __future__ import annotations

from dataclasses import dataclass

from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.graph.grouping import Cost, Grouping
from lessons_lib.graph.opgraph import KIND_NAMES, OpGraph
from lessons_lib.graph.picture.folding import Folding
from lessons_lib.show.table import Table

_HEADER = (
    Text(zh="算子", en="operator"),
    Text(zh="类型", en="kind"),
    Text(zh="核函数", en="kernel"),
    Text(zh="从显存读", en="reads"),
    Text(zh="写入显存", en="writes"),
    Text(zh="留在片上", en="stays on chip"),
)
_TOTAL = Text(zh="合计", en="total")
_OTHERS = Text(zh="其余各份（{copies}）", en="the other copies ({copies})")
_NOTE = Text(
    zh="核函数读的张量，记在其中第一个用它的算子名下。逻辑读写，不是 DRAM 的实际流量。",
    en="A kernel's reads are listed under the first operator that uses them. Logical bytes, not DRAM traffic.",
)


@dataclass(frozen=True)
class Moves:
    """What one operator moves in its kernel: tensor -> bytes read and written, and what it hands on without either."""

    op: str
    kernel: int
    reads: dict[str, int]
    writes: dict[str, int]
    kept: tuple[str, ...]


def moves_of(graph: OpGraph, grouping: Grouping, cost: Cost) -> tuple[Moves, ...]:
    """The moves of every launching operator, kernel by kernel in launch order; kernels count from 0."""
    wiring, found = graph.wiring, list[Moves]()
    for kernel, (group, spent) in enumerate(zip(grouping.groups, cost.groups, strict=True)):
        unread, members = dict(spent.reads), {wiring.ids[name] for name in group}
        for index in sorted(members):
            used = [wiring.tensor_names[read.root] for read in wiring.reads[index]]
            made = [wiring.tensor_names[root] for root in wiring.outs[index]]
            # A kernel of several passes may read back what it made itself.
            reads = {tensor: unread.pop(tensor) for tensor in dict.fromkeys(used) if tensor in unread}
            writes = {tensor: spent.writes[tensor] for tensor in made if tensor in spent.writes}
            kept = [root for root in wiring.outs[index] if members.intersection(wiring.readers[root])]
            names = tuple(wiring.tensor_names[root] for root in kept)
            found.append(Moves(wiring.names[index], kernel, reads, writes, names))
    return tuple(found)


def operator_table(graph: OpGraph, grouping: Grouping, cost: Cost, *, folding: Folding | None = None) -> Table:
    """The picture's text twin: a row for each operator shown, kernel by kernel, and the sums.

    Columns: operator, kind, number of its kernel, bytes read from and written to device memory, and the tensors that it
    hands on without leaving the chip. With a folding, a row for all copies that are not shown.
    """
    shown = set(folding.shown if folding else graph.launching)
    moves = moves_of(graph, grouping, cost)
    rows = [_row(graph, move) for move in moves if move.op in shown]
    others = [move for move in moves if move.op not in shown]
    if others and folding:
        copies = ", ".join(f"{len(r.copies) - 1} × {len(r.first)}" for r in folding.repeats)
        read, written = (sum(sum(getattr(m, name).values()) for m in others) for name in ("reads", "writes"))
        name = str(_OTHERS.format(copies=copies))
        rows.append([name, "", "", format_bytes(read), format_bytes(written), ""])
    sums = [format_bytes(cost.read_bytes), format_bytes(cost.write_bytes)]
    rows.append([str(_TOTAL), "", str(cost.launches), *sums, ""])
    return Table([str(title) for title in _HEADER], rows, marked=None, note=str(_NOTE))


def _row(graph: OpGraph, move: Moves) -> list[str]:
    op = graph.op(move.op)
    moved = [format_bytes(sum(sizes.values())) if sizes else "–" for sizes in (move.reads, move.writes)]
    return [op.words, str(KIND_NAMES[op.kind]), str(move.kernel + 1), *moved, ", ".join(move.kept) or "–"]
