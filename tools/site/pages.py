"""The pages of the site that need no Python and no JavaScript."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import nbformat
from markupsafe import Markup

from notebooks.build.course import Course
from notebooks.build.links import browser_path, launch_links, notebook_path, runs_in_browser
from notebooks.build.read import Language, Lesson
from tools.project import ROOT
from tools.site.editions import EDITIONS, WORDS, other
from tools.site.markdown import math_as_mathml
from tools.site.outputs import CODE_STYLE, highlighted, shown_outputs

_TEMPLATES = Path(__file__).with_name("templates")


def start_page() -> str:
    """Chooses the language by the browser's, or lets the reader choose."""
    return _render("start.html", None, editions=[(language, WORDS[language]) for language in EDITIONS])


def landing_page(language: Language, course: Course) -> str:
    """What the course is, and the table of lessons."""
    panel = (ROOT / "docs" / f"panel.{language}.svg").read_text(encoding="utf-8")
    return _render(
        "landing.html",
        language,
        page="index.html",
        panel=Markup(panel),
        repository=course.config.repository_url,
        lessons=[_entry(lesson, language, course) for lesson in course.lessons],
    )


def reading_page(lesson: Lesson, language: Language, course: Course) -> str:
    """A built lesson with its stored outputs; the picture of a panel stands where the widget would."""
    path = course.root / notebook_path(lesson, language)
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    words = WORDS[language]
    cells: list[dict[str, object]] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cells.append({"kind": "prose", "html": Markup(_prose(cell.source))})
        elif cell.source.strip():
            folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
            code, outputs = Markup(highlighted(cell.source)), shown_outputs(cell.outputs)
            cells.append({"kind": "code", "folded": folded, "html": code, "outputs": outputs})
    return _render(
        "lesson.html",
        language,
        page=f"{lesson.name}.html",
        title=lesson.title(language),
        code_style=Markup(CODE_STYLE),
        lesson=_entry(lesson, language, course),
        minutes=words.minutes.format(minutes=f"{lesson.minutes:g}"),
        cells=cells,
    )


def _entry(lesson: Lesson, language: Language, course: Course) -> dict[str, object]:
    """What the pages say about one lesson."""
    number, _, title = lesson.title(language).partition(". ")
    ours, _, theirs = title.partition(" | ")
    return {
        "number": number,
        "title": ours,
        "other_title": theirs,
        "minutes": WORDS[language].minutes.format(minutes=f"{lesson.minutes:g}"),
        "read": f"{lesson.name}.html",
        "run": f"../{browser_path(lesson, language)}" if runs_in_browser(lesson, course.config) else None,
        "launch": launch_links(lesson, language, course.config),
    }


def _prose(source: str) -> str:
    """Markdown as HTML; links between lessons lead to the reading pages, wide tables scroll."""
    html = math_as_mathml(source)
    html = re.sub(r'href="(\d\d_\w+)\.ipynb"', r'href="\1.html"', html)
    return html.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def _render(name: str, language: Language | None, **values: object) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    style = Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8"))
    if language is not None:
        values |= {"language": language, "words": WORDS[language], "other": other(language)}
        values |= {"other_words": WORDS[other(language)]}
    return environment.get_template(name).render(style=style, **values) + "\n"
