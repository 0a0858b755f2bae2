"""The tables inside the hand-written pages: what a lesson needs, what comes with an extra, which runs are recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from notebooks.build.config import read_toml
from notebooks.build.course import Course
from notebooks.build.faults import BuildError
from notebooks.build.links import notebook_path, table
from notebooks.build.read import Language, Lesson
from tools.schedule.plan import Plan
from tools.schedule.sections import number_of, sections_of

_LESSONS: dict[Language, Sequence[str]] = {
    "zh": ("课", "分钟", "软件包", "GPU", "实测的格（小节分钟数）", "空闲内存", "实测用时"),
    "en": (
        "lesson",
        "min",
        "packages",
        "GPU",
        "cells that measure (minutes of their section)",
        "free memory",
        "measuring takes",
    ),
}
_EXTRAS: dict[Language, Sequence[str]] = {"zh": ("名字", "里面是什么"), "en": ("name", "what is in it")}
_RUNS: dict[Language, Sequence[str]] = {
    "zh": ("文件", "GPU", "日期", "版本"),
    "en": ("file", "GPU", "date", "versions"),
}
_GPU: dict[str, dict[Language, str]] = {
    "none": {"zh": "不需要", "en": "not needed"},
    "optional": {"zh": "可选", "en": "optional"},
    "recommended": {"zh": "建议有", "en": "recommended"},
}
_NO_RUNS: dict[Language, str] = {
    "zh": "这份课程里还没有记录：没有 GPU 的机器只显示预测，并写明没有实测。",
    "en": "This copy of the course has no recorded run yet: without a GPU there are predictions only, and the report says so.",
}


def with_tables(text: str, name: str, language: Language, course: Course, plan: Plan) -> str:
    """``text`` with a fresh table between each pair of its markers.

    Raises:
        BuildError: a marker lacks its twin.
    """
    for marker, make in _TABLES.items():
        begin, end = f"<!-- {marker}:begin -->", f"<!-- {marker}:end -->"
        if begin not in text and end not in text:
            continue
        before, _, rest = text.partition(begin)
        inside, found, after = rest.partition(end)
        if not found or begin in inside + after or end in before + after:
            raise BuildError(f"{name}: needs {begin} and {end}, once each and in this order")
        text = f"{before}{begin}\n\n{make(language, course, plan)}\n\n{end}{after}"
    return text


def needs_table(language: Language, course: Course, plan: Plan) -> str:
    """Lesson by lesson: minutes, extras, GPU, measuring cells, memory."""
    return table(_LESSONS[language], [_needs(lesson, language, plan) for lesson in course.lessons])


def _needs(lesson: Lesson, language: Language, plan: Plan) -> tuple[str, ...]:
    number = number_of(lesson)
    cells = [
        f"`{number}/{cell}` ({section.minutes:g})" for section in sections_of(lesson) for cell in section.measuring
    ]
    stated = plan.needs[number]
    return (
        f"[{number}](../../{notebook_path(lesson, language)})",
        f"{lesson.minutes:g}",
        " ".join(f"`{extra}`" for extra in lesson.needs),
        _GPU[lesson.gpu][language],
        " ".join(cells) or "–",
        stated.memory[language],
        stated.seconds[language],
    )


def extras_table(language: Language, course: Course, plan: Plan) -> str:
    """What each of the lessons' extras installs, as ``pyproject.toml`` has it."""
    project = read_toml(course.root / "pyproject.toml")["project"]
    optional = project["optional-dependencies"]
    rows = [("–", _listed(project["dependencies"]))]
    rows += [(f"`{extra}`", _listed(optional[extra])) for extra in course.config.extras]
    return table(_EXTRAS[language], rows)


def _listed(requirements: Sequence[str]) -> str:
    return ", ".join(f"`{requirement}`" for requirement in requirements)


def runs_table(language: Language, course: Course, plan: Plan) -> str:
    """The recorded runs that come with the course, newest first."""
    from lessons_lib.kernels.benchmark.runs import recorded_runs

    folder = course.root / "lessons_lib" / "kernels" / "recorded"
    rows = []
    for run in recorded_runs(folder):
        made = run.environment
        file = f"`{Path(run.recorded_as or '').name}`"
        rows.append((file, made.gpu, made.date, f"torch {made.torch}, triton {made.triton}"))
    return table(_RUNS[language], rows) if rows else _NO_RUNS[language]


_TABLES: dict[str, Callable[[Language, Course, Plan], str]] = {
    "needs": needs_table,
    "extras": extras_table,
    "recorded": runs_table,
}
