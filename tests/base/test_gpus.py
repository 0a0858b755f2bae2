"""The GPUs: every figure as its document states it, every figure with a source, the unsure ones named."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lessons_lib.base.gpus import A100, FIGURES, GPUS, H100, H200, T4, Gpu, require_gpu
from lessons_lib.base.units import KIB, MIB

# name: GB/s, fp32 TF, fp16 TF, SMs, L2 MiB, shared KiB a block and an SM, warps, blocks, target, memory
STATED: dict[str, tuple[float, float, float, int, int, int, int, int, int | None, str, str]] = {
    "T4": (320, 8.1, 65, 40, 4, 64, 64, 32, 16, "sm_75", "GDDR6"),
    "A10": (600, 31.2, 125, 72, 6, 99, 100, 48, 16, "sm_86", "GDDR6"),
    "L4": (300, 30.3, 121, 58, 48, 99, 100, 48, 24, "sm_89", "GDDR6"),
    "A100 (40 GB)": (1555, 19.5, 312, 108, 40, 163, 164, 64, 32, "sm_80", "HBM2"),
    "H100 SXM": (3350, 67, 989, 132, 50, 227, 228, 64, 32, "sm_90", "HBM3"),
    "H200": (4800, 67, 989, 132, 50, 227, 228, 64, 32, "sm_90", "HBM3e"),
    "B200": (8000, 80, 2250, 148, 126, 227, 228, 64, 32, "sm_100", "HBM3e"),
    "MI300X": (5300, 163.4, 1307, 304, 32, 64, 64, 32, None, "gfx942", "HBM3"),
}
UNSURE = {
    "L4": {"sm_count"},
    "H200": {"sm_count", "l2_bytes"},
    "B200": {"bandwidth", "fp32_flops", "sm_count", "l2_bytes"},
    "MI300X": {
        "warps_per_sm",
        "threads_per_sm",
        "blocks_per_sm",
        "shared_allocation_unit",
        "shared_reserved_per_block",
    },
}
every_gpu = pytest.mark.parametrize("gpu", GPUS.values(), ids=list(GPUS))


def test_all_eight_in_order() -> None:
    assert list(GPUS) == list(STATED)
    assert all(gpu.name == name for name, gpu in GPUS.items())


@every_gpu
def test_the_figures(gpu: Gpu) -> None:
    assert (
        gpu.bandwidth / 1e9,
        gpu.fp32_flops / 1e12,
        gpu.tensor_flops / 1e12,
        gpu.sm_count,
        gpu.l2_bytes / MIB,
        gpu.shared_bytes_per_block / KIB,
        gpu.shared_bytes_per_sm / KIB,
        gpu.warps_per_sm,
        gpu.blocks_per_sm,
        gpu.target,
        gpu.memory_kind,
    ) == pytest.approx(STATED[gpu.name])
    assert gpu.unsure == UNSURE.get(gpu.name, set())


@every_gpu
def test_what_a_vendor_has_in_common(gpu: Gpu) -> None:
    nvidia = gpu.vendor == "NVIDIA"
    assert gpu.target.startswith("sm_" if nvidia else "gfx")
    assert gpu.warp_size == (32 if nvidia else 64)
    assert gpu.threads_per_sm == gpu.warps_per_sm * gpu.warp_size
    assert gpu.threads_per_block == 1024
    assert gpu.registers_per_sm == (65_536 if nvidia else 131_072)
    assert gpu.register_allocation_unit == (256 if nvidia else 512)
    assert gpu.max_registers_per_thread == (255 if nvidia else 512)
    assert gpu.bf16 is (gpu is not T4)
    if nvidia:
        assert (gpu.shared_allocation_unit, gpu.shared_reserved_per_block) == ((256, 0) if gpu is T4 else (128, KIB))
        assert gpu.shared_bytes_per_block + gpu.shared_reserved_per_block == gpu.shared_bytes_per_sm


@every_gpu
def test_every_figure_has_a_source(gpu: Gpu) -> None:
    assert set(gpu.sources) == set(FIGURES)
    for name in FIGURES:
        assert len(gpu.source_of(name)) > 10
        assert gpu.is_unsure(name) is (name in gpu.unsure)
        # A value of None would be computed with unnoticed if it did not count as unsure.
        assert getattr(gpu, name) is not None or gpu.is_unsure(name)
    assert gpu.source.startswith(gpu.sources["bandwidth"])
    assert gpu.source.endswith(gpu.sources["tensor_flops"])


def test_the_source_of_the_two_rates() -> None:
    assert T4.source == "NVIDIA Turing GPU Architecture whitepaper, WP-09183-001, appendix on Tesla T4"
    assert "A100 40 GB" in A100.source


def test_gpus_are_values() -> None:
    assert len(set(GPUS.values())) == 8
    assert H100 != H200


@pytest.mark.parametrize("name", ["name", "sources", "unsure", "bandwith", "", None], ids=repr)
def test_an_unknown_field_is_refused(name: Any) -> None:
    for ask in (T4.source_of, T4.is_unsure):
        with pytest.raises(ValueError, match=r"(?s)^参数 name .*\nname .*bandwidth"):
            ask(name)


@pytest.mark.parametrize("value", ["T4", None, 4, {"name": "T4"}], ids=repr)
def test_what_is_no_gpu_is_refused(value: Any) -> None:
    assert require_gpu("gpu", T4) is T4
    with pytest.raises(ValueError, match=rf"(?s)^参数 gpu .*{re.escape(repr(value))}.*。\ngpu .*GPUS\['T4'\].*\.$"):
        require_gpu("gpu", value)
