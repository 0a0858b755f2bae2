"""The chain's kernel: right in every grouping, shape, stride and dtype, and nothing written beside the output."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st

from lessons_lib.kernels import chain
from lessons_lib.kernels.chain import chain_kernel, chain_reference, chain_source, fused_chain
from lessons_lib.kernels.launch import CHAIN_OPERATORS
from tests.kernels.elementwise_cases import (
    CASES,
    DTYPES,
    Case,
    rounding,
    smallest,
    untouched,
)

GROUPS = (1, 2, 4)


def tolerance(operands: tuple[torch.Tensor, ...], groups: int, interpreted: bool = True) -> torch.Tensor:
    """How far from float64 each element may be: one rounding to the dtype for each store, through what follows it."""
    x, bias, scale, residual = (operand.double() for operand in operands)
    dtype = operands[0].dtype
    store, least = rounding(dtype, interpreted), smallest(dtype)
    activated = torch.nn.functional.gelu(x + bias, approximate="tanh")
    errors = store * chain_reference(x, bias, scale, residual).abs() + least
    # fp32 in between; the sigmoid's argument, up to 88 before the result is 0, is rounded a few times.
    errors += 2**-15 * (scale * activated).abs() + 2**-22 * residual.abs()
    if groups >= 2:
        errors += scale.abs() * (store * activated.abs() + least)
    if groups == 4:  # gelu's slope is at most 1.13
        errors += scale.abs() * 1.13 * (store * (x + bias).abs() + least)
        errors += store * (scale * activated).abs() + least
    # What is off on the way in is also off in the magnitudes above.
    return 1.01 * errors + 2**-40


def operands_of(case: Case, device: str = "cpu") -> tuple[torch.Tensor, ...]:
    return case.matrix(0, device), case.vector(3, device), case.vector(4, device), case.matrix(1, device)


def check(case: Case, groups: int, device: str = "cpu") -> None:
    operands = operands_of(case, device)
    before = [operand.clone() for operand in operands]
    out, buffer = case.output(device)
    y = fused_chain(*operands, groups=groups, tile=case.tile, out=out)
    assert y is out
    expected = chain_reference(*(operand.double() for operand in operands))
    error = (y.double() - expected).abs()
    assert bool((error <= tolerance(operands, groups, device == "cpu")).all()), (case, groups, error.max())
    assert all(torch.equal(operand, copy) for operand, copy in zip(operands, before, strict=True))
    assert untouched(buffer, out)


@pytest.mark.triton_versions
@settings(max_examples=60)
@given(case=CASES, groups=st.sampled_from(GROUPS))
def test_the_chain_agrees_with_float64_and_writes_its_output_only(case: Case, groups: int) -> None:
    check(case, groups)


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_several_tiles_agree_with_float64(dtype: torch.dtype, groups: int) -> None:
    check(Case(3, 2500, (0, 12, 4), dtype, None, seed=1), groups)
    check(Case(40, 30, (0, 0, 0), dtype, None, seed=2), groups)


@pytest.mark.triton_versions
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_infinities_and_extremes_come_out_as_in_pytorch(
    dtype: torch.dtype, groups: int, capfd: pytest.CaptureFixture[str]
) -> None:
    largest = torch.finfo(dtype).max
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), largest, -largest, 0.0, 1.0, -20.0])
    size = len(special)
    x = special.repeat(size, 1).to(dtype)
    residual = special.repeat(size, 1).T.to(dtype).contiguous()
    bias, scale = torch.zeros(size, dtype=dtype), torch.full((size,), 0.5, dtype=dtype)
    y = fused_chain(x, bias, scale, residual, groups=groups)
    expected = chain_reference(x.double(), bias.double(), scale.double(), residual.double())
    assert torch.equal(y.isnan(), expected.isnan())
    limited = expected.clamp(-largest, largest)
    known = ~expected.isnan() & (expected.isinf() | (expected.abs() < largest))
    assert torch.allclose(y.double()[known], expected[known], rtol=2 * torch.finfo(dtype).eps)
    # Beyond the dtype: the largest number or an infinity, with the right sign.
    beyond = ~expected.isnan() & ~known
    assert bool((y.double()[beyond].sign() == limited[beyond].sign()).all())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("groups", "expected"), [(1, 1.0), (2, 0.0), (4, 0.0)])
def test_a_boundary_rounds_to_the_dtype_and_fusing_it_away_does_not(groups: int, expected: float) -> None:
    """2048 + 1 is no float16: where the sum is stored it is 2048 again."""
    x, ones = torch.full((1, 8), 2048.0).half(), torch.ones(8).half()
    assert fused_chain(x, ones, ones, -x, groups=groups).tolist() == [[expected] * 8]


@pytest.mark.parametrize("groups", GROUPS)
def test_each_kernel_reads_what_the_one_before_wrote_and_writes_elsewhere(
    groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []

    class Watched:
        def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
            def launch(x: torch.Tensor, *rest: Any, **constants: Any) -> None:
                seen.append((x.data_ptr(), rest[3].data_ptr()))
                chain_kernel[grid](x, *rest, **constants)

            return launch

    monkeypatch.setattr(chain, "chain_kernel", Watched())
    x, vector, out = torch.ones(2, 3), torch.ones(3), torch.empty(2, 3)
    fused_chain(x, vector, vector, x, groups=groups, out=out)
    assert len(seen) == groups
    assert seen[0][0] == x.data_ptr() and seen[-1][1] == out.data_ptr()
    assert all(written == read for (_, written), (read, _) in pairwise(seen))
    assert all(read != written for read, written in seen)


def test_without_out_a_new_tensor_comes_back() -> None:
    x, vector = torch.ones(2, 3), torch.zeros(3)
    y = fused_chain(x, vector, vector, x)
    assert torch.equal(y, x) and y.data_ptr() != x.data_ptr() and y.dtype == x.dtype


@pytest.mark.parametrize(("first", "last"), [(0, 3), (0, 1), (2, 3), (1, 1), (3, 3)])
def test_the_compiler_is_given_every_parameter_once_and_in_order(first: int, last: int) -> None:
    source = chain_source("bf16", tile=(2, 256), first=first, last=last)
    names = list(inspect.signature(chain_kernel.fn).parameters)
    assert [*source.signature, *source.constexprs] == names
    assert {source.signature[name] for name in source.pointers} == {"*bf16"}
    assert {source.signature[name] for name in source.sizes} == {"i32"}
    assert source.constexprs == {"FIRST": first, "LAST": last, "BLOCK_M": 2, "BLOCK_N": 256}


@pytest.mark.parametrize(("first", "last", "name"), [(-1, 3, "first"), (0, 4, "last"), (2, 1, "last")])
def test_a_run_outside_the_chain_is_refused(first: int, last: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"参数 {name} "):
        chain_source("fp16", first=first, last=last)
    assert len(CHAIN_OPERATORS) == 4


@pytest.mark.parametrize("tile", [(1, 2**21), (2**11, 2**10)])
def test_a_tile_larger_than_triton_allows_is_refused_before_any_launch(tile: tuple[int, int]) -> None:
    x, vector = torch.ones(2, 3), torch.zeros(3)
    with pytest.raises(ValueError, match=r"参数 tile"):
        fused_chain(x, vector, vector, x, tile=tile)
