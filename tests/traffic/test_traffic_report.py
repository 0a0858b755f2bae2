"""The lab's report: prediction beside measurement, the guess beside both, the reason in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lessons_lib.base.progress import progress_of
from lessons_lib.base.spread import Spread
from lessons_lib.base.units import MIB
from lessons_lib.traffic.exercises import lab_vote
from lessons_lib.traffic.measurement import ChainMeasurement
from lessons_lib.traffic.prediction import Calibration
from lessons_lib.traffic.report import lab_report


def spread(seconds: float) -> Spread:
    return Spread(seconds, seconds, seconds, seconds, 9)


MEASURED = ChainMeasurement(
    requested_bytes=64 * MIB,
    tensor_bytes=64 * MIB,
    tile_bytes=MIB // 4,
    copy=spread(0.010),
    library_copy=spread(0.010),
    calibration=Calibration(copy=0.010, operations=(0.002,) * 4, calls=0.001),
    resident=spread(0.009),
    unfused=spread(0.041),
    tiled=spread(0.016),
    speedup=spread(0.041 / 0.016),
    bit_identical=True,
    waited_share=0.0,
)


def test_prediction_stands_beside_measurement() -> None:
    plain = repr(lab_report(MEASURED))
    rows = plain.splitlines()
    assert rows[2].split() == ["four", "passes", "512", "MiB", "40", "ms", "–", "48", "ms", "41", "ms"]
    assert rows[3].split() == ["one", "tiled", "pass", "128", "MiB", "10", "ms", "–", "19", "ms", "16", "ms"]
    assert "2.56×" in rows[4]
    assert str(MEASURED.reason.text) in plain
    assert "your guess" not in plain


@pytest.mark.parametrize(("guess", "shown"), [(0.9, "< 1×"), (1.5, "1.5×"), (4, "4×")])
def test_the_guess_stands_beside_both(guess: float, shown: str) -> None:
    row = next(line for line in repr(lab_report(MEASURED, guess)).splitlines() if "your guess" in line)
    assert row.split("your guess")[1].strip() == shown


def test_the_picture_marks_both_measurements() -> None:
    assert re.findall(r">measured (\d+ ms)<", lab_report(MEASURED)._repr_html_()) == ["41 ms", "16 ms"]


@pytest.mark.parametrize("guess", [0, -1.0, "2", True, float("nan")])
def test_a_bad_guess_is_refused(guess: object) -> None:
    with pytest.raises(ValueError, match="guess"):
        lab_report(MEASURED, guess)  # type: ignore[arg-type]


def test_the_measured_speed_up_is_noted_beside_the_vote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "own.json"))
    lab_report(MEASURED)
    assert progress_of("votes") == {}
    vote = lab_vote()
    vote.choose(6)
    assert "your guess" in repr(lab_report(MEASURED, vote.value))
    assert progress_of("votes")["lab_vote"]["measured"] == pytest.approx(2.5625)


def test_in_a_workshop_the_report_waits_for_the_vote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "own.json"))
    monkeypatch.setenv("LESSONS_WORKSHOP", "1")
    vote = lab_vote()
    vote.choose(6)
    waiting = lab_report(MEASURED, vote.value)
    assert "2.56" not in waiting.plain + waiting.html
    assert "<svg" not in waiting.html
    vote.commit()
    row = next(line for line in repr(lab_report(MEASURED, vote.value)).splitlines() if "your guess" in line)
    assert row.split()[-1] == "4×"
