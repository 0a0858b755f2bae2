"""Questions with a few choices: a quiz that explains every choice, and a vote that only keeps the guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import ipywidgets as widgets

from lessons_lib.base.language import language_tag
from lessons_lib.base.text import Text, sentences
from lessons_lib.base.validate import require_int
from lessons_lib.show.controls import html_view
from lessons_lib.show.live import LiveBox

_SCORE = Text(
    zh="已答 {answered} / {total} 题，答对 {right} 题。", en="Answered {answered} of {total}, right: {right}."
)
_NOTED = Text(
    zh="已记下你的猜测：{choice}。先不看答案，往下做。",
    en="Your guess is noted: {choice}. Carry on; do not look up the answer yet.",
)
_RIGHT = Text(zh="对。", en="Right.")
_WRONG = Text(zh="不对。", en="Not right.")


@dataclass(frozen=True)
class Choice:
    """One answer and why it is right or wrong."""

    words: Text
    why: Text
    right: bool = False


@dataclass(frozen=True)
class Question:
    """A question with exactly one right choice.

    Raises:
        ValueError: fewer than two choices, or not exactly one right one.
    """

    words: Text
    choices: Sequence[Choice]

    def __post_init__(self) -> None:
        if len(self.choices) < 2 or sum(choice.right for choice in self.choices) != 1:
            raise ValueError(
                "choices 至少要有两项，且恰好有一项正确。\nchoices needs two or more, exactly one of them right."
            )


class Quiz(LiveBox):
    """Questions one below the other; each answer is explained as soon as it is chosen, and may be changed."""

    def __init__(self, questions: Sequence[Question]) -> None:
        super().__init__()
        self.questions = tuple(questions)
        self._radios = [_radio_buttons([choice.words for choice in question.choices]) for question in self.questions]
        self._feedback = [html_view() for _ in self.questions]
        self._score = html_view()
        parts: list[Any] = []
        for number, (question, radio, feedback) in enumerate(
            zip(self.questions, self._radios, self._feedback, strict=True), 1
        ):
            radio.observe(lambda change, index=number - 1: self._explain(index), names="value")
            parts += [html_view(paragraph(f"{number}. {question.words}", bold=True)), radio, feedback]
        self.children = [*parts, self._score]
        self._count()

    @property
    def answers(self) -> list[int | None]:
        """The chosen choice of each question, counted from 1; ``None`` where none is chosen yet."""
        return [None if radio.value is None else radio.value + 1 for radio in self._radios]

    @property
    def score(self) -> int:
        """Questions answered rightly."""
        chosen = zip(self.questions, self._radios, strict=True)
        return sum(radio.value is not None and question.choices[radio.value].right for question, radio in chosen)

    def answer(self, question: int, choice: int) -> None:
        """Choose ``choice`` (from 1) for ``question`` (from 1), as a click would.

        Raises:
            ValueError: there is no such question or choice.
        """
        number = require_int("question", question, 1, len(self.questions))
        picked = require_int("choice", choice, 1, len(self.questions[number - 1].choices))
        self._radios[number - 1].value = picked - 1

    def static_forms(self) -> dict[str, str]:
        return {
            "text/html": "".join(_folded(number, question) for number, question in enumerate(self.questions, 1)),
            "text/plain": "\n".join(_listed(number, question) for number, question in enumerate(self.questions, 1)),
        }

    def _explain(self, index: int) -> None:
        if self._radios[index].value is None:
            self._feedback[index].value = ""
            self._count()
            return
        choice = self.questions[index].choices[self._radios[index].value]
        mark, verdict, colour = ("✓", _RIGHT, "#009E73") if choice.right else ("✗", _WRONG, "#D55E00")
        self._feedback[index].value = paragraph(f"{mark} {sentences(verdict, choice.why)}", edge=colour, live=True)
        self._count()

    def _count(self) -> None:
        answered = sum(answer is not None for answer in self.answers)
        words = _SCORE.format(answered=answered, total=len(self.questions), right=self.score)
        self._score.value = paragraph(str(words), live=True)


class Vote(LiveBox):
    """A guess before a measurement: no choice is right or wrong yet, and the guess is kept in ``value``.

    Args:
        words: the question.
        options: (label, value) pairs; ``value`` is what the later cells read.
    """

    def __init__(self, words: Text, options: Sequence[tuple[Text, object]]) -> None:
        super().__init__()
        self.words, self.options = words, tuple(options)
        self._buttons = widgets.ToggleButtons(
            options=[(str(label), index) for index, (label, _) in enumerate(self.options)], index=None
        )
        self._buttons.style.button_width = "auto"
        self._noted = html_view(paragraph(" ", live=True))
        self._buttons.observe(lambda change: self._note(), names="value")
        self.children = [html_view(paragraph(str(words), bold=True)), self._buttons, self._noted]

    @property
    def value(self) -> Any:
        """The value of the option chosen; ``None`` before the vote."""
        return None if self._buttons.value is None else self.options[self._buttons.value][1]

    def choose(self, option: int) -> None:
        """Choose an option, counted from 1, as a click would.

        Raises:
            ValueError: there is no such option.
        """
        self._buttons.value = require_int("option", option, 1, len(self.options)) - 1

    def static_forms(self) -> dict[str, str]:
        labels = [str(label) for label, _ in self.options]
        return {
            "text/html": paragraph(str(self.words), bold=True) + paragraph(" ｜ ".join(labels)),
            "text/plain": "\n".join([str(self.words), *(f"  ( ) {label}" for label in labels)]),
        }

    def _note(self) -> None:
        chosen = self._buttons.value
        words = " " if chosen is None else str(_NOTED.format(choice=self.options[chosen][0]))
        self._noted.value = paragraph(words, live=True)


def _radio_buttons(labels: Sequence[Text]) -> Any:
    return widgets.RadioButtons(
        options=[(str(label), index) for index, label in enumerate(labels)],
        index=None,
        layout=widgets.Layout(width="auto", max_width="760px", margin="0 0 0 12px"),
    )


def paragraph(words: str, *, bold: bool = False, edge: str = "transparent", live: bool = False) -> str:
    """Words beside a widget as HTML, escaped; ``live`` has a screen reader say them when they change."""
    # The words take the notebook's own colour, light or dark; only the edge is coloured.
    role = ' role="status"' if live else ""
    look = "font-weight:600" if bold else f"margin-left:12px;padding-left:8px;border-left:4px solid {edge}"
    return (
        f'<div{role} lang="{language_tag()}" style="max-width:740px;min-height:22px;line-height:1.6;'
        f'font-size:14px;{look}">{escape(words)}</div>'
    )


def _folded(number: int, question: Question) -> str:
    """Without a kernel every choice unfolds its own explanation."""
    choices = "".join(
        f"<details><summary>{escape(str(choice.words))}</summary>"
        f"<p>{'✓' if choice.right else '✗'} {escape(str(choice.why))}</p></details>"
        for choice in question.choices
    )
    return f'<div lang="{language_tag()}"><p><b>{number}. {escape(str(question.words))}</b></p>{choices}</div>'


def _listed(number: int, question: Question) -> str:
    choices = [f"  ( ) {choice.words}" for choice in question.choices]
    return "\n".join([f"{number}. {question.words}", *choices])
