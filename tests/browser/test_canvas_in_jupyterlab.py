"""The canvas in real JupyterLab: fused and cut by mouse and by keyboard, and by buttons where there is no anywidget."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab_driver import Lab, OpenNotebook, wait_until
from playwright.sync_api import BrowserContext, Locator, Page, expect

pytest.importorskip("anywidget")

NAME = "canvas-test.ipynb"
HOSTILE = "<img src=x onerror=alert(1)>"
# x -> HOSTILE -> g, h -> sum -> opaque sort -> last; without g and h, HOSTILE and sum would make a cycle.
GRAPH = f"""
from lessons_lib import use_language
from lessons_lib.graph.canvas import GraphCanvas
from lessons_lib.graph.opgraph import GraphOp, OpGraph, tensor_of
use_language("en")
evil = {HOSTILE!r}
ops = (
    GraphOp(evil, "elementwise", ("x",), (evil,)),
    GraphOp("g", "elementwise", (evil,), ("g",)),
    GraphOp("h", "elementwise", (evil,), ("h",)),
    GraphOp("sum", "elementwise", ("g", "h", evil), ("sum",)),
    GraphOp("sort", "opaque", ("sum",), ("sort",)),
    GraphOp("last", "elementwise", ("sort",), ("last",)),
)
names = ("x", evil, "g", "h", "sum", "sort", "last")
tensors = tuple(tensor_of(name, (4096, 4096)) for name in names)
graph = OpGraph(evil, ops, tensors, ("x",), ("last",))
"""
CELLS = {
    "setup": GRAPH,
    "canvas": "canvas = GraphCanvas(graph)\ncanvas",
    "plain": "plain = GraphCanvas(graph, plain=True)\nplain",
    "large": "import lessons_lib.graph.recorded as r\nlarge = GraphCanvas('cross_entropy')\nlarge",
    "state": "print(canvas.workbench.moves, 'moves', [len(g) for g in canvas.grouping.groups], len(plain.grouping))",
}


@dataclass(frozen=True)
class Driven:
    """The open notebook."""

    notebook: OpenNotebook

    @property
    def page(self) -> Page:
        return self.notebook.page

    def picture(self, cell: str) -> Canvas:
        return Canvas(self.page, self.notebook.cell(cell))

    def state(self) -> str:
        """What the kernel's canvases have come to, once everything sent to them has been answered."""
        self.notebook.settle()
        self.notebook.run_cell("state")
        return self.notebook.cell("state").locator(".jp-OutputArea-output").inner_text().strip()


@dataclass(frozen=True)
class Canvas:
    """A canvas in the page: its parts by what a learner sees and hears of them."""

    page: Page
    cell: Locator

    def edge(self, index: int) -> Locator:
        return self.cell.locator(f'.jp-OutputArea [data-edge="{index}"]')

    def operator(self, index: int) -> Locator:
        return self.cell.locator(f'.jp-OutputArea [data-op="{index}"]')

    def button(self, words: str) -> Locator:
        return self.cell.get_by_role("button", name=words, exact=True)

    @property
    def status(self) -> Locator:
        return self.cell.locator(".jp-OutputArea [role=status]").first

    @property
    def focused(self) -> str:
        """The part that has the focus: ``edge 3``."""
        found: str = self.page.evaluate(
            """() => { const part = document.activeElement?.closest('[data-edge],[data-op]');
                return !part ? 'none' : part.dataset.edge ? `edge ${part.dataset.edge}` : `op ${part.dataset.op}`; }"""
        )
        return found

    def click(self, part: Locator) -> None:
        """A click of the mouse in the middle of the line that is drawn, as a learner aims."""
        part.scroll_into_view_if_needed()
        place = part.evaluate(
            """part => {
                const lines = [...part.querySelectorAll('path,polyline,line,rect')].filter(e => e.getTotalLength);
                const line = lines.sort((a, b) => b.getTotalLength() - a.getTotalLength())[0];
                const at = line.getPointAtLength(line.getTotalLength() / 2);
                const point = new DOMPoint(at.x, at.y).matrixTransform(line.getScreenCTM());
                const hit = document.elementFromPoint(point.x, point.y)?.closest('[data-edge],[data-op]');
                return {x: point.x, y: point.y, hit: hit === part};
            }"""
        )
        assert place["hit"], "something else lies upon it"
        self.page.mouse.click(place["x"], place["y"])

    def photograph(self, folder: Path, name: str) -> None:
        self.cell.screenshot(path=folder / f"canvas-{name}.png")


@pytest.fixture(scope="module")
def driven(lab: Lab, context: BrowserContext) -> Iterator[Driven]:
    lab.write(NAME, CELLS)
    with lab.running(NAME, context) as notebook:
        yield Driven(notebook)


# -- in this order --------------------------------------------------------------------------------------------------


def test_it_shows_itself_and_a_hostile_name_is_only_text(driven: Driven, screenshots: Path) -> None:
    assert driven.notebook.errors() == []
    canvas = driven.picture("canvas")
    expect(canvas.cell.locator(".jp-OutputArea [data-edge]")).to_have_count(7)
    expect(canvas.cell.locator(".jp-OutputArea [data-op]")).to_have_count(6)
    expect(canvas.status).to_contain_text("6 launches")
    assert canvas.cell.locator(".jp-OutputArea img").count() == 0
    assert HOSTILE in canvas.operator(0).get_attribute("aria-label")  # type: ignore[operator]
    canvas.photograph(screenshots, "start")
    assert driven.notebook.complaints == []


def test_a_click_fuses_and_another_one_cuts(driven: Driven, screenshots: Path) -> None:
    canvas = driven.picture("canvas")
    expect(canvas.edge(0)).to_have_attribute("aria-pressed", "false")
    canvas.click(canvas.edge(0))
    expect(canvas.edge(0)).to_have_attribute("aria-pressed", "true")
    expect(canvas.status).to_contain_text(f"Fused {HOSTILE} and g: the traffic falls from")
    canvas.photograph(screenshots, "fused")
    canvas.click(canvas.edge(0))
    expect(canvas.edge(0)).to_have_attribute("aria-pressed", "false")
    expect(canvas.status).to_contain_text("Cut before g: the traffic grows from")


def test_an_illegal_click_says_which_rule_and_changes_nothing(driven: Driven, screenshots: Path) -> None:
    canvas = driven.picture("canvas")
    sort = canvas.cell.locator(".jp-OutputArea [data-edge][aria-label*='sort']").first
    before = sort.get_attribute("aria-pressed")
    canvas.click(sort)
    expect(canvas.status).to_contain_text("Not legal, so nothing changed. [opaque operator]")
    assert sort.get_attribute("aria-pressed") == before == "false"
    canvas.photograph(screenshots, "illegal")
    canvas.button("undo").click()
    expect(canvas.status).to_contain_text("Undone")


def test_keys_fuse_and_cut_and_the_focus_stays_where_it_was(driven: Driven, screenshots: Path) -> None:
    canvas = driven.picture("canvas")
    canvas.button("reset").click()
    expect(canvas.status).to_contain_text("Back at the start")
    canvas.edge(0).focus()
    for key, pressed in (("Enter", "true"), ("Space", "false"), ("Enter", "true")):
        driven.page.keyboard.press(key)
        expect(canvas.edge(0)).to_have_attribute("aria-pressed", pressed)
        assert canvas.focused == "edge 0"
    canvas.photograph(screenshots, "focus")
    seen = [canvas.focused]
    for _ in range(6):
        driven.page.keyboard.press("ArrowDown")
        seen.append(canvas.focused)
    assert sorted(seen) == sorted(f"edge {index}" for index in range(7))  # each edge once
    driven.page.keyboard.press("Home")
    assert canvas.focused == seen[0]
    driven.page.keyboard.press("End")
    assert canvas.focused == seen[-1]
    driven.page.keyboard.press("ArrowUp")
    assert canvas.focused == seen[-2]


def test_tab_leads_from_the_edges_to_the_operators_and_on(driven: Driven) -> None:
    canvas = driven.picture("canvas")
    canvas.edge(1).focus()
    reached = []
    for _ in range(3):
        reached.append(canvas.focused.split()[0])
        driven.page.keyboard.press("Tab")
    assert sorted(reached[:2]) in (["edge", "op"], ["edge", "none"])
    assert reached.count("edge") == 1  # not one stop for every edge
    canvas.operator(0).focus()
    assert canvas.focused == "op 0"


def test_operators_chosen_by_key_can_be_fused_and_asked_about(driven: Driven) -> None:
    canvas = driven.picture("canvas")
    canvas.button("reset").click()
    expect(canvas.status).to_contain_text("Back at the start")
    for index in (1, 2):
        canvas.operator(index).focus()
        driven.page.keyboard.press("Enter")
        driven.notebook.settle()
    chosen = canvas.cell.locator(".jp-OutputArea select")
    for index, name in enumerate(("g", "h")):
        expect(chosen.nth(index).locator("option:checked")).to_have_text(name)
    canvas.button("why?").focus()
    driven.page.keyboard.press("Enter")
    expect(canvas.cell.locator(".jp-OutputArea [role=status]").nth(1)).to_contain_text("g is in kernel")
    canvas.button("fuse or cut").focus()
    driven.page.keyboard.press("Enter")
    expect(canvas.status).to_contain_text("Fused g and h")
    assert "[1, 2, 1, 1, 1]" in driven.state()


def test_fast_presses_all_arrive(driven: Driven) -> None:
    canvas = driven.picture("canvas")
    canvas.button("reset").click()
    expect(canvas.status).to_contain_text("Back at the start")
    canvas.edge(0).focus()
    for _ in range(9):
        driven.page.keyboard.press("Enter")
    # The page keeps back what the kernel is not ready for, so that the last one may be long in coming.
    wait_until(driven.page, lambda: driven.state().startswith("9 moves"), "not every press arrived")
    expect(canvas.edge(0)).to_have_attribute("aria-pressed", "true")
    assert driven.state().startswith("9 moves")


def test_a_press_far_down_does_not_scroll_the_picture(driven: Driven, screenshots: Path) -> None:
    canvas = driven.picture("large")
    edges = canvas.cell.locator(".jp-OutputArea [data-edge]")
    last = edges.nth(edges.count() - 1)
    last.focus()
    scrolled = "part => part.closest('[data-lm-suppress-shortcuts]').scrollTop"
    wait_until(driven.page, lambda: last.evaluate(scrolled) > 100, "the focus does not scroll to the last edge")
    before = last.evaluate(scrolled)
    driven.page.keyboard.press("Enter")
    expect(canvas.status).to_contain_text(re.compile("Fused|Not legal"))
    assert abs(edges.nth(edges.count() - 1).evaluate(scrolled) - before) < 2
    canvas.photograph(screenshots, "scrolled")


def test_buttons_do_the_same_where_there_is_no_pressing(driven: Driven, screenshots: Path) -> None:
    canvas = driven.picture("plain")
    toggles = canvas.cell.locator(".jp-OutputArea .widget-toggle-button")
    expect(toggles).to_have_count(7)
    expect(canvas.cell.locator(".jp-OutputArea svg[role=img]")).to_have_count(1)
    assert canvas.cell.locator(".jp-OutputArea img").count() == 0
    toggles.nth(0).focus()
    driven.page.keyboard.press("Enter")
    expect(canvas.status).to_contain_text("Fused")
    expect(toggles.nth(0)).to_have_text(f"● {HOSTILE} → g")
    illegal = toggles.filter(has_text="sum → sort")
    illegal.click()
    expect(canvas.status).to_contain_text("[opaque operator]")
    expect(illegal).to_have_text("○ sum → sort")
    expect(illegal).not_to_have_class(re.compile("mod-active"))
    canvas.photograph(screenshots, "plain")
    assert driven.state().endswith("] 5")


def test_the_check_box_leads_to_the_buttons_and_back(driven: Driven) -> None:
    canvas = driven.picture("canvas")
    box = canvas.cell.get_by_label("buttons instead of clicks")
    box.focus()
    driven.page.keyboard.press("Space")
    toggles = canvas.cell.locator(".jp-OutputArea .widget-toggle-button")
    expect(toggles).to_have_count(7)
    expect(canvas.cell.locator(".jp-OutputArea [data-edge]")).to_have_count(0)
    before = canvas.status.inner_text()
    toggles.nth(6).click()
    expect(canvas.status).not_to_have_text(before)
    box.focus()
    driven.page.keyboard.press("Space")
    expect(canvas.cell.locator(".jp-OutputArea [data-edge]")).to_have_count(7)


def test_nothing_went_wrong_in_the_page(driven: Driven) -> None:
    assert driven.notebook.complaints == []
    assert driven.notebook.errors() == []
