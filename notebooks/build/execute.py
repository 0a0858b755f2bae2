"""Run a notebook with nbclient and leave only outputs that are fit to be committed."""

from __future__ import annotations

import os
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from notebooks.build.faults import BuildError

CELL_SECONDS = 120
# Nobody's own: a build neither shows what someone has reached nor leaves a file beside the lessons.
ENVIRONMENT = {"LESSONS_PROGRESS": "off", "LESSONS_WORKSHOP": "0"}
_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def execute(notebook: NotebookNode, folder: Path, file: str, seconds: int = CELL_SECONDS) -> None:
    """Run every cell of ``notebook`` in ``folder``, where its learner would be, and normalise the outputs.

    Raises:
        BuildError: a cell failed, took too long, wrote to stderr, or shows a path of this machine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    client = NotebookClient(
        notebook,
        timeout=seconds,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,  # what a progress bar has painted over goes, too
    )
    with client.setup_kernel(env={**os.environ, **ENVIRONMENT}):
        for index, cell in enumerate(notebook.cells):
            _execute_cell(client, cell, index, f"{file}: cell '{cell.id}'")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            _normalise(cell)
            _refuse(cell, folder, f"{file}: cell '{cell.id}'")


def _execute_cell(client: NotebookClient, cell: NotebookNode, index: int, where: str) -> None:
    try:
        client.execute_cell(cell, index)
    except CellExecutionError as error:
        raise BuildError(f"{where} failed: {error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise BuildError(f"{where} took longer than {client.timeout} s") from error
    except DeadKernelError as error:
        raise BuildError(f"{where} killed its kernel (out of memory?)") from error


def _normalise(cell: NotebookNode) -> None:
    """Drop what differs from run to run or points at something that is gone."""
    cell.metadata.pop("execution", None)
    kept = []
    for output in cell.outputs:
        if output.output_type == "error":
            output.traceback = [f"{output.ename}: {output.evalue}"]  # the rest is paths and colours
        elif "data" in output:
            output.data.pop(_WIDGET_VIEW, None)
            if not output.data:
                continue
        kept.append(output)
    cell.outputs = kept


def _refuse(cell: NotebookNode, folder: Path, where: str) -> None:
    if text := stderr_of(cell):
        raise BuildError(f"{where} wrote to stderr: {text.strip().splitlines()[0]}")
    above = folder.resolve().parents
    root = next((place for place in above if (place / "pyproject.toml").is_file()), above[1])
    for place in {str(folder.resolve()), str(root), str(Path.home())} - {"/"}:
        if f"{place}/" in str(cell.outputs):
            raise BuildError(f"{where} shows a path of this machine ({place})")


def stderr_of(cell: NotebookNode) -> str:
    """What a code cell wrote to stderr."""
    return "".join(output.text for output in cell.outputs if output.get("name") == "stderr")
