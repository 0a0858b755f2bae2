"""Every lesson of both editions in real JupyterLab: run all, move every control by keyboard, look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from lab_driver import Lab, OpenNotebook, wait_until
from playwright.sync_api import BrowserContext, Locator, Page, expect

EDITIONS = ("zh", "en")

# -- what each lesson shows: a cell with a widget that is not named here fails a test --------------------------------

SLIDER, CHECKBOX, BUTTON = ".noUi-handle", "input[type=checkbox]", ".widget-toggle-button"
DROPDOWN, RADIO = "select", "input[type=radio]"
# A list is opened first: while it is closed, JupyterLab keeps the arrows for itself and moves to the next cell.
NEXT = "Space ArrowDown Enter"
KEYS = {SLIDER: "ArrowRight", CHECKBOX: "Space", BUTTON: "Enter", DROPDOWN: NEXT, RADIO: "Space"}

Press = tuple[str, int]  # a kind of control, and which of the cell's controls of this kind


@dataclass(frozen=True)
class State:
    """Keys that bring a panel to an edge of its range: (kind, index, key, times), and a readout to wait for."""

    name: str
    keys: tuple[tuple[str, int, str, int], ...]
    readout: tuple[int, str] | None = None


@dataclass(frozen=True)
class Lesson:
    """A lesson's cells by what they show.

    Args:
        panels: the presses that move each control at least once, in an order in which each of them changes both the
            picture and the table.
        edges: states of a panel in which its picture is fullest.
        votes: how many options each has.
        trials: cells of the court.
        canvases: cells with a graph whose edges are pressed.
        puzzles: cells with the levels; the first level is solved by pressing every edge.
        exercises: what a learner types in place of None: a wrong answer and a right one.
        kernels: the same for a kernel whose body ends in ``return None``; statements, one a line.
        others: further cells to photograph.
    """

    name: str
    panels: dict[str, list[Press]] = field(default_factory=dict)
    edges: dict[str, list[State]] = field(default_factory=dict)
    votes: dict[str, int] = field(default_factory=dict)
    trials: tuple[str, ...] = ()
    canvases: tuple[str, ...] = ()
    puzzles: tuple[str, ...] = ()
    exercises: dict[str, tuple[str, str]] = field(default_factory=dict)
    kernels: dict[str, tuple[str, str]] = field(default_factory=dict)
    quiz: tuple[str, ...] = ("quiz",)
    others: tuple[str, ...] = ()

    @property
    def live_cells(self) -> set[str]:
        return {*self.panels, *self.votes, *self.trials, *self.canvases, *self.puzzles, *self.quiz}


def _every(kind: str, count: int) -> list[Press]:
    return [(kind, index) for index in range(count)]


def _each_end(sliders: int) -> list[State]:
    """Every slider to its low end, then one after the other to its high end."""
    low = State("low", tuple((SLIDER, index, "Home", 1) for index in range(sliders)))
    return [low, *(State(f"high-{index + 1}", ((SLIDER, index, "End", 1),)) for index in range(sliders))]


RIGHT_KERNEL = """inside = column < columns
    biased = tl.load(gate_ptr + row * gate_stride + column, inside).to(tl.float32) + tl.load(bias_ptr + column, inside)
    up = tl.load(up_ptr + row * up_stride + column, inside).to(tl.float32)
    y = biased / (1 + tl.exp(-biased)) * up
    tl.store(y_ptr + row * y_stride + column, y.to(y_ptr.dtype.element_ty), inside)"""
WRONG_KERNEL = RIGHT_KERNEL.replace("row * up_stride", "row * gate_stride")

LESSONS = (
    Lesson("00_start", quiz=(), others=("machine-report",)),
    Lesson(
        "01_traffic",
        panels={
            "panel": [*_every(SLIDER, 3), *_every(CHECKBOX, 2)],
            "time-panel": [*_every(SLIDER, 2), *_every(BUTTON, 2)],
        },
        edges={
            "panel": [
                State("1-operators", ((SLIDER, 0, "Home", 1),), (2, "1")),
                # Not End: noUiSlider keeps the maximum it was displayed with.
                State("8-operators", ((SLIDER, 0, "ArrowRight", 7), (SLIDER, 2, "ArrowRight", 7)), (2, "8")),
                State("12-operators", ((SLIDER, 0, "ArrowRight", 4), (SLIDER, 2, "ArrowRight", 4)), (2, "12")),
            ],
            "time-panel": _each_end(2),
        },
        votes={"vote": 4, "lab-vote": 6},
        exercises={
            "total-bytes": (
                "2 * (num_ops - 1) * tensor_bytes",
                "(2 * (fused_groups - 1) + 2 + side_inputs) * tensor_bytes",
            ),
            "swiglu": ("128", "160"),
        },
        others=("lab",),
    ),
    Lesson(
        "02_reuse",
        # After run all it is a T4 with a 64 KiB tile in shared memory. The level ends there, where a cut matters.
        panels={
            "panel": [
                *_every(SLIDER, 2),
                (DROPDOWN, 0),
                *((BUTTON, index) for index in (0, 2, 1)),
                *_every(CHECKBOX, 2),
            ]
        },
        edges={
            "panel": [
                *_each_end(2),
                State("whole", ((CHECKBOX, 1, "Space", 1),)),
                *(State(f"budget-{number}", ((DROPDOWN, 0, NEXT, 1),)) for number in range(3, 9)),
                State("registers", ((BUTTON, 0, "Enter", 1), (SLIDER, 0, "Home", 1))),
            ]
        },
        votes={"vote": 4, "lab-vote": 6},
        exercises={
            "avoided": (
                "tile_bytes * reuse_count",
                "tile_bytes * (reuse_count + (1 if produced else -1)) if tile_bytes <= budget_bytes else 0",
            ),
            "gemm-tile": ("48", "144"),
        },
        others=("lab",),
    ),
    Lesson(
        "03_decision",
        panels={
            "panel": [(BUTTON, 3 * condition + status) for condition in range(4) for status in (1, 2, 0)],
            "ledger-panel": [*_every(SLIDER, 3), (BUTTON, 1), (BUTTON, 0)],
            "compile-panel": _every(SLIDER, 3),
        },
        edges={
            "panel": [State("all-fail", tuple((BUTTON, 3 * condition + 1, "Enter", 1) for condition in range(4)))],
            "ledger-panel": [
                *_each_end(3),
                State("small-tensor", ((SLIDER, 0, "Home", 1),)),
                State("each-call", ((BUTTON, 1, "Enter", 1), (SLIDER, 0, "End", 1))),
            ],
            "compile-panel": _each_end(3),
        },
        votes={"vote": 3},
        trials=tuple(f"case-{name}" for name in ("rounding", "reorder", "tile", "softmax", "gemm", "fan-out")),
        exercises={
            "net-bytes": (
                "saved_bytes * calls - tensor_bytes",
                "saved_bytes * calls - 2 * tensor_bytes * (calls if each_call else 1)",
            ),
            "break-even": ("8", "16"),
        },
        others=("court-record",),
    ),
    Lesson(
        "04_your_model",
        votes={"vote": 3, "compiler-vote": 4},
        canvases=("hand-canvas", "mlp-canvas", "own-canvas"),
        puzzles=("puzzles",),
        exercises={
            "kernel-mib": (
                "sum(mib[t] for op in group for side in ops[op] for t in side)",
                "sum(mib[t] for t in mib if (any(t in ops[op][0] for op in group) "
                "and not any(t in ops[op][1] for op in group)) or (any(t in ops[op][1] for op in group) "
                "and (t in outputs or any(t in ops[op][0] for op in ops if op not in group))))",
            ),
        },
        others=("capture-code", "mlp-code", "compare-code", "measure-code", "own-model"),
    ),
    Lesson(
        "05_triton_kernel",
        panels={
            # The last program, where one row, one column more show; then each kernel with what only it can do.
            "walk-panel": [
                *((SLIDER, index) for index in (3, 0, 1)),
                (DROPDOWN, 0),
                *_every(BUTTON, 3)[1:],
                (BUTTON, 3),
                *((SLIDER, index) for index in (4, 4, 2)),
                (BUTTON, 4),
                (BUTTON, 0),
            ],
            # From the T4 to the A10 first: with tensor cores a GEMM compiles in a fraction of the time.
            "compiler-panel": [
                (DROPDOWN, 0),
                (DROPDOWN, 1),
                (CHECKBOX, 0),
                # The rows of fp16 and bf16 are alike: through fp32 from one to the other.
                *((BUTTON, index) for index in (7, 6, 7, 5)),
                (CHECKBOX, 0),
                *((BUTTON, index) for index in (2, 4, 3)),
                (SLIDER, 0),
                *((BUTTON, index) for index in (1, 8, 9, 10, 12, 11)),
                (BUTTON, 0),
            ],
            "decision-panel": [(BUTTON, 3 * condition + status) for condition in range(4) for status in (1, 2, 0)],
        },
        edges={
            "walk-panel": [
                State("smallest", ((SLIDER, 0, "Home", 1), (SLIDER, 1, "Home", 1))),
                State("linear", ((BUTTON, 3, "Enter", 1), (SLIDER, 0, "End", 1), (SLIDER, 1, "End", 1))),
                State("softmax", ((BUTTON, 2, "Enter", 1),)),
            ],
            "compiler-panel": [
                State("linear", ((BUTTON, 3, "Enter", 1),)),
                *(State(f"gpu-{number}", ((DROPDOWN, 0, NEXT, 1),)) for number in range(3, 9)),
                State("rmsnorm", ((BUTTON, 1, "Enter", 1),)),
            ],
        },
        votes={"vote": 3, "losing-vote": 3},
        exercises={
            "fused-bytes": (
                "2 * kernels * rows * columns * element_bytes",
                "((2 * kernels + 1) * rows + 1) * columns * element_bytes",
            ),
        },
        kernels={"gate-kernel": (WRONG_KERNEL, RIGHT_KERNEL)},
        others=("setup-code", "eight-gpus", "measure-gpu", "measure-cpu", "plot", "losing-tables"),
    ),
)

# -- one lesson at a time, opened once and run from top to bottom ----------------------------------------------------


@dataclass(frozen=True)
class Opened:
    """A lesson of one edition in the browser, run from top to bottom; each test leaves its own traces in it."""

    edition: str
    lesson: Lesson
    notebook: OpenNotebook
    screenshots: Path

    @property
    def page(self) -> Page:
        return self.notebook.page

    @property
    def complaints(self) -> list[str]:
        return self.notebook.complaints

    def photograph(self, cell: Locator, name: str) -> None:
        """Leave a picture for a person to look at."""
        cell.screenshot(path=self.screenshots / f"{self.edition}-{self.lesson.name[:2]}-{name}.png")


# The longest first, so that two processes end at about the same time, and never both editions of one lesson at once:
# what the compiler had to say to the first is there for the second.
IN_TURN = [
    (edition, lesson) for lessons in (LESSONS[:2:-1], LESSONS[2::-1]) for edition in EDITIONS for lesson in lessons
]


@pytest.fixture(scope="module", params=IN_TURN, ids=lambda turn: f"{turn[0]}/{turn[1].name}")
def opened(request: pytest.FixtureRequest, lab: Lab, context: BrowserContext, screenshots: Path) -> Iterator[Opened]:
    edition, lesson = request.param
    with lab.running(f"{edition}/{lesson.name}.ipynb", context, seconds=300) as notebook:
        yield Opened(edition, lesson, notebook, screenshots)


# -- the tests, in the order of a learner's reading ------------------------------------------------------------------


def test_every_lesson_of_the_course_is_driven() -> None:
    sources = Path(__file__).resolve().parents[2] / "notebooks" / "source"
    assert [lesson.name for lesson in LESSONS] == sorted(path.stem for path in sources.glob("*.py"))


def test_it_runs_whole_and_every_widget_of_it_is_known(opened: Opened) -> None:
    assert opened.notebook.errors() == []
    assert opened.complaints == []
    assert set(opened.page.evaluate(LIVE_CELLS)) == opened.lesson.live_cells
    for cell_id in opened.lesson.others:
        opened.photograph(opened.notebook.cell(cell_id), cell_id)


LIVE_CELLS = """() => {
    const ids = [...window.jupyterapp.shell.currentWidget.content.model.cells].map(cell => cell.id);
    const cells = [...document.querySelectorAll('.jp-Notebook .jp-Cell')];
    return ids.filter((id, index) => cells[index].querySelector('.jp-OutputArea .jupyter-widgets'));
}"""


def test_every_control_moves_number_and_picture_by_keyboard(opened: Opened) -> None:
    for cell_id, presses in opened.lesson.panels.items():
        cell = opened.notebook.cell(cell_id)
        opened.photograph(cell, f"{cell_id}-start")
        for kind in (SLIDER, CHECKBOX, BUTTON, DROPDOWN, RADIO):
            moved = {index for pressed, index in presses if pressed == kind}
            expect(cell.locator(f".jp-OutputArea {kind}")).to_have_count(len(moved))
        for number, (kind, index) in enumerate(presses, 1):
            _press(opened.page, cell, kind, index, f"{cell_id}: {kind} {index}")
            opened.photograph(cell, f"{cell_id}-{number}")
    assert opened.complaints == []


def _press(page: Page, cell: Locator, kind: str, index: int, what: str) -> None:
    """Move one control by one key: the picture and the table must both change."""
    before = cell.evaluate(SHOWN)
    cell.locator(f".jp-OutputArea {kind}").nth(index).focus()
    _type(page, KEYS[kind])
    wait_until(page, lambda: _both_differ(cell.evaluate(SHOWN), before), f"{what} does not move picture and table")


def _type(page: Page, keys: str) -> None:
    """Press keys one after another, as fast as a list can open."""
    for key in keys.split():
        page.keyboard.press(key)
        if " " in keys:
            page.wait_for_timeout(150)


def _both_differ(shown: list[str], before: list[str]) -> bool:
    return shown[0] != before[0] and shown[1] != before[1]


SHOWN = """cell => [
    cell.querySelector('.jp-OutputArea svg[role=img]').outerHTML,
    cell.querySelector('.jp-OutputArea table').textContent,
]"""


def test_every_option_of_a_vote_by_keyboard(opened: Opened) -> None:
    for cell_id, count in opened.lesson.votes.items():
        vote = opened.notebook.cell(cell_id)
        options = vote.locator(BUTTON)
        expect(options).to_have_count(count)
        for index in range(count):
            options.nth(index).focus()
            opened.page.keyboard.press("Enter")
            expect(vote.locator("[role=status]")).to_contain_text(options.nth(index).inner_text(), timeout=15_000)
        opened.photograph(vote, cell_id)


def test_every_choice_of_the_quiz_by_keyboard(opened: Opened) -> None:
    for cell_id in opened.lesson.quiz:
        quiz = opened.notebook.cell(cell_id)
        radios, explained = quiz.locator(RADIO), quiz.locator("[role=status]")
        expect(radios).to_have_count(9)
        said = set()
        for index in range(9):
            before = explained.nth(index // 3).inner_text() if index % 3 else ""
            radios.nth(index).focus()
            opened.page.keyboard.press("Space")
            expect(explained.nth(index // 3)).to_contain_text(re.compile("[✓✗]"), timeout=15_000)
            expect(explained.nth(index // 3)).not_to_have_text(before, timeout=15_000)
            said.add(explained.nth(index // 3).inner_text())
        assert len(said) == 9
        opened.photograph(quiz, cell_id)


def test_edges_of_a_graph_are_fused_cut_and_undone_by_keyboard(opened: Opened) -> None:
    for cell_id in opened.lesson.canvases:
        cell = opened.notebook.cell(cell_id)
        said, edge = cell.locator("[role=status]").first, cell.locator(".jp-OutputArea [data-edge]").first
        opened.photograph(cell, f"{cell_id}-start")
        for pressed in ("true", "false", "true"):
            before = said.inner_text(), cell.evaluate(DRAWN)
            edge.focus()
            opened.page.keyboard.press("Enter")
            expect(edge).to_have_attribute("aria-pressed", pressed, timeout=15_000)
            expect(said).not_to_have_text(before[0])
            assert cell.evaluate(DRAWN) != before[1]
        opened.photograph(cell, f"{cell_id}-fused")
        cell.locator(".jp-OutputArea button").first.focus()  # undo
        opened.page.keyboard.press("Enter")
        expect(edge).to_have_attribute("aria-pressed", "false", timeout=15_000)
    assert opened.complaints == []


DRAWN = "cell => cell.querySelector('.jp-OutputArea svg[role=group]').outerHTML"


def test_the_first_puzzle_is_solved_by_keyboard(opened: Opened) -> None:
    for cell_id in opened.lesson.puzzles:
        cell = opened.notebook.cell(cell_id)
        edges = cell.locator(".jp-OutputArea [data-edge]")
        opened.photograph(cell, f"{cell_id}-start")
        for index in range(edges.count()):
            if edges.nth(index).get_attribute("aria-pressed") == "false":
                edges.nth(index).focus()
                opened.page.keyboard.press("Enter")
                expect(edges.nth(index)).to_have_attribute("aria-pressed", "true", timeout=15_000)
        expect(cell.get_by_role("button", name=re.compile("^★ 1 "))).to_be_visible(timeout=15_000)
        opened.photograph(cell, f"{cell_id}-solved")
        assert cell.evaluate(CUT_TEXT) == []
    assert opened.complaints == []


def test_the_court_hears_every_answer_by_keyboard_and_shows_nothing_before_the_third(opened: Opened) -> None:
    for cell_id in opened.lesson.trials:
        trial = opened.notebook.cell(cell_id)
        buttons, tables = trial.locator(f".jp-OutputArea {BUTTON}"), trial.locator(".jp-OutputArea table")
        expect(buttons).to_have_count(9)
        said: list[str] = []
        for number, index in enumerate((0, 3, 6, 1, 2, 4, 5, 7, 8), 1):
            buttons.nth(index).focus()
            opened.page.keyboard.press("Enter")
            if number < 3:
                opened.notebook.settle()
                assert tables.count() == 0, f"{cell_id}: evidence after {number} answers"
                continue
            expect(tables).to_have_count(2, timeout=15_000)
            said.append(_changed_text(opened.page, trial, said[-1:], f"{cell_id}: button {index} changes nothing"))
        assert len(set(said)) == 7, f"{cell_id}: two rulings are answered in the same words"
        opened.photograph(trial, cell_id)
    assert opened.complaints == []


def _changed_text(page: Page, cell: Locator, before: list[str], otherwise: str) -> str:
    """What the cell's output says, once that is no longer the last of ``before``."""
    output = cell.locator(".jp-OutputArea")
    wait_until(page, lambda: output.inner_text() not in before, otherwise)
    return output.inner_text()


def test_hints_and_solution_unfold(opened: Opened) -> None:
    for cell_id in (*opened.lesson.exercises, *opened.lesson.kernels):
        exercise = opened.notebook.cell(cell_id)
        hints = exercise.locator(".jp-OutputArea details")
        expect(hints).to_have_count(3)
        for index in range(3):
            expect(hints.nth(index).locator("div")).to_be_hidden()
            hints.nth(index).locator("summary").click()
            expect(hints.nth(index).locator("div")).to_be_visible()
        opened.photograph(exercise, f"{cell_id}-hints")
        solution = opened.notebook.cell(f"{cell_id}-solution").locator(".jp-RenderedMarkdown")
        expect(solution.get_by_text("check_").last).to_be_hidden()
        solution.locator("summary").click()
        expect(solution.get_by_text("check_").last).to_be_visible()


def test_a_learners_answer_is_checked(opened: Opened) -> None:
    for cell_id, answers in opened.lesson.exercises.items():
        output, empty = opened.notebook.cell(cell_id).locator(".jp-OutputArea"), opened.notebook.source(cell_id)
        assert empty.count("None") == 1
        for answer, mark in zip(answers, "✗✓", strict=True):
            opened.notebook.replace_source(cell_id, empty.replace("None", answer))
            opened.notebook.run_cell(cell_id)
            expect(output).to_contain_text(mark, timeout=15_000)


def test_a_learners_kernel_is_checked(opened: Opened) -> None:
    for cell_id, answers in opened.lesson.kernels.items():
        cell, empty = opened.notebook.cell(cell_id), opened.notebook.source(cell_id)
        output = cell.locator(".jp-OutputArea")
        assert empty.count("return None") == 1
        for answer, mark in zip(answers, "✗✓", strict=True):
            opened.notebook.replace_source(cell_id, empty.replace("return None", answer))
            opened.notebook.run_cell(cell_id)
            expect(output).to_contain_text(mark, timeout=90_000)
            opened.photograph(cell, f"{cell_id}-{'wrong' if mark == '✗' else 'right'}")


def test_no_text_is_cut_in_any_cell(opened: Opened) -> None:
    """Labels, buttons and cells of tables hold their text; text of pictures stays inside the card and apart."""
    assert opened.page.evaluate(f"() => {{ const faults = {CUT_TEXT}; {EVERY_CELL} }}") == {}
    assert opened.complaints == []


def test_no_text_is_cut_at_the_edges_of_a_panel(opened: Opened) -> None:
    for cell_id, states in opened.lesson.edges.items():
        cell = opened.notebook.cell(cell_id)
        for state in states:
            for kind, index, key, times in state.keys:
                cell.locator(f".jp-OutputArea {kind}").nth(index).focus()
                for _ in range(times):
                    _type(opened.page, key)
                opened.notebook.settle()
            if state.readout is not None:
                place, words = state.readout
                expect(cell.locator(".widget-readout").nth(place)).to_have_text(words)
            opened.photograph(cell, f"{cell_id}-{state.name}")
            assert cell.evaluate(CUT_TEXT) == [], f"{cell_id}: {state.name}"
    assert opened.complaints == []


EVERY_CELL = """
    const found = {};
    const ids = [...window.jupyterapp.shell.currentWidget.content.model.cells].map(cell => cell.id);
    [...document.querySelectorAll('.jp-Notebook .jp-Cell')].forEach((cell, index) => {
        const said = cell.querySelector('.jp-OutputArea') ? faults(cell) : [];
        if (said.length) found[ids[index]] = said;
    });
    return found;
"""

CUT_TEXT = """cell => {
    const faults = [];
    for (const box of cell.querySelectorAll('.widget-label, .widget-readout, button, select, td, th, label')) {
        if (box.scrollWidth > box.clientWidth + 1) faults.push('cut: ' + box.textContent);
    }
    for (const card of cell.querySelectorAll('.jp-OutputArea svg:is([role=img], [role=group])')) {
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
