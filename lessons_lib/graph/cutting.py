"""Cutting kernels so that what is left can run: a half that breaks a rule by itself falls into legal parts.

Cutting takes operators away that may have held the rest together: readers of one tensor whose producer is gone, a
vector that was computed where it was needed and must now be written. Such a half is put together again from single
operators, as far as the rules allow.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from lessons_lib.base.gpus import Gpu
from lessons_lib.base.text import Text
from lessons_lib.graph.grouping import BLOCK_ROWS, Grouping, grouping_of, halves, kernels_of
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.planning.merging import Policy, is_allowed
from lessons_lib.graph.rules import Kernels
from lessons_lib.graph.wiring import Wiring


def cut_legally(
    graph: OpGraph, grouping: Grouping, pairs: Iterable[tuple[str, str]], gpu: Gpu, *, multi_pass: bool = False
) -> tuple[Grouping, tuple[Text, ...]]:
    """``grouping`` with each pair of operators cut apart (see ``grouping.cut``), and no half left that breaks a rule.

    Groups that only a hand makes count as legal, those that only need several passes where ``multi_pass`` says so.
    Where ``grouping`` was legal, so is the result. All are operators of a kernel.

    Returns:
        The grouping, and why halves had to be split further: a sentence for each rule.
    """
    wiring = graph.wiring
    whole = [tuple(sorted(wiring.ids[name] for name in group)) for group in grouping.groups]
    home, halved = {op: group for group in whole for op in group}, set[int]()
    for a, b in pairs:
        group = home[wiring.ids[a]]
        if group is home[wiring.ids[b]]:
            halved |= set(group)
            for half in halves(wiring, group, a, b):
                home |= dict.fromkeys(half, half)
    groups = dict.fromkeys(home.values())
    named = grouping_of(graph, [[wiring.names[op] for op in group] for group in groups])
    weakened = [tuple(wiring.names[op] for op in group) for group in groups if group[0] in halved]
    return settle(graph, named, weakened, gpu, multi_pass)


def settle(
    graph: OpGraph, grouping: Grouping, groups: Iterable[Sequence[str]], gpu: Gpu, multi_pass: bool
) -> tuple[Grouping, tuple[Text, ...]]:
    """``grouping`` with those of its ``groups`` that break a rule split until they break none, and the rules' words."""
    kernels = kernels_of(graph, gpu, BLOCK_ROWS)
    wiring, policy = kernels.wiring, Policy(by_hand=True, passes=multi_pass)
    kept, reasons = list(grouping.groups), dict[str, Text]()
    for group in map(tuple, groups):
        ops = tuple(sorted(wiring.ids[name] for name in group))
        parts = legal_parts(kernels, ops, policy)
        if len(parts) > 1:
            kept.remove(group)
            kept += [tuple(wiring.names[op] for op in part) for part in parts]
            fault = next(f for f in kernels.judge(ops)[0] if not (policy.passes and f.passes))
            reasons.setdefault(fault.rule, fault.words)
    return grouping_of(graph, kept), tuple(reasons.values())


def legal_parts(kernels: Kernels, ops: tuple[int, ...], policy: Policy) -> list[tuple[int, ...]]:
    """A group (ascending, convex) as it is where it breaks no rule; otherwise legal parts that can run in turn.

    Starts from single operators and joins neighbours, those that share most bytes first, while the rules allow.
    """
    if is_allowed(kernels, ops, policy):
        return [ops]
    part: dict[int, tuple[int, ...]] = {op: (op,) for op in ops}
    pairs, changed = _neighbours(kernels.wiring, ops), True
    while changed:
        changed = False
        for a, b in pairs:
            joined = tuple(sorted({*part[a], *part[b]}))
            if part[a] is part[b] or not is_allowed(kernels, joined, policy):
                continue
            if not _comes_back(kernels.wiring, part, joined):
                part |= dict.fromkeys(joined, joined)
                changed = True
    return list(dict.fromkeys(part.values()))


def _neighbours(wiring: Wiring, ops: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pairs that share a tensor, the largest first; of two readers, only where nobody here makes it."""
    made = wiring.made_by(ops)
    found: dict[tuple[int, int], int] = {}
    for root in {root for op in ops for root in wiring.touches[op]}:
        here = [op for op in ops if root in wiring.touches[op]]
        pairs = [(here[0], op) for op in here[1:]] if root in made else combinations(here, 2)
        for pair in pairs:
            found[pair] = found.get(pair, 0) + wiring.sizes[root]
    return sorted(found, key=lambda pair: (-found[pair], pair))


def _comes_back(wiring: Wiring, part: dict[int, tuple[int, ...]], joined: tuple[int, ...]) -> bool:
    """Whether a way leads out of ``joined`` through other parts and back into it."""
    members = frozenset(joined)
    waiting = [s for op in joined for s in wiring.succs[op] if s in part and s not in members]
    seen = set[tuple[int, ...]]()
    while waiting:
        other = part[waiting.pop()]
        if other in seen:
            continue
        seen.add(other)
        onward = [s for op in other for s in wiring.succs[op] if s in part and s not in other]
        if not members.isdisjoint(onward):
            return True
        waiting += onward
    return False
