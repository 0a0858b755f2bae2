"""Every check of the project, one after the other, each timed; a failed one does not stop the rest.

python -m tools.checks [part ...]        or: make test PARTS="unit nbval"
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tools import edition, environment, run_notebooks, say
from tools.lesson_needs import lacking
from tools.project import ROOT
from tools.say import Stop, tell

_PYTEST = ("-m", "pytest")
_WORKERS = ("-n", "2")
_TIMEOUT = f"--nbval-cell-timeout={run_notebooks.CELL_SECONDS}"
STRICT_NBVAL = (*_PYTEST, "--nbval", "--nbval-current-env", _TIMEOUT, "-p", "no:cacheprovider")


def notebook_folders(root: Path = ROOT, editions: Sequence[str] | None = None) -> list[str]:
    """The folders with built notebooks, relative to the root; strict nbval over none would prove nothing.

    All of them, or the learners' of the ``editions`` named: an instructor's differ from those in the solutions alone.
    """
    folders = {path.parent.relative_to(root).as_posix() for path in root.glob("notebooks/**/*.ipynb")}
    if editions is None:
        wanted = {f"notebooks/{place}{name}" for place in ("", "instructor/") for name in edition.EDITIONS}
    else:
        wanted = {f"notebooks/{name}" for name in editions}
    found = sorted(folders & wanted)
    if not found:
        raise Stop("没有可检查的课程：先运行 make notebooks。", "No built notebook to check: run make notebooks.")
    return found


def nbval(python: Path, editions: Sequence[str] | None = None) -> tuple[str, ...]:
    """Strict nbval over every lesson whose needs ``python`` has; a notebook's cells stay on one worker, in order."""
    folders = notebook_folders(editions=editions)
    left_out = (f"--ignore={path}" for path in _notebooks(lacking(python), folders))
    return (*STRICT_NBVAL, *_WORKERS, "--dist", "loadfile", *left_out, *folders)


def executed(python: Path, editions: Sequence[str] | None = None) -> tuple[str, ...]:
    """The other lessons, run from top to bottom: what they store cannot be met here, but no cell may raise."""
    missing = lacking(python)
    for lesson, modules in missing.items():
        names = " ".join(modules)
        tell(f"{lesson}：缺少 {names}，只运行，不比较输出", f"{lesson}: lacks {names}; run, and not compared")
    folders = notebook_folders(editions=editions)
    return run_notebooks.arguments(_notebooks(missing, folders))


def _notebooks(lessons: Iterable[str], folders: Sequence[str]) -> list[str]:
    """The built notebooks of ``lessons`` in ``folders``, relative to the root."""
    paths = [f"{folder}/{lesson}.ipynb" for lesson in lessons for folder in folders]
    return [path for path in paths if (ROOT / path).exists()]


# Quick ones first. Each gives the arguments of the environment's Python, which it is told.
PARTS: dict[str, Callable[[Path], Sequence[str]]] = {
    "ruff": lambda _: ("-m", "ruff", "check", "."),
    "format": lambda _: ("-m", "ruff", "format", "--check", "."),
    "mypy": lambda _: ("-m", "mypy"),
    "imports": lambda _: ("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"),
    "unit": lambda _: (
        *_PYTEST,
        "tests",
        "--ignore=tests/browser",
        "--ignore=tests/deploy",
        "--ignore=tests/platforms",
        "--ignore=tests/site",
        *_WORKERS,
    ),
    "notebooks": lambda _: ("-m", "notebooks.build", "--check"),
    "teaching": lambda _: ("-m", "tools.schedule", "--check"),
    "nbval": nbval,
    "executed": executed,
    "platforms": lambda _: (*_PYTEST, "tests/platforms", *_WORKERS, "--maxschedchunk=1"),  # the longest come first
    "deploy": lambda _: (*_PYTEST, "tests/deploy"),
    "pythons": lambda _: ("-m", "tools.pythons", "--ends"),
    # Their conftests keep the tests of a notebook together.
    "site": lambda _: (*_PYTEST, "tests/site", *_WORKERS),
    "browser": lambda _: (*_PYTEST, "tests/browser", *_WORKERS),
}


# These run whole lessons, and no test of theirs looks at a measured time; ``executed`` sees to that itself.
_RUN_LESSONS = ("nbval", "platforms", "deploy", "site", "browser")


def selected(names: Sequence[str]) -> list[str]:
    """The parts named, in the order in which they run; all of them when none is named."""
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise Stop(
            f"没有这样的部分：{' '.join(unknown)}；可选：{' '.join(PARTS)}。",
            f"There is no part {' '.join(unknown)}; choose from: {' '.join(PARTS)}.",
        )
    return [part for part in PARTS if part in names or not names]


def run_part(part: str, python: Path) -> tuple[bool, float]:
    """Run one part with its output in view: whether it went well, and its seconds."""
    print(f"\n━━ {part} " + "━" * (76 - len(part)), flush=True)
    started = time.perf_counter()
    try:
        brief = run_notebooks.BRIEF if part in _RUN_LESSONS else {}
        variables = {**os.environ, **run_notebooks.NOBODYS, **brief}
        command = [str(python), *PARTS[part](python)]
        code = subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode
    except Stop as stop:
        print(f"✗ {stop.zh}\n✗ {stop.en}", flush=True)
        code = 1
    return code == 0, time.perf_counter() - started


def summary(results: dict[str, tuple[bool, float]]) -> str:
    """The table at the end."""
    rows = [
        f"{part:<10} {'ok' if good else 'FAILED':<7} {seconds:7.1f} s" for part, (good, seconds) in results.items()
    ]
    total = f"{'total':<18} {sum(seconds for _, seconds in results.values()):7.1f} s"
    bad = " ".join(part for part, (good, _) in results.items() if not good)
    return "\n".join(["", *rows, total, f'again: make test PARTS="{bad}"' if bad else "all is well"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.checks", description="Check everything.")
    parser.add_argument("parts", nargs="*", help=f"of {' '.join(PARTS)}; default: all")
    parts = selected(parser.parse_args().parts or os.environ.get("PARTS", "").split())
    say.use_edition(edition.chosen(None))
    python = environment.ensure(dev=True)
    tell(f"检查：{' '.join(parts)}", f"Checking: {' '.join(parts)}")
    results = {part: run_part(part, python) for part in parts}
    print(summary(results), flush=True)
    return 0 if all(good for good, _ in results.values()) else 1


if __name__ == "__main__":
    say.run(main)
