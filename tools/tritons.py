"""The kernel tests that every supported Triton must pass, on each of them.

    python -m tools.tritons [3.2.0 3.6.0 ...]

Each version lies in a folder of its own, .cache/tritons/<version>, put in front of what .venv has; everything else,
torch and NumPy too, is .venv's. The version that .venv has needs no folder. A version that cannot be had is a failure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools import edition, environment, say
from tools.pip_run import PipError, pip
from tools.project import ROOT
from tools.say import Stop, tell

# What learners have: PyTorch 2.6, 2.7 and 2.8 bring the first three, Google Colab has the fourth.
OLDER = ("3.2.0", "3.3.1", "3.4.0", "3.6.0")
CACHE = ROOT / ".cache" / "tritons"
_TESTS = ("tests/kernels", "-m", "triton_versions", "-n", "2", "-p", "no:cacheprovider")


@dataclass(frozen=True)
class Outcome:
    """What became of the tests on one Triton; ``words`` say why there are none."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    words: str = ""

    @property
    def good(self) -> bool:
        return self.passed > 0 and not self.failed


def overlay(version: str, python: Path, cache: Path = CACHE) -> Path:
    """The folder with this Triton for this Python, fetched once; raises PipError."""
    folder = cache / f"{version}-py{sys.version_info.major}{sys.version_info.minor}"
    if not folder.exists():
        tell(f"正在下载 Triton {version}…", f"Fetching Triton {version} ...")
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        pip(["install", "--quiet", "--no-deps", "--target", str(part), f"triton=={version}"], python=python)
        part.rename(folder)  # whole or not at all
    return folder


def imported(python: Path, variables: Mapping[str, str]) -> str:
    """The version of Triton that this Python imports, or the last line of why it imports none."""
    command = [str(python), "-c", "import triton; print(triton.__version__)"]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, encoding="utf-8", errors="replace")
    return (done.stderr if done.returncode else done.stdout).strip().splitlines()[-1]


def check(version: str, python: Path, own: str) -> Outcome:
    """The tests on one Triton; ``own`` is the version that ``python`` has without a folder in front."""
    variables = dict(os.environ)
    if version != own:
        try:
            folder = overlay(version, python)
        except PipError as failure:
            print(failure.output, flush=True)
            return Outcome(words="这里下载不到 / cannot be had here")
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    found = imported(python, variables)
    return run_tests(python, variables) if found == version else Outcome(words=found)


def run_tests(python: Path, variables: Mapping[str, str]) -> Outcome:
    """Run pytest with its output in view, and count."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [str(python), "-m", "pytest", *_TESTS, f"--junitxml={report}"]
        subprocess.run(command, cwd=ROOT, env=variables, check=False)
        if not report.exists():
            return Outcome(words="pytest 没有跑完 / pytest did not end")
        suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    tests, failures, errors, skipped = (
        sum(int(suite.get(name, "0")) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    words = "" if tests else "没有测试 / no test"
    return Outcome(tests - failures - errors - skipped, failures + errors, skipped, words)


def summary(results: Mapping[str, Outcome]) -> str:
    """The table at the end."""
    rows = [
        f"{version:<10} {result.passed:>7} {result.failed:>7} {result.skipped:>8}   "
        f"{'ok' if result.good else 'FAILED'}{f' ({result.words})' if result.words else ''}"
        for version, result in results.items()
    ]
    return "\n".join(["", f"{'triton':<10} {'passed':>7} {'failed':>7} {'skipped':>8}", *rows])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.tritons", description="Kernel tests, each Triton.")
    parser.add_argument("versions", nargs="*", help=f"default: {' '.join(OLDER)} and the one in .venv")
    options = parser.parse_args()
    say.use_edition(edition.chosen(None))
    python = environment.ensure(dev=True)
    own = imported(python, os.environ)
    if not own[:1].isdigit():
        raise Stop(f".venv 里没有 Triton：{own}", f"There is no Triton in .venv: {own}")
    results = {}
    for version in options.versions or dict.fromkeys((*OLDER, own)):
        print(f"\n━━ Triton {version} " + "━" * 60, flush=True)
        results[version] = check(version, python, own)
    print(summary(results), flush=True)
    return 0 if all(result.good for result in results.values()) else 1


if __name__ == "__main__":
    say.run(main)
