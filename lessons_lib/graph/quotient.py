"""Kernels and who waits for whom: the graph with each group drawn together to one node. Internal to this floor."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

from lessons_lib.base.text import Text
from lessons_lib.graph.wiring import Wiring


class Quotient:
    """The groups of a partition and the edges between them."""

    def __init__(self, wiring: Wiring, groups: Sequence[Sequence[int]]) -> None:
        self.wiring, self.groups = wiring, groups
        self.group_of = [0] * len(wiring.names)
        for index, group in enumerate(groups):
            for op in group:
                self.group_of[op] = index
        self.succs: list[set[int]] = [
            {self.group_of[s] for op in group for s in wiring.succs[op]} - {index}
            for index, group in enumerate(groups)
        ]

    def launch_order(self) -> list[Sequence[int]]:
        """The groups so that each comes after those it waits for, otherwise by first operator.

        Where groups wait for each other, all come by first operator.
        """
        placed, left = self._sorted()
        if left:
            return sorted(self.groups, key=min)
        return [self.groups[index] for index in placed]

    def is_acyclic(self) -> bool:
        """Whether the kernels can run one after another."""
        return not self._sorted()[1]

    def waiting(self) -> set[int]:
        """The groups that wait for themselves, by position: those on a cycle."""
        left = set(self._sorted()[1])
        return {index for ring in strongly_connected(self.succs, left) if len(ring) > 1 for index in ring}

    def cycles(self) -> list[tuple[int, tuple[int, ...], Text]]:
        """For each set of groups that wait for each other: one of them, the operators on the way, and words."""
        found: list[tuple[int, tuple[int, ...], Text]] = []
        told: set[int] = set()
        for index in sorted(self.waiting(), key=lambda i: min(self.groups[i])):
            if len(self.groups[index]) == 1:
                continue
            way = self._way_back(index)
            assert way is not None
            if told & set(way):
                continue
            told |= {index, *way}
            found.append(self._told(index, way))
        return found

    # -- parts -----------------------------------------------------------------------------------------------

    def _sorted(self) -> tuple[list[int], list[int]]:
        """Groups in launch order, and those that never become ready."""
        waiting = [0] * len(self.groups)
        for succs in self.succs:
            for other in succs:
                waiting[other] += 1
        ready = [(min(self.groups[index]), index) for index, count in enumerate(waiting) if not count]
        heapify(ready)
        placed = []
        while ready:
            index = heappop(ready)[1]
            placed.append(index)
            for other in self.succs[index]:
                waiting[other] -= 1
                if not waiting[other]:
                    heappush(ready, (min(self.groups[other]), other))
        return placed, sorted(set(range(len(self.groups))) - set(placed))

    def _way_back(self, start: int) -> list[int] | None:
        """The shortest way from a group through others back to it: their positions, without ``start``."""
        before: dict[int, int] = {}
        queue = deque([start])
        while queue:
            index = queue.popleft()
            for other in sorted(self.succs[index]):
                if other == start:
                    way = []
                    while index != start:
                        way.append(index)
                        index = before[index]
                    return way[::-1]
                if other not in before:
                    before[other] = index
                    queue.append(other)
        return None

    def _told(self, index: int, way: list[int]) -> tuple[int, tuple[int, ...], Text]:
        """The cycle in operators: out of the group, through others, and back into it."""
        names = self.wiring.names
        ring = [index, *way, index]
        steps = [self._edge(a, b) for a, b in pairwise(ring)]
        through = tuple(dict.fromkeys(op for pair in pairwise(steps) for op in (pair[0][1], pair[1][0])))
        a, b = steps[0][0], steps[-1][1]
        words = _WAITS.format(a=names[a], via=" → ".join(names[op] for op in through), b=names[b])
        return index, (a, *through, b), words

    def _edge(self, one: int, other: int) -> tuple[int, int]:
        for op in self.groups[one]:
            for succ in self.wiring.succs[op]:
                if self.group_of[succ] == other:
                    return op, succ
        raise AssertionError("groups that are not neighbours")


def strongly_connected(succs: Sequence[set[int]], within: set[int]) -> Iterator[list[int]]:
    """Sets of nodes, each of which reaches all others of its set through nodes of ``within``.

    R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1, 1972.
    """
    number: dict[int, int] = {}  # in the order of the search
    lowest: dict[int, int] = {}  # of the open nodes that a node reaches
    open_nodes: dict[int, None] = {}
    path: list[tuple[int, Iterator[int]]] = []

    def enter(node: int) -> None:
        number[node] = lowest[node] = len(number)
        open_nodes[node] = None
        path.append((node, iter(succs[node] & within)))

    for root in sorted(within):
        if root not in number:
            enter(root)
        while path:
            node, others = path[-1]
            fresh = None
            for other in others:
                if other not in number:
                    fresh = other
                    break
                if other in open_nodes:
                    lowest[node] = min(lowest[node], number[other])
            if fresh is not None:
                enter(fresh)
                continue
            path.pop()
            if path:
                lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
            if lowest[node] == number[node]:
                ring: list[int] = []
                while not ring or ring[-1] != node:
                    ring.append(open_nodes.popitem()[0])
                yield ring


_WAITS = Text(
    zh="{a} 的结果出了这个核函数，经过 {via}，又回到同一个核函数里的 {b}：{via} 要等这个核函数写完，这个核函数又要等 {via}，"
    "谁也启动不了。",
    en="What {a} makes leaves this kernel, goes through {via} and comes back into {b} of the same kernel: {via} waits for "
    "this kernel and this kernel waits for {via}, so neither can start.",
)
