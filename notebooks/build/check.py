# mypy: untyped-calls-exclude=nbformat
"""Compare what is built with what the sources say, without writing anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from notebooks.build.course import Course
from notebooks.build.edition import edition
from notebooks.build.execute import stderr_of
from notebooks.build.faults import Fault
from notebooks.build.glossary import library_faults, prose_faults
from notebooks.build.instructor import unanswered, unsolved
from notebooks.build.links import notebook_path
from notebooks.build.placeholders import placeholder_faults
from notebooks.build.read import AUDIENCES, LANGUAGES, Audience, Language, Lesson
from notebooks.build.readme import READMES, ReadmeError, with_table
from notebooks.build.rules import code_faults

REBUILD = "run `make notebooks`"


def content_faults(course: Course) -> Iterator[Fault]:
    """Faults inside the cells, and in the library's texts; ``read_course`` has found those of the structure."""
    for lesson in course.lessons:
        yield from code_faults(lesson)
        yield from placeholder_faults(lesson)
        yield from prose_faults(lesson, course.glossary)
        yield from unanswered(lesson)
    yield from library_faults(course.root, course.glossary)


def stale_files(course: Course) -> Iterator[str]:
    """A line for every built file that is not what a build would write, outputs aside."""
    for audience in AUDIENCES:
        for language in LANGUAGES:
            for lesson in course.lessons:
                yield from _stale_notebook(lesson, language, audience, course)
            yield from _orphans(language, audience, course)
    yield from _stale_readmes(course)


def _stale_notebook(lesson: Lesson, language: Language, audience: Audience, course: Course) -> Iterator[str]:
    file = notebook_path(lesson, language, audience)
    built = read_notebook(course.root / file)
    if built is None:
        yield f"{file}: missing or unreadable; {REBUILD}"
        return
    difference = _difference(edition(lesson, language, audience, course), built)
    if difference:
        yield f"{file}: {difference}; {REBUILD}"
    for problem in output_problems(built):
        yield f"{file}: {problem}; run `python -m notebooks.build --lesson {lesson.name}`"
    yield from (f"{fault} ({file})" for fault in unsolved(lesson, built))


def read_notebook(path: Path) -> NotebookNode | None:
    """The notebook in ``path``, or nothing if there is none that can be read."""
    try:
        notebook: NotebookNode = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    except (OSError, ValueError, nbformat.ValidationError):
        return None
    return notebook


def _difference(fresh: NotebookNode, built: NotebookNode) -> str | None:
    """The first thing in which ``built`` differs from ``fresh``; outputs and execution counts do not count."""
    ours, theirs = [cell.id for cell in fresh.cells], [cell.get("id") for cell in built.cells]
    if ours != theirs:
        wrong = next((a or b for a, b in _pairs(ours, theirs) if a != b), None)
        return f"stale: the cells are not those of the source (first difference at '{wrong}')"
    for new, old in zip(fresh.cells, built.cells, strict=True):
        for part in ("cell_type", "source", "metadata"):
            if new[part] != old[part]:
                return f"stale: cell '{new.id}' differs in its {part}"
    for part in ("metadata", "nbformat", "nbformat_minor"):
        if fresh[part] != built[part]:
            return f"stale: the notebook's {part} differs"
    return None


def _pairs(ours: list[Any], theirs: list[Any]) -> Iterator[tuple[Any, Any]]:
    length = max(len(ours), len(theirs))
    yield from zip(ours + [None] * (length - len(ours)), theirs + [None] * (length - len(theirs)), strict=True)


def output_problems(built: NotebookNode) -> Iterator[str]:
    """What makes the stored outputs unfit: nbval compares nothing in a cell that never ran."""
    for cell in built.cells:
        if cell.cell_type != "code":
            continue
        skipped = "nbval-skip" in cell.metadata.get("tags", [])
        if cell.source.strip() and cell.execution_count is None and not skipped:
            yield f"cell '{cell.id}' has no execution count"
        if stderr_of(cell):
            yield f"cell '{cell.id}' has stderr among its outputs"


def _orphans(language: Language, audience: Audience, course: Course) -> Iterator[str]:
    names = {lesson.name for lesson in course.lessons}
    for path in sorted(course.folder(language, audience).glob("*.ipynb")):
        if path.stem not in names:
            yield f"{path.relative_to(course.root).as_posix()}: no source in notebooks/source; delete it"


def _stale_readmes(course: Course) -> Iterator[str]:
    for name, language in READMES.items():
        path = course.root / name
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        try:
            fresh = with_table(text, name, language, course)
        except ReadmeError as error:
            yield str(error)
            continue
        if fresh != text:
            yield f"{name}: stale: the table of lessons differs; {REBUILD}"
