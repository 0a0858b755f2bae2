"""Write the first code cell of a lesson from ``bootstrap_cell.py``."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from notebooks.build.config import Config
from notebooks.build.read import Language

# Folded in JupyterLab and on Colab.
METADATA: dict[str, Any] = {"cellView": "form", "jupyter": {"source_hidden": True}}

_TEMPLATE = Path(__file__).with_name("bootstrap_cell.py")
_RULE = "# ----\n"
_TITLE = "#@title 准备课程库 lessons_lib / Get lessons_lib ready"
# `await` outside a function is fine in a notebook and nowhere else, so these lines are not in the template.
_LAST_LINES = """
if _missing := await _prepare():
    raise RuntimeError(_HELP.format(missing=", ".join(_missing)))
{in_browser}
import lessons_lib

lessons_lib.use_language("{language}")
"""
# Not a must: where it cannot be had, the lesson does without.
_IN_BROWSER = """
if sys.platform == "emscripten":
    await _install({requirements}, options=[])
"""
_HELP = (
    "缺少 {{missing}}，也没能装上。请任选一种办法，然后重新运行这一格：\n"
    "  1. 检查网络；\n"
    "  2. 把离线包里的 wheels 文件夹（{wheels}）放到本笔记本旁边；\n"
    "  3. 下载 {url} ，在其中运行 make lab。\n"
    "{{missing}}: missing, and could not be installed. Do one of these, then run this cell again:\n"
    "  1. check the network;\n"
    "  2. put the offline bundle's wheels folder ({wheels}) beside this notebook;\n"
    "  3. download {url} and run `make lab` in it."
)


def bootstrap_source(language: Language, config: Config, needs: Collection[str] = ()) -> str:
    """The cell of one edition of a lesson that needs these extras; the editions differ in the last line only."""
    values: dict[str, object] = {
        "_PACKAGE": config.package,
        "_MODULES": config.modules,
        "_SOURCES": config.sources,
        "_PUBLISHED": config.published,
        "_HELP": _HELP.format(wheels=config.wheel_pattern, url=config.repository_url),
    }
    code = _TEMPLATE.read_text(encoding="utf-8").split(_RULE, 1)[1]
    code = re.sub(r"  # (?:type: ignore|noqa).*", "", _with_values(code, values))
    brought = [requirement for extra in needs for requirement in config.in_browser.get(extra, ())]
    in_browser = _IN_BROWSER.format(requirements=", ".join(map(json.dumps, brought))) if brought else ""
    last = _LAST_LINES.format(language=language, in_browser=in_browser)
    return f"{_TITLE}\n{code.rstrip()}\n\n{last}".rstrip()


def _with_values(code: str, values: dict[str, object]) -> str:
    """``code`` with the assignments to the names in ``values`` rewritten."""
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if isinstance(target, ast.Name) and target.id in values:
                lines[statement.lineno - 1] = f"{target.id} = {values[target.id]!r}"
    return "\n".join(lines)
