"""A small course in a temporary folder, with everything the builder reads."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_course import PYPROJECT, ROOT

from notebooks.build.__main__ import main
from notebooks.build.course import Course, read_course

LESSON = """\
# %% [markdown] lang="zh" id="title-zh" minutes=2 gpu="none" needs="lab"
# # 第一课
#
# {{badges}}
#
# 约 {{minutes}} 分钟。
# %% [markdown] lang="en" id="title-en" minutes=2 gpu="none" needs="lab"
# # Lesson one
#
# {{badges}}
#
# About {{minutes}} minutes.
# %% [markdown] lang="zh" id="before-zh" tags=["instructor"]
# **准备：** 先跑一遍。
# %% [markdown] lang="en" id="before-en" tags=["instructor"]
# **Prepare:** run it once.
# %% id="bootstrap"
# generated
# %% [markdown] lang="zh" id="why-zh" minutes=3
# ## 为什么
#
# 融合减少启动。
#
# {{lesson_map}}
#
# {{glossary}}
# %% [markdown] lang="en" id="why-en" minutes=3
# ## Why
#
# Fusion saves launches.
#
# {{lesson_map}}
#
# {{glossary}}
# %% id="panel"
from ipywidgets import IntSlider, VBox


class Panel(VBox):
    _ipython_display_ = None

    def _repr_mimebundle_(self, **_):
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        svg = '<svg xmlns="http://www.w3.org/2000/svg"/>'
        text = f"launches: {self.children[0].value}"
        return {"application/vnd.jupyter.widget-view+json": view, "image/svg+xml": svg, "text/plain": text}


panel = Panel([IntSlider(value=4)])
panel
# %% id="bar"
for step in range(3):
    print(f"\\rstep {step}", end="")
print()
# %% id="oops" tags=["nbval-raises-exception"]
raise ValueError("as expected")
# %% id="guess" tags=["exercise"]
answer = None
print("○ not done yet" if answer is None else "✓ right" if answer == 42 else "✗ wrong")
# %% [markdown] lang="zh" id="note-zh" tags=["instructor"]
# 给老师的话。
# %% [markdown] lang="en" id="note-en" tags=["instructor"]
# A word to the teacher.
# %% id="guess-solution" tags=["solution"]
answer = 6 * 7
print("○ not done yet" if answer is None else "✓ right" if answer == 42 else "✗ wrong")
# %% [markdown] lang="zh" id="end-zh" minutes=1.5
# {{previous}} {{next}}
# %% [markdown] lang="en" id="end-en" minutes=1.5
# {{previous}} {{next}}
"""

SECOND = """\
# %% [markdown] lang="zh" id="title-zh" minutes=1 gpu="recommended"
# # 第二课
# %% [markdown] lang="en" id="title-en" minutes=1 gpu="recommended"
# # Lesson two
# %% id="bootstrap"
# generated
"""

LIBRARY = '''\
"""A stand-in for the library."""


def use_language(language):
    print("" if language in ("zh", "en") else "?", end="")
'''


def write_course(root: Path, lessons: dict[str, str]) -> Path:
    """A course under ``root`` with ``lessons`` by name."""
    source = root / "notebooks" / "source"
    source.mkdir(parents=True)
    shutil.copy(ROOT / "notebooks" / "source" / "glossary.toml", source)
    for name, text in lessons.items():
        (source / f"{name}.py").write_text(text, encoding="utf-8")
    (root / "lessons_lib").mkdir()
    (root / "lessons_lib" / "__init__.py").write_text(LIBRARY, encoding="utf-8")
    (root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (root / "README.md").write_text("# R\n<!-- lessons:begin --><!-- lessons:end -->\nrest\n", encoding="utf-8")
    return root


@pytest.fixture
def small_course(tmp_path: Path) -> Path:
    """A course that nobody has built yet."""
    return write_course(tmp_path / "course", {"01_one": LESSON, "02_two": SECOND})


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_course(tmp_path_factory.mktemp("built") / "course", {"01_one": LESSON, "02_two": SECOND})
    assert main(["--root", str(root)]) == 0
    return root


@pytest.fixture
def built_course(_built: Path, tmp_path: Path) -> Path:
    """A course just built: a copy, to do with as the test likes."""
    return Path(shutil.copytree(_built, tmp_path / "course"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, list[str]]]:
    """Run the builder; its exit status and the lines it printed."""

    def run_builder(root: Path, *arguments: str) -> tuple[int, list[str]]:
        capsys.readouterr()
        status = main(["--root", str(root), *arguments])
        out, err = capsys.readouterr()
        return status, (out + err).splitlines()

    return run_builder


@pytest.fixture(scope="session")
def course() -> Course:
    """The real course."""
    found, faults = read_course(ROOT)
    assert not faults, "\n".join(map(str, faults))
    return found
