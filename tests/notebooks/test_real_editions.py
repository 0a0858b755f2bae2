"""The course's own notebooks: fresh, the same in both languages, with solutions that pass."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from small_course import ROOT

from notebooks.build.check import content_faults, read_notebook, stale_files
from notebooks.build.course import Course
from notebooks.build.edition import edition
from notebooks.build.execute import execute
from notebooks.build.links import notebook_path
from notebooks.build.read import LANGUAGES, Language, Lesson
from tools.lesson_needs import lacking

LESSONS = sorted(path.stem for path in (ROOT / "notebooks" / "source").glob("*.py"))


def lesson_of(course: Course, name: str) -> Lesson:
    return next(lesson for lesson in course.lessons if lesson.name == name)


def code_of(lesson: Lesson, language: Language, course: Course) -> list[tuple[str, str]]:
    notebook = edition(lesson, language, "learner", course)
    return [(cell.id, cell.source) for cell in notebook.cells if cell.cell_type == "code"]


def test_sources_and_library_are_free_of_faults(course: Course) -> None:
    assert [str(fault) for fault in content_faults(course)] == []


def test_what_is_built_is_what_the_sources_say(course: Course) -> None:
    assert list(stale_files(course)) == []


@pytest.mark.parametrize("name", LESSONS)
def test_the_editions_differ_in_one_line_of_code(course: Course, name: str) -> None:
    lesson = lesson_of(course, name)
    chinese, english = (code_of(lesson, language, course) for language in LANGUAGES)
    assert [cell_id for cell_id, _ in chinese] == [cell_id for cell_id, _ in english]
    differences = [
        (a, b)
        for (_, zh), (_, en) in zip(chinese, english, strict=True)
        for a, b in zip(zh.splitlines(), en.splitlines(), strict=True)
        if a != b
    ]
    assert differences == [('lessons_lib.use_language("zh")', 'lessons_lib.use_language("en")')]


@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_exercise_is_solved_in_what_learners_open(course: Course, name: str, language: Language) -> None:
    lesson = lesson_of(course, name)
    built = read_notebook(ROOT / notebook_path(lesson, language))
    assert built is not None
    for cell in built.cells:
        if "exercise" in cell.metadata.get("tags", []):
            assert "✓" not in str(cell.outputs), cell.id


@pytest.mark.parametrize("name", LESSONS)
def test_every_solution_satisfies_its_checker(course: Course, name: str) -> None:
    """The instructor edition, run from top to bottom; the checker's mark for "right" is ✓.

    Where the lesson's packages are missing, a checker may say instead that it cannot tell: ○.
    """
    allowed = {"✓", "○"} if name in lacking(Path(sys.executable)) else {"✓"}
    notebook = edition(lesson_of(course, name), "zh", "instructor", course)
    execute(notebook, ROOT / "notebooks" / "zh", name)
    for cell in notebook.cells:
        if "solution" in cell.metadata.get("tags", []):
            found = verdict(cell)
            assert found and found <= allowed, f"{name}: solution '{cell.id}' says {found}"


def verdict(cell: Any) -> set[str]:
    return {mark for mark in "✓✗○" if mark in str(cell.outputs)}
