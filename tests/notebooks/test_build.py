"""What a build writes, and that it does no more than it must."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from notebooks.build.course import read_course
from notebooks.build.edition import edition
from notebooks.build.execute import execute
from notebooks.build.faults import BuildError

pytestmark = pytest.mark.once
Run = Callable[..., tuple[int, list[str]]]


def notebook(root: Path, language: str, name: str = "01_one") -> Any:
    return nbformat.read(root / f"notebooks/{language}/{name}.ipynb", as_version=nbformat.NO_CONVERT)


def cell(root: Path, cell_id: str, language: str = "en") -> Any:
    return next(c for c in notebook(root, language).cells if c.id == cell_id)


def test_the_editions_have_the_same_cells(built_course: Path) -> None:
    ids = ["title", "bootstrap", "why", "panel", "bar", "oops", "guess", "guess-solution", "end"]
    for language in ("zh", "en"):
        assert [c.id for c in notebook(built_course, language).cells] == ids
    assert cell(built_course, "why", "zh").source.startswith("## 为什么\n\n融合")
    assert cell(built_course, "why", "en").source.startswith("## Why\n\nFusion")


def test_outputs_are_fit_to_be_committed(built_course: Path) -> None:
    panel = cell(built_course, "panel").outputs[0].data
    assert set(panel) == {"image/svg+xml", "text/plain"}
    assert panel["text/plain"] == "launches: 4"
    assert [output.text for output in cell(built_course, "bar").outputs] == ["step 2\n"]
    assert cell(built_course, "oops").outputs[0].traceback == ["ValueError: as expected"]
    assert cell(built_course, "bootstrap").outputs == []
    text = (built_course / "notebooks/en/01_one.ipynb").read_text(encoding="utf-8")
    assert str(built_course) not in text


def test_metadata_is_the_same_everywhere(built_course: Path) -> None:
    one, two = notebook(built_course, "en"), notebook(built_course, "en", "02_two")
    assert (one.nbformat, one.nbformat_minor) == (4, 5)
    assert set(one.metadata) == {"kernelspec", "language_info"}
    assert one.metadata.kernelspec.name == "python3"
    assert "version" not in one.metadata.language_info
    assert (two.metadata.accelerator, two.metadata.colab) == ("GPU", {"gpuType": "T4"})
    bootstrap = cell(built_course, "bootstrap")
    assert bootstrap.metadata == {"cellView": "form", "jupyter": {"source_hidden": True}}
    assert bootstrap.source.startswith("#@title ")
    assert cell(built_course, "oops").metadata == {"tags": ["raises-exception"]}


def test_a_learner_gets_the_solution_folded(built_course: Path) -> None:
    solution = cell(built_course, "guess-solution", "zh")
    assert solution.cell_type == "markdown"
    assert solution.source.startswith("<details>\n<summary>参考答案")
    assert "```python\nanswer = 6 * 7\n" in solution.source
    assert cell(built_course, "guess").outputs[0].text == "○ not done yet\n"


def test_placeholders(built_course: Path) -> None:
    title = cell(built_course, "title", "zh").source
    assert "约 6.5 分钟" in title
    names = [part.split("]")[0] for part in title.split("[")[1:]]
    assert names == ["ModelScope 魔搭", "Colab", "Kaggle", "Binder", "浏览器"]
    assert "https://modelscope.cn/notebook/share/github/someone/course/blob/main/notebooks/zh/01_one.ipynb" in title
    english = cell(built_course, "title", "en").source
    assert english.index("[Colab]") < english.index("[ModelScope]")
    raw = "https://raw.githubusercontent.com/someone/course/main/notebooks/en/01_one.ipynb"
    for address in (
        "https://colab.research.google.com/github/someone/course/blob/main/notebooks/en/01_one.ipynb",
        f"https://kaggle.com/kernels/welcome?src={raw}",
        "https://mybinder.org/v2/gh/someone/course/main?urlpath=lab/tree/notebooks/en/01_one.ipynb",
    ):
        assert f"({address})" in english
    why = cell(built_course, "why", "en").source
    assert "| [Lesson two](02_two.ipynb) | 1 | recommended |" in why
    assert "| materialize | 物化 |" in why
    end = cell(built_course, "end", "en").source
    assert end.startswith("(this is the first lesson) [Lesson two](02_two.ipynb)")


def test_the_readme_gets_the_table(built_course: Path) -> None:
    readme = (built_course / "README.md").read_text(encoding="utf-8")
    assert "| [Lesson one](notebooks/en/01_one.ipynb) | 6.5 | not needed |" in readme
    assert readme.endswith("<!-- lessons:end -->\nrest\n")
    assert not (built_course / "README.zh.md").exists()


def test_a_readme_without_markers_is_a_fault(built_course: Path, run: Run) -> None:
    (built_course / "README.zh.md").write_text("# 课\n", encoding="utf-8")
    for arguments in ([], ["--check"]):
        status, lines = run(built_course, *arguments)
        assert status == 1
        assert "README.zh.md: needs the lines <!-- lessons:begin -->" in lines[-1]


def test_a_second_build_changes_and_executes_nothing(built_course: Path, run: Run) -> None:
    before = {path: path.read_bytes() for path in built_course.rglob("*.ipynb")}
    status, lines = run(built_course)
    assert status == 0
    assert [line.split(": ")[1] for line in lines] == ["outputs kept, unchanged"] * 8 + ["unchanged"]
    assert {path: path.read_bytes() for path in built_course.rglob("*.ipynb")} == before


def test_new_prose_keeps_the_outputs(built_course: Path, run: Run) -> None:
    edit(built_course, "# Fusion saves launches.", "# Fusion saves launches and bytes.")
    status, lines = run(built_course)
    assert status == 0
    assert "notebooks/en/01_one.ipynb: outputs kept" in lines
    assert "notebooks/zh/01_one.ipynb: outputs kept, unchanged" in lines
    assert "and bytes" in cell(built_course, "why").source
    assert run(built_course, "--check")[0] == 0


def test_new_code_is_executed_in_its_lesson_only(built_course: Path, run: Run) -> None:
    edit(built_course, "range(3)", "range(5)")
    status, lines = run(built_course)
    assert status == 0
    assert sum("executed in" in line for line in lines) == 4
    assert cell(built_course, "bar").outputs[0].text == "step 4\n"


def test_one_lesson_can_be_executed_again(built_course: Path, run: Run) -> None:
    status, lines = run(built_course, "--lesson", "02")
    assert status == 0
    assert [line.split(": executed")[0] for line in lines[:-1]] == [
        "notebooks/zh/02_two.ipynb",
        "notebooks/en/02_two.ipynb",
        "notebooks/instructor/zh/02_two.ipynb",
        "notebooks/instructor/en/02_two.ipynb",
    ]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "cell 'bar' failed: ZeroDivisionError: division by zero"),
        ("import sys\nprint('careful', file=sys.stderr)", "cell 'bar' wrote to stderr: careful"),
        ("import os\nprint(os.getcwd())", "cell 'bar' shows a path of this machine"),
        ("import os\nos._exit(1)", "cell 'bar' killed its kernel"),
    ],
)
def test_a_cell_that_misbehaves_stops_the_build(built_course: Path, run: Run, code: str, message: str) -> None:
    edit(built_course, "for step in range(3):\n", f"{code}\nfor step in range(3):\n")
    before = (built_course / "notebooks/zh/01_one.ipynb").read_bytes()
    status, lines = run(built_course)
    assert status == 1
    assert lines[-1].startswith(f"notebooks/zh/01_one.ipynb: {message}")
    assert (built_course / "notebooks/zh/01_one.ipynb").read_bytes() == before


def test_a_cell_that_hangs_stops_the_build(built_course: Path) -> None:
    edit(built_course, "for step in range(3):\n", "while True:\n    pass\nfor step in range(3):\n")
    course, _ = read_course(built_course)
    fresh = edition(course.lessons[0], "en", "learner", course)
    with pytest.raises(BuildError, match="one: cell 'bar' took longer than 1 s"):
        execute(fresh, built_course / "notebooks/en", "one", seconds=1)


def test_built_files_are_plain_text_with_real_characters(built_course: Path) -> None:
    text = (built_course / "notebooks/zh/01_one.ipynb").read_text(encoding="utf-8")
    assert "融合" in text
    assert text.endswith("}\n")
    json.loads(text)


def edit(root: Path, old: str, new: str) -> None:
    path = root / "notebooks/source/01_one.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
