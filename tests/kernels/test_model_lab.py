"""The measurement of a learner's model: right counts, an honest prediction, words where something is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up_run import steady

from lessons_lib import use_language
from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB
from lessons_lib.graph.capture.capture import fake
from lessons_lib.graph.study import recorded_study, study_model
from lessons_lib.kernels.benchmark import model_lab
from lessons_lib.kernels.benchmark.model_lab import measure_model
from lessons_lib.kernels.benchmark.model_measurement import ModelMeasurement
from lessons_lib.kernels.benchmark.model_report import model_report, model_verdict

COPY = 0.010  # seconds to copy 32 MiB into old memory


def made_up(eager: float, compiled: float | None, fresh: float = COPY) -> ModelMeasurement:
    """A measurement of no machine: the gated residual, 256 MiB eager and 128 MiB compiled, in copies of 32 MiB."""
    return ModelMeasurement(
        name="gated_residual",
        eager_bytes=256 * MIB,
        eager_written=96 * MIB,
        compiled_bytes=128 * MIB,
        compiled_written=32 * MIB,
        predicted_launches=3,
        counted_launches=3,
        tensor_bytes=32 * MIB,
        copy=steady(COPY),
        fresh_copy=steady(fresh),
        eager=steady(eager),
        compiled=None if compiled is None else steady(compiled),
        speedup=None if compiled is None else steady(eager / compiled),
        threads=2,
        outputs_agree=True,
        problem=Text(zh="没有编译器", en="no compiler") if compiled is None else None,
    )


# -- the prediction -------------------------------------------------------------------------------------------


def test_where_bytes_are_all_the_ratio_of_times_is_that_of_bytes() -> None:
    measured = made_up(eager=4 * COPY, compiled=2 * COPY)
    assert measured.eager_pass == pytest.approx(4 * COPY)
    assert measured.predicted_compiled.low == measured.predicted_compiled.high == pytest.approx(2 * COPY)
    assert measured.predicted_speedup.low == pytest.approx(2)
    assert measured.reason.name == "bytes"


def test_new_memory_makes_fusion_gain_more_than_its_bytes() -> None:
    # Handing out 32 MiB takes one copy: three new tensors eager, one compiled.
    measured = made_up(eager=7 * COPY, compiled=3 * COPY, fresh=2 * COPY)
    assert measured.eager_pass == pytest.approx(7 * COPY)
    assert measured.predicted_compiled.high == pytest.approx(3 * COPY)
    assert measured.predicted_speedup.low == pytest.approx(7 / 3)


def test_arithmetic_stays_when_bytes_go() -> None:
    measured = made_up(eager=10 * COPY, compiled=7 * COPY)
    assert measured.beyond_bytes == pytest.approx(6 * COPY)
    assert measured.predicted_compiled.low == pytest.approx(6 * COPY)
    assert measured.predicted_compiled.high == pytest.approx(8 * COPY)
    assert measured.reason.name == "rest"


@pytest.mark.parametrize(
    ("compiled", "name"), [(COPY, "faster"), (4 * COPY, "slower"), (None, "no-compiler")], ids=str
)
def test_a_time_outside_the_prediction_is_named(compiled: float | None, name: str) -> None:
    assert made_up(4 * COPY, compiled).reason.name == name


def test_noise_is_not_explained_away() -> None:
    shaky = replace(steady(4 * COPY), low=COPY, high=9 * COPY)
    assert replace(made_up(4 * COPY, 2 * COPY), eager=shaky).reason.name == "noise"


# -- the report and the verdict --------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_report_has_prediction_and_measurement_side_by_side(language: str) -> None:
    use_language(language)
    plain = repr(model_report(made_up(7 * COPY, 3 * COPY, fresh=2 * COPY)))
    assert "256 MiB" in plain and "128 MiB" in plain and "70 ms" in plain and "30 ms" in plain and "2.33×" in plain


def test_the_guess_stands_in_a_row_beneath() -> None:
    assert "your guess" not in repr(model_report(made_up(7 * COPY, 3 * COPY)))
    row = next(line for line in repr(model_report(made_up(7 * COPY, 3 * COPY), 2.5)).splitlines() if "your" in line)
    assert row.split() == ["your", "guess", "2.5×"]
    with pytest.raises(ValueError, match="guess"):
        model_report(made_up(7 * COPY, 3 * COPY), float("nan"))


def test_nothing_measured_is_said_and_is_no_fault() -> None:
    assert measure_model(recorded_study("gated_residual")) is None
    assert "PyTorch" in repr(model_report(None))
    assert model_verdict(None).status == "right"


def test_wrong_outputs_are_a_fault_and_another_number_of_operators_or_chance_is_open() -> None:
    fine = made_up(4 * COPY, 2 * COPY)
    assert model_verdict(fine).status == "right"
    assert model_verdict(replace(fine, outputs_agree=False)).status == "wrong"
    other = model_verdict(replace(fine, counted_launches=4))
    assert other.status == "open" and "4 operators ran" in other.words
    assert model_verdict(replace(fine, outputs_agree=None)).status == "open"


@pytest.mark.parametrize("wrong", [3, "x", [1]])
def test_something_else_is_refused(wrong: object) -> None:
    for function in (measure_model, model_report, model_verdict):
        with pytest.raises(ValueError, match=r"需要 .*\n.*must come from"):
            function(wrong)  # type: ignore[operator]


# -- on this machine -------------------------------------------------------------------------------------------


def _gated(gate, up, residual):  # type: ignore[no-untyped-def]
    import torch.nn.functional as functional

    return functional.silu(gate) * up + residual


def test_a_model_is_run_counted_and_compared_with_float64() -> None:
    torch = pytest.importorskip("torch")
    study = study_model(_gated, (64, 128), (64, 128), (64, 128), dtype="float32")
    measured = measure_model(study, progress=False, budget_seconds=0.01)
    assert isinstance(measured, ModelMeasurement)
    assert measured.counted_launches == measured.predicted_launches == 3
    assert (measured.eager_bytes, measured.compiled_bytes) == (8 * 32768, 4 * 32768)
    assert measured.outputs_agree
    assert (measured.compiled is None) == (measured.problem is not None)
    assert measured.threads == torch.get_num_threads()


def test_a_view_is_no_operator_and_a_write_is_one() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(4, 6)
    assert model_lab.count_operators(torch, lambda: x.t().reshape(3, 8)) == 1  # the copy that reshape makes
    assert model_lab.count_operators(torch, lambda: x.view(24)[2:]) == 0
    assert model_lab.count_operators(torch, lambda: x.add_(1).relu()) == 2


def test_wrong_outputs_are_found() -> None:
    torch = pytest.importorskip("torch")
    inputs = [torch.ones(8)]
    assert model_lab._agree(torch, torch.exp, torch.exp, inputs) is True
    assert model_lab._agree(torch, lambda x: x + torch.rand(8), None, inputs) is None
    assert not model_lab._agree(torch, torch.exp, lambda x: torch.exp(x) * 1.001, inputs)
    assert not model_lab._agree(torch, torch.exp, lambda x: torch.exp(x) * float("nan"), inputs)


def test_what_does_not_fit_this_machine_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    study = study_model(_gated, (64, 128), (64, 128), (64, 128), dtype="float32")
    monkeypatch.setattr(model_lab, "free_memory_bytes", lambda: 3 * MIB // 8)
    assert isinstance(measure_model(study, progress=False), Text)
    monkeypatch.setattr(model_lab, "free_memory_bytes", lambda: None)
    monkeypatch.setattr(model_lab, "_MOST_OPERATIONS", 10)
    too_long = measure_model(study, progress=False)
    assert isinstance(too_long, Text) and "GFLOP" in too_long.en
    assert "GFLOP" in repr(model_report(too_long))


def test_inputs_in_containers_get_data() -> None:
    pytest.importorskip("torch")
    study = study_model(lambda batch: batch["a"] + batch["b"][0], {"a": fake((8, 8)), "b": [fake((8, 8))]})
    measured = measure_model(study, progress=False, budget_seconds=0.05)
    assert isinstance(measured, ModelMeasurement) and measured.outputs_agree


def test_tensors_without_elements_agree() -> None:
    torch = pytest.importorskip("torch")
    assert model_lab._agree(torch, torch.exp, torch.exp, [torch.ones(0, 4)])


def test_what_has_no_data_or_fails_on_data_is_said_and_not_measured() -> None:
    torch = pytest.importorskip("torch")

    def only_fake(x):  # type: ignore[no-untyped-def]
        if not hasattr(x, "fake_mode"):
            raise RuntimeError("no {data}")
        return x + 1

    for study, words in (
        (study_model(torch.nn.Linear(16, 4, device="meta"), (8, 16), dtype="float32"), "meta"),
        (study_model(lambda x: x + 1, torch.empty(4, device="meta")), "meta"),
        (study_model(only_fake, (4, 4)), "no (data)"),
    ):
        said = measure_model(study, progress=False)
        assert isinstance(said, Text) and words in said.en and words in said.zh
        assert said.en in repr(model_report(said))
