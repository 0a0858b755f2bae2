"""The form that asks for a guess before a panel opens, and the line that keeps the guess in view afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from html import escape
from typing import Any

import ipywidgets as widgets

from lessons_lib.base.guess import number_in
from lessons_lib.base.language import language_tag
from lessons_lib.base.progress import note_progress, noted, stamped, untold_notice
from lessons_lib.base.questions import QUESTIONS, Question
from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, shown
from lessons_lib.show.controls import html_view, push_button
from lessons_lib.show.workshop import in_workshop

SECTION = "guesses"
"""The section of the progress file; its keys are the names of the panels."""

_LONGEST = 200  # characters of a guess
_LONGEST_KEY = 60
_PROMPT = Text(zh="先写下你的猜测，再看结果。", en="Write down your guess before you look.")
_HOW = Text(
    zh="一个数或几句话都行。它会一直留在图的上方。",
    en="A number or a few words. It stays in view above the picture.",
)
_HOW_IN_UNIT = Text(
    zh="写一个数，单位 {unit}；也可以写上理由。它会一直留在图的上方。",
    en="A number, in {unit}; you may add why. It stays in view above the picture.",
)
_HOW_MANY = Text(
    zh="写一个数；也可以写上理由。它会一直留在图的上方。",
    en="A number; you may add why. It stays in view above the picture.",
)
_HOW_OFTEN = Text(
    zh="写几倍；也可以写上理由。它会一直留在图的上方。",
    en="How many times (×); you may add why. It stays in view above the picture.",
)
_HOW_IN_WORDS = Text(
    zh="几句话就行。它会一直留在图的上方。",
    en="A few words. They stay in view above the picture.",
)
_FIELD, _COMMIT = Text(zh="你的猜测", en="your guess"), Text(zh="确定", en="commit")
_BLANK = Text(zh="还没有写：写一个数，或者几句话。", en="Nothing is written yet: type a number or a few words.")
_YOURS = Text(zh="你的猜测：{guess}", en="Your guess: {guess}")
_LOCKED = Text(
    zh="这个面板还没有打开：先在其中写下你的猜测，点“确定”，再运行这一格。",
    en="This panel is not open yet: write down your guess in it and press commit, then run this cell again.",
)


class LockedError(RuntimeError):
    """A cell asks for a result whose guess has not been committed yet."""


class GuessGate:
    """Closed until a guess is committed; one that the progress file holds opens it at once.

    It asks what the lesson asks above the panel (see ``base.questions``), and of a panel that no lesson has, any guess.

    Args:
        key: under which the guess is noted, such as the panel's class; ``lesson``: ``"01"``.
        opened: called when the guess is committed.
    """

    def __init__(self, key: str, lesson: str, opened: Callable[[], object]) -> None:
        self.key, self.lesson, self._opened = guess_key(key), lesson, opened
        self.question = QUESTIONS.get(self.key)
        earlier = noted(SECTION, self.key).get("guess")
        self.guess: str | None = earlier[:_LONGEST] if isinstance(earlier, str) and earlier.strip() else None
        self._field = widgets.Text(
            description=str(_FIELD), layout=widgets.Layout(width="100%", max_width="560px", margin="0 8px 0 0")
        )
        self._field.style.description_width = "initial"
        self._field.on_msg(lambda _, content, buffers: self._heard(content))
        self._field.observe(lambda change: self._amended(), names="value")
        self._button = push_button(_COMMIT, lambda: self._heard({"event": "submit"}))
        self._button.layout.margin = "0"
        self._said = html_view()
        self.line = html_view()
        row = widgets.Box(
            [self._field, self._button],
            layout=widgets.Layout(flex_flow="row wrap", align_items="center", margin="8px 0 2px"),
        )
        layout = widgets.Layout(
            border="1px solid #d0d7de", padding="10px 14px 4px", margin="4px 0", max_width="758px"
        )
        self.form = widgets.VBox([html_view(_asking(self.question)), row, self._said], layout=layout)
        self._say(None)
        self._show()

    @property
    def locked(self) -> bool:
        """Whether the guess is still to be made."""
        return self.guess is None

    def require_open(self) -> None:
        """Let pass where the guess has been committed.

        Raises:
            LockedError: it has not; in both languages.
        """
        if self.locked:
            raise LockedError(_LOCKED.both)

    def commit(self, words: str) -> None:
        """Commit a guess, as the button does; afterwards it stays as it is.

        Raises:
            ValueError: ``words`` is no string, or blank.
        """
        if not isinstance(words, str) or not words.strip():
            given = shown(words)
            raise bad_argument(
                "words", zh=f"需要写上你的猜测，收到的是 {given}", en=f"it must hold your guess, got {given}"
            )
        if self.locked:
            self._field.disabled = self._button.disabled = True
            self._keep(words)
            self._opened()

    def plain(self) -> str:
        """In words what shows: the question, and the guess once it is committed."""
        asked = [] if self.question is None else [str(self.question.words)]
        if self.guess is None:
            return "\n".join([str(_PROMPT), *asked])
        return "\n".join([*asked, str(_YOURS.format(guess=self.guess))])

    def _heard(self, content: object) -> None:
        """Enter in the field, or a press of the button."""
        if isinstance(content, dict) and content.get("event") == "submit" and self.locked:
            if self._field.value.strip():
                self.commit(self._field.value)
            else:
                self._say(_BLANK)

    def _amended(self) -> None:
        """A browser may deliver the last letters after the Enter that followed them: they belong to the guess."""
        if self._button.disabled and self._field.value.strip():
            self._keep(self._field.value)

    def _keep(self, words: str) -> None:
        self.guess = " ".join(words.split())[:_LONGEST]
        found = number_in(self.guess) if self.question is None else self.question.number_in(self.guess)
        fields: dict[str, object] = {"guess": self.guess}
        if found is not None:
            whole = found.number.is_integer() and abs(found.number) < 1e15
            fields |= {"number": int(found.number) if whole else found.number, "unit": found.unit}
        with suppress(Exception):  # a note that cannot be taken must not keep a panel closed
            note_progress(SECTION, self.key, stamped(self.lesson, fields))
        self._show()

    def _show(self) -> None:
        notice = untold_notice() if self.guess is not None else None
        self.line.value = "" if self.guess is None else _kept_html(self.question, self.guess, notice)

    def _say(self, words: Text | None) -> None:
        self._said.value = (
            f'<div role="status" lang="{language_tag()}" style="min-height:20px;line-height:20px;font-size:13px">'
            f"{escape(str(words or ''))}</div>"
        )


def guess_gate(key: str, lesson: str, opened: Callable[[], object]) -> GuessGate | None:
    """A gate in a workshop; ``None`` outside, where nothing waits for a guess."""
    return GuessGate(key, lesson, opened) if in_workshop() else None


def guess_key(name: str) -> str:
    """``name`` as a key that a class report takes: letters, digits, spaces, ``_``, ``.`` and ``-``, cut to length."""
    return re.sub(r"[^\w.\- ]", "_", name)[:_LONGEST_KEY].strip() or "panel"


def _asking(question: Question | None) -> str:
    """The question in bold, what to do above it and how below; without a question, what to do is in bold."""
    lines = [f"<b>{escape(str(_PROMPT))}</b>", escape(str(_HOW))]
    if question is not None:
        lines = [escape(str(_PROMPT)), f"<b>{escape(str(question.words))}</b>", escape(str(_how(question.unit)))]
    return f'<div lang="{language_tag()}" style="line-height:1.6;font-size:14px">{"<br>".join(lines)}</div>'


def _how(unit: str | None) -> Text:
    """What kind of answer a question wants."""
    if unit is None:
        return _HOW_IN_WORDS
    return {"": _HOW_MANY, "×": _HOW_OFTEN}.get(unit) or _HOW_IN_UNIT.format(unit=unit)


def _kept_html(question: Question | None, guess: str, notice: Text | None) -> str:
    above = "" if question is None else f'<div style="font-weight:400">{escape(str(question.words))}</div>'
    beneath = "" if notice is None else f'<div style="font-size:12px;font-weight:400">{escape(str(notice))}</div>'
    return (
        f'<div role="status" lang="{language_tag()}" style="max-width:744px;margin:2px 0 6px;padding-left:8px;'
        'line-height:1.6;font-size:14px;font-weight:600;border-left:4px solid #0072B2;overflow-wrap:anywhere">'
        f"{above}<div>{escape(str(_YOURS.format(guess=guess)))}</div>{beneath}</div>"
    )


def opened_widgets(gate: GuessGate | None, above: list[Any], below: list[Any]) -> list[Any]:
    """The parts to show: all of them without a gate, the form alone while it is closed, else the guess between them."""
    if gate is None:
        return [*above, *below]
    return [gate.form] if gate.locked else [*above, gate.line, *below]
