"""A compile report made up for tests of what is said about one."""

from __future__ import annotations

from lessons_lib import GPUS
from lessons_lib.kernels.compiler.compiled import CompileReport

CLEAN = CompileReport(
    kernel="chain",
    gpu=GPUS["A100 (40 GB)"],
    dtype="fp16",
    tile=(1, 1024),
    num_warps=4,
    num_stages=1,
    sizes_multiple_of_16=True,
    status="ok",
    registers_per_thread=32,
    spill_bytes=0,
    shared_bytes=0,
    instruction_family="fma",
    load_bytes=16,
    compile_seconds=0.1,
    triton_version="3.7.1",
)
