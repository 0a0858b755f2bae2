"""Tests of the tests: what must make the suite fail does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

pytestmark = pytest.mark.once
Run = Callable[..., tuple[int, list[str]]]
EDITIONS = ("zh", "en", "instructor/zh", "instructor/en")
FILE, ITS_TWIN = "notebooks/en/01_one.ipynb", "notebooks/zh/01_one.ipynb"


def change(root: Path, mend: Callable[[Any], None]) -> None:
    """Apply ``mend`` to the built notebook's cells, by id."""
    notebook = nbformat.read(root / FILE, as_version=nbformat.NO_CONVERT)
    mend({cell.id: cell for cell in notebook.cells})
    nbformat.write(notebook, root / FILE)


def nbval(root: Path) -> subprocess.CompletedProcess[str]:
    """Strict nbval over the small course, as the suite runs it over the real one."""
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=60"]
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(root), "-c", os.devnull, FILE, ITS_TWIN]
    plugins = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "nbval.plugin"}
    return subprocess.run([*command, *options], cwd=root, env=plugins, capture_output=True, text=True, timeout=120)


def test_a_fresh_build_passes_the_check(built_course: Path, run: Run) -> None:
    assert run(built_course, "--check") == (0, ["2 lessons, learners' and instructors' editions: up to date"])


def test_nbval_fails_on_a_wrong_stored_output_and_on_nothing_else(built_course: Path, run: Run) -> None:
    change(built_course, lambda cells: cells["panel"].outputs[0].data.update({"text/plain": "launches: 5"}))
    assert run(built_course, "--check")[0] == 0  # outputs are nbval's business
    done = nbval(built_course)
    assert done.returncode == 1
    assert "launches: 5" in done.stdout
    assert [line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith("FAILED")] == [
        f"FAILED {FILE}::Cell 1"
    ]


def clear_count(cells: Any) -> None:
    cells["panel"].execution_count = None


def add_stderr(cells: Any) -> None:
    cells["bar"].outputs.append(nbformat.v4.new_output("stream", name="stderr", text="careful\n"))


def edit_source(cells: Any) -> None:
    cells["why"].source += "!"


def edit_metadata(cells: Any) -> None:
    cells["guess"].metadata["tags"] = []


def rename(cells: Any) -> None:
    cells["bar"]["id"] = "baz"


@pytest.mark.parametrize(
    ("mend", "message"),
    [
        (clear_count, "cell 'panel' has no execution count"),
        (add_stderr, "cell 'bar' has stderr among its outputs"),
        (edit_source, "stale: cell 'why' differs in its source; run `make notebooks`"),
        (edit_metadata, "stale: cell 'guess' differs in its metadata; run `make notebooks`"),
        (rename, "stale: the cells are not those of the source (first difference at 'bar'); run `make notebooks`"),
    ],
)
def test_a_built_file_changed_by_hand_fails_the_check(
    built_course: Path, run: Run, mend: Callable[[Any], None], message: str
) -> None:
    change(built_course, mend)
    before = (built_course / FILE).read_bytes()
    status, lines = run(built_course, "--check")
    assert status == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"{FILE}: {message}")
    assert (built_course / FILE).read_bytes() == before


def test_a_source_that_moved_on_fails_the_check(built_course: Path, run: Run) -> None:
    source = built_course / "notebooks/source/01_one.py"
    source.write_text(source.read_text(encoding="utf-8").replace("range(3)", "range(4)"), encoding="utf-8")
    status, lines = run(built_course, "--check")
    assert status == 1
    assert [line.split(";")[0] for line in lines] == [
        f"notebooks/{edition}/01_one.ipynb: stale: cell 'bar' differs in its source" for edition in EDITIONS
    ]


def test_settings_that_moved_on_fail_the_check(built_course: Path, run: Run) -> None:
    settings = built_course / "pyproject.toml"
    settings.write_text(settings.read_text(encoding="utf-8").replace("someone/", "fork/"), encoding="utf-8")
    status, lines = run(built_course, "--check")
    assert status == 1
    assert {line.split(":")[0] for line in lines} == {
        *(f"notebooks/{edition}/{name}.ipynb" for edition in EDITIONS for name in ("01_one", "02_two")),
        "README.md",
    }


def test_a_missing_translation_fails_the_check(built_course: Path, run: Run) -> None:
    source = built_course / "notebooks/source/01_one.py"
    text = source.read_text(encoding="utf-8")
    start, end = text.index('# %% [markdown] lang="en" id="why-en"'), text.index('# %% id="panel"')
    source.write_text(text[:start] + text[end:], encoding="utf-8")
    status, lines = run(built_course, "--check")
    assert status == 1
    assert lines == ["notebooks/source/01_one.py:19: 'why-zh' has no English twin 'why-en' beside it"]


def test_missing_broken_and_orphaned_files_fail_the_check(built_course: Path, run: Run) -> None:
    zh = built_course / "notebooks/zh"
    (zh / "01_one.ipynb").unlink()
    (zh / "02_two.ipynb").write_text("{", encoding="utf-8")
    (built_course / "notebooks/en/09_gone.ipynb").write_text("{}", encoding="utf-8")
    status, lines = run(built_course, "--check")
    assert status == 1
    assert lines == [
        "notebooks/zh/01_one.ipynb: missing or unreadable; run `make notebooks`",
        "notebooks/zh/02_two.ipynb: missing or unreadable; run `make notebooks`",
        "notebooks/en/09_gone.ipynb: no source in notebooks/source; delete it",
    ]
    assert not (zh / "01_one.ipynb").exists()


def test_a_table_edited_by_hand_fails_the_check(built_course: Path, run: Run) -> None:
    readme = built_course / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8").replace("Lesson one", "Lesson 1"), encoding="utf-8")
    assert run(built_course, "--check") == (
        1,
        ["README.md: stale: the table of lessons differs; run `make notebooks`"],
    )
