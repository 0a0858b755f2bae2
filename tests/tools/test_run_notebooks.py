"""Notebooks run from top to bottom: every cell that raises is named, and nothing else is."""

import subprocess
import sys

import nbformat
import pytest
from nbformat import v4

from tools.project import ROOT
from tools.run_notebooks import arguments, run

pytestmark = pytest.mark.once


def written(folder, name, *sources, tags=()):
    """A notebook of these code cells; the last carries ``tags``."""
    cells = [v4.new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(sources)]
    cells[-1].metadata["tags"] = list(tags)
    path = folder / f"{name}.ipynb"
    nbformat.write(v4.new_notebook(cells=cells), path)
    return path


def run_all(*paths, cwd):
    command = [sys.executable, *arguments([str(path) for path in paths])]
    return subprocess.run(command, cwd=cwd, capture_output=True, encoding="utf-8")


def test_one_that_runs_through_has_no_fault_whatever_it_stored(tmp_path):
    path = written(tmp_path, "good", "x = 1", "print('no torch here')\nx")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].outputs = [v4.new_output("stream", text="with torch\n")]
    nbformat.write(notebook, path)
    ran, faults = run(path)
    assert faults == []
    assert ran.cells[1].outputs[0].text == "no torch here\n" and ran.cells[1].execution_count == 2


def test_every_cell_that_raises_is_named_and_the_rest_still_runs(tmp_path):
    path = written(tmp_path, "bad", "raise ImportError('torch')", "y = 1", "1 / 0", "print(y)")
    ran, faults = run(path)
    assert [fault.partition(": ")[2] for fault in faults] == [
        "cell 'cell-0': ImportError: torch",
        "cell 'cell-2': ZeroDivisionError: division by zero",
    ]
    assert ran.cells[3].outputs[0].text == "1\n"


def test_an_error_that_the_lesson_means_is_no_fault(tmp_path):
    assert run(written(tmp_path, "meant", "1 / 0", tags=["raises-exception"]))[1] == []


def test_a_cell_that_does_not_end_and_a_kernel_that_dies_are_faults(tmp_path):
    slow = run(written(tmp_path, "slow", "import time; time.sleep(60)"), seconds=1)[1]
    assert "slow.ipynb" in slow[-1] and "1 seconds" in slow[-1]
    assert run(written(tmp_path, "dead", "import os; os._exit(1)"))[1]


def test_it_runs_where_the_notebook_lies_and_the_courses_folder_is_not_on_its_path(tmp_path, monkeypatch):
    """Whatever folder the check runs in: an installed course is found by the notebook's own means."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "lessons").mkdir()
    looks = (
        f"import os, sys; assert {str(ROOT)!r} not in sys.path; assert os.getcwd() == {str(tmp_path / 'lessons')!r}"
    )
    path = written(tmp_path / "lessons", "where", looks)
    done = run_all(path, cwd=tmp_path)
    assert done.returncode == 0 and f"✓ {path}: 1 cells run" in done.stdout, done.stdout + done.stderr


def test_one_fault_fails_the_whole_and_the_last_line_counts(tmp_path):
    good, bad = written(tmp_path, "good", "1"), written(tmp_path, "bad", "1 / 0")
    done = run_all(bad, good, cwd=tmp_path)
    assert done.returncode == 1
    assert "✗" in done.stdout and f"✓ {good}" in done.stdout
    assert done.stdout.splitlines()[-1] == "2 run, 1 with faults"


def test_nothing_to_run_is_said(tmp_path):
    done = run_all(cwd=tmp_path)
    assert done.returncode == 0 and "lacks" in done.stdout
