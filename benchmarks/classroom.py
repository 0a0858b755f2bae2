"""A class on one machine: N learners open lesson 01, run it and move sliders, through one real Jupyter server.

``python -m benchmarks.classroom --short`` tries it with two learners for a few seconds.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.classroom_hub import Arrival, NoHubError, arrival
from benchmarks.classroom_learner import Manner
from benchmarks.classroom_run import ClassRun, run_class
from benchmarks.classroom_sizing import Node, Share, sizing_header, sizing_rows
from benchmarks.memory import LAB_CELLS
from benchmarks.results import Aim, Section, markdown_table
from benchmarks.summary import Summary, megabytes, milliseconds, percentile, seconds

CLASSES = (1, 10, 30)
MANNER = Manner(left_out=LAB_CELLS)
STAGGER_SECONDS = 1.0
SHORT_CLASSES, SHORT_MANNER, SHORT_STAGGER_SECONDS = (2,), replace(MANNER, seconds=4), 0.5

AIM_MS = 500
AIM_MB = 120

SIZED = (100, 1_000)
OPENING_SECONDS = 300
NODE = Node(cores=8, bytes=32e9)


def measure() -> Section:
    """Classes of each size, all starting at once; the largest once more, one learner after the other."""
    return measured(CLASSES, MANNER, STAGGER_SECONDS)


def measured(classes: Sequence[int], manner: Manner, stagger: float) -> Section:
    """The classes of these sizes and their section."""
    runs = [run_class(count, manner) for count in classes]
    staggered = run_class(classes[-1], replace(manner, seconds=0), stagger)
    come: Arrival | NoHubError
    try:
        come = arrival(manner)
    except NoHubError as error:
        come = error
    return section(runs, staggered, manner, stagger, come)


# -- the section ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassSection(Section):
    """A section with what larger classes take under its tables."""

    sizing: str = ""

    def markdown(self) -> str:
        """The section, and the sizing as a part of it."""
        return f"{super().markdown()}\n\n{self.sizing}"


def section(
    runs: Sequence[ClassRun], staggered: ClassRun, manner: Manner, stagger: float, come: Arrival | NoHubError
) -> ClassSection:
    """The figures of classes that start at once, of one whose learners start ``stagger`` seconds apart, and of a hub."""
    largest = runs[-1]
    return ClassSection(
        title="Classroom: one server, many learners",
        how="One JupyterLab server, a kernel and a websocket for each learner, as a browser has them, all on this "
        f"machine, the simulated learners too. Each opens a copy of lesson 01, runs all cells but the lab and moves "
        f"the panel's sliders for {manner.seconds:.0f} s, a change every 1 to 2 s. Latency: from sending a change to "
        f"the changed picture. Memory after that: proportional set size, shared pages divided among their users. "
        f"Load when each class began: {', '.join(f'{run.load:.1f}' for run in (*runs, staggered))} (the last: staggered).",
        header=["", *(f"{run.learners} learner{'s'[: run.learners > 1]}" for run in runs)],
        rows=_rows(runs, staggered, stagger),
        aims=_aims(largest),
        not_said="the delay of a network, or the time a browser takes to load JupyterLab itself and to draw. The learners' "
        "programs run on the same cores and take a part of them. The lab allocates some 300 MB for a few seconds: a class "
        "that runs it at once needs that on top, or takes turns.",
        sizing=sizing(come),
    )


def _rows(runs: Sequence[ClassRun], staggered: ClassRun, stagger: float) -> list[list[str]]:
    blank = [""] * (len(runs) - 1)
    return [
        ["all start at once: until all have run the lesson", *(seconds(run.all_opened) for run in runs)],
        [
            f"one starts every {stagger:g} s: a learner's own time, median",
            *blank,
            seconds(Summary.of(staggered.opened).median),
        ],
        ["the same, longest", *blank, seconds(max(staggered.opened))],
        ["change → changed picture, median", *(_latency(run, 50) for run in runs)],
        ["change → changed picture, 95th percentile", *(_latency(run, 95) for run in runs)],
        ["pictures received", *(f"{len(run.latencies):,}" for run in runs)],
        ["errors: cells that raised, timeouts, lost pictures", *(str(len(run.errors)) for run in runs)],
        ["a kernel, median", *(megabytes(Summary.of(run.kernel_bytes).median) for run in runs)],
        ["a kernel, largest", *(megabytes(max(run.kernel_bytes)) for run in runs)],
        ["the server", *(megabytes(run.server_bytes) for run in runs)],
        ["kernels and server ÷ learners", *(megabytes(run.bytes_each) for run in runs)],
        [
            "processor time to open and run the lesson, each",
            *(seconds(run.lesson_seconds / run.learners) for run in runs),
        ],
        ["cores in use while moving sliders, all", *(f"{run.moving_cores * run.learners:.2f}" for run in runs)],
    ]


def _latency(run: ClassRun, percent: int) -> str:
    return milliseconds(percentile(run.latencies, percent) * 1000) if run.latencies else "no picture"


def _aims(run: ClassRun) -> list[Aim]:
    """What was hoped for of the largest class."""
    slow = percentile(run.latencies, 95) * 1000 if run.latencies else math.inf
    errors = f"{len(run.errors)}, the first: {run.errors[0]}" if run.errors else "none"
    largest = max(run.kernel_bytes)
    who = f"{run.learners} learners"
    return [
        Aim(f"{who}: no error", errors, not run.errors),
        Aim(f"{who}: 95th percentile under {AIM_MS} ms", _latency(run, 95), slow < AIM_MS),
        Aim(f"{who}: every kernel under {AIM_MB} MB", megabytes(largest), largest < AIM_MB * 1e6),
    ]


# -- larger classes -------------------------------------------------------------------------------------------


def sizing(come: Arrival | NoHubError) -> str:
    """What 100 and 1,000 learners take, each with a server of their own, as JupyterHub gives them."""
    if isinstance(come, NoHubError):
        return f"### Larger classes\n\nNot measured: {come}."
    alone = come.run
    share = Share(
        server_bytes=alone.server_bytes,
        kernel_bytes=max(alone.kernel_bytes),
        moving_cores=alone.moving_cores,
        starting_seconds=alone.starting_seconds,
        lesson_seconds=alone.lesson_seconds,
    )
    one = [
        ["the learner's server", megabytes(share.server_bytes)],
        ["the learner's kernel", megabytes(share.kernel_bytes)],
        ["server and kernel", megabytes(share.server_bytes + share.kernel_bytes)],
        ["processor time: the server starts", seconds(share.starting_seconds)],
        ["processor time: the lesson is opened and run", seconds(share.lesson_seconds)],
        ["cores in use while moving sliders", f"{share.moving_cores:.3f}"],
        ["change → changed picture, through the hub's proxy, median", _latency(alone, 50)],
        ["errors", str(len(alone.errors))],
        ["the hub, one learner there", megabytes(come.hub_bytes)],
        ["the proxy, one learner there", megabytes(come.proxy_bytes)],
        ["processor time of the hub: one learner arrives", seconds(come.hub_seconds)],
    ]
    return "\n\n".join(
        [
            "### Larger classes",
            "JupyterHub (`deploy/`) gives each learner a server of their own. One learner on a hub on this machine, the same "
            "lesson and sliders:",
            markdown_table(["", "one learner"], one),
            "So many learners take, besides hub and proxy:",
            markdown_table(sizing_header(NODE, OPENING_SECONDS), sizing_rows(SIZED, share, OPENING_SECONDS, NODE)),
            _arrivals(come.hub_seconds),
        ]
    )


def _arrivals(hub_seconds: float) -> str:
    """The hub is one process on one core: nothing but time helps it."""
    waits = [f"{count:,} × {hub_seconds:.2f} s = {count * hub_seconds / 60:.1f} minutes" for count in SIZED]
    return (
        f"The hub is one process. Arrivals take it at least {' and '.join(waits)}, on a cluster of any size (there, "
        "talking to Kubernetes comes on top): let large classes log in before the hour."
    )


def main() -> None:
    """``python -m benchmarks.classroom [--short]`` prints the section and writes nothing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classroom", description=__doc__)
    parser.add_argument("--short", action="store_true", help="two learners for a few seconds, to see that it runs")
    short = parser.parse_args().short
    print((measured(SHORT_CLASSES, SHORT_MANNER, SHORT_STAGGER_SECONDS) if short else measure()).markdown())


if __name__ == "__main__":
    main()
