"""A handout as one HTML page: two A4 sheets with blanks, or with the answers in them."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import lessons_lib
from lessons_lib.show.quiz import Vote
from notebooks.build.course import Course
from notebooks.build.read import Language
from tools.handouts.pages import Sheet, heading_and_rest
from tools.handouts.pictures import picture
from tools.handouts.values import Figures, figures, right_choice
from tools.say import Stop
from tools.site.markdown import math_as_mathml

STYLE = Path(__file__).with_name("style.css")
_TAGS: dict[Language, str] = {"zh": "zh-CN", "en": "en"}
_WORDS: dict[str, dict[Language, str]] = {
    "course": {"zh": "算子融合", "en": "Operator fusion"},
    "name": {"zh": "姓名", "en": "Name"},
    "date": {"zh": "日期", "en": "Date"},
    "answers": {"zh": "答案（教师用）", "en": "Answers (for the instructor)"},
    "guess": {"zh": "先猜，写下来再往下看", "en": "Guess first, on paper"},
    "numbers": {"zh": "公式与数", "en": "Formulas and numbers"},
    "notes": {"zh": "笔记", "en": "Notes"},
    "picture": {"zh": "图", "en": "The picture"},
    "check": {"zh": "检查点", "en": "Checkpoints"},
    "terms": {"zh": "术语", "en": "Terms"},
    "takeaway": {"zh": "带走三句话", "en": "Take away three lines"},
}
# Inside the HTML that Markdown became: a figure's name, in double round or square brackets.
_PRINTED, _BLANK = re.compile(r"\(\((\w+)\)\)"), re.compile(r"\[\[(\w+)\]\]")
# Of a solution, what is no answer: the import and the call of the checker.
_FRAME = re.compile(r"^(?:from .* import .*|check_\w+\(.*\))\n*", re.MULTILINE)


def document(sheets: list[Sheet], language: Language, course: Course, *, answers: bool) -> str:
    """All these handouts in one HTML page, two A4 sheets each, in ``language``."""
    lessons_lib.use_language(language)
    inside = "\n".join(_both(sheet, language, course, answers) for sheet in sheets)
    style = STYLE.read_text(encoding="utf-8")
    title = _say("answers" if answers else "course", language)
    return (
        f'<!doctype html><html lang="{_TAGS[language]}"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style></head><body>{inside}</body></html>"
    )


def _both(sheet: Sheet, language: Language, course: Course, answers: bool) -> str:
    known = figures(sheet.number)

    def text(name: str) -> str:
        return _filled(math_as_mathml(sheet.texts[name][language]), known, sheet, answers)

    votes = "".join(_vote(name, answers) for name in sheet.votes)
    room = '<div class="lines"></div>'
    first = [
        _section("guess", language, f'{votes}<div class="text">{text("guesses")}</div>'),
        _section("numbers", language, f'<div class="text">{text("numbers")}</div>'),
        _exercise(sheet, language, answers) if sheet.exercise else _section("notes", language, room, grows=True),
    ]
    caption = f'<div class="caption">{text("caption")}</div>'
    second = [_section("picture", language, f'<div class="drawing">{picture(sheet.number)}</div>{caption}')]
    if "checkpoints" in sheet.texts:
        second += [_section("check", language, f'<div class="text">{text("checkpoints")}</div>'), room]
    second.append(_takeaway(sheet, language) or _terms(language, course))
    pages = [_page(sheet, number, parts, language, course, answers) for number, parts in ((1, first), (2, second))]
    return "\n".join(pages)


def _page(sheet: Sheet, number: int, parts: list[str], language: Language, course: Course, answers: bool) -> str:
    title = sheet.lesson.title(language)
    own, _, other = title.partition(" | ")
    if answers:
        fields = f'<span class="answers">{escape(_say("answers", language))}</span>'
    else:
        fields = "".join(f'{_say(name, language)}<span class="field"></span>' for name in ("name", "date"))
    head = f'<h1>{escape(own)}</h1><p class="other">{escape(other)}</p>' if number == 1 else ""
    small = "" if number == 1 else f'<span class="small">{escape(own)}</span>'
    return (
        f'<section class="page" data-page="{sheet.number}-{number}"><header>{small}<span class="fields">{fields}</span>'
        f"</header>{head}<main>{''.join(parts)}</main><footer><span>{escape(_say('course', language))} · "
        f"{escape(course.config.repository_url)}</span><span>{number} / 2</span></footer></section>"
    )


def _section(name: str, language: Language, inside: str, *, grows: bool = False, title: str = "") -> str:
    heading = escape(title or _say(name, language))
    return f'<section class="part{" grows" if grows else ""} {name}"><h2>{heading}</h2>{inside}</section>'


def _vote(name: str, answers: bool) -> str:
    vote = getattr(lessons_lib, name)()
    assert isinstance(vote, Vote)
    right = right_choice(name)
    if sum(value == right for _, value in vote.options) != 1:
        raise Stop(f"{name} 里没有正确的选项 {right!r}", f"{name} has no choice {right!r}, which is the right one")
    choices = "".join(
        f'<li class="{"right" if answers and value == right else ""}"><i></i>{escape(str(label))}</li>'
        for label, value in vote.options
    )
    return f'<div class="vote"><p>{escape(str(vote.words))}</p><ul>{choices}</ul></div>'


def _exercise(sheet: Sheet, language: Language, answers: bool) -> str:
    assert sheet.exercise is not None
    title, statement = heading_and_rest(sheet.exercise[language].source)
    room = '<div class="lines"></div>'
    if answers and sheet.solution is not None:
        room = f'<pre class="solution">{escape(_FRAME.sub("", sheet.solution.source).strip())}</pre>'
    inside = f'<div class="text">{math_as_mathml(statement)}</div>{room}'
    return _section("exercise", language, inside, grows=True, title=title)


def _takeaway(sheet: Sheet, language: Language) -> str:
    _, words = heading_and_rest(sheet.takeaway(language))
    return _section("takeaway", language, f'<div class="text">{math_as_mathml(words)}</div>') if words else ""


def _terms(language: Language, course: Course) -> str:
    table = math_as_mathml(course.glossary.table(language))
    return _section("terms", language, f'<div class="text">{table}</div>', grows=True)


def _filled(html: str, known: Figures, sheet: Sheet, answers: bool) -> str:
    """``html`` with its figures: printed ones as they are, blanks as wide as their answer or wider."""

    def figure(found: re.Match[str]) -> str:
        if found[1] not in known:
            raise Stop(
                f"pages.toml [{sheet.number}]：values.py 没有 {found[1]}",
                f"pages.toml [{sheet.number}]: values.py has no {found[1]}",
            )
        return escape(known[found[1]])

    def blank(found: re.Match[str]) -> str:
        answer = figure(found)
        wide = max(4.5, 0.62 * sum(2 if ord(letter) > 0x2E80 else 1 for letter in answer) + 1)
        return f'<span class="blank" style="width:{wide:.1f}em">{answer if answers else "&nbsp;"}</span>'

    return _BLANK.sub(blank, _PRINTED.sub(figure, html))


def _say(name: str, language: Language) -> str:
    return _WORDS[name][language]
