"""Packages that a lesson uses where they are there, and what to say where they are not."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from lessons_lib.base.text import Text

_MISSING = Text(
    zh="这一格要用 {name}，但当前环境里没有。请先运行：{command}，再重新运行这一格。",
    en="This cell needs {name}, which is not installed here. Run {command} first, then run this cell again.",
)


def require_numpy() -> Any:
    """NumPy itself, imported now.

    Raises:
        ImportError: it is not there; the message says in both languages what to run.
    """
    try:
        return importlib.import_module("numpy")
    except ImportError as error:
        in_browser = sys.platform == "emscripten"
        command = "%pip install numpy" if in_browser else f"{sys.executable or 'python'} -m pip install numpy"
        raise ImportError(_MISSING.format(name="NumPy", command=command).both) from error
