"""``python -m notebooks.build``: build what changed, or check that nothing did."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from notebooks.build.check import content_faults, stale_files
from notebooks.build.course import Course, read_course
from notebooks.build.faults import BuildError
from notebooks.build.read import Lesson
from notebooks.build.write import build


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the builder; the exit status is 1 when anything is wrong."""
    options = _parser().parse_args(arguments)
    try:
        course = _faultless_course(options.root.resolve())
        if options.check:
            return _check(course)
        force = options.all or bool(options.lesson)
        build(course, _chosen(course, options.lesson), say=_say, force=force)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m notebooks.build", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a built file is stale")
    parser.add_argument("--all", action="store_true", help="execute every lesson, changed or not")
    parser.add_argument(
        "--lesson", action="append", metavar="01", help="execute this lesson only (number or name; may be repeated)"
    )
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the repository (default: the current folder)")
    return parser


def _faultless_course(root: Path) -> Course:
    """The course under ``root``; every fault of its sources at once if there is any."""
    if not (root / "notebooks" / "source").is_dir():
        raise BuildError(f"no notebooks/source in {root}: run from the repository root")
    course, faults = read_course(root)
    faults += content_faults(course)
    if faults:
        raise BuildError("\n".join(str(fault) for fault in sorted(faults)))
    return course


def _chosen(course: Course, wanted: Sequence[str] | None) -> list[Lesson]:
    if not wanted:
        return list(course.lessons)
    for name in wanted:
        if not any(_is_called(lesson, name) for lesson in course.lessons):
            known = ", ".join(lesson.name for lesson in course.lessons)
            raise BuildError(f"no lesson {name}; there are: {known}")
    return [lesson for lesson in course.lessons if any(_is_called(lesson, name) for name in wanted)]


def _is_called(lesson: Lesson, name: str) -> bool:
    return name in (lesson.name, lesson.name.partition("_")[0])


def _check(course: Course) -> int:
    stale = list(stale_files(course))
    for line in stale:
        print(line, file=sys.stderr)
    if not stale:
        print(f"{len(course.lessons)} lessons, learners' and instructors' editions: up to date")
    return 1 if stale else 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
