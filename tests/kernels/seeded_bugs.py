"""Kernels that a learner could write: right ones, wrong ones with what the checker must say, and hostile ones."""
# ruff: noqa: N803, F841
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import os
import sys
from typing import Any

from lessons_lib.kernels.language import tl, triton

# -- right --------------------------------------------------------------------------------------------------------


@triton.jit
def right(gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    blocks = tl.cdiv(columns, BLOCK)
    row = (program // blocks).to(tl.int64)
    column = program % blocks * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    gate = tl.load(gate_ptr + row * gate_stride + column, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride + column, mask=mask).to(tl.float32)
    z = gate + bias
    tl.store(y_ptr + row * y_stride + column, z * tl.sigmoid(z) * up, mask=mask)


_LOWEST: tl.constexpr = tl.constexpr(0.0)


@triton.jit
def _stable_silu(z):
    decay = tl.exp(-tl.abs(z))
    return z * tl.where(z >= _LOWEST, 1.0, decay) / (1.0 + decay)


@triton.jit
def right_with_helper(
    gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr
):
    """Column blocks outermost, pointers first, a helper, a constant, values that are filled in."""
    program = tl.program_id(0)
    row = (program % rows).to(tl.int64)
    column = program // rows * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    gate_ptr += row * gate_stride
    up_ptr += row * up_stride
    y_ptr += row * y_stride
    up = tl.load(up_ptr + column, mask=mask, other=0.0).to(tl.float32)
    z = tl.load(gate_ptr + column, mask=mask, other=0.0).to(tl.float32)
    z += tl.load(bias_ptr + column, mask=mask, other=0.0).to(tl.float32)
    y = _stable_silu(z) * up
    tl.store(y_ptr + column, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def right_two_dimensional(
    gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr
):
    """A block of [1, BLOCK], and the sigmoid as a quotient."""
    blocks = (columns + BLOCK - 1) // BLOCK
    row = (tl.program_id(0).to(tl.int64) // blocks) + tl.arange(0, 1)[:, None]
    column = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    gate = tl.load(gate_ptr + row * gate_stride + column, mask=mask, other=0).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride + column, mask=mask, other=0).to(tl.float32)
    z = gate + tl.load(bias_ptr + column, mask=column < columns, other=0)
    tl.store(y_ptr + row * y_stride + column, z / (1 + tl.exp(-z)) * up, mask=mask)


RIGHT: list[Any] = [right, right_with_helper, right_two_dimensional]

# -- not done -----------------------------------------------------------------------------------------------------


@triton.jit
def skeleton(gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    blocks = tl.cdiv(columns, BLOCK)
    # Which row and which columns does this program own?


@triton.jit
def skeleton_with_blanks(
    gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr
):
    row = ...
    column = ...
    y = ...
    tl.store(y_ptr + row * y_stride + column, y)


SKELETONS: list[Any] = [skeleton, skeleton_with_blanks]

# -- wrong --------------------------------------------------------------------------------------------------------

_START = """
    program = tl.program_id(0)
    blocks = tl.cdiv(columns, BLOCK)
    row = (program // blocks).to(tl.int64)
    column = program % blocks * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
"""
_LOADS = """
    gate = tl.load(gate_ptr + row * gate_stride + column, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride + column, mask=mask).to(tl.float32)
"""
_COMPUTE = """
    z = gate + bias
    y = z * tl.sigmoid(z) * up
"""
_STORE = """
    tl.store(y_ptr + row * y_stride + column, y, mask=mask)
"""
_BODY = _START + _LOADS + _COMPUTE + _STORE
_HEAD = """import triton
import triton.language as tl

@triton.jit
def bias_silu_gate(
    gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr
):"""


def kernel_text(*edits: tuple[str, str], body: str = _BODY) -> str:
    """The right kernel with each first string replaced by the second; every one must be there."""
    for before, after in edits:
        assert before in body, before
        body = body.replace(before, after)
    return _HEAD + body


# Right, and unlike what the checker's own formulas expect.
RIGHT_TEXTS: dict[str, str] = {
    "two halves of a block": kernel_text(
        body="""
    program = tl.program_id(0)
    blocks = tl.cdiv(columns, BLOCK)
    row = (program // blocks).to(tl.int64)
    for half in tl.static_range(2):
        column = program % blocks * BLOCK + half * (BLOCK // 2) + tl.arange(0, BLOCK // 2)
        mask = column < columns
        z = tl.load(gate_ptr + row * gate_stride + column, mask=mask).to(tl.float32)
        z += tl.load(bias_ptr + column, mask=mask).to(tl.float32)
        up = tl.load(up_ptr + row * up_stride + column, mask=mask).to(tl.float32)
        tl.store(y_ptr + row * y_stride + column, z * tl.sigmoid(z) * up, mask=mask)
"""
    ),
    "block pointers": kernel_text(
        body="""
    program = tl.program_id(0)
    blocks = tl.cdiv(columns, BLOCK)
    row = program // blocks
    first = program % blocks * BLOCK
    gate_block = tl.make_block_ptr(gate_ptr, (rows, columns), (gate_stride, 1), (row, first), (1, BLOCK), (1, 0))
    up_block = tl.make_block_ptr(up_ptr, (rows, columns), (up_stride, 1), (row, first), (1, BLOCK), (1, 0))
    y_block = tl.make_block_ptr(y_ptr, (rows, columns), (y_stride, 1), (row, first), (1, BLOCK), (1, 0))
    column = first + tl.arange(0, BLOCK)
    bias = tl.load(bias_ptr + column, mask=column < columns).to(tl.float32)
    z = tl.load(gate_block, boundary_check=(0, 1)).to(tl.float32) + bias[None, :]
    y = z * tl.sigmoid(z) * tl.load(up_block, boundary_check=(0, 1)).to(tl.float32)
    tl.store(y_block, y.to(y_ptr.dtype.element_ty), boundary_check=(0, 1))
"""
    ),
    "loads at the last column instead of a mask": kernel_text(
        (
            "    mask = column < columns\n",
            "    mask = column < columns\n    inside = tl.minimum(column, columns - 1)\n",
        ),
        ("gate_stride + column, mask=mask", "gate_stride + inside"),
        ("bias_ptr + column, mask=mask", "bias_ptr + inside"),
        ("up_stride + column, mask=mask", "up_stride + inside"),
    ),
    "stores twice": kernel_text(
        ("    tl.store", "    tl.store(y_ptr + row * y_stride + column, gate, mask=mask)\n    tl.store")
    ),
}

# name -> (text, the fault, the cause)
BUGS: dict[str, tuple[str, str, str]] = {
    # masks
    "no mask anywhere": (kernel_text((", mask=mask", "")), "outside", "no_mask"),
    "no mask on the store": (kernel_text(("column, y, mask=mask", "column, y")), "outside", "no_mask"),
    "no mask on a load": (kernel_text(("bias_ptr + column, mask=mask", "bias_ptr + column")), "outside", "no_mask"),
    "mask off by one": (kernel_text(("column < columns", "column <= columns")), "outside", "no_mask"),
    "mask within the block": (
        kernel_text(("column < columns", "tl.arange(0, BLOCK) < columns - BLOCK")),
        "unwritten",
        "mask_too_small",
    ),
    "mask leaves the last column out": (
        kernel_text(("column < columns", "column < columns - 1")),
        "unwritten",
        "mask_too_small",
    ),
    "load masked too far": (
        kernel_text(("bias_ptr + column, mask=mask", "bias_ptr + column, mask=column < columns - 1")),
        "wrong_value",
        "masked_read",
    ),
    # strides
    "contiguous rows assumed": (
        kernel_text(("gate_stride", "columns"), ("up_stride", "columns"), ("y_stride", "columns")),
        "outside",
        "stride_ignored",
    ),
    "gate taken as contiguous": (
        kernel_text(("row * gate_stride", "row * columns")),
        "wrong_value",
        "stride_ignored",
    ),
    "up with the stride of gate": (kernel_text(("up_stride", "gate_stride")), "wrong_value", "stride_of_gate"),
    "y with the stride of gate": (kernel_text(("y_stride", "gate_stride")), "outside", "stride_of_gate"),
    "gate with the stride of y": (kernel_text(("row * gate_stride", "row * y_stride")), "outside", "stride_of_y"),
    "y with the stride of up": (kernel_text(("row * y_stride", "row * up_stride")), "outside", "stride_of_up"),
    "a stride of its own": (kernel_text(("row * up_stride", "row * (up_stride + 1)")), "outside", ""),
    "row not multiplied": (kernel_text(("row * gate_stride", "row")), "wrong_value", "row_not_scaled"),
    "row forgotten in up": (
        kernel_text(("up_ptr + row * up_stride + column", "up_ptr + column")),
        "wrong_value",
        "row_missing",
    ),
    "row forgotten in y": (kernel_text(("y_ptr + row * y_stride", "y_ptr")), "unwritten", "row_missing"),
    "32-bit row offsets": (kernel_text((".to(tl.int64)", "")), "narrow", "narrow_offset"),
    # which program does what
    "the program is the row": (kernel_text(("(program // blocks)", "program")), "outside", "row_is_program"),
    "one program a row, and no block": (
        kernel_text(("(program // blocks)", "program"), ("program % blocks * BLOCK + ", "")),
        "outside",
        "row_is_program",
    ),
    "blocks rounded down": (
        kernel_text(("tl.cdiv(columns, BLOCK)", "columns // BLOCK")),
        "outside",
        "floor_division",
    ),
    "block without its remainder": (
        kernel_text(("program % blocks * BLOCK", "program * BLOCK")),
        "unwritten",
        "block_is_program",
    ),
    "block forgotten": (kernel_text(("program % blocks * BLOCK + ", "")), "unwritten", "block_missing"),
    "block not multiplied": (kernel_text(("blocks * BLOCK", "blocks")), "unwritten", "block_not_scaled"),
    "row and block swapped": (
        kernel_text(
            ("program // blocks", "program % blocks"), ("= program % blocks * BLOCK", "= program // blocks * BLOCK")
        ),
        "unwritten",
        "row_and_block_swapped",
    ),
    "one program does it all": (
        kernel_text(
            body="""
    if tl.program_id(0) == 0:
        blocks = tl.cdiv(columns, BLOCK)
        program = tl.program_id(0)
        while program < rows * blocks:
            row = (program // blocks).to(tl.int64)
            column = program % blocks * BLOCK + tl.arange(0, BLOCK)
            mask = column < columns
            gate = tl.load(gate_ptr + row * gate_stride + column, mask=mask).to(tl.float32)
            bias = tl.load(bias_ptr + column, mask=mask).to(tl.float32)
            up = tl.load(up_ptr + row * up_stride + column, mask=mask).to(tl.float32)
            z = gate + bias
            tl.store(y_ptr + row * y_stride + column, z * tl.sigmoid(z) * up, mask=mask)
            program += 1
"""
        ),
        "too_much",
        "",
    ),
    "only the first program stores": (
        kernel_text(("    tl.store", "    if program == 0:\n        tl.store")),
        "unwritten",
        "no_store",
    ),
    "every program does the whole row": (
        kernel_text(
            body="""
    blocks = tl.cdiv(columns, BLOCK)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    block = 0
    while block < blocks:
        column = block * BLOCK + tl.arange(0, BLOCK)
        mask = column < columns
        gate = tl.load(gate_ptr + row * gate_stride + column, mask=mask).to(tl.float32)
        bias = tl.load(bias_ptr + column, mask=mask).to(tl.float32)
        up = tl.load(up_ptr + row * up_stride + column, mask=mask).to(tl.float32)
        z = gate + bias
        tl.store(y_ptr + row * y_stride + column, z * tl.sigmoid(z) * up, mask=mask)
        block += 1
"""
        ),
        "written_twice",
        "",
    ),
    # bias
    "bias by row": (kernel_text(("bias_ptr + column, mask=mask", "bias_ptr + row")), "wrong_value", "bias_by_row"),
    "bias block by row": (
        kernel_text(("bias_ptr + column", "bias_ptr + row + tl.zeros((BLOCK,), tl.int32)")),
        "wrong_value",
        "bias_by_row",
    ),
    "bias by the flat index": (
        kernel_text(("bias_ptr + column", "bias_ptr + program * BLOCK + tl.arange(0, BLOCK)")),
        "outside",
        "bias_like_matrix",
    ),
    "bias by the index of gate": (
        kernel_text(("bias_ptr + column", "bias_ptr + row * gate_stride + column")),
        "outside",
        "bias_like_matrix",
    ),
    "bias by program": (
        kernel_text(("bias_ptr + column, mask=mask", "bias_ptr + program")),
        "wrong_value",
        "bias_by_program",
    ),
    "bias backwards": (
        kernel_text(("bias_ptr + column", "bias_ptr + columns - 1 - column")),
        "wrong_value",
        "wrong_index",
    ),
    "only the first bias": (
        kernel_text(("bias_ptr + column, mask=mask", "bias_ptr")),
        "wrong_value",
        "bias_first_only",
    ),
    "bias from the row's first block": (
        kernel_text(("bias_ptr + column", "bias_ptr + tl.arange(0, BLOCK)")),
        "wrong_value",
        "block_missing",
    ),
    "no bias": (kernel_text(("z = gate + bias", "z = gate")), "wrong_value", "no_bias"),
    "bias never loaded": (
        kernel_text(
            ("bias = tl.load(bias_ptr + column, mask=mask).to(tl.float32)", "bias = gate"),
            ("z = gate + bias", "z = gate"),
        ),
        "wrong_value",
        "not_read",
    ),
    # arithmetic
    "no up": (kernel_text((" * up\n", "\n")), "wrong_value", "no_up"),
    "up added": (kernel_text((" * up\n", " + up\n")), "wrong_value", "up_added"),
    "sigmoid only": (kernel_text(("z * tl.sigmoid(z)", "tl.sigmoid(z)")), "wrong_value", "sigmoid_only"),
    "no activation": (kernel_text(("z * tl.sigmoid(z)", "z")), "wrong_value", "no_silu"),
    "sign of the exponent": (
        kernel_text(("z * tl.sigmoid(z)", "z / (1 + tl.exp(z))")),
        "wrong_value",
        "sigmoid_of_minus",
    ),
    "activation of up": (
        kernel_text(("z * tl.sigmoid(z) * up", "z * up * tl.sigmoid(up)")),
        "wrong_value",
        "silu_of_up",
    ),
    "up before the activation": (
        kernel_text(("z = gate + bias", "z = (gate + bias) * up"), ("tl.sigmoid(z) * up", "tl.sigmoid(z)")),
        "wrong_value",
        "silu_of_product",
    ),
    "bias after the activation": (
        kernel_text(
            ("z = gate + bias", "z = gate"), ("tl.sigmoid(z) *", "tl.sigmoid(z) + bias) *"), ("y = z", "y = (z")
        ),
        "wrong_value",
        "bias_after_silu",
    ),
    "bias subtracted": (kernel_text(("gate + bias", "gate - bias")), "wrong_value", "bias_subtracted"),
    "gate times sigmoid of the sum": (
        kernel_text(("z * tl.sigmoid(z)", "gate * tl.sigmoid(z)")),
        "wrong_value",
        "bias_outside_sigmoid",
    ),
    "sum times sigmoid of gate": (
        kernel_text(("z * tl.sigmoid(z)", "z * tl.sigmoid(gate)")),
        "wrong_value",
        "gate_outside_sigmoid",
    ),
    "relu": (kernel_text(("z * tl.sigmoid(z)", "tl.where(z > 0, z, 0.0)")), "wrong_value", "relu"),
    "gelu": (
        kernel_text(
            ("z * tl.sigmoid(z)", "z * tl.sigmoid(1.5957691216057308 * z * (1 + 0.044715 * z * z))"),
        ),
        "wrong_value",
        "gelu",
    ),
    "exp overflows": (
        kernel_text(("z * tl.sigmoid(z)", "z * (tl.exp(z) / (1 + tl.exp(z)))")),
        "wrong_value",
        "exp_overflows",
    ),
    "rounded to fp16": (
        kernel_text(("z = gate + bias", "z = (gate + bias).to(tl.float16).to(tl.float32)")),
        "wrong_value",
        "rounds_to_fp16",
    ),
    "sum in the dtype of the data": (
        kernel_text((".to(tl.float32)\n", "\n"), ("z = gate + bias", "z = (gate + bias).to(tl.float32)")),
        "wrong_value",
        "fp16_overflows",
    ),
    "scaled in the dtype of the data": (
        kernel_text(
            ("gate_stride + column, mask=mask).to(tl.float32)", "gate_stride + column, mask=mask)"),
            ("z = gate + bias", "z = (gate * 30000 / 30000).to(tl.float32) + bias"),
        ),
        "wrong_value",
        "fp16_arithmetic",
    ),
    "bf16 arithmetic": (
        kernel_text(
            (".to(tl.float32)\n", "\n"),
            (
                "z = gate + bias",
                "wide = gate.dtype != tl.bfloat16\n    z = gate.to(tl.float32) + bias.to(tl.float32) if wide else gate + bias\n"
                "    z = z.to(tl.float32)",
            ),
        ),
        "wrong_value",
        "bf16_arithmetic",
    ),
    # pointers
    "gate and up exchanged in the sum": (
        kernel_text(("z = gate + bias", "z = up + bias"), (" * up\n", " * gate\n")),
        "wrong_value",
        "",
    ),
    "stores into up": (
        kernel_text(("y_ptr + row * y_stride", "up_ptr + row * up_stride")),
        "writes_input",
        "",
    ),
    "accumulates into y": (
        kernel_text(("y, mask=mask)", "y + tl.load(y_ptr + row * y_stride + column, mask=mask), mask=mask)")),
        "wrong_value",
        "reads_y",
    ),
    "atomic add": (kernel_text(("tl.store", "tl.atomic_add")), "wrong_value", "atomic"),
    "masked out altogether": (
        kernel_text(("column < columns", "column < 0")),
        "unwritten",
        "stores_nothing",
    ),
    "wild pointer": (kernel_text(("y_ptr + row * y_stride", "y_ptr + 987654321987 + row")), "outside", ""),
}


@triton.jit
def bias_by_row(
    gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr
):
    """One of the bugs as a learner has it: a function, not a text."""
    program = tl.program_id(0)
    blocks = tl.cdiv(columns, BLOCK)
    row = (program // blocks).to(tl.int64)
    column = program % blocks * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    gate = tl.load(gate_ptr + row * gate_stride + column, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + row).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride + column, mask=mask).to(tl.float32)
    z = gate + bias
    tl.store(y_ptr + row * y_stride + column, z * tl.sigmoid(z) * up, mask=mask)


# name -> (text, words of the error, what is said of it)
ERRORS: dict[str, tuple[str, str, str]] = {
    "raises": (
        kernel_text(("    z = gate", "    raise ValueError('too many cooks')\n    z = gate")),
        "too many cooks",
        "",
    ),
    "exits": (
        kernel_text(("    z = gate", "    sys.exit(3)\n    z = gate")).replace(
            "import triton\n", "import sys\n\nimport triton\n", 1
        ),
        "SystemExit",
        "cannot exit",
    ),
    "a name with a slip": (kernel_text(("z = gate + bias", "z = gate + bais")), "name 'bais' is not defined", ""),
    "exp of fp16": (
        kernel_text((".to(tl.float32)\n", "\n"), ("tl.sigmoid(z)", "(1 / (1 + tl.exp(-z)))")),
        "fp16",
        "convert what is loaded",
    ),
    "arange to columns": (kernel_text(("tl.arange(0, BLOCK)", "tl.arange(0, columns)")), "constexpr", "use BLOCK"),
}

# -- hostile ------------------------------------------------------------------------------------------------------


@triton.jit
def endless(gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    while program < rows * columns + 1000000:
        print("again and again")
        program = program * 1
    tl.store(y_ptr + program, 0.0)


@triton.jit
def ends_the_process(
    gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr
):
    tl.store(y_ptr, 0.0)
    os._exit(0)


@triton.jit
def prints(gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr):
    print("program", tl.program_id(0), file=sys.stderr)
    print("the columns are", columns)
    tl.store(y_ptr + tl.program_id(0), 0.0)


@triton.jit
def plain_python(
    gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr
):
    """Right in the interpreter, which runs Python; no compiler takes a global that is no constexpr."""
    program = tl.program_id(0)
    blocks = tl.cdiv(columns, BLOCK)
    row = (program // blocks).to(tl.int64)
    column = program % blocks * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    gate = tl.load(gate_ptr + row * gate_stride + column, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride + column, mask=mask).to(tl.float32)
    z = gate + bias
    tl.store(y_ptr + row * y_stride + column, z * tl.sigmoid(z) * up * ONE, mask=mask)


ONE = 1.0
SETTINGS = {"scale": 1.0}


@triton.jit
def uses_the_notebook(
    gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr
):
    tl.store(y_ptr + tl.program_id(0), SETTINGS["scale"])


@triton.jit
def other_parameters(gate_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.program_id(0), 0.0)


def not_a_kernel(gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK):
    tl.store(y_ptr, 0.0)
