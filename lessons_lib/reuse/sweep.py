"""The tile-size sweep as numbers: what to expect from a few timings and the cache sizes, what was found, and why.

Four operators run on a tile before the next tile is touched; the intermediate results live in a buffer of one tile.
The expected time of a tile size has three parts: the calls (more of them the smaller the tile), ``x`` and ``y`` once
through memory, and four operators over the buffer at the speed of wherever the buffer stays. An operator touches two
tiles, source and target: a cache holds them up to a tile of half its size. Since what streams through and other
programs need room too, only a tile of a quarter counts as sure; in between the prediction allows both.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lessons_lib.base.caches import Cache, CpuCaches
from lessons_lib.base.roofline import Interval
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import KIB, format_bytes, format_ratio, format_seconds
from lessons_lib.base.validate import require_int
from lessons_lib.traffic.measurement import BUSY, CHAIN
from lessons_lib.traffic.prediction import NOISY, Gap, side_of

_SURE_SHARE, _POSSIBLE_SHARE = 4, 2  # of a cache: see above
_SURE_ANYWHERE = 64 * KIB  # a tile this small stays in the caches of any recent core
_OUTER = 2  # operators of a tile that touch x or y
_FALL = 1.15  # a drop by less is no cliff
_AS_FAST = 0.95
_CACHE_NAMES = {1: "L1d", 2: "L2", 3: "L3"}


@dataclass(frozen=True)
class Level:
    """A place where the buffer of intermediate results may stay.

    ``sure_tile`` and ``possible_tile``: the largest tiles, in bytes, that surely and possibly stay here.
    ``pass_seconds``: one operator in place over as many bytes as the tensor has, on a block that stays here, calls
    taken off. ``cache``: which one it is; None for memory, or for a cache of unknown size.
    """

    sure_tile: int
    possible_tile: int
    pass_seconds: float
    cache: Cache | None = None

    @property
    def is_memory(self) -> bool:
        """Whether there is no place further away."""
        return self.sure_tile == sys.maxsize

    @property
    def name(self) -> Text:
        """``L2``, say; for memory the word."""
        if self.cache is not None:
            return Text(zh=cache_name(self.cache), en=cache_name(self.cache))
        return Text(zh="内存", en="memory") if self.is_memory else Text(zh="缓存", en="the cache")


@dataclass(frozen=True)
class SweepCalibration:
    """What this machine needs for the parts, in seconds.

    ``copy``: one pass over memory, a tensor read and a tensor written. ``tile_calls``: the four calls of one almost
    empty tile that starts anywhere in memory. ``levels``: from the closest to the core to memory.
    """

    copy: float
    tile_calls: float
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class TilePoint:
    """One tile size: its seconds, and its speed-ups over one pass per operator, round by round."""

    tile_bytes: int
    seconds: Spread
    speedup: Spread


@dataclass(frozen=True)
class Cliff:
    """A fall of the curve: the last tile before it and the first after it, in bytes, and how large it is.

    ``level``: the place that the buffer outgrows, for a predicted one.
    """

    before: int
    after: int
    fall: float
    level: Level | None = None


@dataclass(frozen=True)
class TileSweep:
    """What ``sweep_tiles`` found. Seconds, bytes, and ratios; ``points`` from the smallest tile to the largest."""

    requested_bytes: int
    tensor_bytes: int
    caches: CpuCaches
    calibration: SweepCalibration
    unfused: Spread
    points: tuple[TilePoint, ...]
    bit_identical: bool
    waited_share: float  # of the rounds' elapsed time, not spent on this thread; 0 where it cannot be told

    @property
    def rounds(self) -> int:
        """How often each point was timed."""
        return self.unfused.count

    @property
    def best(self) -> TilePoint:
        """The fastest point, by its median."""
        return max(self.points, key=lambda point: point.speedup.median)

    def calls(self, point: TilePoint) -> int:
        """NumPy calls that one run with this tile makes."""
        return len(CHAIN) * math.ceil(self.tensor_bytes / point.tile_bytes)

    def predicted(self, point: TilePoint) -> Interval:
        """The speed-up to expect: the measured baseline over the predicted seconds."""
        seconds = predict_tile(self.calibration, self.tensor_bytes, point.tile_bytes)
        return Interval(self.unfused.median / seconds.high, self.unfused.median / seconds.low)

    def agrees(self, point: TilePoint) -> bool:
        """Whether the measured speed-up lies in the predicted interval, give or take 5 % or the rounds' spread."""
        return side_of(point.speedup, self.predicted(point)) == "within"

    @property
    def agreeing(self) -> int:
        """How many points agree."""
        return sum(map(self.agrees, self.points))

    @property
    def predicted_cliff(self) -> Cliff | None:
        """Where the curve should fall; None if no cliff lies within the sweep, or no cache size is known."""
        return predict_cliff(self.calibration, self.tensor_bytes, [point.tile_bytes for point in self.points])

    @property
    def measured_cliff(self) -> Cliff | None:
        """The steepest fall right of the fastest tile; None if every step there is gentle."""
        return find_cliff([(point.tile_bytes, point.speedup.median) for point in self.points])

    @property
    def cliff_words(self) -> Gap:
        """Whether the two cliffs agree, for programs and for readers."""
        return compare_cliffs(self.predicted_cliff, self.measured_cliff, known=bool(self.caches.known))

    @property
    def reasons(self) -> tuple[Gap, Gap, Gap]:
        """Why the left end, the top and the right end of the curve lie where they do."""
        return _left(self), _middle(self), _right(self)

    @property
    def notes(self) -> tuple[Text, ...]:
        """What else the reader should know about this run."""
        notes = []
        if self.tensor_bytes < self.requested_bytes:
            notes.append(
                _SIZED_DOWN.format(asked=format_bytes(self.requested_bytes), used=format_bytes(self.tensor_bytes))
            )
        if max(point.speedup.relative_width for point in self.points) > NOISY:
            notes.append(_NOISY_NOTE)
        if self.waited_share > BUSY:
            notes.append(_BUSY_NOTE.format(share=f"{self.waited_share:.0%}"))
        return tuple(notes)

    def nearest(self, tile_bytes: int) -> TilePoint:
        """The point whose tile size is the closest, by ratio."""
        return min(self.points, key=lambda point: abs(math.log2(point.tile_bytes / tile_bytes)))

    def guess_words(self, guess: int) -> Text:
        """What became of the guess that tiles of ``guess`` bytes are the fastest."""
        point = self.nearest(guess)
        key = "best" if point == self.best else "as-fast" if _about_as_fast(point, self.best) else "slower"
        return _GUESS_WORDS[key].format(
            tile=format_bytes(point.tile_bytes),
            speedup=format_ratio(point.speedup.median),
            best=format_bytes(self.best.tile_bytes),
            best_speedup=format_ratio(self.best.speedup.median),
        )

    def verdict(self) -> dict[str, bool]:
        """What holds on any sane machine, however slow or noisy: safe to store and compare.

        The comparisons take the fastest rounds, which other programs disturb least. Where the top of the curve
        lies, and whether it falls at all on the right, depends on the machine and is not among them.
        """
        fastest = min(point.seconds.smallest for point in self.points)
        return {
            "bit_identical_for_every_tile": self.bit_identical,
            "smallest_tile_is_not_the_fastest": self.points[0].seconds.smallest > fastest,
            "no_tile_reaches_the_ratio_of_bytes": self.unfused.smallest < len(CHAIN) * fastest,
        }


def cache_name(cache: Cache) -> str:
    """``L1d``, ``L2`` or ``L3``."""
    return _CACHE_NAMES[cache.level]


def tile_sizes(tensor_bytes: int) -> tuple[int, ...]:
    """The powers of two from 4 KiB up, below ``tensor_bytes``, and the whole tensor."""
    sizes = []
    size = 4 * KIB
    while size < tensor_bytes:
        sizes.append(size)
        size *= 2
    return (*sizes, tensor_bytes)


def cache_level(cache: Cache, pass_seconds: float) -> Level:
    """The place that a cache of known size is."""
    return Level(cache.size_bytes // _SURE_SHARE, cache.size_bytes // _POSSIBLE_SHARE, pass_seconds, cache)


def unknown_cache_level(tensor_bytes: int, pass_seconds: float) -> Level:
    """The caches where their sizes cannot be read: any tile may stay, only a small one surely does."""
    return Level(_SURE_ANYWHERE, tensor_bytes, pass_seconds)


def memory_level(pass_seconds: float) -> Level:
    """The place that every tile fits."""
    return Level(sys.maxsize, sys.maxsize, pass_seconds)


def calibration_block(caches: Sequence[Cache], index: int) -> int:
    """The bytes of a block that stays in ``caches[index]`` and not in the one before it."""
    size = caches[index].size_bytes
    before = caches[index - 1].size_bytes if index else size // 4
    return max(4, int(math.sqrt(before * size)) // 4 * 4)


def predict_tile(calibration: SweepCalibration, tensor_bytes: int, tile_bytes: int) -> Interval:
    """The seconds of a sweep's point: ``[max(copy, 2 pass) + 2 pass + calls, copy + 4 pass + calls]``.

    Only the first and the last operator of a tile touch ``x`` and ``y``: at the low end both overlap with memory
    perfectly, and the buffer stays in the closest place that may hold it; at the high end nothing overlaps and the
    buffer stays in the first place that surely holds it.
    """
    levels = calibration.levels
    possible = next(index for index, level in enumerate(levels) if tile_bytes <= level.possible_tile)
    sure = next(index for index, level in enumerate(levels) if tile_bytes <= level.sure_tile)
    passes = [level.pass_seconds for level in levels[possible : sure + 1]]
    calls = calibration.tile_calls * math.ceil(tensor_bytes / tile_bytes)
    low, high, copy = min(passes), max(passes), calibration.copy
    inner = len(CHAIN) - _OUTER
    return Interval(max(copy, _OUTER * low) + inner * low + calls, copy + len(CHAIN) * high + calls)


def predict_cliff(calibration: SweepCalibration, tensor_bytes: int, tiles: Sequence[int]) -> Cliff | None:
    """The largest predicted fall between two places: between the last sure tile and the first impossible one.

    Calls count too: where they weigh most, a larger tile gains more from fewer calls than it loses to a slower cache.
    """
    cliffs = []
    for level in calibration.levels:
        before = [tile for tile in tiles if tile <= level.sure_tile]
        after = [tile for tile in tiles if tile > level.possible_tile]
        if level.cache and before and after:
            near, far = (predict_tile(calibration, tensor_bytes, tile).high for tile in (before[-1], after[0]))
            if far > _FALL * near:
                cliffs.append(Cliff(before[-1], after[0], far / near, level))
    return max(cliffs, key=lambda cliff: cliff.fall, default=None)


def find_cliff(curve: Sequence[tuple[int, float]]) -> Cliff | None:
    """The steepest step down of ``(tile, speed-up)`` pairs, from the highest on."""
    top = max(range(len(curve)), key=lambda index: curve[index][1])
    steps = [Cliff(a[0], b[0], a[1] / b[1]) for a, b in zip(curve[top:], curve[top + 1 :], strict=False)]
    return max((step for step in steps if step.fall > _FALL), key=lambda step: step.fall, default=None)


def compare_cliffs(predicted: Cliff | None, measured: Cliff | None, *, known: bool) -> Gap:
    """Whether a measured cliff lies where one was predicted; ``known``: whether any cache size is."""
    figures: dict[str, object] = {}
    if measured:
        figures.update(
            before=format_bytes(measured.before),
            after=format_bytes(measured.after),
            fall=format_ratio(measured.fall),
            cache_low=format_bytes(_POSSIBLE_SHARE * measured.before),
            cache_high=format_bytes(_POSSIBLE_SHARE * measured.after),
        )
    if predicted and predicted.level and predicted.level.cache:
        figures.update(
            low=format_bytes(predicted.before),
            high=format_bytes(predicted.after),
            cache=predicted.level.name,
            size=format_bytes(predicted.level.cache.size_bytes),
        )
    if not measured:
        name = "not-found" if predicted else "none" if known else "unknown-and-none"
    elif not predicted:
        name = "unexpected" if known else "unknown"
    elif measured.after <= predicted.before:
        name = "earlier"
    elif measured.before >= predicted.after:
        name = "later"
    else:
        name = "agree"
    return Gap(name, _CLIFF_WORDS[name].format(**figures))


def _about_as_fast(point: TilePoint, best: TilePoint) -> bool:
    return point.speedup.median >= _AS_FAST * best.speedup.median


def _place(sweep: TileSweep, point: TilePoint) -> Level:
    """The closest place that surely holds the buffer of a point."""
    return next(level for level in sweep.calibration.levels if point.tile_bytes <= level.sure_tile)


def _figures(sweep: TileSweep, point: TilePoint) -> dict[str, object]:
    place = _place(sweep, point)
    memory = sweep.calibration.levels[-1]
    return {
        "tile": format_bytes(point.tile_bytes),
        "count": f"{sweep.calls(point):,}",
        "speedup": format_ratio(point.speedup.median),
        "calls": format_seconds(_calls_seconds(sweep, point)),
        "copy": format_seconds(sweep.calibration.copy),
        "place": place.name,
        "work": format_seconds(len(CHAIN) * place.pass_seconds),
        "memory_work": format_seconds(len(CHAIN) * memory.pass_seconds),
    }


def _calls_seconds(sweep: TileSweep, point: TilePoint) -> float:
    return sweep.calibration.tile_calls * math.ceil(sweep.tensor_bytes / point.tile_bytes)


def _left(sweep: TileSweep) -> Gap:
    point = sweep.points[0]
    calls = _calls_seconds(sweep, point)
    work = len(CHAIN) * _place(sweep, point).pass_seconds
    if point == sweep.best:
        name = "smallest-is-fastest"
    elif calls > max(sweep.calibration.copy, work):
        name = "calls"
    else:
        name = "some-calls"
    return Gap(name, _LEFT_WORDS[name].format(**_figures(sweep, point)))


def _middle(sweep: TileSweep) -> Gap:
    point = sweep.best
    place = _place(sweep, point)
    if place.is_memory:
        name = "no-cache"
    elif len(CHAIN) * place.pass_seconds > sweep.calibration.copy:
        name = "cache-arithmetic"
    else:
        name = "cache-memory"
    return Gap(name, _MIDDLE_WORDS[name].format(**_figures(sweep, point)))


def _right(sweep: TileSweep) -> Gap:
    point = sweep.points[-1]
    if _about_as_fast(point, sweep.best):
        name = "flat"
    elif not _place(sweep, point).is_memory:
        name = "still-in-cache"
    else:
        name = "memory-in-place" if point.speedup.low > 1 else "memory"
    return Gap(name, _RIGHT_WORDS[name].format(**_figures(sweep, point)))


def require_guess(guess: object) -> int | None:
    """A guessed tile size in bytes, or None where none was made.

    Raises:
        ValueError: it is not a positive integer.
    """
    return None if guess is None else require_int("guess", guess, 1)


_LEFT_WORDS: Mapping[str, Text] = {
    "calls": Text(
        zh="左端输在调用：{tile} 的数据块要调用 NumPy {count} 次，光是调用就要 {calls}；"
        "内存读写一遍才 {copy}，四个算子在缓存里算一遍才 {work}。",
        en="The left end is calls: tiles of {tile} mean {count} NumPy calls, which alone take {calls}; one pass over "
        "memory takes {copy}, the four operators in cache take {work}.",
    ),
    "some-calls": Text(
        zh="左端调用还不是大头：{tile} 的数据块要调用 NumPy {count} 次，用去 {calls}；"
        "内存读写一遍要 {copy}，四个算子要 {work}。",
        en="On the left, calls are not the largest part: tiles of {tile} mean {count} NumPy calls, {calls}; one pass "
        "over memory takes {copy}, the four operators take {work}.",
    ),
    "smallest-is-fastest": Text(
        zh="左端没有下降：最小的 {tile} 反而最快，调用（{calls}）在这里可以忽略。这很少见，请再测一次。",
        en="The left end does not fall: the smallest tile, {tile}, is the fastest, and its calls ({calls}) hardly "
        "count. That is rare: measure again.",
    ),
}
_MIDDLE_WORDS: Mapping[str, Text] = {
    "cache-memory": Text(
        zh="中间赢在缓存：{tile} 时最快，{speedup}。中间结果留在 {place} 里，四个算子只要 {work}"
        "（全走内存要 {memory_work}）；剩下的大头是 x 和 y 各过一遍内存，{copy}，省不掉。",
        en="The middle is the cache: {tile} is the fastest, {speedup}. The intermediate results stay in {place}, "
        "where the four operators take {work} (in memory: {memory_work}). Most of what is left is x and y passing "
        "through memory once, {copy}, which no tile can save.",
    ),
    "cache-arithmetic": Text(
        zh="中间赢在缓存：{tile} 时最快，{speedup}。中间结果留在 {place} 里，四个算子要 {work}"
        "（全走内存要 {memory_work}）；这已经超过 x 和 y 各过一遍内存的 {copy}，剩下的主要是运算本身。",
        en="The middle is the cache: {tile} is the fastest, {speedup}. The intermediate results stay in {place}, "
        "where the four operators take {work} (in memory: {memory_work}). That exceeds the {copy} that x and y need "
        "to pass through memory: what is left is mostly the arithmetic.",
    ),
    "no-cache": Text(
        zh="最快的是 {tile}，{speedup}，可这么大的数据块未必留得在缓存里；在这台机器上，"
        "四个算子走内存（{memory_work}）并不比走缓存慢多少。",
        en="{tile} is the fastest, {speedup}, though a tile this large need not stay in any cache: on this machine "
        "the four operators are hardly slower in memory ({memory_work}).",
    ),
}
_RIGHT_WORDS: Mapping[str, Text] = {
    "memory": Text(
        zh="右端输在内存：数据块就是整个张量（{tile}），每个算子都要把它从内存读进来、写回去，四遍要 {memory_work}，"
        "分块等于没分，只有 {speedup}。",
        en="The right end is memory: the tile is the whole tensor ({tile}), every operator reads it from memory and "
        "writes it back, {memory_work} for the four, and tiling comes to nothing: {speedup}.",
    ),
    "memory-in-place": Text(
        zh="右端输在内存：数据块就是整个张量（{tile}），每个算子都要把它从内存读进来、写回去，四遍要 {memory_work}。"
        "仍有 {speedup}，是因为它在同一块缓冲区里原地计算，不像逐个算子各写一个新张量：逻辑读写一个字节没少，"
        "可是 CPU 覆盖一块内存之前，通常要先把它读进来，而原地计算时那块内存刚刚读过。",
        en="The right end is memory: the tile is the whole tensor ({tile}), and every operator reads it from memory "
        "and writes it back, {memory_work} for the four. It still reaches {speedup} because it works in place in one "
        "buffer, where one pass per operator writes a new tensor each time: no logical byte less, but a CPU usually "
        "fetches memory before it overwrites it, and in place that memory has just been read.",
    ),
    "still-in-cache": Text(
        zh="右端还在缓存里：{place} 大得装下了整个张量（{tile}），所以看不到真正的内存；"
        "{speedup} 的差距来自 {place} 比更近的缓存慢。把张量加大再测。",
        en="The right end is still in a cache: {place} is large enough for the whole tensor ({tile}), so memory "
        "itself does not show; {speedup} comes from {place} being slower than the caches closer to the core. Measure "
        "with a larger tensor.",
    ),
    "flat": Text(
        zh="右端没有下降：整个张量作一个数据块（{tile}）也有 {speedup}，和最快的差不多。要么缓存很大，要么内存很快。",
        en="The right end does not fall: one tile as large as the tensor ({tile}) reaches {speedup}, about as fast "
        "as the best. Either the cache is very large or memory is very fast.",
    ),
}
_CLIFF_WORDS: Mapping[str, Text] = {
    "agree": Text(
        zh="断崖：预测在 {low} 与 {high} 之间（{cache} 有 {size}，要同时装下源和目标两块），"
        "实测从 {before} 到 {after}，耗时涨到 {fall}，两者相符。",
        en="The cliff: predicted between {low} and {high} ({cache} holds {size}, and source and target must both "
        "fit); measured from {before} to {after}, where the time grows {fall}. The two agree.",
    ),
    "earlier": Text(
        zh="断崖：按 {cache} 的 {size} 预测在 {low} 与 {high} 之间，实测早在 {before} 到 {after} 耗时就涨到 {fall}。"
        "说明真正归你用的缓存没有标称的那么大：约 {cache_low} 到 {cache_high}，其余被别的程序或别的虚拟机占着。",
        en="The cliff: predicted between {low} and {high} from the {size} of {cache}, measured as early as {before} "
        "to {after}, where the time grows {fall}. Less cache is yours than it says, about {cache_low} to "
        "{cache_high}: other programs, or other virtual machines, use the rest.",
    ),
    "later": Text(
        zh="断崖：按 {cache} 的 {size} 预测在 {low} 与 {high} 之间，实测要到 {before} 与 {after} 之间才涨到 {fall}。"
        "说明下一级缓存或硬件预取还跟得上，起作用的缓存约 {cache_low} 到 {cache_high}。",
        en="The cliff: predicted between {low} and {high} from the {size} of {cache}, measured only between {before} "
        "and {after}, where the time grows {fall}. The next cache or the prefetcher still keeps up; the cache "
        "that counts is about {cache_low} to {cache_high}.",
    ),
    "not-found": Text(
        zh="断崖：按 {cache} 的 {size} 预测在 {low} 与 {high} 之间，实测却没有明显的下降："
        "慢的那一级被预取和重叠掩盖了。",
        en="The cliff: predicted between {low} and {high} from the {size} of {cache}, but no step of the measured "
        "curve falls much: prefetching and overlap hide the slower level.",
    ),
    "none": Text(
        zh="断崖：在这个数据块范围内，预测没有，实测也没有，两者相符。",
        en="The cliff: none predicted within these tile sizes, none measured. The two agree.",
    ),
    "unexpected": Text(
        zh="断崖：预测没有，实测却从 {before} 到 {after} 耗时涨到 {fall}。看来有一级约 {cache_low} 到 {cache_high} "
        "的缓存在起作用；虚拟机报告的缓存大小常常不准。",
        en="The cliff: none predicted, but from {before} to {after} the measured time grows {fall}. It points to "
        "a cache of about {cache_low} to {cache_high}; the sizes that a virtual machine reports are often wrong.",
    ),
    "unknown": Text(
        zh="断崖：这台机器读不到缓存大小，所以预测不了位置；实测从 {before} 到 {after} 耗时涨到 {fall}。"
        "源和目标两块要一起装下，由此推算，起作用的缓存约 {cache_low} 到 {cache_high}。",
        en="The cliff: cache sizes cannot be read here, so none was predicted; from {before} to {after} the "
        "measured time grows {fall}. Source and target must both fit: the cache that counts is about "
        "{cache_low} to {cache_high}.",
    ),
    "unknown-and-none": Text(
        zh="断崖：这台机器读不到缓存大小，预测不了位置；实测也没有明显的下降。",
        en="The cliff: cache sizes cannot be read here, so none was predicted, and no step of the measured curve "
        "falls much.",
    ),
}
_GUESS_WORDS: Mapping[str, Text] = {
    "best": Text(zh="你猜 {tile}：正是最快的，{speedup}。", en="You guessed {tile}: the fastest indeed, {speedup}."),
    "as-fast": Text(
        zh="你猜 {tile}：{speedup}，和最快的 {best}（{best_speedup}）不相上下。",
        en="You guessed {tile}: {speedup}, about as fast as the best, {best} ({best_speedup}).",
    ),
    "slower": Text(
        zh="你猜 {tile}：{speedup}；最快的是 {best}，{best_speedup}。",
        en="You guessed {tile}: {speedup}. The fastest is {best}, {best_speedup}.",
    ),
}
_SIZED_DOWN = Text(
    zh="可用内存不多，张量从 {asked} 缩小到 {used}，曲线的右端因此短一些。",
    en="Free memory is short: the tensors were made {used} instead of {asked}, so the curve ends earlier.",
)
_NOISY_NOTE = Text(
    zh="有些点各轮之间相差很大，多半有别的程序在占用处理器或内存；关掉它们再测一次会更可信。",
    en="At some points the rounds differ a lot: other programs are probably using the processor or the memory. "
    "Close them and measure again.",
)
_BUSY_NOTE = Text(
    zh="测量期间，处理器有 {share} 的时间在忙别的。这里只计本线程自己的时间，比值仍可比；"
    "被分走的缓存和内存带宽去不掉。",
    en="During {share} of the measurement the processor was busy elsewhere. Only this thread's own time counts here, "
    "so the ratios still compare; cache and memory bandwidth taken by others cannot be taken out.",
)
