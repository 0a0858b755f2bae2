"""All that a canvas knows, without a widget: a graph, its present grouping, what a press does, and the way back.

Every change is answered in words: what it moved, or which rule it would break. A refused press changes nothing.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, get_args

from lessons_lib.base.gpus import Gpu, require_gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.base.validate import bad_argument, require_bool, require_choice, require_int, require_items, shown
from lessons_lib.graph.cutting import cut_legally, settle
from lessons_lib.graph.explain import change_words, explain, instead, telling
from lessons_lib.graph.grouping import (
    MARK_NAMES,
    RULE_NAMES,
    Cost,
    Grouping,
    Mark,
    Problem,
    check,
    cost,
    eager,
    fuse,
    fuse_across,
    greedy,
    grouping_of,
    marks,
    unfused,
)
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.picture.folding import Folding, fold
from lessons_lib.graph.planning.planner import Plan, best_grouping
from lessons_lib.graph.recompute import readers_of, recomputed, refusal

View = Literal["compiler", "best", "by_hand", "greedy", "eager"]
VIEWS: tuple[View, ...] = get_args(View)


@dataclass(frozen=True)
class _Stage:
    """A graph and what follows from it alone; ``recompute`` leads to another one."""

    graph: OpGraph
    gpu: Gpu
    multi_pass: bool

    @cached_property
    def folding(self) -> Folding:
        return fold(self.graph)

    @cached_property
    def plan(self) -> Plan:
        return best_grouping(self.graph, self.gpu, multi_pass=self.multi_pass)

    @cached_property
    def hand_plan(self) -> Plan:
        return best_grouping(self.graph, self.gpu, by_hand=True, multi_pass=self.multi_pass)

    def problems(self, grouping: Grouping) -> tuple[Problem, ...]:
        """Broken rules, without those that are allowed here."""
        found = check(self.graph, grouping, self.gpu)
        return tuple(problem for problem in found if not (self.multi_pass and problem.multi_pass))


@dataclass(frozen=True)
class _State:
    stage: _Stage
    grouping: Grouping
    moves: int

    @cached_property
    def cost(self) -> Cost:
        return cost(self.stage.graph, self.grouping, self.stage.gpu)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        return self.stage.problems(self.grouping)


class Workbench:
    """A graph on the bench, from a kernel for each operator on.

    Args:
        graph: its launching operators are what is grouped.
        gpu: whose rules and rates count.
        compiler: what a compiler made of ``graph``, to be shown.
        multi_pass: kernels whose rows do not fit on chip, and which go over them several times, are allowed.
        recompute: operators that may be computed again for each reader.

    Groups that only a hand, a template or a pattern makes are allowed, and marked. Where a run of operators repeats
    (``folding``), a change to one copy is a change to all.

    Raises:
        ValueError: an argument of the wrong type, a compiler's grouping of another graph, an operator that the graph
            lacks.
    """

    def __init__(
        self,
        graph: OpGraph,
        gpu: Gpu,
        *,
        compiler: Grouping | None = None,
        multi_pass: bool = False,
        recompute: Collection[str] = (),
    ) -> None:
        if not isinstance(graph, OpGraph):
            given = shown(graph)
            raise bad_argument(
                "graph", zh=f"需要 OpGraph，收到的是 {given}", en=f"it must be an OpGraph, got {given}"
            )
        self._start = _Stage(graph, require_gpu("gpu", gpu), require_bool("multi_pass", multi_pass))
        self.compiler = compiler
        if compiler is not None:
            check(graph, compiler, gpu)  # refuses one of another graph
        self.may_recompute = tuple(graph.op(str(name)).name for name in require_items("recompute", recompute))
        self._states = [_State(self._start, unfused(graph), 0)]
        self.message: Text = _WELCOME.format(size=_size(self.cost))

    # -- the present state -----------------------------------------------------------------------------------

    @property
    def _state(self) -> _State:
        return self._states[-1]

    @property
    def graph(self) -> OpGraph:
        """The graph as it is now: another one after ``recompute``."""
        return self._state.stage.graph

    @property
    def gpu(self) -> Gpu:
        """Whose rules and rates count."""
        return self._start.gpu

    @property
    def multi_pass(self) -> bool:
        """Whether kernels that go over their rows several times are allowed."""
        return self._start.multi_pass

    @property
    def grouping(self) -> Grouping:
        """The kernels as they are now."""
        return self._state.grouping

    @property
    def moves(self) -> int:
        """How many changes of the learner's own led here: fusing, cutting, recomputing; showing a plan is none."""
        return self._state.moves

    @property
    def folding(self) -> Folding:
        """Which operators repeat."""
        return self._state.stage.folding

    @property
    def cost(self) -> Cost:
        """Launches, bytes and time of the present grouping; launches themselves take no time here."""
        return self._state.cost

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The present kernels that only a hand, a template or a pattern makes."""
        return marks(self.graph, self.grouping, self.gpu)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Rules that the present grouping breaks: none, unless a compiler's or eager's kernels are shown."""
        return self._state.problems

    @property
    def plan(self) -> Plan:
        """The best grouping of the present graph by general kernels; worked out on first use."""
        return self._state.stage.plan

    @property
    def hand_plan(self) -> Plan:
        """The same with kernels that only a hand, a template or a pattern makes."""
        return self._state.stage.hand_plan

    @property
    def can_undo(self) -> bool:
        """Whether there is a state to go back to."""
        return len(self._states) > 1

    # -- fusing and cutting ----------------------------------------------------------------------------------

    def press_edge(self, index: int) -> bool:
        """Fuse the two ends of ``graph.edges[index]`` where they are apart, cut between them where they are together.

        In a run of operators that repeats, all copies of the edge follow, or none.

        Returns:
            Whether anything changed. Where not, ``message`` names the rule.

        Raises:
            ValueError: there is no such edge.
        """
        require_int("index", index, 0, len(self.graph.edges) - 1)
        edges = self.graph.edges
        pairs = [(edges[i].producer, edges[i].consumer) for i in self.folding.copies_of_edge(index)]
        pressed = (edges[index].producer, edges[index].consumer)
        return self._press(pressed, [pressed, *(pair for pair in pairs if pair != pressed)])

    def press_pair(self, a: str, b: str) -> bool:
        """``press_edge`` for any two operators, two readers of one tensor for example.

        Where the two alone cannot share a kernel but can with all that lies between them, that comes along: on the way
        from a GEMM through a softmax to the next one no pair of neighbours could be fused first.

        Raises:
            ValueError: an operator that the graph lacks, or a view.
        """
        for argument, name in (("a", a), ("b", b)):
            self.graph.require_launching(argument, name)
        if a == b:
            return self._refuse(_SAME_OPERATOR.format(a=a))
        ours, theirs = self.folding.copies_of(a), self.folding.copies_of(b)
        copies = list(zip(ours, theirs, strict=True)) if len(ours) == len(theirs) else []
        others = [pair for pair in copies if pair != (a, b)] if (a, b) in copies else []
        return self._press((a, b), [(a, b), *others]) or (not others and self._fuse_across(a, b))

    def set_grouping(self, groups: Iterable[Iterable[str]]) -> bool:
        """Take these groups; operators in none of them get a kernel each. Refused, in words, where a rule breaks.

        Raises:
            ValueError: as ``grouping.grouping_of``.
        """
        new = grouping_of(self.graph, groups)
        problems = self._state.stage.problems(new)
        if problems:
            return self._refuse(_REFUSED.format(why=_why(problems)))
        self._move(_State(self._state.stage, new, self.moves + 1), _TAKEN)
        return True

    def ask(self, a: str, b: str) -> tuple[Text, ...]:
        """Why two operators share a kernel or do not, and what changing that would mean: see ``explain``.

        Raises:
            ValueError: as ``explain``.
        """
        return explain(self.graph, a, b, self.grouping, self.gpu, multi_pass=self.multi_pass)

    def _press(self, pressed: tuple[str, str], pairs: Sequence[tuple[str, str]]) -> bool:
        home = {name: index for index, group in enumerate(self.grouping.groups) for name in group}
        together = home[pressed[0]] == home[pressed[1]]
        pairs = [(a, b) for a, b in pairs if (home[a] == home[b]) == together]
        return self._cut(pairs) if together else self._fuse(pairs)

    def _fuse(self, pairs: Sequence[tuple[str, str]]) -> bool:
        new = _fused(self.graph, self.grouping, pairs)
        a, b = pairs[0]
        problems = self._new_problems(new)
        if problems:
            asked = partial(instead, self.graph, a, b, self.grouping, self.gpu, multi_pass=self.multi_pass)
            ways = asked() if len(pairs) == 1 else ()
            return self._refuse(_joined_while_short(_REFUSED.format(why=_why(problems)), *ways))
        return self._accept_fused(new, _FUSED, len(pairs), a=a, b=b)

    def _fuse_across(self, a: str, b: str) -> bool:
        new = fuse_across(self.graph, self.grouping, a, b)
        if new == fuse(self.graph, self.grouping, a, b) or self._new_problems(new):
            return False  # refused already, and in better words
        return self._accept_fused(new, _FUSED_ACROSS, 1, a=a, b=b)

    def _accept_fused(self, new: Grouping, words: Text, copies: int, **names: str) -> bool:
        known = {(mark.rule, mark.ops) for mark in self.marks}
        notes = [mark for mark in marks(self.graph, new, self.gpu) if (mark.rule, mark.ops) not in known]
        said = [_MARKED.format(name=MARK_NAMES[rule]) for rule in dict.fromkeys(mark.rule for mark in notes)]
        self._move(_State(self._state.stage, new, self.moves + 1), words, *said, *_copies(copies), **names)
        return True

    def _cut(self, pairs: Sequence[tuple[str, str]]) -> bool:
        new, reasons = cut_legally(self.graph, self.grouping, pairs, self.gpu, multi_pass=self.multi_pass)
        wiring = self.graph.wiring
        later = max(pairs[0], key=wiring.ids.__getitem__)
        said = [_FELL_APART.format(why=words) for words in reasons]
        state = _State(self._state.stage, new, self.moves + 1)
        self._move(state, _CUT, *said, *_copies(len(pairs)), b=later)
        return True

    def _new_problems(self, new: Grouping) -> list[Problem]:
        """Broken rules of ``new`` that the present grouping, which may be a compiler's, did not break already."""
        known = {(problem.rule, self.grouping.groups[problem.group]) for problem in self.problems}
        found = self._state.stage.problems(new)
        return [problem for problem in found if (problem.rule, new.groups[problem.group]) not in known]

    # -- recompute -------------------------------------------------------------------------------------------

    def recompute(self, op: str) -> bool:
        """Compute ``op`` again for each of its readers, in the reader's kernel where that is legal.

        In a run of operators that repeats, every copy of ``op`` is treated alike.

        Returns:
            Whether anything changed. Where not, ``message`` says why.

        Raises:
            ValueError: ``op`` is not one of those given as ``recompute``.
        """
        if not self.may_recompute:
            raise bad_argument(
                "op",
                zh="这里没有可以重算的算子；建画布时用 recompute=[...] 写明",
                en="no operator can be computed again here; name some with recompute=[...] when you make the canvas",
            )
        require_choice("op", op, self.may_recompute)
        if op not in self.graph.wiring.ids:
            return self._refuse(_ALREADY.format(op=op))
        reason = refusal(self.graph, op)
        if reason is not None:
            return self._refuse(reason)
        stage, grouping = self._state.stage, self.grouping
        for copy in self.folding.copies_of(op):
            stage, grouping = _spread(stage, grouping, copy)
        self._move(_State(stage, grouping, self.moves + 1), _RECOMPUTED, op=op)
        return True

    # -- there and back --------------------------------------------------------------------------------------

    def undo(self) -> bool:
        """Back to the state before the last change, of whatever kind; whether there was one."""
        if not self.can_undo:
            return self._refuse(_NOTHING_TO_UNDO)
        before = self.cost
        self._states.pop()
        self.message = _UNDONE.format(change=change_words(before, self.cost))
        return True

    def reset(self) -> None:
        """A kernel for each operator of the first graph; ``undo`` brings back what was."""
        self._states.append(self._states[0])
        self.message = _RESET.format(size=_size(self.cost))

    def show(self, view: View) -> None:
        """Put a known grouping in place of the present one; ``undo`` brings that back.

        The compiler's and eager's kernels are those of the graph as it was at first, before any ``recompute``.

        Raises:
            ValueError: an unknown ``view``, or no compiler's grouping is known.
        """
        require_choice("view", view, VIEWS)
        stage, words = self._state.stage, _SHOWN[view]
        if view == "compiler":
            if self.compiler is None:
                raise bad_argument(
                    "view", zh="这个图没有编译器的分组", en="no compiler's grouping of this graph is known"
                )
            stage, grouping = self._start, self.compiler
        elif view == "eager":
            stage, grouping = self._start, eager(self._start.graph)
        elif view == "greedy":
            grouping = greedy(stage.graph, stage.gpu, multi_pass=stage.multi_pass)
        else:
            grouping = (stage.plan if view == "best" else stage.hand_plan).grouping
        self._states.append(_State(stage, grouping, self.moves))
        said = [words.format(size=_size(self.cost))]
        if view in ("best", "by_hand"):
            said.append(_standing(self.plan if view == "best" else self.hand_plan, by_hand=view == "by_hand"))
        if self.problems:
            said.append(_BREAKS.format(why=_why(self.problems)))
        self.message = _joined(*said)

    def _move(self, state: _State, words: Text, *more: Text, **values: object) -> None:
        """Go on to ``state`` and say so: ``words`` with what it changed, then ``more``."""
        before = self.cost
        self._states.append(state)
        self.message = _joined(words.format(change=change_words(before, self.cost), **values), *more)

    def _refuse(self, why: Text) -> bool:
        self.message = why
        return False


def _fused(graph: OpGraph, grouping: Grouping, pairs: Iterable[tuple[str, str]]) -> Grouping:
    """``grouping`` with the kernels of each pair made one, legal or not: ``grouping.fuse`` for many pairs at once."""
    home = {name: group for group in grouping.groups for name in group}
    for a, b in pairs:
        if home[a] is not home[b]:
            joined = (*home[a], *home[b])
            home |= dict.fromkeys(joined, joined)
    return grouping_of(graph, dict.fromkeys(home.values()))


def _spread(stage: _Stage, grouping: Grouping, op: str) -> tuple[_Stage, Grouping]:
    """The graph with ``op`` recomputed, and its grouping: each copy in its reader's kernel where that is legal."""
    readers = readers_of(stage.graph, op)
    graph = recomputed(stage.graph, op)
    known = stage.graph.wiring.ids
    copies = (op, *(name for name in graph.launching if name not in known))
    left = next(tuple(name for name in group if name != op) for group in grouping.groups if op in group)
    rest = [group for group in grouping.groups if op not in group]
    new = _Stage(graph, stage.gpu, stage.multi_pass)
    carried = grouping_of(graph, [*rest, *([left] if left else [])])
    weakened = [carried.groups[carried.index_of(left[0])]] if left else []
    carried = settle(graph, carried, weakened, stage.gpu, stage.multi_pass)[0]
    for copy in copies:
        (reader,) = readers_of(graph, copy)
        joined = fuse(graph, carried, copy, reader)
        carried = joined if len(new.problems(joined)) <= len(new.problems(carried)) else carried
    assert len(copies) == len(readers)
    return new, carried


# -- words ----------------------------------------------------------------------------------------------------


def _joined(*texts: Text) -> Text:
    """Sentences one after another; Chinese ones need no space between them."""
    return Text(zh="".join(text.zh for text in texts), en=" ".join(text.en for text in texts))


def _joined_while_short(first: Text, *more: Text) -> Text:
    """``first`` and as much of the rest as can be read at a glance; ``ask`` tells all."""
    for text in more:
        longer = _joined(first, text)
        if len(longer.en) > _GLANCE:
            break
        first = longer
    return first


_GLANCE = 450  # characters of English


def _size(spent: Cost) -> Text:
    noun = "launch" if spent.launches == 1 else "launches"
    return _SIZE.format(launches=spent.launches, noun=noun, traffic=format_bytes(spent.total_bytes))


def _why(problems: Sequence[Problem]) -> Text:
    """The broken rules: each once, with its name, and no mere echoes."""
    first = {problem.rule: problem for problem in reversed(telling(list(problems)))}
    rules = [_RULE.format(name=RULE_NAMES[rule], text=first[rule].text) for rule in list(first)[:_MOST_RULES]]
    return _joined(*rules)


_MOST_RULES = 2


def _copies(count: int) -> list[Text]:
    return [_ALL_COPIES.format(count=count)] if count > 1 else []


def _standing(plan: Plan, by_hand: bool) -> Text:
    """How good a plan is known to be."""
    if plan.proven:
        return _PROVEN_BY_HAND if by_hand else _PROVEN
    return _NOT_PROVEN.format(bound=format_bytes(plan.bound_bytes))


_SIZE = Text(zh="{launches} 次启动，读写 {traffic}", en="{launches} {noun}, {traffic} read and written")
_WELCOME = Text(
    zh="现在每个算子一个核函数：{size}。点一条边，两端的算子就合成一个核函数；再点一次就切开。",
    en="Every operator has a kernel of its own: {size}. Press an edge to fuse its two ends; press it again to cut.",
)
_FUSED = Text(zh="{a} 和 {b} 合成了一个核函数：{change}。", en="Fused {a} and {b}: {change}.")
_FUSED_ACROSS = Text(
    zh="{a}、{b} 和它们之间的算子合成了一个核函数：{change}。",
    en="Fused {a}, {b} and what lies between them: {change}.",
)
_CUT = Text(zh="在 {b} 之前切开了：{change}。", en="Cut before {b}: {change}.")
_FELL_APART = Text(
    zh="剩下的部分不能再是一个核函数，所以又拆开了：{why}",
    en="What was left could not stay one kernel and was split as well: {why}",
)
_ALL_COPIES = Text(zh="重复的 {count} 处一起改了。", en="All {count} copies were changed alike.")
_MARKED = Text(zh="注意【{name}】。", en="Mind: {name}.")
_REFUSED = Text(zh="不合法，什么都没有改。{why}", en="Not legal, so nothing changed. {why}")
_RULE = Text(zh="【{name}】{text}", en="[{name}] {text}")
_SAME_OPERATOR = Text(
    zh="a 和 b 是同一个算子 {a}：请选两个不同的。", en="a and b are the same operator, {a}: choose two."
)
_TAKEN = Text(zh="换成了给定的分组：{change}。", en="Took the given groups: {change}.")
_RECOMPUTED = Text(
    zh="{op} 改为在每个使用处各算一次，结果不再存进显存：{change}。",
    en="{op} is computed again for each reader, and what it makes is no longer stored: {change}.",
)
_ALREADY = Text(zh="{op} 已经不在图里了。", en="{op} is no longer in the graph.")
_NOTHING_TO_UNDO = Text(zh="没有可以撤销的改动。", en="There is nothing to undo.")
_UNDONE = Text(zh="撤销了一步：{change}。", en="Undone: {change}.")
_RESET = Text(
    zh="回到起点，每个算子一个核函数：{size}。想要刚才的分组，点“撤销”。",
    en="Back at the start, a kernel for each operator: {size}. Undo brings back what you had.",
)
_SHOWN = {
    "compiler": Text(
        zh="这是编译器的分组：{size}。点“撤销”回到你的分组。",
        en="These are the compiler's kernels: {size}. Undo brings yours back.",
    ),
    "best": Text(
        zh="这是只用通用核函数能做到的最好分组：{size}。点“撤销”回到你的分组。",
        en="This is the best that general kernels can do: {size}. Undo brings yours back.",
    ),
    "by_hand": Text(
        zh="这是手写核函数能做到的最好分组：{size}。点“撤销”回到你的分组。",
        en="This is the best with kernels written by hand: {size}. Undo brings yours back.",
    ),
    "greedy": Text(
        zh="这是贪心合并的结果：{size}。点“撤销”回到你的分组。",
        en="This is what greedy merging finds: {size}. Undo brings yours back.",
    ),
    "eager": Text(
        zh="这是不编译时 PyTorch 的核函数：{size}。点“撤销”回到你的分组。",
        en="These are the kernels of PyTorch without a compiler: {size}. Undo brings yours back.",
    ),
}
_PROVEN = Text(
    zh="已经证明：不靠手写核函数，读写不可能更少。",
    en="Proven: without kernels by hand, no grouping that the rules allow moves fewer bytes.",
)
_PROVEN_BY_HAND = Text(zh="已经证明：没有哪个合法的分组读写更少。", en="Proven: no legal grouping moves fewer bytes.")
_NOT_PROVEN = Text(zh="还没有证明它最好；下界是 {bound}。", en="Not proven to be the best; the bound is {bound}.")
_BREAKS = Text(zh="按这里的规则，它不合法：{why}", en="By the rules here it is not legal: {why}")
