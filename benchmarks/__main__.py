"""``python -m benchmarks`` measures everything and writes ``RESULTS.md``; with names it prints those sections."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

from benchmarks import import_time, machine, memory, panel
from benchmarks.results import document

RESULTS = Path(__file__).parent / "RESULTS.md"
SUBJECTS = {"panel": panel.measure, "import": import_time.measure, "memory": memory.measure}


def main() -> int:
    """Run what was asked for; a missed aim is a result, not a failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subjects", nargs="*", help=f"of {', '.join(SUBJECTS)}; all when none is named")
    asked = parser.parse_args().subjects
    unknown = sorted(set(asked) - set(SUBJECTS))
    if unknown:
        parser.error(f"no such subject: {', '.join(unknown)}; choose from {', '.join(SUBJECTS)}")
    about = machine.machine()
    sections = []
    for name in asked or SUBJECTS:
        print(f"· {name} ...", flush=True)
        sections.append(SUBJECTS[name]())
        print(f"\n{sections[-1].markdown()}\n", flush=True)
    if not asked:
        RESULTS.write_text(document(about, datetime.date.today().isoformat(), sections), encoding="utf-8")
        print(f"benchmarks/{RESULTS.name} written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
