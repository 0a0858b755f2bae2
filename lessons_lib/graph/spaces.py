"""Row axes and in-row axes: which elements of a tensor one block of a row kernel holds.

A reduction splits the axes of what it reads in two: those it keeps count the *rows*, those it reduces lie *in the row*.
``Flags`` says it axis by axis (``True``: a row axis), ``structure`` brings it to a form that a reshape does not change:
axes of extent 1 dropped, neighbours of one kind merged, a row axis by its extent, an in-row stretch as ``None``. A
softmax over the last axis of ``[8, 128, 512]`` and one over that of ``[1024, 512]`` both have ``(1024, None)``; column
sums of a square matrix have ``(None, n)``, and are not mistaken for row sums.
"""

from __future__ import annotations

from itertools import combinations
from math import prod

Shape = tuple[int, ...]
Flags = tuple[bool, ...]
Structure = tuple[int | None, ...]

_MAX_GUESSED_RANK = 12  # beyond it there are too many ways to try; whoever builds the graph states the axes


def structure(shape: Shape, flags: Flags) -> Structure:
    """The canonical form of a shape whose row axes are flagged ``True``."""
    form: list[int | None] = []
    for extent, row in zip(shape, flags, strict=True):
        if extent == 1:
            continue
        if not row:
            if not form or form[-1] is not None:
                form.append(None)
        elif form and form[-1] is not None:
            form[-1] *= extent
        else:
            form.append(extent)
    return tuple(form)


def rows_alone(form: Structure) -> Structure:
    """The structure of a tensor with one value a row: all row axes, merged."""
    rows = row_count(form)
    return () if rows == 1 else (rows,)


def row_count(form: Structure) -> int:
    """How many rows a structure has."""
    return prod(extent for extent in form if extent is not None)


def row_flags(rank: int, axes: tuple[int, ...]) -> Flags:
    """The flags of what a reduction over ``axes`` (none of them negative) reads."""
    return tuple(axis not in axes for axis in range(rank))


def broadcasts_to(shape: Shape, target: Shape) -> bool:
    """Whether ``shape`` broadcasts to ``target`` by the usual rule: aligned at the last axis, 1 stretches."""
    return len(shape) <= len(target) and all(
        extent in (1, wanted) for extent, wanted in zip(reversed(shape), reversed(target), strict=False)
    )


def aligned(shape: Shape, flags: Flags, target: Shape) -> tuple[bool | None, ...]:
    """The flags of a tensor that broadcasts to ``target``, by the target's axes; ``None`` where it stretches.

    Axes of extent 1 in the target say nothing either: ``None``.
    """
    lead = len(target) - len(shape)
    return tuple(
        None if axis < lead or shape[axis - lead] == 1 else flags[axis - lead] for axis in range(len(target))
    )


def refolded(shape: Shape, flags: Flags, target: Shape) -> Flags | None:
    """The flags after a reshape to ``target``; ``None`` where a new axis would mix row and in-row elements."""
    if prod(shape) == 0 or prod(shape) != prod(target):
        return None
    stretches: list[list[int]] = []  # (extent, flag), merged
    for extent, row in zip(shape, flags, strict=True):
        if extent == 1:
            continue
        if stretches and stretches[-1][1] == row:
            stretches[-1][0] *= extent
        else:
            stretches.append([extent, row])
    result, position = [], 0
    for extent in target:
        if extent == 1:
            result.append(False)
        elif stretches[position][0] % extent:
            return None
        else:
            result.append(bool(stretches[position][1]))
            stretches[position][0] //= extent
            position += stretches[position][0] == 1
    return tuple(result)


def moved_in_row(before: Shape, flags: Flags, axes: tuple[int, ...], after: Shape) -> Flags | None:
    """The flags after elements moved along ``axes``; ``None`` where they may have left their row.

    A slice, a concatenation, a gather or a permutation along in-row axes stays in the row. One axis may vanish, as
    ``select`` makes it.
    """
    if any(flags[axis] and before[axis] != 1 for axis in axes):
        return None
    if len(before) == len(after):
        kept = all(old == new for old, new, row in zip(before, after, flags, strict=True) if row)
        return flags if kept else None
    if len(before) == len(after) + 1 and len(axes) == 1:
        rest = (*flags[: axes[0]], *flags[axes[0] + 1 :])
        return rest if (*before[: axes[0]], *before[axes[0] + 1 :]) == after else None
    return None


def reduced_axes(before: Shape, after: Shape) -> tuple[int, ...] | None:
    """The axes that a reduction from one shape to the other reduces; ``None`` where the shapes leave it open."""
    if len(before) == len(after):
        kept = all(new in (1, old) for old, new in zip(before, after, strict=True))
        return tuple(a for a, old in enumerate(before) if old != after[a]) if kept else None
    missing = len(before) - len(after)
    if missing < 0 or len(before) > _MAX_GUESSED_RANK:
        return None
    fits = [
        axes
        for axes in combinations(range(len(before)), missing)
        if tuple(extent for axis, extent in enumerate(before) if axis not in axes) == after
    ]
    readings = {structure(before, row_flags(len(before), axes)) for axes in fits}
    return fits[0] if len(readings) == 1 else None
