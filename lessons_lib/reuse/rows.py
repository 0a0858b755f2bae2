"""Q2 for kernels that reduce over rows: softmax and RMSNorm, one operator a kernel or a row kept on chip.

Logical bytes, as everywhere: each kernel reads its inputs and writes its outputs once.
"""

from __future__ import annotations

from typing import TypedDict

from lessons_lib.base.units import quotient
from lessons_lib.base.validate import bad_argument, require_bool, require_int


class RowTraffic(TypedDict):
    """What ``softmax_traffic`` and ``rmsnorm_traffic`` return."""

    row_bytes: int
    naive_bytes: int
    resident_bytes: int
    two_pass_bytes: int
    resident_ratio: float
    two_pass_ratio: float


def softmax_traffic(rows: int, columns: int, element_bytes: int = 4) -> RowTraffic:
    """Bytes of a softmax over each row: five kernels, one kernel with the row resident, one that reads it twice.

    - naive, five kernels: max (read x), subtract (read x, write d), exp (read d, write e), sum (read e), divide (read
      e, write y): 8 matrices; and the vectors of maxima and of sums, each written and read: 4 vectors;
    - row resident: read x, write y: 2 matrices;
    - two passes: maximum and sum together while reading x (online softmax), then read x again, write y: 3 matrices.

    Args:
        rows, columns: of the matrix, at least 1 each.
        element_bytes: bytes of every element, at least 1 (fp32: 4).

    Returns:
        ``row_bytes``: what must stay on chip for the resident kernel (compare it with a budget: ``onchip_reuse`` with
        a reuse of 2); ``naive_bytes``, ``resident_bytes``, ``two_pass_bytes``; ``resident_ratio`` and
        ``two_pass_ratio``: naive / each, a quotient of bytes and no prediction of time.

    Assumes that both fused kernels keep their maxima and sums in registers.

    Raises:
        ValueError: an argument is not an integer (``True`` and ``1.0`` are none) or is below 1.
    """
    rows, columns = require_int("rows", rows, 1), require_int("columns", columns, 1)
    element_bytes = require_int("element_bytes", element_bytes, 1)
    vector, matrix = element_bytes * rows, element_bytes * rows * columns
    return _row_traffic(element_bytes * columns, 8 * matrix + 4 * vector, 2 * matrix, 3 * matrix)


def rmsnorm_traffic(
    rows: int, columns: int, element_bytes: int = 2, residual: bool = False, sum_output: bool = False
) -> RowTraffic:
    """Bytes of ``x / rms(x) x weight`` over each row, with or without a residual added first.

    In matrices of ``rows x columns``:

    ========================== ===== ======== ==========
    residual                   naive resident two passes
    ========================== ===== ======== ==========
    none                       7     2        3
    added, the sum not output  10    3        5
    added, the sum an output   10    4        5
    ========================== ===== ======== ==========

    Naive is a kernel each for the addition (2 reads, 1 write), square (1, 1), mean (1, 0), scale (1, 1), weight
    (1, 1). Two passes with a residual either read both inputs twice, or write the sum and read it back: 5 both ways.

    Args:
        rows, columns: of the matrix, at least 1 each.
        element_bytes: bytes of every element, at least 1 (fp16: 2).
        residual: a second matrix is added before the norm, in the same kernel.
        sum_output: the sum is needed later and must be written too; only with ``residual``.

    Returns:
        as ``softmax_traffic``; ``row_bytes`` is one row, of the sum where there is a residual.

    Assumes that vectors (means, the weight) are too small to count.

    Raises:
        ValueError: a size is not an integer or is below 1; a flag is not a ``bool``; ``sum_output`` without
            ``residual``.
    """
    rows, columns = require_int("rows", rows, 1), require_int("columns", columns, 1)
    element_bytes = require_int("element_bytes", element_bytes, 1)
    residual, sum_output = require_bool("residual", residual), require_bool("sum_output", sum_output)
    if sum_output and not residual:
        raise bad_argument(
            "sum_output",
            zh="没有残差（residual=False）就没有和可以写出",
            en="without a residual (residual=False) there is no sum to write",
        )
    if residual:
        naive, resident, two_pass = 10, 4 if sum_output else 3, 5
    else:
        naive, resident, two_pass = 7, 2, 3
    matrix = element_bytes * rows * columns
    return _row_traffic(element_bytes * columns, naive * matrix, resident * matrix, two_pass * matrix)


def _row_traffic(row: int, naive: int, resident: int, two_pass: int) -> RowTraffic:
    return {
        "row_bytes": row,
        "naive_bytes": naive,
        "resident_bytes": resident,
        "two_pass_bytes": two_pass,
        "resident_ratio": quotient(naive, resident),
        "two_pass_ratio": quotient(naive, two_pass),
    }
