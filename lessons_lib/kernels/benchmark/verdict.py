"""What must hold of a measurement on any machine, fast or slow, GPU or none: safe to store and compare."""

from __future__ import annotations

from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, shown
from lessons_lib.kernels.benchmark.cpu_measurement import CpuMeasurement
from lessons_lib.kernels.benchmark.prediction import EXPERIMENT_WORDS, PLAN_WORDS, launches_are_certain
from lessons_lib.kernels.benchmark.runs import Run
from lessons_lib.show.exercise import Feedback

_OURS = ("groups_4", "groups_2", "gemm_then_epilogue", "fused")


def measurement_verdict(*measurements: Run | CpuMeasurement | None) -> Feedback:
    """Whether outputs are right and launches as many as predicted, wherever something was measured.

    It says the same on every machine where all is well, one without a GPU or a compiler included, so that a notebook
    may keep it; times are none of its business.

    Args:
        measurements: what ``measure_kernels`` and ``measure_on_cpu`` returned, ``None`` included.

    Raises:
        ValueError: one is something else.
    """
    problems: list[Text] = []
    for index, measurement in enumerate(measurements):
        if isinstance(measurement, Run):
            problems += run_problems(measurement)
        elif isinstance(measurement, CpuMeasurement):
            problems += [] if measurement.outputs_right else [_CPU_WRONG]
        elif measurement is not None:
            raise bad_argument(
                f"measurements[{index}]",
                zh=f"需要 measure_kernels 或 measure_on_cpu 的结果，收到的是 {shown(measurement)}",
                en=f"it must come from measure_kernels or measure_on_cpu, got {shown(measurement)}",
            )
    if problems:
        return Feedback("wrong", "\n".join(map(str, problems)))
    return Feedback("right", str(_ALL_WELL))


def run_problems(run: Run) -> tuple[Text, ...]:
    """Outputs that are wrong, kernels of ours that failed, and launches other than predicted where that is certain."""
    problems = []
    for entry in run.experiments:
        for plan in entry.plans:
            expected = run.predicted_launches(entry, plan.name)
            if plan.status == "wrong":
                problem = _WRONG
            elif plan.status == "failed" and plan.name in _OURS:
                problem = _FAILED.format(note=plan.note or "?")
            elif plan.launches not in (None, expected) and launches_are_certain(entry.experiment, plan.name):
                problem = _LAUNCHES.format(counted=plan.launches, expected=expected)
            else:
                continue
            place = {"experiment": EXPERIMENT_WORDS[entry.experiment.name], "plan": PLAN_WORDS[plan.name]}
            problems.append(_PLACE.format(**place, problem=problem))
    return tuple(problems)


_ALL_WELL = Text(
    zh="凡是测过的：输出都与 float64 相符，我们自己的核函数启动次数都与预测一致。在哪里测、测了什么，报告里写着。",
    en="Wherever something was measured, its output agrees with float64, and our kernels were launched as often as "
    "predicted. The report says where and what was measured.",
)
_PLACE = Text(zh="{experiment}，{plan}：{problem}", en="{experiment}, {plan}: {problem}")
_WRONG = Text(zh="输出与 float64 不符。", en="the output does not agree with float64.")
_FAILED = Text(zh="没有跑起来（{note}）。", en="it failed ({note}).")
_LAUNCHES = Text(
    zh="启动了 {counted} 个核函数，应为 {expected} 个。", en="{counted} kernels were launched, not {expected}."
)
_CPU_WRONG = Text(
    zh="CPU 上的四算子链：输出与 float64 不符。", en="The chain on the CPU: an output does not agree with float64."
)
