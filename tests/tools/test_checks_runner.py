import subprocess
import sys
from pathlib import Path

import pytest

from tools import checks
from tools.say import Stop

pytestmark = pytest.mark.once


def test_all_parts_run_in_order_unless_some_are_named():
    assert selected_all() == [
        "ruff",
        "format",
        "mypy",
        "imports",
        "unit",
        "notebooks",
        "teaching",
        "nbval",
        "executed",
        "platforms",
        "deploy",
        "pythons",
        "site",
        "browser",
    ]
    assert checks.selected(["nbval", "unit"]) == ["unit", "nbval"]
    with pytest.raises(Stop, match="unti"):
        checks.selected(["unti"])


def selected_all():
    return checks.selected([])


def test_a_failed_part_does_not_stop_the_rest_and_fails_the_whole(monkeypatch, capfd):
    monkeypatch.delenv("PARTS", raising=False)  # as make test PARTS=... sets it around this very test
    parts = {
        "good": lambda _: ("-c", "print('first ran')"),
        "bad": lambda _: ("-c", "raise SystemExit(3)"),
        "last": lambda _: ("-c", "print('last ran')"),
    }
    monkeypatch.setattr(checks, "PARTS", parts)
    monkeypatch.setattr(checks.environment, "ensure", lambda dev: Path(sys.executable))
    monkeypatch.setattr(sys, "argv", ["checks"])
    assert checks.main() == 1
    shown = capfd.readouterr().out
    assert "first ran" in shown and "last ran" in shown
    assert "FAILED" in shown and 'PARTS="bad"' in shown
    monkeypatch.setenv("PARTS", "good last")
    assert checks.main() == 0
    assert "FAILED" not in capfd.readouterr().out


def test_a_part_that_has_nothing_to_check_fails(monkeypatch, capsys):
    def nothing(python):
        raise Stop("没有", "nothing to check")

    monkeypatch.setattr(checks, "PARTS", {"nbval": nothing})
    good, _ = checks.run_part("nbval", Path(sys.executable))
    assert not good and "nothing to check" in capsys.readouterr().out


def test_nbval_gets_every_folder_of_built_notebooks(tmp_path):
    with pytest.raises(Stop):
        checks.notebook_folders(tmp_path)
    for name in ("zh/a.ipynb", "en/a.ipynb", "instructor/zh/a.ipynb", "zh/.ipynb_checkpoints/a.ipynb", "source/a.py"):
        path = tmp_path / "notebooks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert checks.notebook_folders(tmp_path) == ["notebooks/en", "notebooks/instructor/zh", "notebooks/zh"]
    assert checks.notebook_folders(tmp_path, ("zh",)) == ["notebooks/zh"]
    with pytest.raises(Stop):
        checks.notebook_folders(tmp_path, ("fr",))


def test_nbval_is_strict_and_keeps_a_notebook_on_one_worker(monkeypatch):
    monkeypatch.setattr(checks, "notebook_folders", lambda editions: ["notebooks/en"])
    monkeypatch.setattr(checks, "lacking", lambda python: {})
    words = checks.nbval(Path(sys.executable))
    assert "--nbval" in words and "--nbval-lax" not in words
    assert words[words.index("--dist") + 1] == "loadfile"
    assert words[-1] == "notebooks/en"
    assert not [word for word in words if word.startswith("--ignore")]


def test_a_lesson_whose_needs_are_missing_is_run_and_not_compared(monkeypatch, capsys):
    monkeypatch.setattr(checks, "lacking", lambda python: {"02_reuse": ("torch", "triton")})
    left_out = [word for word in checks.nbval(Path("python")) if word.startswith("--ignore=")]
    files = [f"notebooks/{name}/02_reuse.ipynb" for name in ("en", "instructor/en", "instructor/zh", "zh")]
    assert left_out == [f"--ignore={file}" for file in files]
    assert checks.executed(Path("python"))[2:] == tuple(files)
    assert checks.executed(Path("python"), ("en",))[2:] == ("notebooks/en/02_reuse.ipynb",)
    assert "02_reuse" in (said := capsys.readouterr().out) and "torch triton" in said


def test_what_nbval_is_told_to_leave_out_is_not_collected(tmp_path, monkeypatch):
    """pytest itself, since a path that it does not recognise would leave nothing out."""
    monkeypatch.setattr(checks, "lacking", lambda python: {"02_reuse": ("torch",)})
    words = [*checks.nbval(Path(sys.executable)), "--collect-only", "-n", "0"]
    shown = subprocess.run([sys.executable, *words], cwd=checks.ROOT, capture_output=True, text=True).stdout
    assert "01_traffic.ipynb" in shown and "02_reuse.ipynb" not in shown


def test_the_table_names_each_part_with_its_seconds():
    table = checks.summary({"ruff": (True, 0.5), "unit": (False, 12.0)}).splitlines()
    assert table[1].split() == ["ruff", "ok", "0.5", "s"]
    assert table[2].split() == ["unit", "FAILED", "12.0", "s"]
    assert table[3].split() == ["total", "12.5", "s"]
