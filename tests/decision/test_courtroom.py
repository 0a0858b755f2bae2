"""The court as a learner meets it: no evidence before all three rulings, none that changes after a refusal."""

from __future__ import annotations

import subprocess
import sys
from html import unescape

import pytest

pytest.importorskip("numpy")

from lessons_lib import Trial, court_record, use_language
from lessons_lib.base.validate import require_choice
from lessons_lib.decision import courtroom
from lessons_lib.decision.court import ANSWER_NAMES, ANSWERS, CASES, QUESTION_NAMES, QUESTIONS, Ruling
from lessons_lib.decision.courtroom import exhibit_table
from lessons_lib.decision.evidence import examine
from lessons_lib.show.live import WIDGET_VIEW

RULINGS = {
    "rounding": ("yes", "yes", "no"),
    "reorder": ("yes", "depends", "yes"),
    "tile": ("depends", "depends", "yes"),
    "softmax": ("yes", "yes", "no"),
    "gemm": ("yes", "no", "no"),
    "fan_out": ("yes", "yes", "yes"),
}


def shown(trial: Trial) -> str:
    return unescape(trial._evidence.value)


def answers(trial: Trial) -> list[object]:
    return [control.value for control in trial.controls.values()]


@pytest.mark.parametrize("name", CASES)
def test_no_evidence_before_all_three_rulings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    examined: list[str] = []
    try_case = courtroom.try_case

    def spied(case: str, **given: object) -> object:
        hearing = try_case(case, **given)
        if hearing.findings is not None:
            examined.append(case)
        return hearing

    monkeypatch.setattr(courtroom, "try_case", spied)
    trial = Trial(name)
    waiting = shown(trial)
    assert "<table" not in waiting
    for number, question in enumerate(QUESTIONS, 1):
        assert (examined, trial.hearing.findings, trial.hearing.standing) == ([], None, "open")
        trial.controls[question].value = RULINGS[name][number - 1]
        if number < 3:
            assert "<table" not in shown(trial)
            for reason in trial.case.why.values():
                assert str(reason)[:12] not in shown(trial)
    assert examined == [name]
    assert trial.hearing.standing == "agrees"
    assert shown(trial).count("<table") == 2


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_case_can_be_ruled_and_shows_evidence_and_conditions(name: str, language: str) -> None:
    use_language(language)
    trial = Trial(name)
    trial.rule(*RULINGS[name])
    found = examine(name)
    assert trial.hearing.given == Ruling(*RULINGS[name]) == found.ruling
    assert unescape(exhibit_table(found.exhibit).html()) in shown(trial)
    assert unescape(exhibit_table(found.conditions).html()) in shown(trial)
    assert f"✓ {found.verdict}" in shown(trial)
    assert shown(trial).count('role="status"') == 1
    for question in QUESTIONS:
        assert str(found.why[question]) in shown(trial)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_ruling_that_differs_is_laid_beside_the_evidence(question: str) -> None:
    right = dict(zip(QUESTIONS, RULINGS["gemm"], strict=True))
    for answer in ANSWERS:
        trial = Trial("gemm")
        trial.rule(**{**right, question: answer})  # type: ignore[arg-type]
        if answer == right[question]:
            assert "✗" not in shown(trial).split("<table")[1].split("</table>")[1]
            continue
        assert trial.hearing.standing == "differs"
        assert f"✗ {trial.hearing.findings.verdict}" in shown(trial)  # type: ignore[union-attr]
        said = f"{QUESTION_NAMES[question]} You ruled “{ANSWER_NAMES[answer]}”; the evidence says "
        assert said + f"“{ANSWER_NAMES[right[question]]}”" in shown(trial)


def test_a_ruling_may_be_changed() -> None:
    trial = Trial("gemm")
    trial.rule("no", "no", "no")
    assert trial.hearing.standing == "differs"
    trial.controls["legal"].value = "yes"
    assert trial.hearing.standing == "agrees"
    trial.controls["legal"].value = None
    assert trial.hearing.standing == "open"
    assert "<table" not in shown(trial), "an answer taken back takes the evidence with it"


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("value", ["maybe", True, "", 1], ids=repr)
def test_a_wrong_answer_is_refused_by_name_and_nothing_changes(position: int, value: object) -> None:
    for before in (None, RULINGS["gemm"]):
        trial = Trial("gemm")
        if before:
            trial.rule(*before)
        kept, words, hearing = answers(trial), shown(trial), trial.hearing
        given: list[object] = ["no", "yes", "yes"]
        given[position] = value
        with pytest.raises(ValueError, match=rf"(?s)^参数 {QUESTIONS[position]} .*\n{QUESTIONS[position]} "):
            trial.rule(*given)  # type: ignore[arg-type]
        assert answers(trial) == kept
        assert shown(trial) == words
        assert trial.hearing is hearing


@pytest.mark.parametrize("case", ["gem", None, 3, ""], ids=repr)
def test_an_unknown_case_is_refused_with_those_there_are(case: object) -> None:
    with pytest.raises(ValueError, match=r"(?s)^参数 case .*\ncase must be one of: 'rounding', .*'fan_out'"):
        Trial(case)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="case must be one of"):
        court_record("gemm", case)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="case"):
        require_choice("case", case, CASES)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_without_a_kernel_it_shows_the_case_and_the_questions_only(language: str) -> None:
    use_language(language)
    for name, case in CASES.items():
        trial = Trial(name)
        bundle = trial._repr_mimebundle_()
        assert set(bundle) == {WIDGET_VIEW, "text/html", "text/plain"}
        trial.rule(*RULINGS[name])
        assert trial._repr_mimebundle_()["text/plain"] == bundle["text/plain"], "a verdict is not kept in the file"
        lines = bundle["text/plain"].splitlines()
        assert lines[:2] == [str(case.title), str(case.question)]
        assert lines[2:] == [f"  {QUESTION_NAMES[question]} ( )" for question in QUESTIONS]
        assert str(case.question) in unescape(bundle["text/html"])


def test_every_question_has_the_three_answers_and_none_is_chosen() -> None:
    trial = Trial("tile")
    assert list(trial.controls) == list(QUESTIONS)
    for question, control in trial.controls.items():
        assert [option[1] for option in control.options] == list(ANSWERS)
        assert control.description == str(QUESTION_NAMES[question])
        assert control.value is None


def test_the_record_lists_what_the_evidence_rules() -> None:
    lines = repr(court_record(*CASES)).splitlines()
    assert len(lines) == 2 + len(CASES)
    for line, (name, case) in zip(lines[2:], CASES.items(), strict=True):
        assert line.startswith(str(case.title))
        found = [word.strip() for word in line.removeprefix(str(case.title)).split("  ") if word.strip()]
        assert found == [str(ANSWER_NAMES[answer]) for answer in RULINGS[name]]


def test_without_numpy_a_click_gives_the_message_and_no_traceback() -> None:
    code = (
        "import sys\n"
        "from lessons_lib import Trial, court_record, use_language\n"
        "use_language('en')\n"
        "trial = Trial('rounding')\n"
        "assert 'numpy' not in sys.modules\n"
        "sys.modules['numpy'] = None\n"
        "trial.rule('yes', 'yes', 'no')\n"
    )
    lines = (
        "for control in trial.controls.values(): control.value = 'yes'\n"
        "print(trial._evidence.value)\n"
        "assert trial.hearing.findings is None\n"
    )
    typed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert typed.stderr.rstrip().splitlines()[-1].startswith("Run ") or "-m pip install numpy" in typed.stderr
    clicked = subprocess.run(
        [sys.executable, "-c", code.replace("trial.rule('yes', 'yes', 'no')\n", lines)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert clicked.returncode == 0, clicked.stderr
    assert "NumPy" in clicked.stdout
    assert "-m pip install numpy" in clicked.stdout
    assert "<table" not in clicked.stdout
    assert "Traceback" not in clicked.stdout + clicked.stderr
