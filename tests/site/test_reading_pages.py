"""Every page of the site that is only read, in a Chromium without JavaScript and without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from playwright.sync_api import Browser, Page
from site_driver import ARTIFACTS, refuse_others, serve

from notebooks.build.course import read_course
from tools.project import ROOT
from tools.site.__main__ import write_pages
from tools.site.editions import built
from tools.site.lite import RUN

COURSE = built(read_course(ROOT)[0])
EDITIONS = ("zh", "en")
PAGES = ("index", *(lesson.name for lesson in COURSE.lessons))
WIDTHS = (390, 1024)
TAGS = {"zh": "zh-CN", "en": "en"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write_pages(folder, COURSE)
    return folder


@pytest.fixture(scope="module")
def address(pages: Path) -> Iterator[str]:
    with serve(pages) as started:
        yield started


@pytest.fixture(scope="module", params=WIDTHS)
def plain_page(offline: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[tuple[Page, list[str]]]:
    viewport = {"width": request.param, "height": 844}
    context = offline.new_context(viewport=viewport, java_script_enabled=False, has_touch=request.param < 600)
    refused = refuse_others(context, address)
    yield context.new_page(), refused
    context.close()


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_and_fits(plain_page: tuple[Page, list[str]], address: str, edition: str, name: str) -> None:
    page, refused = plain_page
    page.goto(f"{address}/{edition}/{name}.html")
    width = page.viewport_size["width"]
    page.screenshot(path=ARTIFACTS / f"site-{edition}-{name}-{width}.png", full_page=True)
    assert refused == []
    assert page.locator("html").get_attribute("lang") == TAGS[edition]
    assert page.evaluate(TOO_WIDE) == []
    assert "$$" not in page.locator("main").inner_text()
    for picture in page.locator("figure.picture svg").all():
        box = picture.bounding_box()
        assert box is not None and box["width"] >= 300 and box["height"] >= 100


# Right of the page's edge, and in no box that scrolls by itself.
TOO_WIDE = """() => {
    const edge = document.documentElement.clientWidth;
    const scrolls = element => {
        for (let box = element.parentElement; box; box = box.parentElement)
            if (getComputedStyle(box).overflowX === 'auto') return box.getBoundingClientRect().right <= edge + 1;
        return false;
    };
    const faults = document.documentElement.scrollWidth > edge ? ['the page itself'] : [];
    for (const element of document.querySelectorAll('body *')) {
        const box = element.getBoundingClientRect();
        if (box.width && box.right > edge + 1 && !scrolls(element)) faults.push(element.outerHTML.slice(0, 120));
    }
    return faults;
}"""


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.name)
def test_no_output_is_lost(plain_page: tuple[Page, list[str]], address: str, edition: str, lesson: object) -> None:
    """As many pictures as the notebook stores, no cell with outputs that shows none, and no empty box."""
    page, _ = plain_page
    page.goto(f"{address}/{edition}/{lesson.name}.html")
    source = (ROOT / "notebooks" / edition / f"{lesson.name}.ipynb").read_text(encoding="utf-8")
    assert page.locator("figure.picture svg").count() == source.count('"image/svg+xml"')
    shown = page.locator(".output")
    assert shown.count() >= source.count('"text/html"') + source.count('"image/svg+xml"') > 0
    for output in shown.all():
        assert output.bounding_box()["height"] > 10
        assert output.inner_text().strip() or output.locator("svg, img").count()
    prose = [cell.source for cell in nbformat.reads(source, as_version=4).cells if cell.cell_type == "markdown"]
    assert page.locator("math").count() == len(re.findall(FORMULA, "\n".join(prose), re.DOTALL))


# On lines of its own, or within one.
FORMULA = r"\$\$.+?\$\$|\$[^$\n]+\$"


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_language_switch_stays_on_the_lesson(
    plain_page: tuple[Page, list[str]], address: str, edition: str
) -> None:
    page, _ = plain_page
    page.goto(f"{address}/{edition}/{PAGES[-1]}.html")
    other = "en" if edition == "zh" else "zh"
    page.locator("a.language").click()
    assert page.url == f"{address}/{other}/{PAGES[-1]}.html"


@pytest.mark.parametrize(("locale", "edition"), [("zh-TW", "zh"), ("de-DE", "en")])
def test_the_start_page_follows_the_browser(offline: Browser, address: str, locale: str, edition: str) -> None:
    context = offline.new_context(locale=locale)
    page = context.new_page()
    page.goto(f"{address}/index.html")
    page.wait_for_url(f"{address}/{edition}/index.html")
    context.close()


class _Addresses(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("href", "src") and value]


def test_every_link_within_the_site_leads_somewhere(pages: Path) -> None:
    for path in pages.rglob("*.html"):
        reader = _Addresses()
        reader.feed(path.read_text(encoding="utf-8"))
        for link in map(urlsplit, reader.found):
            if link.scheme or not link.path:
                continue
            target = (path.parent / unquote(link.path)).resolve().relative_to(pages.resolve())
            if target.parts[0] == RUN:
                assert target.parts[1] == f"lab-{path.parent.name}", (path, link)
                assert link.query.startswith(f"path={path.parent.name}/"), (path, link)
            else:
                assert (pages / target).is_file(), (path, link)
