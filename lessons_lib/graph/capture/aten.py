"""What each ATen operator is, for fusion: its kind, the axes it works along, the operations it counts.

ATen is PyTorch's operator library; *core ATen* is the small set that the others are decomposed into. An operator that
is not known here, a custom one for example, is opaque: it may run slower than it could, but never wrong.

Operations are floating-point operations by convention: a multiply-add is 2, an arithmetic or comparing operator 1 an
element, a function that hardware approximates (``exp``, ``tanh``, ``erf``, a division, a root) ``FUNCTION`` an element,
moving and casting 0. Only GEMMs are known exactly; for all others bytes decide the time, and a factor of two in their
operations changes nothing.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from lessons_lib.graph.opgraph import OpKind
from lessons_lib.graph.spaces import Shape, broadcasts_to

FUNCTION = 8
"""Operations that one ``exp``, ``tanh``, division or root counts as: a special-function unit and its corrections."""


@dataclass(frozen=True)
class Operand:
    """A tensor among an operator's arguments: its name in the graph and its shape."""

    name: str
    shape: Shape


@dataclass(frozen=True)
class AtenCall:
    """One call of an operator.

    Args:
        name: without its overload, and without the namespace where that is ``aten`` or ``prims``: ``"mm"``,
            ``"mylib.foo"``.
        arguments: by the name in the operator's schema; tensors are ``Operand``, also inside lists.
        outputs: shapes of the tensors that it makes.
        pointwise: PyTorch tags it so.
        view: its schema says that its outputs are views of its first argument.
        casts: an output has another dtype than the first operand.
    """

    name: str
    arguments: Mapping[str, object]
    outputs: tuple[Shape, ...]
    pointwise: bool = False
    view: bool = False
    casts: bool = False


@dataclass(frozen=True)
class Traits:
    """What a ``GraphOp`` needs to know; ``inputs`` in its order, without those of which only the shape is used."""

    kind: OpKind
    inputs: tuple[str, ...]
    operations: int = 0
    axes: tuple[int, ...] | None = None


def traits_of(call: AtenCall) -> Traits:
    """Kind, inputs, operations and axes of a call."""
    operands = _operands(call)
    names = tuple(operand.name for operand in operands)
    if call.name in _GEMMS:
        return Traits("gemm", names, _gemm_operations(call, operands))
    if call.name in _VIEWS or call.view:
        return Traits("view", names[:1], 0, _moved_axes(call, operands))
    if call.name in _REDUCTIONS:
        return _reduction(call, operands)
    if call.name in _COPIES and not call.casts:
        return Traits("injective", names, 0, ())
    if call.name in _INJECTIVE:
        return Traits("injective", names, 0, _moved_axes(call, operands))
    if (call.pointwise or call.name in _ELEMENTWISE) and _lines_up(call, operands):
        stretched = any(operand.shape != out for operand in operands for out in call.outputs)
        each = _OPERATIONS.get(call.name, 1)
        return Traits("broadcast" if stretched else "elementwise", names, each * prod(call.outputs[0]))
    return Traits("opaque", names, _library_operations(call))


# -- arguments ------------------------------------------------------------------------------------------------


def _operands(call: AtenCall) -> tuple[Operand, ...]:
    """The tensors whose elements are read, in the order that ``GraphOp`` wants: of a GEMM left, right, then the rest."""
    order = _GEMMS.get(call.name) or tuple(call.arguments)
    skipped = _SHAPE_ONLY.get(call.name, "")
    return tuple(
        operand for name in order if name != skipped for operand in operands_in(call.arguments.get(name, None))
    )


def operands_in(value: object) -> Iterator[Operand]:
    """The tensors in an argument: itself, or those in its lists."""
    if isinstance(value, Operand):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from operands_in(item)


def _axes_given(value: object, rank: int) -> tuple[int, ...]:
    """A ``dim`` argument as axes: ``None`` and the empty list mean all."""
    if isinstance(value, int):
        return (value % rank,) if rank else ()
    if isinstance(value, (list, tuple)) and value:
        return tuple(sorted({int(axis) % rank for axis in value}))
    return tuple(range(rank))


def _lines_up(call: AtenCall, operands: Sequence[Operand]) -> bool:
    return bool(call.outputs) and all(broadcasts_to(item.shape, out) for item in operands for out in call.outputs)


# -- kinds ----------------------------------------------------------------------------------------------------


def _reduction(call: AtenCall, operands: Sequence[Operand]) -> Traits:
    first = operands[0]
    axes = _axes_given(call.arguments.get("dim"), len(first.shape))
    kept = prod(extent for axis, extent in enumerate(first.shape) if axis not in axes)
    names = tuple(operand.name for operand in operands)
    if any(prod(out) != kept for out in call.outputs):  # a form of it that is not known here
        return Traits("opaque", names)
    operations = _REDUCTIONS[call.name] * prod(first.shape)
    if not axes:  # of a scalar: nothing is reduced
        return Traits("elementwise", names, operations)
    return Traits("reduction", names, operations, axes)


def _moved_axes(call: AtenCall, operands: Sequence[Operand]) -> tuple[int, ...] | None:
    """The axes of the first operand along which elements move or are left out; ``None`` where that is not known."""
    if not operands or not operands[0].shape:
        return ()
    before, given, name = operands[0].shape, call.arguments, call.name
    rank = len(before)
    if name in _IN_ORDER:
        return ()
    if name in _ALONG_DIM:
        if call.outputs == (before,) and len(operands) == 1 and name not in ("flip", "roll"):
            return ()  # a slice of the whole
        dim = given.get("dim", 0)
        return _axes_given(dim, rank) if isinstance(dim, int) else None
    if name in ("permute", "permute_copy"):
        dims = given["dims"]
        assert isinstance(dims, (list, tuple))
        return tuple(axis for axis, source in enumerate(dims) if int(source) % rank != axis)
    if name in ("transpose", "t"):
        dims = (given.get("dim0", 0), given.get("dim1", rank - 1))
        axes = tuple(sorted({dim % rank for dim in dims if isinstance(dim, int)}))
        return axes if len(axes) == 2 else ()
    return _moved_by_index(call, before)


def _moved_by_index(call: AtenCall, before: Shape) -> tuple[int, ...] | None:
    given, rank = call.arguments, len(before)
    if call.name == "embedding":
        return (0,)
    if call.name == "index":
        indices = given.get("indices")
        listed = list(indices) if isinstance(indices, (list, tuple)) else []
        return tuple(axis for axis, index in enumerate(listed) if index is not None)
    if call.name in ("flip", "roll"):
        return _axes_given(given.get("dims"), rank)
    if call.name == "constant_pad_nd":
        pad = given.get("pad")
        sides = len(pad) // 2 if isinstance(pad, (list, tuple)) else rank
        return tuple(range(rank - sides, rank))
    return None


# -- operations -----------------------------------------------------------------------------------------------


def _gemm_operations(call: AtenCall, operands: Sequence[Operand]) -> int:
    left, right = operands[0].shape, operands[1].shape
    out = prod(call.outputs[0])
    if call.name == "convolution":
        per_filter = prod(right[1:])
        products = prod(left) * per_filter if call.arguments.get("transposed") else out * per_filter
    else:
        products = out * left[-1]
    added = out if len(operands) > 2 else 0
    return 2 * products + added


def _library_operations(call: AtenCall) -> int:
    """Of attention in one library call: two GEMMs and a softmax, masked or not; of others it is not known: 0."""
    if not call.name.startswith("_scaled_dot_product"):
        return 0
    shapes = [next(operands_in(call.arguments[name])).shape for name in ("query", "key", "value")]
    (*batch, queries, dim), (*_, keys, _), (*_, width) = shapes
    scores = prod(batch) * queries * keys
    softmax = 4 + 2 * FUNCTION  # scale, maximum, subtract, sum; exp, divide
    return scores * (2 * dim + 2 * width + softmax)


# -- tables ---------------------------------------------------------------------------------------------------

# GEMM-like operators -> their arguments: left operand, right operand, side inputs.
_GEMMS: Mapping[str, tuple[str, ...]] = {
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "addmm": ("mat1", "mat2", "self"),
    "baddbmm": ("batch1", "batch2", "self"),
    "mv": ("self", "vec"),
    "addmv": ("mat", "vec", "self"),
    "matmul": ("self", "other"),
    "linear": ("input", "weight", "bias"),
    "convolution": ("input", "weight", "bias"),
    "_int_mm": ("self", "mat2"),
    "_scaled_mm": ("self", "mat2", "scale_a", "scale_b", "bias"),
}

# Reductions -> operations an element. Medians, sorts and scans are none of these.
_REDUCTIONS: Mapping[str, int] = {
    **dict.fromkeys(("sum", "mean", "prod", "nansum", "amax", "amin", "max", "min", "aminmax"), 1),
    **dict.fromkeys(("argmax", "argmin", "any", "all", "count_nonzero"), 1),
    **dict.fromkeys(("var", "std", "var_mean", "std_mean"), 4),
    **dict.fromkeys(("linalg_vector_norm", "norm"), 2),
    "logsumexp": 2 + FUNCTION,
}

_VIEWS = frozenset({"_unsafe_view", "_reshape_alias", "lift_fresh"})
_IN_ORDER = frozenset(
    {"view", "_unsafe_view", "reshape", "_reshape_alias", "squeeze", "unsqueeze", "expand", "alias", "detach"}
    | {"lift_fresh", "lift", "view_as", "expand_as", "flatten", "unflatten", "conj", "_conj", "_neg_view"}
)
_ALONG_DIM = frozenset(
    {"slice", "select", "split", "split_with_sizes", "unsafe_split", "chunk", "unbind", "narrow", "cat", "stack"}
    | {"gather", "index_select", "slice_scatter", "select_scatter", "slice_copy", "select_copy", "unfold_copy"}
)
_COPIES = frozenset({"clone", "_to_copy", "lift_fresh_copy", "contiguous"})
_INJECTIVE = frozenset(
    {"cat", "stack", "gather", "index_select", "index", "embedding", "flip", "roll", "repeat", "constant_pad_nd"}
    | {"slice_scatter", "select_scatter", "permute_copy", "slice_copy", "select_copy"}
)

# Elementwise, though PyTorch does not tag them so: fills, casts, random numbers, masks by position.
_ELEMENTWISE = frozenset(
    {"_to_copy", "convert_element_type", "copy", "fill", "full", "full_like", "zeros", "ones", "scalar_tensor"}
    | {"arange", "iota", "eye", "linspace", "new_full", "new_zeros", "new_ones", "zeros_like", "ones_like", "empty"}
    | {"empty_like", "new_empty", "empty_strided", "rand", "rand_like", "randn", "randn_like", "randint", "bernoulli"}
    | {"native_dropout", "tril", "triu", "where", "_assert_async"}
)

# Of these arguments only shape and dtype are used.
_SHAPE_ONLY: Mapping[str, str] = {
    **dict.fromkeys(("copy", "fill", "bernoulli"), "self"),
    **dict.fromkeys(("full_like", "zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"), "self"),
    **dict.fromkeys(("new_full", "new_zeros", "new_ones", "new_empty"), "self"),
}

# Elementwise operators whose operations an element are not 1.
_OPERATIONS: Mapping[str, int] = {
    **dict.fromkeys(_COPIES | {"convert_element_type", "copy", "fill", "full", "full_like", "zeros", "ones"}, 0),
    **dict.fromkeys(("scalar_tensor", "arange", "iota", "eye", "empty", "empty_like", "zeros_like", "ones_like"), 0),
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh"), FUNCTION),
    **dict.fromkeys(("sinh", "cosh", "asin", "acos", "atan", "atan2", "erf", "erfc", "erfinv"), FUNCTION),
    **dict.fromkeys(("div", "reciprocal", "sqrt", "rsqrt", "remainder", "fmod"), FUNCTION),
    "sigmoid": 2 * FUNCTION + 2,
    "gelu": FUNCTION + 4,
    "addcmul": 3,
    "addcdiv": 2 + FUNCTION,
    "clamp": 2,
    "leaky_relu": 2,
    "hardtanh": 2,
    "elu": FUNCTION + 3,
    "softplus": 2 * FUNCTION + 2,
}
