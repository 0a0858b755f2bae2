"""Groupings: the course's checkpoints, each rule by an example, and properties on random graphs.

Three oracles stand beside the code: ``traffic.model.plan_traffic``; a simulation that carries tensors into and out of
memory element by element; and one that follows each element back to the thread block that reduced it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from graph_builders import (
    Builder,
    attention,
    chain,
    fan_out,
    gemm_bias_gelu,
    llama,
    random_graph,
    rmsnorm,
    softmax,
)
from hypothesis import assume, example, given, settings, strategies as st

from lessons_lib.base.gpus import A100, H100, T4
from lessons_lib.base.roofline import speedup_interval
from lessons_lib.base.units import MIB
from lessons_lib.graph.grouping import (
    MARK_NAMES,
    RULE_NAMES,
    RULES,
    Grouping,
    check,
    compulsory_bytes,
    cost,
    cut,
    eager,
    fuse,
    greedy,
    grouping_of,
    marks,
    unfused,
)
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.reuse.attention import attention_traffic
from lessons_lib.reuse.rows import rmsnorm_traffic, softmax_traffic
from lessons_lib.traffic.epilogue import epilogue_plans
from lessons_lib.traffic.model import Operator, chain_traffic, plan_traffic

pytestmark = pytest.mark.once

TINY = replace(A100, name="tiny", shared_bytes_per_block=16)


def whole(graph: OpGraph) -> Grouping:
    return grouping_of(graph, [graph.launching])


def total(graph: OpGraph, *groups: Iterable[str], **options: Any) -> int:
    return cost(graph, grouping_of(graph, groups), A100, **options).total_bytes


def rules(graph: OpGraph, *groups: Iterable[str], gpu: Any = A100) -> list[str]:
    return [problem.rule for problem in check(graph, grouping_of(graph, groups), gpu)]


# -- checkpoints ----------------------------------------------------------------------------------------------


def test_checkpoint_3_swiglu_gate() -> None:
    build = Builder()
    build.input("gate", 16, size=32 * MIB)
    build.input("up", 16, size=32 * MIB)
    build.op("sigmoid", "elementwise", ["gate"], size=32 * MIB, eager="silu")
    build.op("times", "elementwise", ["gate", "sigmoid"], size=32 * MIB, eager="silu")
    build.op("mul", "elementwise", ["times", "up"], size=32 * MIB)
    graph = build.graph("mul")
    by_grouping = [cost(graph, found, A100) for found in (eager(graph), unfused(graph), greedy(graph, A100))]
    assert [found.total_bytes // MIB for found in by_grouping] == [160, 256, 96]
    assert [found.launches for found in by_grouping] == [2, 3, 1]


def test_checkpoints_4_and_5_gemm_epilogue() -> None:
    graph = gemm_bias_gelu(4096, 1024, 4096)
    names = ("gemm", "bias", "gelu")
    plans = {3: unfused(graph), 2: grouping_of(graph, [names[:2]]), 1: whole(graph)}
    costs = {count: cost(graph, plan, A100) for count, plan in plans.items()}
    assert {count: found.total_bytes for count, found in costs.items()} == {3: 184557568, 2: 117448704, 1: 50339840}
    for count, plan in epilogue_plans(4096, 1024, 4096, A100).items():
        assert (costs[count].time.low, costs[count].time.high) == pytest.approx((plan.time.low, plan.time.high))
    faster = speedup_interval(costs[3].time, costs[1].time)
    assert (faster.low, faster.high) == pytest.approx((1.606, 1.784), abs=0.001)
    assert greedy(graph, A100) == plans[1]
    assert not any(check(graph, plan, A100) for plan in plans.values())


def test_checkpoint_7_fan_out() -> None:
    graph = fan_out(64 * MIB)
    assert [
        total(graph) // MIB,
        total(graph, [*"fgh"]) // MIB,
        total(graph, [*"fg"]) // MIB,
        total(graph, [*"gh"]) // MIB,
    ] == [
        384,
        192,
        320,
        320,
    ]
    assert rules(graph, [*"gh"]) == []  # two readers of one tensor


@pytest.mark.parametrize(("rows", "columns"), [(4096, 4096), (16, 8)])
def test_checkpoint_8_softmax(rows: int, columns: int) -> None:
    graph, right = softmax(rows, columns), softmax_traffic(rows, columns)
    assert total(graph) == right["naive_bytes"]
    assert total(graph, graph.launching) == right["resident_bytes"]
    assert greedy(graph, A100) == whole(graph)


def test_a_softmax_whose_rows_do_not_fit_is_read_again_for_each_reduction() -> None:
    graph = softmax(64, 2**18)  # rows of 1 MiB
    matrix = 64 * MIB
    (problem,) = check(graph, whole(graph), A100)
    assert (problem.rule, problem.ops, problem.multi_pass) == ("row", ("max",), True)
    assert "1 MiB" in problem.text.en and "163 KiB" in problem.text.zh
    found = cost(graph, whole(graph), A100).groups[0]
    assert (found.passes, found.total_bytes) == (3, 4 * matrix)  # maximum, sum, quotient; and one write
    assert greedy(graph, A100) != whole(graph) == greedy(graph, A100, multi_pass=True)


def test_checkpoint_11_attention() -> None:
    graph = attention(2048, 64)
    right = {rows: attention_traffic(2048, 64, rows) for rows in (64, 128)}
    assert cost(graph, eager(graph), A100).total_bytes == right[64]["unfused_bytes"] == 49 * MIB
    for rows in (64, 128):
        assert total(graph, graph.launching, block_rows=rows) == right[rows]["tiled_bytes"]
    assert check(graph, whole(graph), A100) == ()
    (mark,) = marks(graph, whole(graph), A100)
    assert (mark.rule, mark.ops) == ("two_gemms", ("qk", "pv"))


def test_checkpoint_11_counts_each_head_alike() -> None:
    one, many = attention(256, 64), attention(256, 64, batch=(2, 8))
    assert total(many, many.launching) == 16 * total(one, one.launching)


@pytest.mark.parametrize(("residual", "keep"), [(False, False), (True, False), (True, True)])
def test_checkpoint_15_rmsnorm(residual: bool, keep: bool) -> None:
    graph = rmsnorm(4096, 4096, residual=residual, keep_sum=keep)
    right = rmsnorm_traffic(4096, 4096, residual=residual, sum_output=keep)
    assert total(graph) == right["naive_bytes"]
    assert total(graph, graph.launching) == right["resident_bytes"]
    assert check(graph, whole(graph), A100) == ()
    small = cost(graph, whole(graph), TINY)
    assert (small.total_bytes, small.groups[0].passes) == (right["two_pass_bytes"], 2)
    assert [problem.rule for problem in check(graph, whole(graph), TINY)] == ["row"]


@pytest.mark.parametrize(("groups", "mib"), [(4, 576), (2, 320), (1, 192)])
def test_checkpoint_17_residual_chain(groups: int, mib: int) -> None:
    graph = chain(4, 64 * MIB, side=[3])
    size = 4 // groups
    assert total(graph, *(graph.launching[i : i + size] for i in range(0, 4, size))) == mib * MIB
    assert compulsory_bytes(graph) == 192 * MIB


# -- the rules ------------------------------------------------------------------------------------------------


def test_a_group_that_is_left_and_entered_again_is_a_cycle() -> None:
    graph = chain(3, 64)
    (problem,) = [p for p in check(graph, grouping_of(graph, [["f0", "f2"]]), A100) if p.rule == "cycle"]
    assert problem.ops == ("f0", "f1", "f2")
    assert "goes through f1" in problem.text.en


def test_two_convex_groups_that_wait_for_each_other_are_a_cycle() -> None:
    build = Builder()
    build.input("x", 8)
    build.op("a1", "elementwise", ["x"])
    build.op("b2", "elementwise", ["x"])
    build.op("b1", "elementwise", ["a1"])
    build.op("a2", "elementwise", ["b2"])
    graph = build.graph("b1", "a2")
    assert rules(graph, ["a1", "a2"], ["b1", "b2"]).count("cycle") == 1
    assert "cycle" not in rules(graph, ["a1", "b1"], ["a2", "b2"])


def test_an_opaque_operator_runs_alone() -> None:
    build = Builder()
    build.input("x", 8)
    build.op("f", "elementwise", ["x"])
    build.op("sort", "opaque", ["f"])
    graph = build.graph("sort")
    assert rules(graph) == []
    assert rules(graph, ["f", "sort"]) == ["opaque"]


def reductions(first: int, second: int, *, between: str = "") -> OpGraph:
    build = Builder()
    build.input("x", 8, 8)
    build.op("one", "reduction", ["x"], (8, 1) if first else (1, 8), axes=(first,))
    x = build.op(between, "elementwise", ["x", "one"]) if between else "x"
    build.op("two", "reduction", [x], (8, 1) if second else (1, 8), axes=(second,))
    return build.graph("one", "two")


@pytest.mark.parametrize("between", ["", "sub"])
def test_reductions_share_a_kernel_if_they_share_their_rows(between: str) -> None:
    assert rules(reductions(1, 1, between=between), ["one", "two", *([between] if between else [])]) == []
    found = reductions(1, 0, between=between)
    assert rules(found, found.launching) == ["reduction"]  # 8 x 8: sizes alone do not tell rows from columns


@pytest.mark.parametrize("kind", ["view", "injective"])
def test_a_column_sum_stays_one_when_written_as_the_row_sum_of_a_transpose(kind: str) -> None:
    build = Builder()
    build.input("x", 8, 8)
    build.op("row", "reduction", ["x"], (8, 1))
    build.op("turned", kind, ["x"], (8, 8), axes=(0, 1))
    build.op("column", "reduction", ["turned"], (8, 1))
    build.op("both", "elementwise", ["row", "column"])
    graph = build.graph("both")
    assert rules(graph, graph.launching) == ["reduction"]
    assert "would have to be read twice" in check(graph, whole(graph), A100)[0].text.en


def test_rows_along_different_axes_of_equal_extent_differ() -> None:
    build = Builder()
    build.input("x", 2, 3, 3, 2)
    build.op("one", "reduction", ["x"], (1, 3, 1, 1))
    build.op("sub", "elementwise", ["x", "one"])
    build.op("other", "reduction", ["sub"], (1, 1, 3, 1))
    build.op("third", "reduction", ["x"], (1, 1, 3, 1))
    graph = build.graph("other", "third")
    assert rules(graph, ["one", "sub"]) == []
    assert rules(graph, ["one", "sub", "other"]) == ["reduction"]
    assert rules(graph, ["one", "third"]) == ["reduction"]


def test_a_head_picked_out_of_the_row_keeps_its_order() -> None:
    build = Builder()
    build.input("x", 4, 2, 8)
    build.op("first", "view", ["x"], (4, 8), axes=(1,))  # x[:, 0]
    build.op("max", "reduction", ["first"], (4, 1))
    build.op("sum", "reduction", ["x"], (4, 1, 1))
    graph = build.graph("max", "sum")
    assert rules(graph, graph.launching) == []


def test_the_mean_of_all_losses_is_a_kernel_of_its_own() -> None:
    build = Builder()
    build.input("logits", 8, 16)
    build.input("target", 8, 1)
    build.op("max", "reduction", ["logits"], (8, 1))
    build.op("sub", "elementwise", ["logits", "max"])
    build.op("exp", "elementwise", ["sub"])
    build.op("sum", "reduction", ["exp"], (8, 1))
    build.op("log", "elementwise", ["sum"])
    build.op("logp", "elementwise", ["sub", "log"])
    build.op("pick", "injective", ["logp", "target"], (8, 1), axes=(1,))  # a gather within the row
    build.op("flat", "view", ["pick"], (8,), axes=())
    build.op("neg", "elementwise", ["flat"])
    build.op("mean", "reduction", ["neg"], (), axes=(0,))
    graph = build.graph("mean")
    rows = [name for name in graph.launching if name != "mean"]
    assert rules(graph, rows) == []
    assert rules(graph, graph.launching) == ["reduction"]
    assert greedy(graph, A100) == grouping_of(graph, [rows])


def test_a_row_result_that_lands_in_a_column_needs_other_blocks() -> None:
    build = Builder()
    build.input("x", 8, 8)
    build.op("sum", "reduction", ["x"], (8,), axes=(1,))
    build.op("wrong", "broadcast", ["x", "sum"], (8, 8))  # element (i, j) needs the sum of row j
    build.op("column", "view", ["sum"], (8, 1), axes=())
    build.op("right", "broadcast", ["x", "column"], (8, 8))
    build.op("mixed", "broadcast", ["sum", "right"], (8, 8))
    graph = build.graph("wrong", "right", "mixed")
    assert rules(graph, ["sum", "right", "mixed"]) == ["reduction"]
    assert rules(graph, ["sum", "wrong"]) == ["reduction"]
    assert rules(graph, ["sum", "right"]) == []


@pytest.mark.parametrize(("kind", "axes", "broken"), [("injective", (1,), []), ("injective", (0, 1), ["reduction"])])
def test_behind_a_reduction_elements_may_move_within_their_row(
    kind: str, axes: tuple[int, ...], broken: list[str]
) -> None:
    build = Builder()
    build.input("x", 8, 8)
    build.op("max", "reduction", ["x"], (8, 1))
    build.op("sub", "elementwise", ["x", "max"])
    build.op("move", kind, ["sub"], (8, 8), axes=axes)
    build.op("add", "elementwise", ["sub", "move"])
    graph = build.graph("add")
    assert rules(graph, graph.launching) == broken
    assert rules(graph, ["max", "sub", "move"]) == []  # alone it only decides where the result goes


def test_a_view_that_turns_a_matrix_counts_like_the_move_it_is() -> None:
    build = Builder()
    build.input("x", 8, 8)
    build.op("max", "reduction", ["x"], (8, 1))
    build.op("sub", "elementwise", ["x", "max"])
    build.op("turned", "view", ["sub"], (8, 8), axes=(0, 1))
    build.op("flat", "view", ["sub"], (64,), axes=())
    build.op("fold", "view", ["flat"], (8, 8), axes=())
    build.op("bad", "elementwise", ["sub", "turned"])
    build.op("good", "elementwise", ["sub", "fold"])
    graph = build.graph("bad", "good")
    assert rules(graph, ["max", "sub", "bad"]) == ["reduction"]
    assert rules(graph, ["max", "sub", "good"]) == []


def test_the_iteration_space_of_what_is_written_is_one() -> None:
    build = Builder()
    build.input("x", 8, 8)
    build.op("f", "elementwise", ["x"])
    build.op("lo", "view", ["f"], (8, 4), axes=(1,))
    build.op("hi", "view", ["f"], (8, 4), axes=(1,))
    build.op("mul", "elementwise", ["lo", "hi"])
    graph, kept = build.graph("mul"), build.graph("mul", "f")
    assert rules(graph, ["f", "mul"]) == []  # f is computed where it is needed
    assert rules(kept, ["f", "mul"]) == ["space"]  # here it is written too, and is twice the size


def test_operators_without_a_common_tensor_are_disconnected() -> None:
    build = Builder()
    for name in "xy":
        build.input(name, 8)
        build.op(f"f{name}", "elementwise", [name])
    graph = build.graph("fx", "fy")
    assert rules(graph, ["fx", "fy"]) == ["disconnected"]


def gemm_with(*behind: tuple[str, str, tuple[int, ...]]) -> OpGraph:
    build = Builder("g", "float16")
    build.input("x", 8, 4)
    build.input("w", 4, 6)
    last = build.op("gemm", "gemm", ["x", "w"], (8, 6))
    for name, kind, shape in behind:
        last = build.op(name, kind, [last], shape, axes=(0, 1) if kind == "injective" else None)
    return build.graph(last)


@pytest.mark.parametrize(
    ("behind", "broken"),
    [
        ([("relu", "elementwise", (8, 6))], []),
        ([("turn", "injective", (6, 8))], []),
        ([("turn", "injective", (6, 8)), ("relu", "elementwise", (6, 8))], []),
        ([("stretch", "broadcast", (3, 8, 6))], ["gemm"]),
        ([("sum", "reduction", (8, 1))], ["gemm"]),
    ],
)
def test_what_may_follow_a_gemm(behind: list[tuple[str, str, tuple[int, ...]]], broken: list[str]) -> None:
    graph = gemm_with(*behind)
    assert rules(graph, graph.launching) == broken


def test_the_halves_of_one_gemm_cannot_meet_in_its_epilogue() -> None:
    build = Builder("gate and up in one", "float16")
    build.input("x", 8, 4)
    build.input("w", 4, 12)
    build.op("gemm", "gemm", ["x", "w"], (8, 12))
    build.op("gate", "view", ["gemm"], (8, 6), axes=(1,))
    build.op("up", "view", ["gemm"], (8, 6), axes=(1,))
    build.op("silu", "elementwise", ["gate"])
    build.op("mul", "elementwise", ["silu", "up"])
    graph = build.graph("mul")
    assert rules(graph, ["gemm", "silu", "mul"]) == ["gemm"]  # a tile of one half is in another block
    assert rules(graph, ["silu", "mul"]) == []


def before_gemm(kind: str) -> OpGraph:
    build = Builder("g", "float16")
    build.input("x", 8, 4)
    build.input("w", 4, 6)
    build.op("before", kind, ["x"], (8, 4) if kind == "elementwise" else (8, 1))
    left = "before" if kind == "elementwise" else build.op("div", "elementwise", ["x", "before"])
    build.op("gemm", "gemm", [left, "w"], (8, 6))
    return build.graph("gemm")


def test_a_reduction_cannot_feed_a_gemm_and_an_elementwise_operator_is_a_prologue() -> None:
    graph = before_gemm("reduction")
    assert rules(graph, graph.launching) == ["gemm"]
    (problem,) = check(graph, whole(graph), A100)
    assert problem.ops == ("before", "gemm")
    graph = before_gemm("elementwise")
    assert rules(graph, graph.launching) == []
    (mark,) = marks(graph, whole(graph), A100)
    assert (mark.rule, mark.ops) == ("prologue", ("before", "gemm"))


def two_gemms(inner: int, outer: int, *, swapped: bool = False, rows: int = 64) -> OpGraph:
    build = Builder("b2b", "float16")
    build.input("x", rows, 8)
    build.input("w1", 8, inner)
    build.op("first", "gemm", ["x", "w1"], (rows, inner))
    build.op("gelu", "elementwise", ["first"])
    if swapped:
        build.input("left", outer, rows)
        build.op("second", "gemm", ["left", "gelu"], (outer, inner))
    else:
        build.input("w2", inner, outer)
        build.op("second", "gemm", ["gelu", "w2"], (rows, outer))
    return build.graph("second")


def test_two_chained_gemms_must_keep_a_block_of_rows_on_chip() -> None:
    wide, narrow = two_gemms(8192, 8192), two_gemms(8192, 64)
    assert rules(wide, wide.launching) == ["row"]
    assert not check(wide, whole(wide), A100)[0].multi_pass
    assert rules(narrow, narrow.launching) == []
    assert rules(two_gemms(64, 8192), wide.launching) == []


def test_the_first_gemm_must_feed_the_left_side_of_the_second() -> None:
    graph = two_gemms(64, 64, swapped=True)
    assert rules(graph, graph.launching) == ["gemm"]
    assert "right operand" in check(graph, whole(graph), A100)[0].text.en


def test_two_gemms_on_one_input_are_marked() -> None:
    build = Builder("gate and up", "float16")
    build.input("x", 8, 4)
    for name in ("gate", "up"):
        build.input(f"w_{name}", 4, 6)
        build.op(name, "gemm", ["x", f"w_{name}"], (8, 6))
    build.op("mul", "elementwise", ["gate", "up"])
    graph = build.graph("mul")
    assert rules(graph, graph.launching) == []
    (mark,) = marks(graph, whole(graph), A100)
    assert mark.rule == "two_gemms" and "side by side" in mark.text.en and "并排" in mark.text.zh
    assert len(greedy(graph, A100)) == 2
    assert len(greedy(graph, A100, by_hand=True)) == 1


def test_three_gemms_are_too_many() -> None:
    build = Builder("qkv", "float16")
    build.input("x", 8, 4)
    for name in "qkv":
        build.input(f"w{name}", 4, 4)
        build.op(name, "gemm", ["x", f"w{name}"], (8, 4))
    graph = build.graph(*"qkv")
    assert rules(graph, [*"qkv"]) == ["gemm"]


def test_attention_cannot_hand_out_its_weights() -> None:
    kept = attention(128, 64, keep_weights=True)
    assert rules(kept, kept.launching) == ["output"]
    assert check(kept, whole(kept), A100)[0].ops == ("div",)


def test_an_output_needed_outside_is_written_and_no_problem() -> None:
    graph = rmsnorm(64, 64, residual=True, keep_sum=True)
    assert rules(graph, graph.launching) == []
    assert cost(graph, whole(graph), A100).groups[0].writes == {"add": 8192, "weigh": 8192}


def test_a_smaller_gpu_breaks_the_row_rule_sooner() -> None:
    graph = softmax(64, 32 * 1024)  # 128 KiB a row
    assert [len(check(graph, whole(graph), gpu)) for gpu in (T4, A100, H100)] == [1, 0, 0]


def test_every_rule_and_mark_has_a_name() -> None:
    assert set(RULE_NAMES) == set(RULES)
    assert set(MARK_NAMES) == {"two_gemms", "prologue"}


# -- groupings as values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("ab", "a list or a tuple"),
        ([[]], "no operator"),
        ([["a"], ["a"]], "'a' appears twice"),
        ([[1]], "groups[0][0]"),
    ],
)
def test_a_grouping_of_nonsense_is_refused(groups: Any, said: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)^参数") as caught:
        Grouping([tuple(group) for group in groups] if groups != "ab" else "ab")  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_operators_that_nobody_names_run_alone_and_order_does_not_matter() -> None:
    graph = chain(4, 64)
    assert grouping_of(graph, [["f2", "f1"]]).groups == (("f0",), ("f1", "f2"), ("f3",))
    assert grouping_of(graph, [["f3"], ["f1", "f2"]]) == grouping_of(graph, [["f2", "f1"], ["f0"]])
    with pytest.raises(ValueError, match="no operator 'g'"):
        grouping_of(graph, [["g"]])


@pytest.mark.parametrize(
    "use", [lambda g, x: check(g, x, A100), lambda g, x: cost(g, x, A100), lambda g, x: marks(g, x, A100)]
)
def test_a_grouping_of_another_graph_is_refused(use: Any) -> None:
    graph = chain(3, 64)
    for other in (Grouping((("f0",),)), whole(chain(4, 64)), "f0", None):
        with pytest.raises(ValueError, match=r"(?s)^参数 grouping"):
            use(graph, other)
    with pytest.raises(ValueError, match="gpu"):
        check(graph, unfused(graph), "A100")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="block_rows"):
        check(graph, unfused(graph), A100, block_rows=0)


def test_fuse_and_cut() -> None:
    graph = chain(4, 64)
    fused = fuse(graph, unfused(graph), "f2", "f1")
    assert fused == grouping_of(graph, [["f1", "f2"]])
    assert cut(graph, fused, "f1", "f2") == unfused(graph)
    assert cut(graph, fused, "f0", "f2") == fused
    assert cut(graph, whole(graph), "f2", "f1") == grouping_of(graph, [["f0", "f1"], ["f2", "f3"]])
    star = fan_out(64)
    assert cut(star, whole(star), "f", "g") == grouping_of(star, [["f", "h"]])  # h does not need g
    diamond = attention(8, 4)
    assert cut(diamond, whole(diamond), "exp", "sum").groups[1] == ("sum", "div", "pv")


def test_launches_cost_only_when_asked() -> None:
    graph = chain(3, 64)
    free, dear = (cost(graph, unfused(graph), A100, seconds) for seconds in (0, 1e-5))
    assert dear.time.low - free.time.low == pytest.approx(3e-5)


def test_only_gemms_of_16_bit_reach_the_tensor_cores() -> None:
    times = {}
    for dtype in ("float16", "float32"):
        build = Builder("g", dtype)
        build.op("gemm", "gemm", [build.input("x", 2, 2), build.input("w", 2, 2)], (2, 2), operations=312 * 10**9)
        graph = build.graph("gemm")
        times[dtype] = cost(graph, unfused(graph), A100).time.low
    assert times == {"float16": pytest.approx(1e-3), "float32": pytest.approx(16e-3)}


def test_a_graph_of_views_alone_costs_nothing() -> None:
    build = Builder()
    build.op("v", "view", [build.input("x", 2, 3)], (6,), axes=())
    graph = build.graph("v")
    found = cost(graph, unfused(graph), A100)
    assert (found.launches, found.total_bytes, found.time.high) == (0, 0, 0)
    assert check(graph, unfused(graph), A100) == ()


# -- on random graphs -----------------------------------------------------------------------------------------

seeds = st.integers(0, 10**9)


@given(st.integers(1, 8), st.integers(0, 2**40), st.data())
def test_an_equal_chain_agrees_with_the_formula(count: int, size: int, data: st.DataObject) -> None:
    assume(size >= 1)
    side = data.draw(st.sets(st.integers(0, count - 1)))
    cuts = sorted(data.draw(st.sets(st.integers(1, count - 1)))) if count > 1 else []
    graph = chain(count, size, sorted(side))
    names = graph.launching
    groups = [names[a:b] for a, b in zip([0, *cuts], [*cuts, count], strict=True)]
    found, right = cost(graph, grouping_of(graph, groups), A100), chain_traffic(count, size, len(groups), len(side))
    assert (found.launches, found.total_bytes) == (right["launches"], right["total_bytes"])
    assert found.total_bytes - compulsory_bytes(graph) == right["intermediate_bytes"]


def random_grouping(graph: OpGraph, seed: int, *, legal: bool) -> Grouping:
    """Random merges that leave no cycle, or that break no rule and need no hand."""
    draw, found = random.Random(seed), unfused(graph)
    for _ in range(2 * len(graph.launching)):
        if len(found) < 2:
            break
        a, b = draw.sample(list(graph.launching), 2)
        merged = fuse(graph, found, a, b)
        problems = check(graph, merged, A100)
        if legal and (problems or marks(graph, merged, A100)):
            continue
        if not any(problem.rule == "cycle" for problem in problems):
            found = merged
    return found


@given(seeds, st.integers(2, 9))
def test_costs_agree_with_plan_traffic(seed: int, count: int) -> None:
    graph = random_graph(seed, count, plain=True)
    grouping = random_grouping(graph, seed, legal=False)
    operators = [Operator(op.name, op.inputs, op.outputs[0]) for op in graph.ops]
    sizes = {tensor.name: tensor.bytes for tensor in graph.tensors}
    right = plan_traffic(operators, grouping.groups, sizes, graph.outputs)
    found = cost(graph, grouping, A100)
    assert [(dict(g.reads), dict(g.writes)) for g in found.groups] == [
        (kernel["reads"], kernel["writes"]) for kernel in right["kernels"]
    ]
    assert (found.launches, found.total_bytes) == (right["launches"], right["total_bytes"])
    assert compulsory_bytes(graph) == right["compulsory_bytes"]


def elements_of(graph: OpGraph) -> dict[str, np.ndarray]:
    """For every tensor, which element of its root each of its elements is; views by what the builders' views do."""
    found: dict[str, np.ndarray] = {}
    for tensor in graph.tensors:
        found[tensor.name] = np.arange(tensor.numel).reshape(tensor.shape)
    for name in graph.order:
        op = graph.op(name)
        if op.kind == "view":
            found[op.outputs[0]] = seen_through(name, op.axes, found[op.inputs[0]], graph.tensor(name).shape)
    return found


def seen_through(name: str, axes: tuple[int, ...] | None, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if axes == ():
        return x.reshape(shape)
    if name.endswith((".lo", ".hi")):
        half = x.shape[2] // 2
        return x[:, :, :half] if name.endswith(".lo") else x[:, :, half:]
    assert axes is not None
    return np.swapaxes(x, *axes)


def simulated(graph: OpGraph, grouping: Grouping) -> list[tuple[Fraction, Fraction]]:
    """Bytes read and written by each kernel, element by element, with a memory that must hold what is read."""
    elements, memory, moved = elements_of(graph), set(graph.inputs), []
    for group in grouping.groups:
        on_chip, loaded = set[str](), dict[str, set[int]]()
        for name in group:
            op = graph.op(name)
            for tensor in op.inputs:
                root = graph.root_of(tensor)
                if root not in on_chip:
                    assert root in memory, f"{name} reads {root} before it is written"
                    loaded.setdefault(root, set()).update(elements[tensor].flat)
            on_chip.update(op.outputs)
        needed = {graph.root_of(t) for n in graph.launching if n not in group for t in graph.op(n).inputs}
        stored = on_chip & (needed | {graph.root_of(tensor) for tensor in graph.outputs})
        memory |= stored
        element = {root: Fraction(graph.tensor(root).bytes, graph.tensor(root).numel) for root in loaded}
        read = sum((element[root] * len(taken) for root, taken in loaded.items()), Fraction())
        moved.append((read, Fraction(sum(graph.tensor(root).bytes for root in stored))))
    assert {graph.root_of(tensor) for tensor in graph.outputs} <= memory
    return moved


@given(seeds, st.integers(2, 9))
def test_costs_agree_with_a_simulation_of_reads_and_writes(seed: int, count: int) -> None:
    graph = random_graph(seed, count)
    grouping = random_grouping(graph, seed, legal=True)
    found = cost(graph, grouping, A100)
    assert [(group.read_bytes, group.write_bytes) for group in found.groups] == simulated(graph, grouping)


@pytest.mark.parametrize("make", [unfused, lambda graph: greedy(graph, A100)])
def test_a_decoder_layer_agrees_with_the_simulation(make: Any) -> None:
    graph = llama(1)
    grouping = make(graph)
    found = cost(graph, grouping, A100)
    assert [(group.read_bytes, group.write_bytes) for group in found.groups] == simulated(graph, grouping)


def rows_needed(graph: OpGraph, group: tuple[str, ...]) -> dict[str, np.ndarray]:
    """For each element that a kernel makes, the blocks (rows of its reductions, elements of its GEMMs) it depends on."""
    nothing = frozenset[int]()
    needs: dict[str, np.ndarray] = {}

    def of(tensor: str) -> np.ndarray:
        if tensor not in needs:
            needs[tensor] = np.full(graph.tensor(tensor).shape, nothing, dtype=object)
        return needs[tensor]

    for name in graph.order:
        op = graph.op(name)
        if op.kind == "view":
            needs[name] = seen_through(name, op.axes, of(op.inputs[0]), graph.tensor(name).shape)
            continue
        if name not in group:
            continue
        parts = [of(tensor) for tensor in op.inputs]
        shape = graph.tensor(name).shape
        result = np.full(shape, nothing, dtype=object)
        for place, index in enumerate(np.ndindex(shape)):
            if op.kind == "elementwise":
                result[index] = nothing.union(*(np.broadcast_to(part, shape)[index] for part in parts))
            elif op.kind == "injective":  # the builders' copies: backwards in the row, or turned
                moved = parts[0][:, ::-1] if op.axes == (1,) else parts[0].T
                result[index] = moved[index]
            elif op.kind == "reduction":
                (axis,) = op.axes or ()
                along = parts[0][:, index[1]] if axis == 0 else parts[0][index[0], :]
                result[index] = nothing.union({place}, *along)
            else:
                result[index] = nothing.union({place}, *(need for part in parts for need in part.flat))
        needs[name] = result
    return {name: needs[name] for name in group}


def rows_that_use(graph: OpGraph, group: tuple[str, ...]) -> dict[str, list[set[int]]]:
    """For each element of a root that a kernel with reductions reads: the rows whose blocks need it."""
    blocks, elements = rows_needed(graph, group), elements_of(graph)
    used: dict[str, list[set[int]]] = {}
    uses: dict[str, np.ndarray] = {}  # of what is free in the kernel: the elements of memory behind each element

    def behind(tensor: str) -> np.ndarray | None:
        root = graph.root_of(tensor)
        if root in uses:
            return np.array([uses[root].flat[i] for i in elements[tensor].flat] + [None], dtype=object)[:-1].reshape(
                elements[tensor].shape
            )
        if root in blocks:
            return None  # another block's, or this one's own
        cells = [frozenset({(root, int(i))}) for i in elements[tensor].flat]
        return np.array([*cells, None], dtype=object)[:-1].reshape(elements[tensor].shape)

    for name in group:
        op, shape = graph.op(name), graph.tensor(name).shape
        mine = np.full(shape, frozenset(), dtype=object)
        for part in filter(lambda part: part is not None, map(behind, op.inputs)):
            for index in np.ndindex(shape):
                if op.kind == "reduction":
                    along = part[:, index[1]] if op.axes == (0,) else part[index[0], :]
                    taken = frozenset().union(*along)
                elif op.kind == "injective":
                    taken = (part[:, ::-1] if op.axes == (1,) else part.T)[index]
                else:
                    taken = np.broadcast_to(part, shape)[index]
                mine[index] = mine[index] | taken
        if not any(blocks[name].flat):
            uses[name] = mine
        for row, taken in zip(blocks[name].flat, mine.flat, strict=True):
            for root, element in taken if row else ():
                used.setdefault(root, [set() for _ in range(graph.tensor(root).numel)])[element] |= row
    return used


@settings(max_examples=200)
@given(seeds, st.integers(2, 7))
@example(9892739, 3)  # four column sums of four values each, stretched over six rows
def test_in_a_legal_row_kernel_every_element_of_a_matrix_is_needed_by_one_block(seed: int, count: int) -> None:
    graph = random_graph(seed, count)
    for group in random_grouping(graph, seed, legal=True).groups:
        found = [graph.op(name) for name in group if graph.op(name).kind == "reduction"]
        if not found or any(graph.op(name).kind == "gemm" for name in group):
            continue
        rows = graph.tensor(found[0].name).numel
        # An operator behind a reduction may stretch its values to rows longer than those that were reduced.
        longest = (
            max(graph.tensor(tensor).numel for name in group for tensor in (name, *graph.op(name).inputs)) // rows
        )
        for root, users in rows_that_use(graph, group).items():
            size = graph.tensor(root).numel
            if size > rows and (rows == 1 or size > longest):
                assert all(len(blocks) <= 1 for blocks in users), f"{root} is read by several blocks of {group}"


@settings(max_examples=200)
@given(seeds, st.integers(2, 7))
def test_in_a_legal_kernel_every_element_depends_on_one_block(seed: int, count: int) -> None:
    graph = random_graph(seed, count)
    grouping = random_grouping(graph, seed, legal=True)
    for group in grouping.groups:
        for name, blocks in rows_needed(graph, group).items():
            assert all(len(found) <= 1 for found in blocks.flat), f"{name} of {group} waits for other blocks"


@given(seeds, st.integers(1, 9))
def test_named_groupings_cover_the_graph_and_greedy_is_legal(seed: int, count: int) -> None:
    graph = random_graph(seed, count)
    for by_hand in (False, True):
        found = greedy(graph, TINY, by_hand=by_hand)
        assert check(graph, found, TINY) == ()
        assert by_hand or marks(graph, found, TINY) == ()
        assert cost(graph, found, TINY).total_bytes <= cost(graph, unfused(graph), TINY).total_bytes
    assert eager(graph) == unfused(graph)


@given(seeds, st.integers(2, 9))
def test_no_grouping_moves_less_than_what_is_compulsory(seed: int, count: int) -> None:
    graph = random_graph(seed, count)
    assert cost(graph, random_grouping(graph, seed, legal=True), A100).total_bytes >= compulsory_bytes(graph)
