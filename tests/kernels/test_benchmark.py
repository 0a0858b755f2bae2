"""The benchmark's harness, without a GPU: its loop under a clock of the test's own, its plans in the interpreter.

No test here asserts how long something takes.
"""

from __future__ import annotations

import importlib.util
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_up_run import ENVIRONMENT, made_up_run

from lessons_lib.base.environment import list_gpus
from lessons_lib.base.text import Text
from lessons_lib.kernels.benchmark import run as benchmark
from lessons_lib.kernels.benchmark.experiments import Bench, failure, run_experiment, size_note
from lessons_lib.kernels.benchmark.measuring import (
    CpuStopwatch,
    GpuStopwatch,
    HostStopwatch,
    count_launches,
    is_kernel,
    measure_rounds,
    repeated,
)
from lessons_lib.kernels.benchmark.prediction import Experiment, experiments
from lessons_lib.kernels.benchmark.report import benchmark_report
from lessons_lib.kernels.benchmark.run import (
    REHEARSAL,
    NoGpuError,
    gpu_environment,
    in_order_of_running,
    main,
    measure_kernels,
    rehearse,
    run_benchmark,
)
from lessons_lib.kernels.benchmark.runs import ExperimentRun, read_run, recorded_runs, write_run
from lessons_lib.kernels.benchmark.verdict import run_problems
from lessons_lib.kernels.mode import TritonSetup, prepare_triton

torch = pytest.importorskip("torch")

from lessons_lib.kernels.benchmark import workloads  # noqa: E402
from lessons_lib.kernels.benchmark.workloads import (  # noqa: E402
    PlanCall,
    Workload,
    largest_error,
    liger_function,
    make_workload,
    poison,
)

CHAIN = Experiment("chain", "chain", "fp16", 8, 16)


# -- the loop ------------------------------------------------------------------------------------------------


@dataclass
class ScriptedDevice:
    """A device whose time is what its plans say they take; it keeps a diary."""

    now: float = 0.0
    diary: list[str] = field(default_factory=list)

    def plan(self, name: str, seconds: float) -> Callable[[], None]:
        def run() -> None:
            self.diary.append(name)
            self.now += seconds

        return run

    def clear_cache(self) -> None:
        self.diary.append("clear")
        self.now += 100.0  # dear, and in no plan's time

    def mark(self) -> float:
        self.diary.append("mark")
        return self.now

    def synchronize(self) -> None:
        self.diary.append("wait")

    def seconds_between(self, start: float, end: float) -> float:
        return end - start

    def clock(self) -> float:
        return self.now


def test_each_plan_is_timed_alone_in_every_round() -> None:
    device = ScriptedDevice()
    plans = {"a": device.plan("a", 1.0), "b": device.plan("b", 3.0)}
    assert measure_rounds(plans, device, fewest=4, most=4) == {"a": [1.0] * 4, "b": [3.0] * 4}


def test_the_cache_is_cleared_once_before_each_timed_plan_and_never_within_its_marks() -> None:
    device = ScriptedDevice()
    measure_rounds({"a": device.plan("a", 1.0), "b": device.plan("b", 1.0)}, device, fewest=2, most=2)
    one_round = ["clear", "mark", "a", "mark", "clear", "mark", "b", "mark"]
    assert device.diary == ["a", "b", "wait", *one_round, "wait", *one_round * 2, "wait"]


def test_warming_up_is_not_timed() -> None:
    device = ScriptedDevice()
    calls = iter([1000.0])

    def slow_at_first() -> None:
        device.now += next(calls, 1.0)

    assert measure_rounds({"a": slow_at_first}, device, fewest=3, most=3) == {"a": [1.0] * 3}


@pytest.mark.parametrize(("budget", "rounds"), [(0.0, 5), (101.0 * 8, 8), (1e9, 12)])
def test_rounds_fit_the_budget_between_their_bounds(budget: float, rounds: int) -> None:
    device = ScriptedDevice()
    samples = measure_rounds(
        {"a": device.plan("a", 1.0)}, device, fewest=5, most=12, budget_seconds=budget, clock=device.clock
    )
    assert len(samples["a"]) == rounds


def test_the_hosts_clock_waits_at_each_mark_and_gives_the_time_of_one_call() -> None:
    device = ScriptedDevice()
    stopwatch = HostStopwatch(device, calls=4, clock=device.clock)
    samples = measure_rounds(
        {"a": repeated(device.plan("a", 0.5), 4)}, stopwatch, fewest=2, most=2, clock=device.clock
    )
    assert samples == {"a": [0.5, 0.5]}
    assert device.diary.count("clear") == 0
    assert device.diary[-7:-1] == ["wait", "a", "a", "a", "a", "wait"]


def test_progress_sees_every_round() -> None:
    device, seen = ScriptedDevice(), []

    def progress(rounds: Any) -> Iterator[int]:
        for number in rounds:
            seen.append(number)
            yield number

    measure_rounds({"a": device.plan("a", 1.0)}, device, fewest=3, most=3, progress=progress)
    assert seen == [0, 1, 2]


def test_a_cpus_stopwatch_overwrites_as_much_as_it_was_told() -> None:
    stopwatch = CpuStopwatch(1000)
    stopwatch.clear_cache()
    start = stopwatch.mark()
    assert stopwatch.seconds_between(start, stopwatch.mark()) >= 0


@pytest.mark.parametrize(
    ("name", "label", "counted"),
    [
        ("chain_kernel", False, True),
        ("void at::native::vectorized_elementwise_kernel<4>", False, True),
        ("ampere_fp16_s16816gemm_fp16_128x128", False, True),
        ("Memcpy DtoD (Device -> Device)", False, False),
        ("Memset (Device)", False, False),
        ("Torch-Compiled Region: 0/0", False, False),
        ("anything", True, False),
    ],
)
def test_copies_fills_and_labels_are_no_launches(name: str, label: bool, counted: bool) -> None:
    assert is_kernel(SimpleNamespace(name=name, is_user_annotation=label)) == counted
    if not label:
        assert is_kernel(SimpleNamespace(name=name)) == counted  # versions that do not mark labels


# -- the GPU's parts, with PyTorch's replaced --------------------------------------------------------------------


class FakeEvent:
    """Milliseconds pass as events are recorded."""

    recorded = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        FakeEvent.recorded += 1
        self.milliseconds = 2.5 * FakeEvent.recorded

    def elapsed_time(self, end: FakeEvent) -> float:
        return end.milliseconds - self.milliseconds


@pytest.mark.parametrize(("hip", "size"), [(None, 256 * 2**20), ("6.4", 512 * 2**20)])
def test_a_gpu_is_timed_by_its_events_and_its_cache_overwritten(
    monkeypatch: pytest.MonkeyPatch, hip: str | None, size: int
) -> None:
    overwritten = []

    def empty(count: int, **options: object) -> SimpleNamespace:
        assert options == {"dtype": torch.int8, "device": "cuda"}
        return SimpleNamespace(zero_=lambda: overwritten.append(count))

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    samples = measure_rounds({"a": lambda: None}, GpuStopwatch(), fewest=3, most=3)
    assert samples == {"a": [pytest.approx(2.5e-3)] * 3}
    assert overwritten == [size] * 4


def test_launches_are_the_kernels_that_the_profiler_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.autograd import DeviceType

    ran = []
    seen = [
        SimpleNamespace(name="aten::add", device_type=DeviceType.CPU),
        SimpleNamespace(name="chain_kernel", device_type=DeviceType.CUDA),
        SimpleNamespace(name="Memset (Device)", device_type=DeviceType.CUDA),
        SimpleNamespace(name="chain_kernel", device_type=DeviceType.CUDA),
    ]

    class Profile:
        def __init__(self, activities: list[object]) -> None:
            assert len(activities) == 2

        def __enter__(self) -> Profile:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def events(self) -> list[SimpleNamespace]:
            return seen

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr("torch.profiler.profile", Profile)
    assert count_launches(lambda: ran.append(1)) == 2 and ran == [1]
    del seen[1:]
    assert count_launches(lambda: None) is None  # a profiler that sees nothing has counted nothing


def test_a_profiler_that_may_not_profile_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(**_: object) -> object:
        raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr("torch.profiler.profile", refuses)
    assert count_launches(lambda: None) is None


@pytest.mark.parametrize(
    ("properties", "hip", "expected"),
    [
        (
            {"name": "Tesla T4", "major": 7, "minor": 5, "multi_processor_count": 40, "total_memory": 2**34},
            None,
            ("T4", "NVIDIA", "7.5", False, None),
        ),
        (
            {"name": "NVIDIA H200", "major": 9, "minor": 0, "L2_cache_size": 62_914_560},
            None,
            ("H200", "NVIDIA", "9.0", True, 62_914_560),
        ),
        (
            {"name": "AMD Instinct MI300X", "major": 9, "minor": 4, "gcnArchName": "gfx942:sramecc+:xnack-"},
            "6.4",
            ("MI300X", "AMD", "gfx942", True, None),
        ),
        ({"name": "NVIDIA GeForce RTX 9999", "major": 12, "minor": 0}, None, (None, "NVIDIA", "12.0", True, None)),
    ],
)
def test_the_environment_names_the_gpu_and_its_versions_and_no_person(
    triton_setup: TritonSetup,
    monkeypatch: pytest.MonkeyPatch,
    properties: dict[str, Any],
    hip: str | None,
    expected: tuple[object, ...],
) -> None:
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(**properties))
    found = gpu_environment()
    assert (found.known_as, found.vendor, found.capability, found.tensor_cores, found.l2_bytes) == expected
    assert found.gpu == properties["name"] and found.torch == torch.__version__
    assert platform.node() not in vars(found).values()
    assert not any(str(Path.home()) in str(value) for value in vars(found).values())


# -- checking ------------------------------------------------------------------------------------------------


def call_for(expected: Any) -> PlanCall:
    return PlanCall(lambda: (), lambda start, stop: (expected[start:stop].double(),))


def test_an_error_is_a_share_of_the_tolerance() -> None:
    right = torch.full((4, 8), 10.0)
    assert largest_error((right + 0.5,), call_for(right), (0.05, 0.05)) == pytest.approx(0.5)
    assert largest_error((right,), call_for(right), (0.05, 0.05)) == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_element_that_is_no_number_is_infinitely_wrong(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "_ROWS_AT_ONCE", 32)
    right = torch.zeros(51, 16)
    got = right.clone()
    got[50, 15] = value  # the last element, in the last block of rows, which is not full
    assert largest_error((got,), call_for(right), (1e9, 0.0)) == math.inf


def test_outputs_of_another_shape_or_number_are_infinitely_wrong() -> None:
    right = torch.zeros(4, 8)
    assert largest_error((torch.zeros(4, 7),), call_for(right), (1.0, 1.0)) == math.inf
    assert largest_error((right, right), call_for(right), (1.0, 1.0)) == math.inf


def test_poison_is_nan_everywhere() -> None:
    tensors = (torch.zeros(3, 5, dtype=torch.float16), torch.ones(7))
    poison(tensors)
    assert all(tensor.isnan().all() for tensor in tensors)


# -- one experiment ------------------------------------------------------------------------------------------


def steady_call(value: float = 1.0, right: float = 1.0) -> PlanCall:
    """Returns a new tensor full of ``value`` at each call, where ``right`` is right."""
    return PlanCall(
        lambda: (torch.full((8, 16), value),), lambda start, stop: (torch.full((stop - start, 16), right),)
    )


def raising(error: Exception) -> PlanCall:
    def run() -> tuple[Any, ...]:
        raise error

    return PlanCall(run, None)


def run_with(plans: dict[str, PlanCall], bench: Bench | None = None, **absent: Text) -> ExperimentRun:
    workload = Workload(plans, absent, (1e-3, 1e-3))  # type: ignore[arg-type]
    return run_experiment(CHAIN, lambda experiment: workload, bench or quiet_bench())


def quiet_bench(**fields: Any) -> Bench:
    return replace(Bench(CpuStopwatch(), fewest=2, most=2), **fields)


def statuses(entry: ExperimentRun) -> dict[str, str]:
    return {plan.name: plan.status for plan in entry.plans}


def test_right_wrong_failed_and_absent_plans_are_told_apart() -> None:
    entry = run_with(
        {"operators": steady_call(), "groups_4": steady_call(value=2.0), "groups_2": raising(KeyError("gone"))},
        compiled=Text(zh="没装", en="missing"),
    )
    assert statuses(entry) == {"operators": "ok", "groups_4": "wrong", "groups_2": "failed", "compiled": "absent"}
    failed = entry.plan("groups_2")
    assert failed is not None and failed.note is not None and "KeyError" in failed.note.en
    assert entry.seconds("groups_4") is None and entry.seconds("operators") is not None


def test_a_plan_that_leaves_an_element_out_is_caught_by_the_poison() -> None:
    memory = torch.zeros(8, 16)

    def forgets_one() -> tuple[Any, ...]:
        memory[:, :15] = 1.0
        return (memory,)

    memory[:] = 1.0  # all right, until the poison
    forgetful = PlanCall(forgets_one, steady_call().expected)
    assert statuses(run_with({"fused": forgetful})) == {"fused": "wrong"}


def test_an_output_that_is_nan_is_wrong_and_still_fits_a_record() -> None:
    plan = run_with({"fused": steady_call(value=math.nan)}).plan("fused")
    assert plan is not None and (plan.status, plan.error) == ("wrong", None)


def test_launches_are_counted_for_every_plan_that_was_timed() -> None:
    counted = []

    def count(action: Callable[[], object]) -> int:
        action()
        counted.append(action)
        return 3

    entry = run_with({"operators": steady_call(), "fused": raising(ValueError())}, quiet_bench(count_launches=count))
    plan = entry.plan("operators")
    assert plan is not None and plan.launches == 3 and len(counted) == 1


def test_running_out_of_memory_halves_the_rows_and_says_so() -> None:
    sizes = []
    released = []

    def make(experiment: Experiment) -> Workload:
        sizes.append(experiment.rows)
        if experiment.rows > 2048:
            raise MemoryError
        return Workload({"fused": PlanCall(lambda: (torch.zeros(1),), None)}, {}, (1.0, 1.0))

    asked = Experiment("chain", "chain", "fp16", 8192, 4096)
    entry = run_experiment(asked, make, quiet_bench(release=lambda: released.append(1)))
    assert sizes == [8192, 4096, 2048]
    assert (entry.experiment.rows, entry.requested_rows) == (2048, 8192)
    assert len(released) == 2
    note = size_note(entry)
    assert note is not None and "64 MiB" in note.en and "16 MiB" in note.en
    assert size_note(run_with({"fused": steady_call()})) is None


@pytest.mark.parametrize("moment", ["first call", "rounds"])
def test_memory_may_run_out_at_any_moment(moment: str) -> None:
    calls = iter(range(100))

    def run() -> tuple[Any, ...]:
        if next(calls) == {"first call": 0, "rounds": 3}[moment]:
            raise MemoryError
        return (torch.ones(8, 16),)

    def make(experiment: Experiment) -> Workload:
        return Workload({"fused": PlanCall(run, None)}, {}, (1.0, 1.0))

    entry = run_experiment(Experiment("chain", "chain", "fp16", 4096, 4096), make, quiet_bench())
    assert entry.experiment.rows == 2048 and statuses(entry) == {"fused": "ok"}


def test_too_little_memory_for_anything_ends_in_words() -> None:
    entry = run_experiment(
        Experiment("chain", "chain", "fp16", 4096, 4096), partial(fail_with, MemoryError()), quiet_bench()
    )
    assert set(statuses(entry).values()) == {"failed"}
    assert entry.plans[0].note is not None and "memory" in entry.plans[0].note.en


def fail_with(error: Exception, experiment: Experiment) -> Workload:
    raise error


def test_tensors_that_cannot_be_made_fail_every_plan_with_the_reason() -> None:
    entry = run_experiment(CHAIN, partial(fail_with, OSError("no such device")), quiet_bench())
    assert set(statuses(entry).values()) == {"failed"}
    assert entry.plans[0].note is not None and "no such device" in entry.plans[0].note.en


def test_a_plan_that_fails_only_while_it_is_timed_fails_the_experiment_and_not_the_run() -> None:
    calls = iter(range(100))

    def run() -> tuple[Any, ...]:
        if next(calls) > 1:
            raise RuntimeError("worn out")
        return (torch.ones(8, 16),)

    assert set(statuses(run_with({"fused": PlanCall(run, None)})).values()) == {"failed"}


def test_plans_for_which_no_time_is_left_are_named_skipped() -> None:
    answers = iter([False, True, True])
    entry = run_with(
        {"copy": steady_call(), "operators": steady_call(), "fused": steady_call()},
        quiet_bench(out_of_time=lambda: next(answers)),
    )
    assert statuses(entry) == {"copy": "ok", "operators": "skipped", "fused": "skipped"}


def test_who_stops_the_program_stops_it() -> None:
    def run() -> tuple[Any, ...]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_with({"fused": PlanCall(run, None)})


def test_the_bar_advances_once_a_plan_and_once_for_the_rounds() -> None:
    steps = []
    run_with(
        {"operators": steady_call(), "fused": raising(ValueError())}, quiet_bench(advance=lambda: steps.append(1))
    )
    assert len(steps) == 3


def test_an_errors_words_fit_a_record() -> None:
    words = failure(RuntimeError("\x1b[31mfirst\tline\nsecond " + "x" * 1000))
    assert words.en.isprintable() and "second" not in words.en and len(words.en) <= 160


# -- the real plans, in the interpreter ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def rehearsed(triton_setup: TritonSetup) -> tuple[ExperimentRun, ...]:
    return rehearse()


def test_every_plan_that_needs_no_gpu_computes_what_float64_says(rehearsed: tuple[ExperimentRun, ...]) -> None:
    for entry in rehearsed:
        assert len(entry.plans) == len(entry.experiment.plans) + len(entry.experiment.calibrations)
        for plan in entry.plans:
            assert plan.status == ("absent" if plan.name in ("compiled", "liger") else "ok"), (entry, plan.note)


def test_the_rehearsal_covers_every_kernel_and_both_clocks() -> None:
    assert {experiment.kernel for experiment in REHEARSAL} == {e.kernel for e in experiments()}
    assert {experiment.clock for experiment in REHEARSAL} == {"device", "host"}


def test_expected_values_are_no_kernels_of_ours(triton_setup: TritonSetup) -> None:
    """A workload whose plans are spoilt still knows what is right."""
    workload = make_workload(CHAIN, triton_setup.device or "cpu", compiled=False, liger=False)
    (right,) = workload.plans["operators"].run()
    assert largest_error((right,), workload.plans["fused"], workload.tolerance) <= 1
    right[3, 5] += 0.1
    assert largest_error((right,), workload.plans["fused"], workload.tolerance) > 1


def test_the_tolerance_of_fp32_sees_one_part_in_ten_thousand(triton_setup: TritonSetup) -> None:
    workload = make_workload(Experiment("softmax", "softmax", "fp32", 4, 64), "cpu", compiled=False, liger=False)
    (right,) = workload.plans["library"].run()
    assert largest_error((right * 1.0001,), workload.plans["fused"], workload.tolerance) > 1


def test_zeros_are_no_softmax_however_small_its_values(triton_setup: TritonSetup) -> None:
    workload = make_workload(Experiment("softmax", "softmax", "fp16", 4, 4096), "cpu", compiled=False, liger=False)
    (right,) = workload.plans["library"].run()
    assert largest_error((torch.zeros_like(right),), workload.plans["fused"], workload.tolerance) > 1


def test_the_same_tensors_every_time(triton_setup: TritonSetup) -> None:
    first, second = (make_workload(CHAIN, "cpu", compiled=False, liger=False).plans["copy"].run() for _ in range(2))
    assert torch.equal(first[0], second[0])


def test_what_the_compiler_is_given_computes_the_same(
    triton_setup: TritonSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def compile_nothing(function: Callable[..., object], **options: bool) -> Callable[..., object]:
        asked.append(options)
        return function

    monkeypatch.setattr(torch, "compile", compile_nothing)
    for experiment in REHEARSAL:
        workload = make_workload(experiment, "cpu", liger=False)
        call = workload.plans["compiled"]
        assert largest_error(call.run(), call, workload.tolerance) <= 1
    assert asked == [{"dynamic": False, "fullgraph": True}] * len(REHEARSAL)


@pytest.mark.skipif(importlib.util.find_spec("liger_kernel") is not None, reason="Liger-Kernel is installed here")
def test_without_liger_its_plan_is_absent_with_a_reason(triton_setup: TritonSetup) -> None:
    assert liger_function("LigerSoftmaxFunction", "softmax") is None
    workload = make_workload(Experiment("softmax", "softmax", "fp32", 4, 8), "cpu", compiled=False)
    assert "Liger-Kernel" in workload.absent["liger"].en


# -- the run, with the GPU's parts replaced --------------------------------------------------------------------


def put_cpu_in_place_of_gpu(monkeypatch: pytest.MonkeyPatch, out_of_time: bool = False) -> None:
    """What ``run_benchmark`` does on a GPU, on tiny tensors on the CPU: its figures are thrown away."""
    without_gpu = partial(make_workload, device="cpu", compiled=False, liger=False)
    monkeypatch.setattr(benchmark, "can_measure", lambda setup: True)
    monkeypatch.setattr(benchmark, "experiments", lambda quick, size: REHEARSAL)
    monkeypatch.setattr(benchmark, "_gpu_bench", lambda quick: quiet_bench(calls=2, out_of_time=lambda: out_of_time))
    monkeypatch.setattr(benchmark, "make_workload", lambda experiment, device: without_gpu(experiment))
    monkeypatch.setattr(benchmark, "gpu_environment", lambda: ENVIRONMENT)


def test_a_whole_run_fits_its_record_and_its_report(
    triton_setup: TritonSetup, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_cpu_in_place_of_gpu(monkeypatch)
    run = run_benchmark(quick=True)
    assert capsys.readouterr().err == ""
    assert [entry.experiment for entry in run.experiments] == list(REHEARSAL)
    assert run_problems(run) == ()
    write_run(run, tmp_path / "run.json")
    assert read_run(tmp_path / "run.json") == replace(run, recorded_as="run.json")
    assert "made up for a test" in repr(benchmark_report(run))


def test_a_run_out_of_time_is_still_a_run(triton_setup: TritonSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    put_cpu_in_place_of_gpu(monkeypatch, out_of_time=True)
    run = run_benchmark(progress=False)
    assert {plan.status for entry in run.experiments for plan in entry.plans} <= {"skipped", "absent"}
    assert "no time was left" in repr(benchmark_report(run))


def test_the_command_writes_the_run_and_says_where(
    triton_setup: TritonSetup, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_cpu_in_place_of_gpu(monkeypatch)
    monkeypatch.setattr(benchmark, "experiments", lambda quick, size: REHEARSAL[:1])
    status = main(["--quick", "--no-progress", "--out", str(tmp_path / "run.json"), "--language", "zh"])
    assert status == 0
    assert read_run(tmp_path / "run.json").quick
    assert "已写入" in capsys.readouterr().out


def test_the_command_fails_where_an_output_is_wrong(
    triton_setup: TritonSetup, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_cpu_in_place_of_gpu(monkeypatch)
    monkeypatch.setattr(benchmark, "make_workload", lambda experiment, device: WRONG)
    assert main(["--no-progress"]) == 1
    capsys.readouterr()


WRONG = Workload(
    {"fused": PlanCall(lambda: (torch.ones(8, 16),), lambda start, stop: (torch.zeros(stop - start, 16),))},
    {},
    (1e-3, 1e-3),
)


def test_what_the_hosts_clock_times_comes_before_any_profiler() -> None:
    order = in_order_of_running(experiments())
    assert order[0].name == "tiny"
    assert [e for e in order if e.name != "tiny"] == [e for e in experiments() if e.name != "tiny"]


# -- without a GPU -------------------------------------------------------------------------------------------

no_gpu = pytest.mark.skipif(prepare_triton().on_gpu, reason="a GPU is here, and would be measured")


@no_gpu
def test_without_a_gpu_the_command_says_so_in_both_languages_and_makes_nothing_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--quick", "--out", str(tmp_path / "run.json")]) == 1
    said = capsys.readouterr()
    assert "没有测" in said.err and "Nothing was measured" in said.err
    assert said.out == "" and list(tmp_path.iterdir()) == []


@no_gpu
def test_without_a_gpu_a_run_is_refused() -> None:
    with pytest.raises(NoGpuError, match="made up"):
        run_benchmark(quick=True)


@no_gpu
def test_without_a_gpu_the_newest_record_is_shown_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure_kernels() == next(iter(recorded_runs()), None)
    monkeypatch.setattr(benchmark, "recorded_runs", lambda: (made_up_run(), made_up_run(quick=False)))
    newest = measure_kernels()
    assert newest is not None and newest.quick
    monkeypatch.setattr(benchmark, "recorded_runs", lambda: ())
    assert measure_kernels() is None


@pytest.mark.parametrize("call", [lambda: measure_kernels(quick=1), lambda: run_benchmark(progress="no")])  # type: ignore[arg-type]
def test_arguments_of_the_wrong_type_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"quick|progress"):
        call()


# -- on a GPU --------------------------------------------------------------------------------------------------


def test_on_a_gpu_the_command_measures_and_every_output_is_right(tmp_path: Path) -> None:
    """In a process of its own: this one has Triton's interpreter."""
    if not any(gpu.usable_by_triton for gpu in list_gpus()):
        pytest.skip("no GPU that Triton runs on")
    variables = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "lessons_lib.kernels.benchmark", "--quick", "--out", str(tmp_path / "run.json")]
    subprocess.run(command, env=variables, check=True, timeout=600)
    run = read_run(tmp_path / "run.json")
    assert run_problems(run) == ()
    assert run.copy_bandwidth is not None
