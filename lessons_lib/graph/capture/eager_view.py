"""The eager operators of a graph of core-ATen parts: the same graph with the parts of each eager operator made one.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lessons_lib.graph.opgraph import GraphOp, OpGraph, OpKind
from lessons_lib.graph.spaces import broadcasts_to


@dataclass(frozen=True)
class EagerOp:
    """What is known of an eager operator beside its parts: the label of its box, and where it stands."""

    label: str
    source: str = ""


def eager_graph(core: OpGraph, eager_ops: Mapping[str, EagerOp]) -> OpGraph:
    """The graph in which each eager operator (``GraphOp.eager``) of ``core`` is one operator.

    An operator of one part is that part. One of several is elementwise (or broadcast) if all its parts are, and opaque
    otherwise: it runs as the library has it, as ``softmax`` does, and nothing is fused into it. It reads what its
    parts read from outside and writes what others use. Views among its parts vanish, others stay.

    Args:
        eager_ops: label and source by the names in ``GraphOp.eager``.
    """
    return _Contraction(core, eager_ops).graph()


class _Contraction:
    def __init__(self, core: OpGraph, eager_ops: Mapping[str, EagerOp]) -> None:
        self.core, self.eager_ops = core, eager_ops
        self.parts: dict[str, list[GraphOp]] = {}
        self.absorbed: dict[str, str] = {}  # view -> the eager operator that it vanishes into
        for name in core.order:
            op = core.op(name)
            if op.kind != "view":
                self.parts.setdefault(op.eager or op.name, []).append(op)
        self._absorb_views()

    def graph(self) -> OpGraph:
        core = self.core
        home = {op.name: unit for unit, ops in self.parts.items() for op in ops}
        last = {unit: ops[-1].name for unit, ops in self.parts.items()}
        ops: list[GraphOp] = []
        for name in core.order:
            op = core.op(name)
            if op.kind == "view":
                if name not in self.absorbed:
                    ops.append(op)
            elif last[home[name]] == name:
                picks = self._picks(home[name])
                ops += [pick for pick, _ in picks]
                ops.append(self._operator(home[name], [picked for _, picked in picks]))
        ops = _unique_names(ops)
        named = {tensor for op in ops for tensor in (*op.inputs, *op.outputs)} | set(core.outputs)
        tensors = tuple(tensor for tensor in core.tensors if tensor.name in named | set(core.inputs))
        return OpGraph(core.name, tuple(ops), tensors, core.inputs, core.outputs)

    def _absorb_views(self) -> None:
        """Views that an eager operator takes of what it made itself, and that nobody else uses."""
        core = self.core
        home = {op.name: unit for unit, ops in self.parts.items() if len(ops) > 1 for op in ops}
        used_by: dict[str, str] = {}
        for name in reversed(core.order):
            op = core.op(name)
            if op.kind == "view" and not any(out in core.outputs for out in op.outputs):
                readers = (reader for out in op.outputs for reader in core.consumers[out])
                users = {used_by.get(reader, home.get(reader, "")) for reader in readers}
                used_by[name] = users.pop() if len(users) == 1 else ""
        for name in core.order:
            if unit := used_by.get(name, ""):
                maker = core.producers.get(core.op(name).inputs[0], "")
                if unit == home.get(maker) or unit == self.absorbed.get(maker):
                    self.absorbed[name] = unit

    def _picks(self, unit: str) -> list[tuple[GraphOp, GraphOp]]:
        """Views for the parts that read only some elements of a tensor from outside, as ``gather`` does."""
        parts = self.parts[unit]
        made, inside = {tensor for op in parts for tensor in op.outputs}, self._inside(unit)
        found = []
        for op in parts if len(parts) > 1 else ():
            if op.kind != "injective" or not op.inputs or op.inputs[0] in made:
                continue
            whole, taken = (self.core.tensor(name) for name in (op.inputs[0], op.outputs[0]))
            only_here = all(reader in inside for reader in self.core.consumers[taken.name])
            if taken.numel < whole.numel and only_here and taken.name not in self.core.outputs:
                found.append((GraphOp(op.name, "view", (whole.name,), (taken.name,), label=op.label), op))
        return found

    def _inside(self, unit: str) -> set[str]:
        """The parts of an eager operator and the views that vanish into it."""
        return {op.name for op in self.parts[unit]} | {view for view, of in self.absorbed.items() if of == unit}

    def _operator(self, unit: str, picked: list[GraphOp]) -> GraphOp:
        core, parts = self.core, self.parts[unit]
        about = self.eager_ops.get(unit, EagerOp(parts[-1].label, parts[-1].source))
        if len(parts) == 1:
            return replace(parts[0], name=unit, label=about.label, source=about.source, eager="")
        inside = self._inside(unit)
        made = {tensor for name in inside for tensor in core.op(name).outputs}
        made -= {op.outputs[0] for op in picked}
        instead = {op.name: (op.outputs[0], *op.inputs[1:]) for op in picked}
        read = (instead.get(name, core.op(name).inputs) for name in core.order if name in inside)
        inputs = dict.fromkeys(tensor for tensors in read for tensor in tensors if tensor not in made)
        outputs = tuple(
            tensor
            for op in parts
            for tensor in op.outputs
            if tensor in core.outputs or any(reader not in inside for reader in core.consumers[tensor])
        )
        operations = sum(op.operations for op in parts)
        kind = self._kind(parts, tuple(inputs), outputs)
        return GraphOp(unit, kind, tuple(inputs), outputs, operations, about.label, source=about.source)

    def _kind(self, parts: list[GraphOp], inputs: tuple[str, ...], outputs: tuple[str, ...]) -> OpKind:
        if any(op.kind not in ("elementwise", "broadcast") for op in parts):
            return "opaque"
        before = [self.core.tensor(name).shape for name in inputs]
        after = [self.core.tensor(name).shape for name in outputs]
        if not all(broadcasts_to(shape, target) for shape in before for target in after):
            return "opaque"
        return "broadcast" if any(shape != target for shape in before for target in after) else "elementwise"


def _unique_names(ops: list[GraphOp]) -> list[GraphOp]:
    """An eager operator may be called as a view is: the view then gets a number."""
    taken = {op.name for op in ops if op.kind != "view"}
    result = []
    for op in ops:
        name, number = op.name, 1
        while op.kind == "view" and name in taken:
            name, number = f"{op.name}_v{number}", number + 1
        taken.add(name)
        result.append(replace(op, name=name) if name != op.name else op)
    return result
