"""The bench behind the canvas: presses, refusals in words, undo, and that no press leaves an illegal state."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial

import pytest
from graph_builders import (
    Builder,
    attention,
    chain,
    fan_out,
    gemm_bias_gelu,
    llama,
    random_graph,
    recomputable,
    rmsnorm,
    softmax,
)
from hypothesis import given, settings, strategies as st

from lessons_lib.base.gpus import A100, T4
from lessons_lib.base.units import MIB, format_bytes
from lessons_lib.graph import workbench
from lessons_lib.graph.grouping import RULE_NAMES, check, cost, eager, greedy, grouping_of, unfused
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.planning.planner import best_grouping
from lessons_lib.graph.recorded import recorded_block
from lessons_lib.graph.workbench import VIEWS, Workbench

pytestmark = pytest.mark.once

T = 64 * MIB


def bench_of(name: str, **options: bool) -> Workbench:
    block = recorded_block(name)
    return Workbench(block.core, block.gpu, compiler=block.compiler.grouping, **options)


def edge(bench: Workbench, producer: str, consumer: str) -> int:
    return next(i for i, e in enumerate(bench.graph.edges) if (e.producer, e.consumer) == (producer, consumer))


# -- a press --------------------------------------------------------------------------------------------------


def test_it_starts_with_a_kernel_for_each_operator_and_says_what_that_moves() -> None:
    bench = Workbench(chain(4, T), A100)
    assert bench.grouping == unfused(bench.graph)
    assert "4 launches, 512 MiB read and written" in bench.message.en
    assert "4 次启动，读写 512 MiB" in bench.message.zh
    assert (bench.moves, bench.can_undo, bench.problems, bench.marks) == (0, False, (), ())


def test_a_press_fuses_and_says_what_it_saved_and_the_next_one_cuts_and_says_what_that_costs() -> None:
    bench = Workbench(chain(3, T), A100)
    assert bench.press_edge(0)
    assert bench.grouping.groups == (("f0", "f1"), ("f2",))
    assert "Fused f0 and f1: the traffic falls from 384 MiB to 256 MiB (128 MiB less), 1 fewer launch." in (
        bench.message.en
    )
    assert "读写量从 384 MiB 减少到 256 MiB（少 128 MiB），少 1 次启动" in bench.message.zh
    assert bench.press_edge(0)
    assert bench.grouping == unfused(bench.graph)
    assert "Cut before f1: the traffic grows from 256 MiB to 384 MiB (128 MiB more), 1 more launch." in (
        bench.message.en
    )
    assert bench.moves == 2


def bypass() -> OpGraph:
    """f feeds g and h, and g feeds h."""
    build = Builder()
    build.input("x", 8, 8)
    for name, inputs in (("f", ["x"]), ("g", ["f"]), ("h", ["f", "g"])):
        build.op(name, "elementwise", inputs)
    return build.graph("h")


def test_an_illegal_press_names_the_rule_and_changes_nothing() -> None:
    bench = bench_of("attention_2d")
    before = bench.grouping
    index = next(i for i, e in enumerate(bench.graph.edges) if {e.producer, e.consumer} == {"mm", "div"})
    bench.press_edge(index)
    reduction = next(name for name in bench.graph.launching if bench.graph.op(name).kind == "reduction")
    grouping, moves = bench.grouping, bench.moves
    assert not bench.press_pair("mm", reduction)
    assert (bench.grouping, bench.moves) == (grouping, moves) != (before, 0)
    assert "Not legal, so nothing changed." in bench.message.en
    assert "不合法，什么都没有改。" in bench.message.zh


def test_a_refusal_says_what_would_be_legal_instead() -> None:
    bench = Workbench(bypass(), A100)
    assert not bench.press_edge(edge(bench, "f", "h"))
    assert f"[{RULE_NAMES['cycle'].en}]" in bench.message.en
    assert "With what lies between in the kernel as well (g) it would be legal" in bench.message.en
    assert f"【{RULE_NAMES['cycle'].zh}】" in bench.message.zh


def test_two_chosen_operators_take_along_what_lies_between() -> None:
    bench = Workbench(chain(4, T), A100)
    assert bench.press_pair("f3", "f0")
    assert bench.grouping == grouping_of(bench.graph, [bench.graph.launching])
    assert "Fused f3, f0 and what lies between them" in bench.message.en
    assert bench.undo() and bench.grouping == unfused(bench.graph)


def test_attention_is_one_kernel_by_one_pair_and_by_no_edge() -> None:
    bench = bench_of("attention_2d")
    last = [name for name in bench.graph.launching if bench.graph.op(name).kind == "gemm"][-1]
    assert bench.press_pair("mm", last)
    assert len(bench.grouping) == 1 and bench.marks


def test_two_readers_of_one_tensor_can_be_fused() -> None:
    bench = Workbench(fan_out(T), A100)
    assert bench.press_pair("g", "h")
    assert bench.grouping == grouping_of(bench.graph, [["g", "h"]])
    assert bench.press_pair("h", "g")
    assert bench.grouping == unfused(bench.graph)


def test_one_operator_alone_is_no_pair() -> None:
    bench = Workbench(fan_out(T), A100)
    assert not bench.press_pair("f", "f")
    assert "choose two" in bench.message.en
    assert bench.moves == 0


@pytest.mark.parametrize(("a", "b"), [("q", "pv"), ("kt", "pv"), ("pv", "kt"), (3, "pv")])
def test_a_pair_of_names_that_are_no_operators_is_an_error(a: object, b: object) -> None:
    with pytest.raises(ValueError, match=r"(?s)参数.*\n"):
        Workbench(attention(64, 64), A100).press_pair(a, b)  # type: ignore[arg-type]


@pytest.mark.parametrize("index", [-1, 99, True, "0", 1.0])
def test_an_edge_that_does_not_exist_is_an_error(index: object) -> None:
    with pytest.raises(ValueError, match="index"):
        Workbench(chain(3, T), A100).press_edge(index)  # type: ignore[arg-type]


def test_a_group_that_only_a_hand_makes_is_allowed_and_said_to_be_one() -> None:
    build = Builder(dtype="float16")
    x = build.input("x", 64, 64)
    for name in ("left", "right"):
        build.op(name, "gemm", [x, build.input(f"{name}.w", 64, 64)])
    bench = Workbench(build.graph("left", "right"), A100)
    assert bench.press_pair("left", "right")
    assert [mark.rule for mark in bench.marks] == ["two_gemms"]
    assert "Mind: two GEMMs: by hand or by pattern only." in bench.message.en
    assert "只能手写或靠模式匹配" in bench.message.zh


def test_attention_as_a_whole_is_legal_and_marked() -> None:
    bench = Workbench(attention(1024, 64), A100)
    assert bench.set_grouping([bench.graph.launching])
    assert [mark.rule for mark in bench.marks] == ["two_gemms"]


def test_rows_that_do_not_fit_are_refused_unless_several_passes_are_allowed() -> None:
    graph = softmax(64, 200_000)
    strict, lenient = Workbench(graph, T4), Workbench(graph, T4, multi_pass=True)
    assert not strict.set_grouping([graph.launching])
    assert RULE_NAMES["row"].en in strict.message.en
    assert lenient.set_grouping([graph.launching])
    assert lenient.problems == ()
    assert lenient.cost.groups[0].passes > 1


def test_a_half_that_breaks_a_rule_is_split_further_and_the_message_says_which() -> None:
    build = Builder()
    for name in ("x", "y"):
        build.input(name, 16, size=T)
    build.op("f", "elementwise", ["x"], size=T)
    build.op("g", "elementwise", ["y"], size=T)
    build.op("sum", "elementwise", ["f", "g"], size=T)
    bench = Workbench(build.graph("sum"), A100)
    assert bench.set_grouping([["f", "g", "sum"]])
    assert bench.press_edge(edge(bench, "f", "sum"))
    assert bench.grouping == unfused(bench.graph)  # f and g share nothing
    assert f"split as well: {check(bench.graph, grouping_of(bench.graph, [['f', 'g']]), A100)[0].text.en}" in (
        bench.message.en
    )


# -- the property: legal states only ----------------------------------------------------------------------------


def press_at_random(bench: Workbench, draw: random.Random) -> bool:
    graph = bench.graph
    if graph.edges and draw.random() < 0.75:
        return bench.press_edge(draw.randrange(len(graph.edges)))
    return bench.press_pair(*draw.choices(graph.launching, k=2))


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12), st.booleans())
def test_every_press_leaves_a_legal_state_or_is_refused_with_a_rule(seed: int, count: int, passes: bool) -> None:
    graph, draw = random_graph(seed, count), random.Random(seed)
    gpu = draw.choice([A100, T4])
    bench = Workbench(graph, gpu, multi_pass=passes)
    names = [name.en for name in RULE_NAMES.values()]
    for _ in range(4 * count):
        before = (bench.grouping, bench.moves, bench.can_undo)
        if press_at_random(bench, draw):
            assert bench.problems == ()
            assert passes or check(graph, bench.grouping, gpu) == ()
            assert bench.grouping != before[0]
        else:
            assert (bench.grouping, bench.moves, bench.can_undo) == before
            assert any(f"[{name}]" in bench.message.en for name in names) or "same operator" in bench.message.en


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_a_press_always_answers_the_question_that_it_asks(seed: int, count: int) -> None:
    """Apart: together afterwards, or refused. Together: apart afterwards, always."""
    graph, draw = random_graph(seed, count), random.Random(seed)
    bench = Workbench(graph, A100)
    for _ in range(3 * count):
        if not graph.edges:
            return
        index = draw.randrange(len(graph.edges))
        ends = graph.edges[index].producer, graph.edges[index].consumer
        apart = bench.grouping.index_of(ends[0]) != bench.grouping.index_of(ends[1])
        changed = bench.press_edge(index)
        assert changed or apart
        assert (bench.grouping.index_of(ends[0]) != bench.grouping.index_of(ends[1])) == (apart != changed)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 10))
def test_undo_walks_back_through_every_state(seed: int, count: int) -> None:
    graph, draw = random_graph(seed, count), random.Random(seed)
    bench = Workbench(graph, A100, recompute=graph.launching)
    trail = [(bench.graph, bench.grouping, bench.moves)]
    for _ in range(3 * count):
        action: Callable[[], object] = draw.choice(
            [
                lambda: press_at_random(bench, draw),
                lambda: press_at_random(bench, draw),
                lambda: bench.show(draw.choice(["best", "greedy", "eager"])),
                lambda: bench.recompute(draw.choice(graph.launching)),
                bench.reset,
            ]
        )
        if action() is not False:
            trail.append((bench.graph, bench.grouping, bench.moves))
    while bench.can_undo:
        assert (bench.graph, bench.grouping, bench.moves) == trail.pop()
        assert bench.undo()
    assert [(bench.graph, bench.grouping, bench.moves)] == trail
    assert not bench.undo()
    assert "nothing to undo" in bench.message.en


# -- showing what others made -----------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
def test_a_plan_that_is_shown_does_not_lose_the_learners_state(view: str) -> None:
    bench = bench_of("swiglu_mlp")
    bench.press_edge(0)
    mine, moves = bench.grouping, bench.moves
    bench.show(view)  # type: ignore[arg-type]
    assert bench.grouping != mine
    assert bench.moves == moves  # showing is no move
    assert "Undo brings yours back" in bench.message.en
    assert f"{bench.cost.launches} launches" in bench.message.en
    assert format_bytes(bench.cost.total_bytes) in bench.message.zh
    bench.undo()
    assert bench.grouping == mine


def test_the_best_is_shown_with_its_standing() -> None:
    bench = bench_of("swiglu_mlp")
    bench.show("best")
    assert bench.grouping == bench.plan.grouping
    assert bench.plan.proven
    assert "Proven" in bench.message.en
    bench.show("by_hand")
    assert bench.grouping == bench.hand_plan.grouping
    assert bench.cost.total_bytes < bench.plan.cost.total_bytes


def test_a_plan_without_a_proof_says_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "best_grouping", partial(best_grouping, effort=0))
    bench = bench_of("cross_entropy")
    bench.show("best")
    assert not bench.plan.proven
    assert f"Not proven to be the best; the bound is {format_bytes(bench.plan.bound_bytes)}" in bench.message.en


def test_there_is_no_compilers_grouping_unless_one_was_given() -> None:
    bench = Workbench(chain(3, T), A100)
    with pytest.raises(ValueError, match="compiler"):
        bench.show("compiler")
    with pytest.raises(ValueError, match="view"):
        bench.show("nonsense")  # type: ignore[arg-type]
    assert bench.grouping == unfused(bench.graph)


def test_a_shown_grouping_that_breaks_a_rule_says_so_and_can_be_pressed_on() -> None:
    graph = softmax(64, 200_000)
    whole = grouping_of(graph, [graph.launching])
    bench = Workbench(graph, T4, compiler=whole)
    bench.show("compiler")
    assert [problem.rule for problem in bench.problems] == ["row"]
    assert f"By the rules here it is not legal: [{RULE_NAMES['row'].en}]" in bench.message.en
    assert bench.press_edge(edge(bench, "exp", "div"))
    assert bench.problems == ()


def test_a_press_elsewhere_is_not_blamed_for_what_was_broken_before() -> None:
    build = Builder()
    last = build.input("x", 4, 200_000)
    build.op("max", "reduction", [last], (4, 1))
    build.op("sub", "elementwise", ["x", "max"])
    build.op("far1", "opaque", ["sub"], (16,))
    build.op("far2", "elementwise", ["far1"])
    build.op("far3", "elementwise", ["far2"])
    graph = build.graph("far3")
    bench = Workbench(graph, T4, compiler=grouping_of(graph, [["max", "sub"]]))
    bench.show("compiler")
    assert bench.problems
    assert bench.press_pair("far2", "far3")
    assert not bench.press_pair("far1", "far2")


def test_reset_goes_back_to_the_start_and_can_be_undone() -> None:
    bench = Workbench(chain(4, T), A100)
    bench.press_edge(0)
    bench.press_edge(1)
    mine = bench.grouping
    bench.reset()
    assert bench.grouping == unfused(bench.graph)
    assert bench.moves == 0
    bench.undo()
    assert (bench.grouping, bench.moves) == (mine, 2)


def test_given_groups_are_taken_if_legal_and_refused_in_words_if_not() -> None:
    bench = Workbench(rmsnorm(64, 64), A100)
    assert bench.set_grouping([["square", "mean"]])
    assert bench.grouping == grouping_of(bench.graph, [["square", "mean"]])
    assert not bench.set_grouping([["square", "weigh"]])
    assert RULE_NAMES["cycle"].en in bench.message.en
    with pytest.raises(ValueError, match="nonsense"):
        bench.set_grouping([["nonsense"]])
    assert bench.grouping == grouping_of(bench.graph, [["square", "mean"]])


def test_questions_are_answered_for_the_present_grouping() -> None:
    bench = Workbench(chain(3, T), A100)
    assert "f0 is in kernel 1, f1 in kernel 2." in bench.ask("f0", "f1")[0].en
    bench.press_edge(0)
    assert "are in one kernel" in bench.ask("f0", "f1")[0].en


# -- recompute ----------------------------------------------------------------------------------------------------


def test_checkpoint_7_each_copy_joins_its_reader() -> None:
    bench = Workbench(fan_out(T), A100, recompute=["f"])
    assert recomputable(bench.graph, bench.may_recompute) == ("f",)
    assert bench.recompute("f")
    assert bench.grouping == grouping_of(bench.graph, [["f", "g"], ["f·2", "h"]])
    assert (bench.cost.launches, bench.cost.total_bytes) == (2, 256 * MIB)
    assert "the traffic falls from 384 MiB to 256 MiB (128 MiB less), 1 fewer launch" in bench.message.en
    assert recomputable(bench.graph, bench.may_recompute) == ()
    bench.undo()
    assert bench.graph.launching == fan_out(T).launching
    assert recomputable(bench.graph, bench.may_recompute) == ("f",)


def test_only_what_was_allowed_is_recomputed_and_a_refusal_says_why() -> None:
    bench = Workbench(fan_out(T), A100, recompute=["g"])
    with pytest.raises(ValueError, match="op"):
        bench.recompute("f")
    assert not bench.recompute("g")
    assert "output of the graph" in bench.message.en
    assert bench.moves == 0


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 10))
def test_recompute_keeps_a_legal_state_and_the_kernels_it_does_not_concern(seed: int, count: int) -> None:
    graph, draw = random_graph(seed, count), random.Random(seed)
    bench = Workbench(graph, A100, recompute=graph.launching)
    for _ in range(2 * count):
        press_at_random(bench, draw)
    for op in recomputable(bench.graph, bench.may_recompute):
        touched = {bench.grouping.index_of(name) for name in graph.launching if name == op}
        touched |= {bench.grouping.index_of(edge.consumer) for edge in graph.edges if edge.producer == op}
        others = [g for i, g in enumerate(bench.grouping.groups) if i not in touched]
        assert bench.recompute(op)
        assert bench.problems == ()
        assert {frozenset(group) for group in others} <= {frozenset(group) for group in bench.grouping.groups}
        bench.undo()


def test_the_compilers_kernels_are_those_of_the_first_graph() -> None:
    graph = fan_out(T)
    bench = Workbench(graph, A100, compiler=greedy(graph, A100), recompute=["f"])
    bench.recompute("f")
    bench.show("compiler")
    assert bench.graph is graph
    bench.undo()
    assert "f·2" in bench.graph.launching
    bench.show("eager")
    assert bench.grouping == eager(graph)


# -- repeated layers ------------------------------------------------------------------------------------------------


def test_a_change_to_one_layer_is_a_change_to_all() -> None:
    bench = Workbench(llama(4), A100)
    (repeat,) = bench.folding.repeats
    assert len(repeat.copies) >= 3
    index = next(i for i in bench.folding.shown_edges if len(bench.folding.copies_of_edge(i)) == len(repeat.copies))
    assert bench.press_edge(index)
    edges = bench.graph.edges
    for copy in bench.folding.copies_of_edge(index):
        assert bench.grouping.index_of(edges[copy].producer) == bench.grouping.index_of(edges[copy].consumer)
    assert f"All {len(repeat.copies)} copies" in bench.message.en
    assert bench.moves == 1
    assert bench.press_edge(index)
    assert bench.grouping == unfused(bench.graph)


# -- what it takes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Workbench("graph", A100), "graph"),  # type: ignore[arg-type]
        (lambda: Workbench(chain(3, T), "A100"), "gpu"),  # type: ignore[arg-type]
        (lambda: Workbench(chain(3, T), A100, compiler=unfused(chain(4, T))), "grouping"),
        (lambda: Workbench(chain(3, T), A100, multi_pass=1), "multi_pass"),  # type: ignore[arg-type]
        (lambda: Workbench(chain(3, T), A100, recompute="f0"), "recompute"),
        (lambda: Workbench(chain(3, T), A100, recompute=["none"]), "none"),
    ],
)
def test_wrong_arguments_are_named_in_both_languages(make: Callable[[], object], word: str) -> None:
    with pytest.raises(ValueError, match=re.escape(word)) as refused:
        make()
    assert re.search("[一-鿿]", str(refused.value))


def test_names_with_braces_and_markup_pass_through_every_message() -> None:
    build = Builder()
    hostile = "<img src=x onerror=alert(1)>"
    build.op(hostile, "elementwise", [build.input("x", 16, size=T)], size=T)
    build.op("{0}", "elementwise", [hostile], size=T)
    build.op("{b}", "opaque", ["{0}"], size=T)
    build.op("last", "elementwise", ["{b}", "{0}"], size=T)
    bench = Workbench(build.graph("last"), A100, recompute=["{0}"])
    assert bench.press_edge(0)
    assert hostile in bench.message.en
    assert not bench.press_pair("{0}", "{b}")
    assert not bench.press_pair("{0}", "last")
    assert bench.recompute("{0}")
    assert "{0}" in bench.message.zh
    assert bench.undo()


def test_it_counts_what_cost_counts() -> None:
    bench = Workbench(gemm_bias_gelu(64, 64, 64), A100)
    bench.set_grouping([bench.graph.launching])
    assert bench.cost == cost(bench.graph, bench.grouping, A100)


def test_recompute_where_none_is_offered_says_how_to_offer_one() -> None:
    with pytest.raises(ValueError, match=r"recompute=\[\.\.\.\].*\n.*recompute=\[\.\.\.\]"):
        Workbench(chain(2, T), A100).recompute("f0")
