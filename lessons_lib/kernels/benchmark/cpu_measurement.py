"""The chain on a CPU, PyTorch's four operators against ``torch.compile``'s one loop: figures, prediction, reason.

Fusion takes passes over memory away and no arithmetic. So the compiled loop is predicted from the four operators as
they were timed one by one, and from a copy: what remains is one pass, and whatever the operators needed beyond theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lessons_lib.base.roofline import Interval
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_ratio, format_seconds
from lessons_lib.kernels.launch import CHAIN_OPERATORS
from lessons_lib.traffic.model import chain_traffic
from lessons_lib.traffic.prediction import NOISY, Gap, side_of

_PASS_BYTES = (2, 2, 2, 3)  # tensors that each operator moves; the residual addition reads two
_COMPUTE_BOUND = 1.5  # times a pass over the same bytes: such an operator waits for arithmetic and not for memory
_MOSTLY = 0.5


@dataclass(frozen=True)
class CpuMeasurement:
    """What ``measure_on_cpu`` found. Bytes, and seconds by the clock on the wall.

    Args:
        requested_bytes, tensor_bytes: of one tensor: as asked, and as free memory allowed.
        threads: that PyTorch used.
        copy: one pass that reads a tensor and writes one.
        operators: each operator of ``CHAIN_OPERATORS`` alone.
        unfused: the four, one after another.
        compiled: one loop by ``torch.compile``; ``None`` where ``problem`` says why there is none.
        compile_seconds: what compiling took; ``None`` likewise.
        speedup: ratios unfused / compiled, round by round; ``None`` likewise.
        outputs_right: whether every output agrees with float64 within a few roundings of float32.
        problem: what kept the compiler from compiling.
    """

    requested_bytes: int
    tensor_bytes: int
    threads: int
    copy: Spread
    operators: tuple[Spread, ...]
    unfused: Spread
    compiled: Spread | None
    compile_seconds: float | None
    speedup: Spread | None
    outputs_right: bool
    problem: Text | None = None

    @property
    def unfused_bytes(self) -> int:
        """Logical traffic of four kernels."""
        return _chain_bytes(self.tensor_bytes, len(CHAIN_OPERATORS))

    @property
    def fused_bytes(self) -> int:
        """Logical traffic of one: ``x`` and the residual read, ``y`` written."""
        return _chain_bytes(self.tensor_bytes, 1)

    @property
    def bytes_ratio(self) -> float:
        return self.unfused_bytes / self.fused_bytes

    @property
    def pass_seconds(self) -> tuple[float, ...]:
        """What each operator's bytes alone would take, at the copy's rate."""
        return tuple(self.copy.median * tensors / 2 for tensors in _PASS_BYTES)

    @property
    def predicted_unfused(self) -> Interval:
        """From the bytes alone to the four operators timed one by one."""
        low = math.fsum(self.pass_seconds)
        return Interval(low, max(low, math.fsum(spread.median for spread in self.operators)))

    @property
    def predicted_compiled(self) -> Interval:
        """One pass over ``x``, residual and ``y``, and the arithmetic that the operators' times show.

        If passes and arithmetic never overlap, an operator computes for as long as it exceeds its pass, and the loop
        takes one pass and all of that. If they overlap fully, an operator well above its pass computes all the time,
        and the loop takes the longer of one pass and that. The prediction lies between the two.
        """
        one_pass = self.copy.median * self.fused_bytes / (2 * self.tensor_bytes)
        times = [spread.median for spread in self.operators]
        pairs = list(zip(times, self.pass_seconds, strict=True))
        apart = one_pass + math.fsum(max(0.0, taken - moving) for taken, moving in pairs)
        together = max(one_pass, math.fsum(taken for taken, moving in pairs if taken > _COMPUTE_BOUND * moving))
        return Interval(min(apart, together), max(apart, together))

    @property
    def predicted_speedup(self) -> Interval:
        """The measured four operators against the predicted loop."""
        predicted = self.predicted_compiled
        return Interval(self.unfused.median / predicted.high, self.unfused.median / predicted.low)

    @property
    def compute_bound_operators(self) -> tuple[str, ...]:
        """The operators that take well over their pass."""
        times = zip(CHAIN_OPERATORS, self.operators, self.pass_seconds, strict=True)
        return tuple(name for name, taken, moving in times if taken.median > _COMPUTE_BOUND * moving)

    @property
    def reason(self) -> Gap:
        """Why the compiled loop takes what it takes."""
        name = self._reason_name()
        arithmetic = math.fsum(
            spread.median
            for operator, spread in zip(CHAIN_OPERATORS, self.operators, strict=True)
            if operator in self.compute_bound_operators
        )
        words = _REASONS[name].format(
            unfused=format_seconds(self.unfused.median),
            compiled="?" if self.compiled is None else format_seconds(self.compiled.median),
            speedup="?" if self.speedup is None else format_ratio(self.speedup.median),
            ratio=f"{self.bytes_ratio:g}",
            low=format_seconds(self.predicted_compiled.low),
            high=format_seconds(self.predicted_compiled.high),
            operators=", ".join(self.compute_bound_operators) or "-",
            arithmetic=format_seconds(arithmetic),
        )
        return Gap(name, words)

    @property
    def notes(self) -> tuple[Text, ...]:
        """What else to know about this run."""
        notes = []
        if side_of(self.unfused, self.predicted_unfused) == "above":
            notes.append(
                _ABOVE_PARTS.format(
                    unfused=format_seconds(self.unfused.median), parts=format_seconds(self.predicted_unfused.high)
                )
            )
        if self.tensor_bytes < self.requested_bytes:
            notes.append(
                _SIZED_DOWN.format(asked=format_bytes(self.requested_bytes), used=format_bytes(self.tensor_bytes))
            )
        if self.compile_seconds is not None:
            notes.append(_COMPILING.format(seconds=format_seconds(self.compile_seconds), calls=self._break_even()))
        return tuple(notes)

    def _reason_name(self) -> str:
        if self.compiled is None:
            return "no-compiler"
        if max(self.unfused.relative_width, self.compiled.relative_width) > NOISY:
            return "noise"
        side = side_of(self.compiled, self.predicted_compiled)
        if side != "within":
            return "slower-loop" if side == "above" else "better-loop"
        arithmetic = math.fsum(max(0.0, s.median - m) for s, m in zip(self.operators, self.pass_seconds, strict=True))
        return "arithmetic" if arithmetic > _MOSTLY * self.compiled.median else "bytes"

    def _break_even(self) -> str:
        """Calls after which the time saved has paid for compiling."""
        if self.compiled is None or self.compile_seconds is None or self.unfused.median <= self.compiled.median:
            return "∞"
        return f"{math.ceil(self.compile_seconds / (self.unfused.median - self.compiled.median)):,}"


def _chain_bytes(tensor_bytes: int, groups: int) -> int:
    return chain_traffic(len(CHAIN_OPERATORS), tensor_bytes, groups, side_inputs=1)["total_bytes"]


_REASONS: Mapping[str, Text] = {
    "no-compiler": Text(
        zh="这里编译不了，所以只有逐个算子的实测 {unfused} 和对一个循环的预测 {low} – {high}。",
        en="Nothing could be compiled here: there is the measured {unfused} of the separate operators, and the prediction "
        "for one loop, {low} – {high}.",
    ),
    "noise": Text(
        zh="各轮之间的波动太大，分不出原因。关掉其他程序，再测一次。",
        en="The rounds differ too much to name a reason. Close other programs and measure again.",
    ),
    "slower-loop": Text(
        zh="编译出的循环用了 {compiled}，比预测的 {high} 慢：它的运算或线程安排不如 PyTorch 自带的算子。",
        en="The compiled loop takes {compiled}, more than the predicted {high}: its arithmetic, or the way it shares work "
        "among threads, is slower than PyTorch's own operators.",
    ),
    "better-loop": Text(
        zh="编译出的循环只用 {compiled}，比预测的 {low} 快：它的运算比 PyTorch 自带的算子快，或者校准的几轮受了干扰。",
        en="The compiled loop takes only {compiled}, less than the predicted {low}: its arithmetic is faster than PyTorch's "
        "own operators, or the calibrating rounds were disturbed.",
    ),
    "arithmetic": Text(
        zh="读写少到原来的 1/{ratio}，加速比却只有 {speedup}：单独一个 {operators} 在这个 CPU 上就要 {arithmetic}，"
        "几乎全花在运算上，而融合不减少运算。"
        "计算受限的地方，融合帮不上多少忙。",
        en="The bytes are {ratio} times fewer, yet the speed-up is {speedup}: {operators} alone takes {arithmetic} on "
        "this CPU, nearly all of it arithmetic, which fusion does not save. Where arithmetic decides, fusion has little "
        "to give.",
    ),
    "bytes": Text(
        zh="这里由读写决定：读写少到原来的 1/{ratio}，加速比是 {speedup}，预测的耗时是 {low} – {high}。",
        en="Bytes decide here: they are {ratio} times fewer, the speed-up is {speedup}; the predicted time is {low} – {high}.",
    ),
}
_ABOVE_PARTS = Text(
    zh="四个算子连着做用了 {unfused}，比逐个单独测的总和 {parts} 还多：夹在别的算子之间，各自在缓存里能找到的更少；也可能是校准的几轮"
    "受了干扰。",
    en="One after another the four operators took {unfused}, more than the {parts} that they take when each is timed alone: "
    "between the others, each finds less in the caches; or the rounds were disturbed.",
)
_SIZED_DOWN = Text(
    zh="可用内存不多，张量从 {asked} 缩小到 {used}；各项比值的含义不变。",
    en="Free memory is short: the tensors were made {used} instead of {asked}. The ratios mean the same.",
)
_COMPILING = Text(
    zh="编译用了 {seconds}，不算在耗时里；要调用 {calls} 次才能摊销。",
    en="Compiling took {seconds}, not counted here; it is amortized after {calls} calls.",
)
