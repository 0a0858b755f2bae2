"""Every lesson of both editions in real JupyterLab: run all, move every control by keyboard, look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_driver import Lab, OpenNotebook
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

WIDTH, HEIGHT = 1024, 1400
EDITIONS = ("zh", "en")
# Controls by lesson cell, in the order of the page: the key that moves it there, and how to find its handle.
SLIDER, CHECKBOX, BUTTON = ".noUi-handle", "input[type=checkbox]", ".widget-toggle-button"
PANELS = {
    "panel": [(SLIDER, 3), (CHECKBOX, 2)],
    "time-panel": [(SLIDER, 2), (BUTTON, 2)],
}
# Said by Chromium or by JupyterLab itself whatever the notebook; none concerns a lesson.
IGNORED = re.compile(r"favicon|ResizeObserver loop")


@pytest.fixture(scope="module", params=EDITIONS)
def edition(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def complaints() -> list[str]:
    return []


@pytest.fixture(scope="module")
def page(browser: Browser, edition: str, complaints: list[str]) -> Iterator[Page]:
    complaints.clear()
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    opened = context.new_page()

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not IGNORED.search(message.text):
            complaints.append(message.text)

    opened.on("console", note)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda request: _only_local(request.url, complaints))
    yield opened
    context.close()


@pytest.fixture(scope="module")
def lesson_01(lab: Lab, page: Page, edition: str) -> OpenNotebook:
    """Lesson 01, opened and run from top to bottom."""
    notebook = lab.open(page, f"{edition}/01_traffic.ipynb")
    notebook.run_all()
    return notebook


def _only_local(address: str, complaints: list[str]) -> None:
    if not address.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
        complaints.append(f"external request: {address}")


def test_lesson_01_runs_whole(lesson_01: OpenNotebook, complaints: list[str]) -> None:
    assert lesson_01.errors() == []
    assert complaints == []


@pytest.mark.parametrize("cell_id", PANELS)
def test_every_control_moves_number_and_picture_by_keyboard(
    lesson_01: OpenNotebook, cell_id: str, edition: str, screenshots: Path, complaints: list[str]
) -> None:
    cell = lesson_01.cell(cell_id)
    cell.screenshot(path=screenshots / f"{edition}-01-{cell_id}-start.png")
    moved = 0
    for selector, count in PANELS[cell_id]:
        handles = cell.locator(f".jp-OutputArea {selector}")
        expect(handles).to_have_count(count)
        for index in range(count):
            _press(lesson_01.page, cell, handles.nth(index), selector)
            moved += 1
            cell.screenshot(path=screenshots / f"{edition}-01-{cell_id}-{moved}.png")
    assert complaints == []


def _press(page: Page, cell: Locator, handle: Locator, selector: str) -> None:
    """Move one control by one key: the picture and the table must both change."""
    picture, table = _picture(cell), _table(cell)
    handle.focus()
    page.keyboard.press({SLIDER: "ArrowRight", CHECKBOX: "Space", BUTTON: "Enter"}[selector])
    page.wait_for_function(
        "([cell, old]) => cell.querySelector('.jp-OutputArea svg[role=img]').outerHTML !== old",
        arg=[cell.element_handle(), picture],
        timeout=5000,
    )
    expect(cell.locator(".jp-OutputArea table")).not_to_have_text(table, timeout=5000)


def _picture(cell: Locator) -> str:
    html: str = cell.locator(".jp-OutputArea svg[role=img]").evaluate("element => element.outerHTML")
    return html


def _table(cell: Locator) -> str:
    return cell.locator(".jp-OutputArea table").inner_text()


def test_every_choice_of_the_quiz_by_keyboard(lesson_01: OpenNotebook, edition: str, screenshots: Path) -> None:
    quiz = lesson_01.cell("quiz")
    radios, explained = quiz.locator("input[type=radio]"), quiz.locator("[role=status]")
    expect(radios).to_have_count(9)
    said = set()
    for index in range(9):
        before = explained.nth(index // 3).inner_text() if index % 3 else ""
        radios.nth(index).focus()
        lesson_01.page.keyboard.press("Space")
        expect(explained.nth(index // 3)).to_contain_text(re.compile("[✓✗]"))
        expect(explained.nth(index // 3)).not_to_have_text(before)
        said.add(explained.nth(index // 3).inner_text())
    assert len(said) == 9
    quiz.screenshot(path=screenshots / f"{edition}-01-quiz.png")


@pytest.mark.parametrize("cell_id", ["vote", "lab-vote"])
def test_every_option_of_a_vote_by_keyboard(
    lesson_01: OpenNotebook, cell_id: str, edition: str, screenshots: Path
) -> None:
    vote = lesson_01.cell(cell_id)
    options = vote.locator(BUTTON)
    assert options.count() >= 4
    for index in range(options.count()):
        options.nth(index).focus()
        lesson_01.page.keyboard.press("Enter")
        expect(vote.locator("[role=status]")).to_contain_text(options.nth(index).inner_text())
    vote.screenshot(path=screenshots / f"{edition}-01-{cell_id}.png")


def test_hints_and_solution_unfold(lesson_01: OpenNotebook, edition: str, screenshots: Path) -> None:
    exercise = lesson_01.cell("total-bytes")
    hints = exercise.locator("details")
    expect(hints).to_have_count(3)
    for index in range(3):
        hints.nth(index).locator("summary").click()
    expect(exercise.get_by_text("num_ops").last).to_be_visible()
    exercise.screenshot(path=screenshots / f"{edition}-01-hints.png")
    solution = lesson_01.cell("total-bytes-solution").locator(".jp-RenderedMarkdown")
    expect(solution.get_by_text("compulsory").first).to_be_hidden()
    solution.locator("summary").click()
    expect(solution.get_by_text("compulsory").first).to_be_visible()


def test_a_learners_answer_is_checked(lesson_01: OpenNotebook) -> None:
    cell = lesson_01.cell("swiglu")
    lesson_01.replace_source("swiglu", lesson_01.source("swiglu").replace("None", "128"))
    lesson_01.run_cell("swiglu")
    expect(cell.locator(".jp-OutputArea")).to_contain_text("✗")
    lesson_01.replace_source("swiglu", lesson_01.source("swiglu").replace("128", "160"))
    lesson_01.run_cell("swiglu")
    expect(cell.locator(".jp-OutputArea")).to_contain_text("✓")


def test_no_text_is_cut(lesson_01: OpenNotebook) -> None:
    """Labels, buttons and cells of tables hold their text; text of pictures stays inside the card and apart."""
    for cell_id in ("vote", "panel", "time-panel", "lab-vote", "lab", "quiz", "total-bytes", "swiglu"):
        assert lesson_01.cell(cell_id).evaluate(CUT_TEXT) == [], cell_id


CUT_TEXT = """cell => {
    const faults = [];
    for (const box of cell.querySelectorAll('.widget-label, .widget-readout, button, td, th, label')) {
        if (box.scrollWidth > box.clientWidth + 1) faults.push('cut: ' + box.textContent);
    }
    for (const card of cell.querySelectorAll('.jp-OutputArea svg[role=img]')) {
        const edge = card.getBoundingClientRect();
        const texts = [...card.querySelectorAll('text')];
        const boxes = texts.map(text => text.getBoundingClientRect());
        boxes.forEach((box, i) => {
            if (box.left < edge.left + 4 || box.right > edge.right - 4 || box.bottom > edge.bottom)
                faults.push('outside: ' + texts[i].textContent);
            for (let j = 0; j < i; j++) {
                const other = boxes[j];
                const beside = box.right <= other.left || other.right <= box.left;
                if (!beside && box.top + 3 < other.bottom && other.top + 3 < box.bottom)
                    faults.push('overlap: ' + texts[i].textContent + ' and ' + texts[j].textContent);
            }
        });
    }
    const area = cell.querySelector('.jp-OutputArea');
    if (area.scrollWidth > area.clientWidth + 1) faults.push('the output scrolls sideways');
    return faults;
}"""


@pytest.mark.parametrize("operators", [1, 8, 12])
def test_no_text_is_cut_at_any_size(lesson_01: OpenNotebook, operators: int, edition: str, screenshots: Path) -> None:
    cell = lesson_01.cell("panel")
    handle = cell.locator(SLIDER).first
    handle.focus()
    lesson_01.page.keyboard.press("Home")
    for _ in range(operators - 1):
        lesson_01.page.keyboard.press("ArrowRight")
    groups = cell.locator(SLIDER).nth(2)
    expect(groups).to_have_attribute("aria-valuemax", f"{operators}.0")  # the kernel has answered
    groups.focus()
    for _ in range(operators - 1):  # not End: noUiSlider keeps the maximum it was displayed with
        lesson_01.page.keyboard.press("ArrowRight")
    expect(cell.locator(".widget-readout").nth(2)).to_have_text(str(operators))
    lesson_01.page.wait_for_timeout(300)
    assert cell.evaluate(CUT_TEXT) == []
    cell.screenshot(path=screenshots / f"{edition}-01-panel-{operators}-operators.png")


def test_lesson_00_runs_whole(lab: Lab, page: Page, edition: str, screenshots: Path, complaints: list[str]) -> None:
    complaints.clear()
    notebook = lab.open(page, f"{edition}/00_start.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    assert complaints == []
    notebook.cell("machine-report").screenshot(path=screenshots / f"{edition}-00-machine.png")
