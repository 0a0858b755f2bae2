"""The losing cases: what they predict, against the course's own formulas."""

from __future__ import annotations

from pathlib import Path

import pytest

from lessons_lib import GPUS, chain_traffic, use_language
from lessons_lib.kernels.benchmark.prediction import LAUNCH_SECONDS, TINY_BYTES, plan_bytes
from lessons_lib.kernels.exercises import losing_vote
from lessons_lib.kernels.losing import CHAIN_PLANS, TINY, gemm_plans, tiny_chain
from lessons_lib.kernels.losing_report import losing_report


def test_without_tensor_cores_one_kernel_loses_to_the_library_and_a_fused_epilogue() -> None:
    plans = gemm_plans(GPUS["T4"])
    assert not plans.on_tensor_cores
    assert plans.fused.low > 4 * plans.library_then_epilogue.high
    assert plans.library_then_epilogue.high < plans.separate.high


@pytest.mark.parametrize("name", [name for name, gpu in GPUS.items() if gpu.target != "sm_75"])
def test_with_tensor_cores_one_kernel_wins(name: str) -> None:
    plans = gemm_plans(GPUS[name])
    assert plans.on_tensor_cores
    assert plans.fused.high < plans.library_then_epilogue.high


def test_the_fused_plan_of_the_a100_is_checkpoint_five() -> None:
    plans = gemm_plans(GPUS["A100 (40 GB)"])
    assert plans.fused.low == pytest.approx(0.1101e-3, rel=1e-3)
    assert plans.separate.low / plans.fused.low == pytest.approx(1.784, rel=1e-3)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_bytes_of_the_kernels_are_those_of_the_chain(groups: int) -> None:
    whole = chain_traffic(4, TINY_BYTES, groups, side_inputs=1)["total_bytes"]
    assert plan_bytes(TINY, CHAIN_PLANS[groups]) == whole


def test_a_tiny_tensor_costs_its_launches_and_a_large_one_its_bytes() -> None:
    gpu = GPUS["A100 (40 GB)"]
    tiny = tiny_chain(gpu, TINY_BYTES)
    assert tiny == {groups: pytest.approx(groups * LAUNCH_SECONDS) for groups in (4, 2, 1)}
    large = tiny_chain(gpu, 2**26)
    assert large[4] / large[1] == pytest.approx(3.0)


def test_the_report_names_both_cases_in_the_language_and_the_reason() -> None:
    use_language("en")
    assert "does not and is left with plain fp32" in losing_report("T4").plain
    assert "does so, too" in losing_report("A100 (40 GB)").plain
    use_language("zh")
    assert "普通乘加" in losing_report("T4").plain


@pytest.mark.parametrize("choice, word", [(1, "faster: a write and a read are saved"), (3, "slower")])
def test_what_was_voted_stands_beneath_the_first_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: int, word: str
) -> None:
    use_language("en")
    monkeypatch.setenv("LESSONS_PROGRESS", "off")
    losing_vote().choose(choice)
    assert "our guess" not in losing_report("T4").plain  # a stored notebook has none
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "own.json"))
    assert "our guess" not in losing_report("T4").plain
    losing_vote().choose(choice)
    said = f"Your guess (one Triton kernel on a T4, against the library's GEMM and an epilogue kernel): {word}."
    assert losing_report("T4").plain.split("\n\n")[0].endswith(said)
    assert word in losing_report("T4").html


def test_an_unknown_gpu_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="gpu"):
        losing_report("H900")
