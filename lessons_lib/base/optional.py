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


class MissingPackageError(ImportError):
    """A package is not there. IPython shows the message alone: frames on the way to it tell a learner nothing."""

    def _render_traceback_(self) -> list[str]:
        return [f"ImportError: {self}"]


def require_numpy() -> Any:
    """NumPy itself, imported now.

    Raises:
        MissingPackageError: it is not there; the message says in both languages what to run.
    """
    try:
        return importlib.import_module("numpy")
    except ImportError as error:
        in_browser = sys.platform == "emscripten"
        command = "%pip install numpy" if in_browser else f"{sys.executable or 'python'} -m pip install numpy"
        raise MissingPackageError(_MISSING.format(name="NumPy", command=command).both) from error
