"""A copy of what the schedules are made from, to be changed in a test."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.project import ROOT

_PARTS = ("notebooks/source", "teaching", "lessons_lib/kernels/recorded")
Change = Callable[[str, str, str], None]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The lessons' sources, ``teaching/`` and ``pyproject.toml`` in a folder of their own, up to date."""
    for part in _PARTS:
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


@pytest.fixture
def change(copied: Path) -> Change:
    """Replace every match of a pattern in a file of the copy; a pattern that matches nothing is an error."""

    def replace(file: str, pattern: str, by: str) -> None:
        path = copied / file
        text, count = re.subn(pattern, by, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert count, f"{pattern!r} is not in {file}"
        path.write_text(text, encoding="utf-8")

    return replace
