"""Predicted kernels, bytes and intervals: the course's worked cases, and what holds for every plan."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.gpus import GPUS
from lessons_lib.base.units import MIB
from lessons_lib.kernels.benchmark.prediction import (
    EXPERIMENT_WORDS,
    EXPERIMENTS,
    LAUNCH_SECONDS,
    PLAN_WORDS,
    PLANS,
    Experiment,
    PlanName,
    Rates,
    datasheet_rates,
    experiments,
    launches_are_certain,
    plan_bytes,
    plan_kernels,
    predict_plan,
)
from lessons_lib.kernels.launch import LARGEST_RESIDENT_ROW
from lessons_lib.reuse.rows import rmsnorm_traffic, softmax_traffic
from lessons_lib.traffic.epilogue import epilogue_plans
from lessons_lib.traffic.model import chain_traffic

CHAIN = Experiment("chain", "chain", "fp16", 8192, 4096)
LINEAR = Experiment("linear_k1024", "linear", "fp16", 4096, 4096, 1024)
TINY = Experiment("tiny", "chain", "fp16", 8, 4096, clock="host")
RATES = Rates(bandwidth=1e12, fp32_flops=1e13, gemm_flops=1e14, tensor_cores=True, launch_seconds=5e-6)


# -- bytes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "kernels", "mib"),
    [("operators", 4, 576), ("groups_4", 4, 576), ("groups_2", 2, 320), ("fused", 1, 192), ("compiled", 1, 192)],
)
def test_the_chain_moves_what_checkpoint_17_says(plan: PlanName, kernels: int, mib: int) -> None:
    assert CHAIN.tensor_bytes == 64 * MIB
    assert len(plan_kernels(CHAIN, plan)) == kernels
    assert plan_bytes(CHAIN, plan) == mib * MIB


@given(rows=st.integers(1, 10_000), columns=st.integers(1, 10_000), groups=st.sampled_from([4, 2, 1]))
def test_the_chain_agrees_with_lesson_01_at_every_size(rows: int, columns: int, groups: int) -> None:
    experiment = Experiment("chain", "chain", "fp16", rows, columns)
    plan: PlanName = {4: "groups_4", 2: "groups_2", 1: "fused"}[groups]  # type: ignore[assignment]
    counted = chain_traffic(4, 2 * rows * columns, groups, side_inputs=1)
    assert plan_bytes(experiment, plan) == counted["total_bytes"]
    assert len(plan_kernels(experiment, plan)) == counted["launches"]


@pytest.mark.parametrize(
    ("plan", "kernels", "moved"),
    [("operators", 3, 184_557_568), ("library_bias", 2, 117_448_704), ("fused", 1, 50_339_840)],
)
def test_the_gemm_moves_what_checkpoint_4_says(plan: PlanName, kernels: int, moved: int) -> None:
    assert len(plan_kernels(LINEAR, plan)) == kernels
    assert plan_bytes(LINEAR, plan) == moved


@given(rows=st.integers(1, 5000), columns=st.integers(1, 2 * LARGEST_RESIDENT_ROW))
def test_rows_agree_with_lesson_02_at_every_size(rows: int, columns: int) -> None:
    norm = Experiment("rmsnorm", "rmsnorm", "fp16", rows, columns)
    counted = rmsnorm_traffic(rows, columns, 2, residual=True, sum_output=True)
    assert plan_bytes(norm, "operators") == counted["naive_bytes"]
    resident = columns <= LARGEST_RESIDENT_ROW
    assert plan_bytes(norm, "fused") == counted["resident_bytes" if resident else "two_pass_bytes"]
    softmax = Experiment("softmax", "softmax", "fp32", rows, columns)
    counted = softmax_traffic(rows, columns, 4)
    assert plan_bytes(softmax, "operators") == counted["naive_bytes"]
    assert plan_bytes(softmax, "fused") == counted["resident_bytes" if resident else "two_pass_bytes"]


@pytest.mark.parametrize("experiment", experiments(), ids=lambda e: e.name)
def test_fusing_never_adds_bytes_or_launches(experiment: Experiment) -> None:
    for plan in experiment.plans:
        assert plan_bytes(experiment, "fused") <= plan_bytes(experiment, plan) <= plan_bytes(experiment, "operators")
        assert len(plan_kernels(experiment, "fused")) <= len(plan_kernels(experiment, plan))


def test_a_gemm_counts_its_multiply_adds_whatever_the_plan() -> None:
    for plan in LINEAR.plans:
        assert sum(kernel.operations for kernel in plan_kernels(LINEAR, plan)) == 2 * 4096 * 4096 * 1024


# -- intervals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", ["operators", "library_bias", "fused"])
def test_an_a100_takes_what_lesson_01_predicts(plan: PlanName) -> None:
    gpu = GPUS["A100 (40 GB)"]
    expected = epilogue_plans(4096, 1024, 4096, gpu)[len(plan_kernels(LINEAR, plan))].time
    predicted = predict_plan(LINEAR, plan, datasheet_rates(gpu))
    assert predicted is not None
    assert predicted.low == pytest.approx(expected.low)
    assert predicted.high == pytest.approx(expected.high)


def test_on_a_t4_the_one_kernel_gemm_runs_at_the_plain_rate_and_loses() -> None:
    rates = datasheet_rates(GPUS["T4"])
    fused, unfused = predict_plan(LINEAR, "fused", rates), predict_plan(LINEAR, "operators", rates)
    assert fused is not None and unfused is not None
    assert fused.low == pytest.approx(2 * 4096 * 4096 * 1024 / 8.1e12)
    assert fused.low > unfused.high


def test_a_chain_bound_by_memory_gains_what_its_bytes_say() -> None:
    rates = Rates(bandwidth=1e9, fp32_flops=1e18, gemm_flops=None, tensor_cores=True)
    four, one = predict_plan(CHAIN, "groups_4", rates), predict_plan(CHAIN, "fused", rates)
    assert four is not None and one is not None
    assert four.low / one.low == pytest.approx(3)


def test_launches_cost_nothing_by_the_devices_clock_and_rule_a_tiny_tensor_by_the_hosts() -> None:
    dear = Rates(1e12, 1e13, 1e14, True, launch_seconds=1e-3, wrapper_seconds=2e-3)
    assert predict_plan(CHAIN, "fused", dear) == predict_plan(CHAIN, "fused", RATES)
    four, one = predict_plan(TINY, "groups_4", dear), predict_plan(TINY, "fused", dear)
    assert four is not None and one is not None
    assert (four.low, one.low) == (4e-3, 1e-3)
    assert 8e-3 < four.high < 8.1e-3


def test_a_plan_of_pytorchs_own_does_not_pay_for_our_wrapper() -> None:
    rates = Rates(1e12, 1e13, 1e14, True, launch_seconds=1e-3, wrapper_seconds=2e-3)
    predicted = predict_plan(TINY, "operators", rates)
    assert predicted is not None and predicted.high < 4.1e-3


def test_without_a_gemm_rate_no_gemm_is_predicted_but_its_elementwise_kernels_are() -> None:
    unknown = Rates(1e12, None, None, True)
    assert predict_plan(LINEAR, "fused", unknown) is None
    assert predict_plan(LINEAR, "operators", unknown) is None
    chain = predict_plan(CHAIN, "fused", unknown)
    assert chain is not None
    assert chain.low == chain.high == 192 * MIB / 1e12


def test_without_tensor_cores_an_unknown_plain_rate_leaves_the_fused_gemm_unpredicted() -> None:
    rates = Rates(1e12, None, 1e14, tensor_cores=False)
    assert predict_plan(LINEAR, "fused", rates) is None
    assert predict_plan(LINEAR, "library", rates) is not None


@pytest.mark.parametrize("gpu", GPUS.values(), ids=lambda gpu: gpu.name)
def test_every_plan_is_predicted_for_every_gpu(gpu: object) -> None:
    for experiment in experiments():
        rates = datasheet_rates(gpu, experiment.dtype)  # type: ignore[arg-type]
        for plan in (*experiment.plans, *experiment.calibrations):
            predicted = predict_plan(experiment, plan, rates)
            assert predicted is not None and 0 <= predicted.low <= predicted.high


# -- experiments ---------------------------------------------------------------------------------------------


def test_a_quick_run_has_smaller_tensors_and_fewer_gemms() -> None:
    quick, full = experiments(quick=True), experiments()
    assert quick[0].tensor_bytes == 64 * MIB and full[0].tensor_bytes == 256 * MIB
    assert {e.name for e in full} - {e.name for e in quick} == {"linear_k256"}
    assert {e.name for e in full} == set(EXPERIMENTS)


def test_tensors_can_be_made_any_size() -> None:
    by_name = {e.name: e for e in experiments(tensor_bytes=2**30)}
    assert by_name["chain"].tensor_bytes == by_name["softmax"].tensor_bytes == 2**30
    assert by_name["tiny"].tensor_bytes == 64 * 1024


def test_halving_halves_the_rows_and_ends_at_one() -> None:
    assert CHAIN.halved().rows == 4096
    assert Experiment("chain", "chain", "fp16", 1, 8).halved().rows == 1


def test_only_what_is_ours_or_one_kernel_an_operator_is_certain_to_launch_so_often() -> None:
    assert launches_are_certain(CHAIN, "operators") and launches_are_certain(CHAIN, "fused")
    assert not launches_are_certain(CHAIN, "compiled")
    assert not launches_are_certain(LINEAR, "operators")


def test_every_name_has_words_in_both_languages() -> None:
    for experiment in experiments():
        assert EXPERIMENT_WORDS[experiment.name].zh
        for plan in (*experiment.plans, *experiment.calibrations):
            assert PLAN_WORDS[plan].zh and PLAN_WORDS[plan].en
    assert set(PLANS) == {"chain", "rmsnorm", "softmax", "linear"}


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rows", 0),
        ("rows", True),
        ("columns", 2**41),
        ("dtype", "int8"),
        ("inner", 8),
        ("clock", "mine"),
        ("name", "x"),
    ],
)
def test_a_bad_experiment_is_refused_by_name(field: str, value: object) -> None:
    fields: dict[str, object] = {"name": "chain", "kernel": "chain", "dtype": "fp16", "rows": 8, "columns": 8}
    with pytest.raises(ValueError, match=field):
        Experiment(**(fields | {field: value}))  # type: ignore[arg-type]


def test_a_gemm_needs_its_inner_dimension() -> None:
    with pytest.raises(ValueError, match="inner"):
        Experiment("linear_k256", "linear", "fp16", 8, 8)


@pytest.mark.parametrize("call", [lambda: experiments(quick=1), lambda: experiments(tensor_bytes=8)])  # type: ignore[arg-type]
def test_bad_sizes_of_a_run_are_refused(call: object) -> None:
    with pytest.raises(ValueError, match=r"quick|tensor_bytes"):
        call()  # type: ignore[operator]


def test_a_plan_of_another_experiment_is_refused() -> None:
    with pytest.raises(ValueError, match="plan"):
        plan_kernels(CHAIN, "liger")


@pytest.mark.parametrize(
    ("field", "value"),
    [("bandwidth", 0), ("fp32_flops", -1.0), ("gemm_flops", float("nan")), ("wrapper_seconds", 0.0)],
)
def test_rates_that_no_device_has_are_refused(field: str, value: float) -> None:
    fields: dict[str, object] = {"bandwidth": 1.0, "fp32_flops": 1.0, "gemm_flops": 1.0, "tensor_cores": True}
    with pytest.raises(ValueError, match=field):
        Rates(**(fields | {field: value}))  # type: ignore[arg-type]


def test_a_launch_is_assumed_to_cost_what_the_losing_cases_assume() -> None:
    assert datasheet_rates(GPUS["T4"]).launch_seconds == LAUNCH_SECONDS
    assert datasheet_rates(GPUS["T4"], launch_seconds=1e-5).wrapper_seconds == 1e-5
