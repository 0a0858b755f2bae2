"""Which lessons need torch's extras, and which of those a given Python cannot serve."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tools.project import ROOT, extra_requirements, requirement_name
from tools.torch_source import TORCH_EXTRAS

_NEEDS = re.compile(r'^# %% \[markdown\].*? needs=("[^"]*"|\[[^]]*\])', re.MULTILINE)
_WHICH_ARE_THERE = "import sys; from importlib.util import find_spec; print(*filter(find_spec, sys.argv[1:]))"


def lesson_needs(root: Path = ROOT) -> dict[str, tuple[str, ...]]:
    """Lesson -> the extras that its title cell names, in the order of the lessons.

    Read with a pattern because this runs before anything is installed; a test holds it to the builder's reader.
    """
    found = {}
    for path in sorted((root / "notebooks" / "source").glob("*.py")):
        needs = _NEEDS.search(path.read_text(encoding="utf-8"))
        found[path.stem] = tuple(re.findall(r"[A-Za-z0-9_-]+", needs[1])) if needs else ()
    return found


def lacking(python: Path, root: Path = ROOT) -> dict[str, tuple[str, ...]]:
    """Lesson -> the modules that it needs and ``python`` lacks; lessons that lack nothing are left out.

    Only torch's extras count: any platform may do without some package of the others (Colab has no JupyterLab).
    Their conditions do not: a lesson's stored outputs come from a machine that has triton, macOS or not.
    """
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    modules = {extra: [_module(line) for line in extra_requirements(text, extra)] for extra in TORCH_EXTRAS}
    needed = {
        lesson: dict.fromkeys(name for extra in needs for name in modules.get(extra, ()))
        for lesson, needs in lesson_needs(root).items()
    }
    there = _there(python, {name for names in needed.values() for name in names})
    missing = {lesson: tuple(name for name in names if name not in there) for lesson, names in needed.items()}
    return {lesson: names for lesson, names in missing.items() if names}


def _module(requirement: str) -> str:
    """The module that a requirement of torch's extras brings."""
    return requirement_name(requirement).replace("-", "_")


def _there(python: Path, modules: Iterable[str]) -> set[str]:
    """Those of ``modules`` that this Python finds."""
    command = [str(python), "-c", _WHICH_ARE_THERE, *sorted(modules)]
    done = subprocess.run(command, cwd=python.parent, check=True, capture_output=True, encoding="utf-8")
    return set(done.stdout.split())
