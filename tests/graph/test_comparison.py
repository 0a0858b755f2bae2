"""Groupings side by side: who is there, with which numbers, and what is said beside them."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from graph_builders import chain, fan_out, llama, softmax

from lessons_lib.base.gpus import A100, T4
from lessons_lib.base.language import use_language
from lessons_lib.base.units import MIB
from lessons_lib.graph.comparison import Comparison, compare_groupings, comparison_report, comparison_table
from lessons_lib.graph.grouping import check, cost, eager, greedy, grouping_of, marks, unfused
from lessons_lib.graph.planning.planner import best_grouping
from lessons_lib.graph.recompute import recomputed
from lessons_lib.graph.recorded import recorded_block, recorded_names

pytestmark = pytest.mark.once

T = 64 * MIB


def of_block(name: str, **options: object) -> Comparison:
    block = recorded_block(name)
    return compare_groupings(block.core, block.gpu, compiler=block.compiler, **options)  # type: ignore[arg-type]


def test_every_row_counts_what_cost_counts() -> None:
    block = recorded_block("swiglu_mlp")
    graph, gpu = block.core, block.gpu
    mine = grouping_of(graph, [["mm", "_to_copy"]])
    compared = compare_groupings(graph, gpu, compiler=block.compiler, yours=mine, launch_seconds=2e-6)
    groupings = {
        "unfused": unfused(graph),
        "eager": eager(graph),
        "greedy": greedy(graph, gpu),
        "compiler": block.compiler.grouping,
        "best": best_grouping(graph, gpu).grouping,
        "by_hand": best_grouping(graph, gpu, by_hand=True).grouping,
        "yours": mine,
    }
    assert [row.who for row in compared.rows] == list(groupings)
    for row in compared.rows:
        spent = cost(graph, groupings[row.who], gpu, 2e-6)
        assert (row.launches, row.total_bytes, row.time) == (spent.launches, spent.total_bytes, spent.time)
        assert row.read_bytes + row.write_bytes == row.total_bytes


def test_swiglu_by_hand() -> None:
    """Three GEMMs of 2048 x 4096 x 11008 in fp16: the figures that the lesson tells."""
    rows = {row.who: (row.launches, round(row.total_bytes / MIB)) for row in of_block("swiglu_mlp").rows}
    assert rows == {
        "unfused": (8, 2246),
        "eager": (5, 1042),
        "greedy": (3, 698),
        "compiler": (4, 870),
        "best": (3, 698),
        "by_hand": (2, 494),
    }


def test_rows_whose_data_is_missing_are_left_out() -> None:
    rows = [row.who for row in compare_groupings(chain(4, T), A100).rows]
    assert rows == ["unfused", "greedy", "best"]  # eager is no fusion here, and no hand does better


@pytest.mark.parametrize("name", recorded_names())
def test_nobody_is_better_than_the_bound_and_best_is_never_worse_than_greedy(name: str) -> None:
    compared = of_block(name)
    best = compared.of("best")
    assert best is not None
    block = recorded_block(name)
    plain = {"unfused", "greedy"}
    if (
        not check(block.core, block.compiler.grouping, block.gpu)
        + marks(block.core, block.compiler.grouping, block.gpu)
        and not block.compiler.repeated
    ):
        plain.add("compiler")  # neither several passes nor a matched pattern, and nothing computed twice
    assert any("computes it again" in note.en for note in compared.notes) == bool(block.compiler.repeated)
    for row in compared.rows:
        assert row.who not in plain or row.total_bytes >= best.total_bytes
    by_hand = compared.of("by_hand")
    assert by_hand is None or by_hand.total_bytes < best.total_bytes


def test_a_bound_stands_beside_a_best_that_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    from functools import partial

    from lessons_lib.graph import comparison

    monkeypatch.setattr(comparison, "best_grouping", partial(best_grouping, effort=0))
    compared = of_block("cross_entropy")
    best, bound = compared.of("best"), compared.of("bound")
    assert best is not None
    assert bound is not None
    assert "proven" not in best.name.en
    assert bound.total_bytes < best.total_bytes
    assert bound.time is None
    use_language("en")
    assert re.search(r"bound, general +≥ \d+ +≥ ", comparison_table(compared).plain())


def test_shares_are_of_what_pytorch_moves_without_a_compiler() -> None:
    compared = compare_groupings(chain(4, T), A100)
    assert [compared.share(row) for row in compared.rows] == [1.0, 0.25, 0.25]
    assert " 25% " in comparison_table(compared).plain()
    nothing = compare_groupings(chain(2, 0), A100)
    assert nothing.share(nothing.rows[1]) == 1.0


def test_the_costs_of_another_graph_can_stand_beside_it() -> None:
    graph = fan_out(T)
    again = recomputed(graph, "f")
    spent = cost(again, grouping_of(again, [["f", "g"], ["f·2", "h"]]), A100)
    compared = compare_groupings(graph, A100, yours=spent, launch_seconds=1e-6)
    row = compared.of("yours")
    assert row is not None
    assert row.time is not None
    assert (row.launches, row.total_bytes) == (2, 256 * MIB)
    assert math.isclose(row.time.low, spent.time.low + 2e-6)


def test_a_grouping_with_kernels_by_hand_is_told_what_to_compare_it_with() -> None:
    block = recorded_block("attention_2d")
    notes = compare_groupings(block.core, block.gpu, yours=block.by_hand.grouping).notes
    assert any("the best by hand is what to compare it with" in note.en for note in notes)
    assert all("best by hand" not in note.en for note in compare_groupings(block.core, block.gpu).notes)


def test_a_pattern_that_the_compiler_matched_is_said_to_be_one() -> None:
    assert any("matched a pattern" in note.en for note in of_block("attention_4d").notes)
    assert all("matched a pattern" not in note.en for note in of_block("attention_2d").notes)


def test_kernels_that_break_a_rule_are_said_to() -> None:
    graph = softmax(64, 200_000)
    whole = grouping_of(graph, [graph.launching])
    strict = compare_groupings(graph, T4, compiler=whole, yours=whole)
    assert any("the compiler's grouping is not legal (row does not fit on chip)" in note.en for note in strict.notes)
    assert any("Your grouping breaks a rule" in note.en for note in strict.notes)
    assert compare_groupings(graph, T4, compiler=whole, yours=whole, multi_pass=True).notes == ()


def test_the_compilers_own_note_says_which_scheduler_was_asked() -> None:
    assert recorded_block("softmax").compiler.note in of_block("softmax").notes


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_report_is_a_picture_a_table_and_words_in_the_edition_s_language(language: str) -> None:
    use_language(language)
    shown = comparison_report(of_block("swiglu_mlp", yours=recorded_block("swiglu_mlp").best.grouping))
    svg = shown.html[: shown.html.index("</svg>") + 6]
    ElementTree.fromstring(svg)
    words = {
        "zh": ("你的分组", "3 次启动", "通用核函数最优（已证明）"),
        "en": ("yours", "3 launches", "best general (proven)"),
    }
    for word in words[language]:
        assert word in svg
    assert ("▸ 你的分组" if language == "zh" else "▸ yours") in shown.plain
    assert "roofline" in shown.plain


def test_markup_in_a_name_is_text() -> None:
    graph = chain(2, T)
    object.__setattr__(graph, "name", "<img src=x onerror=alert(1)>")
    assert "<img" not in comparison_report(compare_groupings(graph, A100)).html


def test_it_is_quick_enough_for_a_model_of_layers_and_agrees_with_itself() -> None:
    graph = llama(3)
    first, second = compare_groupings(graph, A100), compare_groupings(graph, A100)
    assert first == second


@pytest.mark.parametrize(
    ("options", "word"),
    [({"gpu": "A100"}, "gpu"), ({"yours": 3}, "yours"), ({"yours": unfused(chain(9, T))}, "grouping")],
)
def test_wrong_arguments_are_named(options: dict[str, object], word: str) -> None:
    arguments = {"graph": chain(3, T), "gpu": A100, **options}
    with pytest.raises(ValueError, match=word):
        compare_groupings(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, "softmax", 3])
def test_a_report_of_something_else_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"参数 comparison.*\ncomparison is not valid"):
        comparison_report(wrong)  # type: ignore[arg-type]
