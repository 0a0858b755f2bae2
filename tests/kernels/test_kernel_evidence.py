"""Evidence for lesson 03's conditions: what was run and compiled, what was refused, and what nobody could look at."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from example_report import CLEAN
from hypothesis import given, strategies as st

from lessons_lib import DecisionPanel, use_language
from lessons_lib.base.gpus import A100, B200, GPUS, T4
from lessons_lib.base.text import Text
from lessons_lib.decision.model import CONDITIONS, Evidence, decide
from lessons_lib.kernels import evidence as module, trial
from lessons_lib.kernels.compiler.compiled import NOT_COMPILED, CompileReport
from lessons_lib.kernels.evidence import TOLERANCES, gather_evidence
from lessons_lib.kernels.launch import KERNELS
from lessons_lib.kernels.mode import TritonSetup
from lessons_lib.kernels.trial import largest_error
from lessons_lib.kernels.tuning import likely_configs

SHAPES: dict[str, tuple[int, ...]] = {
    "chain": (20, 100),
    "rmsnorm": (5, 100),
    "softmax": (5, 100),
    "linear": (40, 50, 48),
    "epilogue": (20, 100),
}
RUNS = TritonSetup("interpreter", Text(zh="解释器", en="the interpreter"), "cpu", "3.7.1", bf16=True)
REFUSED = ValueError("参数 x 的值不对：太宽。\nx is not valid: too wide.")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[CompileReport], None]:
    """Have the compiler answer with a report of the test's own."""
    return lambda report: monkeypatch.setattr(module, "compile_report", lambda *_, **__: report)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., float]], None]:
    """Have runs end with an error, or a failure, of the test's own; kernels count as runnable."""
    monkeypatch.setattr(module, "prepare_triton", lambda: RUNS)
    return lambda error: monkeypatch.setattr(module, "largest_error", error)


def statuses(found: tuple[Evidence, ...]) -> list[str]:
    return [item.status for item in found]


def refusal(argument: str) -> str:
    return rf"(?s)^参数 {re.escape(argument)} .*\n{re.escape(argument)} "


# -- with the real interpreter and the real compiler ---------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_meets_its_conditions_on_a_t4(triton_setup: TritonSetup, kernel: Any) -> None:
    found = gather_evidence(kernel, T4, SHAPES[kernel])
    assert tuple(item.condition for item in found) == CONDITIONS
    assert statuses(found) == ["pass"] * 4, [item.observation for item in found]
    assert decide(found).outcome == "met"
    said = found[3].observation.en
    assert said.startswith("compiled for sm_75")
    assert ("ordinary units" in said) == (kernel == "linear"), "no tensor cores there, and that is no condition"


def test_the_decision_panel_shows_it(triton_setup: TritonSetup) -> None:
    panel = DecisionPanel(gather_evidence("softmax", "A100 (40 GB)", (5, 100)))
    assert panel.result.outcome == "met"
    shown = panel.static_forms()["text/plain"]
    assert "[5, 100]: largest error against float64" in shown
    assert "registers per thread, spill none" in shown


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
def test_an_error_is_within_the_dtype_s_tolerance_and_not_far_below(triton_setup: TritonSetup, dtype: Any) -> None:
    error = largest_error("chain", (8, 200), dtype, triton_setup.device or "cpu")
    assert TOLERANCES[dtype] / 1000 < error < TOLERANCES[dtype]


def test_bfloat16_is_not_judged_by_an_interpreter_that_gets_it_wrong(
    triton_setup: TritonSetup, compiled: Callable[[CompileReport], None]
) -> None:
    if triton_setup.mode != "interpreter":
        pytest.skip("kernels run on a GPU here")
    compiled(replace(CLEAN, kernel="linear", gpu=B200, dtype="bf16", instruction_family="tcgen05"))
    found = gather_evidence("linear", B200, SHAPES["linear"], "bf16")
    assert statuses(found) == ["not_checked", "not_checked", "pass", "pass"]
    assert "tensor cores (tcgen05)" in found[3].observation.en


def test_bfloat16_fails_on_a_gpu_without_it(triton_setup: TritonSetup) -> None:
    found = gather_evidence("chain", T4, SHAPES["chain"], "bf16")
    assert statuses(found)[2:] == ["not_checked", "fail"]
    assert "no bfloat16" in found[3].observation.en


# -- what runs tell ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module_name", "wrapper", "kernel"),
    [("chain", "fused_chain", "chain"), ("epilogue", "fused_epilogue", "epilogue")],
)
def test_a_kernel_that_is_off_by_a_percent_is_found_out(
    triton_setup: TritonSetup,
    compiled: Callable[[CompileReport], None],
    monkeypatch: pytest.MonkeyPatch,
    module_name: str,
    wrapper: str,
    kernel: Any,
) -> None:
    import importlib

    compiled(CLEAN)
    home = importlib.import_module(f"lessons_lib.kernels.{module_name}")
    right = getattr(home, wrapper)
    monkeypatch.setattr(home, wrapper, lambda *operands: right(*operands) * 1.01)
    found = gather_evidence(kernel, A100, SHAPES[kernel])
    assert statuses(found)[:2] == ["fail", "fail"]
    assert re.search(r"error against float64 0\.00\d, allowed 0\.002", found[0].observation.en)


def test_a_row_left_unwritten_is_an_infinite_error(
    triton_setup: TritonSetup, compiled: Callable[[CompileReport], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lessons_lib.kernels import epilogue

    compiled(CLEAN)
    right = epilogue.fused_epilogue

    def leaves_a_row(*operands: Any) -> Any:
        y = right(*operands)
        y[-1] = math.nan
        return y

    monkeypatch.setattr(epilogue, "fused_epilogue", leaves_a_row)
    found = gather_evidence("epilogue", A100, (4, 8))
    assert statuses(found)[:2] == ["fail", "fail"]
    assert "∞" in found[0].observation.en


def test_an_edge_that_is_wrong_is_named(runs: Any, compiled: Any) -> None:
    compiled(CLEAN)
    runs(lambda kernel, shape, *_: 0.5 if shape == (3, 101) else 1e-4)
    found = gather_evidence("chain", A100, (20, 100))
    assert statuses(found)[:2] == ["pass", "fail"]
    assert found[1].observation.en == "[3, 101] is accepted, but its error 0.5 is above the 0.002 allowed"


def test_a_refused_shape_fails_in_the_wrapper_s_words(runs: Any, compiled: Any) -> None:
    def refuses(kernel: str, shape: tuple[int, ...], *_: object, **__: object) -> float:
        raise REFUSED

    compiled(CLEAN)
    runs(refuses)
    found = gather_evidence("chain", A100, (20, 100))
    assert statuses(found)[:2] == ["not_checked", "fail"], "no result was seen, so nothing is known of its meaning"
    assert found[1].observation == Text(
        zh="[20, 100] 被拒绝：参数 x 的值不对：太宽。", en="[20, 100] is refused: x is not valid: too wide."
    )


def test_a_crash_leaves_both_open_and_says_what_happened(runs: Any, compiled: Any) -> None:
    def crashes(*_: object, **__: object) -> float:
        raise RuntimeError("out of memory\nand a long trace")

    compiled(CLEAN)
    runs(crashes)
    found = gather_evidence("chain", A100, (20, 100))
    assert statuses(found)[:2] == ["not_checked", "not_checked"]
    assert found[0].observation.en == "[20, 100] did not run: RuntimeError: out of memory"


def test_a_large_shape_is_stood_for_by_some_of_its_rows(runs: Any, compiled: Any) -> None:
    seen: list[tuple[int, ...]] = []

    def remembers(kernel: str, shape: tuple[int, ...], *_: object, **__: object) -> float:
        seen.append(shape)
        return 1e-4

    compiled(CLEAN)
    runs(remembers)
    found = gather_evidence("chain", A100, (2**20, 4096))
    assert seen[0] == (16, 4096)
    assert found[0].observation.en.startswith("[16, 4096], standing for [1048576, 4096]: ")


def test_a_reduction_too_long_to_run_is_left_open_and_its_edges_are_not(runs: Any, compiled: Any) -> None:
    compiled(CLEAN)
    runs(lambda *_, **__: 1e-4)
    for kernel, shape in (("softmax", (2, 2**24)), ("linear", (64, 64, 2**15))):
        found = gather_evidence(kernel, A100, shape)  # type: ignore[arg-type]
        assert statuses(found)[:2] == ["not_checked", "not_checked"]
        assert "too large to run here" in found[0].observation.en
        assert "its edges" in found[1].observation.en


sizes = st.integers(1, 2**22)


@given(st.sampled_from(KERNELS), st.tuples(sizes, sizes, sizes), st.booleans())
def test_a_sample_is_part_of_the_shape_and_keeps_its_reduction(
    kernel: Any, shape: tuple[int, ...], on_gpu: bool
) -> None:
    shape = shape if kernel == "linear" else shape[:2]
    sample = module._sample(kernel, shape, on_gpu)
    if sample is None:
        assert kernel in ("rmsnorm", "softmax", "linear")
        return
    assert all(1 <= part <= size for part, size in zip(sample, shape, strict=True))
    if kernel in ("rmsnorm", "softmax", "linear"):
        assert sample[-1] == shape[-1]
    for edge in module._edges(kernel, sample):
        assert len(edge) == len(shape)
        assert min(edge) >= 1


# -- what is missing -----------------------------------------------------------------------------------------------


def test_without_triton_nothing_is_checked_and_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = Text(zh="没有 Triton", en="there is no Triton")
    monkeypatch.setattr(module, "prepare_triton", lambda: TritonSetup("none", reason))
    monkeypatch.setattr("lessons_lib.kernels.compiler.report.triton_version", lambda: None)
    found = gather_evidence("chain", A100, (20, 100))
    assert statuses(found) == ["not_checked"] * 4
    assert [item.observation for item in found] == [reason, reason, NOT_COMPILED, NOT_COMPILED]
    assert decide(found).outcome == "open"


def test_a_triton_that_cannot_launch_says_why_and_what_to_do(monkeypatch: pytest.MonkeyPatch, compiled: Any) -> None:
    compiled(CLEAN)
    problem = Text(zh="请重启内核。", en="Restart the kernel.")
    monkeypatch.setattr(module, "prepare_triton", lambda: replace(RUNS, problem=problem))
    found = gather_evidence("chain", A100, (20, 100))
    assert statuses(found) == ["not_checked", "not_checked", "pass", "pass"]
    assert found[0].observation == Text(zh="解释器请重启内核。", en="the interpreter Restart the kernel.")


# -- what the compiler tells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "fit", "lowered"),
    [
        ({}, "pass", "pass"),
        ({"spill_bytes": 24}, "fail", "pass"),
        ({"status": "over_shared", "shared_bytes": 2**20}, "fail", "pass"),
        ({"status": "failed", "detail": Text(zh="错", en="an error")}, "not_checked", "fail"),
        ({"status": "unsupported", "detail": Text(zh="不行", en="it cannot")}, "not_checked", "fail"),
        ({"status": "timeout", "detail": Text(zh="太久", en="too long")}, "not_checked", "not_checked"),
        ({"status": "no_triton", "detail": NOT_COMPILED, "triton_version": None}, "not_checked", "not_checked"),
    ],
)
def test_each_outcome_of_the_compiler(runs: Any, compiled: Any, change: Any, fit: str, lowered: str) -> None:
    runs(lambda *_, **__: 1e-4)
    report = replace(CLEAN, **change)
    compiled(report)
    found = gather_evidence("chain", A100, (20, 100))
    assert statuses(found)[2:] == [fit, lowered]
    if not report.compiled:
        assert found[3].observation == report.detail
        return
    spill = "24 B per thread" if report.spill_bytes else "none"
    asked = "1 MiB" if report.status == "over_shared" else "0 B"
    assert found[2].observation.en == (
        f"32 registers per thread, spill {spill}; {asked} of shared memory per block, limit 163 KiB"
    )
    assert str(found[2].source) == "the compiler of Triton 3.7.1"


def test_the_kernel_is_compiled_as_a_launch_of_this_shape_is(runs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def remembers(*arguments: Any, **named: Any) -> CompileReport:
        asked.append((arguments, named))
        return CLEAN

    runs(lambda *_, **__: 1e-4)
    monkeypatch.setattr(module, "compile_report", remembers)
    gather_evidence("chain", A100, (20, 100), "fp32")
    gather_evidence("softmax", A100, (20, 4096))
    assert asked == [
        (("chain", A100, "fp32", (8, 128)), {"sizes_multiple_of_16": False}),
        (("softmax", A100, "fp16", (4096,)), {"sizes_multiple_of_16": True}),
    ]


def test_a_configuration_that_spills_is_passed_over_while_a_clean_one_is_left(
    runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = likely_configs(A100, "fp16", 512, 512, 512)[2]
    told: set[bool] = set()

    def spills_but_one(*asked: Any, sizes_multiple_of_16: bool) -> CompileReport:
        told.add(sizes_multiple_of_16)
        tile, spill = asked[3], 0 if asked[3] == clean.tile else 8
        return replace(CLEAN, kernel="linear", tile=tile, spill_bytes=spill, instruction_family="mma")

    runs(lambda *_, **__: 1e-4)
    monkeypatch.setattr(module, "compile_report", spills_but_one)
    found = gather_evidence("linear", A100, (512, 512, 512))
    assert statuses(found)[2:] == ["pass", "pass"]
    sides = " × ".join(map(str, clean.tile))
    assert f"tile {sides}, " in found[3].observation.en
    assert told == {True}
    clean = replace(clean, block_m=1)  # none is clean now
    assert statuses(gather_evidence("linear", A100, (500, 512, 512)))[2:] == ["fail", "pass"]
    assert told == {True, False}


def test_a_row_in_two_passes_is_left_to_others(runs: Any, compiled: Any) -> None:
    runs(lambda *_, **__: 1e-4)
    compiled(CLEAN)
    found = gather_evidence("softmax", A100, (4, 20_000))
    assert statuses(found) == ["pass", "pass", "not_checked", "not_checked"]
    assert "20,000" in found[2].observation.en


# -- use and words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("kernel", lambda: gather_evidence("gemm", T4, (4, 4))),  # type: ignore[arg-type]
        ("gpu", lambda: gather_evidence("chain", "T5", (4, 4))),
        ("gpu", lambda: gather_evidence("chain", None, (4, 4))),  # type: ignore[arg-type]
        ("shape", lambda: gather_evidence("linear", T4, (4, 4))),
        ("shape[0]", lambda: gather_evidence("chain", T4, (0, 4))),
        ("dtype", lambda: gather_evidence("chain", T4, (4, 4), "fp8")),  # type: ignore[arg-type]
    ],
)
def test_wrong_use_is_refused_in_both_languages(argument: str, call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=refusal(argument)):
        call()


def test_a_gpu_may_be_named(runs: Any, compiled: Any) -> None:
    runs(lambda *_, **__: 1e-4)
    compiled(CLEAN)
    for name, gpu in GPUS.items():
        assert gather_evidence("chain", name, (20, 100)) == gather_evidence("chain", gpu, (20, 100))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_no_field_is_left_unfilled(runs: Any, compiled: Any, language: str) -> None:
    use_language(language)
    runs(lambda *_, **__: 1e-4)
    compiled(replace(CLEAN, kernel="linear", instruction_family="mma"))
    for kernel in KERNELS:
        for item in gather_evidence(kernel, A100, SHAPES[kernel]):
            for words in (str(item.observation), str(item.source)):
                assert "{" not in words


def test_every_kernel_can_be_tried() -> None:
    assert set(trial._CALLS) == set(KERNELS)
