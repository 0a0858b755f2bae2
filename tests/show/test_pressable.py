"""A picture that can be pressed: which presses arrive, once each, and what happens without anywidget."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from lessons_lib.show import pressable
from lessons_lib.show.pressable import pressable_view

anywidget = pytest.importorskip("anywidget")


@pytest.fixture
def view() -> Any:
    made = pressable_view(300)
    assert made is not None
    return made


@pytest.fixture
def without_anywidget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    pressable._view_class.cache_clear()
    yield
    pressable._view_class.cache_clear()


def presses_of(view: Any) -> list[tuple[str, int]]:
    seen: list[tuple[str, int]] = []
    view.on_press(lambda kind, number: seen.append((kind, number)))
    return seen


def test_each_press_arrives_once_though_the_last_ones_go_along(view: Any) -> None:
    seen = presses_of(view)
    view.presses = ["edge:12:1-1"]
    view.presses = ["edge:12:1-1", "edge:12:1-2"]
    view.presses = ["edge:12:1-1", "edge:12:1-2", "op:3:1-3", "edge:0:1-4"]
    assert seen == [("edge", 12), ("edge", 12), ("op", 3), ("edge", 0)]


def test_presses_of_two_views_of_one_picture_all_arrive(view: Any) -> None:
    seen = presses_of(view)
    view.presses = ["edge:1:100-1"]
    view.presses = ["edge:2:50-1"]  # another page, whose clock is behind
    assert seen == [("edge", 1), ("edge", 2)]


@pytest.mark.parametrize(
    "entry", ["", "edge", "edge:", "edge:x:1", "edge:-1:1", "edge:1.5:1", "node:1:1", "op:²:1", "op:9999999999:1"]
)
def test_what_is_no_press_is_let_pass(view: Any, entry: str) -> None:
    seen = presses_of(view)
    view.presses = [entry, "op:1:2-1"]
    assert seen == [("op", 1)]


def test_only_so_many_presses_are_remembered(view: Any) -> None:
    seen = presses_of(view)
    for number in range(500):
        view.presses = [f"edge:{n}:1-{n}" for n in range(max(0, number - 19), number + 1)]
    assert [number for _, number in seen] == list(range(500))
    assert len(view._answered) < 500


def test_without_anywidget_there_is_no_view(without_anywidget: None) -> None:
    assert pressable_view() is None


def test_the_library_loads_without_loading_anywidget() -> None:
    code = "import sys, lessons_lib.show.pressable, lessons_lib.graph.canvas; sys.exit('anywidget' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_s_part_asks_no_network_and_evaluates_nothing() -> None:
    code = files("lessons_lib.show").joinpath("pressable.js").read_text(encoding="utf-8")
    for word in ("http", "fetch", "eval", "import(", "Function(", "document.write", "outerHTML"):
        assert word not in code
    assert code.count("innerHTML") == 1
