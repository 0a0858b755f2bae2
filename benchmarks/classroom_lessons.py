# mypy: untyped-calls-exclude=nbformat
"""What each lesson takes when all of it is run: its kernel and every process the kernel starts, compilers included."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbclient import NotebookClient

from benchmarks.browser import ROOT
from benchmarks.classroom_server import held
from benchmarks.results import Aim, Section
from benchmarks.summary import megabytes, seconds

LESSONS = ROOT / "notebooks" / "en"
SAMPLED_EVERY = 0.1
CELL_SECONDS = 600
# What deploy/values.yaml lets one learner have, less a server; tests hold the two together.
LIMIT_MB = 3_000


@dataclass
class Taken:
    """Bytes held by a lesson's kernel and its children: at the end, and at the peak; seconds that the lesson took."""

    lesson: str
    end: int = 0
    peak: int = 0
    seconds: float = field(default=0.0)


def measure() -> Section:
    """Every built lesson in a fresh kernel, one after the other."""
    return section([run_lesson(path) for path in sorted(LESSONS.glob("*.ipynb"))])


def run_lesson(path: Path) -> Taken:
    """All cells of a notebook; a cell that raises ends the run."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=CELL_SECONDS, resources={"metadata": {"path": str(path.parent)}})
    taken, began = Taken(path.stem), time.perf_counter()
    with client.setup_kernel():
        provisioner: Any = client.km.provisioner if client.km else None
        kernel = psutil.Process(provisioner.pid)
        with _watched(kernel, taken):
            for index, cell in enumerate(notebook.cells):
                if cell.cell_type == "code":
                    client.execute_cell(cell, index)
        taken.end = _family(kernel)
    taken.seconds = time.perf_counter() - began
    return taken


def section(lessons: Sequence[Taken]) -> Section:
    """One row a lesson."""
    together = sum(lesson.end for lesson in lessons) + max(lesson.peak - lesson.end for lesson in lessons)
    return Section(
        title="Classroom: memory of each lesson",
        how="Every cell of every lesson in a fresh kernel; kernel and all its child processes, proportional set size, "
        f"looked at every {SAMPLED_EVERY:g} s. The cache of compiler reports is as it was found.",
        header=["", "at the end", "at the peak", "time for all cells", "100 such kernels at the end"],
        rows=[
            [
                lesson.lesson,
                megabytes(lesson.end),
                megabytes(lesson.peak),
                seconds(lesson.seconds),
                f"100 × {megabytes(lesson.end)} = {lesson.end / 1e7:.1f} GB",
            ]
            for lesson in lessons
        ],
        aims=[
            Aim(
                f"all these kernels open at once, one of them at its peak: under {LIMIT_MB:,} MB",
                megabytes(together),
                together < LIMIT_MB * 1e6,
            )
        ],
        not_said="the server beside the kernel; a peak shorter than the time between two looks; a model that a learner "
        "brings along to lesson 04.",
    )


@contextmanager
def _watched(kernel: psutil.Process, taken: Taken) -> Iterator[None]:
    """Keep the largest sum while the block runs."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLED_EVERY):
            taken.peak = max(taken.peak, _family(kernel))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _family(kernel: psutil.Process) -> int:
    """Bytes held by a kernel and its children; one that has just ended holds nothing."""
    total = 0
    for process in (kernel, *kernel.children(recursive=True)):
        try:
            total += held(process)
        except psutil.Error:
            continue
    return total


if __name__ == "__main__":
    print(measure().markdown())
