"""A PyTorch function as a graph of operators, in both views: what launches today, and what a compiler may regroup.

``capture(function, *examples)`` needs no GPU and no memory for large tensors: ``fake(shape, dtype)`` stands for one, and
a module made under ``with torch.device("meta")`` has weights without data.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType
from typing import Any

from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.base.validate import bad_argument, require_choice, require_int, require_items, require_name, shown
from lessons_lib.graph.capture.arguments import Arguments
from lessons_lib.graph.capture.aten import AtenCall, Operand, Traits, traits_of
from lessons_lib.graph.capture.eager_view import EagerOp, eager_graph
from lessons_lib.graph.capture.fx_nodes import is_getitem, is_region, line_of, schema_says_view, short_name
from lessons_lib.graph.capture.refusals import (
    Line,
    no_operators,
    refusal_of,
    size_depends_on_data,
    value_leaves_tensor,
    without_plain_memory,
)
from lessons_lib.graph.capture.torch_import import require_torch
from lessons_lib.graph.capture.tracing import Trace, TracedInput, trace
from lessons_lib.graph.opgraph import DTYPE_BYTES, GraphOp, GraphTensor, OpGraph

_NOT_TENSOR = object()
_MOST_BYTES = 2**63
_BLANK = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}


@dataclass(frozen=True)
class FakeSpec:
    """Shape and dtype of a tensor without data: an example input that takes no memory.

    Raises:
        ValueError: an extent that is not an integer of at least 0, or a dtype that is not one of ``DTYPE_BYTES``.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        extents = enumerate(require_items("shape", self.shape))
        object.__setattr__(self, "shape", tuple(require_int(f"shape[{axis}]", extent, 0) for axis, extent in extents))
        name = str(self.dtype).removeprefix("torch.")
        require_choice("dtype", name, DTYPE_BYTES)
        object.__setattr__(self, "dtype", name)
        most = max((prod(self.shape) * DTYPE_BYTES[name], *self.shape))
        if most >= _MOST_BYTES:
            raise bad_argument(
                "shape",
                zh=f"{shown(self.shape)} 太大了，没有张量能有 2**63 字节",
                en=f"{shown(self.shape)} is too large: no tensor has 2**63 bytes",
            )


def fake(shape: Sequence[int], dtype: Any = "float32") -> FakeSpec:
    """An example input of that shape and dtype (``"float16"`` or ``torch.float16``) that takes no memory.

    Raises:
        ValueError: as ``FakeSpec``.
    """
    return FakeSpec(shape, dtype)  # type: ignore[arg-type]  # a sequence becomes a tuple there


@dataclass(frozen=True, eq=False)
class Program:
    """What torch keeps of a captured function: its trace, and the names of the tensors that its nodes make."""

    trace: Trace
    names: Mapping[Any, str]


@dataclass(frozen=True)
class Captured:
    """A function as operators.

    Args:
        graph: one operator for each *eager* operator: what PyTorch launches without a compiler.
        core: their core-ATen parts, each with ``GraphOp.eager``, the name of the operator in ``graph`` that it is a part
            of: what a compiler may regroup.
        notes: what the bytes of these graphs leave out or add, if anything.
        code: operator of ``core`` or of ``graph`` -> the line of code that it comes from.
    """

    graph: OpGraph
    core: OpGraph
    notes: tuple[Text, ...] = ()
    code: Mapping[str, str] = field(default_factory=dict, repr=False)
    program: Program | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The name of both graphs."""
        return self.core.name


def capture(
    function: Callable[..., Any],
    *examples: Any,
    name: str | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> Captured:
    """The operators of ``function(*examples, **kwargs)``, without running it.

    What a GPU would launch is meant: each call that reaches a backend is one eager operator, ``rms_norm`` and ``dropout``
    too, which are one kernel on a GPU. Views launch nothing. Writes in place become new tensors; weights, buffers and
    tensors that the function takes from outside are inputs of the graph. An operator that is not known becomes opaque,
    and so does attention in one call (``scaled_dot_product_attention``), into which no compiler looks.

    Assumes that nobody writes what nobody reads: a result that is dropped, such as the indices of ``max_pool2d`` or of
    ``torch.max(x, dim)``, is not counted, though PyTorch's own kernel writes it; a note says how many bytes. An operator
    on tensors without an element counts as a launch, and a region (``torch.cond``, ``while_loop``) as one opaque operator.
    Notes say so, too.

    Args:
        function: any callable or ``nn.Module``, in the mode it is in (call ``.eval()`` for inference).
        examples: tensors, ``fake(...)``, containers of them; anything else is a constant.
        name: of the graphs; by default the function's.
        kwargs: example inputs by keyword.

    Raises:
        ValueError: it cannot be captured: control flow or sizes that depend on data, values taken out of tensors, writes
            to inputs, operators without shapes, or an error of its own. The message names the line and what to change.
        MissingPackageError: there is no PyTorch.
    """
    torch = require_torch()
    require_function(function)
    title = _called(function) if name is None else require_name("name", name)
    for argument, item in Arguments.of(torch, function).leaves(examples, dict(kwargs or {})):
        if isinstance(item, torch.Tensor) and not _has_plain_memory(torch, item):
            raise bad_argument(
                argument,
                zh="它是稀疏、量化或嵌套的张量，字节数不由形状和 dtype 决定；请用普通（稠密）的张量",
                en="it is sparse, quantized or nested, so its bytes do not follow from shape and dtype; use a dense tensor",
            )
    given_args, given_kwargs = _without_data(torch, (examples, dict(kwargs or {})))
    return _Reader(torch, trace(function, given_args, given_kwargs)).captured(title)


def require_function(function: object) -> None:
    """Refuse what cannot be captured because it cannot be called.

    Raises:
        ValueError: it is not callable.
    """
    if not callable(function):
        given = shown(function)
        raise bad_argument(
            "function",
            zh=f"需要函数或 nn.Module，收到的是 {given}",
            en=f"it must be a function or an nn.Module, got {given}",
        )


def evaluate(captured: Captured, *inputs: Any, **kwargs: Any) -> Any:
    """What the captured core graph computes from ``inputs``, operator by operator.

    Each operator gets the tensors that its ``GraphOp.inputs`` name and no others, so agreement with the function itself
    shows that the graph is complete. Slow; for checking.

    Returns:
        The tensors that the function returns, flat: one tensor, or a tuple of several.

    Raises:
        ValueError: ``captured`` came from data without its operators, weights were fake, or ``inputs`` do not fit.
    """
    if not isinstance(captured, Captured) or captured.program is None:
        raise bad_argument(
            "captured",
            zh="它没有可以执行的算子；请用 capture(...) 的结果",
            en="it has no operators to run; use what capture(...) returns",
        )
    torch = require_torch()
    return _Evaluation(torch, captured.core, captured.program).run(inputs, kwargs)


def _called(function: Callable[..., Any]) -> str:
    """A function's name, or its type's where it has none that is good for a title."""
    name = getattr(function, "__name__", None)
    return (name.strip("<>").strip() if isinstance(name, str) else "") or type(function).__name__


def _has_plain_memory(torch: Any, value: Any) -> bool:
    """Whether a tensor's bytes are its elements times their size."""
    return value.layout == torch.strided and not value.is_quantized and not value.is_nested


def _without_data(torch: Any, tree: Any) -> Any:
    """Example inputs with every tensor and ``FakeSpec`` as a fake tensor, all of one mode."""
    mode = importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode(allow_non_fake_inputs=True)

    def made(item: Any) -> Any:
        if isinstance(item, FakeSpec):
            with mode:
                return torch.empty(item.shape, dtype=getattr(torch, item.dtype))
        if isinstance(item, torch.Tensor) and not hasattr(item, "fake_mode"):
            if item.is_meta:
                with mode:
                    return torch.empty_strided(item.shape, item.stride(), dtype=item.dtype)
            return mode.from_tensor(item)
        return item

    try:
        return torch.utils._pytree.tree_map(made, tree)
    except Exception as error:  # a kind of tensor that has no fake one
        raise refusal_of(error, None) from None


# -- from nodes to operators ----------------------------------------------------------------------------------


class _Reader:
    """Turns traced nodes into ``GraphOp``; tensors are named after the nodes that make them."""

    def __init__(self, torch: Any, traced: Trace) -> None:
        self.torch, self.traced = torch, traced
        self.names: dict[Any, str] = {}  # node of a tensor -> its name
        self.tensors: dict[str, GraphTensor] = {}
        self.code: dict[str, str] = {}
        self.blank: list[str] = []  # memory that nothing has been written to
        self.live = {node.name: node for node in traced.nodes}

    def captured(self, title: str) -> Captured:
        used = {source for node in self.traced.nodes for source in node.all_input_nodes}
        used.update(self.traced.outputs)
        taken = {node.name for node in self.traced.nodes}
        inputs = []
        for given in self.traced.inputs:
            if given.node in used:
                name = _free(given.name, taken)
                taken.add(name)
                inputs.append(name)
                self._tensor(given.node, name, given.value)
                self._count_once(name, given.value)
        ops = [op for node in self.traced.nodes if not is_getitem(node) for op in self._op(node)]
        outputs = tuple(dict.fromkeys(self.names[node] for node in self.traced.outputs))
        if not any(op.kind != "view" for op in ops):
            raise no_operators()
        read = {*outputs, *(tensor for op in ops for tensor in op.inputs)}
        inputs += [name for name in self.blank if name in read]
        tensors = tuple(tensor for name, tensor in self.tensors.items() if name in read or name not in self.blank)
        core = OpGraph(title, tuple(ops), tensors, tuple(inputs), outputs)
        eager = eager_graph(core, self._eager_ops())
        program = Program(self.traced, MappingProxyType(self.names))
        return Captured(eager, core, tuple(self._notes(eager)), MappingProxyType(self.code), program)

    def _notes(self, eager: OpGraph) -> Iterator[Text]:
        """What the bytes and launches of the graphs leave out or add."""
        if self.traced.scattered:
            yield _SCATTERED.format(places=", ".join(line.place for line in self.traced.scattered))
        launching = [node for node in self.traced.nodes if not is_getitem(node)]
        if regions := [node for node in launching if is_region(node.target)]:
            yield _REGION.format(names=_listed(short_name(node.target) for node in regions))
        dropped = {node: size for node in launching if (size := self._dropped_bytes(node))}
        if dropped:
            names = _listed(self._unit_label(node) for node in dropped)
            yield _DROPPED.format(names=names, bytes=format_bytes(sum(dropped.values())))
        ops = [eager.op(name) for name in eager.launching]
        empty = [op.label for op in ops if not any(eager.tensor(name).numel for name in op.outputs)]
        if empty:
            yield _NO_ELEMENT.format(names=_listed(empty))

    def _unit_label(self, node: Any) -> str:
        unit = self.traced.unit_of.get(node)
        return unit.label if unit is not None else short_name(node.target)

    def _dropped_bytes(self, node: Any) -> int:
        """Of an operator that PyTorch itself launches, the results that nobody reads."""
        values = node.meta.get("val")
        if node not in self.traced.direct or not isinstance(values, (list, tuple)):
            return 0
        if schema_says_view(node.target) or is_region(node.target):
            return 0
        read = {pick.args[1] for pick in _picks(node, self.live)}
        dropped = (value for index, value in enumerate(values) if index not in read and hasattr(value, "shape"))
        return sum(prod(int(extent) for extent in value.shape) * int(value.dtype.itemsize) for value in dropped)

    def _op(self, node: Any) -> list[GraphOp]:
        picks = _picks(node, self.live)
        unit = self.traced.unit_of.get(node)
        line = unit.line if unit is not None else line_of(self.traced.parent_of.get(node))
        outputs = []
        for pick in picks:
            value = pick.meta.get("val")
            if value is None or not hasattr(value, "shape"):
                raise value_leaves_tensor(line)
            self._tensor(pick, pick.name, value, line)
            outputs.append(pick)
        if not outputs:
            return []
        if short_name(node.target) in _BLANK:
            self._leave_blank(node)
            return []
        traits = self._traits(node, outputs)
        eager = unit.name if unit is not None and traits.kind != "view" else ""
        for name in filter(None, (node.name, eager)):
            self.code.setdefault(name, line.code if line is not None else "")
        return [
            GraphOp(
                node.name,
                traits.kind,
                traits.inputs,
                tuple(self.names[pick] for pick in outputs),
                traits.operations,
                label=self._label(node, outputs),
                source=unit.place if unit is not None else line.place if line is not None else "",
                eager=eager,
                axes=traits.axes,
            )
        ]

    def _traits(self, node: Any, outputs: list[Any]) -> Traits:
        casts = self._casts(node, outputs)
        no_op = short_name(node.target) == "_to_copy" and not casts and node not in self.traced.direct
        call = AtenCall(
            name="alias" if no_op else short_name(node.target),  # a decomposition's cast to the same dtype
            arguments=self._arguments(node),
            outputs=tuple(self.tensors[self.names[pick]].shape for pick in outputs),
            pointwise=self.torch.Tag.pointwise in getattr(node.target, "tags", ()),
            view=no_op or schema_says_view(node.target),
            casts=casts,
        )
        traits = traits_of(call)
        if not traits.inputs and traits.kind in ("view", "injective"):  # a view of nothing: a fresh tensor
            return Traits("elementwise", ())
        return traits

    def _casts(self, node: Any, outputs: list[Any]) -> bool:
        sources = [source for source in node.all_input_nodes if source in self.names]
        if not sources:
            return False
        before = self.tensors[self.names[sources[0]]].dtype
        return any(self.tensors[self.names[pick]].dtype != before for pick in outputs)

    def _label(self, node: Any, outputs: list[Any]) -> str:
        name = short_name(node.target)
        if name == "_to_copy" and self._casts(node, outputs):
            return f"to {self.tensors[self.names[outputs[0]]].dtype}"
        return name.lstrip("_")

    def _arguments(self, node: Any) -> dict[str, object]:
        """A call's arguments by the names in its schema, tensors as ``Operand``."""
        schema = getattr(node.target, "_schema", None)
        given: dict[str, Any] = dict(node.kwargs)
        if schema is None:  # a higher-order operator: whatever tensors stand there
            given.update({str(index): value for index, value in enumerate(node.args)})
        else:
            given.update(zip((argument.name for argument in schema.arguments), node.args, strict=False))
            order = [argument.name for argument in schema.arguments]
            given = {name: given[name] for name in order if name in given}
        return {name: self._operand(value) for name, value in given.items()}

    def _operand(self, value: Any) -> object:
        if isinstance(value, self.torch.fx.Node):
            if value in self.names:
                name = self.names[value]
                return Operand(name, self.tensors[name].shape)
            return _NOT_TENSOR
        if isinstance(value, (list, tuple)):
            return [self._operand(item) for item in value]
        return value

    def _tensor(self, node: Any, name: str, value: Any, line: Line | None = None) -> None:
        if not all(isinstance(extent, int) for extent in value.shape):
            raise size_depends_on_data(line)
        if not _has_plain_memory(self.torch, value):
            raise without_plain_memory(line)
        shape = tuple(int(extent) for extent in value.shape)
        dtype = str(value.dtype).removeprefix("torch.")
        tensor = GraphTensor(name, shape, dtype, 0)
        self.names[node] = name
        self.tensors[name] = GraphTensor(name, shape, dtype, tensor.numel * int(value.dtype.itemsize))

    def _count_once(self, name: str, value: Any) -> None:
        """An input that was expanded has fewer bytes than elements: along its strides of 0 it is the same ones again."""
        extents = zip(value.shape, value.stride(), strict=True)
        held = prod(int(extent) for extent, stride in extents if stride or not extent)
        self.tensors[name] = replace(self.tensors[name], bytes=held * int(value.dtype.itemsize))

    def _leave_blank(self, node: Any) -> None:
        """``torch.empty`` launches nothing and there is nothing to read in it: an input of no bytes, if anything."""
        name = self.names[node]
        self.tensors[name] = replace(self.tensors[name], bytes=0)
        self.blank.append(name)

    def _eager_ops(self) -> dict[str, EagerOp]:
        return {unit.name: EagerOp(unit.label, unit.place) for unit in self.traced.unit_of.values()}


def _picks(node: Any, live: Mapping[str, Any]) -> list[Any]:
    """The nodes of the tensors that a node makes and that somebody uses: itself, or what is picked from it."""
    if not isinstance(node.meta.get("val"), (list, tuple)):
        return [node]
    return [user for user in node.users if is_getitem(user) and user.name in live]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


_SCATTERED = Text(
    zh="原地写入张量的一部分（{places}）在图里记作整块复制，字节数会多算；写成 torch.cat 或 torch.where 就没有这个差别。",
    en="Writing a part of a tensor in place ({places}) counts as a copy of the whole here, which is more than it moves. "
    "With torch.cat or torch.where there is no such difference.",
)
_REGION = Text(
    zh="{names} 在图里是一个不透明算子：看不进它里面，只算它读一次输入、写一次结果。里面真正启动几个核函数、搬多少字节，"
    "取决于运行时的数据，这里没有计入。",
    en="{names}: one opaque operator here. What is inside is not looked into; counted are its inputs, read once, and its "
    "results, written once. How many kernels run in there and what they move depends on the data, and is not counted.",
)
_DROPPED = Text(
    zh="{names} 还有没人读的结果（例如下标），共 {bytes}：PyTorch 自己的核函数照样写出它们，编译器可以不写；这里没有计入。",
    en="{names}: there are results that nobody reads, such as indices, {bytes} in all. PyTorch's own kernel writes them all "
    "the same, a compiler may leave them out; they are not counted here.",
)
_NO_ELEMENT = Text(
    zh="{names} 的结果没有元素（形状里有 0）：这里各记一次启动、0 字节，PyTorch 实际什么也不启动。",
    en="{names}: there is no element in the result (a 0 in its shape). Each counts as a launch of 0 bytes here; PyTorch "
    "launches nothing for it.",
)


# -- running the graph ----------------------------------------------------------------------------------------


class _Evaluation:
    def __init__(self, torch: Any, core: OpGraph, program: Program) -> None:
        self.torch, self.core, self.program = torch, core, program
        self.nodes = {node.name: node for node in program.trace.nodes}
        self.data: dict[str, Any] = {}

    def run(self, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        trace, names = self.program.trace, self.program.names
        flat = [leaf for _, leaf in trace.arguments.leaves(inputs, kwargs)]
        for given in trace.inputs:
            if given.node in names:
                self.data[names[given.node]] = self._given(given, names[given.node], flat)
        for name in self.core.inputs:
            if name not in self.data:  # ``torch.empty``
                self.data[name] = self._zeros(name)
        with self.torch.no_grad():
            for name in self.core.order:
                self._run_op(self.core.op(name))
        results = tuple(self.data[names[node]] for node in trace.outputs)
        return results[0] if len(results) == 1 else results

    def _given(self, given: TracedInput, name: str, flat: list[Any]) -> Any:
        try:
            value = given.data(flat)
        except IndexError:
            value = None
        tensor = self.core.tensor(name)
        if not isinstance(value, self.torch.Tensor) or tuple(value.shape) != tensor.shape:
            raise bad_argument(
                "inputs",
                zh=f"{name} 需要形状为 {tensor.shape} 的张量",
                en=f"{name} must be a tensor of shape {tensor.shape}",
            )
        if value.is_meta or hasattr(value, "fake_mode"):
            raise bad_argument(
                "inputs",
                zh=f"{name} 没有数据（是 fake 或 meta 张量）",
                en=f"{name} has no data: it is fake, or on meta",
            )
        return value

    def _zeros(self, name: str) -> Any:
        value = next(node for node, known in self.program.names.items() if known == name).meta["val"]
        return self.torch.zeros(tuple(value.shape), dtype=value.dtype)

    def _run_op(self, op: GraphOp) -> None:
        node, allowed = self.nodes[op.name], set(op.inputs)

        def tensor(source: Any) -> Any:
            if source not in self.program.names:  # a submodule of a higher-order operator
                return getattr(self.program.trace.module, str(source.target))
            name = self.program.names[source]
            if name in allowed:
                return self.data[name]
            return self._zeros(name)  # only its shape may matter

        arguments = self.torch.fx.node.map_arg((node.args, node.kwargs), tensor)
        result = node.target(*arguments[0], **arguments[1])
        for pick in _picks(node, self.nodes):
            value = result if pick is node else result[pick.args[1]]
            self.data[self.program.names[pick]] = value
