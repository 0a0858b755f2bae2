"""What stands on each handout: ``pages.toml``, with the lesson's own title, exercise and last words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from notebooks.build.config import read_toml
from notebooks.build.course import Course
from notebooks.build.read import LANGUAGES, Cell, Language, Lesson, Twins
from tools.say import Stop

PAGES = Path(__file__).with_name("pages.toml")
_TEXTS = ("guesses", "numbers", "caption")
_MORE = ("checkpoints",)
_HEADING = re.compile(r"^#{1,3} +(.+?)\s*$", re.MULTILINE)
_LINKS = re.compile(r"^.*\{\{(?:previous|next)\}\}.*$", re.MULTILINE)


@dataclass(frozen=True)
class Sheet:
    """One lesson's handout, in both languages.

    Args:
        number: ``"01"``, as ``values.figures`` wants it.
        votes: names of the library's functions that make the votes.
        texts: name -> language -> Markdown with ``((printed))`` and ``[[blank]]`` figures.
        exercise, solution: the cells of the lesson's source; ``None`` where the handout has no exercise.
    """

    number: str
    lesson: Lesson
    votes: tuple[str, ...]
    texts: Mapping[str, Mapping[Language, str]]
    exercise: Twins | None
    solution: Cell | None

    def takeaway(self, language: Language) -> str:
        """The lesson's last words, without its links; blank where it has none."""
        last = next((twins for twins in self.lesson.prose if twins.id == "takeaway"), None)
        return _LINKS.sub("", last[language].source).strip() if last else ""


def read_sheets(course: Course, path: Path = PAGES) -> list[Sheet]:
    """The handouts of the course, in its order.

    Raises:
        Stop: a lesson has no pages or the other way round, or a text or an exercise is missing.
    """
    entries = read_toml(path)
    lessons = {lesson.name.partition("_")[0]: lesson for lesson in course.lessons}
    if set(entries) != set(lessons):
        raise _stop(f"{path.name} and the lessons differ in {sorted(set(entries) ^ set(lessons))}")
    return [_sheet(number, lesson, entries[number]) for number, lesson in lessons.items()]


def _sheet(number: str, lesson: Lesson, entry: Mapping[str, object]) -> Sheet:
    texts = {name: value for name, value in entry.items() if isinstance(value, dict)}
    for name in (*_TEXTS, *texts):
        if set(texts.get(name, {})) != set(LANGUAGES) or name not in (*_TEXTS, *_MORE):
            raise _stop(f"[{number}] {name}: needs words in zh and in en, and a place on the page")
    exercise, solution = _exercise(lesson, entry.get("exercise"), number)
    votes = entry.get("votes")
    return Sheet(number, lesson, tuple(votes) if isinstance(votes, list) else (), texts, exercise, solution)


def _exercise(lesson: Lesson, name: object, number: str) -> tuple[Twins | None, Cell | None]:
    if name is None:
        return None, None
    places = [place for place, block in enumerate(lesson.blocks) if isinstance(block, Twins) and block.id == name]
    if not places:
        raise _stop(f"[{number}] exercise: the lesson has no cell {name!r}")
    twins = lesson.blocks[places[0]]
    assert isinstance(twins, Twins)
    following = lesson.blocks[places[0] + 1 :]
    solution = next((block for block in following if isinstance(block, Cell) and "solution" in block.tags), None)
    return twins, solution


def _stop(what: str) -> Stop:
    return Stop(f"tools/handouts：{what}", f"tools/handouts: {what}")


def heading_and_rest(markdown: str) -> tuple[str, str]:
    """A cell's heading, and what stands under it."""
    found = _HEADING.search(markdown)
    return (found[1], markdown[found.end() :].strip()) if found else ("", markdown.strip())
