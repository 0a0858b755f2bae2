"""All lessons of a course, with its settings and terms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from notebooks.build.config import Config, read_config
from notebooks.build.faults import Fault
from notebooks.build.glossary import Glossary, read_glossary
from notebooks.build.links import edition_folder
from notebooks.build.read import Audience, Language, Lesson, read_lesson


@dataclass(frozen=True)
class Course:
    """What the builder knows before it builds."""

    root: Path
    config: Config
    glossary: Glossary
    lessons: tuple[Lesson, ...]

    def folder(self, language: Language, audience: Audience = "learner") -> Path:
        """Where the edition's notebooks live."""
        return self.root / edition_folder(language, audience)


def read_course(root: Path) -> tuple[Course, list[Fault]]:
    """The course under ``root``, and the faults found while reading its lessons."""
    config = read_config(root)
    glossary = read_glossary(root / "notebooks" / "source" / "glossary.toml")
    lessons: list[Lesson] = []
    faults: list[Fault] = []
    for path in sorted((root / "notebooks" / "source").glob("*.py")):
        lesson, found = read_lesson(path, path.relative_to(root).as_posix(), config)
        faults += found
        if lesson is not None:
            lessons.append(lesson)
    return Course(root, config, glossary, tuple(lessons)), faults
