"""The GPU at hand as one of the course's: its limits, from its name or from what PyTorch reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lessons_lib.base.gpus import FIGURES, GPUS, Gpu
from lessons_lib.kernels.mode import prepare_triton

if TYPE_CHECKING:
    import torch

# What the driver calls a product, in full: an A10G is no A10, an A100 of 80 GB has other memory than one of 40, and a
# MIG slice, whose name goes on after the product's, is not the whole.
_DRIVER_NAMES = {
    "T4": r"(NVIDIA )?(Tesla )?T4",
    "A10": r"(NVIDIA )?A10",
    "L4": r"(NVIDIA )?L4",
    "A100 (40 GB)": r"(NVIDIA )?A100-(SXM4|SXM|PCIE|PCIe)-40GB",
    "H100 SXM": r"(NVIDIA )?H100 80GB HBM3",
    "H200": r"(NVIDIA )?H200",
    "B200": r"(NVIDIA )?B200",
    "MI300X": r"(AMD )?(Instinct )?MI300X( OAM| VF| HF)?",
}

# Our figure -> the property of PyTorch's that reports it; older versions lack some.
_REPORTED = {
    "sm_count": "multi_processor_count",
    "l2_bytes": "L2_cache_size",
    "shared_bytes_per_block": "shared_memory_per_block_optin",
    "shared_bytes_per_sm": "shared_memory_per_multiprocessor",
    "threads_per_sm": "max_threads_per_multi_processor",
    "registers_per_sm": "regs_per_multiprocessor",
    "warp_size": "warp_size",
}
# What a product has of its own: of an unknown one these figures are another's, and unsure.
_OF_THE_PRODUCT = ("memory_kind", "bandwidth", "fp32_flops", "tensor_flops", "sm_count", "l2_bytes")


def known_gpu(name: str) -> Gpu | None:
    """The entry of ``base/gpus`` for a GPU that the driver calls ``name`` (``"Tesla T4"``), ``None`` if there is none."""
    for key, pattern in _DRIVER_NAMES.items():
        if name.strip() == key or re.fullmatch(pattern, name.strip()):
            return GPUS[key]
    return None


def device_limits() -> Gpu | None:
    """The GPU that kernels run on; ``None`` where they run on no GPU.

    One that the course does not know gets the figures of the nearest that it does, with those replaced that PyTorch
    reports; the rest is in ``unsure``.
    """
    if not prepare_triton().on_gpu:
        return None
    import torch

    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return known_gpu(str(properties.name)) or described_gpu(properties)


def described_gpu(properties: Any) -> Gpu:
    """A ``Gpu`` from PyTorch's device ``properties``, filled up from the nearest one of ``base/gpus``."""
    target = _target(properties)
    nearest = _nearest(target)
    reported = {
        figure: int(value)
        for figure, name in _REPORTED.items()
        if isinstance(value := getattr(properties, name, None), int) and value > 0
    }
    threads, warp = reported.get("threads_per_sm"), reported.get("warp_size", nearest.warp_size)
    if threads:
        reported["warps_per_sm"] = threads // warp
    others = set(_OF_THE_PRODUCT) if target == nearest.target else set(FIGURES)
    borrowed = f"taken from the {nearest.name}, the nearest that the course knows"
    return replace(
        nearest,
        name=str(properties.name),
        target=target,
        sources={
            figure: "reported by the device, through PyTorch" if figure in reported else borrowed
            for figure in FIGURES
        },
        unsure=(nearest.unsure | others) - set(reported),
        **reported,  # type: ignore[arg-type]
    )


@contextmanager
def launching(tensor: torch.Tensor) -> Iterator[None]:
    """Around every launch, given any of its tensors.

    Makes that tensor's GPU the current one, for Triton launches there, wherever the arguments are. In the interpreter
    it silences NumPy, which warns of infinities and NaN on stderr, as no GPU does.
    """
    if tensor.device.type == "cuda":
        import torch

        with torch.cuda.device(tensor.device):
            yield
    else:
        import numpy as np

        with np.errstate(all="ignore"):
            yield


def _target(properties: Any) -> str:
    architecture = str(getattr(properties, "gcnArchName", "")).partition(":")[0]
    return architecture if architecture.startswith("gfx") else f"sm_{properties.major}{properties.minor}"


def _nearest(target: str) -> Gpu:
    """The oldest product of this target; else of the newest target before it, the T4 before all."""
    if target.startswith("gfx"):
        return GPUS["MI300X"]
    older = [
        gpu for gpu in GPUS.values() if gpu.vendor == "NVIDIA" and _capability(gpu.target) <= _capability(target)
    ]
    return max(older, key=lambda gpu: _capability(gpu.target), default=GPUS["T4"])


def _capability(target: str) -> int:
    return int(re.sub(r"\D", "", target))
