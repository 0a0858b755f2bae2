"""Every kernel at its default launch, compiled for every GPU of the course: no spill, and within its shared memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from lessons_lib.base.gpus import GPUS, Gpu
from lessons_lib.kernels.compiler.compiled import CompileReport
from lessons_lib.kernels.compiler.report import compile_report, triton_version
from lessons_lib.kernels.launch import ACTIVATIONS, CHAIN_OPERATORS, KERNELS, LARGEST_RESIDENT_ROW, DtypeName
from lessons_lib.kernels.tuning import choose_config

VERSION = tuple(int(part) for part in re.findall(r"\d+", triton_version() or "0")[:2])
# The H200 is the H100's target: one of the two is enough.
TARGETS = {gpu.target: gpu for gpu in GPUS.values()}
RUNS = [(first, last) for first in range(len(CHAIN_OPERATORS)) for last in range(first, len(CHAIN_OPERATORS))]

pytestmark = pytest.mark.skipif(triton_version() is None, reason="needs Triton")


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LESSONS_CACHE", str(tmp_path_factory.mktemp("compiled")))
        yield


def targets() -> list[Any]:
    """A parameter for each target, skipped where this Triton cannot compile for it at all."""
    old_amd = pytest.mark.skipif(VERSION < (3, 5), reason="for AMD, Triton before 3.5 needs ROCm's ld.lld")
    no_blackwell = pytest.mark.skipif(VERSION < (3, 3), reason="Triton before 3.3 does not know sm_100")
    marks: dict[str, tuple[Any, ...]] = {"gfx942": (old_amd,), "sm_100": (no_blackwell,)}
    return [pytest.param(gpu, id=target, marks=marks.get(target, ())) for target, gpu in TARGETS.items()]


def dtypes(gpu: Gpu) -> tuple[DtypeName, ...]:
    return ("fp16", "bf16", "fp32") if gpu.bf16 else ("fp16", "fp32")


def assert_clean(found: CompileReport) -> None:
    assert found.status == "ok", found
    assert found.spill_bytes == 0, found
    assert found.shared_bytes is not None
    assert found.shared_bytes <= found.gpu.shared_bytes_per_block, found
    assert found.registers_per_thread is not None
    assert 0 < found.registers_per_thread <= found.gpu.max_registers_per_thread, found
    assert found.threads_per_block <= found.gpu.threads_per_block, found
    if found.occupancy is not None:
        assert found.occupancy["launches"], found


def test_every_target_of_the_course_is_here() -> None:
    assert {gpu.target for gpu in GPUS.values()} == set(TARGETS)
    assert len(TARGETS) == len(GPUS) - 1


@pytest.mark.triton_versions
@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel != "linear"])
@pytest.mark.parametrize("gpu", targets())
def test_every_kernel_compiles_clean_at_its_default_launch(gpu: Gpu, kernel: Any) -> None:
    for dtype in dtypes(gpu):
        assert_clean(compile_report(kernel, gpu, dtype))


@pytest.mark.parametrize("gpu", targets())
def test_the_linear_layer_compiles_clean_at_its_default_launch(gpu: Gpu) -> None:
    for dtype in dtypes(gpu):
        assert_clean(compile_report("linear", gpu, dtype))
    assert_clean(compile_report("linear", gpu, masked=True))


@pytest.mark.parametrize("kernel", ["chain", "softmax", "epilogue"])
@pytest.mark.parametrize("gpu", targets())
def test_sizes_that_are_no_multiples_of_16_cost_registers_and_no_spill(gpu: Gpu, kernel: Any) -> None:
    assert_clean(compile_report(kernel, gpu, sizes_multiple_of_16=False))


@pytest.mark.triton_versions
@pytest.mark.parametrize("gpu", targets())
def test_every_run_of_the_chain_compiles_clean(gpu: Gpu) -> None:
    for first, last in RUNS:
        assert_clean(compile_report("chain", gpu, first=first, last=last))


@pytest.mark.triton_versions
@pytest.mark.parametrize("gpu", targets())
def test_every_activation_of_the_epilogue_compiles_clean(gpu: Gpu) -> None:
    for activation in ACTIVATIONS:
        assert_clean(compile_report("epilogue", gpu, activation=activation))


@pytest.mark.parametrize("gpu", targets())
@pytest.mark.parametrize("kernel", ["rmsnorm", "softmax"])
def test_rows_from_short_to_the_longest_resident_one_compile_clean(gpu: Gpu, kernel: Any) -> None:
    assert_clean(compile_report(kernel, gpu, tile=(64,)))
    assert_clean(compile_report(kernel, gpu, tile=(LARGEST_RESIDENT_ROW,)))
    assert_clean(compile_report(kernel, gpu, "fp32", (LARGEST_RESIDENT_ROW,)))


@pytest.mark.parametrize("gpu", targets())
def test_the_default_of_the_linear_layer_is_what_a_launch_without_timings_chooses(gpu: Gpu) -> None:
    config = choose_config(gpu, "fp16", 4096, 4096, 4096)
    found = compile_report("linear", gpu)
    assert (found.tile, found.num_warps, found.num_stages) == (config.tile, config.num_warps, config.num_stages)
