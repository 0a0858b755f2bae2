"""A learner's model on a CPU, operator by operator against ``torch.compile``: figures, prediction, reason.

Fusion takes bytes away and no arithmetic. So the compiled model is predicted from the eager one: its own bytes at the
rate of a copy, and whatever the eager one needed beyond *its* bytes. A tensor that a run writes is new memory, which the
system hands out page by page while it is written: two copies, into old memory and into new, tell what that takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lessons_lib.base.roofline import Interval
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_ratio, format_seconds
from lessons_lib.traffic.prediction import NOISY, Gap, side_of

_MOSTLY = 0.5


@dataclass(frozen=True)
class ModelMeasurement:
    """What ``measure_model`` found; bytes, and seconds by the clock on the wall.

    Args:
        name: of the function.
        eager_bytes, compiled_bytes: logical traffic, by the captured graphs and Inductor's groups; ``eager_written`` and
            ``compiled_written``: the part of it that is written.
        predicted_launches: eager operators in the captured graph.
        counted_launches: calls that reached PyTorch's backend while the function ran once, views left out.
        tensor_bytes: of the tensor that is copied, as large as the function's largest.
        copy, fresh_copy: reading it and writing another one, and the same into new memory.
        eager, compiled: the whole function; ``compiled`` is ``None`` where ``problem`` says why.
        speedup: ratios eager / compiled, round by round; ``None`` likewise.
        threads: that PyTorch used.
        outputs_agree: whether both give what float64 gives, within the roundings of their dtype; ``None`` where the
            function gives something else each time.
    """

    name: str
    eager_bytes: int
    eager_written: int
    compiled_bytes: int
    compiled_written: int
    predicted_launches: int
    counted_launches: int
    tensor_bytes: int
    copy: Spread
    fresh_copy: Spread
    eager: Spread
    compiled: Spread | None
    speedup: Spread | None
    threads: int
    outputs_agree: bool | None
    problem: Text | None = None

    @property
    def bytes_ratio(self) -> float:
        return self.eager_bytes / self.compiled_bytes if self.compiled_bytes else float("inf")

    @property
    def eager_pass(self) -> float:
        """Seconds that the eager run's bytes alone would take."""
        return self._seconds_of(self.eager_bytes, self.eager_written)

    @property
    def compiled_pass(self) -> float:
        """Seconds that the compiled run's bytes alone would take."""
        return self._seconds_of(self.compiled_bytes, self.compiled_written)

    @property
    def beyond_bytes(self) -> float:
        """Seconds of the eager run that its bytes do not explain: arithmetic, and PyTorch's own time for each call."""
        return max(0.0, self.eager.median - self.eager_pass)

    def _seconds_of(self, moved: int, written: int) -> float:
        handed_out = max(0.0, self.fresh_copy.median - self.copy.median) * written / self.tensor_bytes
        return self.copy.median * moved / (2 * self.tensor_bytes) + handed_out

    @property
    def predicted_compiled(self) -> Interval:
        """From full overlap of bytes and all the rest to none."""
        moving, rest = self.compiled_pass, self.beyond_bytes
        return Interval(max(moving, rest), moving + rest)

    @property
    def predicted_speedup(self) -> Interval:
        predicted = self.predicted_compiled
        return Interval(self.eager.median / predicted.high, self.eager.median / predicted.low)

    @property
    def reason(self) -> Gap:
        """Why the compiled model takes what it takes."""
        name = self._reason_name()
        return Gap(
            name,
            _REASONS[name].format(
                eager=format_seconds(self.eager.median),
                compiled="?" if self.compiled is None else format_seconds(self.compiled.median),
                speedup="?" if self.speedup is None else format_ratio(self.speedup.median),
                ratio=format_ratio(self.bytes_ratio),
                low=format_seconds(self.predicted_compiled.low),
                high=format_seconds(self.predicted_compiled.high),
                rest=format_seconds(self.beyond_bytes),
                moved=format_bytes(self.compiled_bytes),
            ),
        )

    def _reason_name(self) -> str:
        if self.compiled is None:
            return "no-compiler"
        if max(self.eager.relative_width, self.compiled.relative_width) > NOISY:
            return "noise"
        side = side_of(self.compiled, self.predicted_compiled)
        if side != "within":
            return "slower" if side == "above" else "faster"
        return "rest" if self.beyond_bytes > _MOSTLY * self.compiled.median else "bytes"


_REASONS: Mapping[str, Text] = {
    "no-compiler": Text(
        zh="这里编译不了，只有逐个算子的实测 {eager}，以及对编译结果的预测 {low} – {high}。",
        en="Nothing could be compiled here. The separate operators took {eager}; for the compiled function there "
        "is only a prediction, {low} – {high}.",
    ),
    "noise": Text(
        zh="各轮之间的波动太大，分不出原因。关掉其他程序，再测一次。",
        en="The rounds differ too much to name a reason. Close other programs and measure again.",
    ),
    "slower": Text(
        zh="编译后用了 {compiled}，比预测的 {high} 慢：编译生成的循环，在运算或线程分工上不如 PyTorch 自带的算子。",
        en="Compiled it takes {compiled}, more than the predicted {high}: the generated loop computes, or shares its work "
        "among threads, less well than PyTorch's own operators.",
    ),
    "faster": Text(
        zh="编译后只用了 {compiled}，比预测的 {low} 快：编译生成的运算比 PyTorch 自带的算子快，或者校准用的拷贝受了干扰。",
        en="Compiled it takes only {compiled}, less than the predicted {low}: its arithmetic is faster than "
        "PyTorch's own operators, or the copies used for calibration were disturbed.",
    ),
    "rest": Text(
        zh="字节之比是 {ratio}，加速比却是 {speedup}：有 {rest} 花在读写以外（运算、调用），融合省不掉。",
        en="{ratio} fewer bytes, yet the speed-up is {speedup}: {rest} of the time is not spent on bytes (but on "
        "arithmetic and calls), and fusion saves none of that.",
    ),
    "bytes": Text(
        zh="这里由读写决定：字节之比是 {ratio}，加速比是 {speedup}；编译后的预测耗时是 {low} – {high}。",
        en="Bytes decide here: {ratio} fewer bytes, a speed-up of {speedup}; the predicted time is {low} – {high}.",
    ),
}
