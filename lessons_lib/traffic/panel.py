"""The Q1 panels: group the operators of a chain and read bytes; move a GEMM's size and read an interval of time."""

from __future__ import annotations

from lessons_lib.base.gpus import A100, GPUS, T4
from lessons_lib.base.roofline import speedup_interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import GIB, MIB, count_of, format_bytes, format_range, format_ratio, format_seconds
from lessons_lib.show.controls import check_box, choice_buttons, int_slider, power_slider, size_slider
from lessons_lib.show.intervals import IntervalRow, draw_intervals
from lessons_lib.show.panel import Panel, Parameter
from lessons_lib.show.table import Table
from lessons_lib.traffic.drawing import draw_chain
from lessons_lib.traffic.epilogue import EpiloguePlan, epilogue_plans
from lessons_lib.traffic.model import ChainTraffic, chain_traffic

MOST_OPERATORS = 12

_BOUNDED = Text(
    zh="算子只有 {ops} 个，组数不能比算子多：已改为 {groups}。",
    en="There cannot be more groups than operators ({ops}): moved to {groups}.",
)
_NOTE = Text(
    zh="这是逻辑读写：其中一部分可能由缓存承担，耗时不会按同一比例下降。",
    en="These are logical bytes: caches may absorb some of them, and time does not fall in the same ratio.",
)


class TrafficPanel(Panel):
    """Operators, tensor size and groups as sliders; compulsory traffic and a side input as switches.

    ``result`` is what ``chain_traffic`` returns for the grouping shown. With ``compulsory`` off the table counts
    intermediate bytes alone, which is what ``fusion_traffic`` does.
    """

    lesson = "01"

    num_ops = Parameter(lambda: int_slider(Text(zh="算子数", en="operators"), 4, 1, MOST_OPERATORS))
    tensor_bytes = Parameter(
        lambda: size_slider(Text(zh="张量大小", en="tensor size"), 64 * MIB, smallest=MIB, largest=GIB)
    )
    fused_groups = Parameter(lambda: int_slider(Text(zh="融合组数", en="groups"), 4, 1, 4))
    compulsory = Parameter(lambda: check_box(Text(zh="计入必需读写", en="count compulsory traffic"), False))
    side_input = Parameter(lambda: check_box(Text(zh="加一个旁路输入", en="add a side input"), False))

    def constrain(self, moved: str) -> Text | None:
        groups = self.controls["fused_groups"]
        moved_down = groups.value > self.num_ops
        groups.max = self.num_ops
        return _BOUNDED.format(ops=self.num_ops, groups=groups.value) if moved_down else None

    def compute(self) -> ChainTraffic:
        return self._traffic(self.fused_groups)

    def picture(self, result: ChainTraffic) -> str:
        return draw_chain(
            result, self.tensor_bytes, self.num_ops, compulsory=self.compulsory, side_input=self.side_input
        )

    def table(self, result: ChainTraffic) -> Table:
        plans = [
            (Text(zh="不融合", en="unfused"), self._traffic(self.num_ops)),
            (Text(zh="当前分组", en="this grouping"), result),
            (Text(zh="全部融合", en="all fused"), self._traffic(1)),
        ]
        return Table(
            header=[str(title) for title in self._columns()],
            rows=[[str(name), *self._figures(plan)] for name, plan in plans],
            marked=1,
            note=str(_NOTE),
        )

    def _traffic(self, groups: int) -> ChainTraffic:
        return chain_traffic(self.num_ops, self.tensor_bytes, groups, side_inputs=int(self.side_input))

    def _columns(self) -> list[Text]:
        columns = [
            Text(zh="方案", en="plan"),
            Text(zh="启动次数", en="launches"),
            Text(zh="组间边界", en="group boundaries"),
            Text(zh="中间读写", en="intermediate"),
        ]
        if self.compulsory:
            columns += [Text(zh="总读写", en="total"), Text(zh="不融合 ÷ 本方案", en="unfused ÷ this")]
        return columns

    def _figures(self, plan: ChainTraffic) -> list[str]:
        figures = [str(plan["launches"]), str(plan["launches"] - 1), format_bytes(plan["intermediate_bytes"])]
        if self.compulsory:
            figures += [format_bytes(plan["total_bytes"]), format_ratio(plan["bytes_ratio"])]
        return figures


_EPILOGUE_TITLE = Text(
    zh="gelu(x @ w + b)，M = N = 4096，K = {k}，fp16，{gpu}", en="gelu(x @ w + b), M = N = 4096, K = {k}, fp16, {gpu}"
)
_EPILOGUE_LABEL = Text(
    zh="三种分法的耗时预测区间：3 个、2 个、1 个核函数", en="Predicted intervals of time for 3, 2 and 1 kernels"
)
_EPILOGUE_NOTE = Text(
    zh="区间两端分别是计算与读写完全重叠、完全不重叠。用的是厂商标称的峰值，真实的核函数达不到。",
    en="The two ends: compute and memory overlap fully, or not at all. The rates are the vendor's peaks, "
    "which no kernel reaches.",
)


class EpiloguePanel(Panel):
    """A GEMM with bias and GELU: the inner size K, the GPU and the cost of a launch as controls.

    ``result`` maps the number of kernels (3, 2, 1) to an ``EpiloguePlan``.
    """

    lesson = "01"

    k = Parameter(lambda: power_slider(Text(zh="内维 K", en="inner size K"), 1024, smallest=256, largest=16384))
    launch_us = Parameter(lambda: int_slider(Text(zh="每次启动 µs", en="µs per launch"), 0, 0, 20))
    gpu = Parameter(lambda: choice_buttons(Text(zh="GPU", en="GPU"), [T4.name, A100.name], A100.name))

    def compute(self) -> dict[int, EpiloguePlan]:
        return epilogue_plans(4096, self.k, 4096, GPUS[self.gpu], launch_seconds=self.launch_us * 1e-6)

    def picture(self, result: dict[int, EpiloguePlan]) -> str:
        rows = [IntervalRow(_kernels(count), plan.time) for count, plan in result.items()]
        title = str(_EPILOGUE_TITLE.format(k=self.k, gpu=self.gpu))
        return draw_intervals(title, rows, str(_EPILOGUE_LABEL), prefix="epilogue")

    def table(self, result: dict[int, EpiloguePlan]) -> Table:
        columns = (
            Text(zh="方案", en="plan"),
            Text(zh="总读写", en="total"),
            Text(zh="字节之比", en="ratio of bytes"),
            Text(zh="预测耗时", en="predicted time"),
            Text(zh="预测加速", en="predicted speed-up"),
        )
        first = result[3]
        rows = [[_kernels(count), *_against(first, plan)] for count, plan in result.items()]
        return Table([str(column) for column in columns], rows, marked=2, note=str(_EPILOGUE_NOTE))


def _kernels(count: int) -> str:
    return str(Text(zh=f"{count} 个核函数", en=count_of(count, "kernel")))


def _against(first: EpiloguePlan, plan: EpiloguePlan) -> list[str]:
    faster = speedup_interval(first.time, plan.time)
    return [
        format_bytes(plan.traffic["total_bytes"]),
        format_ratio(first.traffic["total_bytes"] / plan.traffic["total_bytes"]),
        format_range(plan.time.low, plan.time.high, format_seconds),
        format_range(faster.low, faster.high, format_ratio),
    ]
