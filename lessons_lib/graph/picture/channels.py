"""Positions on a line, and tracks between two rows.

Pure: the standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_OVERLAP = 100  # as bad as so many crossings
_NEAR = 9.0  # pixels at which two lines look like one


def spread_out(
    wished: Sequence[float], weights: Sequence[float], gaps: Sequence[float], low: float, high: float
) -> list[float]:
    """Positions nearest to those wished for, by weighted least squares, in their order and at least the gaps apart.

    Args:
        wished: where each would like to be; weights: above 0, how much.
        gaps: least distance from each to the one before it; the first entry counts for nothing.
        low, high: ends of the line; where it is too short for all gaps, these shrink alike.

    This is isotonic regression, by merging neighbours in the wrong order (M. Ayer et al., 1955).
    """
    if not wished:
        return []
    needed = sum(gaps[1:])
    shrunk = min(1.0, (high - low) / needed) if needed > 0 else 1.0
    shifts, total = [0.0], 0.0
    for gap in gaps[1:]:
        total += gap * shrunk
        shifts.append(total)
    blocks: list[list[float]] = []  # [weight, weighted sum, count]
    for wish, weight, shift in zip(wished, weights, shifts, strict=True):
        blocks.append([weight, weight * (wish - shift), 1])
        while len(blocks) > 1 and blocks[-2][1] / blocks[-2][0] >= blocks[-1][1] / blocks[-1][0]:
            weight_, sum_, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + weight_, blocks[-1][1] + sum_, blocks[-1][2] + count]
    levels = [block[1] / block[0] for block in blocks for _ in range(int(block[2]))]
    last = max(low, high - total)
    return [min(max(level, low), last) + shift for level, shift in zip(levels, shifts, strict=True)]


@dataclass(frozen=True)
class Crossing:
    """A wire through a channel: down from ``sources`` (one of them at a time), along a track, down at ``target``."""

    sources: tuple[float, ...]
    target: float

    @property
    def straight(self) -> bool:
        """Whether it needs no track."""
        return all(abs(source - self.target) < 0.5 for source in self.sources)

    @property
    def low(self) -> float:
        """Its left end."""
        return min(*self.sources, self.target)

    @property
    def high(self) -> float:
        """Its right end."""
        return max(*self.sources, self.target)


def assign_tracks(crossings: Sequence[Crossing]) -> tuple[list[int], int]:
    """The track of each wire, counted from the top, and how many tracks there are; straight wires get track 0.

    Wires on one track do not touch, and those that would cross the others less above them stand above them.
    """
    bent = [index for index, crossing in enumerate(crossings) if not crossing.straight]
    ordered: list[int] = []
    for index in sorted(bent, key=lambda i: (crossings[i].low, crossings[i].high)):
        # Where it costs least among those that stand already, the lowest such place.
        costs = [0]
        for other in ordered:
            a, b = crossings[other], crossings[index]
            costs.append(costs[-1] + _cost(a, b) - _cost(b, a))
        place = min(range(len(costs)), key=lambda p: (costs[p], -p))
        ordered.insert(place, index)
    tracks, free = [0] * len(crossings), list[tuple[float, float, int]]()
    for index in ordered:
        crossing = crossings[index]
        low, high = crossing.low - _NEAR, crossing.high + _NEAR
        tracks[index] = max((t + 1 for a, b, t in free if a < high and low < b), default=0)
        free.append((crossing.low, crossing.high, tracks[index]))
    return tracks, 1 + max((tracks[index] for index in bent), default=-1)


def _cost(upper: Crossing, lower: Crossing) -> int:
    """Crossings of two wires, one of them on a track above the other's."""
    if upper.high + _NEAR <= lower.low or lower.high + _NEAR <= upper.low:
        return 0
    cost = sum(upper.low < source < upper.high for source in lower.sources)
    cost += lower.low < upper.target < lower.high
    return cost + _OVERLAP * sum(abs(upper.target - source) < _NEAR for source in lower.sources)
