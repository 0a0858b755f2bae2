"""The two scripts that run before a Python is known, in a PATH where every command is made up."""

import os
import shutil
import subprocess
import sys

import pytest

from tools.project import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX shell")


@pytest.fixture
def fake_path(tmp_path):
    """A function that adds a command to an otherwise empty PATH, as a shell script."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def add(name, body):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    add.folder = folder
    return add


def run(shell, script, folder, **variables):
    return subprocess.run(
        [shutil.which(shell), str(ROOT / script)],
        env={"PATH": str(folder), **variables},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def find_python(folder, **variables):
    return run("sh", "tools/find_python.sh", folder, **variables)


# What the script asks a Python, answered by a made-up one: its version, new enough?, can it make environments?
OLD = 'case "$2" in *print*) echo 3.8;; *"(3, 10)"*) exit 1;; esac'
BARE = 'case "$2" in *print*) echo 3.11;; *ensurepip*) exit 1;; esac'
WHOLE = 'case "$2" in *print*) echo 3.12;; esac'


def test_the_real_python_is_found(fake_path):
    (fake_path.folder / "python3").symlink_to(sys.executable)
    assert find_python(fake_path.folder).stdout.strip().endswith("/python3")


def test_a_newer_python_is_taken_when_python3_is_old(fake_path):
    fake_path("python3", OLD)
    whole = fake_path("python3.12", WHOLE)
    assert find_python(fake_path.folder).stdout.strip() == str(whole)


def test_a_python_that_can_make_environments_is_preferred_to_one_that_cannot(fake_path):
    bare = fake_path("python3", BARE)
    assert find_python(fake_path.folder).stdout.strip() == str(bare)
    whole = fake_path("python3.12", WHOLE)
    assert find_python(fake_path.folder).stdout.strip() == str(whole)


def test_a_named_python_is_the_only_candidate(fake_path):
    fake_path("python3", WHOLE)
    assert find_python(fake_path.folder, PYTHON="/nowhere/python3").returncode == 1


@pytest.mark.parametrize(("body", "zh", "en"), [(OLD, "太旧", "too old"), ("exit 1", "找不到", "No working python3")])
def test_no_usable_python_is_told_in_both_languages(fake_path, body, zh, en):
    fake_path("python3", body)
    result = find_python(fake_path.folder)
    assert result.returncode == 1 and not result.stdout
    assert zh in result.stderr and en in result.stderr and "apt install" in result.stderr


def ci_run(fake_path, **variables):
    for tool in ("dirname", "env"):
        (fake_path.folder / tool).symlink_to(shutil.which(tool))
    fake_path("python3", WHOLE)
    fake_path("make", 'echo "made $*"')
    return run("bash", ".ci/run", fake_path.folder, **variables)


def test_ci_on_a_complete_machine_installs_nothing(fake_path):
    fake_path("chromium", "")
    fake_path("npm", "")
    fake_path("c++", "")
    fake_path("fc-list", "echo Noto Sans CJK SC")
    fake_path("apt-get", "exit 9")
    result = ci_run(fake_path)
    assert (result.returncode, result.stdout) == (0, "made test\n")


def test_ci_as_root_installs_browser_fonts_and_compiler(fake_path):
    fake_path("id", "echo 0")
    log = fake_path.folder / "log"
    fake_path("apt-get", f'echo "$*" >> {log}')
    result = ci_run(fake_path)
    assert result.returncode == 0 and result.stdout.endswith("made test\n")
    update, install = log.read_text().splitlines()
    assert update.startswith("update")
    assert install.endswith("chromium fontconfig fonts-noto-cjk nodejs npm g++")


def test_ci_without_root_uses_sudo_or_says_what_to_run(fake_path):
    fake_path("id", "echo 1000")
    result = ci_run(fake_path)
    assert result.returncode == 1 and "apt-get install chromium" in result.stderr
    fake_path("sudo", 'echo "sudo $*"')
    fake_path("fc-list", "echo Noto Sans CJK SC")
    again = run("bash", ".ci/run", fake_path.folder)
    assert again.returncode == 0 and "sudo apt-get update" in again.stdout and again.stdout.endswith("made test\n")


def test_a_failed_installation_fails_ci(fake_path):
    fake_path("id", "echo 0")
    fake_path("apt-get", "exit 100")
    result = ci_run(fake_path)
    assert result.returncode == 100 and "made test" not in result.stdout
