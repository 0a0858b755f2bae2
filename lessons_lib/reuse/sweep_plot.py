"""The sweep as a chart: predicted band, measured curve, this machine's caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lessons_lib.base.language import current_language
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_ratio
from lessons_lib.reuse.sweep import TilePoint, TileSweep, cache_name
from lessons_lib.show.fonts import chart, png_of, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 440
_PREDICTED, _MEASURED, _CACHE, _BEST, _GUESS = "#5b6b7b", "#0072B2", "#CC79A7", "#009E73", "#D55E00"
_CACHE_INK, _BEST_INK, _GUESS_INK = "#8f3f6c", "#00664a", "#a34700"
_MUTED = "#57606a"
_GROUND = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}  # words stand clear of the lines behind them

TITLE = Text(
    zh="四个 NumPy 算子逐块执行，张量 {size}，数据块从小到大",
    en="Four NumPy operators tile by tile, tensor of {size}, tiles from small to large",
)
X_LABEL = Text(zh="数据块大小（对数刻度）", en="tile size (log scale)")
Y_LABEL = Text(zh="加速比（逐个算子各一遍 = 1）", en="speed-up (one pass per operator = 1)")
PREDICTED = Text(zh="预测区间", en="predicted interval")
MEASURED = Text(zh="实测：中位数，20 到 80 百分位", en="measured: median, 20th to 80th percentile")
BASELINE = Text(zh="逐个算子各一遍", en="one pass per operator")
CACHE = Text(zh="本机缓存大小", en="this machine's cache sizes")
BEST = Text(zh="最快：{tile}，{speedup}", en="fastest: {tile}, {speedup}")
GUESS = Text(zh="你的猜测", en="your guess")
LEFT = Text(zh="← 调用太多", en="← too many calls")
RIGHT = Text(zh="内存 →", en="memory →")
MIDDLE = Text(zh="留在缓存里", en="stays in cache")
LABELS = (TITLE, X_LABEL, Y_LABEL, PREDICTED, MEASURED, BASELINE, CACHE, BEST, GUESS, LEFT, RIGHT, MIDDLE)


def sweep_png(sweep: TileSweep, guess: int | None = None) -> bytes:
    """The chart in the language in use, as a PNG.

    Raises:
        ImportError: matplotlib is missing; the message says what to do.
    """
    with chart(_HEIGHT) as figure:
        axes = figure.add_subplot()
        axes.set_xscale("log", base=2)
        _draw_axes(axes, sweep)
        _draw_curves(axes, sweep)
        _draw_caches(axes, sweep)
        _draw_marks(axes, sweep, guess)
        _draw_reasons(axes, sweep)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2)
        return png_of(figure)


def _draw_axes(axes: Axes, sweep: TileSweep) -> None:
    tiles = [point.tile_bytes for point in sweep.points]
    axes.set_title(str(TITLE.format(size=format_bytes(sweep.tensor_bytes))), pad=points(26))
    axes.set_xlabel(str(X_LABEL))
    axes.set_ylabel(str(Y_LABEL))
    axes.set_xlim(tiles[0] / 1.5, tiles[-1] * 1.5)
    axes.set_ylim(0, 1.18 * max(_top(sweep, point) for point in sweep.points))
    every = 1 + (len(tiles) - 1) // 9
    axes.set_xticks(tiles[::every], [format_bytes(tile) for tile in tiles[::every]])
    axes.minorticks_off()
    axes.grid(False, axis="x")


def _top(sweep: TileSweep, point: TilePoint) -> float:
    return max(sweep.predicted(point).high, point.speedup.high)


def _draw_curves(axes: Axes, sweep: TileSweep) -> None:
    tiles = [point.tile_bytes for point in sweep.points]
    bands = [sweep.predicted(point) for point in sweep.points]
    low, high = [band.low for band in bands], [band.high for band in bands]
    axes.fill_between(tiles, low, high, color=_PREDICTED, alpha=0.22, linewidth=0, label=str(PREDICTED))
    for edge in (low, high):
        axes.plot(tiles, edge, color=_PREDICTED, linewidth=0.9, alpha=0.7)
    medians = [point.speedup.median for point in sweep.points]
    errors = [
        [point.speedup.median - point.speedup.low for point in sweep.points],
        [point.speedup.high - point.speedup.median for point in sweep.points],
    ]
    axes.errorbar(
        tiles, medians, yerr=errors, color=_MEASURED, marker="o", markersize=5, linewidth=1.8, capsize=3,
        elinewidth=1.2, label=str(MEASURED),
    )  # fmt: skip
    axes.axhline(1, color=_MUTED, linewidth=1.2, linestyle=(0, (5, 3)), label=str(BASELINE))


def _draw_caches(axes: Axes, sweep: TileSweep) -> None:
    """A dotted line at each size; a cache that is larger than the axis is named at its end."""
    label: str | None = str(CACHE)
    right = axes.get_xlim()[1]
    for cache in sweep.caches.known:
        inside = cache.size_bytes < right
        words = f"{cache_name(cache)} {format_bytes(cache.size_bytes)}"
        if inside:
            axes.axvline(cache.size_bytes, color=_CACHE, linewidth=1.6, linestyle=":", label=label)
            label = None
        axes.annotate(
            words if inside else f"{words} →",
            (cache.size_bytes if inside else right, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center" if inside and cache.size_bytes < right / 4 else "right",
            color=_CACHE_INK,
            fontsize=points(12),
            annotation_clip=False,
        )


def _draw_marks(axes: Axes, sweep: TileSweep, guess: int | None) -> None:
    best = sweep.best
    axes.plot(best.tile_bytes, best.speedup.median, "o", color=_BEST, markersize=9, zorder=5)
    words = BEST.format(tile=format_bytes(best.tile_bytes), speedup=format_ratio(best.speedup.median))
    _note(axes, best.tile_bytes, _top(sweep, best), str(words), _BEST_INK, above=True)
    if guess is not None:
        point = sweep.nearest(guess)
        axes.plot(point.tile_bytes, point.speedup.median, "D", color=_GUESS, markersize=7, zorder=6)
        low = min(sweep.predicted(point).low, point.speedup.low)
        _note(axes, point.tile_bytes, low, str(GUESS), _GUESS_INK, above=False)


def _note(axes: Axes, x: float, y: float, words: str, colour: str, *, above: bool) -> None:
    options: dict[str, Any] = {"ha": "center", "va": "bottom" if above else "top", "fontsize": points(12)}
    axes.annotate(words, (x, y), xytext=(0, 5 if above else -5), textcoords="offset points", color=colour, **options)


def _draw_reasons(axes: Axes, sweep: TileSweep) -> None:
    """What rules each part of the curve, at its foot; only where the measurement says so."""
    left, middle, right = (reason.name for reason in sweep.reasons)
    shown = [
        (LEFT, 0.012, "left", left == "calls"),
        (MIDDLE, None, "center", middle.startswith("cache")),
        (RIGHT, 0.988, "right", right.startswith("memory")),
    ]
    for words, position, side, holds in shown:
        if holds:
            x, coordinates = (position, "axes fraction") if position else (sweep.best.tile_bytes, "data")
            axes.annotate(
                str(words),
                (x, 0.03),
                xycoords=(coordinates, "axes fraction"),
                ha=side,
                color=_MUTED,
                fontsize=points(12),
                bbox=_GROUND,
            )


def chart_label(sweep: TileSweep) -> str:
    """What stands for the chart where pictures do not show."""
    best = BEST.format(tile=format_bytes(sweep.best.tile_bytes), speedup=format_ratio(sweep.best.speedup.median))
    colon = "：" if current_language() == "zh" else ": "
    return f"{TITLE.format(size=format_bytes(sweep.tensor_bytes))}{colon}{best}"
