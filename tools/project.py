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
    return _strings(pyproject_text, "tool.lessons", "extras")


def extra_requirements(pyproject_text: str, extra: str) -> tuple[str, ...]:
    """The requirements of one extra in ``[project.optional-dependencies]``; read in the same way."""
    return _strings(pyproject_text, "project.optional-dependencies", extra)


def _strings(text: str, table: str, key: str) -> tuple[str, ...]:
    """A list of strings in a table of a TOML file."""
    inside = re.search(rf"^\[{re.escape(table)}\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    whole = rf"^{re.escape(key)}\s*=\s*(\[.*?\])\s*(?:#[^\n]*)?$"
    found = inside and re.search(whole, inside[1], re.MULTILINE | re.DOTALL)
    if not found:
        raise ValueError(f"pyproject.toml: [{table}] lacks {key}")
    return tuple(ast.literal_eval(found[1]))


def requirement_name(requirement: str) -> str:
    """The package that a requirement asks for, without version and conditions."""
    return re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0]


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
