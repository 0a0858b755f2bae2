"""Lessons with Python inside the browser, everything served by the site itself, no network.

Lesson 01 of both editions, and lesson 04, whose picture is pressed and whose graphs are recorded ones: no torch there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from site_driver import ARTIFACTS, refuse_others, serve, skip_unless_ci

from tests.browser.lab_driver import OpenNotebook
from tests.processes import meeting_place
from tools.say import Stop
from tools.side_environment import locked
from tools.site.__main__ import build_site
from tools.site.lite import RUN

LESSON = "01_traffic"
GRAPHS = "04_your_model"
MENU = {"zh": "文件", "en": "File"}
NO_NUMPY = {"zh": "NumPy，但当前环境里没有", "en": "NumPy, which is not installed here"}
BUSY_MACHINE = 180_000  # milliseconds; a quiet one needs a tenth
KERNEL_IS_IDLE = (
    "() => window.jupyterapp?.shell?.currentWidget?.context?.sessionContext?.session?.kernel?.status === 'idle'"
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The whole site with its own Pyodide, served from this machine."""
    site = meeting_place(tmp_path_factory) / "self-hosted"
    with locked(site):
        if not site.exists():
            _build(site)
    with serve(site) as started:
        yield started


def _build(site: Path) -> None:
    fresh = site.with_name("site-in-the-making")
    try:
        build_site(fresh, self_hosted=True)
    except Stop as stop:
        skip_unless_ci(f"the self-hosted site cannot be built here: {stop.en}")
    _expose_application(fresh / RUN / "jupyter-lite.json")
    fresh.rename(site)


def _expose_application(config: Path) -> None:
    """Let a test give JupyterLab's own commands."""
    content = json.loads(config.read_text(encoding="utf-8"))
    content["jupyter-config-data"]["exposeAppInBrowser"] = True
    config.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture(scope="module")
def learner(offline: Browser, address: str) -> Iterator[tuple[BrowserContext, list[str]]]:
    """One learner's browser: what it keeps from one lesson must not disturb the next."""
    context = offline.new_context(viewport={"width": 1200, "height": 1000})
    yield context, refuse_others(context, address)
    context.close()


@pytest.fixture(scope="module", params=("zh", "en"))
def edition(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def page(learner: tuple[BrowserContext, list[str]], address: str, edition: str) -> Iterator[Page]:
    """The lesson, opened by the button of the page that lists them, and running."""
    started = time.perf_counter()
    opened = _open(learner[0], address, edition, LESSON)
    opened.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    expect(_cell(opened, "panel").locator(".noUi-handle").first).to_be_visible(timeout=BUSY_MACHINE)
    print(f"\n{edition}: {time.perf_counter() - started:.1f} s to a live slider")
    # The run ends here: before that, later cells move the panel too.
    expect(_lab_error(opened)).to_be_visible(timeout=BUSY_MACHINE)
    yield opened
    opened.close()


def _open(context: BrowserContext, address: str, edition: str, lesson: str) -> Page:
    """A lesson with its kernel ready."""
    opened = context.new_page()
    opened.goto(f"{address}/{edition}/index.html")
    opened.locator(f'a.button.main[href*="{lesson}"]').click()
    opened.wait_for_function(KERNEL_IS_IDLE, timeout=BUSY_MACHINE)
    return opened


def _cell(page: Page, cell_id: str) -> Locator:
    return OpenNotebook(page).cell(cell_id)


def _lab_error(page: Page) -> Locator:
    return _cell(page, "lab").locator(".jp-OutputArea-output", has_text="ImportError")


def test_the_interface_speaks_the_editions_language(page: Page, edition: str) -> None:
    assert page.locator("html").get_attribute("lang") == {"zh": "zh-CN", "en": "en"}[edition]
    expect(page.locator(".lm-MenuBar-itemLabel").first).to_have_text(MENU[edition])


def test_a_slider_moved_by_keyboard_changes_the_picture(page: Page, edition: str) -> None:
    cell = _cell(page, "panel")
    picture = cell.locator(".jp-OutputArea svg[role=img]")
    table = cell.locator(".jp-OutputArea table")
    before, text = picture.evaluate("element => element.outerHTML"), table.inner_text()
    cell.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "([cell, old]) => cell.querySelector('.jp-OutputArea svg[role=img]').outerHTML !== old",
        arg=[cell.element_handle(), before],
        timeout=20_000,
    )
    expect(table).not_to_have_text(text, timeout=20_000)
    cell.screenshot(path=ARTIFACTS / f"site-{edition}-live-panel.png")


def test_a_lab_without_numpy_says_what_to_do(page: Page, edition: str) -> None:
    """In both languages, with the command that fetches NumPy from the CDN, and no frames around it."""
    output = _lab_error(page)
    said = output.inner_text()
    assert all(words in said for words in NO_NUMPY.values())
    assert "%pip install numpy" in said
    assert len(said.splitlines()) <= 4, said
    output.screenshot(path=ARTIFACTS / f"site-{edition}-no-numpy.png")


def test_only_this_lesson_is_open(page: Page) -> None:
    _is_the_only_tab(page)


def _is_the_only_tab(page: Page) -> None:
    """A tab restored from the last visit would start a Python of its own."""
    expect(page.locator("#jp-main-dock-panel .lm-TabBar-tab")).to_have_count(1)


def test_nothing_was_asked_of_anybody_else(page: Page, learner: tuple[BrowserContext, list[str]]) -> None:
    refused = learner[1]
    assert refused == []
    # And the list does see what Python in its worker asks for: NumPy is on the CDN.
    page.evaluate(
        "code => window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel"
        ".requestExecute({code}).done.then(() => null)",
        "%pip install numpy",
    )
    assert refused and all(url.startswith("https://cdn.jsdelivr.net/pyodide/") for url in refused), refused
    refused.clear()


# -- lesson 04 ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=("zh",))
def graphs(
    learner: tuple[BrowserContext, list[str]], address: str, request: pytest.FixtureRequest
) -> Iterator[OpenNotebook]:
    """Lesson 04, run from top to bottom in the browser that lesson 01 was open in."""
    opened = _open(learner[0], address, request.param, GRAPHS)
    notebook = OpenNotebook(opened)
    notebook.run_all(BUSY_MACHINE / 1000)
    yield notebook
    opened.close()


def _edge(notebook: OpenNotebook, cell_id: str) -> Locator:
    """The first edge of a canvas; the locator finds it anew after each picture."""
    return notebook.cell(cell_id).locator("[data-edge]").first


def _is_together(edge: Locator, together: bool) -> None:
    expect(edge).to_have_attribute("aria-pressed", str(together).lower(), timeout=20_000)


def test_every_cell_of_a_lesson_on_graphs_runs_without_torch(graphs: OpenNotebook) -> None:
    assert graphs.errors() == []


def test_only_the_lesson_on_graphs_is_open(graphs: OpenNotebook) -> None:
    _is_the_only_tab(graphs.page)


def test_an_edge_is_pressed_by_mouse_and_by_keyboard(graphs: OpenNotebook) -> None:
    edge, status = _edge(graphs, "hand-canvas"), graphs.cell("hand-canvas").locator("[role=status]").first
    _is_together(edge, False)
    before = status.inner_text()
    middle = edge.evaluate(
        """part => {
            const line = part.querySelector('.hit');
            const at = line.getPointAtLength(line.getTotalLength() / 2);
            const point = new DOMPoint(at.x, at.y).matrixTransform(line.getScreenCTM());
            return [point.x, point.y];
        }"""
    )
    graphs.page.mouse.click(*middle)
    _is_together(edge, True)
    expect(status).not_to_have_text(before)
    edge.focus()
    graphs.page.keyboard.press("Enter")
    _is_together(edge, False)
    graphs.cell("hand-canvas").screenshot(path=ARTIFACTS / "site-zh-canvas.png")


def test_a_puzzle_answers_a_press(graphs: OpenNotebook) -> None:
    cell, edge = graphs.cell("puzzles"), _edge(graphs, "puzzles")
    shown = cell.locator(".jp-OutputArea").inner_text()
    edge.focus()
    graphs.page.keyboard.press("Enter")
    _is_together(edge, True)
    expect(cell.locator(".jp-OutputArea")).not_to_have_text(shown)
    cell.screenshot(path=ARTIFACTS / "site-zh-puzzle.png")


def test_a_lesson_on_graphs_asks_nobody_else(graphs: OpenNotebook, learner: tuple[BrowserContext, list[str]]) -> None:
    assert learner[1] == []
