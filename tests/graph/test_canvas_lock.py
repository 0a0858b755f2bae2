"""The canvas in a workshop: it waits for a guess, one for each graph; puzzles do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graph_builders import Builder

from lessons_lib import GraphCanvas, PuzzlePanel, use_language
from lessons_lib.base.progress import progress_of
from lessons_lib.base.questions import QUESTIONS
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.show import workshop as switch
from lessons_lib.show.gate import GuessGate, LockedError
from lessons_lib.show.workshop import workshop


@pytest.fixture(autouse=True)
def _as_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "own.json"))
    monkeypatch.delenv("LESSONS_WORKSHOP", raising=False)
    monkeypatch.setattr(switch, "_chosen", None)
    yield


def chain(name: str) -> OpGraph:
    made = Builder(name)
    made.op("g", "elementwise", [made.op("f", "elementwise", [made.input("x", 64, 64)])])
    return made.graph("g")


def gate_of(canvas: GraphCanvas) -> GuessGate:
    assert canvas.gate is not None
    return canvas.gate


def values(widget: Any) -> str:
    """What the widget and its parts show."""
    own = "".join(str(getattr(widget, name, "")) for name in ("value", "svg", "description"))
    return own + "".join(values(part) for part in getattr(widget, "children", ()))


@pytest.mark.parametrize("plain", [False, True])
def test_off_nothing_asks(plain: bool) -> None:
    canvas = GraphCanvas(chain("two"), plain=plain)
    assert canvas.gate is None
    assert set(canvas.static_forms()) == {"image/svg+xml", "text/plain"}
    assert "guess" not in values(canvas)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_locked_it_shows_the_question_alone_until_the_guess(language: str, plain: bool) -> None:
    use_language(language)
    workshop(True)
    canvas = GraphCanvas(chain("two"), plain=plain)
    assert set(canvas.static_forms()) == {"text/plain"}
    assert "<svg" not in values(canvas)
    assert canvas._plain_view.value == ""
    assert canvas._view is None or canvas._view.svg == ""
    assert canvas.press("f", "g")
    assert "<svg" not in values(canvas)
    with pytest.raises(LockedError):
        canvas.compare()
    gate_of(canvas).commit("32 KiB")
    shown = values(canvas)
    assert "<svg" in shown
    guess = "你的猜测：32 KiB" if language == "zh" else "Your guess: 32 KiB"
    assert guess in shown
    parts = list(canvas.children)
    assert parts.index(gate_of(canvas).line) == parts.index(canvas._picture) - 1
    assert canvas.static_forms()["text/plain"].startswith(guess)
    assert "yours" in repr(canvas.compare()) or "你的" in repr(canvas.compare())


def test_each_graph_has_a_guess_of_its_own_that_outlives_a_restart() -> None:
    workshop(True)
    gate_of(GraphCanvas(chain("two"))).commit("32 KiB")
    entry = progress_of("guesses")["GraphCanvas.two"]
    assert (entry["number"], entry["unit"], entry["lesson"]) == (32, "KiB", "04")
    assert not gate_of(GraphCanvas(chain("two"))).locked
    assert gate_of(GraphCanvas(chain("<img>"))).locked
    assert gate_of(GraphCanvas("swiglu_mlp")).key == "GraphCanvas.swiglu_mlp"


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_courses_graphs_ask_what_the_lesson_asks_and_a_learners_own_any_guess(language: str) -> None:
    use_language(language)
    workshop(True)
    canvas = GraphCanvas("swiglu_mlp")
    question = str(QUESTIONS["GraphCanvas.swiglu_mlp"].words)
    assert canvas.static_forms()["text/plain"].splitlines()[1:] == [question]
    assert question in values(canvas)
    gate_of(canvas).commit("yes, 86 MiB")
    assert canvas.static_forms()["text/plain"].startswith(f"{question}\n")
    assert question in gate_of(canvas).line.value
    assert len(GraphCanvas(chain("two")).static_forms()["text/plain"].splitlines()) == 1


def test_puzzles_ask_in_their_own_way() -> None:
    workshop(True)
    panel = PuzzlePanel()
    assert panel.canvas.gate is None
    assert "<svg" in panel.static_forms()["text/html"]
