"""The court's logic, without NumPy: how answers follow from plans, and how a ruling is compared."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib import use_language
from lessons_lib.base.roofline import Interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB
from lessons_lib.decision.court import (
    ANSWERS,
    CASES,
    PROFIT_FLOOR,
    QUESTIONS,
    TOLERANCE_WORDS,
    TOLERANCES,
    Answer,
    Exhibit,
    Findings,
    Plan,
    Ruling,
    combined,
    compare,
    learner_ruling,
    ledger_answer,
    legal_answer,
    profit_answer,
    require_case,
)
from lessons_lib.decision.ledger import layout_ledger
from lessons_lib.decision.model import CONDITIONS, Condition, Evidence, Status, decide

answers = st.sampled_from(ANSWERS)
rulings = st.builds(Ruling, answers, answers, answers)
WORDS = Text(zh="话", en="words")


def seen(condition: Condition, status: Status) -> Evidence:
    return Evidence(condition, status, WORDS, "test")


def plan(legal: bool, profitable: Answer, bit_equal: bool) -> Plan:
    return Plan(WORDS, (seen("semantics_match", "pass" if legal else "fail"),), profitable, bit_equal)


def findings(*plans: Plan) -> Findings:
    why = {question: Text(zh=f"因为 {question}", en=f"because {question}") for question in QUESTIONS}
    return Findings("tile", plans, Exhibit((WORDS,), ((WORDS,),), WORDS), why, {})


def test_profit_needs_the_whole_interval_on_one_side_of_the_floor() -> None:
    assert profit_answer(Interval(PROFIT_FLOOR, 2.0)) == "yes"
    assert profit_answer(Interval(1.044, 1.049)) == "no"
    assert profit_answer(Interval(1.0, PROFIT_FLOOR)) == "depends"


def test_a_ledger_answers_by_its_calls() -> None:
    assert ledger_answer(layout_ledger(8 * MIB, 8 * MIB, "each_call")) == "no"
    assert ledger_answer(layout_ledger(32 * MIB, 8 * MIB, "once")) == "depends"
    assert ledger_answer(layout_ledger(0, 8 * MIB, "once")) == "yes"


def test_legal_needs_the_meaning_checked_and_nothing_failed() -> None:
    assert legal_answer(decide([])) == "depends"
    assert legal_answer(decide([seen("onchip_fit", "pass")])) == "depends"
    assert legal_answer(decide([seen("semantics_match", "pass")])) == "yes"
    for condition in CONDITIONS:
        assert legal_answer(decide([seen("semantics_match", "pass"), seen(condition, "fail")])) == "no"


@given(st.lists(answers, min_size=1, max_size=4))
def test_plans_that_differ_make_it_depend(given_answers: list[Answer]) -> None:
    expected = given_answers[0] if len(set(given_answers)) == 1 else "depends"
    assert combined(given_answers) == expected


def test_the_ruling_follows_from_the_plans() -> None:
    assert findings(plan(True, "yes", False)).ruling == Ruling("yes", "yes", "no")
    assert findings(plan(True, "no", True), plan(False, "no", True)).ruling == Ruling("depends", "no", "yes")
    assert findings(plan(False, "depends", False), plan(False, "yes", True)).ruling == Ruling(
        "no", "depends", "depends"
    )


@given(rulings, st.booleans(), answers, st.booleans())
def test_exactly_the_answers_that_differ_are_explained(
    given_ruling: Ruling, legal: bool, profitable: Answer, bit_equal: bool
) -> None:
    found = findings(plan(legal, profitable, bit_equal))
    hearing = compare(found, given_ruling)
    mine, theirs = given_ruling.by_question(), found.ruling.by_question()
    assert [difference.question for difference in hearing.differences] == [
        question for question in QUESTIONS if mine[question] != theirs[question]
    ]
    assert hearing.standing == ("agrees" if given_ruling == found.ruling else "differs")
    for difference in hearing.differences:
        assert (difference.given, difference.found) == (mine[difference.question], theirs[difference.question])
        assert str(difference.words).endswith(f"because {difference.question}")
    said = [str(words) for words in hearing.words]
    assert len(said) == 4, "the verdict, then every question once"
    assert all(sum(f"because {question}" in words for words in said) == 1 for question in QUESTIONS)
    assert sum(words.startswith("✗") for words in said) == len(hearing.differences)


def test_a_ruling_in_words() -> None:
    hearing = compare(findings(plan(True, "yes", False)), Ruling("no", "yes", "no"))
    assert [str(words) for words in hearing.words] == [
        "Verdict. Legal? Yes. Profitable? Yes. Bit-equal? No.",
        "✗ Legal? You ruled “no”; the evidence says “yes”. because legal",
        "✓ Profitable? Correct: yes. because profitable",
        "✓ Bit-equal? Correct: no. because bit_equal",
    ]
    use_language("zh")
    assert str(hearing.words[0]) == "判决：合法吗？是。划算吗？是。逐位相等吗？否。"
    assert str(hearing.words[1]) == "✗ 合法吗？你判“否”，证据说“是”。因为 legal"


def test_a_ruling_is_whole_or_open() -> None:
    assert learner_ruling("yes", "no", "depends") == Ruling("yes", "no", "depends")
    assert learner_ruling(None, "no", "depends") is None
    assert learner_ruling("yes", None, "depends") is None
    assert learner_ruling("yes", "no", None) is None


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("value", [True, "maybe", "", 1, ["yes"]], ids=repr)
def test_a_bad_answer_is_refused_by_name_even_while_others_are_open(name: str, value: Any) -> None:
    arguments = {**dict.fromkeys(QUESTIONS), name: value}
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} must be one of: 'yes', 'no', 'depends'"):
        learner_ruling(**arguments)
    with pytest.raises(ValueError, match=rf"\n{name} must be one of"):
        Ruling(**{**dict.fromkeys(QUESTIONS, "yes"), name: value})


@pytest.mark.parametrize("case", ["gem", None, 3, ""], ids=repr)
def test_an_unknown_case_is_refused_with_those_there_are(case: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)^参数 case .*\ncase must be one of: 'rounding', .*'fan_out'"):
        require_case(case)


def test_a_case_asks_three_questions_and_has_a_reason_for_each() -> None:
    assert list(CASES) == ["rounding", "reorder", "tile", "softmax", "gemm", "fan_out"]
    for name, case in CASES.items():
        assert require_case(name) is case
        assert tuple(case.why) == QUESTIONS
        for why in case.why.values():
            assert fields(why.zh) == fields(why.en), f"{name}: the languages show different numbers"


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_tolerances_are_written_as_they_are() -> None:
    assert {dtype: float(words.removesuffix("%")) / 100 for dtype, words in TOLERANCE_WORDS.items()} == {
        dtype: pytest.approx(tolerance) for dtype, tolerance in TOLERANCES.items()
    }


def test_a_second_table_shows_the_conditions_of_every_plan() -> None:
    table = findings(plan(True, "yes", False), plan(False, "no", True)).conditions
    assert len(table.rows) == 2 * len(CONDITIONS)
    assert all(len(row) == len(table.header) for row in table.rows)
    assert [str(row[2]) for row in table.rows].count("not checked") == 6
