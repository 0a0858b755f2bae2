"""Groupings of a graph's operators into kernels: what is legal, and what it moves.

A grouping distributes the launching operators among kernels, each operator to one: a *partition*. Computing an operator
anew in several kernels (recompute) is no grouping in this sense; ``traffic.model.plan_traffic`` counts such plans, and
they can move fewer bytes than the best partition.

The kernel that is assumed
--------------------------
Thread blocks, each with its own rows (of a reduction) or its own tile (of a GEMM or of an elementwise result), and *no
wait* for one another before the kernel ends. What a block computes it may keep on chip; what others need passes through
memory. From that follow the rules, each with its name in ``Problem.rule``:

``cycle``
    A kernel must be able to start: no path may leave a group and come back (it is *convex*), and no two groups may wait
    for each other. Every fusion pass keeps this (TVM by post-dominators, Inductor by ancestor sets).
``opaque``
    An opaque operator has a kernel of its own (TVM's ``kOpaque``).
``reduction``
    Reductions share a kernel if their rows are the same, the way ``spaces.structure`` compares them, and everything
    behind them stays on those rows: softmax (max, subtract, exp, sum, divide) and RMSNorm are one kernel; a row sum and a
    column sum are two, also where the column sum is written as the row sum of a transposed view; and so is the mean of
    all losses behind a softmax. (Inductor asks the same of ``numel`` and
    ``rnumel``; XLA's multi-output fusion of compatible shapes. TVM never fuses behind a reduction; this is more.)
    Behind a reduction an injective operator may move elements within their row, or, alone, choose the addresses that the
    kernel writes to; it cannot bring in another block's rows.
``gemm``
    Elementwise and broadcast operators may follow a GEMM in its kernel, as its *epilogue*, as long as they keep its
    output's size (TVM's ``kOutEWiseFusable``); a copy in another order may end it. No reduction may follow, for a block
    has a tile and no whole row, and none may precede, for every tile would have to wait for it.
``space``
    What a kernel writes has one number of elements, or beside a reduction also one value a row: one iteration space
    (XLA's multi-output fusion and Inductor's horizontal fusion ask the same). An operator whose result stays inside may
    be of another size: it is computed where it is needed, as a broadcast vector is.
``row``
    What is needed again *behind* a reduction must stay on chip until then: one row of what the reduction reads
    (``row_bytes``) has to fit ``gpu.shared_bytes_per_block``. Kernels also use registers, of which there are about as
    many bytes; one buffer is the yardstick here, a compiler's own may be up to twice that. Rows that are gone over once
    (a square and its mean) need not fit.
``output``
    That others need an intermediate is no problem: the kernel writes it, and ``cost`` counts the write. Only the
    normalized matrix between two chained GEMMs cannot be written, since it is never finished (online softmax).
``disconnected``
    Operators that share no tensor save nothing together.

Marks, which are no problems: ``two_gemms``, two GEMMs in one kernel, side by side or chained as in attention with an
online softmax between them (the first one's result is the second one's *left* operand, by blocks of rows, and a block of
what lies between fits on chip); and ``prologue``, an operator computed while a GEMM loads its operand. Both exist as
hand-written kernels, templates and patterns; no general fusion pass makes them.

What a kernel moves
-------------------
Logical bytes: each tensor that it needs and does not make is read once, each that it makes and that is kept or needed
by others is written once, whole. Of a tensor that is seen through views only those views are read, and of one that an
injective operator picks from (an embedding's table) only as many elements as it makes. A kernel without reductions that
needs elements in two orders (``x + x.T``) is still taken to read them once: caches are assumed to help. Two exceptions:

- *rows that do not fit* (a ``row`` problem, but compilers build such kernels): the kernel goes over its rows once for
  each level of reductions, so what a later level needs is read again, or read back if the kernel wrote it. An online
  softmax, which does maximum and sum in one pass, would save one of three; it is not assumed;
- *two chained GEMMs*: both right operands are read once for each block of ``block_rows`` rows of the left one.

Sources: T. Chen et al., "TVM", OSDI 2018, and its pass ``FuseOps``; D. Snider, R. Liang, "Operator fusion in XLA: analysis
and evaluation", 2023; J. Ansel et al., "PyTorch 2" (Inductor), ASPLOS 2024; A. Ivanov et al., "Data movement is all you
need", MLSys 2021; T. Dao et al., "FlashAttention", NeurIPS 2022; M. Milakov, N. Gimelshein, "Online normalizer
calculation for softmax", 2018.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import get_args

from lessons_lib.base.gpus import Gpu, require_gpu
from lessons_lib.base.roofline import Interval, program_interval
from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, require_int, require_items, require_name, require_real, shown
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.planning.merging import Merger, Policy
from lessons_lib.graph.planning.regions import Apartness
from lessons_lib.graph.quotient import Quotient
from lessons_lib.graph.rules import Kernels, MarkRule, Rule
from lessons_lib.graph.wiring import Wiring

RULES: tuple[Rule, ...] = get_args(Rule)

RULE_NAMES: Mapping[Rule, Text] = MappingProxyType(
    {
        "cycle": Text(zh="成环", en="cycle"),
        "opaque": Text(zh="不透明算子", en="opaque operator"),
        "reduction": Text(zh="归约的行不同", en="other rows than the reduction's"),
        "row": Text(zh="一行放不下", en="row does not fit on chip"),
        "gemm": Text(zh="矩阵乘的边界", en="limits of a GEMM"),
        "output": Text(zh="外面要用", en="output needed outside"),
        "space": Text(zh="迭代空间不同", en="another iteration space"),
        "disconnected": Text(zh="互不相干", en="disconnected"),
    }
)
MARK_NAMES: Mapping[MarkRule, Text] = MappingProxyType(
    {
        "two_gemms": Text(zh="两个矩阵乘：只能手写或靠模式匹配", en="two GEMMs: by hand or by pattern only"),
        "prologue": Text(zh="矩阵乘之前的计算：靠模板或手写", en="prologue of a GEMM: by template or by hand"),
    }
)
BLOCK_ROWS = 64
"""Rows of the left operand that a kernel with two chained GEMMs works on at a time, unless told otherwise."""


@dataclass(frozen=True)
class Grouping:
    """Operators by kernel: groups of names. Views belong to no group.

    Two groupings are equal if they have the same groups in the same order; ``grouping_of`` brings them in order.

    Raises:
        ValueError: not groups of names, an empty group, or a name in two places.
    """

    groups: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        groups, seen = [], set[str]()
        for index, group in enumerate(require_items("groups", self.groups)):
            place = f"groups[{index}]"
            names = tuple(require_name(f"{place}[{i}]", name) for i, name in enumerate(require_items(place, group)))
            if not names:
                raise bad_argument(place, zh="核函数里没有算子", en="the kernel has no operator")
            for name in names:
                if name in seen:
                    raise bad_argument(
                        "groups", zh=f"算子 {name!r} 出现了两次", en=f"operator {name!r} appears twice"
                    )
                seen.add(name)
            groups.append(names)
        object.__setattr__(self, "groups", tuple(groups))

    def __len__(self) -> int:
        return len(self.groups)

    def index_of(self, name: str) -> int:
        """The position of the group with this operator.

        Raises:
            ValueError: it is in none.
        """
        for index, group in enumerate(self.groups):
            if name in group:
                return index
        raise bad_argument("name", zh=f"没有核函数包含算子 {shown(name)}", en=f"no kernel has operator {shown(name)}")


@dataclass(frozen=True)
class Problem:
    """A rule that a grouping breaks: which, in which group (its position), by which operators, and in words.

    ``multi_pass``: a kernel could run all the same, by going over its rows several times; ``cost`` counts what it reads
    again.
    """

    rule: Rule
    group: int
    ops: tuple[str, ...]
    text: Text
    multi_pass: bool = False


@dataclass(frozen=True)
class Mark:
    """A group that is legal, but that only a hand, a template or a pattern makes."""

    rule: MarkRule
    group: int
    ops: tuple[str, ...]
    text: Text


@dataclass(frozen=True)
class GroupCost:
    """One kernel: tensors read and written (name -> bytes, re-reads included), operations, seconds.

    ``passes``: how often it goes over its rows; more than 1 only where they do not fit on chip.
    """

    ops: tuple[str, ...]
    reads: Mapping[str, int]
    writes: Mapping[str, int]
    read_bytes: int
    write_bytes: int
    operations: int
    passes: int
    time: Interval

    @property
    def total_bytes(self) -> int:
        """Read and written."""
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True)
class Cost:
    """What a grouping costs: its kernels in the order of its groups, and their sums; ``time`` in seconds."""

    launches: int
    groups: tuple[GroupCost, ...]
    read_bytes: int
    write_bytes: int
    total_bytes: int
    operations: int
    time: Interval


# -- making groupings -----------------------------------------------------------------------------------------


def grouping_of(graph: OpGraph, groups: Iterable[Iterable[str]]) -> Grouping:
    """The grouping with these groups; operators in none of them get a kernel each, and views are left out.

    Operators stand in topological order within their group, groups in an order in which they can be launched (in the
    order of their first operators where there is none).

    Raises:
        ValueError: an operator that the graph does not have, or one that is named twice.
    """
    wiring = graph.wiring
    given = Grouping(tuple(tuple(require_items("groups", group)) for group in require_items("groups", groups)))  # type: ignore[arg-type]  # checked there
    named = [tuple(name for name in group if graph.op(name).kind != "view") for group in given.groups]
    ids = [sorted(wiring.ids[name] for name in group) for group in named if group]
    placed = {op for group in ids for op in group}
    return _grouping(wiring, [*ids, *([op] for op in range(len(wiring.names)) if op not in placed)])


def unfused(graph: OpGraph) -> Grouping:
    """A kernel for each operator."""
    return _grouping(graph.wiring, [[op] for op in range(len(graph.wiring.names))])


def eager(graph: OpGraph) -> Grouping:
    """A kernel for each *eager* operator: what PyTorch launches without a compiler.

    The parts of one (``GraphOp.eager``) run in one kernel, whatever the rules say: a library's softmax is one launch even
    where its rows do not fit on chip, for it reads them again.
    """
    groups: dict[tuple[bool, str], list[int]] = {}
    for index, name in enumerate(graph.launching):
        of = graph.op(name).eager
        groups.setdefault((bool(of), of or name), []).append(index)
    return _grouping(graph.wiring, list(groups.values()))


def greedy(
    graph: OpGraph, gpu: Gpu, *, by_hand: bool = False, multi_pass: bool = False, block_rows: int = BLOCK_ROWS
) -> Grouping:
    """Merge kernels pair by pair while it is legal, as a compiler does.

    Starts with a kernel for each operator and goes in rounds. A round lists the pairs of kernels that share a tensor
    (its producer and a reader, or two readers that are neighbours in launch order), those with the most shared bytes
    first, then in the graph's order, and merges each that breaks no rule and moves no byte more. A kernel of over 32
    operators merges once a round. It ends with a round that changes nothing. (Inductor's scheduler: rounds, pairs sorted
    by the memory that they share.) It never looks ahead, and never takes back.

    Args:
        by_hand: may make groups that ``marks`` marks.
        multi_pass: may make kernels whose rows do not fit on chip, where that moves no byte more.
        block_rows: see ``cost``.

    Raises:
        ValueError: ``gpu`` is not a ``Gpu``, ``block_rows`` is below 1.
    """
    kernels = kernels_of(graph, gpu, block_rows)
    merger = Merger(kernels, Apartness(graph.wiring, by_hand), Policy(by_hand, multi_pass))
    return _grouping(graph.wiring, merger.merge_greedily())


def fuse(graph: OpGraph, grouping: Grouping, a: str, b: str) -> Grouping:
    """``grouping`` with the kernels of ``a`` and ``b`` made one; legal or not.

    Raises:
        ValueError: an operator that no kernel has, or ``grouping`` is not one of ``graph``.
    """
    ids = _ids(graph.wiring, grouping)
    one, other = grouping.index_of(a), grouping.index_of(b)
    rest = [group for index, group in enumerate(ids) if index not in (one, other)]
    return _grouping(graph.wiring, [*rest, sorted({*ids[one], *ids[other]})])


def fuse_across(graph: OpGraph, grouping: Grouping, a: str, b: str) -> Grouping:
    """``fuse``, together with every kernel on a way between the two; legal or not.

    Two GEMMs with a softmax between them can share a kernel, but no pair of neighbours on the way there can.

    Raises:
        ValueError: as ``fuse``.
    """
    ids = _ids(graph.wiring, grouping)
    inside = {grouping.index_of(a), grouping.index_of(b), *kernels_between(graph, grouping, a, b)}
    rest = [group for index, group in enumerate(ids) if index not in inside]
    return _grouping(graph.wiring, [*rest, sorted(op for index in inside for op in ids[index])])


def kernels_between(graph: OpGraph, grouping: Grouping, a: str, b: str) -> tuple[int, ...]:
    """The kernels on a way from the one of ``a`` to the one of ``b``, or back: their positions, these two left out.

    Raises:
        ValueError: as ``fuse``.
    """
    ids = _ids(graph.wiring, grouping)
    home = {op: index for index, group in enumerate(ids) for op in group}
    onward: dict[int, set[int]] = {index: set() for index in range(len(ids))}
    backward: dict[int, set[int]] = {index: set() for index in range(len(ids))}
    for op, index in home.items():
        for reader in graph.wiring.succs[op]:
            onward[index].add(home[reader])
            backward[home[reader]].add(index)
    one, other = grouping.index_of(a), grouping.index_of(b)
    ways = [_reached(start, onward) & _reached(stop, backward) for start, stop in ((one, other), (other, one))]
    return tuple(sorted((ways[0] | ways[1]) - {one, other}))


def cut(graph: OpGraph, grouping: Grouping, a: str, b: str) -> Grouping:
    """``grouping`` with the kernel of ``a`` and ``b`` cut before the later one.

    The later of the two and whatever in the kernel depends on it get a kernel of their own. Where they lie in different
    kernels, nothing changes.

    Raises:
        ValueError: an operator that no kernel has, or ``grouping`` is not one of ``graph``.
    """
    wiring, ids = graph.wiring, _ids(graph.wiring, grouping)
    index = grouping.index_of(a)
    if index != grouping.index_of(b) or a == b:
        return grouping
    return _grouping(wiring, [*ids[:index], *halves(wiring, ids[index], a, b), *ids[index + 1 :]])


def halves(wiring: Wiring, group: Sequence[int], a: str, b: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A group (ascending) in two: without the later of its operators ``a`` and ``b`` and what depends on that; these."""
    behind = {max(wiring.ids[a], wiring.ids[b])}
    for op in group:
        if any(p in behind for p in wiring.preds[op]):
            behind.add(op)
    return tuple(op for op in group if op not in behind), tuple(sorted(behind))


# -- judging them ---------------------------------------------------------------------------------------------


def check(graph: OpGraph, grouping: Grouping, gpu: Gpu, *, block_rows: int = BLOCK_ROWS) -> tuple[Problem, ...]:
    """Every rule that a grouping breaks, group by group; none for a grouping that can run.

    A group in which operators cannot keep company at all is reported with the first reason found.

    Raises:
        ValueError: ``grouping`` is not one of ``graph``, ``gpu`` is not a ``Gpu``, ``block_rows`` is below 1.
    """
    kernels = kernels_of(graph, gpu, block_rows)
    names, groups = graph.wiring.names, _ids(graph.wiring, grouping)
    found = [
        Problem(fault.rule, index, tuple(names[op] for op in fault.ops), fault.words, fault.passes)
        for index, group in enumerate(groups)
        for fault in kernels.judge(group)[0]
    ]
    found += [
        Problem("cycle", index, tuple(names[op] for op in ops), words)
        for index, ops, words in Quotient(graph.wiring, groups).cycles()
    ]
    return tuple(sorted(found, key=lambda problem: problem.group))


def marks(graph: OpGraph, grouping: Grouping, gpu: Gpu, *, block_rows: int = BLOCK_ROWS) -> tuple[Mark, ...]:
    """The groups of a grouping that only a hand, a template or a pattern makes.

    Raises:
        ValueError: as ``check``.
    """
    kernels, names = kernels_of(graph, gpu, block_rows), graph.wiring.names
    return tuple(
        Mark(mark.rule, index, tuple(names[op] for op in mark.ops), mark.words)
        for index, group in enumerate(_ids(graph.wiring, grouping))
        for mark in kernels.judge(group)[1]
    )


def cost(
    graph: OpGraph, grouping: Grouping, gpu: Gpu, launch_seconds: float = 0.0, *, block_rows: int = BLOCK_ROWS
) -> Cost:
    """Launches, bytes, operations and an interval of time; also of a grouping that breaks rules.

    Time is ``program_interval``: kernels one after another, each between its roofline bounds overlapped and added up.
    Operations of a GEMM count at the tensor cores' rate where its operands are 16 bit or less (bfloat16: where the GPU
    has it), all others at the fp32 rate.

    Args:
        launch_seconds: what each launch adds, in seconds; 0 when launches queue ahead of a busy GPU.
        block_rows: rows of a block between two chained GEMMs, at least 1.

    Raises:
        ValueError: as ``check``, or ``launch_seconds`` is not a number of at least 0.
    """
    kernels = kernels_of(graph, gpu, block_rows)
    groups = tuple(_group_cost(kernels, group) for group in _ids(graph.wiring, grouping))
    launching = len(groups) * require_real("launch_seconds", launch_seconds, 0)
    low, high = (math.fsum(ends) for ends in ([g.time.low for g in groups], [g.time.high for g in groups]))
    time = Interval(low + launching, high + launching)
    read, write = sum(group.read_bytes for group in groups), sum(group.write_bytes for group in groups)
    return Cost(len(groups), groups, read, write, read + write, sum(group.operations for group in groups), time)


def compulsory_bytes(graph: OpGraph) -> int:
    """What no grouping avoids: each graph input that is used read once, as much of it as is used, each output written
    once."""
    wiring = graph.wiring
    everything = range(len(wiring.names))
    made = wiring.made_by(everything)
    read = sum(wiring.read_bytes(everything, made).values())
    return read + sum(wiring.sizes[root] for root in made if wiring.kept[root])


def kernels_of(graph: OpGraph, gpu: Gpu, block_rows: int) -> Kernels:
    """The kernels of ``graph`` on ``gpu``; results are remembered as long as the graph lives."""
    if not isinstance(graph, OpGraph):
        given = shown(graph)
        raise bad_argument("graph", zh=f"需要 OpGraph，收到的是 {given}", en=f"it must be an OpGraph, got {given}")
    gpu, block_rows = require_gpu("gpu", gpu), require_int("block_rows", block_rows, 1)
    known: dict[tuple[str, int], Kernels] = graph.__dict__.setdefault("_kernels", {})
    key = (gpu.name, block_rows)
    if key not in known or known[key].gpu is not gpu:
        known[key] = Kernels(graph.wiring, gpu, block_rows)
    return known[key]


# -- parts ----------------------------------------------------------------------------------------------------


def _grouping(wiring: Wiring, groups: Sequence[Sequence[int]]) -> Grouping:
    ordered = Quotient(wiring, groups).launch_order()
    return Grouping(tuple(tuple(wiring.names[op] for op in group) for group in ordered))


def _ids(wiring: Wiring, grouping: Grouping) -> list[tuple[int, ...]]:
    """The groups by position, once it is sure that they are a partition of the graph's launching operators."""
    if not isinstance(grouping, Grouping):
        given = shown(grouping)
        raise bad_argument(
            "grouping", zh=f"需要 Grouping，收到的是 {given}", en=f"it must be a Grouping, got {given}"
        )
    named = {name for group in grouping.groups for name in group}
    unknown, missing = sorted(named - wiring.ids.keys()), [name for name in wiring.names if name not in named]
    if unknown or missing:
        raise bad_argument(
            "grouping",
            zh=f"与图不符：图里没有的算子 {shown(unknown)}，不在任何核函数里的算子 {shown(missing)}",
            en=f"it does not fit the graph: operators that it lacks {shown(unknown)}, operators in no kernel "
            f"{shown(missing)}",
        )
    return [tuple(sorted(wiring.ids[name] for name in group)) for group in grouping.groups]


def _reached(start: int, onward: Mapping[int, set[int]]) -> set[int]:
    reached, waiting = {start}, [start]
    while waiting:
        fresh = onward[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached


def _group_cost(kernels: Kernels, group: tuple[int, ...]) -> GroupCost:
    """What one kernel costs; remembered, for from one grouping to the next most kernels stay the same."""
    known: dict[tuple[int, ...], GroupCost] = kernels.__dict__.setdefault("_costs", {})
    if group not in known:
        known[group] = _counted(kernels, group)
    return known[group]


def _counted(kernels: Kernels, group: tuple[int, ...]) -> GroupCost:
    wiring, moved = kernels.wiring, kernels.bytes(group)
    reads = MappingProxyType({wiring.tensor_names[root]: size for root, size in moved.reads.items()})
    writes = MappingProxyType({wiring.tensor_names[root]: size for root, size in moved.writes.items()})
    names = tuple(wiring.names[op] for op in group)
    operations = sum(wiring.operations[op] for op in group)
    read, write = sum(reads.values()), sum(writes.values())
    bare = GroupCost(names, reads, writes, read, write, operations, moved.passes, Interval(0, 0))
    work = [(_fp32_work(kernels, bare), read + write)]
    time = program_interval(work, kernels.gpu.fp32_flops, kernels.gpu.bandwidth)
    return GroupCost(names, reads, writes, read, write, operations, moved.passes, time)


def _fp32_work(kernels: Kernels, group: GroupCost) -> float:
    """The group's operations as so many fp32 ones: those on tensor cores count by how much faster these are."""
    wiring, gpu = kernels.wiring, kernels.gpu
    work = 0.0
    for name in group.ops:
        op = wiring.ids[name]
        fast = wiring.kinds[op] == "gemm" and _on_tensor_cores(wiring, op, gpu)
        work += wiring.operations[op] * (gpu.fp32_flops / gpu.tensor_flops if fast else 1.0)
    return work


def _on_tensor_cores(wiring: Wiring, op: int, gpu: Gpu) -> bool:
    dtype = wiring.dtypes[wiring.reads[op][0].seen]
    return dtype in _TENSOR_DTYPES and (gpu.bf16 or dtype != "bfloat16")


_TENSOR_DTYPES = {"float16", "bfloat16", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"}
