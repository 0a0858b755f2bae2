"""Explanations: what is said about two operators, in both languages, with the numbers that ``cost`` gives."""

from __future__ import annotations

from itertools import combinations

import pytest
from graph_builders import Builder, attention, chain, fan_out, llama, random_graph, rmsnorm, softmax
from hypothesis import given, settings, strategies as st

from lessons_lib.base.gpus import A100
from lessons_lib.base.units import MIB, format_bytes
from lessons_lib.graph.explain import explain
from lessons_lib.graph.grouping import Grouping, check, cost, cut, fuse, greedy, grouping_of, unfused
from lessons_lib.graph.opgraph import OpGraph

T = 64 * MIB


def said(graph: OpGraph, a: str, b: str, grouping: Grouping) -> str:
    return "\n".join(text.en for text in explain(graph, a, b, grouping, A100))


def test_one_kernel_says_what_stays_on_chip_and_what_a_cut_would_cost() -> None:
    graph = chain(4, T)
    text = said(graph, "f2", "f1", greedy(graph, A100))
    assert "f1 and f2 are in one kernel: number 1, of 4 operators." in text
    assert "neither written nor read back: f1 (64 MiB)" in text
    assert (
        "If it were cut before f2: the traffic grows from 128 MiB to 256 MiB (128 MiB more), 1 more launch." in text
    )


def test_two_kernels_say_what_merging_them_would_save() -> None:
    graph = chain(3, T)
    text = said(graph, "f0", "f1", unfused(graph))
    assert "f0 is in kernel 1, f1 in kernel 2." in text
    assert "f0 writes f0 (64 MiB) to device memory, and f1 reads it back." in text
    assert "would be legal: the traffic falls from 384 MiB to 256 MiB (128 MiB less), 1 fewer launch." in text


def test_a_cycle_names_what_lies_between_and_what_merging_that_too_would_save() -> None:
    graph = chain(4, T)
    text = said(graph, "f0", "f3", unfused(graph))
    assert "goes through f1 → f2" in text
    assert "share no tensor" not in text  # an echo of the cycle
    assert (
        "(f1, f2) it would be legal: the traffic falls from 512 MiB to 128 MiB (384 MiB less), 3 fewer launches"
        in text
    )


def test_a_kept_intermediate_is_written_once_and_not_read_back() -> None:
    graph = rmsnorm(4096, 4096, residual=True, keep_sum=True)
    text = said(graph, "add", "scale", greedy(graph, A100))
    assert "Of that, add (32 MiB) is needed outside and written once." in text


def test_siblings_share_what_they_read() -> None:
    graph = fan_out(T)
    assert "both use f (64 MiB): it is made on chip" in said(graph, "g", "h", greedy(graph, A100))
    assert "one kernel reads it once" in said(graph, "g", "h", grouping_of(graph, [["g", "h"]]))
    assert "Each of the two kernels reads f (64 MiB)" in said(graph, "g", "h", unfused(graph))


def test_operators_that_only_others_connect() -> None:
    build = Builder()
    for name in "xy":
        build.input(name, 8)
        build.op(f"f{name}", "elementwise", [name])
    build.op("add", "elementwise", ["fx", "fy"])
    graph = build.graph("add")
    assert "other operators of the kernel connect them" in said(graph, "fx", "fy", greedy(graph, A100))
    text = said(graph, "fx", "fy", unfused(graph))
    assert "share no tensor, and neither needs the other" in text


def test_a_row_that_does_not_fit_is_told_with_what_several_passes_would_do() -> None:
    graph = softmax(64, 2**18)
    text = said(graph, "max", "sub", greedy(graph, A100))
    assert "One row of max is 1 MiB, and a thread block of A100 (40 GB) can keep 163 KiB on chip" in text
    assert "With several passes" in text
    whole = grouping_of(graph, [graph.launching])
    assert "This kernel breaks a rule, though: One row of max" in said(graph, "max", "sub", whole)


def test_a_gemm_and_a_reduction_and_what_could_move_instead() -> None:
    graph = attention(2048, 64)
    text = said(graph, "scale", "max", greedy(graph, A100))
    assert "a row is spread over many tiles" in text
    assert "Moving scale alone to kernel 2 would be legal: the traffic stays at 33 MiB, as many launches." in text
    text = said(graph, "div", "pv", greedy(graph, A100))
    assert "Moving div alone to kernel 3 would be legal" in text
    assert "a prologue" in text  # and only a template makes that


def test_attention_in_one_kernel_is_marked() -> None:
    graph = attention(2048, 64)
    assert "by hand, or matched as a pattern" in said(graph, "qk", "pv", grouping_of(graph, [graph.launching]))


def test_two_that_never_go_together_are_told_so() -> None:
    build = Builder()
    build.input("x", 8, 8)
    build.op("rows", "reduction", ["x"], (8, 1))
    build.op("columns", "reduction", ["x"], (1, 8))
    build.op("sort", "opaque", ["x"])
    graph = build.graph("rows", "columns", "sort")
    for pair in combinations(("rows", "columns", "sort"), 2):
        assert "no other grouping changes that" in said(graph, *pair, unfused(graph))
    assert "reduces axes (1,) of (8, 8)" in said(graph, "rows", "columns", unfused(graph))


def test_a_small_difference_is_not_lost_in_rounding() -> None:
    graph = softmax(64, 2**18)
    text = said(graph, "max", "sub", grouping_of(graph, [graph.launching]))
    assert "the traffic grows by 512 B, from 256 MiB, 1 more launch" in text


@pytest.mark.parametrize(
    ("a", "b", "named"),
    [("f0", "nope", "op"), ("f0", "f0", "b"), ("f0", "v", "b"), ("v", "f0", "a"), (3, "f0", "op")],
)
def test_a_question_about_nothing_is_refused_in_both_languages(a: str, b: str, named: str) -> None:
    build = Builder()
    build.op("f0", "elementwise", [build.input("x", 8)])
    build.op("v", "view", ["f0"], (2, 4), axes=())
    graph = build.graph("v")
    with pytest.raises(ValueError, match=rf"(?s)^参数 {named} .*\n{named} "):
        explain(graph, a, b, unfused(graph), A100)


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.integers(2, 8), st.data())
def test_every_pair_gets_an_answer_with_the_right_numbers(seed: int, count: int, data: st.DataObject) -> None:
    graph = random_graph(seed, count)
    grouping = data.draw(st.sampled_from([unfused(graph), greedy(graph, A100)]))
    a, b = data.draw(st.sampled_from(list(combinations(graph.launching, 2))))
    text = said(graph, a, b, grouping)
    together = grouping.index_of(a) == grouping.index_of(b)
    other = cut(graph, grouping, a, b) if together else fuse(graph, grouping, a, b)
    legal = not check(graph, other, A100)
    assert ("are in one kernel: number" in text) == together
    assert ("One kernel for both would be legal" in text) == (legal and not together)
    if together or legal:
        moved = cost(graph, other, A100).total_bytes - cost(graph, grouping, A100).total_bytes
        assert format_bytes(abs(moved)) in text if moved else "the traffic stays" in text
    for words in explain(graph, a, b, grouping, A100):
        assert "{" not in words.en + words.zh
        assert any("\u4e00" <= letter <= "\u9fff" for letter in words.zh)


def test_a_layer_of_a_model_is_explained_edge_by_edge() -> None:
    graph = llama(1)
    grouping = greedy(graph, A100)
    for edge in graph.edges:
        assert len(explain(graph, edge.producer, edge.consumer, grouping, A100)) >= 3


@pytest.mark.parametrize("wrong", [None, "unfused", [["f0"]]])
def test_what_is_no_grouping_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"参数 grouping.*\ngrouping is not valid"):
        explain(chain(3, T), "f0", "f1", wrong, A100)  # type: ignore[arg-type]
