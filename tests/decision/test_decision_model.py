"""Q3's calculator: conditions decide, bytes are kept."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.decision.model import fusion_decision

CONDITIONS = ("semantics_match", "shape_supported", "onchip_fit", "backend_lowered")


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
