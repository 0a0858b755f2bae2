"""What one run of the lab found: times, the prediction from its own calibration, notes and a stable verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_seconds
from lessons_lib.traffic.model import chain_traffic
from lessons_lib.traffic.prediction import (
    NOISY,
    Calibration,
    ChainPrediction,
    Gap,
    explain_gap,
    explain_naive_gap,
    predict_chain,
    side_of,
)

CHAIN = ("+ b", "|·|", "× s", "+ c")
"""The operations in order, as a picture labels them."""

BUSY = 0.1  # of the elapsed time


@dataclass(frozen=True)
class ChainMeasurement:
    """What ``measure_chain`` found. Seconds, bytes, and ratios."""

    requested_bytes: int
    tensor_bytes: int
    tile_bytes: int
    copy: Spread
    library_copy: Spread
    calibration: Calibration
    resident: Spread
    unfused: Spread
    tiled: Spread
    speedup: Spread  # of the ratios unfused / tiled, round by round
    bit_identical: bool
    waited_share: float  # of the rounds' elapsed time, not spent on this thread; 0 where it cannot be told

    @property
    def rounds(self) -> int:
        """How often each variant was timed."""
        return self.tiled.count

    @property
    def unfused_bytes(self) -> int:
        """Logical traffic of four passes: each reads and writes one tensor."""
        return _chain_bytes(self.tensor_bytes, len(CHAIN))

    @property
    def tiled_bytes(self) -> int:
        """Logical traffic of one pass: ``x`` read, ``y`` written."""
        return _chain_bytes(self.tensor_bytes, 1)

    @property
    def unfused_calls(self) -> int:
        """NumPy calls of the unfused chain."""
        return len(CHAIN)

    @property
    def tiled_calls(self) -> int:
        """NumPy calls of the tiled loop: more, not fewer; a compiler's fused kernel would be one launch."""
        return len(CHAIN) * math.ceil(self.tensor_bytes / self.tile_bytes)

    @property
    def naive_speedup(self) -> float:
        """The guess by bytes alone."""
        return self.unfused_bytes / self.tiled_bytes

    @property
    def prediction(self) -> ChainPrediction:
        """The intervals that follow from this run's own calibration."""
        return predict_chain(self.calibration)

    @property
    def unfused_agrees(self) -> bool:
        """Whether the unfused time lies in its predicted interval, give or take 5 % or the rounds' own spread."""
        return side_of(self.unfused, self.prediction.unfused) == "within"

    @property
    def tiled_agrees(self) -> bool:
        """The same for the tiled time."""
        return side_of(self.tiled, self.prediction.tiled) == "within"

    @property
    def reason(self) -> Gap:
        """Why the measured times lie where they do in, or outside, the predicted intervals."""
        return explain_gap(self.calibration, self.unfused, self.tiled, self.resident)

    @property
    def naive_gap(self) -> Gap:
        """Why the bytes alone promise too much."""
        return explain_naive_gap(self.calibration, self.naive_speedup, self.speedup.median)

    @property
    def notes(self) -> tuple[Text, ...]:
        """What else the reader should know about this run."""
        notes = []
        if self.tensor_bytes < self.requested_bytes:
            notes.append(
                _SIZED_DOWN.format(asked=format_bytes(self.requested_bytes), used=format_bytes(self.tensor_bytes))
            )
        if max(self.unfused.relative_width, self.tiled.relative_width) > NOISY:
            notes.append(_NOISY_NOTE)
        if self.waited_share > BUSY:
            notes.append(_BUSY_NOTE.format(share=f"{self.waited_share:.0%}"))
        if self.library_copy.median < 0.8 * self.copy.median:
            notes.append(
                _STREAMING_NOTE.format(
                    library=format_seconds(self.library_copy.median), ordinary=format_seconds(self.copy.median)
                )
            )
        return tuple(notes)

    def verdict(self) -> dict[str, bool]:
        """What holds on any sane machine, however slow or noisy: safe to store and compare.

        ``less_than_naive_speedup`` compares the fastest rounds, which other programs disturb least.
        """
        return {
            "bit_identical": self.bit_identical,
            "bytes_ratio_is_number_of_operations": self.unfused_bytes == len(CHAIN) * self.tiled_bytes,
            "less_than_naive_speedup": self.unfused.smallest < self.naive_speedup * self.tiled.smallest,
        }


def _chain_bytes(tensor_bytes: int, groups: int) -> int:
    return chain_traffic(num_ops=len(CHAIN), tensor_bytes=tensor_bytes, fused_groups=groups)["total_bytes"]


_SIZED_DOWN = Text(
    zh="可用内存不多，张量从 {asked} 缩小到 {used}；各项比值的含义不变。",
    en="Free memory is short: the tensors were made {used} instead of {asked}. The ratios mean the same.",
)
_NOISY_NOTE = Text(
    zh="各轮之间相差很大，多半有别的程序在占用处理器或内存；关掉它们再测一次会更可信。",
    en="The rounds differ a lot: other programs are probably using the processor or the memory. "
    "Close them and measure again.",
)
_BUSY_NOTE = Text(
    zh="测量期间，处理器有 {share} 的时间在忙别的。表中只计本线程自己的时间，比值仍可比较；"
    "但被别的程序占去的内存带宽无法扣除。",
    en="During {share} of the measurement the processor was busy elsewhere. The table counts this thread's own time, "
    "so the ratios still compare; memory bandwidth taken by other programs cannot be corrected for.",
)
_STREAMING_NOTE = Text(
    zh="系统库的拷贝只用 {library}，同样读写一遍的 NumPy 运算要 {ordinary}：普通的写入会先把目标缓存行读进来"
    "（写分配，write-allocate），库的拷贝绕过了缓存。所以校准用的是 NumPy 运算。",
    en="The system library's copy takes {library}, a NumPy operation over the same bytes {ordinary}: an ordinary "
    "store first reads the cache line it is about to write (write-allocate), while the library's copy bypasses the "
    "cache. The prediction is therefore calibrated with the NumPy operation.",
)
