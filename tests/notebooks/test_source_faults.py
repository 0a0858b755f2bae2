"""Every fault of a source is named with its file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

Run = Callable[..., tuple[int, list[str]]]

HEAD = """\
# %% [markdown] lang="zh" id="title-zh"
# # 题
# %% [markdown] lang="en" id="title-en"
# # Title
# %% id="bootstrap"
# generated
"""  # six lines: what follows starts in line 7

TEACH = ' tags=["instructor"]'

TWINS = """\
# %% [markdown] lang="zh" id="a-zh"{zh_rest}
# {zh}
# %% [markdown] lang="en" id="a-en"{en_rest}
# {en}
"""


def twins(zh: str = "中文", en: str = "English", zh_rest: str = "", en_rest: str = "") -> str:
    return HEAD + TWINS.format(zh=zh, en=en, zh_rest=zh_rest, en_rest=en_rest)


FAULTS = {
    "english twin missing": (HEAD + '# %% [markdown] lang="zh" id="a-zh"\n# 文', 7, "has no English twin 'a-en'"),
    "chinese twin missing": (HEAD + '# %% [markdown] lang="en" id="a-en"\n# t', 7, "has no Chinese twin 'a-zh'"),
    "twin not beside": (
        HEAD
        + '# %% [markdown] lang="zh" id="a-zh"\n# 文\n# %% id="x"\nx = 1\n# %% [markdown] lang="en" id="a-en"\n# t',
        11,
        "has no Chinese twin",
    ),
    "english first": (
        HEAD + '# %% [markdown] lang="en" id="a-en"\n# t\n# %% [markdown] lang="zh" id="a-zh"\n# 文',
        7,
        "Chinese first",
    ),
    "minutes differ": (twins(zh_rest=" minutes=3", en_rest=" minutes=4"), 9, "differ in minutes"),
    "minutes in one twin": (twins(zh_rest=" minutes=3"), 9, "differ in minutes"),
    "minutes as text": (twins(zh_rest=' minutes="3"', en_rest=' minutes="3"'), 7, "minutes must be a number"),
    "tags differ": (twins(zh_rest=' tags=["instructor"]'), 9, "differ in tags"),
    "unknown tag": (HEAD + '# %% id="x" tags=["exercize"]\nx = 1', 7, "unknown tag 'exercize'"),
    "unknown tag on prose": (twins(zh_rest=' tags=["exercise"]'), 7, "unknown tag 'exercise' on a markdown cell"),
    "unknown attribute": (HEAD + '# %% id="x" colour="red"\nx = 1', 7, "unknown attribute 'colour'"),
    "cell title": (HEAD + '# %% A title id="x"\nx = 1', 7, "unknown attribute 'title'"),
    "unreadable attributes": (HEAD + '# %% id="x" tags=exercise\nx = 1', 7, "cannot read the attributes"),
    "id missing": (HEAD + "# %%\nx = 1", 7, "missing id"),
    "id missing on prose": (HEAD + '# %% [markdown] lang="zh"\n# 文', 7, "missing id"),
    "id duplicate": (HEAD + '# %% id="x"\nx = 1\n# %% id="x"\nx = 2', 9, "duplicate id 'x', first used in line 7"),
    "id of twins and code": (twins() + '# %% id="a"\nx = 1', 11, "duplicate id 'a'"),
    "id bad": (HEAD + '# %% id="My cell"\nx = 1', 7, "bad id 'My cell'"),
    "id without suffix": (HEAD + '# %% [markdown] lang="zh" id="a"\n# 文', 7, "ends in -zh"),
    "lang missing": (HEAD + '# %% [markdown] id="a-zh"\n# 文', 7, "needs lang="),
    "lang on code": (HEAD + '# %% id="x" lang="en"\nx = 1', 7, "unknown attribute 'lang'"),
    "raw cell": (HEAD + '# %% [raw] id="x"\n# x', 7, "a raw cell"),
    "gpu word": (twins(zh_rest=' gpu="yes"', en_rest=' gpu="yes"'), 7, "gpu must be one of"),
    "gpu not on title": (twins(zh_rest=' gpu="optional"', en_rest=' gpu="optional"'), 7, "title cell only"),
    "needs unknown": (twins(zh_rest=' needs="moon"', en_rest=' needs="moon"'), 7, "needs 'moon'"),
    "term in Chinese": (twins(zh="先说\n#\n# 没有临时张量。"), 10, "'临时张量' is outside the glossary"),
    "term in English": (twins(en="Two\n# Interim tensors."), 11, "'Interim tensors' is outside the glossary"),
    "question without an answer": (
        twins(
            "**说：**讲。\n#\n# **问：**几个？\n#\n# **答：**三个。",
            "**Say:** It.\n#\n# **Ask:** How many?\n",
            TEACH,
            TEACH,
        ),
        16,
        "'a-en': **Ask:** needs its **Answer:** right below",
    ),
    "question with its answer elsewhere": (
        twins(
            "**问：**几个？\n#\n# | 听到的 | 反问 |\n# **答：**三个。",
            "**Ask:** How many?\n# **Answer:** 3.",
            TEACH,
            TEACH,
        ),
        8,
        "'a-zh': **问：** needs its **答：** right below",
    ),
    "trailing semicolon": (HEAD + '# %% id="x"\nx = 1\nx;\n', 9, "trailing ';'"),
    "semicolon before comment": (HEAD + '# %% id="x"\nx = 1\nx ;  # hide', 9, "trailing ';'"),
    "semicolon in a block": (HEAD + '# %% id="x"\nif True:\n    x = 1;\n', 9, "trailing ';'"),
    "chinese comment": (HEAD + '# %% id="x"\nx = 1\n\ny = 2  # 注释', 10, "Chinese in a code cell ('注释')"),
    "chinese string": (HEAD + '# %% id="x"\nx = "文"', 8, "Chinese in a code cell"),
    "not python": (HEAD + '# %% id="x"\nx = 1\ny = (', 9, "not valid Python"),
    "placeholder": (twins(zh="中\n# {{lesson-map}}"), 9, "unknown placeholder {{lesson-map}}"),
    "exercise alone": (HEAD + '# %% id="x" tags=["exercise"]\nx = 1', 7, "exercise 'x' has no solution"),
    "solution alone": (HEAD + '# %% id="x" tags=["solution"]\nx = 1', 7, "solution 'x' has no exercise"),
    "no bootstrap": (HEAD.split("# %% id=")[0] + '# %% id="x"\nx = 1', 5, "the first code cell is"),
    "bootstrap by hand": (HEAD + "import lessons_lib", 5, "the bootstrap cell is generated"),
    "no title": (HEAD.replace("# # Title", "# Title"), 3, "needs a '# ' heading"),
    "no opening": ('# %% id="bootstrap"\n# generated\n', 1, "the first cell is the title"),
    "text before cells": ("x = 1\n" + HEAD, 1, "every cell needs its own"),
    "empty": ("", 1, "the first cell is the title"),
}


@pytest.mark.parametrize(("source", "line", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_names_the_fault_with_file_and_line(
    small_course: Path, run: Run, source: str, line: int, message: str
) -> None:
    (small_course / "notebooks/source/03_bad.py").write_text(source, encoding="utf-8")
    for arguments in ([], ["--check"]):
        status, lines = run(small_course, *arguments)
        assert status == 1
        start = f"notebooks/source/03_bad.py:{line}: "
        assert any(found.startswith(start) and message in found for found in lines), lines
        assert all(found.startswith("notebooks/source/03_bad.py:") for found in lines), lines
    assert not (small_course / "notebooks/zh").exists()


def test_a_file_that_is_not_text_is_a_fault(small_course: Path, run: Run) -> None:
    (small_course / "notebooks/source/03_bad.py").write_bytes(b"\xff\xfe\x00")
    status, lines = run(small_course)
    assert status == 1
    assert any("03_bad.py:1: jupytext cannot read it" in line for line in lines)


def test_all_faults_are_reported_at_once(small_course: Path, run: Run) -> None:
    source = HEAD + '# %% id="x" tags=["huh"]\nx;\n# %% [markdown] lang="zh" id="a-zh"\n# {{huh}}\n'
    for name in ("03_bad", "04_bad"):
        (small_course / f"notebooks/source/{name}.py").write_text(source, encoding="utf-8")
    _, lines = run(small_course)
    assert [line.split(": ")[0].rpartition("/")[2] for line in lines] == [
        f"{name}.py:{number}" for name in ("03_bad", "04_bad") for number in (7, 8, 9)
    ]


@pytest.mark.parametrize(
    "code",
    [
        "x = ';'",
        "x = 1  # ;",
        "x = 1; y = 2",
        "x = '''\n;\n'''",
        "%matplotlib inline\nx = 1",
        "import asyncio\nawait asyncio.sleep(0)",
    ],
)
def test_good_code_passes(small_course: Path, run: Run, code: str) -> None:
    (small_course / "notebooks/source/03_good.py").write_text(f'{HEAD}# %% id="x"\n{code}\n', encoding="utf-8")
    _, lines = run(small_course, "--check")
    assert not [line for line in lines if line.startswith("notebooks/source")]


def test_questions_with_their_answers_pass_and_so_does_a_learners_cell(small_course: Path, run: Run) -> None:
    answered = (
        "**问：**一？\n#\n# **答：**一。\n#\n# **问：**二？\n# **答：**二。",
        "**Ask:** 1?\n#\n# **Answer:** 1.",
    )
    for rest, (zh, en) in ((TEACH, answered), ("", ("**问：**几个？", "**Ask:** How many?"))):
        source = twins(zh, en, rest, rest)
        (small_course / "notebooks/source/03_good.py").write_text(source, encoding="utf-8")
        _, lines = run(small_course, "--check")
        assert not [line for line in lines if line.startswith("notebooks/source")]


def test_prose_in_code_or_in_an_address_is_not_prose(small_course: Path, run: Run) -> None:
    english = "`temp tensor` [x](https://a.example/temp-tensor)\n# ```python\n# temp tensor\n# ```"
    (small_course / "notebooks/source/03_good.py").write_text(twins(en=english), encoding="utf-8")
    _, lines = run(small_course, "--check")
    assert not [line for line in lines if line.startswith("notebooks/source")]


def test_the_texts_of_the_library_keep_to_the_glossary(small_course: Path, run: Run) -> None:
    (small_course / "lessons_lib/words.py").write_text(
        'A = Text(\n    zh="没有"\n    "中间变量",\n    en="none",\n)\n'
        'B = Text("好", f"{A} temp tensors")\nC = "中间变量"\n',
        encoding="utf-8",
    )
    status, lines = run(small_course)
    assert status == 1
    assert [line.split(" is outside")[0] for line in lines] == [
        "lessons_lib/words.py:3: '中间变量'",
        "lessons_lib/words.py:6: 'temp tensors'",
    ]


@pytest.mark.parametrize(
    ("zh", "en"),
    [
        ("指令发射、切片内、图片内、严重计算错误、中间结果", "the layout changes; on chip; an epilogue; spilled"),
        ("融合 中间张量 组间边界 启动 物化 片上 数据块 逻辑读写", "fits_onchip, recompute, amortizes, occupied"),
    ],
)
def test_the_glossary_leaves_other_words_alone(small_course: Path, run: Run, zh: str, en: str) -> None:
    (small_course / "notebooks/source/03_good.py").write_text(twins(zh=zh, en=en), encoding="utf-8")
    _, lines = run(small_course, "--check")
    assert not [line for line in lines if "glossary" in line]


def test_a_glossary_entry_without_a_translation_is_refused(small_course: Path, run: Run) -> None:
    (small_course / "notebooks/source/glossary.toml").write_text('[a]\nzh = "甲"\n', encoding="utf-8")
    status, lines = run(small_course)
    assert status == 1
    assert "glossary.toml: [a] must have exactly the keys" in lines[0]


def test_an_unknown_lesson_is_refused(small_course: Path, run: Run) -> None:
    assert run(small_course, "--lesson", "09") == (1, ["no lesson 09; there are: 01_one, 02_two"])
