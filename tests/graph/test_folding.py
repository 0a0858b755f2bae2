"""Folding: what repeats is found, and every operator and edge is accounted for exactly once."""

from __future__ import annotations

import random

import pytest
from graph_builders import Builder, chain, llama, random_graph, softmax
from hypothesis import given, settings, strategies as st

from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.picture.folding import FEWEST_COPIES, SHORTEST_RUN, Folding, fold
from lessons_lib.graph.picture.layout import layout_of

pytestmark = pytest.mark.once


def layers(copies: int, *, before: int = 0, after: int = 0, odd: int | None = None, weights: bool = True) -> OpGraph:
    """``copies`` layers of four operators with a residual; layer ``odd`` has another kind in the middle."""
    build = Builder("layers")
    x, mask = build.input("x", 8, 8), build.input("mask", 8, 8)
    for index in range(before):
        x = build.op(f"before{index}", "opaque", [x])
    for layer in range(copies):
        scale = build.input(f"w{layer}", 8, 8) if weights else mask
        first = build.op(f"{layer}.mul", "elementwise", [x, scale])
        second = build.op(f"{layer}.mask", "elementwise", [first, mask])
        third = build.op(f"{layer}.mid", "opaque" if layer == odd else "elementwise", [second])
        x = build.op(f"{layer}.add", "elementwise", [x, third])
    for index in range(after):
        x = build.op(f"after{index}", "opaque", [x])
    return build.graph(x)


def random_layers(seed: int) -> OpGraph:
    """Layers of one random pattern: within a layer, from the one or two before, and from what all share."""
    draw = random.Random(seed)
    build, size = Builder("layers"), draw.randint(3, 5)
    made = [build.input("x", 8, 8), build.op("shared", "opaque", ["x"])]
    kinds = [draw.choice(["elementwise", "opaque"]) for _ in range(size)]
    reach = [
        [draw.randint(1, draw.choice([2, size, 2 * size])) for _ in range(draw.randint(1, 2))] for _ in range(size)
    ]
    shared = [draw.random() < 0.15 for _ in range(size)]
    for layer in range(draw.randint(2, 6)):
        for spot in range(size):
            inputs = [made[max(0, len(made) - back)] for back in reach[spot]] + ["shared"] * shared[spot]
            if draw.random() < 0.02:
                inputs.append("x")
            made.append(build.op(f"{layer}.{spot}", kinds[spot], inputs))
    return build.graph(made[-1], *(["1.0"] if draw.random() < 0.2 else []))


def assert_accounts_for_everything(graph: OpGraph, folding: Folding) -> None:
    ops = [name for shown in folding.shown for name in folding.copies_of(shown)]
    assert sorted(ops) == sorted(graph.launching)
    edges = [index for shown in folding.shown_edges for index in folding.copies_of_edge(shown)]
    assert sorted(edges) == list(range(len(graph.edges)))


def test_without_repeats_everything_is_shown() -> None:
    graph = softmax(8, 8)
    folding = fold(graph)
    assert folding.shown == graph.launching
    assert folding.repeats == ()
    assert folding.shown_edges == tuple(range(len(graph.edges)))
    assert folding.copies_of("exp") == ("exp",)
    assert folding.copies_of_edge(0) == (0,)


@pytest.mark.parametrize("copies", [3, 4, 17])
def test_layers_fold_into_one(copies: int) -> None:
    folding = fold(layers(copies))
    assert [len(repeat.copies) for repeat in folding.repeats] == [copies]
    assert folding.repeats[0].first == ("0.mul", "0.mask", "0.mid", "0.add")
    assert folding.shown == folding.repeats[0].first
    assert folding.copies_of("0.mid") == tuple(f"{layer}.mid" for layer in range(copies))
    assert folding.copies_of("1.mid") == folding.copies_of("0.mid")


def test_two_layers_are_too_few() -> None:
    assert fold(layers(FEWEST_COPIES - 1)).repeats == ()


def test_a_chain_of_equal_operators_stays_as_it_is() -> None:
    assert fold(chain(12, 100)).repeats == ()


def test_operators_around_the_layers_stay_shown() -> None:
    folding = fold(layers(5, before=2, after=3))
    assert folding.shown[:2] == ("before0", "before1")
    assert folding.shown[-3:] == ("after0", "after1", "after2")
    assert len(folding.shown) == 2 + 4 + 3


def test_edges_within_between_and_around_the_layers_are_told_apart() -> None:
    graph = layers(4, before=1, after=1)
    folding = fold(graph)
    copies = {
        (graph.edges[index].producer, graph.edges[index].consumer): len(folding.copies_of_edge(index))
        for index in folding.shown_edges
    }
    assert copies == {
        ("before0", "0.mul"): 1,
        ("before0", "0.add"): 1,
        ("0.mul", "0.mask"): 4,
        ("0.mask", "0.mid"): 4,
        ("0.mid", "0.add"): 4,
        ("0.add", "1.mul"): 3,
        ("0.add", "1.add"): 3,
        ("3.add", "after0"): 1,
    }


def test_a_tensor_that_every_layer_reads_has_one_edge() -> None:
    build = Builder("shared")
    x = build.input("x", 8, 8)
    shared = build.op("shared", "opaque", [build.input("s", 8, 8)])
    for layer in range(3):
        a = build.op(f"{layer}.a", "elementwise", [x, shared])
        b = build.op(f"{layer}.b", "opaque", [a])
        x = build.op(f"{layer}.c", "elementwise", [b])
    graph = build.graph(x)
    folding = fold(graph)
    assert folding.shown == ("shared", "0.a", "0.b", "0.c")
    shared_edges = [i for i in folding.shown_edges if graph.edges[i].producer == "shared"]
    assert [graph.edges[i].consumer for i in shared_edges] == ["0.a"]
    readers = [graph.edges[i].consumer for i in folding.copies_of_edge(shared_edges[0])]
    assert readers == ["0.a", "1.a", "2.a"]


def test_a_layer_of_another_kind_breaks_the_run() -> None:
    folding = fold(layers(9, odd=4))
    assert [[copy[0] for copy in repeat.copies] for repeat in folding.repeats] == [
        ["0.mul", "1.mul", "2.mul", "3.mul"],
        ["5.mul", "6.mul", "7.mul", "8.mul"],
    ]
    assert "4.mid" in folding.shown


def test_layers_wired_differently_are_not_alike() -> None:
    """Same kinds and shapes, but the residual of every other layer comes from elsewhere."""
    build = Builder("wiring")
    x = build.input("x", 8, 8)
    for layer in range(6):
        a = build.op(f"{layer}.a", "elementwise", [x])
        b = build.op(f"{layer}.b", "elementwise", [a])
        c = build.op(f"{layer}.c", "elementwise", [b])
        x = build.op(f"{layer}.d", "elementwise", [c, x if layer % 2 else a])
    folding = fold(build.graph(x))
    assert [len(repeat.first) for repeat in folding.repeats] == [8]
    assert [len(repeat.copies) for repeat in folding.repeats] == [3]


def test_what_a_middle_layer_keeps_unlike_the_others_ends_the_run() -> None:
    build = Builder("kept")
    x = build.input("x", 8, 8)
    for layer in range(6):
        a = build.op(f"{layer}.a", "opaque", [x])
        b = build.op(f"{layer}.b", "elementwise", [a])
        x = build.op(f"{layer}.c", "reduction", [b], (8, 1), axes=(1,))
        x = build.op(f"{layer}.d", "broadcast", [a, x])
    folding = fold(build.graph(x, "3.b"))
    shown = {name for repeat in folding.repeats for name in repeat.copies[-1]}
    assert "3.b" in shown  # a last copy may differ in what it keeps, one in the middle may not
    assert_accounts_for_everything(build.graph(x, "3.b"), folding)


def test_values_that_skip_a_copy_are_not_folded() -> None:
    build = Builder("skip")
    x = [build.input(f"x{index}", 8, 8) for index in range(4)]
    for layer in range(8):
        a = build.op(f"{layer}.a", "elementwise", [x[-1], x[-4]])
        b = build.op(f"{layer}.b", "opaque", [a])
        x.append(build.op(f"{layer}.c", "elementwise", [b]))
    assert fold(build.graph(x[-1])).repeats == ()


def test_copies_fed_from_elsewhere_one_by_one_are_not_folded() -> None:
    build = Builder("rows")
    x = build.input("x", 8, 8)
    for row in range(2):
        for column in range(4):
            feed = [x] if row == 0 else [x, f"0.{column}.c"]
            build.op(f"{row}.{column}.a", "elementwise", feed)
            build.op(f"{row}.{column}.b", "opaque", [f"{row}.{column}.a"])
            x = build.op(f"{row}.{column}.c", "elementwise", [f"{row}.{column}.b"])
    graph = build.graph(x)
    assert_accounts_for_everything(graph, fold(graph))
    assert fold(graph).repeats == ()


def test_a_transformer_folds_into_one_layer() -> None:
    graph = llama(32)
    folding = fold(graph)
    assert [(len(r.first), len(r.copies)) for r in folding.repeats] == [(len(graph.launching) // 32, 32)]
    assert_accounts_for_everything(graph, folding)
    between = [i for i in folding.shown_edges if graph.edges[i].consumer not in folding.shown]
    assert {graph.edges[i].consumer for i in between} == {"l1.norm1.cast", "l1.add1"}


def test_folding_is_remembered_with_the_graph() -> None:
    graph = layers(3)
    assert fold(graph) is fold(graph)


def test_labels_that_differ_are_not_alike() -> None:
    graph = layers(4)
    renamed = OpGraph(
        graph.name,
        tuple(
            op
            if not op.name.endswith("mid")
            else type(op)(op.name, op.kind, op.inputs, op.outputs, label=f"f{i % 3}")
            for i, op in enumerate(graph.ops)
        ),
        graph.tensors,
        graph.inputs,
        graph.outputs,
    )
    assert fold(renamed).repeats == ()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_random_graphs_are_accounted_for(seed: int, count: int) -> None:
    graph = random_graph(seed, count)
    assert_accounts_for_everything(graph, fold(graph))


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6))
def test_layers_wired_at_random_are_accounted_for_and_can_be_drawn(seed: int) -> None:
    graph = random_layers(seed)
    folding = fold(graph)
    assert_accounts_for_everything(graph, folding)
    layout = layout_of(graph, folding)
    assert set(layout.edges) == set(folding.shown_edges)
    for index in folding.shown_edges:
        edge = graph.edges[index]
        assert folding.copies_of(edge.producer)[0] in layout.ops
        assert edge.consumer in layout.ops or edge.consumer in layout.nexts


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 9), st.integers(0, 3), st.integers(0, 3), st.booleans(), st.integers(0, 12))
def test_copies_are_runs_in_order_and_alike(copies: int, before: int, after: int, weights: bool, odd: int) -> None:
    if copies + before + after == 0:
        return
    graph = layers(copies, before=before, after=after, odd=odd, weights=weights)
    folding = fold(graph)
    assert_accounts_for_everything(graph, folding)
    for repeat in folding.repeats:
        assert len(repeat.copies) >= FEWEST_COPIES
        assert len(repeat.first) >= SHORTEST_RUN
        run = [name for copy in repeat.copies for name in copy]
        start = graph.launching.index(run[0])
        assert list(graph.launching[start : start + len(run)]) == run
        for names in zip(*repeat.copies, strict=True):
            assert len({graph.op(name).kind for name in names}) == 1
            assert len({graph.tensor(graph.op(name).outputs[0]).shape for name in names}) == 1
