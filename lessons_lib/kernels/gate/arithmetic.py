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
    inputs = [(case.gate(row, column), case.bias(column), case.up(row, column)) for row, column in elements]
    values = [got[row][column] for row, column in elements]
    wrong = [
        (value, gate + bias)
        for value, (row, column), (gate, bias, _) in zip(values, elements, inputs, strict=True)
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


def _in_fp16(gate: float, bias: float, up: float) -> float:
    total = round_to_fp16(gate + bias)
    return round_to_fp16(round_to_fp16(total * round_to_fp16(sigmoid(total))) * up)


# (gate, bias, up) -> y. Where two give the same, the first is named.
_MISTAKES: tuple[tuple[str, Callable[[float, float, float], float]], ...] = (
    ("no_bias", lambda gate, bias, up: silu(gate) * up),
    ("no_up", lambda gate, bias, up: silu(gate + bias)),
    ("up_added", lambda gate, bias, up: silu(gate + bias) + up),
    ("sigmoid_only", lambda gate, bias, up: sigmoid(gate + bias) * up),
    ("no_silu", lambda gate, bias, up: (gate + bias) * up),
    ("sigmoid_of_minus", lambda gate, bias, up: (gate + bias) * sigmoid(-gate - bias) * up),
    ("silu_of_up", lambda gate, bias, up: (gate + bias) * silu(up)),
    ("silu_of_product", lambda gate, bias, up: silu((gate + bias) * up)),
    ("bias_after_silu", lambda gate, bias, up: (silu(gate) + bias) * up),
    ("bias_subtracted", lambda gate, bias, up: silu(gate - bias) * up),
    ("bias_outside_sigmoid", lambda gate, bias, up: gate * sigmoid(gate + bias) * up),
    ("gate_outside_sigmoid", lambda gate, bias, up: (gate + bias) * sigmoid(gate) * up),
    ("relu", lambda gate, bias, up: max(gate + bias, 0.0) * up),
    ("gelu", lambda gate, bias, up: _gelu_tanh(gate + bias) * up),
    ("rounds_to_fp16", lambda gate, bias, up: silu(round_to_fp16(gate + bias)) * up),
    ("rounds_to_fp16", lambda gate, bias, up: round_to_fp16(silu(gate + bias)) * up),
    ("rounds_to_fp16", lambda gate, bias, up: round_to_fp16(silu(gate + bias) * up)),
    ("rounds_to_fp16", _in_fp16),
)


def _gelu_tanh(x: float) -> float:
    return x * sigmoid(1.5957691216057308 * x * (1 + 0.044715 * x * x))
