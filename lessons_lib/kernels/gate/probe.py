"""The kernel whose accesses ``gate_trace.probe`` knows beforehand."""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl

BLOCK = 4


@triton.jit
def probe_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + column, mask=inside, other=0.0)
    tl.store(y_ptr + column, x + 1, mask=inside)
