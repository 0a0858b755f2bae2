"""Every refusal names the argument, in Chinese and in English."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base import validate

NO_INTEGERS = [True, False, 1.0, "1", None, math.nan, math.inf, Decimal(1), Fraction(1), [1], 1j, b"1"]


def refusal(argument: str, zh: str = "", en: str = "") -> str:
    """A pattern for a message of two lines, Chinese then English, each naming the argument."""
    name = re.escape(argument)
    return rf"(?s)^参数 {name} .*{zh}.*。\n{name} .*{en}.*\.$"


class Seven:
    """An integer that is no ``int``, as NumPy's are."""

    def __int__(self) -> int:
        return 7


Integral.register(Seven)


@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
def test_what_is_no_integer_is_refused_for_its_type(value: object) -> None:
    with pytest.raises(ValueError, match=refusal("n", "类型.*整数", "type.*integer")) as caught:
        validate.require_int("n", value)
    assert type(value).__name__ in str(caught.value)


def test_other_integers_come_back_as_int() -> None:
    number = validate.require_int("n", Seven(), 7, 7)
    assert number == 7
    assert type(number) is int


def test_numpy_integers_come_back_as_int_and_its_other_types_do_not() -> None:
    np = pytest.importorskip("numpy")
    for kind in (np.int8, np.uint16, np.int64, np.uint64):
        number = validate.require_int("n", kind(5))
        assert number == 5
        assert type(number) is int
    for other in (np.float64(5), np.bool_(True), np.array(5), np.array([5, 6])):
        with pytest.raises(ValueError, match=refusal("n", "类型", "type")):
            validate.require_int("n", other)


@given(st.integers(), st.integers(), st.integers(min_value=0))
def test_an_integer_passes_exactly_within_its_bounds(value: int, low: int, width: int) -> None:
    high = low + width
    if low <= value <= high:
        assert validate.require_int("n", value, low, high) == value
        return
    with pytest.raises(ValueError, match=refusal("n", f"{low} 到 {high}", f"between {low} and {high}")) as caught:
        validate.require_int("n", value, low, high)
    assert str(value) in str(caught.value)


def test_a_single_bound_is_told_alone() -> None:
    with pytest.raises(ValueError, match=refusal("n", "不小于 1", "at least 1, got 0")):
        validate.require_int("n", 0, 1)
    with pytest.raises(ValueError, match=refusal("n", "不大于 3", "at most 3, got 4")):
        validate.require_int("n", 4, maximum=3)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_whose_multiples_could_not_be_written_is_refused(sign: int) -> None:
    assert validate.require_int("n", sign * 10**999) == sign * 10**999
    with pytest.raises(ValueError, match=refusal("n", "1000 位", "1000 digits, got <int: 3325 bits>")):
        validate.require_int("n", sign * 10**1000 * 8)


@pytest.mark.parametrize("value", [-(10**5000), 10**5000], ids=["negative", "positive"])
def test_a_number_python_refuses_to_write_is_still_refused_by_name(value: int) -> None:
    with pytest.raises(ValueError, match=refusal("n", "bits", "bits")):
        validate.require_int("n", value, 0, 9)
    with pytest.raises(ValueError, match=refusal("x", "有限", "finite")):
        validate.require_real("x", value)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ValueError) as caught:
        validate.require_int("n", list(range(10**5)))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", [True, "1", None, 1j])
def test_what_is_no_number_is_refused_for_its_type(value: object) -> None:
    with pytest.raises(ValueError, match=refusal("x", "类型", "type")):
        validate.require_real("x", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_must_be_finite(value: float) -> None:
    with pytest.raises(ValueError, match=refusal("x", "有限", "finite")):
        validate.require_real("x", value)


def test_the_bounds_of_a_number() -> None:
    assert validate.require_real("x", Fraction(1, 2), 0.5) == 0.5
    with pytest.raises(ValueError, match=refusal("x", "不小于 0", "at least 0")):
        validate.require_real("x", -0.1, 0)
    with pytest.raises(ValueError, match=refusal("x", "大于 0", "greater than 0")):
        validate.require_real("x", 0, above=0)


@pytest.mark.parametrize("value", [0, 1, "True", None, 1.0])
def test_only_true_and_false_are_bool(value: object) -> None:
    assert validate.require_bool("b", True) is True
    assert validate.require_bool("b", False) is False
    with pytest.raises(ValueError, match=refusal("b", "类型", "type")):
        validate.require_bool("b", value)


def test_a_choice_lists_the_others() -> None:
    validate.require_choice("c", 2, (1, 2))
    with pytest.raises(ValueError, match=refusal("c", "1, 2", "1, 2")):
        validate.require_choice("c", 3, iter((1, 2)))


@pytest.mark.parametrize("value", ["ab", b"ab", None, 5])
def test_a_string_is_no_list(value: Any) -> None:
    assert validate.require_items("c", iter([1, "a"])) == (1, "a")
    with pytest.raises(ValueError, match=refusal("c", "类型", "type")):
        validate.require_items("c", value)


def test_a_name_is_a_string_with_something_in_it() -> None:
    assert validate.require_name("s", "x") == "x"
    with pytest.raises(ValueError, match=refusal("s", "类型", "type")):
        validate.require_name("s", 3)
    with pytest.raises(ValueError, match=refusal("s", "非空", "non-empty")):
        validate.require_name("s", " ")


def test_what_cannot_be_compared_or_written_is_refused_all_the_same() -> None:
    class Hostile:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError

        __hash__ = None  # type: ignore[assignment]

        def __repr__(self) -> str:
            raise RuntimeError

    for value in (Hostile(), [10**5000]):
        with pytest.raises(ValueError, match="colour"):
            validate.require_choice("colour", value, ["red", "green"])
