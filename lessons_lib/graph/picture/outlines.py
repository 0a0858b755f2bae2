"""The outline of a kernel: one closed line around its operators and what stays on chip between them, and nothing else.

An outline is the union of rectangles: operators and capsules with a margin, and corridors along the lines between them.
Operators that share only what they read are joined by a thin corridor that goes around all other boxes.

Pure: the standard library and this package only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

from lessons_lib.graph.picture.layout import Box, Layout, Point

AROUND_OP, AROUND_CAPSULE = 7.0, 4.0
CORRIDOR, NECK = 6.0, 3.5  # half as wide as a corridor along a line, and as one that only joins
_MOST_REMEMBERED = 4000
_LONGEST_JOINT = 420.0  # pixels; parts farther apart stay apart, each with the kernel's number
_BEND = 30.0  # a corner of a joining corridor costs as much as so many pixels
_Spot = tuple[int, float]  # a street, and where on it


@dataclass(frozen=True)
class Outline:
    """A kernel's outline.

    Args:
        pieces: the rectangles whose union it is.
        loops: its border, holes included; the inside lies to the right of the way.
        starts: for each of its parts, the first operator's box. There is more than one part where operators that share
            what they read stand far apart, or where what passes between them is drawn again.
    """

    pieces: tuple[Box, ...]
    loops: tuple[tuple[Point, ...], ...]
    starts: tuple[Box, ...]


def outline_of(layout: Layout, ops: Sequence[str], edges: Sequence[int], tensors: Sequence[str]) -> Outline:
    """The outline of a kernel; remembered as long as the layout lives, for most stay as they are from press to press.

    Args:
        ops: its operators that are drawn, in topological order; edges: those within it.
        tensors: those that stay on chip for a reader in it.
    """
    known: dict[tuple[tuple[str, ...], tuple[int, ...]], Outline] = layout.__dict__.setdefault("_outlines", {})
    key = tuple(ops), tuple(edges)
    if key not in known:
        if len(known) >= _MOST_REMEMBERED:
            known.clear()
        pieces = _kernel_pieces(layout, ops, edges, tensors)
        loops = _without_empty_holes(union_loops(pieces), _all_boxes(layout))
        boxes = [layout.ops[name] for name in ops if name in layout.ops]
        known[key] = Outline(tuple(pieces), tuple(map(tuple, loops)), tuple(_first_boxes(loops, boxes)))
    return known[key]


def _all_boxes(layout: Layout) -> list[Box]:
    """Everything but lines."""
    places = [*layout.ops.values(), *layout.nexts.values(), *layout.again.values()]
    memory = [box for place in layout.tensors.values() for box in (place.memory, place.capsule)]
    return [*places, *memory, *(given.box for given in layout.inputs)]


def _kernel_pieces(layout: Layout, ops: Collection[str], edges: Sequence[int], tensors: Sequence[str]) -> list[Box]:
    """The rectangles whose union is a kernel."""
    boxes = [box for place in (layout.ops, layout.nexts) for name, box in place.items() if name in ops]
    pieces = [box.grown(AROUND_OP) for box in boxes]
    for tensor in tensors:
        place = layout.tensors[tensor]
        pieces.append(place.capsule.grown(AROUND_CAPSULE))
        above = place.capsule.top - _WAY_UP
        pieces.append(Box(place.link - CORRIDOR, above, 2 * CORRIDOR, _WAY_UP))
        pieces += corridor([(place.link, place.capsule.y), (place.capsule.x, place.capsule.y)], CORRIDOR)
        pieces += _bridges([box for box in boxes if 0 < place.capsule.top - box.bottom < _WAY_UP], place.capsule)
    for edge in edges:
        way = layout.edges[edge].chip
        pieces += corridor(way, CORRIDOR)
        if edge in layout.again:
            pieces.append(layout.again[edge].grown(AROUND_CAPSULE - 2))
    for tensor in tensors:
        capsule = layout.tensors[tensor].capsule
        below = [strip.top for strip in layout.strips if strip.top > capsule.bottom]
        ways = [layout.edges[edge].chip for edge in edges if layout.edges[edge].chip[0][1] == capsule.bottom]
        ends = [
            way[-1]
            for way in ways
            if capsule.left <= way[0][0] <= capsule.right and way[-1][1] < min(below, default=math.inf)
        ]
        pieces += _bridges(
            [box for box in boxes if any(box.top == y and box.left <= x <= box.right for x, y in ends)], capsule
        )
    return pieces + list(_joints(layout, boxes, pieces))


_WAY_UP = 24.0  # from a capsule up into its operator


def _bridges(boxes: Iterable[Box], capsule: Box) -> Iterator[Box]:
    """Between a capsule and operators right above or below it: as wide as both, so that the outline has no waist."""
    for box in boxes:
        left = max(box.left - AROUND_OP, capsule.left - AROUND_CAPSULE)
        right = min(box.right + AROUND_OP, capsule.right + AROUND_CAPSULE)
        if right - left > 2 * CORRIDOR:
            top, bottom = min(box.bottom, capsule.bottom), max(box.top, capsule.top)
            yield Box(left, top, right - left, bottom - top)


def corridor(points: Sequence[Point], half: float) -> list[Box]:
    """Rectangles along a line of horizontal and vertical pieces."""
    return [
        Box(min(a, c) - half, min(b, d) - half, abs(a - c) + 2 * half, abs(b - d) + 2 * half)
        for (a, b), (c, d) in pairwise(points)
    ]


# -- joining what is apart ------------------------------------------------------------------------------------


def _joints(layout: Layout, boxes: Sequence[Box], pieces: Sequence[Box]) -> Iterator[Box]:
    """Corridors between the parts of a kernel that no line joins."""
    parts = _parts(pieces)
    if len(parts) < 2:
        return
    of = [[box for box in boxes if any(box.overlaps(piece) for piece in part)] for part in parts]
    waiting = [part for part in of if part]
    joined = waiting.pop(0)
    while waiting:
        way = _way(layout, joined, [box for part in waiting for box in part])
        if way is None:
            return
        points, reached = way
        yield from corridor(points, NECK)
        index = next(i for i, part in enumerate(waiting) if reached in part)
        joined = [*joined, *waiting.pop(index)]


def _parts(pieces: Sequence[Box]) -> list[list[Box]]:
    """Pieces that touch each other, together."""
    home = list(range(len(pieces)))

    def root(index: int) -> int:
        while home[index] != index:
            home[index] = home[home[index]]
            index = home[index]
        return index

    near: list[int] = []  # pieces that may reach down to the next one
    for index in sorted(range(len(pieces)), key=lambda i: pieces[i].top):
        piece = pieces[index]
        near = [other for other in near if pieces[other].bottom > piece.top]
        for other in near:
            if piece.overlaps(pieces[other]):
                home[root(index)] = root(other)
        near.append(index)
    parts: dict[int, list[Box]] = {}
    for index, piece in enumerate(pieces):
        parts.setdefault(root(index), []).append(piece)
    return list(parts.values())


def _way(layout: Layout, sources: Sequence[Box], targets: Sequence[Box]) -> tuple[list[Point], Box] | None:
    """The shortest way along streets and passages from one of the sources to one of the targets (Dijkstra)."""
    ends = {spot: box for box in targets for spot in _doors(layout, box)}
    xs = _stops(layout, [*sources, *targets])
    heap: list[tuple[float, int, _Spot, _Spot | None, Box]] = []
    for box in sources:
        for spot in _doors(layout, box):
            heappush(heap, (abs(layout.streets[spot[0]] - box.y), len(heap), spot, None, box))
    before: dict[_Spot, tuple[_Spot | None, Box]] = {}
    count = len(heap)
    while heap:
        length, _, spot, previous, start = heappop(heap)
        if length > _LONGEST_JOINT:
            return None
        if spot in before:
            continue
        before[spot] = previous, start
        if spot in ends:
            return _points(layout, before, spot, ends[spot]), ends[spot]
        for other, step in _steps(layout, xs, spot):
            if other not in before:
                count += 1
                heappush(heap, (length + step, count, other, spot, start))
    return None


def _doors(layout: Layout, box: Box) -> list[_Spot]:
    """The spots right above and below an operator."""
    near = [street for street, y in enumerate(layout.streets) if abs(y - box.y) < box.height]
    return [(street, round(box.x, 1)) for street in near]


def _stops(layout: Layout, boxes: Sequence[Box]) -> list[list[float]]:
    """Where one may stop on each street."""
    xs: list[set[float]] = [set() for _ in layout.streets]
    for street, passage in enumerate(layout.passages):
        xs[street].update(passage)
        xs[street + 1].update(passage)
    for box in boxes:
        for street, x in _doors(layout, box):
            xs[street].add(x)
    return [sorted(found) for found in xs]


def _steps(layout: Layout, xs: Sequence[Sequence[float]], spot: _Spot) -> Iterator[tuple[_Spot, float]]:
    street, x = spot
    for other in xs[street]:
        if other != x:
            yield (street, other), abs(other - x) + _BEND
    for after in (street - 1, street + 1):
        between = min(street, after)
        if 0 <= after < len(layout.streets) and x in layout.passages[between]:
            yield (after, x), abs(layout.streets[after] - layout.streets[street])


def _points(layout: Layout, before: dict[_Spot, tuple[_Spot | None, Box]], spot: _Spot, end: Box) -> list[Point]:
    points = [(spot[1], end.y), (spot[1], layout.streets[spot[0]])]
    start, at = before[spot][1], before[spot][0]
    while at is not None:
        points.append((at[1], layout.streets[at[0]]))
        at = before[at][0]
    return [*points, (points[-1][0], start.y)]


# -- the union ------------------------------------------------------------------------------------------------


def union_loops(pieces: Sequence[Box]) -> list[list[Point]]:
    """The border of the union of rectangles, as closed loops; the inside lies to the right of the way."""
    rows = _scan(pieces)
    ahead: dict[Point, list[Point]] = {}
    for (top, bottom, spans), above in zip(rows, [[], *(spans for _, _, spans in rows)], strict=False):
        for left, right in spans:
            ahead.setdefault((left, bottom), []).append((left, top))
            ahead.setdefault((right, top), []).append((right, bottom))
        _level(ahead, top, above, spans)
    if rows:
        _level(ahead, rows[-1][1], rows[-1][2], [])
    return [_straightened(loop) for loop in _followed(ahead)]


def _without_empty_holes(loops: Sequence[Sequence[Point]], things: Sequence[Box]) -> list[Sequence[Point]]:
    """The loops but for holes with nothing in them."""
    return [loop for loop in loops if _area(loop) > 0 or any(_bounds(loop).overlaps(thing) for thing in things)]


def _first_boxes(loops: Sequence[Sequence[Point]], boxes: Sequence[Box]) -> list[Box]:
    """The first box in each part of an outline."""
    parts = [_bounds(loop) for loop in loops if _area(loop) > 0]
    parts.sort(key=lambda part: part.width * part.height)  # a part may lie in another one's bay
    found: dict[int, Box] = {}
    for box in boxes:
        part = next((index for index, part in enumerate(parts) if part.overlaps(box)), None)
        if part is not None:
            found.setdefault(part, box)
    return list(found.values())


def _area(loop: Sequence[Point]) -> float:
    """Twice the area within a loop; below 0 for a hole."""
    return sum(a * d - c * b for (a, b), (c, d) in pairwise([*loop, loop[0]]))


def _bounds(loop: Sequence[Point]) -> Box:
    xs, ys = [x for x, _ in loop], [y for _, y in loop]
    return Box(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))


def _scan(pieces: Sequence[Box]) -> list[tuple[float, float, list[tuple[float, float]]]]:
    """The union in rows: top, bottom, and what is inside from left to right."""
    edges = [tuple(round(v, 1) for v in (p.left, p.top, p.right, p.bottom)) for p in pieces]
    ys = sorted({y for _, top, _, bottom in edges for y in (top, bottom)})
    spans: dict[float, list[tuple[float, float]]] = {y: [] for y in ys}
    place = {y: index for index, y in enumerate(ys)}
    for left, top, right, bottom in edges:
        for index in range(place[top], place[bottom]):
            spans[ys[index]].append((left, right))
    return [(top, bottom, _merged(spans[top])) for top, bottom in pairwise(ys)]


def _merged(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for left, right in sorted(spans):
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def _level(
    ahead: dict[Point, list[Point]],
    y: float,
    above: Sequence[tuple[float, float]],
    below: Sequence[tuple[float, float]],
) -> None:
    """The horizontal pieces of the border at one height: to the right where the inside begins, to the left where it ends."""
    xs = sorted({x for span in (*above, *below) for x in span})
    for left, right in pairwise(xs):
        middle = (left + right) / 2
        over = any(a < middle < b for a, b in above)
        under = any(a < middle < b for a, b in below)
        if under and not over:
            ahead.setdefault((left, y), []).append((right, y))
        elif over and not under:
            ahead.setdefault((right, y), []).append((left, y))


def _followed(ahead: dict[Point, list[Point]]) -> Iterator[list[Point]]:
    """The loops that the pieces of the border make; where two touch in a corner, each turns right."""
    for start in sorted(ahead):
        while ahead[start]:
            loop, at, came = [start], ahead[start].pop(0), start
            while at != start:
                way = min((_turn(came, at, to), to) for to in ahead[at])[1]
                ahead[at].remove(way)
                loop.append(at)
                came, at = at, way
            yield loop


def _turn(came: Point, at: Point, to: Point) -> float:
    """Below 0 for a turn to the right on a screen, where y grows downwards."""
    return -((at[0] - came[0]) * (to[1] - at[1]) - (at[1] - came[1]) * (to[0] - at[0]))


def _straightened(loop: Sequence[Point]) -> list[Point]:
    """The loop's corners only."""
    around = [loop[-1], *loop, loop[0]]
    return [
        at
        for before, at, after in zip(around, around[1:], around[2:], strict=False)
        if not (before[0] == at[0] == after[0] or before[1] == at[1] == after[1])
    ]
