"""Lesson 05's own questions: the reference passes, every listed mistake is met and explained."""

from __future__ import annotations

import pytest

from lessons_lib.base.gpus import GPUS, T4
from lessons_lib.base.units import MIB
from lessons_lib.kernels.exercises import (
    _GATE_BYTES,
    check_fused_bytes,
    kernel_quiz,
    kernel_vote,
    losing_vote,
)
from lessons_lib.kernels.losing import gemm_plans
from lessons_lib.traffic.model import Operator, plan_traffic


def gate_bytes(rows: int, columns: int, element_bytes: int, kernels: int) -> int:
    """The lesson's own solution."""
    matrices = 2 * (kernels - 1) + 3
    return (matrices * rows + 1) * columns * element_bytes


def test_the_lessons_solution_passes() -> None:
    feedback = check_fused_bytes(gate_bytes)
    assert feedback.status == "right"
    assert feedback.hints == ()


@pytest.mark.parametrize("kernels", [1, 2, 3])
def test_the_solution_is_what_the_graph_of_operators_moves(kernels: int) -> None:
    graph = (
        Operator("add", ("x", "bias"), "z"),
        Operator("silu", ("z",), "s"),
        Operator("mul", ("s", "gate"), "y"),
    )
    groups = {1: [["add", "silu", "mul"]], 2: [["add"], ["silu", "mul"]], 3: [["add"], ["silu"], ["mul"]]}
    matrix = 4096 * 8192 * 2
    assert matrix == 64 * MIB
    sizes = dict.fromkeys(("x", "z", "s", "gate", "y"), matrix) | {"bias": 8192 * 2}
    counted = plan_traffic(graph, groups[kernels], sizes, outputs=["y"])["total_bytes"]
    assert gate_bytes(4096, 8192, 2, kernels) == counted


@pytest.mark.parametrize("index", range(len(_GATE_BYTES.mistakes)))
def test_each_usual_mistake_fails_and_is_explained(index: int) -> None:
    mistake = _GATE_BYTES.mistakes[index]
    feedback = check_fused_bytes(mistake.gives)
    assert feedback.status == "wrong"
    assert str(mistake.words) in feedback.words
    assert len(feedback.hints) == 3


def test_a_function_still_to_write_is_open() -> None:
    assert check_fused_bytes(None).status == "open"
    assert check_fused_bytes(lambda **case: None).status == "open"


def test_the_vote_holds_the_ratio_of_the_chain_and_the_two_usual_guesses() -> None:
    vote = kernel_vote()
    assert vote.value is None
    values = [value for _, value in vote.options]
    assert values == pytest.approx([5 / 3, 3, 4])
    assert [str(label) for label, _ in vote.options] == ["1.67×", "3×", "4×"]
    vote.choose(2)
    assert vote.value == 3.0  # checkpoint 17: 576 MiB against 192 MiB


def test_the_losing_vote_has_the_answer_that_the_prediction_gives() -> None:
    plans = gemm_plans(T4)
    assert plans.fused.low > plans.library_then_epilogue.high
    vote = losing_vote()
    vote.choose(3)
    assert vote.value == "slower"
    assert [value for _, value in vote.options] == ["faster", "same", "slower"]


def test_the_quiz_has_exactly_these_keys() -> None:
    quiz = kernel_quiz()
    keys = (3, 2, 1)
    assert [[choice.right for choice in question.choices].index(True) + 1 for question in quiz.questions] == [*keys]
    for number, key in enumerate(keys, 1):
        for choice in (1, 2, 3):
            quiz.answer(number, choice)
            why = str(quiz.questions[number - 1].choices[choice - 1].why)
            shown = quiz._feedback[number - 1].value
            assert ("✓" in shown) == (choice == key)
            assert why.split("'")[0][:20] in shown
        quiz.answer(number, key)
    assert quiz.score == 3


def test_the_figures_in_the_quiz_are_the_gpus() -> None:
    assert GPUS["MI300X"].shared_bytes_per_block == 65_536
    assert 2 * 64 * MIB / T4.bandwidth > 0.4e-3
