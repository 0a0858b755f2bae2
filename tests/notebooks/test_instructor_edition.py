"""What an instructor opens: solutions that ran and are right, minutes, a box, and words that learners do not have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from notebooks.build.instructor import clock

pytestmark = pytest.mark.once
Run = Callable[..., tuple[int, list[str]]]
SOURCE = "notebooks/source/01_one.py"


def cells(root: Path, language: str = "en", name: str = "01_one") -> dict[str, Any]:
    path = root / f"notebooks/instructor/{language}/{name}.ipynb"
    return {cell.id: cell for cell in nbformat.read(path, as_version=nbformat.NO_CONVERT).cells}


def replace(root: Path, old: str, new: str) -> None:
    path = root / SOURCE
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(("language", "words"), [("zh", "给老师的话。"), ("en", "A word to the teacher.")])
def test_solutions_run_in_place_of_exercises_and_words_stand_beside(
    built_course: Path, language: str, words: str
) -> None:
    found = cells(built_course, language)
    middle = ["why", "panel", "bar", "oops", "guess-solution", "note", "end"]
    assert list(found) == ["title", "instructor-box", "bootstrap", *middle]
    assert found["guess-solution"].outputs[0].text == "✓ right\n"
    assert found["note"].source == f"> {words}"
    learners = (built_course / f"notebooks/{language}/01_one.ipynb").read_text(encoding="utf-8")
    assert words not in learners and "instructor" not in learners


def test_each_section_has_its_minutes_and_the_running_clock_under_its_heading(built_course: Path) -> None:
    english, chinese = cells(built_course), cells(built_course, "zh")
    assert english["title"].source.startswith("# Lesson one\n\n*at 0:00, 2 min*\n")
    assert english["why"].source.startswith("## Why\n\n*at 0:02, 3 min*\n\nFusion saves launches.")
    assert chinese["why"].source.startswith("## 为什么\n\n*0:02 起，3 分钟*\n\n融合减少启动。")
    assert english["end"].source.startswith("*at 0:05, 1.5 min*\n\n")  # no heading: on top


def test_minutes_follow_the_source(built_course: Path, run: Run) -> None:
    replace(built_course, "minutes=3", "minutes=4")
    assert run(built_course, "--check")[0] == 1
    assert run(built_course)[0] == 0
    found = cells(built_course)
    assert "*at 0:02, 4 min*" in found["why"].source and "*at 0:06, 1.5 min*" in found["end"].source
    assert "**Time:** 7.5 minutes" in found["instructor-box"].source


def test_a_hash_in_a_code_fence_is_no_heading(built_course: Path, run: Run) -> None:
    replace(built_course, "# {{previous}} {{next}}", "# ```python\n# # comment\n# ```\n# ## After\n#\n# {{next}}")
    assert run(built_course)[0] == 0
    assert "# comment\n```\n## After\n\n*at 0:05, 1.5 min*\n" in cells(built_course)["end"].source


def test_the_box_says_what_is_needed_and_what_to_prepare(built_course: Path) -> None:
    box = cells(built_course)["instructor-box"].source
    assert all(line.startswith(">") for line in box.splitlines())
    assert "**Time:** 6.5 minutes ｜ **GPU:** not needed ｜ **Packages:** `lab`" in box
    assert "[notebooks/en/01_one.ipynb](../../en/01_one.ipynb)" in box
    assert "this lesson taken alone; in class go by the [schedule](../../../teaching/en/README.md)" in box
    chinese = cells(built_course, "zh")["instructor-box"].source
    assert "单上这一课的钟点；课堂上按[课表](../../../teaching/zh/README.md)走" in chinese
    assert box.endswith("> **Prepare:** run it once.")
    without = cells(built_course, name="02_two")["instructor-box"].source
    assert "**GPU:** recommended ｜ **Packages:** –" in without and "Prepare" not in without


def test_links_stay_in_the_edition_and_lead_to_no_platform(built_course: Path) -> None:
    found = cells(built_course)
    assert "{{" not in str(found) and "Colab" not in str([cell.source for cell in found.values()][:1])
    assert "| [Lesson two](02_two.ipynb) | 1 | recommended |\n" in found["why"].source + "\n"
    assert found["end"].source.endswith("(this is the first lesson) [Lesson two](02_two.ipynb)")
    for cell in found.values():
        if cell.cell_type == "markdown":
            assert "colab.research" not in cell.source and "\n\n\n" not in cell.source


@pytest.mark.parametrize(("answer", "said"), [("6 * 8", "✗ wrong"), ("None", "○ not done yet")])
def test_a_wrong_solution_stops_the_build_with_its_file_and_line(
    built_course: Path, run: Run, answer: str, said: str
) -> None:
    replace(built_course, "answer = 6 * 7", f"answer = {answer}")
    before = (built_course / "notebooks/instructor/zh/01_one.ipynb").read_bytes()
    lines = (built_course / SOURCE).read_text(encoding="utf-8").splitlines()
    line = 1 + next(number for number, text in enumerate(lines) if 'id="guess-solution"' in text)
    status, told = run(built_course)
    assert status == 1
    assert told[-1] == f"{SOURCE}:{line}: solution 'guess-solution' does not satisfy its checker, which says: {said}"
    assert (built_course / "notebooks/instructor/zh/01_one.ipynb").read_bytes() == before


def test_a_stored_output_that_is_not_right_fails_the_check(built_course: Path, run: Run) -> None:
    path = built_course / "notebooks/instructor/en/01_one.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace(r'"✓ right\n"', r'"✗ wrong\n"'), encoding="utf-8")
    status, lines = run(built_course, "--check")
    assert status == 1 and len(lines) == 1
    assert "does not satisfy its checker, which says: ✗ wrong (notebooks/instructor/en/01_one.ipynb)" in lines[0]


def test_words_to_the_instructor_take_no_minutes(built_course: Path, run: Run) -> None:
    for language in ("zh", "en"):
        tags = f'lang="{language}" id="note-{language}" tags=["instructor"]'
        replace(built_course, tags, f"{tags} minutes=2")
    status, lines = run(built_course, "--check")
    assert status == 1
    assert any("'note-zh': a word to the instructor takes no minutes of the lesson" in line for line in lines)


def test_an_instructors_file_without_a_source_fails_the_check(built_course: Path, run: Run) -> None:
    (built_course / "notebooks/instructor/en/09_gone.ipynb").write_text("{}", encoding="utf-8")
    assert run(built_course, "--check") == (
        1,
        ["notebooks/instructor/en/09_gone.ipynb: no source in notebooks/source; delete it"],
    )


def test_the_clock_counts_hours_and_half_minutes() -> None:
    assert [clock(minutes) for minutes in (0, 7, 65, 1.5)] == ["0:00", "0:07", "1:05", "0:01:30"]
