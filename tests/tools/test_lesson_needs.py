"""Which lessons need torch's extras, read without the builder, and what a Python lacks for them."""

import subprocess
import sys
from pathlib import Path

import pytest

from notebooks.build.course import read_course
from tools.lesson_needs import lacking, lesson_needs
from tools.project import ROOT, venv_python

PYPROJECT = (
    '[project.optional-dependencies]\nlab = ["jupyterlab"]\n'
    'graph = ["torch>=2", "any-widget"]\nkernel = ["torch>=2", "triton; platform_system == \'Linux\'"]\n'
)
TITLE = '# ---\n# jupyter: {{}}\n# ---\n\n# %% [markdown] id="title-zh" lang="zh" gpu="none" needs={}\n# # 标题\n'


@pytest.fixture
def course(tmp_path):
    """A course of four lessons with different needs."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    source = tmp_path / "notebooks" / "source"
    source.mkdir(parents=True)
    needs = {"01_a": '"lab"', "02_b": '"lab kernel"', "03_c": '["lab", "graph"]', "04_d": '"graph,kernel"'}
    for lesson, attribute in needs.items():
        (source / f"{lesson}.py").write_text(TITLE.format(attribute), encoding="utf-8")
    return tmp_path


def python_with(folder: Path, *modules: str) -> Path:
    """An empty Python environment that has these modules."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.rglob("site-packages"))
    for module in modules:
        (packages / f"{module}.py").touch()
    return venv_python(folder)


def test_needs_are_those_that_the_builder_reads():
    built = {lesson.name: lesson.needs for lesson in read_course(ROOT)[0].lessons}
    assert lesson_needs() == built


def test_needs_may_be_words_or_a_list(course):
    needs = {"01_a": ("lab",), "02_b": ("lab", "kernel"), "03_c": ("lab", "graph"), "04_d": ("graph", "kernel")}
    assert lesson_needs(course) == needs


def test_a_word_in_the_text_is_no_need(course):
    path = course / "notebooks" / "source" / "05_e.py"
    path.write_text('# %% [markdown] id="title-zh" lang="zh"\n# a kernel that needs="kernel"\n', encoding="utf-8")
    assert lesson_needs(course)["05_e"] == ()


def test_a_python_lacks_what_is_not_there(course, tmp_path):
    assert lacking(python_with(tmp_path / "bare"), course) == {
        "02_b": ("torch", "triton"),
        "03_c": ("torch", "any_widget"),
        "04_d": ("torch", "any_widget", "triton"),
    }
    without_triton = python_with(tmp_path / "without", "torch", "any_widget")
    assert lacking(without_triton, course) == {"02_b": ("triton",), "04_d": ("triton",)}


def test_a_whole_python_lacks_nothing(course, tmp_path):
    assert lacking(python_with(tmp_path / "whole", "torch", "triton", "any_widget"), course) == {}
