"""Unit tests and the built notebooks for real on every Python of the course that this machine has.

    python -m tools.pythons [3.10 3.13 ...] [--ends]

Each has an environment of its own, .venv-310 and so on, with the versions of constraints/. A Python is looked for
by its name on PATH and among pyenv's; one that is missing is named, and no failure. Where torch cannot be had for a
Python without its 3 GB of CUDA, the lessons that need it are run there from top to bottom, and not compared.

Tests marked ``once`` are left out, and properties are tried on fewer examples: the running Python tries them all. With
``--ends`` the oldest Python takes one edition and the newest the other, since their code is the same.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools import checks, edition, run_notebooks, say
from tools.constraints import PYTHONS
from tools.pip_run import PipError, explained
from tools.project import PYPROJECT, ROOT, constraints_for, extra_requirements, lesson_extras, requirement_name
from tools.say import Stop, tell
from tools.side_environment import install, ready
from tools.torch_install import obtainable

# Of the extra ``dev``, what these checks do without: the same on every Python, so once is enough.
_UNIT = ("-m", "not once", "--hypothesis-profile=fewer")
_NOT_NEEDED = {"build", "import-linter", "jupyter-repo2docker", "mypy", "playwright", "ruff", "types-PyYAML"}


@dataclass(frozen=True)
class Step:
    """What became of one step: whether it went well, in how many seconds, and its last line."""

    good: bool
    seconds: float
    words: str = ""

    def __str__(self) -> str:
        return f"{'ok' if self.good else 'FAILED'} {self.seconds:.0f} s{f' ({self.words})' if self.words else ''}"


def candidates(version: str, pyenv: Path) -> Iterator[Path]:
    """Where a Python of this version may be, the one that runs this first."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        # Under a virtual environment lies the Python that it was made with.
        yield Path(getattr(sys, "_base_executable", None) or sys.executable)
    for name in (f"python{version}", "python3"):
        found = shutil.which(name)
        if found:
            yield Path(found)
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)


def find(version: str, pyenv: Path | None = None) -> Path | None:
    """A Python of this version that can make environments, or None."""
    home = pyenv or Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    ask = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for python in candidates(version, home):
        # A pyenv shim can be there and yet not run.
        try:
            done = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout.strip() == version:
            return python
    return None


def find_all() -> dict[str, Path]:
    """Version -> Python, oldest first, of those that are here."""
    found = {version: find(version) for version in PYTHONS}
    return {version: python for version, python in found.items() if python}


def ends(found: Sequence[str], running: str) -> list[str]:
    """The oldest and the newest of ``found``; the running one is left out, since its own checks cover it."""
    return [version for version in dict.fromkeys((found[0], found[-1])) if version != running]


def shares(chosen: Sequence[str], of_two: bool) -> dict[str, tuple[str, ...]]:
    """Version -> the editions that it takes: one each where there are two and ``of_two`` asks for that, else both."""
    if of_two and len(chosen) == len(edition.EDITIONS):
        return {version: (share,) for version, share in zip(chosen, edition.EDITIONS, strict=True)}
    return dict.fromkeys(chosen, edition.EDITIONS)


def packages_for_tests(pyproject_text: str) -> list[str]:
    """The requirements of the extra ``dev`` that unit tests and nbval need."""
    return [line for line in extra_requirements(pyproject_text, "dev") if requirement_name(line) not in _NOT_NEEDED]


def environment(version: str, python: Path) -> Path:
    """The Python of this version's environment."""
    major, minor = version.split(".")
    constraints = constraints_for((int(major), int(minor)))
    pins = ["--constraint", str(constraints)] if constraints else []
    text = PYPROJECT.read_text(encoding="utf-8")

    def fill(own: Path, wanted: Sequence[str]) -> None:
        try:
            extras = obtainable(own, lesson_extras(text), constraints)
        except PipError as failure:
            raise explained(failure.output) from failure
        install(own, ["--editable", f"{ROOT}[{','.join(extras)}]", *wanted])

    wanted = [*packages_for_tests(text), *pins]
    files = [PYPROJECT, *([constraints] if constraints else [])]
    return ready(ROOT / f".venv-{major}{minor}", python, wanted, files, fill)


def made(version: str, python: Path) -> tuple[Path | None, Step]:
    """The environment's Python, or None where it cannot be made; why is told."""
    started = time.perf_counter()
    try:
        own = environment(version, python)
    except Stop as stop:
        print(f"✗ {stop.zh}\n✗ {stop.en}", flush=True)
        own = None
    return own, Step(own is not None, time.perf_counter() - started)


def check(version: str, own: Path, editions: Sequence[str]) -> dict[str, Step]:
    """Run the checks in an environment; a step that fails does not stop the next."""
    wanted: dict[str, Callable[[], Sequence[str]]] = {
        "unit": lambda: (*checks.PARTS["unit"](own), *_UNIT),
        "nbval": lambda: checks.nbval(own, editions),
        "executed": lambda: checks.executed(own, editions),
    }
    steps = {}
    for name, arguments in wanted.items():
        print(f"\n── Python {version}: {name} " + "─" * 50, flush=True)
        try:
            steps[name] = run([str(own), *arguments()], run_notebooks.BRIEF if name == "nbval" else {})
        except Stop as stop:
            print(f"✗ {stop.zh}\n✗ {stop.en}", flush=True)
            steps[name] = Step(False, 0.0)
    return steps


def check_all(pythons: Mapping[str, Path], editions: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Step]]:
    """Make all environments, which is mostly waiting, at once; then check them one after the other."""
    with ThreadPoolExecutor(max_workers=max(1, len(pythons))) as pool:
        environments = dict(zip(pythons, pool.map(made, pythons, pythons.values()), strict=True))
    return {
        version: {"environment": step, **(check(version, own, editions[version]) if own else {})}
        for version, (own, step) in environments.items()
    }


def run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> Step:
    """Run a check with its output in view, with these ``variables`` besides."""
    started = time.perf_counter()
    last = ""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **run_notebooks.NOBODYS, **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return Step(process.returncode == 0, time.perf_counter() - started, re.sub(r" in [\d.]+s.*", "", last))


def summary(results: Mapping[str, Mapping[str, Step]], missing: Sequence[str]) -> str:
    """The table at the end."""
    rows = [
        f"Python {version:<5} " + "; ".join(f"{name} {step}" for name, step in steps.items())
        for version, steps in results.items()
    ]
    lacking = [f"Python {version:<5} 这台机器上没有 / not on this machine" for version in missing]
    return "\n".join(["", *rows, *lacking])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.pythons", description="Tests and lessons, each Python.")
    parser.add_argument("versions", nargs="*", help=f"of {' '.join(PYTHONS)}; default: every one that is here")
    parser.add_argument("--ends", action="store_true", help="only the oldest and the newest, without the running one")
    options = parser.parse_args()
    say.use_edition(edition.chosen(None))
    found = find_all()
    chosen = options.versions or list(found)
    unknown = [version for version in chosen if version not in PYTHONS]
    if unknown or not found:
        raise Stop(
            f"找不到 Python {' '.join(unknown or PYTHONS)}；课程支持 {' '.join(PYTHONS)}。",
            f"No Python {' '.join(unknown or PYTHONS)}; the course is for {' '.join(PYTHONS)}.",
        )
    if options.ends:
        chosen = ends(list(found), f"{sys.version_info.major}.{sys.version_info.minor}")
    here = {version: found[version] for version in chosen if version in found}
    results = check_all(here, shares(list(here), options.ends))
    missing = [version for version in (options.versions or PYTHONS) if version not in found]
    print(summary(results, missing), flush=True)
    if not results:
        tell("没有别的 Python 可检查。", "There is no other Python to check.")
    steps = [step for result in results.values() for step in result.values()]
    return 0 if all(step.good for step in steps) and (results or options.ends) else 1


if __name__ == "__main__":
    say.run(main)
