# mypy: untyped-calls-exclude=nbformat
"""What only an instructor sees: the box at the top, minutes and clock, words for the class, and solved exercises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from nbformat import NotebookNode

from notebooks.build.faults import Fault
from notebooks.build.links import gpu_words, notebook_path
from notebooks.build.read import LANGUAGES, Language, Lesson, Twins

BOX = "instructor-box"
RIGHT = "✓"
_NOT_RIGHT = "✗○"
ASK: dict[Language, str] = {"zh": "**问：**", "en": "**Ask:**"}
ANSWER: dict[Language, str] = {"zh": "**答：**", "en": "**Answer:**"}
_HEADING = re.compile(r"^#{1,3} .*$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_MINUTES: dict[Language, str] = {"zh": "*{start} 起，{minutes:g} 分钟*", "en": "*at {start}, {minutes:g} min*"}
_BOX: dict[Language, str] = {
    "zh": "**教师版** ｜ **用时：** {minutes:g} 分钟 ｜ **GPU：** {gpu} ｜ **软件包：** {needs}\n\n"
    "练习里是跑过的参考答案。每节标题下面写着从第几分钟开始、要几分钟，那是单上这一课的钟点；课堂上按[课表](../../../teaching/zh/README.md)走。"
    "像这样缩进的段落是给老师看的，学员的那一版里没有。学员打开的是 [{file}]({link})。",
    "en": "**Instructor's edition** ｜ **Time:** {minutes:g} minutes ｜ **GPU:** {gpu} ｜ **Packages:** {needs}\n\n"
    "Exercises hold their solutions, run. Under each heading stand the minute at which the section begins and how many it "
    "takes, by the clock of this lesson taken alone; in class go by the [schedule](../../../teaching/en/README.md). "
    "Indented paragraphs like this one are for you, and learners do not have them. They open [{file}]({link}).",
}


def clock(minutes: float) -> str:
    """Minutes from the beginning as ``h:mm``."""
    whole = int(minutes)
    seconds = f":{round(60 * (minutes - whole)):02d}" if minutes != whole else ""
    return f"{whole // 60}:{whole % 60:02d}{seconds}"


def prepare(lesson: Lesson) -> Twins | None:
    """The words on what to prepare: those for the instructor right after the title. They go into the box."""
    second = lesson.blocks[1] if len(lesson.blocks) > 1 else None
    return second if isinstance(second, Twins) and "instructor" in second.tags else None


def box(lesson: Lesson, language: Language) -> str:
    """What an instructor should know before the lesson begins."""
    file = notebook_path(lesson, language)
    facts = _BOX[language].format(
        minutes=lesson.minutes,
        gpu=gpu_words(lesson, language),
        needs=" ".join(f"`{extra}`" for extra in lesson.needs) or "–",
        file=file,
        link=f"../../{file.removeprefix('notebooks/')}",
    )
    words = prepare(lesson)
    return aside(f"{facts}\n\n{words[language].source}" if words else facts)


def aside(words: str) -> str:
    """Words to the instructor, set off from the lesson's own in every viewer."""
    return "\n".join(f"> {line}".rstrip() for line in words.splitlines())


def timed(source: str, twins: Twins, lesson: Lesson, language: Language) -> str:
    """``source``, the filled text of ``twins``, with its minutes under its heading, or on top where it has none."""
    minutes = twins[language].minutes
    if not minutes:
        return source
    line = _MINUTES[language].format(start=clock(_start(twins, lesson)), minutes=minutes)
    heading = _HEADING.search(_FENCED.sub(lambda fence: " " * len(fence[0]), source))
    if not heading:
        return f"{line}\n\n{source}"
    return f"{source[: heading.end()]}\n\n{line}{source[heading.end() :]}"


def _start(twins: Twins, lesson: Lesson) -> float:
    """The minute at which this section begins."""
    prose = lesson.prose
    return sum(before.zh.minutes for before in prose[: prose.index(twins)])


def unanswered(lesson: Lesson) -> Iterator[Fault]:
    """A fault for each question to the class in ``lesson`` that has no answer right below it."""
    for twins in lesson.prose:
        if "instructor" not in twins.tags:
            continue
        for language in LANGUAGES:
            cell, ask, answer = twins[language], ASK[language], ANSWER[language]
            lines = [(offset, line) for offset, line in enumerate(cell.source.splitlines()) if line.strip()]
            for (offset, line), (_, below) in pairwise([*lines, (0, "")]):
                if line.startswith(ask) and not below.startswith(answer):
                    message = f"'{cell.id}': {ask} needs its {answer} right below: whoever asks must know"
                    yield Fault(lesson.file, cell.body_line + offset, message)


def unsolved(lesson: Lesson, notebook: NotebookNode) -> Iterator[Fault]:
    """A fault for each solution of ``lesson`` that, run in ``notebook``, its checker does not call right."""
    solutions = {cell.id: cell for cell in lesson.code if "solution" in cell.tags}
    for cell in notebook.cells:
        if cell.id not in solutions or cell.cell_type != "code":
            continue
        said = "\n".join(_plain(output) for output in cell.outputs)
        if RIGHT not in said or any(mark in said for mark in _NOT_RIGHT):
            words = next((line for line in said.splitlines() if line.strip()), "nothing")
            message = f"solution '{cell.id}' does not satisfy its checker, which says: {words}"
            yield Fault(lesson.file, solutions[cell.id].line, message)


def _plain(output: NotebookNode) -> str:
    """What an output says in plain text."""
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))
