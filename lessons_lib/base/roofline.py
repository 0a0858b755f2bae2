"""The roofline bounds of a kernel's time, as an interval: perfect overlap at one end, none at the other.

Rates are decimal: 312 TFLOP/s is ``312e12``, 1555 GB/s is ``1555e9``. Bytes are bytes.

Source: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", Communications of the ACM 52(4), 2009, for the two bounds; their sum as the other
end of the interval follows "How to Scale Your Model" (jax-ml.github.io/scaling-book).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lessons_lib.base.validate import bad_argument, require_int, require_items, require_real

LARGEST_EXTENT = 2**63 - 1
"""More than the extents of any tensor, and few enough that a few of them multiplied are a float."""


@dataclass(frozen=True)
class Interval:
    """A closed interval ``[low, high]``: of seconds, or of ratios where a function says so.

    ``value in interval`` asks whether a measurement lies within.

    Raises:
        ValueError: an end is not a finite number of at least 0, or ``low`` is above ``high``.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low = require_real("low", self.low, 0)
        high = require_real("high", self.high, 0)
        if low > high:
            raise bad_argument(
                "low", zh=f"low = {low} 不能大于 high = {high}", en=f"low = {low} is above high = {high}"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def kernel_interval(operations: float, traffic_bytes: float, peak_flops: float, bandwidth: float) -> Interval:
    """The seconds that one kernel takes, between its two roofline bounds overlapped and added up.

    ``compute = operations / peak_flops``, ``memory = traffic_bytes / bandwidth``; the result is
    ``[max(compute, memory), compute + memory]``, so that ``high`` is at most twice ``low``.

    Args:
        operations: floating-point operations, 0 or more (a multiply-add counts as 2).
        traffic_bytes: bytes read and written, 0 or more.
        peak_flops: operations per second, above 0.
        bandwidth: bytes per second, above 0.

    Assumes that the kernel reaches both peaks; no launch is counted. A slower kernel lies above the interval,
    one whose data stays in a cache may lie below.

    Raises:
        ValueError: an argument is not a finite number or is out of range.
    """
    peak_flops = require_real("peak_flops", peak_flops, above=0)
    bandwidth = require_real("bandwidth", bandwidth, above=0)
    compute = _finite("peak_flops", require_real("operations", operations, 0) / peak_flops)
    memory = _finite("bandwidth", require_real("traffic_bytes", traffic_bytes, 0) / bandwidth)
    return Interval(max(compute, memory), _finite("traffic_bytes", compute + memory))


def program_interval(
    kernels: Sequence[tuple[float, float]], peak_flops: float, bandwidth: float, launch_seconds: float = 0.0
) -> Interval:
    """The seconds that kernels take one after another: the sums of their intervals' ends, and the launches.

    Args:
        kernels: ``(operations, bytes)`` of each kernel, at least one.
        peak_flops, bandwidth: as in ``kernel_interval``.
        launch_seconds: what each launch adds, in seconds, 0 or more. A parameter, not a constant of nature:
            launches that queue ahead of a busy GPU cost nothing, which is the default.

    Raises:
        ValueError: no kernel, a kernel that is not a pair, or an argument out of range.
    """
    pairs = [_checked_pair(index, pair) for index, pair in enumerate(require_items("kernels", kernels))]
    if not pairs:
        raise bad_argument("kernels", zh="至少要有一个核函数", en="there must be at least one kernel")
    launching = _finite("launch_seconds", len(pairs) * require_real("launch_seconds", launch_seconds, 0))
    intervals = [kernel_interval(operations, size, peak_flops, bandwidth) for operations, size in pairs]
    return Interval(
        _sum("kernels", [interval.low for interval in intervals]) + launching,
        _finite("launch_seconds", _sum("kernels", [interval.high for interval in intervals]) + launching),
    )


def speedup_interval(before: Interval, after: Interval) -> Interval:
    """How many times faster ``after`` is than ``before``: an interval of ratios.

    Its two ends are ``before.low / after.low`` (both overlap perfectly) and ``before.high / after.high``
    (neither overlaps at all), the smaller first. The *same* assumption holds on both sides, as for kernels of one
    kind on one device; where the two sides overlap differently, the quotient may lie outside.

    Raises:
        ValueError: ``after`` takes no time.
    """
    if after.low <= 0:
        raise bad_argument(
            "after", zh="耗时必须大于 0，否则没有加速比", en="it must take some time, or there is no ratio"
        )
    low, high = sorted((before.low / after.low, before.high / after.high))
    return Interval(low, high)


def epilogue_speedup(k: int, peak_flops: float, bandwidth: float, element_bytes: int = 2, passes: int = 2) -> float:
    """Speed-up of a GEMM that takes ``passes`` pointwise passes over its result into its epilogue.

    ``1 + passes x element_bytes x (peak_flops / bandwidth) / k``; with fp16 and two passes (bias, activation)
    this is ``1 + 4 (peak_flops / bandwidth) / k``. It follows from ``2 m n k / peak_flops`` for the GEMM and
    ``2 x element_bytes x m n / bandwidth`` for each pass, which reads and writes the result: ``m n`` cancels.

    Args:
        k: the GEMM's inner dimension, at least 1; like every integer here at most ``LARGEST_EXTENT``.
        peak_flops: operations per second; bandwidth: bytes per second; both above 0.
        element_bytes: bytes of an element, at least 1 (fp16: 2).
        passes: pointwise passes taken away, 0 or more.

    Assumes perfect overlap (the lower ends of the intervals), a GEMM that is compute-bound before and after
    (``k >= compute_bound_k(...)``), pointwise passes bound by memory, and no launch.

    Raises:
        ValueError: an argument is of the wrong type or out of range.
    """
    k = require_int("k", k, 1, LARGEST_EXTENT)
    balance = require_real("peak_flops", peak_flops, above=0) / require_real("bandwidth", bandwidth, above=0)
    moved = require_int("passes", passes, 0, LARGEST_EXTENT) * _element_bytes(element_bytes)
    return 1 + moved * balance / k


def compute_bound_k(m: int, n: int, peak_flops: float, bandwidth: float, element_bytes: int = 2) -> float:
    """The inner dimension from which an ``[m, k] x [k, n]`` GEMM is bound by compute.

    The ``k`` at which ``2 m n k / peak_flops`` equals ``element_bytes (m k + k n + m n) / bandwidth``;
    infinite when a GEMM of this ``m`` and ``n`` stays memory-bound for every ``k``. A bias is not counted.

    Args:
        m, n: rows and columns of the result, at least 1.
        peak_flops, bandwidth, element_bytes: as in ``epilogue_speedup``.

    Raises:
        ValueError: an argument is of the wrong type or out of range.
    """
    m, n = (require_int(name, value, 1, LARGEST_EXTENT) for name, value in (("m", m), ("n", n)))
    balance = require_real("peak_flops", peak_flops, above=0) / require_real("bandwidth", bandwidth, above=0)
    weight = _element_bytes(element_bytes) * balance
    growth = 2 * m * n - weight * (m + n)
    return weight * m * n / growth if growth > 0 else math.inf


def _element_bytes(value: object) -> int:
    return require_int("element_bytes", value, 1, LARGEST_EXTENT)


def _finite(name: str, seconds: float) -> float:
    """``seconds``, unless they are more than a float holds: then it is ``name`` that is out of all proportion."""
    if math.isinf(seconds):
        raise bad_argument(
            name, zh="这样算出的耗时超出了浮点数的范围", en="the time that follows is more than a float holds"
        )
    return seconds


def _sum(name: str, seconds: Sequence[float]) -> float:
    try:
        return math.fsum(seconds)
    except OverflowError:
        return _finite(name, math.inf)


def _checked_pair(index: int, pair: object) -> tuple[float, float]:
    items = require_items(f"kernels[{index}]", pair)
    if len(items) != 2:
        raise bad_argument(
            f"kernels[{index}]",
            zh=f"需要一对（运算次数, 字节数），收到的是 {len(items)} 项",
            en=f"it must be a pair (operations, bytes), got {len(items)} items",
        )
    return (
        require_real(f"kernels[{index}][0]", items[0], 0),
        require_real(f"kernels[{index}][1]", items[1], 0),
    )
