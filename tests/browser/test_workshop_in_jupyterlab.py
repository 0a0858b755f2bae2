"""Commit before reveal in real JupyterLab, by keyboard: locked, committed, in view, there again after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab_driver import KERNEL, Lab, OpenNotebook
from playwright.sync_api import BrowserContext, Locator, Page, expect

SETUP = """
import os
os.environ["LESSONS_PROGRESS"] = "workshop-{language}.json"
import lessons_lib
from lessons_lib import CompilePanel, GraphCanvas, TrafficPanel, lab_report, lab_vote, traffic_quiz
lessons_lib.use_language("{language}")
"""
# What `lessons_lib.workshop(True)` or the image's LESSONS_WORKSHOP=1 does.
WORKSHOP = 'os.environ["LESSONS_WORKSHOP"] = "1"'
MEASURED = """
from lessons_lib.base.spread import Spread
from lessons_lib.traffic.measurement import ChainMeasurement
from lessons_lib.traffic.prediction import Calibration

def spread(seconds):
    return Spread(seconds, seconds, seconds, seconds, 9)

measured = ChainMeasurement(
    requested_bytes=2**26, tensor_bytes=2**26, tile_bytes=2**18, copy=spread(0.010), library_copy=spread(0.010),
    calibration=Calibration(copy=0.010, operations=(0.002,) * 4, calls=0.001), resident=spread(0.009),
    unfused=spread(0.041), tiled=spread(0.016), speedup=spread(0.041 / 0.016), bit_identical=True, waited_share=0.0,
)
"""
CELLS = {
    "setup": SETUP,
    "free": "free = TrafficPanel()\nfree",
    "workshop": WORKSHOP,
    "panel": "panel = TrafficPanel()\npanel",
    "canvas": "canvas = GraphCanvas('gated_residual')\ncanvas",
    "vote": "guess = lab_vote()\nguess",
    "measured": MEASURED,
    "lab": "lab_report(measured, guess=guess.value)",
    "quiz": "quiz = traffic_quiz()\nquiz",
}
WORDS = {
    "zh": {
        "field": "你的猜测",
        "commit": "确定",
        "prompt": "先写下你的猜测",
        "question": "6 个算子分成 3 组，每个张量 64 MiB，中间读写是多少？",
        "yours": "你的猜测：",
        "wait": "先在上面投票",
    },
    "en": {
        "field": "your guess",
        "commit": "commit",
        "prompt": "Write down your guess before you look.",
        "question": "Six operators in three groups, 64 MiB tensors: how much intermediate traffic?",
        "yours": "Your guess: ",
        "wait": "Vote above and press commit first",
    },
}
GUESS = {"zh": "256 MiB，与算子数无关", "en": "256 MiB, whatever the operators"}


@dataclass(frozen=True)
class Driven:
    """The open notebook in one language."""

    notebook: OpenNotebook
    language: str

    @property
    def page(self) -> Page:
        return self.notebook.page

    def output(self, cell: str) -> Locator:
        return self.notebook.cell(cell).locator(".jp-OutputArea")

    def field(self, cell: str) -> Locator:
        return self.output(cell).get_by_role("textbox", name=self.word("field"), exact=True)

    def button(self, cell: str) -> Locator:
        return self.output(cell).get_by_role("button", name=self.word("commit"), exact=True)

    def picture(self, cell: str) -> Locator:
        return self.output(cell).locator("svg[role=img], [data-edge]")

    def word(self, name: str) -> str:
        return WORDS[self.language][name]

    def photograph(self, cell: str, folder: Path, name: str) -> None:
        self.notebook.settle()
        self.notebook.cell(cell).screenshot(path=folder / f"workshop-{name}-{self.language}.png")


@pytest.fixture(scope="module", params=WORDS)
def driven(request: pytest.FixtureRequest, lab: Lab, context: BrowserContext) -> Iterator[Driven]:
    language = str(request.param)
    name = f"workshop-{language}.ipynb"
    lab.write(name, {cell: source.replace("{language}", language) for cell, source in CELLS.items()})
    with lab.running(name, context) as notebook:
        yield Driven(notebook, language)


# -- in this order --------------------------------------------------------------------------------------------------


def test_off_the_panel_shows_its_picture_and_asks_nothing(driven: Driven) -> None:
    assert driven.notebook.errors() == []
    expect(driven.picture("free")).to_have_count(1)
    expect(driven.field("free")).to_have_count(0)
    expect(driven.output("free")).not_to_contain_text(driven.word("field"))


@pytest.mark.parametrize("cell", ["panel", "canvas"])
def test_locked_there_is_a_question_and_no_picture(driven: Driven, screenshots: Path, cell: str) -> None:
    expect(driven.field(cell)).to_be_visible()
    expect(driven.output(cell)).to_contain_text(driven.word("prompt"))
    assert driven.picture(cell).count() == 0
    assert driven.output(cell).locator("table").count() == 0
    assert driven.output(cell).get_by_role("slider").count() == 0
    driven.photograph(cell, screenshots, f"locked-{cell}")


def test_the_form_asks_the_lessons_question_in_full(driven: Driven) -> None:
    question = driven.output("panel").get_by_text(driven.word("question"), exact=True)
    expect(question).to_be_visible()
    box, form = question.bounding_box(), driven.output("panel").bounding_box()
    assert box is not None
    assert form is not None
    assert box["x"] >= form["x"] and box["x"] + box["width"] <= form["x"] + form["width"]
    assert driven.output("canvas").get_by_text(driven.word("question"), exact=True).count() == 0  # of its own graph


def test_a_blank_guess_opens_nothing(driven: Driven, screenshots: Path) -> None:
    driven.field("panel").focus()
    driven.page.keyboard.press("Enter")
    expect(driven.output("panel").locator("[role=status]").first).not_to_be_empty()
    assert driven.picture("panel").count() == 0
    driven.photograph("panel", screenshots, "blank")


def test_enter_commits_and_the_guess_stands_right_above_the_picture(driven: Driven, screenshots: Path) -> None:
    driven.field("panel").focus()
    driven.page.keyboard.type(GUESS[driven.language])
    driven.page.keyboard.press("Enter")
    expect(driven.picture("panel")).to_have_count(1)
    expect(driven.field("panel")).to_have_count(0)
    line = driven.output("panel").get_by_text(driven.word("yours") + GUESS[driven.language], exact=True)
    expect(line).to_be_visible()
    expect(driven.output("panel").get_by_text(driven.word("question"), exact=True)).to_be_visible()
    words, picture = line.bounding_box(), driven.picture("panel").bounding_box()
    assert words is not None
    assert picture is not None
    assert 0 <= picture["y"] - (words["y"] + words["height"]) < 24
    slider = driven.output("panel").get_by_role("slider").nth(2)
    slider.focus()
    driven.page.keyboard.press("ArrowLeft")
    expect(driven.output("panel").locator("table")).to_contain_text("256 MiB")
    expect(line).to_be_visible()
    driven.photograph("panel", screenshots, "committed-panel")


def test_tab_leads_from_the_field_to_the_button_which_commits_too(driven: Driven, screenshots: Path) -> None:
    driven.field("canvas").focus()
    driven.page.keyboard.type("96")
    driven.page.keyboard.press("Tab")
    expect(driven.button("canvas")).to_be_focused()
    driven.page.keyboard.press("Enter")
    expect(driven.picture("canvas").first).to_be_visible()
    expect(driven.output("canvas").get_by_text(driven.word("yours") + "96", exact=True)).to_be_visible()
    driven.photograph("canvas", screenshots, "committed-canvas")


def test_the_measurement_waits_for_the_vote_and_shows_it_beside(driven: Driven, screenshots: Path) -> None:
    expect(driven.output("lab")).to_contain_text(driven.word("wait"))
    assert driven.picture("lab").count() == 0
    expect(driven.button("vote")).to_be_disabled()
    choice = driven.output("vote").locator(".widget-toggle-buttons button").nth(5)
    choice.focus()
    driven.page.keyboard.press("Enter")
    expect(driven.button("vote")).to_be_enabled()
    driven.photograph("vote", screenshots, "vote")
    driven.button("vote").focus()
    driven.page.keyboard.press("Enter")
    expect(choice).to_be_disabled()
    driven.photograph("vote", screenshots, "voted")
    driven.notebook.run_cell("lab")
    row = driven.output("lab").locator("tr", has_text=driven.word("field"))
    expect(row).to_contain_text("4×")
    driven.photograph("lab", screenshots, "lab")


def test_fast_typing_arrives_whole(driven: Driven) -> None:
    driven.notebook.replace_source("measured", "slow = CompilePanel()\nslow")
    driven.notebook.run_cell("measured")
    expect(driven.field("measured")).to_be_visible()
    driven.field("measured").focus()
    driven.page.keyboard.type("46512 calls, or 46,512 calls in all, more or less", delay=0)
    driven.page.keyboard.press("Enter")
    whole = driven.word("yours") + "46512 calls, or 46,512 calls in all, more or less"
    expect(driven.output("measured").get_by_text(whole, exact=True)).to_be_visible()


def test_after_a_restart_everything_is_there_again(driven: Driven, screenshots: Path) -> None:
    quiz = driven.output("quiz")
    quiz.get_by_role("radio").nth(1).focus()
    driven.page.keyboard.press("Space")
    expect(quiz).to_contain_text("✓")
    driven.notebook.replace_source("measured", MEASURED)
    driven.page.evaluate(f"() => {KERNEL}.restart()")
    driven.notebook.run_all()
    assert driven.notebook.errors() == []
    expect(driven.picture("panel")).to_have_count(1)
    yours = driven.word("yours")
    expect(driven.output("panel").get_by_text(yours + GUESS[driven.language], exact=True)).to_be_visible()
    expect(driven.output("canvas").get_by_text(yours + "96", exact=True)).to_be_visible()
    expect(driven.output("vote").locator(".widget-toggle-buttons button").nth(5)).to_be_disabled()
    expect(driven.output("lab").locator("tr", has_text=driven.word("field"))).to_contain_text("4×")
    expect(driven.output("quiz")).to_contain_text("✓")
    driven.photograph("quiz", screenshots, "quiz-again")
    expect(driven.field("free")).to_have_count(0)


def test_nothing_went_wrong_in_the_page(driven: Driven) -> None:
    assert driven.notebook.complaints == []
    assert driven.notebook.errors() == []
