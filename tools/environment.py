"""Makes the course's own Python environment in .venv, or mends it, or finds it ready.

    python -m tools.environment [--dev]

A stamp, written last, says what is in it; a marker, there while pip works, says that it may be half made.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tools import edition, say, torch_source
from tools.lesson_needs import lesson_needs
from tools.pip_run import PipError, explained, pip
from tools.project import PYPROJECT, ROOT, VENV, lesson_extras, this_constraints, venv_python
from tools.say import Stop, tell
from tools.torch_install import obtainable
from tools.torch_source import CPU_INDEX, TORCH_EXTRAS, Source

STAMP = VENV / "lessons-stamp.json"
MARKER = VENV / "lessons-installing"

# Megabytes on disk, measured and rounded up; pip's downloads and temporary files included.
_MEGABYTES = {"lab": 700, "graph": 100, "kernel": 900, "dev": 500, "site": 100}
_MEGABYTES_OF_TORCH = {"cpu": 1200, "cuda": 7200}


@dataclass(frozen=True)
class Stamp:
    """What an environment holds: the fingerprint of all that decides it, the extras, and those left out."""

    fingerprint: str
    extras: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def serves(self, fingerprint: str, extras: Iterable[str]) -> bool:
        """Whether an environment with this stamp is what is wanted; one that holds more also is."""
        return self.fingerprint == fingerprint and set(extras) <= {*self.extras, *self.left_out}


def ensure(*, dev: bool = False, retry_left_out: bool = False) -> Path:
    """The environment's Python, with everything the lessons (and ``dev``: the checks) need installed."""
    extras = (*lesson_extras(PYPROJECT.read_text(encoding="utf-8")), *(["dev", "site"] if dev else []))
    fingerprint = _fingerprint()
    stamp = _read_stamp()
    if stamp and stamp.serves(fingerprint, extras) and not (retry_left_out and stamp.left_out):
        if stamp.left_out:
            _tell_left_out()
        return venv_python()
    _check_disk(set(extras) - set(stamp.extras if stamp else ()))
    if not stamp:
        _make_venv()
    _install(fingerprint, tuple(dict.fromkeys([*(stamp.extras if stamp else ()), *extras])))
    return venv_python()


def _fingerprint() -> str:
    """Changes with what is asked for, with this Python, and with the folder (an environment cannot be moved)."""
    constraints = this_constraints()
    parts = [
        PYPROJECT.read_bytes(),
        constraints.read_bytes() if constraints else b"",
        f"{sys.version_info[:2]} {ROOT}".encode(),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _read_stamp() -> Stamp | None:
    """The stamp of a whole environment made with this Python; None for one that is absent or must be made anew."""
    if MARKER.exists() or not venv_python().exists():
        return None
    try:
        found = json.loads(STAMP.read_text(encoding="utf-8"))
        stamp = Stamp(found["fingerprint"], tuple(found["extras"]), tuple(found["left_out"]))
    except (OSError, ValueError, KeyError):
        return None
    version = f"version = {sys.version_info.major}.{sys.version_info.minor}."
    return stamp if version in (VENV / "pyvenv.cfg").read_text(encoding="utf-8") else None


def _write_stamp(stamp: Stamp) -> None:
    part = STAMP.with_suffix(".part")
    part.write_text(json.dumps(asdict(stamp)), encoding="utf-8")
    part.replace(STAMP)


def _check_disk(extras: Iterable[str]) -> None:
    needed = sum(_MEGABYTES.get(extra, 0) for extra in extras)
    source = torch_source.choose_here(extras)
    if source in (Source.ORDINARY, Source.INDEX):
        cuda = source is Source.ORDINARY and torch_source.has_nvidia_gpu()
        needed += _MEGABYTES_OF_TORCH["cuda" if cuda else "cpu"]
    free = shutil.disk_usage(ROOT).free // 2**20
    if free < needed:
        raise Stop(
            f"磁盘空间不够：{ROOT} 还剩 {free} MB，安装约需 {needed} MB；请腾出空间后再运行一次。",
            f"Not enough disk space: {ROOT} has {free} MB left, {needed} MB are needed; free some and run it again.",
        )


def _make_venv() -> None:
    """An empty environment in .venv; what an interrupted run left there is removed first."""
    if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        raise Stop(
            f"这个 Python（{sys.executable}）缺少 venv 模块；Debian / Ubuntu：apt install python3-venv。",
            f"This Python ({sys.executable}) lacks the venv module; Debian / Ubuntu: apt install python3-venv.",
        )
    if VENV.exists() and any(VENV.iterdir()) and not (STAMP.exists() or MARKER.exists()):
        raise Stop(
            f"{VENV} 已存在，但不是这里创建的，不会动它：请先改名或移走，再运行一次。",
            f"{VENV} exists, was not made here, and is left alone: rename or move it, then run this again.",
        )
    tell(
        f"正在创建 Python 环境 .venv（{sys.executable}）…",
        f"Making the Python environment .venv ({sys.executable}) ...",
    )
    VENV.mkdir(exist_ok=True)
    MARKER.touch()
    for child in VENV.iterdir():  # the marker stays: a removal that is interrupted must be known as such
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        elif child != MARKER:
            child.unlink()
    # The Python under a virtual environment, should this one run from .venv itself.
    base = getattr(sys, "_base_executable", None) or sys.executable
    made = subprocess.run([base, "-m", "venv", str(VENV)], capture_output=True, text=True, errors="replace")
    if made.returncode:
        raise explained(made.stdout + made.stderr)


def _install(fingerprint: str, extras: tuple[str, ...]) -> None:
    """pip's work; leaves the stamp, or the marker if it was cut short."""
    constraints = this_constraints()
    if constraints:
        name = f"constraints/{constraints.name}"
        tell(f"正在安装，要几分钟（版本见 {name}）…", f"Installing, a few minutes (versions: {name}) ...")
    else:
        tell(
            "正在安装：这个 Python 没有固定的版本列表，使用各软件包的最新版…",
            "Installing: there are no pins for this Python, so the newest packages are taken ...",
        )
    pins = ["--constraint", str(constraints)] if constraints else []
    MARKER.touch()
    try:
        kept = obtainable(venv_python(), extras, constraints)
        left_out = tuple(extra for extra in extras if extra not in kept)
        pip(["install", "--retries", "2", "--editable", f"{ROOT}[{','.join(kept)}]", *pins])
    except PipError as failure:
        if not failure.disk_is_full and STAMP.exists():
            MARKER.unlink()  # pip undid its own work: what the old stamp describes is still whole
        raise explained(failure.output) from failure
    _write_stamp(Stamp(fingerprint, kept, left_out))
    MARKER.unlink()
    if left_out:
        _tell_left_out()


def _tell_left_out() -> None:
    lessons = [lesson.partition("_")[0] for lesson, needs in lesson_needs().items() if TORCH_EXTRAS & set(needs)]
    tell(
        "注意：没有安装 torch（这里下载不到体积小的 CPU 版，而 CUDA 版约 3 GB）。"
        f"受影响的课：{'、'.join(lessons)}；其余不受影响。\n"
        f"  再试一次：make setup TORCH_INDEX=<{CPU_INDEX} 的镜像>",
        "Note: torch was left out (its small CPU build cannot be had here, and the CUDA build is about 3 GB). "
        f"Lessons that miss it: {', '.join(lessons)}; the others are whole.\n"
        f"  To try again: make setup TORCH_INDEX=<a mirror of {CPU_INDEX}>",
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.environment", description="Make or mend .venv.")
    parser.add_argument("--dev", action="store_true", help="also what the checks need")
    options = parser.parse_args()
    say.use_edition(edition.chosen(None))
    ensure(dev=options.dev, retry_left_out=True)
    tell("环境就绪。", "The environment is ready.")
    return 0


if __name__ == "__main__":
    say.run(main)
