"""Something finished to look at: HTML for a notebook, plain text for a test, a terminal or a screen reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from lessons_lib.base.language import language_tag
from lessons_lib.base.text import Text
from lessons_lib.show.table import Table


@dataclass(frozen=True)
class Shown:
    """Displayed by Jupyter as ``html``, printed as ``plain``."""

    html: str
    plain: str

    def __repr__(self) -> str:
        return self.plain

    def _repr_html_(self) -> str:
        return self.html


def report(table: Table, words: Sequence[Text] = (), svg: str = "") -> Shown:
    """A picture, a table and paragraphs, one below the other."""
    prose = report_words(words)
    return Shown(svg + table.html() + prose.html, "\n".join([table.plain(), *([prose.plain] if words else [])]))


def claims_shown(claims: Mapping[str, bool], words: Mapping[str, Text]) -> Shown:
    """A line for each claim, ✓ where it holds and ✗ where it does not.

    Args:
        claims: name -> whether it holds, such as a measurement's ``verdict()``; ``words``: each name in words.
    """
    return report_words(
        [
            Text(zh="{mark} {claim}", en="{mark} {claim}").format(mark="✓" if holds else "✗", claim=words[name])
            for name, holds in claims.items()
        ]
    )


def report_words(words: Sequence[Text]) -> Shown:
    """Paragraphs alone, in the dress that they have in a report."""
    paragraphs = "".join(f'<p style="margin:6px 0">{escape(str(text))}</p>' for text in words)
    html = f'<div lang="{language_tag()}" style="max-width:740px;line-height:1.6">{paragraphs}</div>' if words else ""
    return Shown(html, "\n".join(map(str, words)))
