"""A run for the eye: predicted interval, measured time, ratio and reason of every plan; without a run, predictions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lessons_lib.base.gpus import GPUS, Gpu, require_gpu
from lessons_lib.base.roofline import Interval
from lessons_lib.base.text import Text, sentences
from lessons_lib.base.units import format_bytes, format_range, format_ratio, format_seconds
from lessons_lib.base.validate import bad_argument, require_choice, require_items, shown
from lessons_lib.kernels.benchmark.aims import AimStatus, aims
from lessons_lib.kernels.benchmark.cpu_report import chain_vote_words
from lessons_lib.kernels.benchmark.experiments import size_note
from lessons_lib.kernels.benchmark.prediction import (
    EXPERIMENT_WORDS,
    EXPERIMENTS,
    PLAN_WORDS,
    Experiment,
    ExperimentName,
    datasheet_rates,
    experiments,
    plan_bytes,
    plan_kernels,
    predict_plan,
)
from lessons_lib.kernels.benchmark.reasons import explain_plan, short_words
from lessons_lib.kernels.benchmark.runs import ExperimentRun, PlanRun, Run
from lessons_lib.show.shown import Shown, report, report_words
from lessons_lib.show.table import Table
from lessons_lib.traffic.prediction import side_of


def benchmark_report(
    run: Run | None, gpu: Gpu | str | None = None, *, only: Iterable[ExperimentName] | None = None
) -> Shown:
    """Predicted beside measured, experiment by experiment, and the course's aims beside what was found.

    What the learner voted about the chain's bytes (``kernel_vote``) stands at the top.

    Args:
        run: what ``measure_kernels`` returned, or a recorded run; ``None``: there is none, and only predictions show.
        gpu: without a run, whose datasheet to predict from: one of ``GPUS``, or its name; a T4 by default.
        only: the experiments to show, names in ``EXPERIMENTS``; all of them, and the aims, by default.

    Raises:
        ValueError: ``run`` or ``gpu`` is something else, or ``only`` names no experiment.
    """
    chosen = require_experiments("only", only)
    voted = chain_vote_words() if "chain" in chosen else []
    if run is None:
        device = require_gpu_or_name("gpu", gpu)
        parts = [report_words([_NO_RUN.format(gpu=device.name), *voted])]
        parts += [_predicted_part(entry, device) for entry in experiments(quick=True) if entry.name in chosen]
        return _joined(parts)
    require_run("run", run)
    parts = [report_words([*run_words(run), *voted])]
    parts += [_measured_part(run, entry) for entry in run.experiments if entry.experiment.name in chosen]
    return _joined(parts if only is not None else [*parts, aims_report(run)])


def aims_report(run: Run | None) -> Shown:
    """The course's aims on a GPU: met, missed, or open."""
    rows = [[str(aim.words), str(_AIM_WORDS[aim.status]), str(aim.found)] for aim in aims(run)]
    header = (Text(zh="目标", en="aim"), Text(zh="结果", en="result"), Text(zh="实测", en="found"))
    return report(Table([str(title) for title in header], rows, prose=True))


def run_words(run: Run) -> list[Text]:
    """Where and when the run was made, and that it is recorded if it is."""
    place = run.environment
    origin = _MEASURED if run.recorded_as is None else _RECORDED.format(file=run.recorded_as)
    versions = [f"torch {place.torch}", f"triton {place.triton}"]
    versions += [f"Liger-Kernel {place.liger}"] if place.liger else []
    versions += [f"driver {place.driver}"] if place.driver else []
    machine = _MACHINE.format(
        gpu=place.gpu, capability=place.capability, versions=", ".join(versions), date=place.date
    )
    words = [_ORIGIN.format(origin=origin, machine=machine, mode=_QUICK if run.quick else _FULL), _READING]
    if run.copy_bandwidth is not None:
        words.append(_COPY.format(rate=f"{run.copy_bandwidth / 1e9:,.0f}", stated=_stated_bandwidth(run)))
    return words


def require_run(name: str, value: object) -> Run:
    """``value`` itself, if it is a ``Run``.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(value, Run):
        return value
    raise bad_argument(
        name,
        zh=f"需要 measure_kernels() 的结果或 None，收到的是 {shown(value)}",
        en=f"it must come from measure_kernels(), or be None, got {shown(value)}",
    )


def require_gpu_or_name(name: str, value: Gpu | str | None) -> Gpu:
    """The ``Gpu`` itself, the entry of ``GPUS`` by its name, or for ``None`` the T4, which learners get for free.

    Raises:
        ValueError: it is none of them.
    """
    if value is None:
        return GPUS["T4"]
    if isinstance(value, str):
        require_choice(name, value, GPUS)
        return GPUS[value]
    return require_gpu(name, value)


def require_experiments(name: str, value: object) -> tuple[object, ...]:
    """The names of experiments in ``value``; all of them for ``None``.

    Raises:
        ValueError: it is no list or tuple, or holds something that names no experiment.
    """
    if value is None:
        return EXPERIMENTS
    names = require_items(name, value)
    for index, item in enumerate(names):
        require_choice(f"{name}[{index}]", item, EXPERIMENTS)
    return names


# -- one experiment ------------------------------------------------------------------------------------------


def _measured_part(run: Run, entry: ExperimentRun) -> Shown:
    plans = [plan for plan in entry.plans if plan.name in entry.experiment.plans]
    marked = next((index for index, plan in enumerate(plans) if plan.name == "fused"), None)
    table = Table(
        [str(title) for title in (_head(entry.experiment), *_COLUMNS)],
        [_measured_row(run, entry, plan) for plan in plans],
        marked=marked,
        note=sentences(_shape_words(entry.experiment), *filter(None, (size_note(entry),))),
    )
    return report(table, [words for plan in plans for words in _reason_words(run, entry, plan)])


def _measured_row(run: Run, entry: ExperimentRun, plan: PlanRun) -> list[str]:
    predicted = run.predicted(entry, plan.name)
    expected = run.predicted_launches(entry, plan.name)
    counted = "" if plan.launches in (None, expected) else f" ({plan.launches})"
    measured = "–" if plan.seconds is None else format_seconds(plan.seconds.median)
    ratio = "–"
    if plan.seconds is not None and predicted is not None:
        ratio = format_ratio(plan.seconds.median / predicted.low)
    return [
        str(PLAN_WORDS[plan.name]),
        f"{expected}{counted}",
        format_bytes(plan_bytes(entry.experiment, plan.name)),
        _interval(predicted),
        measured,
        ratio,
        str(short_words(explain_plan(run, entry, plan))),
    ]


def _reason_words(run: Run, entry: ExperimentRun, plan: PlanRun) -> list[Text]:
    """The reason in full for the fused plan, and for every plan that was not timed or lies outside its interval."""
    gap = explain_plan(run, entry, plan)
    predicted = run.predicted(entry, plan.name)
    as_predicted = plan.seconds is not None and predicted is not None and side_of(plan.seconds, predicted) == "within"
    if as_predicted and plan.name != "fused" and gap.name not in ("noise", "wrong-output"):
        return []
    return [_REASON.format(plan=PLAN_WORDS[plan.name], reason=gap.text)]


def _predicted_part(experiment: Experiment, gpu: Gpu) -> Shown:
    rates = datasheet_rates(gpu, experiment.dtype)
    rows = [
        [
            str(PLAN_WORDS[plan]),
            str(len(plan_kernels(experiment, plan, rates.tensor_cores))),
            format_bytes(plan_bytes(experiment, plan)),
            _interval(predict_plan(experiment, plan, rates)),
        ]
        for plan in experiment.plans
    ]
    header = (_head(experiment), *_COLUMNS[:3])
    note = sentences(_shape_words(experiment), *([_ASSUMED] if experiment.clock == "host" else []))
    return report(Table([str(title) for title in header], rows, marked=len(rows) - 1, note=note))


def _head(experiment: Experiment) -> Text:
    return EXPERIMENT_WORDS[experiment.name]


def _shape_words(experiment: Experiment) -> Text:
    return _SHAPE.format(
        dtype=experiment.dtype,
        rows=f"{experiment.rows:,}",
        columns=f"{experiment.columns:,}",
        size=format_bytes(experiment.tensor_bytes),
    )


def _interval(interval: Interval | None) -> str:
    return "?" if interval is None else format_range(interval.low, interval.high, format_seconds)


def _stated_bandwidth(run: Run) -> Text:
    sheet = run.environment.datasheet
    if sheet is None:
        return _NO_SHEET
    return _SHEET.format(rate=f"{sheet.bandwidth / 1e9:,.0f}")


def _joined(parts: Sequence[Shown]) -> Shown:
    return Shown("".join(part.html for part in parts), "\n\n".join(part.plain for part in parts))


_COLUMNS: tuple[Text, ...] = (
    Text(zh="启动", en="launches"),
    Text(zh="逻辑读写", en="traffic"),
    Text(zh="预测", en="predicted"),
    Text(zh="实测", en="measured"),
    Text(zh="÷ 下限", en="÷ low"),
    Text(zh="原因", en="reason"),
)
_NO_RUN = Text(
    zh="还没有实测记录：下面只有预测，按 {gpu} 数据手册的峰值算。真的核函数达不到峰值。",
    en="No recorded run yet: what follows is predicted from the {gpu}'s datasheet peaks. Real kernels do not reach them.",
)
_MEASURED = Text(zh="刚在这台机器上测的。", en="Measured on this machine, now.")
_RECORDED = Text(
    zh="这是记录下来的实测（{file}），不是这台机器的。", en="A recorded run ({file}), not from this machine."
)
_MACHINE = Text(zh="{gpu}（{capability}），{versions}，{date}。", en="{gpu} ({capability}), {versions}, {date}.")
_ORIGIN = Text(zh="{origin}{machine}{mode}", en="{origin} {machine} {mode}")
_QUICK = Text(zh="快速模式：张量较小，轮数较少。", en="Quick mode: smaller tensors, fewer rounds.")
_FULL = Text(zh="完整模式。", en="Full mode.")
_READING = Text(
    zh="实测是中位数；“÷ 下限”是实测除以预测区间的下限。启动次数是预测，数出来不同的写在括号里。",
    en="Measured times are medians; “÷ low” is the measured time over the lower end predicted. Launches are as predicted, "
    "with the count in brackets where it differs.",
)
_COPY = Text(
    zh="预测按同一次运行里测到的拷贝带宽算：{rate} GB/s（{stated}）；矩阵乘按同几轮里单做矩阵乘的速率算。",
    en="Predictions use the bandwidth of a copy in the same run, {rate} GB/s ({stated}); for a GEMM, the rate of the GEMM "
    "alone in the same rounds.",
)
_SHEET = Text(zh="数据手册写 {rate}", en="the datasheet says {rate}")
_NO_SHEET = Text(zh="课程没有它的数据手册", en="the course has no datasheet of it")
_SHAPE = Text(
    zh="{dtype}，输出 [{rows}, {columns}]，{size}。",
    en="{dtype}, output [{rows}, {columns}], {size}.",
)
_ASSUMED = Text(zh="假设一次启动占用主机 5 微秒。", en="A launch is assumed to take the host 5 µs.")
_REASON = Text(zh="{plan}：{reason}", en="{plan}: {reason}")
_AIM_WORDS: dict[AimStatus, Text] = {
    "met": Text(zh="✓ 达到", en="✓ met"),
    "missed": Text(zh="✗ 没有达到", en="✗ missed"),
    "open": Text(zh="○ 待测", en="○ open"),
}
