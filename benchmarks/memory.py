# mypy: untyped-calls-exclude=nbformat
"""Resident memory of a real kernel: bare, after lesson 01 without its lab, and after all of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbclient import NotebookClient

from benchmarks.browser import ROOT
from benchmarks.results import Aim, Section
from benchmarks.summary import SUMMARY_HEADER, Summary, megabytes

ROUNDS = 7
AIM_MB = 120
LESSON = ROOT / "notebooks" / "en" / "01_traffic.ipynb"
# The lab itself and the cell that reads its measurement.
LAB_CELLS = ("lab", "lab-verdict")


def measure() -> Section:
    """Run the lesson in fresh kernels, round by round."""
    kinds: dict[str, Callable[[str], bool]] = {
        "bare kernel, no cell run": lambda cell_id: False,
        "lesson 01, all cells but the lab": lambda cell_id: cell_id not in LAB_CELLS,
        "lesson 01, all cells": lambda cell_id: True,
    }
    held: dict[str, list[int]] = {name: [] for name in kinds}
    peaks: list[int] = []
    for _ in range(ROUNDS):
        for name, chosen in kinds.items():
            resident, peak = _kernel_memory(chosen)
            held[name].append(resident)
        peaks.append(peak)  # of the last kind, which ran the lab
    rows = {name: Summary.of(samples) for name, samples in held.items()}
    rows["the same, at its peak"] = Summary.of(peaks)
    lesson = rows["lesson 01, all cells but the lab"].median
    return Section(
        title="Kernel memory",
        how=f"Resident set of a kernel process after its last cell, {ROUNDS} fresh kernels each, taking turns.",
        header=["", *SUMMARY_HEADER],
        rows=[[name, *summary.cells(megabytes)] for name, summary in rows.items()],
        aims=[Aim(f"all cells but the lab under {AIM_MB} MB", megabytes(lesson), lesson < AIM_MB * 1e6)],
        not_said="what the machine must have free: part of the resident set is shared libraries that other kernels "
        "use too, and the JupyterLab server and the browser come on top.",
    )


def _kernel_memory(chosen: Callable[[str], bool]) -> tuple[int, int]:
    """Bytes held at the end and at the peak by a fresh kernel that ran the chosen code cells."""
    notebook = nbformat.read(LESSON, as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(LESSON.parent)}})
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type == "code" and chosen(cell.id):
                client.execute_cell(cell, index)
        provisioner: Any = client.km.provisioner if client.km else None
        return _resident(provisioner.pid)


def _resident(process: int) -> tuple[int, int]:
    """Resident bytes now and at the peak; where the system keeps no peak, the present figure twice."""
    now: int = psutil.Process(process).memory_info().rss
    status = Path(f"/proc/{process}/status")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return now, int(peak.group(1)) * 1024 if peak else now
