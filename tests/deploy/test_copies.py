"""The class's own repository: what the links open, as `make lab` hands it out, and never the course's own files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from deploy import copies, links
from notebooks.build.course import read_course
from tools.lessons import learner_files
from tools.project import ROOT
from tools.say import Stop


def test_both_editions_are_what_make_lab_hands_out(tmp_path: Path) -> None:
    written = copies.write_copies(tmp_path / "class")
    there = {path.relative_to(tmp_path / "class") for path in (tmp_path / "class").rglob("*") if path.is_file()}
    assert there == set(written)
    for edition in ("zh", "en"):
        source = ROOT / "notebooks" / edition
        for name, data in learner_files(source).items():
            assert (tmp_path / "class" / "notebooks" / edition / name).read_bytes() == data
    notebooks = [json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.rglob("*.ipynb")]
    answers = [cell for it in notebooks for cell in it["cells"] if "answer" in cell["metadata"].get("tags", ())]
    assert len(answers) > 12 and not any(cell["outputs"] for cell in answers)


def test_every_link_of_the_class_opens_a_file_of_its_repository(tmp_path: Path) -> None:
    folder = tmp_path / "our-class"
    copies.write_copies(folder)
    course, _ = read_course(ROOT)
    for lesson in course.lessons:
        for language in ("zh", "en"):
            link = links.pull_link(lesson, language, course.config, links.HUB, f"https://git.example/{folder.name}")
            path = parse_qs(urlsplit(link).query)["urlpath"][0]
            assert (tmp_path / path.removeprefix("lab/tree/")).is_file(), path


def test_a_second_time_brings_the_news_and_leaves_the_rest(tmp_path: Path) -> None:
    copies.write_copies(tmp_path)
    lesson = tmp_path / "notebooks" / "en" / "00_start.ipynb"
    before = lesson.read_bytes()
    lesson.write_text("an older version", encoding="utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").write_text("the teacher's own", encoding="utf-8")
    copies.write_copies(tmp_path)
    assert lesson.read_bytes() == before
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "the teacher's own"


@pytest.mark.parametrize("folder", [".", "notebooks", "notebooks/zh", "deploy/.."])
def test_the_courses_own_lessons_keep_their_outputs(tmp_path: Path, folder: str) -> None:
    """On a course made up, should the refusal fail."""
    course = tmp_path / "course"
    answer = {"cell_type": "code", "metadata": {"tags": ["answer"]}, "source": "", "outputs": ["42"]}
    for name in ("LICENSE", "LICENSE-CONTENT", "NOTICE", *(f"notebooks/{it}/00_start.ipynb" for it in ("zh", "en"))):
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        (course / name).write_text(json.dumps({"cells": [answer]}), encoding="utf-8")
    (course / "deploy").mkdir()
    before = {path: path.read_bytes() for path in course.rglob("*") if path.is_file()}
    with pytest.raises(Stop, match="another folder"):
        copies.write_copies(course / folder, course)
    assert {path: path.read_bytes() for path in course.rglob("*") if path.is_file()} == before


def test_the_command_says_how_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setattr(sys, "argv", ["copies", str(tmp_path / "class")])
    assert copies.main() == 0
    lessons = len(list((tmp_path / "class").rglob("*.ipynb")))
    assert f"{lessons} notebooks" in capsys.readouterr().out
