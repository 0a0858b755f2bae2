"""What the pages of ``teaching/`` say is there is there: both languages, links, cells, commands, figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import lessons_lib
from lessons_lib.base.progress import EXPORT_NAME, FILE_NAME
from lessons_lib.classroom.report import REPORT_NAME
from lessons_lib.graph.puzzles.levels import puzzle
from notebooks.build.config import read_toml
from notebooks.build.course import read_course
from notebooks.build.glossary import read_glossary
from notebooks.build.read import LANGUAGES, Language
from tools.project import ROOT
from tools.schedule.__main__ import main
from tools.schedule.plan import read_plan
from tools.schedule.sections import course_sections, number_of

pytestmark = pytest.mark.once
Change = Callable[[str, str, str], None]

COURSE, _ = read_course(ROOT)
PAGES = sorted((ROOT / "teaching").glob("*/*.md"))
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]
TWINS = sorted(path.name for path in (ROOT / "teaching" / "en").glob("*.md"))
HANDWRITTEN = {"README.md", "no-gpu.md", "room-checklist.md", "workshop-mode.md"}
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def between(text: str, marker: str) -> str:
    return text.split(f"<!-- {marker}:begin -->")[1].split(f"<!-- {marker}:end -->")[0]


def test_both_languages_have_the_same_files() -> None:
    files = {language: sorted(p.name for p in (ROOT / "teaching" / language).iterdir()) for language in LANGUAGES}
    assert files["zh"] == files["en"]
    assert HANDWRITTEN | {f"{schedule.name}.md" for schedule in read_plan(ROOT).schedules} == set(files["en"])


@pytest.mark.parametrize("name", TWINS)
def test_a_page_has_the_same_shape_in_both_languages(name: str) -> None:
    shapes = []
    for language in LANGUAGES:
        text = read(f"teaching/{language}/{name}")
        lines = _FENCE.sub("", text).splitlines()
        shapes.append(
            {
                "headings": [line.split(" ")[0] for line in lines if line.startswith("#")],
                "cells of each table row": [line.count("|") for line in lines if line.startswith("|")],
                "points": sum(line.lstrip().startswith("- ") for line in lines),
                "steps": sum(bool(re.match(r"\d+\. ", line)) for line in lines),
                "blocks of code": text.count("```"),
                "cells named": sorted(set(re.findall(r"`(\d\d/[a-z0-9-]+)`", text))),
            }
        )
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(name))
    missing = [t for t in targets if "://" not in t and not (ROOT / name).parent.joinpath(t).resolve().exists()]
    assert missing == []
    assert all(ROOT in (ROOT / name).parent.joinpath(t).resolve().parents for t in targets if "://" not in t)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_readme_leads_to_every_page(language: Language) -> None:
    links = set(re.findall(r"\]\(([a-z0-9-]+\.md)\)", read(f"teaching/{language}/README.md")))
    assert links == set(TWINS) - {"README.md"}


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_named_is_in_the_lessons(name: str) -> None:
    known = {f"{number_of(lesson)}/{cell.id}" for lesson in COURSE.lessons for cell in lesson.code}
    known |= set(course_sections(COURSE))
    assert set(re.findall(r"`(\d\d/[a-z0-9-]+)`", read(name))) <= known


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_gpu_speaks_of_every_cell_of_lesson_05_that_could_need_one(language: Language) -> None:
    lesson = next(lesson for lesson in COURSE.lessons if number_of(lesson) == "05")
    named = set(re.findall(r"`05/([a-z0-9-]+)`", read(f"teaching/{language}/no-gpu.md")))
    votes = {cell.id for cell in lesson.code if cell.id.endswith("vote")}
    left_out = {cell.id for cell in lesson.code if "solution" not in cell.tags} - named - votes - {"bootstrap"}
    assert left_out == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_needs_table_agrees_with_the_sources(language: Language) -> None:
    rows = [
        line.split(" | ") for line in between(read(f"teaching/{language}/room-checklist.md"), "needs").splitlines()
    ]
    found = {row[0][3:5]: row for row in rows if row[0].startswith("| [")}
    gpu = {
        "zh": {"none": "不需要", "recommended": "建议有"},
        "en": {"none": "not needed", "recommended": "recommended"},
    }
    assert list(found) == [number_of(lesson) for lesson in COURSE.lessons]
    for lesson in COURSE.lessons:
        _, length, extras, wanted, cells, *_ = found[number_of(lesson)]
        assert float(length) == lesson.minutes
        assert re.findall(r"`([a-z]+)`", extras) == list(lesson.needs)
        assert wanted == gpu[language][lesson.gpu]
        measuring = [c.id for c in lesson.code if re.search(r"(?:measure|sweep)_\w+\(", c.source)]
        assert re.findall(r"`\d\d/([a-z-]+)`", cells) == [cell for cell in measuring if "verdict" not in cell]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_of_packages_is_pyproject_s(language: Language) -> None:
    project = read_toml(ROOT / "pyproject.toml")["project"]
    table = between(read(f"teaching/{language}/room-checklist.md"), "extras")
    for extra in COURSE.config.extras:
        row = next(line for line in table.splitlines() if line.startswith(f"| `{extra}` "))
        assert re.findall(r"`([^`]+)`", row)[1:] == project["optional-dependencies"][extra]


@pytest.mark.parametrize("language", LANGUAGES)
def test_recorded_runs_are_listed_or_their_absence_is_said(language: Language) -> None:
    stated = between(read(f"teaching/{language}/no-gpu.md"), "recorded")
    shipped = sorted(path.name for path in (ROOT / "lessons_lib/kernels/recorded").glob("*.json"))
    assert sorted(re.findall(r"`([\w.-]+\.json)`", stated)) == shipped
    assert shipped or {"zh": "还没有记录", "en": "no recorded run yet"}[language] in stated


def test_a_lesson_that_asks_for_more_makes_the_checklist_stale(
    copied: Path, change: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    change("notebooks/source/03_decision.py", r'(id="title-(?:zh|en)".*) needs="lab"', r'\1 needs="lab graph"')
    assert main(["--check", "--root", str(copied)]) == 1
    assert sorted(line.partition(":")[0] for line in capsys.readouterr().out.splitlines()) == [
        f"teaching/{language}/room-checklist.md" for language in ("en", "zh")
    ]
    assert main(["--root", str(copied)]) == 0
    assert main(["--check", "--root", str(copied)]) == 0


def test_a_lost_marker_is_named(copied: Path, change: Change, capsys: pytest.CaptureFixture[str]) -> None:
    change("teaching/zh/room-checklist.md", "<!-- needs:end -->", "")
    assert main(["--root", str(copied)]) == 1
    assert "teaching/zh/room-checklist.md: needs <!-- needs:begin -->" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_call_exists(name: str) -> None:
    text = read(name)
    makefile = read("Makefile")
    for target in set(re.findall(r"\bmake ([a-z]+)\b(?! [a-z])", "\n".join(re.findall(r"`[^`\n]+`", text)))):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for module in set(re.findall(r"-m ((?:tools|lessons_lib)[.a-z_]*)", text)):
        path = ROOT.joinpath(*module.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), module
    for call in set(re.findall(r"lessons_lib\.([a-z_]+)\(", text)):
        assert hasattr(lessons_lib, call), call
    for file in set(re.findall(r"`((?:fusion|class)-[a-z]+\.(?:json|html))`", text)):
        assert file in (FILE_NAME, EXPORT_NAME, REPORT_NAME), file


@pytest.mark.parametrize("name", NAMES)
def test_the_prose_keeps_to_the_glossary(name: str) -> None:
    glossary = read_glossary(ROOT / "notebooks/source/glossary.toml")
    language: Language = "zh" if "/zh/" in name else "en"
    assert list(glossary.strays(read(name), language)) == []


@pytest.mark.parametrize(("level", "compiled", "best"), [(4, 160, 96), (6, 128, 96)])
def test_the_two_puzzles_of_the_workshop_beat_the_compiler_by_what_is_said(
    level: int, compiled: int, best: int
) -> None:
    mib = 2**20
    found = puzzle(level)
    assert (found.compiler.total_bytes // mib, found.solution.score.total_bytes // mib) == (compiled, best)
    for language, words in (("en", "{} MiB, best {} MiB"), ("zh", "{} MiB，最优 {} MiB")):
        page = read(f"teaching/{language}/workshop-90.md")
        assert words.format(compiled, best) in page or re.search(rf"{compiled} (?:against|对) {best} MiB", page)


def test_the_first_three_puzzles_do_not() -> None:
    for level in (1, 2, 3):
        found = puzzle(level)
        assert found.compiler == found.solution.score
