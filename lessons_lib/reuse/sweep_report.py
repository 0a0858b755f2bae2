"""The sweep for the eye: chart, table, and what rules the curve in words."""

from __future__ import annotations

from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_range, format_ratio
from lessons_lib.reuse.sweep import TileSweep, require_guess
from lessons_lib.reuse.sweep_plot import chart_label, sweep_png
from lessons_lib.show.chart import ShownChart
from lessons_lib.show.guesses import note_measured
from lessons_lib.show.shown import Shown, claims_shown, report
from lessons_lib.show.table import Table
from lessons_lib.show.workshop import vote_first

_COLUMNS = (
    Text(zh="数据块", en="tile"),
    Text(zh="NumPy 调用", en="NumPy calls"),
    Text(zh="预测的加速比", en="predicted speed-up"),
    Text(zh="实测", en="measured"),
    Text(zh="20 到 80 百分位", en="20th to 80th percentile"),
)
_NOTE = Text(
    zh="▸ 最快的一行。基准是逐个算子各一遍；{rounds} 轮的中位数。{total} 个点中有 {agreeing} 个与预测相符：落在区间里，"
    "或者超出不到 5%，或者超出的还不到各轮波动的一半。",
    en="▸ the fastest. The baseline is one pass per operator; medians of {rounds} rounds. {agreeing} of {total} "
    "points agree with the prediction: within the interval, or outside it by less than 5% or half the rounds' spread.",
)


def sweep_report(sweep: TileSweep, guess: int | None = None) -> Shown:
    """Predicted beside measured for every tile size: a chart, a table, and the reasons along the curve.

    Without matplotlib the chart is left out and the report says how to get it. The fastest tile is noted beside the
    learner's vote. In a workshop the report waits for that vote.

    Args:
        sweep: what ``sweep_tiles`` returned.
        guess: the tile size, in bytes, that the learner expects to be the fastest; None where none was guessed.

    Raises:
        ValueError: ``guess`` is not a positive integer.
    """
    guess = require_guess(guess)
    waiting = vote_first("tile_vote", guess)
    if waiting is not None:
        return waiting
    note_measured("tile_vote", sweep.best.tile_bytes)
    words = [reason.text for reason in (*sweep.reasons, sweep.cliff_words)] + list(sweep.notes)
    if guess is not None:
        words.insert(0, sweep.guess_words(guess))
    try:
        png = sweep_png(sweep, guess)
    except ImportError as missing:
        zh, _, en = str(missing).partition("\n")
        return report(_table(sweep), [*words, Text(zh=zh, en=en or zh)])
    shown = report(_table(sweep), words)
    return ShownChart(shown.html, shown.plain, png, chart_label(sweep))


def sweep_verdict(sweep: TileSweep) -> Shown:
    """What should hold on any machine, however slow or noisy, line by line: safe to store and compare."""
    return claims_shown(sweep.verdict(), _CLAIMS)


_CLAIMS = {
    "bit_identical_for_every_tile": Text(
        zh="每种大小的数据块，结果都逐位相同", en="every tile size gives the same bits"
    ),
    "smallest_tile_is_not_the_fastest": Text(zh="最小的数据块不是最快的", en="the smallest tile is not the fastest"),
    "no_tile_reaches_the_ratio_of_bytes": Text(
        zh="没有一种数据块达到按字节算的 4 倍", en="no tile reaches the 4× that bytes promise"
    ),
}


def _table(sweep: TileSweep) -> Table:
    rows = []
    for point in sweep.points:
        predicted = sweep.predicted(point)
        rows.append(
            [
                format_bytes(point.tile_bytes),
                f"{sweep.calls(point):,}",
                format_range(predicted.low, predicted.high, format_ratio),
                format_ratio(point.speedup.median),
                format_range(point.speedup.low, point.speedup.high, format_ratio),
            ]
        )
    note = _NOTE.format(rounds=sweep.rounds, total=len(sweep.points), agreeing=sweep.agreeing)
    return Table([str(column) for column in _COLUMNS], rows, marked=sweep.points.index(sweep.best), note=str(note))
