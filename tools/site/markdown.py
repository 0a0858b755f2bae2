"""Markdown as nbconvert reads it, with formulas as MathML: browsers draw that themselves, with no script and no font."""

from __future__ import annotations

from html import escape

from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath


class _Renderer(IPythonRenderer):
    def block_math(self, body: str) -> str:
        return f'<div class="wide formula">{_mathml(body, "block")}</div>'

    def inline_math(self, body: str) -> str:
        return _mathml(body, "inline")

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(rf"\begin{{{name}}}{body}\end{{{name}}}")


def math_as_mathml(source: str) -> str:
    """The HTML of a Markdown cell; HTML in it stays as it is, for the course's own authors wrote it."""
    renderer = _Renderer(escape=False, exclude_anchor_links=True)
    return str(MarkdownWithMath(renderer=renderer).render(source))


def _mathml(body: str, display: str) -> str:
    """MathML, and the TeX for whoever wants to copy it."""
    return convert(body.strip(), display=display).replace("<math ", f'<math alttext="{escape(body.strip())}" ', 1)
