"""A lesson in sections: what an instructor takes at one go, and what a section's cells need from earlier ones."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from notebooks.build.course import Course
from notebooks.build.read import BOOTSTRAP, Cell, Language, Lesson, Twins

_HEADING = re.compile(r"^#{1,3} +(.+?)\s*$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_TITLE: dict[Language, str] = {"zh": "标题与目标", "en": "title and aims"}
_CONTINUED: dict[Language, str] = {"zh": "{heading}（续）", "en": "{heading} (continued)"}
_BUILT_IN = frozenset({*dir(builtins), "display", "get_ipython"})
_MEASURES = re.compile(r"\b(?:measure_\w+|sweep_tiles)\(")


@dataclass(frozen=True)
class Section:
    """A prose cell that states its minutes, with all that follows it up to the next one.

    Args:
        key: ``"01/formula"``: the lesson's number, and the cell's id without its language.
        titles: its heading; that of the section before, continued, where it has none.
        code: its code cells as a learner runs them.
    """

    key: str
    lesson: str
    minutes: float
    titles: Mapping[Language, str]
    code: tuple[Cell, ...]

    @property
    def defined(self) -> set[str]:
        """Names that its cells leave behind."""
        return {name for cell in self.code for name in _names(cell)[0]}

    @property
    def wanted(self) -> set[str]:
        """Names that its cells take from earlier sections."""
        known: set[str] = set()
        wanted: set[str] = set()
        for cell in self.code:
            bound, loaded = _names(cell)
            wanted |= loaded - known
            known |= bound
        return wanted

    @property
    def measuring(self) -> tuple[str, ...]:
        """Ids of the cells that time something."""
        return tuple(cell.id for cell in self.code if _MEASURES.search(cell.source))


def number_of(lesson: Lesson) -> str:
    """``"01"``, as people call a lesson."""
    return lesson.name.partition("_")[0]


def course_sections(course: Course) -> dict[str, Section]:
    """Every section of every lesson by its key, in the order of the course."""
    return {section.key: section for lesson in course.lessons for section in sections_of(lesson)}


def sections_of(lesson: Lesson) -> Iterator[Section]:
    """The sections of a lesson. A prose cell without minutes belongs to the section before it."""
    titles = dict(_TITLE)
    for opening, blocks in _grouped(lesson):
        if opening is not lesson.opening:
            titles = {language: _title(opening[language], titles[language], language) for language in titles}
        code = tuple(block for block in blocks if isinstance(block, Cell) and _is_run(block))
        yield Section(f"{number_of(lesson)}/{opening.id}", lesson.name, opening.zh.minutes, dict(titles), code)


def _grouped(lesson: Lesson) -> list[tuple[Twins, list[Twins | Cell]]]:
    groups: list[tuple[Twins, list[Twins | Cell]]] = []
    for block in lesson.blocks:
        if isinstance(block, Twins) and (not groups or (block.zh.minutes and "instructor" not in block.tags)):
            groups.append((block, []))
        elif groups:
            groups[-1][1].append(block)
    return groups


def _is_run(cell: Cell) -> bool:
    return cell.id != BOOTSTRAP and not {"solution", "instructor"} & set(cell.tags)


def _title(cell: Cell, before: str, language: Language) -> str:
    """The cell's first heading; what stands in a code fence is none."""
    found = _HEADING.search(_FENCED.sub("", cell.source))
    if found:
        return found[1]
    continued = _CONTINUED[language]
    return before if before.endswith(continued.format(heading="")) else continued.format(heading=before)


def _names(cell: Cell) -> tuple[set[str], set[str]]:
    """Names that a cell binds, and names that it loads and does not bind itself.

    Coarse on purpose: whatever a cell binds anywhere, in a function or a comprehension too, counts as its own. That
    misses a name used before it is bound, which no lesson's cell does, and reports nothing that is not there.
    """
    bound: set[str] = set()
    loaded: set[str] = set()
    for node in ast.walk(ast.parse(cell.source)):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return bound, loaded - bound - _BUILT_IN
