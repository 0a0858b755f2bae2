"""Environments beside .venv: reused while nothing changed, made anew when something did, and never over a stranger's."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import side_environment
from tools.project import venv_python
from tools.say import Stop
from tools.side_environment import offshoot, ready


@pytest.fixture
def made(monkeypatch):
    """What was made, without pip's work."""
    calls = []
    real = side_environment._run

    def run(command):
        if "-c" in command:
            return real(command)
        calls.append(command[1:])
        if "venv" in command:
            venv_python(Path(command[-1])).parent.mkdir(parents=True)
            venv_python(Path(command[-1])).touch()
        return ""

    monkeypatch.setattr(side_environment, "_run", run)
    return calls


def test_it_is_made_once_and_again_when_anything_changes(made, tmp_path):
    python, pins = Path(sys.executable), tmp_path / "pins.txt"
    pins.write_text("a==1\n")
    folder = tmp_path / "environment"
    assert ready(folder, python, ["a"], [pins]) == venv_python(folder)
    ready(folder, python, ["a"], [pins])
    assert len(made) == 2 and "a" in made[1]
    pins.write_text("a==2\n")
    ready(folder, python, ["a"], [pins])
    ready(folder, python, ["a", "b"], [pins])
    assert len(made) == 6


def test_what_fills_it_may_be_chosen_and_gets_the_new_python(made, tmp_path):
    filled = []
    folder = tmp_path / "environment"
    ready(folder, Path(sys.executable), ["a"], fill=lambda python, wanted: filled.append((python, wanted)))
    ready(folder, Path(sys.executable), ["a"], fill=lambda python, wanted: filled.append((python, wanted)))
    assert filled == [(venv_python(folder), ["a"])]
    assert not [call for call in made if "pip" in call]


def test_one_cut_short_is_made_again(made, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(side_environment, "_run", _interrupted(side_environment._run))
        ready(tmp_path / "environment", Path(sys.executable), ["a"])
    ready(tmp_path / "environment", Path(sys.executable), ["a"])
    assert "a" in made[-1]


def _interrupted(run):
    def interrupted(command):
        if "pip" in command:
            raise KeyboardInterrupt
        return run(command)

    return interrupted


def test_a_folder_of_somebody_else_is_left_alone(made, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work.txt").touch()
    with pytest.raises(Stop, match="left alone"):
        ready(tmp_path / "mine", Path(sys.executable), ["a"])
    assert (tmp_path / "mine" / "work.txt").exists() and not made


def test_a_failed_command_says_what_to_do(tmp_path):
    with pytest.raises(Stop, match="installation failed"):
        side_environment._run([sys.executable, "-c", "raise SystemExit('no')"])


def test_an_offshoot_sees_the_base_and_leaves_it_as_it_was(tmp_path):
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base)], check=True)
    packages = next(base.rglob("site-packages"))
    (packages / "of_the_base.py").write_text("value = 1\n")
    python = offshoot(base, tmp_path / "own")
    ask = "import of_the_base, sysconfig; print(of_the_base.value, sysconfig.get_path('purelib'))"
    shown = subprocess.run([str(python), "-c", ask], check=True, capture_output=True, text=True).stdout.split()
    assert shown[0] == "1" and Path(shown[1]).is_relative_to(tmp_path / "own")
    assert [path.name for path in packages.iterdir() if path.suffix == ".py"] == ["of_the_base.py"]
