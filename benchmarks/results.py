"""What a measurement reports, and how a run becomes ``RESULTS.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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


def document(machine: Mapping[str, str], date: str, sections: Sequence[Section]) -> str:
    """The whole of ``RESULTS.md``."""
    parts = [
        "# Benchmarks · 性能测量",
        f"Written by `make bench` on {date}; do not edit. To reproduce: `make bench` for all, or "
        "`.venv/bin/python -m benchmarks panel` (or `import`, `memory`) for one, which prints its section and leaves "
        "this file alone. The panel needs Chromium.",
        "Times depend on the machine and on what else it is doing. What is compared was measured in one run, taking "
        "turns; read the ratios first.",
        markdown_table(["machine", ""], list(machine.items())),
        *(section.markdown() for section in sections),
    ]
    return "\n\n".join(parts) + "\n"
