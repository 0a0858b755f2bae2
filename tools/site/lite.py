"""The lessons in JupyterLite: JupyterLab and Python inside the browser, one entry a language."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat

from notebooks.build.course import Course
from notebooks.build.links import notebook_path, runs_in_browser
from notebooks.build.read import Language
from tools.say import Stop
from tools.site.editions import EDITIONS, WORDS

RUN = "run"  # where JupyterLite lies in the site
_EXTENSIONS = (
    "@jupyter-widgets/jupyterlab-manager",
    "@jupyterlite/pyodide-kernel-extension",
    "anywidget",
    "jupyterlab_pygments",
)

# A visit opens its own lesson and no other: each tab restored from the last visit would start a Python of its own.
# What the learner wrote is kept elsewhere, in the browser's database.
_PAGES = {"enableMemoryStorage": True, "workspacesStorageDrivers": ["memoryStorageDriver"]}


def _entry(language: Language) -> str:
    """The folder of one edition's page; JupyterLite opens the file in ``?path=`` only under a name that begins so."""
    return f"lab-{language}"


def build_lite(out: Path, course: Course, wheels: Path, runtime: Path | None) -> None:
    """Write JupyterLite to ``out``: the lessons that run in a browser, ``wheels``, and Pyodide if ``runtime`` has it."""
    with tempfile.TemporaryDirectory() as name:
        lite = Path(name)
        for language in EDITIONS:
            copy_lessons(lite / "files" / language, course, language)
        if runtime:
            shutil.copytree(runtime, lite / "static" / "pyodide")
        _run_build(lite, out, wheels)
    for language in EDITIONS:
        _add_entry(out, language)
    _open_edition_first(out)


def copy_lessons(target: Path, course: Course, language: Language) -> None:
    """The built notebooks, marked as trusted: they come with the site, so their pictures may show before a run."""
    target.mkdir(parents=True)
    for lesson in course.lessons:
        if not runs_in_browser(lesson, course.config):
            continue
        source = course.root / notebook_path(lesson, language)
        notebook = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.metadata["trusted"] = True
        nbformat.write(notebook, target / source.name)  # type: ignore[no-untyped-call]


def _run_build(lite: Path, out: Path, wheels: Path) -> None:
    extensions = [str(_extension(name)) for name in _EXTENSIONS]
    config = {
        "LiteBuildConfig": {
            "apps": ["lab"],
            "contents": ["files"],
            "federated_extensions": extensions,
            "ignore_sys_prefix": ["federated_extensions"],
            "no_sourcemaps": True,
            "output_dir": str(out.resolve()),
        },
        "PipliteAddon": {"piplite_urls": [str(wheel) for wheel in sorted(wheels.glob("*.whl"))]},
    }
    _write_json(lite / "jupyter_lite_config.json", config)
    _write_json(lite / "jupyter-lite.json", {"jupyter-lite-schema-version": 0, "jupyter-config-data": _PAGES})
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--lite-dir", str(lite)]
    done = subprocess.run(command, cwd=lite, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        tail = (done.stdout + done.stderr)[-1500:]
        raise Stop(f"JupyterLite 没有生成：\n{tail}", f"JupyterLite was not built:\n{tail}")


def _extension(name: str) -> Path:
    return Path(sys.prefix) / "share" / "jupyter" / "labextensions" / name


def _add_entry(out: Path, language: Language) -> None:
    """A copy of the lab's page whose interface speaks ``language``; the code is shared."""
    words, entry = WORDS[language], out / _entry(language)
    entry.mkdir()
    page = (out / "lab" / "index.html").read_text(encoding="utf-8")
    page = page.replace("<html>", f'<html lang="{words.tag}">', 1)
    page = re.sub(r"<title>.*?</title>", f"<title>{words.course}</title>", page)
    (entry / "index.html").write_text(page, encoding="utf-8")
    shutil.copy(out / "lab" / "jupyter-lite.ipynb", entry)
    config = json.loads((out / "lab" / "jupyter-lite.json").read_text(encoding="utf-8"))
    config["jupyter-config-data"] |= {"appName": words.course, "appUrl": f"/{entry.name}"}
    config["jupyter-config-data"]["settingsOverrides"] = _settings(words.locale)
    _write_json(entry / "jupyter-lite.json", config)


def _settings(locale: str) -> dict[str, Any]:
    return {
        "@jupyterlab/translation-extension:plugin": {"locale": locale},
        # Every cell stands in the page: the lessons are short, and no picture jumps while it is scrolled to.
        "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    }


def _open_edition_first(out: Path) -> None:
    """Whoever opens JupyterLite without naming a page gets the site's own start."""
    (out / "index.html").write_text(
        '<!doctype html><meta charset="utf-8"><title>JupyterLite</title>'
        '<meta http-equiv="refresh" content="0; url=../index.html"><a href="../index.html">..</a>\n'
        # Read by every page below: where JupyterLite's settings begin.
        '<script id="jupyter-config-data" type="application/json" data-jupyter-lite-root=".">{}</script>\n',
        encoding="utf-8",
    )


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
