"""What the course asks, lesson by lesson: ids, short titles, and the true value of each guess.

An id is the name of the function or the panel that a lesson calls; a test holds them to the lessons' sources. Ids that
are not here come from a newer course: they are shown as they are.

Pure: the standard library and this package's pure modules only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from lessons_lib.base.gpus import A100, T4
from lessons_lib.base.questions import QUESTIONS
from lessons_lib.base.roofline import Interval, speedup_interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import KIB, MIB, quotient
from lessons_lib.base.validate import same
from lessons_lib.decision.ledger import compile_ledger, layout_ledger
from lessons_lib.graph.puzzles.levels import PUZZLES
from lessons_lib.graph.recorded import recorded_block
from lessons_lib.kernels.launch import CHAIN_OPERATORS
from lessons_lib.kernels.losing import gemm_plans
from lessons_lib.kernels.walk import walk
from lessons_lib.reuse.model import onchip_reuse
from lessons_lib.traffic.epilogue import epilogue_plans
from lessons_lib.traffic.model import Operator, chain_traffic, plan_traffic


@dataclass(frozen=True)
class Lesson:
    """A lesson and the ids of what it asks; lesson 00 asks nothing and only notes that it was opened."""

    number: str
    title: Text
    votes: tuple[str, ...] = ()
    exercises: tuple[str, ...] = ()
    quizzes: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        return (*self.votes, *self.exercises, *self.quizzes, *self.panels)


LESSONS: tuple[Lesson, ...] = (
    Lesson("00", Text(zh="从这里开始", en="start here")),
    Lesson(
        "01",
        Text(zh="逻辑读写", en="traffic"),
        ("traffic_vote", "lab_vote"),
        ("check_total_bytes", "check_swiglu_saved"),
        ("traffic_quiz",),
        ("TrafficPanel", "EpiloguePanel"),
    ),
    Lesson(
        "02",
        Text(zh="片上复用", en="reuse"),
        ("reuse_vote", "tile_vote"),
        ("check_avoided_bytes", "check_gemm_tile_kib"),
        ("reuse_quiz",),
        ("ReusePanel",),
    ),
    Lesson(
        "03",
        Text(zh="条件与代价", en="decision"),
        ("veto_vote",),
        ("check_net_bytes", "check_break_even"),
        ("decision_quiz",),
        ("DecisionPanel", "LayoutPanel", "CompilePanel"),
    ),
    Lesson(
        "04",
        Text(zh="你自己的模型", en="your model"),
        ("graph_vote", "compiler_vote"),
        ("check_kernel_mib",),
        ("graph_quiz",),
        ("GraphCanvas", "PuzzlePanel"),
    ),
    Lesson(
        "05",
        Text(zh="Triton 核函数", en="Triton kernel"),
        ("kernel_vote", "losing_vote"),
        ("check_bias_silu_gate", "check_fused_bytes"),
        ("kernel_quiz",),
        ("TileWalkPanel", "CompilerPanel"),
    ),
)

PUZZLE_LESSON = "04"
# A panel that the course asks about more than once notes the guess under "panel.what".
_LESSON_OF: Mapping[str, str] = {
    **{key: lesson.number for lesson in LESSONS for key in lesson.ids},
    "DecisionPanel.evidence": "05",
}

_TITLES: Mapping[str, Text] = {
    "traffic_vote": Text(zh="四个核函数的中间读写", en="intermediates of four kernels"),
    "lab_vote": Text(zh="一遍做完快几倍", en="speed-up of one tiled pass"),
    "check_total_bytes": Text(zh="一条链的总读写", en="total bytes of a chain"),
    "check_swiglu_saved": Text(zh="SwiGLU 的门省下多少", en="MiB saved in a SwiGLU gate"),
    "traffic_quiz": Text(zh="测验", en="quiz"),
    "TrafficPanel": Text(zh="链的读写", en="traffic of a chain"),
    "EpiloguePanel": Text(zh="矩阵乘和尾声的耗时", en="time of GEMM and epilogue"),
    "reuse_vote": Text(zh="数据块留在片上，省多少读", en="reads that a kept tile avoids"),
    "tile_vote": Text(zh="多大的数据块最快", en="the fastest tile size"),
    "check_avoided_bytes": Text(zh="留在片上省下的字节", en="bytes avoided on chip"),
    "check_gemm_tile_kib": Text(zh="矩阵乘数据块占的 KiB", en="KiB of a GEMM's tiles"),
    "reuse_quiz": Text(zh="测验", en="quiz"),
    "ReusePanel": Text(zh="片上预算与复用", en="on-chip budget and reuse"),
    "veto_vote": Text(zh="换布局会否决融合吗", en="does a conversion veto fusion?"),
    "check_net_bytes": Text(zh="换布局的净收益", en="net bytes of a conversion"),
    "check_break_even": Text(zh="调用几次回本", en="calls to break even"),
    "decision_quiz": Text(zh="测验", en="quiz"),
    "DecisionPanel": Text(zh="四个条件的结论", en="the verdict on four conditions"),
    "LayoutPanel": Text(zh="换布局的账本", en="the layout ledger"),
    "CompilePanel": Text(zh="编译时间的账本", en="the compile-time ledger"),
    "graph_vote": Text(zh="四个算子融合省多少", en="saved by fusing four operators"),
    "compiler_vote": Text(zh="编译后剩几次启动", en="launches left after compiling"),
    "check_kernel_mib": Text(zh="一个核函数读写多少 MiB", en="MiB that one kernel moves"),
    "graph_quiz": Text(zh="测验", en="quiz"),
    "GraphCanvas": Text(zh="动手分组", en="grouping by hand"),
    "PuzzlePanel": Text(zh="十道题", en="ten puzzles"),
    "kernel_vote": Text(zh="四个核函数是一个的几倍字节", en="four kernels' bytes over one's"),
    "losing_vote": Text(zh="T4 上全部融合更快吗", en="all in one kernel on a T4"),
    "check_bias_silu_gate": Text(zh="自己写的核函数", en="a kernel of one's own"),
    "check_fused_bytes": Text(zh="门的读写字节", en="bytes of the gate"),
    "kernel_quiz": Text(zh="测验", en="quiz"),
    "TileWalkPanel": Text(zh="逐程序看数据块", en="walking the tiles"),
    "CompilerPanel": Text(zh="编译器的报告", en="the compiler's report"),
}


def title_of(key: str) -> str:
    """The short title of an id in the language in use; the id itself where nobody knows it."""
    level = next((level for level in PUZZLES if level.name == key), None)
    title = _TITLES.get(key) if level is None else level.title
    panel, _, rest = key.partition(".")
    if title is None and rest and panel in _TITLES:
        return f"{_TITLES[panel]} · {rest}"
    return key if title is None else str(title)


def lesson_of(key: str) -> str:
    """The number of the lesson that asks ``key``; ``""`` where nobody knows it."""
    return _LESSON_OF.get(key) or _LESSON_OF.get(key.partition(".")[0], "")


def place_of(key: str) -> int | None:
    """The place of an id in the course, from 0; ``None`` where nobody knows it."""
    return _PLACES.get(key, _PLACES.get(key.partition(".")[0]))


_PLACES = {key: place for place, key in enumerate(key for lesson in LESSONS for key in lesson.ids)}
_PLACES |= {level.name: len(_PLACES) + level.number for level in PUZZLES}


# -- the library's own words ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VoteWords:
    """A vote: the question, and the label and value of each option."""

    question: Text
    options: tuple[tuple[Text, object], ...]


@dataclass(frozen=True)
class ChoiceWords:
    """A choice of a quiz question, and why it is right or wrong."""

    words: Text
    why: Text
    right: bool


@dataclass(frozen=True)
class QuestionWords:
    """A question of a quiz."""

    question: Text
    choices: tuple[ChoiceWords, ...]

    @property
    def right(self) -> int:
        """The number of the right choice, from 1."""
        return next(number for number, choice in enumerate(self.choices, 1) if choice.right)


@dataclass(frozen=True)
class CourseWords:
    """What the library itself says of its ids; empty where it cannot be asked."""

    votes: Mapping[str, VoteWords] = field(default_factory=dict)
    quizzes: Mapping[str, tuple[QuestionWords, ...]] = field(default_factory=dict)
    mistakes: Mapping[str, tuple[Text, ...]] = field(default_factory=dict)  # of exercises, by index


# -- what is true -----------------------------------------------------------------------------------------------


def _intermediate_bytes() -> object:
    return chain_traffic(4, 64 * MIB, 4)["intermediate_bytes"]


def _avoided_bytes() -> object:
    return onchip_reuse(32 * KIB, 3, 96 * KIB)["avoided_read_bytes"]


def _saved_mib() -> object:
    graph = (
        Operator("sigmoid", ("gate",), "s"),
        Operator("mul", ("gate", "s"), "silu"),
        Operator("mul_1", ("silu", "up"), "gated"),
        Operator("add", ("gated", "residual"), "y"),
    )
    names = [operator.name for operator in graph]
    sizes = dict.fromkeys(("gate", "s", "silu", "up", "gated", "residual", "y"), 32)
    apart = plan_traffic(graph, [[name] for name in names], sizes, outputs=["y"])
    return apart["total_bytes"] - plan_traffic(graph, [names], sizes, outputs=["y"])["total_bytes"]


def _launches_left() -> object:
    return len(recorded_block("swiglu_mlp").compiler.grouping)


def _bytes_ratio() -> object:
    return chain_traffic(len(CHAIN_OPERATORS), 1, 1, side_inputs=1)["bytes_ratio"]


def _first_gemm_mib() -> float:
    """A write and a read of what the first GEMM of the MLP makes."""
    graph = recorded_block("swiglu_mlp").core
    (made,) = graph.op("mm").outputs
    return quotient(2 * graph.tensor(made).bytes, MIB)


def _fused_gemm() -> object:
    plans = gemm_plans(T4)
    other = plans.library_then_epilogue
    if plans.fused.low > other.high:
        return "slower"
    return "faster" if plans.fused.high < other.low else "same"


_TRUTHS: Mapping[str, Callable[[], object]] = {
    "traffic_vote": _intermediate_bytes,
    "reuse_vote": _avoided_bytes,
    "veto_vote": lambda: "ledger",  # a rule of the course: conversions are costs, never conditions
    "graph_vote": _saved_mib,
    "compiler_vote": _launches_left,
    "kernel_vote": _bytes_ratio,
    "losing_vote": _fused_gemm,
}


# What a panel's question (``base.questions``) asks for, in its unit, where that is one number on every machine.
_ASKED: Mapping[str, Callable[[], float | None]] = {
    "TrafficPanel": lambda: chain_traffic(6, 64, 3)["intermediate_bytes"],
    "LayoutPanel": lambda: layout_ledger(32 * MIB, 8 * MIB, "once")["break_even_calls"],
    "CompilePanel": lambda: compile_ledger(4, 86e-6)["break_even_calls"],
    "GraphCanvas.gated residual": lambda: 3 * 32,  # s is neither written nor read, gate is read once
    "GraphCanvas.swiglu_mlp": _first_gemm_mib,
    "TileWalkPanel": lambda: walk("chain", (24, 50), 7, 0, (16, 16)).accesses[0].masked,
}


def _times_faster() -> Interval:
    plans = epilogue_plans(4096, 1024, 4096, A100)
    return speedup_interval(plans[3].time, plans[1].time)


# The same, where what is true is an interval.
_ASKED_BETWEEN: Mapping[str, Callable[[], Interval]] = {"EpiloguePanel": _times_faster}
# Their truth is another one on every machine.
MEASURED_VOTES = ("lab_vote", "tile_vote")


@cache
def true_value(vote: str) -> object:
    """The value of the option that is true; ``None`` where it is measured, or unknown."""
    return _TRUTHS[vote]() if vote in _TRUTHS else None


@cache
def asked_number(panel: str) -> tuple[float, str] | None:
    """What the question of a panel asks for, and its unit; ``None`` where that is words, or no one number."""
    number = _ASKED[panel]() if panel in _ASKED else None
    unit = QUESTIONS[panel].unit if panel in QUESTIONS else None
    return None if number is None or unit is None else (number, unit)


@cache
def asked_interval(panel: str) -> Interval | None:
    """Between which numbers, in its unit, what the question of a panel asks for lies; ``None`` where it is no interval."""
    return _ASKED_BETWEEN[panel]() if panel in _ASKED_BETWEEN else None


def asked_words(panel: str) -> str:
    """The question that a panel asks, in the language in use; ``""`` for one that is not the course's."""
    return str(QUESTIONS[panel].words) if panel in QUESTIONS else ""


def true_choice(vote: str, values: Sequence[object]) -> int | None:
    """The number, from 1, of the option whose value is the true one; ``None`` where there is none.

    Args:
        values: of the options, in order.
    """
    truth = true_value(vote)
    if truth is None:
        return None
    return next((number for number, value in enumerate(values, 1) if same(value, truth)), None)
