"""Random tensors for the elementwise kernels, and how far from float64 a result may be."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st

GUARD = -77.0  # between the rows of an output and after them: a kernel must leave it alone

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@dataclass(frozen=True)
class Case:
    """Shape, distance between rows beyond their width, dtype, tile and seed of one call."""

    rows: int
    columns: int
    paddings: tuple[int, int, int]
    dtype: torch.dtype
    tile: tuple[int, int] | None
    seed: int

    def matrix(self, operand: int, device: str = "cpu") -> torch.Tensor:
        """Operand 0, 1, ...: ``[rows, columns]``, rows apart by its padding, of magnitudes from 0.01 to 30."""
        return self._values(operand, (self.rows, self.columns + self.paddings[operand]), device)[:, : self.columns]

    def vector(self, operand: int, device: str = "cpu") -> torch.Tensor:
        return self._values(operand, (self.columns,), device)

    def output(self, device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
        """A view to write to, and the guarded buffer around it."""
        buffer = torch.full((self.rows + 2, self.columns + self.paddings[2]), GUARD, dtype=self.dtype, device=device)
        return buffer[1:-1, : self.columns], buffer

    def _values(self, operand: int, shape: tuple[int, ...], device: str) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.seed * 8 + operand)
        sizes = torch.exp(torch.empty(shape).uniform_(-4.6, 3.4, generator=generator))
        return (sizes * torch.randn(shape, generator=generator).sign()).to(self.dtype).to(device)


CASES = st.builds(
    Case,
    rows=st.integers(1, 6),
    columns=st.integers(1, 70),
    paddings=st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)),
    dtype=st.sampled_from(DTYPES),
    tile=st.sampled_from([None, (1, 16), (4, 8), (2, 64), (16, 1)]),
    seed=st.integers(0, 2**20),
)


def rounding(dtype: torch.dtype, interpreted: bool = True) -> float:
    """The largest relative error of one store: half a unit in the last place, a whole one where it truncates.

    Triton's interpreter truncates to bfloat16; hardware rounds to nearest.
    """
    eps = torch.finfo(dtype).eps
    return eps if interpreted and dtype == torch.bfloat16 else eps / 2


def smallest(dtype: torch.dtype) -> float:
    """The distance of numbers next to 0, below which no error is relative."""
    info = torch.finfo(dtype)
    return info.tiny * info.eps


def untouched(buffer: torch.Tensor, view: torch.Tensor) -> bool:
    """Whether the guard around ``view`` in ``buffer`` is as it was."""
    view.fill_(GUARD)
    return bool((buffer == GUARD).all())
