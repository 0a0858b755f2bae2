"""The planner against trying everything, and on graphs that are too large for that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from graph_builders import Builder, attention, chain, fan_out, llama, random_graph, rmsnorm, softmax
from hypothesis import given, settings, strategies as st

from lessons_lib.base.gpus import A100, Gpu
from lessons_lib.base.units import MIB
from lessons_lib.graph.grouping import check, compulsory_bytes, cost, greedy, grouping_of, marks, unfused
from lessons_lib.graph.opgraph import GraphOp, OpGraph, tensor_of
from lessons_lib.graph.planning.planner import Plan, best_grouping

pytestmark = pytest.mark.once

TINY = replace(A100, name="tiny", shared_bytes_per_block=16)


# -- trying everything ----------------------------------------------------------------------------------------


def exhaustive(graph: OpGraph, gpu: Gpu, *, by_hand: bool = False, multi_pass: bool = False) -> tuple[int, int]:
    """The fewest bytes and the fewest launches of any legal grouping, by going through all partitions."""
    names = graph.launching
    moved = _legal_sets(graph, gpu, by_hand, multi_pass)
    best: list[int | None] = [None, None]

    def extend(rest: int, chosen: list[int], spent: int) -> None:
        if rest:
            low = rest & -rest
            others = part = rest ^ low
            while True:
                if part | low in moved:
                    extend(rest ^ low ^ part, [*chosen, part | low], spent + moved[part | low])
                if not part:
                    return
                part = (part - 1) & others
        scores = (spent, len(chosen))
        if all(old is not None and old <= new for old, new in zip(best, scores, strict=True)):
            return
        groups = [[name for index, name in enumerate(names) if mask >> index & 1] for mask in chosen]
        if any(problem.rule == "cycle" for problem in check(graph, grouping_of(graph, groups), gpu)):
            return
        for place, new in enumerate(scores):
            old = best[place]
            best[place] = new if old is None else min(old, new)

    extend((1 << len(names)) - 1, [], 0)
    assert best[0] is not None and best[1] is not None
    return best[0], best[1]


def _legal_sets(graph: OpGraph, gpu: Gpu, by_hand: bool, multi_pass: bool) -> dict[int, int]:
    """Bytes of every set of operators that may be a kernel while all others run alone."""
    names, moved = graph.launching, {}
    for mask in range(1, 1 << len(names)):
        group = [name for index, name in enumerate(names) if mask >> index & 1]
        grouping = grouping_of(graph, [group])
        if any(not (multi_pass and problem.multi_pass) for problem in check(graph, grouping, gpu)):
            continue
        if by_hand or not marks(graph, grouping, gpu):
            moved[mask] = cost(graph, grouping, gpu).groups[grouping.index_of(group[0])].total_bytes
    return moved


def assert_legal(graph: OpGraph, plan: Plan, gpu: Gpu, *, by_hand: bool = False, multi_pass: bool = False) -> None:
    assert all(multi_pass and problem.multi_pass for problem in check(graph, plan.grouping, gpu))
    assert by_hand or marks(graph, plan.grouping, gpu) == ()
    assert plan.cost == cost(graph, plan.grouping, gpu)
    assert plan.bound_bytes <= plan.cost.total_bytes
    assert plan.bound_launches <= plan.cost.launches


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.integers(1, 7), st.sampled_from([A100, TINY]), st.booleans(), st.booleans())
def test_no_grouping_beats_the_planners(seed: int, count: int, gpu: Gpu, by_hand: bool, multi_pass: bool) -> None:
    graph = random_graph(seed, count)
    fewest = exhaustive(graph, gpu, by_hand=by_hand, multi_pass=multi_pass)
    for place, objective in enumerate(("bytes", "launches")):
        plan = best_grouping(graph, gpu, objective, by_hand=by_hand, multi_pass=multi_pass)  # type: ignore[arg-type]
        assert_legal(graph, plan, gpu, by_hand=by_hand, multi_pass=multi_pass)
        assert (plan.cost.total_bytes, plan.cost.launches)[place] == fewest[place]
        assert plan.proven
        assert (plan.bound_bytes, plan.bound_launches)[place] == fewest[place]


def gated_block() -> OpGraph:
    """10 operators: RMSNorm, two GEMMs on it, SiLU times the other one, a GEMM, and the residual."""
    build = Builder("gated", "float16")
    build.input("x", 32, 16)
    build.op("square", "elementwise", ["x"])
    build.op("mean", "reduction", ["square"], (32, 1))
    build.op("rsqrt", "elementwise", ["mean"])
    build.op("scale", "elementwise", ["x", "rsqrt"])
    for name in ("gate", "up"):
        build.op(name, "gemm", ["scale", build.input(f"w_{name}", 16, 48)], (32, 48))
    build.op("silu", "elementwise", ["gate"])
    build.op("mul", "elementwise", ["silu", "up"])
    build.op("down", "gemm", ["mul", build.input("w_down", 48, 16)], (32, 16))
    build.op("add", "elementwise", ["down", "x"])
    return build.graph("add")


def crossed_sums() -> OpGraph:
    """10 operators around two reductions with different rows, with fan-out and a kept output."""
    build = Builder("crossed")
    build.input("x", 8, 8)
    build.op("f", "elementwise", ["x"])
    build.op("g", "elementwise", ["f"])
    build.op("rows", "reduction", ["f"], (8, 1))
    build.op("columns", "reduction", ["g"], (1, 8))
    build.op("by_row", "elementwise", ["f", "rows"])
    build.op("by_column", "elementwise", ["g", "columns"])
    build.op("both", "elementwise", ["by_row", "by_column"])
    build.op("turned", "injective", ["both"], (8, 8), axes=(0, 1))
    build.op("sort", "opaque", ["by_row"])
    build.op("end", "elementwise", ["turned", "sort"])
    return build.graph("end", "g")


def attention_with_bias() -> OpGraph:
    """10 operators: attention with an additive mask and a layout change behind it."""
    build = Builder("attention with bias", "float16")
    for name in "qkv":
        build.input(name, 2, 16, 8)
    build.op("kt", "view", ["k"], (2, 8, 16), axes=(1, 2))
    build.op("qk", "gemm", ["q", "kt"], (2, 16, 16))
    build.op("scale", "elementwise", ["qk"])
    build.op("bias", "broadcast", ["scale", build.input("m", 16, 16)])
    build.op("max", "reduction", ["bias"], (2, 16, 1))
    build.op("sub", "elementwise", ["bias", "max"])
    build.op("exp", "elementwise", ["sub"])
    build.op("sum", "reduction", ["exp"], (2, 16, 1))
    build.op("div", "elementwise", ["exp", "sum"])
    build.op("pv", "gemm", ["div", "v"], (2, 16, 8))
    build.op("turn", "injective", ["pv"], (16, 2, 8), axes=(0, 1))
    return build.graph("turn")


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("make", [gated_block, crossed_sums, attention_with_bias])
def test_ten_operators_against_every_partition(make: Any, by_hand: bool) -> None:
    graph = make()
    assert len(graph.launching) == 10
    fewest = exhaustive(graph, A100, by_hand=by_hand)
    for place, objective in enumerate(("bytes", "launches")):
        plan = best_grouping(graph, A100, objective, by_hand=by_hand)  # type: ignore[arg-type]
        assert_legal(graph, plan, A100, by_hand=by_hand)
        assert plan.proven
        assert (plan.cost.total_bytes, plan.cost.launches)[place] == fewest[place]


# -- known answers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "mib", "launches"),
    [
        (chain(4, 64 * MIB, side=[3]), 192, 1),
        (fan_out(64 * MIB), 192, 1),
        (softmax(4096, 4096), 128, 1),
        (rmsnorm(4096, 4096, residual=True, keep_sum=True), 128, 1),
        (attention(2048, 64), 33, 3),
    ],
)
def test_the_checkpoints_best_groupings_are_proven(graph: OpGraph, mib: int, launches: int) -> None:
    plan = best_grouping(graph, A100)
    assert (plan.cost.total_bytes // MIB, plan.cost.launches, plan.proven) == (mib, launches, True)
    assert_legal(graph, plan, A100)


def test_by_hand_attention_is_one_kernel_unless_its_operands_are_read_too_often() -> None:
    graph = attention(2048, 64)
    plan = best_grouping(graph, A100, by_hand=True)
    assert (plan.cost.launches, plan.cost.total_bytes) == (1, 33 * MIB // 2)
    plan = best_grouping(graph, A100, by_hand=True, block_rows=8)  # K and V 256 times: 128.5 MiB
    assert plan.cost.launches > 1
    assert best_grouping(graph, A100, "launches", by_hand=True, block_rows=8).cost.launches == 1


def test_rows_that_do_not_fit_cost_kernels_or_passes() -> None:
    graph = softmax(64, 2**18)
    strict, loose = best_grouping(graph, A100), best_grouping(graph, A100, multi_pass=True)
    assert_legal(graph, strict, A100)
    assert_legal(graph, loose, A100, multi_pass=True)
    assert (strict.cost.launches, loose.cost.launches) == (3, 1)
    assert loose.cost.total_bytes < strict.cost.total_bytes


def halves() -> OpGraph:
    """``f`` can join its readers only together: with one of them it would be written, at another size than theirs."""
    whole, half = [tensor_of(name, (64, 64)) for name in ("x", "t", "u")], [tensor_of(n, (64, 32)) for n in "vwyz"]
    ops = (
        GraphOp("f", "elementwise", ("x",), ("t", "u")),
        GraphOp("lo", "view", ("t",), ("v",), axes=(1,)),
        GraphOp("hi", "view", ("u",), ("w",), axes=(1,)),
        GraphOp("g", "elementwise", ("v",), ("y",)),
        GraphOp("h", "elementwise", ("w",), ("z",)),
    )
    return OpGraph("halves", ops, (*whole, *half), ("x",), ("y", "z"))


@pytest.mark.parametrize(("effort", "method"), [(1000, "exact"), (0, "local")])
def test_where_pairs_are_not_enough_the_planner_looks_further(effort: int, method: str) -> None:
    graph = halves()
    assert len(greedy(graph, A100)) == 3
    plan = best_grouping(graph, A100, effort=effort)
    assert (plan.cost.launches, plan.method) == (1, method)
    assert plan.cost.total_bytes == compulsory_bytes(graph)


def test_regions_whose_best_kernels_wait_for_each_other_are_told_apart() -> None:
    build = Builder("crossing")
    for name in "xy":
        build.input(name, 64)
    build.op("a1", "elementwise", ["x"])
    build.op("b2", "elementwise", ["y"])
    build.op("p", "opaque", ["a1"])
    build.op("q", "opaque", ["b2"])
    build.op("a2", "elementwise", ["x", "q"])
    build.op("b1", "elementwise", ["y", "p"])
    graph = build.graph("a2", "b1")
    assert "cycle" in [p.rule for p in check(graph, grouping_of(graph, [["a1", "a2"], ["b1", "b2"]]), A100)]
    plan = best_grouping(graph, A100)
    assert_legal(graph, plan, A100)
    assert plan.cost.total_bytes == exhaustive(graph, A100)[0]
    assert not plan.proven  # the bound, region by region, does not see the cycle


# -- large graphs ---------------------------------------------------------------------------------------------


@settings(max_examples=8)
@given(st.integers(0, 10**9), st.sampled_from([30, 80, 150]), st.booleans())
def test_a_large_graph_is_legal_and_never_worse_than_greedy(seed: int, count: int, by_hand: bool) -> None:
    graph = random_graph(seed, count)
    merged = cost(graph, greedy(graph, TINY, by_hand=by_hand), TINY)
    quick, thorough = (best_grouping(graph, TINY, by_hand=by_hand, effort=effort) for effort in (0, 3000))
    for plan in (quick, thorough):
        assert_legal(graph, plan, TINY, by_hand=by_hand)
        assert plan.cost.total_bytes <= merged.total_bytes
        assert plan.proven == (plan.bound_bytes == plan.cost.total_bytes)
    assert thorough.bound_bytes >= quick.bound_bytes


def test_3000_nodes_of_decoder_layers_are_proven_and_alike() -> None:
    graph = llama(45)
    assert len(graph.ops) > 3000
    plan = best_grouping(graph, A100)
    assert_legal(graph, plan, A100)
    assert plan.proven
    shapes: dict[str, list[tuple[str, ...]]] = {}
    for group in plan.grouping.groups:
        layer = group[0].split(".")[0]
        shapes.setdefault(layer, []).append(tuple(sorted(name.split(".", 1)[1] for name in group)))
    inner = [sorted(shapes[f"l{index}"]) for index in range(1, 44)]
    assert all(layer == inner[0] for layer in inner)


def test_10000_operators_in_a_row_are_one_kernel() -> None:
    graph = chain(10_000, 64)
    plan = best_grouping(graph, A100)
    assert (plan.cost.launches, plan.proven, plan.method) == (1, True, "bound")


def test_5000_readers_of_one_tensor_are_one_kernel() -> None:
    build = Builder("star")
    build.input("x", 64)
    build.op("p", "elementwise", ["x"])
    readers = [build.op(f"r{index}", "elementwise", ["p"]) for index in range(5000)]
    graph = build.graph(*readers)
    assert best_grouping(graph, A100).cost.launches == 1


# -- arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"objective": "time"}, "objective"),
        ({"by_hand": 1}, "by_hand"),
        ({"multi_pass": "yes"}, "multi_pass"),
        ({"block_rows": 0}, "block_rows"),
        ({"effort": -1}, "effort"),
    ],
)
def test_a_bad_argument_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s)^参数 {named} .*\n{named} "):
        best_grouping(chain(2, 64), A100, **options)
    with pytest.raises(ValueError, match="gpu"):
        best_grouping(chain(2, 64), "A100")  # type: ignore[arg-type]


def test_a_graph_of_views_alone_has_an_empty_plan() -> None:
    build = Builder()
    build.op("v", "view", [build.input("x", 2, 3)], (6,), axes=())
    graph = build.graph("v")
    plan = best_grouping(graph, A100)
    assert (plan.grouping, plan.cost.launches, plan.proven) == (unfused(graph), 0, True)


@pytest.mark.parametrize("wrong", [None, "softmax", 3])
def test_what_is_no_graph_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"参数 graph.*\ngraph is not valid"):
        best_grouping(wrong, A100)  # type: ignore[arg-type]
