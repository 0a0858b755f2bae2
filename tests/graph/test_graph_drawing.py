"""The picture of a graph: what is drawn once, what a kernel encloses, what comes out escaped, and its text twin."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from graph_builders import Builder, attention, chain, fan_out, llama, random_graph, rmsnorm, softmax
from hypothesis import given, settings, strategies as st

from lessons_lib.base.gpus import A100, Gpu
from lessons_lib.base.language import use_language
from lessons_lib.base.units import MIB, format_bytes
from lessons_lib.graph.grouping import Grouping, cost, eager, fuse, greedy, grouping_of, marks, unfused
from lessons_lib.graph.opgraph import GraphOp, OpGraph
from lessons_lib.graph.picture.drawing import draw_graph, operator_table
from lessons_lib.graph.picture.folding import Folding, fold
from lessons_lib.graph.picture.layout import Box, Layout, Point, layout_of
from lessons_lib.graph.picture.moves import moves_of
from lessons_lib.graph.picture.outlines import Outline, outline_of, union_loops
from lessons_lib.graph.recorded import recorded_block, recorded_names

pytestmark = pytest.mark.once

SVG = "{http://www.w3.org/2000/svg}"
READ, WRITE, ON_CHIP = "#0072B2", "#D55E00", "#009E73"
HOSTILE = '<img src=x onerror=alert(1)>" onmouseover="x'


@pytest.fixture(autouse=True)
def _language() -> Iterator[None]:
    yield
    use_language("en")


def drawn(graph: OpGraph, grouping: Grouping, **more: object) -> ElementTree.Element:
    return ElementTree.fromstring(svg_of(graph, grouping, **more))


def svg_of(graph: OpGraph, grouping: Grouping, gpu: Gpu = A100, **more: object) -> str:
    found = marks(graph, grouping, gpu)
    return draw_graph(graph, grouping, cost(graph, grouping, gpu), marks=found, **more)  # type: ignore[arg-type]


def words_in(root: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def strokes(root: ElementTree.Element, colour: str, *, dashed: bool = False) -> list[float]:
    """Widths of the lines of a colour, those of the legend (the first one of each) left out."""
    lines = [path for path in root.iter(f"{SVG}path") if path.get("stroke") == colour and path.get("fill") == "none"]
    return [float(line.get("stroke-width", "1")) for line in lines if bool(line.get("stroke-dasharray")) == dashed][
        0 if dashed else 1 :
    ]


def zoo_groupings() -> list[tuple[str, str, Callable[[], tuple[OpGraph, Grouping, Gpu]]]]:
    def made(name: str, state: str) -> tuple[OpGraph, Grouping, Gpu]:
        block = recorded_block(name)
        graph, gpu = block.core, block.gpu
        known = {
            "unfused": lambda: unfused(graph),
            "eager": lambda: eager(graph),
            "greedy": lambda: greedy(graph, gpu),
            "compiler": lambda: block.compiler.grouping,
            "best": lambda: block.best.grouping,
            "by hand": lambda: block.by_hand.grouping,
        }
        return graph, known[state](), gpu

    states = ("unfused", "eager", "greedy", "compiler", "best", "by hand")
    return [(n, s, lambda n=n, s=s: made(n, s)) for n in recorded_names() for s in states]  # type: ignore[misc]


ZOO = zoo_groupings()
each_state = pytest.mark.parametrize("make", [m for _, _, m in ZOO], ids=[f"{n}-{s}" for n, s, _ in ZOO])


def kernel_outline(graph: OpGraph, layout: Layout, group: tuple[str, ...]) -> Outline:
    """As the drawing asks for it."""
    members = set(group)
    edges = [i for i, e in enumerate(graph.edges) if e.producer in members and e.consumer in members]
    tensors = list(dict.fromkeys(graph.edges[index].tensor for index in edges))
    return outline_of(layout, [name for name in layout.ops if name in members], edges, tensors)


def is_inside(loops: tuple[tuple[Point, ...], ...], x: float, y: float) -> bool:
    """Even-odd rule."""
    crossings = 0
    for loop in loops:
        for (a, b), (c, d) in zip(loop, (*loop[1:], loop[0]), strict=True):
            crossings += a == c and min(b, d) <= y < max(b, d) and a > x
    return crossings % 2 == 1


def corners(box: Box) -> list[Point]:
    return [(x, y) for x in (box.left, box.x, box.right) for y in (box.top, box.y, box.bottom)]


# -- outlines -------------------------------------------------------------------------------------------------


@each_state
def test_an_outline_holds_its_operators_and_no_other(make: Callable[[], tuple[OpGraph, Grouping, Gpu]]) -> None:
    graph, grouping, _ = make()
    layout = layout_of(graph)
    for group in grouping.groups:
        outline = kernel_outline(graph, layout, group)
        for name, box in layout.ops.items():
            if name in group:
                assert all(is_inside(outline.loops, x, y) for x, y in corners(box)), name
            else:
                assert not any(box.overlaps(piece) for piece in outline.pieces), name
                assert not any(is_inside(outline.loops, x, y) for x, y in corners(box)), name


@each_state
def test_an_outline_holds_what_stays_on_chip_and_no_memory(
    make: Callable[[], tuple[OpGraph, Grouping, Gpu]],
) -> None:
    graph, grouping, _ = make()
    layout = layout_of(graph)
    home = {name: index for index, group in enumerate(grouping.groups) for name in group}
    through_memory = {e.tensor for e in graph.edges if home[e.producer] != home[e.consumer]}
    written = through_memory | {graph.root_of(tensor) for tensor in graph.outputs}
    for group in grouping.groups:
        outline = kernel_outline(graph, layout, group)
        for place in layout.inputs:
            assert not any(place.box.overlaps(piece) for piece in outline.pieces), place.tensors
        for tensor in written & set(layout.tensors):
            memory = layout.tensors[tensor].memory
            assert not any(memory.overlaps(piece) for piece in outline.pieces), tensor
        for index, edge in enumerate(graph.edges):
            if edge.producer in group and edge.consumer in group:
                capsule = layout.tensors[edge.tensor].capsule
                assert is_inside(outline.loops, capsule.x, capsule.y)
                for x, y in layout.edges[index].chip:
                    assert is_inside(outline.loops, x + 0.1, y - 0.1)


@each_state
def test_a_kernel_of_the_zoo_is_one_piece(make: Callable[[], tuple[OpGraph, Grouping, Gpu]]) -> None:
    graph, grouping, _ = make()
    layout = layout_of(graph)
    for group in grouping.groups:
        linked = kernel_outline(graph, layout, group)
        if not layout.again:
            assert len(linked.starts) == 1, group


def test_two_operators_that_share_an_input_only_are_joined_around_a_third() -> None:
    build = Builder()
    build.input("x", 64, 64)
    for name in ("a", "b", "c"):
        build.op(name, "elementwise", ["x"])
    graph = build.graph("a", "b", "c")
    layout = layout_of(graph)
    left, middle, right = sorted(layout.ops, key=lambda name: layout.ops[name].left)
    outline = kernel_outline(graph, layout, (left, right))
    assert len(outline.starts) == 1
    assert not any(layout.ops[middle].overlaps(piece) for piece in outline.pieces)
    assert len(outline.loops) == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.booleans())
def test_outlines_of_random_graphs_hold_their_operators_and_no_other(seed: int, count: int, by_hand: bool) -> None:
    graph = random_graph(seed, count)
    layout, grouping = layout_of(graph), greedy(graph, A100, by_hand=by_hand)
    for group in grouping.groups:
        outline = kernel_outline(graph, layout, group)
        for name, box in layout.ops.items():
            inside = [is_inside(outline.loops, x, y) for x, y in corners(box)]
            assert all(inside) if name in group else not any(inside), name


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 2, *[st.integers(1, 6)] * 2), min_size=1, max_size=9))
def test_a_union_covers_exactly_its_rectangles(boxes: list[tuple[int, int, int, int]]) -> None:
    loops = tuple(tuple(loop) for loop in union_loops([Box(*box) for box in boxes]))
    for x in range(20):
        for y in range(20):
            at = (x + 0.5, y + 0.5)
            covered = any(a <= at[0] < a + w and b <= at[1] < b + h for a, b, w, h in boxes)
            assert is_inside(loops, *at) == covered


# -- what is drawn --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["softmax", "swiglu_mlp", "lstm_cell", "cross_entropy", "masked_attention"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_live_picture_has_each_operator_and_edge_once(name: str, language: str) -> None:
    use_language(language)
    graph = recorded_block(name).core
    root = drawn(graph, recorded_block(name).best.grouping, live=True)
    ops = [part.get("data-op") for part in root.iter() if part.get("data-op")]
    edges = [part.get("data-edge") for part in root.iter() if part.get("data-edge")]
    assert sorted(map(int, ops)) == list(range(len(graph.launching)))  # type: ignore[arg-type]
    assert sorted(map(int, edges)) == list(range(len(graph.edges)))  # type: ignore[arg-type]
    assert root.get("role") == "group"
    for part in root.iter():
        if part.get("data-op") or part.get("data-edge"):
            assert part.get("tabindex") == "0"
            assert part.get("role") == "button"
            assert part.get("aria-label")
            assert part.get("aria-pressed") in ("true", "false")


def test_a_static_picture_has_nothing_to_press() -> None:
    graph = softmax(64, 64)
    root = drawn(graph, unfused(graph))
    assert root.get("role") == "img"
    attributes = {key for part in root.iter() for key in part.attrib}
    assert not {key for key in attributes if key.startswith("data-") or key in ("tabindex", "aria-pressed", "class")}
    assert not list(root.iter(f"{SVG}style"))
    assert [element.get("role") for element in root.iter() if element.get("role")] == ["img"]


def test_an_edge_is_pressed_if_its_ends_share_a_kernel() -> None:
    graph = chain(3, MIB)
    grouping = fuse(graph, unfused(graph), "f0", "f1")
    root = drawn(graph, grouping, live=True)
    pressed = {part.get("data-edge"): part.get("aria-pressed") for part in root.iter() if part.get("data-edge")}
    assert pressed == {"0": "true", "1": "false"}


def test_a_focused_edge_has_a_wide_line_to_hit() -> None:
    graph = chain(2, MIB)
    root = drawn(graph, unfused(graph), live=True)
    (edge,) = [part for part in root.iter() if part.get("data-edge")]
    assert next(path.get("class") for path in edge.iter(f"{SVG}path")) == "hit"
    style = "".join(element.text or "" for element in root.iter(f"{SVG}style"))
    assert ":focus" in style
    assert edge.get("class") in style


def test_unfused_tensors_are_written_and_read_and_fused_ones_are_neither() -> None:
    graph = chain(4, MIB)
    apart, together = drawn(graph, unfused(graph)), drawn(graph, grouping_of(graph, [graph.launching]))
    assert (len(strokes(apart, WRITE)), len(strokes(apart, READ))) == (4, 4)
    assert (len(strokes(together, WRITE)), len(strokes(together, READ))) == (1, 1)
    kept = [
        path
        for path in together.iter(f"{SVG}path")
        if path.get("stroke") == ON_CHIP and path.get("stroke-width") == "4"
    ]
    assert len(kept) == 1 + 2 * 3  # legend; down to each capsule and on from it
    assert [words for words in words_in(together) if re.fullmatch(r"f\d", words)].count("f0") == 2  # box and capsule
    assert "f0 1 MiB" not in " ".join(words_in(together))


def test_a_kept_tensor_that_is_fused_is_both_on_chip_and_written() -> None:
    graph = rmsnorm(64, 64, residual=True, keep_sum=True)
    root = drawn(graph, grouping_of(graph, [graph.launching]))
    assert words_in(root).count("output8 KiB") == 2
    assert words_in(root).count("add") == 2


def test_a_kernel_reads_what_two_of_its_operators_need_once() -> None:
    build = Builder()
    build.input("x", 64, 64)
    build.op("a", "elementwise", ["x"])
    build.op("b", "elementwise", ["x", "a"])
    graph = build.graph("b")
    root = drawn(graph, grouping_of(graph, [("a", "b")]))
    assert len(strokes(root, READ)) == 1
    assert len(strokes(root, READ, dashed=True)) == 2  # its entry in the legend is one of them
    assert len(strokes(drawn(graph, unfused(graph)), READ)) == 3


def test_a_kernel_reads_back_for_two_of_its_operators_once() -> None:
    build = Builder()
    build.op("sort", "opaque", [build.input("x", 64, 64)])
    build.op("a", "elementwise", ["sort"])
    build.op("b", "elementwise", ["sort", "a"])
    graph = build.graph("b")
    root = drawn(graph, grouping_of(graph, [("a", "b")]))
    assert len(strokes(root, READ)) == 2  # x, and sort for a
    assert len(strokes(root, READ, dashed=True)) == 2  # in the legend, and sort for b


def test_arrows_are_wider_for_more_bytes() -> None:
    build = Builder()
    build.input("x", 4, size=64 * MIB)
    for index, size in enumerate((64 * MIB, 16 * MIB, MIB, 1024)):
        build.op(f"f{index}", "elementwise", [f"f{index - 1}" if index else "x"], size=size)
    graph = build.graph("f3")
    widths = strokes(drawn(graph, unfused(graph)), WRITE)
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 4
    assert all(1.5 <= width <= 8 for width in widths)


def test_one_scale_holds_for_all_groupings_of_a_graph() -> None:
    graph = recorded_block("swiglu_mlp").core
    before, after = svg_of(graph, unfused(graph)), svg_of(graph, recorded_block("swiglu_mlp").best.grouping)
    line = re.compile(r'<path d="([^"]*)" fill="none" stroke="#D55E00" stroke-width="([^"]*)"')
    widths = dict(line.findall(before))
    assert all(widths[way] == width for way, width in line.findall(after))


def test_nothing_moves_between_groupings_but_what_changed() -> None:
    block = recorded_block("lstm_cell")
    pictures = [svg_of(block.core, grouping) for grouping in (unfused(block.core), block.best.grouping)]
    places = []
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        boxes = [
            (r.get("x"), r.get("y"), r.get("width"))
            for r in root.iter(f"{SVG}rect")
            if r.get("stroke") == "#1b1f24" and r.get("height") == "28"
        ]
        places.append(boxes)
    assert places[0] == places[1]
    assert len(places[0]) == len(block.core.launching)
    sizes = {re.search(r'viewBox="[^"]*"', picture).group() for picture in pictures}  # type: ignore[union-attr]
    assert len(sizes) == 1


def test_the_same_picture_comes_out_every_time() -> None:
    graph = recorded_block("moe_router").core
    again = OpGraph.from_json(graph.to_json())
    assert svg_of(graph, unfused(graph), live=True) == svg_of(again, unfused(again), live=True)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_numbers_stand_at_the_top_with_their_arithmetic(language: str) -> None:
    use_language(language)
    graph = fan_out(256 * MIB)
    spent = cost(graph, unfused(graph), A100)
    said = " ".join(words_in(drawn(graph, unfused(graph))))
    assert "3" in said
    read, write, total = (format_bytes(n) for n in (spent.read_bytes, spent.write_bytes, spent.total_bytes))
    assert re.search(rf"{read} \+ \w+ {write} = {total}", said)


def test_a_group_by_hand_is_dashed_and_says_so() -> None:
    graph = attention(128, 64)
    whole = grouping_of(graph, [graph.launching])
    assert marks(graph, whole, A100)
    root = drawn(graph, whole)
    kernels = [path for path in root.iter(f"{SVG}path") if path.get("fill-rule") == "evenodd"]
    assert [bool(path.get("stroke-dasharray")) for path in kernels] == [True]
    assert "by hand or template" in words_in(root)
    assert "by hand" not in words_in(drawn(graph, unfused(graph)))


def test_kernels_carry_their_numbers() -> None:
    graph = chain(5, MIB)
    grouping = fuse(graph, unfused(graph), "f1", "f2")
    words = Counter(words_in(drawn(graph, grouping)))
    assert all(words[str(number)] == 1 for number in range(1, 5))
    assert words["5"] == 0


def test_a_selected_operator_has_a_ring_and_is_pressed() -> None:
    graph = chain(2, MIB)
    rings = [
        [
            r
            for r in drawn(graph, unfused(graph), selected=chosen, live=True).iter(f"{SVG}rect")
            if r.get("stroke") == "#AA4499"
        ]
        for chosen in ((), ("f1",))
    ]
    assert [len(found) for found in rings] == [0, 1]
    root = drawn(graph, unfused(graph), selected=["f1"], live=True)
    pressed = {part.get("data-op"): part.get("aria-pressed") for part in root.iter() if part.get("data-op")}
    assert pressed == {"0": "false", "1": "true"}


def test_no_text_is_smaller_than_12_px_and_none_leaves_the_card() -> None:
    for name in recorded_names():
        graph = recorded_block(name).core
        for text in drawn(graph, unfused(graph)).iter(f"{SVG}text"):
            assert float(text.get("font-size", "0")) >= 12
            assert 20 <= float(text.get("x", "0")) <= 740


# -- names from outside ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_a_hostile_name_comes_out_as_text(live: bool, together: bool) -> None:
    build = Builder(HOSTILE)
    build.input(HOSTILE + "in", 8, 8)
    build.op(HOSTILE, "elementwise", [HOSTILE + "in"])
    build.op("b]]>&amp;\x00\x1b", "elementwise", [HOSTILE])
    graph = build.graph("b]]>&amp;\x00\x1b")
    labelled = replace(graph, ops=(replace(graph.ops[0], label=HOSTILE), *graph.ops[1:]))
    grouping = grouping_of(labelled, [labelled.launching]) if together else unfused(labelled)
    text = svg_of(labelled, grouping, live=live, title=HOSTILE, selected=[HOSTILE], prefix="graph")
    root = ElementTree.fromstring(text)
    assert not list(root.iter("img"))
    assert not list(root.iter(f"{SVG}img"))
    assert not [key for part in root.iter() for key in part.attrib if key.startswith("on")]
    assert "<img" not in text
    assert any(HOSTILE in (title.text or "") for title in root.iter(f"{SVG}title"))
    if live:
        assert any(HOSTILE in part.get("aria-label", "") for part in root.iter())
    assert not [value for part in root.iter() for key, value in part.attrib.items() if key == "id" and "img" in value]


def test_very_long_names_are_shortened_and_keep_their_ends() -> None:
    build = Builder()
    build.input("x" * 300, 8, 8)
    build.op("y" * 300 + "_7", "elementwise", ["x" * 300])
    root = drawn(build.graph("y" * 300 + "_7"), grouping_of(build.graph("y" * 300 + "_7"), []))
    shown = [words for words in words_in(root) if "yy" in words]
    assert shown
    assert all("…" in words and "_7" in words and len(words) < 40 for words in shown)


# -- folded ---------------------------------------------------------------------------------------------------


def test_a_folded_model_draws_one_layer_and_says_how_often() -> None:
    graph = llama(32)
    folding = fold(graph)
    root = drawn(graph, greedy(graph, A100), folding=folding, live=True)
    ops = sorted(int(part.get("data-op", "")) for part in root.iter() if part.get("data-op"))
    edges = sorted(int(part.get("data-edge", "")) for part in root.iter() if part.get("data-edge"))
    assert [graph.launching[index] for index in ops] == list(folding.shown)
    assert edges == sorted(folding.shown_edges)
    assert "× 32" in words_in(root)


def test_an_edge_to_the_next_copy_shows_whether_they_share_a_kernel() -> None:
    graph = llama(4)
    folding = fold(graph)
    index = next(i for i in folding.shown_edges if graph.edges[i].consumer == "l1.norm1.cast")
    states = []
    for grouping in (unfused(graph), fuse(graph, unfused(graph), "l0.add2", "l1.norm1.cast")):
        root = drawn(graph, grouping, folding=folding, live=True)
        states += [part.get("aria-pressed") for part in root.iter() if part.get("data-edge") == str(index)]
    assert states == ["false", "true"]


# -- the text twin --------------------------------------------------------------------------------------------


def assert_adds_up(graph: OpGraph, grouping: Grouping, gpu: Gpu) -> None:
    spent = cost(graph, grouping, gpu)
    moves = moves_of(graph, grouping, spent)
    assert [move.op for move in moves] == [op for group in spent.groups for op in group.ops]
    assert sum(sum(move.reads.values()) for move in moves) == spent.read_bytes
    assert sum(sum(move.writes.values()) for move in moves) == spent.write_bytes
    for number, group in enumerate(spent.groups):
        mine = [move for move in moves if move.kernel == number]
        assert sum(sum(move.reads.values()) for move in mine) == group.read_bytes
        assert sum(sum(move.writes.values()) for move in mine) == group.write_bytes


@each_state
def test_the_bytes_of_all_operators_add_up_to_the_cost(make: Callable[[], tuple[OpGraph, Grouping, Gpu]]) -> None:
    assert_adds_up(*make())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 25), st.booleans())
def test_bytes_add_up_on_random_graphs(seed: int, count: int, multi_pass: bool) -> None:
    graph = random_graph(seed, count)
    assert_adds_up(graph, greedy(graph, A100, by_hand=True, multi_pass=multi_pass), A100)


def test_bytes_that_a_kernel_reads_in_several_passes_add_up() -> None:
    graph = softmax(8, 2**22)  # a row of 16 MiB
    whole = grouping_of(graph, [graph.launching])
    assert cost(graph, whole, A100).groups[0].passes > 1
    assert_adds_up(graph, whole, A100)
    assert any("passes" in words for words in words_in(drawn(graph, whole)))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_table_has_a_row_for_each_operator_and_the_sums(language: str) -> None:
    use_language(language)
    graph = rmsnorm(2048, 4096, residual=True, keep_sum=True)
    grouping = greedy(graph, A100)
    spent = cost(graph, grouping, A100)
    table = operator_table(graph, grouping, spent)
    assert [row[0] for row in table.rows[:-1]] == list(graph.launching)
    assert all(len(row) == len(table.header) for row in table.rows)
    assert list(table.rows[-1][2:5]) == ["1", format_bytes(spent.read_bytes), format_bytes(spent.write_bytes)]
    add = dict(zip(table.header, table.rows[0], strict=True))
    assert list(add.values())[3:] == ["32 MiB", "16 MiB", "add"]
    assert table.plain()


def test_the_table_of_a_folded_model_counts_the_other_copies() -> None:
    graph = llama(4)
    folding: Folding = fold(graph)
    spent = cost(graph, unfused(graph), A100)
    table = operator_table(graph, unfused(graph), spent, folding=folding)
    assert len(table.rows) == len(folding.shown) + 2
    assert "3 × 47" in table.rows[-2][0]
    shown = [m for m in moves_of(graph, unfused(graph), spent) if m.op in folding.shown]
    rest = spent.read_bytes - sum(sum(m.reads.values()) for m in shown)
    assert table.rows[-2][3] == format_bytes(rest)


def test_the_table_escapes_names() -> None:
    op = GraphOp("a", "elementwise", ("x",), ("a",), label=HOSTILE)
    graph = chain(1, MIB)
    graph = replace(graph, ops=(replace(graph.ops[0], label=op.label),))
    html = operator_table(graph, unfused(graph), cost(graph, unfused(graph), A100)).html()
    assert "<img" not in html
