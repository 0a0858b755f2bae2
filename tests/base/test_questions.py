"""A panel's question is the one that the lesson asks above it, in the words of the lesson."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from lessons_lib.base.language import LANGUAGES
from lessons_lib.base.questions import QUESTIONS
from lessons_lib.base.text import Text

SOURCES = Path(__file__).parents[2] / "notebooks" / "source"
# Name of the guess -> lesson and id of the cell that shows the panel.
CELLS = {
    "TrafficPanel": ("01", "panel"),
    "EpiloguePanel": ("01", "time-panel"),
    "ReusePanel": ("02", "panel"),
    "DecisionPanel": ("03", "panel"),
    "DecisionPanel.evidence": ("05", "decision-panel"),
    "LayoutPanel": ("03", "ledger-panel"),
    "CompilePanel": ("03", "compile-panel"),
    "GraphCanvas.gated residual": ("04", "hand-canvas"),
    "GraphCanvas.swiglu_mlp": ("04", "mlp-canvas"),
    "GraphCanvas.my_model": ("04", "own-canvas"),
    "TileWalkPanel": ("05", "walk-panel"),
    "CompilerPanel": ("05", "compiler-panel"),
}


def prose_above(lesson: str, cell: str, language: str) -> str:
    """What learners last read above a cell, in one language, without marks; the section may have begun one cell above."""
    (path,) = SOURCES.glob(f"{lesson}_*.py")
    above, found, _ = path.read_text(encoding="utf-8").partition(f'# %% id="{cell}"')
    assert found, (lesson, cell)
    cells = [one for one in above.split("# %% ") if f'lang="{language}"' in one and '"instructor"' not in one]
    return re.sub(r"[*`#\n ]+", " ", cells[-1])


def test_every_question_has_a_place_in_the_course() -> None:
    assert set(CELLS) == set(QUESTIONS)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_question_is_made_of_the_words_of_the_prose_above(name: str, language: str) -> None:
    prose = prose_above(*CELLS[name], language)
    asked = words(QUESTIONS[name].words, language)
    numbers = re.findall(r"\d[\d.]*\d|\d", asked)
    assert [number for number in numbers if number not in prose] == []
    parts = re.findall(r"[A-Za-z]{4,}", asked) if language == "en" else bigrams(asked)
    there = [part for part in parts if part.lower() in prose.lower()]
    assert len(there) >= 0.75 * len(parts), set(parts) - set(there)


def words(text: Text, language: str) -> str:
    return {"zh": text.zh, "en": text.en}[language]


def bigrams(chinese: str) -> list[str]:
    return [a + b for run in re.findall("[\u4e00-\u9fff]+", chinese) for a, b in pairwise(run)]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_short(name: str) -> None:
    assert len(QUESTIONS[name].words.en) <= 130
    assert len(QUESTIONS[name].words.zh) <= 70


def test_a_question_for_words_takes_no_number_and_one_for_a_number_takes_its_kind() -> None:
    assert QUESTIONS["CompilerPanel"].number_in("in shared memory, 48 KiB") is None
    assert QUESTIONS["CompilePanel"].number_in("phone 0123") is None
    found = QUESTIONS["TrafficPanel"].number_in("2× as much: 256 MB")
    assert found == (256, "MiB")
