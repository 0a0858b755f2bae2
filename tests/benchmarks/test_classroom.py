"""The classroom's benchmark: real learners on a real server, what counts as an error, and the arithmetic of sizes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("psutil")
pytest.importorskip("playwright.sync_api")
pytest.importorskip("jupyter_server")

from benchmarks import classroom, classroom_lessons
from benchmarks.classroom_hub import Arrival, NoHubError
from benchmarks.classroom_learner import Learner, Manner
from benchmarks.classroom_lessons import Taken
from benchmarks.classroom_run import ClassRun, run_class, teach
from benchmarks.classroom_server import class_server
from benchmarks.classroom_sizing import Node, Share, size, sizing_header, sizing_rows
from benchmarks.memory import LAB_CELLS, LESSON

# -- real learners --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two() -> ClassRun:
    """Two learners, the real lesson, a few changes each."""
    return run_class(2, classroom.SHORT_MANNER)


def test_a_class_runs_the_lesson_and_every_change_brings_its_picture(two: ClassRun) -> None:
    assert list(two.errors) == []
    assert two.learners == 2 and two.all_opened >= max(two.opened) > 0
    assert len(two.latencies) >= 4 and min(two.latencies) > 0


def test_every_learner_has_a_kernel_and_the_server_is_counted_apart(two: ClassRun) -> None:
    assert len(two.kernel_bytes) == 2 and min(two.kernel_bytes) > 10e6 and two.server_bytes > 10e6
    assert two.bytes_each == (sum(two.kernel_bytes) + two.server_bytes) / 2
    assert two.starting_seconds > 0 and two.lesson_seconds > 0 and two.moving_seconds >= 0


MUTE = """
from ipywidgets import HTML, IntSlider, VBox
panel = VBox([IntSlider(4, 1, 12), HTML("<svg></svg>")])
panel
"""
SLOW = MUTE + "panel.children[0].observe(lambda change: __import__('time').sleep(60), names='value')"


@pytest.fixture(scope="module")
def troubled() -> dict[str, Learner]:
    """Learners in one class, each with another thing gone wrong."""
    manner = replace(classroom.SHORT_MANNER, seconds=1, patience=0.5)
    with class_server(LESSON, 3) as (server, paths):
        rewrite(server.folder / paths[0], formula_code="1 / 0", panel=MUTE, panel_code="pass")
        rewrite(server.folder / paths[1], panel=SLOW, panel_code="pass")
        manners = (manner, manner, replace(manner, panel="no-such-cell"))
        learners = [
            Learner(server.address, server.token, path, each) for path, each in zip(paths, manners, strict=True)
        ]
        asyncio.run(teach(server, learners, 0, 0.0))
    return dict(zip(("mute", "slow", "no panel"), learners, strict=True))


def rewrite(path: Path, **cells: str) -> None:
    """Replace the code of these cells of a notebook."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = cells.get(cell.id.replace("-", "_"), cell.source)
    nbformat.write(notebook, path)


def test_a_cell_that_raises_and_a_picture_that_stays_the_same_are_errors(troubled: dict[str, Learner]) -> None:
    errors = troubled["mute"].errors
    assert "cell formula-code: ZeroDivisionError: division by zero" in errors
    assert any("no picture" in error for error in errors)
    assert not troubled["mute"].latencies


def test_a_kernel_that_does_not_answer_is_an_error_and_ends_the_wait(troubled: dict[str, Learner]) -> None:
    assert [error for error in troubled["slow"].errors if error.startswith("a change: TimeoutError")]


def test_a_lesson_without_a_panel_is_an_error_and_not_a_silent_learner(troubled: dict[str, Learner]) -> None:
    assert troubled["no panel"].errors == ["no panel came up to move sliders of"]


def test_the_cells_left_out_are_those_of_the_lab() -> None:
    ids = {cell.id for cell in nbformat.read(LESSON, as_version=4).cells}
    assert {*LAB_CELLS, Manner().panel} <= ids


def test_a_lessons_peak_counts_the_processes_that_its_kernel_starts(tmp_path: Path) -> None:
    held = "import time; block = bytearray(b'x') * 200_000_000; time.sleep(1)"
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {held!r}], check=True)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbformat.write(notebook, tmp_path / "heavy.ipynb")
    taken = classroom_lessons.run_lesson(tmp_path / "heavy.ipynb")
    assert taken.peak > taken.end + 150e6 > 150e6


# -- the section ----------------------------------------------------------------------------------------------

FINE = ClassRun(
    opened=[2.0, 3.0],
    all_opened=3.0,
    latencies=[0.02, 0.03, 0.04],
    kernel_bytes=[50_000_000, 60_000_000],
    server_bytes=100_000_000,
    starting_seconds=4.0,
    lesson_seconds=3.0,
    moving_seconds=1.2,
    moving_for=60.0,
    errors=[],
    load=0.5,
)
COME = Arrival(replace(FINE, opened=[2.0], kernel_bytes=[60_000_000]), 110_000_000, 50_000_000, 0.25)


def section(run: ClassRun, come: Arrival | NoHubError = COME) -> classroom.ClassSection:
    return classroom.section([run], FINE, classroom.MANNER, 1.0, come)


def test_the_aims_follow_the_largest_class() -> None:
    assert [aim.met for aim in section(FINE).aims] == [True, True, True]
    slow = replace(
        FINE, latencies=[0.02, 0.9, 0.9], kernel_bytes=[50_000_000, 130_000_000], errors=["a change: lost"]
    )
    assert [aim.met for aim in section(slow).aims] == [False, False, False]
    assert "1, the first: a change: lost" in section(slow).markdown()


def test_a_class_that_got_no_picture_meets_no_latency() -> None:
    silent = section(replace(FINE, latencies=[]))
    assert [aim.met for aim in silent.aims] == [True, False, True]
    assert "no picture" in silent.markdown()


def test_the_section_says_the_load_and_holds_one_heading_of_its_own_level() -> None:
    text = section(replace(FINE, load=1.7)).markdown()
    assert "Load when each class began: 1.7, 0.5" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## " + section(FINE).title]


def test_without_a_hub_the_section_says_so() -> None:
    text = section(FINE, NoHubError("JupyterHub is not installed")).markdown()
    assert text.endswith("Not measured: JupyterHub is not installed.")


def test_every_lesson_open_and_one_at_its_peak_must_fit_the_limit() -> None:
    light, heavy = Taken("01", 60_000_000, 400_000_000, 9.0), Taken("05", 600_000_000, 1_100_000_000, 90.0)
    fits = classroom_lessons.section([light, heavy]).aims[0]
    assert fits.met and fits.measured == "1160.0 MB"
    assert not classroom_lessons.section([replace(heavy, lesson=str(number)) for number in range(5)]).aims[0].met


# -- sizes ----------------------------------------------------------------------------------------------------

SHARE = Share(server_bytes=130e6, kernel_bytes=70e6, moving_cores=0.01, starting_seconds=4, lesson_seconds=1)
NODE = Node(cores=8, bytes=32e9, for_learners=0.5)


def test_memory_and_cores_are_so_many_times_one_learners() -> None:
    found = size(100, SHARE, 50, NODE)
    assert (found.bytes, found.moving_cores, found.opening_cores) == (20e9, 1.0, 10.0)


@pytest.mark.parametrize(
    ("share", "nodes"),
    [
        (replace(SHARE, starting_seconds=0), 13),  # 200 GB of 16 GB a machine
        (replace(SHARE, lesson_seconds=16), 100),  # 400 cores of 4
        (replace(SHARE, moving_cores=0.5), 125),  # 500 cores of 4
    ],
)
def test_what_is_scarcest_decides_the_machines(share: Share, nodes: int) -> None:
    assert size(1_000, share, 50, NODE).nodes == nodes


def test_a_row_shows_its_arithmetic() -> None:
    row = sizing_rows([100], SHARE, 50, NODE)[0]
    assert len(row) == len(sizing_header(NODE, 50))
    assert row[1] == "100 × (130 + 70) MB = 20.0 GB"
    assert row[3] == "100 × (4.0 + 1.0) s ÷ 50 s = 10.0"


def test_the_short_form_is_two_learners_for_seconds_and_the_long_one_thirty_for_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def measured(classes: Sequence[int], manner: Manner, stagger: float) -> classroom.ClassSection:
        asked.append((classes[-1], manner.seconds))
        return section(FINE)

    monkeypatch.setattr(classroom, "measured", measured)
    for arguments in (["--short"], []):
        monkeypatch.setattr(sys, "argv", ["classroom", *arguments])
        classroom.main()
    assert asked == [(2, 4), (30, 60)]
    assert capsys.readouterr().out.count("## Classroom: one server") == 2
