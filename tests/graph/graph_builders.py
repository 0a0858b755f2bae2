"""Graphs that the tests of this floor share: small ones by hand, random ones, and a large one of layers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from lessons_lib.graph.opgraph import GraphOp, GraphTensor, OpGraph, tensor_of
from lessons_lib.graph.recompute import refusal
from lessons_lib.graph.spaces import broadcasts_to


class Builder:
    """Writes a graph down operator by operator; each operator makes one tensor of its own name."""

    def __init__(self, name: str = "graph", dtype: str = "float32") -> None:
        self.name, self.dtype = name, dtype
        self.ops: list[GraphOp] = []
        self.tensors: dict[str, GraphTensor] = {}
        self.inputs: list[str] = []

    def input(self, name: str, *shape: int, size: int | None = None, dtype: str = "") -> str:
        self._tensor(name, shape, size, dtype)
        self.inputs.append(name)
        return name

    def op(
        self,
        name: str,
        kind: str,
        inputs: Sequence[str],
        shape: Sequence[int] | None = None,
        *,
        axes: Sequence[int] | None = None,
        size: int | None = None,
        operations: int = 0,
        row_bytes: int = 0,
        eager: str = "",
        dtype: str = "",
    ) -> str:
        self._tensor(name, tuple(self.tensors[inputs[0]].shape if shape is None else shape), size, dtype)
        op = GraphOp(
            name,
            kind,  # type: ignore[arg-type]
            tuple(inputs),
            (name,),
            operations,
            row_bytes=row_bytes,
            eager=eager,
            axes=None if axes is None else tuple(axes),
        )
        self.ops.append(op)
        return name

    def graph(self, *outputs: str) -> OpGraph:
        return OpGraph(self.name, tuple(self.ops), tuple(self.tensors.values()), tuple(self.inputs), outputs)

    def _tensor(self, name: str, shape: tuple[int, ...], size: int | None, dtype: str) -> None:
        tensor = tensor_of(name, shape, dtype or self.dtype)
        if size is not None:
            tensor = GraphTensor(name, shape, tensor.dtype, size)
        self.tensors[name] = tensor


def chain(count: int, size: int, side: Sequence[int] = ()) -> OpGraph:
    """``count`` elementwise operators one after another; those in ``side`` also read a tensor of their own."""
    build = Builder()
    last = build.input("x", 1024, size=size)
    for index in range(count):
        inputs = [last]
        if index in side:
            inputs.append(build.input(f"s{index}", 1024, size=size))
        last = build.op(f"f{index}", "elementwise", inputs, (1024,), size=size)
    return build.graph(last)


def softmax(rows: int, columns: int, dtype: str = "float32") -> OpGraph:
    build = Builder("softmax", dtype)
    build.input("x", rows, columns)
    build.op("max", "reduction", ["x"], (rows, 1))
    build.op("sub", "elementwise", ["x", "max"])
    build.op("exp", "elementwise", ["sub"])
    build.op("sum", "reduction", ["exp"], (rows, 1))
    build.op("div", "elementwise", ["exp", "sum"])
    return build.graph("div")


def rmsnorm(rows: int, columns: int, *, residual: bool = False, keep_sum: bool = False) -> OpGraph:
    """fp16; row vectors and the weight are too small to count."""
    build = Builder("rmsnorm", "float16")
    x = build.input("x", rows, columns)
    if residual:
        x = build.op("add", "elementwise", [x, build.input("r", rows, columns)])
    build.op("square", "elementwise", [x])
    build.op("mean", "reduction", ["square"], (rows, 1), size=0)
    build.op("scale", "elementwise", [x, "mean"])
    build.op("weigh", "broadcast", ["scale", build.input("weight", columns, size=0)])
    return build.graph("weigh", *(["add"] if keep_sum else []))


def gemm_bias_gelu(m: int, k: int, n: int) -> OpGraph:
    """Checkpoint 4, operations of the GEMM alone."""
    build = Builder("epilogue", "float16")
    build.op("gemm", "gemm", [build.input("x", m, k), build.input("w", k, n)], (m, n), operations=2 * m * n * k)
    build.op("bias", "broadcast", ["gemm", build.input("b", n)])
    build.op("gelu", "elementwise", ["bias"])
    return build.graph("gelu")


def attention(queries: int, dim: int, *, batch: Sequence[int] = (), keep_weights: bool = False) -> OpGraph:
    """fp16; the softmax as one reduction for the maximum, one for the sum, and what lies between."""
    build, lead = Builder("attention", "float16"), tuple(batch)
    scores = (*lead, queries, queries)
    build.input("q", *lead, queries, dim)
    build.input("k", *lead, queries, dim)
    build.input("v", *lead, queries, dim)
    build.op("kt", "view", ["k"], (*lead, dim, queries), axes=(-2, -1))
    build.op("qk", "gemm", ["q", "kt"], scores)
    build.op("scale", "elementwise", ["qk"])
    build.op("max", "reduction", ["scale"], (*scores[:-1], 1), size=0, eager="softmax")
    build.op("sub", "elementwise", ["scale", "max"], eager="softmax")
    build.op("exp", "elementwise", ["sub"], eager="softmax")
    build.op("sum", "reduction", ["exp"], (*scores[:-1], 1), size=0, eager="softmax")
    build.op("div", "elementwise", ["exp", "sum"], eager="softmax")
    build.op("pv", "gemm", ["div", "v"], (*lead, queries, dim))
    return build.graph("pv", *(["div"] if keep_weights else []))


def fan_out(size: int) -> OpGraph:
    """Checkpoint 7: t = f(x), u = g(t), v = h(t)."""
    build = Builder("fan-out")
    build.input("x", 16, size=size)
    build.op("f", "elementwise", ["x"], size=size)
    build.op("g", "elementwise", ["f"], size=size)
    build.op("h", "elementwise", ["f"], size=size)
    return build.graph("g", "h")


def llama(layers: int, hidden: int = 64, heads: int = 4, tokens: int = 16) -> OpGraph:
    """Decoder layers with RMSNorm, rotary embedding, attention written out, SwiGLU: every operator, views included."""
    build, dim = Builder("llama", "float16"), hidden // heads
    build.input("cos", tokens, dim)
    build.input("sin", tokens, dim)
    build.input("mask", tokens, tokens)
    x = build.input("x0", tokens, hidden)
    for layer in range(layers):
        x = _layer(build, f"l{layer}.", x, hidden, heads, tokens)
    return build.graph(x)


def _layer(build: Builder, at: str, x: str, hidden: int, heads: int, tokens: int) -> str:
    dim, wide = hidden // heads, 4 * hidden

    def linear(name: str, x: str, n: int) -> str:
        k = build.tensors[x].shape[-1]
        weight = build.input(f"{at}{name}.w", n, k)
        turned = build.op(f"{at}{name}.t", "view", [weight], (k, n), axes=(0, 1))
        return build.op(f"{at}{name}", "gemm", [x, turned], (tokens, n), operations=2 * tokens * n * k)

    def norm(name: str, x: str) -> str:
        wide_x = build.op(f"{at}{name}.cast", "elementwise", [x], dtype="float32")
        build.op(f"{at}{name}.square", "elementwise", [wide_x], dtype="float32")
        build.op(f"{at}{name}.mean", "reduction", [f"{at}{name}.square"], (tokens, 1), dtype="float32")
        build.op(f"{at}{name}.eps", "elementwise", [f"{at}{name}.mean"], dtype="float32")
        build.op(f"{at}{name}.rsqrt", "elementwise", [f"{at}{name}.eps"], dtype="float32")
        build.op(f"{at}{name}.scale", "elementwise", [wide_x, f"{at}{name}.rsqrt"], dtype="float32")
        build.op(f"{at}{name}.back", "elementwise", [f"{at}{name}.scale"])
        return build.op(f"{at}{name}", "broadcast", [f"{at}{name}.back", build.input(f"{at}{name}.w", hidden)])

    def rope(name: str, x: str) -> str:
        build.op(f"{at}{name}.heads", "view", [x], (tokens, heads, dim), axes=())
        turned = build.op(f"{at}{name}.turn", "view", [f"{at}{name}.heads"], (heads, tokens, dim), axes=(0, 1))
        build.op(f"{at}{name}.lo", "view", [turned], (heads, tokens, dim // 2), axes=(2,))
        build.op(f"{at}{name}.hi", "view", [turned], (heads, tokens, dim // 2), axes=(2,))
        build.op(f"{at}{name}.neg", "elementwise", [f"{at}{name}.hi"])
        build.op(
            f"{at}{name}.cat", "injective", [f"{at}{name}.neg", f"{at}{name}.lo"], (heads, tokens, dim), axes=(2,)
        )
        build.op(f"{at}{name}.c", "broadcast", [turned, "cos"])
        build.op(f"{at}{name}.s", "broadcast", [f"{at}{name}.cat", "sin"])
        return build.op(f"{at}{name}.rope", "elementwise", [f"{at}{name}.c", f"{at}{name}.s"])

    normed = norm("norm1", x)
    q, k = rope("q", linear("q", normed, hidden)), rope("k", linear("k", normed, hidden))
    build.op(f"{at}v.heads", "view", [linear("v", normed, hidden)], (tokens, heads, dim), axes=())
    build.op(f"{at}v.turn", "view", [f"{at}v.heads"], (heads, tokens, dim), axes=(0, 1))
    build.op(f"{at}kt", "view", [k], (heads, dim, tokens), axes=(1, 2))
    scores = (heads, tokens, tokens)
    build.op(f"{at}qk", "gemm", [q, f"{at}kt"], scores)
    build.op(f"{at}scale", "elementwise", [f"{at}qk"])
    build.op(f"{at}masked", "broadcast", [f"{at}scale", "mask"])
    build.op(f"{at}max", "reduction", [f"{at}masked"], (heads, tokens, 1))
    build.op(f"{at}sub", "elementwise", [f"{at}masked", f"{at}max"])
    build.op(f"{at}exp", "elementwise", [f"{at}sub"])
    build.op(f"{at}sum", "reduction", [f"{at}exp"], (heads, tokens, 1))
    build.op(f"{at}div", "elementwise", [f"{at}exp", f"{at}sum"])
    build.op(f"{at}pv", "gemm", [f"{at}div", f"{at}v.turn"], (heads, tokens, dim))
    build.op(f"{at}back", "view", [f"{at}pv"], (tokens, heads, dim), axes=(0, 1))
    build.op(f"{at}copy", "injective", [f"{at}back"], (tokens, heads, dim), axes=())
    build.op(f"{at}flat", "view", [f"{at}copy"], (tokens, hidden), axes=())
    x = build.op(f"{at}add1", "elementwise", [x, linear("o", f"{at}flat", hidden)])
    normed = norm("norm2", x)
    gate = build.op(f"{at}silu", "elementwise", [linear("gate", normed, wide)])
    product = build.op(f"{at}mul", "elementwise", [gate, linear("up", normed, wide)])
    return build.op(f"{at}add2", "elementwise", [x, linear("down", product, hidden)])


def random_graph(seed: int, count: int, *, views: bool = True, plain: bool = False) -> OpGraph:
    """A random graph of ``count`` launching operators of all kinds; ``plain``: elementwise, opaque, one shape, no views."""
    draw = random.Random(seed)
    build = Builder(f"random {seed}")
    rows, columns = draw.choice([(4, 4), (4, 8), (6, 4)])
    full = (rows, columns)
    for name, shape in (("a", full), ("b", full), ("w", (columns, columns)), ("vec", (columns,)), ("col", (rows, 1))):
        build.input(name, *shape, size=draw.choice([0, 8, 64, 100, 128]))
    made: list[str] = []
    while len(made) < count:
        before = len(build.ops)
        name = f"n{len(made)}"
        _random_op(draw, build, name, full, plain)
        if views and not plain and draw.random() < 0.2:
            _random_view(draw, build, f"v{len(made)}")
        made += [op.name for op in build.ops[before:] if op.kind != "view"]
    read = {tensor for op in build.ops for tensor in op.inputs}
    outputs = [op.name for op in build.ops if op.name not in read or draw.random() < 0.15]
    return build.graph(*outputs)


def _random_op(draw: random.Random, build: Builder, name: str, full: tuple[int, int], plain: bool) -> None:
    size = draw.choice([8, 64, 100, 128])
    named = list(build.tensors)
    weights = [1 + 2 * (index / len(named)) + 3 * (tensor not in build.inputs) for index, tensor in enumerate(named)]
    pick = lambda fits: next(  # noqa: E731
        (t for t in draw.choices(named, weights, k=30) if fits(build.tensors[t].shape)), None
    )
    kind = draw.choice(
        ["elementwise", "opaque"]
        if plain
        else ["elementwise"] * 5 + ["reduction"] * 3 + ["gemm", "opaque", "injective"]
    )
    if kind == "elementwise" and draw.random() < (0.1 if plain else 0):
        kind = "opaque"
    x = pick(lambda shape: len(shape) == 2) or "a"
    shape = build.tensors[x].shape
    if kind == "opaque" and (not plain or draw.random() < 0.2):
        build.op(name, "opaque", [x], shape, size=size)
    elif kind == "reduction":
        axis = draw.choice([0, 1])
        build.op(name, "reduction", [x], (1, shape[1]) if axis == 0 else (shape[0], 1), axes=(axis,), size=size)
    elif kind == "gemm" and shape[1] == full[1]:
        right = pick(lambda other: other == (full[1], full[1])) or "w"
        build.op(name, "gemm", [x, right], (shape[0], full[1]), size=size)
    elif kind == "injective":
        axes = draw.choice([(1,), (0, 1)])
        target = shape if axes == (1,) else shape[::-1]
        build.op(name, "injective", [x], target, axes=axes, size=size)
    else:
        y = pick(lambda other: broadcasts_to(other, shape))
        inputs = [x] if y is None or draw.random() < 0.4 else [x, y]
        build.op(name, "elementwise", inputs, shape, size=size)


def _random_view(draw: random.Random, build: Builder, name: str) -> None:
    x = draw.choice([tensor for tensor, item in build.tensors.items() if len(item.shape) == 2])
    shape, size = build.tensors[x].shape, build.tensors[x].bytes
    if draw.random() < 0.5:
        build.op(name, "view", [x], shape[::-1], axes=(0, 1), size=size)
    else:
        build.op(
            name, "view", [x], (1, *shape) if draw.random() < 0.5 else (shape[0], 1, shape[1]), axes=(), size=size
        )


def recomputable(graph: OpGraph, ops: Iterable[str]) -> tuple[str, ...]:
    """Those of ``ops`` that may be computed again for each reader, in the given order."""
    known = {op.name for op in graph.ops}
    return tuple(op for op in ops if op in known and refusal(graph, op) is None)
