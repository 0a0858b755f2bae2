"""What a learner chooses and answers is noted when it happens, comes back after a restart, and breaks no lesson."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import lessons_lib
from lessons_lib import (
    check_swiglu_saved,
    check_total_bytes,
    lab_vote,
    machine_report,
    traffic_quiz,
    traffic_vote,
    use_language,
)
from lessons_lib.base.progress import progress_of
from lessons_lib.show.exercise import Feedback, note_feedback
from lessons_lib.show.guesses import note_measured, voted_number

MIB = 2**20


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The learner's own file; there is none yet."""
    path = tmp_path / "own.json"
    monkeypatch.setenv("LESSONS_PROGRESS", str(path))
    return path


def entry(section: str, key: str) -> dict[str, Any]:
    return progress_of(section)[key]


def stamped(lesson: str, **fields: object) -> dict[str, object]:
    return {**fields, "lesson": lesson, "day": date.today().isoformat()}


# -- when -------------------------------------------------------------------------------------------------------


def test_nothing_is_noted_when_things_are_made_or_displayed(file: Path) -> None:
    for made in (traffic_vote(), traffic_quiz(), lessons_lib.TrafficPanel()):
        made._repr_mimebundle_()
    assert not file.exists()


def test_nothing_is_noted_with_progress_off_and_nothing_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", "off")
    traffic_vote().choose(2)
    traffic_quiz().answer(1, 1)
    check_swiglu_saved(128)
    machine_report()
    assert not any(progress_of(section) for section in ("votes", "quizzes", "exercises", "opened"))
    assert traffic_vote().value is None
    assert traffic_quiz().answers == [None] * 3


# -- votes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_vote_is_noted_with_its_value_and_its_english_label(file: Path, language: str) -> None:
    use_language(language)
    lab_vote().choose(2)
    assert entry("votes", "lab_vote") == stamped("01", choice=2, value=1.0, label="the same", changes=0)


def test_a_changed_vote_is_noted_as_changed(file: Path) -> None:
    vote = traffic_vote()
    vote.choose(2)
    vote.choose(3)
    noted = entry("votes", "traffic_vote")
    assert (noted["choice"], noted["value"], noted["changes"]) == (3, 384 * MIB, 1)


def test_a_vote_comes_back_after_a_restart(file: Path) -> None:
    traffic_vote().choose(3)
    before = file.read_bytes()
    again = traffic_vote()
    assert again.value == 384 * MIB
    assert "384 MiB" in again._noted.value
    assert again.static_forms() == traffic_vote().static_forms()
    assert file.read_bytes() == before


def test_a_measurement_stands_beside_the_vote_and_the_first_one_stays(file: Path) -> None:
    lab_vote().choose(6)
    note_measured("lab_vote", 1.62)
    note_measured("lab_vote", 1.7)
    assert entry("votes", "lab_vote")["measured"] == 1.62
    assert voted_number("lab_vote") == 4.0


def test_a_measurement_without_a_vote_is_not_noted(file: Path) -> None:
    note_measured("lab_vote", 1.62)
    assert not file.exists()


def test_a_vote_after_the_measurement_is_no_guess_and_says_so(file: Path) -> None:
    vote = lab_vote()
    vote.choose(6)
    note_measured("lab_vote", 1.62)
    vote.choose(3)
    assert entry("votes", "lab_vote")["choice"] == 6
    assert "no longer counts" in vote._noted.value
    vote.choose(6)
    assert "noted" in vote._noted.value


@pytest.mark.parametrize("choice", [0, 5, "2", None, True, [1], 2.0])
def test_an_odd_choice_in_the_file_is_passed_over(file: Path, choice: object) -> None:
    sections = {"votes": {"traffic_vote": {"choice": choice, "changes": "x"}}}
    file.write_text(json.dumps({"format": "fusion-progress", "version": 1, "sections": sections}))
    vote = traffic_vote()
    assert vote.value is None
    vote.choose(1)
    assert entry("votes", "traffic_vote")["choice"] == 1


# -- quizzes ----------------------------------------------------------------------------------------------------


def test_a_quiz_keeps_the_first_answers_beside_the_last_ones(file: Path) -> None:
    quiz = traffic_quiz()
    quiz.answer(1, 1)
    quiz.answer(1, 2)
    quiz.answer(3, 2)
    noted = entry("quizzes", "traffic_quiz")
    assert noted == stamped("01", answers=[2, None, 2], first=[1, None, 2], right=2, changes=1)


def test_answers_and_what_they_explain_come_back_after_a_restart(file: Path) -> None:
    quiz = traffic_quiz()
    quiz.answer(1, 2)
    again = traffic_quiz()
    assert again.answers == [2, None, None]
    assert again._feedback[0].value == quiz._feedback[0].value != ""
    assert again._score.value == quiz._score.value
    again.answer(2, 3)
    assert entry("quizzes", "traffic_quiz")["answers"] == [2, 3, None]


@pytest.mark.parametrize("answers", [None, 3, [9, "1", True], [1] * 50, [[1]], {}])
def test_odd_answers_in_the_file_are_passed_over(file: Path, answers: object) -> None:
    sections = {"quizzes": {"traffic_quiz": {"answers": answers, "first": answers, "changes": -1}}}
    file.write_text(json.dumps({"format": "fusion-progress", "version": 1, "sections": sections}))
    quiz = traffic_quiz()
    assert all(answer in (None, 1) for answer in quiz.answers)
    quiz.answer(1, 2)
    assert entry("quizzes", "traffic_quiz")["answers"][0] == 2


# -- exercises --------------------------------------------------------------------------------------------------


def by_operators(num_ops: int, tensor_bytes: int, fused_groups: int, side_inputs: int) -> int:
    return (2 * num_ops + side_inputs) * tensor_bytes


def between_groups(num_ops: int, tensor_bytes: int, fused_groups: int, side_inputs: int) -> int:
    return 2 * (fused_groups - 1) * tensor_bytes


def right(num_ops: int, tensor_bytes: int, fused_groups: int, side_inputs: int) -> int:
    return (2 * fused_groups + side_inputs) * tensor_bytes


def test_an_exercise_counts_tries_and_the_usual_mistakes_on_the_way(file: Path) -> None:
    check_total_bytes(None)
    assert entry("exercises", "check_total_bytes") == stamped("01", status="open", tries=0, mistake=None, mistakes=[])
    check_total_bytes(by_operators)
    check_total_bytes(between_groups)
    wrong = stamped("01", status="wrong", tries=2, mistake=0, mistakes=[0, 1])
    assert entry("exercises", "check_total_bytes") == wrong
    check_total_bytes(None)
    assert entry("exercises", "check_total_bytes") == wrong
    check_total_bytes(right)
    solved = stamped("01", status="right", tries=3, mistake=None, mistakes=[0, 1])
    assert entry("exercises", "check_total_bytes") == solved
    check_total_bytes(by_operators)  # playing on after that takes nothing away
    assert entry("exercises", "check_total_bytes") == solved


def test_a_mistake_in_a_number_is_its_place_among_those_known(file: Path) -> None:
    check_swiglu_saved(256)
    check_swiglu_saved(7)
    noted = entry("exercises", "check_swiglu_saved")
    assert (noted["tries"], noted["mistake"], noted["mistakes"]) == (2, None, [1])


def test_the_kernel_s_checker_is_noted_too(file: Path) -> None:
    pytest.importorskip("triton")
    lessons_lib.check_bias_silu_gate(None)
    assert entry("exercises", "check_bias_silu_gate")["status"] == "open"
    lessons_lib.check_bias_silu_gate(lambda: 0)
    noted = entry("exercises", "check_bias_silu_gate")
    assert (noted["lesson"], noted["tries"], noted["mistake"]) == ("05", noted["status"] == "wrong", None)


def test_the_machine_report_leaves_an_entry_of_lesson_00(file: Path) -> None:
    machine_report()
    assert entry("opened", "machine_report") == stamped("00")


# -- where the file fails ---------------------------------------------------------------------------------------


@pytest.fixture
def unwritable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "no-such-folder" / "own.json"))


@pytest.mark.usefixtures("unwritable")
def test_a_file_that_fails_breaks_nothing_and_is_told_of_once() -> None:
    vote = traffic_vote()
    vote.choose(3)
    assert vote.value == 384 * MIB
    assert "cannot be written" in vote._noted.value
    vote.choose(2)
    assert "cannot be written" not in vote._noted.value
    quiz = traffic_quiz()
    quiz.answer(1, 2)
    assert "cannot be written" not in quiz._score.value
    assert check_swiglu_saved(160).notice == ""
    assert progress_of("exercises")["check_swiglu_saved"]["status"] == "right"  # kept while the kernel lives


@pytest.mark.usefixtures("unwritable")
def test_a_check_can_be_the_one_to_tell() -> None:
    told = check_swiglu_saved(160)
    assert "cannot be written" in told.notice
    assert "cannot be written" in told._repr_html_()
    assert repr(told) == repr(check_swiglu_saved(160))


def test_a_folder_that_is_gone_breaks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.delenv("LESSONS_PROGRESS")
    gone.rmdir()
    vote = traffic_vote()
    vote.choose(3)
    assert vote.value == 384 * MIB
    assert traffic_quiz().score == 0
    assert note_feedback(Feedback("right", "yes"), "check_x", "01") == Feedback("right", "yes")


# -- ids --------------------------------------------------------------------------------------------------------


def test_every_vote_quiz_and_exercise_is_noted_under_the_name_that_the_lesson_calls(file: Path) -> None:
    from lessons_lib.classroom.course import LESSONS

    for lesson in LESSONS:
        for key in lesson.votes:
            getattr(lessons_lib, key)().choose(1)
            assert entry("votes", key)["lesson"] == lesson.number
        for key in lesson.quizzes:
            getattr(lessons_lib, key)().answer(1, 1)
            assert entry("quizzes", key)["lesson"] == lesson.number
        for key in lesson.exercises:
            getattr(lessons_lib, key)(None)
            assert entry("exercises", key)["lesson"] == lesson.number
