"""Which Pythons are found, which are run, and what the table says; made-up Pythons, real subprocesses."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tools import pythons
from tools.pip_run import PipError
from tools.project import PYPROJECT, ROOT, constraints_for
from tools.pythons import Step
from tools.say import Stop

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="POSIX shell"), pytest.mark.once]
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHER = "3.10" if RUNNING != "3.10" else "3.13"


def put(path, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_running_python_is_found():
    assert pythons.find(RUNNING)


def test_a_shim_that_does_not_run_is_passed_over_for_a_real_python(tmp_path, monkeypatch):
    put(tmp_path / "bin" / f"python{OTHER}", "exit 127")
    real = put(tmp_path / "pyenv" / "versions" / f"{OTHER}.4" / "bin" / f"python{OTHER}", f"echo {OTHER}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert pythons.find(OTHER, tmp_path / "pyenv") == real
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert pythons.find(OTHER) == real


def test_python3_counts_when_it_is_of_that_version(tmp_path, monkeypatch):
    python3 = put(tmp_path / "bin" / "python3", f"echo {OTHER}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert pythons.find(OTHER, tmp_path) == python3
    put(python3, "echo 3.9")
    assert pythons.find(OTHER, tmp_path) is None


def test_the_ends_leave_out_the_running_one():
    assert pythons.ends(["3.10", "3.11", "3.13"], "3.11") == ["3.10", "3.13"]
    assert pythons.ends(["3.10", "3.11", "3.13"], "3.10") == ["3.13"]
    assert pythons.ends(["3.12"], "3.12") == []
    assert pythons.ends(["3.12"], "3.11") == ["3.12"]


def test_packages_are_those_of_dev_that_tests_import():
    found = pythons.packages_for_tests(PYPROJECT.read_text(encoding="utf-8"))
    assert {"pytest", "pytest-xdist", "hypothesis", "nbval>=0.11"} <= set(found)
    assert not {"mypy", "ruff", "playwright"} & set(found)
    with pytest.raises(ValueError, match="dev"):
        pythons.packages_for_tests("[project]\n")


@pytest.mark.parametrize(("torch", "course"), [(True, f"{ROOT}[lab,kernel]"), (False, f"{ROOT}[lab]")])
def test_an_environment_gets_the_extras_that_its_python_can_have(monkeypatch, torch, course):
    """pip must never be left to look for torch by itself: it would take the CUDA build."""
    installed = []
    monkeypatch.setattr(pythons, "lesson_extras", lambda text: ("lab", "kernel"))
    monkeypatch.setattr(
        pythons, "obtainable", lambda own, extras, pins: extras if torch else tuple(set(extras) - {"kernel"})
    )
    monkeypatch.setattr(pythons, "install", lambda own, wanted: installed.append((own, wanted)))
    monkeypatch.setattr(pythons, "ready", lambda folder, python, wanted, files, fill: fill(folder, wanted))
    pythons.environment("3.10", "ten")
    ((own, wanted),) = installed
    assert own == ROOT / ".venv-310" and wanted[:2] == ["--editable", course]
    assert "pytest" in wanted and str(constraints_for((3, 10))) in wanted


def test_a_pip_that_fails_on_torch_is_explained(monkeypatch):
    def fail(own, extras, pins):
        raise PipError("No space left on device")

    monkeypatch.setattr(pythons, "obtainable", fail)
    monkeypatch.setattr(pythons, "ready", lambda folder, python, wanted, files, fill: fill(folder, wanted))
    with pytest.raises(Stop, match="disk is full"):
        pythons.environment("3.10", "ten")


def test_a_steps_words_are_the_last_line_without_its_time():
    step = pythons.run([sys.executable, "-c", "print('....'); print('3 passed, 1 skipped in 65.01s (0:01:05)')"])
    assert step.good and step.words == "3 passed, 1 skipped"
    assert not pythons.run([sys.executable, "-c", "raise SystemExit(1)"]).good


@pytest.fixture
def made_up(monkeypatch):
    """Two Pythons, whose checks do what the test says."""
    monkeypatch.setattr(pythons, "find_all", lambda: {"3.10": "ten", "3.12": "twelve"})
    results = {"3.10": True, "3.12": True}
    monkeypatch.setattr(pythons, "made", lambda version, python: (python, Step(True, 2.0)))

    def checked(version, python, editions):
        return {"unit": Step(results[version], 1.0, f"{python} {' '.join(editions)}")}

    monkeypatch.setattr(pythons, "check", checked)
    return results


def run_main(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["pythons", *arguments])
    return pythons.main()


def test_all_that_are_here_run_and_the_missing_ones_are_named(made_up, monkeypatch, capsys):
    assert run_main(monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "3.10  environment ok 2 s; unit ok 1 s (ten zh en)" in shown and "twelve zh en" in shown
    assert "3.11  这台机器上没有 / not on this machine" in shown and "3.13  这台" in shown


def test_one_failure_fails_the_whole(made_up, monkeypatch, capsys):
    made_up["3.12"] = False
    assert run_main(monkeypatch) == 1
    assert "FAILED" in capsys.readouterr().out
    assert run_main(monkeypatch, "3.10") == 0


def test_naming_only_what_is_missing_is_no_success(made_up, monkeypatch):
    assert run_main(monkeypatch, "3.13") == 1
    with pytest.raises(Stop, match=r"3\.8"):
        run_main(monkeypatch, "3.8")


def test_no_python_at_all_is_an_error(monkeypatch):
    monkeypatch.setattr(pythons, "find_all", dict)
    with pytest.raises(Stop, match=r"3\.10 3\.11"):
        run_main(monkeypatch)


def test_each_python_runs_unit_tests_compares_lessons_and_runs_those_it_cannot_compare(monkeypatch):
    told = []

    def part(name):
        return lambda *given: (
            told.append((name, *given)) or ("-c", f"import sys; print('{name} done', *sys.argv[1:])")
        )

    monkeypatch.setattr(pythons.checks, "PARTS", {"unit": part("unit"), "mypy": part("mypy")})
    monkeypatch.setattr(pythons.checks, "nbval", part("nbval"))
    monkeypatch.setattr(pythons.checks, "executed", part("executed"))
    steps = pythons.check("3.10", sys.executable, ("zh",))
    assert told == [("unit", sys.executable), *((name, sys.executable, ("zh",)) for name in ("nbval", "executed"))]
    words = [step.words for step in steps.values()]
    assert words == ["unit done -m not once --hypothesis-profile=fewer", "nbval done", "executed done"]


def test_a_check_that_has_nothing_to_check_fails_and_does_not_stop_the_next(monkeypatch, capsys):
    def nothing(*given):
        raise Stop("没有", "nothing to check")

    monkeypatch.setattr(pythons.checks, "PARTS", {"unit": lambda python: ("-c", "")})
    monkeypatch.setattr(pythons.checks, "nbval", nothing)
    monkeypatch.setattr(pythons.checks, "executed", lambda *given: ("-c", ""))
    steps = pythons.check("3.10", sys.executable, ("zh",))
    assert [step.good for step in steps.values()] == [True, False, True]
    assert "nothing to check" in capsys.readouterr().out


def test_the_two_ends_take_an_edition_each(made_up, monkeypatch, capsys):
    assert run_main(monkeypatch, "--ends") == 0
    shown = capsys.readouterr().out
    if RUNNING in ("3.10", "3.12"):
        assert "zh en" in shown
    else:
        assert "(ten zh)" in shown and "(twelve en)" in shown
    assert pythons.shares(["3.10", "3.13"], True) == {"3.10": ("zh",), "3.13": ("en",)}
    assert pythons.shares(["3.13"], True) == {"3.13": ("zh", "en")}
    assert pythons.shares(["3.10", "3.13"], False) == {"3.10": ("zh", "en"), "3.13": ("zh", "en")}


def test_a_test_marked_once_is_not_run_on_every_python():
    """pytest itself: a marker that it does not know would leave nothing out."""
    words = [*pythons.checks.PARTS["unit"](Path(sys.executable)), *pythons._UNIT, "--collect-only", "-n", "0"]
    words[words.index("tests")] = "tests/notebooks"
    shown = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True).stdout
    assert "test_bootstrap.py" in shown and "test_build.py" not in shown


def test_environments_are_made_at_once(monkeypatch):
    """Each waits for the other to be under way."""
    meeting = threading.Barrier(2, timeout=30)

    def meet(version, python):
        meeting.wait()
        return python, Step(True, 1.0)

    monkeypatch.setattr(pythons, "made", meet)
    monkeypatch.setattr(pythons, "check", lambda version, python, editions: {})
    found = pythons.check_all({"3.10": "ten", "3.12": "twelve"}, {"3.10": (), "3.12": ()})
    assert list(found) == ["3.10", "3.12"]


def test_an_environment_that_cannot_be_made_is_told_and_fails(monkeypatch, capsys):
    def no(version, python):
        raise Stop("没有网络", "no network")

    monkeypatch.setattr(pythons, "environment", no)
    results = pythons.check_all({"3.10": "ten"}, {"3.10": ("zh",)})
    assert not results["3.10"]["environment"].good and list(results["3.10"]) == ["environment"]
    assert "没有网络" in capsys.readouterr().out
