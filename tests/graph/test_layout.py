"""The layout: nothing overlaps, nothing leaves the card, nothing depends on a grouping."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from graph_builders import Builder, chain, llama, random_graph, rmsnorm
from hypothesis import given, settings, strategies as st

from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.picture.channels import Crossing, assign_tracks, spread_out
from lessons_lib.graph.picture.folding import Folding, fold
from lessons_lib.graph.picture.layout import Box, Layout, Point, layout_of
from lessons_lib.graph.recorded import recorded_block, recorded_names
from lessons_lib.show.measure import CARD_WIDTH

pytestmark = pytest.mark.once


def fresh(graph: OpGraph) -> OpGraph:
    """The same graph, with nothing remembered."""
    return OpGraph.from_json(graph.to_json())


def all_boxes(layout: Layout) -> dict[str, Box]:
    """Every box that may be drawn at one time; a tensor's capsule and its box in memory share a place unless apart."""
    boxes = {f"op {name}": box for name, box in layout.ops.items()}
    boxes |= {f"next {name}": box for name, box in layout.nexts.items()}
    boxes |= {f"again {index}": box for index, box in layout.again.items()}
    boxes |= {f"input {number}": place.box for number, place in enumerate(layout.inputs)}
    for name, place in layout.tensors.items():
        boxes[f"memory {name}"] = place.memory
        if place.apart:
            boxes[f"capsule {name}"] = place.capsule
    return boxes


def assert_nothing_overlaps(layout: Layout) -> None:
    boxes = sorted(all_boxes(layout).items(), key=lambda item: item[1].top)
    for (one, a), (other, b) in combinations(boxes, 2):
        if b.top >= a.bottom:
            continue
        assert not a.overlaps(b), (one, other)
    for name, box in boxes:
        assert box.left >= 8, name
        assert box.right <= CARD_WIDTH - 8, name
        assert box.top >= 130, name
        assert box.bottom <= layout.height, name


def all_ways(layout: Layout) -> list[tuple[Point, ...]]:
    ways = [way for route in layout.edges.values() for way in (route.memory, route.chip)]
    return ways + [points for place in layout.inputs for _, points in place.reads]


def assert_lines_keep_clear(layout: Layout) -> None:
    """Every line is horizontal or vertical and meets boxes at its ends only."""
    boxes = list(all_boxes(layout).values())
    for way in all_ways(layout):
        for (a, b), (c, d) in pairwise(way):
            assert a == c or b == d, way
            line = Box(min(a, c), min(b, d), abs(a - c), abs(b - d))
            for box in boxes:
                inner = Box(box.left + 0.5, box.top + 0.5, box.width - 1, box.height - 1)
                crossed = (
                    line.left < inner.right
                    and inner.left < line.right
                    and line.top < inner.bottom
                    and inner.top < line.bottom
                )
                starts = way[0] in ((a, b), (c, d)) and inner.top < way[0][1] <= box.bottom
                assert not crossed or starts, (way, box)


ZOO = recorded_names()


@pytest.mark.parametrize("name", ZOO)
def test_every_block_of_the_zoo_has_room(name: str) -> None:
    layout = layout_of(recorded_block(name).core)
    assert_nothing_overlaps(layout)
    assert_lines_keep_clear(layout)


@pytest.mark.parametrize("name", ZOO)
def test_every_block_of_the_zoo_is_complete(name: str) -> None:
    graph = recorded_block(name).core
    layout = layout_of(graph)
    assert set(layout.ops) == set(graph.launching)
    assert set(layout.edges) == set(range(len(graph.edges)))
    read = {graph.wiring.tensor_names[read.root] for reads in graph.wiring.reads for read in reads}
    drawn = {tensor for place in layout.inputs for tensor in place.tensors}
    assert drawn == {tensor for tensor in graph.inputs if tensor in read and graph.tensor(tensor).bytes > 0}


@pytest.mark.parametrize("name", ["softmax", "lstm_cell", "cross_entropy", "conv_bn_relu"])
def test_every_block_keeps_a_modest_height(name: str) -> None:
    graph = recorded_block(name).core
    layout = layout_of(graph)
    rows = {box.top for box in layout.ops.values()}
    assert (layout.height - 150) / len(rows) < 120


def test_edges_lead_from_their_tensor_to_their_reader() -> None:
    graph = recorded_block("swiglu_mlp").core
    layout = layout_of(graph)
    for index, route in layout.edges.items():
        edge = graph.edges[index]
        place, reader = layout.tensors[edge.tensor], layout.ops[edge.consumer]
        for way, box in ((route.memory, place.memory), (route.chip, place.capsule)):
            assert box.left <= way[0][0] <= box.right
            assert reader.left <= way[-1][0] <= reader.right
            assert way[-1][1] == reader.top
        assert place.memory.top > layout.ops[edge.producer].bottom


def test_readers_lie_below_what_they_read() -> None:
    for seed in range(5):
        graph = random_graph(seed, 30)
        layout = layout_of(graph)
        for edge in graph.edges:
            assert layout.ops[edge.consumer].top > layout.ops[edge.producer].bottom


def test_a_layout_is_remembered_and_always_the_same() -> None:
    graph = recorded_block("lstm_cell").core
    assert layout_of(graph) is layout_of(graph)
    assert layout_of(fresh(graph)) == layout_of(fresh(graph))


def test_what_is_too_small_to_count_gets_no_box() -> None:
    layout = layout_of(rmsnorm(8, 8))  # its weight has no bytes
    assert [place.tensors for place in layout.inputs] == [("x",)]


def test_many_inputs_of_one_operator_share_a_box() -> None:
    build = Builder()
    parts = [build.input(f"part{index}", 8, 8) for index in range(30)]
    build.op("cat", "injective", parts, (240, 8), axes=(0,))
    layout = layout_of(build.graph("cat"))
    assert_nothing_overlaps(layout)
    assert {tensor for place in layout.inputs for tensor in place.tensors} == set(parts)
    assert max(len(place.tensors) for place in layout.inputs) > 1


def test_a_far_tensor_is_drawn_again_above_its_reader() -> None:
    graph = llama(1)
    layout = layout_of(graph)
    assert layout.again
    for index, box in layout.again.items():
        reader = layout.ops[graph.edges[index].consumer]
        assert 0 < reader.top - box.bottom < 80
        assert layout.edges[index].chip[0][1] <= box.bottom


@pytest.mark.parametrize("count", [60, 200])
def test_a_large_graph_has_room(count: int) -> None:
    layout = layout_of(random_graph(7, count))
    assert_nothing_overlaps(layout)
    assert_lines_keep_clear(layout)
    assert layout.height / count < 120


def test_a_chain_is_one_straight_line() -> None:
    layout = layout_of(chain(6, 100))
    assert len({box.x for box in layout.ops.values()}) == 1
    assert all(len({x for x, _ in route.chip}) == 1 for route in layout.edges.values())


def test_a_folded_model_shows_one_layer_in_a_frame() -> None:
    graph = llama(5)
    folding = fold(graph)
    layout = layout_of(graph, folding)
    assert set(layout.ops) == set(folding.shown)
    assert set(layout.nexts) == {"l1.norm1.cast", "l1.add1"}
    assert set(layout.edges) == set(folding.shown_edges)
    assert_nothing_overlaps(layout)
    frame = layout.folds[0].box
    for box in (*layout.ops.values(), *layout.nexts.values()):
        assert frame.left < box.left
        assert box.right < frame.right
        assert frame.top < box.top
        assert box.bottom < frame.bottom


def test_folded_and_unfolded_layouts_of_one_graph_do_not_mix() -> None:
    graph = llama(3)
    whole, folded = layout_of(graph), layout_of(graph, fold(graph))
    assert len(whole.ops) == 3 * len(folded.ops)
    everything = Folding(graph.launching, (), tuple(range(len(graph.edges))))
    assert layout_of(graph, everything) is whole


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 45))
def test_random_graphs_have_room(seed: int, count: int) -> None:
    layout = layout_of(random_graph(seed, count))
    assert_nothing_overlaps(layout)
    assert_lines_keep_clear(layout)


@given(
    st.lists(st.tuples(st.floats(-500, 1500), st.floats(0.1, 10), st.floats(0, 60)), min_size=1, max_size=12),
    st.floats(0, 100),
    st.floats(400, 700),
)
def test_positions_keep_their_order_their_gaps_and_their_ends(
    items: list[tuple[float, float, float]], low: float, high: float
) -> None:
    wished, weights, gaps = zip(*items, strict=True)
    found = spread_out(wished, weights, gaps, low, high)
    needed = sum(gaps[1:])
    shrunk = min(1.0, (high - low) / needed) if needed else 1.0
    for (a, b), gap in zip(pairwise(found), gaps[1:], strict=True):
        assert b - a >= gap * shrunk - 1e-6
    assert found[0] >= low - 1e-6
    assert found[-1] <= high + 1e-6


def test_positions_that_fit_stay_where_they_are() -> None:
    assert spread_out([10, 60, 200], [1, 1, 1], [0, 20, 20], 0, 300) == [10, 60, 200]
    assert spread_out([50, 50], [1, 1], [0, 20], 0, 300) == [40, 60]
    assert spread_out([50, 50], [3, 1], [0, 20], 0, 300) == [45, 65]


@given(st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), max_size=14))
def test_wires_on_one_track_do_not_touch(pairs: list[tuple[int, int]]) -> None:
    crossings = [Crossing((10.0 * a,), 10.0 * b) for a, b in pairs]
    tracks, count = assign_tracks(crossings)
    assert max(tracks, default=0) <= max(0, count - 1)
    for (one, a), (other, b) in combinations(list(enumerate(crossings)), 2):
        if tracks[one] == tracks[other] and not a.straight and not b.straight:
            assert a.high < b.low or b.high < a.low


def test_wires_that_need_not_cross_do_not() -> None:
    """Two wires to the right: the one that starts farther right goes along the upper track."""
    tracks, count = assign_tracks([Crossing((0.0,), 100.0), Crossing((50.0,), 150.0)])
    assert count == 2
    assert tracks[1] < tracks[0]
