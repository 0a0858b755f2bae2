"""Processes of ours that compile or try a kernel: how one ends, with all that it started, and what its status says."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Any

END_SECONDS = 5.0


def end_group(process: subprocess.Popen[Any]) -> None:
    """End a process that leads a group, and what it started, ptxas say.

    One that is gone already keeps no claim on its number.
    """
    if process.poll() is not None:
        return
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)


def exit_words(code: int | None) -> str:
    """An exit status in words, a signal by its name."""
    if code is None:
        return "no exit status"
    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
