"""A graph in numbers, its views folded: what the rules and the planner work on.

Operators and tensors are positions in tuples. A *root* is a tensor with memory of its own: a graph input, or what a
launching operator makes; a view's output is a way to read its root. Internal to this floor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from lessons_lib.graph.spaces import Shape, Structure, row_flags, structure

if TYPE_CHECKING:
    from lessons_lib.graph.opgraph import GraphOp, OpGraph


@dataclass(frozen=True)
class Step:
    """One view between a root and its reader: shapes before and after, and the axes moved along (``None``: unknown)."""

    before: Shape
    after: Shape
    axes: tuple[int, ...] | None
    name: str


@dataclass(frozen=True)
class Read:
    """One input of an operator: its root, the views on the way, and what reading it as seen moves.

    An injective operator reads one element for each that it makes: of an embedding's table, only the rows looked up.
    """

    root: int
    seen: int
    steps: tuple[Step, ...]
    shape: Shape
    numel: int
    bytes: int


@dataclass(frozen=True)
class Wiring:
    """Launching operators in topological order, and the tensors between them."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    reads: tuple[tuple[Read, ...], ...]
    outs: tuple[tuple[int, ...], ...]
    touches: tuple[tuple[int, ...], ...]  # the roots that an operator reads or makes
    axes: tuple[tuple[int, ...] | None, ...]
    structures: tuple[Structure | None, ...]  # of a reduction: what it reads, split by its axes
    row_bytes: tuple[int, ...]
    operations: tuple[int, ...]
    tensor_names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    numels: tuple[int, ...]
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...]
    producer: tuple[int, ...]  # root -> operator, -1 for a graph input
    readers: tuple[tuple[int, ...], ...]  # root -> operators, ascending
    kept: tuple[bool, ...]
    preds: tuple[tuple[int, ...], ...]
    succs: tuple[tuple[int, ...], ...]
    ids: dict[str, int]

    @classmethod
    def of(cls, graph: OpGraph) -> Wiring:
        """The wiring of a validated graph."""
        return _Builder(graph).wiring()

    def read_bytes(self, ops: Iterable[int], made: Collection[int]) -> dict[int, int]:
        """Root -> bytes that a kernel of ``ops`` reads of it; what it makes itself (``made``) is not read.

        Of a root that is seen through several views (the halves of a split) their bytes, at most the whole.
        """
        seen: dict[int, dict[int, int]] = {}
        for op in ops:
            for read in self.reads[op]:
                if read.root not in made:
                    views = seen.setdefault(read.root, {})
                    views[read.seen] = max(read.bytes, views.get(read.seen, 0))
        return {root: min(self.sizes[root], sum(views.values())) for root, views in seen.items()}

    def made_by(self, ops: Iterable[int]) -> set[int]:
        """The roots that operators make."""
        return {root for op in ops for root in self.outs[op]}

    def written(self, ops: Collection[int]) -> list[int]:
        """The roots that a kernel of ``ops`` writes: those it makes that are kept or read by others, in order."""
        inside = ops if isinstance(ops, (set, frozenset)) else frozenset(ops)
        return [
            root
            for op in sorted(inside)
            for root in self.outs[op]
            if self.kept[root] or any(reader not in inside for reader in self.readers[root])
        ]


class _Builder:
    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self.tensor_ids = {tensor.name: index for index, tensor in enumerate(graph.tensors)}
        self.paths: dict[str, tuple[str, tuple[Step, ...]]] = {}
        for name in graph.order:  # views in order, so that what a view looks at is known
            op = graph.op(name)
            if op.kind == "view":
                for out in op.outputs:
                    root, steps = self.paths.get(op.inputs[0], (op.inputs[0], ()))
                    self.paths[out] = (root, _joined(steps, self._step(op, out)))

    def wiring(self) -> Wiring:
        graph = self.graph
        ops = [graph.op(name) for name in graph.order if graph.op(name).kind != "view"]
        ids = {op.name: index for index, op in enumerate(ops)}
        reads = tuple(tuple(self._read(op, name) for name in op.inputs) for op in ops)
        outs = tuple(tuple(self.tensor_ids[name] for name in op.outputs) for op in ops)
        producer, readers = [-1] * len(graph.tensors), [dict[int, None]() for _ in graph.tensors]
        for index in range(len(ops)):
            for root in outs[index]:
                producer[root] = index
            for read in reads[index]:
                readers[read.root][index] = None
        kept = [False] * len(graph.tensors)
        for name in graph.outputs:
            kept[self.tensor_ids[self.paths.get(name, (name, ()))[0]]] = True
        preds = tuple(
            tuple(dict.fromkeys(producer[read.root] for read in taken if producer[read.root] >= 0)) for taken in reads
        )
        succs = tuple(tuple(sorted({r for root in made for r in readers[root]})) for made in outs)
        return Wiring(
            names=tuple(op.name for op in ops),
            kinds=tuple(op.kind for op in ops),
            reads=reads,
            outs=outs,
            touches=tuple(
                tuple({*(read.root for read in taken), *made}) for taken, made in zip(reads, outs, strict=True)
            ),
            axes=tuple(self._axes(op) for op in ops),
            structures=tuple(self._structure(op) for op in ops),
            row_bytes=tuple(graph.row_bytes_of(op) if op.kind == "reduction" else 0 for op in ops),
            operations=tuple(op.operations for op in ops),
            tensor_names=tuple(tensor.name for tensor in graph.tensors),
            shapes=tuple(tensor.shape for tensor in graph.tensors),
            numels=tuple(tensor.numel for tensor in graph.tensors),
            sizes=tuple(tensor.bytes for tensor in graph.tensors),
            dtypes=tuple(tensor.dtype for tensor in graph.tensors),
            producer=tuple(producer),
            readers=tuple(tuple(found) for found in readers),
            kept=tuple(kept),
            preds=preds,
            succs=succs,
            ids=ids,
        )

    def _read(self, op: GraphOp, name: str) -> Read:
        root, steps = self.paths.get(name, (name, ()))
        tensor = self.graph.tensor(name)
        size = tensor.bytes
        if op.kind == "injective" and tensor.numel:
            most = max(self.graph.tensor(out).numel for out in op.outputs)
            size = min(size, -(-size * most // tensor.numel))
        return Read(self.tensor_ids[root], self.tensor_ids[name], steps, tensor.shape, tensor.numel, size)

    def _step(self, op: GraphOp, out: str) -> Step:
        before = self.graph.tensor(op.inputs[0]).shape
        return Step(before, self.graph.tensor(out).shape, _counted(op.axes, len(before)), out)

    def _axes(self, op: GraphOp) -> tuple[int, ...] | None:
        if op.kind == "reduction":
            return self.graph.reduced_axes_of(op)
        return _counted(op.axes, len(self.graph.tensor(op.inputs[0]).shape)) if op.inputs else None

    def _structure(self, op: GraphOp) -> Structure | None:
        if op.kind != "reduction":
            return None
        shape = self.graph.tensor(op.inputs[0]).shape
        return structure(shape, row_flags(len(shape), self.graph.reduced_axes_of(op)))


def _counted(axes: tuple[int, ...] | None, rank: int) -> tuple[int, ...] | None:
    """Axes counted from the first."""
    return None if axes is None else tuple(axis % rank for axis in axes)


def _joined(steps: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    """A path with one more step; two reshapes in a row are one, for what the first folds the second may unfold."""
    if steps and _is_reshape(step) and _is_reshape(steps[-1]):
        return (*steps[:-1], Step(steps[-1].before, step.after, (), step.name))
    return (*steps, step)


def _is_reshape(step: Step) -> bool:
    return step.axes == () and prod(step.before) == prod(step.after)
