"""Past 2**31 elements: proved in the code that the compiler emits, and run on a tensor that is mostly address space."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from lessons_lib.kernels.launch import CHAIN_OPERATORS

ROOT = Path(__file__).parents[2]
KERNELS = (
    "chain",
    "chain in tiles",
    *(f"chain: {operator} alone" for operator in CHAIN_OPERATORS),
    "epilogue",
    "rmsnorm, resident",
    "rmsnorm, two passes",
    "softmax, resident",
    "softmax, two passes",
    "linear",
    "linear, masked",
)

# What may be done to a 32-bit stride: be widened, be multiplied into 64 bits, be copied.
_WIDENING = re.compile(r"cvt\.[su]64\.[su]32|(mul|mad)\.wide\.[su]32")
_COPY = re.compile(r"mov\.[bsu]32")


def narrow_uses(ptx: str, strides: list[int]) -> tuple[list[str], int]:
    """Instructions that compute with a stride in 32 bits, and how many take one to 64 bits.

    Every register that holds a stride is followed from its parameter on.
    """
    load = re.compile(rf"_param_({'|'.join(map(str, strides))})\]")
    held: set[str] = set()
    narrow, widened = [], 0
    for operation, operands in instructions(ptx):
        if operation.startswith("ld.param"):
            target = operands.partition(",")[0].strip()
            if not load.search(operands):
                continue
            if target.startswith("%rd"):  # widened as it is read
                widened += operation in ("ld.param.s32", "ld.param.u32")
            else:
                held.add(target)
            continue
        target, *sources = re.findall(r"%\w+", operands) or [""]
        if not held.intersection(sources):
            continue
        if _COPY.fullmatch(operation):
            held.add(target)
        elif _WIDENING.fullmatch(operation):
            widened += 1
        else:
            narrow.append(f"{operation} {operands}")
    return narrow, widened


def instructions(ptx: str) -> Iterator[tuple[str, str]]:
    """Operation and operands of each instruction, without predicates, labels and comments."""
    body = ptx[ptx.index("{") : ptx.index("$L__func_end0")] if "$L__func_end0" in ptx else ptx[ptx.index("{") :]
    for line in body.splitlines():
        found = re.match(r"\s*(?:@!?%p\d+\s+)?([a-z][\w.]*)\s+([^;]*);", line.partition("//")[0])
        if found:
            yield found[1], found[2]


@cache
def every_ptx() -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.kernel_ptx"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.triton_versions
@pytest.mark.parametrize("launch", ["sizes a multiple of 16", "any sizes"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_stride_of_every_kernel_is_multiplied_in_64_bits(kernel: str, launch: str) -> None:
    entry = every_ptx()[kernel]
    assert entry["strides"]
    narrow, widened = narrow_uses(entry[launch], entry["strides"])
    assert narrow == [] and widened >= 1


@pytest.mark.triton_versions
@pytest.mark.parametrize(
    "kernel", ["chain in tiles", "epilogue", "rmsnorm, resident", "softmax, two passes", "linear"]
)
def test_every_tensor_has_a_64_bit_address_computation(kernel: str) -> None:
    """The test above follows strides; this one asserts that there is one for each tensor with rows."""
    entry = every_ptx()[kernel]
    for stride in entry["strides"]:
        assert narrow_uses(entry["any sizes"], [stride])[1] >= 1, (kernel, stride)


@pytest.mark.triton_versions
@pytest.mark.parametrize("launch", ["sizes of 1", "sizes from 2**31 on"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_compiles_for_the_smallest_and_the_largest_sizes(kernel: str, launch: str) -> None:
    """A launch makes a constant of an integer that is 1, and 64 bits of one that does not fit 32: both are new code."""
    assert ".visible .entry" in every_ptx()[kernel][launch]


def test_the_search_finds_a_32_bit_product() -> None:
    body = """
    .visible .entry k(.param .u32 k_param_5, .param .u32 k_param_50) {{
        ld.param.b32  %r1, [k_param_5];
        ld.param.b32  %r9, [k_param_50];
        mov.u32 %r2, %ctaid.x;
        mul.lo.s32 %r8, %r9, %r2;
        mov.b32 %r3, %r1;
        {}
        ret;
    }}
    """
    assert narrow_uses(body.format("mul.lo.s32 %r4, %r2, %r3;"), [5]) == (["mul.lo.s32 %r4, %r2, %r3"], 0)
    assert narrow_uses(body.format("@%p1 shl.b32 %r4, %r1, 3;"), [5]) == (["shl.b32 %r4, %r1, 3"], 0)
    assert narrow_uses(body.format("mul.wide.s32 %rd4, %r2, %r3;"), [5]) == ([], 1)
    assert narrow_uses(body.format("cvt.s64.s32 %rd4, %r3;"), [5]) == ([], 1)


# Rows 2**30 elements apart, in 4 GiB of address space of which a few pages are ever touched. A 32-bit offset would
# end the process: hence one of its own.
_FAR_ROWS = """
import mmap
import torch
from lessons_lib.kernels.chain import chain_reference, fused_chain
from lessons_lib.kernels.epilogue import epilogue_reference, fused_epilogue

PITCH, WIDTH, PARTS = 2**30, 100, 8
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
space = torch.frombuffer(mmap.mmap(-1, 2 * (2 * PITCH + PARTS * WIDTH), flags=flags), dtype=torch.float16)

def part(index):
    return space.as_strided((3, WIDTH), (PITCH, 1), index * WIDTH)

torch.manual_seed(0)
x, residual, guard, y, other = map(part, range(5))
for tensor in (x, residual, guard):
    tensor.copy_(torch.randn(3, WIDTH))
kept = guard.clone()
bias, scale = torch.randn(2, WIDTH).half()
fused_chain(x, bias, scale, residual, out=y, tile=(2, 64))
fused_epilogue(x, bias, "silu", out=other)
torch.testing.assert_close(y, chain_reference(x, bias, scale, residual), rtol=4e-3, atol=8e-3)
torch.testing.assert_close(other, epilogue_reference(x, bias, "silu"), rtol=4e-3, atol=4e-3)
assert torch.equal(guard, kept)
print("far", (2 * x.stride(0)) >= 2**31)
"""


@pytest.mark.triton_versions
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space without memory: Linux only")
def test_rows_beyond_2_to_the_31_elements_are_computed() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _FAR_ROWS], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    if "Cannot allocate memory" in done.stderr:
        pytest.skip("this system reserves no 4 GiB of address space")
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("far True", "", 0)
