"""The ``{{names}}`` that prose may use, and what they become."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from notebooks.build.course import Course
from notebooks.build.faults import Fault
from notebooks.build.links import launch_line, lessons_table
from notebooks.build.read import Audience, Language, Lesson

_PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}")


def fill(text: str, lesson: Lesson, language: Language, audience: Audience, course: Course) -> str:
    """``text`` with every placeholder replaced; an instructor's lesson is on no platform, so nothing links to one."""
    filled = _PLACEHOLDER.sub(lambda found: _FILLERS[found[1].strip()](lesson, language, audience, course), text)
    return re.sub(r"\n{3,}", "\n\n", filled) if filled != text else text


def placeholder_faults(lesson: Lesson) -> Iterator[Fault]:
    """Placeholders that nobody fills."""
    for twins in lesson.prose:
        for cell in (twins.zh, twins.en):
            for offset, line in enumerate(cell.source.splitlines()):
                for found in _PLACEHOLDER.finditer(line):
                    if found[1].strip() not in _FILLERS:
                        known = ", ".join(_FILLERS)
                        message = f"unknown placeholder {found[0]} (known: {known})"
                        yield Fault(lesson.file, cell.body_line + offset, message)


def _badges(lesson: Lesson, language: Language, audience: Audience, course: Course) -> str:
    if audience == "instructor":
        return ""
    label = "在线打开本课：" if language == "zh" else "Open this lesson on: "
    return f"{label}{launch_line(lesson, language, course.config)}\n\n{_HOW_TO_RUN[language]}"


def _minutes(lesson: Lesson, language: Language, audience: Audience, course: Course) -> str:
    return f"{lesson.minutes:g}"


def _lesson_map(lesson: Lesson, language: Language, audience: Audience, course: Course) -> str:
    return lessons_table(course.lessons, language, course.config, online=audience == "learner")


def _glossary(lesson: Lesson, language: Language, audience: Audience, course: Course) -> str:
    return course.glossary.table(language)


def _previous(lesson: Lesson, language: Language, audience: Audience, course: Course) -> str:
    return _neighbour(lesson, -1, language, audience, course)


def _next(lesson: Lesson, language: Language, audience: Audience, course: Course) -> str:
    return _neighbour(lesson, 1, language, audience, course)


def _neighbour(lesson: Lesson, step: int, language: Language, audience: Audience, course: Course) -> str:
    """A link to the lesson ``step`` places on; the relative one works in a folder, the other on a platform."""
    position = [other.name for other in course.lessons].index(lesson.name) + step
    if not 0 <= position < len(course.lessons):
        return _AT_THE_END[language][step]
    other = course.lessons[position]
    link = f"[{other.title(language)}]({other.name}.ipynb)"
    if audience == "instructor":
        return link
    online = launch_line(other, language, course.config, limit=1)
    return f"{link}（{online}）" if language == "zh" else f"{link} ({online})"


_HOW_TO_RUN: dict[Language, str] = {
    "zh": "从第一格起，逐格按 Shift + Enter 运行；运行之后，图才变成能拖动的面板。",
    "en": "Run the cells one by one from the top with Shift + Enter; run its cell, and a picture becomes a panel with sliders.",
}
_AT_THE_END: dict[Language, dict[int, str]] = {
    "zh": {-1: "（这是第一课）", 1: "（这是目前的最后一课）"},
    "en": {-1: "(this is the first lesson)", 1: "(this is the last lesson for now)"},
}
_FILLERS: dict[str, Callable[[Lesson, Language, Audience, Course], str]] = {
    "badges": _badges,
    "minutes": _minutes,
    "lesson_map": _lesson_map,
    "glossary": _glossary,
    "previous": _previous,
    "next": _next,
}
