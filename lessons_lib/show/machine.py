"""What this machine can run, as a table."""

from __future__ import annotations

from lessons_lib.base.environment import environment
from lessons_lib.base.text import Text
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table


def machine_report() -> Shown:
    """The learner's machine: Python, processor, memory, GPU, Triton and the packages that lessons use."""
    header = [str(Text(zh="项目", en="what")), str(Text(zh="这台机器", en="this machine"))]
    return report(Table(header, [[str(label), str(value)] for label, value in environment().rows()]))
