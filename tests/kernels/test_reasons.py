"""Each named reason for a gap appears where the figures bear it out, and nowhere else."""

from __future__ import annotations

import re

import pytest
from made_up_run import AMPERE, ENVIRONMENT, changed, entry_of, made_up_run, plan_of, steady

from lessons_lib.base.text import Text
from lessons_lib.kernels.benchmark.prediction import ExperimentName, PlanName
from lessons_lib.kernels.benchmark.reasons import explain_plan, short_words
from lessons_lib.kernels.benchmark.runs import Run


def reason(run: Run, experiment: ExperimentName, plan: PlanName) -> str:
    gap = explain_plan(run, entry_of(run, experiment), plan_of(run, experiment, plan))
    assert not re.search(r"[{}?]", gap.text.both), gap.text
    assert short_words(gap).zh and short_words(gap).en
    return gap.name


@pytest.mark.parametrize(
    ("experiment", "plan", "factor", "name"),
    [
        ("chain", "fused", 1.5, "below-bandwidth"),
        ("rmsnorm", "fused", 1.5, "below-bandwidth"),
        ("chain", "fused", 0.8, "better-than-copy"),
        ("chain", "fused", 0.98, "overlap"),
        ("chain", "fused", 1.02, "partial-overlap"),
        ("linear_k1024", "operators", 1.3, "slow-passes"),
        ("linear_k1024", "fused", 1.3, "below-gemm-rate"),
        ("linear_k1024", "library", 1.3, "below-gemm-rate"),
        ("linear_k1024", "fused", 0.7, "better-gemm"),
        ("linear_k4096", "fused", 0.97, "gemm-bound"),
        ("tiny", "operators", 1.5, "launch-overhead"),
        ("tiny", "fused", 2.5, "wrapper"),
        ("tiny", "fused", 1.0, "launch-bound"),
    ],
)
def test_where_a_time_lies_names_its_reason(
    experiment: ExperimentName, plan: PlanName, factor: float, name: str
) -> None:
    assert reason(made_up_run({(experiment, plan): factor}, AMPERE), experiment, plan) == name


def test_intermediates_that_fit_the_l2_are_named_where_plans_hand_them_over() -> None:
    from dataclasses import replace

    large = replace(AMPERE, l2_bytes=2**28)
    run = made_up_run({("chain", "operators"): 0.7, ("chain", "fused"): 0.7}, large)
    assert reason(run, "chain", "operators") == "cache-resident"
    assert reason(run, "chain", "fused") == "better-than-copy"  # it hands nothing over


def test_the_datasheets_l2_stands_in_where_the_driver_reports_none() -> None:
    from dataclasses import replace

    unknown = replace(AMPERE, known_as="B200", l2_bytes=None)
    assert reason(made_up_run({("chain", "operators"): 0.7}, unknown), "chain", "operators") == "cache-resident"


def test_a_gemm_without_tensor_cores_is_named_wherever_it_lies() -> None:
    for factor in (0.8, 1.0, 2.0):
        run = made_up_run({("linear_k1024", "fused"): factor}, ENVIRONMENT)
        assert reason(run, "linear_k1024", "fused") == "no-tensor-cores"
    assert reason(made_up_run({}, ENVIRONMENT), "linear_k1024", "library") != "no-tensor-cores"


def test_a_count_of_launches_explains_more_than_a_rate() -> None:
    slow = changed(made_up_run({("rmsnorm", "compiled"): 2.0}), "rmsnorm", "compiled", launches=2)
    assert reason(slow, "rmsnorm", "compiled") == "more-launches"
    fast = changed(
        made_up_run({("linear_k1024", "library_bias"): 0.5}, AMPERE), "linear_k1024", "library_bias", launches=1
    )
    assert reason(fast, "linear_k1024", "library_bias") == "fewer-launches"
    unseen = changed(made_up_run({("rmsnorm", "compiled"): 2.0}), "rmsnorm", "compiled", launches=None)
    gap = explain_plan(unseen, entry_of(unseen, "rmsnorm"), plan_of(unseen, "rmsnorm", "compiled"))
    assert gap.name == "below-bandwidth"


def test_noise_comes_before_any_other_reason() -> None:
    run = changed(made_up_run(), "chain", "fused", seconds=steady(1.0, width=0.5))
    assert reason(run, "chain", "fused") == "noise"


def test_a_wrong_output_has_no_reason_but_itself() -> None:
    run = changed(made_up_run(), "chain", "fused", status="wrong", error=None)
    assert reason(run, "chain", "fused") == "wrong-output"


def test_what_was_not_timed_says_why() -> None:
    why = Text(zh="没装", en="not there")
    run = changed(made_up_run(), "rmsnorm", "liger", note=why)
    gap = explain_plan(run, entry_of(run, "rmsnorm"), plan_of(run, "rmsnorm", "liger"))
    assert (gap.name, gap.text) == ("not-timed", why)


def test_without_a_calibration_a_measurement_stands_alone() -> None:
    run = changed(made_up_run(), "chain", "copy", status="failed", seconds=None)
    run = changed(run, "chain", "copy_kernel", status="failed", seconds=None)
    assert reason(run, "chain", "fused") == "no-prediction"


def test_every_plan_of_a_run_has_a_reason_in_full_sentences() -> None:
    for environment in (ENVIRONMENT, AMPERE):
        run = made_up_run({}, environment, quick=False, without=())
        for entry in run.experiments:
            for plan in entry.plans:
                if plan.name in entry.experiment.plans:
                    reason(run, entry.experiment.name, plan.name)
