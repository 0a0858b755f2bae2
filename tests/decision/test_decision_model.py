"""Q3's calculator: conditions decide, bytes are kept; a condition nobody checked decides nothing."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib import use_language
from lessons_lib.base.text import Text
from lessons_lib.decision import model
from lessons_lib.decision.model import Condition, Evidence, Status, decide, fusion_decision

CONDITIONS = ("semantics_match", "shape_supported", "onchip_fit", "backend_lowered")
SEEN = Text(zh="看到了", en="seen")

anything = st.builds(
    Evidence,
    st.sampled_from(model.CONDITIONS),
    st.sampled_from(model.STATUSES),
    st.just(SEEN),
    st.sampled_from(["NumPy", "a compiler", Text(zh="公式", en="a formula")]),
)


def seen(condition: Condition, status: Status) -> Evidence:
    return Evidence(condition, status, SEEN, "test")


def everything(status: Status) -> list[Evidence]:
    return [seen(condition, status) for condition in model.CONDITIONS]


@pytest.mark.parametrize("answers", list(product([True, False], repeat=4)), ids=str)
def test_the_failures_are_the_false_conditions_in_their_order(answers: tuple[bool, ...]) -> None:
    failures = [name for name, answer in zip(CONDITIONS, answers, strict=True) if not answer]
    expected = {"stated_conditions_met": failures == [], "failures": failures, "extra_reorder_bytes": 0}
    assert fusion_decision(*answers) == expected
    assert fusion_decision(**dict(zip(CONDITIONS, answers, strict=True))) == expected


def test_the_case_of_the_course_text() -> None:
    assert fusion_decision(True, False, True, True, 0)["failures"] == ["shape_supported"]


@given(st.integers(min_value=0, max_value=2**80), st.tuples(*[st.booleans()] * 4))
def test_layout_bytes_never_change_the_verdict(reorder_bytes: int, answers: tuple[bool, ...]) -> None:
    result = fusion_decision(*answers, reorder_bytes)
    assert result["extra_reorder_bytes"] == reorder_bytes
    assert {**result, "extra_reorder_bytes": 0} == fusion_decision(*answers)


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("value", [1, 0, "True", None, 1.0], ids=repr)
def test_a_condition_is_a_bool(name: str, value: Any) -> None:
    arguments = {**dict.fromkeys(CONDITIONS, True), name: value}
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} 的类型.*\n{name} has the wrong type") as caught:
        fusion_decision(**arguments)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [-1, True, 0.0, "0", None, float("nan")], ids=repr)
def test_reorder_bytes_is_a_natural_number(value: Any) -> None:
    pattern = rf"(?s)^参数 reorder_bytes .*{re.escape(repr(value))}.*\nreorder_bytes "
    with pytest.raises(ValueError, match=pattern) as caught:
        fusion_decision(True, True, True, True, value)
    assert ("type" in str(caught.value)) == (value != -1)


# -- evidence ---------------------------------------------------------------------------------------------------


@given(st.lists(anything))
def test_nothing_is_met_while_something_is_unchecked(evidence: list[Evidence]) -> None:
    decision = decide(evidence)
    assert tuple(decision.statuses) == CONDITIONS
    for condition, status in decision.statuses.items():
        told = {item.status for item in evidence if item.condition == condition}
        assert status == ("fail" if "fail" in told else "pass" if told == {"pass"} else "not_checked")
    named = {status: [c for c in CONDITIONS if decision.statuses[c] == status] for status in model.STATUSES}
    assert list(decision.failures) == named["fail"]
    assert list(decision.unchecked) == named["not_checked"]
    assert decision.outcome == ("refused" if named["fail"] else "open" if named["not_checked"] else "met")
    assert (decision.outcome == "met") <= (not decision.unchecked and not decision.failures)


@given(st.lists(anything), st.integers(min_value=0, max_value=2**80))
def test_fusion_decision_speaks_once_all_four_are_checked(evidence: list[Evidence], reorder_bytes: int) -> None:
    decision = decide(evidence, reorder_bytes)
    assert decision.outcome == decide(evidence).outcome, "bytes never change the outcome"
    if decision.unchecked:
        assert decision.stated is None
    else:
        answers = [status == "pass" for status in decision.statuses.values()]
        assert decision.stated == fusion_decision(*answers, reorder_bytes)
        assert decision.stated["stated_conditions_met"] is (decision.outcome == "met")
    assert decision.reorder_bytes == reorder_bytes


@given(st.lists(anything), st.randoms())
def test_the_order_of_the_evidence_does_not_matter(evidence: list[Evidence], random: Any) -> None:
    shuffled = list(evidence)
    random.shuffle(shuffled)
    assert decide(shuffled).statuses == decide(evidence).statuses


@given(st.lists(anything), anything)
def test_more_evidence_only_fills_a_silence_or_takes_away(evidence: list[Evidence], more: Evidence) -> None:
    before, after = decide(evidence).statuses, decide([*evidence, more]).statuses
    if any(item.condition == more.condition for item in evidence):
        weight = model._BY_WEIGHT.index
        assert weight(after[more.condition]) >= weight(before[more.condition])
    else:
        assert after[more.condition] == more.status
    assert all(after[name] == before[name] for name in model.CONDITIONS if name != more.condition)


def test_the_three_outcomes_in_words() -> None:
    assert decide([]).outcome == "open"
    assert decide(everything("pass")).outcome == "met"
    shape = decide([*everything("pass"), seen("shape_supported", "fail")])
    assert (shape.outcome, shape.failures) == ("refused", ("shape_supported",))
    assert shape.stated == fusion_decision(True, False, True, True)
    assert str(shape.words) == "Refused: shape supported failed."
    gap = decide([*everything("pass"), seen("onchip_fit", "not_checked")])
    assert (gap.outcome, gap.unchecked, gap.stated) == ("open", ("onchip_fit",), None)
    assert str(gap.words) == "Open, not checked yet: fits on chip."
    use_language("zh")
    assert str(gap.words) == "未定：片上放得下还没有核对。"
    assert str(shape.words) == "不成立：形状支持不通过。"


def test_a_checked_failure_refuses_though_others_are_unchecked() -> None:
    decision = decide([seen("onchip_fit", "fail")])
    assert decision.outcome == "refused"
    assert decision.unchecked == ("semantics_match", "shape_supported", "backend_lowered")
    assert decision.stated is None, "fusion_decision would call the unchecked ones false"


def test_the_rows_show_every_piece_and_every_condition() -> None:
    rows = decide([seen("onchip_fit", "pass"), seen("onchip_fit", "fail")]).rows()
    assert [str(row[0]) for row in rows] == [
        "same meaning",
        "shape supported",
        "fits on chip",
        "fits on chip",
        "backend lowered it",
    ]
    assert [str(row[1]) for row in rows] == ["not checked", "not checked", "fail", "fail", "not checked"]
    assert rows[2][2:] == (SEEN, "test")
    assert rows[0][2:] == ("", "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("condition", "speed"),
        ("condition", None),
        ("status", True),
        ("status", "unknown"),
        ("observation", "only one language"),
        ("observation", None),
        ("source", " "),
        ("source", None),
        ("source", 3),
    ],
)
def test_bad_evidence_is_refused_by_name(name: str, value: Any) -> None:
    arguments: dict[str, Any] = {
        "condition": "onchip_fit",
        "status": "pass",
        "observation": SEEN,
        "source": "test",
        name: value,
    }
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        Evidence(**arguments)


def test_decide_refuses_what_is_no_evidence() -> None:
    bad: Any = [seen("onchip_fit", "pass"), ("onchip_fit", "pass")]
    with pytest.raises(ValueError, match=r"(?s)^参数 evidence\[1\] .*tuple.*\nevidence\[1\] "):
        decide(bad)
    with pytest.raises(ValueError, match="evidence has the wrong type"):
        decide("pass")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reorder_bytes must be at least 0"):
        decide([], -1)
