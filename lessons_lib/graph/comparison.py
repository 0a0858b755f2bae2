"""One graph, several groupings: no fusion, PyTorch without a compiler, greedy, a compiler, the best, and the learner's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lessons_lib.base.gpus import Gpu, require_gpu
from lessons_lib.base.roofline import Interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_range, format_seconds
from lessons_lib.base.validate import bad_argument, require_bool, shown
from lessons_lib.graph.comparison_drawing import TrafficBar, draw_comparison
from lessons_lib.graph.compiler_groups import CompilerGroups
from lessons_lib.graph.grouping import (
    MARK_NAMES,
    RULE_NAMES,
    Cost,
    Grouping,
    Problem,
    check,
    cost,
    eager,
    greedy,
    marks,
    unfused,
)
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.planning.planner import best_grouping
from lessons_lib.graph.recompute import as_compiled
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table

Competitor = Literal["unfused", "eager", "greedy", "compiler", "best", "by_hand", "bound", "yours"]


@dataclass(frozen=True)
class ComparedGrouping:
    """One row.

    Args:
        who: whose grouping it is; ``"bound"``: nobody's, but what no grouping without hand-written kernels undercuts.
        name: in words.
        launches: kernels.
        read_bytes, write_bytes: both 0 of a bound, which knows their sum only.
        total_bytes: read and written.
        time: in seconds; ``None`` of a bound.
    """

    who: Competitor
    name: Text
    launches: int
    read_bytes: int
    write_bytes: int
    total_bytes: int
    time: Interval | None


@dataclass(frozen=True)
class Comparison:
    """The rows, ``unfused`` first and the learner's last, and what has to be said beside them."""

    graph_name: str
    gpu: Gpu
    rows: tuple[ComparedGrouping, ...]
    notes: tuple[Text, ...]

    def of(self, who: Competitor) -> ComparedGrouping | None:
        """The row of one competitor, if it is there."""
        return next((row for row in self.rows if row.who == who), None)

    def share(self, row: ComparedGrouping) -> float:
        """The bytes of ``row`` over what PyTorch moves without a compiler; 1 where neither moves any.

        A kernel for each *part* of an eager operator would be a baseline that nobody runs.
        """
        baseline = (self.of("eager") or self.rows[0]).total_bytes
        return row.total_bytes / baseline if baseline else 1.0


def compare_groupings(
    graph: OpGraph,
    gpu: Gpu,
    *,
    compiler: Grouping | CompilerGroups | None = None,
    yours: Grouping | Cost | None = None,
    launch_seconds: float = 0.0,
    multi_pass: bool = False,
) -> Comparison:
    """What different groupings of one graph launch and move.

    Rows: a kernel for each operator; PyTorch without a compiler, where eager operators have several parts; greedy
    merging; the compiler's, if given; the best with general kernels; the best with kernels by hand, where it is better;
    the bound, where the best is not proven; the learner's, if given.

    Args:
        compiler: its kernels, all of ``graph``; of ``CompilerGroups``, what it computes in several kernels counts so.
        yours: a grouping of ``graph``, or what one of another graph with the same results costs.
        launch_seconds: what each launch adds.
        multi_pass: kernels that go over their rows several times are allowed.

    Raises:
        ValueError: an argument of the wrong type, or a grouping that is not one of ``graph``.
    """
    require_gpu("gpu", gpu)
    comparer = _Comparer(graph, gpu, launch_seconds, require_bool("multi_pass", multi_pass))
    rows = tuple(comparer.rows(compiler, yours))
    return Comparison(graph.name, gpu, rows, tuple(comparer.notes))


class _Comparer:
    def __init__(self, graph: OpGraph, gpu: Gpu, launch_seconds: float, multi_pass: bool) -> None:
        self.graph, self.gpu, self.launch_seconds, self.multi_pass = graph, gpu, launch_seconds, multi_pass
        self.notes: list[Text] = []

    def rows(
        self, compiler: Grouping | CompilerGroups | None, yours: Grouping | Cost | None
    ) -> Iterator[ComparedGrouping]:
        graph, gpu, passes = self.graph, self.gpu, self.multi_pass
        alone, launched = unfused(graph), eager(graph)
        if launched == alone:
            yield self._row("unfused", _EAGER_UNFUSED, alone)
        else:
            yield self._row("unfused", _UNFUSED, alone)
            yield self._row("eager", _EAGER, launched)
        yield self._row("greedy", _GREEDY, greedy(graph, gpu, multi_pass=passes))
        if compiler is not None:
            yield self._compiler(compiler)
        plan = best_grouping(graph, gpu, multi_pass=passes)
        by_hand = best_grouping(graph, gpu, by_hand=True, multi_pass=passes)
        yield self._row("best", _PROVEN_BEST if plan.proven else _BEST, plan.grouping)
        if not plan.proven:
            yield ComparedGrouping("bound", _BOUND, plan.bound_launches, 0, 0, plan.bound_bytes, None)
        if by_hand.cost.total_bytes < plan.cost.total_bytes:
            yield self._row("by_hand", _PROVEN_BY_HAND if by_hand.proven else _BY_HAND, by_hand.grouping)
        if yours is not None:
            yield self._yours(yours)

    def _compiler(self, compiler: Grouping | CompilerGroups) -> ComparedGrouping:
        if isinstance(compiler, CompilerGroups):
            self.notes.append(compiler.note)
            if compiler.repeated:
                self.notes.append(_COMPILER_REPEATS.format(ops=", ".join(compiler.repeated)))
            graph, grouping = as_compiled(self.graph, compiler)
        else:
            graph, grouping = self.graph, compiler
        row = self._row("compiler", _COMPILER, grouping, graph)
        broken = dict.fromkeys(problem.rule for problem in self._problems(grouping, graph))
        self.notes += [_COMPILER_BREAKS.format(rule=RULE_NAMES[rule]) for rule in broken]
        found = dict.fromkeys(mark.rule for mark in marks(graph, grouping, self.gpu))
        self.notes += [_COMPILER_MATCHED.format(name=MARK_NAMES[rule]) for rule in found]
        return row

    def _yours(self, yours: Grouping | Cost) -> ComparedGrouping:
        if isinstance(yours, Cost):
            time = yours.time
            if self.launch_seconds:
                added = yours.launches * self.launch_seconds
                time = Interval(time.low + added, time.high + added)
            return ComparedGrouping(
                "yours", _YOURS, yours.launches, yours.read_bytes, yours.write_bytes, yours.total_bytes, time
            )
        if not isinstance(yours, Grouping):
            given = shown(yours)
            raise bad_argument(
                "yours",
                zh=f"需要 Grouping 或 Cost，收到的是 {given}",
                en=f"it must be a Grouping or a Cost, got {given}",
            )
        row = self._row("yours", _YOURS, yours)
        found = dict.fromkeys(mark.rule for mark in marks(self.graph, yours, self.gpu))
        self.notes += [_YOURS_BY_HAND.format(name=MARK_NAMES[rule]) for rule in found]
        broken = dict.fromkeys(problem.rule for problem in self._problems(yours))
        self.notes += [_YOURS_BREAKS.format(rule=RULE_NAMES[rule]) for rule in broken]
        return row

    def _problems(self, grouping: Grouping, graph: OpGraph | None = None) -> list[Problem]:
        found = check(graph or self.graph, grouping, self.gpu)
        return [problem for problem in found if not (self.multi_pass and problem.multi_pass)]

    def _row(self, who: Competitor, name: Text, grouping: Grouping, graph: OpGraph | None = None) -> ComparedGrouping:
        spent = cost(graph or self.graph, grouping, self.gpu, self.launch_seconds)
        return ComparedGrouping(
            who, name, spent.launches, spent.read_bytes, spent.write_bytes, spent.total_bytes, spent.time
        )


# -- shown ----------------------------------------------------------------------------------------------------


def comparison_table(comparison: Comparison) -> Table:
    """The rows in words and numbers; the learner's is marked."""
    rows = [
        [
            str(row.name),
            f"≥ {row.launches}" if row.who == "bound" else str(row.launches),
            f"≥ {format_bytes(row.total_bytes)}" if row.who == "bound" else format_bytes(row.total_bytes),
            _percent(comparison.share(row)),
            "" if row.time is None else format_range(row.time.low, row.time.high, format_seconds),
        ]
        for row in comparison.rows
    ]
    yours = next((index for index, row in enumerate(comparison.rows) if row.who == "yours"), None)
    note = str(_NOTE.format(gpu=comparison.gpu.name))
    return Table([str(title) for title in _COLUMNS], rows, marked=yours, note=note)


def comparison_report(comparison: Comparison, title: Text | None = None) -> Shown:
    """Bars, the table, and what has to be said; ``title``: of the graph, in place of its name.

    Raises:
        ValueError: ``comparison`` did not come from ``compare_groupings``.
    """
    if not isinstance(comparison, Comparison):
        given = shown(comparison)
        raise bad_argument(
            "comparison",
            zh=f"需要 compare_groupings(...) 的结果，收到的是 {given}",
            en=f"it must come from compare_groupings(...), got {given}",
        )
    bars = [
        TrafficBar(row.name, row.launches, row.read_bytes, row.write_bytes, row.total_bytes, row.who == "yours")
        for row in comparison.rows
    ]
    svg = draw_comparison(_TITLE.format(name=title or comparison.graph_name), bars, prefix="comparison")
    return report(comparison_table(comparison), comparison.notes, svg)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


_TITLE = Text(zh="{name}：同一张图，几种分组", en="{name}: one graph, several groupings")
_COLUMNS = (
    Text(zh="分组", en="grouping"),
    Text(zh="启动", en="launches"),
    Text(zh="读写", en="read + written"),
    Text(zh="相对不编译", en="of eager"),
    Text(zh="预测时间", en="predicted time"),
)
_NOTE = Text(
    zh="时间是 {gpu} 上的预测区间（roofline），不是实测，每一行都是；每组算一个核函数。",
    en="Times, of all rows alike, are roofline intervals for {gpu}, not measurements; each group counts as one kernel.",
)
_UNFUSED = Text(zh="拆到最细，不融合", en="no fusion at all")
_EAGER_UNFUSED = Text(zh="PyTorch 不编译（不融合）", en="PyTorch eager (no fusion)")
_EAGER = Text(zh="PyTorch 不编译", en="PyTorch eager")
_GREEDY = Text(zh="贪心合并", en="greedy merging")
_COMPILER = Text(zh="torch.compile", en="torch.compile")
_PROVEN_BEST = Text(zh="通用核函数最优（已证明）", en="best general (proven)")
_BEST = Text(zh="通用核函数，目前最好", en="best general found")
_PROVEN_BY_HAND = Text(zh="手写最优（已证明）", en="best by hand (proven)")
_BY_HAND = Text(zh="手写，目前最好", en="best by hand found")
_BOUND = Text(zh="通用核函数的下界", en="bound, general")
_YOURS = Text(zh="你的分组", en="yours")
_COMPILER_BREAKS = Text(
    zh="编译器的分组违反了这里的一条规则（{rule}）：它照样能算，重读的字节已经计入。",
    en="By the rules here the compiler's grouping is not legal ({rule}): it runs all the same, and what it reads again is "
    "counted.",
)
_COMPILER_REPEATS = Text(
    zh="编译器不存 {ops} 的结果，谁要用谁就重算一遍；这张表里的最优分组不考虑重算，所以它可能比“最优”还少。",
    en="The compiler does not store what {ops} makes: each kernel that needs it computes it again. The best groupings in "
    "this table leave recompute out, so the compiler may move less than the best.",
)
_COMPILER_MATCHED = Text(
    zh="编译器这里不是靠一般的融合，而是认出了一个模式，换上了现成的核函数（{name}），所以该和手写的最优结果比。",
    en="This is no general fusion: the compiler matched a pattern and put a ready-made kernel in its place "
    "({name}). So compare it with the best by hand.",
)
_YOURS_BY_HAND = Text(
    zh="你的分组里有一般的融合不会生成的核函数（{name}），所以该和手写的最优结果比。",
    en="Your grouping has kernels that a compiler's ordinary fusion does not make ({name}): the best by hand is what "
    "to compare it with.",
)
_YOURS_BREAKS = Text(
    zh="你的分组违反了一条规则（{rule}），不能算数。", en="Your grouping breaks a rule ({rule}) and does not count."
)
