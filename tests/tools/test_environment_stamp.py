"""The environment is made once, mended when half made, and never taken from somebody else."""

import json
import re
import subprocess
import sys

import pytest

from tools import environment, torch_install
from tools.environment import Stamp
from tools.pip_run import PipError
from tools.say import Stop


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An environment folder of the test's own, where making one is instant and pip only notes what it is asked."""
    venv = tmp_path / ".venv"
    monkeypatch.setattr(environment, "VENV", venv)
    monkeypatch.setattr(environment, "STAMP", venv / "stamp.json")
    monkeypatch.setattr(environment, "MARKER", venv / "installing")
    monkeypatch.setattr(environment, "venv_python", lambda: venv / "python")
    monkeypatch.setattr(environment, "lesson_extras", lambda text: ("lab",))
    calls = []
    monkeypatch.setattr(environment, "pip", calls.append)

    def make(command, **options):
        calls.append(["venv"])
        (venv / "python").touch()
        (venv / "pyvenv.cfg").write_text(f"version = {sys.version_info.major}.{sys.version_info.minor}.0\n")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(environment.subprocess, "run", make)
    return venv, calls


def verbs(calls):
    return [call[0] for call in calls]


def test_first_run_makes_and_installs_and_the_second_does_nothing(place):
    _, calls = place
    environment.ensure()
    assert verbs(calls) == ["venv", "install"]
    assert any("[lab]" in argument for argument in calls[1])
    environment.ensure()
    assert len(calls) == 2


def test_checks_add_to_the_environment_and_the_lab_is_content_with_more(place):
    _, calls = place
    environment.ensure()
    environment.ensure(dev=True)
    assert verbs(calls) == ["venv", "install", "install"]
    assert any("[lab,dev,site]" in argument for argument in calls[2])
    environment.ensure()
    assert len(calls) == 3


def test_a_change_of_what_is_asked_for_installs_again(place, monkeypatch):
    _, calls = place
    environment.ensure()
    monkeypatch.setattr(environment, "_fingerprint", lambda: "another")
    environment.ensure()
    assert verbs(calls) == ["venv", "install", "install"]


def test_the_fingerprint_changes_with_pyproject_and_with_the_pins(tmp_path, monkeypatch):
    seen = {environment._fingerprint()}
    pyproject, pins = tmp_path / "pyproject.toml", tmp_path / "py399.txt"
    pyproject.write_text("a")
    monkeypatch.setattr(environment, "PYPROJECT", pyproject)
    seen.add(environment._fingerprint())
    pins.write_text("b")
    monkeypatch.setattr(environment, "this_constraints", lambda: pins)
    seen.add(environment._fingerprint())
    monkeypatch.setattr(environment, "ROOT", tmp_path / "moved")
    seen.add(environment._fingerprint())
    assert len(seen) == 4


def test_an_install_that_was_killed_is_made_anew(place):
    venv, calls = place
    environment.ensure()
    (venv / "leftover").mkdir()
    (venv / "installing").touch()
    environment.ensure()
    assert verbs(calls) == ["venv", "install", "venv", "install"]
    assert not (venv / "leftover").exists() and not (venv / "installing").exists()


@pytest.mark.parametrize("damage", ["stamp", "python", "version"])
def test_a_damaged_environment_is_made_anew(place, damage):
    venv, calls = place
    environment.ensure()
    if damage == "stamp":
        (venv / "stamp.json").write_text("{")
    elif damage == "python":
        (venv / "python").unlink()
    else:
        (venv / "pyvenv.cfg").write_text("version = 3.1.0\n")
    environment.ensure()
    assert verbs(calls) == ["venv", "install", "venv", "install"]


def test_somebody_elses_environment_is_left_alone(place):
    venv, calls = place
    venv.mkdir()
    (venv / "theirs").touch()
    with pytest.raises(Stop):
        environment.ensure()
    assert (venv / "theirs").exists() and not calls


def test_a_failed_addition_leaves_the_old_environment_in_use(place, monkeypatch):
    venv, calls = place
    environment.ensure()

    def fail(arguments):
        raise PipError("Failed to establish a new connection")

    with monkeypatch.context() as patch, pytest.raises(Stop) as stop:
        patch.setattr(environment, "pip", fail)
        environment.ensure(dev=True)
    assert "mirror" in stop.value.en
    environment.ensure()
    assert verbs(calls) == ["venv", "install"]
    assert json.loads((venv / "stamp.json").read_text())["extras"] == ["lab"]


def test_a_failed_first_install_or_a_full_disk_leaves_the_marker(place, monkeypatch):
    venv, _ = place

    def fail(arguments):
        raise PipError("[Errno 28] No space left on device")

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(environment, "pip", fail)
        environment.ensure()
    assert (venv / "installing").exists() and not (venv / "stamp.json").exists()
    environment.ensure()
    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(environment, "pip", fail)
        environment.ensure(dev=True)
    assert (venv / "installing").exists()


def test_too_little_disk_is_said_before_anything_is_made(place, monkeypatch):
    venv, calls = place
    monkeypatch.setattr(environment.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 5 * 2**20}))
    with pytest.raises(Stop) as stop:
        environment.ensure()
    assert "5 MB" in stop.value.en and "5 MB" in stop.value.zh
    assert not venv.exists() and not calls


def test_a_python_without_ensurepip_is_told_which_package_to_install(place, monkeypatch):
    monkeypatch.setattr(environment.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else name)
    with pytest.raises(Stop) as stop:
        environment.ensure()
    assert "apt install python3-venv" in stop.value.en and "apt install python3-venv" in stop.value.zh


def test_torch_that_cannot_be_had_is_left_out_and_tried_again_only_when_asked(place, monkeypatch):
    venv, calls = place
    monkeypatch.setattr(environment, "lesson_extras", lambda text: ("lab", "graph"))
    monkeypatch.setattr(torch_install, "install_torch", lambda python, requirement, extras: False)
    environment.ensure()
    assert any(argument.endswith("[lab]") for argument in calls[1])
    assert json.loads((venv / "stamp.json").read_text())["left_out"] == ["graph"]
    environment.ensure()
    assert len(calls) == 2
    monkeypatch.setattr(torch_install, "install_torch", lambda python, requirement, extras: True)
    environment.ensure(retry_left_out=True)
    assert any(argument.endswith("[lab,graph]") for argument in calls[2])


def test_what_is_left_out_is_told_with_the_lessons_that_miss_it(place, monkeypatch, capsys):
    monkeypatch.setattr(environment.say, "_edition", "en")
    monkeypatch.setattr(environment, "lesson_extras", lambda text: ("lab", "kernel"))
    monkeypatch.setattr(
        environment, "lesson_needs", lambda: {"01_a": ("lab",), "07_b": ("lab", "kernel"), "08_c": ()}
    )
    monkeypatch.setattr(torch_install, "install_torch", lambda python, requirement, extras: False)
    environment.ensure()
    assert "Lessons that miss it: 07;" in capsys.readouterr().out


def test_torch_counts_in_the_disk_space_once(place, monkeypatch):
    needed = {}
    for extras in (("lab",), ("kernel",), ("graph", "kernel")):
        monkeypatch.setattr(environment, "lesson_extras", lambda text, extras=extras: extras)
        monkeypatch.setattr(environment.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 0}))
        with pytest.raises(Stop) as stop:
            environment.ensure()
        needed[extras] = int(re.search(r"(\d+) MB are needed", stop.value.en)[1])
    assert needed["kernel",] > 1500 > needed["lab",]
    assert needed["graph", "kernel"] - needed["kernel",] < 500


def test_a_stamp_serves_less_but_not_more_and_nothing_else():
    stamp = Stamp("f", ("lab", "dev"), ("graph",))
    assert stamp.serves("f", ["lab"]) and stamp.serves("f", ["lab", "graph"])
    assert not stamp.serves("f", ["kernel"]) and not stamp.serves("g", ["lab"])


def test_a_python_without_pins_installs_without_them_and_says_so(place, monkeypatch, capsys):
    monkeypatch.setattr(environment.say, "_edition", "en")
    _, calls = place
    monkeypatch.setattr(environment, "this_constraints", lambda: None)
    environment.ensure()
    assert "--constraint" not in calls[1]
    assert "no pins" in capsys.readouterr().out


def test_a_python_with_pins_installs_exactly_those(place):
    _, calls = place
    pins = environment.this_constraints()
    environment.ensure()
    assert pins is None or calls[1][calls[1].index("--constraint") + 1] == str(pins)
