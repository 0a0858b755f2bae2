"""PyTorch where it is there, what to say where it is not, and quiet while it traces."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from lessons_lib.base.optional import MissingPackageError
from lessons_lib.base.text import Text

_NO_TORCH = Text(
    zh="这里要用 PyTorch（torch 2.6 或更新），但当前环境里没有。请先运行：{command}，再重新运行这一格。没有 PyTorch "
    "也可以做的：现成的例子图（zoo）都随课程一起提供。",
    en="This needs PyTorch (torch 2.6 or newer), which is not installed here. Run {command} first, then run this cell "
    "again. Without PyTorch there are still the graphs of the zoo, which come with the course.",
)


def require_torch() -> Any:
    """PyTorch, imported now.

    Raises:
        MissingPackageError: it is not there; the message says in both languages what to run.
    """
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        command = f"{sys.executable or 'python'} -m pip install torch"
        raise MissingPackageError(_NO_TORCH.format(command=command).both) from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings and logs of torch's; what the learner's function prints comes out at the end, unless it failed.

    Torch prints what it has so far when it fails, which would bury the message.
    """
    level, printed, complained = logging.root.manager.disable, io.StringIO(), io.StringIO()
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complained):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
    sys.stdout.write(printed.getvalue())
    sys.stderr.write(complained.getvalue())
