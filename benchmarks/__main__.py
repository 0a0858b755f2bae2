"""``python -m benchmarks`` measures everything and writes ``RESULTS.md``; with names it prints those sections.

With names and ``--write`` those sections take the place of the old ones, and the others stay.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
from collections.abc import Callable
from pathlib import Path

from benchmarks import machine
from benchmarks.results import Section, dated, document, require_same_machine, sections_in

RESULTS = Path(__file__).parent / "RESULTS.md"
# Subject -> module and function; loaded when it is its turn, since one subject's packages slow another's start.
SUBJECTS = {
    "panel": "panel.measure",
    "import": "import_time.measure",
    "memory": "memory.measure",
    "capture": "graphs.measure_capture",
    "grouping": "graphs.measure_grouping",
    "canvas": "graphs.measure_canvas",
    "zoo": "graphs.measure_zoo",
    "classroom": "classroom.measure",
    "classroom-lessons": "classroom_lessons.measure",
}


def measure_subject(name: str) -> Callable[[], Section]:
    """What measures a subject."""
    module, _, function = SUBJECTS[name].partition(".")
    found: Callable[[], Section] = getattr(importlib.import_module(f"benchmarks.{module}"), function)
    return found


def main() -> int:
    """Run what was asked for; a missed aim is a result, not a failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subjects", nargs="*", help=f"of {', '.join(SUBJECTS)}; all when none is named")
    parser.add_argument("--write", action="store_true", help="put the named subjects' sections into RESULTS.md")
    options = parser.parse_args()
    asked = options.subjects
    unknown = sorted(set(asked) - set(SUBJECTS))
    if unknown:
        parser.error(f"no such subject: {', '.join(unknown)}; choose from {', '.join(SUBJECTS)}")
    old = RESULTS.read_text(encoding="utf-8") if asked and options.write and RESULTS.exists() else ""
    require_same_machine(old, machine.machine())
    measured = sections_in(old)
    for name in asked or SUBJECTS:
        print(f"· {name} ...", flush=True)
        about = machine.machine()
        section = measure_subject(name)()
        measured[section.title] = dated(section, about, datetime.date.today().isoformat())
        print(f"\n{measured[section.title]}\n", flush=True)
    if options.write or not asked:
        RESULTS.write_text(document(machine.machine(), measured, list(SUBJECTS)), encoding="utf-8")
        print(f"benchmarks/{RESULTS.name} written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
