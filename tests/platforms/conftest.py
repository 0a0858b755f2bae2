"""Says at the end how the network was cut off, since that depends on the machine."""

from __future__ import annotations

from platform_tools import way_to_cut
from pytest import TerminalReporter


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    if any("test_offline_bundle" in report.nodeid for report in reports):
        cut = way_to_cut()
        terminalreporter.write_line(
            f"the network was cut off by {' '.join(cut) if cut else 'a guard in every Python'}"
        )
