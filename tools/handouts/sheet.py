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
from tools.handouts.values import Figures, figures, quiz_key, right_choice, right_number
from tools.say import Stop
from tools.site.markdown import math_as_mathml

STYLE = Path(__file__).with_name("style.css")
_TAGS: dict[Language, str] = {"zh": "zh-CN", "en": "en"}
_WORDS: dict[str, dict[Language, str]] = {
    "course": {"zh": "算子融合", "en": "Operator fusion"},
    "name": {"zh": "姓名", "en": "Name"},
    "date": {"zh": "日期", "en": "Date"},
    "answers": {"zh": "答案（教师用）", "en": "Answers (for the instructor)"},
    "quiz": {"zh": "课末测验", "en": "quiz"},
    "guess": {"zh": "先猜，写下来再翻面", "en": "Guess first, on paper, then turn over"},
    "picture": {"zh": "图", "en": "The picture"},
    "notes": {"zh": "演算和笔记", "en": "Working and notes"},
    "numbers": {"zh": "公式与数", "en": "Formulas and numbers"},
    "check": {"zh": "检查点", "en": "Checkpoints"},
    "terms": {"zh": "术语", "en": "Terms"},
    "takeaway": {"zh": "带走三句话", "en": "Take away three lines"},
}
_LINES = '<div class="lines"></div>'
# Inside the HTML that Markdown became: a figure's name, in double round or square brackets.
_PRINTED, _BLANK = re.compile(r"\(\((\w+)\)\)"), re.compile(r"\[\[(\w+)\]\]")
# Of a solution, what is no answer: the import and the call of the checker.
_FRAME = re.compile(r"^(?:from .* import .*|check_\w+\(.*\))\n*", re.MULTILINE)
_CHECKER = re.compile(r"^(check_\w+)\(", re.MULTILINE)


def document(sheets: list[Sheet], language: Language, course: Course, *, answers: bool, chinese: bool = True) -> str:
    """All these handouts in one HTML page, two A4 pages each, in ``language``.

    Args:
        chinese: English pages have titles and terms in Chinese beside the English ones.
    """
    lessons_lib.use_language(language)
    alone = language == "en" and not chinese
    inside = "\n".join(_both(sheet, language, course, answers, alone) for sheet in sheets)
    style = STYLE.read_text(encoding="utf-8")
    title = _say("answers" if answers else "course", language)
    return (
        f'<!doctype html><html lang="{_TAGS[language]}"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style></head><body>{inside}</body></html>"
    )


def _both(sheet: Sheet, language: Language, course: Course, answers: bool, alone: bool) -> str:
    """What answers nothing in front, to guess from; the formulas, and what is worked out with them, on the back."""
    known = figures(sheet.number)

    def text(name: str) -> str:
        return (
            f'<div class="text">{_filled(math_as_mathml(sheet.texts[name][language]), known, sheet, answers)}</div>'
        )

    votes = "".join(_vote(name, answers) for name in sheet.votes)
    drawn = f'<div class="drawing">{picture(sheet.number, answers=answers)}</div>'
    front = [
        _section("guess", language, votes + text("guesses")),
        _section("picture", language, f'{drawn}<div class="caption">{text("caption")}</div>'),
        _section("notes", language, _LINES, grows=True),
    ]
    back = [_section("numbers", language, text("numbers"))]
    if "checkpoints" in sheet.texts:
        back.append(_section("check", language, text("checkpoints")))
    if sheet.exercise:
        back.append(_exercise(sheet, language, answers))
    back.append(_takeaway(sheet, language) or _terms(language, course, alone))
    pages = [_page(sheet, n, parts, language, course, answers, alone) for n, parts in ((1, front), (2, back))]
    return "\n".join(pages)


def _page(
    sheet: Sheet, number: int, parts: list[str], language: Language, course: Course, answers: bool, alone: bool
) -> str:
    title = sheet.lesson.title(language)
    own, _, other = title.partition(" | ")
    if answers:
        fields = f'<span class="answers">{escape(_answers_words(sheet, number, language))}</span>'
    else:
        fields = "".join(f'{_say(name, language)}<span class="field"></span>' for name in ("name", "date"))
    beside = "" if alone else f'<p class="other">{escape(other)}</p>'
    head = f"<h1>{escape(own)}</h1>{beside}" if number == 1 else ""
    small = "" if number == 1 else f'<span class="small">{escape(own)}</span>'
    return (
        f'<section class="page" data-page="{sheet.number}-{number}"><header>{small}<span class="fields">{fields}</span>'
        f"</header>{head}<main>{''.join(parts)}</main><footer><span>{escape(_say('course', language))} · "
        f"{escape(course.config.repository_url)}</span><span>{number} / 2</span></footer></section>"
    )


def _answers_words(sheet: Sheet, page: int, language: Language) -> str:
    """What stands in the head of a page with answers; on the second, with the key to the quiz at the lesson's end."""
    key = quiz_key(sheet.number) if page == 2 else ()
    between = "、" if language == "zh" else ", "
    quiz = f"{_say('quiz', language)}{'：' if language == 'zh' else ': '}{between.join(map(str, key))}"
    return " · ".join([*([quiz] if key else []), _say("answers", language)])


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
    room = _LINES
    if answers and sheet.solution is not None:
        room = f'<pre class="solution">{escape(_solved(sheet.solution.source))}</pre>'
    inside = f'<div class="text">{math_as_mathml(statement)}</div>{room}'
    return _section("exercise", language, inside, grows=True, title=title)


def _solved(source: str) -> str:
    """A solution without its frame; where it works out one number, with that number behind it."""
    checker = _CHECKER.search(source)
    number = right_number(checker[1]) if checker else None
    return _FRAME.sub("", source).strip() + ("" if number is None else f"  # {number:.12g}")


def _takeaway(sheet: Sheet, language: Language) -> str:
    _, words = heading_and_rest(sheet.takeaway(language))
    return _section("takeaway", language, f'<div class="text">{math_as_mathml(words)}</div>') if words else ""


def _terms(language: Language, course: Course, alone: bool) -> str:
    terms = course.glossary.table(language)
    if alone:  # the second column has them in the other language
        terms = re.sub(r"^(\|[^|]*\|)[^|]*\|", r"\1", terms, flags=re.MULTILINE)
    return _section("terms", language, f'<div class="text">{math_as_mathml(terms)}</div>', grows=True)


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
