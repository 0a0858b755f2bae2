"""The CPU measurement for the eye: predicted intervals with the measurement upon them, and the reason in words."""

from __future__ import annotations

from collections.abc import Callable

from lessons_lib.base.roofline import Interval
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_range, format_ratio, format_seconds
from lessons_lib.base.validate import bad_argument, require_real, shown
from lessons_lib.kernels.benchmark.cpu_measurement import CpuMeasurement
from lessons_lib.show.guesses import YOUR_GUESS, guess_line, voted_number
from lessons_lib.show.intervals import IntervalRow, draw_intervals
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table


def cpu_report(measurement: CpuMeasurement | None, guess: float | None = None) -> Shown:
    """Predicted beside measured, in one picture and one table, and why the times are what they are.

    What the learner voted about the bytes (``kernel_vote``) stands beneath.

    Args:
        measurement: what ``measure_on_cpu`` returned; ``None``: PyTorch is not here, and the report says so.
        guess: the learner's own guess of the ratio of times; ``None`` where none was made.

    Raises:
        ValueError: ``measurement`` is something else, or ``guess`` is not a number above 0.
    """
    if guess is not None:
        guess = require_real("guess", guess, above=0)
    if measurement is None:
        return report(Table([str(_PLAN)], []), [_NO_TORCH])
    if not isinstance(measurement, CpuMeasurement):
        given = shown(measurement)
        raise bad_argument(
            "measurement",
            zh=f"需要 measure_on_cpu() 的结果，收到的是 {given}",
            en=f"it must come from measure_on_cpu(), got {given}",
        )
    words = [measurement.reason.text, *measurement.notes]
    if measurement.problem is not None:
        words.insert(0, _PROBLEM.format(problem=measurement.problem))
    return report(_table(measurement, guess), [*chain_vote_words(), *words], _picture(measurement))


def chain_vote_words() -> list[Text]:
    """What the learner voted about the chain's bytes, as the line of a report; none without a vote."""
    voted = voted_number("kernel_vote")
    return [] if voted is None else [guess_line(_BYTES_ASKED, format_ratio(voted))]


def _picture(measurement: CpuMeasurement) -> str:
    compiled = measurement.compiled
    rows = [
        IntervalRow(str(_OPERATORS), measurement.predicted_unfused, measurement.unfused.median),
        IntervalRow(str(_COMPILED), measurement.predicted_compiled, None if compiled is None else compiled.median),
    ]
    title = _TITLE.format(size=format_bytes(measurement.tensor_bytes))
    return draw_intervals(str(title), rows, str(_LABEL), prefix="cpu")


def _table(measurement: CpuMeasurement, guess: float | None) -> Table:
    columns = (_PLAN, Text(zh="逻辑读写", en="logical traffic"), Text(zh="预测", en="predicted"), _MEASURED)
    unfused, compiled = measurement.unfused, measurement.compiled
    rows = [
        [
            str(_OPERATORS),
            format_bytes(measurement.unfused_bytes),
            *_cells(measurement.predicted_unfused, unfused, format_seconds),
        ],
        [
            str(_COMPILED),
            format_bytes(measurement.fused_bytes),
            *_cells(measurement.predicted_compiled, compiled, format_seconds),
        ],
        [
            str(_RATIO),
            format_ratio(measurement.bytes_ratio),
            *_cells(measurement.predicted_speedup, measurement.speedup, format_ratio),
        ],
    ]
    if guess is not None:
        rows.append([str(YOUR_GUESS), "", format_ratio(guess), ""])
    note = _NOTE.format(rounds=unfused.count, threads=measurement.threads)
    return Table([str(title) for title in columns], rows, marked=2, note=str(note))


def _cells(predicted: Interval, measured: Spread | None, written: Callable[[float], str]) -> list[str]:
    shown_measured = "–" if measured is None else written(measured.median)
    return [format_range(predicted.low, predicted.high, written), shown_measured]


_BYTES_ASKED = Text(zh="四个核函数的字节是一个的几倍", en="bytes of four kernels over those of one")
_PLAN = Text(zh="方案", en="plan")
_MEASURED = Text(zh="实测", en="measured")
_OPERATORS = Text(zh="逐个算子", en="operator by operator")
_COMPILED = Text(zh="torch.compile", en="torch.compile")
_RATIO = Text(zh="逐个 ÷ 编译", en="operators ÷ compiled")
_TITLE = Text(zh="四算子链在 CPU 上，float32，每个张量 {size}", en="The chain on the CPU, float32, {size} per tensor")
_LABEL = Text(
    zh="逐个算子与 torch.compile 的一个循环：预测区间与实测耗时",
    en="Operator by operator, and one loop by torch.compile: predicted intervals and measured times",
)
_NOTE = Text(
    zh="预测由各部分拼成：同几轮里测的拷贝和单个算子；最后一行的预测，是逐个算子的实测除以上面那个区间。实测取 {rounds} 轮的"
    "中位数，{threads} 个线程；超出区间不到 5%，或不到各轮波动的一半，算相符。",
    en="Predicted from the parts: a copy, and each operator alone, timed in the same rounds. The last row divides the measured "
    "time of the operators by the interval above it. Measured: the median of {rounds} rounds, threads: {threads}; outside "
    "an interval by less than 5%, or half the rounds' spread, counts as agreeing.",
)
_NO_TORCH = Text(
    zh="没有安装 PyTorch，这里就不测了。第 01 课用 NumPy 做过同样的比较。",
    en="PyTorch is not installed, so nothing is measured here. Lesson 01 makes the same comparison with NumPy.",
)
_PROBLEM = Text(zh="{problem}。", en="{problem}.")
