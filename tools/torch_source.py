"""Where torch comes from. PyPI's Linux build brings about 3 GB of CUDA: nobody gets that by accident."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
TORCH_EXTRAS = frozenset({"graph", "kernel"})


class Source(Enum):
    """How to install torch on this machine."""

    NOT_NEEDED = "no lesson asks for torch"
    ORDINARY = "the configured pip sources"
    INDEX = "PyTorch's own index, else the ordinary sources if they have a build without CUDA"
    NONE_EXISTS = "no build of this torch exists for the machine"


def choose(extras: Iterable[str], system: str, machine: str, nvidia_gpu: bool, index_named: bool) -> Source:
    """Decide from what is asked for and what the machine is.

    ``index_named``: the person set ``TORCH_INDEX``, which then holds on any Linux (a mirror, or a ROCm build).
    """
    if TORCH_EXTRAS.isdisjoint(extras):
        return Source.NOT_NEEDED
    if system == "Darwin" and machine == "x86_64":
        return Source.NONE_EXISTS
    if system != "Linux":
        return Source.ORDINARY
    return Source.ORDINARY if nvidia_gpu and not index_named else Source.INDEX


def choose_here(extras: Iterable[str]) -> Source:
    """`choose` for this machine."""
    return choose(extras, platform.system(), platform.machine(), has_nvidia_gpu(), bool(named_index()))


def has_nvidia_gpu() -> bool:
    """Whether an NVIDIA driver is here."""
    return bool(shutil.which("nvidia-smi")) or Path("/dev/nvidia0").exists()


def named_index() -> str:
    """The index the person named, or nothing."""
    return os.environ.get("TORCH_INDEX", "")


def brings_cuda(report: dict[str, Any]) -> bool:
    """Whether what pip would install (its ``--report``) is, or asks for, NVIDIA's packages."""
    for item in report["install"]:
        metadata = item["metadata"]
        required = [line for line in metadata.get("requires_dist", []) if "extra ==" not in line]
        if any(re.match(r"(nvidia|cuda)[-_]", name, re.IGNORECASE) for name in [metadata["name"], *required]):
            return True
    return False
