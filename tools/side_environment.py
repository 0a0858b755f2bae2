"""Python environments beside .venv, one a purpose: made once, kept while what they were asked for is the same."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tools.pip_run import explained
from tools.project import ROOT, venv_python
from tools.say import Stop, tell

CACHE = ROOT / ".cache" / "environments"
_STAMP = "lessons-stamp"
_MARKER = "lessons-installing"


def install(python: Path, wanted: Sequence[str]) -> None:
    """``pip install wanted`` into the environment of ``python``."""
    # Most modules are never imported, so compiling them all would take longer than compiling those that are.
    options = ("--quiet", "--no-compile", "--no-input", "--disable-pip-version-check", "--retries=2")
    _run([str(python), "-m", "pip", "install", *options, *wanted])


def ready(
    folder: Path,
    python: Path,
    wanted: Sequence[str],
    files: Sequence[Path] = (),
    fill: Callable[[Path, Sequence[str]], None] = install,
) -> Path:
    """The Python of the environment in ``folder``, made with ``python`` and filled with ``wanted``.

    ``files`` are what ``wanted`` names (pins, say): when one of them changes, the environment is made anew.
    """
    with locked(folder):
        fingerprint = _fingerprint(python, wanted, files)
        if _read(folder / _STAMP) != fingerprint or not venv_python(folder).exists():
            _make_empty(folder, python)
            fill(venv_python(folder), wanted)
            (folder / _STAMP).write_text(fingerprint, encoding="utf-8")
            (folder / _MARKER).unlink()
    return venv_python(folder)


def offshoot(base: Path, folder: Path) -> Path:
    """The Python of a new environment in ``folder`` that sees all packages of ``base`` and keeps its own to itself.

    pip counts what it sees there as installed, and leaves it alone: a clean environment in a fraction of a second.
    """
    _run([str(venv_python(base)), "-m", "venv", "--without-pip", str(folder)])
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    theirs, ours = (_run([str(venv_python(place)), "-c", ask]).strip() for place in (base, folder))
    (Path(ours) / "base.pth").write_text(f"{theirs}\n", encoding="utf-8")
    return venv_python(folder)


def _make_empty(folder: Path, python: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not any((folder / name).exists() for name in (_STAMP, _MARKER)):
        raise Stop(
            f"{folder} 已存在，但不是这里创建的，不会动它：请先改名或移走，再运行一次。",
            f"{folder} exists, was not made here, and is left alone: rename or move it, then run this again.",
        )
    tell(f"正在创建 Python 环境 {folder.name}（{python}）…", f"Making the environment {folder.name} ({python}) ...")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARKER).touch()
    _run([str(python), "-m", "venv", str(folder)])


def _fingerprint(python: Path, wanted: Sequence[str], files: Sequence[Path]) -> str:
    """Changes with the Python, with the folder of the course, and with what is asked for."""
    version = _run([str(python), "-c", "import sys; print(sys.version)"])
    parts = [version.encode(), str(ROOT).encode(), *(word.encode() for word in wanted)]
    return hashlib.sha256(b"\0".join([*parts, *(file.read_bytes() for file in files)])).hexdigest()


def _run(command: Sequence[str]) -> str:
    """What the command prints; raises what to do if it fails."""
    environment = {**os.environ, "PIP_USER": "0", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise explained(done.stdout + done.stderr)
    return done.stdout


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Only one process at a time makes what lies there. Windows has no such lock: run nothing at once there."""
    if os.name == "nt":
        yield
        return
    import fcntl

    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
