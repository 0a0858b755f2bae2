"""Repeated measurements summed up: the median and how far the samples reach."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


def percentile(samples: Sequence[float], percent: int) -> float:
    """Between the two nearest samples, in proportion; ``percent`` is 1 to 99.

    Raises:
        ValueError: there is no sample, or ``percent`` is out of range.
    """
    if not samples or not 1 <= percent <= 99:
        raise ValueError(f"need samples and 1 to 99 percent, got {len(samples)} samples and {percent}")
    if len(samples) == 1:
        return samples[0]
    return statistics.quantiles(samples, n=100, method="inclusive")[percent - 1]


@dataclass(frozen=True)
class Summary:
    """Median with the 5th and 95th percentile of ``count`` samples."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Summary:
        """Summarize at least one sample."""
        return cls(statistics.median(samples), percentile(samples, 5), percentile(samples, 95), len(samples))

    def cells(self, written: Callable[[float], str]) -> tuple[str, str, str, str]:
        """Median, the two percentiles and the count, as a table's row shows them."""
        return written(self.median), written(self.low), written(self.high), str(self.count)


SUMMARY_HEADER = ("median", "5th percentile", "95th percentile", "samples")


def milliseconds(value: float) -> str:
    """A time in milliseconds with one decimal, two below ten."""
    return f"{value:.1f} ms" if abs(value) >= 10 else f"{value:.2f} ms"


def seconds(value: float) -> str:
    """A time in seconds with one decimal, two below ten."""
    return f"{value:.1f} s" if abs(value) >= 10 else f"{value:.2f} s"


def megabytes(value: float) -> str:
    """A size in bytes, written in decimal megabytes."""
    return f"{value / 1e6:.1f} MB"


def times(value: float) -> str:
    """A ratio with one decimal, two below ten."""
    return f"{value:.1f}×" if abs(value) >= 10 else f"{value:.2f}×"
