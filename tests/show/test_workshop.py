"""Commit before reveal: off by default; in a workshop a panel shows, tells and draws nothing before a guess."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

import lessons_lib
from lessons_lib import CompilePanel, DecisionPanel, LayoutPanel, ReusePanel, TrafficPanel, lab_vote, traffic_vote
from lessons_lib.base.language import use_language
from lessons_lib.base.progress import note_progress, progress_of
from lessons_lib.base.questions import QUESTIONS
from lessons_lib.base.text import Text
from lessons_lib.decision.model import CONDITIONS, Evidence
from lessons_lib.show import workshop as switch
from lessons_lib.show.gate import GuessGate, LockedError, guess_key
from lessons_lib.show.live import WIDGET_VIEW
from lessons_lib.show.panel import Panel
from lessons_lib.show.workshop import in_workshop, vote_first, workshop

MIB = 2**20
PANELS = (TrafficPanel, lessons_lib.EpiloguePanel, ReusePanel, DecisionPanel, LayoutPanel, CompilePanel)
PANELS += (lessons_lib.TileWalkPanel, lessons_lib.CompilerPanel)


@pytest.fixture(autouse=True)
def _as_started(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("LESSONS_WORKSHOP", raising=False)
    monkeypatch.setattr(switch, "_chosen", None)
    yield


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The learner's own file; there is none yet."""
    path = tmp_path / "own.json"
    monkeypatch.setenv("LESSONS_PROGRESS", str(path))
    return path


def everything(widget: Any) -> str:
    """All that a widget and its parts would send to a browser."""
    values = (str(value) for name, value in widget.get_state().items() if name != "children")
    state = "".join(value for value in values if not value.startswith("IPY_MODEL"))
    return state + "".join(everything(part) for part in getattr(widget, "children", ()))


def gate_of(panel: Panel) -> GuessGate:
    assert panel.gate is not None
    return panel.gate


def type_and_enter(gate: GuessGate, words: str) -> None:
    """As the browser tells it: the text letter by letter, then Enter."""
    gate._field.value = words
    gate._field._handle_custom_msg({"event": "submit"}, [])


# -- the switch -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "on"), [("1", True), (" TRUE ", True), ("on", True), ("0", False), ("", False)])
def test_the_environment_switches_it(monkeypatch: pytest.MonkeyPatch, value: str, on: bool) -> None:
    monkeypatch.setenv("LESSONS_WORKSHOP", value)
    assert in_workshop() is on


def test_a_cell_switches_it_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_workshop()
    workshop(True)
    assert in_workshop()
    monkeypatch.setenv("LESSONS_WORKSHOP", "1")
    workshop(False)
    assert not in_workshop()
    with pytest.raises(ValueError, match="on"):
        workshop("yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("panel", PANELS)
def test_off_nothing_asks_and_nothing_says_your_guess(file: Path, panel: type[Panel]) -> None:
    made = panel()
    assert made.gate is None
    assert len(made.children) == 4
    assert set(made._repr_mimebundle_()) == {WIDGET_VIEW, "image/svg+xml", "text/plain"}
    assert "guess" not in everything(made)
    assert not file.exists()


def test_off_a_guess_of_a_workshop_before_is_not_shown(file: Path) -> None:
    before = everything(TrafficPanel())
    workshop(True)
    gate_of(TrafficPanel()).commit("256 MiB")
    workshop(False)
    assert everything(TrafficPanel()) == before


# -- locked -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_locked_panel_holds_the_question_alone(file: Path, panel: type[Panel], language: str) -> None:
    use_language(language)
    workshop(True)
    made = panel()
    prompt = "先写下你的猜测，再看结果。" if language == "zh" else "Write down your guess before you look."
    question = str(QUESTIONS[panel.__name__].words)
    assert made.static_forms() == {"text/plain": f"{prompt}\n{question}"}
    shown = everything(made)
    assert prompt in shown
    assert f"<b>{escape(question)}</b>" in shown
    assert "<svg" not in shown
    assert "<table" not in shown
    assert made._picture_view.value == made._table_view.value == ""
    assert not file.exists()


@pytest.mark.parametrize(
    ("panel", "how"),
    [
        (TrafficPanel, "A number, in MiB;"),
        (lessons_lib.EpiloguePanel, "How many times (×);"),
        (CompilePanel, "A number;"),
        (DecisionPanel, "A few words."),
    ],
)
def test_the_form_says_what_kind_of_answer_is_wanted(panel: type[Panel], how: str) -> None:
    workshop(True)
    assert how in gate_of(panel()).form.children[0].value


def test_a_panel_of_ones_own_asks_for_any_guess(file: Path) -> None:
    class MyPanel(TrafficPanel):
        pass

    workshop(True)
    panel = MyPanel()
    assert panel.static_forms() == {"text/plain": "Write down your guess before you look."}
    assert "A number or a few words." in gate_of(panel).form.children[0].value
    gate_of(panel).commit("3 ms")
    assert panel.static_forms()["text/plain"].startswith("Your guess: 3 ms\n")
    assert progress_of("guesses")["MyPanel"]["number"] == 3


@pytest.mark.parametrize(
    ("panel", "words"),
    [(TrafficPanel, "phone 0123"), (TrafficPanel, "3 ms"), (CompilePanel, "8 MiB"), (ReusePanel, "128, then 0")],
)
def test_digits_that_do_not_answer_the_question_are_noted_as_words_alone(
    file: Path, panel: type[Panel], words: str
) -> None:
    workshop(True)
    gate_of(panel()).commit(words)
    entry = progress_of("guesses")[panel.__name__]
    assert entry["guess"] == words
    assert "number" not in entry


def test_the_field_has_a_name_and_so_has_the_button() -> None:
    workshop(True)
    gate = gate_of(TrafficPanel())
    assert gate._field.description == "your guess"
    assert gate._button.description == "commit"


def test_a_locked_panel_can_be_set_but_not_read(file: Path) -> None:
    workshop(True)
    panel = TrafficPanel()
    panel.set(num_ops=6, fused_groups=3)
    with pytest.raises(ValueError, match="num_ops"):
        panel.num_ops = 99
    with pytest.raises(LockedError) as refused:
        panel.result  # noqa: B018
    zh, en = str(refused.value).splitlines()
    assert "确定" in zh
    assert "press commit" in en
    assert panel._picture_view.value == ""
    gate_of(panel).commit("256")
    assert panel.result["intermediate_bytes"] == 256 * MIB


def test_nothing_is_worked_out_before_the_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(panel: TrafficPanel) -> None:
        raise AssertionError("computed")

    monkeypatch.setattr(TrafficPanel, "compute", never)
    workshop(True)
    panel = TrafficPanel()
    panel.num_ops = 7
    panel._repr_mimebundle_()


# -- committing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("panel", PANELS)
def test_a_guess_opens_the_panel_and_stays_above_the_picture(file: Path, panel: type[Panel]) -> None:
    workshop(True)
    made = panel()
    type_and_enter(gate_of(made), "  256 <b>MiB</b>,\n no ")
    plain = panel.static_forms(made)["text/plain"]
    question = QUESTIONS[panel.__name__]
    assert plain.startswith(f"{question.words}\nYour guess: 256 <b>MiB</b>, no\n")
    line, picture = made.children[2:4]
    assert "Your guess: 256 &lt;b&gt;MiB&lt;/b&gt;, no" in line.value
    assert escape(str(question.words)) in line.value
    assert picture.value.startswith("<svg")
    key = gate_of(made).key
    entry = progress_of("guesses")[key]
    assert entry["guess"] == "256 <b>MiB</b>, no"
    assert entry.get("number") == (None if question.unit is None else 256)
    assert entry["lesson"] == made.lesson != ""


def test_the_button_commits_as_enter_does(file: Path) -> None:
    workshop(True)
    panel = TrafficPanel()
    gate_of(panel)._field.value = "a lot"
    gate_of(panel)._button.click()
    assert "\nYour guess: a lot\n" in panel.static_forms()["text/plain"]
    assert "number" not in progress_of("guesses")["TrafficPanel"]


def test_the_panel_is_as_it_would_have_been_but_for_the_line(file: Path) -> None:
    free = TrafficPanel()
    workshop(True)
    panel = TrafficPanel()
    gate_of(panel).commit("x")
    assert panel.static_forms()["image/svg+xml"] == free.static_forms()["image/svg+xml"]
    assert [part.value for part in panel.children[3:]] == [part.value for part in free.children[2:]]


@pytest.mark.parametrize("words", ["", "   ", "\n"])
def test_a_blank_guess_opens_nothing_and_says_so(file: Path, words: str) -> None:
    workshop(True)
    panel = TrafficPanel()
    type_and_enter(gate_of(panel), words)
    assert gate_of(panel).locked
    assert "Nothing is written yet" in gate_of(panel)._said.value
    gate_of(panel)._field.value = "2"  # typing on after that commits nothing by itself
    assert gate_of(panel).locked
    for odd in (words, None, 3):
        with pytest.raises(ValueError, match="words"):
            gate_of(panel).commit(odd)  # type: ignore[arg-type]
    assert not file.exists()


def test_letters_that_arrive_after_their_enter_belong_to_the_guess(file: Path) -> None:
    workshop(True)
    panel = TrafficPanel()
    type_and_enter(gate_of(panel), "25")
    gate_of(panel)._field.value = "256 MiB"
    assert "Your guess: 256 MiB" in panel.children[2].value
    assert progress_of("guesses")["TrafficPanel"]["number"] == 256


def test_a_guess_is_made_once() -> None:
    workshop(True)
    panel = TrafficPanel()
    gate_of(panel).commit("256")
    gate_of(panel).commit("384")
    assert gate_of(panel).guess == "256"


def test_after_a_restart_the_panel_opens_with_the_old_guess(file: Path) -> None:
    workshop(True)
    gate_of(TrafficPanel()).commit("256 MiB")
    before = file.read_bytes()
    again = TrafficPanel()
    assert "tensors: how much intermediate traffic?\nYour guess: 256 MiB\n" in again.static_forms()["text/plain"]
    assert again.result["launches"] == 4
    assert file.read_bytes() == before
    assert gate_of(ReusePanel()).locked  # another panel, another guess


@pytest.mark.parametrize("guess", [None, 3, "", "  ", ["256"]])
def test_an_odd_guess_in_the_file_opens_nothing(file: Path, guess: object) -> None:
    note_progress("guesses", "TrafficPanel", {"guess": guess})
    workshop(True)
    assert gate_of(TrafficPanel()).locked


def test_a_long_guess_is_cut_and_a_file_that_fails_opens_the_panel_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "nowhere" / "own.json"))
    workshop(True)
    panel = TrafficPanel()
    gate_of(panel).commit("9" * 10_000)
    assert gate_of(panel).guess == "9" * 200
    assert "cannot be written" in panel.children[2].value


def test_one_piece_of_evidence_and_all_four_are_two_questions(file: Path) -> None:
    workshop(True)
    words = Text(zh="看", en="seen")
    seen = [Evidence(condition, "pass", words, "x") for condition in CONDITIONS]
    one, all_four = DecisionPanel(seen[:1]), DecisionPanel(seen)
    assert (gate_of(one).key, gate_of(one).lesson) == ("DecisionPanel", "03")
    assert (gate_of(all_four).key, gate_of(all_four).lesson) == ("DecisionPanel.evidence", "05")
    gate_of(all_four).commit("met")
    assert all_four.result.outcome == "met"


@pytest.mark.parametrize(
    ("name", "key"), [("GraphCanvas.<img src=x>", "GraphCanvas._img src_x_"), ("a" * 99, "a" * 60), ("", "panel")]
)
def test_a_key_is_one_that_a_class_report_takes(name: str, key: str) -> None:
    assert guess_key(name) == key


# -- votes ------------------------------------------------------------------------------------------------------


def test_a_vote_in_a_workshop_counts_once_committed_and_then_stays(file: Path) -> None:
    workshop(True)
    vote = traffic_vote()
    assert vote._commit.disabled
    vote.choose(2)
    assert vote.value is None
    assert not file.exists()
    vote.choose(3)
    vote._commit.click()
    assert vote.value == 384 * MIB
    assert vote._buttons.disabled
    assert progress_of("votes")["traffic_vote"]["choice"] == 3
    vote.choose(1)
    assert vote.value == 384 * MIB
    again = traffic_vote()
    assert (again.value, again._buttons.disabled) == (384 * MIB, True)


def test_a_commit_without_a_choice_does_nothing(file: Path) -> None:
    workshop(True)
    vote = traffic_vote()
    vote.commit()
    vote.choose(3)
    assert vote.value is None


def test_a_measurement_waits_for_its_vote(file: Path) -> None:
    assert vote_first("lab_vote", None) is None
    workshop(True)
    waiting = vote_first("lab_vote", None)
    assert waiting is not None
    assert "Vote above" in repr(waiting)
    assert vote_first("lab_vote", 4.0) is None
    vote = lab_vote()
    vote.choose(6)
    assert vote_first("lab_vote", vote.value) is not None
    vote.commit()
    assert vote_first("lab_vote", None) is None
