"""Recompute: an operator copied for each of its readers, so that nobody has to store what it makes.

A grouping gives each operator one kernel (see ``grouping``). Computing an operator in several kernels is therefore a
change of the *graph*: one copy for each reader, each of which may join its reader's kernel. It pays where what the
operator reads is not larger than what it makes, and costs its operations once a copy.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument
from lessons_lib.graph.compiler_groups import CompilerGroups
from lessons_lib.graph.grouping import Grouping, grouping_of
from lessons_lib.graph.opgraph import GraphOp, GraphTensor, OpGraph

RECOMPUTED_KINDS = ("elementwise", "broadcast", "injective")


def recomputed(graph: OpGraph, op: str) -> OpGraph:
    """``graph`` with operator ``op`` copied for each operator that reads it.

    The first reader keeps the original; the copies for the others are named ``op·2``, ``op·3``, ... in the readers'
    order, and so are their tensors. Views between the operator and a reader are copied along.

    Raises:
        ValueError: there is no such operator; it is a GEMM, a reduction or opaque (worth more than a store) or a view;
            what it makes must be in memory at the end; it has one reader or none.
    """
    reason = refusal(graph, op)
    if reason is not None:
        raise bad_argument("op", zh=reason.zh.rstrip("。"), en=reason.en.rstrip("."))
    return _Copier(graph, op).graph_with_copies()


def as_compiled(graph: OpGraph, groups: CompilerGroups) -> tuple[OpGraph, Grouping]:
    """A compiler's kernels with what it computes in several of them copied for each reader, into the reader's kernel.

    ``CompilerGroups.grouping`` has such an operator in one kernel, as if its result were stored.
    """
    home = {name: index for index, group in enumerate(groups.grouping.groups) for name in group}
    for op in reversed(graph.order):  # readers first: a copy is a reader, too
        if op not in groups.repeated or refusal(graph, op) is not None:
            continue
        known = set(graph.launching)
        graph = recomputed(graph, op)
        for copy in (op, *(name for name in graph.launching if name not in known)):
            (reader,) = readers_of(graph, copy)
            home[copy] = home[reader]
    kernels: dict[int, list[str]] = {}
    for name, index in home.items():
        kernels.setdefault(index, []).append(name)
    return graph, grouping_of(graph, kernels.values())


def refusal(graph: OpGraph, op: str) -> Text | None:
    """Why ``op`` cannot be computed again for each reader; ``None`` where it can.

    Raises:
        ValueError: there is no such operator.
    """
    operator = graph.op(op)
    if operator.kind not in RECOMPUTED_KINDS:
        return _WRONG_KIND.format(op=op)
    if {graph.root_of(name) for name in graph.outputs} & set(operator.outputs):
        return _KEPT.format(op=op)
    if len(readers_of(graph, op)) < 2:
        return _ONE_READER.format(op=op)
    return None


def readers_of(graph: OpGraph, op: str) -> tuple[str, ...]:
    """The launching operators that read what ``op`` makes, views looked through, in topological order."""
    wiring = graph.wiring
    return tuple(wiring.names[reader] for reader in wiring.succs[wiring.ids[op]])


class _Copier:
    """Writes the graph anew: the operator and the views behind it once a reader."""

    def __init__(self, graph: OpGraph, op: str) -> None:
        self.graph, self.op, self.readers = graph, graph.op(op), readers_of(graph, op)
        roots = set(self.op.outputs)
        # In topological order, so that a view comes after the view that it looks at.
        self.views = [
            view
            for view in map(graph.op, graph.order)
            if view.kind == "view" and graph.root_of(view.inputs[0]) in roots
        ]
        self.taken = {op.name for op in graph.ops} | {tensor.name for tensor in graph.tensors}

    def graph_with_copies(self) -> OpGraph:
        ways = [self._way(number, reader) for number, reader in enumerate(self.readers)]
        replaced = {self.op.name, *(view.name for view in self.views), *self.readers}
        ops: list[GraphOp] = []
        for op in self.graph.ops:
            if op.name == self.op.name:  # all copies where the original stood
                ops += [made for way, _ in ways for made in way]
            elif op.name not in replaced:
                ops.append(op)
            elif op.name in self.readers:
                names = ways[self.readers.index(op.name)][1]
                ops.append(replace(op, inputs=tuple(names.get(name, name) for name in op.inputs)))
        used = {name for op in ops for name in (*op.inputs, *op.outputs)}
        used |= {*self.graph.inputs, *self.graph.outputs}
        own = {name: tensor for _, names in ways for name, tensor in self._tensors(names)}
        tensors = [tensor for tensor in self.graph.tensors if tensor.name in used and tensor.name not in own]
        return OpGraph(self.graph.name, tuple(ops), (*tensors, *own.values()), self.graph.inputs, self.graph.outputs)

    def _way(self, number: int, reader: str) -> tuple[list[GraphOp], dict[str, str]]:
        """The operator's copy for one reader with the views that this reader looks through; its tensors' new names."""
        needed, views = set(self.graph.op(reader).inputs), list[GraphOp]()
        for view in reversed(self.views):
            if needed & set(view.outputs):
                views.append(view)
                needed |= set(view.inputs)
        originals = [self.op, *reversed(views)]
        if number == 0:
            return originals, {name: name for op in originals for name in op.outputs}
        renamed: dict[str, str] = {}
        copies = []
        for op in originals:
            name = self._free(op.name, number + 1)
            # Most operators make one tensor of their own name.
            renamed |= {out: name if out == op.name else self._free(out, number + 1) for out in op.outputs}
            inputs = op.inputs if op is self.op else tuple(renamed[tensor] for tensor in op.inputs)
            outputs = tuple(renamed[tensor] for tensor in op.outputs)
            eager = f"{op.eager}·{number + 1}" if op.eager else ""
            copies.append(replace(op, name=name, inputs=inputs, outputs=outputs, eager=eager))
        return copies, renamed

    def _free(self, name: str, number: int) -> str:
        """``name·number``, or the next number that nothing is called yet."""
        found = next(free for n in count(number) if (free := f"{name}·{n}") not in self.taken)
        self.taken.add(found)
        return found

    def _tensors(self, names: dict[str, str]) -> Iterator[tuple[str, GraphTensor]]:
        for old, new in names.items():
            yield new, replace(self.graph.tensor(old), name=new)


_WRONG_KIND = Text(
    zh="{op} 不是逐元素、广播或搬移类的算子：在每个使用处重算一遍太贵，或者做不到。",
    en="{op} is not elementwise, broadcast or injective: computing it again for each reader costs too much or cannot be "
    "done.",
)
_KEPT = Text(
    zh="{op} 的结果本来就要写进显存（它是图的输出），重算省不下这次写。",
    en="What {op} makes must be written anyway, for it is an output of the graph: recompute saves no write.",
)
_ONE_READER = Text(
    zh="{op} 的结果只有一处使用，没有第二处可以重算。",
    en="What {op} makes has one reader: there is no second place to compute it in.",
)
