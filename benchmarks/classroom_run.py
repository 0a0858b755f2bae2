"""One class through one lesson: everybody opens it and moves sliders, and what that takes is noted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.classroom_learner import Learner, Manner
from benchmarks.classroom_server import Server, class_server, held
from benchmarks.memory import LESSON


@dataclass(frozen=True)
class ClassRun:
    """What one class took.

    Args:
        opened: seconds from each learner's start until the lesson had run.
        all_opened: seconds until all had.
        latencies: seconds from a change to the changed picture, of all learners.
        kernel_bytes: held by each kernel afterwards.
        server_bytes: held by the server.
        starting_seconds: processor time of the server before anybody came.
        lesson_seconds: processor time of server and kernels while all opened the lesson.
        moving_seconds, moving_for: processor time while sliders were moved, and how long that was.
        errors: in words.
        load: the machine's when the class began.
    """

    opened: Sequence[float]
    all_opened: float
    latencies: Sequence[float]
    kernel_bytes: Sequence[int]
    server_bytes: int
    starting_seconds: float
    lesson_seconds: float
    moving_seconds: float
    moving_for: float
    errors: Sequence[str]
    load: float

    @property
    def learners(self) -> int:
        return len(self.opened)

    @property
    def moving_cores(self) -> float:
        """Processors in use by each learner who moved a slider."""
        return self.moving_seconds / self.moving_for / self.learners if self.moving_for else 0.0

    @property
    def bytes_each(self) -> float:
        """A learner's part of everything that kernels and server hold."""
        return (sum(self.kernel_bytes) + self.server_bytes) / self.learners


def run_class(learners: int, manner: Manner, stagger: float = 0, lesson: Path = LESSON) -> ClassRun:
    """A fresh server, everybody's lesson, everybody's sliders.

    Args:
        stagger: seconds between one learner's start and the next one's.
    """
    load = psutil.getloadavg()[0]
    with class_server(lesson, learners) as (server, paths):
        taught = [Learner(server.address, server.token, path, manner, number) for number, path in enumerate(paths)]
        return asyncio.run(teach(server, taught, stagger, load))


async def teach(server: Server, learners: Sequence[Learner], stagger: float, load: float) -> ClassRun:
    """All learners through the lesson and the sliders, and what that took."""
    starting = server.processor_seconds()
    began = time.perf_counter()
    await asyncio.gather(*(_after(number * stagger, learner) for number, learner in enumerate(learners)))
    all_opened = time.perf_counter() - began
    taken = server.processor_seconds()
    began = time.perf_counter()
    await asyncio.gather(*(learner.move_sliders() for learner in learners))
    moving_for = time.perf_counter() - began if learners[0].manner.seconds else 0.0
    run = ClassRun(
        opened=[learner.opened for learner in learners],
        all_opened=all_opened,
        latencies=[latency for learner in learners for latency in learner.latencies],
        kernel_bytes=[held(kernel) for kernel in server.kernels()],
        server_bytes=held(server.process),
        starting_seconds=starting,
        lesson_seconds=taken - starting,
        moving_seconds=server.processor_seconds() - taken,
        moving_for=moving_for,
        errors=[error for learner in learners for error in learner.errors],
        load=load,
    )
    for learner in learners:
        learner.leave()
    return run


async def _after(delay: float, learner: Learner) -> None:
    await asyncio.sleep(delay)
    await learner.run_lesson()
