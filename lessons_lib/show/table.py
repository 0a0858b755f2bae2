"""One table, two forms: HTML for the eye, aligned plain text for tests and screen readers."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from lessons_lib.base.language import language_tag

# Colours stand in every cell: a dark notebook has its own for the cells of a table.
_CELL = "padding:3px 14px;border-bottom:1px solid #d0d7de;color:#1b1f24;"


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; every row is as long as the header.

    Args:
        header: column titles; the first column names the row.
        rows: cells, already formatted in the edition's language.
        marked: index of the row that is the learner's own, drawn bold with a leading mark; None for no such row.
        note: one sentence beneath: what the numbers are not.
        prose: cells hold words, not numbers: all are left-aligned.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: int | None = None
    note: str = ""
    prose: bool = False

    def html(self) -> str:
        """An HTML table on a white ground, first column left-aligned, the others right-aligned; text is escaped."""
        head = "".join(
            f'<th scope="col" style="{_CELL}text-align:{self._side(column)};font-weight:600">{escape(title)}</th>'
            for column, title in enumerate(self.header)
        )
        body = "".join(self._html_row(index, row) for index, row in enumerate(self.rows))
        note = f'<div style="margin:6px 14px 0;color:#57606a">{escape(self.note)}</div>' if self.note else ""
        return (
            f'<div lang="{language_tag()}" style="max-width:758px;margin-top:6px;background:#fff;color:#1b1f24;'
            "font-size:13px;line-height:1.5;padding-bottom:6px;border:1px solid #d0d7de;border-radius:10px;"
            'overflow:hidden">'
            '<table style="border-collapse:collapse;table-layout:auto;width:100%;margin:0;font-size:13px;'
            'font-variant-numeric:tabular-nums">'
            f'<thead><tr style="background:#f6f8fa">{head}</tr></thead><tbody>{body}</tbody></table>{note}</div>'
        )

    def plain(self) -> str:
        """The same table as aligned text; a full-width character counts as two columns."""
        lines = [list(self.header), *(self._with_mark(index, row) for index, row in enumerate(self.rows))]
        widths = [max(_columns(line[column]) for line in lines) for column in range(len(self.header))]
        text = [
            "  ".join(_pad(cell, widths[column], self._side(column)) for column, cell in enumerate(line))
            for line in lines
        ]
        text.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([line.rstrip() for line in text] + ([self.note] if self.note else []))

    def _html_row(self, index: int, row: Sequence[str]) -> str:
        weight = "font-weight:600;background:#eef6f3;" if index == self.marked else ""
        cells = "".join(
            f'<td style="{_CELL}{weight}{_wrap(cell, len(row))}text-align:{self._side(column)}">{escape(cell)}</td>'
            for column, cell in enumerate(self._with_mark(index, row))
        )
        return f'<tr style="background:#fff">{cells}</tr>'

    def _side(self, column: int) -> str:
        return "left" if column == 0 or self.prose else "right"

    def _with_mark(self, index: int, row: Sequence[str]) -> list[str]:
        return [f"▸ {row[0]}", *row[1:]] if index == self.marked else list(row)


def _wrap(cell: str, columns: int) -> str:
    """A short cell stays on one line: Chinese would else break inside a word. Few columns leave more room."""
    return "white-space:nowrap;" if _columns(cell) <= (22 if columns > 4 else 36) else ""


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _pad(cell: str, width: int, side: str) -> str:
    space = " " * (width - _columns(cell))
    return cell + space if side == "left" else space + cell
