"""The row kernels: right whether a row is resident or read twice, in every shape, stride and dtype."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st

from lessons_lib.kernels.launch import LARGEST_RESIDENT_ROW, row_launch
from lessons_lib.kernels.row import (
    fused_residual_rmsnorm,
    fused_softmax,
    rmsnorm_kernel,
    rmsnorm_reference,
    rmsnorm_source,
    softmax_kernel,
    softmax_reference,
    softmax_source,
)
from tests.kernels.elementwise_cases import CASES, DTYPES, Case, rounding, smallest, untouched

NAN, INF = float("nan"), float("inf")
# Columns at a time: None is the launch's own, the whole row; the others take up to 70 / 16 steps, twice.
BLOCKS = st.sampled_from([None, 16, 64])

# fp32 in between: a handful of roundings, and those of a sum over the row.
ARITHMETIC = 2**-20


def rmsnorm_operands(case: Case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return case.matrix(0), case.matrix(1), case.vector(3)


def check_rmsnorm(case: Case, block: int | None, eps: float = 1e-6) -> None:
    x, residual, weight = operands = rmsnorm_operands(case)
    before = [operand.clone() for operand in operands]
    (out, buffer), (sum_out, sum_buffer) = case.output(), case.output()
    y, summed = fused_residual_rmsnorm(*operands, eps, block=block, out=out, sum_out=sum_out)
    assert y is out and summed is sum_out

    store, least = rounding(case.dtype), smallest(case.dtype)
    exact = x.double() + residual.double()
    assert bool(((summed.double() - exact).abs() <= 1.01 * store * exact.abs() + least).all())
    # The norm is that of the rounded sum: so it is compared with the float64 norm of the sum that came out.
    wide = summed.double()
    expected, _ = rmsnorm_reference(wide, torch.zeros_like(wide), weight.double(), eps)
    assert bool(((y.double() - expected).abs() <= (store + ARITHMETIC) * expected.abs() + least).all())

    alone = fused_residual_rmsnorm(*operands, eps, return_sum=False, block=block)
    assert torch.equal(alone, y)
    assert all(torch.equal(operand, copy) for operand, copy in zip(operands, before, strict=True))
    assert untouched(buffer, out) and untouched(sum_buffer, sum_out)


def check_softmax(case: Case, block: int | None) -> None:
    x = case.matrix(0)
    before = x.clone()
    out, buffer = case.output()
    y = fused_softmax(x, block=block, out=out)
    assert y is out
    expected = torch.softmax(x.double(), dim=-1)
    # An argument of the exponential, up to 60 here, is rounded too; below 2**-126 fp32 loses its precision.
    allowed = (rounding(case.dtype) + 2**-17) * expected + smallest(case.dtype) + 2**-126
    assert bool(((y.double() - expected).abs() <= allowed).all())
    assert torch.equal(x, before)
    assert untouched(buffer, out)


# -- RMSNorm -------------------------------------------------------------------------------------------------------


@pytest.mark.triton_versions
@settings(max_examples=25)
@given(case=CASES, block=BLOCKS)
def test_rmsnorm_agrees_with_float64_and_writes_its_outputs_only(case: Case, block: int | None) -> None:
    check_rmsnorm(case, block)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rmsnorm_of_a_row_too_long_to_be_resident_agrees_with_float64(dtype: torch.dtype) -> None:
    columns = LARGEST_RESIDENT_ROW + 9
    assert not row_launch(2, columns).resident
    check_rmsnorm(Case(2, columns, (0, 3, 0), dtype, None, seed=3), None)
    check_rmsnorm(Case(2, LARGEST_RESIDENT_ROW, (0, 0, 8), dtype, None, seed=4), None)


@pytest.mark.triton_versions
@pytest.mark.parametrize("block", [None, 4])
def test_squares_that_no_float16_holds_are_summed(block: int | None) -> None:
    x = torch.full((1, 10), 3000.0).half()
    y, summed = fused_residual_rmsnorm(x, x, torch.ones(10).half(), block=block)
    assert summed.tolist() == [[6000.0] * 10] and y.tolist() == [[1.0] * 10]


@pytest.mark.parametrize("return_sum", [True, False])
@pytest.mark.parametrize("block", [None, 1])
def test_the_sum_is_rounded_before_it_is_normalized(block: int | None, return_sum: bool) -> None:
    """2048 + 1 is no float16; an fp32 sum of 2049 and 1 would give another norm than the 2048 and 1 that is stored."""
    x, residual = torch.tensor([[2048.0, 0.0]]).half(), torch.tensor([[1.0, 1.0]]).half()
    weight = torch.tensor([1.0, 2048.0]).half()
    found = fused_residual_rmsnorm(x, residual, weight, 0.0, return_sum=return_sum, block=block)  # type: ignore[call-overload]
    y = found[0] if return_sum else found
    rounded, unrounded = (2048.0 / (value**2 + 1) ** 0.5 * 2**0.5 for value in (2048.0, 2049.0))
    assert torch.tensor(rounded).half() != torch.tensor(unrounded).half()
    assert y[0, 1] == torch.tensor(rounded).half()


@pytest.mark.triton_versions
@pytest.mark.parametrize("block", [None, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rmsnorm_treats_nan_infinities_and_overflow_as_pytorch_does(
    dtype: torch.dtype, block: int | None, capfd: pytest.CaptureFixture[str]
) -> None:
    largest = torch.finfo(dtype).max
    x = torch.tensor([[1, NAN, 2, 3, 4], [1, INF, 2, 3, 4], [-INF, INF, 0, 0, 0], [0] * 5, [largest, 1, 1, 1, 1]])
    x = x.to(dtype)
    residual = torch.zeros_like(x)
    residual[4, 0] = largest  # the sum overflows to infinity, or in fp32 and bf16 its square does
    weight = torch.ones(5, dtype=dtype)
    for eps in (1e-6, 0.0):
        y, summed = fused_residual_rmsnorm(x, residual, weight, eps, block=block)
        expected, expected_sum = rmsnorm_reference(x, residual, weight, eps)
        assert torch.equal(summed.isnan(), expected_sum.isnan())
        assert torch.equal(y.isnan(), expected.isnan())
        torch.testing.assert_close(y, expected, rtol=2 * torch.finfo(dtype).eps, atol=1e-6, equal_nan=True)
    assert bool(y[3].isnan().all())  # 0 / 0, for eps is 0
    assert capfd.readouterr() == ("", "")


def test_rmsnorm_without_out_returns_new_tensors() -> None:
    x, weight = torch.ones(2, 3), torch.ones(3)
    y, summed = fused_residual_rmsnorm(x, x, weight, 0.0)
    assert torch.equal(y, x) and torch.equal(summed, 2 * x)
    assert len({tensor.data_ptr() for tensor in (x, y, summed)}) == 3


def test_the_reference_is_pytorchs_own_rms_norm() -> None:
    x, residual, weight = rmsnorm_operands(Case(4, 33, (0, 0, 0), torch.float32, None, seed=5))
    y, summed = rmsnorm_reference(x, residual, weight, 1e-5)
    torch.testing.assert_close(y, torch.nn.functional.rms_norm(x + residual, (33,), weight, 1e-5))
    assert torch.equal(summed, x + residual)


ROWS = torch.ones(2, 8)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("x", {"x": torch.ones(8)}),
        ("x", {"x": torch.ones(2, 8, dtype=torch.int32)}),
        ("x", {"x": torch.ones(0, 8)}),
        ("x", {"x": torch.ones(8, 2).t()}),
        ("x", {"x": [[1.0] * 8] * 2}),
        ("residual", {"residual": torch.ones(2, 7)}),
        ("residual", {"residual": torch.ones(2, 8).half()}),
        ("residual", {"residual": torch.ones(2, 8, requires_grad=True)}),
        ("weight", {"weight": torch.ones(7)}),
        ("weight", {"weight": torch.ones(1, 8)}),
        ("eps", {"eps": -1e-6}),
        ("eps", {"eps": NAN}),
        ("eps", {"eps": "1e-6"}),
        ("return_sum", {"return_sum": 1}),
        ("sum_out", {"return_sum": False, "sum_out": torch.empty(2, 8)}),
        ("block", {"block": 12}),
        ("out", {"out": torch.empty(2, 9)}),
        ("out", {"out": ROWS}),
        ("sum_out", {"sum_out": ROWS}),
    ],
)
def test_rmsnorm_refuses_wrong_arguments_by_name_and_in_both_languages(name: str, arguments: dict[str, Any]) -> None:
    good: dict[str, Any] = {"x": ROWS, "residual": torch.ones(2, 8), "weight": torch.ones(8)}
    with pytest.raises(ValueError) as refusal:
        fused_residual_rmsnorm(**{**good, **arguments})
    chinese, english = str(refusal.value).splitlines()
    assert chinese.startswith(f"参数 {name} ") and english.startswith(f"{name} ")


def test_one_tensor_cannot_take_both_outputs() -> None:
    both = torch.empty(2, 8)
    with pytest.raises(ValueError, match="参数 sum_out "):
        fused_residual_rmsnorm(ROWS, torch.ones(2, 8), torch.ones(8), out=both, sum_out=both)


# -- softmax -------------------------------------------------------------------------------------------------------


@pytest.mark.triton_versions
@settings(max_examples=25)
@given(case=CASES, block=BLOCKS)
def test_softmax_agrees_with_float64_and_writes_its_output_only(case: Case, block: int | None) -> None:
    check_softmax(case, block)


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_of_a_row_too_long_to_be_resident_agrees_with_float64(dtype: torch.dtype) -> None:
    check_softmax(Case(2, LARGEST_RESIDENT_ROW + 9, (3, 0, 0), dtype, None, seed=6), None)
    check_softmax(Case(2, LARGEST_RESIDENT_ROW, (0, 0, 8), dtype, None, seed=7), None)


@pytest.mark.triton_versions
@pytest.mark.parametrize("block", [None, 1, 2, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_treats_nan_infinities_and_extremes_as_pytorch_does(
    dtype: torch.dtype, block: int | None, capfd: pytest.CaptureFixture[str]
) -> None:
    largest = torch.finfo(dtype).max
    rows = [
        [NAN, 1, 2, 3, 4, 5],
        [0, 1, 2, 3, 4, NAN],
        [INF, 1, 2, 3, 4, 5],
        [0, INF, -INF, INF, 4, 5],
        [-INF] * 6,
        [-INF, -INF, -INF, -INF, 1, 2],  # a causal mask: whole blocks of -inf before the first number
        [1, 2, -INF, -INF, -INF, -INF],
        [largest, -largest, 0, 0, largest, 1],
        [-largest] * 6,
    ]
    x = torch.tensor(rows).to(dtype)
    y, expected = fused_softmax(x, block=block), torch.softmax(x.double(), dim=-1)
    torch.testing.assert_close(y.double(), expected, rtol=torch.finfo(dtype).eps, atol=1e-7, equal_nan=True)
    assert bool(y[:5].isnan().all()) and not bool(y[5:].isnan().any())
    assert capfd.readouterr() == ("", "")


def test_the_softmax_reference_is_pytorchs_own() -> None:
    x = Case(4, 33, (0, 0, 0), torch.float32, None, seed=8).matrix(0)
    torch.testing.assert_close(softmax_reference(x), torch.softmax(x, dim=-1))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("x", {"x": torch.ones(8)}),
        ("x", {"x": torch.ones(2, 8, dtype=torch.float64)}),
        ("x", {"x": torch.ones(2, 8, requires_grad=True)}),
        ("block", {"block": 0}),
        ("out", {"out": torch.empty(2, 8).half()}),
        ("out", {"out": ROWS}),
    ],
)
def test_softmax_refuses_wrong_arguments_by_name_and_in_both_languages(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as refusal:
        fused_softmax(**{"x": ROWS, **arguments})
    chinese, english = str(refusal.value).splitlines()
    assert chinese.startswith(f"参数 {name} ") and english.startswith(f"{name} ")


# -- what the compiler is given ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "steps", "warps"), [(100, 1, 1), (4096, 1, 8), (16384, 1, 16), (16385, 5, 8)])
@pytest.mark.parametrize(("source", "kernel"), [(rmsnorm_source, rmsnorm_kernel), (softmax_source, softmax_kernel)])
def test_the_compiler_is_given_every_parameter_once_and_as_the_wrapper_launches(
    source: Any, kernel: Any, columns: int, steps: int, warps: int
) -> None:
    given_ = source("bf16", columns)
    assert sorted([*given_.signature, *given_.constexprs]) == sorted(inspect.signature(kernel.fn).parameters)
    assert {given_.signature[name] for name in given_.pointers} == {"*bf16"}
    assert {given_.signature[name] for name in given_.sizes} == {"i32"}
    launch = row_launch(7, columns)
    assert (given_.constexprs["STEPS"], given_.num_warps) == (steps, warps)
    assert (given_.constexprs["BLOCK"], launch.steps) == (launch.block, steps)
