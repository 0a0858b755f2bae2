"""What a code cell of a lesson may not contain."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from IPython.core.inputtransformer2 import TransformerManager

from notebooks.build.faults import Fault
from notebooks.build.read import Cell, Lesson

_CHINESE = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]+")


def code_faults(lesson: Lesson) -> Iterator[Fault]:
    """Faults inside the code cells: not Python, a trailing ``;``, Chinese text."""
    for cell in lesson.code:
        for line, message in (*_python_faults(cell), *_chinese_faults(cell)):
            yield Fault(lesson.file, line, message)


def _python_faults(cell: Cell) -> Iterator[tuple[int, str]]:
    # IPython's own translation of %magics and !commands, line for line.
    source = TransformerManager().transform_cell(cell.source)  # type: ignore[no-untyped-call]
    try:
        ast.parse(source)
    except SyntaxError as error:
        yield cell.body_line + (error.lineno or 1) - 1, f"not valid Python: {error.msg}"
        return
    for line in _trailing_semicolons(source):
        yield cell.body_line + line - 1, "a trailing ';' does not hide a result: end with a name or None"


def _trailing_semicolons(source: str) -> Iterator[int]:
    """Lines on which a statement ends in ``;``; strings and comments do not count."""
    previous = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL):
            continue
        if token.type == tokenize.NEWLINE and previous is not None and previous.string == ";":
            yield previous.start[0]
        previous = token


def _chinese_faults(cell: Cell) -> Iterator[tuple[int, str]]:
    for offset, line in enumerate(cell.source.splitlines()):
        if found := _CHINESE.search(line):
            yield cell.body_line + offset, f"Chinese in a code cell ('{found.group()}'): both editions share it"
