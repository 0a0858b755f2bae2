"""The losing cases as tables for a lesson."""

from __future__ import annotations

from lessons_lib.base.gpus import GPUS, Gpu
from lessons_lib.base.roofline import Interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_range, format_seconds
from lessons_lib.base.validate import require_choice
from lessons_lib.kernels.benchmark.prediction import LAUNCH_SECONDS, TINY_BYTES, plan_bytes
from lessons_lib.kernels.launch import chain_groups
from lessons_lib.kernels.losing import CHAIN_PLANS, GEMM, TINY, gemm_plans, tiny_chain
from lessons_lib.show.guesses import guess_line, voted_word
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table

_PLAN = Text(zh="做法", en="plan")
_TIME = Text(zh="预测耗时", en="predicted time")
_SEPARATE = Text(zh="库的矩阵乘，偏置、GELU 各一个核函数", en="library GEMM, then a kernel each for bias and GELU")
_LIBRARY = Text(zh="库的矩阵乘，再加一个融合的尾声核函数", en="library GEMM, then one fused kernel for both")
_ONE = Text(zh="全部融合成一个 Triton 核函数", en="everything in one Triton kernel")
_LAUNCHES = Text(zh="启动次数", en="launches")
_GEMM_NOTE = Text(
    zh="fp16，x [{m}, {k}]，w [{k}, {n}]，按 {gpu} 数据手册的峰值算。库的矩阵乘总用张量核心；Triton 在这块 GPU 上{reach}。"
    "这些是下限，真的核函数更慢。",
    en="fp16, x [{m}, {k}], w [{k}, {n}], at the {gpu}'s datasheet peaks. The library's GEMM always runs on the tensor "
    "cores; on this GPU Triton's {reach}. These are bounds: real kernels are slower.",
)
_REACHED = Text(zh="也用得到", en="does so, too")
_NOT_REACHED = Text(zh="用不到，只能用 fp32 的普通乘加单元", en="does not and is left with plain fp32 multiply-adds")
_TINY_NOTE = Text(
    zh="每个张量 {size}，{gpu}；每个核函数的耗时取“启动”（这里设为 {launch}）和“读写”中较大的一个。启动开销因机器而异。",
    en="{size} per tensor on the {gpu}; each kernel takes as long as its launch (assumed {launch} here) or its bytes, "
    "whichever is longer. What a launch costs differs from machine to machine.",
)
_ASKED = Text(
    zh="T4 上一个 Triton 核函数，和库的矩阵乘加尾声核函数相比",
    en="one Triton kernel on a T4, against the library's GEMM and an epilogue kernel",
)
LOSING_OPTIONS = {
    "faster": Text(zh="更快，省了一遍读写", en="faster: a write and a read are saved"),
    "same": Text(zh="差不多", en="about the same"),
    "slower": Text(zh="更慢", en="slower"),
}
"""What ``losing_vote`` offers, by the value that it notes."""
_BYTES_TIME = Text(zh="只算读写", en="bytes alone")
_TINY_TIME = Text(zh="算上启动", en="with launches")


def losing_report(gpu: str = "T4") -> Shown:
    """Both cases as tables, predicted for one of ``GPUS``; nothing here is measured.

    What the learner voted about the first (``losing_vote``, of a T4) stands beneath it.

    Raises:
        ValueError: ``gpu`` is not a name in ``GPUS``.
    """
    require_choice("gpu", gpu, GPUS)
    first, second = _gemm_report(GPUS[gpu]), _tiny_report(GPUS[gpu])
    return Shown(first.html + second.html, f"{first.plain}\n\n{second.plain}")


def _gemm_report(gpu: Gpu) -> Shown:
    plans = gemm_plans(gpu)
    ways = ((_SEPARATE, 3, plans.separate), (_LIBRARY, 2, plans.library_then_epilogue), (_ONE, 1, plans.fused))
    reach = _REACHED if plans.on_tensor_cores else _NOT_REACHED
    return report(
        Table(
            [str(_PLAN), str(_LAUNCHES), str(_TIME)],
            [[str(name), str(launches), _seconds(time)] for name, launches, time in ways],
            note=str(_GEMM_NOTE.format(m=GEMM.rows, k=GEMM.inner, n=GEMM.columns, gpu=gpu.name, reach=reach)),
        ),
        _vote_words(),
    )


def _vote_words() -> list[Text]:
    """The line “your guess”; none without a vote."""
    word = voted_word("losing_vote")
    return [guess_line(_ASKED, LOSING_OPTIONS[word])] if word in LOSING_OPTIONS else []


def _tiny_report(gpu: Gpu) -> Shown:
    times = tiny_chain(gpu)
    rows = [
        [
            " + ".join(str(last - first + 1) for first, last in chain_groups(groups)),
            str(groups),
            format_seconds(plan_bytes(TINY, CHAIN_PLANS[groups]) / gpu.bandwidth),
            format_seconds(seconds),
        ]
        for groups, seconds in times.items()
    ]
    note = _TINY_NOTE.format(size=format_bytes(TINY_BYTES), gpu=gpu.name, launch=format_seconds(LAUNCH_SECONDS))
    header = (Text(zh="每个核函数几个算子", en="operators per kernel"), _LAUNCHES, _BYTES_TIME, _TINY_TIME)
    return report(Table([str(title) for title in header], rows, note=str(note)))


def _seconds(time: Interval) -> str:
    return format_range(time.low, time.high, format_seconds)
