"""The report against a real launch: what was compiled ahead of time is what runs.

By hand, on a machine with a GPU: ``TRITON_INTERPRET=0 python -m pytest tests/kernels/test_report_on_gpu.py``.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lessons_lib.kernels.chain import chain_kernel
from lessons_lib.kernels.compiler.report import compile_report
from lessons_lib.kernels.device import device_limits
from lessons_lib.kernels.launch import elementwise_launch, row_launch
from lessons_lib.kernels.mode import TritonSetup
from lessons_lib.kernels.row import softmax_kernel


@pytest.fixture
def gpu(triton_setup: TritonSetup) -> TritonSetup:
    if not triton_setup.on_gpu:
        pytest.skip(f"needs a GPU and TRITON_INTERPRET=0 ({triton_setup.reason.en})")
    return triton_setup


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("columns", [4096, 4100, 1001])
def test_the_chain_that_runs_has_the_registers_and_the_shared_memory_of_its_report(columns: int) -> None:
    limits = device_limits()
    assert limits is not None
    multiple = columns % 16 == 0
    rows = 16 if multiple else 15  # one more size that a launch tells the compiler of
    x, residual, y = (torch.randn(rows, columns, dtype=torch.float16, device="cuda") for _ in range(3))
    bias, scale = (torch.randn(columns, dtype=torch.float16, device="cuda") for _ in range(2))
    launch = elementwise_launch(rows, columns)
    launched: Any = chain_kernel[(launch.programs,)](
        x,
        bias,
        scale,
        residual,
        y,
        rows,
        columns,
        x.stride(0),
        residual.stride(0),
        y.stride(0),
        FIRST=0,
        LAST=3,
        BLOCK_M=launch.block_m,
        BLOCK_N=launch.block_n,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )
    found = compile_report("chain", limits, "fp16", launch.tile, sizes_multiple_of_16=multiple)
    assert (launched.n_regs, launched.metadata.shared) == (found.registers_per_thread, found.shared_bytes)


@pytest.mark.usefixtures("gpu")
def test_the_softmax_that_runs_has_the_registers_and_the_shared_memory_of_its_report() -> None:
    limits = device_limits()
    assert limits is not None
    x = torch.randn(16, 4096, dtype=torch.float16, device="cuda")
    y = torch.empty_like(x)
    launch = row_launch(16, 4096)
    launched: Any = softmax_kernel[(launch.programs,)](
        x,
        y,
        4096,
        x.stride(0),
        y.stride(0),
        STEPS=launch.steps,
        BLOCK=launch.block,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )
    found = compile_report("softmax", limits, "fp16", launch.tile)
    assert (launched.n_regs, launched.metadata.shared) == (found.registers_per_thread, found.shared_bytes)
