"""The links to the lessons: complete, current, and to files that are there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from deploy import links
from notebooks.build.course import Course, read_course

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def course() -> Course:
    found, faults = read_course(ROOT)
    assert faults == []
    return found


def addresses(page: str) -> list[str]:
    return re.findall(r"<(https?://[^>]+)>", page)


def test_the_committed_page_is_what_the_sources_give(course: Course) -> None:
    assert links.LINKS.read_text(encoding="utf-8") == links.links_page(course), "run python -m deploy.links"


def test_there_is_a_link_to_every_lesson_in_both_languages(course: Course) -> None:
    paths = [parse_qs(urlsplit(address).query)["urlpath"][0] for address in addresses(links.links_page(course))]
    folder = course.config.repository.split("/")[1]
    wanted = {
        f"lab/tree/{folder}/notebooks/{edition}/{it.name}.ipynb" for it in course.lessons for edition in ("zh", "en")
    }
    assert set(paths) == wanted and len(paths) == len(wanted)


def test_a_link_names_hub_repository_and_branch(course: Course) -> None:
    found = urlsplit(links.pull_link(course.lessons[0], "zh", course.config, "https://hub.school.example/jupyter/"))
    query = parse_qs(found.query)
    assert (found.netloc, found.path) == ("hub.school.example", "/jupyter/hub/user-redirect/git-pull")
    assert query["repo"] == [course.config.repository_url] and query["branch"] == [course.config.ref]


def test_a_copy_of_the_repository_is_fetched_and_opened_under_its_own_name(course: Course) -> None:
    copy = "https://git.school.example/fusion/our-fusion/"
    query = parse_qs(urlsplit(links.pull_link(course.lessons[0], "en", course.config, links.HUB, copy)).query)
    assert query["repo"] == [copy.rstrip("/")]
    assert query["urlpath"][0].startswith("lab/tree/our-fusion/notebooks/en/")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["links", *arguments])
    return links.main()


def test_check_finds_a_stale_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, course: Course) -> None:
    page = tmp_path / "links.md"
    monkeypatch.setattr(links, "LINKS", page)
    assert run(monkeypatch, "--check") == 1
    assert run(monkeypatch) == 0 and run(monkeypatch, "--check") == 0
    page.write_text(page.read_text(encoding="utf-8").replace("01_traffic", "01_trafic"), encoding="utf-8")
    assert run(monkeypatch, "--check") == 1


def test_a_named_hub_and_branch_are_printed_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(links, "LINKS", tmp_path / "links.md")
    assert (
        run(
            monkeypatch,
            "--hub",
            "https://hub.school.example",
            "--branch",
            "spring-2027",
            "--repo",
            "https://git.example/f",
        )
        == 0
    )
    found = addresses(capsys.readouterr().out)
    for part in ("hub.school.example", "branch=spring-2027", "git.example%2Ff&"):
        assert found and all(part in address for address in found)
    assert not list(tmp_path.iterdir())


def test_the_example_hub_is_printed_too_when_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], course: Course
) -> None:
    """The line of the README as it stands there: an empty page would pass for a page."""
    monkeypatch.setattr(links, "LINKS", tmp_path / "links.md")
    assert run(monkeypatch, "--hub", links.HUB) == 0
    assert capsys.readouterr().out == links.links_page(course)
    assert not list(tmp_path.iterdir())
