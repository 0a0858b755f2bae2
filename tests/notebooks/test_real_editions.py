"""The course's own notebooks: fresh, the same in both languages, with solutions that pass."""

from __future__ import annotations

import re

import pytest
from small_course import ROOT

from notebooks.build.check import content_faults, read_notebook, stale_files
from notebooks.build.course import Course
from notebooks.build.edition import edition
from notebooks.build.instructor import ANSWER, ASK, prepare
from notebooks.build.links import notebook_path
from notebooks.build.read import LANGUAGES, Language, Lesson, Twins

pytestmark = pytest.mark.once

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
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_solution_satisfies_its_checker_in_what_instructors_open(
    course: Course, name: str, language: Language
) -> None:
    """nbval holds the stored outputs to a run; here they must say ✓ and nothing else."""
    lesson = lesson_of(course, name)
    built = read_notebook(ROOT / notebook_path(lesson, language, "instructor"))
    assert built is not None
    solutions = [cell for cell in built.cells if "solution" in cell.metadata.get("tags", [])]
    assert [cell.id for cell in solutions] == [cell.id for cell in lesson.code if "solution" in cell.tags]
    for cell in solutions:
        assert {mark for mark in "✓✗○" if mark in str(cell.outputs)} == {"✓"}, f"{name}: solution '{cell.id}'"


def words_by_section(lesson: Lesson) -> dict[str, list[Twins]]:
    """The words to the instructor that follow each section's heading, up to the next one, without those to prepare."""
    found: dict[str, list[Twins]] = {}
    for twins in lesson.prose:
        if "instructor" in twins.tags:
            if twins is not prepare(lesson):
                list(found.values())[-1].append(twins)
        elif twins.zh.minutes or twins.zh.source.startswith("## "):
            found[twins.id] = []
    return found


def wrong_answers(source: str) -> int:
    """Rows of the tables in ``source``, their heads aside."""
    rows = [line for line in source.splitlines() if line.startswith("|")]
    return len(rows) - 2 * sum(line.startswith("| ---") for line in rows)


@pytest.mark.parametrize("name", LESSONS)
def test_an_instructor_is_told_what_to_prepare_and_what_to_say(course: Course, name: str) -> None:
    """How to open; then for each section what to say, a question with its answer, and at least two wrong answers."""
    lesson = lesson_of(course, name)
    opening, *sections = words_by_section(lesson).items()
    assert prepare(lesson) is next(twins for twins in lesson.prose if "instructor" in twins.tags)
    assert opening[0] == lesson.opening.id and opening[1]
    for section, words in sections:
        for language in LANGUAGES:
            told = "\n".join(twins[language].source for twins in words)
            assert ASK[language] in told and ANSWER[language] in told, f"{section}-{language}: no question"
            assert wrong_answers(told) >= 2, f"{section}-{language}: one usual wrong answer is not enough"


@pytest.mark.parametrize("name", LESSONS)
def test_words_to_the_instructor_are_short_and_alike_in_both_languages(course: Course, name: str) -> None:
    for twins in (words for section in words_by_section(lesson_of(course, name)).values() for words in section):
        assert twins.zh.source.startswith("**说：**") and twins.en.source.startswith("**Say:**"), twins.id
        assert wrong_answers(twins.zh.source) == wrong_answers(twins.en.source), f"{twins.id}: the tables differ"
        assert len(twins.zh.source) < 600 and len(twins.en.source) < 1200, (
            f"{twins.id}: too long to read while speaking"
        )


def test_an_instructors_lessons_link_to_files_that_are_there(course: Course) -> None:
    for lesson in course.lessons:
        for language in LANGUAGES:
            path = ROOT / notebook_path(lesson, language, "instructor")
            built = read_notebook(path)
            assert built is not None
            prose = "\n".join(cell.source for cell in built.cells if cell.cell_type == "markdown")
            links = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in link]
            assert links
            assert [link for link in links if not (path.parent / link).exists()] == []
            assert "colab.research.google.com" not in prose  # an instructor's lesson is on no platform
