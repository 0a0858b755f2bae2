"""The machine that figures were taken on: what matters for them, and nothing that identifies it."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
import sys

import psutil

from lessons_lib.base.environment import environment
from lessons_lib.base.units import GIB
from tools.chromium import find_chromium

_PACKAGES = ("jupyterlab", "ipywidgets", "ipykernel", "drawsvg", "matplotlib", "numpy")


def machine() -> dict[str, str]:
    """Processor, memory, system and versions by name."""
    found = environment()
    return {
        "processor": f"{found.cpu_name}, {psutil.cpu_count()} cores",
        "memory": f"{psutil.virtual_memory().total / GIB:.0f} GiB",
        "load when the run began": _load(),
        "system": _system(),
        "Python": platform.python_version(),
        **{package: _version(package) for package in _PACKAGES},
        "Chromium": _chromium(),
    }


def _load() -> str:
    """How many processes wanted a core during the last minute: what shared the machine with the run."""
    return f"{psutil.getloadavg()[0]:.1f}"


def _system() -> str:
    if sys.platform == "linux":
        return f"{platform.freedesktop_os_release().get('PRETTY_NAME', 'Linux')}, {platform.machine()}"
    return f"{platform.system()} {platform.release()}, {platform.machine()}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _chromium() -> str:
    path = find_chromium()
    if path is None:
        return "not installed"
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    number = re.search(r"\d+(\.\d+)+", said)
    return number.group() if number else "unknown"
