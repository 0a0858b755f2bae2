import json
import os
import sys
from pathlib import Path

import pytest

from tools import jupyter, lab, lessons
from tools.say import Stop

START = "00_start.ipynb"


def command(**changed):
    options = {"port": "", "browser": True, "root": False, **changed}
    return jupyter.command(Path("python"), Path("/x/work/zh"), START, **options)


def test_the_server_listens_on_this_machine_only_with_its_token():
    words = command()
    assert "--ServerApp.ip=127.0.0.1" in words
    assert "--LabApp.default_url=/lab/workspaces/zh/tree/00_start.ipynb" in words
    assert not [word for word in words if "token" in word or "password" in word or "0.0.0.0" in word]


def test_root_port_and_browser_are_asked_for_only_when_needed():
    assert not {"--allow-root", "--no-browser"} & set(command())
    assert not [word for word in command() if "port" in word]
    assert {"--allow-root", "--no-browser", "--ServerApp.port=9000"} <= set(
        command(root=True, browser=False, port="9000")
    )


@pytest.mark.parametrize(
    ("system", "variables", "display"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ""}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("darwin", {}, True),
        ("win32", {}, True),
    ],
)
def test_a_browser_is_tried_only_where_one_can_open(system, variables, display):
    assert jupyter.has_display(system, variables) is display


def test_settings_switch_the_news_off_and_the_language_over(tmp_path):
    for edition, locale in (("zh", "zh_CN"), ("en", "en")):
        jupyter.write_settings(tmp_path, edition)
        written = json.loads((tmp_path / "share/jupyter/lab/settings/overrides.json").read_text())
        assert written["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
        assert written["@jupyterlab/translation-extension:plugin"]["locale"] == locale


def server_file(folder, root, when, name="jpserver-1.json"):
    path = folder / name
    path.write_text(json.dumps({"url": "http://127.0.0.1:8889/", "token": "abc", "root_dir": str(root)}))
    os.utime(path, (when, when))


def test_the_address_is_the_one_of_this_folders_new_server(tmp_path):
    mine = tmp_path / "work" / "en"
    server_file(tmp_path, tmp_path / "work" / "zh", when=200)
    server_file(tmp_path, mine, when=50, name="jpserver-2.json")
    (tmp_path / "jpserver-3.json").write_text("{")
    assert jupyter.address(mine, START, 100, tmp_path) is None
    server_file(tmp_path, mine, when=150, name="jpserver-4.json")
    assert (
        jupyter.address(mine, START, 100, tmp_path)
        == f"http://127.0.0.1:8889/lab/workspaces/en/tree/{START}?token=abc"
    )


@pytest.mark.parametrize(("asked", "said"), [("9137", True), ("9138", False), ("", False)])
@pytest.mark.parametrize("edition", ["zh", "en"])
def test_a_port_that_was_taken_is_named_with_the_one_used_instead(
    tmp_path, monkeypatch, capsys, asked, said, edition
):
    (tmp_path / START).touch()
    monkeypatch.setattr(lab.jupyter, "write_settings", lambda *_: None)
    monkeypatch.setattr(
        lab.jupyter, "command", lambda *_, **options: [sys.executable, "-c", "import time; time.sleep(0.2)"]
    )
    monkeypatch.setattr(lab.jupyter, "address", lambda *_: f"http://127.0.0.1:9138/lab/tree/{START}?token=abc:80")
    monkeypatch.setattr(lab.signal, "signal", lambda *_: None)
    monkeypatch.setattr(lab.say, "_edition", edition)
    lab.serve(Path("python"), tmp_path, tmp_path, edition, port=asked, browser=False)
    words = "端口 9137 已被占用，改用 9138" if edition == "zh" else "Port 9137 is taken, using 9138"
    assert (words in capsys.readouterr().out) is said


def test_jupyters_folders_are_the_courses_own():
    variables = jupyter.environment()
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        assert ".cache" in Path(variables[name]).parts and Path(variables[name]).is_dir()


def test_notebooks_are_trusted_once_before_they_are_copied(tmp_path, monkeypatch):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / START).write_text("{}")
    (source / "sizes.csv").write_text("1")
    monkeypatch.setattr(lessons, "built", lambda name: source)
    monkeypatch.setattr(lessons, "work", lambda name: target)
    trusted = []

    def run(command, **options):
        assert not target.exists(), "copied before it was trusted"
        trusted.append(command[3:])

    monkeypatch.setattr(lab.subprocess, "run", run)
    assert lab.prepare_lessons(Path("python"), "en") == target
    assert trusted == [[str(source / START)]]
    lab.prepare_lessons(Path("python"), "en")
    assert len(trusted) == 1


def test_an_instructor_gets_copies_of_their_own_and_hears_of_no_command_for_learners(tmp_path, monkeypatch, capsys):
    source = tmp_path / "notebooks" / "instructor" / "en"
    source.mkdir(parents=True)
    (source / START).write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    built, work = lessons.built, lessons.work
    monkeypatch.setattr(lessons, "built", lambda name: built(name, tmp_path))
    monkeypatch.setattr(lessons, "work", lambda name: work(name, tmp_path))
    monkeypatch.setattr(lab.subprocess, "run", lambda command, **options: None)
    copies = lab.prepare_lessons(Path("python"), "instructor/en")
    assert copies == tmp_path / "work" / "instructor" / "en" and (copies / START).exists()
    text = {"cells": [], "metadata": {"changed": 1}, "nbformat": 4, "nbformat_minor": 5}
    (source / START).write_text(json.dumps(text))
    capsys.readouterr()
    lab.prepare_lessons(Path("python"), "instructor/en")
    said = capsys.readouterr().out
    assert "00" in said and "make reset" not in said and str(copies / START) in said


def test_an_edition_without_lessons_says_what_to_run(tmp_path, monkeypatch):
    monkeypatch.setattr(lessons, "built", lambda name: tmp_path)
    with pytest.raises(Stop, match="make notebooks"):
        lab.prepare_lessons(Path("python"), "en")


def test_the_real_trust_tool_makes_the_copy_trusted(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    sign = pytest.importorskip("nbformat.sign")
    from tools import trust

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(
                "1",
                id="a",
                outputs=[
                    nbformat.v4.new_output("execute_result", {"text/plain": "1", "image/svg+xml": "<svg/>"}),
                ],
            )
        ]
    )
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    nbformat.write(notebook, source / START)
    assert not sign.NotebookNotary().check_signature(nbformat.read(source / START, 4))
    trust.main([str(source / START)])
    lessons.copy([Path(START)], source, target)
    assert sign.NotebookNotary().check_signature(nbformat.read(target / START, 4))
