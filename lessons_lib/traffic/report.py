"""The lab's result for the eye: predicted intervals with the measurement upon them, and the reasons in words."""

from __future__ import annotations

from collections.abc import Callable

from lessons_lib.base.roofline import Interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_range, format_ratio, format_seconds
from lessons_lib.base.validate import require_real
from lessons_lib.show.guesses import YOUR_GUESS, note_measured
from lessons_lib.show.intervals import IntervalRow, draw_intervals
from lessons_lib.show.shown import Shown, claims_shown, report
from lessons_lib.show.table import Table
from lessons_lib.show.workshop import vote_first
from lessons_lib.traffic.measurement import ChainMeasurement

_UNFUSED = Text(zh="四遍", en="four passes")
_TILED = Text(zh="逐块一遍", en="one tiled pass")
_RATIO = Text(zh="四遍 ÷ 一遍", en="four passes ÷ one")
_TITLE = Text(zh="四个 NumPy 算子，float32，每个张量 {size}", en="Four NumPy operators, float32, {size} per tensor")
_LABEL = Text(
    zh="四遍与逐块一遍：预测区间与实测耗时",
    en="Four passes, one tiled pass: predicted intervals and measured times",
)
_NOTE = Text(
    zh="预测所用的一遍拷贝和缓存内运算，都是在本机同样几轮里测的；实测取 {rounds} 轮的中位数。",
    en="Predicted from a pass over memory and the arithmetic in cache, both timed here in the same rounds; "
    "measured: the median of {rounds} rounds.",
)


def lab_report(measurement: ChainMeasurement, guess: float | None = None) -> Shown:
    """Predicted beside measured, in one picture and one table, then the named reason for the gap.

    The measured speed-up is noted beside the learner's vote. In a workshop the report waits for that vote.

    Args:
        measurement: what ``measure_chain`` returned.
        guess: the learner's own guess of the speed-up (``lab_vote().value``); None where none was made.

    Raises:
        ValueError: ``guess`` is not a number above 0.
    """
    if guess is not None:
        guess = require_real("guess", guess, above=0)
    waiting = vote_first("lab_vote", guess)
    if waiting is not None:
        return waiting
    note_measured("lab_vote", measurement.speedup.median)
    prediction = measurement.prediction
    svg = draw_intervals(
        str(_TITLE.format(size=format_bytes(measurement.tensor_bytes))),
        [
            IntervalRow(str(_UNFUSED), prediction.unfused, measurement.unfused.median),
            IntervalRow(str(_TILED), prediction.tiled, measurement.tiled.median),
        ],
        str(_LABEL),
        prefix="lab",
    )
    words = (measurement.naive_gap.text, measurement.reason.text, *measurement.notes)
    return report(_table(measurement, guess), words, svg)


def chain_verdict(measurement: ChainMeasurement) -> Shown:
    """What should hold on any machine, however slow or noisy, line by line: safe to store and compare."""
    return claims_shown(measurement.verdict(), _CLAIMS)


_CLAIMS = {
    "bit_identical": Text(zh="两种做法的结果逐位相同", en="both ways give the same bits"),
    "bytes_ratio_is_number_of_operations": Text(
        zh="字节之比等于算子数：4", en="the ratio of bytes is the number of operators, 4"
    ),
    "less_than_naive_speedup": Text(
        zh="加速比小于按字节算的 4 倍", en="the speed-up is below the 4× that bytes promise"
    ),
}


def _table(measurement: ChainMeasurement, guess: float | None) -> Table:
    columns = (
        Text(zh="方案", en="plan"),
        Text(zh="逻辑读写", en="logical traffic"),
        Text(zh="预测", en="predicted"),
        Text(zh="实测", en="measured"),
    )
    predicted = measurement.prediction
    unfused = _times(predicted.unfused, measurement.unfused.median)
    tiled = _times(predicted.tiled, measurement.tiled.median)
    speedup = _times(predicted.speedup, measurement.speedup.median, format_ratio)
    rows = [
        [str(_UNFUSED), format_bytes(measurement.unfused_bytes), *unfused],
        [str(_TILED), format_bytes(measurement.tiled_bytes), *tiled],
        [str(_RATIO), format_ratio(measurement.naive_speedup), *speedup],
    ]
    if guess is not None:
        rows.append([str(YOUR_GUESS), "", format_ratio(guess) if guess >= 1 else "< 1×", ""])
    note = str(_NOTE.format(rounds=measurement.rounds))
    return Table([str(column) for column in columns], rows, marked=2, note=note)


def _times(predicted: Interval, measured: float, written: Callable[[float], str] = format_seconds) -> list[str]:
    return [format_range(predicted.low, predicted.high, written), written(measured)]
