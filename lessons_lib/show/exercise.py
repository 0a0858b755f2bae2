"""Exercises: a checker that says what is wrong and why, with hints folded beneath.

Each check is noted in the progress file: how the exercise stands, the tries, the usual mistakes met on the way.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from numbers import Real
from typing import Any, Literal

from lessons_lib.base.language import language_tag
from lessons_lib.base.progress import has_progress_file, note_step, noted, untold_notice
from lessons_lib.base.text import Text, sentences
from lessons_lib.base.validate import same, shown

Status = Literal["open", "wrong", "right"]

SECTION = "exercises"
"""The section of the progress file; its keys are the functions that a lesson calls."""

_OPEN = Text(
    zh="还没有完成：把 None 换成你的答案，再运行这一格。",
    en="Not done yet: replace None with your answer and run this cell again.",
)
_RIGHT = Text(zh="正确：{cases} 个用例全部吻合。", en="Right: all {cases} cases agree.")
_RIGHT_VALUE = Text(zh="正确。", en="Right.")
_GOT = Text(zh="{call} 得到 {got}，应为 {expected}。", en="{call} gives {got}; it should be {expected}.")
_GOT_VALUE = Text(zh="你的答案是 {got}，不对。", en="Your answer is {got}; that is not right.")
_NO_NUMBER = Text(
    zh="{call} 得到 {got}（{kind}），这里需要一个数。",
    en="{call} gives {got} ({kind}); a number is needed here.",
)
_RAISED = Text(
    zh="{call} 在第 {line} 行出错：{kind}: {message}",
    en="{call} failed on line {line}: {kind}: {message}",
)
_NOT_CALLABLE = Text(zh="这里需要一个函数，收到的是 {got}。", en="A function is needed here, got {got}.")
_HINT = Text(zh="提示 {number}", en="Hint {number}")


@dataclass(frozen=True)
class Mistake:
    """A usual wrong answer: what it would give, and the words that undo it."""

    gives: Callable[..., object]
    words: Text


@dataclass(frozen=True)
class Feedback:
    """What the checker says; shown as HTML with the hints folded, and as plain text.

    Args:
        mistake: the position of the usual mistake that was made; ``None`` where it is none of them.
        notice: what the learner should know about the progress file, beneath.
    """

    status: Status
    words: str
    hints: tuple[str, ...] = ()
    mistake: int | None = None
    notice: str = ""

    def __repr__(self) -> str:
        return f"{_MARKS[self.status]} {self.words}"

    def _repr_html_(self) -> str:
        hints = "".join(
            f'<details style="margin:4px 0"><summary>{escape(str(_HINT.format(number=number)))}</summary>'
            f'<div style="margin:2px 16px">{escape(hint)}</div></details>'
            for number, hint in enumerate(self.hints, 1)
        )
        return (
            f'<div lang="{language_tag()}" style="max-width:738px;background:#fff;color:#1b1f24;padding:8px 12px;'
            f"border:1px solid #d0d7de;border-left:4px solid {_COLOURS[self.status]};border-radius:6px;"
            f'line-height:1.6">{escape(repr(self))}{hints}{self._notice_html()}</div>'
        )

    def _notice_html(self) -> str:
        return f'<div style="font-size:12px">{escape(self.notice)}</div>' if self.notice else ""


_MARKS = {"open": "○", "wrong": "✗", "right": "✓"}
_COLOURS = {"open": "#57606a", "wrong": "#D55E00", "right": "#009E73"}


def note_feedback(feedback: Feedback, key: str, lesson: str) -> Feedback:
    """Note what came of a check; gives ``feedback``, with a notice where the file has just failed.

    What is unanswered is no try, and an exercise that was right once stays so.

    Args:
        key: the name of the checker that the lesson calls; blank: nothing is noted. ``lesson``: ``"01"``.
    """
    if not (key and has_progress_file()):
        return feedback
    entry = noted(SECTION, key)
    answered = feedback.status != "open"
    if entry.get("status") != "right" and (answered or not entry):
        tries, met = entry.get("tries"), entry.get("mistakes")
        known = [index for index in met if isinstance(index, int)] if isinstance(met, list) else []
        made = [] if feedback.mistake is None else [feedback.mistake]
        fields = {
            "status": feedback.status,
            "tries": (tries if isinstance(tries, int) and tries >= 0 else 0) + answered,
            "mistake": feedback.mistake,
            "mistakes": sorted({*known, *made}),
        }
        note_step(SECTION, key, lesson, fields)
    notice = untold_notice()
    return feedback if notice is None else replace(feedback, notice=str(notice))


@dataclass(frozen=True)
class FunctionExercise:
    """The learner writes a function; it must agree with ``reference`` on every one of ``cases``.

    Args:
        reference: the right function; called with each case's keyword arguments.
        cases: keyword arguments, simplest first: the first that fails is the one shown.
        mistakes: looked at in order when a case fails; the first that gives the learner's number is explained.
        hints: shown folded until the answer is right.
        done: what to add when all is right.
        key: under which checks are noted, the name of the checker; blank: they are not. ``lesson``: ``"01"``.
    """

    reference: Callable[..., float]
    cases: Sequence[Mapping[str, Any]]
    mistakes: Sequence[Mistake]
    hints: tuple[Text, Text, Text]
    done: Text
    key: str = ""
    lesson: str = ""

    def check(self, attempt: object) -> Feedback:
        """Call ``attempt`` on every case and say what the first wrong one shows; never raises."""
        return note_feedback(self._checked(attempt), self.key, self.lesson)

    def _checked(self, attempt: object) -> Feedback:
        if attempt is None:
            return self._say("open", _OPEN)
        if not callable(attempt):
            return self._say("wrong", _NOT_CALLABLE.format(got=shown(attempt)))
        for case in self.cases:
            problem = self._problem(attempt, case)
            if problem is not None:
                return problem
        return Feedback("right", sentences(_RIGHT.format(cases=len(self.cases)), self.done))

    def _problem(self, attempt: Callable[..., object], case: Mapping[str, Any]) -> Feedback | None:
        """What is wrong with the answer to one case. Each call gets a copy: an attempt may change its arguments."""
        arguments = ", ".join(f"{name}={value}" for name, value in case.items())
        call = f"{_name_of(attempt)}({arguments})"
        try:
            got = attempt(**deepcopy(dict(case)))
        except KeyboardInterrupt:  # the learner stops an endless loop: that is no answer
            raise
        except BaseException as error:
            line = traceback.extract_tb(error.__traceback__)[-1].lineno
            message = _attempt_words(partial(str, error))
            return self._say(
                "wrong", _RAISED.format(call=call, line=line, kind=type(error).__name__, message=message)
            )
        if got is None:
            return self._say("open", _OPEN)
        if isinstance(got, bool) or not isinstance(got, Real):
            return self._say("wrong", _NO_NUMBER.format(call=call, got=shown(got), kind=type(got).__name__))
        expected = self.reference(**deepcopy(dict(case)))
        if same(got, expected):
            return None
        words = str(_GOT.format(call=call, got=_number_words(got), expected=_number_words(expected)))
        known = [
            index for index, mistake in enumerate(self.mistakes) if same(got, mistake.gives(**deepcopy(dict(case))))
        ][:1]
        said = self._say("wrong", words, *(self.mistakes[index].words for index in known))
        return replace(said, mistake=known[0]) if known else said

    def _say(self, status: Status, *words: object) -> Feedback:
        return Feedback(status, sentences(*words), tuple(map(str, self.hints)))


@dataclass(frozen=True)
class ValueExercise:
    """The learner works out one number by hand.

    Args:
        answer: the right number.
        mistakes: by the number they give; each explained in words.
        hints, done, key, lesson: as for ``FunctionExercise``.
    """

    answer: float
    mistakes: Mapping[float, Text]
    hints: tuple[Text, Text, Text]
    done: Text
    key: str = ""
    lesson: str = ""

    def check(self, attempt: object) -> Feedback:
        """Compare ``attempt`` with the answer and explain the usual wrong ones; never raises."""
        return note_feedback(self._checked(attempt), self.key, self.lesson)

    def _checked(self, attempt: object) -> Feedback:
        hints = tuple(map(str, self.hints))
        if attempt is None:
            return Feedback("open", str(_OPEN), hints)
        if not isinstance(attempt, bool) and isinstance(attempt, Real):
            if same(attempt, self.answer):
                return Feedback("right", sentences(_RIGHT_VALUE, self.done))
            got = _GOT_VALUE.format(got=_number_words(attempt))
            for index, (number, words) in enumerate(self.mistakes.items()):
                if same(attempt, number):
                    return Feedback("wrong", sentences(got, words), hints, index)
        return Feedback("wrong", str(_GOT_VALUE.format(got=shown(attempt))), hints)


def _number_words(number: object) -> str:
    """A number with separators where it can have them."""
    if isinstance(number, float) or (isinstance(number, int) and abs(number) < 10**30):
        return f"{number:,}"
    return shown(number)


def _name_of(attempt: object) -> str:
    return _attempt_words(lambda: str(getattr(attempt, "__name__", "attempt")))


def _attempt_words(words: Callable[[], str], longest: int = 200) -> str:
    """Words that code of the learner's gives, cut; it may fail at that too."""
    try:
        return words()[:longest]
    except Exception:
        return "?"
