"""The server of a class and what it costs: one JupyterLab, its kernels, their memory and processor time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from benchmarks.browser import jupyter_lab


@dataclass(frozen=True)
class Server:
    """A running server over one folder a learner.

    Args:
        address, token: where it listens, and what it asks for.
        process: the server itself.
        folder: what it serves.
    """

    address: str
    token: str
    process: psutil.Process
    folder: Path

    def kernels(self) -> list[psutil.Process]:
        """The kernels that run now."""
        return [child for child in self.process.children(recursive=True) if "ipykernel_launcher" in _command(child)]

    def processor_seconds(self) -> float:
        """Processor time so far of the server and the kernels that run now."""
        return sum(processor_seconds(process) for process in (self.process, *self.kernels()))


@contextmanager
def class_server(lesson: Path, learners: int) -> Iterator[tuple[Server, list[str]]]:
    """A JupyterLab over a temporary folder, and the path of each learner's own copy of ``lesson``."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "class"
        paths = [f"learner-{number:02}/{lesson.name}" for number in range(1, learners + 1)]
        for path in paths:
            (folder / path).parent.mkdir(parents=True)
            shutil.copyfile(lesson, folder / path)
        with jupyter_lab(folder, Path(scratch) / "jupyter") as lab:
            port = f"--ServerApp.port={urlsplit(lab.address).port}"
            yield Server(lab.address, lab.token, with_argument(psutil.Process(), port), folder), paths


def held(process: psutil.Process) -> int:
    """Bytes that a process holds: where the system can say so, pages shared by n processes count 1/n in each.

    Linux's proportional set size; elsewhere what belongs to the process alone.
    """
    found = process.memory_full_info()
    return int(getattr(found, "pss", found.uss))


def processor_seconds(process: psutil.Process) -> float:
    """Processor time so far of one process."""
    times = process.cpu_times()
    return float(times.user + times.system)


def with_argument(parent: psutil.Process, argument: str) -> psutil.Process:
    """The descendant of ``parent`` that was started with ``argument``."""
    return next(child for child in parent.children(recursive=True) if argument in _command(child))


def _command(process: psutil.Process) -> list[str]:
    try:
        command: list[str] = process.cmdline()
    except psutil.Error:  # it has just ended
        return []
    return command
