"""Writes the schedules and the tables of ``teaching/``, or checks that nothing is out of date.

python -m tools.schedule [--check]

Needs the environment of ``make setup``: it reads the lessons with the builder of ``make notebooks``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from notebooks.build.course import Course, read_course
from notebooks.build.faults import BuildError
from notebooks.build.read import LANGUAGES
from tools.schedule.fit import fit_faults
from tools.schedule.pages import page
from tools.schedule.plan import Plan, read_plan
from tools.schedule.sections import course_sections
from tools.schedule.tables import with_tables


def pages(course: Course, plan: Plan) -> dict[Path, str]:
    """File -> what belongs in it: the schedules, and the hand-written pages with fresh tables."""
    sections = course_sections(course)
    found = {}
    for language in LANGUAGES:
        folder = course.root / "teaching" / language
        schedules = {folder / f"{schedule.name}.md": schedule for schedule in plan.schedules}
        for path in sorted(set(folder.glob("*.md")) - set(schedules)):
            name = path.relative_to(course.root).as_posix()
            found[path] = with_tables(path.read_text(encoding="utf-8"), name, language, course, plan)
        found |= {path: page(schedule, sections, language) for path, schedule in schedules.items()}
    return found


def stale(course: Course, plan: Plan) -> list[Path]:
    """The files that are not what they should be."""
    return [
        path for path, text in pages(course, plan).items() if not path.exists() or path.read_text("utf-8") != text
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check; the exit status is 1 when anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.schedule", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is out of date")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the repository (default: the current folder)")
    options = parser.parse_args(arguments)
    try:
        course, plan = _fitting(options.root.resolve())
        outdated = stale(course, plan)
        if not options.check:
            for path, text in pages(course, plan).items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    names = [path.relative_to(course.root).as_posix() for path in outdated]
    if options.check:
        print("\n".join(f"{name}: stale, run python -m tools.schedule" for name in names) or "teaching/: up to date")
        return 1 if names else 0
    print("\n".join(f"wrote {name}" for name in names) or "teaching/: nothing to write")
    return 0


def _fitting(root: Path) -> tuple[Course, Plan]:
    """The course and its plan; every fault of either at once if there is any."""
    if not (root / "notebooks" / "source").is_dir():
        raise BuildError(f"no notebooks/source in {root}: run from the repository root")
    course, faults = read_course(root)
    if faults:
        raise BuildError("\n".join(str(fault) for fault in sorted(faults)))
    plan = read_plan(root)
    if problems := fit_faults(plan, course):
        raise BuildError("\n".join(problems))
    return course, plan


if __name__ == "__main__":
    sys.exit(main())
