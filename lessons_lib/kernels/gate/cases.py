"""The cases that a learner's bias + SiLU + gate kernel must pass: shapes, data, the right result. Pure numbers.

``y = silu(gate + bias) * up`` with gate, up and y ``[rows, columns]``, each with a row stride of its own, and bias
``[columns]``. Every value of the data is exact in the case's dtype, so that only the kernel's own arithmetic can round.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Literal

from lessons_lib.base.units import divided_up
from lessons_lib.kernels.launch import DtypeName

MatrixName = Literal["gate", "up", "y"]
TensorName = Literal["gate", "bias", "up", "y"]
TENSORS: tuple[TensorName, ...] = ("gate", "bias", "up", "y")
MATRICES: tuple[MatrixName, ...] = ("gate", "up", "y")

PARAMETERS = (
    "gate_ptr",
    "bias_ptr",
    "up_ptr",
    "y_ptr",
    "rows",
    "columns",
    "gate_stride",
    "up_stride",
    "y_stride",
    "BLOCK",
)

# Relative and absolute error against float64. fp16: two units in the last place; bf16: two as well, because the
# interpreter's conversion to bf16 truncates.
TOLERANCES: dict[DtypeName, tuple[float, float]] = {
    "fp32": (1e-5, 1e-6),
    "fp16": (2e-3, 1e-6),
    "bf16": (1.6e-2, 1e-6),
}


@dataclass(frozen=True)
class GateCase:
    """One launch: ``rows * ceil(columns / block)`` programs.

    ``gaps``: elements between the rows of gate, up and y. ``large``: some sums gate + bias are far from 0, beyond the
    largest fp16 in an fp16 case, although y is not.
    """

    rows: int
    columns: int
    block: int
    dtype: DtypeName = "fp32"
    gaps: tuple[int, int, int] = (0, 0, 0)
    large: bool = False

    @property
    def blocks(self) -> int:
        """Blocks in one row."""
        return divided_up(self.columns, self.block)

    @property
    def programs(self) -> int:
        return self.rows * self.blocks

    def stride(self, tensor: TensorName) -> int:
        """Elements from one row to the next; bias is one row."""
        return self.columns if tensor == "bias" else self.columns + self.gaps[MATRICES.index(tensor)]

    def gate(self, row: int, column: int) -> float:
        if self._is_large(column):
            return 40960.0 if self.dtype == "fp16" else 120.0 * (-1) ** row
        fine = 0 if self.dtype != "fp32" else ((row + column) % 7 + 1) / 2**14  # what rounding to fp16 would lose
        return ((row * 29 + column * 13) % 61 - 30) / 8 + fine

    def bias(self, column: int) -> float:
        if self._is_large(column) and self.dtype == "fp16":
            return 40960.0
        return ((column * 7) % 23 - 11) / 4

    def up(self, row: int, column: int) -> float:
        if self._is_large(column) and self.dtype == "fp16":
            return 0.25
        return ((row * 5 + column * 3) % 17 - 8) / 4 + 0.125

    def y(self, row: int, column: int) -> float:
        """The right result in float64."""
        return silu(self.gate(row, column) + self.bias(column)) * self.up(row, column)

    def agrees(self, got: float, expected: float) -> bool:
        """Whether the two are as close as the case's dtype allows; NaN agrees with NaN, infinity with itself."""
        if math.isnan(got) or math.isnan(expected):
            return math.isnan(got) and math.isnan(expected)
        if math.isinf(got) or math.isinf(expected):
            return got == expected
        relative, absolute = TOLERANCES[self.dtype]
        return abs(got - expected) <= absolute + relative * abs(expected)

    def _is_large(self, column: int) -> bool:
        return self.large and column % 5 == 1


# Simplest first: whole blocks, then row strides, then ends that a block does not fill, then what the dtypes ask for.
# The gaps after the ends are wider than a block, so that a lane that runs over the end of its row meets no other row.
CASES: tuple[GateCase, ...] = (
    GateCase(3, 64, 32),
    GateCase(3, 64, 32, gaps=(8, 24, 40)),
    GateCase(3, 50, 32, gaps=(32, 48, 80)),
    GateCase(4, 37, 16, large=True),
    GateCase(1, 100, 64),
    GateCase(5, 1, 16),
    GateCase(2, 24, 128, gaps=(16, 0, 8)),
    GateCase(3, 70, 32, "fp16", gaps=(2, 0, 4), large=True),
    GateCase(2, 33, 16, "bf16", gaps=(0, 7, 15)),
)


def sigmoid(x: float) -> float:
    decay = math.exp(-abs(x))
    return (1.0 if x >= 0 else decay) / (1.0 + decay)


def silu(x: float) -> float:
    return x * sigmoid(x)


def round_to_fp16(x: float) -> float:
    """The nearest fp16; infinite beyond its range."""
    try:
        return float(struct.unpack("e", struct.pack("e", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)
