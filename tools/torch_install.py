"""Puts torch into an environment ahead of everything else, or finds that it has to be left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tools import torch_source
from tools.pip_run import PipError, pip, report
from tools.project import pinned
from tools.say import tell
from tools.torch_source import CPU_INDEX, TORCH_EXTRAS, Source, brings_cuda


def obtainable(python: Path, extras: Sequence[str], constraints: Path | None) -> tuple[str, ...]:
    """Those of ``extras`` that pip may now install into the environment of ``python``; raises PipError.

    torch is there afterwards where it must not come from PyPI. Without it the extras that need it go as a whole:
    triton and the rest are of no use alone.
    """
    if install_torch(python, pinned("torch", constraints), extras):
        return tuple(extras)
    return tuple(extra for extra in extras if extra not in TORCH_EXTRAS)


def install_torch(python: Path, requirement: str, extras: Iterable[str]) -> bool:
    """Install torch now unless PyPI's own will do; False if it has to be left out. Raises PipError."""
    source = torch_source.choose_here(extras)
    if source is Source.NONE_EXISTS:
        return False
    if source is not Source.INDEX:
        return True
    # An older pip downloads whole wheels to answer "what would you install?".
    pip(["install", "--quiet", "--retries", "2", "pip>=25.3"], python=python)
    index = torch_source.named_index() or CPU_INDEX
    tell(f"正在从 {index} 下载 torch…", f"Taking torch from {index} ...")
    for sources in (["--index-url", index, "--retries", "0", "--timeout", "10"], []):
        wanted = ["--no-deps", requirement, *sources]
        try:
            if torch_source.has_nvidia_gpu() or not brings_cuda(report(wanted, python=python)):
                pip(["install", *wanted], python=python)
                return True
        except PipError as failure:
            if failure.disk_is_full:
                raise
    return False
