"""The CPU measurement: right outputs, an honest prediction, and words where something is missing. No timed tests."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_run import steady

from lessons_lib import use_language
from lessons_lib.base.text import Text
from lessons_lib.base.units import KIB, MIB
from lessons_lib.kernels.benchmark import cpu_lab
from lessons_lib.kernels.benchmark.cpu_lab import measure_on_cpu, why_not_compiled
from lessons_lib.kernels.benchmark.cpu_measurement import CpuMeasurement
from lessons_lib.kernels.benchmark.cpu_report import cpu_report
from lessons_lib.kernels.benchmark.verdict import measurement_verdict
from lessons_lib.kernels.exercises import kernel_vote

COPY = 0.010


def made_up(
    operators: tuple[float, ...] = (1.0, 5.0, 1.0, 1.5), unfused: float = 8.5, compiled: float | None = 5.5
) -> CpuMeasurement:
    """A measurement of no machine: times in passes of a copy over one tensor."""
    return CpuMeasurement(
        requested_bytes=64 * MIB,
        tensor_bytes=64 * MIB,
        threads=2,
        copy=steady(COPY),
        operators=tuple(steady(COPY * seconds) for seconds in operators),
        unfused=steady(COPY * unfused),
        compiled=None if compiled is None else steady(COPY * compiled),
        compile_seconds=None if compiled is None else 4.0,
        speedup=None if compiled is None else steady(unfused / compiled),
        outputs_right=True,
        problem=Text(zh="没有编译器", en="no compiler") if compiled is None else None,
    )


# -- the prediction ------------------------------------------------------------------------------------------


def test_bytes_are_checkpoint_17s() -> None:
    measured = made_up()
    assert (measured.unfused_bytes, measured.fused_bytes) == (576 * MIB, 192 * MIB)
    assert measured.bytes_ratio == 3


def test_operators_that_take_their_pass_and_no_more_leave_one_pass() -> None:
    measured = made_up((1.0, 1.0, 1.0, 1.5), unfused=4.5, compiled=1.5)
    assert measured.predicted_compiled.low == pytest.approx(1.5 * COPY)
    assert measured.predicted_compiled.high == pytest.approx(1.5 * COPY)
    assert measured.predicted_speedup.low == pytest.approx(3)
    assert measured.reason.name == "bytes"


def test_arithmetic_stays_when_passes_go() -> None:
    measured = made_up((1.0, 5.0, 1.0, 1.5), unfused=8.5, compiled=5.2)
    # Apart: one pass (1.5) and what GELU exceeds its pass by (4). Together: GELU's 5 alone.
    assert measured.predicted_compiled.low == pytest.approx(5.0 * COPY)
    assert measured.predicted_compiled.high == pytest.approx(5.5 * COPY)
    assert measured.compute_bound_operators == ("gelu",)
    assert measured.reason.name == "arithmetic"
    assert "50 ms" in measured.reason.text.en and "3 times" in measured.reason.text.en


def test_the_unfused_prediction_runs_from_bytes_to_its_parts() -> None:
    measured = made_up((1.0, 5.0, 1.0, 1.5))
    assert measured.predicted_unfused.low == pytest.approx(4.5 * COPY)
    assert measured.predicted_unfused.high == pytest.approx(8.5 * COPY)
    assert not any("timed alone" in note.en for note in measured.notes)


def test_operators_slower_than_the_sum_of_their_parts_are_given_a_reason() -> None:
    slow = made_up((1.0, 5.0, 1.0, 1.5), unfused=9.5)
    assert "95 ms, more than the 85 ms" in slow.notes[0].en and "95 ms" in slow.notes[0].zh
    assert made_up((1.0, 5.0, 1.0, 1.5), unfused=8.7).notes[0].en.startswith("Compiling"), (
        "within 5% is no difference"
    )


@pytest.mark.parametrize(
    ("compiled", "name"), [(7.0, "slower-loop"), (3.0, "better-loop"), (5.2, "arithmetic"), (None, "no-compiler")]
)
def test_the_reason_follows_from_where_the_loop_lies(compiled: float | None, name: str) -> None:
    gap = made_up(compiled=compiled).reason
    assert gap.name == name
    assert "{" not in gap.text.both and "?" not in gap.text.both


def test_noise_is_named_before_anything_else() -> None:
    assert replace(made_up(), unfused=steady(0.085, width=0.8)).reason.name == "noise"


def test_compiling_is_amortized_over_calls() -> None:
    (note,) = made_up(unfused=8.5, compiled=4.5).notes
    assert "100 calls" in note.en  # 4 s over 40 ms a call
    assert "∞" in made_up(unfused=5.0, compiled=5.5).notes[0].en


def test_smaller_tensors_are_named() -> None:
    note = replace(made_up(), requested_bytes=128 * MIB).notes[0]
    assert "64 MiB instead of 128 MiB" in note.en


# -- the report ----------------------------------------------------------------------------------------------


def test_prediction_stands_beside_measurement() -> None:
    rows = repr(cpu_report(made_up())).splitlines()
    assert rows[2].split()[-9:] == ["576", "MiB", "45", "ms", "–", "85", "ms", "85", "ms"]
    assert "1.55×" in rows[4] and rows[4].startswith("▸ operators ÷ compiled")


def test_without_a_compiler_the_report_predicts_and_says_why() -> None:
    shown = repr(cpu_report(made_up(compiled=None)))
    assert "no compiler." in shown and "50 ms – 55 ms" in shown
    assert ">measured " in cpu_report(made_up())._repr_html_()


def test_the_guess_has_a_row_and_the_vote_about_the_bytes_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "our guess" not in repr(cpu_report(made_up()))
    assert repr(cpu_report(made_up(), guess=2)).splitlines()[5].split() == ["your", "guess", "2×"]
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "own.json"))
    kernel_vote().choose(3)
    assert "Your guess (bytes of four kernels over those of one): 4×." in repr(cpu_report(made_up()))
    with pytest.raises(ValueError, match="guess"):
        cpu_report(made_up(), guess=0)


def test_without_pytorch_the_report_is_words() -> None:
    assert "PyTorch is not installed" in repr(cpu_report(None))


def test_the_report_takes_a_measurement_only() -> None:
    with pytest.raises(ValueError, match="measurement"):
        cpu_report(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("compiled", [None, 3.0, 5.2, 7.0])
def test_every_report_reads_in_both_languages(language: str, compiled: float | None) -> None:
    use_language(language)
    plain = repr(cpu_report(made_up(compiled=compiled)))
    assert "{" not in plain
    assert bool(re.search(r"[\u4e00-\u9fff]", plain)) == (language == "zh")


def test_the_verdict_is_the_same_wherever_outputs_are_right() -> None:
    right = {repr(measurement_verdict(made_up())), repr(measurement_verdict(None)), repr(measurement_verdict())}
    assert len(right) == 1
    wrong = measurement_verdict(replace(made_up(), outputs_right=False))
    assert wrong.status == "wrong" and "chain on the CPU" in wrong.words


# -- measuring -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured() -> CpuMeasurement:
    pytest.importorskip("torch")
    found = measure_on_cpu(256 * KIB, compiled=False, progress=False, budget_seconds=0.01)
    assert found is not None
    return found


def test_every_part_is_timed_in_every_round_and_the_outputs_agree_with_float64(measured: CpuMeasurement) -> None:
    assert measured.outputs_right
    (rounds,) = {spread.count for spread in (measured.copy, *measured.operators, measured.unfused)}
    assert rounds >= 5
    assert len(measured.operators) == 4


def test_what_was_not_compiled_has_no_time(measured: CpuMeasurement) -> None:
    assert measured.compiled is measured.speedup is measured.compile_seconds is None
    assert measured.problem is not None


def test_a_compiled_loop_is_timed_beside_the_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)  # a compiler that compiles nothing
    found = measure_on_cpu(64 * KIB, progress=False, budget_seconds=0.01)
    assert found is not None and found.outputs_right
    assert found.compiled is not None and found.speedup is not None and found.compiled.count == found.speedup.count


def test_a_wrong_compiled_loop_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")

    def leaves_one_out(x: object, bias: object, scale: object, residual: object, y: object) -> None:
        keep = y[-1, -1].clone()  # type: ignore[index]
        cpu_lab._chain_into(x, bias, scale, residual, y)  # type: ignore[arg-type]
        y[-1, -1] = keep  # type: ignore[index]

    monkeypatch.setattr(torch, "compile", lambda function, **options: leaves_one_out)
    found = measure_on_cpu(64 * KIB, progress=False, budget_seconds=0.01)
    assert found is not None and not found.outputs_right


def test_a_compiler_that_fails_leaves_the_rest_of_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")

    def fails(function: object, **options: object) -> object:
        raise RuntimeError("no backend for this system")

    monkeypatch.setattr(torch, "compile", fails)
    found = measure_on_cpu(64 * KIB, progress=False, budget_seconds=0.01)
    assert found is not None and found.outputs_right and found.compiled is None
    assert found.problem is not None and "no backend for this system" in found.problem.en


def test_a_missing_cpp_compiler_is_named_as_that() -> None:
    try:
        try:
            raise RuntimeError("No working C++ compiler found in torch._inductor.config.cpp.cxx")
        except RuntimeError as error:
            raise RuntimeError("backend='inductor' raised") from error
    except RuntimeError as error:
        assert "needs" in why_not_compiled(error).en and "cannot compile here" not in why_not_compiled(error).en


def test_without_pytorch_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert measure_on_cpu(64 * KIB, progress=False) is None


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"tensor_bytes": 4096 + 4}, "tensor_bytes"),
        ({"tensor_bytes": 0}, "tensor_bytes"),
        ({"progress": 1}, "progress"),
        ({"compiled": "yes"}, "compiled"),
        ({"budget_seconds": 0}, "budget_seconds"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_measured(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        measure_on_cpu(**arguments)  # type: ignore[arg-type]
