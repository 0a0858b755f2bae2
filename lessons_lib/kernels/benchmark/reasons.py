"""Why a measured plan lies where it does beside its prediction: one named reason each. Numbers in, words out."""

from __future__ import annotations

from collections.abc import Mapping

from lessons_lib.base.roofline import Interval
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_seconds
from lessons_lib.kernels.benchmark.prediction import plan_bytes
from lessons_lib.kernels.benchmark.runs import ExperimentRun, PlanRun, Run
from lessons_lib.traffic.prediction import Gap, side_of

UNSTEADY = 0.25  # 20th to 80th percentile, as a share of the median: a quiet GPU stays far below


def explain_plan(run: Run, entry: ExperimentRun, plan: PlanRun) -> Gap:
    """The first reason that the figures bear out, for one plan of a run.

    The names: ``not-timed``, ``wrong-output``, ``noise``, ``no-prediction``, ``no-tensor-cores``; for a time above
    its interval ``more-launches``, ``launch-overhead``, ``wrapper``, ``below-gemm-rate``, ``slow-passes``,
    ``below-bandwidth``; for one below it ``fewer-launches``, ``cache-resident``, ``better-gemm``,
    ``better-than-copy``; within it ``launch-bound``, ``gemm-bound``, ``overlap``, ``partial-overlap``.
    """
    return _gap(_name(run, entry, plan), run, entry, plan)


def short_words(gap: Gap) -> Text:
    """The reason in two or three words, for a cell of a table."""
    return _SHORT[gap.name]


def _name(run: Run, entry: ExperimentRun, plan: PlanRun) -> str:
    if plan.seconds is None:
        return "not-timed"
    if plan.status == "wrong":
        return "wrong-output"
    if plan.seconds.relative_width > UNSTEADY:
        return "noise"
    predicted = run.predicted(entry, plan.name)
    if predicted is None:
        return "no-prediction"
    if _lacks_tensor_cores(run, entry, plan):
        return "no-tensor-cores"
    side = side_of(plan.seconds, predicted)
    launches = plan.launches or 0
    expected = run.predicted_launches(entry, plan.name)
    if side == "above":
        return "more-launches" if launches > expected else _above(run, entry, plan)
    if side == "below":
        return "fewer-launches" if 0 < launches < expected else _below(run, entry, plan)
    return _within(entry, plan.seconds, predicted)


def _above(run: Run, entry: ExperimentRun, plan: PlanRun) -> str:
    if entry.experiment.clock == "host":
        return "launch-overhead" if plan.name == "operators" else "wrapper"
    if entry.experiment.kernel != "linear":
        return "below-bandwidth"
    return "below-gemm-rate" if run.predicted_launches(entry, plan.name) == 1 else "slow-passes"


def _below(run: Run, entry: ExperimentRun, plan: PlanRun) -> str:
    l2 = _l2_bytes(run)
    hands_over = run.predicted_launches(entry, plan.name) > 1
    if l2 is not None and hands_over and entry.experiment.tensor_bytes <= l2:
        return "cache-resident"
    return "better-gemm" if entry.experiment.kernel == "linear" else "better-than-copy"


def _within(entry: ExperimentRun, seconds: Spread, predicted: Interval) -> str:
    if entry.experiment.clock == "host":
        return "launch-bound"
    if seconds.median - predicted.low > predicted.high - seconds.median:
        return "partial-overlap"
    return "gemm-bound" if entry.experiment.kernel == "linear" else "overlap"


def _lacks_tensor_cores(run: Run, entry: ExperimentRun, plan: PlanRun) -> bool:
    return entry.experiment.kernel == "linear" and plan.name == "fused" and not run.environment.tensor_cores


def _l2_bytes(run: Run) -> int | None:
    sheet = run.environment.datasheet
    return run.environment.l2_bytes or (None if sheet is None else sheet.l2_bytes)


def _gap(name: str, run: Run, entry: ExperimentRun, plan: PlanRun) -> Gap:
    if name == "not-timed":
        return Gap(name, plan.note or _SHORT[name])
    predicted = run.predicted(entry, plan.name)
    share, l2 = run.share_of_copy(entry, plan.name), _l2_bytes(run)
    rates = run.rates(entry)
    launch = rates.launch_seconds if rates is not None else 0.0
    gemm = entry.median("gemm")
    return Gap(
        name,
        _WORDS[name].format(
            measured="?" if plan.seconds is None else format_seconds(plan.seconds.median),
            low="?" if predicted is None else format_seconds(predicted.low),
            high="?" if predicted is None else format_seconds(predicted.high),
            width="?" if plan.seconds is None else f"{plan.seconds.relative_width:.0%}",
            share="?" if share is None else f"{share:.0%}",
            launches="?" if plan.launches is None else plan.launches,
            expected=run.predicted_launches(entry, plan.name),
            launch=format_seconds(launch),
            wrapper="?" if rates is None else format_seconds(rates.wrapper_seconds),
            traffic=format_bytes(plan_bytes(entry.experiment, plan.name)),
            tensor=format_bytes(entry.experiment.tensor_bytes),
            l2="?" if l2 is None else format_bytes(l2),
            gemm="?" if gemm is None else format_seconds(gemm),
            rest="?" if gemm is None or plan.seconds is None else format_seconds(plan.seconds.median - gemm),
        ),
    )


_SHORT: Mapping[str, Text] = {
    "not-timed": Text(zh="没有计时", en="not timed"),
    "wrong-output": Text(zh="结果不对", en="wrong output"),
    "noise": Text(zh="波动太大", en="noise"),
    "no-prediction": Text(zh="没有预测", en="no prediction"),
    "more-launches": Text(zh="启动比预测多", en="more launches"),
    "launch-overhead": Text(zh="启动开销", en="launch overhead"),
    "wrapper": Text(zh="Python 开销", en="Python's overhead"),
    "no-tensor-cores": Text(zh="没用上张量核心", en="no tensor cores"),
    "below-gemm-rate": Text(zh="矩阵乘不及库", en="GEMM slower than library"),
    "slow-passes": Text(zh="后面几遍太慢", en="slow passes"),
    "below-bandwidth": Text(zh="没跑满带宽", en="below bandwidth"),
    "fewer-launches": Text(zh="启动比预测少", en="fewer launches"),
    "cache-resident": Text(zh="部分留在 L2", en="kept in L2"),
    "better-gemm": Text(zh="矩阵乘比库的快", en="GEMM beats the library"),
    "better-than-copy": Text(zh="比拷贝还快", en="beats the copy"),
    "launch-bound": Text(zh="由启动决定", en="launch-bound"),
    "gemm-bound": Text(zh="由矩阵乘决定", en="GEMM-bound"),
    "overlap": Text(zh="读写与运算重叠", en="overlap"),
    "partial-overlap": Text(zh="重叠得不够", en="partial overlap"),
}

_WORDS: Mapping[str, Text] = {
    "wrong-output": Text(
        zh="算出的结果和 float64 对不上，耗时再短也没有意义。",
        en="its output does not agree with float64, so its time means nothing.",
    ),
    "noise": Text(
        zh="各轮之间相差 {width}（20 到 80 百分位），分不出原因。GPU 上可能还有别的程序，或者在降频；再测一次。",
        en="the rounds differ by {width} (20th to 80th percentile), too much to name a reason. Something else may be "
        "using the GPU, or its clock drops: measure again.",
    ),
    "no-prediction": Text(
        zh="这次运行没有量到预测要用的速率，只列出实测 {measured}。",
        en="the run lacks a rate that the prediction needs; only the measured {measured} can be given.",
    ),
    "more-launches": Text(
        zh="实际启动了 {launches} 个核函数，不是预测的 {expected} 个：多出来的每一个都要再读写一遍张量。",
        en="{launches} kernels were launched, not the {expected} predicted: each extra one moves tensors through "
        "memory again.",
    ),
    "launch-overhead": Text(
        zh="{measured} 高于 {high}：张量只有 {tensor}，时间全花在启动上，PyTorch 选择算子、分配输出也要主机时间，"
        "比校准用的一次启动（{launch}）更多。",
        en="{measured}, above {high}: at {tensor} launches are all that counts, and choosing the operator and allocating "
        "its output takes the host longer than the calibrating launch ({launch}).",
    ),
    "wrapper": Text(
        zh="{measured} 高于 {high}：张量只有 {tensor}，GPU 几乎不用做事，时间花在主机的 Python 里"
        "（检查参数、查找编译好的核函数）；校准时一次调用是 {wrapper}。",
        en="{measured}, above {high}: at {tensor} the GPU has next to nothing to do, and Python on the host takes the "
        "time (checking arguments, finding the compiled kernel); one call took {wrapper} in the calibration.",
    ),
    "no-tensor-cores": Text(
        zh="这块 GPU 上 Triton 的矩阵乘用不到张量核心，靠普通乘加要 {measured}（预测 {low} 起）；库只做矩阵乘用 {gemm}。"
        "省下的读写抵不过慢下来的矩阵乘。",
        en="on this GPU Triton's GEMM reaches no tensor cores, and plain multiply-adds take {measured} (predicted from "
        "{low}); the library's GEMM alone takes {gemm}. The bytes saved do not pay for the slower GEMM.",
    ),
    "below-gemm-rate": Text(
        zh="{measured} 高于 {high}：读写确实少了，但这个核函数里的矩阵乘没有库的快。",
        en="{measured}, above {high}: the bytes are saved, but the GEMM inside this kernel is slower than the library's.",
    ),
    "slow-passes": Text(
        zh="{measured} 高于 {high}：只做矩阵乘要 {gemm}，后面逐元素的几遍又用了 {rest}，比按拷贝带宽算的慢。",
        en="{measured}, above {high}: the GEMM alone takes {gemm}, the elementwise passes behind it {rest}, more than at "
        "the copy's bandwidth.",
    ),
    "below-bandwidth": Text(
        zh="{measured} 高于 {high}：{traffic} 的读写只达到拷贝带宽的 {share}。"
        "常见的原因是同时在途的访存不够多，或者一行要归约完才能写，读和写重叠不起来。",
        en="{measured}, above {high}: {traffic} moved at {share} of the copy's bandwidth. Usually too few loads are in "
        "flight, or a row's reduction keeps reads and writes from overlapping.",
    ),
    "fewer-launches": Text(
        zh="只启动了 {launches} 个核函数，预测是 {expected} 个：库或编译器融合得更多，省下了读写。",
        en="only {launches} kernels were launched, {expected} were predicted: a library or compiler fused more and "
        "saved the bytes in between.",
    ),
    "cache-resident": Text(
        zh="{measured} 低于 {low}：中间张量每个 {tensor}，L2 有 {l2}，后一个核函数读到的有一部分还在 L2 里。"
        "逻辑读写没有变，到显存的少了。",
        en="{measured}, below {low}: an intermediate tensor takes {tensor}, the L2 has {l2}, so part of what the next kernel "
        "reads is still there. The logical traffic is the same; less of it reached device memory.",
    ),
    "better-gemm": Text(
        zh="{measured} 低于 {low}：同样几轮里只做矩阵乘的库函数用了 {gemm}，这里的矩阵乘比它快。",
        en="{measured}, below {low}: the library's GEMM alone took {gemm} in the same rounds; the GEMM inside this kernel is faster.",
    ),
    "better-than-copy": Text(
        zh="{measured} 低于 {low}，达到拷贝带宽的 {share}：预测按拷贝的带宽算，拷贝一半是写；读多写少的核函数可以更快。",
        en="{measured}, below {low}, at {share} of the copy's bandwidth: the prediction takes the copy's rate, and half "
        "of a copy is writing; a kernel that reads more than it writes can be faster.",
    ),
    "launch-bound": Text(
        zh="{measured} 在预测之内：张量只有 {tensor}，耗时由启动决定（{expected} 次），读写几乎不要时间。",
        en="{measured}, as predicted: at {tensor} the time goes to launches (count: {expected}), next to none to the bytes.",
    ),
    "gemm-bound": Text(
        zh="{measured}，靠近下限 {low}：时间由矩阵乘决定（单做要 {gemm}），省下或多出的读写大半藏在它后面。",
        en="{measured}, near the lower end {low}: the GEMM decides (alone it takes {gemm}), and most of the bytes hide "
        "behind it.",
    ),
    "overlap": Text(
        zh="{measured}，靠近下限 {low}：读写和运算几乎完全重叠，达到拷贝带宽的 {share}。",
        en="{measured}, near the lower end {low}: moving and computing overlap almost fully, at {share} of the copy's "
        "bandwidth.",
    ),
    "partial-overlap": Text(
        zh="{measured}，靠近上限 {high}：读写和运算没有完全重叠。",
        en="{measured}, near the upper end {high}: moving and computing do not overlap fully.",
    ),
}
