"""Lesson 01's own questions: the reference passes, every listed mistake is met and explained."""

from __future__ import annotations

import pytest

from lessons_lib import chain_traffic, check_swiglu_saved, check_total_bytes, lab_vote, traffic_quiz, traffic_vote
from lessons_lib.traffic.exercises import _CHAIN, _SWIGLU


def test_the_models_own_total_passes() -> None:
    assert check_total_bytes(lambda **case: chain_traffic(**case)["total_bytes"]).status == "right"


@pytest.mark.parametrize("index", range(len(_CHAIN.mistakes)))
def test_each_usual_mistake_fails_and_is_explained(index: int) -> None:
    mistake = _CHAIN.mistakes[index]
    feedback = check_total_bytes(mistake.gives)
    assert feedback.status == "wrong"
    assert str(mistake.words) in feedback.words


def test_the_swiglu_answer_is_checkpoint_3() -> None:
    assert check_swiglu_saved(160).status == "right"
    for wrong, words in _SWIGLU.mistakes.items():
        feedback = check_swiglu_saved(int(wrong))
        assert feedback.status == "wrong"
        assert str(words) in feedback.words


def test_votes_and_quiz_can_be_taken() -> None:
    vote = traffic_vote()
    vote.choose(3)
    assert vote.value == 384 * 2**20
    assert lab_vote().value is None
    quiz = traffic_quiz()
    for number, choice in ((1, 2), (2, 3), (3, 2)):
        quiz.answer(number, choice)
    assert quiz.score == len(quiz.questions) == 3
