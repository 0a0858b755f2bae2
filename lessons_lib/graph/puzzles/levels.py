"""Ten puzzles on operator graphs: what to put into one kernel, with a goal, three hints and an explanation each.

The figures that a score stands beside (goal, the compiler's, the best) are worked out from the recorded graphs by
``grouping`` and ``planner``; the words get them by name. ``puzzle_panel`` shows the puzzles.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Literal

from lessons_lib.base.gpus import GPUS, Gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.base.validate import require_int
from lessons_lib.graph.grouping import Grouping, check, cost, marks, unfused
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.planning.exact import Objective
from lessons_lib.graph.planning.planner import Plan, best_grouping
from lessons_lib.graph.puzzles.words import EXPLANATIONS, HINTS, STORIES, TITLES
from lessons_lib.graph.recompute import as_compiled, recomputed, refusal
from lessons_lib.graph.recorded import RecordedBlock, recorded_block

Aim = Literal["best", "beat the compiler"]


@dataclass(frozen=True)
class Score:
    """What a grouping comes to."""

    launches: int
    total_bytes: int

    def counted(self, objective: Objective) -> int:
        """The number that a puzzle with this objective looks at."""
        return self.total_bytes if objective == "bytes" else self.launches


@dataclass(frozen=True)
class Attempt:
    """A grouping judged by a puzzle.

    Args:
        legal: it breaks no rule that holds in the puzzle.
        by_hand: it has kernels that only a hand, a template or a pattern makes.
        counts: it is legal, and by hand only where the puzzle allows that.
        solved: it counts, and reaches the goal; ``best``: nothing that counts does better.
    """

    score: Score
    legal: bool
    by_hand: bool
    counts: bool
    solved: bool
    best: bool


@dataclass(frozen=True)
class Solution:
    """The best that a puzzle allows: its graph (another one after recompute), its plan, what was recomputed."""

    graph: OpGraph
    plan: Plan
    recomputed: tuple[str, ...]

    @property
    def score(self) -> Score:
        return Score(self.plan.cost.launches, self.plan.cost.total_bytes)


@dataclass(frozen=True)
class Puzzle:
    """A level.

    Args:
        number: from 1; ``name``: a key that stays, under which progress is kept.
        block: a recorded block, whose core graph is what is fused.
        objective: what counts, bytes or launches.
        aim: the goal: the best there is, or anything below the compiler's figure.
        by_hand: kernels that only a hand, a template or a pattern makes count.
        multi_pass: kernels that go over rows several times are allowed.
        recompute: operators that may be computed again for each reader.
    """

    number: int
    name: str
    block: str
    objective: Objective = "bytes"
    aim: Aim = "best"
    gpu_name: str = "A100 (40 GB)"
    by_hand: bool = False
    multi_pass: bool = False
    recompute: tuple[str, ...] = ()

    # -- words -----------------------------------------------------------------------------------------------

    @property
    def title(self) -> Text:
        return TITLES[self.name]

    @property
    def story(self) -> Text:
        """What the graph is, and what is asked."""
        return STORIES[self.name].format(**self._figures())

    @property
    def hints(self) -> tuple[Text, Text, Text]:
        """From a nudge to the answer."""
        return HINTS[self.name]

    @property
    def explanation(self) -> Text:
        """For afterwards: why this is the best, what the compiler did, what the number is not."""
        return EXPLANATIONS[self.name].format(**self._figures())

    def _figures(self) -> Mapping[str, object]:
        solution, compiled = self.solution, self.compiler
        return {
            "unfused": format_bytes(self.start.total_bytes),
            "compiler": format_bytes(compiled.total_bytes),
            "compiler_launches": compiled.launches,
            "best": format_bytes(solution.score.total_bytes),
            "best_launches": solution.score.launches,
            "by_hand": format_bytes(self.record.by_hand.total_bytes),
        }

    # -- figures ---------------------------------------------------------------------------------------------

    @property
    def record(self) -> RecordedBlock:
        """The block as data."""
        return recorded_block(self.block)

    @property
    def graph(self) -> OpGraph:
        """What is fused."""
        return self.record.core

    @property
    def gpu(self) -> Gpu:
        """Whose rules hold."""
        return GPUS[self.gpu_name]

    @property
    def start(self) -> Score:
        """A kernel for each operator."""
        return _score(self.graph, unfused(self.graph), self.gpu)

    @property
    def compiler(self) -> Score:
        """What ``torch.compile`` does; what it computes again is counted as computed again."""
        graph, grouping = as_compiled(self.graph, self.record.compiler)
        return _score(graph, grouping, self.gpu)

    @property
    def in_fewer_calls(self) -> bool:
        """Whether loop nests of the compiler share a call: ``compiler`` counts nests, each of which goes over memory."""
        return self.record.compiler.launches < len(self.record.compiler.grouping)

    @property
    def solution(self) -> Solution:
        """The best there is by the planner, over all choices of what to recompute."""
        return _solution(self)

    @property
    def goal(self) -> int:
        """The most bytes or launches that solve it."""
        if self.aim == "best":
            return self.solution.score.counted(self.objective)
        return self.compiler.counted(self.objective) - 1

    def judge(self, graph: OpGraph, grouping: Grouping) -> Attempt:
        """A grouping of ``graph``: the puzzle's own one, or what recompute made of it.

        Raises:
            ValueError: as ``grouping.check``.
        """
        problems = check(graph, grouping, self.gpu)
        legal = all(self.multi_pass and problem.multi_pass for problem in problems)
        marked = bool(marks(graph, grouping, self.gpu))
        counts = legal and (self.by_hand or not marked)
        score = _score(graph, grouping, self.gpu)
        reached = score.counted(self.objective)
        best = counts and reached <= self.solution.score.counted(self.objective)
        return Attempt(score, legal, marked, counts, counts and reached <= self.goal, best)


def puzzle(level: int) -> Puzzle:
    """The level of that number.

    Raises:
        ValueError: not a whole number from 1 to the number of levels.
    """
    return PUZZLES[require_int("level", level, 1, len(PUZZLES)) - 1]


def _score(graph: OpGraph, grouping: Grouping, gpu: Gpu) -> Score:
    spent = cost(graph, grouping, gpu)
    return Score(spent.launches, spent.total_bytes)


@cache
def _solution(level: Puzzle) -> Solution:
    def found(chosen: tuple[str, ...], graph: OpGraph) -> Solution:
        plan = best_grouping(graph, level.gpu, level.objective, by_hand=level.by_hand, multi_pass=level.multi_pass)
        return Solution(graph, plan, chosen)

    other: Objective = "launches" if level.objective == "bytes" else "bytes"
    return min(
        (found(chosen, graph) for chosen, graph in _graphs(level)),
        key=lambda solution: (solution.score.counted(level.objective), solution.score.counted(other)),
    )


def _graphs(level: Puzzle) -> Iterator[tuple[tuple[str, ...], OpGraph]]:
    """The graph with every choice of what to recompute, each in the order in which the level names them."""
    for count in range(len(level.recompute) + 1):
        for chosen in combinations(level.recompute, count):
            graph = level.graph
            for op in chosen:
                if refusal(graph, op) is not None:
                    break
                graph = recomputed(graph, op)
            else:
                yield chosen, graph


PUZZLES: tuple[Puzzle, ...] = (
    Puzzle(1, "gate", "sigmoid_gate"),
    Puzzle(2, "side_input", "scaled_residual"),
    Puzzle(3, "kept", "relu_fan_out"),
    Puzzle(4, "epilogue", "gemm_gelu_gemm"),
    Puzzle(5, "reduction", "decode_rmsnorm", "launches"),
    Puzzle(6, "cut", "quantized_columns"),
    Puzzle(7, "long_row", "long_softmax", multi_pass=True),
    Puzzle(8, "recompute", "activation_statistics", recompute=("_to_copy", "add_1")),
    Puzzle(9, "attention", "attention_2d", by_hand=True),
    Puzzle(10, "half_layer", "llama_half_layer", aim="beat the compiler"),
)
