"""The class in numbers: where people stop, what they guessed, what they got wrong, which puzzles they solved.

A learner counts once in every figure. Pure: numbers and ids in, numbers and ids out.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lessons_lib.base.guess import in_unit
from lessons_lib.classroom.course import (
    LESSONS,
    PUZZLE_LESSON,
    CourseWords,
    asked_number,
    lesson_of,
    place_of,
    true_choice,
)
from lessons_lib.classroom.records import GuessEntry, Learner, PuzzleEntry, QuizEntry, VoteEntry

MOST_UNKNOWN = 12  # ids of a newer course, of each kind: those that most learners have
# A guess over the right value: below each of these it falls into the bucket before.
RATIO_EDGES = (0.25, 0.5, 0.9, 1.1, 2.0, 4.0)
RIGHT_BUCKET = 3

_T = TypeVar("_T")


@dataclass(frozen=True)
class LessonCounts:
    """Learners in a lesson.

    Args:
        began: have any entry in it; ``solved``: at least one exercise right; ``all_solved``: every one.
        quiz: answered every question; ``stopped``: have no entry in a later lesson.
        records: whether the lesson leaves any entry; ``asks``: whether it has exercises and a quiz.
    """

    lesson: str
    began: int
    solved: int
    all_solved: int
    quiz: int
    stopped: int
    records: bool
    asks: bool


@dataclass(frozen=True)
class VoteCounts:
    """A vote.

    Args:
        counts: votes by choice, from 1; ``labels``: of the choices as learners saw them.
        right: the true choice; ``None`` where each machine has its own truth, or nobody knows.
        measured: machines by the choice that is nearest to what was measured there.
        hits: who chose the true choice, or the one nearest to the own measurement.
        judged: who could be told apart into hits and misses.
    """

    key: str
    lesson: str
    answered: int
    counts: Mapping[int, int]
    labels: Mapping[int, str]
    right: int | None
    measured: Mapping[int, int]
    hits: int
    judged: int


@dataclass(frozen=True)
class GuessCounts:
    """A typed guess: how many fell into each bucket of guess over the right value.

    Args:
        others: how many typed what, where no ratio says anything: no number was given, or none is right. By the number
            in it, guesses without one last.
    """

    key: str
    lesson: str
    answered: int
    buckets: tuple[int, ...]
    median_ratio: float | None
    others: Mapping[str, int]

    @property
    def judged(self) -> int:
        return sum(self.buckets)

    @property
    def hits(self) -> int:
        return self.buckets[RIGHT_BUCKET]


@dataclass(frozen=True)
class QuestionCounts:
    """A question of a quiz, from 1: learners by choice, from 1; ``right`` is ``None`` where nobody knows it."""

    quiz: str
    lesson: str
    number: int
    answered: int
    counts: Mapping[int, int]
    right: int | None


@dataclass(frozen=True)
class ExerciseCounts:
    """An exercise: learners by where they stand, and by the named mistakes they met on the way."""

    key: str
    lesson: str
    right: int
    wrong: int
    open: int
    median_tries: float
    mistakes: Mapping[int, int]

    @property
    def answered(self) -> int:
        return self.right + self.wrong + self.open


@dataclass(frozen=True)
class PuzzleCounts:
    """A puzzle: who tried, solved it, solved it at the best without help, looked the solution up; best scores."""

    key: str
    tried: int
    solved: int
    starred: int
    shown: int
    best_bytes: int | None
    median_bytes: float | None
    best_launches: int | None
    median_launches: float | None


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that several gave: choice ``number`` of a quiz's question, or an exercise's named mistake.

    Args:
        question: from 1; ``None``: it is an exercise's, and ``number`` is the mistake's index, from 0.
        count: who gave it, of ``answered``.
    """

    key: str
    lesson: str
    question: int | None
    number: int
    count: int
    answered: int


@dataclass(frozen=True)
class LearnerRow:
    """One learner at a glance."""

    name: str
    file: str
    lessons: tuple[str, ...]
    exercises: int
    quiz_right: int
    quiz_answered: int
    puzzles: int
    stars: int
    day: str


@dataclass(frozen=True)
class ClassSummary:
    """A whole class; every sequence is in the course's order, unknown ids last, but ``mistakes``: commonest first."""

    size: int
    last_day: str
    lessons: tuple[LessonCounts, ...]
    votes: tuple[VoteCounts, ...]
    guesses: tuple[GuessCounts, ...]
    questions: tuple[QuestionCounts, ...]
    exercises: tuple[ExerciseCounts, ...]
    puzzles: tuple[PuzzleCounts, ...]
    mistakes: tuple[Mistake, ...]
    rows: tuple[LearnerRow, ...]


def summarize(learners: Sequence[Learner], words: CourseWords) -> ClassSummary:
    """The numbers of a class.

    Args:
        learners: each person once.
        words: the library's own, for values of options and right choices; may be empty.
    """
    questions = tuple(_questions(learners, words))
    exercises = tuple(_exercises(learners))
    return ClassSummary(
        size=len(learners),
        last_day=max((learner.last_day for learner in learners), default=""),
        lessons=tuple(_lessons(learners)),
        votes=tuple(_vote(key, entries, words) for key, entries in _by_key(learners, lambda one: one.votes)),
        guesses=tuple(_guesses(learners)),
        questions=questions,
        exercises=exercises,
        puzzles=tuple(_puzzle(key, entries) for key, entries in _by_key(learners, lambda one: one.puzzles)),
        mistakes=_commonest(questions, exercises),
        rows=tuple(_row(learner, words) for learner in learners),
    )


# -- by key -----------------------------------------------------------------------------------------------------


def _by_key(
    learners: Iterable[Learner], section: Callable[[Learner], Mapping[str, _T]]
) -> list[tuple[str, list[_T]]]:
    """The entries of a section by id: the course's in its order, then the commonest few of those it does not know."""
    found: dict[str, list[_T]] = {}
    for learner in learners:
        for key, entry in section(learner).items():
            found.setdefault(key, []).append(entry)
    places = {key: place for key in found if (place := place_of(key)) is not None}
    known = sorted(places, key=lambda key: (places[key], -len(found[key]), key))
    unknown = sorted((key for key in found if key not in places), key=lambda key: (-len(found[key]), key))
    exact = [key for key in known if "." not in key]
    others = [key for key in known if "." in key][:MOST_UNKNOWN]
    kept = {*exact, *others}
    return [(key, found[key]) for key in (*(key for key in known if key in kept), *unknown[:MOST_UNKNOWN])]


# -- where people stop ------------------------------------------------------------------------------------------


def _lessons_of(learner: Learner) -> set[str]:
    """The lessons in which a learner has an entry."""
    numbers = {lesson.number for lesson in LESSONS}
    found = {entry.lesson or _lesson_of(section, key) for (section, key), entry in learner.entries()}
    return (found | learner.others) & numbers


def _lesson_of(section: str, key: str) -> str:
    return PUZZLE_LESSON if section == "puzzles" else lesson_of(key)


def _lessons(learners: Sequence[Learner]) -> Iterable[LessonCounts]:
    begun = [_lessons_of(learner) for learner in learners]
    for lesson in LESSONS:
        right = [
            sum(key in one.exercises and one.exercises[key].status == "right" for key in lesson.exercises)
            for one in learners
        ]
        quizzes = [
            sum(key in one.quizzes and one.quizzes[key].finished for key in lesson.quizzes) for one in learners
        ]
        began = sum(lesson.number in lessons for lessons in begun)
        yield LessonCounts(
            lesson=lesson.number,
            began=began,
            solved=sum(count > 0 for count in right),
            all_solved=sum(count == len(lesson.exercises) > 0 for count in right),
            quiz=sum(count == len(lesson.quizzes) > 0 for count in quizzes),
            stopped=sum(max(lessons, default="") == lesson.number for lessons in begun),
            records=bool(lesson.ids) or began > 0,
            asks=bool(lesson.exercises),
        )


# -- guesses ----------------------------------------------------------------------------------------------------


def _vote(key: str, entries: Sequence[VoteEntry], words: CourseWords) -> VoteCounts:
    choices = sorted({entry.choice for entry in entries})
    labels = {choice: _commonest_of(e.label for e in entries if e.choice == choice) or "" for choice in choices}
    values: dict[int, object] = {
        choice: _commonest_of(e.value for e in entries if e.choice == choice) for choice in choices
    }
    if key in words.votes:
        options = words.votes[key].options
        values |= {number: value for number, (_, value) in enumerate(options, 1)}
    right = true_choice(key, [values.get(number) for number in range(1, max(values, default=0) + 1)])
    nearest = [(entry.choice, _nearest(entry.measured, values)) for entry in entries]
    own = [(choice, near) for choice, near in nearest if near is not None]
    if right is not None:
        own = [(entry.choice, right) for entry in entries]
    return VoteCounts(
        key=key,
        lesson=_lesson_in(key, entries),
        answered=len(entries),
        counts=Counter(entry.choice for entry in entries),
        labels=labels,
        right=right,
        measured=Counter(near for _, near in own) if right is None else {},
        hits=sum(choice == near for choice, near in own),
        judged=len(own),
    )


def _nearest(measured: float | None, values: Mapping[int, object]) -> int | None:
    """The choice whose value is nearest to what was measured, as a ratio: half and double are equally far."""
    if measured is None or measured <= 0:
        return None
    numbers = {
        choice: float(value) for choice, value in values.items() if isinstance(value, (int, float)) and value > 0
    }
    return min(numbers, key=lambda choice: abs(math.log(numbers[choice] / measured)), default=None)


def _guesses(learners: Sequence[Learner]) -> Iterable[GuessCounts]:
    for key, entries in _by_key(learners, lambda one: one.guesses):
        judged = [(entry, _guess_ratio(key, entry)) for entry in entries]
        ratios = [ratio for _, ratio in judged if ratio is not None]
        buckets = Counter(sum(ratio >= edge for edge in RATIO_EDGES) for ratio in ratios)
        yield GuessCounts(
            key=key,
            lesson=_lesson_in(key, entries),
            answered=len(entries),
            buckets=tuple(buckets[place] for place in range(len(RATIO_EDGES) + 1)),
            median_ratio=statistics.median(ratios) if ratios else None,
            others=_as_typed([entry for entry, ratio in judged if ratio is None]),
        )


def _as_typed(entries: Iterable[GuessEntry]) -> dict[str, int]:
    """How many typed what, by the number in it; those without one last, the commonest first."""
    typed = [(entry.words or _number_words(entry), entry.number) for entry in entries]
    counts = Counter(words for words, _ in typed)
    numbers = {words: number for words, number in typed if number is not None}
    order = sorted(counts, key=lambda words: (words not in numbers, numbers.get(words, 0), -counts[words], words))
    return {words: counts[words] for words in order}


def _number_words(entry: GuessEntry) -> str:
    return "–" if entry.number is None else f"{entry.number:,.12g} {entry.unit}".rstrip()


def _guess_ratio(key: str, entry: GuessEntry) -> float | None:
    """Guess over the right value: what was shown to the learner, or else what the lesson asks for."""
    if entry.number is None:
        return None
    if entry.measured is not None:
        return _ratio(entry.number, entry.measured)
    asked = asked_number(key)
    number = None if asked is None else in_unit(entry.number, entry.unit, asked[1])
    return None if asked is None or number is None else _ratio(number, asked[0])


def _ratio(guess: float, truth: float) -> float | None:
    """Guess over truth; 1 where both are 0, ``None`` where no ratio says anything."""
    if guess == truth:
        return 1.0
    if guess < 0 or truth <= 0:
        return None
    ratio = guess / truth
    return ratio if math.isfinite(ratio) else None


# -- wrong answers ----------------------------------------------------------------------------------------------


def _questions(learners: Sequence[Learner], words: CourseWords) -> Iterable[QuestionCounts]:
    for key, entries in _by_key(learners, lambda one: one.quizzes):
        known = words.quizzes.get(key, ())
        length = len(known) or max((len(entry.answers) for entry in entries), default=0)
        for number in range(1, length + 1):
            given = [answer for entry in entries if (answer := _answer(entry, number)) is not None]
            yield QuestionCounts(
                quiz=key,
                lesson=_lesson_in(key, entries),
                number=number,
                answered=len(given),
                counts=Counter(given),
                right=known[number - 1].right if known else None,
            )


def _answer(entry: QuizEntry, number: int) -> int | None:
    """What was answered to a question at first, before the quiz explained anything."""
    given = entry.first or entry.answers
    return given[number - 1] if number <= len(given) else None


def _exercises(learners: Sequence[Learner]) -> Iterable[ExerciseCounts]:
    for key, entries in _by_key(learners, lambda one: one.exercises):
        standing = Counter(entry.status for entry in entries)
        yield ExerciseCounts(
            key=key,
            lesson=_lesson_in(key, entries),
            right=standing["right"],
            wrong=standing["wrong"],
            open=standing["open"],
            median_tries=statistics.median(entry.tries for entry in entries),
            mistakes=Counter(index for entry in entries for index in entry.mistakes),
        )


def _commonest(questions: Iterable[QuestionCounts], exercises: Iterable[ExerciseCounts]) -> tuple[Mistake, ...]:
    found = [
        Mistake(question.quiz, question.lesson, question.number, choice, count, question.answered)
        for question in questions
        for choice, count in question.counts.items()
        if question.right is not None and choice != question.right
    ]
    found += [
        Mistake(exercise.key, exercise.lesson, None, index, count, exercise.answered)
        for exercise in exercises
        for index, count in exercise.mistakes.items()
    ]
    order = sorted(found, key=lambda one: (one.lesson, one.key, one.question or 0, one.number))
    return tuple(sorted(order, key=lambda one: (-one.count, -one.count / one.answered)))


# -- puzzles and learners ---------------------------------------------------------------------------------------


def _puzzle(key: str, entries: Sequence[PuzzleEntry]) -> PuzzleCounts:
    scored = [entry for entry in entries if entry.launches > 0]
    moved, launches = [entry.total_bytes for entry in scored], [entry.launches for entry in scored]
    return PuzzleCounts(
        key=key,
        tried=len(entries),
        solved=sum(entry.solved for entry in entries),
        starred=sum(entry.star for entry in entries),
        shown=sum(entry.shown for entry in entries),
        best_bytes=min(moved, default=None),
        median_bytes=statistics.median(moved) if moved else None,
        best_launches=min(launches, default=None),
        median_launches=statistics.median(launches) if launches else None,
    )


def _row(learner: Learner, words: CourseWords) -> LearnerRow:
    return LearnerRow(
        name=learner.name,
        file=learner.file,
        lessons=tuple(sorted(_lessons_of(learner))),
        exercises=sum(entry.status == "right" for entry in learner.exercises.values()),
        quiz_right=sum(_right(key, entry, words) for key, entry in learner.quizzes.items()),
        quiz_answered=sum(entry.answered for entry in learner.quizzes.values()),
        puzzles=sum(entry.solved for entry in learner.puzzles.values()),
        stars=sum(entry.star for entry in learner.puzzles.values()),
        day=learner.last_day,
    )


def _right(key: str, entry: QuizEntry, words: CourseWords) -> int:
    """Right answers at first: counted where the right choices are known, else as the file says."""
    known = words.quizzes.get(key)
    if known is None:
        return entry.right
    return sum(_answer(entry, number) == question.right for number, question in enumerate(known, 1))


# -- helpers ----------------------------------------------------------------------------------------------------


def _lesson_in(key: str, entries: Sequence[VoteEntry] | Sequence[object]) -> str:
    """The lesson that asks an id: as the course says, else as most entries do."""
    return lesson_of(key) or _commonest_of(getattr(entry, "lesson", "") for entry in entries) or ""


def _commonest_of(values: Iterable[_T]) -> _T | None:
    """The value that occurs most often, the smallest such in order of appearance; ``None`` where there is none."""
    counted = Counter(values).most_common(1)
    return counted[0][0] if counted else None
