"""A run as a chart: for every plan the predicted band and, where there is one, the measured time upon it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessons_lib.base.gpus import Gpu
from lessons_lib.base.roofline import Interval
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_ratio, format_seconds
from lessons_lib.kernels.benchmark.prediction import (
    EXPERIMENT_WORDS,
    PLAN_WORDS,
    Experiment,
    ExperimentName,
    PlanName,
    datasheet_rates,
    experiments,
    predict_plan,
)
from lessons_lib.kernels.benchmark.report import require_experiments, require_gpu_or_name, require_run
from lessons_lib.kernels.benchmark.runs import ExperimentRun, Run
from lessons_lib.show.chart import ShownChart
from lessons_lib.show.fonts import chart, png_of, points
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table
from lessons_lib.traffic.prediction import side_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _HEAD, _FOOT = 26, 58, 84  # pixels
_PREDICTED, _MEASURED, _OUTSIDE = "#5b6b7b", "#0072B2", "#D55E00"
_OUTSIDE_INK = "#a34700"
_BAND = 0.62  # of a row

TITLE_MEASURED = Text(zh="{gpu}：预测与实测", en="{gpu}: predicted and measured")
TITLE_RECORDED = Text(zh="{gpu}（记录于 {date}）：预测与实测", en="{gpu} (recorded {date}): predicted and measured")
TITLE_PREDICTED = Text(
    zh="{gpu}：按标称峰值预测，没有实测", en="{gpu}: predicted from its datasheet, nothing measured"
)
X_LABEL = Text(
    zh="耗时 ÷ 同组 PyTorch 逐个算子的预测下限（对数刻度，越左越快）",
    en="time ÷ lower end predicted for PyTorch operator by operator (log scale, left is faster)",
)
PREDICTED = Text(zh="预测区间", en="predicted interval")
INSIDE = Text(zh="实测，与预测相符", en="measured, as predicted")
OUTSIDE = Text(zh="实测，在区间之外", en="measured, outside the interval")
LABELS = (
    TITLE_MEASURED,
    TITLE_RECORDED,
    TITLE_PREDICTED,
    X_LABEL,
    PREDICTED,
    INSIDE,
    OUTSIDE,
    *EXPERIMENT_WORDS.values(),
    *PLAN_WORDS.values(),
)


@dataclass(frozen=True)
class PlotRow:
    """One plan: seconds, and what they are divided by so that experiments of any length share an axis."""

    name: str
    predicted: Interval
    measured: Spread | None
    unit: float

    @property
    def as_predicted(self) -> bool:
        return self.measured is not None and side_of(self.measured, self.predicted) == "within"


@dataclass(frozen=True)
class PlotGroup:
    """The plans of one experiment."""

    name: str
    rows: tuple[PlotRow, ...]


def benchmark_plot(
    run: Run | None, gpu: Gpu | str | None = None, *, only: Iterable[ExperimentName] | None = None
) -> Shown:
    """The chart, above one line of words; without matplotlib the words say how to get it.

    Args:
        run, gpu, only: as for ``benchmark_report``.

    Raises:
        ValueError: ``run`` or ``gpu`` is something else, or ``only`` names no experiment.
    """
    groups, title = plot_groups(run, gpu, only=only), plot_title(run, gpu)
    try:
        png = plot_png(groups, title)
    except ImportError as missing:
        zh, _, en = str(missing).partition("\n")
        return report(Table([str(title)], []), [Text(zh=zh, en=en or zh)])
    words = plot_words(groups)
    return ShownChart(f"<p>{words}</p>", str(words), png, str(title))


def plot_groups(
    run: Run | None, gpu: Gpu | str | None = None, *, only: Iterable[ExperimentName] | None = None
) -> tuple[PlotGroup, ...]:
    """What the chart shows, in numbers: the experiments that have a prediction to stand on."""
    chosen = require_experiments("only", only)
    if run is None:
        device = require_gpu_or_name("gpu", gpu)
        return tuple(_predicted_group(entry, device) for entry in experiments(quick=True) if entry.name in chosen)
    require_run("run", run)
    groups = [_measured_group(run, entry) for entry in run.experiments if entry.experiment.name in chosen]
    return tuple(group for group in groups if group.rows)


def plot_title(run: Run | None, gpu: Gpu | str | None = None) -> Text:
    """Whose figures these are, and whether they were measured here, recorded, or only predicted."""
    if run is None:
        return TITLE_PREDICTED.format(gpu=require_gpu_or_name("gpu", gpu).name)
    place = run.environment
    if run.recorded_as is None:
        return TITLE_MEASURED.format(gpu=place.gpu)
    return TITLE_RECORDED.format(gpu=place.gpu, date=place.date)


def plot_words(groups: Sequence[PlotGroup]) -> Text:
    """How many of the measured plans lie within their interval; what stands for the chart where it does not show."""
    rows = [row for group in groups for row in group.rows]
    measured = [row for row in rows if row.measured is not None]
    if not measured:
        return _ONLY_PREDICTED.format(count=len(rows))
    return _COUNTED.format(inside=sum(row.as_predicted for row in measured), count=len(measured))


def plot_png(groups: Sequence[PlotGroup], title: Text) -> bytes:
    """The chart in the language in use, as a PNG.

    Raises:
        ImportError: matplotlib is missing; the message says what to do.
    """
    lines = sum(len(group.rows) + 1 for group in groups)
    with chart(_HEAD + _FOOT + _ROW * lines) as figure:
        axes = figure.add_subplot()
        _draw_axes(axes, title, lines)
        position, names = 0, []
        for group in groups:
            axes.text(
                0.0, position, str(group.name), transform=axes.get_yaxis_transform(), fontsize=points(13),
                va="center", ha="left",
            )  # fmt: skip
            names.append((position, ""))
            for offset, row in enumerate(group.rows, 1):
                _draw_row(axes, position + offset, row)
                names.append((position + offset, row.name))
            position += len(group.rows) + 1
        _set_ratio_ticks(axes)
        axes.set_yticks([place for place, _ in names], [name for _, name in names])
        _draw_legend(axes, measured=any(row.measured for group in groups for row in group.rows))
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=3)
        return png_of(figure)


def _draw_axes(axes: Axes, title: Text, lines: int) -> None:
    axes.set_title(str(title), parse_math=False)  # a device's name is no formula
    axes.set_xscale("log")
    axes.set_xlabel(str(X_LABEL))
    axes.set_ylim(lines - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")


def _set_ratio_ticks(axes: Axes) -> None:
    """A tick at each power of two in sight, and room at the right for the last time."""
    low, high = axes.get_xlim()
    low, high = low / 1.05, high * 1.25
    axes.set_xlim(low, high)
    ticks = [2.0**power for power in range(-10, 11) if low <= 2.0**power <= high]
    axes.set_xticks(ticks, [format_ratio(tick) for tick in ticks])
    axes.minorticks_off()


def _draw_row(axes: Axes, place: float, row: PlotRow) -> None:
    low, high = row.predicted.low / row.unit, row.predicted.high / row.unit
    axes.barh(place, high - low, left=low, height=_BAND, color=_PREDICTED, alpha=0.28, linewidth=0)
    for edge in (low, high):
        axes.plot([edge, edge], [place - _BAND / 2, place + _BAND / 2], color=_PREDICTED, linewidth=1.2)
    if row.measured is None:
        return
    colour, marker = (_MEASURED, "o") if row.as_predicted else (_OUTSIDE, "D")
    median = row.measured.median / row.unit
    spread = [[median - row.measured.low / row.unit], [row.measured.high / row.unit - median]]
    axes.errorbar(median, place, xerr=spread, color=colour, marker=marker, markersize=5.5, capsize=3, zorder=4)
    axes.annotate(
        format_seconds(row.measured.median),
        (max(median, high), place),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        fontsize=points(12),
        color=colour if row.as_predicted else _OUTSIDE_INK,
    )


def _draw_legend(axes: Axes, *, measured: bool) -> None:
    """Entries of their own, for each row draws its parts anew."""
    axes.bar(1, 0, bottom=-9, color=_PREDICTED, alpha=0.4, label=str(PREDICTED))
    if not measured:
        return
    axes.plot([], [], "o", color=_MEASURED, markersize=6, label=str(INSIDE))
    axes.plot([], [], "D", color=_OUTSIDE, markersize=6, label=str(OUTSIDE))


def _predicted_group(experiment: Experiment, gpu: Gpu) -> PlotGroup:
    rates = datasheet_rates(gpu, experiment.dtype)
    rows = _rows([(plan, predict_plan(experiment, plan, rates), None) for plan in experiment.plans])
    return PlotGroup(str(EXPERIMENT_WORDS[experiment.name]), rows)


def _measured_group(run: Run, entry: ExperimentRun) -> PlotGroup:
    timed = [(plan.name, run.predicted(entry, plan.name), plan.seconds) for plan in entry.plans]
    rows = _rows([item for item in timed if item[0] in entry.experiment.plans])
    return PlotGroup(str(EXPERIMENT_WORDS[entry.experiment.name]), rows)


def _rows(plans: Sequence[tuple[PlanName, Interval | None, Spread | None]]) -> tuple[PlotRow, ...]:
    """Plans with a prediction, in units of the first one's lower end: that of PyTorch, operator by operator."""
    known = [(plan, interval, seconds) for plan, interval, seconds in plans if interval is not None]
    if not known:
        return ()
    unit = known[0][1].low
    return tuple(PlotRow(str(PLAN_WORDS[plan]), interval, seconds, unit) for plan, interval, seconds in known)


_ONLY_PREDICTED = Text(zh="{count} 个方案，只有预测。", en="{count} plans, predicted only.")
_COUNTED = Text(
    zh="计时的 {count} 个方案中，有 {inside} 个落在预测区间里。",
    en="Of {count} timed plans, {inside} lie within their predicted interval.",
)
