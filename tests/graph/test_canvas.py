"""The canvas without a browser: presses through every door, the same state behind them, words and twins."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from html import unescape
from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree

import ipywidgets as widgets
import pytest
from graph_builders import Builder, chain, fan_out, llama, softmax

from lessons_lib.base.gpus import A100, GPUS, T4
from lessons_lib.base.language import use_language
from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB
from lessons_lib.graph.canvas import GraphCanvas
from lessons_lib.graph.grouping import grouping_of, unfused
from lessons_lib.graph.recorded import recorded_block, recorded_names
from lessons_lib.graph.study import recorded_study
from lessons_lib.graph.workbench import Workbench
from lessons_lib.show import pressable
from lessons_lib.show.live import WIDGET_VIEW

T = 64 * MIB
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def without_anywidget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    pressable._view_class.cache_clear()
    yield
    pressable._view_class.cache_clear()


def parts(widget: Any, kind: type) -> list[Any]:
    """All widgets of a kind within one, in order; what is out of sight is left out."""
    if getattr(widget.layout, "display", None) == "none":
        return []
    found = [widget] if type(widget) is kind else []
    return found + [part for child in getattr(widget, "children", ()) for part in parts(child, kind)]


def button(canvas: GraphCanvas, words: str) -> Any:
    return next(part for part in parts(canvas, widgets.Button) if part.description == words)


def said(canvas: GraphCanvas) -> str:
    """The status line."""
    line = next(part.value for part in parts(canvas, widgets.HTML) if 'role="status"' in part.value)
    return unescape(re.sub("<[^>]*>", "", line))


def click(canvas: GraphCanvas, *parts: str) -> None:
    """Presses on parts of the picture, as the browser reports them."""
    for part in parts:
        click.count += 1  # type: ignore[attr-defined]
        canvas._view.presses = [*canvas._view.presses, f"{part}:1-{click.count}"][-20:]  # type: ignore[attr-defined]


click.count = 0  # type: ignore[attr-defined]

needs_anywidget = pytest.mark.skipif(find_spec("anywidget") is None, reason="anywidget is missing")


# -- pressing -------------------------------------------------------------------------------------------------------


@needs_anywidget
def test_a_press_on_an_edge_fuses_and_picture_words_and_cost_follow() -> None:
    canvas = GraphCanvas(chain(3, T))
    before = canvas._view.svg
    click(canvas, "edge:0")
    assert canvas.grouping == grouping_of(canvas.workbench.graph, [["f0", "f1"]])
    assert canvas.cost.launches == 2
    assert canvas._view.svg != before
    assert said(canvas) == canvas.workbench.message.en
    click(canvas, "edge:0")
    assert canvas.grouping == unfused(canvas.workbench.graph)
    assert "Cut before f1" in said(canvas)


@needs_anywidget
def test_a_press_that_is_refused_says_why_and_leaves_the_picture() -> None:
    block = recorded_block("swiglu_mlp")
    canvas = GraphCanvas(block)
    click(canvas, "edge:0")
    before, grouping = canvas._view.svg, canvas.grouping
    edges = block.core.edges
    triangle = next(i for i, e in enumerate(edges) if (e.producer, e.consumer) == ("_to_copy", "mul"))
    click(canvas, f"edge:{triangle}")
    assert said(canvas).startswith("Not legal, so nothing changed. [cycle]")
    assert (canvas._view.svg, canvas.grouping) == (before, grouping)


@needs_anywidget
def test_pressing_operators_chooses_them_in_turn_and_the_buttons_use_them() -> None:
    canvas = GraphCanvas(fan_out(T))
    names = canvas.workbench.graph.launching
    button(canvas, "fuse or cut").click()
    assert "Choose two different operators" in said(canvas)
    click(canvas, f"op:{names.index('g')}", f"op:{names.index('h')}")
    button(canvas, "why?").click()
    texts = [unescape(re.sub("<[^>]*>", "", part.value)) for part in parts(canvas, widgets.HTML)]
    assert any("g is in kernel" in text for text in texts)
    button(canvas, "fuse or cut").click()
    assert canvas.grouping == grouping_of(canvas.workbench.graph, [["g", "h"]])
    texts = [unescape(re.sub("<[^>]*>", "", part.value)) for part in parts(canvas, widgets.HTML)]
    assert not any("g is in kernel" in text for text in texts)  # that answer is out of date
    click(canvas, f"op:{names.index('f')}")
    first, second = parts(canvas, widgets.Dropdown)
    assert (first.value, second.value) == ("f", "h")


@needs_anywidget
def test_a_press_on_what_is_gone_by_now_is_let_pass() -> None:
    canvas = GraphCanvas(chain(3, T))
    click(canvas, "edge:99", "op:99")
    assert canvas.grouping == unfused(canvas.workbench.graph)


@pytest.mark.parametrize("name", recorded_names())
def test_buttons_instead_of_clicks_do_what_the_picture_does(name: str) -> None:
    by_button = GraphCanvas(name, plain=True)
    bench = Workbench(recorded_block(name).core, A100)
    toggles = parts(by_button, widgets.ToggleButton)
    assert len(toggles) == len(bench.folding.shown_edges)
    for index, toggle in zip(bench.folding.shown_edges, toggles, strict=True):
        toggle.value = not toggle.value
        bench.press_edge(index)
        assert by_button.grouping == bench.grouping
        assert said(by_button) == bench.message.en
        edges = bench.graph.edges
        for i, other in zip(bench.folding.shown_edges, toggles, strict=True):
            together = bench.grouping.index_of(edges[i].producer) == bench.grouping.index_of(edges[i].consumer)
            assert other.value == together
            assert other.description == f"{'●' if together else '○'} {edges[i].producer} → {edges[i].consumer}"


@needs_anywidget
def test_the_check_box_changes_doors_and_keeps_the_state() -> None:
    canvas = GraphCanvas(chain(3, T))
    click(canvas, "edge:0")
    box = next(part for part in parts(canvas, widgets.Checkbox) if part.description == "buttons instead of clicks")
    box.value = True
    first, second = parts(canvas, widgets.ToggleButton)
    assert (first.value, second.value) == (True, False)
    second.value = True
    assert canvas.cost.launches == 1
    box.value = False
    assert parts(canvas, widgets.ToggleButton) == []
    assert canvas._view.svg == canvas._draw(live=True)


def test_without_anywidget_there_are_buttons_and_no_box_to_choose(without_anywidget: None) -> None:
    canvas = GraphCanvas(chain(3, T))
    assert len(parts(canvas, widgets.ToggleButton)) == 2
    assert [part.description for part in parts(canvas, widgets.Checkbox)] == ["table of operators"]


def test_a_cell_can_press_too() -> None:
    canvas = GraphCanvas(chain(3, T), plain=True)
    assert canvas.press("f0", "f1")
    assert not canvas.press("f0", "f0")
    assert canvas.undo()
    assert not canvas.undo()
    with pytest.raises(ValueError, match="nonsense"):
        canvas.press("f0", "nonsense")
    assert canvas.grouping == unfused(canvas.workbench.graph)


# -- there and back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["show the compiler's", "show the best", "show the best by hand", "reset"])
def test_what_a_button_shows_is_taken_back_by_undo(words: str) -> None:
    canvas = GraphCanvas("swiglu_mlp", plain=True)
    canvas.press("mm", "_to_copy")
    mine = canvas.grouping
    button(canvas, words).click()
    assert canvas.grouping != mine
    button(canvas, "undo").click()
    assert canvas.grouping == mine


def test_only_what_is_known_or_differs_can_be_shown() -> None:
    shows = [
        part.description for part in parts(GraphCanvas(chain(3, T)), widgets.Button) if "show" in part.description
    ]
    assert shows == ["show the best"]
    shows = [part.description for part in parts(GraphCanvas("softmax"), widgets.Button) if "show" in part.description]
    assert shows == ["show the compiler's", "show the best"]


def test_what_is_best_can_be_kept_back_until_a_puzzle_is_solved() -> None:
    canvas = GraphCanvas("swiglu_mlp", reveal=False)
    assert not any("show" in part.description for part in parts(canvas, widgets.Button))
    canvas.reveal = True
    assert sum("show" in part.description for part in parts(canvas, widgets.Button)) == 3
    with pytest.raises(ValueError, match="reveal"):
        canvas.reveal = 1  # type: ignore[assignment]


def test_listeners_hear_of_changes_and_of_nothing_else() -> None:
    canvas, heard = GraphCanvas(fan_out(T), recompute=["f"]), list[int]()
    canvas.on_change(lambda: heard.append(canvas.cost.launches))
    canvas.press("f", "g")
    canvas.press("f", "f")
    canvas.recompute("f")
    canvas.undo()
    canvas.show("best")
    canvas.reset()
    canvas.say(Text(zh="你好", en="hello"))
    assert heard == [2, 2, 2, 1, 3]
    assert said(canvas) == "hello"


def test_a_goal_stands_above_and_may_depend_on_the_state() -> None:
    def left(bench: Workbench) -> Text:
        return Text(zh=f"还剩 {bench.cost.launches}", en=f"{bench.cost.launches} left")

    canvas = GraphCanvas(chain(3, T), goal=left)
    assert "3 left" in canvas.children[0].value
    canvas.press("f0", "f1")
    assert "2 left" in canvas.children[0].value
    assert "one &lt;" in GraphCanvas(chain(3, T), goal=Text(zh="一", en="one <")).children[0].value


def test_recompute_has_a_button_and_new_operators_can_be_chosen_and_toggled() -> None:
    canvas = GraphCanvas(fan_out(T), recompute=["f"], plain=True)
    assert len(parts(canvas, widgets.ToggleButton)) == 2
    button(canvas, "compute f again for each reader").click()
    assert canvas.cost.total_bytes == 256 * MIB
    (first, _) = parts(canvas, widgets.Dropdown)
    assert {value for _, value in first.options} == {"f", "f·2", "g", "h"}
    descriptions = [toggle.description for toggle in parts(canvas, widgets.ToggleButton)]
    assert sorted(descriptions) == ["● f → g", "● f·2 → h"]
    button(canvas, "undo").click()
    assert len(first.options) == 3
    button(canvas, "compute f again for each reader").click()
    button(canvas, "compute f again for each reader").click()
    assert "has one reader" in said(canvas)


def test_a_change_through_the_workbench_is_drawn_after_refresh() -> None:
    canvas = GraphCanvas(chain(3, T), plain=True)
    canvas.workbench.press_edge(0)
    canvas.refresh()
    assert parts(canvas, widgets.ToggleButton)[0].value


def test_comparing_puts_the_learner_s_kernels_beside_the_others() -> None:
    canvas = GraphCanvas("swiglu_mlp", plain=True)
    canvas.show("best")
    assert re.search(r"▸ yours +3 +698 MiB", canvas.compare().plain)
    canvas = GraphCanvas(fan_out(T), recompute=["f"], plain=True)
    canvas.recompute("f")
    assert re.search(r"▸ yours +2 +256 MiB", canvas.compare().plain)


# -- twins ----------------------------------------------------------------------------------------------------------


def test_its_twins_are_a_picture_and_a_table_and_the_same_each_time() -> None:
    canvas = GraphCanvas("swiglu_mlp")
    bundle = canvas._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain", WIDGET_VIEW}
    assert "data-edge" not in bundle["image/svg+xml"]
    ElementTree.fromstring(bundle["image/svg+xml"])
    for name in canvas.workbench.graph.launching:
        assert re.search(rf"(^|\s){name}\s", bundle["text/plain"])
    again = GraphCanvas("swiglu_mlp").static_forms()
    assert again == canvas.static_forms()


def test_the_table_is_in_sight_on_demand_and_follows() -> None:
    canvas = GraphCanvas(chain(3, T), plain=True)
    assert not any("<table" in part.value for part in parts(canvas, widgets.HTML))
    box = next(part for part in parts(canvas, widgets.Checkbox) if part.description == "table of operators")
    box.value = True
    (table,) = [part for part in parts(canvas, widgets.HTML) if "<table" in part.value]
    before = table.value
    canvas.press("f0", "f1")
    assert table.value != before


@needs_anywidget
@pytest.mark.parametrize("live", [True, False])
def test_every_edge_and_operator_in_sight_can_be_pressed_in_the_live_picture_only(live: bool) -> None:
    canvas = GraphCanvas("lstm_cell")
    root = ElementTree.fromstring(canvas._draw(live=live))
    pressable_parts = [e for e in root.iter() if {"data-edge", "data-op"} & set(e.attrib)]
    bench = canvas.workbench
    assert len(pressable_parts) == (len(bench.folding.shown_edges) + len(bench.folding.shown) if live else 0)
    for element in pressable_parts:
        assert element.get("role") == "button"
        assert element.get("aria-label")


@needs_anywidget
def test_markup_in_names_is_text_in_every_form() -> None:
    build = Builder(HOSTILE)
    build.op(HOSTILE, "elementwise", [build.input("x", 16, size=T)], size=T)
    build.op('" onfocus="alert(1)', "elementwise", [HOSTILE], size=T)
    build.op("last", "opaque", ['" onfocus="alert(1)'], size=T)
    canvas = GraphCanvas(build.graph("last"), goal=Text(zh=HOSTILE, en=HOSTILE))
    for box in parts(canvas, widgets.Checkbox):
        box.value = True
    for index in range(2):
        canvas._pressed("edge", index)
    canvas._pressed("op", 0)
    canvas._pressed("op", 1)
    button(canvas, "why?").click()
    shown = [canvas._view.svg, canvas._draw(live=False), *(part.value for part in parts(canvas, widgets.HTML))]
    for html in shown:
        assert "<img" not in html
        assert not re.search(r'"\s+onfocus=', html)
    for svg in shown[:2]:
        assert not any(name.startswith("on") for e in ElementTree.fromstring(svg).iter() for name in e.attrib)


# -- what it takes ----------------------------------------------------------------------------------------------------


def test_it_takes_a_graph_a_record_a_study_or_a_name_and_a_gpu_or_its_name() -> None:
    block = recorded_block("softmax")
    for subject in (block, "softmax", recorded_study("softmax")):
        canvas = GraphCanvas(subject, "T4")
        assert canvas.workbench.graph.launching == block.core.launching
        assert canvas.workbench.compiler == block.compiler.grouping
        assert canvas.workbench.gpu is GPUS["T4"]
    assert GraphCanvas(block.core, T4).workbench.compiler is None
    assert GraphCanvas(block.core, compiler=block.compiler).workbench.compiler == block.compiler.grouping


def test_options_reach_the_workbench() -> None:
    graph = softmax(64, 200_000)
    canvas = GraphCanvas(graph, T4, multi_pass=True)
    assert canvas.workbench.set_grouping([graph.launching])


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: GraphCanvas("nonsense"), "name"),
        (lambda: GraphCanvas(3), "subject"),
        (lambda: GraphCanvas(chain(3, T), "A 100"), "gpu"),
        (lambda: GraphCanvas(chain(3, T), plain="yes"), "plain"),  # type: ignore[arg-type]
        (lambda: GraphCanvas(chain(3, T), recompute=["no"]), "no"),
    ],
)
def test_wrong_arguments_are_named_in_both_languages(make: Callable[[], object], word: str) -> None:
    with pytest.raises(ValueError, match=word) as refused:
        make()
    assert re.search("[一-鿿]", str(refused.value))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_word_on_it_is_in_the_edition_s_language(language: str) -> None:
    use_language(language)
    canvas = GraphCanvas("swiglu_mlp", plain=True)
    words = [part.description for kind in (widgets.Button, widgets.Checkbox) for part in parts(canvas, kind)]
    assert all(bool(re.search("[一-鿿]", word)) == (language == "zh") for word in words)
    canvas.press("mm", "_to_copy")
    assert said(canvas) == canvas.workbench.message.text_in(language)  # type: ignore[arg-type]


def test_a_repeated_layer_is_shown_and_offered_once() -> None:
    canvas = GraphCanvas(llama(4), plain=True)
    folding = canvas.workbench.folding
    assert len(parts(canvas, widgets.ToggleButton)) == len(folding.shown_edges) < len(canvas.workbench.graph.edges)
    assert len(parts(canvas, widgets.Dropdown)[0].options) == len(folding.shown)


def test_a_goal_and_a_listener_must_be_what_they_are_used_as() -> None:
    for goal in ("fuse all", 3):
        with pytest.raises(ValueError, match=r"参数 goal.*\ngoal is not valid"):
            GraphCanvas(chain(2, T), goal=goal)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"参数 callback.*\ncallback is not valid"):
        GraphCanvas(chain(2, T)).on_change(3)  # type: ignore[arg-type]
