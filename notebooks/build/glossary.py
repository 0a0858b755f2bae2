"""The course's terms, and who strays from them: the prose of the lessons and the ``Text`` of the library."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notebooks.build.config import read_toml
from notebooks.build.faults import BuildError, Fault
from notebooks.build.links import table
from notebooks.build.read import LANGUAGES, Language, Lesson

_KEYS = {"zh", "en", "avoid_zh", "avoid_en", "definition_zh", "definition_en"}
_TABLE_HEAD: dict[Language, tuple[str, ...]] = {
    "zh": ("术语", "英文", "意思"),
    "en": ("Term", "In Chinese", "Meaning"),
}
# Code, and the address of a link: not prose.
_NOT_PROSE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\]\([^)\n]*\)|https?://\S+", re.DOTALL)


@dataclass(frozen=True)
class Term:
    """One term: its name, the renderings to avoid, its meaning in a line, each by language."""

    name: dict[Language, str]
    avoid: dict[Language, re.Pattern[str] | None]
    definition: dict[Language, str]


@dataclass(frozen=True)
class Glossary:
    """The terms in the order of the file."""

    terms: tuple[Term, ...]

    def strays(self, text: str, language: Language) -> Iterator[tuple[int, str]]:
        """``(line offset, message)`` for every rendering that the glossary avoids."""
        prose = _NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        for offset, line in enumerate(prose.splitlines()):
            for term in self.terms:
                pattern = term.avoid[language]
                for found in pattern.finditer(line) if pattern else ():
                    name = term.name[language]
                    yield offset, f"'{found[0]}' is outside the glossary: the course says '{name}'"

    def table(self, language: Language) -> str:
        """The terms as a Markdown table, for readers of ``language``."""
        other: Language = "en" if language == "zh" else "zh"
        rows = [(term.name[language], term.name[other], term.definition[language]) for term in self.terms]
        return table(_TABLE_HEAD[language], rows)


def read_glossary(path: Path) -> Glossary:
    """The terms in ``path``.

    Raises:
        BuildError: an entry lacks a key, has one too many, or avoids something that is no regular expression.
    """
    try:
        return Glossary(tuple(_term(name, entry) for name, entry in read_toml(path).items()))
    except (ValueError, re.error) as error:
        raise BuildError(f"{path.name}: {error}") from error


def _term(name: str, entry: dict[str, Any]) -> Term:
    if set(entry) != _KEYS:
        raise ValueError(f"[{name}] must have exactly the keys {', '.join(sorted(_KEYS))}")
    return Term(
        name={language: entry[language] for language in LANGUAGES},
        avoid={"zh": _pattern(entry["avoid_zh"]), "en": _pattern(entry["avoid_en"], words=True)},
        definition={language: entry[f"definition_{language}"] for language in LANGUAGES},
    )


def _pattern(entries: list[str], *, words: bool = False) -> re.Pattern[str] | None:
    """One pattern for all entries; in English whole words only, with or without a plural s."""
    if not entries:
        return None
    any_entry = "|".join(f"(?:{entry})" for entry in entries)
    return re.compile(rf"\b(?:{any_entry})s?\b" if words else any_entry, re.IGNORECASE)


def prose_faults(lesson: Lesson, glossary: Glossary) -> Iterator[Fault]:
    """Strays in the prose cells of ``lesson``."""
    for twins in lesson.prose:
        for language in LANGUAGES:
            cell = twins[language]
            for offset, message in glossary.strays(cell.source, language):
                yield Fault(lesson.file, cell.body_line + offset, message)


def library_faults(root: Path, glossary: Glossary) -> Iterator[Fault]:
    """Strays in the ``Text(zh=..., en=...)`` literals of ``lessons_lib``."""
    for path in sorted((root / "lessons_lib").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        file = path.relative_to(root).as_posix()
        try:
            tree = ast.parse(source)
        except SyntaxError as error:
            yield Fault(file, error.lineno or 1, f"not valid Python: {error.msg}")
            continue
        for language, literal in _text_literals(tree):
            yield from _literal_faults(literal, language, source.splitlines(), file, glossary)


def _text_literals(tree: ast.Module) -> Iterator[tuple[Language, ast.expr]]:
    """What every ``Text(...)`` call says, by keyword or by position."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not _is_text(call.func):
            continue
        yield from zip(LANGUAGES, call.args, strict=False)
        for keyword in call.keywords:
            for language in LANGUAGES:
                if keyword.arg == language:
                    yield language, keyword.value


def _is_text(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == "Text"


def _literal_faults(
    literal: ast.expr, language: Language, lines: list[str], file: str, glossary: Glossary
) -> Iterator[Fault]:
    text = "".join(_constants(literal)).replace("\n", " ")
    for _, message in glossary.strays(text, language):
        term = message.split("'")[1]
        end = literal.end_lineno or literal.lineno
        span = range(literal.lineno, end + 1)
        yield Fault(file, next((n for n in span if term in lines[n - 1]), literal.lineno), message)


def _constants(literal: ast.expr) -> Iterable[str]:
    """The fixed parts of a string, plain, joined or formatted, in the order written."""
    if isinstance(literal, ast.Constant):
        return [literal.value] if isinstance(literal.value, str) else []
    if isinstance(literal, ast.JoinedStr):
        return [part for value in literal.values for part in (_constants(value) or [" "])]
    if isinstance(literal, ast.BinOp):
        return [*_constants(literal.left), *_constants(literal.right)]
    return []
