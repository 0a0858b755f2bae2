"""A code cell on a reading page: highlighted code, and of each output the richest form that needs no kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from markupsafe import Markup
from nbconvert.filters.ansi import ansi2html
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

_FORMATTER = HtmlFormatter(style="default", cssclass="code")
CODE_STYLE: str = _FORMATTER.get_style_defs(".code")


def highlighted(code: str) -> str:
    """Python code as HTML."""
    html: str = highlight(code, PythonLexer(), _FORMATTER)
    return html


def shown_outputs(outputs: Iterable[Any]) -> list[dict[str, object]]:
    """What to show of a cell's outputs, in order; each has a ``kind`` and its ``html``."""
    return [shown for output in outputs for shown in _shown(output)]


def _shown(output: Any) -> Iterator[dict[str, object]]:
    if output.output_type == "stream":
        if text := as_on_a_terminal(output.text):
            yield _plain(text)
        return
    if output.output_type == "error":
        yield _plain("\n".join(output.traceback))
        return
    data = output.data
    if "image/svg+xml" in data:
        yield {"kind": "picture", "html": Markup(data["image/svg+xml"]), "text": data.get("text/plain", "")}
    elif "text/html" in data:
        yield {"kind": "html", "html": Markup(data["text/html"])}
    elif "image/png" in data:
        # The picture's own text form is the best description there is.
        described = escape(data.get("text/plain", ""))
        encoded = "".join(data["image/png"].split())
        yield {"kind": "html", "html": Markup(f'<img alt="{described}" src="data:image/png;base64,{encoded}">')}
    elif "text/plain" in data:
        yield _plain(data["text/plain"])


def _plain(text: str) -> dict[str, object]:
    return {"kind": "text", "html": Markup(ansi2html(text))}  # type: ignore[no-untyped-call]


def as_on_a_terminal(text: str) -> str:
    """``text`` after its carriage returns: of a progress bar only the last state is left, or nothing."""
    lines = (re.split(r"\r(?!$)", line.removesuffix("\r"))[-1].rstrip() for line in text.split("\n"))
    return "\n".join(lines).strip("\n")
