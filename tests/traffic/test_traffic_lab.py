"""The CPU lab of lesson 01: right results and honest arithmetic; no test here depends on a clock."""

from __future__ import annotations

import gc
import inspect
import string
import sys
import tracemalloc
from dataclasses import replace

import pytest

np = pytest.importorskip("numpy")

from lessons_lib.base.environment import MEASURE_VARIABLE  # noqa: E402
from lessons_lib.base.spread import Spread  # noqa: E402
from lessons_lib.base.text import Text  # noqa: E402
from lessons_lib.base.units import KIB, MIB  # noqa: E402
from lessons_lib.traffic import lab, measurement, prediction  # noqa: E402
from lessons_lib.traffic.lab import (  # noqa: E402
    affordable_bytes,
    chain_input,
    measure_chain,
    run_tiled,
    run_unfused,
    time_tiled,
)
from lessons_lib.traffic.measurement import ChainMeasurement  # noqa: E402
from lessons_lib.traffic.prediction import Calibration, explain_gap, explain_naive_gap, predict_chain  # noqa: E402
from lessons_lib.traffic.report import chain_verdict  # noqa: E402

MILLISECOND = 1e-3


@pytest.fixture(scope="module")
def measured() -> ChainMeasurement:
    return measure_chain(256 * KIB, 16 * KIB, repeats=3, progress=False)


def steady(median: float, width: float = 0.0) -> Spread:
    return Spread(median, median * (1 - width / 2), median * (1 + width / 2), median, 9)


def calibration(copy: float = 10.0, operation: float = 2.0, calls: float = 1.0) -> Calibration:
    return Calibration(copy * MILLISECOND, tuple(operation * MILLISECOND for _ in range(4)), calls * MILLISECOND)


def reason(
    unfused: float,
    tiled: float,
    resident: float = 9.0,
    width: float = 0.0,
    parts: Calibration | None = None,
) -> str:
    gap = explain_gap(
        parts or calibration(),
        steady(unfused * MILLISECOND, width),
        steady(tiled * MILLISECOND),
        steady(resident * MILLISECOND),
    )
    assert isinstance(gap.text, Text)
    assert "{" not in gap.text.both
    return gap.name


# -- the chain itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("elements", [1, 7, 1000, 4096, 65_537])
@pytest.mark.parametrize("tile_elements", [1, 3, 16, 1000, 4096, 1 << 20])
def test_tiled_equals_unfused_bit_by_bit(elements: int, tile_elements: int) -> None:
    if elements // tile_elements > 20_000:
        tile_elements = 16
    x = chain_input(4 * elements)
    t1, t2, t3, y, tiled = (np.full_like(x, np.nan) for _ in range(5))
    run_unfused(x, t1, t2, t3, y)
    run_tiled(x, tiled, 4 * tile_elements)
    assert np.array_equal(y.view(np.uint32), tiled.view(np.uint32))


def test_chain_computes_what_it_says() -> None:
    x = np.array([-2.0, -0.5, 0.0, 3.0], dtype=np.float32)
    y = np.empty_like(x)
    run_tiled(x, y, 8)
    assert y.tolist() == [abs(value + 0.5) * 1.25 - 0.75 for value in (-2.0, -0.5, 0.0, 3.0)]


def test_input_has_both_signs_and_is_the_same_each_time() -> None:
    x = chain_input(4 * KIB)
    assert x.dtype == np.float32
    assert x.nbytes == 4 * KIB
    assert (x + 0.5 > 0).any()
    assert (x + 0.5 < 0).any()
    assert np.array_equal(x, chain_input(4 * KIB))


def test_different_bits_are_noticed() -> None:
    one, other = np.zeros(1 << 19, np.float32), np.zeros(1 << 19, np.float32)
    assert lab.same_bits(one, other)
    other[-1] = -0.0  # equal as a number, not as bits
    assert not lab.same_bits(one, other)


# -- the measurement -----------------------------------------------------------------------------------------


def test_measurement_is_whole(measured: ChainMeasurement) -> None:
    assert (measured.tensor_bytes, measured.tile_bytes) == (256 * KIB, 16 * KIB)
    assert measured.rounds == 3
    assert measured.unfused_bytes == 8 * 256 * KIB
    assert measured.tiled_bytes == 2 * 256 * KIB
    assert measured.naive_speedup == 4
    assert (measured.unfused_calls, measured.tiled_calls) == (4, 64)
    assert len(measured.calibration.operations) == len(lab.CHAIN) == 4
    assert measured.calibration.copy > 0
    assert measured.calibration.calls > 0
    for spread in (measured.unfused, measured.tiled, measured.speedup, measured.copy, measured.resident):
        assert 0 < spread.smallest <= spread.low <= spread.median <= spread.high
    assert measured.prediction == predict_chain(measured.calibration)
    assert isinstance(measured.unfused_agrees, bool)
    assert isinstance(measured.tiled_agrees, bool)
    assert measured.reason.text.zh
    assert measured.naive_gap.text.en


def test_verdict_is_stable(measured: ChainMeasurement) -> None:
    verdict = measured.verdict()
    assert list(verdict) == ["bit_identical", "bytes_ratio_is_number_of_operations", "less_than_naive_speedup"]
    assert verdict["bit_identical"] is True
    assert verdict["bytes_ratio_is_number_of_operations"] is True
    lines = repr(chain_verdict(replace(measured, bit_identical=False))).splitlines()
    assert lines[0] == "✗ both ways give the same bits" and lines[1].startswith("✓ ") and len(lines) == 3


def test_tile_that_does_not_divide_the_tensor_is_counted() -> None:
    result = measure_chain(40 * KIB, 16 * KIB, repeats=3, progress=False)
    assert result.bit_identical
    assert result.tiled_calls == 12


def test_tile_larger_than_the_tensor_is_cut() -> None:
    assert measure_chain(4 * KIB, MIB, repeats=3, progress=False).tile_bytes == 4 * KIB


def test_budget_still_leaves_three_rounds() -> None:
    assert measure_chain(4 * KIB, KIB, repeats=9, progress=False, budget_seconds=1e-9).rounds == 3


def test_rounds_visit_every_part_in_turn() -> None:
    visited: list[str] = []
    parts = {name: lambda name=name: visited.append(name) for name in "abc"}
    samples, waited_share = lab.interleaved(parts, repeats=4, budget_seconds=1e9, progress=False)
    assert 0 <= waited_share <= 1
    assert "".join(visited) == "abc" * 5  # one warm-up and four rounds
    assert {name: len(seconds) for name, seconds in samples.items()} == {"a": 4, "b": 4, "c": 4}


@pytest.mark.parametrize(
    ("free", "expected"),
    [(None, 64), (960 * MIB, 64), (959 * MIB, 32), (400 * MIB, 16), (100 * MIB, 8), (0, 8)],
)
def test_tensor_is_sized_down_when_memory_is_short(free: int | None, expected: int) -> None:
    assert affordable_bytes(64 * MIB, free) == expected * MIB


def test_small_tensor_stays() -> None:
    assert affordable_bytes(4 * KIB, 0) == 4 * KIB


def test_sizing_down_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "free_memory_bytes", lambda: 0)
    result = measure_chain(16 * MIB, MIB, repeats=3, progress=False, budget_seconds=1e-9)
    assert (result.requested_bytes, result.tensor_bytes) == (16 * MIB, 8 * MIB)
    assert "16 MiB" in result.notes[0].zh
    assert "8 MiB" in result.notes[0].en


def test_progress_goes_to_standard_output_only(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    measure_chain(4 * KIB, KIB, repeats=3)
    shown = capfd.readouterr()
    assert shown.err == ""
    assert "3/3" in shown.out or "0/3" in shown.out
    measure_chain(4 * KIB, KIB, repeats=3, progress=False)
    assert capfd.readouterr() == ("", "")


def test_works_without_tqdm(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert measure_chain(4 * KIB, KIB, repeats=3).bit_identical
    assert capfd.readouterr() == ("", "")


def test_arrays_are_freed() -> None:
    measure_chain(4 * KIB, KIB, repeats=3, progress=False)  # whatever loads on first use
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = measure_chain(2 * MIB, 64 * KIB, repeats=3, progress=False)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.bit_identical
    assert peak - before > 10 * MIB  # five tensors were there, without waiting for the collector...
    assert after - before < MIB // 2  # ...and are gone


def test_time_tiled_for_a_sweep() -> None:
    x = chain_input(64 * KIB)
    y = np.empty_like(x)
    spread = time_tiled(x, y, 4 * KIB, repeats=2)
    assert spread.count == 2
    assert spread.smallest > 0


# -- prediction and reasons ----------------------------------------------------------------------------------


def test_prediction_by_hand() -> None:
    prediction = predict_chain(Calibration(copy=10.0, operations=(2.0, 12.0, 2.0, 2.0), calls=1.0))
    assert (prediction.unfused.low, prediction.unfused.high) == (42.0, 58.0)  # 10 + 12 + 10 + 10; 40 + 18
    assert (prediction.tiled.low, prediction.tiled.high) == (19.0, 29.0)  # 18 + 1 > 10; 10 + 18 + 1
    assert prediction.speedup.low == 42 / 29
    assert prediction.speedup.high == 58 / 19
    assert prediction.same_overlap_speedup.low == 58 / 29
    assert prediction.same_overlap_speedup.high == 42 / 19


def test_free_arithmetic_predicts_the_naive_speedup() -> None:
    prediction = predict_chain(Calibration(copy=10.0, operations=(0.0,) * 4, calls=0.0))
    assert (prediction.speedup.low, prediction.speedup.high) == (4.0, 4.0)


def test_prediction_brackets_any_pair_of_times_within() -> None:
    prediction = predict_chain(calibration())
    for unfused in (prediction.unfused.low, prediction.unfused.high):
        for tiled in (prediction.tiled.low, prediction.tiled.high):
            assert unfused / tiled in prediction.speedup


# Calibrated with copy 10, operations 4 x 2, calls 1: unfused [40, 48], tiled [10, 19].
@pytest.mark.parametrize(
    ("unfused", "tiled", "expected"),
    [
        (40.5, 18.5, "overlap-within-a-pass"),
        (40.5, 14.5, "overlap-within-a-pass"),  # half of the overlap on one side, nearly all on the other
        (40.5, 11.0, "overlap"),
        (47.5, 18.5, "no-overlap"),
        (47.5, 11.0, "overlap-within-a-tile"),
        (39.0, 18.5, "overlap-within-a-pass"),  # within 5 % of an end still counts as predicted
        (30.0, 18.5, "cache-kept-intermediates"),
        (60.0, 18.5, "more-tensors-than-the-copy"),
        (60.0, 30.0, "slower-than-the-parts"),
        (40.5, 30.0, "slower-than-the-parts"),
        (40.5, 8.0, "faster-than-the-parts"),
    ],
)
def test_reason_follows_the_measurement(unfused: float, tiled: float, expected: str) -> None:
    assert reason(unfused, tiled) == expected


def test_reason_needs_its_evidence() -> None:
    assert reason(40.5, 30.0, resident=20.0) == "tile-out-of-cache"
    assert reason(40.5, 18.5, resident=20.0) == "overlap-within-a-pass"  # the tile is slow, the result is not
    assert reason(40.5, 18.5, width=0.8) == "noise"
    assert reason(40.5, 68.0, parts=calibration(calls=50)) == "calls"


def test_spread_of_the_rounds_widens_what_counts_as_predicted() -> None:
    assert reason(36.0, 18.5) == "cache-kept-intermediates"
    assert reason(36.0, 18.5, width=0.3) == "overlap-within-a-pass"


def test_naive_gap_names_the_larger_term() -> None:
    arithmetic = explain_naive_gap(calibration(), 4.0, 2.2)
    assert arithmetic.name == "arithmetic"
    assert "8 ms" in arithmetic.text.zh
    assert "2.2×" in arithmetic.text.en
    assert explain_naive_gap(calibration(calls=50), 4.0, 0.5).name == "calls"


def test_notes_follow_the_measurement(measured: ChainMeasurement) -> None:
    fields = {name: getattr(measured, name) for name in inspect.signature(ChainMeasurement).parameters}
    quiet = {
        **fields,
        "unfused": steady(4.0),
        "tiled": steady(2.0),
        "waited_share": 0.05,
        "library_copy": steady(1.0),
    }
    assert ChainMeasurement(**{**quiet, "copy": steady(1.0)}).notes == ()
    assert "write-allocate" in ChainMeasurement(**{**quiet, "copy": steady(1.5)}).notes[0].both
    noisy = ChainMeasurement(**{**quiet, "copy": steady(1.0), "tiled": steady(2.0, 0.9)})
    assert len(noisy.notes) == 1
    busy = ChainMeasurement(**{**quiet, "copy": steady(1.0), "waited_share": 0.5})
    assert ["50%" in note.zh for note in busy.notes] == [True]


def test_both_languages_fill_the_same_fields() -> None:
    for text in (
        *prediction._REASONS.values(),
        *prediction._NAIVE_REASONS.values(),
        measurement._SIZED_DOWN,
        measurement._STREAMING_NOTE,
        measurement._BUSY_NOTE,
    ):
        zh, en = ({field for _, field, _, _ in string.Formatter().parse(t) if field} for t in (text.zh, text.en))
        assert zh == en, text


def test_spread_of_samples() -> None:
    spread = Spread.of([5.0, 1.0, 2.0, 4.0, 3.0, 6.0])
    assert (spread.median, spread.low, spread.high, spread.smallest, spread.count) == (3.5, 2.0, 5.0, 1.0, 6)
    assert spread.relative_width == 3 / 3.5
    assert Spread.of([2.0]) == Spread(2.0, 2.0, 2.0, 2.0, 1)


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("tensor_bytes", 0),
        ("tensor_bytes", 6),
        ("tensor_bytes", 4096.0),
        ("tensor_bytes", True),
        ("tile_bytes", 3),
        ("tile_bytes", 10),
        ("tile_bytes", "256 KiB"),
        ("repeats", 2),
        ("progress", 1),
        ("budget_seconds", 0),
        ("budget_seconds", float("nan")),
    ],
)
def test_bad_argument_is_named_in_both_languages(argument: str, value: object) -> None:
    with pytest.raises(ValueError, match=argument) as refused:
        measure_chain(**{"tensor_bytes": 4 * KIB, argument: value})  # type: ignore[arg-type]
    zh, en = str(refused.value).split("\n")
    assert argument in zh
    assert argument in en


def test_tensors_that_do_not_match_are_refused() -> None:
    x = chain_input(4 * KIB)
    with pytest.raises(ValueError, match="float32"):
        run_tiled(x.astype(np.float64), x, KIB)
    with pytest.raises(ValueError, match="float32"):
        run_tiled(x, x.reshape(2, -1), KIB)
    with pytest.raises(ValueError, match="as long as x"):
        run_tiled(x, x[:-1], KIB)


@pytest.mark.parametrize(("platform", "command"), [("emscripten", "%pip install"), ("linux", "-m pip install")])
def test_missing_numpy_says_what_to_do(monkeypatch: pytest.MonkeyPatch, platform: str, command: str) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(ImportError) as missing:
        measure_chain(4 * KIB)
    zh, en = str(missing.value).split("\n")
    assert command in zh
    assert command in en


def test_a_capped_measurement_makes_its_fewest_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEASURE_VARIABLE, "1e-9")
    calls: list[str] = []
    lab.interleaved({"a": lambda: calls.append("a")}, 15, 60.0, False)
    assert len(calls) == 1 + 3, "one to warm up"
