"""A compiler process that answers one request after another, is ended when one takes too long, and starts anew."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

from lessons_lib.kernels.child_process import END_SECONDS, end_group, exit_words
from lessons_lib.kernels.compiler.child import Request, useful_crash_line

_START_SECONDS = 120.0  # importing triton from a slow disk; a compile's own limit begins after it
_MOST_PRINTED = 2**16  # bytes: a compiler that crashes may print the whole program
_SILENT = "PassManager::run failed"  # what Triton raises when the compiler has printed the reason
_MAIN = "import sys; sys.path[:] = sys.argv[1:]; from lessons_lib.kernels.compiler.child import serve; serve()"


class CompileWorker:
    """One compiler process, started by the first request; ``close`` ends it, and a later request starts another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._folder: Path | None = None
        self._heard = 0  # bytes of stderr that belong to earlier requests
        self._owner = os.getpid()

    def compile(self, request: Request, limit_seconds: float) -> dict[str, Any]:
        """The reply to ``request``: see ``child.answer``; ``{"status": "timeout"}`` past the limit.

        A compiler that crashes gives ``"failed"`` with its last words. Never raises but for an interrupt, which ends
        the process, so that a late reply cannot be taken for the next one's.
        """
        with self._lock:
            self._leave_to_owner()
            try:
                return self._ask(request, limit_seconds)
            except OSError as error:  # no process to be had, no temporary folder
                self._end()
                return {"status": "failed", "error": f"{type(error).__name__}: {error}"[:200]}
            except BaseException:
                self._end()
                raise

    def close(self) -> None:
        """End the process, if there is one, and remove its files."""
        with self._lock:
            if self._owner == os.getpid():
                self._end()

    def _ask(self, request: Request, limit_seconds: float) -> dict[str, Any]:
        process = self._process
        if process is None or process.poll() is not None:
            self._end()
            problem = self._start()
            if problem is not None:
                self._end()
                return {"status": "failed", "error": problem}
            process = self._process
        assert process is not None and process.stdin is not None
        self._heard = self._stderr_size()
        with contextlib.suppress(BrokenPipeError):  # it died: the reader says so
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        try:
            line = self._lines.get(timeout=limit_seconds)
        except queue.Empty:
            self._end()
            return {"status": "timeout"}
        if line is None:
            return self._crashed()
        reply = self._read(line)
        if _SILENT in str(reply.get("error")):
            reply["error"] = self._printed() or reply["error"]
        return reply

    def _start(self) -> str | None:
        """Start the process and wait until it is ready; what went wrong, or ``None``."""
        self._folder, self._heard = Path(tempfile.mkdtemp(prefix="lessons-compile-")), 0
        environment = {
            **os.environ,
            "TRITON_INTERPRET": "0",
            "TRITON_ALWAYS_COMPILE": "1",  # else the seconds of a compile would be those of a look-up
            "TRITON_CACHE_DIR": str(self._folder / "triton"),
            "TMPDIR": str(self._folder),  # a compiler that is ended leaves files behind
            "PYTHONIOENCODING": "utf-8",
        }
        with (self._folder / "stderr").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, *map(str, sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                encoding="utf-8",
                start_new_session=True,  # an interrupt of the notebook is ours to handle; and ptxas dies with it
            )
        self._lines = queue.SimpleQueue()
        threading.Thread(target=_pass_on, args=(self._process.stdout, self._lines), daemon=True).start()
        try:
            first = self._lines.get(timeout=_START_SECONDS)
        except queue.Empty:
            return f"the compiler process was not ready after {_START_SECONDS:.0f} s"
        ready = self._crashed() if first is None else self._read(first)
        error = ready.get("error")
        return None if error is None else str(error)

    def _read(self, line: str) -> dict[str, Any]:
        try:
            reply = json.loads(line)
        except ValueError:
            return self._crashed()
        return reply if isinstance(reply, dict) else self._crashed()

    def _crashed(self) -> dict[str, Any]:
        process, code = self._process, None
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(END_SECONDS)
        said = self._printed()
        self._end()
        error = f"the compiler crashed ({exit_words(code)})"
        return {"status": "failed", "error": f"{error}: {said}" if said else error}

    def _printed(self) -> str:
        """The telling line of what the compiler printed during this request."""
        if self._folder is None:
            return ""
        try:
            with (self._folder / "stderr").open("rb") as errors:
                errors.seek(self._heard)
                return useful_crash_line(errors.read(_MOST_PRINTED).decode("utf-8", errors="replace"))
        except OSError:
            return ""

    def _stderr_size(self) -> int:
        try:
            return 0 if self._folder is None else (self._folder / "stderr").stat().st_size
        except OSError:
            return 0

    def _end(self) -> None:
        """End the process and all that it started, and remove its folder."""
        process, self._process = self._process, None
        if process is not None:
            end_group(process)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError, ValueError):
                        pipe.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _leave_to_owner(self) -> None:
        """A forked process has its parent's worker, whose replies are the parent's: it starts one of its own."""
        if self._owner != os.getpid():
            self._owner, self._process, self._folder = os.getpid(), None, None


def _pass_on(pipe: IO[str] | None, lines: queue.SimpleQueue[str | None]) -> None:
    """Lines of the child, then ``None``: reading a pipe cannot be given up, waiting on a queue can."""
    if pipe is not None:
        with contextlib.suppress(OSError, ValueError):
            for line in pipe:
                lines.put(line)
    lines.put(None)


_shared = CompileWorker()
atexit.register(_shared.close)


def shared_worker() -> CompileWorker:
    """The worker of this process."""
    return _shared
