"""Merging kernels pair by pair, the heaviest saving first, as compilers do. Internal to this floor.

A current grouping is kept as a topological order of its kernels. Merging two of them needs a look at the kernels
between them in that order only (D. Pearce, P. Kelly, "A dynamic topological sort algorithm for directed acyclic graphs",
ACM JEA 11, 2006): is one of them reached from the first and does it reach the second? Then the merged kernel would wait
for itself. This, and merging in rounds in which a kernel of some size merges once, keeps the whole near linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from lessons_lib.graph.planning.regions import Apartness
from lessons_lib.graph.rules import Kernels

_GROWS_FREELY = 32  # operators up to which a kernel may merge again in the same round


@dataclass(frozen=True)
class Policy:
    """What a planner may use beyond what general compilers do.

    ``by_hand``: groups that are marked; ``passes``: rows that do not fit, read once a pass.
    """

    by_hand: bool = False
    passes: bool = False


def is_allowed(kernels: Kernels, ops: tuple[int, ...], policy: Policy) -> bool:
    """Whether a group (ascending) obeys the rules that concern it alone."""
    faults, marks = kernels.judge(ops)
    return all(policy.passes and fault.passes for fault in faults) and (policy.by_hand or not marks)


class Merger:
    """The current grouping, from one kernel an operator on."""

    def __init__(self, kernels: Kernels, apartness: Apartness, policy: Policy) -> None:
        self.kernels, self.wiring, self.apartness, self.policy = kernels, kernels.wiring, apartness, policy
        count = len(self.wiring.names)
        self.groups: dict[int, tuple[int, ...]] = {op: (op,) for op in range(count)}
        self.group_of = list(range(count))
        self.order = list(range(count))  # a topological order of the kernels
        self.rank = {group: group for group in range(count)}
        self.cut = {op: apartness.cut_before[op] for op in range(count)}
        self.mask = {op: 1 << op for op in range(count)} if apartness.complete else {}
        self._refused: set[tuple[int, int]] = set()
        self._next = count

    def merge_greedily(self) -> list[tuple[int, ...]]:
        """Rounds of merging until nothing changes; the kernels in an order in which they can be launched."""
        while self._round():
            self.order = [group for group in self.order if group in self.groups]
            self.rank = {group: place for place, group in enumerate(self.order)}
        return [self.groups[group] for group in self.order]

    # -- one round -------------------------------------------------------------------------------------------

    def _round(self) -> bool:
        merged_now: set[int] = set()
        for op_a, op_b in self._candidates():
            a, b = self.group_of[op_a], self.group_of[op_b]
            if a == b or any(g in merged_now and len(self.groups[g]) > _GROWS_FREELY for g in (a, b)):
                continue
            merged = self._merge(a, b)
            if merged is not None:
                merged_now.add(merged)
        return bool(merged_now)

    def _candidates(self) -> list[tuple[int, int]]:
        """Pairs of operators in different kernels that share a tensor: those that may save most come first.

        Of the readers of one tensor only neighbours are paired, or a tensor that all read would make too many pairs.
        """
        wiring, saving = self.wiring, dict[tuple[int, int], list[int]]()
        kinds = wiring.kinds
        for root, readers in enumerate(wiring.readers):
            size, producer = wiring.sizes[root], wiring.producer[root]
            groups = {self.group_of[op]: op for op in reversed(readers) if kinds[op] != "opaque"}
            ordered = sorted(groups, key=self.rank.__getitem__)
            pairs = [(groups[a], groups[b], size) for a, b in pairwise(ordered)]
            if producer >= 0 and kinds[producer] != "opaque":
                own = self.group_of[producer]
                vanishes = not wiring.kept[root] and len({self.group_of[op] for op in readers} - {own}) == 1
                gain = 2 * size if vanishes else size
                pairs += [(producer, groups[g], gain) for g in ordered if g != own]
            for op_a, op_b, gain in pairs:
                a, b = self.group_of[op_a], self.group_of[op_b]
                key = (a, b) if self.rank[a] < self.rank[b] else (b, a)
                if a != b and key not in self._refused:
                    saving.setdefault(key, [0, min(op_a, op_b), max(op_a, op_b)])[0] += gain
        ranked = sorted(saving.values(), key=lambda entry: (-entry[0], entry[1], entry[2]))
        return [(op_a, op_b) for _, op_a, op_b in ranked]

    def _merge(self, a: int, b: int) -> int | None:
        """The kernel that ``a`` and ``b`` become, or ``None`` where they may not or gain nothing."""
        first, second = (a, b) if self.rank[a] < self.rank[b] else (b, a)
        if (first, second) in self._refused:
            return None
        ops = tuple(sorted((*self.groups[first], *self.groups[second])))
        between = None
        if not self._apart(first, second) and is_allowed(self.kernels, ops, self.policy) and self._gains(a, b, ops):
            between = self._reached_between(first, second)
        if between is None:
            self._refused.add((first, second))
            return None
        return self._join(first, second, ops, between)

    def _apart(self, first: int, second: int) -> bool:
        if not self.mask:
            return False
        return bool(self.cut[second] & self.mask[first] or self.cut[first] & self.mask[second])

    def _gains(self, a: int, b: int, ops: tuple[int, ...]) -> bool:
        """No byte more, and a launch less."""
        separate = self.kernels.bytes(self.groups[a]).total + self.kernels.bytes(self.groups[b]).total
        return self.kernels.bytes(ops).total <= separate

    # -- order -----------------------------------------------------------------------------------------------

    def _reached_between(self, first: int, second: int) -> set[int] | None:
        """The kernels reached from ``first`` that stand before ``second``; ``None`` if one of them reaches it."""
        limit = self.rank[second]
        reached: set[int] = set()
        stack = [first]
        while stack:
            group = stack.pop()
            for op in self.groups[group]:
                for succ in self.wiring.succs[op]:
                    other = self.group_of[succ]
                    if other == second:
                        if group != first:
                            return None
                    elif other != first and other not in reached and self.rank[other] < limit:
                        reached.add(other)
                        stack.append(other)
        return reached

    def _join(self, first: int, second: int, ops: tuple[int, ...], reached: set[int]) -> int:
        start, stop = self.rank[first], self.rank[second]
        window = [group for group in self.order[start + 1 : stop] if group in self.groups]
        joined, self._next = self._next, self._next + 1
        del self.groups[first], self.groups[second]
        self.groups[joined] = ops
        for op in ops:
            self.group_of[op] = joined
        sequence = [g for g in window if g not in reached] + [joined] + [g for g in window if g in reached]
        for place in range(start, stop + 1):
            self.order[place] = -1  # no kernel
        for place, group in enumerate(sequence, start):
            self.order[place] = group
            self.rank[group] = place
        if self.mask:
            self.mask[joined] = self.mask.pop(first) | self.mask.pop(second)
            self.cut[joined] = self.cut.pop(first) | self.cut.pop(second)
        return joined
