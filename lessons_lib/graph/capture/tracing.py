"""From a PyTorch function to the core-ATen operators that it runs, each with the eager call that it is a part of.

Two steps, both under fake tensors (shapes and dtypes without data):

1. ``torch.export`` records the ATen operators that the function calls, with the learner's lines;
2. these are run once more, functionalized (no in-place writes) and decomposed into core ATen, with a dispatch mode
   between the two that sees every call on its way to a backend. Such a call is one kernel today, and what comes out of
   its decomposition are its parts.

Attention in one call (``scaled_dot_product_attention``) is not decomposed: no compiler looks into that kernel.
What this floor uses of ``torch.fx`` and ``torch.export`` beyond their front doors is here and in ``fx_nodes``.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lessons_lib.graph.capture.arguments import Arguments
from lessons_lib.graph.capture.fx_nodes import (
    base_of,
    is_getitem,
    is_scatter,
    is_view,
    last_of,
    learner_line,
    line_of,
    live_nodes,
    make_functional,
    module_of,
    short_name,
    writes,
)
from lessons_lib.graph.capture.refusals import Line, refusal_of, transformed, writes_to_input
from lessons_lib.graph.capture.torch_import import quiet, require_torch

# Composite on the CPU, where the fake tensors are; one kernel on a GPU (torch 2.8 on for the first).
_ONE_KERNEL = {"aten.rms_norm.default", "aten.dropout.default"}
# Kept whole although core ATen decomposes them: no compiler looks into that kernel; a slice that was written in place.
_WHOLE = ("_scaled_dot_product", "aten.slice_scatter", "aten.select_scatter")
# Decomposed although core ATen keeps them: a compiler regroups their parts.
_ALSO_DECOMPOSED = (
    "_softmax",
    "_log_softmax",
    "_safe_softmax",
    "native_layer_norm",
    "native_group_norm",
    "native_batch_norm",
    "_native_batch_norm_legit_no_training",
    "_fused_rms_norm",
)


@dataclass(frozen=True)
class Unit:
    """A call that eager PyTorch makes: one kernel."""

    name: str
    label: str
    line: Line | None
    place: str  # of the line; where there is none, of the module


@dataclass(frozen=True)
class TracedInput:
    """A tensor from outside: its node, a readable name, its fake value, and where its data is."""

    node: Any
    name: str
    value: Any
    data: Callable[[Sequence[Any]], Any]  # from the flat tensors that a caller gives to the data


@dataclass(frozen=True)
class Trace:
    """The core-ATen operators of a function, in order; ``nodes`` are those that its outputs need."""

    inputs: tuple[TracedInput, ...]
    nodes: tuple[Any, ...]
    outputs: tuple[Any, ...]
    unit_of: Mapping[Any, Unit]
    scattered: tuple[Line, ...]  # where an in-place write to a part of a tensor became a copy of the whole
    parent_of: Mapping[Any, Any]  # core node -> the exported node that it comes from
    direct: frozenset[Any]  # nodes that eager PyTorch itself calls, not the parts of another operator
    exported: Any  # torch.export.ExportedProgram
    module: Any  # the GraphModule that holds ``nodes``
    arguments: Arguments = field(repr=False)


def trace(function: Callable[..., Any], examples: Sequence[Any], keywords: Mapping[str, Any]) -> Trace:
    """The trace of a function or module on example inputs (tensors, fake tensors, or anything else as a constant).

    Raises:
        ValueError: it cannot be captured; in both languages, with the line and what to change.
    """
    torch = require_torch()
    arguments = Arguments.of(torch, function)
    args, kwargs = arguments.ordered(examples, keywords)
    names = [name for name, _ in arguments.leaves(args, kwargs)]
    with quiet(), torch.no_grad():
        return _Retrace(torch, _export(torch, function, args, kwargs), arguments, names).trace()


# -- step 1 ---------------------------------------------------------------------------------------------------


def _export(torch: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    export = torch.export.export
    if _version(torch) < (2, 7):  # until then ``export`` itself decomposed
        export = torch.export.export_for_training
    module = function if isinstance(function, torch.nn.Module) else _as_module(torch, function)
    try:
        with _fake_parameters(torch, module), _no_transform_left(torch):
            exported = export(module, args, kwargs, strict=False)
    except Exception as error:
        raise refusal_of(error, learner_line(error)) from None
    parts = (part for part in exported.graph_module.modules() if hasattr(part, "graph"))
    for node in (node for part in parts for node in part.graph.nodes):
        if getattr(node.target, "__module__", "").startswith("torch._functorch"):
            raise transformed(line_of(node))
    return exported


def _as_module(torch: Any, function: Callable[..., Any]) -> Any:
    called = _called_forward(function)

    class Call(torch.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return called(*args, **kwargs)

    return Call()


def _called_forward(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function under the name ``forward``: only such lines does torch keep with the operators."""
    if not isinstance(function, types.FunctionType):
        return function
    code = function.__code__.replace(co_name="forward")
    renamed = types.FunctionType(code, function.__globals__, "forward", function.__defaults__, function.__closure__)
    renamed.__kwdefaults__ = function.__kwdefaults__
    return renamed


@contextlib.contextmanager
def _no_transform_left(torch: Any) -> Iterator[None]:
    """Ends the transforms of ``torch.func`` that an error leaves open: they would break everything that follows."""
    functorch = getattr(torch._C, "_functorch", None)
    depth = getattr(functorch, "get_dynamic_layer_stack_depth", None)
    undo = getattr(functorch, "pop_dynamic_layer_stack_and_undo_to_depth", None)
    before = depth() if depth is not None else 0
    try:
        yield
    finally:
        if depth is not None and undo is not None and depth() > before:
            undo(before)


@contextlib.contextmanager
def _fake_parameters(torch: Any, module: Any) -> Iterator[None]:
    """Parameters on the ``meta`` device (no memory) stand as fake CPU tensors for the time being, then come back."""
    mode = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    stand_ins: dict[int, Any] = {}
    for part in module.modules():
        for table in (part._parameters, part._buffers):
            for name, tensor in table.items():
                if tensor is not None and tensor.is_meta:
                    replaced.append((table, name, tensor))
    try:
        for table, name, tensor in replaced:
            if id(tensor) not in stand_ins:
                with mode:
                    fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
                is_parameter = isinstance(tensor, torch.nn.Parameter)
                stand_ins[id(tensor)] = torch.nn.Parameter(fake, requires_grad=False) if is_parameter else fake
            table[name] = stand_ins[id(tensor)]
        yield
    finally:
        for table, name, tensor in replaced:
            table[name] = tensor


# -- step 2 ---------------------------------------------------------------------------------------------------


class _Retrace:
    def __init__(self, torch: Any, exported: Any, arguments: Arguments, names: Sequence[str]) -> None:
        self.torch, self.exported, self.arguments, self.names = torch, exported, arguments, names
        self.current: Any = None  # the exported node that runs
        self.calls: dict[Any, tuple[Any, int, Any]] = {}  # core node -> exported node, number of the call, operator
        self.count = 0

    def trace(self) -> Trace:
        placeholders = [node for node in self.exported.graph.nodes if node.op == "placeholder"]
        values = [node.meta.get("val") for node in placeholders]
        module = self._retraced(values)
        mine = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._refuse_writes(module, mine, placeholders)
        make_functional(self.torch, module.graph)
        outputs = self._outputs(module)
        live = live_nodes(module, outputs)
        units, scattered = self._units(live)
        return Trace(
            inputs=tuple(self._inputs(mine, placeholders)) + tuple(self._constants(module, live)),
            nodes=tuple(node for node in live if node.op == "call_function"),
            outputs=outputs,
            unit_of=units,
            scattered=scattered,
            parent_of={node: call[0] for node, call in self.calls.items()},
            exported=self.exported,
            module=module,
            arguments=self.arguments,
            direct=frozenset(node for node, (_, _, operator) in self.calls.items() if node.target is operator),
        )

    def _retraced(self, values: Sequence[Any]) -> Any:
        torch, run = self.torch, self._interpreter().run
        proxies = importlib.import_module("torch.fx.experimental.proxy_tensor")
        mode = next((value.fake_mode for value in values if hasattr(value, "fake_mode")), contextlib.nullcontext())
        between = self._between(proxies.get_proxy_mode)

        def seen(*tensors: Any) -> Any:
            with between:
                return run(*tensors)

        make = proxies.make_fx(
            torch.func.functionalize(seen), decomposition_table=_decompositions(torch), tracing_mode="real"
        )
        try:
            with mode, _no_transform_left(torch):
                return make(*values)
        except Exception as error:
            line = line_of(self.current) if self.current is not None else None
            raise refusal_of(error, line) from None

    def _interpreter(self) -> Any:
        outer = self

        class Interpreter(self.torch.fx.Interpreter):  # type: ignore[name-defined]
            def run_node(self, node: Any) -> Any:
                outer.current = node
                return super().run_node(node)

        return Interpreter(self.exported.graph_module)

    def _between(self, get_proxy_mode: Callable[[], Any]) -> Any:
        """A dispatch mode that notes which nodes each call of a backend operator becomes."""
        outer = self
        base = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

        class Between(base):  # type: ignore[misc,valid-type]
            supports_higher_order_operators = True

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                graph = get_proxy_mode().tracer.graph
                before = last_of(graph)
                result = func(*args, **(kwargs or {}))
                outer.count += 1
                node = last_of(graph)
                while node is not before:
                    outer.calls[node] = (outer.current, outer.count, func)
                    node = node.prev
                return result

        return Between()

    # -- what it found ---------------------------------------------------------------------------------------

    def _refuse_writes(self, module: Any, mine: list[Any], placeholders: list[Any]) -> None:
        """Functionalized, a write to an input is a ``copy_`` at the very end."""
        for node in module.graph.nodes:
            if node.op == "call_function" and str(node.target) == "aten.copy_.default" and node.args[0] in mine:
                index = mine.index(node.args[0])
                spec = self.exported.graph_signature.input_specs[index]
                written = [n for n in self.exported.graph.nodes if writes(n)]
                through = [n for n in written if base_of(n.args[0]) is placeholders[index]]
                culprit = next(iter(through or written), None)
                name = spec.target or self._user_names().get(spec.arg.name, spec.arg.name)
                raise writes_to_input(name, line_of(culprit), spec.kind.name)

    def _outputs(self, module: Any) -> tuple[Any, ...]:
        (output,) = (node for node in module.graph.nodes if node.op == "output")
        node_type = self.torch.fx.Node
        flat = self.torch.utils._pytree.tree_leaves(output.args[0])
        return tuple(item for item in flat if isinstance(item, node_type) and hasattr(item.meta.get("val"), "shape"))

    def _units(self, live: list[Any]) -> tuple[dict[Any, Unit], tuple[Line, ...]]:
        """The eager call of each live node that is not a view."""
        key_of: dict[Any, tuple[Any, int]] = {}
        scattered: dict[Line, None] = {}
        for node in live:
            if node.op != "call_function" or node not in self.calls:
                continue
            parent, number, operator = self.calls[node]
            whole = str(parent.target) in _ONE_KERNEL
            key_of[node] = (parent, 0 if whole else number)
            if is_scatter(node) and str(parent.target) != str(operator):
                source = node.args[1]  # the write of a slice, functionalized: part of whatever made the slice
                if source in key_of and not is_view(source):
                    key_of[node] = key_of[source]
                if (line := self._line(key_of[node][0])) is not None:
                    scattered[line] = None
        names = self._unit_names(live, key_of)
        return {node: names[key] for node, key in key_of.items() if key in names}, tuple(scattered)

    def _line(self, node: Any) -> Line | None:
        """The line of an exported node; of a region such as ``autocast``, that of the first operator in it."""
        inside = [
            getattr(self.exported.graph_module, a.target) for a in node.args if getattr(a, "op", "") == "get_attr"
        ]
        candidates = (line_of(one) for one in (node, *(inner for part in inside for inner in part.graph.nodes)))
        return next((line for line in candidates if line is not None), None)

    def _unit_names(self, live: list[Any], key_of: Mapping[Any, tuple[Any, int]]) -> dict[tuple[Any, int], Unit]:
        kernels: dict[Any, dict[int, Any]] = {}
        for node in live:
            if node in key_of and not is_view(node) and not is_getitem(node):
                parent, number = key_of[node]
                kernels.setdefault(parent, {}).setdefault(number, self.calls[node][2])
        names: dict[tuple[Any, int], Unit] = {}
        taken: set[str] = set()
        for parent, calls in kernels.items():
            for number, operator in calls.items():
                label, name = short_name(parent.target), parent.name
                if len(calls) > 1 or not hasattr(parent.target, "_schema"):  # a composite, a region such as autocast
                    label = short_name(operator).lstrip("_")
                    name = f"{name}.{label}"
                bare, again = name, 1
                while name in taken:
                    again += 1
                    name = f"{bare}_{again}"
                taken.add(name)
                line = self._line(parent)
                place = line.place if line is not None else module_of(parent)
                names[parent, number] = Unit(name, label, line, place)
        return names

    # -- inputs ----------------------------------------------------------------------------------------------

    def _inputs(self, mine: list[Any], placeholders: list[Any]) -> Iterator[TracedInput]:
        signature, names = self.exported.graph_signature, self._user_names()
        position = 0
        for node, spec, given in zip(mine, signature.input_specs, placeholders, strict=True):
            value = given.meta.get("val")
            if spec.target is None:  # a user's input
                index, position = position, position + 1
                if hasattr(value, "shape"):
                    yield TracedInput(node, names.get(spec.arg.name, spec.arg.name), value, _pick(index))
            else:
                yield TracedInput(node, spec.target, value, _stored(self.exported, spec.target))

    def _constants(self, module: Any, live: list[Any]) -> Iterator[TracedInput]:
        for node in live:
            if node.op == "get_attr" and hasattr(value := getattr(module, str(node.target), None), "shape"):
                yield TracedInput(node, str(node.target), value, _constant(value))

    def _user_names(self) -> dict[str, str]:
        """The placeholders of a user's inputs -> what the function calls them."""
        given = [spec.arg.name for spec in self.exported.graph_signature.input_specs if spec.target is None]
        return dict(zip(given, self.names, strict=False))


def _decompositions(torch: Any) -> dict[Any, Any]:
    decomp = importlib.import_module("torch._decomp")
    aten = torch.ops.aten
    more = [getattr(aten, name) for name in _ALSO_DECOMPOSED if hasattr(aten, name)]
    table = {**decomp.core_aten_decompositions(), **decomp.get_decompositions(more)}
    return {operator: how for operator, how in table.items() if not any(whole in str(operator) for whole in _WHOLE)}


def _pick(index: int) -> Callable[[Sequence[Any]], Any]:
    return lambda given: given[index]


def _constant(value: Any) -> Callable[[Sequence[Any]], Any]:
    return lambda given: value


def _stored(exported: Any, target: str) -> Callable[[Sequence[Any]], Any]:
    return lambda given: exported.state_dict.get(target, exported.constants.get(target))


def _version(torch: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
