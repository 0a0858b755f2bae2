"""Recompute as a change of the graph: the same results, one copy a reader, and the bytes of checkpoint 7."""

from __future__ import annotations

import re

import pytest
from graph_builders import Builder, chain, fan_out, gemm_bias_gelu, random_graph, recomputable, softmax
from hypothesis import given, settings, strategies as st

from lessons_lib.base.gpus import A100
from lessons_lib.base.units import MIB
from lessons_lib.graph.grouping import check, cost, grouping_of
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.recompute import readers_of, recomputed, refusal
from lessons_lib.graph.recorded import recorded_block

T = 64 * MIB


class Meanings:
    """Gives each formula over graph inputs a number: equal for equal formulas, of whatever graph."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}

    def of(self, graph: OpGraph) -> dict[str, int]:
        """Tensor -> what it is."""
        found = {name: self._number(("input", name)) for name in graph.inputs}
        for name in graph.order:
            op = graph.op(name)
            inputs = tuple(found[tensor] for tensor in op.inputs)
            for place, out in enumerate(op.outputs):
                found[out] = self._number((op.label, op.kind, op.axes, place, inputs))
        return found

    def _number(self, formula: object) -> int:
        return self.numbers.setdefault(formula, len(self.numbers))


def assert_same_results(graph: OpGraph, other: OpGraph) -> None:
    meanings = Meanings()
    one, two = meanings.of(graph), meanings.of(other)
    assert graph.outputs == other.outputs
    assert [one[name] for name in graph.outputs] == [two[name] for name in other.outputs]
    assert set(one.values()) >= set(two.values())


def test_checkpoint_7_recompute_moves_256_mib() -> None:
    graph = recomputed(fan_out(T), "f")
    assert set(graph.launching) == {"f", "f·2", "g", "h"}
    grouping = grouping_of(graph, [["f", "g"], ["f·2", "h"]])
    assert check(graph, grouping, A100) == ()
    spent = cost(graph, grouping, A100)
    assert (spent.launches, spent.read_bytes, spent.write_bytes) == (2, 2 * T, 2 * T)


def test_each_reader_gets_a_copy_and_no_copy_has_two_readers() -> None:
    build = Builder()
    build.op("f", "elementwise", [build.input("x", 8)])
    for name in "ghk":
        build.op(name, "elementwise", ["f"])
    graph = recomputed(build.graph("g", "h", "k"), "f")
    assert [readers_of(graph, name) for name in ("f", "f·2", "f·3")] == [("g",), ("h",), ("k",)]


def test_views_between_the_operator_and_a_reader_are_copied_along() -> None:
    build = Builder()
    build.op("f", "elementwise", [build.input("x", 4, 8)])
    build.op("turned", "view", ["f"], (8, 4), axes=(0, 1))
    build.op("flat", "view", ["turned"], (32,), axes=())
    build.op("g", "elementwise", ["f"])
    build.op("h", "elementwise", ["flat"])
    build.op("k", "elementwise", ["turned"])
    before = build.graph("g", "h", "k")
    graph = recomputed(before, "f")
    assert_same_results(before, graph)
    assert {op.name for op in graph.ops if op.kind == "view"} == {"turned·2", "flat·2", "turned·3"}
    assert [graph.root_of(graph.op(name).inputs[0]) for name in "ghk"] == ["f", "f·2", "f·3"]


def test_a_name_that_is_taken_is_not_given_again() -> None:
    build = Builder()
    build.op("f", "elementwise", [build.input("f·2", 8)])
    build.op("g", "elementwise", ["f"])
    build.op("h", "elementwise", ["f", "f·2"])
    graph = recomputed(build.graph("g", "h"), "f")
    assert readers_of(graph, "f·3") == ("h",)


def test_copies_of_a_part_of_an_eager_operator_are_no_part_of_it() -> None:
    build = Builder()
    build.op("f", "elementwise", [build.input("x", 8)], eager="e")
    build.op("g", "elementwise", ["f"], eager="e")
    build.op("h", "elementwise", ["f"])
    graph = recomputed(build.graph("g", "h"), "f")
    assert [graph.op(name).eager for name in ("f", "f·2")] == ["e", "e·2"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_every_output_stays_the_same_formula(seed: int, count: int) -> None:
    graph = random_graph(seed, count)
    for op in recomputable(graph, graph.launching):
        copied = recomputed(graph, op)
        assert_same_results(graph, copied)
        assert all(len(readers_of(copied, name)) == 1 for name in copied.launching if name.startswith(f"{op}·"))
        assert len(copied.launching) == len(graph.launching) + len(readers_of(graph, op)) - 1
        assert refusal(copied, op) is not None  # one reader is left


def test_it_can_be_done_again_further_up() -> None:
    build = Builder()
    build.op("e", "elementwise", [build.input("x", 8)])
    build.op("f", "elementwise", ["e"])
    build.op("g", "elementwise", ["f"])
    build.op("h", "elementwise", ["f"])
    before = build.graph("g", "h")
    graph = recomputed(recomputed(before, "f"), "e")
    assert set(graph.launching) == {"e", "e·2", "f", "f·2", "g", "h"}
    assert_same_results(before, graph)


@pytest.mark.parametrize(
    ("graph", "op", "zh", "en"),
    [
        (softmax(64, 64), "sum", "不是逐元素", "is not elementwise"),
        (gemm_bias_gelu(64, 64, 64), "gemm", "不是逐元素", "is not elementwise"),
        (fan_out(T), "g", "图的输出", "an output of the graph"),
        (chain(3, T), "f0", "只有一处使用", "has one reader"),
        (fan_out(T), "none", "没有算子", "no operator"),
    ],
)
def test_what_cannot_be_recomputed_is_refused_in_both_languages(graph: OpGraph, op: str, zh: str, en: str) -> None:
    with pytest.raises(ValueError, match=re.escape(zh)) as refused:
        recomputed(graph, op)
    assert en in str(refused.value)


def test_a_view_and_a_kept_view_are_refused() -> None:
    build = Builder()
    build.op("f", "elementwise", [build.input("x", 4, 8)])
    build.op("turned", "view", ["f"], (8, 4), axes=(0, 1))
    build.op("g", "elementwise", ["f"])
    build.op("h", "elementwise", ["turned"])
    graph = build.graph("g", "h", "turned")
    for op in ("turned", "f"):
        with pytest.raises(ValueError, match=op):
            recomputed(graph, op)


def test_it_works_on_recorded_blocks() -> None:
    graph = recorded_block("swiglu_mlp").core
    (op,) = recomputable(graph, graph.launching)
    assert op == "_to_copy"
    assert_same_results(graph, recomputed(graph, op))
