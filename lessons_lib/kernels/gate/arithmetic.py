"""Which usual mistake in the arithmetic gives the result that a kernel wrote. Pure numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lessons_lib.kernels.gate.cases import GateCase, round_to_fp16, sigmoid, silu

_LARGEST_FP16 = 65504.0
_LARGEST_EXPONENT = 88.0  # exp of more overflows fp32


def arithmetic_cause(case: GateCase, got: Sequence[Sequence[float]]) -> str:
    """The first usual mistake that gives all of y; failing that, what the dtype or the size of the numbers says.

    Args:
        case: one in which every element was read and stored where it belongs, and some are wrong.
        got: y, row by row.
    """
    elements = [(row, column) for row in range(case.rows) for column in range(case.columns)]
    inputs = [(case.x(row, column), case.bias(column), case.gate(row, column)) for row, column in elements]
    values = [got[row][column] for row, column in elements]
    wrong = [
        (value, x + bias)
        for value, (row, column), (x, bias, _) in zip(values, elements, inputs, strict=True)
        if not case.agrees(value, case.y(row, column))
    ]
    if case.dtype == "fp16" and all(
        abs(total) > _LARGEST_FP16 and not math.isfinite(value) for value, total in wrong
    ):
        return "fp16_overflows"
    for cause, formula in _MISTAKES:
        if all(case.agrees(value, formula(*given)) for value, given in zip(values, inputs, strict=True)):
            return cause
    if all(math.isnan(value) and abs(total) > _LARGEST_EXPONENT for value, total in wrong):
        return "exp_overflows"
    return "" if case.dtype == "fp32" else f"{case.dtype}_arithmetic"


def _in_fp16(x: float, bias: float, gate: float) -> float:
    total = round_to_fp16(x + bias)
    return round_to_fp16(round_to_fp16(total * round_to_fp16(sigmoid(total))) * gate)


# (x, bias, gate) -> y. Where two give the same, the first is named.
_MISTAKES: tuple[tuple[str, Callable[[float, float, float], float]], ...] = (
    ("no_bias", lambda x, bias, gate: silu(x) * gate),
    ("no_gate", lambda x, bias, gate: silu(x + bias)),
    ("gate_added", lambda x, bias, gate: silu(x + bias) + gate),
    ("sigmoid_only", lambda x, bias, gate: sigmoid(x + bias) * gate),
    ("no_silu", lambda x, bias, gate: (x + bias) * gate),
    ("sigmoid_of_minus", lambda x, bias, gate: (x + bias) * sigmoid(-x - bias) * gate),
    ("silu_of_gate", lambda x, bias, gate: (x + bias) * silu(gate)),
    ("silu_of_product", lambda x, bias, gate: silu((x + bias) * gate)),
    ("bias_after_silu", lambda x, bias, gate: (silu(x) + bias) * gate),
    ("bias_subtracted", lambda x, bias, gate: silu(x - bias) * gate),
    ("bias_outside_sigmoid", lambda x, bias, gate: x * sigmoid(x + bias) * gate),
    ("x_outside_sigmoid", lambda x, bias, gate: (x + bias) * sigmoid(x) * gate),
    ("relu", lambda x, bias, gate: max(x + bias, 0.0) * gate),
    ("gelu", lambda x, bias, gate: _gelu_tanh(x + bias) * gate),
    ("rounds_to_fp16", lambda x, bias, gate: silu(round_to_fp16(x + bias)) * gate),
    ("rounds_to_fp16", lambda x, bias, gate: round_to_fp16(silu(x + bias)) * gate),
    ("rounds_to_fp16", lambda x, bias, gate: round_to_fp16(silu(x + bias) * gate)),
    ("rounds_to_fp16", _in_fp16),
)


def _gelu_tanh(x: float) -> float:
    return x * sigmoid(1.5957691216057308 * x * (1 + 0.044715 * x * x))
