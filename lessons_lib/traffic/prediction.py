"""The lab's prediction from its calibration, and the named reason for the gap: numbers in, numbers and words out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lessons_lib.base.roofline import Interval, speedup_interval
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_ratio, format_seconds

NOISY = 0.5  # 20th to 80th percentile, as a share of the median
_TOO_LARGE = 1.25
_TOLERANCE = 0.05
_UNLIKE = 0.25  # of an interval


@dataclass(frozen=True)
class Calibration:
    """What this machine needs for the parts, in seconds for the whole tensor.

    ``copy``: one pass that changes nothing, over memory (read and write a tensor). ``operations``: the arithmetic
    of each operation on a tile that stays in the cache, calls taken off. ``calls``: Python's and NumPy's own time
    for all the calls of the tiled loop.
    """

    copy: float
    operations: tuple[float, ...]
    calls: float

    @property
    def compute(self) -> float:
        """The arithmetic of all operations together."""
        return math.fsum(self.operations)


@dataclass(frozen=True)
class ChainPrediction:
    """Seconds and ratios that follow from a calibration; see ``predict_chain``."""

    unfused: Interval
    tiled: Interval
    speedup: Interval
    same_overlap_speedup: Interval


@dataclass(frozen=True)
class Gap:
    """Why a measurement lies where it does: ``name`` for programs, ``text`` for readers."""

    name: str
    text: Text


def predict_chain(calibration: Calibration) -> ChainPrediction:
    """The seconds of both variants, each from perfect overlap of bytes and arithmetic to none.

    ``unfused = [sum of max(copy, operation), sum of (copy + operation)]``, over the operations;
    ``tiled = [max(copy, compute + calls), copy + compute + calls]``: calls overlap with no arithmetic, for one core
    does both. The four calls of the unfused chain are not counted.

    ``speedup`` allows each side its own overlap: ``[unfused.low / tiled.high, unfused.high / tiled.low]``.
    ``same_overlap_speedup`` gives both sides the same, as two compiled kernels on one device would have.
    """
    copy = calibration.copy
    work = calibration.compute + calibration.calls
    unfused = Interval(
        math.fsum(max(copy, operation) for operation in calibration.operations),
        math.fsum(copy + operation for operation in calibration.operations),
    )
    tiled = Interval(max(copy, work), copy + work)
    return ChainPrediction(
        unfused=unfused,
        tiled=tiled,
        speedup=Interval(unfused.low / tiled.high, unfused.high / tiled.low),
        same_overlap_speedup=speedup_interval(unfused, tiled),
    )


def explain_gap(calibration: Calibration, unfused: Spread, tiled: Spread, resident: Spread) -> Gap:
    """Name why the two measured times lie where they do, from what was measured.

    ``resident`` is the tiled loop on one tile again and again: slower than arithmetic and calls together only
    if the tile itself is too large for the cache.
    """
    prediction = predict_chain(calibration)
    work = calibration.compute + calibration.calls
    figures = {
        "unfused": format_seconds(unfused.median),
        "unfused_low": format_seconds(prediction.unfused.low),
        "unfused_high": format_seconds(prediction.unfused.high),
        "tiled": format_seconds(tiled.median),
        "tiled_low": format_seconds(prediction.tiled.low),
        "tiled_high": format_seconds(prediction.tiled.high),
        "calls": format_seconds(calibration.calls),
        "resident": format_seconds(resident.median),
        "work": format_seconds(work),
    }
    unfused_side, tiled_side = side_of(unfused, prediction.unfused), side_of(tiled, prediction.tiled)
    unfused_overlap = _overlap(unfused, prediction.unfused)
    tiled_overlap = _overlap(tiled, prediction.tiled)
    if max(unfused.relative_width, tiled.relative_width) > NOISY:
        name = "noise"
    elif calibration.calls > max(calibration.copy, calibration.compute):
        name = "calls"
    elif tiled_side == "above" and resident.median > _TOO_LARGE * work:
        name = "tile-out-of-cache"
    elif unfused_side == "below":
        name = "cache-kept-intermediates"
    elif tiled_side == "above":
        name = "slower-than-the-parts"
    elif unfused_side == "above":
        name = "more-tensors-than-the-copy"
    elif tiled_side == "below":
        name = "faster-than-the-parts"
    elif unfused_overlap - tiled_overlap > _UNLIKE:
        name = "overlap-within-a-pass"
    elif tiled_overlap - unfused_overlap > _UNLIKE:
        name = "overlap-within-a-tile"
    else:
        name = "overlap" if unfused_overlap + tiled_overlap >= 1 else "no-overlap"
    return Gap(name, _REASONS[name].format(**figures))


def explain_naive_gap(calibration: Calibration, naive: float, measured: float) -> Gap:
    """Name what the guess by bytes leaves out: the larger of arithmetic and calls."""
    name = "arithmetic" if calibration.compute >= calibration.calls else "calls"
    return Gap(
        name,
        _NAIVE_REASONS[name].format(
            naive=format_ratio(naive),
            measured=format_ratio(measured),
            copy=format_seconds(calibration.copy),
            compute=format_seconds(calibration.compute),
            calls=format_seconds(calibration.calls),
        ),
    )


def side_of(measured: Spread, predicted: Interval) -> Literal["below", "within", "above"]:
    """Where a median lies; outside means beyond an end by more than 5 % and by more than half the rounds' spread."""
    half_spread = (measured.high - measured.low) / 2
    if measured.median < predicted.low - max(_TOLERANCE * predicted.low, half_spread):
        return "below"
    if measured.median > predicted.high + max(_TOLERANCE * predicted.high, half_spread):
        return "above"
    return "within"


def _overlap(measured: Spread, predicted: Interval) -> float:
    """1 at the low end of the interval (perfect overlap), 0 at the high end (none)."""
    width = predicted.high - predicted.low
    return min(1.0, max(0.0, (predicted.high - measured.median) / width)) if width else 1.0


_REASONS: Mapping[str, Text] = {
    "noise": Text(
        zh="各轮之间的波动太大，这次测量分不出原因。关掉其他程序，再运行一次。",
        en="The rounds differ too much to name a reason. Close other programs and run it again.",
    ),
    "calls": Text(
        zh="调用开销占了大头：单是调用就用去 {calls}，比搬运数据或做运算都多。数据块太小，摊销不了每次调用的开销。",
        en="Calls dominate: they alone take {calls}, more than moving the data or computing. The tiles are too "
        "small to amortize the cost of a call.",
    ),
    "tile-out-of-cache": Text(
        zh="数据块装不进缓存：只在同一个数据块上反复算，也要 {resident}，而运算加调用本来只需 {work}。"
        "中间结果没有留在片上，逐块实测 {tiled}，超过了预测的上限 {tiled_high}。",
        en="The tile does not fit the cache: repeating one and the same tile takes {resident}, where arithmetic "
        "and calls need {work}. The intermediate results do not stay on chip, and the tiled run took {tiled}, "
        "above the predicted {tiled_high}.",
    ),
    "cache-kept-intermediates": Text(
        zh="四遍只用了 {unfused}，低于预测的下限 {unfused_low}：缓存留住了一部分中间张量，"
        "下一遍不必全从内存读。逻辑读写没有变，真正到内存的读写少了。",
        en="Four passes took only {unfused}, below the predicted {unfused_low}: a cache kept part of the "
        "intermediate tensors, so the next pass did not read all of them from memory. The logical traffic is "
        "the same; less of it reached memory.",
    ),
    "slower-than-the-parts": Text(
        zh="实测（四遍 {unfused}，逐块 {tiled}）超过了各项之和（{unfused_high}，{tiled_high}），"
        "这里测的拷贝、运算、调用三项都解释不了。常见的原因是别的程序抢占内存带宽，或处理器降频；再测一次，看差距还在不在。",
        en="The measured times (four passes {unfused}, tiled {tiled}) exceed the sum of their parts ({unfused_high}, "
        "{tiled_high}), and none of the three measured terms explains it. Often another program takes memory "
        "bandwidth, or the clock drops: measure again and see whether it stays.",
    ),
    "more-tensors-than-the-copy": Text(
        zh="四遍用了 {unfused}，超过预测的上限 {unfused_high}，逐块却在预测之内。校准用的拷贝只碰两个张量，"
        "四遍要碰五个：较大的缓存也许放得下两个，放不下五个。把张量加大再测，如果差距消失，就是这个原因。",
        en="Four passes took {unfused}, above the predicted {unfused_high}, while the tiled run lies within its "
        "interval. The calibrating copy touches two tensors, the four passes five: a large cache may hold two and "
        "not five. Measure with larger tensors: if the gap closes, this was the reason.",
    ),
    "faster-than-the-parts": Text(
        zh="逐块实测 {tiled}，比预测的下限 {tiled_low} 还快：校准时多半受了干扰，或处理器后来升了频。再测一次。",
        en="Tiled took {tiled}, less than the predicted {tiled_low}: the calibration was probably disturbed, or "
        "the clock rose later. Measure again.",
    ),
    "overlap-within-a-pass": Text(
        zh="重叠只发生在一次调用之内。分四遍做时，处理器在每一遍里边运算边预取后面的数据，所以 {unfused} 靠近"
        "下限 {unfused_low}；逐块做时，中间两步只碰缓存，这段时间内存闲着，所以 {tiled} 离下限 {tiled_low} 较远"
        "（各项之和是 {tiled_high}）。编译器生成的融合核函数是一个循环，没有这种空闲。",
        en="Overlap happens within one call only. In each of the four passes the processor fetches ahead while it "
        "computes, so {unfused} lies near the lower end {unfused_low}; in the tiled loop the middle steps touch "
        "only the cache while memory sits idle, so {tiled} stays away from its lower end {tiled_low} (the sum of "
        "the parts is {tiled_high}). A compiler's fused kernel is one loop without such a seam.",
    ),
    "overlap": Text(
        zh="搬运和运算重叠得不错：四遍 {unfused}、逐块 {tiled} 都更靠近预测的下限（{unfused_low}，{tiled_low}）。",
        en="Moving data and computing overlap well: four passes {unfused} and tiled {tiled} both lie nearer to the "
        "lower ends ({unfused_low}, {tiled_low}).",
    ),
    "no-overlap": Text(
        zh="NumPy 几乎没有让读写和运算重叠：四遍 {unfused}、逐块 {tiled} 都靠近各项之和"
        "（{unfused_high}，{tiled_high}）。",
        en="NumPy barely overlaps loads and arithmetic: four passes {unfused} and tiled {tiled} both lie near the "
        "sum of the parts ({unfused_high}, {tiled_high}).",
    ),
    "overlap-within-a-tile": Text(
        zh="逐块做时读写和运算重叠得更好：{tiled} 更靠近下限 {tiled_low}，四遍的 {unfused} 更靠近"
        "各项之和 {unfused_high}。",
        en="The tiled loop overlaps better: {tiled} lies nearer to its lower end {tiled_low}, four passes {unfused} "
        "nearer to the sum {unfused_high}.",
    ),
}
_NAIVE_REASONS: Mapping[str, Text] = {
    "arithmetic": Text(
        zh="{naive} 只数了字节。融合省下的是搬运：四遍变一遍，每遍 {copy}；运算一次也没有少，仍要 {compute}，"
        "另有调用 {calls}。所以实测是 {measured}。",
        en="{naive} counts bytes only. Fusion saves passes over memory: one instead of four, {copy} each. The "
        "arithmetic is all still there, {compute}, and the calls take {calls}. Hence the measured {measured}.",
    ),
    "calls": Text(
        zh="{naive} 只数了字节。逐块做时搬运只剩一遍（{copy}），可是数据块越小调用越多：调用用去 {calls}，"
        "比运算的 {compute} 还多。所以实测是 {measured}。",
        en="{naive} counts bytes only. Tiled, one pass over memory is left ({copy}), but smaller tiles mean more "
        "calls: they take {calls}, more than the arithmetic's {compute}. Hence the measured {measured}.",
    ),
}
