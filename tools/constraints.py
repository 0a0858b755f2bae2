"""Resolves the exact pins of constraints/ anew, one file for each Python; needs uv (`pip install uv`).

    python -m tools.constraints

uv reads only metadata, so this takes seconds and downloads no package. torch is held: its CUDA build names the one
triton that goes with it, and a move to another torch is a decision, not an upgrade.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import say
from tools.project import CONSTRAINTS, PYPROJECT
from tools.say import Stop

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
HELD = ("torch==2.13.0",)
_HEADER = "# Exact versions for Python {python} on every system; `make constraints` makes this file.\n"


def compile_pins(python: str, uv: str) -> str:
    """The pins for one Python, on every system."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Without this a file would also carry the lines of every later Python.
        only = f"\n[tool.uv]\nenvironments = [\"python_version == '{python}'\"]\n"
        (folder / "pyproject.toml").write_text(PYPROJECT.read_text(encoding="utf-8") + only, encoding="utf-8")
        (folder / "held.txt").write_text("\n".join(HELD), encoding="utf-8")
        options = ("--universal", "--all-extras", "--no-header", "--no-annotate", "--no-emit-index-url", "--quiet")
        inputs = ("--python-version", python, "--constraint", "held.txt", "pyproject.toml")
        command = [uv, "pip", "compile", *options, *inputs]
        pins = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    return without_marker(pins, python)


def without_marker(pins: str, python: str) -> str:
    """The pins without the condition that they are for this Python: the file's name says that."""
    marker = f"python_full_version < '3.{int(python.split('.')[1]) + 1}'"
    return pins.replace(f"{marker} and ", "").replace(f" ; {marker}\n", "\n")


def main() -> int:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if not uv:
        raise Stop("缺少 uv，请先运行：pip install uv", "uv is missing: pip install uv.")
    for python in PYTHONS:
        pins = compile_pins(python, uv)
        path = CONSTRAINTS / f"py{python.replace('.', '')}.txt"
        path.write_text(_HEADER.format(python=python) + pins, encoding="utf-8")
        print(f"{path.name}: {len(pins.splitlines())}")
    return 0


if __name__ == "__main__":
    say.run(main)
