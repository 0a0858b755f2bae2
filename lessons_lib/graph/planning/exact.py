"""The best grouping of a small region, by trying all that are legal. Internal to this floor.

First every legal group is listed (connected sets of operators, grown one by one, each met once: S. Wernicke's ESU,
IEEE/ACM TCBB 3(4), 2006), then the cheapest way to take groups one after another until none is left is found over the
*downsets* of the region: what has been taken always holds everything that it depends on, so no two groups can wait for
each other (as Y. Ding et al. schedule stages in "IOS", MLSys 2021). Both steps leave nothing out, so the result is
proven; ``Effort`` says when it would take too long.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from lessons_lib.graph.planning.merging import Policy, is_allowed
from lessons_lib.graph.planning.regions import Apartness, bits
from lessons_lib.graph.rules import Kernels

Objective = Literal["bytes", "launches"]
Score = tuple[int, int]
Groups = list[tuple[int, ...]]


@dataclass
class Effort:
    """Groups that may still be judged. Shared by all regions of a graph, so that the whole stays bounded."""

    left: int

    def spend(self, amount: int = 1) -> bool:
        """Take some; ``False`` once none is left."""
        self.left -= amount
        return self.left >= 0


def score_of(kernels: Kernels, groups: Groups, objective: Objective) -> Score:
    """What is compared: the objective first, the other one between equals."""
    total = sum(kernels.bytes(group).total for group in groups)
    return (total, len(groups)) if objective == "bytes" else (len(groups), total)


class RegionSets:
    """A region in its own small numbers: sets of its operators are integers of as many bits."""

    def __init__(self, kernels: Kernels, apartness: Apartness, region: list[int]) -> None:
        self.kernels, self.apartness, self.region = kernels, apartness, region
        self.place = {op: index for index, op in enumerate(region)}
        whole = sum(1 << op for op in region)
        self.before = [self._own(apartness.before[op] & whole) for op in region]
        self.cut_before = [self._own(apartness.cut_before[op] & whole) for op in region]

    def _own(self, mask: int) -> int:
        return sum(1 << self.place[op] for op in bits(mask))

    @cached_property
    def apart(self) -> list[int]:
        """Of each operator, those that it shares no kernel with."""
        masks = [0] * len(self.region)
        for b, second in enumerate(self.region):
            for a in range(b):
                if self.apartness.apart(self.region[a], second):
                    masks[a] |= 1 << b
                    masks[b] |= 1 << a
        return masks

    @cached_property
    def near(self) -> list[int]:
        """Of each operator, those that it shares a tensor with and may share a kernel with."""
        wiring, masks = self.kernels.wiring, [0] * len(self.region)
        for root in {read.root for op in self.region for read in wiring.reads[op]} | wiring.made_by(self.region):
            touching = {wiring.producer[root], *wiring.readers[root]}
            sharing = sum(1 << self.place[op] for op in touching if op in self.place)
            for index in bits(sharing):
                masks[index] |= sharing
        return [mask & ~(self.apart[index] | 1 << index) for index, mask in enumerate(masks)]

    def ops(self, mask: int) -> tuple[int, ...]:
        """A set as the graph numbers it."""
        return tuple(self.region[index] for index in bits(mask))

    def mask(self, ops: Iterable[int]) -> int:
        """Operators of the graph as a set of the region."""
        return sum(1 << self.place[op] for op in ops)

    def can_run(self, groups: Iterable[int]) -> bool:
        """Whether these groups, which cover the region, wait for each other in no circle."""
        waiting = [(mask, self.needs(mask)) for mask in groups]
        taken = 0
        while waiting:
            ready = [mask for mask, needs in waiting if needs is not None and not needs & ~taken]
            if not ready:
                return False
            taken |= sum(ready)
            waiting = [(mask, needs) for mask, needs in waiting if mask & ~taken]
        return True

    def needs(self, mask: int) -> int | None:
        """What a group depends on outside itself; ``None`` if some of that depends on the group."""
        needs = 0
        for index in bits(mask):
            needs |= self.before[index]
        needs &= ~mask
        return None if any(self.before[index] & mask for index in bits(needs)) else needs


@dataclass(frozen=True)
class _Group:
    mask: int
    needs: int  # what must have been taken before
    score: Score


def best_groups(sets: RegionSets, policy: Policy, objective: Objective, effort: Effort) -> Groups | None:
    """The groups of the best legal grouping of a region; ``None`` where the effort does not suffice."""
    by_first = _legal_groups(sets, policy, objective, effort)
    return None if by_first is None else _cheapest(sets, by_first, effort)


def _legal_groups(
    sets: RegionSets, policy: Policy, objective: Objective, effort: Effort
) -> list[list[_Group]] | None:
    """Every legal group, under its first operator."""
    found: list[list[_Group]] = []
    for first in range(len(sets.region)):
        under: list[_Group] = []
        beyond = -1 << first + 1
        # (the set, what may still join it, neighbours met so far)
        stack = [(1 << first, sets.near[first] & beyond, (1 << first | sets.near[first]) & beyond)]
        while stack:
            mask, extension, met = stack.pop()
            if not effort.spend():
                return None
            ops = sets.ops(mask)
            faults, _ = sets.kernels.judge(ops)
            if any(fault.permanent for fault in faults):
                continue
            needs = sets.needs(mask)
            if needs is not None and is_allowed(sets.kernels, ops, policy):
                under.append(_Group(mask, needs, score_of(sets.kernels, [ops], objective)))
            for index in bits(extension):
                extension ^= 1 << index
                if not sets.apart[index] & mask:
                    fresh = sets.near[index] & beyond & ~met
                    stack.append((mask | 1 << index, extension | fresh, met | sets.near[index] & beyond))
        found.append(under)
    return found


def _cheapest(sets: RegionSets, by_first: list[list[_Group]], effort: Effort) -> Groups | None:
    whole = (1 << len(sets.region)) - 1
    best: dict[int, tuple[Score, int, _Group | None]] = {0: ((0, 0), 0, None)}
    layers: list[list[int]] = [[] for _ in range(len(sets.region) + 1)]
    layers[0].append(0)
    for layer in layers:
        for taken in layer:
            if not effort.spend():
                return None
            score = best[taken][0]
            for first in bits(whole & ~taken):
                if sets.before[first] & ~taken:
                    continue
                for group in by_first[first]:
                    if group.mask & taken or group.needs & ~taken:
                        continue
                    after = taken | group.mask
                    sum_after = (score[0] + group.score[0], score[1] + group.score[1])
                    if after not in best:
                        layers[after.bit_count()].append(after)
                    elif best[after][0] <= sum_after:
                        continue
                    best[after] = (sum_after, taken, group)
    groups: Groups = []
    at = whole
    while at:
        _, before, group_taken = best[at]
        assert group_taken is not None
        groups.append(sets.ops(group_taken.mask))
        at = before
    return groups[::-1]
