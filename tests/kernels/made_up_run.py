"""Runs made up for tests: no such GPU exists, and nothing was measured. Their times are the predictions, scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lessons_lib.base.gpus import GPUS
from lessons_lib.base.roofline import Interval
from lessons_lib.base.spread import Spread
from lessons_lib.kernels.benchmark.prediction import (
    Experiment,
    ExperimentName,
    PlanName,
    Rates,
    experiments,
    plan_bytes,
    plan_kernels,
    predict_plan,
)
from lessons_lib.kernels.benchmark.runs import SCHEMA, ExperimentRun, PlanRun, Run, RunEnvironment

COPY_BANDWIDTH = 250e9
GEMM_FLOPS = 40e12
LAUNCH, WRAPPER = 6e-6, 40e-6

ENVIRONMENT = RunEnvironment(
    gpu="made up for a test",
    known_as="T4",
    vendor="NVIDIA",
    capability="7.5",
    memory_bytes=16 * 2**30,
    l2_bytes=4 * 2**20,
    sm_count=40,
    driver="0.0",
    toolkit="0.0",
    torch="0.0+made.up",
    triton="0.0",
    liger=None,
    python="3.11.0",
    system="Linux",
    course="0.1.0",
    date="2001-02-03",
)
AMPERE = replace(ENVIRONMENT, known_as="A10", capability="8.6", l2_bytes=6 * 2**20)

Factors = Mapping[tuple[ExperimentName, PlanName], float]


def steady(seconds: float, width: float = 0.02) -> Spread:
    """Samples around ``seconds`` whose 20th to 80th percentile is ``width`` of it."""
    low, high = seconds * (1 - width / 2), seconds * (1 + width / 2)
    return Spread(seconds, low, high, low, 50)


def made_up_run(
    factors: Factors = {},  # noqa: B006
    environment: RunEnvironment = ENVIRONMENT,
    quick: bool = True,
    without: tuple[PlanName, ...] = ("liger",),
) -> Run:
    """Every plan takes the middle of its predicted interval, times its factor; launches are as predicted."""
    entries = [_entry(experiment, factors, environment, without) for experiment in experiments(quick)]
    return Run(SCHEMA, quick, environment, tuple(entries))


def changed(run: Run, experiment: ExperimentName, plan: PlanName, **fields: object) -> Run:
    """The run with some fields of one plan replaced."""
    entries = []
    for entry in run.experiments:
        plans = entry.plans
        if entry.experiment.name == experiment:
            plans = tuple(replace(p, **fields) if p.name == plan else p for p in plans)  # type: ignore[arg-type]
        entries.append(replace(entry, plans=plans))
    return replace(run, experiments=tuple(entries))


def entry_of(run: Run, experiment: ExperimentName) -> ExperimentRun:
    entry = run.experiment(experiment)
    assert entry is not None
    return entry


def plan_of(run: Run, experiment: ExperimentName, plan: PlanName) -> PlanRun:
    found = entry_of(run, experiment).plan(plan)
    assert found is not None
    return found


def _entry(
    experiment: Experiment, factors: Factors, environment: RunEnvironment, without: tuple[PlanName, ...]
) -> ExperimentRun:
    sheet = GPUS[environment.known_as or "T4"]
    rates = Rates(COPY_BANDWIDTH, sheet.fp32_flops, GEMM_FLOPS, environment.tensor_cores, LAUNCH, WRAPPER, True)
    plans = []
    for name in (*experiment.calibrations, *experiment.plans):
        if name in without:
            plans.append(PlanRun(name, "absent"))
            continue
        seconds = _seconds(experiment, name, rates) * factors.get((experiment.name, name), 1.0)
        launches = len(plan_kernels(experiment, name))
        plans.append(PlanRun(name, "ok", steady(seconds), launches=launches, error=0.25))
    return ExperimentRun(experiment, experiment.rows, tuple(plans))


def _seconds(experiment: Experiment, plan: PlanName, rates: Rates) -> float:
    fixed = {
        "copy": plan_bytes(experiment, plan) / COPY_BANDWIDTH,
        "copy_kernel": 1.1 * plan_bytes(experiment, plan) / COPY_BANDWIDTH,
        "gemm": experiment.gemm_operations / GEMM_FLOPS,
        "launch": LAUNCH,
        "wrapper": WRAPPER,
    }
    if plan in fixed:
        return fixed[plan]
    predicted = predict_plan(experiment, plan, rates)
    assert isinstance(predicted, Interval)
    return (predicted.low + predicted.high) / 2
