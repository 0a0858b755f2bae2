"""What the course's kernels aim at on a GPU, and what a run says of each aim: met, missed or open. Pure numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_ratio
from lessons_lib.kernels.benchmark.prediction import PLAN_WORDS, PlanName, plan_bytes
from lessons_lib.kernels.benchmark.runs import ExperimentRun, Run

AimStatus = Literal["met", "missed", "open"]

COPY_SHARE = 0.92
RATIO_TOLERANCE = 0.15
LIBRARY_TOLERANCE = 1.10
_CACHE_MARGIN = 2  # a tensor must be this many times the L2, or a cache and not memory is measured


@dataclass(frozen=True)
class Aim:
    """One aim beside what was found.

    Args:
        name: for programs.
        words: what is aimed at.
        status: ``"open"`` where no run can tell.
        found: the figure, or why there is none.
    """

    name: str
    words: Text
    status: AimStatus
    found: Text


def aims(run: Run | None) -> tuple[Aim, ...]:
    """Every aim, judged by ``run``; all open without one."""
    return tuple(_judged(name, words, judge, run) for name, words, judge in _AIMS)


class _Open(Exception):  # noqa: N818
    """Why this run cannot tell."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason.en)
        self.reason = reason


_Judge = Callable[[Run], tuple[bool, Text]]


def _judged(name: str, words: Text, judge: _Judge, run: Run | None) -> Aim:
    if run is None:
        return Aim(name, words, "open", _NO_RUN)
    try:
        met, found = judge(run)
    except _Open as unknown:
        return Aim(name, words, "open", unknown.reason)
    return Aim(name, words, "met" if met else "missed", found)


# -- one judge an aim ----------------------------------------------------------------------------------------


def _chain_bandwidth(run: Run) -> tuple[bool, Text]:
    entry = _large(run, "chain")
    share = run.share_of_copy(entry, "fused")
    if share is None:
        raise _Open(_NOT_TIMED)
    return share >= COPY_SHARE, Text(zh=f"{share:.1%}", en=f"{share:.1%}")


def _chain_against_compiled(run: Run) -> tuple[bool, Text]:
    return _at_least_as_fast(_large(run, "chain"), ("compiled",))


def _chain_ratio(run: Run) -> tuple[bool, Text]:
    entry = _large(run, "chain")
    counted = plan_bytes(entry.experiment, "groups_4") / plan_bytes(entry.experiment, "fused")
    measured = _seconds(entry, "groups_4") / _seconds(entry, "fused")
    words = Text(zh="实测 {measured}，按字节 {counted}", en="{measured} measured, {counted} by bytes")
    met = abs(measured / counted - 1) <= RATIO_TOLERANCE
    return met, words.format(measured=format_ratio(measured), counted=format_ratio(counted))


def _rows_against_others(run: Run) -> tuple[bool, Text]:
    return _at_least_as_fast(_large(run, "rmsnorm"), ("compiled", "liger"))


def _epilogue_wins(run: Run) -> tuple[bool, Text]:
    _require_tensor_cores(run)
    entries = [entry for entry in run.experiments if (entry.experiment.inner or 1 << 60) <= 1024]
    if not entries:
        raise _Open(_NOT_TIMED)
    ratios = {entry.experiment.inner: _seconds(entry, "operators") / _seconds(entry, "fused") for entry in entries}
    found = ", ".join(f"K = {inner}: {format_ratio(ratio)}" for inner, ratio in sorted(ratios.items(), key=str))
    return all(ratio > 1 for ratio in ratios.values()), Text(zh=found, en=found)


def _epilogue_near_library(run: Run) -> tuple[bool, Text]:
    _require_tensor_cores(run)
    entry = run.experiment("linear_k4096")
    if entry is None:
        raise _Open(_NOT_TIMED)
    plans: tuple[PlanName, ...] = ("operators", "library_bias", "library")
    times = [seconds for plan in plans if (seconds := entry.median(plan)) is not None]
    if not times:
        raise _Open(_NOT_TIMED)
    ratio = _seconds(entry, "fused") / min(times)
    words = Text(zh="耗时是它的 {ratio}", en="{ratio} of its time").format(ratio=f"{ratio:.0%}")
    return ratio <= LIBRARY_TOLERANCE, words


# -- what they share -----------------------------------------------------------------------------------------


def _at_least_as_fast(entry: ExperimentRun, others: tuple[PlanName, ...]) -> tuple[bool, Text]:
    """Our median against the others' 80th percentile: what lies within their own noise is a tie, and a tie will do.

    Open where we beat those that were timed and another was not.
    """
    ours = _seconds(entry, "fused")
    timed = [(other, spread) for other in others if (spread := entry.seconds(other)) is not None]
    if not timed:
        raise _Open(_NOT_TIMED)
    found = ", ".join(f"{PLAN_WORDS[other].en} {format_ratio(spread.median / ours)}" for other, spread in timed)
    missing = ", ".join(PLAN_WORDS[other].en for other in others if entry.seconds(other) is None)
    met = all(ours <= spread.high for _, spread in timed)
    if met and missing:
        raise _Open(_PARTLY.format(found=found, missing=missing))
    return met, Text(zh=found, en=found)


def _large(run: Run, name: Literal["chain", "rmsnorm"]) -> ExperimentRun:
    """The experiment, if its tensors are far larger than the GPU's cache."""
    entry = run.experiment(name)
    if entry is None:
        raise _Open(_NOT_TIMED)
    sheet = run.environment.datasheet
    l2 = run.environment.l2_bytes or (None if sheet is None else sheet.l2_bytes)
    if l2 is not None and entry.experiment.tensor_bytes < _CACHE_MARGIN * l2:
        raise _Open(_CACHED.format(tensor=format_bytes(entry.experiment.tensor_bytes), l2=format_bytes(l2)))
    return entry


def _seconds(entry: ExperimentRun, plan: PlanName) -> float:
    seconds = entry.median(plan)
    if seconds is None:
        raise _Open(_NOT_TIMED)
    return seconds


def _require_tensor_cores(run: Run) -> None:
    if not run.environment.tensor_cores:
        raise _Open(_TOO_OLD.format(capability=run.environment.capability))


_NO_RUN = Text(zh="还没有实测", en="no run yet")
_NOT_TIMED = Text(zh="这次运行没有计时", en="not timed in this run")
_PARTLY = Text(zh="{found}；没有计时：{missing}", en="{found}; not timed: {missing}")
_CACHED = Text(
    zh="张量 {tensor}，L2 有 {l2}，测到的会是缓存：请用完整模式",
    en="tensors of {tensor}, an L2 of {l2}: that would measure the cache; use the full mode",
)
_TOO_OLD = Text(
    zh="计算能力 {capability}，Triton 用不到张量核心：不适用",
    en="capability {capability}, where Triton reaches no tensor cores: does not apply",
)

_AIMS: tuple[tuple[str, Text, _Judge], ...] = (
    (
        "chain-bandwidth",
        Text(zh="融合链达到拷贝带宽的 92%", en="fused chain at 92% of the copy's bandwidth or more"),
        _chain_bandwidth,
    ),
    (
        "chain-compiled",
        Text(zh="融合链不慢于 torch.compile", en="fused chain at least as fast as torch.compile"),
        _chain_against_compiled,
    ),
    (
        "chain-ratio",
        Text(
            zh="4 个核函数 ÷ 1 个核函数，与字节之比相差 15% 以内",
            en="4 kernels ÷ 1 kernel within 15% of the ratio of bytes",
        ),
        _chain_ratio,
    ),
    (
        "rows-others",
        Text(
            zh="RMSNorm 不慢于 Liger-Kernel 和 torch.compile",
            en="RMSNorm at least as fast as Liger-Kernel and torch.compile",
        ),
        _rows_against_others,
    ),
    (
        "epilogue-wins",
        Text(
            zh="K ≤ 1024 时，矩阵乘带尾声快于库的矩阵乘加逐个算子",
            en="GEMM with epilogue faster than the library's GEMM and separate operators, K ≤ 1024",
        ),
        _epilogue_wins,
    ),
    (
        "epilogue-library",
        Text(
            zh="M = N = K = 4096 时，矩阵乘带尾声至多比库的最好做法慢 10%",
            en="GEMM with epilogue at most 10% slower than the library's best plan, M = N = K = 4096",
        ),
        _epilogue_near_library,
    ),
)
