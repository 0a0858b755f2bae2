"""Tables, text widths, finished things to show, quizzes, votes and checkers."""

from __future__ import annotations

from fractions import Fraction
from xml.etree import ElementTree

import pytest

from lessons_lib import use_language
from lessons_lib.base.roofline import Interval
from lessons_lib.base.text import Text
from lessons_lib.show.exercise import FunctionExercise, Mistake, ValueExercise
from lessons_lib.show.intervals import IntervalRow, draw_intervals
from lessons_lib.show.live import WIDGET_VIEW
from lessons_lib.show.picture import Picture, text_width
from lessons_lib.show.quiz import Choice, Question, Quiz, Vote
from lessons_lib.show.shown import report
from lessons_lib.show.table import Table

EVIL = "<img src=x onerror=alert(1)>"


def text(words: str) -> Text:
    return Text(zh=f"中{words}", en=words)


# -- tables and pictures


def test_a_table_lines_up_full_width_characters() -> None:
    lines = Table(["方案", "bytes"], [["不融合", "384"], ["all", "0"]], marked=1).plain().splitlines()
    assert lines == ["方案    bytes", "------  -----", "不融合    384", "▸ all       0"]


def test_text_from_outside_is_escaped_everywhere() -> None:
    picture = Picture(100, EVIL, "t")
    picture.text(0, 0, EVIL)
    shown = report(Table([EVIL], [[EVIL]], note=EVIL), [text(EVIL)], picture.svg())
    assert "<img" not in shown.html
    assert "&lt;img" in shown.html
    ElementTree.fromstring(picture.svg())


@pytest.mark.parametrize(("language", "tag"), [("zh", "zh-CN"), ("en", "en")])
def test_pictures_and_tables_name_their_language(language: str, tag: str) -> None:
    use_language(language)
    assert f'lang="{tag}"' in Picture(100, "x", "t").svg()
    assert f'lang="{tag}"' in Table(["a"], []).html()


def test_chinese_counts_as_wide() -> None:
    assert text_width("显存", 12) == 24
    assert text_width("ab", 10) < text_width("显存", 10)


def test_interval_bars_share_one_axis() -> None:
    rows = [IntervalRow("long", Interval(1, 2), 4.0), IntervalRow("short", Interval(0.5, 1))]
    root = ElementTree.fromstring(draw_intervals("t", rows, "l", "p"))
    bars = [
        float(box.get("width", 0))
        for box in root.iter("{http://www.w3.org/2000/svg}rect")
        if box.get("height") == "18"
    ]
    low, high, short_low, short_high = bars
    assert low == pytest.approx(high) == pytest.approx(2 * short_low) == pytest.approx(2 * short_high)


# -- quizzes and votes


def question(right: int = 1) -> Question:
    return Question(text("which?"), [Choice(text(f"c{i}"), text(f"because {i}"), i == right) for i in range(3)])


def test_every_choice_is_explained_and_may_be_changed() -> None:
    quiz = Quiz([question(), question(2)])
    assert quiz.answers == [None, None]
    quiz.answer(1, 1)
    assert "because 0" in quiz._feedback[0].value
    assert "✗" in quiz._feedback[0].value
    assert quiz.score == 0
    quiz.answer(1, 2)
    quiz.answer(2, 3)
    assert "✓" in quiz._feedback[0].value
    assert quiz.answers == [2, 3]
    assert quiz.score == 2


@pytest.mark.parametrize("at", [(0, 1), (3, 1), (1, 0), (1, 4), (True, 1), (1, 1.0)])
def test_no_such_question_or_choice(at: tuple[int, int]) -> None:
    quiz = Quiz([question(), question()])
    with pytest.raises(ValueError, match=r"question|choice"):
        quiz.answer(*at)
    assert quiz.answers == [None, None]


@pytest.mark.parametrize("flags", [(), (True,), (False, False), (True, True)])
def test_a_question_has_exactly_one_right_choice(flags: tuple[bool, ...]) -> None:
    with pytest.raises(ValueError, match="choices"):
        Question(text("?"), [Choice(text("c"), text("w"), flag) for flag in flags])


def test_a_quiz_is_whole_without_a_kernel() -> None:
    bundle = Quiz([question()])._repr_mimebundle_()
    assert set(bundle) == {WIDGET_VIEW, "text/html", "text/plain"}
    for reason in ("because 0", "because 1", "because 2"):
        assert reason in bundle["text/html"]
        assert reason not in bundle["text/plain"]


def test_a_vote_keeps_the_guess_and_judges_nothing() -> None:
    vote = Vote(text("how many?"), [(text("one"), 1.0), (text("two"), 2.0)])
    assert vote.value is None
    vote.choose(2)
    assert vote.value == 2.0
    assert "two" in vote._noted.value
    with pytest.raises(ValueError, match="option"):
        vote.choose(3)
    assert vote.value == 2.0


# -- checkers

HINTS = (text("h1"), text("h2"), text("h3"))
DOUBLE = FunctionExercise(
    reference=lambda n: 2 * n,
    cases=[{"n": 1}, {"n": 3}],
    mistakes=[Mistake(lambda n: n + 1, text("you added"))],
    hints=HINTS,
    done=text("well done"),
)


def test_a_right_function_passes_and_shows_no_hints() -> None:
    feedback = DOUBLE.check(lambda n: n + n)
    assert (feedback.status, feedback.hints) == ("right", ())
    assert "well done" in repr(feedback)


def test_a_usual_mistake_is_explained() -> None:
    feedback = DOUBLE.check(lambda n: n + 1)
    assert feedback.status == "wrong"
    assert "n=3" in feedback.words
    assert "you added" in feedback.words
    assert "<details" in feedback._repr_html_()


@pytest.mark.parametrize("attempt", [None, lambda n: None])
def test_nothing_yet_is_not_wrong(attempt: object) -> None:
    assert DOUBLE.check(attempt).status == "open"


@pytest.mark.parametrize(
    "attempt", [7, "x", lambda n: "2", lambda n: True, lambda n: [2], lambda: 2, lambda n: 1 / 0]
)
def test_a_broken_attempt_is_reported_and_never_raises(attempt: object) -> None:
    feedback = DOUBLE.check(attempt)
    assert feedback.status == "wrong"
    assert feedback.hints


def test_an_error_inside_the_attempt_names_its_kind_and_line() -> None:
    def attempt(n: int) -> int:
        return [][n]

    assert "IndexError" in DOUBLE.check(attempt).words
    assert str(attempt.__code__.co_firstlineno + 1) in DOUBLE.check(attempt).words


@pytest.mark.parametrize(("attempt", "status"), [(None, "open"), (160, "right"), (160.0, "right"), (128, "wrong")])
def test_a_number_by_hand(attempt: object, status: str) -> None:
    exercise = ValueExercise(160, {128: text("missed a read")}, HINTS, text("yes"))
    feedback = exercise.check(attempt)
    assert feedback.status == status
    assert ("missed a read" in feedback.words) == (attempt == 128)


@pytest.mark.parametrize("attempt", ["160", True, [160], float("nan")])
def test_what_is_no_number_is_wrong(attempt: object) -> None:
    assert ValueExercise(160, {}, HINTS, text("yes")).check(attempt).status == "wrong"


class Hostile:
    """Whatever is asked of it fails."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError


class WordlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def leaves() -> None:
    raise SystemExit


def wordless() -> None:
    raise WordlessError


@pytest.mark.parametrize(
    "attempt",
    [
        lambda n: 10**5000,
        lambda n: Fraction(1, 3),
        lambda n: Hostile(),
        lambda n: leaves(),
        lambda n: wordless(),
        lambda n: "x" * 10**6,
        pytest.param(10**5000, id="too long to write"),
        Hostile(),
    ],
)
def test_hostile_attempts_are_wrong_and_short(attempt: object) -> None:
    for feedback in (DOUBLE.check(attempt), ValueExercise(160, {128: text("x")}, HINTS, text("yes")).check(attempt)):
        assert feedback.status == "wrong"
        assert len(feedback.words) < 1000


def test_stopping_an_endless_attempt_stops() -> None:
    def endless(n: int) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DOUBLE.check(endless)


def test_a_choice_taken_back_leaves_no_words() -> None:
    quiz, vote = Quiz([question()]), Vote(text("?"), [(text("one"), 1.0), (text("two"), 2.0)])
    quiz.answer(1, 1)
    quiz._radios[0].value = None
    assert quiz._feedback[0].value == ""
    assert quiz.answers == [None]
    vote.choose(1)
    vote._buttons.value = None
    assert "one" not in vote._noted.value


def test_an_attempt_that_changes_its_arguments_spoils_no_case() -> None:
    total = FunctionExercise(
        reference=lambda values: sum(values),
        cases=[{"values": [1, 2]}, {"values": [3]}],
        mistakes=[],
        hints=DOUBLE.hints,
        done=DOUBLE.done,
    )

    def emptying(values: list[int]) -> int:
        found = sum(values)
        values.clear()
        return found

    assert total.check(emptying).status == "right"
    assert total.check(lambda values: sum(values)).status == "right"
    assert total.cases == [{"values": [1, 2]}, {"values": [3]}]
