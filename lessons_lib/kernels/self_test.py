"""A tiny kernel that ``prepare_triton`` runs once: does Triton work here at all?

It imports triton directly, unlike every other kernel file: ``kernels/language`` asks ``prepare_triton`` first, which
is what runs this test.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl

from lessons_lib.base.text import Text


@triton.jit
def _row_sums_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    """What the kernels of this package rest on: masks, float32 arithmetic on float16, a reduction."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0).to(tl.float32)
    decay = tl.where(x >= 0, tl.exp(-tl.abs(x)), 1.0)
    tl.store(y_ptr + row, tl.sum(x * decay, axis=0))


def fault(device: str) -> Text | None:
    """What is wrong with the kernel's results on ``device``; ``None`` if nothing is. Errors are the caller's."""
    import torch

    x = torch.tensor([[1.0, 2.0, -4.0], [0.5, -0.5, 8.0]], dtype=torch.float16, device=device)
    y = torch.full((2,), float("nan"), dtype=torch.float32, device=device)
    _row_sums_kernel[(2,)](x, y, 3, BLOCK=4)
    wide = x.double()
    expected = torch.where(wide >= 0, wide * torch.exp(-wide), wide).sum(dim=1)
    if torch.allclose(y.double(), expected, rtol=1e-5, atol=1e-6):
        return None
    return Text(zh=f"结果是 {y.tolist()}，应为 {expected.tolist()}", en=f"got {y.tolist()}, not {expected.tolist()}")
