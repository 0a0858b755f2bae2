"""What this machine can run, as a table."""

from __future__ import annotations

from lessons_lib.base.environment import environment
from lessons_lib.base.progress import note_step
from lessons_lib.base.text import Text
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table


def machine_report() -> Shown:
    """The learner's machine: Python, processor, memory, GPU, Triton and the packages that lessons use.

    Lesson 00 shows it and asks nothing, so that this is what its entry in the progress file says.
    """
    note_step("opened", "machine_report", "00", {})
    header = [str(Text(zh="项目", en="what")), str(Text(zh="这台机器", en="this machine"))]
    edition = (Text(zh="课程语言", en="Edition"), Text(zh="中文", en="English"))
    rows = [edition, *environment().rows()]
    return report(Table(header, [[str(label), str(value)] for label, value in rows], prose=True))
