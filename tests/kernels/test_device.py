"""Which of the course's GPUs a device is, and what an unknown one is described as."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lessons_lib.base.gpus import FIGURES, GPUS, Gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import KIB
from lessons_lib.kernels import device
from lessons_lib.kernels.device import described_gpu, device_limits, known_gpu
from lessons_lib.kernels.launch import linear_configs, reaches_tensor_cores
from lessons_lib.kernels.mode import TritonSetup

REASON = Text(zh="因", en="because")

# What PyTorch 2.13 reports, in its own names.
RTX_5090 = SimpleNamespace(
    name="NVIDIA GeForce RTX 5090",
    major=12,
    minor=0,
    multi_processor_count=170,
    L2_cache_size=100663296,
    shared_memory_per_block_optin=101376,
    shared_memory_per_multiprocessor=102400,
    max_threads_per_multi_processor=1536,
    regs_per_multiprocessor=65536,
    warp_size=32,
)
A100_80 = SimpleNamespace(name="NVIDIA A100-SXM4-80GB", major=8, minor=0, multi_processor_count=108, warp_size=32)
MI300A = SimpleNamespace(
    name="AMD Instinct MI300A", major=9, minor=4, gcnArchName="gfx942:sramecc+:xnack-", multi_processor_count=228
)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Tesla T4", "T4"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA A100-SXM4-40GB", "A100 (40 GB)"),
        ("A100-PCIE-40GB", "A100 (40 GB)"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA B200", "B200"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI300X VF", "MI300X"),
    ],
)
def test_a_drivers_name_leads_to_the_entry(name: str, key: str) -> None:
    assert known_gpu(name) is GPUS[key]


@pytest.mark.parametrize("key", GPUS)
def test_the_courses_own_name_leads_to_the_entry(key: str) -> None:
    assert known_gpu(key) is GPUS[key]


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A10G",
        "NVIDIA A100-SXM4-80GB",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA T400",
        "Tesla T40",
        "NVIDIA L40S",
        "NVIDIA H100 PCIe",
        "NVIDIA H100 NVL",
        "NVIDIA H200 NVL",
        "AMD Instinct MI300A",
        "NVIDIA GeForce RTX 4090",
        "",
    ],
)
def test_a_name_that_merely_resembles_one_leads_to_none(name: str) -> None:
    assert known_gpu(name) is None


def test_an_unknown_gpu_has_its_own_limits_and_borrows_the_rest_as_unsure() -> None:
    gpu = described_gpu(RTX_5090)
    assert (gpu.name, gpu.target, gpu.vendor) == ("NVIDIA GeForce RTX 5090", "sm_120", "NVIDIA")
    assert (gpu.sm_count, gpu.shared_bytes_per_block, gpu.warps_per_sm) == (170, 99 * KIB, 48)
    assert not gpu.is_unsure("sm_count") and "reported" in gpu.source_of("sm_count")
    assert gpu.bandwidth == GPUS["B200"].bandwidth and gpu.is_unsure("bandwidth")
    assert "B200" in gpu.source_of("bandwidth")
    # Another target: even what the nearest one is sure of is unsure here.
    assert gpu.is_unsure("blocks_per_sm")
    assert set(gpu.sources) == set(FIGURES)
    assert linear_configs(gpu, "fp16") and reaches_tensor_cores(gpu, "fp16")


def test_another_product_of_a_known_target_keeps_the_targets_limits() -> None:
    gpu = described_gpu(A100_80)
    assert gpu.shared_bytes_per_block == GPUS["A100 (40 GB)"].shared_bytes_per_block
    assert not gpu.is_unsure("shared_bytes_per_block")
    assert gpu.is_unsure("bandwidth") and gpu.is_unsure("l2_bytes") and not gpu.is_unsure("sm_count")


def test_an_amd_gpu_is_described_by_its_architecture() -> None:
    gpu = described_gpu(MI300A)
    assert (gpu.target, gpu.vendor, gpu.sm_count, gpu.warp_size) == ("gfx942", "AMD", 228, 64)


@pytest.mark.parametrize(
    ("capability", "nearest"), [((7, 0), "T4"), ((8, 7), "A10"), ((10, 3), "B200"), ((9, 0), "H100 SXM")]
)
def test_the_nearest_is_the_newest_target_that_is_not_newer(capability: tuple[int, int], nearest: str) -> None:
    properties = SimpleNamespace(name="GPU", major=capability[0], minor=capability[1])
    gpu = described_gpu(properties)
    assert gpu.bandwidth == GPUS[nearest].bandwidth and nearest in gpu.source_of("bandwidth")


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (SimpleNamespace(name="Tesla T4", major=7, minor=5), "T4"),
        (RTX_5090, "NVIDIA GeForce RTX 5090"),
    ],
)
def test_the_device_at_hand_is_the_courses_where_it_is_known(
    monkeypatch: pytest.MonkeyPatch, properties: SimpleNamespace, expected: str
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(device, "prepare_triton", lambda: TritonSetup("cuda", REASON, "cuda"))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)
    found = device_limits()
    assert isinstance(found, Gpu) and found.name == expected


def test_off_a_gpu_there_are_no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "prepare_triton", lambda: TritonSetup("interpreter", REASON, "cpu"))
    assert device_limits() is None


def test_a_launch_in_the_interpreter_says_nothing_of_infinities() -> None:
    torch, np = pytest.importorskip("torch"), pytest.importorskip("numpy")
    with device.launching(torch.ones(1)):
        assert np.isnan(np.float32("inf") * np.float32(0))
        assert set(np.geterr().values()) == {"ignore"}
    assert np.geterr()["invalid"] == "warn"
