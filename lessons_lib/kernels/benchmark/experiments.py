"""One experiment from tensors to figures: warm up, poison, time in rounds, run once more, check, count launches.

Knows no GPU: the stopwatch, the profiler and what running out of memory looks like come from outside, so that the
same code measures on a GPU and is rehearsed on a CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.kernels.benchmark.measuring import Action, HostStopwatch, Stopwatch, measure_rounds, repeated
from lessons_lib.kernels.benchmark.prediction import Experiment, PlanName
from lessons_lib.kernels.benchmark.runs import ExperimentRun, PlanRun
from lessons_lib.kernels.benchmark.workloads import PlanCall, Workload, largest_error, poison
from lessons_lib.kernels.mode import first_line

SMALLEST_BYTES = 2**20  # of a tensor: below it halving gives no memory worth having


@dataclass(frozen=True)
class Bench:
    """What an experiment is run with.

    Args:
        stopwatch: of the device.
        count_launches: kernels that an action launches; ``None`` where they cannot be counted.
        ran_out_of_memory: whether an error says that.
        release: gives memory back that nothing holds any more.
        out_of_time: whether the run should come to its end: plans not yet begun are then left out.
        advance: called whenever a plan has been prepared, and once for the rounds of an experiment.
        fewest, most, budget_seconds: rounds, as in ``measure_rounds``.
        calls: of a plan that is timed by the host's clock, in one round.
    """

    stopwatch: Stopwatch[Any]
    count_launches: Callable[[Action], int | None] = lambda action: None
    ran_out_of_memory: Callable[[BaseException], bool] = lambda error: isinstance(error, MemoryError)
    release: Callable[[], None] = lambda: None
    out_of_time: Callable[[], bool] = lambda: False
    advance: Callable[[], None] = lambda: None
    fewest: int = 10
    most: int = 100
    budget_seconds: float = 2.0
    calls: int = 200


def run_experiment(experiment: Experiment, make: Callable[[Experiment], Workload], bench: Bench) -> ExperimentRun:
    """Every plan of the experiment, timed in the same rounds; with half the rows where memory does not suffice.

    A plan that raises is ``failed`` with the error's first line; the others go on. Never raises, save for what stops
    a program.
    """
    requested = experiment.rows
    while True:
        try:
            return ExperimentRun(experiment, requested, _plans_at(experiment, make, bench))
        except Exception as error:
            if not bench.ran_out_of_memory(error):
                return _all_failed(experiment, requested, failure(error))
        # Outside the handler: its traceback holds the tensors.
        bench.release()
        if experiment.tensor_bytes <= SMALLEST_BYTES or experiment.rows == 1:
            return _all_failed(experiment, requested, _NO_MEMORY)
        experiment = experiment.halved()


def size_note(entry: ExperimentRun) -> Text | None:
    """That the tensors were made smaller, and how much; ``None`` if they were not."""
    if entry.experiment.rows == entry.requested_rows:
        return None
    used = entry.experiment.tensor_bytes
    return _SIZED_DOWN.format(
        asked=format_bytes(used // entry.experiment.rows * entry.requested_rows), used=format_bytes(used)
    )


def failure(error: BaseException) -> Text:
    """An error's kind and first line, without control characters: fit for a record."""
    words = "".join(character if character.isprintable() else " " for character in first_line(error))
    return Text(zh=words, en=words)


def _plans_at(experiment: Experiment, make: Callable[[Experiment], Workload], bench: Bench) -> tuple[PlanRun, ...]:
    workload = make(experiment)
    finished = {name: PlanRun(name, "absent", note=words) for name, words in workload.absent.items()}
    ready: dict[PlanName, PlanCall] = {}
    for name, call in workload.plans.items():
        problem = _problem_of_first_run(call, bench)
        if problem is None:
            ready[name] = call
        else:
            finished[name] = problem_run(name, *problem)
        bench.advance()
    for name, seconds in _timed(experiment, ready, bench).items():
        finished[name] = _checked(name, ready[name], workload, Spread.of(seconds), bench)
    bench.advance()
    order = (*experiment.calibrations, *experiment.plans)
    return tuple(finished[name] for name in order if name in finished)


def problem_run(name: PlanName, skipped: bool, words: Text) -> PlanRun:
    return PlanRun(name, "skipped" if skipped else "failed", note=words)


def _problem_of_first_run(call: PlanCall, bench: Bench) -> tuple[bool, Text] | None:
    """What keeps a plan from being timed: (whether it was not even tried, why); ``None``: it runs."""
    if bench.out_of_time():
        return True, _NO_TIME
    try:
        poison(call.run())
        bench.stopwatch.synchronize()
    except Exception as error:
        if bench.ran_out_of_memory(error):
            raise
        return False, failure(error)
    return None


def _timed(experiment: Experiment, ready: dict[PlanName, PlanCall], bench: Bench) -> dict[PlanName, list[float]]:
    if not ready:
        return {}
    stopwatch = bench.stopwatch
    actions: dict[PlanName, Action] = {name: call.run for name, call in ready.items()}
    if experiment.clock == "host":
        stopwatch = HostStopwatch(stopwatch, bench.calls)
        actions = {name: repeated(action, bench.calls) for name, action in actions.items()}
    return measure_rounds(
        actions, stopwatch, fewest=bench.fewest, most=bench.most, budget_seconds=bench.budget_seconds
    )


def _checked(name: PlanName, call: PlanCall, workload: Workload, seconds: Spread, bench: Bench) -> PlanRun:
    """The plan once more, in memory full of NaN, against float64; and its launches."""
    poison(call.run())  # its memory is what the next call is given
    outputs = call.run()
    error = largest_error(outputs, call, workload.tolerance)
    poison(outputs)
    del outputs
    return PlanRun(
        name,
        "ok" if error <= 1 else "wrong",
        seconds,
        launches=bench.count_launches(call.run),
        error=error if math.isfinite(error) else None,
    )


def _all_failed(experiment: Experiment, requested: int, words: Text) -> ExperimentRun:
    names = (*experiment.calibrations, *experiment.plans)
    return ExperimentRun(experiment, requested, tuple(PlanRun(name, "failed", note=words) for name in names))


_NO_TIME = Text(zh="时间用完了", en="no time was left")
_NO_MEMORY = Text(zh="缩小之后内存还是不够", en="memory does not suffice, however small the tensors")
_SIZED_DOWN = Text(
    zh="内存不够，张量从 {asked} 缩小到 {used}；比值的含义不变。",
    en="Memory was short: the tensors were made {used} instead of {asked}. The ratios mean the same.",
)
