"""Where a browser is looked for: in CHROMIUM, on PATH, and where macOS and Windows install one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import chromium
from tools.chromium import find_chromium
from tools.say import Stop

WINDOWS = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")


def program(path: Path) -> str:
    """A file that may be run; gives its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any browser: its PATH and its usual folders are empty ones."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for variable in ("CHROMIUM", *WINDOWS):
        monkeypatch.delenv(variable, raising=False)
    applications = (tmp_path / "Applications",)
    places = chromium.usual_places
    monkeypatch.setattr(chromium, "usual_places", lambda environment: places(environment, applications))
    return tmp_path


def test_a_machine_without_a_browser_has_none() -> None:
    assert find_chromium() is None


@pytest.mark.parametrize("name", ["chromium", "google-chrome-stable", "chrome", "msedge", "microsoft-edge"])
def test_one_on_path_is_found(empty_machine: Path, name: str) -> None:
    there = program(empty_machine / "bin" / name)
    assert find_chromium() == there


@pytest.mark.parametrize("name", ["Google Chrome", "Chromium", "Microsoft Edge"])
def test_one_of_macos_is_found_inside_its_application(empty_machine: Path, name: str) -> None:
    there = program(empty_machine / "Applications" / f"{name}.app" / "Contents" / "MacOS" / name)
    assert find_chromium() == there


@pytest.mark.parametrize("variable", WINDOWS)
@pytest.mark.parametrize(
    "inside",
    [
        "Google/Chrome/Application/chrome.exe",
        "Chromium/Application/chrome.exe",
        "Microsoft/Edge/Application/msedge.exe",
    ],
)
def test_one_of_windows_is_found_in_its_folders(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch, variable: str, inside: str
) -> None:
    there = program(empty_machine / "Program Files" / inside)
    assert find_chromium() is None
    monkeypatch.setenv(variable, str(empty_machine / "Program Files"))
    assert find_chromium() == there


def test_path_comes_before_the_usual_folders(empty_machine: Path) -> None:
    program(empty_machine / "Applications" / "Chromium.app" / "Contents" / "MacOS" / "Chromium")
    on_path = program(empty_machine / "bin" / "chromium")
    assert find_chromium() == on_path


def test_the_variable_comes_before_all_by_path_or_by_name(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(empty_machine / "bin" / "chromium")
    monkeypatch.setenv("CHROMIUM", elsewhere := program(empty_machine / "my browser" / "thorium"))
    assert find_chromium() == elsewhere
    named = program(empty_machine / "bin" / "brave")
    monkeypatch.setenv("CHROMIUM", "brave")
    assert find_chromium() == named


@pytest.mark.parametrize("wanted", ["missing", "folder", "text"])
def test_a_variable_that_names_no_program_is_said_in_both_languages(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    program(empty_machine / "bin" / "chromium")
    (empty_machine / "folder").mkdir()
    (empty_machine / "text").write_text("no program", encoding="utf-8")
    monkeypatch.setenv("CHROMIUM", str(empty_machine / wanted))
    with pytest.raises(Stop) as stopped:
        find_chromium()
    said = str(stopped.value)
    assert "CHROMIUM 指的不是一个程序" in said and "CHROMIUM names no program" in said and wanted in said


def test_a_blank_variable_is_none(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", " ")
    assert find_chromium() is None
