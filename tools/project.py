"""Where the project's files lie, and what they ask for."""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYPROJECT = ROOT / "pyproject.toml"
CONSTRAINTS = ROOT / "constraints"


def venv_python(venv: Path = VENV) -> Path:
    """The environment's own Python."""
    return venv / "Scripts" / "python.exe" if os.name == "nt" else venv / "bin" / "python"


def lesson_extras(pyproject_text: str) -> tuple[str, ...]:
    """``extras`` of ``[tool.lessons]``: the optional dependencies that the lessons need.

    Read with a pattern because Python 3.10 has no TOML reader and nothing is installed yet; a test holds it
    to the real reader.
    """
    table = re.search(r"^\[tool\.lessons\]\n(.*?)(?=^\[|\Z)", pyproject_text, re.MULTILINE | re.DOTALL)
    found = table and re.search(r"^extras\s*=\s*(\[[^\]]*\])", table[1], re.MULTILINE)
    if not found:
        raise ValueError("pyproject.toml: [tool.lessons] lacks extras")
    return tuple(ast.literal_eval(found[1]))


def constraints_for(version: tuple[int, int], folder: Path = CONSTRAINTS) -> Path | None:
    """The exact pins for this Python, or None for a Python that has none."""
    pins = folder / f"py{version[0]}{version[1]}.txt"
    return pins if pins.exists() else None


def this_constraints() -> Path | None:
    """The exact pins for the Python that runs this."""
    return constraints_for((sys.version_info.major, sys.version_info.minor))


def pinned(name: str, constraints: Path | None) -> str:
    """``name==version`` as the pins have it, or the bare name without pins."""
    text = constraints.read_text(encoding="utf-8") if constraints else ""
    found = re.search(rf"^{re.escape(name)}==[^\s;]+", text, re.MULTILINE)
    return found[0] if found else name
