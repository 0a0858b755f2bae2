"""Why two operators share a kernel or do not, and what changing that would cost or break: in words, in both languages.

Engineers ask their compiler this and get logs. The answer here is worked out from the rules and the bytes of
``grouping``, for the grouping that is asked about, whoever made it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lessons_lib.base.gpus import Gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.base.validate import bad_argument
from lessons_lib.graph.grouping import (
    BLOCK_ROWS,
    Cost,
    Grouping,
    Problem,
    check,
    cost,
    cut,
    fuse,
    fuse_across,
    grouping_of,
    kernels_between,
    kernels_of,
    marks,
)
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.rules import never_together


def explain(
    graph: OpGraph,
    a: str,
    b: str,
    grouping: Grouping,
    gpu: Gpu,
    *,
    block_rows: int = BLOCK_ROWS,
    multi_pass: bool = False,
) -> tuple[Text, ...]:
    """Why operators ``a`` and ``b`` are, or are not, in one kernel of ``grouping``.

    Returns:
        A few sentences: where the two are and what passes between them; then, for one kernel, what keeping it saves
        (bytes and launches that a cut before the later operator would add); for two, which rules a merger would break,
        or what it would save or cost, and what else could be merged where the two kernels as a whole cannot. Bytes and
        launches are those of the whole grouping before and after.

    Recompute is not considered: an operator has one kernel. With ``multi_pass`` kernels may go over their rows several
    times: what breaks only the rule that a row must fit counts as legal.

    Raises:
        ValueError: an operator that the graph lacks, a view, the same operator twice, or as ``grouping.check``.
    """
    asked = _Question(graph, a, b, grouping, gpu, block_rows, multi_pass)
    return tuple(asked.together() if grouping.index_of(a) == grouping.index_of(b) else asked.apart())


def instead(
    graph: OpGraph,
    a: str,
    b: str,
    grouping: Grouping,
    gpu: Gpu,
    *,
    block_rows: int = BLOCK_ROWS,
    multi_pass: bool = False,
) -> tuple[Text, ...]:
    """What can be done where merging the kernels of ``a`` and ``b`` would break a rule: the end of ``explain``'s answer.

    Raises:
        ValueError: as ``explain``.
    """
    asked = _Question(graph, a, b, grouping, gpu, block_rows, multi_pass)
    return () if asked.home_a == asked.home_b else tuple(asked.instead())


class _Question:
    def __init__(
        self, graph: OpGraph, a: str, b: str, grouping: Grouping, gpu: Gpu, block_rows: int, multi_pass: bool
    ) -> None:
        for argument, name in (("a", a), ("b", b)):
            graph.require_launching(argument, name)
        if a == b:
            raise bad_argument("b", zh=f"和 a 是同一个算子 {a!r}", en=f"it is the same operator as a, {a!r}")
        self.graph, self.grouping, self.gpu, self.block_rows = graph, grouping, gpu, block_rows
        self.multi_pass = multi_pass
        self.wiring = graph.wiring
        self.a, self.b = (a, b) if self.wiring.ids[a] < self.wiring.ids[b] else (b, a)
        self.cost = self._cost(grouping)  # refuses one of another graph
        self.home_a, self.home_b = grouping.index_of(self.a), grouping.index_of(self.b)

    # -- one kernel ------------------------------------------------------------------------------------------

    def together(self) -> list[Text]:
        """Why they share a kernel."""
        size = len(self.grouping.groups[self.home_a])
        says = [_ONE_KERNEL.format(a=self.a, b=self.b, n=self.home_a + 1, size=size), self._inside()]
        apart = cut(self.graph, self.grouping, self.a, self.b)
        says.append(_IF_CUT.format(b=self.b, change=change_words(self.cost, self._cost(apart))))
        says += [_BROKEN.format(text=problem.text) for problem in self._problems(self.grouping, self.home_a)]
        return says + self._marks(self.grouping, self.home_a)

    def _inside(self) -> Text:
        """What passes between them inside the kernel."""
        wiring, group = self.wiring, {self.wiring.ids[name] for name in self.grouping.groups[self.home_a]}
        first, last = wiring.ids[self.a], wiring.ids[self.b]
        from_a, to_b = self._reached(first, wiring.succs, group), self._reached(last, wiring.preds, group)
        if last not in from_a:
            return self._side_by_side(wiring.made_by(group))
        on_the_way = [op for op in sorted(from_a & to_b) if op != last]
        roots = [r for op in on_the_way for r in wiring.outs[op] if set(wiring.readers[r]) & from_a & to_b]
        written = set(wiring.written(group)) & set(roots)
        says = _ON_CHIP if not written else _ON_CHIP_AND_WRITTEN
        return says.format(tensors=self._tensors(roots), written=self._tensors(sorted(written)))

    def _side_by_side(self, made: set[int]) -> Text:
        shared = self._shared_roots()
        words = _BOTH_USE if set(shared) <= made else _SIDE_BY_SIDE
        return words.format(a=self.a, b=self.b, shared=self._tensors(shared)) if shared else _INDIRECT

    # -- two kernels -----------------------------------------------------------------------------------------

    def apart(self) -> list[Text]:
        """Why they do not share one."""
        says = [_TWO_KERNELS.format(a=self.a, i=self.home_a + 1, b=self.b, j=self.home_b + 1), self._between()]
        merged = fuse(self.graph, self.grouping, self.a, self.b)
        home = merged.index_of(self.a)
        problems = telling(self._problems(merged, home))
        if not problems:
            change = change_words(self.cost, self._cost(merged))
            return [*says, _MERGE_LEGAL.format(change=change), *self._marks(merged, home)]
        return says + [_MERGE_BREAKS.format(text=problem.text) for problem in problems] + self.instead()

    def instead(self) -> list[Text]:
        """What could be done where one kernel for both breaks a rule; nothing where it breaks none."""
        merged = fuse(self.graph, self.grouping, self.a, self.b)
        problems = telling(self._problems(merged, merged.index_of(self.a)))
        if not problems:
            return []
        if all(problem.multi_pass for problem in problems):
            return [_IN_PASSES.format(change=change_words(self.cost, self._cost(merged)))]
        if self._never():
            return [_NEVER.format(a=self.a, b=self.b)]
        return self._other_ways(problems)

    def _between(self) -> Text:
        wiring, first, last = self.wiring, self.wiring.ids[self.a], self.wiring.ids[self.b]
        direct = [root for root in wiring.outs[first] if last in wiring.readers[root]]
        if direct:
            return _THROUGH_MEMORY.format(a=self.a, b=self.b, tensors=self._tensors(direct))
        shared = self._shared_roots()
        if shared:
            return _BOTH_READ.format(shared=self._tensors(shared))
        if last in self._reached(first, wiring.succs, set(range(len(wiring.names)))):
            return _FAR.format(a=self.a, b=self.b)
        return _NOTHING_SHARED.format(a=self.a, b=self.b)

    def _never(self) -> bool:
        """Whether the two alone are enough to break a rule, whatever else is in the kernel."""
        pair = sorted((self.wiring.ids[self.a], self.wiring.ids[self.b]))
        faults = kernels_of(self.graph, self.gpu, self.block_rows).judge(pair)[0]
        return never_together(self.wiring, pair[0], pair[1], by_hand=True) or any(fault.permanent for fault in faults)

    def _other_ways(self, problems: Sequence[Problem]) -> list[Text]:
        """What could be merged instead, the first way that is legal: all in between as well, or only one of the two."""
        for words, names, other in self._proposals(problems):
            homes = sorted({other.index_of(self.a), other.index_of(self.b)})
            if not any(self._problems(other, home) for home in homes):
                says = [words.format(**names, change=change_words(self.cost, self._cost(other)))]
                return says + [text for home in homes for text in self._marks(other, home)]
        return []

    def _proposals(self, problems: Sequence[Problem]) -> list[tuple[Text, dict[str, object], Grouping]]:
        """Words, what to fill in, and the grouping they speak of."""
        groups = self.grouping.groups
        found: list[tuple[Text, dict[str, object], Grouping]] = []
        if any(problem.rule == "cycle" for problem in problems):
            between = kernels_between(self.graph, self.grouping, self.a, self.b)
            others = tuple(name for index in between for name in groups[index])
            whole = fuse_across(self.graph, self.grouping, self.a, self.b)
            found.append((_WITH_BETWEEN, {"others": _listed(others)}, whole))
        for mover, source, target in ((self.b, self.home_b, self.home_a), (self.a, self.home_a, self.home_b)):
            moved = [
                tuple(n for n in g if n != mover) if i == source else (*g, mover) if i == target else g
                for i, g in enumerate(groups)
            ]
            if len(groups[source]) > 1:
                names: dict[str, object] = {"op": mover, "n": target + 1}
                found.append((_MOVE_ONE, names, grouping_of(self.graph, [g for g in moved if g])))
        return found

    # -- parts -----------------------------------------------------------------------------------------------

    def _cost(self, grouping: Grouping) -> Cost:
        return cost(self.graph, grouping, self.gpu, block_rows=self.block_rows)

    def _problems(self, grouping: Grouping, group: int) -> list[Problem]:
        """What is wrong with one group, and every cycle: it concerns all who wait."""
        found = check(self.graph, grouping, self.gpu, block_rows=self.block_rows)
        broken = [problem for problem in found if not (self.multi_pass and problem.multi_pass)]
        return [problem for problem in broken if problem.group == group or problem.rule == "cycle"]

    def _marks(self, grouping: Grouping, group: int) -> list[Text]:
        found = marks(self.graph, grouping, self.gpu, block_rows=self.block_rows)
        return [mark.text for mark in found if mark.group == group]

    def _reached(self, start: int, onward: Sequence[Sequence[int]], inside: set[int]) -> set[int]:
        reached, stack = {start}, [start]
        while stack:
            for other in onward[stack.pop()]:
                if other in inside and other not in reached:
                    reached.add(other)
                    stack.append(other)
        return reached

    def _shared_roots(self) -> list[int]:
        """What both read."""
        wiring = self.wiring
        one, other = ({read.root for read in wiring.reads[wiring.ids[name]]} for name in (self.a, self.b))
        return sorted(one & other)

    def _tensors(self, roots: Sequence[int]) -> str:
        return _listed([f"{self.wiring.tensor_names[r]} ({format_bytes(self.wiring.sizes[r])})" for r in roots])


def telling(problems: list[Problem]) -> list[Problem]:
    """The problems worth telling: beside a cycle, that operators are not connected or differ in size is its echo."""
    if all(problem.rule != "cycle" for problem in problems):
        return problems
    return [problem for problem in problems if problem.rule not in ("disconnected", "space")]


def _listed(names: Sequence[str]) -> str:
    """A few names, and how many are left out."""
    shown = ", ".join(names[:_MOST_LISTED])
    return shown if len(names) <= _MOST_LISTED else f"{shown}, … (+{len(names) - _MOST_LISTED})"


_MOST_LISTED = 6


def change_words(before: Cost, after: Cost) -> Text:
    """From one grouping to another: bytes and launches, each with the difference."""
    return _CHANGE.format(
        traffic=_traffic_change(before.total_bytes, after.total_bytes),
        launches=_launch_change(after.launches - before.launches),
    )


def _traffic_change(before: int, after: int) -> Text:
    old, new, by = format_bytes(before), format_bytes(after), format_bytes(abs(after - before))
    if before == after:
        return _SAME_TRAFFIC.format(old=old)
    if old == new:  # the difference is lost in the rounding
        return (_A_LITTLE_MORE if after > before else _A_LITTLE_LESS).format(old=old, by=by)
    return (_MORE_TRAFFIC if after > before else _LESS_TRAFFIC).format(old=old, new=new, by=by)


def _launch_change(by: int) -> Text:
    if by == 0:
        return _SAME_LAUNCHES
    noun = "launch" if abs(by) == 1 else "launches"
    return (_MORE_LAUNCHES if by > 0 else _FEWER_LAUNCHES).format(by=abs(by), noun=noun)


_CHANGE = Text(zh="{traffic}，{launches}", en="{traffic}, {launches}")
_SAME_TRAFFIC = Text(zh="读写量不变，仍是 {old}", en="the traffic stays at {old}")
_MORE_TRAFFIC = Text(
    zh="读写量从 {old} 增加到 {new}（多 {by}）", en="the traffic grows from {old} to {new} ({by} more)"
)
_LESS_TRAFFIC = Text(
    zh="读写量从 {old} 减少到 {new}（少 {by}）", en="the traffic falls from {old} to {new} ({by} less)"
)
_A_LITTLE_MORE = Text(zh="读写量比 {old} 多 {by}", en="the traffic grows by {by}, from {old}")
_A_LITTLE_LESS = Text(zh="读写量比 {old} 少 {by}", en="the traffic falls by {by}, from {old}")
_SAME_LAUNCHES = Text(zh="启动次数不变", en="as many launches")
_MORE_LAUNCHES = Text(zh="多 {by} 次启动", en="{by} more {noun}")
_FEWER_LAUNCHES = Text(zh="少 {by} 次启动", en="{by} fewer {noun}")

_ONE_KERNEL = Text(
    zh="{a} 和 {b} 在同一个核函数里：第 {n} 个，含 {size} 个算子。",
    en="{a} and {b} are in one kernel: number {n}, of {size} operators.",
)
_ON_CHIP = Text(
    zh="它们之间的张量 {tensors} 留在片上，不写出也不读回。",
    en="What passes between them stays on chip, neither written nor read back: {tensors}.",
)
_ON_CHIP_AND_WRITTEN = Text(
    zh="它们之间的张量 {tensors} 都不用读回；其中 {written} 外面还要用，所以照样写出一次。",
    en="What passes between them is not read back: {tensors}. Of that, {written} is needed outside and written once.",
)
_SIDE_BY_SIDE = Text(
    zh="{a} 和 {b} 谁也不依赖谁，但都要读张量 {shared}：在一个核函数里只读一次。",
    en="Neither of {a} and {b} needs the other, but both read {shared}: one kernel reads it once.",
)
_BOTH_USE = Text(
    zh="{a} 和 {b} 谁也不依赖谁，但都要用张量 {shared}：它就在片上算出，两边都不用读回。",
    en="Neither of {a} and {b} needs the other, but both use {shared}: it is made on chip, and neither reads it back.",
)
_INDIRECT = Text(
    zh="它们谁也不依赖谁，是别的算子把它们连在一个核函数里的。",
    en="Neither needs the other; other operators of the kernel connect them.",
)
_IF_CUT = Text(
    zh="如果在 {b} 之前切开：{change}。",
    en="If it were cut before {b}: {change}.",
)
_BROKEN = Text(
    zh="不过这个核函数违反了规则：{text}",
    en="This kernel breaks a rule, though: {text}",
)
_TWO_KERNELS = Text(
    zh="{a} 在第 {i} 个核函数里，{b} 在第 {j} 个核函数里。",
    en="{a} is in kernel {i}, {b} in kernel {j}.",
)
_THROUGH_MEMORY = Text(
    zh="{a} 把张量 {tensors} 写进显存，{b} 再读回来。",
    en="{a} writes {tensors} to device memory, and {b} reads it back.",
)
_BOTH_READ = Text(
    zh="两个核函数各读一次张量 {shared}。",
    en="Each of the two kernels reads {shared}.",
)
_FAR = Text(
    zh="{b} 要用到 {a} 的结果，但中间隔着别的算子。",
    en="{b} needs what {a} makes, by way of other operators.",
)
_NOTHING_SHARED = Text(
    zh="{a} 和 {b} 没有共同的张量，谁也不依赖谁。",
    en="{a} and {b} share no tensor, and neither needs the other.",
)
_MERGE_LEGAL = Text(
    zh="合成一个核函数是合法的：{change}。",
    en="One kernel for both would be legal: {change}.",
)
_MERGE_BREAKS = Text(
    zh="合成一个核函数会违反规则：{text}",
    en="One kernel for both would break a rule. {text}",
)
_IN_PASSES = Text(
    zh="如果允许多扫几趟（归约之后把数据重新读一遍）：{change}。",
    en="With several passes, reading the data again after the reduction: {change}.",
)
_NEVER = Text(
    zh="问题就出在 {a} 和 {b} 这两个算子上：换一种分组也不行。",
    en="{a} and {b} themselves cannot share a kernel: no other grouping changes that.",
)
_WITH_BETWEEN = Text(
    zh="把中间的 {others} 也并进来就合法了：{change}。",
    en="With what lies between in the kernel as well ({others}) it would be legal: {change}.",
)
_MOVE_ONE = Text(
    zh="只把 {op} 移到第 {n} 个核函数就合法了：{change}。",
    en="Moving {op} alone to kernel {n} would be legal: {change}.",
)
