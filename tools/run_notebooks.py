# mypy: untyped-calls-exclude=nbformat
"""Runs built notebooks from top to bottom; a cell that raises is a fault. Outputs are not compared.

For lessons whose needs a Python lacks: what they store cannot be met there, yet they must be worth taking. The second
tool that needs packages (nbclient, nbformat).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.project import ROOT

CELL_SECONDS = 120
# Nobody's own: no run shows what a learner has reached, or leaves a file beside the lessons.
NOBODYS = {"LESSONS_PROGRESS": "off", "LESSONS_WORKSHOP": "0"}
# What a lesson times is looked at by nobody here: its fewest rounds will do.
BRIEF = {"LESSONS_MEASURE_SECONDS": "0.5"}


def arguments(paths: Sequence[str]) -> tuple[str, ...]:
    """What to give a Python, in any folder, so that it runs ``paths``; the course's folder stays off their own path."""
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tools.run_notebooks as run; sys.exit(run.main())"
    return ("-c", start, *paths)


def run(path: Path, seconds: int = CELL_SECONDS) -> tuple[Any, list[str]]:
    """The notebook after a run where it lies, as its learner would; and a line for each cell that raised."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=seconds,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    stopped = []
    try:
        client.execute(env={**os.environ, **NOBODYS, **BRIEF})
    except (CellTimeoutError, DeadKernelError) as error:
        stopped.append(f"{path}: {error}")
    return notebook, [*_raised(notebook, path), *stopped]


def _raised(notebook: Any, path: Path) -> list[str]:
    """A line for each error among the outputs, except where the lesson means it."""
    return [
        f"{path}: cell '{cell.get('id', '')}': {output.ename}: {output.evalue}"
        for cell in notebook.cells
        if cell.cell_type == "code" and "raises-exception" not in cell.metadata.get("tags", ())
        for output in cell.outputs
        if output.output_type == "error"
    ]


def main() -> int:
    """Run the notebooks named on the command line."""
    paths = [Path(name) for name in sys.argv[1:]]
    bad = 0
    for path in paths:
        notebook, faults = run(path.resolve())
        bad += bool(faults)
        cells = sum(cell.cell_type == "code" for cell in notebook.cells)
        print("\n".join(f"✗ {fault}" for fault in faults) or f"✓ {path}: {cells} cells run", flush=True)
    print(f"{len(paths)} run, {bad} with faults" if paths else "no lesson lacks anything: nbval compares them all")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
