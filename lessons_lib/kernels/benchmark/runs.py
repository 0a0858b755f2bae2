"""One run of the benchmark: what was measured, on what, and the file it is kept in.

A run is only ever written by ``benchmark.py`` on the device it names. Pure: reading one needs neither torch nor triton.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from lessons_lib.base.gpus import GPUS, Gpu
from lessons_lib.base.roofline import Interval
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, require_choice, require_int, require_name, require_real
from lessons_lib.kernels.benchmark.json_record import UNRECORDED, from_json, to_json
from lessons_lib.kernels.benchmark.prediction import (
    LARGEST_SIZE,
    LAUNCH_SECONDS,
    Experiment,
    ExperimentName,
    PlanName,
    Rates,
    plan_bytes,
    plan_kernels,
    predict_plan,
)

SCHEMA = 1
RECORDED = Path(__file__).parents[1] / "recorded"

Status = Literal["ok", "wrong", "failed", "skipped", "absent"]

_LARGEST_FILE = 2**20
_LONGEST_SECONDS = 3600.0


@dataclass(frozen=True)
class RunEnvironment:
    """What a run was made on: enough to judge its figures, nothing that names a person or a place.

    Args:
        gpu: as the driver calls it.
        known_as: the entry of ``GPUS`` with this device's datasheet; ``None``: the course has none.
        vendor: ``"NVIDIA"`` or ``"AMD"``.
        capability: NVIDIA's compute capability, ``"7.5"`` say; on AMD the compiler's target, ``"gfx942"``.
        memory_bytes, l2_bytes, sm_count: as the driver reports them; ``None`` where it does not.
        driver, liger: versions; ``None`` where not known or not installed.
        toolkit: the CUDA or ROCm version that torch was built with.
        date: ``YYYY-MM-DD`` in UTC.
    """

    gpu: str
    known_as: str | None
    vendor: Literal["NVIDIA", "AMD"]
    capability: str
    memory_bytes: int | None
    l2_bytes: int | None
    sm_count: int | None
    driver: str | None
    toolkit: str | None
    torch: str
    triton: str
    liger: str | None
    python: str
    system: str
    course: str
    date: str

    def __post_init__(self) -> None:
        for name in ("gpu", "capability", "torch", "triton", "python", "system", "course"):
            require_name(name, getattr(self, name))
        if self.known_as is not None:
            require_choice("known_as", self.known_as, GPUS)
        _require_date("date", self.date)
        for name in ("memory_bytes", "l2_bytes", "sm_count"):
            if getattr(self, name) is not None:
                require_int(name, getattr(self, name), 1, LARGEST_SIZE)

    @property
    def datasheet(self) -> Gpu | None:
        return None if self.known_as is None else GPUS[self.known_as]

    @property
    def tensor_cores(self) -> bool:
        """Whether Triton's fp16 ``dot`` reaches the matrix units: AMD, or compute capability 8.0 and later."""
        return self.vendor == "AMD" or _major(self.capability) >= 8


@dataclass(frozen=True)
class PlanRun:
    """One plan, timed.

    Args:
        status: ``"ok"``; ``"wrong"``: timed, but the output is not right; ``"failed"``: it raised; ``"skipped"``: no
            time or memory was left; ``"absent"``: the library is not installed, or the plan does not exist here.
        seconds: of one call, over the rounds; only where it was timed.
        launches: kernels counted by ``torch.profiler``; ``None`` where it counts none.
        error: the largest deviation from float64, as a share of what is tolerated; ``None`` where not finite.
        note: why there is no time, or what else to know.

    Raises:
        ValueError: fields that contradict each other or are out of range.
    """

    name: PlanName
    status: Status
    seconds: Spread | None = None
    launches: int | None = None
    error: float | None = None
    note: Text | None = None

    def __post_init__(self) -> None:
        require_choice("name", self.name, get_args(PlanName))
        require_choice("status", self.status, get_args(Status))
        if (self.seconds is not None) != (self.status in ("ok", "wrong")):
            raise bad_argument(
                "seconds", zh="计过时的方案才有耗时，也必须有", en="a plan that was timed has them, another has none"
            )
        if self.seconds is not None:
            _require_spread("seconds", self.seconds)
        if self.launches is not None:
            require_int("launches", self.launches, 0, 10_000)
        if self.error is not None:
            require_real("error", self.error, 0)
        if self.status == "ok" and (self.error is None or self.error > 1):
            raise bad_argument(
                "error", zh="结果正确的方案误差不超过容差", en="a right output is within its tolerance"
            )


@dataclass(frozen=True)
class ExperimentRun:
    """One experiment: all its plans, timed in the same rounds.

    ``experiment`` has the size that was used, ``requested_rows`` what it was before memory ran out.
    """

    experiment: Experiment
    requested_rows: int
    plans: tuple[PlanRun, ...]

    def __post_init__(self) -> None:
        require_int("requested_rows", self.requested_rows, self.experiment.rows, LARGEST_SIZE)
        names = [plan.name for plan in self.plans]
        for name in names:
            require_choice("plans", name, (*self.experiment.plans, *self.experiment.calibrations))
        _require_distinct("plans", names)

    def plan(self, name: PlanName) -> PlanRun | None:
        return next((plan for plan in self.plans if plan.name == name), None)

    def seconds(self, name: PlanName) -> Spread | None:
        """The times of a plan whose output is right; ``None`` without them."""
        plan = self.plan(name)
        return plan.seconds if plan is not None and plan.status == "ok" else None

    def median(self, name: PlanName) -> float | None:
        spread = self.seconds(name)
        return None if spread is None else spread.median


@dataclass(frozen=True)
class Run:
    """Everything that one call of ``run_benchmark`` found.

    ``recorded_as`` is the name of the file it was read from; ``None`` for one that was just made.
    """

    schema: int
    quick: bool
    environment: RunEnvironment
    experiments: tuple[ExperimentRun, ...]
    recorded_as: str | None = field(default=None, metadata=UNRECORDED)

    def __post_init__(self) -> None:
        _require_schema(self.schema)
        _require_distinct("experiments", [entry.experiment.name for entry in self.experiments])

    def experiment(self, name: ExperimentName) -> ExperimentRun | None:
        return next((entry for entry in self.experiments if entry.experiment.name == name), None)

    @property
    def copy_bandwidth(self) -> float | None:
        """Bytes per second of the faster of two copies, timed in the rounds of the chain; ``None`` without it."""
        chain = self.experiment("chain")
        if chain is None:
            return None
        plans: tuple[PlanName, ...] = ("copy", "copy_kernel")
        times = [(plan_bytes(chain.experiment, plan), chain.median(plan)) for plan in plans]
        return max((size / seconds for size, seconds in times if seconds), default=None)

    def rates(self, entry: ExperimentRun) -> Rates | None:
        """This device's rates as the run measured them, for one experiment; ``None`` without a measured copy.

        The GEMM rate is that of the bare library GEMM timed in the experiment's own rounds; the fp32 rate is the
        datasheet's, for nothing here measures it.
        """
        if self.copy_bandwidth is None:
            return None
        gemm, sheet, launch = entry.median("gemm"), self.environment.datasheet, self._launch_seconds("launch")
        launch = LAUNCH_SECONDS if launch is None else launch
        return Rates(
            bandwidth=self.copy_bandwidth,
            fp32_flops=None if sheet is None else sheet.fp32_flops,
            gemm_flops=entry.experiment.gemm_operations / gemm if gemm else None,
            tensor_cores=self.environment.tensor_cores,
            launch_seconds=launch,
            wrapper_seconds=max(launch, self._launch_seconds("wrapper") or 0.0),
            measured=True,
        )

    def predicted(self, entry: ExperimentRun, plan: PlanName) -> Interval | None:
        """What the plan was expected to take at this run's own rates; ``None`` where a rate is missing."""
        rates = self.rates(entry)
        return None if rates is None else predict_plan(entry.experiment, plan, rates)

    def share_of_copy(self, entry: ExperimentRun, plan: PlanName) -> float | None:
        """Logical bytes per second of a plan, as a share of the copy's; ``None`` without one of the two."""
        seconds = entry.median(plan)
        if seconds is None or self.copy_bandwidth is None:
            return None
        return plan_bytes(entry.experiment, plan) / seconds / self.copy_bandwidth

    def predicted_launches(self, entry: ExperimentRun, plan: PlanName) -> int:
        return len(plan_kernels(entry.experiment, plan, self.environment.tensor_cores))

    def _launch_seconds(self, plan: PlanName) -> float | None:
        tiny = self.experiment("tiny")
        return None if tiny is None else tiny.median(plan)


# -- files ---------------------------------------------------------------------------------------------------


def run_text(run: Run) -> str:
    """The run as the text of its file."""
    return json.dumps(to_json(run), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_run(run: Run, path: str | Path) -> None:
    """Write the run as JSON.

    Raises:
        OSError: the file cannot be written.
    """
    Path(path).write_text(run_text(run), encoding="utf-8")


def read_run(path: str | Path) -> Run:
    """The run in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no run of this version, or its figures contradict each other; the message names the file
            and the place in it, in both languages.
    """
    path = Path(path)
    if path.stat().st_size > _LARGEST_FILE:
        raise bad_argument(path.name, zh="文件超过 1 MiB，不是一次运行的记录", en="over 1 MiB: no record of a run")
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise bad_argument(path.name, zh="不是合法的 JSON 文件", en="it is no valid JSON file") from error
    version = data.get("schema") if isinstance(data, dict) else None
    if isinstance(version, int) and version != SCHEMA:  # before the keys: another version has others
        _require_schema(version)
    run: Run = from_json(Run, data, path.name)
    return replace(run, recorded_as=path.name)


def recorded_runs(folder: str | Path = RECORDED) -> tuple[Run, ...]:
    """The runs that come with the course, newest first; full ones before quick ones of the same day.

    Raises:
        ValueError: a file among them is no run.
    """
    runs = [read_run(path) for path in sorted(Path(folder).glob("*.json"))]
    return tuple(sorted(runs, key=lambda run: (run.environment.date, not run.quick), reverse=True))


def _no_constant(name: str) -> float:
    raise ValueError(name)


# -- checks --------------------------------------------------------------------------------------------------


def _require_schema(version: int) -> None:
    if version != SCHEMA:
        raise bad_argument(
            "schema",
            zh=f"这份课程读第 {SCHEMA} 版格式，文件是第 {version} 版",
            en=f"this copy of the course reads version {SCHEMA}, the file is version {version}",
        )


def _require_spread(name: str, spread: Spread) -> None:
    """Times that a set of samples can have: positive, in order, and not absurdly long."""
    require_int(f"{name}.count", spread.count, 1, 1_000_000)
    require_real(f"{name}.smallest", spread.smallest, above=0)
    if not 0 < spread.smallest <= spread.low <= spread.median <= spread.high <= _LONGEST_SECONDS:
        raise bad_argument(
            name,
            zh="最小值、20 百分位、中位数、80 百分位没有依次增大，或者超过一小时",
            en="smallest, 20th percentile, median and 80th percentile do not ascend, or exceed an hour",
        )


def _require_distinct(name: str, items: Iterable[str]) -> None:
    seen: set[str] = set()
    for item in items:
        if item in seen:
            raise bad_argument(name, zh=f"{item!r} 出现了两次", en=f"{item!r} appears twice")
        seen.add(item)


def _require_date(name: str, value: str) -> None:
    import datetime

    try:
        if datetime.date.fromisoformat(value).isoformat() == value:
            return
    except ValueError:
        pass
    raise bad_argument(name, zh=f"需要 YYYY-MM-DD，收到的是 {value!r}", en=f"it must be YYYY-MM-DD, got {value!r}")


def _major(capability: str) -> int:
    digits = capability.split(".")[0]
    return int(digits) if digits.isdecimal() else 0
