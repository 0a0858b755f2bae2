"""For tests that run in several processes at once (pytest-xdist): what belongs together, and where they meet."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling


class ByNotebook(LoadScopeScheduling):
    """Deals out whole notebooks: the tests of one go on from one another, in one process and in their order.

    A test's notebook is its first parameter, ``zh`` or ``zh/01_traffic``, and else its file. ``--dist loadgroup`` deals
    out single tests where pytest is newer than xdist knows (3.8 on 9.2), and says nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        notebook = re.match(r"\w+\[((?:zh|en)(?:/\w+)?)[\]-]", test)
        return f"{file}::{notebook[1] if notebook else ''}"


def meeting_place(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder that all processes of this run share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
