"""The parts of the site that turn one thing into another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from nbformat import from_dict

from notebooks.build.course import Course, read_course
from notebooks.build.links import browser_path, runs_in_browser
from notebooks.build.read import Language
from tools.project import ROOT
from tools.site.editions import EDITIONS, WORDS, built
from tools.site.lite import copy_lessons
from tools.site.markdown import math_as_mathml
from tools.site.outputs import as_on_a_terminal, shown_outputs
from tools.site.pages import landing_page, reading_page
from tools.site.runtime import closure
from tools.site.wheels import requirement_names


def output(**data: str) -> object:
    bundle = {name.replace("_", "/"): text for name, text in data.items()}
    return from_dict({"output_type": "execute_result", "data": bundle, "metadata": {}, "execution_count": 1})


def test_a_formula_becomes_mathml_with_its_tex_beside() -> None:
    html = math_as_mathml(r"so $a < b$ and $$\frac{\text{字节}}{2}$$")
    assert html.count("<math ") == 2
    assert "<mfrac>" in html and "字节" in html
    assert 'alttext="a &lt; b"' in html
    assert "$" not in html


def test_a_folded_answer_keeps_its_markdown() -> None:
    html = math_as_mathml("<details><summary>s</summary>\n\n1. **one**\n\n</details>\n\nafter")
    assert "<summary>s</summary>" in html and "<strong>one</strong>" in html and "<p>after</p>" in html


def test_a_panel_is_shown_as_its_picture_with_the_table_as_text() -> None:
    svg = "<svg></svg>"
    panel = from_dict({"output_type": "execute_result", "data": {"image/svg+xml": svg, "text/plain": "a  1"}})
    (shown,) = shown_outputs([panel])
    assert (shown["kind"], shown["html"], shown["text"]) == ("picture", svg, "a  1")


@pytest.mark.parametrize(
    ("data", "kind", "part"),
    [
        ({"text_html": "<b>h</b>", "text_plain": "p"}, "html", "<b>h</b>"),
        (
            {"image_png": "QUJD\n", "text_plain": "<Figure>"},
            "html",
            'alt="&lt;Figure&gt;" src="data:image/png;base64,QUJD"',
        ),
        ({"text_plain": "1 < 2"}, "text", "1 &lt; 2"),
    ],
)
def test_the_richest_form_that_needs_no_kernel_is_shown(data: dict[str, str], kind: str, part: str) -> None:
    (shown,) = shown_outputs([output(**data)])
    assert shown["kind"] == kind and part in str(shown["html"])


def test_a_progress_bar_that_is_gone_leaves_no_empty_box() -> None:
    assert as_on_a_terminal("10%\r     \r") == ""
    assert as_on_a_terminal("10%\r100%\ndone\n") == "100%\ndone"
    stream = from_dict({"output_type": "stream", "name": "stdout", "text": "10%\r    \r"})
    assert shown_outputs([stream]) == []


def test_a_package_brings_what_it_depends_on() -> None:
    packages = {
        "a": {"depends": ["b_c"]},
        "b-c": {"depends": ["a", "d"]},
        "d": {"depends": []},
        "e": {"depends": []},
    }
    assert closure(packages, ["a", "not-there"]) == {"a", "b-c", "d"}


def test_a_lesson_opens_in_its_own_edition() -> None:
    lesson = built(read_course(ROOT)[0]).lessons[0]
    assert browser_path(lesson, "zh") == f"run/lab-zh/index.html?path=zh/{lesson.name}.ipynb"


def with_torch(course: Course) -> Course:
    """The first two lessons; the first needs triton, which no Python in a browser has."""
    first, second = course.lessons[:2]
    opening = first.opening
    cells = {language: replace(opening[language], needs=("lab", "kernel")) for language in EDITIONS}
    lesson = replace(first, blocks=(replace(opening, **cells), *first.blocks[1:]))
    return replace(course, lessons=(lesson, second))


def test_the_site_serves_what_a_lessons_first_cell_asks_for() -> None:
    config = replace(
        read_course(ROOT)[0].config, requirements=("a>=1",), in_browser={"lab": (), "graph": ("b-c>=2",)}
    )
    assert requirement_names(config) == ["a", "b-c"]


def test_only_a_lesson_whose_extras_a_browser_can_have_runs_there() -> None:
    course = built(read_course(ROOT)[0])
    lesson = course.lessons[0]
    opening = lesson.opening
    for needs, runs in (((), True), (("lab", "graph"), True), (("lab", "kernel"), False)):
        cells = {language: replace(opening[language], needs=needs) for language in EDITIONS}
        changed = replace(lesson, blocks=(replace(opening, **cells), *lesson.blocks[1:]))
        assert runs_in_browser(changed, course.config) is runs


@pytest.mark.parametrize("language", EDITIONS)
def test_a_lesson_that_needs_torch_is_read_on_the_site_and_not_run(language: Language, tmp_path: Path) -> None:
    course = with_torch(built(read_course(ROOT)[0]))
    lesson, other = course.lessons
    page, landing = reading_page(lesson, language, course), landing_page(language, course)
    run, run_other = (f'href="../{browser_path(it, language)}"' for it in (lesson, other))
    assert WORDS[language].only_read in page and run not in page
    assert landing.count(WORDS[language].only_read) == 1
    assert run not in landing and run_other in landing
    copy_lessons(tmp_path / "files", course, language)
    assert [path.stem for path in (tmp_path / "files").iterdir()] == [other.name]


def test_no_word_is_left_in_the_other_language() -> None:
    """English sentences hold no Chinese; what names the other edition does."""
    english = {name: str(words) for name, words in vars(WORDS["en"]).items() if name != "other"}
    assert not [name for name, words in english.items() if any("\u4e00" <= letter <= "\u9fff" for letter in words)]
