"""The table of lessons in the READMEs."""

from __future__ import annotations

from notebooks.build.course import Course
from notebooks.build.faults import BuildError
from notebooks.build.links import lessons_table
from notebooks.build.read import Language

READMES: dict[str, Language] = {"README.md": "en", "README.zh.md": "zh"}
BEGIN, END = "<!-- lessons:begin -->", "<!-- lessons:end -->"


class ReadmeError(BuildError):
    """A README that has no place for the table."""


def with_table(text: str, name: str, language: Language, course: Course) -> str:
    """``text`` with a fresh table between its markers.

    Raises:
        ReadmeError: the markers are not there, or not once each and in order.
    """
    before, begin, rest = text.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in old + after or END in before + after:
        raise ReadmeError(f"{name}: needs the lines {BEGIN} and {END}, once each: the table of lessons goes between")
    table = lessons_table(course.lessons, language, course.config, folder=f"notebooks/{language}/")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"
