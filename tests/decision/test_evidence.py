"""The six cases: the numbers of the checkpoints, the verdicts, and evidence that can turn them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from lessons_lib import use_language  # noqa: E402
from lessons_lib.base.text import Text  # noqa: E402
from lessons_lib.base.units import KIB, MIB  # noqa: E402
from lessons_lib.decision import evidence  # noqa: E402
from lessons_lib.decision.court import CASES, QUESTIONS, TOLERANCES, Findings, Ruling  # noqa: E402
from lessons_lib.decision.evidence import (  # noqa: E402
    examine,
    five_pass_softmax,
    online_softmax,
    relative_error,
    same_bits,
    try_case,
)
from lessons_lib.decision.model import Evidence, decide  # noqa: E402
from lessons_lib.show.table import Table  # noqa: E402

VERDICTS = {
    "rounding": Ruling("yes", "yes", "no"),
    "reorder": Ruling("yes", "depends", "yes"),
    "tile": Ruling("depends", "depends", "yes"),
    "softmax": Ruling("yes", "yes", "no"),
    "gemm": Ruling("yes", "no", "no"),
    "fan_out": Ruling("yes", "yes", "yes"),
}


@pytest.fixture(scope="module")
def found() -> dict[str, Findings]:
    return {name: examine(name) for name in CASES}


def cells(findings: Findings) -> dict[str, list[str]]:
    """The exhibit in English: first cell of each row -> the others."""
    return {str(row[0]): [str(cell) for cell in row[1:]] for row in findings.exhibit.rows}


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_follows_from_the_evidence(name: str, found: dict[str, Findings]) -> None:
    assert found[name].ruling == VERDICTS[name]
    assert found[name].case == name


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_exhibit_fits_a_table_in_both_languages(name: str, language: str, found: dict[str, Findings]) -> None:
    use_language(language)
    for exhibit in (found[name].exhibit, found[name].conditions):
        rows = [[str(cell) for cell in row] for row in exhibit.rows]
        assert all(len(row) == len(exhibit.header) for row in rows)
        shown = Table([str(title) for title in exhibit.header], rows, note=str(exhibit.note)).plain()
        assert "{" not in shown
        assert "nan" not in shown.lower().split()
    for question in QUESTIONS:
        assert "{" not in found[name].why[question].both


def test_nothing_says_that_the_backend_has_spoken(found: dict[str, Findings]) -> None:
    for findings in found.values():
        for plan in findings.plans:
            assert "backend_lowered" in plan.decision.unchecked
            assert plan.decision.outcome != "met"


def test_the_compilers_evidence_from_elsewhere_completes_a_case(found: dict[str, Findings]) -> None:
    compiler = Evidence("backend_lowered", "pass", Text(zh="一个核函数", en="one kernel"), "a compiler")
    for name in ("softmax", "gemm"):
        assert decide([*found[name].plans[0].evidence, compiler]).outcome == "met"


# -- (a) to (f), number by number -------------------------------------------------------------------------------


def test_rounding_at_a_boundary_is_checkpoint_16(found: dict[str, Findings]) -> None:
    numbers = found["rounding"].numbers
    assert (numbers["separate_value"], numbers["fused_value"]) == (0, 1)
    assert (numbers["separate_error"], numbers["fused_error"]) == (1, 0)
    assert (numbers["count"], numbers["different"]) == (3072, 1024)
    assert 0 < numbers["separate_relative"] < TOLERANCES["float16"]
    assert (numbers["before"], numbers["after"]) == (256 * MIB, 128 * MIB)
    assert cells(found["rounding"])["(2048 + 1) − 2048"] == ["0", "1"]


def test_the_reorder_is_checkpoint_14(found: dict[str, Findings]) -> None:
    each, once = found["reorder"].plans
    assert (each.profitable, once.profitable) == ("no", "depends")
    assert (each.reorder_bytes, once.reorder_bytes) == (16 * MIB, 64 * MIB)
    assert cells(found["reorder"])["breaks even at call"] == ["never", "8"]
    assert cells(found["reorder"])["gains from call"] == ["never", "9"]
    assert cells(found["reorder"])["net saving at call 1"] == ["−8 MiB", "−56 MiB"]
    assert each.decision.reorder_bytes == 16 * MIB


def test_packing_moves_values_and_the_order_of_the_sum_stays() -> None:
    x, w = evidence._fractions((24, 64), 256, 1), evidence._fractions((64, 48), 256, 2)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    for product in (
        evidence._product(x, w),
        evidence._product_of_packed_x(evidence._pack(x), w),
        evidence._product_of_packed_w(x, evidence._pack(w)),
    ):
        assert relative_error(product, exact, np.abs(exact).max()) < 1e-6
    packed = evidence._pack(w)
    assert packed.shape == (3, 64, 16)
    assert packed.flags.c_contiguous
    assert np.array_equal(packed[1], w[:, 16:32])
    backwards = np.ascontiguousarray(evidence._product(x[:, ::-1], w[::-1]))
    assert not same_bits(backwards, evidence._product(x, w)), "these values can tell one order from another"


def test_the_tile_is_checkpoint_9(found: dict[str, Findings]) -> None:
    numbers = found["tile"].numbers
    assert (numbers["whole_avoided"], numbers["cut_avoided"]) == (0, 256 * KIB)
    assert (numbers["pieces"], numbers["piece"]) == (2, 64 * KIB)
    whole, cut = found["tile"].plans
    assert whole.decision.failures == ("onchip_fit",)
    assert cut.decision.statuses["onchip_fit"] == "pass"
    assert (whole.answers, cut.answers) == (Ruling("no", "no", "yes"), Ruling("yes", "yes", "yes"))


def test_softmax_bytes_are_counted_and_values_are_near(found: dict[str, Findings]) -> None:
    numbers = found["softmax"].numbers
    matrix, vector = 1024 * 131_072 * 4, 1024 * 4
    assert numbers["before"] == 8 * matrix + 4 * vector
    assert (numbers["after"], numbers["resident"]) == (3 * matrix, 2 * matrix)
    assert numbers["row"] == 512 * KIB
    assert 0 < numbers["fused_relative"] <= TOLERANCES["float32"] / 10, "far from the edge, on any machine's exp"
    assert 0 < numbers["odd_relative"] <= TOLERANCES["float32"] / 10
    assert cells(found["softmax"])["fits on chip (64 KiB)"] == ["", "no", "yes"]


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 64])
@pytest.mark.parametrize("tile", [1, 3, 8, 100])
def test_online_softmax_is_softmax(columns: int, tile: int) -> None:
    x = np.random.RandomState(0).standard_normal((5, columns)) * 50
    assert relative_error(online_softmax(x, tile), five_pass_softmax(x)) < 1e-12
    rising = np.arange(columns, dtype=np.float64)[None, :] * 30  # the maximum moves in every tile
    for moving in (rising, np.ascontiguousarray(rising[:, ::-1]) - 1e4):  # the second never moves it, far below 0
        assert np.allclose(online_softmax(moving, tile), five_pass_softmax(moving), rtol=1e-12)
    assert np.allclose(online_softmax(x + 1e4, tile).sum(axis=1), 1)


def test_online_softmax_names_a_bad_tile() -> None:
    with pytest.raises(ValueError, match="tile_columns must be at least 1"):
        online_softmax(np.ones((1, 4)), 0)


def test_the_gemm_is_checkpoint_6(found: dict[str, Findings]) -> None:
    numbers = found["gemm"].numbers
    assert numbers["high"] == pytest.approx(1.049, abs=5e-4)
    assert 1.04 < numbers["low"] < numbers["high"]
    assert (numbers["small_low"], numbers["small_high"]) == pytest.approx((1.606, 1.784), abs=5e-4)
    tensors = 2 * (4096 * 16_384 * 2) + 2 * 4096
    result = 4096 * 4096 * 2
    assert numbers["before"] == tensors + 5 * result
    assert numbers["after"] == tensors + result
    tolerance = TOLERANCES["float16"]
    assert numbers["fused_relative"] < numbers["separate_relative"] < tolerance
    assert numbers["fused_relative"] < tolerance / 3


def test_the_sums_of_the_gemm_are_exact_whatever_the_order() -> None:
    x = evidence._multiples((64, 16_384), 8, 1 / 8, 5)
    w = evidence._multiples((16_384, 64), 8, 1 / 128, 6)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    assert np.array_equal(x @ w, exact)
    assert np.array_equal((x[:, ::-1] @ w[::-1]), exact)
    assert np.array_equal(x, x.astype(np.float16))
    assert np.array_equal(w, w.astype(np.float16))
    assert not np.array_equal(exact, exact.astype(np.float16)), "or no boundary could round"


def test_three_kernels_round_three_times() -> None:
    half, single = np.float16, np.float32
    x, w = evidence._multiples((64, 16_384), 8, 1 / 8, 5), evidence._multiples((16_384, 64), 8, 1 / 128, 6)
    b = evidence._multiples((64,), 1024, 1 / 1024, 7)
    biased = ((x @ w).astype(half).astype(single) + b).astype(half)
    separate, fused, _, _ = evidence._epilogues()
    assert same_bits(separate, evidence._gelu(biased.astype(single)).astype(half))
    assert same_bits(fused, evidence._gelu(x @ w + b).astype(half))


def test_the_fan_out_is_checkpoint_7(found: dict[str, Findings]) -> None:
    numbers = found["fan_out"].numbers
    assert {name: numbers[name] // MIB for name in ("separate", "kept", "recomputed", "all_fused")} == {
        "separate": 384,
        "kept": 320,
        "recomputed": 256,
        "all_fused": 192,
    }
    assert cells(found["fan_out"])["f and g fused, t written"] == ["320 MiB", "1.2×", "yes"]
    assert [row[-1] for row in cells(found["fan_out"]).values()] == ["yes"] * 4


def test_a_fan_out_that_rounds_at_its_boundary_would_not_be_bit_equal() -> None:
    x = evidence._fractions((4096,), 256, 8)
    u, v = evidence._run_fan_out(x, evidence._PLANS["kept"], 4096)
    t = (x * np.float32(1.25) + np.float32(300)).astype(np.float16).astype(np.float32)
    assert not same_bits(u, t * t)
    assert not same_bits(v, t + np.float32(0.1))


# -- measures ---------------------------------------------------------------------------------------------------


def test_same_bits_sees_type_shape_and_the_sign_of_zero() -> None:
    one = np.ones(4, dtype=np.float32)
    assert same_bits(one, one.copy())
    assert not same_bits(one, one.astype(np.float64))
    assert not same_bits(one, one.reshape(2, 2))
    assert not same_bits(np.zeros(1), -np.zeros(1))
    assert not same_bits(one, np.nextafter(one, np.float32(2)))


def test_relative_error_takes_the_scale_it_is_given() -> None:
    exact = np.array([1.0, -100.0])
    assert relative_error(np.array([1.5, -100.0]), exact) == 0.5
    assert relative_error(np.array([1.5, -100.0]), exact, np.array(100.0)) == 0.005
    assert evidence._tolerance_evidence(float("nan"), "float32").status == "fail"


# -- evidence that turns a verdict ------------------------------------------------------------------------------


def test_a_wrong_softmax_would_be_illegal(monkeypatch: pytest.MonkeyPatch) -> None:
    right = online_softmax
    monkeypatch.setattr(evidence, "online_softmax", lambda x, tile: right(x, tile) * np.float32(1.0001))
    assert examine("softmax").ruling.legal == "no"


def test_a_softmax_that_fails_on_an_odd_width_is_no_supported_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets_the_rest(x: Any, tile: int) -> Any:
        whole = x.shape[1] // tile * tile
        return np.pad(online_softmax(x[:, :whole], tile), ((0, 0), (0, x.shape[1] - whole)))

    monkeypatch.setattr(evidence, "online_softmax", forgets_the_rest)
    assert examine("softmax").plans[0].decision.failures == ("shape_supported",)


def test_a_tile_that_fits_is_legal_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "_BUDGET", 128 * KIB)
    assert examine("tile").ruling == Ruling("yes", "yes", "yes")


def test_a_small_k_is_profitable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "_K", 1024)
    assert examine("gemm").ruling == Ruling("yes", "yes", "no")


def test_a_conversion_that_adds_in_another_order_is_not_bit_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    product = evidence._product
    monkeypatch.setattr(
        evidence,
        "_product_of_packed_w",
        lambda x, packed: np.concatenate([product(x[:, ::-1], panel[::-1]) for panel in packed], axis=1),
    )
    assert examine("reorder").plans[1].bit_equal is False


# -- a hearing --------------------------------------------------------------------------------------------------


def test_no_evidence_before_the_ruling(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_early() -> Findings:
        raise AssertionError("computed before the learner ruled")

    monkeypatch.setattr(evidence, "_EXAMINERS", dict.fromkeys(CASES, too_early))
    for name in CASES:
        hearing = try_case(name, legal="yes", profitable="no")
        assert (hearing.standing, hearing.findings, hearing.differences) == ("open", None, ())
        assert "evidence is shown after that" in str(hearing.words[0])
    with pytest.raises(ValueError, match="bit_equal must be one of"):
        try_case("gemm", "yes", "no", "equal")
    with pytest.raises(ValueError, match="case must be one of"):
        try_case("gem")


@pytest.mark.parametrize("name", CASES)
def test_the_right_ruling_agrees_and_a_wrong_one_is_explained(name: str) -> None:
    right = VERDICTS[name].by_question()
    hearing = try_case(name, **right)
    assert (hearing.standing, hearing.differences) == ("agrees", ())
    wrong = {question: "no" if answer != "no" else "yes" for question, answer in right.items()}
    hearing = try_case(name, **wrong)
    assert hearing.standing == "differs"
    assert [difference.question for difference in hearing.differences] == list(QUESTIONS)
    assert hearing.findings is not None
    assert hearing.differences[0].why == hearing.findings.why["legal"]


def test_the_questions_state_the_numbers_that_are_tried() -> None:
    stated = {
        "rounding": ("64 MiB", "2048"),
        "reorder": (f"{evidence._SAVED // MIB} MiB", "32 MiB"),
        "tile": (f"{evidence._TILE // KIB} KiB", f"{evidence._BUDGET // KIB} KiB"),
        "softmax": (f"{evidence._ROWS:,}", f"{evidence._COLUMNS:,}", f"{evidence._TILE_COLUMNS * 4 // KIB} KiB"),
        "gemm": (f"M = N = {evidence._SIZE}", f"K = {evidence._K}", "A100"),
        "fan_out": ("64 MiB", "fp32"),
    }
    for name, numbers in stated.items():
        for number in numbers:
            assert number in CASES[name].question.en
            assert number in CASES[name].question.zh


def test_the_cells_are_the_same_every_time(found: dict[str, Findings]) -> None:
    for name, findings in found.items():
        again = examine(name)
        assert again.exhibit == findings.exhibit
        assert again.why == findings.why


def test_numpy_is_loaded_by_the_evidence_alone_and_only_when_needed() -> None:
    code = (
        "import sys; import lessons_lib.decision.evidence as e; assert 'numpy' not in sys.modules; "
        "e.try_case('gemm'); assert 'numpy' not in sys.modules; "
        "sys.modules['numpy'] = None\n"
        "try: e.examine('gemm')\n"
        "except ImportError as error: print(error)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "NumPy" in printed
    assert "-m pip install numpy" in printed


def test_no_warning_reaches_the_cell(capfd: pytest.CaptureFixture[str]) -> None:
    with np.errstate(all="raise", under="ignore"):
        for name in CASES:
            examine(name)
    assert capfd.readouterr().err == ""
