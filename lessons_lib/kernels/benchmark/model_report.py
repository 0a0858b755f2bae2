"""The measurement of a learner's model for the eye: predicted beside measured, and the reason in words."""

from __future__ import annotations

from lessons_lib.base.roofline import Interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_range, format_ratio, format_seconds
from lessons_lib.base.validate import bad_argument, require_real, shown
from lessons_lib.kernels.benchmark.model_measurement import ModelMeasurement
from lessons_lib.show.exercise import Feedback
from lessons_lib.show.guesses import YOUR_GUESS
from lessons_lib.show.intervals import IntervalRow, draw_intervals
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table


def model_report(measurement: ModelMeasurement | Text | None, guess: float | None = None) -> Shown:
    """Predicted beside measured, in one picture and one table; or why nothing was measured.

    Args:
        measurement: what ``measure_model`` returned.
        guess: the learner's own guess of the ratio of times; ``None`` where none was made.

    Raises:
        ValueError: ``measurement`` is something else, or ``guess`` is not a number above 0.
    """
    if guess is not None:
        guess = require_real("guess", guess, above=0)
    if measurement is None or isinstance(measurement, Text):
        return report(Table([str(_PLAN)], []), [_NOT_RUN if measurement is None else measurement])
    if not isinstance(measurement, ModelMeasurement):
        raise _unknown(measurement)
    words = [measurement.reason.text]
    if measurement.problem is not None:
        words.insert(0, _PROBLEM.format(problem=measurement.problem))
    return report(_table(measurement, guess), words, _picture(measurement))


def model_verdict(measurement: ModelMeasurement | Text | None) -> Feedback:
    """What must hold on every machine, fast or slow: outputs agree, and as many operators ran as were captured.

    It says the same where nothing was measured, so that a notebook may keep it. Another number of operators is no fault:
    libraries for CPUs take some apart and join others.

    Raises:
        ValueError: it is none of what ``measure_model`` returns.
    """
    if isinstance(measurement, ModelMeasurement):
        if measurement.outputs_agree is None:
            return Feedback("open", str(_RANDOM))
        if not measurement.outputs_agree:
            return Feedback("wrong", str(_WRONG))
        counted, predicted = measurement.counted_launches, measurement.predicted_launches
        if counted != predicted:
            return Feedback("open", str(_COUNT.format(counted=counted, predicted=predicted)))
    elif measurement is not None and not isinstance(measurement, Text):
        raise _unknown(measurement)
    return Feedback("right", str(_ALL_WELL))


def _picture(measurement: ModelMeasurement) -> str:
    least = measurement.eager_pass
    compiled = measurement.compiled
    rows = [
        IntervalRow(str(_EAGER), Interval(least, least), measurement.eager.median),
        IntervalRow(str(_COMPILED), measurement.predicted_compiled, None if compiled is None else compiled.median),
    ]
    title = _TITLE.format(name=measurement.name)
    return draw_intervals(str(title), rows, str(_LABEL), prefix="model")


def _table(measurement: ModelMeasurement, guess: float | None) -> Table:
    columns = (_PLAN, _TRAFFIC, _PREDICTED, _MEASURED)
    least = format_seconds(measurement.eager_pass)
    compiled, speedup = measurement.compiled, measurement.speedup
    predicted, gain = measurement.predicted_compiled, measurement.predicted_speedup
    rows = [
        [str(_EAGER), format_bytes(measurement.eager_bytes), f"≥ {least}", format_seconds(measurement.eager.median)],
        [
            str(_COMPILED),
            format_bytes(measurement.compiled_bytes),
            format_range(predicted.low, predicted.high, format_seconds),
            "–" if compiled is None else format_seconds(compiled.median),
        ],
        [
            str(_RATIO),
            format_ratio(measurement.bytes_ratio),
            format_range(gain.low, gain.high, format_ratio),
            "–" if speedup is None else format_ratio(speedup.median),
        ],
    ]
    if guess is not None:
        rows.append([str(YOUR_GUESS), "", format_ratio(guess), ""])
    note = _NOTE.format(rounds=measurement.eager.count, threads=measurement.threads)
    return Table([str(title) for title in columns], rows, marked=2, note=str(note))


def _unknown(measurement: object) -> ValueError:
    given = shown(measurement)
    return bad_argument(
        "measurement",
        zh=f"需要 measure_model() 的结果，收到的是 {given}",
        en=f"it must come from measure_model(), got {given}",
    )


_PLAN = Text(zh="方案", en="plan")
_TRAFFIC = Text(zh="逻辑读写", en="logical traffic")
_PREDICTED = Text(zh="预测", en="predicted")
_MEASURED = Text(zh="实测", en="measured")
_EAGER = Text(zh="逐个算子", en="operator by operator")
_COMPILED = Text(zh="torch.compile", en="torch.compile")
_RATIO = Text(zh="逐个 ÷ 编译", en="operators ÷ compiled")
_TITLE = Text(zh="{name}，在这个 CPU 上", en="{name} on this CPU")
_LABEL = Text(
    zh="逐个算子与 torch.compile：预测与实测耗时",
    en="Operator by operator, and by torch.compile: predicted and measured times",
)
_NOTE = Text(
    zh="逐个算子的预测只算读写，按同一批轮次里测得的拷贝速度折算（写新分配的内存更慢，另算）；编译后的预测是它自己的读写，再加上"
    "逐个算子在读写之外花的时间；最后一行的预测，是逐个算子的实测除以上面那个区间。实测取 {rounds} 轮的中位数，{threads} 个线程；"
    "超出区间不到 5%，或不到各轮波动的一半，算相符。",
    en="For separate operators the prediction is their bytes alone, at the rate of a copy timed in the same rounds "
    "(writing to new memory is slower and counted separately); for the compiled function, its bytes and whatever "
    "the separate operators needed beyond theirs. The last row divides the measured time of the operators by the interval "
    "above it. Measured: the median of {rounds} rounds, threads: {threads}; outside an interval by less than 5%, or half the "
    "rounds' spread, counts as agreeing.",
)
_PROBLEM = Text(zh="{problem}。", en="{problem}.")
_NOT_RUN = Text(
    zh="没有 PyTorch，打开的是一份记录，没有可以运行的函数，这里就不测了。第 01 课用 NumPy 做过同样的比较。",
    en="Without PyTorch this is a record, and there is no function to run: nothing is measured here. Lesson 01 makes the "
    "same comparison with NumPy.",
)
_WRONG = Text(
    zh="编译前或编译后的输出，和 float64 的结果对不上。",
    en="The outputs, before or after compiling, do not agree with float64.",
)
_COUNT = Text(
    zh="输出相符；不过在 CPU 上实际执行了 {counted} 个算子，图里是 {predicted} 个：有的算子 CPU 上拆开来做，有的合在一起做，GPU 上"
    "不一定这样。",
    en="The outputs agree. But {counted} operators ran on the CPU, and the graph has {predicted}: a CPU takes some operators "
    "apart and does others in one; a GPU need not.",
)
_RANDOM = Text(
    zh="这个函数每次的结果都不同（例如 dropout），没有可以核对的输出。先调用 .eval()，或者把随机数作为输入。",
    en="This function gives something else each time (dropout, for example), so there is nothing to compare. Call .eval() "
    "first, or make the random numbers an input.",
)
_ALL_WELL = Text(
    zh="凡是测过的，编译前后的输出都与 float64 的结果相符，实际执行的算子个数也与图里的一致。",
    en="Wherever something was measured, outputs agree with float64 before and after compiling, and as many operators ran "
    "as the graph has.",
)
