# mypy: untyped-calls-exclude=nbformat
"""Build: execute what changed, keep the outputs of the rest, write what differs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from notebooks.build.check import output_problems, read_notebook
from notebooks.build.course import Course
from notebooks.build.edition import edition
from notebooks.build.execute import execute
from notebooks.build.faults import BuildError
from notebooks.build.instructor import unsolved
from notebooks.build.links import notebook_path
from notebooks.build.read import AUDIENCES, LANGUAGES, Audience, Language, Lesson
from notebooks.build.readme import READMES, with_table

Say = Callable[[str], None]


def build(course: Course, lessons: Collection[Lesson], say: Say, *, force: bool = False) -> None:
    """Write every edition of ``lessons``, and the READMEs' tables; ``force`` executes even what did not change."""
    for lesson in lessons:
        for audience in AUDIENCES:
            for language in LANGUAGES:
                file = notebook_path(lesson, language, audience)
                say(f"{file}: {_build_notebook(lesson, language, audience, course, force)}")
    for name, language in READMES.items():
        path = course.root / name
        if path.exists():
            text = path.read_text(encoding="utf-8")
            changed = _write(path, with_table(text, name, language, course))
            say(f"{name}: {'table of lessons written' if changed else 'unchanged'}")


def _build_notebook(lesson: Lesson, language: Language, audience: Audience, course: Course, force: bool) -> str:
    """Build one file; what was done, in words.

    Raises:
        BuildError: a cell misbehaves, or a solution does not satisfy its checker.
    """
    file = notebook_path(lesson, language, audience)
    path = course.root / file
    fresh = edition(lesson, language, audience, course)
    built = read_notebook(path)
    if not force and built is not None and _same_code(fresh, built) and not list(output_problems(built)):
        _keep_outputs(fresh, built)
        done = "outputs kept"
    else:
        start = time.perf_counter()
        execute(fresh, path.parent, file)
        done = f"executed in {time.perf_counter() - start:.1f} s"
    if faults := list(unsolved(lesson, fresh)):
        raise BuildError("\n".join(map(str, faults)))
    changed = _write(path, nbformat.writes(fresh) + "\n")
    return done if changed else f"{done}, unchanged"


def _same_code(fresh: NotebookNode, built: NotebookNode) -> bool:
    """Whether the same code would run: prose may have changed, no output depends on it."""
    return _code(fresh) == _code(built)


def _code(notebook: NotebookNode) -> list[tuple[object, ...]]:
    return [(c.get("id"), c.source, c.metadata) for c in notebook.cells if c.cell_type == "code"]


def _keep_outputs(fresh: NotebookNode, built: NotebookNode) -> None:
    stored = {cell.id: cell for cell in built.cells if cell.cell_type == "code"}
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs = stored[cell.id].outputs
            cell.execution_count = stored[cell.id].execution_count


def _write(path: Path, text: str) -> bool:
    """Write ``text`` if it differs from what is there, whole or not at all; whether it did."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_text(text, encoding="utf-8", newline="\n")
    unfinished.replace(path)
    return True
