"""The Chromium of this machine, for tools and tests that need a real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.say import Stop

VARIABLE = "CHROMIUM"
"""The environment variable that names the browser to use, by its path or its name on ``PATH``."""

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
)
# Quiet and offline: a browser under test asks nobody for updates.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]

_ON_MACOS = ("Google Chrome", "Chromium", "Microsoft Edge")
_ON_WINDOWS = (
    "Google/Chrome/Application/chrome.exe",
    "Chromium/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
)
_APPLICATIONS = (Path("/Applications"), Path("~/Applications"))


def find_chromium() -> str | None:
    """The path of a Chromium, Chrome or Edge: the one ``CHROMIUM`` names, else from ``PATH``, else where it is installed.

    Raises:
        Stop: ``CHROMIUM`` names no program.
    """
    if wanted := os.environ.get(VARIABLE, "").strip():
        found = shutil.which(wanted)
        if found is None:
            raise Stop(
                f"环境变量 {VARIABLE} 指的不是一个程序：{wanted}",
                f"The environment variable {VARIABLE} names no program: {wanted}",
            )
        return found
    on_path = (path for name in NAMES if (path := shutil.which(name)))
    return next(on_path, None) or next((str(path) for path in usual_places(os.environ) if path.is_file()), None)


def usual_places(environment: Mapping[str, str], applications: tuple[Path, ...] = _APPLICATIONS) -> Iterator[Path]:
    """Where macOS and Windows keep browsers, which put none of them on ``PATH``.

    Args:
        environment: has Windows' folders; ``applications``: macOS's.
    """
    for folder in applications:
        yield from (folder.expanduser() / f"{name}.app" / "Contents" / "MacOS" / name for name in _ON_MACOS)
    for variable in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
        if environment.get(variable):
            yield from (Path(environment[variable], program) for program in _ON_WINDOWS)
