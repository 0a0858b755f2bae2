"""Graphs of operators: what is refused and how it is said, views looked through, JSON there and back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from graph_builders import Builder, attention, chain, llama, random_graph, softmax
from hypothesis import given, strategies as st

from lessons_lib.graph.opgraph import KIND_NAMES, KINDS, GraphEdge, GraphOp, GraphTensor, OpGraph, tensor_of

X, Y = tensor_of("x", (4, 8)), tensor_of("y", (4, 8))


def graph(*ops: GraphOp, tensors: tuple[GraphTensor, ...] = (X, Y), outputs: tuple[str, ...] = ("y",)) -> OpGraph:
    return OpGraph("g", ops, tensors, ("x",), outputs)


def relu(name: str = "relu", x: str = "x", y: str = "y") -> GraphOp:
    return GraphOp(name, "elementwise", (x,), (y,))


# -- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": " "}, "name"),
        ({"kind": "magic"}, "relu.kind"),
        ({"inputs": "x"}, "relu.inputs"),
        ({"inputs": (1,)}, "relu.inputs[0]"),
        ({"outputs": ()}, "relu.outputs"),
        ({"operations": -1}, "relu.operations"),
        ({"operations": True}, "relu.operations"),
        ({"row_bytes": 1.5}, "relu.row_bytes"),
        ({"label": 3}, "relu.label"),
        ({"axes": (1.0,)}, "relu.axes[0]"),
    ],
)
def test_an_operators_bad_field_is_named_in_both_languages(fields: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"name": "relu", "kind": "elementwise", "inputs": ("x",), "outputs": ("y",)}
    with pytest.raises(ValueError, match=rf"(?s)^参数 {re.escape(said)} .*\n{re.escape(said)} "):
        GraphOp(**{**good, **fields})


@pytest.mark.parametrize(
    "fields", [("", (1,), "float32", 4), ("x", (-1,), "float32", 4), ("x", 4, "float32", 4), ("x", (1,), "", 4)]
)
def test_a_tensors_bad_field_is_refused(fields: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"(?s)参数 .*\n"):
        GraphTensor(*fields)


def test_a_tensor_knows_its_bytes_from_its_dtype() -> None:
    assert (tensor_of("x", (3, 5), "bfloat16").bytes, tensor_of("s", (), "int64").bytes) == (30, 8)
    with pytest.raises(ValueError, match="dtype"):
        tensor_of("x", (3,), "float31")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: graph(), "at least one operator"),
        (lambda: graph(relu(), relu()), "'relu' appears twice"),
        (lambda: graph(relu(), tensors=(X, Y, X)), "'x' appears twice"),
        (lambda: graph(relu(), relu("again")), "'relu' and 'again' both make tensor 'y'"),
        (lambda: graph(relu("relu", "x", "x")), "'x' is made by operator 'relu'"),
        (lambda: graph(relu(), outputs=("z",)), "tensor 'z' of 'outputs' is missing"),
        (lambda: graph(relu("relu", "z")), "tensor 'z' of 'relu' is missing"),
        (lambda: OpGraph("g", (relu(),), (X, Y), (), ("y",)), "tensor 'x' of 'relu' is no input of the graph"),
        (lambda: OpGraph("g", ("relu",), (X, Y), ("x",), ("y",)), "must be a GraphOp, got 'relu'"),  # type: ignore[arg-type]
    ],
)
def test_a_graph_that_does_not_hang_together_is_refused(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        make()


def test_a_cycle_is_named_operator_by_operator() -> None:
    tensors = tuple(tensor_of(name, (2,)) for name in ("x", "a", "b", "c", "d"))
    ops = (
        GraphOp("f", "elementwise", ("x", "c"), ("a",)),
        GraphOp("g", "elementwise", ("a",), ("b",)),
        GraphOp("h", "elementwise", ("b",), ("c",)),
        GraphOp("after", "elementwise", ("c",), ("d",)),
    )
    with pytest.raises(ValueError, match=r"the operators form a cycle: (f → g → h → f|g → h → f → g|h → f → g → h)"):
        OpGraph("g", ops, tensors, ("x",), ("d",))


@pytest.mark.parametrize(
    ("op", "tensors", "said"),
    [
        (GraphOp("f", "elementwise", ("x",), ("y",)), (X, tensor_of("y", (4, 1))), "(4, 8) does not broadcast"),
        (GraphOp("f", "view", ("x", "x"), ("y",)), (X, Y), "exactly 1"),
        (GraphOp("f", "gemm", ("x",), ("y",)), (X, Y), "at least 2"),
        (
            GraphOp("f", "reduction", ("x",), ("y",)),
            (tensor_of("x", (4, 4)), tensor_of("y", (4,))),
            "state them as axes",
        ),
        (GraphOp("f", "reduction", ("x",), ("y",), axes=(0,)), (X, tensor_of("y", (4,))), "8 elements are left"),
        (GraphOp("f", "injective", ("x",), ("y",), axes=(2,)), (X, Y), "2 axes"),
    ],
)
def test_shapes_must_fit_the_kind(op: GraphOp, tensors: tuple[GraphTensor, ...], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        graph(op, tensors=tensors)


def test_every_kind_has_a_name_in_both_languages() -> None:
    assert set(KIND_NAMES) == set(KINDS)


# -- looking things up ----------------------------------------------------------------------------------------


def test_order_follows_needs_and_otherwise_the_order_given() -> None:
    tensors = tuple(tensor_of(name, (2,)) for name in "xabcd")
    ops = (
        GraphOp("last", "elementwise", ("c", "b"), ("d",)),
        GraphOp("one", "elementwise", ("x",), ("b",)),
        GraphOp("two", "elementwise", ("x",), ("a",)),
        GraphOp("three", "elementwise", ("a",), ("c",)),
    )
    found = OpGraph("g", ops, tensors, ("x",), ("d",))
    assert found.order == ("one", "two", "three", "last")
    assert found.producers["c"] == "three"
    assert found.consumers["x"] == ("one", "two")
    with pytest.raises(ValueError, match=r"图中没有算子 'four'(?s:.)*has no operator 'four'"):
        found.op("four")
    with pytest.raises(ValueError, match="no tensor 'z'"):
        found.tensor("z")


def test_views_launch_nothing_and_are_looked_through() -> None:
    build = Builder()
    build.input("x", 4, 8)
    build.op("relu", "elementwise", ["x"])
    build.op("turned", "view", ["relu"], (8, 4), axes=(0, 1))
    build.op("half", "view", ["turned"], (4, 4), axes=(0,))
    build.op("neg", "elementwise", ["half"])
    found = build.graph("neg", "turned")
    assert found.launching == ("relu", "neg")
    assert found.edges == (GraphEdge("relu", "neg", "relu", 64),)  # half of 128
    assert found.root_of("half") == "relu"
    assert found.wiring.kept[found.wiring.tensor_names.index("relu")]


def test_an_embedding_reads_only_what_it_looks_up() -> None:
    build = Builder()
    build.input("table", 1000, 8)
    build.input("ids", 4, 1)
    build.op("embed", "injective", ["table", "ids"], (4, 8))
    found = build.graph("embed")
    reads = {found.wiring.tensor_names[root]: size for root, size in found.wiring.read_bytes([0], ()).items()}
    assert reads == {"table": 4 * 8 * 4, "ids": 16}


def test_a_row_is_what_one_result_of_a_reduction_needs() -> None:
    found = softmax(16, 4096)
    assert found.row_bytes_of(found.op("max")) == 16384
    assert found.reduced_axes_of(found.op("max")) == (1,)
    stated = GraphOp("r", "reduction", ("x",), ("y",), row_bytes=7, axes=(-1,))
    both = OpGraph("g", (stated,), (X, tensor_of("y", (4,))), ("x",), ("y",))
    assert (both.row_bytes_of(stated), both.reduced_axes_of(stated)) == (7, (1,))


# -- JSON -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [chain(3, 64), softmax(4, 8), attention(8, 4, batch=(2,)), llama(2)])
def test_json_there_and_back(case: OpGraph) -> None:
    again = OpGraph.from_json(case.to_json())
    assert again == case
    assert again.to_json() == case.to_json()


@given(st.integers(0, 10**6))
def test_json_there_and_back_for_any_graph(seed: int) -> None:
    case = random_graph(seed, 6)
    assert OpGraph.from_json(case.to_json()) == case


def test_names_survive_json_whatever_they_hold() -> None:
    name = '<img src=x onerror=alert(1)> "算子" \\ \u2028 {a}'
    case = OpGraph(name, (GraphOp(name, "elementwise", ("x",), ("y",), label=name),), (X, Y), ("x",), ("y",))
    assert OpGraph.from_json(case.to_json()).op(name).label == name


GOOD = json.loads(chain(2, 64).to_json())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "NaN",
        '{"format": "something else"}',
        "[" * 100_000,
        "9" * 10_000,
        json.dumps({**GOOD, "ops": {}}),
        json.dumps({**GOOD, "ops": [1]}),
        json.dumps({**GOOD, "ops": [{**GOOD["ops"][0], "evil": 1}]}),
        json.dumps({**GOOD, "ops": [{"name": "f"}]}),
        json.dumps({**GOOD, "ops": [{**GOOD["ops"][0], "inputs": ["nowhere"]}]}),
        json.dumps({**GOOD, "ops": [{**GOOD["ops"][0], "kind": []}]}),
        json.dumps({**GOOD, "ops": []}),
        json.dumps({**GOOD, "name": None}),
        json.dumps({**GOOD, "name": {}}),
        json.dumps({**GOOD, "inputs": "x"}),
        json.dumps({**GOOD, "outputs": [None]}),
        json.dumps({**GOOD, "tensors": [{**GOOD["tensors"][0], "bytes": -1}, *GOOD["tensors"][1:]]}),
        json.dumps({**GOOD, "tensors": [{**GOOD["tensors"][0], "bytes": 1e400}, *GOOD["tensors"][1:]]}),
        json.dumps({**GOOD, "tensors": [{**GOOD["tensors"][0], "shape": [[1]]}, *GOOD["tensors"][1:]]}),
        json.dumps({key: value for key, value in GOOD.items() if key != "tensors"}),
    ],
)
def test_hostile_json_is_refused_in_both_languages(text: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)^参数 .+。\n.+ (is not valid|must|has the wrong type)"):
        OpGraph.from_json(text)


@pytest.mark.parametrize("given_", [None, 3, b"{}", GOOD])
def test_only_a_string_is_json(given_: Any) -> None:
    with pytest.raises(ValueError, match="it must be a string of JSON"):
        OpGraph.from_json(given_)
