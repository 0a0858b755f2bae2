"""A run as a file: there and back, hostile files refused, and whatever is recorded with the course in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from made_up_run import (
    COPY_BANDWIDTH,
    ENVIRONMENT,
    GEMM_FLOPS,
    LAUNCH,
    WRAPPER,
    changed,
    entry_of,
    made_up_run,
    steady,
)

from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.kernels.benchmark.prediction import Experiment, experiments
from lessons_lib.kernels.benchmark.runs import (
    RECORDED,
    SCHEMA,
    ExperimentRun,
    PlanRun,
    Run,
    read_run,
    recorded_runs,
    run_text,
    write_run,
)
from lessons_lib.kernels.benchmark.verdict import run_problems

RUN = made_up_run()


def edited(tmp_path: Path, edit: Callable[[dict[str, Any]], object]) -> Path:
    """The made-up run's file with ``edit`` applied to its content."""
    data = json.loads(run_text(RUN))
    edit(data)
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


# -- there and back ------------------------------------------------------------------------------------------


def test_a_run_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    run = changed(RUN, "rmsnorm", "compiled", status="failed", seconds=None, note=Text(zh="坏了", en="broken"))
    write_run(run, tmp_path / "t4.json")
    assert read_run(tmp_path / "t4.json") == replace(run, recorded_as="t4.json")


def test_where_it_was_read_from_is_not_in_the_file(tmp_path: Path) -> None:
    write_run(replace(RUN, recorded_as="secret.json"), tmp_path / "a.json")
    assert "secret" not in (tmp_path / "a.json").read_text(encoding="utf-8")


@given(
    seconds=st.lists(st.floats(1e-9, 10.0), min_size=1, max_size=20),
    error=st.floats(0, 1),
    launches=st.none() | st.integers(0, 100),
)
def test_any_measurement_comes_back_to_the_last_digit(
    tmp_path_factory: pytest.TempPathFactory, seconds: list[float], error: float, launches: int | None
) -> None:
    path = tmp_path_factory.mktemp("runs") / "run.json"
    plan = PlanRun("fused", "ok", Spread.of(seconds), launches=launches, error=error)
    run = Run(SCHEMA, True, ENVIRONMENT, (ExperimentRun(experiments()[0], 10**6, (plan,)),))
    write_run(run, path)
    assert read_run(path).experiments == run.experiments


# -- what follows from a run ---------------------------------------------------------------------------------


def test_the_faster_copy_is_the_bandwidth() -> None:
    assert RUN.copy_bandwidth == pytest.approx(COPY_BANDWIDTH)
    slow = changed(RUN, "chain", "copy", seconds=steady(1.0))
    assert slow.copy_bandwidth == pytest.approx(COPY_BANDWIDTH / 1.1)


def test_a_wrong_copy_is_no_calibration() -> None:
    wrong = changed(RUN, "chain", "copy", status="wrong", error=None)
    assert wrong.copy_bandwidth == pytest.approx(COPY_BANDWIDTH / 1.1)
    none = changed(wrong, "chain", "copy_kernel", status="wrong", error=None)
    assert none.copy_bandwidth is None
    assert none.rates(entry_of(none, "chain")) is None
    assert none.predicted(entry_of(none, "chain"), "fused") is None


def test_rates_are_the_runs_own() -> None:
    rates = RUN.rates(entry_of(RUN, "linear_k1024"))
    assert rates is not None and rates.measured
    assert rates.gemm_flops == pytest.approx(GEMM_FLOPS)
    assert (rates.launch_seconds, rates.wrapper_seconds) == (LAUNCH, WRAPPER)
    assert rates.fp32_flops == 8.1e12 and not rates.tensor_cores
    chain = RUN.rates(entry_of(RUN, "chain"))
    assert chain is not None and chain.gemm_flops is None


@pytest.mark.parametrize(
    ("vendor", "capability", "reached"),
    [("NVIDIA", "7.5", False), ("NVIDIA", "8.0", True), ("NVIDIA", "10.0", True), ("AMD", "gfx942", True)],
)
def test_tensor_cores_are_told_by_capability(vendor: str, capability: str, reached: bool) -> None:
    assert replace(ENVIRONMENT, vendor=vendor, capability=capability).tensor_cores == reached  # type: ignore[arg-type]


def test_the_share_of_copy_is_bytes_over_seconds_over_the_copys() -> None:
    share = RUN.share_of_copy(entry_of(RUN, "chain"), "fused")
    seconds = entry_of(RUN, "chain").median("fused")
    assert seconds is not None
    assert share == pytest.approx(192 * 2**20 / seconds / COPY_BANDWIDTH)
    assert RUN.share_of_copy(entry_of(RUN, "rmsnorm"), "liger") is None


# -- files that are none -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    ["", "[]", "null", "{", '"run"', '{"schema": 1}', "[" * 100_000, "\x00", '{"schema": NaN}', "{}" * 2],
)
def test_what_is_no_run_is_refused_in_both_languages(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError) as refused:
        read_run(path)
    zh, en = str(refused.value).splitlines()
    assert "bad.json" in zh and "bad.json" in en


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ValueError, match=r"bad\.json"):
        read_run(path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    path.write_text(" " * 2**21, encoding="utf-8")
    with pytest.raises(ValueError, match="1 MiB"):
        read_run(path)


def test_a_file_of_a_later_version_says_so_whatever_else_it_holds(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"reads version 1, the file is version 2"):
        read_run(edited(tmp_path, lambda data: (data.clear(), data.update(schema=2, more="keys"))))


def test_a_missing_file_is_the_systems_business(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        read_run(tmp_path / "none.json")


def chain_of(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data["experiments"][0]
    return found


def timed(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = chain_of(data)["plans"][-1]
    return found


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "unknown key": (lambda d: d.update(extra=1), r"edited\.json"),
    "missing key": (lambda d: d.pop("quick"), r"edited\.json"),
    "boolean as number": (lambda d: d.update(schema=True), "schema"),
    "number as boolean": (lambda d: d.update(quick=1), "quick"),
    "text as list": (lambda d: d.update(experiments="abc"), "experiments"),
    "too many experiments": (lambda d: d.update(experiments=d["experiments"] * 20), "experiments"),
    "twice the same experiment": (lambda d: d["experiments"].append(d["experiments"][0]), "twice"),
    "an experiment of no name": (lambda d: chain_of(d)["experiment"].update(name="x"), r"experiments\[0\].*name"),
    "a negative size": (lambda d: chain_of(d)["experiment"].update(rows=-1), r"experiments\[0\]\.experiment.*rows"),
    "a size beyond any memory": (lambda d: chain_of(d)["experiment"].update(rows=10**30), "rows"),
    "more rows than asked for": (lambda d: chain_of(d).update(requested_rows=1), "requested_rows"),
    "a plan of another kernel": (lambda d: timed(d).update(name="liger"), "plans"),
    "twice the same plan": (lambda d: chain_of(d)["plans"].append(timed(d)), "twice"),
    "a time of zero": (lambda d: timed(d)["seconds"].update(smallest=0), "smallest"),
    "a negative time": (lambda d: timed(d)["seconds"].update(low=-1.0), "seconds"),
    "percentiles out of order": (lambda d: timed(d)["seconds"].update(median=1e3), "seconds"),
    "a time of days": (lambda d: timed(d)["seconds"].update(high=1e6), "hour"),
    "an infinite time": (lambda d: timed(d)["seconds"].update(high=10**400), "seconds"),
    "no samples": (lambda d: timed(d)["seconds"].update(count=0), "count"),
    "right but beyond its tolerance": (lambda d: timed(d).update(error=7.0), "error"),
    "right but never checked": (lambda d: timed(d).update(error=None), "error"),
    "timed but failed": (lambda d: timed(d).update(status="failed"), "seconds"),
    "timed without times": (lambda d: timed(d).update(seconds=None), "seconds"),
    "absurd launches": (lambda d: timed(d).update(launches=-3), "launches"),
    "a note in one language": (lambda d: timed(d).update(note={"zh": "坏", "en": " "}), "note"),
    "control characters": (lambda d: d["environment"].update(gpu="T4\x1b[31m"), r"environment\.gpu"),
    "an endless name": (lambda d: d["environment"].update(gpu="x" * 401), r"environment\.gpu"),
    "no name": (lambda d: d["environment"].update(torch=" "), "torch"),
    "a GPU that the course lacks": (lambda d: d["environment"].update(known_as="P100"), "known_as"),
    "no date": (lambda d: d["environment"].update(date="yesterday"), "date"),
    "a date of another form": (lambda d: d["environment"].update(date="20250101"), "date"),
}


@pytest.mark.parametrize("edit", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_with_its_place(
    tmp_path: Path, edit: tuple[Callable[[dict[str, Any]], object], str]
) -> None:
    with pytest.raises(ValueError, match=edit[1]) as refused:
        read_run(edited(tmp_path, edit[0]))
    assert len(str(refused.value).splitlines()) == 2
    assert len(str(refused.value)) < 2000


def test_the_unedited_file_is_accepted(tmp_path: Path) -> None:
    assert read_run(edited(tmp_path, lambda data: None)).experiments == RUN.experiments


# -- what is recorded with the course ------------------------------------------------------------------------


def test_recorded_runs_are_right_and_say_where_they_come_from() -> None:
    for run in recorded_runs():
        assert run.recorded_as is not None
        assert run_problems(run) == ()
        assert run.copy_bandwidth is not None
        assert "made up" not in run_text(run)


def test_only_records_and_the_readme_lie_beside_each_other() -> None:
    assert {path.suffix for path in RECORDED.iterdir()} <= {".json", ".md"}


def test_the_newest_run_comes_first_and_a_full_one_before_a_quick_one(tmp_path: Path) -> None:
    def dated(date: str, quick: bool) -> Run:
        return replace(RUN, environment=replace(ENVIRONMENT, date=date), quick=quick)

    for name, run in {
        "a": dated("2001-01-01", False),
        "b": dated("2002-01-01", True),
        "c": dated("2002-01-01", False),
    }.items():
        write_run(run, tmp_path / f"{name}.json")
    assert [run.recorded_as for run in recorded_runs(tmp_path)] == ["c.json", "b.json", "a.json"]


def test_no_folder_is_no_run(tmp_path: Path) -> None:
    assert recorded_runs(tmp_path / "none") == ()


def test_a_record_of_a_halved_experiment_keeps_both_sizes(tmp_path: Path) -> None:
    small = Experiment("chain", "chain", "fp16", 512, 4096)
    run = Run(SCHEMA, False, ENVIRONMENT, (ExperimentRun(small, 2048, ()),))
    write_run(run, tmp_path / "h.json")
    entry = read_run(tmp_path / "h.json").experiments[0]
    assert (entry.experiment.rows, entry.requested_rows) == (512, 2048)
