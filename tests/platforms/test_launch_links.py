"""Every launch link in the READMEs and the built lessons leads to a file of this tree, in its page's language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from notebooks.build.config import Config, read_config
from notebooks.build.course import read_course
from notebooks.build.readme import READMES
from tools.edition import EDITIONS
from tools.lesson_needs import lesson_needs
from tools.project import ROOT

LESSONS = sorted(
    path.relative_to(ROOT).as_posix() for name in EDITIONS for path in ROOT.glob(f"notebooks/{name}/*.ipynb")
)
PAGES = [*READMES, *LESSONS]
# The hosts of launch links, and what must follow the host: repository, ref, path.
PARTS = r"(?P<repository>[^/]+/[^/]+)/{}(?P<ref>[^/?]+){}(?P<path>[^?&#]+)"
PLATFORMS = {
    "colab.research.google.com": "/github/" + PARTS.format("blob/", "/"),
    "modelscope.cn": "/notebook/share/github/" + PARTS.format("blob/", "/"),
    "kaggle.com": r"/kernels/welcome\?src=https://raw\.githubusercontent\.com/" + PARTS.format("", "/"),
    "mybinder.org": "/v2/gh/" + PARTS.format("", r"\?urlpath=lab/tree/"),
}
CONFIG = read_config(ROOT)


def text_of(page: str) -> str:
    if not page.endswith(".ipynb"):
        return (ROOT / page).read_text(encoding="utf-8")
    cells = nbformat.read(ROOT / page, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def edition_of(page: str) -> str:
    return READMES[page] if page in READMES else page.split("/")[1]


def links(text: str) -> Iterator[tuple[str, str]]:
    """``(platform, address)`` of every launch link."""
    for address in re.findall(r"https?://[^\s)\"'<>`]+", text):
        host = address.split("/")[2].removeprefix("www.")
        if host in PLATFORMS:
            yield host, address


def target(host: str, address: str) -> dict[str, str]:
    """Repository, ref and path of a launch link; nothing if it is none that its platform would understand."""
    found = re.fullmatch(rf"https://{re.escape(host)}{PLATFORMS[host]}", unquote(address))
    return found.groupdict() if found else {}


def faults(text: str, edition: str, config: Config, root: Path) -> list[str]:
    found = []
    for host, address in links(text):
        parts = target(host, address)
        good = (
            parts.get("repository") == config.repository
            and parts["ref"] == config.ref
            and parts["path"].startswith(f"notebooks/{edition}/")
            and (root / parts["path"]).is_file()
        )
        if not good:
            found.append(address)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_launch_link_leads_to_a_file_of_its_own_edition(page: str) -> None:
    assert list(links(text_of(page)))
    assert faults(text_of(page), edition_of(page), CONFIG, ROOT) == []


@pytest.mark.parametrize("page", LESSONS)
def test_a_lesson_opens_itself_on_every_platform(page: str) -> None:
    own = {host for host, address in links(text_of(page)) if target(host, address)["path"] == page}
    assert own == set(PLATFORMS)


@pytest.mark.parametrize("page", LESSONS)
def test_a_lesson_also_runs_on_the_site_in_its_own_language_unless_its_kernels_need_triton(page: str) -> None:
    """The site's Python has no torch and no triton: a lesson on kernels is only read there, and no link may open it."""
    _, edition, name = page.split("/")
    offered = f"{CONFIG.site}run/lab-{edition}/index.html?path={edition}/{name}" in text_of(page)
    assert offered == ("kernel" not in lesson_needs()[name.removesuffix(".ipynb")])


@pytest.mark.parametrize("page", READMES)
def test_a_readme_opens_every_lesson_and_its_language_decides_what_comes_first(page: str) -> None:
    found = [(host, target(host, address)["path"]) for host, address in links(text_of(page))]
    first = "modelscope.cn" if READMES[page] == "zh" else "colab.research.google.com"
    for lesson in LESSONS:
        if edition_of(lesson) == READMES[page]:
            hosts = [host for host, path in found if path == lesson]
            assert hosts[:1] == [first]
            assert set(hosts) == set(PLATFORMS)


@pytest.mark.parametrize(
    "change",
    [
        ("blob/main", "blob/other"),
        ("/zh/", "/en/"),
        ("operator-fusion-course", "somebody"),
        ("00_start", "99_end"),
        ("/github/", "/gist/"),
    ],
)
def test_a_wrong_link_is_found(change: tuple[str, str]) -> None:
    good = f"https://colab.research.google.com/github/{CONFIG.repository}/blob/main/notebooks/zh/00_start.ipynb"
    config = Config(**{**vars(CONFIG), "ref": "main"})
    assert faults(f"[x]({good})", "zh", config, ROOT) == []
    bad = good.replace(CONFIG.repository, "operator-fusion-course/course").replace(*change)
    assert faults(f"[x]({bad})", "zh", config, ROOT) == [bad]


@pytest.mark.parametrize("page", LESSONS)
def test_only_a_lesson_that_recommends_a_gpu_asks_colab_for_one(page: str) -> None:
    course, _ = read_course(ROOT)
    lesson = next(lesson for lesson in course.lessons if lesson.name == Path(page).stem)
    metadata = nbformat.read(ROOT / page, as_version=4).metadata
    asks = "accelerator" in metadata or "gpuType" in metadata.get("colab", {})
    assert asks == (lesson.gpu == "recommended")
