"""Lesson 04's guesses, exercise and quiz: right answers are the library's, wrong ones are told apart."""

from __future__ import annotations

from typing import Any

import pytest

from lessons_lib import GPUS, use_language
from lessons_lib.graph import exercises
from lessons_lib.graph.exercises import check_kernel_mib, compiler_vote, graph_quiz, graph_vote
from lessons_lib.graph.grouping import cost, grouping_of, unfused
from lessons_lib.graph.opgraph import GraphOp, GraphTensor, OpGraph
from lessons_lib.graph.recorded import recorded_block

A100 = GPUS["A100 (40 GB)"]


def _graph(ops: dict[str, Any], mib: dict[str, int], outputs: list[str]) -> OpGraph:
    made = {tensor for op in ops.values() for tensor in op[1]}
    tensors = [GraphTensor(name, (1024, 1024), "float32", size << 20) for name, size in mib.items()]
    parts = [GraphOp(name, "elementwise", tuple(op[0]), tuple(op[1])) for name, op in ops.items()]
    return OpGraph("case", tuple(parts), tuple(tensors), tuple(t for t in mib if t not in made), tuple(outputs))


@pytest.mark.parametrize("case", exercises._KERNEL_MIB.cases, ids=lambda case: "+".join(case["group"]))
def test_the_exercises_answers_are_the_engines(case: dict[str, Any]) -> None:
    graph = _graph(case["ops"], case["mib"], case["outputs"])
    grouping = grouping_of(graph, [case["group"]])
    moved = cost(graph, grouping, A100).groups[grouping.index_of(case["group"][0])].total_bytes
    assert exercises._kernel_mib(**case) << 20 == moved


def _made(group: Any, ops: Any) -> set[str]:
    return {tensor for op in group for tensor in ops[op][1]}


def right(group: Any, ops: Any, mib: Any, outputs: Any) -> int:
    made = _made(group, ops)
    read = {tensor for op in group for tensor in ops[op][0]} - made
    needed = {tensor for op in ops if op not in group for tensor in ops[op][0]} | set(outputs)
    return sum(mib[tensor] for tensor in read) + sum(mib[tensor] for tensor in made & needed)


def test_a_right_answer_is_right() -> None:
    assert check_kernel_mib(right).status == "right"


def test_nothing_done_is_open() -> None:
    assert check_kernel_mib(lambda group, ops, mib, outputs: None).status == "open"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("_without_outputs", "outputs are missing"),
        ("_per_reader", "it is written once"),
        ("_tensors", "That counts tensors"),
        ("_outputs_only", "needs must be written"),
        ("_unread_only", "may be needed outside as well"),
        ("_unfused", "need no write and no read"),
        ("_every_read", "one kernel reads it once"),
        ("_all_written", "neither written nor read back"),
    ],
)
@pytest.mark.parametrize("language", ["en"])
def test_each_usual_mistake_is_named(name: str, words: str, language: str) -> None:
    use_language(language)
    feedback = check_kernel_mib(getattr(exercises, name))
    assert feedback.status == "wrong" and words in feedback.words


def test_the_first_vote_holds_the_answer_and_the_boundary_formulas() -> None:
    block = recorded_block("gated_residual")
    four = cost(block.core, unfused(block.core), A100).total_bytes
    one = cost(block.core, grouping_of(block.core, [block.core.launching]), A100).total_bytes
    values = [value for _, value in graph_vote().options]
    assert (four - one) >> 20 in values and four >> 20 in values
    assert 2 * 3 * 32 in values  # three boundaries of 32 MiB


def test_the_second_vote_holds_the_compilers_count() -> None:
    block = recorded_block("swiglu_mlp")
    values = [value for _, value in compiler_vote().options]
    assert block.compiler.launches in values and len(unfused(block.graph)) in values
    assert values == sorted(set(values))


def test_the_quizs_numbers_are_the_engines() -> None:
    ops = {"f": (["x"], ["t"]), "g": (["t"], ["u"]), "h": (["t"], ["v"])}
    graph = _graph(ops, dict.fromkeys("xtuv", 64), ["u", "v"])
    asked = graph_quiz().questions[1]
    answer = next(choice for choice in asked.choices if choice.right)
    assert cost(graph, grouping_of(graph, [["f", "g"]]), A100).total_bytes >> 20 == int(answer.words.en.split()[0])


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_choice_of_the_quiz_is_explained(language: str) -> None:
    use_language(language)
    quiz = graph_quiz()
    for number, question in enumerate(quiz.questions, 1):
        for choice in range(1, len(question.choices) + 1):
            quiz.answer(number, choice)
            assert quiz.score <= number
    assert all(len(str(choice.why)) > 10 for question in quiz.questions for choice in question.choices)
