"""The proxy that JupyterHub needs, which is JavaScript: fetched once from npm into ``.cache``.

It is what the chart runs. The port to Python on PyPI passes a browser's binary messages on as text (0.4.0), and those
are what JupyterLab sends.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = "5.3.0"
_NODE = 20  # what this version asks for
_FOLDER = ROOT / ".cache" / "hub-proxy" / VERSION
_PROGRAM = Path("node_modules", "configurable-http-proxy", "bin", "configurable-http-proxy")


class NoProxyError(Exception):
    """There is no proxy, and why; ``broken`` where there should be one."""

    def __init__(self, reason: str, *, broken: bool = False) -> None:
        super().__init__(reason)
        self.broken = broken


def proxy_command() -> list[str]:
    """What starts the proxy.

    Raises:
        NoProxyError: without Node.js, or when npm cannot install.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NoProxyError("JupyterHub's proxy needs Node.js and npm")
    if _major(node) < _NODE:
        raise NoProxyError(f"JupyterHub's proxy needs Node.js {_NODE} or later")
    if not (_FOLDER / _PROGRAM).exists():
        _install(npm)
    return [node, str(_FOLDER / _PROGRAM)]


def _install(npm: str) -> None:
    """Whole or not at all: into a folder beside, which then takes its name."""
    _FOLDER.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=_FOLDER.parent))
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(fresh)]
    package = f"configurable-http-proxy@{VERSION}"
    try:
        done = subprocess.run([*command, package], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoProxyError(f"npm cannot install JupyterHub's proxy: {done.stderr[-500:]}", broken=True)
        with suppress(OSError):  # another test was quicker
            fresh.rename(_FOLDER)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _major(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)", said)
    return int(found.group(1)) if found else 0
