"""The figures of the handouts, every one computed by the library; ``pages.toml`` calls them by name.

In the text ``((name))`` is a figure that is printed, and ``[[name]]`` a blank, which only the answers fill in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lessons_lib import (
    GPUS,
    GraphOp,
    Operator,
    OpGraph,
    accumulator_registers,
    attention_traffic,
    best_cuts,
    boundary_traffic,
    chain_traffic,
    compile_ledger,
    decide,
    epilogue_plans,
    examine,
    fusion_traffic,
    gemm_traffic,
    layout_ledger,
    occupancy,
    onchip_reuse,
    plan_traffic,
    produced_reuse,
    recorded_block,
    retile,
    softmax_traffic,
    speedup_interval,
    tensor_of,
    tile_operand_bytes,
)
from lessons_lib.base.roofline import Interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import KIB, MIB
from lessons_lib.classroom.course import LESSONS
from lessons_lib.classroom.words import exercise_of, quiz_words
from lessons_lib.decision.court import ANSWER_NAMES, CASES, ledger_answer
from lessons_lib.decision.model import CONDITIONS, Evidence
from lessons_lib.graph.grouping import cost, grouping_of, unfused
from lessons_lib.kernels.launch import CHAIN_OPERATORS, LinearLaunch
from lessons_lib.kernels.losing import gemm_plans, tiny_chain
from lessons_lib.kernels.walk import walk, walk_launch
from lessons_lib.show.exercise import ValueExercise

Figures = Mapping[str, str]
_BY_HAND = Text(zh="手算", en="by hand")
_NEVER = Text(zh="永远打不平", en="never")
_OUTCOMES = {
    "met": Text(zh="成立", en="met"),
    "open": Text(zh="未定", en="open"),
    "refused": Text(zh="不成立", en="refused"),
}
_REACHED = Text(zh="用到了张量核心", en="it reaches the tensor cores")
_NOT_REACHED = Text(zh="Triton 在 T4 上用不到张量核心", en="on a T4, Triton's GEMM does not reach the tensor cores")
A100, T4 = GPUS["A100 (40 GB)"], GPUS["T4"]
_FOUR, _TENSOR = 4, 64 * MIB


def figures(number: str) -> Figures:
    """The figures of a lesson (``"01"``) by name, as text."""
    return _LESSONS[number]()


def _mib(count: int | float) -> str:
    """In three digits, or whole: a vector beside a matrix does not show."""
    size = count / MIB
    return (f"{size:.3g}" if abs(size) < 1000 else f"{size:,.0f}").replace("-", "−")


def _span(interval: Interval, digits: int = 2) -> str:
    return f"{interval.low:.{digits}f} – {interval.high:.{digits}f}"


def _start() -> Figures:
    elements = 4096 * 4096
    return {
        "fp32": _mib(elements * 4),
        "fp16": _mib(elements * 2),
        "int8": _mib(elements),
        "t4": f"{elements * 2 / T4.bandwidth * 1e6:.0f}",
        "a100": f"{elements * 2 / A100.bandwidth * 1e6:.0f}",
        "t4_rate": f"{T4.bandwidth / 1e9:.0f}",
        "a100_rate": f"{A100.bandwidth / 1e9:,.0f}",
        "registers": f"{T4.registers_per_sm * 4 // KIB}",
        "shared": f"{T4.shared_bytes_per_sm // KIB}",
        "l2": _mib(T4.l2_bytes),
        "sms": str(T4.sm_count),
        "warp": str(T4.warp_size),
        "warps": str(256 // T4.warp_size),
        "launches": str(fusion_traffic(_FOUR, _TENSOR, _FOUR)["launches"]),
        "launches_fused": str(fusion_traffic(_FOUR, _TENSOR, 1)["launches"]),
    }


def _traffic() -> Figures:
    found = {"ceiling_side": f"{chain_traffic(_FOUR, _TENSOR, 1, 1)['bytes_ratio']:g}"}
    for groups in (4, 2, 1):
        plain, side = (chain_traffic(_FOUR, _TENSOR, groups, side_inputs) for side_inputs in (0, 1))
        found |= {
            f"launches_{groups}": str(plain["launches"]),
            f"boundaries_{groups}": str(plain["materialized_boundaries"]),
            f"between_{groups}": _mib(plain["intermediate_bytes"]),
            f"total_{groups}": _mib(plain["total_bytes"]),
            f"side_{groups}": _mib(side["total_bytes"]),
        }
    for count in (6, 12):
        found[f"between_{count}_3"] = _mib(fusion_traffic(count, _TENSOR, 3)["intermediate_bytes"])
    sizes = [size * MIB for size in (64, 64, 16, 64, 4)]
    cuts = best_cuts(sizes, num_cuts=2)
    found |= {f"cut_{place}": str(cut + 1) for place, cut in zip(("a", "b"), cuts, strict=True)}
    found["cut_bytes"] = _mib(boundary_traffic(sizes, cuts)["intermediate_bytes"])
    return found | _branches() | _epilogue()


def _branches() -> dict[str, str]:
    graph = [Operator("f", ["x"], "t"), Operator("g", ["t"], "u"), Operator("h", ["t"], "v")]
    sizes = dict.fromkeys("xtuv", _TENSOR)
    plans = {"apart": ["f", "g", "h"], "all": ["fgh"], "fg": ["fg", "h"], "twice": ["fg", "fh"]}
    totals = {
        name: plan_traffic(graph, [list(kernel) for kernel in kernels], sizes, outputs=["u", "v"])
        for name, kernels in plans.items()
    }
    return {f"fan_{name}": _mib(total["total_bytes"]) for name, total in totals.items()}


def _epilogue() -> dict[str, str]:
    found: dict[str, str] = {}
    for k in (1024, 16384):
        plans = epilogue_plans(4096, k, 4096, A100)
        three, one = plans[3], plans[1]
        found |= {
            f"three_{k}": _mib(three.traffic["total_bytes"]),
            f"one_{k}": _mib(one.traffic["total_bytes"]),
            f"bytes_{k}": f"{three.traffic['total_bytes'] / one.traffic['total_bytes']:.2f}",
            f"time_{k}": _span(speedup_interval(three.time, one.time)),
        }
    return found


def _reuse() -> Figures:
    budget = 96 * KIB
    whole, large = (onchip_reuse(size * KIB, 3, budget)["avoided_read_bytes"] // KIB for size in (64, 128))
    found = {
        "avoided_32": str(onchip_reuse(32 * KIB, 3, budget)["avoided_read_bytes"] // KIB),
        "avoided_64": str(whole),
        "avoided_128": str(large),
        "retiled": str(retile(128 * KIB, 3, budget)["avoided_read_bytes"] // KIB),
        "read_1": str(onchip_reuse(32 * KIB, 1, budget)["avoided_read_bytes"] // KIB),
        "produced_1": str(produced_reuse(32 * KIB, 1, budget)["avoided_bytes"] // KIB),
        "produced_3": str(produced_reuse(32 * KIB, 3, budget)["avoided_bytes"] // KIB),
        "t4_block": str((T4.shared_bytes_per_block or 0) // KIB),
    }
    for size in (24, 48, 96):
        fit = occupancy(GPUS["A10"], 256, 32, size * KIB)
        found |= {f"blocks_{size}": str(fit["blocks_per_sm"]), f"occupancy_{size}": f"{fit['occupancy']:.0%}"}
    for m, n in ((64, 64), (128, 256)):
        name = f"{m}_{n}"
        found |= {
            f"gemm_{name}": _mib(gemm_traffic(4096, 4096, 4096, m, n)["total_bytes"]),
            f"shared_{name}": str(tile_operand_bytes(m, n, 64, buffers=2)["total_bytes"] // KIB),
            f"registers_{name}": str(accumulator_registers(A100, m, n, num_warps=8)["registers_per_thread"]),
        }
    rows = softmax_traffic(4096, 4096)
    found |= {"naive": _mib(rows["naive_bytes"]), "resident": _mib(rows["resident_bytes"])}
    found["two_pass"] = _mib(rows["two_pass_bytes"])
    heads = {block: attention_traffic(queries=2048, head_dim=64, block_queries=block) for block in (64, 128)}
    found["attention"] = _mib(heads[64]["unfused_bytes"])
    return found | {f"attention_{block}": _mib(head["tiled_bytes"]) for block, head in heads.items()}


def _decision() -> Figures:
    weight = layout_ledger(32 * MIB, 8 * MIB, "once", 16)
    activation = layout_ledger(8 * MIB, 8 * MIB, "each_call", 1)
    plans = epilogue_plans(4096, 1024, 4096, A100)
    saved = round(plans[3].time.low - plans[1].time.low, 6)
    three = [Evidence(name, "pass", _BY_HAND, _BY_HAND) for name in CONDITIONS[:3]]
    one = [Evidence(CONDITIONS[0], "fail", _BY_HAND, _BY_HAND)]
    found = {
        "weight_even": str(weight["break_even_calls"]),
        "weight_gains": str(weight["gains_from_call"]),
        "activation_even": str(activation["break_even_calls"] or _NEVER),
        "activation_net": _mib(activation["net_bytes"]),
        "saved_us": f"{saved * 1e6:.0f}",
        "compile_even": f"{compile_ledger(4, saved)['break_even_calls']:,}",
        "half_known": str(_OUTCOMES[decide(three).outcome]),
        "one_failed": str(_OUTCOMES[decide(one).outcome]),
    }
    for case in CASES:
        ruling = examine(case).ruling.by_question()
        found |= {f"{case}_{question}": str(ANSWER_NAMES[answer]) for question, answer in ruling.items()}
    return found


def _graph() -> Figures:
    gate = gated_residual()
    alone, fused = (
        cost(gate, unfused(gate), A100),
        cost(gate, grouping_of(gate, [[op.name for op in gate.ops]]), A100),
    )
    pair = cost(gate, grouping_of(gate, [["sigmoid", "mul"]]), A100)
    boundary = fusion_traffic(4, 32 * MIB, 4)["intermediate_bytes"]
    block = recorded_block("swiglu_mlp")
    eager = cost(block.graph, unfused(block.graph), block.gpu)
    plans = {"compiler": block.compiler.grouping, "best": block.best.grouping, "hand": block.by_hand.grouping}
    found = {
        "apart": _mib(alone.total_bytes),
        "fused": _mib(fused.total_bytes),
        "saved": _mib(alone.total_bytes - fused.total_bytes),
        "pair_saved": _mib(alone.total_bytes - pair.total_bytes),
        "boundary": _mib(boundary),
        "missing_mib": _mib(alone.total_bytes - fused.total_bytes - boundary),
        "missing": ", ".join(name for name in gate.inputs if sum(name in op.inputs for op in gate.ops) > 1),
    }
    for name, total in {"eager": eager, **{n: cost(block.core, g, block.gpu) for n, g in plans.items()}}.items():
        found |= {f"{name}_launches": str(total.launches), f"{name}_mib": _mib(total.total_bytes)}
        found |= {
            f"{name}_share": f"{total.total_bytes / eager.total_bytes:.0%}",
            f"{name}_time": _milliseconds(total.time),
        }
    return found


def _milliseconds(time: Interval) -> str:
    return _span(Interval(time.low * 1e3, time.high * 1e3))


def gated_residual() -> OpGraph:
    """The graph of lesson 04's canvas."""
    names = ("gate", "up", "residual", "s", "a", "m", "y")
    wires = {
        "sigmoid": (("gate",), "s"),
        "mul": (("gate", "s"), "a"),
        "mul_1": (("a", "up"), "m"),
        "add": (("m", "residual"), "y"),
    }
    return OpGraph(
        "gated residual",
        ops=tuple(GraphOp(op, "elementwise", inputs=read, outputs=(made,)) for op, (read, made) in wires.items()),
        tensors=tuple(tensor_of(name, (4096, 2048), "float32") for name in names),
        inputs=names[:3],
        outputs=names[-1:],
    )


def _kernel() -> Figures:
    found: dict[str, str] = {}
    for groups in (4, 2, 1):
        total = chain_traffic(len(CHAIN_OPERATORS), _TENSOR, groups, side_inputs=1)["total_bytes"]
        found |= {f"total_{groups}": _mib(total), f"t4_{groups}": f"{total / T4.bandwidth * 1e3:.2f}"}
    lanes = walk("chain", (24, 50), program=7, tile=(16, 16)).loads
    found["masked"] = str(next(access.masked for access in lanes if access.operand.name == "x"))
    launch = walk_launch("linear", (4096, 4096, 1024), (128, 128, 32))
    assert isinstance(launch, LinearLaunch)
    found["readers"] = str(launch.tiles_n)
    found |= {f"tiny_{groups}": f"{seconds * 1e6:.0f}" for groups, seconds in tiny_chain(T4).items()}
    gemm = gemm_plans(T4)
    found |= {"t4_library": _milliseconds(gemm.library_then_epilogue), "t4_fused": _milliseconds(gemm.fused)}
    return found | {"why": str(_REACHED if gemm.on_tensor_cores else _NOT_REACHED)}


_LESSONS: Mapping[str, Callable[[], Figures]] = {
    "00": _start,
    "01": _traffic,
    "02": _reuse,
    "03": _decision,
    "04": _graph,
    "05": _kernel,
}


def right_choice(vote: str) -> object:
    """The value of the choice that is right; ``None`` where only a measurement can tell."""
    return _RIGHT[vote]()


def right_number(checker: str) -> float | None:
    """The number that a checker calls right; ``None`` where it takes a function."""
    exercise = exercise_of(checker)
    return exercise.answer if isinstance(exercise, ValueExercise) else None


def quiz_key(number: str) -> tuple[int, ...]:
    """The right choice of each question of a lesson's quiz, from 1; empty where it has none."""
    quizzes = (key for lesson in LESSONS if lesson.number == number for key in lesson.quizzes)
    return tuple(question.right for key in quizzes for question in quiz_words(key))


def _losing() -> str:
    plans = gemm_plans(T4)
    if plans.fused.low > plans.library_then_epilogue.high:
        return "slower"
    return "faster" if plans.fused.high < plans.library_then_epilogue.low else "same"


def _veto() -> str:
    answer = ledger_answer(layout_ledger(32 * MIB, 8 * MIB, "once", 1))
    return {"yes": "pays", "no": "veto", "depends": "ledger"}[answer]


def _saved_by_fusing() -> int:
    gate = gated_residual()
    fused = cost(gate, grouping_of(gate, [[op.name for op in gate.ops]]), A100)
    return (cost(gate, unfused(gate), A100).total_bytes - fused.total_bytes) // MIB


_RIGHT: Mapping[str, Callable[[], object]] = {
    "traffic_vote": lambda: fusion_traffic(_FOUR, _TENSOR, _FOUR)["intermediate_bytes"],
    "reuse_vote": lambda: onchip_reuse(32 * KIB, 3, 96 * KIB)["avoided_read_bytes"],
    "veto_vote": _veto,
    "graph_vote": _saved_by_fusing,
    "compiler_vote": lambda: len(recorded_block("swiglu_mlp").compiler.grouping),
    "kernel_vote": lambda: chain_traffic(len(CHAIN_OPERATORS), 1, 1, side_inputs=1)["bytes_ratio"],
    "losing_vote": _losing,
}
