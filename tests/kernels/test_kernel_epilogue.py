"""The epilogue's kernel: act(x + bias) for every activation, and the activations themselves at their extremes."""

from __future__ import annotations

import inspect

import pytest
import torch
from hypothesis import given, settings, strategies as st

from lessons_lib.kernels.activations import torch_activation
from lessons_lib.kernels.epilogue import (
    epilogue_kernel,
    epilogue_reference,
    epilogue_source,
    fused_epilogue,
)
from lessons_lib.kernels.launch import ACTIVATIONS, ActivationName
from tests.kernels.elementwise_cases import (
    CASES,
    DTYPES,
    Case,
    rounding,
    smallest,
    untouched,
)

# The sigmoid's argument, up to 88 before the result is 0, is rounded to fp32 a few times.
FP32_ERROR = 2**-15
# PyTorch's GELU subtracts nearly equal numbers in its left tail, in float64 too.
TAIL = 2**-40


def check(case: Case, activation: ActivationName, device: str = "cpu") -> None:
    x, bias = case.matrix(0, device), case.vector(3, device)
    before = x.clone(), bias.clone()
    out, buffer = case.output(device)
    assert fused_epilogue(x, bias, activation, tile=case.tile, out=out) is out
    expected = epilogue_reference(x.double(), bias.double(), activation)
    error = (out.double() - expected).abs()
    relative = 1.01 * rounding(case.dtype, device == "cpu") + FP32_ERROR
    assert bool((error <= relative * expected.abs() + 2 * smallest(case.dtype) + TAIL).all()), (case, activation)
    assert torch.equal(x, before[0]) and torch.equal(bias, before[1])
    assert untouched(buffer, out)


@pytest.mark.triton_versions
@settings(max_examples=60)
@given(case=CASES, activation=st.sampled_from(ACTIVATIONS))
def test_the_epilogue_agrees_with_float64_and_writes_its_output_only(case: Case, activation: ActivationName) -> None:
    check(case, activation)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_several_tiles_agree_with_float64(dtype: torch.dtype, activation: ActivationName) -> None:
    check(Case(3, 2500, (0, 0, 4), dtype, None, seed=1), activation)


@pytest.mark.triton_versions
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_activations_hold_over_the_whole_range_of_the_dtype(
    dtype: torch.dtype, activation: ActivationName, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every binary order of magnitude, NaN and infinities included, and not a word on stderr."""
    info = torch.finfo(dtype)
    # Not into the subnormal numbers: NumPy and a GPU differ there by flushing them.
    magnitudes = 2.0 ** torch.arange(-14, int(torch.log2(torch.tensor(info.max))) + 1, dtype=torch.float64)
    values = torch.cat([magnitudes, -magnitudes, torch.tensor([0.0, info.max, -info.max], dtype=torch.float64)])
    special = torch.tensor([float("nan"), float("inf"), -float("inf")], dtype=torch.float64)
    x = torch.cat([values, special]).to(dtype)[None, :]
    y = fused_epilogue(x, torch.zeros_like(x[0]), activation).double()
    expected = torch_activation(x.double(), activation)
    # gelu(-inf) and silu(-inf) are -inf * 0, NaN, in PyTorch as here.
    assert torch.equal(y.isnan(), expected.isnan())
    known = ~expected.isnan()
    close = torch.isclose(y[known], expected[known], rtol=2 * info.eps + FP32_ERROR, atol=2 * smallest(dtype) + TAIL)
    assert bool(close.all()), (x[:, known[0]][~close[None]], y[known][~close], expected[known][~close])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_compiler_is_given_every_parameter_once_and_in_order(activation: ActivationName) -> None:
    source = epilogue_source("fp16", activation=activation)
    assert [*source.signature, *source.constexprs] == list(inspect.signature(epilogue_kernel.fn).parameters)
    assert source.constexprs == {"ACTIVATION": activation, "BLOCK_M": 1, "BLOCK_N": 1024}
    assert source.sizes == ("rows", "columns", "x_stride", "y_stride")


def test_an_unknown_activation_is_refused_by_the_source_too() -> None:
    with pytest.raises(ValueError, match="参数 activation "):
        epilogue_source("fp16", activation="tanh")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="参数 activation "):
        torch_activation(torch.ones(1), "tanh")  # type: ignore[arg-type]
