"""The wheels that the site serves itself, so that a first cell in the browser asks nobody else for them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

from notebooks.build.config import Config
from tools.pip_run import explained
from tools.project import ROOT, pinned, this_constraints

# Asked for by the browser's kernel, by ipywidgets and by anywidget; Pyodide does not have them.
_MORE = ("comm", "jupyterlab-widgets", "psygnal")
# Some have wheels for a system too, which a browser cannot use.
_PURE = ("--platform=any", "--implementation=py", "--abi=none")
_SOURCES = ("pyproject.toml", "README.md", "LICENSE", "LICENSE-CONTENT", "NOTICE", "lessons_lib")


def collect_wheels(target: Path, config: Config, cache: Path) -> None:
    """Put our own wheel, freshly built, and those of its requirements into ``target``."""
    target.mkdir(parents=True)
    _build_own(target)
    for name in (*requirement_names(config), *_MORE):
        shutil.copy(download(pinned(name, this_constraints()), cache, *_PURE), target)


def requirement_names(config: Config) -> list[str]:
    """What our package asks for, and what a lesson's first cell may bring on top of it; without versions."""
    more = chain.from_iterable(config.in_browser.values())
    return [Requirement(requirement).name for requirement in (*config.requirements, *more)]


def download(requirement: str, cache: Path, *options: str) -> Path:
    """The pure wheel of ``requirement``, from ``cache`` if it is there."""
    name, _, version = requirement.partition("==")
    pattern = f"{name.replace('-', '_')}-{version or '*'}-*.whl"
    found = sorted(cache.glob(pattern))
    if not found:
        pip("download", "--no-deps", "--only-binary=:all:", "--dest", str(cache), *options, requirement)
        found = sorted(cache.glob(pattern))
    return found[-1]


def pip(*arguments: str) -> None:
    """Run pip; a failure says what to do."""
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise explained(done.stdout + done.stderr)


def _build_own(target: Path) -> None:
    """Built from a copy: setuptools leaves a build folder, and would pack what an older one holds."""
    with tempfile.TemporaryDirectory() as name:
        for source in _SOURCES:
            path, copy = ROOT / source, Path(name) / source
            if path.is_dir():
                shutil.copytree(path, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(path, copy)
        pip("wheel", "--no-deps", "--wheel-dir", str(target), name)
