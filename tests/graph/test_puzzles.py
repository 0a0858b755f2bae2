"""The puzzles: their figures are those counted by hand, each can be solved by presses, and no tempting state solves it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from puzzle_solutions import RECOMPUTED, SOLUTIONS

from lessons_lib.graph.grouping import check, fuse_across, greedy as merged_greedily, grouping_of, unfused
from lessons_lib.graph.puzzles.levels import PUZZLES, Attempt, Puzzle, Score, puzzle
from lessons_lib.graph.recompute import as_compiled, recomputed
from lessons_lib.graph.recorded import recorded_block, recorded_names
from lessons_lib.graph.workbench import Workbench

KIB, MIB = 2**10, 2**20
NAMES = {level.name: level for level in PUZZLES}
EACH = pytest.mark.parametrize("level", PUZZLES, ids=list(NAMES))


def bench_of(level: Puzzle) -> Workbench:
    return Workbench(level.graph, level.gpu, multi_pass=level.multi_pass, recompute=level.recompute)


def judged(level: Puzzle, bench: Workbench) -> Attempt:
    return level.judge(bench.graph, bench.grouping)


def state(name: str, groups: Sequence[Sequence[str]], recompute: Sequence[str] = ()) -> Attempt:
    """A grouping of a level, judged; operators that are not named have a kernel each."""
    level, graph = NAMES[name], NAMES[name].graph
    for op in recompute:
        graph = recomputed(graph, op)
    return level.judge(graph, grouping_of(graph, groups))


# -- the set --------------------------------------------------------------------------------------------------


def test_there_are_ten_levels_each_with_its_own_graph() -> None:
    assert [level.number for level in PUZZLES] == list(range(1, 11))
    assert len(NAMES) == 10 and len({level.block for level in PUZZLES}) == 10
    assert set(SOLUTIONS) == set(NAMES)
    assert {level.block for level in PUZZLES} <= {*recorded_names()}
    assert {level.objective for level in PUZZLES} == {"bytes", "launches"}
    assert puzzle(10) is PUZZLES[9]


@pytest.mark.parametrize("level", [0, 11, True, "1", None, 1.0])
def test_a_level_that_is_not_there_is_refused(level: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)参数 level.*level"):
        puzzle(level)


def test_they_get_harder_by_the_presses_they_take() -> None:
    """Not strictly: a late level may take one press, once one knows which."""
    presses = {name: len(SOLUTIONS[name]) for name in NAMES if name != "attention"}
    early, late = list(presses.values())[:4], list(presses.values())[4:]
    assert max(early) < min(late)


@EACH
def test_every_word_is_there_in_both_languages_with_its_figures(level: Puzzle) -> None:
    words = [level.title, level.story, *level.hints, level.explanation]
    assert len(level.hints) == 3
    for text in words:
        assert not re.search(r"[{}]", text.zh + text.en)
        assert re.search(r"[一-鿿]", text.zh) and not re.search(r"[一-鿿]", text.en)
        assert not re.search(r"(?<![0-9a-z])[,;:!?](?![0-9])", text.zh), text.zh  # Chinese punctuation is full-width
    assert len(level.explanation.en) < 800 and len(level.story.en) < 520
    assert all(len(hint.en) < 200 for hint in level.hints)


@EACH
def test_operators_that_hints_name_exist(level: Puzzle) -> None:
    known = {name for name in level.graph.launching if "_" in name or re.search(r"\d", name)}
    everywhere = {name for other in PUZZLES for name in other.graph.launching if "_" in name}
    for hint in (*level.hints, level.story):
        named = {name for name in everywhere if re.search(rf"(?<![\w]){re.escape(name)}(?!\w)", hint.en)}
        assert named <= known


def test_puzzles_load_without_widgets_or_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from lessons_lib.graph.puzzles.levels import PUZZLES\n"
        "[(level.goal, level.compiler, level.explanation) for level in PUZZLES]\n"
        "assert not {'numpy', 'ipywidgets', 'drawsvg', 'matplotlib', 'anywidget'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# -- figures, counted by hand ---------------------------------------------------------------------------------

VECTOR = 8 * KIB  # 4096 in fp16
MEANS = 32 * 2  # a value a row for the 32 requests, in fp16


@pytest.mark.parametrize(
    "name, start, compiled, best",
    [
        # Checkpoint 3: three operators read and write 8 tensors of 32 MiB; fused gate, up and the result.
        ("gate", (3, 256 * MIB), (1, 96 * MIB), (1, 96 * MIB)),
        # Checkpoint 17: 2 + 2 + 2 + 3 tensors of 64 MiB; fused x, residual, result.
        ("side_input", (4, 576 * MIB + 2 * VECTOR), (1, 192 * MIB + 2 * VECTOR), (1, 192 * MIB + 2 * VECTOR)),
        # Checkpoint 7, with t an output: x, t, u, v.
        ("kept", (3, 384 * MIB), (1, 256 * MIB), (1, 256 * MIB)),
        # Checkpoint 4 for the first three (184,557,568 B, fused 50,339,840 B), then 48 MiB for the second GEMM.
        ("epilogue", (4, 184_557_568 + 48 * MIB), (3, 117_448_704 + 48 * MIB), (2, 50_339_840 + 48 * MIB)),
        # x, residual, sum, result of 256 KiB and the weights; in two groups the sum is read back.
        (
            "reduction",
            (7, 10 * 256 * KIB + 6 * MEANS + VECTOR),
            (2, 5 * 256 * KIB + VECTOR),
            (1, 4 * 256 * KIB + VECTOR),
        ),
        # x 64, q 16 and 16, scale out 16 KiB, sums out 32 KiB; the compiler reads x twice, and the scale.
        ("cut", (6, 416 * MIB + 96 * KIB), (2, 128 * MIB + 64 * KIB), (2, 96 * MIB + 48 * KIB)),
        # 64 MiB: sub 3, amax 1, sub 2, exp 2, sum 1, div 2; one kernel 3 x 2 + 1; two kernels 3 + 3.
        ("long_row", (6, 11 * 64 * MIB + 4 * KIB), (1, 7 * 64 * MIB), (2, 6 * 64 * MIB + 2 * KIB)),
        # 32 MiB: three inputs, t written and read; the compiler reads three inputs twice. Two results of 16 KiB.
        ("recompute", (7, 672 * MIB + 32 * KIB), (2, 192 * MIB + 32 * KIB), (2, 160 * MIB + 32 * KIB)),
        # Checkpoint 11; the compiler's three kernels pass the 8 MiB matrix on twice.
        ("attention", (10, None), (3, 33 * MIB), (1, int(16.5 * MIB))),
        # RMSNorm 128, GEMMs 160, 224, 192; the compiler 128, 160, 160, 192 and 192 for the gate alone.
        ("half_layer", (18, None), (5, 832 * MIB + VECTOR), (4, 704 * MIB + VECTOR)),
    ],
)
def test_figures_counted_by_hand(
    name: str, start: tuple[int, int | None], compiled: tuple[int, int], best: tuple[int, int]
) -> None:
    level = NAMES[name]
    assert level.start.launches == start[0]
    assert start[1] in (level.start.total_bytes, None)
    assert level.compiler == Score(*compiled)
    assert level.solution.score == Score(*best)


@EACH
def test_the_best_is_proven_and_the_goal_follows_from_it_or_from_the_compiler(level: Puzzle) -> None:
    solution = level.solution
    assert solution.plan.proven
    problems = check(solution.graph, solution.plan.grouping, level.gpu)
    assert all(problem.multi_pass and level.multi_pass for problem in problems)
    best, compiled = (score.counted(level.objective) for score in (solution.score, level.compiler))
    assert best <= compiled < level.start.counted(level.objective)
    assert best <= level.goal
    assert level.goal == best if level.aim == "best" else level.goal < compiled


def test_half_the_levels_beat_the_compiler() -> None:
    beaten = [p for p in PUZZLES if p.solution.score.counted(p.objective) < p.compiler.counted(p.objective)]
    assert len(beaten) >= 5


def test_what_the_compiler_computes_twice_is_counted_as_computed_twice() -> None:
    block = recorded_block("activation_statistics")
    graph, grouping = as_compiled(block.core, block.compiler)
    assert set(block.compiler.repeated) == {"add", "add_1", "_to_copy"}
    assert len(grouping) == 2
    assert all(
        {name.partition("·")[0] for name in group} >= {"add", "add_1", "_to_copy"} for group in grouping.groups
    )
    assert check(graph, grouping, block.gpu) == ()


def test_without_repeats_the_compilers_kernels_are_as_recorded() -> None:
    for name in ("lstm_cell", "llama_half_layer", "quantized_columns"):  # a repeated GEMM cannot be copied
        block = recorded_block(name)
        graph, grouping = as_compiled(block.core, block.compiler)
        assert graph is block.core
        assert {frozenset(group) for group in grouping.groups} == {
            frozenset(g) for g in block.compiler.grouping.groups
        }


# -- solving them ---------------------------------------------------------------------------------------------


@EACH
def test_the_start_solves_nothing(level: Puzzle) -> None:
    attempt = level.judge(level.graph, unfused(level.graph))
    assert attempt.counts and not attempt.solved and not attempt.best


@EACH
def test_presses_solve_it_and_only_the_last_one_does(level: Puzzle) -> None:
    bench, before = bench_of(level), False
    for op in RECOMPUTED.get(level.name, ()):
        assert bench.recompute(op), bench.message.en
    for a, b in SOLUTIONS[level.name]:
        before = judged(level, bench).solved
        assert bench.press_pair(a, b), bench.message.en
    attempt = judged(level, bench)
    assert attempt.solved and attempt.best and attempt.counts
    assert level.name == "half_layer" or not before


# The kernel of attention has no legal halves: there, two operators are chosen, and what lies between comes along.
@pytest.mark.parametrize("level", [level for level in PUZZLES if level.name != "attention"], ids=lambda p: p.name)
def test_the_planners_kernels_can_be_pressed_edge_by_edge(level: Puzzle) -> None:
    """What a learner does in the picture: an edge inside each kernel, in the graph's order, as often as it helps."""
    bench, plan = bench_of(level), level.solution.plan
    for op in level.solution.recomputed:
        bench.recompute(op)
    home = {name: index for index, group in enumerate(plan.grouping.groups) for name in group}
    inside = [i for i, edge in enumerate(bench.graph.edges) if home[edge.producer] == home[edge.consumer]]
    for _ in range(len(inside)):
        for index in inside:
            edge = bench.graph.edges[index]
            if bench.grouping.index_of(edge.producer) != bench.grouping.index_of(edge.consumer):
                bench.press_edge(index)
    assert judged(level, bench).best


@pytest.mark.parametrize("name", ["cut", "long_row", "recompute", "attention"])
def test_merging_greedily_does_not_solve_the_levels_about_looking_ahead(name: str) -> None:
    level = NAMES[name]
    grouping = merged_greedily(level.graph, level.gpu, by_hand=level.by_hand, multi_pass=level.multi_pass)
    assert not level.judge(level.graph, grouping).solved


# -- states that tempt ----------------------------------------------------------------------------------------


def test_gate_eagers_silu_then_the_product_is_not_enough() -> None:
    attempt = state("gate", [["sigmoid", "mul"]])
    assert attempt.score == Score(2, 160 * MIB) and not attempt.solved  # checkpoint 3


def test_side_input_two_and_two_is_not_enough() -> None:
    attempt = state("side_input", [["add", "gelu"], ["mul", "add_1"]])
    assert attempt.score == Score(2, 320 * MIB + 2 * VECTOR) and not attempt.solved  # checkpoint 17


def test_side_input_four_times_fewer_is_out_of_reach() -> None:
    assert NAMES["side_input"].solution.score.total_bytes > 144 * MIB


def test_kept_one_reader_alone_still_leaves_the_other_reading() -> None:
    attempt = state("kept", [["relu", "sigmoid"]])
    assert attempt.score.total_bytes == 320 * MIB and not attempt.solved  # checkpoint 7
    readers = state("kept", [["sigmoid", "mul"]])
    assert readers.score.total_bytes == 320 * MIB and not readers.solved


def test_epilogue_gelu_in_the_second_gemm_moves_as_little_but_is_made_by_hand() -> None:
    attempt = state("epilogue", [["mm", "add"], ["gelu", "mm_1"]])
    assert attempt.score == NAMES["epilogue"].solution.score
    assert attempt.by_hand and attempt.legal and not attempt.counts and not attempt.solved


def test_epilogue_the_compilers_three_kernels_are_not_enough() -> None:
    attempt = state("epilogue", [["mm", "add"]])
    assert attempt.score == NAMES["epilogue"].compiler and not attempt.solved


def test_reduction_stopping_before_it_or_behind_it_is_one_launch_too_many() -> None:
    before = state("reduction", [["add", "pow_1"], ["mean", "add_1", "rsqrt", "mul", "mul_1"]])
    behind = state("reduction", [["add", "pow_1", "mean", "add_1", "rsqrt"], ["mul", "mul_1"]])
    for attempt in (before, behind):
        assert attempt.legal and attempt.score.launches == 2 and not attempt.solved


def test_cut_at_the_thinnest_edge_reads_x_twice() -> None:
    attempt = state("cut", [["abs_1", "amax", "div"], ["div_1", "_to_copy", "sum_1"]])
    assert attempt.legal and not attempt.solved
    assert attempt.score.total_bytes == NAMES["cut"].compiler.total_bytes == 128 * MIB + 64 * KIB


def test_cut_before_the_cast_writes_fp32() -> None:
    attempt = state("cut", [["abs_1", "amax", "div", "div_1"], ["_to_copy", "sum_1"]])
    assert attempt.legal and attempt.score.total_bytes > 192 * MIB and not attempt.solved


def test_cut_all_in_one_is_refused_with_the_rule() -> None:
    bench = bench_of(NAMES["cut"])
    for a, b in SOLUTIONS["cut"]:
        bench.press_pair(a, b)
    assert not bench.press_pair("_to_copy", "sum_1")
    assert "归约" in bench.message.zh and "reduc" in bench.message.en


def test_long_row_all_in_one_takes_three_passes_over_two_inputs() -> None:
    level = NAMES["long_row"]
    attempt = state("long_row", [level.graph.launching])
    assert attempt.score == Score(1, 448 * MIB) and attempt.legal and not attempt.solved


def test_long_row_without_further_passes_stays_at_448() -> None:
    attempt = state("long_row", [["sub", "amax"], ["sub_1", "exp", "sum_1"]])
    assert attempt.score.total_bytes // MIB == 448 and not attempt.solved


def test_long_row_is_about_a_row_that_does_not_fit() -> None:
    level = NAMES["long_row"]
    assert level.gpu.shared_bytes_per_block == 163 * KIB < 65536 * 4
    assert any(
        problem.rule == "row"
        for problem in check(level.graph, grouping_of(level.graph, [level.graph.launching]), level.gpu)
    )


def test_recompute_storing_fp32_or_starting_over_are_both_more() -> None:
    first, second = ["add", "add_1", "_to_copy", "pow_1", "mean"], ["abs_1", "amax"]
    stored = state("recompute", [first, second])
    assert stored.score.total_bytes // MIB == 224 and not stored.solved
    copies = [["add", "add_1", "_to_copy", "pow_1", "mean"], ["add·2", "add_1·2", "_to_copy·2", "abs_1", "amax"]]
    level = NAMES["recompute"]
    graph = level.graph
    for op in ("_to_copy", "add_1", "add"):
        graph = recomputed(graph, op)
    over = level.judge(graph, grouping_of(graph, copies))
    assert over.legal and over.score.total_bytes // MIB == 192 and not over.solved


def test_recompute_of_the_sum_alone_cannot_be_asked_before_the_cast() -> None:
    bench = bench_of(NAMES["recompute"])
    assert not bench.recompute("add_1")
    assert bench.recompute("_to_copy") and bench.recompute("add_1")


def test_attention_in_three_general_kernels_is_what_the_compiler_does() -> None:
    middle = NAMES["attention"].graph.launching[1:-1]
    attempt = state("attention", [middle])
    assert attempt.score == NAMES["attention"].compiler and not attempt.solved


def test_attention_cannot_grow_from_one_gemm() -> None:
    bench = bench_of(NAMES["attention"])
    assert bench.press_pair("mm", "div") and bench.press_pair("div", "_to_copy")
    assert not bench.press_pair("_to_copy", "amax")


def test_attention_needs_no_more_than_its_kernel_by_hand_and_other_levels_do_not_allow_it() -> None:
    level = NAMES["attention"]
    assert level.by_hand and level.solution.plan.grouping.groups == (level.graph.launching,)
    assert [other.name for other in PUZZLES if other.by_hand] == ["attention"]


def test_half_layer_the_compilers_kernels_do_not_solve_it_and_one_epilogue_more_does() -> None:
    level = NAMES["half_layer"]
    groups = [list(group) for group in level.record.compiler.grouping.groups]
    compiled = state("half_layer", groups)
    assert compiled.legal and not compiled.solved
    (gemm,) = (group for group in groups if group == ["mm_1"])
    (gate,) = (group for group in groups if "sigmoid" in group)
    better = state("half_layer", [*(g for g in groups if g not in (gemm, gate)), gemm + gate])
    assert better.solved and better.best


def test_half_layer_two_gemms_side_by_side_move_less_and_do_not_count() -> None:
    level = NAMES["half_layer"]
    norm, last = level.solution.plan.grouping.groups[0], ("mm_2", "add_2")
    rest = [name for name in level.graph.launching if name not in (*norm, *last)]
    attempt = state("half_layer", [norm, rest, last])
    assert attempt.legal and attempt.by_hand and not attempt.counts and not attempt.solved
    assert attempt.score.total_bytes < level.solution.score.total_bytes


def test_half_layer_the_residual_cannot_join_its_last_reader() -> None:
    bench = bench_of(NAMES["half_layer"])
    (edge,) = (i for i, e in enumerate(bench.graph.edges) if (e.producer, e.consumer) == ("add", "add_2"))
    assert not bench.press_edge(edge)
    assert "环" in bench.message.zh and "cycle" in bench.message.en


# -- judging and fusing across --------------------------------------------------------------------------------


def test_what_breaks_a_rule_does_not_count_however_little_it_moves() -> None:
    level = NAMES["cut"]
    attempt = state("cut", [level.graph.launching])
    assert attempt.score.total_bytes < level.goal
    assert not attempt.legal and not attempt.counts and not attempt.solved and not attempt.best


def test_several_passes_count_only_where_the_level_allows_them() -> None:
    level = replace(NAMES["long_row"], multi_pass=False)
    whole = grouping_of(level.graph, [level.graph.launching])
    assert not level.judge(level.graph, whole).legal


def test_fusing_across_takes_along_what_lies_between_and_nothing_else() -> None:
    graph = NAMES["attention"].graph
    start = unfused(graph)
    assert fuse_across(graph, start, "mm", "mm_1").groups == (graph.launching,)
    assert fuse_across(graph, start, "mm_1", "mm") == fuse_across(graph, start, "mm", "mm_1")
    assert len(fuse_across(graph, start, "exp", "div_1")) == 8  # the sum lies between
    half = NAMES["half_layer"].graph
    fan = fuse_across(half, unfused(half), "mm", "mm_1")  # neither needs the other: nothing lies between
    assert {len(group) for group in fan.groups} == {1, 2}


def test_each_press_of_a_solution_fuses() -> None:
    for name, presses in SOLUTIONS.items():
        bench = bench_of(NAMES[name])
        for op in RECOMPUTED.get(name, ()):
            bench.recompute(op)
        launches = [bench.cost.launches]
        for a, b in presses:
            bench.press_pair(a, b)
            launches.append(bench.cost.launches)
        assert all(after < before for before, after in pairwise(launches)) or name == "attention"
