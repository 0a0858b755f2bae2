"""Repeated measurements of one thing, summed up without a library."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Repeated measurements of one thing: seconds, or ratios where a field says so."""

    median: float
    low: float  # 20th percentile
    high: float  # 80th percentile
    smallest: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Summarize at least one sample."""
        ordered = sorted(samples)
        return cls(
            median=statistics.median(ordered),
            low=_percentile(ordered, 0.2),
            high=_percentile(ordered, 0.8),
            smallest=ordered[0],
            count=len(ordered),
        )

    @property
    def relative_width(self) -> float:
        """From the 20th to the 80th percentile, as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Between the two nearest samples, in proportion."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
