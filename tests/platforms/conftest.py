"""The longest tests first; at the end, how the network was cut off, since that depends on the machine."""

from __future__ import annotations

import pytest
from platform_tools import way_to_cut
from pytest import TerminalReporter

# Minutes each, two for each of two processes; all the others together take less than one of them.
_LONGEST = (
    "the_lessons_run_as_stored[3.11]",
    "installs_from_the_wheels_beside_it",
    "the_lessons_run_as_stored[3.13]",
    "the_start_notebook_installs_everything",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((i for i, words in enumerate(_LONGEST) if words in item.name), len(_LONGEST)))


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    if any("test_offline_bundle" in report.nodeid for report in reports):
        cut = way_to_cut()
        terminalreporter.write_line(
            f"the network was cut off by {' '.join(cut) if cut else 'a guard in every Python'}"
        )
