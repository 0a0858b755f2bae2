"""A run for the eye: what a learner reads with a run, with a recorded one, and with none."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_run import AMPERE, ENVIRONMENT, changed, made_up_run, steady

from lessons_lib import use_language
from lessons_lib.base.gpus import GPUS
from lessons_lib.base.text import Text
from lessons_lib.kernels.benchmark import plot
from lessons_lib.kernels.benchmark.aims import Aim, aims
from lessons_lib.kernels.benchmark.plot import benchmark_plot, plot_groups, plot_title, plot_words
from lessons_lib.kernels.benchmark.prediction import experiments
from lessons_lib.kernels.benchmark.report import aims_report, benchmark_report
from lessons_lib.kernels.benchmark.runs import Run
from lessons_lib.kernels.benchmark.verdict import measurement_verdict, run_problems
from lessons_lib.kernels.exercises import kernel_vote
from lessons_lib.show.chart import ShownChart


def rows_of(plain: str, start: str) -> list[str]:
    return [line for line in plain.splitlines() if line.lstrip("▸ ").startswith(start)]


# -- with a run ----------------------------------------------------------------------------------------------


def test_prediction_measurement_ratio_and_reason_stand_in_one_row() -> None:
    plain = repr(benchmark_report(made_up_run({("chain", "fused"): 1.5})))
    fused = rows_of(plain, "Triton, 1 fused kernel")[0]
    assert re.search(r"1 +192 MiB +805 µs – 859 µs +1\.25 ms +1\.55× +below bandwidth", fused)
    assert "Triton, 1 fused kernel: 1.25 ms, above 859 µs: 192 MiB moved at 65% of the copy's bandwidth." in plain


def test_a_count_of_launches_shows_only_where_it_differs() -> None:
    run = changed(made_up_run(), "rmsnorm", "operators", launches=9)
    rows = rows_of(repr(benchmark_report(run)), "PyTorch, operator by operator")
    assert re.search(r" 4 +576 MiB", rows[0]) and "7 (9)" in rows[1]


def test_the_vote_about_the_bytes_stands_at_the_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "own.json"))
    assert "Your guess" not in repr(benchmark_report(made_up_run()))
    kernel_vote().choose(1)
    line = "Your guess (bytes of four kernels over those of one): 1.67×."
    for run in (made_up_run(), None):
        assert line in repr(benchmark_report(run))
        assert line in benchmark_report(run).html
    assert line not in repr(benchmark_report(made_up_run(), only=["rmsnorm"]))


def test_a_plan_as_predicted_needs_no_sentence_but_the_fused_one_has_one() -> None:
    plain = repr(benchmark_report(made_up_run()))
    sentences = [line for line in plain.splitlines() if ": " in line and line.startswith(("Triton,", "PyTorch,"))]
    assert {line.partition(": ")[0] for line in sentences} == {"Triton, 1 fused kernel"}


def test_a_run_of_now_and_a_recorded_one_are_told_apart() -> None:
    now, recorded = made_up_run(), replace(made_up_run(), recorded_as="t4.json")
    assert "Measured on this machine, now." in repr(benchmark_report(now))
    shown = repr(benchmark_report(recorded))
    assert "A recorded run (t4.json), not from this machine." in shown
    assert "on this machine, now" not in shown
    assert "made up for a test (7.5), torch 0.0+made.up, triton 0.0, driver 0.0, 2001-02-03." in shown


def test_the_copy_stands_beside_the_datasheet() -> None:
    assert "250 GB/s (the datasheet says 320)" in repr(benchmark_report(made_up_run()))
    unknown = made_up_run(environment=ENVIRONMENT)
    unknown = replace(unknown, environment=replace(ENVIRONMENT, known_as=None))
    assert "250 GB/s (the course has no datasheet of it)" in repr(benchmark_report(unknown))


def test_tensors_made_smaller_are_named() -> None:
    run = made_up_run()
    first = replace(run.experiments[0], requested_rows=4 * run.experiments[0].experiment.rows)
    shown = repr(benchmark_report(replace(run, experiments=(first, *run.experiments[1:]))))
    assert "made 64 MiB instead of 256 MiB" in shown


def test_a_gpu_without_a_datasheet_still_has_its_memory_bound_predictions() -> None:
    run = replace(made_up_run(), environment=replace(ENVIRONMENT, known_as=None))
    fused = rows_of(repr(benchmark_report(run)), "Triton, 1 fused kernel")
    assert " 805 µs " in fused[0]
    gemm = next(row for row in fused if " 48 MiB " in row)
    assert re.search(r"48 MiB +\? ", gemm)  # it runs on units whose rate is not known


def test_words_of_a_record_cannot_become_markup() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    run = changed(made_up_run(), "rmsnorm", "liger", note=Text(zh=hostile, en=hostile))
    run = replace(run, environment=replace(ENVIRONMENT, gpu=hostile), recorded_as=hostile)
    assert "<img" not in benchmark_report(run).html


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_reason_reads_in_both_languages(language: str) -> None:
    use_language(language)
    factors = {
        (entry.name, plan): factor
        for entry in experiments()
        for plan, factor in zip(entry.plans, (0.5, 0.9, 1.0, 1.2, 1.5, 3.0), strict=False)
    }
    for environment in (ENVIRONMENT, AMPERE):
        plain = repr(benchmark_report(made_up_run(factors, environment, quick=False)))
        assert not re.search(r"[{}]", plain)
        assert bool(re.search(r"[\u4e00-\u9fff]", plain)) == (language == "zh")


@pytest.mark.parametrize("run", [None, made_up_run()], ids=["predicted", "measured"])
def test_a_cell_may_show_some_experiments_only(run: Run | None) -> None:
    shown = repr(benchmark_report(run, only=["tiny", "chain"]))
    assert "tiny tensor" in shown and "\nchain of four" in shown
    assert "RMSNorm" not in shown and "at least as fast" not in shown
    assert [group.name for group in plot_groups(run, only=["softmax"])] == ["softmax"]
    for show in (benchmark_report, plot_groups):
        with pytest.raises(ValueError, match=r"only\[1\]"):
            show(run, only=("tiny", "big"))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="only"):
            show(run, only="tiny")


# -- without one ---------------------------------------------------------------------------------------------


def test_without_a_run_the_prediction_says_what_it_is() -> None:
    shown = repr(benchmark_report(None, "H200"))
    assert "No recorded run yet" in shown and "H200" in shown
    assert "measured" not in shown
    assert re.search(r"1 +192 MiB", rows_of(shown, "Triton, 1 fused kernel")[0])


def test_a_gpu_is_given_as_itself_by_name_or_not_at_all() -> None:
    assert repr(benchmark_report(None, GPUS["A10"])) == repr(benchmark_report(None, "A10"))
    assert repr(benchmark_report(None)) == repr(benchmark_report(None, "T4"))


@pytest.mark.parametrize("show", [benchmark_report, benchmark_plot])
@pytest.mark.parametrize(("run", "gpu", "name"), [("run", None, "run"), (None, "P100", "gpu"), (None, 4, "gpu")])
def test_anything_else_is_refused_by_name(show: Callable[..., object], run: object, gpu: object, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        show(run, gpu)


# -- aims ----------------------------------------------------------------------------------------------------


def aim(run: Run | None, name: str) -> Aim:
    (found,) = (entry for entry in aims(run) if entry.name == name)
    return found


GOOD = made_up_run({}, AMPERE, quick=False, without=())


def test_without_a_run_every_aim_is_open() -> None:
    assert {entry.status for entry in aims(None)} == {"open"}
    assert "✓" not in repr(aims_report(None))


def test_a_run_as_predicted_meets_every_aim() -> None:
    assert {entry.name: entry.status for entry in aims(GOOD)} == dict.fromkeys((a.name for a in aims(None)), "met")


@pytest.mark.parametrize(
    ("name", "experiment", "plan", "factor"),
    [
        ("chain-bandwidth", "chain", "fused", 1.1),
        ("chain-compiled", "chain", "compiled", 0.9),
        ("chain-ratio", "chain", "groups_4", 0.8),
        ("chain-ratio", "chain", "groups_4", 1.25),
        ("rows-others", "rmsnorm", "liger", 0.9),
        ("rows-others", "rmsnorm", "compiled", 0.9),
        ("epilogue-wins", "linear_k256", "fused", 4.0),
        ("epilogue-library", "linear_k4096", "fused", 1.3),
    ],
)
def test_each_aim_is_missed_by_what_it_speaks_of(name: str, experiment: str, plan: str, factor: float) -> None:
    run = made_up_run({(experiment, plan): factor}, AMPERE, quick=False, without=())  # type: ignore[dict-item]
    assert aim(run, name).status == "missed"
    others = {entry.name for entry in aims(run) if entry.status == "missed"} - {name}
    assert others <= {"chain-compiled", "chain-ratio"}  # the fused chain's time enters three aims


def test_an_aim_is_open_where_a_rival_was_not_timed() -> None:
    without_liger = made_up_run({}, AMPERE, quick=False)
    found = aim(without_liger, "rows-others")
    assert found.status == "open" and "not timed: Liger-Kernel" in found.found.en
    beaten = made_up_run({("rmsnorm", "compiled"): 0.5}, AMPERE, quick=False)
    assert aim(beaten, "rows-others").status == "missed"


def test_a_tie_within_the_rivals_noise_is_a_tie() -> None:
    ours = GOOD.experiments[0].median("fused")
    assert ours is not None
    run = changed(GOOD, "chain", "compiled", seconds=steady(ours * 0.995, width=0.02))
    assert aim(run, "chain-compiled").status == "met"


def test_a_gemm_without_tensor_cores_is_no_failure_of_the_aim() -> None:
    old = made_up_run({}, ENVIRONMENT, quick=False, without=())
    assert {aim(old, name).status for name in ("epilogue-wins", "epilogue-library")} == {"open"}
    assert "7.5" in aim(old, "epilogue-wins").found.en


def test_tensors_that_a_cache_could_hold_leave_the_aims_open() -> None:
    large_cache = replace(AMPERE, l2_bytes=50 * 2**20)
    assert aim(made_up_run({}, large_cache, quick=True), "chain-bandwidth").status == "open"
    assert aim(made_up_run({}, large_cache, quick=False), "chain-bandwidth").status == "met"


def test_a_wrong_output_meets_no_aim() -> None:
    run = changed(GOOD, "chain", "fused", status="wrong", error=None)
    assert aim(run, "chain-bandwidth").status == aim(run, "chain-ratio").status == "open"


# -- the verdict ---------------------------------------------------------------------------------------------


def test_the_verdict_reads_the_same_with_and_without_a_gpu() -> None:
    words = {repr(measurement_verdict(*given)) for given in [(), (None,), (GOOD,), (GOOD, None), (made_up_run(),)]}
    assert len(words) == 1
    assert measurement_verdict(GOOD).status == "right"
    assert len({measurement_verdict(*given)._repr_html_() for given in [(None,), (GOOD,)]}) == 1


def test_the_verdict_does_not_look_at_times() -> None:
    slow = made_up_run({("chain", "fused"): 100.0})
    assert repr(measurement_verdict(slow)) == repr(measurement_verdict(None))


@pytest.mark.parametrize(
    ("plan", "fields", "said"),
    [
        ("fused", {"status": "wrong", "error": None}, "does not agree with float64"),
        ("compiled", {"status": "wrong", "error": None}, "does not agree with float64"),
        ("fused", {"status": "failed", "seconds": None, "note": Text(zh="坏", en="broke")}, "failed (broke)"),
        ("groups_2", {"launches": 3}, "3 kernels were launched, not 2"),
    ],
)
def test_the_verdict_names_what_is_wrong_and_where(plan: str, fields: dict[str, object], said: str) -> None:
    run = changed(GOOD, "chain", plan, **fields)  # type: ignore[arg-type]
    verdict = measurement_verdict(None, run)
    assert verdict.status == "wrong"
    assert said in verdict.words and "chain of four operators" in verdict.words


@pytest.mark.parametrize(
    ("plan", "fields"),
    [
        ("compiled", {"launches": 5}),
        ("compiled", {"status": "failed", "seconds": None}),
        ("fused", {"launches": None}),
        ("fused", {"status": "skipped", "seconds": None}),
    ],
)
def test_what_is_not_ours_to_know_is_no_problem(plan: str, fields: dict[str, object]) -> None:
    assert run_problems(changed(GOOD, "chain", plan, **fields)) == ()  # type: ignore[arg-type]


def test_the_verdict_takes_measurements_only() -> None:
    with pytest.raises(ValueError, match=r"measurements\[1\]"):
        measurement_verdict(GOOD, "fast")  # type: ignore[arg-type]


# -- the plot ------------------------------------------------------------------------------------------------


def test_the_plot_shows_every_plan_that_has_a_prediction() -> None:
    groups = plot_groups(made_up_run({("chain", "fused"): 1.5}))
    assert groups[0].name == "chain of four operators"
    rows = {row.name: row for row in groups[0].rows}
    assert list(rows) == [
        "PyTorch, operator by operator", "Triton, 4 kernels", "Triton, 2 kernels", "torch.compile",
        "Triton, 1 fused kernel",
    ]  # fmt: skip
    assert not rows["Triton, 1 fused kernel"].as_predicted and rows["torch.compile"].as_predicted
    assert all(row.unit == rows["PyTorch, operator by operator"].predicted.low for row in rows.values())


def test_the_plots_words_count_what_lies_within() -> None:
    words = plot_words(plot_groups(made_up_run({("chain", "fused"): 1.5})))
    assert words.en == "Of 30 timed plans, 29 lie within their predicted interval."
    assert plot_words(plot_groups(None)).en == "32 plans, predicted only."


def test_the_title_says_whether_anything_was_measured() -> None:
    assert plot_title(made_up_run()).en == "made up for a test: predicted and measured"
    recorded = replace(made_up_run(), recorded_as="t4.json")
    assert plot_title(recorded).en == "made up for a test (recorded 2001-02-03): predicted and measured"
    assert "nothing measured" in plot_title(None, "L4").en


ODDLY_NAMED = replace(made_up_run(), environment=replace(ENVIRONMENT, gpu=r"<b>$\frac</b>"))


@pytest.mark.parametrize(("run", "language"), [(None, "en"), (ODDLY_NAMED, "zh")], ids=["predicted", "measured"])
def test_the_chart_is_drawn_without_a_word_on_standard_error(
    run: Run | None, language: str, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    pytest.importorskip("matplotlib")
    use_language(language)
    shown = benchmark_plot(run)
    assert isinstance(shown, ShownChart) and shown.png.startswith(b"\x89PNG")
    assert shown.label == str(plot_title(run))
    assert capsys.readouterr().err == ""
    assert not recwarn.list


def test_every_label_is_in_the_shipped_font() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.ft2font import FT2Font

    from lessons_lib.show.fonts import FONT_FILE

    held = FT2Font(str(FONT_FILE)).get_charmap()
    assert {c for label in plot.LABELS for c in label.zh if ord(c) > 127 and ord(c) not in held} == set()


def test_without_matplotlib_the_words_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> bytes:
        raise ImportError("装一下 matplotlib\ninstall matplotlib")

    monkeypatch.setattr(plot, "plot_png", missing)
    assert "install matplotlib" in repr(benchmark_plot(made_up_run()))


def test_a_run_without_a_calibration_is_an_empty_chart_and_no_error() -> None:
    pytest.importorskip("matplotlib")
    run = made_up_run()
    for plan in ("copy", "copy_kernel"):
        run = changed(run, "chain", plan, status="failed", seconds=None)  # type: ignore[arg-type]
    assert plot_groups(run) == ()
    assert "0 plans" in repr(benchmark_plot(run))
