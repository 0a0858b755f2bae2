"""Lesson 02's own questions: the reference passes, every listed mistake is met and explained."""

from __future__ import annotations

import pytest

from lessons_lib import check_avoided_bytes, check_gemm_tile_kib, reuse_quiz, reuse_vote, tile_vote
from lessons_lib.base.units import KIB, MIB
from lessons_lib.reuse.exercises import _AVOIDED, _GEMM_TILE
from lessons_lib.show.quiz import Vote


def avoided_bytes(tile_bytes: int, reuse_count: int, budget_bytes: int, produced: bool) -> int:
    """The lesson's own solution."""
    if tile_bytes > budget_bytes:
        return 0
    passages = reuse_count + 1 if produced else reuse_count - 1
    return passages * tile_bytes


def test_the_lessons_solution_passes() -> None:
    feedback = check_avoided_bytes(avoided_bytes)
    assert feedback.status == "right"
    assert feedback.hints == ()


@pytest.mark.parametrize("index", range(len(_AVOIDED.mistakes)))
def test_each_usual_mistake_fails_and_is_explained(index: int) -> None:
    mistake = _AVOIDED.mistakes[index]
    feedback = check_avoided_bytes(mistake.gives)
    assert feedback.status == "wrong"
    assert str(mistake.words) in feedback.words
    assert len(feedback.hints) == 3


def test_a_function_still_to_write_is_open() -> None:
    assert check_avoided_bytes(None).status == "open"
    assert check_avoided_bytes(lambda **case: None).status == "open"


def test_the_gemm_tile_is_three_buffers_of_48_kib() -> None:
    assert check_gemm_tile_kib(144).status == "right"
    assert check_gemm_tile_kib(None).status == "open"
    assert check_gemm_tile_kib(100).status == "wrong"
    assert set(_GEMM_TILE.mistakes) == {48, 96, 72, 288}
    for wrong, words in _GEMM_TILE.mistakes.items():
        feedback = check_gemm_tile_kib(int(wrong))
        assert feedback.status == "wrong"
        assert str(words) in feedback.words


@pytest.mark.parametrize(
    ("vote", "values"),
    [
        (reuse_vote, [0, 32 * KIB, 64 * KIB, 96 * KIB]),
        (tile_vote, [4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 64 * MIB]),
    ],
)
def test_every_option_of_a_vote_gives_its_bytes(vote: type[Vote], values: list[int]) -> None:
    taken = vote()  # type: ignore[call-arg]
    assert taken.value is None
    for option, value in enumerate(values, 1):
        taken.choose(option)
        assert taken.value == value
    with pytest.raises(ValueError, match="option"):
        taken.choose(len(values) + 1)


def test_the_quiz_has_exactly_these_keys() -> None:
    quiz = reuse_quiz()
    assert quiz.answers == [None] * 3
    assert [[choice.right for choice in question.choices].index(True) + 1 for question in quiz.questions] == [2, 2, 3]
    for number, key in enumerate((2, 2, 3), 1):
        for choice in range(1, 4):
            quiz.answer(number, choice)
            why = str(quiz.questions[number - 1].choices[choice - 1].why)
            shown = quiz._feedback[number - 1].value
            assert ("✓" in shown) == (choice == key)
            assert why.split("&")[0][:20] in shown
        quiz.answer(number, key)
        assert quiz.score == number
    assert quiz.answers == [2, 2, 3]
