"""Lesson 03's own questions: the reference passes, every listed mistake is met and explained."""

from __future__ import annotations

import pytest

from lessons_lib import check_break_even, check_net_bytes, decision_quiz, veto_vote
from lessons_lib.decision.exercises import _BREAK_EVEN, _NET


def net_bytes(tensor_bytes: int, saved_bytes: int, calls: int, each_call: bool) -> int:
    """The lesson's own solution."""
    conversions = calls if each_call else 1
    return saved_bytes * calls - 2 * tensor_bytes * conversions


def test_the_lessons_solution_passes() -> None:
    feedback = check_net_bytes(net_bytes)
    assert feedback.status == "right"
    assert feedback.hints == ()


@pytest.mark.parametrize("index", range(len(_NET.mistakes)))
def test_each_usual_mistake_fails_and_is_explained(index: int) -> None:
    mistake = _NET.mistakes[index]
    feedback = check_net_bytes(mistake.gives)
    assert feedback.status == "wrong"
    assert str(mistake.words) in feedback.words
    assert len(feedback.hints) == 3


def test_a_function_still_to_write_is_open() -> None:
    assert check_net_bytes(None).status == "open"
    assert check_net_bytes(lambda **case: None).status == "open"


def test_a_48_mib_weight_is_even_at_call_16() -> None:
    assert check_break_even(16).status == "right"
    assert check_break_even(2 * 48 // 6).status == "right"
    assert check_break_even(None).status == "open"
    assert check_break_even(9).status == "wrong"
    assert set(_BREAK_EVEN.mistakes) == {8, 15, 17}
    for wrong, words in _BREAK_EVEN.mistakes.items():
        feedback = check_break_even(int(wrong))
        assert feedback.status == "wrong"
        assert str(words) in feedback.words


def test_the_vote_keeps_a_word() -> None:
    vote = veto_vote()
    assert vote.value is None
    for option, value in enumerate(("veto", "pays", "ledger"), 1):
        vote.choose(option)
        assert vote.value == value
    with pytest.raises(ValueError, match="option"):
        vote.choose(4)


def test_the_quiz_has_exactly_these_keys() -> None:
    quiz = decision_quiz()
    assert quiz.answers == [None] * 3
    assert [[choice.right for choice in question.choices].index(True) + 1 for question in quiz.questions] == [2, 3, 2]
    for number, key in enumerate((2, 3, 2), 1):
        for choice in range(1, 4):
            quiz.answer(number, choice)
            why = str(quiz.questions[number - 1].choices[choice - 1].why)
            shown = quiz._feedback[number - 1].value
            assert ("✓" in shown) == (choice == key)
            assert why[:20] in shown
        quiz.answer(number, key)
        assert quiz.score == number
    assert quiz.answers == [2, 3, 2]
