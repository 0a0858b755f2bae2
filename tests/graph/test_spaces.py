"""Rows and what lies in them: held to an oracle that follows every element."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lessons_lib.graph.spaces import (
    aligned,
    broadcasts_to,
    moved_in_row,
    reduced_axes,
    refolded,
    row_count,
    row_flags,
    rows_alone,
    structure,
)

shapes = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4).map(tuple)


def rows_of(shape: tuple[int, ...], flags: tuple[bool, ...]) -> np.ndarray:
    """For each element, the number of its row: its index along the row axes alone, counted off in order."""
    kept = tuple(extent if row else 1 for extent, row in zip(shape, flags, strict=True))
    return np.broadcast_to(np.arange(prod(kept)).reshape(kept), shape)


def flags_for(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[bool, ...]]:
    return st.tuples(*[st.booleans()] * len(shape))


@given(shapes.flatmap(lambda shape: st.tuples(st.just(shape), flags_for(shape), st.permutations(shape))))
def test_a_reshape_keeps_every_element_in_its_row_or_is_refused(
    case: tuple[tuple[int, ...], tuple[bool, ...], list[int]],
) -> None:
    shape, flags, factors = case
    target = tuple(factors)
    found = refolded(shape, flags, target)
    if found is not None:
        assert (rows_of(target, found) == rows_of(shape, flags).reshape(target)).all()
        assert structure(target, found) == structure(shape, flags)
    else:  # then no flags at all would do
        before = rows_of(shape, flags).reshape(target)
        assert not any(
            (rows_of(target, guess) == before).all() for guess in product([True, False], repeat=len(target))
        )


@given(shapes.flatmap(lambda shape: st.tuples(st.just(shape), flags_for(shape))))
def test_a_structure_knows_its_rows_and_forgets_extents_of_one(
    case: tuple[tuple[int, ...], tuple[bool, ...]],
) -> None:
    shape, flags = case
    form = structure(shape, flags)
    assert row_count(form) == len(np.unique(rows_of(shape, flags)))
    assert structure((1, *shape, 1), (True, *flags, False)) == form
    assert rows_alone(form) == structure((row_count(form),), (True,))


def test_row_sums_and_column_sums_of_a_square_differ() -> None:
    assert structure((4, 4), row_flags(2, (1,))) == (4, None)
    assert structure((4, 4), row_flags(2, (0,))) == (None, 4)
    assert structure((2, 3, 4), row_flags(3, (2,))) == structure((6, 9), row_flags(2, (1,))) == (6, None)
    assert structure((2, 3, 4), row_flags(3, (0, 2))) == (None, 3, None)


@pytest.mark.parametrize(
    ("shape", "target", "fits"),
    [
        ((3,), (2, 3), True),
        ((2, 1), (2, 3), True),
        ((2,), (2, 3), False),
        ((1, 2, 3), (2, 3), False),
        ((), (4,), True),
    ],
)
def test_broadcasting_is_numpys(shape: tuple[int, ...], target: tuple[int, ...], fits: bool) -> None:
    assert broadcasts_to(shape, target) is fits


def test_stretched_axes_carry_no_flag() -> None:
    assert aligned((4, 1), (True, False), (4, 8)) == (True, None)
    assert aligned((4,), (True,), (4, 4)) == (None, True)


@pytest.mark.parametrize(
    ("axes", "after", "flags"),
    [
        ((1,), (4, 8), (True, False)),
        ((1,), (4, 3), (True, False)),  # a slice of each row
        ((1,), (4,), (True,)),  # one element of each row
        ((0,), (4, 8), None),
        ((0, 1), (8, 4), None),
        ((1,), (3, 8), None),
    ],
)
def test_what_moves_within_rows_stays_there(
    axes: tuple[int, ...], after: tuple[int, ...], flags: tuple[bool, ...] | None
) -> None:
    assert moved_in_row((4, 8), (True, False), axes, after) == flags


@pytest.mark.parametrize(
    ("before", "after", "axes"),
    [
        ((4, 8), (4, 1), (1,)),
        ((4, 8), (4,), (1,)),
        ((4, 8), (8,), (0,)),
        ((4, 8), (), (0, 1)),
        ((4, 4), (4,), None),
        ((4, 4), (1, 4), (0,)),
        ((1, 1, 4), (1, 4), (0,)),  # either axis of extent 1: the same rows
        ((4, 8), (3, 1), None),
        ((4,), (4, 1), None),
    ],
)
def test_reduced_axes_follow_from_the_shapes_or_are_left_open(
    before: tuple[int, ...], after: tuple[int, ...], axes: tuple[int, ...] | None
) -> None:
    assert reduced_axes(before, after) == axes
