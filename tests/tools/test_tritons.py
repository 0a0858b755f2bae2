"""The kernel tests on other Tritons: made-up Tritons in real folders, real pytest."""

import os
import sys
from pathlib import Path

import pytest

from tools import tritons
from tools.pip_run import PipError
from tools.project import ROOT
from tools.tritons import Outcome

pytestmark = pytest.mark.once

PYTHON = Path(sys.executable)


@pytest.fixture
def pip(monkeypatch):
    """pip that puts a Triton into the folder named: one that says its version, as the real one does."""
    calls = []

    def install(arguments, python):
        calls.append(arguments)
        version = arguments[-1].removeprefix("triton==")
        if version == "9.9.9":
            raise PipError("ERROR: No matching distribution found for triton==9.9.9")
        package = Path(arguments[arguments.index("--target") + 1]) / "triton"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"__version__ = {version!r}\n")

    monkeypatch.setattr(tritons, "pip", install)
    return calls


@pytest.fixture
def place(tmp_path, monkeypatch, pip):
    """A folder of its own for the overlays, and tests of its own."""
    monkeypatch.setattr(tritons, "overlay", lambda version, python: overlay(version, python, tmp_path / "cache"))
    tests = tmp_path / "test_made_up.py"
    tests.write_text(
        "import pytest, triton\n"
        "@pytest.mark.triton_versions\n"
        "def test_not_on_2(): assert triton.__version__ != '2.0.0'\n"
        "@pytest.mark.triton_versions\n"
        "def test_only_on_3():\n"
        "    if triton.__version__ != '3.0.0': pytest.skip('needs 3')\n"
        "def test_unmarked(): assert False\n"
    )
    # The project's pytest settings know the marker.
    words = (str(tests), f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml"), *tritons._TESTS[1:3])
    monkeypatch.setattr(tritons, "_TESTS", (*words, "-p", "no:cacheprovider"))
    return tmp_path


overlay = tritons.overlay


def test_an_overlay_is_fetched_once_alone_and_whole(tmp_path, pip):
    folder = overlay("3.2.0", PYTHON, tmp_path)
    assert overlay("3.2.0", PYTHON, tmp_path) == folder and (folder / "triton").is_dir()
    (call,) = pip
    assert "--no-deps" in call and call[-1] == "triton==3.2.0"
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_one_that_was_cut_short_is_fetched_again(tmp_path, pip):
    folder = overlay("3.2.0", PYTHON, tmp_path)
    half = folder.rename(folder.with_name(f"{folder.name}.part"))
    assert overlay("3.2.0", PYTHON, tmp_path) == folder and not half.exists()
    assert len(pip) == 2


def test_each_version_is_imported_ahead_of_the_environments_own_and_counted(place, monkeypatch, capfd):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert tritons.check("1.0.0", PYTHON, "7.7.7") == Outcome(1, 0, 1)
    assert tritons.check("2.0.0", PYTHON, "7.7.7") == Outcome(0, 1, 1)
    assert tritons.check("3.0.0", PYTHON, "7.7.7") == Outcome(2, 0, 0)


def test_the_environments_own_version_needs_no_overlay(place, monkeypatch, pip):
    monkeypatch.setattr(tritons, "imported", lambda python, variables: "7.7.7")
    monkeypatch.setattr(tritons, "run_tests", lambda python, variables: Outcome(passed=len(variables)))
    assert tritons.check("7.7.7", PYTHON, "7.7.7") == Outcome(passed=len(os.environ)) and not pip


def test_a_version_that_cannot_be_had_fails_and_says_so(place):
    outcome = tritons.check("9.9.9", PYTHON, "7.7.7")
    assert not outcome.good and "cannot be had" in outcome.words


def test_a_version_that_does_not_import_fails_with_the_reason(place):
    folder = tritons.overlay("1.0.0", PYTHON)
    (folder / "triton" / "__init__.py").write_text("import a_module_that_nobody_has\n")
    outcome = tritons.check("1.0.0", PYTHON, "7.7.7")
    assert not outcome.good and "a_module_that_nobody_has" in outcome.words


def test_no_test_is_no_success(place, monkeypatch):
    monkeypatch.setattr(tritons, "_TESTS", (*tritons._TESTS[:-4], "-m", "triton_versions and not triton_versions"))
    outcome = tritons.check("1.0.0", PYTHON, "7.7.7")
    assert not outcome.good and "no test" in outcome.words
    assert not Outcome(skipped=3).good


def test_the_table_has_a_line_for_each_version():
    _, head, *rows = tritons.summary({"3.2.0": Outcome(5, 0, 2), "3.3.1": Outcome(words="gone")}).splitlines()
    assert head.split() == ["triton", "passed", "failed", "skipped"]
    assert [row.split() for row in rows] == [
        ["3.2.0", "5", "0", "2", "ok"],
        ["3.3.1", "0", "0", "0", "FAILED", "(gone)"],
    ]


@pytest.mark.parametrize(("bad", "status"), [("", 0), ("3.3.1", 1)])
def test_all_versions_run_and_one_failure_fails_the_whole(monkeypatch, capsys, bad, status):
    monkeypatch.setattr(sys, "argv", ["tritons"])
    monkeypatch.setattr(tritons.environment, "ensure", lambda dev: PYTHON)
    monkeypatch.setattr(tritons, "imported", lambda python, variables: "3.7.1")
    monkeypatch.setattr(tritons, "check", lambda version, python, own: Outcome(1, int(version == bad), 0))
    assert tritons.main() == status
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()[-5:]] == ["3.2.0", "3.3.1", "3.4.0", "3.6.0", "3.7.1"]


def test_without_any_triton_it_says_so(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tritons"])
    monkeypatch.setattr(tritons.environment, "ensure", lambda dev: PYTHON)
    monkeypatch.setattr(tritons, "imported", lambda python, variables: "No module named 'triton'")
    with pytest.raises(tritons.Stop, match="No module named"):
        tritons.main()
