"""The library's own words for its votes, quizzes and exercises, asked by calling the functions that a lesson calls.

Widgets are made and thrown away again; where there are none (no ipywidgets), the ids have to do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TypeVar

import lessons_lib
from lessons_lib.base.text import Text
from lessons_lib.classroom.course import LESSONS, ChoiceWords, CourseWords, QuestionWords, VoteWords
from lessons_lib.show.exercise import FunctionExercise, ValueExercise

_T = TypeVar("_T")


def course_words() -> CourseWords:
    """What can be found out; never raises."""
    return CourseWords(
        votes=_found((key for lesson in LESSONS for key in lesson.votes), _vote),
        quizzes=_found((key for lesson in LESSONS for key in lesson.quizzes), quiz_words),
        mistakes=_found((key for lesson in LESSONS for key in lesson.exercises), _mistakes),
    )


def _found(keys: Iterable[str], look_up: Callable[[str], _T | None]) -> dict[str, _T]:
    found = {}
    for key in keys:
        try:
            words = look_up(key)
        except Exception:  # no ipywidgets, or a course in pieces: a report with ids beats none
            continue
        if words is not None:
            found[key] = words
    return found


def _vote(key: str) -> VoteWords:
    vote = getattr(lessons_lib, key)()
    words = VoteWords(vote.words, tuple(vote.options))
    vote.close()
    return words


def quiz_words(key: str) -> tuple[QuestionWords, ...]:
    """The questions of a quiz, by the name of the function that makes it."""
    quiz = getattr(lessons_lib, key)()
    words = tuple(
        QuestionWords(
            question.words, tuple(ChoiceWords(choice.words, choice.why, choice.right) for choice in question.choices)
        )
        for question in quiz.questions
    )
    quiz.close()
    return words


def exercise_of(key: str) -> FunctionExercise | ValueExercise | None:
    """The exercise behind a checker, by the checker's name; ``None`` where it is of another kind.

    A checker is a function of one line that hands the attempt to the exercise it names.
    """
    checker = inspect.unwrap(getattr(lessons_lib, key))
    named = [checker.__globals__.get(name) for name in checker.__code__.co_names]
    return next((one for one in named if isinstance(one, (FunctionExercise, ValueExercise))), None)


def _mistakes(key: str) -> tuple[Text, ...] | None:
    """The words of an exercise's named mistakes, in order; ``None`` where its checker has none to name."""
    exercise = exercise_of(key)
    if isinstance(exercise, FunctionExercise):
        return tuple(mistake.words for mistake in exercise.mistakes)
    return None if exercise is None else tuple(exercise.mistakes.values())
