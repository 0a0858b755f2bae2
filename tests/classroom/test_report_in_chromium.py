"""The report in a real browser: from a disk, without a network, on paper, on a phone, on a dark ground."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_up import write_class

from lessons_lib import use_language
from lessons_lib.classroom.report import class_report

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, sync_playwright

from tools.chromium import FLAGS, find_chromium

ARTIFACTS = Path(__file__).parents[2] / "artifacts/screenshots"
LANGUAGES = ("zh", "en")
_TOO_WIDE = """() => [...document.querySelectorAll('svg text')].filter(text => {
    const card = text.closest('svg').getBoundingClientRect(), box = text.getBoundingClientRect();
    return box.left < card.left + 4 || box.right > card.right - 4 || box.bottom > card.bottom - 4;
}).map(text => text.textContent)"""
_OVERLAPS = """() => {
    const all = [...document.querySelectorAll('svg text')].filter(text => text.textContent.trim());
    const boxes = all.map(text => text.getBoundingClientRect());
    const found = [];
    for (let i = 0; i < all.length; i++) for (let j = 0; j < i; j++) {
        const a = boxes[i], b = boxes[j];
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4)
            found.push([all[i].textContent, all[j].textContent]);
    }
    return found;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if find_chromium() is None:
        reason = "no Chromium or Chrome found: apt-get install chromium"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of the made-up class by language; the last learner's name tries its best to run."""
    folder = tmp_path_factory.mktemp("class")
    write_class(folder)
    evil = (
        (folder / "30-fusion-results.json")
        .read_text(encoding="utf-8")
        .replace("韩十", "<script>document.title=1</script>")
    )
    (folder / "30-fusion-results.json").write_text(evil, encoding="utf-8")
    (folder / "broken.json").write_text("{")
    found = {}
    for language in LANGUAGES:
        use_language(language)
        found[language] = folder / f"report-{language}.html"
        found[language].write_text(class_report(folder).html(), encoding="utf-8")
    return found


def _open(browser: Browser, path: Path, *, width: int = 1060, dark: bool = False) -> tuple[Page, list[str]]:
    """A page from the disk, and the requests and errors that it caused beside itself."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    noted: list[str] = []
    page.on("request", lambda request: noted.append(request.url) if not request.is_navigation_request() else None)
    page.on("console", lambda message: noted.append(message.text))
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.goto(path.as_uri())
    return page, noted


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_opens_from_a_disk_asks_for_nothing_and_runs_nothing(
    browser: Browser, pages: dict[str, Path], language: str
) -> None:
    page, noted = _open(browser, pages[language])
    assert noted == []
    assert page.title() == {"zh": "班级报告", "en": "Class report"}[language]
    assert page.locator("#learners tbody tr").count() == 30
    assert "<script>document.title=1</script>" in page.locator("#learners tbody tr").last.inner_text()
    assert page.locator("#skipped, .skipped li").count() == 1
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"class-report-{language}.png", full_page=True)
    page.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_in_the_picture_stay_on_the_card_and_off_each_other(
    browser: Browser, pages: dict[str, Path], language: str
) -> None:
    page, _ = _open(browser, pages[language])
    assert page.evaluate(_TOO_WIDE) == []
    assert page.evaluate(_OVERLAPS) == []
    page.close()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [390, 700, 1400])
def test_no_width_needs_sideways_scrolling(
    browser: Browser, pages: dict[str, Path], language: str, width: int
) -> None:
    page, _ = _open(browser, pages[language], width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


_CONTRAST = """() => {
    const colour = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const ground = element => {
        for (let at = element; at; at = at.parentElement) {
            const found = colour(getComputedStyle(at).backgroundColor);
            if (found.length === 3 || found[3] > 0) return found;
        }
        return [255, 255, 255];
    };
    return [...document.querySelectorAll('h1, h2, h3, p, li, td, th, footer')].filter(e => e.textContent.trim()).map(e => {
        const [a, b] = [light(colour(getComputedStyle(e).color)), light(ground(e))];
        return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.textContent.slice(0, 40)];
    }).filter(([ratio]) => ratio < 4.5);
}"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_word_can_be_read_on_either_ground(browser: Browser, pages: dict[str, Path], dark: bool) -> None:
    page, _ = _open(browser, pages["en"], dark=dark)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(21, 25, 30)" if dark else "rgb(243, 245, 247)")
    assert page.evaluate(_CONTRAST) == []
    page.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_on_paper_the_picture_keeps_to_the_first_page(
    browser: Browser, pages: dict[str, Path], language: str
) -> None:
    page, _ = _open(browser, pages[language], width=688, dark=True)  # A4 less its margins
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    picture = page.locator("main > svg").bounding_box()
    assert picture is not None
    assert picture["y"] + picture["height"] <= 1017  # A4 less its margins
    assert page.evaluate("document.documentElement.scrollWidth") <= 688
    printed = page.pdf(prefer_css_page_size=True, print_background=True)
    assert printed.startswith(b"%PDF-")
    page.close()
