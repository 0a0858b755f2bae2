"""A graph of operators: what each reads and writes, how large it is, and how it may share a kernel.

Operator kinds are TVM's (T. Chen et al., "TVM: An automated end-to-end optimizing compiler for deep learning",
OSDI 2018, section 3), which other compilers know under other names:

- ``elementwise``: element i of the output needs element i of each input (``exp``, ``add``, a cast);
- ``broadcast``: the same, with inputs that stretch to the output's shape (adding a bias);
- ``injective``: elements move, none is computed: a transposing copy, ``cat``, ``gather``, an embedding;
- ``reduction``: whole axes collapse (``sum``, ``amax``, ``var_mean``);
- ``gemm``: a matrix multiplication or convolution, whose *output* other operators may join (TVM's
  "output-elementwise-fusable"): left operand first, then the right one, then side inputs such as a bias;
- ``opaque``: anything else; it runs alone (``sort``, ``topk``, a library call);
- ``view``: no kernel and no bytes: its outputs are other ways to look at its one input's memory.

Pure: the standard library and this package only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from heapq import heappop, heappush
from math import prod
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args

from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, require_choice, require_int, require_items, require_name, shown
from lessons_lib.graph.spaces import broadcasts_to, reduced_axes
from lessons_lib.graph.wiring import Wiring

OpKind = Literal["elementwise", "broadcast", "injective", "reduction", "gemm", "opaque", "view"]

KINDS: tuple[OpKind, ...] = get_args(OpKind)

KIND_NAMES: Mapping[OpKind, Text] = MappingProxyType(
    {
        "elementwise": Text(zh="逐元素", en="elementwise"),
        "broadcast": Text(zh="广播", en="broadcast"),
        "injective": Text(zh="搬移（injective）", en="injective (layout)"),
        "reduction": Text(zh="归约", en="reduction"),
        "gemm": Text(zh="矩阵乘（GEMM）", en="GEMM"),
        "opaque": Text(zh="不透明", en="opaque"),
        "view": Text(zh="视图", en="view"),
    }
)

DTYPE_BYTES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("complex128",), 16),
        **dict.fromkeys(("float64", "int64", "uint64", "complex64"), 8),
        **dict.fromkeys(("float32", "int32", "uint32"), 4),
        **dict.fromkeys(("float16", "bfloat16", "int16", "uint16"), 2),
        **dict.fromkeys(("int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2"), 1),
    }
)

_FORMAT = "operator-graph/1"


@dataclass(frozen=True)
class GraphTensor:
    """A tensor on the edges of a graph.

    Args:
        name: unique in its graph.
        shape: extents, each 0 or more; ``()`` is a scalar.
        dtype: as PyTorch names it, without ``torch.``: ``"float16"``.
        bytes: what reading or writing it moves; 0 for one too small to count.

    Raises:
        ValueError: a blank name or dtype, an extent or a size that is not an integer of at least 0.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int

    def __post_init__(self) -> None:
        require_name("name", self.name)
        shape = tuple(
            require_int(f"{self.name}.shape[{axis}]", extent, 0)
            for axis, extent in enumerate(require_items(f"{self.name}.shape", self.shape))
        )
        object.__setattr__(self, "shape", shape)
        require_name(f"{self.name}.dtype", self.dtype)
        object.__setattr__(self, "bytes", require_int(f"{self.name}.bytes", self.bytes, 0))

    @property
    def numel(self) -> int:
        """How many elements it has; 1 for a scalar."""
        return prod(self.shape)


def tensor_of(name: str, shape: Iterable[int], dtype: str = "float32") -> GraphTensor:
    """A tensor whose bytes follow from its shape and ``dtype``, one of ``DTYPE_BYTES``.

    Raises:
        ValueError: as ``GraphTensor``, or an unknown ``dtype``.
    """
    require_choice("dtype", dtype, DTYPE_BYTES)
    bare = GraphTensor(name, tuple(shape), dtype, 0)
    return GraphTensor(bare.name, bare.shape, dtype, bare.numel * DTYPE_BYTES[dtype])


@dataclass(frozen=True)
class GraphOp:
    """One operator: the tensors it reads and those it makes, by name.

    Args:
        name: unique in its graph.
        kind: one of ``KINDS``; see the module.
        inputs: tensors read, in the operator's own order; one that is read twice may stand there twice.
        outputs: tensors made, at least one.
        operations: floating-point operations in all (a multiply-add counts as 2), 0 or more.
        label: what a picture shows; blank: the name.
        row_bytes: of a reduction: bytes of one row that must stay on chip to finish in one pass; 0: worked out from
            the shapes. See ``OpGraph.row_bytes_of``.
        source: where it stands, as ``file:line`` or as a call; may be blank.
        eager: the eager operator that it is a part of; blank: it is one itself.
        axes: which axes of the first input it works along, negative ones counted from the last. Of a reduction: those
            it reduces; ``None``: they follow from the shapes. Of an injective operator or a view: those along which
            elements move or are left out, ``()`` where their order stays (``reshape``, ``expand``); ``None``: not
            known, and taken to mean all. Other kinds have none.

    Raises:
        ValueError: a field of the wrong type or out of range; the message names it.
    """

    name: str
    kind: OpKind
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    operations: int = 0
    label: str = ""
    row_bytes: int = 0
    source: str = ""
    eager: str = ""
    axes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        name = require_name("name", self.name)
        require_choice(f"{name}.kind", self.kind, KINDS)
        for entry in ("inputs", "outputs"):
            object.__setattr__(self, entry, _names(f"{name}.{entry}", getattr(self, entry)))
        if not self.outputs:
            raise bad_argument(f"{name}.outputs", zh="至少要产生一个张量", en="it must make at least one tensor")
        for entry in ("operations", "row_bytes"):
            object.__setattr__(self, entry, require_int(f"{name}.{entry}", getattr(self, entry), 0))
        for entry in ("label", "source", "eager"):
            if not isinstance(getattr(self, entry), str):
                given = shown(getattr(self, entry))
                raise bad_argument(
                    f"{name}.{entry}", zh=f"需要字符串，收到的是 {given}", en=f"it must be a string, got {given}"
                )
        object.__setattr__(self, "label", self.label if self.label.strip() else name)
        if self.axes is not None:
            axes = enumerate(require_items(f"{name}.axes", self.axes))
            object.__setattr__(self, "axes", tuple(require_int(f"{name}.axes[{i}]", axis) for i, axis in axes))

    @property
    def words(self) -> str:
        """Its name, and its label where that is another one."""
        return self.name if self.label == self.name else f"{self.name} ({self.label})"


@dataclass(frozen=True)
class GraphEdge:
    """A tensor on its way from the operator that makes it to one that reads it, views looked through.

    ``bytes`` is what the reader reads of it: less than the whole where it reads a slice.
    """

    producer: str
    consumer: str
    tensor: str
    bytes: int


@dataclass(frozen=True)
class OpGraph:
    """Operators and tensors without cycles; ``outputs`` must be in memory at the end.

    Args:
        name: of the graph.
        ops: in any order.
        tensors: every tensor that an operator names, each once.
        inputs: tensors that no operator makes: activations, weights, constants.
        outputs: tensors to keep; a view among them keeps the tensor that it looks at.

    Views are *folded*: they launch nothing and move nothing, so ``launching``, ``edges`` and everything that groups
    operators looks through them. They stay in ``ops``, because a transposing view decides what may share a kernel.

    Raises:
        ValueError: something is named twice or not at all, has two producers, or depends on itself; shapes that do
            not fit an operator's kind; a reduction whose axes the shapes leave open.
    """

    name: str
    ops: tuple[GraphOp, ...]
    tensors: tuple[GraphTensor, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        require_name("name", self.name)
        object.__setattr__(self, "ops", _unique("ops", self.ops, GraphOp))
        object.__setattr__(self, "tensors", _unique("tensors", self.tensors, GraphTensor))
        for entry in ("inputs", "outputs"):
            object.__setattr__(self, entry, _names(entry, getattr(self, entry)))
        if not self.ops:
            raise bad_argument("ops", zh="至少要有一个算子", en="there must be at least one operator")
        _check_names(self)
        _check_shapes(self)
        _ = self.order  # refuses cycles

    # -- looking things up -----------------------------------------------------------------------------------

    @cached_property
    def _ops(self) -> dict[str, GraphOp]:
        return {op.name: op for op in self.ops}

    @cached_property
    def _tensors(self) -> dict[str, GraphTensor]:
        return {tensor.name: tensor for tensor in self.tensors}

    def op(self, name: str) -> GraphOp:
        """The operator of that name.

        Raises:
            ValueError: there is none.
        """
        return _found("op", self._ops, name, Text(zh="算子", en="operator"))

    def require_launching(self, argument: str, name: str) -> None:
        """Refuse, for ``argument``, a name that no grouping distributes.

        Raises:
            ValueError: there is no such operator, or it is a view.
        """
        if self.op(name).kind == "view":
            raise bad_argument(
                argument,
                zh=f"{name!r} 是视图，不启动核函数，也不搬数据",
                en=f"{name!r} is a view: it launches no kernel and moves nothing",
            )

    def tensor(self, name: str) -> GraphTensor:
        """The tensor of that name.

        Raises:
            ValueError: there is none.
        """
        return _found("tensor", self._tensors, name, Text(zh="张量", en="tensor"))

    @cached_property
    def producers(self) -> Mapping[str, str]:
        """Tensor -> the operator that makes it; graph inputs are missing."""
        return MappingProxyType({tensor: op.name for op in self.ops for tensor in op.outputs})

    @cached_property
    def consumers(self) -> Mapping[str, tuple[str, ...]]:
        """Tensor -> the operators that name it among their inputs, each once, in order; views included."""
        readers: dict[str, dict[str, None]] = {tensor.name: {} for tensor in self.tensors}
        for name in self.order:
            for tensor in self._ops[name].inputs:
                readers[tensor][name] = None
        return MappingProxyType({tensor: tuple(ops) for tensor, ops in readers.items()})

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All operators, views included, each after what it needs; otherwise in the order of ``ops``."""
        return _topological_order(self)

    # -- views folded ----------------------------------------------------------------------------------------

    @cached_property
    def wiring(self) -> Wiring:
        """The same graph in numbers, views folded: what the rules and the planner work on."""
        return Wiring.of(self)

    @property
    def launching(self) -> tuple[str, ...]:
        """The operators that a grouping distributes: all but views, each after what it needs."""
        return self.wiring.names

    @cached_property
    def edges(self) -> tuple[GraphEdge, ...]:
        """Every tensor between two launching operators, once a reader, in the readers' order."""
        return tuple(self._edges())

    def _edges(self) -> Iterator[GraphEdge]:
        wiring = self.wiring
        for reader, name in enumerate(wiring.names):
            for root, size in wiring.read_bytes([reader], frozenset()).items():
                producer = wiring.producer[root]
                if producer >= 0:
                    yield GraphEdge(wiring.names[producer], name, wiring.tensor_names[root], size)

    def root_of(self, tensor: str) -> str:
        """The tensor whose memory this one is: itself, unless a view makes it.

        Raises:
            ValueError: there is no such tensor.
        """
        name = self.tensor(tensor).name
        while (producer := self.producers.get(name)) and self._ops[producer].kind == "view":
            name = self._ops[producer].inputs[0]
        return name

    def reduced_axes_of(self, op: GraphOp) -> tuple[int, ...]:
        """The axes of its first input that a reduction reduces, none of them negative."""
        shape = self._tensors[op.inputs[0]].shape
        if op.axes is not None:
            return tuple(sorted({axis % len(shape) for axis in op.axes}))
        found = reduced_axes(shape, self._tensors[op.outputs[0]].shape)
        assert found is not None  # validated
        return found

    def row_bytes_of(self, op: GraphOp) -> int:
        """Bytes of one row of what a reduction reads: as stated, or its first input's bytes over its rows."""
        if op.row_bytes:
            return op.row_bytes
        tensor, axes = self._tensors[op.inputs[0]], self.reduced_axes_of(op)
        rows = prod(extent for axis, extent in enumerate(tensor.shape) if axis not in axes)
        return -(-tensor.bytes // rows) if rows else 0

    # -- JSON ------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The graph as one line of JSON; fields at their defaults are left out."""
        return json.dumps(
            {
                "format": _FORMAT,
                "name": self.name,
                "inputs": self.inputs,
                "outputs": self.outputs,
                "tensors": [_written(tensor) for tensor in self.tensors],
                "ops": [_written(op) for op in self.ops],
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> OpGraph:
        """The graph that ``to_json`` wrote.

        Raises:
            ValueError: not JSON, not of this format, or a graph that is not valid; in both languages.
        """
        data = _parsed(text)
        tensors = [_read(f"tensors[{i}]", GraphTensor, item) for i, item in enumerate(_list(data, "tensors"))]
        ops = [_read(f"ops[{i}]", GraphOp, item) for i, item in enumerate(_list(data, "ops"))]
        lists = (tuple(_list(data, entry)) for entry in ("inputs", "outputs"))
        return cls(data.get("name"), tuple(ops), tuple(tensors), *lists)  # type: ignore[arg-type]  # checked there


# -- checks ---------------------------------------------------------------------------------------------------

_T = TypeVar("_T")


def _found(argument: str, known: Mapping[str, _T], name: object, noun: Text) -> _T:
    if isinstance(name, str) and name in known:
        return known[name]
    raise bad_argument(
        argument, zh=f"图中没有{noun.zh} {shown(name)}", en=f"the graph has no {noun.en} {shown(name)}"
    )


def _names(argument: str, value: object) -> tuple[str, ...]:
    items = enumerate(require_items(argument, value))
    return tuple(require_name(f"{argument}[{index}]", item) for index, item in items)


_Named = TypeVar("_Named", "GraphOp", "GraphTensor")


def _unique(argument: str, value: object, kind: type[_Named]) -> tuple[_Named, ...]:
    seen: dict[str, _Named] = {}
    for index, item in enumerate(require_items(argument, value)):
        if not isinstance(item, kind):
            raise bad_argument(
                f"{argument}[{index}]",
                zh=f"需要 {kind.__name__}，收到的是 {shown(item)}",
                en=f"it must be a {kind.__name__}, got {shown(item)}",
            )
        if item.name in seen:
            raise bad_argument(argument, zh=f"{item.name!r} 出现了两次", en=f"{item.name!r} appears twice")
        seen[item.name] = item
    return tuple(seen.values())


def _check_names(graph: OpGraph) -> None:
    known = graph._tensors
    made: dict[str, str] = {}
    for op in graph.ops:
        for tensor in op.outputs:
            if tensor in made:
                raise bad_argument(
                    "ops",
                    zh=f"{made[tensor]!r} 和 {op.name!r} 都产生张量 {tensor!r}",
                    en=f"{made[tensor]!r} and {op.name!r} both make tensor {tensor!r}",
                )
            made[tensor] = op.name
    for tensor in graph.inputs:
        if tensor in made:
            raise bad_argument(
                "inputs",
                zh=f"{tensor!r} 由算子 {made[tensor]!r} 产生，不是图的输入",
                en=f"{tensor!r} is made by operator {made[tensor]!r}: it is no input of the graph",
            )
    given = {*graph.inputs, *made}
    mentioned = [(op.name, tensor) for op in graph.ops for tensor in (*op.inputs, *op.outputs)]
    for place, tensor in [
        *mentioned,
        *(("inputs", t) for t in graph.inputs),
        *(("outputs", t) for t in graph.outputs),
    ]:
        if tensor not in known:
            raise bad_argument(
                "tensors", zh=f"缺少 {place!r} 用到的张量 {tensor!r}", en=f"tensor {tensor!r} of {place!r} is missing"
            )
        if tensor not in given:
            raise bad_argument(
                "inputs",
                zh=f"{place!r} 用到的张量 {tensor!r} 既不是图的输入，也没有算子产生它",
                en=f"tensor {tensor!r} of {place!r} is no input of the graph and no operator makes it",
            )


def _check_shapes(graph: OpGraph) -> None:
    for op in graph.ops:
        before = [graph._tensors[name].shape for name in op.inputs]
        after = [graph._tensors[name].shape for name in op.outputs]
        problem = _shape_problem(op, before, after)
        if problem is not None:
            raise bad_argument(f"{op.name} ({op.kind})", zh=problem.zh, en=problem.en)


def _shape_problem(op: GraphOp, before: list[tuple[int, ...]], after: list[tuple[int, ...]]) -> Text | None:
    """What is wrong with an operator's shapes for its kind, or ``None``."""
    fewest = {"reduction": 1, "injective": 0, "gemm": 2, "view": 1}.get(op.kind, 0)
    if len(before) < fewest or (op.kind == "view" and len(before) != 1):
        exactly = Text(zh="恰好", en="exactly") if op.kind == "view" else Text(zh="至少", en="at least")
        words = Text(zh="这类算子{exactly}要有 {fewest} 个输入", en="this kind has {exactly} {fewest} input(s)")
        return words.format(exactly=exactly, fewest=fewest)
    if op.kind in ("elementwise", "broadcast"):
        for shape in before:
            if not all(broadcasts_to(shape, target) for target in after):
                words = Text(
                    zh="形状 {shape} 不能广播到输出的形状", en="shape {shape} does not broadcast to the output's"
                )
                return words.format(shape=shape)
    if op.axes is not None and before:
        rank = len(before[0])
        if any(not -rank <= axis < rank for axis in op.axes):
            words = Text(
                zh="axes = {axes} 超出了 {rank} 维输入的范围", en="axes = {axes} of an input with {rank} axes"
            )
            return words.format(axes=op.axes, rank=rank)
    if op.kind == "reduction":
        return _reduction_problem(op, before, after)
    return None


def _reduction_problem(op: GraphOp, before: list[tuple[int, ...]], after: list[tuple[int, ...]]) -> Text | None:
    if not all(broadcasts_to(shape, before[0]) for shape in before):
        return Text(zh="各输入的形状不一致", en="its inputs differ in shape")
    axes = reduced_axes(before[0], after[0]) if op.axes is None else [a % len(before[0]) for a in op.axes]
    if axes is None:
        return Text(
            zh="从形状看不出归约的是哪些轴，请用 axes 写明",
            en="the shapes leave open which axes it reduces: state them as axes",
        )
    kept = prod(extent for axis, extent in enumerate(before[0]) if axis not in axes)
    if any(prod(shape) != kept for shape in after):
        words = Text(
            zh="归约后应有 {kept} 个元素", en="{kept} elements are left after it, and its output says otherwise"
        )
        return words.format(kept=kept)
    return None


def _topological_order(graph: OpGraph) -> tuple[str, ...]:
    """Kahn's algorithm; among operators that are ready, the one that stands first in ``ops``."""
    producers, place = graph.producers, {op.name: index for index, op in enumerate(graph.ops)}
    waiting: dict[str, int] = {}
    readers: dict[str, list[str]] = {op.name: [] for op in graph.ops}
    for op in graph.ops:
        needed = {producers[tensor] for tensor in op.inputs if tensor in producers}
        waiting[op.name] = len(needed)
        for producer in needed:
            readers[producer].append(op.name)
    ready = [place[name] for name, count in waiting.items() if count == 0]  # ascending: a heap
    order: list[str] = []
    while ready:
        name = graph.ops[heappop(ready)].name
        order.append(name)
        for reader in readers[name]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heappush(ready, place[reader])
    if len(order) < len(graph.ops):
        raise _cycle(graph, set(order))
    return tuple(order)


def _cycle(graph: OpGraph, placed: set[str]) -> ValueError:
    """An error that names one cycle: from an operator that could not be placed, back along what it waits for."""
    producers = graph.producers
    path = [next(op.name for op in graph.ops if op.name not in placed)]
    while len(set(path)) == len(path):
        needed = (producers[t] for t in graph._ops[path[-1]].inputs if t in producers)
        path.append(next(name for name in needed if name not in placed))
    written = " → ".join(reversed(path[path.index(path[-1]) :]))
    return bad_argument("ops", zh=f"算子之间有环：{written}", en=f"the operators form a cycle: {written}")


# -- JSON -----------------------------------------------------------------------------------------------------


def _written(item: GraphTensor | GraphOp) -> dict[str, object]:
    """The fields that differ from their defaults; a label that only repeats the name is left out too."""
    values = {field.name: getattr(item, field.name) for field in fields(item)}
    defaults = {field.name: field.default for field in fields(item)}
    return {
        key: value
        for key, value in values.items()
        if value != defaults[key] and not (key == "label" and value == item.name)
    }


def _parsed(text: object) -> dict[str, Any]:
    if not isinstance(text, str):
        raise bad_argument("text", zh="需要 JSON 字符串", en="it must be a string of JSON")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad_argument("text", zh=f"不是 JSON：{error}", en=f"it is not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise bad_argument(
            "text", zh=f'没有 "format": "{_FORMAT}" 这一项', en=f'it lacks "format": "{_FORMAT}", so it is no graph'
        )
    return data


def _list(data: dict[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    if not isinstance(value, list):
        raise bad_argument(key, zh=f"需要列表，收到的是 {shown(value)}", en=f"it must be a list, got {shown(value)}")
    return value


def _read(place: str, kind: type[_T], item: object) -> _T:
    """A ``GraphTensor`` or ``GraphOp`` from its JSON object; the values are checked where it is made."""
    entries = {field.name: field.default is MISSING for field in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(item, dict):
        raise bad_argument(
            place, zh=f"需要对象，收到的是 {shown(item)}", en=f"it must be an object, got {shown(item)}"
        )
    unknown, missing = (
        [key for key in item if key not in entries],
        [k for k, n in entries.items() if n and k not in item],
    )
    if unknown or missing:
        raise bad_argument(
            place,
            zh=f"多出的字段：{shown(unknown)}；缺少的字段：{shown(missing)}",
            en=f"unknown fields: {shown(unknown)}; missing fields: {shown(missing)}",
        )
    return kind(**item)
