"""Runs the environment's pip, shows what matters of its output, and says what to do when it fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.project import ROOT, venv_python
from tools.say import Stop, tell

_SHOWN = re.compile(r"\s*(Downloading \S+ \(|Installing collected|Successfully installed|ERROR|WARNING: Retrying)")
_NO_SPACE = re.compile(r"No space left on device|Errno 28|not enough space on the disk|Disk quota exceeded")
_NO_NETWORK = re.compile(
    r"NewConnectionError|Failed to establish a new connection|ConnectTimeout|Read timed out"
    r"|Connection (?:refused|reset|aborted|broken|error)|Network is unreachable|Unable to connect|Failed to connect"
    r"|Name or service not known|name resolution|getaddrinfo failed|nodename nor servname|Could not resolve"
    r"|ProxyError|Cannot connect to proxy|SSLError|CERTIFICATE_VERIFY_FAILED|Could not fetch URL"
)

# pip's name for reading the metadata inside a remote wheel without fetching the rest; still an option of its own.
_READ_A_PART = "fast-deps"


class PipError(Exception):
    """pip ended with an error; ``output`` is all it printed."""

    def __init__(self, output: str) -> None:
        super().__init__(output[-200:])
        self.output = output

    @property
    def disk_is_full(self) -> bool:
        return bool(_NO_SPACE.search(self.output))


def pip(arguments: Iterable[str], *, python: Path | None = None, show: bool = True) -> str:
    """Run pip in .venv, or that of ``python``, and return its output; raises PipError."""
    own = str(python or venv_python())
    command = [own, "-m", "pip", *arguments, "--disable-pip-version-check", "--no-input"]
    # A pip configured for user installs would refuse to work in an environment.
    environment = {**os.environ, "PIP_USER": "0", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
    lines = []
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout
        for line in process.stdout:
            lines.append(line)
            if show and _SHOWN.match(line):
                print(f"  {_shortened(line)}", flush=True)
    if process.returncode:
        raise PipError("".join(lines))
    return "".join(lines)


def report(arguments: Iterable[str], *, python: Path | None = None) -> dict[str, Any]:
    """What ``pip install`` with these arguments would do, without doing it; raises PipError.

    From pip 25.3 on no wheel is downloaded for that, if the source has metadata beside its wheels or lets pip read
    a part of one.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        ask = ["install", "--dry-run", "--quiet", "--report", str(path), *arguments]
        try:
            pip([*ask, f"--use-feature={_READ_A_PART}"], python=python, show=False)
        except PipError as failure:
            if _READ_A_PART not in failure.output or "invalid choice" not in failure.output:
                raise
            pip(ask, python=python, show=False)  # a pip that no longer calls it a feature
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return result


def explained(output: str) -> Stop:
    """What to do about a failed pip, from its output."""
    if _NO_SPACE.search(output):
        return Stop(
            "磁盘满了：请腾出空间后再运行一次（TMPDIR 可把临时文件放到别的磁盘）。",
            "The disk is full: free some space and run it again (TMPDIR moves the temporary files to another disk).",
        )
    if _NO_NETWORK.search(output):
        return Stop(
            "连不上 Python 软件包源：检查网络后再运行一次；或换一个镜像："
            "PIP_INDEX_URL=https://pypi.tuna.tsinghua.edu.cn/simple make lab",
            "The Python package index cannot be reached: check the network and run it again, or name a mirror: "
            "PIP_INDEX_URL=https://<mirror>/simple make lab",
        )
    tail = "".join(output.splitlines(keepends=True)[-15:])
    tell(f"pip 的最后几行：\n{tail}", f"pip's last lines:\n{tail}")
    return Stop(
        "安装失败：原因见上面 pip 的输出；解决后再运行一次。",
        "The installation failed: pip's output above says why; mend that and run it again.",
    )


def _shortened(line: str) -> str:
    """One line of pip's output, at most as wide as a terminal."""
    text = line.strip()
    return text if len(text) <= 110 or text.startswith("ERROR") else text[:107] + "..."
