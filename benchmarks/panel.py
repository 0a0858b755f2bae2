"""From key press to changed picture in a real JupyterLab: our panel beside one with interact and matplotlib."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.browser import ROOT, OpenNotebook, chromium, jupyter_lab
from benchmarks.panel_notebook import write_notebook
from benchmarks.results import Aim, Section
from benchmarks.summary import SUMMARY_HEADER, Summary, milliseconds, times
from tools.chromium import find_chromium

ROUNDS = 8
KERNEL_ROUNDS = 15
FRAME_MS = 1000 / 60
AIM_RATIO = 4.0
MOST_FRAMES = 1.5
PAUSE_MS = 120  # between presses, so that one redraw never waits for another

# One round for a panel: slider by position, and key. Every press changes the picture, none moves a second control,
# and the round ends where it began.
_OPERATORS, _SIZE, _GROUPS = 0, 1, 2
_UP, _DOWN = "ArrowRight", "ArrowLeft"
ROUND = [
    *((_OPERATORS, _UP), (_OPERATORS, _UP), (_GROUPS, _DOWN), (_GROUPS, _DOWN), (_SIZE, _UP), (_SIZE, _UP)),
    *((_SIZE, _DOWN), (_SIZE, _DOWN), (_GROUPS, _UP), (_GROUPS, _UP), (_OPERATORS, _DOWN), (_OPERATORS, _DOWN)),
]
FLOOR_ROUND = [(_OPERATORS, key) for _, key in ROUND[:2] + ROUND[-2:]]


# Milliseconds of each press until "changed" and until "painted".
Round = Sequence[Mapping[str, float]]


@dataclass(frozen=True)
class Subject:
    """A panel in the notebook: its cell, what counts as its picture, and the presses of a round."""

    cell: str
    picture: str
    presses: Sequence[tuple[int, str]]


OURS = Subject("ours", "svg[role=img]", ROUND)
INTERACT = Subject("interact", "img", ROUND)
FLOOR = Subject("floor", "output", FLOOR_ROUND)

HOW = (
    "Real JupyterLab in headless Chromium, one notebook, one kernel. "
    f"{len(ROUND)} presses a round on operators, groups and tensor size, {ROUNDS} rounds, the panels taking turns; "
    "timed inside the page from the key's own time stamp. "
    "Changed: the new SVG stands in the page, or the new `<img>` is decoded. "
    "The other panel is `benchmarks/interact_panel.py`: same controls, same model, same picture, a new figure per "
    "change. "
    "The floor is a slider whose callback sets one line of text: what Jupyter takes to ask the kernel and carry the "
    "answer back."
)
NOT_SAID = (
    "the delay of a real screen and keyboard, or of a server that is not this machine. "
    "Browser, server and kernel share this machine's cores, without a GPU. "
    "No panel that asks its kernel can beat the floor."
)

# Armed before a key goes down. `changed`: the new picture stands in the page, an <img> decoded too. `painted`: the
# frame that shows it has been laid out and painted. Both count from the browser's own time stamp of the key.
_ARM = """([area, selector]) => {
    const before = area.querySelector(selector), source = before.src;
    window.pressMeasured = new Promise(resolve => {
        let pressed;
        addEventListener('keydown', event => { pressed = event.timeStamp; }, {capture: true, once: true});
        const observer = new MutationObserver(async () => {
            const now = area.querySelector(selector);
            if (!now || (now === before && now.src === source)) return;
            observer.disconnect();
            if (now.decode) await now.decode();
            const changed = performance.now() - pressed;
            requestAnimationFrame(() => {
                const afterPaint = new MessageChannel();
                afterPaint.port1.onmessage = () => resolve({changed, painted: performance.now() - pressed});
                afterPaint.port2.postMessage(null);
            });
        });
        observer.observe(area, {childList: true, subtree: true, attributes: true, attributeFilter: ['src']});
    });
}"""
_WAIT = """() => Promise.race([
    window.pressMeasured,
    new Promise((_, reject) => setTimeout(() => reject(new Error('no new picture within 10 s')), 10000)),
])"""


def measure() -> Section:
    """Press keys on each panel in turn, then time the same redraws inside the kernel."""
    if find_chromium() is None:
        raise SystemExit("The panel's benchmark needs Chromium: apt-get install chromium")
    with _opened_notebook() as notebook:
        presses = _all_presses(notebook)
        kernel = _printed(notebook, "kernel-time")
        parts = _printed(notebook, "parts")
    return section(presses, kernel, parts)


@contextmanager
def _opened_notebook() -> Iterator[OpenNotebook]:
    """The benchmark's notebook in a fresh JupyterLab, every panel displayed."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "notebooks"
        folder.mkdir()
        write_notebook(folder / "panels.ipynb", ROOT, KERNEL_ROUNDS)
        with chromium() as browser, jupyter_lab(folder, Path(scratch) / "jupyter") as lab:
            window = browser.new_context(viewport={"width": 1280, "height": 1000})
            with lab.running("panels.ipynb", window) as notebook:
                if notebook.errors():
                    raise RuntimeError("\n".join(notebook.errors()))
                _keep_screenshots(notebook)
                yield notebook


def _keep_screenshots(notebook: OpenNotebook) -> None:
    """Leave a picture of both panels to look at: is the comparison fair?"""
    folder = ROOT / "artifacts" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    for subject in (OURS, INTERACT):
        notebook.cell(subject.cell).screenshot(path=folder / f"benchmark-{subject.cell}.png")


def _all_presses(notebook: OpenNotebook) -> dict[str, list[Round]]:
    """Rounds of presses by cell; the first round of each panel warms up and is left out."""
    taken: dict[str, list[Round]] = defaultdict(list)
    for number in range(ROUNDS + 1):
        order = (OURS, INTERACT, FLOOR)
        for subject in order if number % 2 else reversed(order):
            measured = _press_round(notebook, subject)
            if number:
                taken[subject.cell].append(measured)
    return taken


def _press_round(notebook: OpenNotebook, subject: Subject) -> Round:
    """One round of presses on one panel: milliseconds until changed and until painted."""
    page, cell = notebook.page, notebook.cell(subject.cell)
    area = cell.locator(".jp-OutputArea").first.element_handle()
    measured = []
    for slider, key in subject.presses:
        cell.locator(".noUi-handle").nth(slider).focus()
        page.wait_for_timeout(PAUSE_MS)
        page.evaluate(_ARM, [area, subject.picture])
        page.keyboard.press(key)
        measured.append(page.evaluate(_WAIT))
    return measured


def _printed(notebook: OpenNotebook, cell_id: str) -> dict[str, list[float]]:
    """Run a cell once more and read the JSON that it prints."""
    notebook.run_cell(cell_id)
    said = notebook.cell(cell_id).locator(".jp-OutputArea-output").last.inner_text()
    figures: dict[str, list[float]] = json.loads(said)
    return figures


def section(
    presses: Mapping[str, Sequence[Round]],
    kernel: Mapping[str, Sequence[float]],
    parts: Mapping[str, Sequence[float]],
) -> Section:
    """The figures in words and tables."""
    changed = {cell: Summary.of(_all_of(rounds, "changed")) for cell, rounds in presses.items()}
    painted = {cell: Summary.of(_all_of(rounds, "painted")) for cell, rounds in presses.items()}
    redraw = {cell: Summary.of(samples) for cell, samples in kernel.items()}
    by_round = {cell: [statistics.median(_all_of([one], "changed")) for one in presses[cell]] for cell in presses}
    ratio = Summary.of([rival / ours for ours, rival in zip(by_round["ours"], by_round["interact"], strict=True)])
    over = Summary.of([ours - floor for ours, floor in zip(by_round["ours"], by_round["floor"], strict=True)])
    named = {
        "key → changed picture, this panel": changed["ours"],
        "key → changed picture, interact + matplotlib": changed["interact"],
        "key → changed line of text (Jupyter's own floor)": changed["floor"],
        "this panel above the floor, medians by round": over,
        "key → painted frame, this panel": painted["ours"],
        "key → painted frame, interact + matplotlib": painted["interact"],
        "kernel's share of a redraw, this panel": redraw["ours"],
        "kernel's share of a redraw, interact + matplotlib": redraw["interact"],
        **{f"of this panel's: {part}": Summary.of(samples) for part, samples in parts.items()},
    }
    rows = [[name, *summary.cells(milliseconds)] for name, summary in named.items()]
    rows.append(["interact + matplotlib ÷ this panel, medians by round", *ratio.cells(times)])
    median = changed["ours"].median
    return Section(
        title="Panel: key press to changed picture",
        how=HOW,
        header=["", *SUMMARY_HEADER],
        rows=rows,
        aims=[
            Aim(f"at least {AIM_RATIO:.0f}× faster", times(ratio.median), ratio.median >= AIM_RATIO),
            Aim(
                f"median about a frame, {FRAME_MS:.1f} ms (met up to {MOST_FRAMES} frames)",
                milliseconds(median),
                median <= MOST_FRAMES * FRAME_MS,
            ),
        ],
        not_said=NOT_SAID,
    )


def _all_of(rounds: Sequence[Round], moment: str) -> list[float]:
    """Every press's time until ``moment``."""
    return [press[moment] for one in rounds for press in one]
