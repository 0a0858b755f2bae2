"""The grouping that moves the fewest bytes, or launches the fewest kernels, with a proof where there is one.

``best_grouping`` works region by region (``regions``: no legal kernel reaches beyond one):

1. ``grouping.greedy`` first: the result is never worse than that;
2. if that meets the lower bound of the region's bytes, it is proven;
3. otherwise a region of up to 40 operators is searched completely (``exact``) and thereby proven, as long as the effort
   lasts. Regions that look alike, as the layers of a model do, are searched once;
4. where the search would take too long, local moves improve on greedy: a producer together with all its readers, or one
   operator to a neighbouring kernel, as long as that helps.

The sum of the regions' optima and bounds is a lower bound for the graph; the plan is proven if it meets that bound. That
exact search pays for fusion plans was shown by M. Boehm et al., "On optimizing operator fusion plans for large-scale
machine learning in SystemML", VLDB 2018.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from lessons_lib.base.gpus import Gpu
from lessons_lib.base.validate import require_bool, require_choice, require_int
from lessons_lib.graph.grouping import BLOCK_ROWS, Cost, Grouping, cost, grouping_of, kernels_of
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.planning.exact import Effort, Groups, Objective, RegionSets, best_groups, score_of
from lessons_lib.graph.planning.merging import Merger, Policy, is_allowed
from lessons_lib.graph.planning.regions import Apartness, bits, find_regions, least_bytes
from lessons_lib.graph.quotient import Quotient
from lessons_lib.graph.rules import Kernels
from lessons_lib.graph.wiring import Read

Method = Literal["bound", "exact", "local"]

OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
EFFORT = 20_000

_LARGEST_SEARCHED = 40  # operators of a region that is searched completely
_LARGEST_IMPROVED = 120  # operators of a region that local moves work on
_MOVES_PER_OPERATOR = 20


@dataclass(frozen=True)
class Plan:
    """The best grouping found, and how good it is known to be.

    Args:
        grouping: legal; see ``grouping.check``.
        cost: of it, without launch times.
        proven: no legal grouping does better by the objective.
        bound_bytes: no legal grouping moves fewer bytes.
        bound_launches: no legal grouping launches fewer kernels.
        method: what settled it: ``"bound"``: greedy merging met the bound everywhere; ``"exact"``: some region had to be
            searched, and each was searched to the end; ``"local"``: some region was too large for that.
    """

    grouping: Grouping
    cost: Cost
    proven: bool
    bound_bytes: int
    bound_launches: int
    method: Method


def best_grouping(
    graph: OpGraph,
    gpu: Gpu,
    objective: Objective = "bytes",
    *,
    by_hand: bool = False,
    multi_pass: bool = False,
    block_rows: int = BLOCK_ROWS,
    effort: int = EFFORT,
) -> Plan:
    """The best legal grouping of a graph's operators that can be found, never worse than ``greedy``.

    Args:
        objective: ``"bytes"``: fewest bytes, then fewest launches; ``"launches"``: the other way round. Only the first of
            the two is what ``proven`` speaks of.
        by_hand: may make groups that ``marks`` marks: two GEMMs in a kernel, prologues.
        multi_pass: may make kernels whose rows do not fit on chip and are read once a pass.
        block_rows: see ``cost``.
        effort: groups that may be tried in all; a bound on the work, and the same on every machine.

    Raises:
        ValueError: an argument of the wrong type or out of range.
    """
    require_choice("objective", objective, OBJECTIVES)
    policy = Policy(require_bool("by_hand", by_hand), require_bool("multi_pass", multi_pass))
    kernels = kernels_of(graph, gpu, block_rows)
    planner = _Planner(kernels, policy, objective, Effort(require_int("effort", effort, 0)))
    found = planner.plan()
    names = graph.wiring.names
    grouping = grouping_of(graph, [[names[op] for op in group] for region in found for group in region.groups])
    spent = cost(graph, grouping, gpu, block_rows=block_rows)
    least = sum(region.least_bytes for region in found)
    fewest = sum(region.least_launches for region in found)
    proven = spent.total_bytes == least if objective == "bytes" else spent.launches == fewest
    methods = {region.method for region in found}
    method: Method = "local" if "local" in methods else "exact" if "exact" in methods else "bound"
    return Plan(grouping, spent, proven, least, fewest, method)


@dataclass(frozen=True)
class _Solved:
    """A region's groups, and what no grouping of it undercuts."""

    groups: Groups
    least_bytes: int
    least_launches: int
    method: Method


class _Planner:
    def __init__(self, kernels: Kernels, policy: Policy, objective: Objective, effort: Effort) -> None:
        self.kernels, self.policy, self.objective, self.effort = kernels, policy, objective, effort
        self.apartness = Apartness(kernels.wiring, policy.by_hand)
        self.searched: dict[Hashable, list[list[int]] | None] = {}

    def plan(self) -> list[_Solved]:
        regions = find_regions(self.apartness)
        home = {op: index for index, region in enumerate(regions) for op in region}
        start: list[Groups] = [[] for _ in regions]
        for group in Merger(self.kernels, self.apartness, self.policy).merge_greedily():
            start[home[group[0]]].append(group)
        solved: dict[int, _Solved] = {}
        for index in sorted(range(len(regions)), key=lambda i: len(regions[i])):  # easy ones first: effort is shared
            solved[index] = self._solve(regions[index], start[index])
        return self._runnable([solved[index] for index in range(len(regions))], start)

    def _runnable(self, solved: list[_Solved], start: list[Groups]) -> list[_Solved]:
        """The same, with regions back at their greedy groups where kernels of several would wait for each other."""
        while True:
            groups = [group for region in solved for group in region.groups]
            home = [index for index, region in enumerate(solved) for _ in region.groups]
            quotient = Quotient(self.kernels.wiring, groups)
            if quotient.is_acyclic():
                return solved
            for index in {home[position] for position in quotient.waiting()}:
                solved[index] = replace(solved[index], groups=start[index], method="local")

    # -- one region ------------------------------------------------------------------------------------------

    def _solve(self, region: list[int], start: Groups) -> _Solved:
        if len(region) == 1:
            return _Solved(start, self.kernels.bytes(region).total, 1, "bound")
        least, fewest = least_bytes(self.apartness, region), self._fewest_launches(region)
        bound = least if self.objective == "bytes" else fewest
        score = score_of(self.kernels, start, self.objective)
        if score[0] == bound:
            return _Solved(start, least, fewest, "bound")
        best = self._search(region)
        if best is None:
            return _Solved(self._improve(region, start), least, fewest, "local")
        score = score_of(self.kernels, best, self.objective)
        if self.objective == "bytes":
            return _Solved(best, score[0], fewest, "exact")
        return _Solved(best, least, score[0], "exact")

    def _fewest_launches(self, region: list[int]) -> int:
        kinds = [self.kernels.wiring.kinds[op] for op in region]
        if self.policy.by_hand:
            return 1
        return max(1, kinds.count("gemm") + ("reduction" in kinds))

    def _search(self, region: list[int]) -> Groups | None:
        if len(region) > _LARGEST_SEARCHED or not self.apartness.complete:
            return None
        sets = RegionSets(self.kernels, self.apartness, region)
        key = _likeness(sets)
        if key not in self.searched:
            best = best_groups(sets, self.policy, self.objective, self.effort)
            places = [[sets.place[op] for op in group] for group in best] if best else None
            self.searched[key] = places
        found = self.searched[key]
        return None if found is None else [tuple(region[index] for index in group) for group in found]

    def _improve(self, region: list[int], start: Groups) -> Groups:
        if len(region) > _LARGEST_IMPROVED or not self.apartness.complete:
            return start
        sets = RegionSets(self.kernels, self.apartness, region)
        effort = Effort(_MOVES_PER_OPERATOR * len(region))
        current = [sets.mask(group) for group in start]
        while (better := self._better(sets, current, effort)) is not None:
            current = better
        return [sets.ops(mask) for mask in current]

    def _better(self, sets: RegionSets, current: list[int], effort: Effort) -> list[int] | None:
        """The groups after the first move that helps, or ``None``."""
        for old, new in _moves(sets, current):
            if not effort.spend():
                return None
            before, after = [sets.ops(mask) for mask in old], [sets.ops(mask) for mask in new]
            if not all(is_allowed(self.kernels, group, self.policy) for group in after):
                continue
            scores = (score_of(self.kernels, groups, self.objective) for groups in (after, before))
            changed = [mask for mask in current if mask not in old] + new
            if next(scores) < next(scores) and sets.can_run(changed):
                return changed
        return None


def _moves(sets: RegionSets, current: list[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Groups to take away and groups to put in their place."""
    wiring = sets.kernels.wiring
    of = {index: mask for mask in current for index in bits(mask)}
    for index, op in enumerate(sets.region):  # a producer and all its readers
        together = {of[index], *(of[sets.place[s]] for s in wiring.succs[op] if s in sets.place)}
        if len(together) > 1:
            yield list(together), [sum(together)]
    for index in range(len(sets.region)):  # one operator to a neighbouring kernel
        mine = of[index]
        for theirs in {of[other] for other in bits(sets.near[index])} - {mine}:
            rest = mine & ~(1 << index)
            yield [mine, theirs], [theirs | 1 << index, *([rest] if rest else [])]


def _likeness(sets: RegionSets) -> Hashable:
    """What decides a region's best grouping: two regions with the same likeness have the same, place by place."""
    wiring, inside = sets.kernels.wiring, set(sets.region)
    numbers: dict[tuple[str, object], int] = {}

    def number(kind: str, thing: object) -> int:
        return numbers.setdefault((kind, thing), len(numbers))

    def read_key(read: Read) -> Hashable:
        steps = tuple((step.before, step.after, step.axes, number("step", step.name)) for step in read.steps)
        size, numel = wiring.sizes[read.root], wiring.numels[read.root]
        seen = number("tensor", read.seen)
        return number("tensor", read.root), size, numel, seen, steps, read.shape, read.bytes

    def out_key(root: int) -> Hashable:
        outside = wiring.kept[root] or any(op not in inside for op in wiring.readers[root])
        return number("tensor", root), wiring.sizes[root], wiring.shapes[root], outside

    ops = tuple(
        (
            wiring.kinds[op],
            wiring.axes[op],
            wiring.row_bytes[op],
            tuple(read_key(read) for read in wiring.reads[op]),
            tuple(out_key(root) for root in wiring.outs[op]),
        )
        for op in sets.region
    )
    return ops, tuple(sets.before), tuple(sets.cut_before)
