"""What one learner's file says, once it is sure that it makes sense: plain values, nothing of it trusted further.

Pure: the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["open", "wrong", "right"]


@dataclass(frozen=True)
class Entry:
    """What all entries have: the lesson (``"01"``) and the day (``"2026-11-29"``); blank where not noted."""

    lesson: str = ""
    day: str = ""

    @property
    def counters(self) -> tuple[object, ...]:
        """What can only grow, most telling first."""
        return (self.day,)


@dataclass(frozen=True)
class VoteEntry(Entry):
    """A guess among options: the choice from 1, its value and label, how often it was changed, and what was measured
    afterwards in the unit of the values.
    """

    choice: int = 1
    value: str | float | None = None
    label: str = ""
    changes: int = 0
    measured: float | None = None

    @property
    def counters(self) -> tuple[object, ...]:
        return (self.day, self.changes, self.measured is not None)


@dataclass(frozen=True)
class GuessEntry(Entry):
    """A typed guess: the words, the number in them and its unit as typed, and the value shown or measured afterwards."""

    words: str = ""
    number: float | None = None
    unit: str = ""
    measured: float | None = None


@dataclass(frozen=True)
class ExerciseEntry(Entry):
    """An exercise: how it stands, how often it was tried, the named mistakes met on the way (indices from 0)."""

    status: Status = "open"
    tries: int = 0
    mistakes: tuple[int, ...] = ()

    @property
    def counters(self) -> tuple[object, ...]:
        return (self.day, self.tries)


@dataclass(frozen=True)
class QuizEntry(Entry):
    """A quiz: the choice of each question from 1, ``None`` where there is none; the number right as it was noted.

    Args:
        first: the first choice of each question; empty where only the last ones were noted. ``changes``: later ones.
    """

    answers: tuple[int | None, ...] = ()
    right: int = 0
    first: tuple[int | None, ...] = ()
    changes: int = 0

    @property
    def answered(self) -> int:
        return sum(answer is not None for answer in self.answers)

    @property
    def finished(self) -> bool:
        return self.answered == len(self.answers) > 0

    @property
    def counters(self) -> tuple[object, ...]:
        return (self.day, self.answered, self.changes)


@dataclass(frozen=True)
class PuzzleEntry(Entry):
    """A puzzle, as ``graph.puzzles.panel.Standing`` notes it; 0 launches: no attempt that counts."""

    solved: bool = False
    star: bool = False
    shown: bool = False
    hints: int = 0
    launches: int = 0
    total_bytes: int = 0
    moves: int = 0

    @property
    def counters(self) -> tuple[object, ...]:
        return (self.day, self.solved, self.star, self.shown, self.hints, self.launches > 0)


@dataclass(frozen=True)
class Learner:
    """One file. Names are clean: printable characters only, of bounded length.

    Args:
        file: the file's name, fit to be shown; ``name``: as typed, or blank.
        number: the random number that the learner's own file bears, or blank.
        others: lessons named by entries that this version does not know.
        left_out: entries of known sections that made no sense.
    """

    file: str
    name: str = ""
    number: str = ""
    votes: Mapping[str, VoteEntry] = field(default_factory=dict)
    guesses: Mapping[str, GuessEntry] = field(default_factory=dict)
    exercises: Mapping[str, ExerciseEntry] = field(default_factory=dict)
    quizzes: Mapping[str, QuizEntry] = field(default_factory=dict)
    puzzles: Mapping[str, PuzzleEntry] = field(default_factory=dict)
    others: frozenset[str] = frozenset()
    left_out: int = 0

    def entries(self) -> Iterator[tuple[tuple[str, str], Entry]]:
        """Every entry under its section and key."""
        sections: Mapping[str, Mapping[str, Entry]] = {
            "votes": self.votes,
            "guesses": self.guesses,
            "exercises": self.exercises,
            "quizzes": self.quizzes,
            "puzzles": self.puzzles,
        }
        for section, entries in sections.items():
            for key, entry in entries.items():
                yield (section, key), entry

    @property
    def last_day(self) -> str:
        return max((entry.day for _, entry in self.entries()), default="")
