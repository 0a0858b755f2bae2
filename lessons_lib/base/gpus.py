"""GPUs by their datasheets: dense peak rates and memory bandwidth, decimal units, each value with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """What a vendor states; a kernel reaches less.

    Args:
        name: as a learner knows it.
        bandwidth: of the device memory, bytes per second.
        tensor_flops: dense fp16 operations per second of the tensor cores, fp32 accumulation.
        source: the document that the figures come from.
    """

    name: str
    bandwidth: float
    tensor_flops: float
    source: str


T4 = Gpu(
    name="T4",
    bandwidth=320e9,
    tensor_flops=65e12,
    source="NVIDIA Turing GPU Architecture whitepaper, WP-09183-001, appendix on Tesla T4",
)
A100 = Gpu(
    name="A100 (40 GB)",
    bandwidth=1555e9,
    tensor_flops=312e12,
    source="NVIDIA A100 Tensor Core GPU Architecture whitepaper, V1.0, table of A100 40 GB specifications",
)

GPUS = {gpu.name: gpu for gpu in (T4, A100)}
