"""The bundle's first notebook: installs the course from the wheels beside it, then links to the lessons."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_RULE = "# ----\n"
_TITLE = "#@title 安装（不需要网络） / Install (no network needed)"
_TEMPLATE = Path(__file__).with_name("start_cell.py")
_OPENING = """\
# 算子融合，动手学 / Operator Fusion, hands on

1. 运行下面这一格：它只用旁边的 `wheels` 文件夹安装，不需要网络。
2. 打开一课，从上到下运行。

---

1. Run the cell below: it installs from the `wheels` folder beside it and needs no network.
2. Open a lesson and run it from top to bottom."""


def start_notebook(lessons: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """``start.ipynb`` for the lessons of each edition, given as ``(title, path)``."""
    lists = "\n\n".join(
        f"## {name}\n\n" + "\n".join(f"- [{title}]({path})" for title, path in lessons[edition])
        for edition, name in (("zh", "中文版"), ("en", "English edition"))
    )
    code = _TEMPLATE.read_text(encoding="utf-8").split(_RULE, 1)[1].strip()
    cells = [
        _cell("markdown", "opening", _OPENING),
        _cell("code", "install", f"{_TITLE}\n{code}", execution_count=None, outputs=[]),
        _cell("markdown", "lessons", lists),
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def title_of(notebook: str) -> str:
    """The first heading of a notebook's text."""
    sources = ("".join(cell["source"]) for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "markdown")
    found = re.search(r"^# +(.+?)\s*$", next(sources, ""), re.MULTILINE)
    if not found:
        raise ValueError("a notebook's first text cell must have a title")
    return found[1]


def _cell(kind: str, name: str, source: str, **others: Any) -> dict[str, Any]:
    return {"cell_type": kind, "id": name, "metadata": {}, "source": source.splitlines(keepends=True), **others}
