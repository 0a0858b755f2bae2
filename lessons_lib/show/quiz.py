"""Questions with a few choices: a quiz that explains every choice, and a vote that only keeps the guess.

What a learner chooses is noted in the progress file as it is chosen, and there again after a restart. With
``LESSONS_PROGRESS=off`` nothing comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import ipywidgets as widgets

from lessons_lib.base.language import language_tag
from lessons_lib.base.progress import has_progress_file, note_step, noted, untold_notice
from lessons_lib.base.text import Text, sentences
from lessons_lib.base.validate import require_int
from lessons_lib.show.controls import html_view, push_button, show_or_hide
from lessons_lib.show.guesses import SECTION as VOTES, noted_choice
from lessons_lib.show.live import LiveBox
from lessons_lib.show.workshop import in_workshop

QUIZZES = "quizzes"
"""The section of the progress file; its keys are the functions that make the quizzes."""

_SCORE = Text(
    zh="已答 {answered} / {total} 题，答对 {right} 题。", en="Answered {answered} of {total}, right: {right}."
)
_NOTED = Text(
    zh="已记下你的猜测：{choice}。先不看答案，往下做。",
    en="Your guess is noted: {choice}. Carry on; do not look up the answer yet.",
)
_LATE = Text(
    zh="你选的是：{choice}。已经量过了，不再算猜测。",
    en="You chose: {choice}. It has been measured by now, so this no longer counts as a guess.",
)
_CHOSEN = Text(
    zh="你选的是：{choice}。点“确定”就定下来，不能再改。",
    en="You chose: {choice}. Press commit to settle it; then it stays.",
)
_COMMIT = Text(zh="确定", en="commit")
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
    """Questions one below the other; each answer is explained as soon as it is chosen, and may be changed.

    Args:
        key: under which answers are noted, the name of the function that makes the quiz; blank: they are not.
        lesson: ``"01"``, noted beside them.
    """

    def __init__(self, questions: Sequence[Question], *, key: str = "", lesson: str = "") -> None:
        super().__init__()
        self.questions = tuple(questions)
        self.key, self.lesson = key, lesson
        self._radios = [_radio_buttons([choice.words for choice in question.choices]) for question in self.questions]
        self._feedback = [html_view() for _ in self.questions]
        self._score = html_view()
        parts: list[Any] = []
        for number, (question, radio, feedback) in enumerate(
            zip(self.questions, self._radios, self._feedback, strict=True), 1
        ):
            parts += [html_view(paragraph(f"{number}. {question.words}", bold=True)), radio, feedback]
        self.children = [*parts, self._score]
        self._put_back()
        for index, radio in enumerate(self._radios):
            radio.observe(lambda change, index=index: self._chosen(index), names="value")

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

    def _chosen(self, index: int) -> None:
        self._explain(index)
        self._note()
        self._count(untold_notice())

    def _put_back(self) -> None:
        """The answers that the progress file holds."""
        earlier = noted(QUIZZES, self.key).get("answers") if self.key and has_progress_file() else None
        for index, answer in enumerate(_answers(earlier, self.questions)):
            self._radios[index].value = None if answer is None else answer - 1
            self._explain(index)
        self._count()

    def _note(self) -> None:
        if not (self.key and has_progress_file()):
            return
        entry = noted(QUIZZES, self.key)
        before = _answers(entry.get("answers"), self.questions)
        first = _answers(entry.get("first"), self.questions)
        changes = entry.get("changes")
        changed = sum(old is not None and old != new for old, new in zip(before, self.answers, strict=True))
        fields = {
            "answers": self.answers,
            "first": [new if old is None else old for old, new in zip(first, self.answers, strict=True)],
            "right": self.score,
            "changes": (changes if isinstance(changes, int) and changes >= 0 else 0) + changed,
        }
        note_step(QUIZZES, self.key, self.lesson, fields)

    def _explain(self, index: int) -> None:
        if self._radios[index].value is None:
            self._feedback[index].value = ""
            return
        choice = self.questions[index].choices[self._radios[index].value]
        mark, verdict, colour = ("✓", _RIGHT, "#009E73") if choice.right else ("✗", _WRONG, "#D55E00")
        self._feedback[index].value = paragraph(f"{mark} {sentences(verdict, choice.why)}", edge=colour, live=True)

    def _count(self, notice: Text | None = None) -> None:
        answered = sum(answer is not None for answer in self.answers)
        words = _SCORE.format(answered=answered, total=len(self.questions), right=self.score)
        self._score.value = paragraph(sentences(words, *([] if notice is None else [notice])), live=True)


class Vote(LiveBox):
    """A guess before a measurement: no choice is right or wrong yet, and the guess is kept in ``value``.

    In a workshop the guess counts once it is committed, and then it stays.

    Args:
        words: the question.
        options: (label, value) pairs; ``value`` is what the later cells read.
        key: under which the guess is noted, the name of the function that makes the vote; blank: it is not.
        lesson: ``"01"``, noted beside it.
    """

    def __init__(
        self, words: Text, options: Sequence[tuple[Text, object]], *, key: str = "", lesson: str = ""
    ) -> None:
        super().__init__()
        self.words, self.options = words, tuple(options)
        self.key, self.lesson = key, lesson
        self._buttons = widgets.ToggleButtons(
            options=[(str(label), index) for index, (label, _) in enumerate(self.options)], index=None
        )
        self._buttons.style.button_width = "auto"
        self._noted = html_view(paragraph(" ", live=True))
        self._commit = push_button(_COMMIT, self.commit) if in_workshop() else None
        if self._commit is not None:
            self._commit.layout.margin, self._commit.layout.align_self = "8px 0 6px 2px", "flex-start"
        self._committed = self._commit is None
        self._put_back()
        self._buttons.observe(lambda change: self._chosen(), names="value")
        committing = [] if self._commit is None else [self._commit]
        self.children = [html_view(paragraph(str(words), bold=True)), self._buttons, *committing, self._noted]

    @property
    def value(self) -> Any:
        """The value of the option chosen; ``None`` before the vote, and in a workshop until it is committed."""
        chosen = self._buttons.value
        return self.options[chosen][1] if chosen is not None and self._committed else None

    def choose(self, option: int) -> None:
        """Choose an option, counted from 1, as a click would; a guess that was committed in a workshop stays.

        Raises:
            ValueError: there is no such option.
        """
        number = require_int("option", option, 1, len(self.options))
        if not self._buttons.disabled:
            self._buttons.value = number - 1

    def commit(self) -> None:
        """Settle the guess, as the button of a workshop does; without a choice nothing happens."""
        if self._commit is not None and self._buttons.value is not None and not self._committed:
            self._committed = True
            self._chosen()
            self._settle()

    def static_forms(self) -> dict[str, str]:
        labels = [str(label) for label, _ in self.options]
        return {
            "text/html": paragraph(str(self.words), bold=True) + paragraph(" ｜ ".join(labels)),
            "text/plain": "\n".join([str(self.words), *(f"  ( ) {label}" for label in labels)]),
        }

    def _put_back(self) -> None:
        """The guess that the progress file holds."""
        choice = noted_choice(self.key, len(self.options)) if self.key and has_progress_file() else None
        if choice is not None:
            self._committed = True
            self._buttons.value = choice - 1
            self._say(_NOTED)
            self._settle()
        self._show_commit()

    def _settle(self) -> None:
        if self._commit is not None:
            self._buttons.disabled = True
            self._show_commit()

    def _show_commit(self) -> None:
        if self._commit is not None:
            self._commit.disabled = self._buttons.value is None
            show_or_hide(self._commit, not self._buttons.disabled)

    def _chosen(self) -> None:
        self._show_commit()
        if self._buttons.value is None:
            self._noted.value = paragraph(" ", live=True)
        elif not self._committed:
            self._say(_CHOSEN)
        else:
            self._say(_NOTED if self._note() else _LATE)

    def _note(self) -> bool:
        """Note the guess; whether it still is one."""
        if not (self.key and has_progress_file()):
            return True
        entry = noted(VOTES, self.key)
        if "measured" in entry:
            return bool(entry.get("choice") == self._buttons.value + 1)
        label, value = self.options[self._buttons.value]
        changes = entry.get("changes")
        changed = "choice" in entry and entry["choice"] != self._buttons.value + 1
        fields = {
            "choice": self._buttons.value + 1,
            "value": value if isinstance(value, (str, int, float)) else str(value),
            "label": label.en,
            "changes": (changes if isinstance(changes, int) and changes >= 0 else 0) + changed,
        }
        note_step(VOTES, self.key, self.lesson, fields)
        return True

    def _say(self, words: Text) -> None:
        chosen = words.format(choice=self.options[self._buttons.value][0])
        notice = untold_notice()
        self._noted.value = paragraph(sentences(chosen, *([] if notice is None else [notice])), live=True)


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


def _answers(earlier: object, questions: Sequence[Question]) -> list[int | None]:
    """What of a noted list of answers makes sense, an entry for each question."""
    given = earlier if isinstance(earlier, list) else []
    padded = [*given, *([None] * len(questions))]
    return [
        answer
        if isinstance(answer, int) and not isinstance(answer, bool) and 1 <= answer <= len(question.choices)
        else None
        for answer, question in zip(padded, questions, strict=False)
    ]
