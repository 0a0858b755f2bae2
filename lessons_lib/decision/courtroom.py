"""The court as a learner meets it: rule first, then the evidence is computed and laid beside the ruling."""

from __future__ import annotations

from typing import Any

from lessons_lib.base.text import Text
from lessons_lib.base.validate import require_choice
from lessons_lib.decision.court import (
    ANSWER_NAMES,
    ANSWERS,
    QUESTION_NAMES,
    QUESTIONS,
    Exhibit,
    Hearing,
    require_case,
)
from lessons_lib.decision.evidence import examine, try_case
from lessons_lib.show.controls import choice_buttons, control_row, html_view
from lessons_lib.show.live import LiveBox
from lessons_lib.show.quiz import paragraph
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table

_WAITING = Text(zh="三问都答了，证据才会算出来。", en="The evidence is computed once all three are answered.")
_MARKS = {"agrees": "✓", "differs": "✗"}


class Trial(LiveBox):
    """One case: what is proposed, three rulings to give, and then the evidence.

    Args:
        case: a name in ``CASES``.

    Raises:
        ValueError: there is no such case.
    """

    def __init__(self, case: str) -> None:
        super().__init__()
        self.case = require_case(case)
        self.hearing: Hearing = Hearing(self.case.name, "open")
        words = [(ANSWER_NAMES[answer], answer) for answer in ANSWERS]
        self.controls: dict[str, Any] = {
            question: choice_buttons(QUESTION_NAMES[question], words, None) for question in QUESTIONS
        }
        self._evidence = html_view(paragraph(str(_WAITING), live=True))
        for control in self.controls.values():
            control.observe(lambda change: self._hear(), names="value")
        heading = html_view(paragraph(str(self.case.title), bold=True) + paragraph(str(self.case.question)))
        self.children = [heading, control_row(list(self.controls.values())), self._evidence]

    def rule(self, legal: str, profitable: str, bit_equal: str) -> None:
        """Give all three rulings, as clicks would: each ``"yes"``, ``"no"`` or ``"depends"``.

        Raises:
            ValueError: an answer is none of the three; then nothing changes.
            ImportError: NumPy is missing; nothing changes either.
        """
        given = {"legal": legal, "profitable": profitable, "bit_equal": bit_equal}
        for question, answer in given.items():
            require_choice(question, answer, ANSWERS)
        try_case(self.case.name, **given)
        for question, answer in given.items():
            self.controls[question].value = answer

    def static_forms(self) -> dict[str, str]:
        questions = [f"  {QUESTION_NAMES[question]} ( )" for question in QUESTIONS]
        return {
            "text/html": paragraph(str(self.case.title), bold=True) + paragraph(str(self.case.question)),
            "text/plain": "\n".join([str(self.case.title), str(self.case.question), *questions]),
        }

    def _hear(self) -> None:
        given = {question: control.value for question, control in self.controls.items()}
        try:
            self.hearing = try_case(self.case.name, **given)
        except ImportError as error:  # NumPy is missing: the message says what to do
            self._evidence.value = paragraph(str(error), live=True)
            return
        if self.hearing.standing == "open":
            self._evidence.value = paragraph(str(_WAITING), live=True)
        else:
            self._evidence.value = _heard(self.hearing)


def _heard(hearing: Hearing) -> str:
    words = [str(text) for text in hearing.words]
    words[0] = f"{_MARKS[hearing.standing]} {words[0]}"
    said = "".join(paragraph(sentence, live=not index) for index, sentence in enumerate(words))
    if hearing.findings is None:
        return said
    return exhibit_table(hearing.findings.exhibit).html() + said + exhibit_table(hearing.findings.conditions).html()


def exhibit_table(exhibit: Exhibit) -> Table:
    """An exhibit in the edition's language."""
    header = [str(title) for title in exhibit.header]
    return Table(header, [[str(cell) for cell in row] for row in exhibit.rows], note=str(exhibit.note), prose=True)


def court_record(*cases: str) -> Shown:
    """The evidence's own rulings on ``cases``, computed now: a table with a row a case.

    Raises:
        ValueError: there is no such case.
        ImportError: NumPy is missing; the message says what to do.
    """
    rows = []
    for name in cases:
        ruling = examine(name).ruling.by_question()
        rows.append([str(require_case(name).title), *(str(ANSWER_NAMES[ruling[question]]) for question in QUESTIONS)])
    header = [str(Text(zh="案由", en="case")), *(str(QUESTION_NAMES[question]) for question in QUESTIONS)]
    return report(Table(header, rows, prose=True))
