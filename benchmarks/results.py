"""What a measurement reports, and how runs become ``RESULTS.md``, all of it or section by section."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LOAD = "load when the run began"


@dataclass(frozen=True)
class Aim:
    """A figure that was aimed at, what came out, and whether that is good enough."""

    words: str
    measured: str
    met: bool


@dataclass(frozen=True)
class Section:
    """One subject of a run.

    Args:
        title: the heading.
        how: what was done, in a sentence or two.
        header, rows: the table of figures; every row is as long as the header.
        aims: what was hoped for beside what came out.
        not_said: what the figures are not.
    """

    title: str
    how: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    aims: Sequence[Aim]
    not_said: str

    def markdown(self) -> str:
        """The section, heading included."""
        aims = [[aim.words, aim.measured, "yes" if aim.met else "**no**"] for aim in self.aims]
        parts = [
            f"## {self.title}",
            self.how,
            markdown_table(self.header, self.rows),
            markdown_table(["aim", "this time", "met"], aims),
            f"What these figures are not: {self.not_said}",
        ]
        return "\n\n".join(parts)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, first column left-aligned, the others right-aligned; ``|`` is escaped.

    Raises:
        ValueError: a row is not as long as the header.
    """
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"every row needs {len(header)} cells, as the header {list(header)} has")
    marks = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(_line(cells) for cells in (header, marks, *rows))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


class OtherMachineError(ValueError):
    """The results that are there were taken on another machine, or with other versions."""


def document(machine: Mapping[str, str], measured: Mapping[str, str], subjects: Sequence[str]) -> str:
    """The whole of ``RESULTS.md``.

    Args:
        machine: by name; see ``machine.machine``.
        measured: title -> the text of a section, as ``dated`` gives it.
        subjects: the names by which ``python -m benchmarks`` knows the sections.
    """
    parts = [
        "# Benchmarks · 性能测量",
        "Written by `make bench`; do not edit. To reproduce: `make bench` for all; `.venv/bin/python -m benchmarks "
        f"{subjects[0]}` for one ({', '.join(f'`{name}`' for name in subjects[1:])}), which prints its section, and "
        "with `--write` puts it here in the place of the old one. The panel needs Chromium, the graphs torch.",
        "Times depend on the machine and on what else it is doing. What is compared was measured in one run, taking "
        "turns; read the ratios first.",
        markdown_table(["machine", ""], [row for row in machine.items() if row[0] != _LOAD]),
        *measured.values(),
    ]
    return "\n\n".join(parts) + "\n"


def dated(section: Section, machine: Mapping[str, str], date: str) -> str:
    """A section with the day on which it was measured, and what else the machine was doing."""
    heading, rest = section.markdown().split("\n\n", 1)
    return f"{heading}\n\nMeasured on {date}; load when it began: {machine[_LOAD]}.\n\n{rest}"


def sections_in(text: str) -> dict[str, str]:
    """Title -> the text of each section of a ``RESULTS.md``."""
    found = (part.strip() for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:])
    return {part.partition("\n")[0].removeprefix("## "): part for part in found}


def require_same_machine(text: str, machine: Mapping[str, str]) -> None:
    """What was measured on different machines does not belong in one file.

    Raises:
        OtherMachineError: naming what differs; a row that only one of the two has is no difference.
    """
    rows = re.findall(
        r"^\| ([^|]+) \| (.+) \|$", re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0], re.MULTILINE
    )
    differs = [name for name, value in rows if name != _LOAD and machine.get(name, value) != value]
    if differs:
        raise OtherMachineError(f"other {', '.join(differs)} than in RESULTS.md: measure everything (make bench)")
