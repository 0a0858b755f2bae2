"""Google Colab's own versions: our wheel changes none of them, and the lessons pass strict nbval on them.

Its torch is a CUDA build of several GB, so that the lessons which need torch are run here without it, and not compared.

Colab's Python is 3.13, its older runtimes have 3.11; each takes one edition.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from platform_tools import built_bundle, python_or_skip, unpacked

from tools import run_notebooks
from tools.checks import STRICT_NBVAL
from tools.lesson_needs import lacking
from tools.project import CONSTRAINTS, ROOT
from tools.side_environment import CACHE, offshoot, ready

COLAB = {"3.11": "zh", "3.13": "en"}
# What the course is known to meet there.
PUBLISHED = {
    "ipywidgets": "7.7.1",
    "ipython": "7.34.0",
    "ipykernel": "6.17.1",
    "numpy": "2.1.3",
    "matplotlib": "3.10.0",
    "networkx": "3.6.1",
    "anywidget": "0.9.21",
    "tqdm": "4.67.3",
}
OURS = {"operator_fusion_lessons", "drawsvg", "lazy_loader"}


def pins(version: str) -> Path:
    return CONSTRAINTS / f"colab-{version.replace('.', '')}.txt"


def freeze(python: Path) -> dict[str, str]:
    """Every package that this Python sees, with its version or address."""
    command = [str(python), "-m", "pip", "freeze", "--all"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [re.split(r"==| @ ", line, maxsplit=1) for line in text.splitlines() if not line.startswith("#")]
    return {name.lower().replace("-", "_"): version for name, version in lines}


@pytest.mark.parametrize("version", COLAB)
def test_the_pins_are_what_colab_publishes(version: str) -> None:
    found = dict(re.findall(r"^([a-z0-9-]+)==(\S+)$", pins(version).read_text(encoding="utf-8"), re.MULTILINE))
    assert {name: found[name] for name in PUBLISHED} == PUBLISHED


@pytest.mark.parametrize("version", COLAB)
def test_our_wheel_changes_no_version_and_the_lessons_run_as_stored(
    version: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = CACHE / f"colab-{version.replace('.', '')}"
    wanted = ["--no-deps", "--requirement", str(pins(version))]
    ready(base, python_or_skip(version), wanted, [pins(version)])
    python = offshoot(base, tmp_path / "env")
    bundle = unpacked(built_bundle(tmp_path_factory), tmp_path)
    before = freeze(python)
    assert {name: before[name] for name in PUBLISHED} == PUBLISHED

    # The folder also has newer versions of what is there: an upgrade would be possible, and must not happen.
    wheel = next((bundle / "wheels").glob("operator_fusion_lessons-*.whl"))
    options = ["--quiet", "--no-index", "--disable-pip-version-check", f"--find-links={bundle / 'wheels'}"]
    subprocess.run([str(python), "-m", "pip", "install", *options, str(wheel)], check=True)
    after = freeze(python)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) <= OURS

    # Away from the repository, so that the lessons find the wheel and nothing else.
    lessons = tmp_path / "lessons"
    shutil.copytree(ROOT / "notebooks" / COLAB[version], lessons)
    not_compared = {f"{lesson}.ipynb" for lesson in lacking(python)}
    compared = [path for path in lessons.glob("*.ipynb") if path.name not in not_compared]
    shown = run(python, [*STRICT_NBVAL, "-q", *map(str, compared)], tmp_path)
    assert re.search(r"\d+ passed", shown) and "failed" not in shown
    run(python, run_notebooks.arguments([str(lessons / name) for name in not_compared]), tmp_path)


def run(python: Path, arguments: Sequence[str], folder: Path) -> str:
    """What this Python prints in ``folder``; it must end well."""
    command = [str(python), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout
