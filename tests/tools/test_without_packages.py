"""What a teacher runs once, before class, must not install the developers' tools first."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.bundle import wheels
from tools.project import ROOT


@pytest.mark.parametrize("module", ["tools.bundle.__main__", "tools.lab", "deploy.copies"])
def test_it_runs_on_the_standard_library_alone(module: str) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {module}; print('there')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "there\n"), done.stderr


def test_a_python_without_the_courses_packages_is_told_which_one_to_use() -> None:
    command = [sys.executable, "-E", "-S", "-X", "utf8", "-m", "lessons_lib.classroom", "results"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    zh, en = done.stderr.splitlines()[-2:]
    for sentence in (zh, en):
        assert "lazy_loader" in sentence and ".venv/bin/python" in sentence and sys.executable in sentence
    assert "请用课程自己的 Python" in zh and "Use the course's own" in en


def test_make_bundle_makes_no_environment_for_the_lessons() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make")
    shown = subprocess.run([make, "--dry-run", "bundle"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "tools.bundle" in shown
    assert "tools.environment" not in shown and ".venv/" not in shown


def test_what_is_in_the_cache_is_not_downloaded_again_and_the_rest_in_one_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []

    def pip(*arguments: str) -> None:
        calls.append(arguments)
        for requirement in arguments:
            name, equal, version = requirement.partition("==")
            if equal and not name.startswith("-"):
                (tmp_path / f"{name.replace('-', '_')}-{version}-py3-none-any.whl").write_bytes(name.encode())

    monkeypatch.setattr(wheels, "_pip", pip)
    first = wheels.pure_wheels(tmp_path)
    assert len(first) == len(wheels.PURE) and len(calls) == 1
    (tmp_path / next(name for name in first if name.startswith("tqdm-"))).unlink()
    assert wheels.pure_wheels(tmp_path) == first
    (again,) = calls[1:]
    assert [word for word in again if "==" in word and not word.startswith("-")] == [
        word for word in calls[0] if word.startswith("tqdm==")
    ]
