"""Every kernel on a real GPU, in every dtype it has, against float64.

The other tests of this folder need the interpreter, and a process has one mode: so on a machine with a GPU the suite
runs this file in a process of its own, or by hand:

    TRITON_INTERPRET=0 python -m pytest tests/kernels/test_on_gpu.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lessons_lib.base.gpus import GPUS
from lessons_lib.kernels.chain import chain_reference, fused_chain
from lessons_lib.kernels.device import described_gpu, device_limits, known_gpu
from lessons_lib.kernels.epilogue import epilogue_reference, fused_epilogue
from lessons_lib.kernels.launch import ACTIVATIONS, ActivationName, LinearConfig
from lessons_lib.kernels.linear import fused_linear, library_linear, linear_reference
from lessons_lib.kernels.mode import TritonSetup, prepare_triton
from lessons_lib.kernels.row import fused_residual_rmsnorm, fused_softmax, rmsnorm_reference
from tests.kernels.elementwise_cases import Case
from tests.kernels.test_chain import GROUPS, check as check_chain
from tests.kernels.test_kernel_epilogue import check as check_epilogue

ROOT = Path(__file__).parents[2]
THIS_FILE = Path(__file__).relative_to(ROOT)

SHAPES = [(1, 1), (3, 100), (7, 4096), (64, 1000), (257, 2500)]
ROWS = [(5, 1), (4, 100), (33, 4096), (3, 16384), (3, 20000)]  # the last is read in two passes
DTYPES = ["float16", "bfloat16", "float32"]
WIDE_ERROR = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5}  # relative to the largest of a row


@pytest.fixture
def gpu(triton_setup: TritonSetup) -> TritonSetup:
    if not triton_setup.on_gpu:
        pytest.skip(f"needs a GPU and TRITON_INTERPRET=0 ({triton_setup.reason.en})")
    return triton_setup


@pytest.fixture(params=DTYPES)
def dtype(request: pytest.FixtureRequest, gpu: TritonSetup) -> torch.dtype:
    if request.param == "bfloat16" and not gpu.bf16:
        pytest.skip(f"compute capability {gpu.capability} has no bfloat16")
    found: torch.dtype = getattr(torch, request.param)
    return found


def random(seed: int, *shape: int, dtype: torch.dtype, padding: int = 0) -> torch.Tensor:
    """Standard normal, made on the CPU so that it is the same everywhere; rows ``padding`` further apart."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn((*shape[:-1], shape[-1] + padding), generator=generator)
    return values.to(dtype).to("cuda")[..., : shape[-1]]


def assert_rows_close(result: torch.Tensor, expected: torch.Tensor) -> None:
    """Each element within its dtype's share of the largest of its row."""
    share = WIDE_ERROR[str(result.dtype).removeprefix("torch.")]
    error = (result.double() - expected).abs()
    allowed = share * expected.abs().amax(dim=-1, keepdim=True) + 1e-7
    assert bool((error <= allowed).all()), float((error / allowed).max())


# -- one process, one mode -------------------------------------------------------------------------------------


def test_the_gpu_tests_pass_in_a_process_of_their_own() -> None:
    if prepare_triton().on_gpu:
        pytest.skip("this is that process")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU here")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(THIS_FILE)]
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


# -- elementwise -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_chain_agrees_with_float64(shape: tuple[int, int], groups: int, dtype: torch.dtype) -> None:
    for paddings in ((0, 0, 0), (3, 16, 1)):
        check_chain(Case(*shape, paddings, dtype, None, seed=groups), groups, "cuda")
    check_chain(Case(*shape, (0, 0, 0), dtype, (8, 64), seed=9), groups, "cuda")


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_epilogue_agrees_with_float64(
    shape: tuple[int, int], activation: ActivationName, dtype: torch.dtype
) -> None:
    for paddings in ((0, 0, 0), (3, 16, 1)):
        check_epilogue(Case(*shape, paddings, dtype, None, seed=1), activation, "cuda")


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_treat_nan_and_infinities_as_pytorch_does(activation: ActivationName, dtype: torch.dtype) -> None:
    x = torch.tensor([[float("nan"), float("inf"), -float("inf"), torch.finfo(dtype).max, -1e4, 0.0]])
    x, bias = x.to(dtype).to("cuda"), torch.zeros(6, dtype=dtype, device="cuda")
    y, expected = fused_epilogue(x, bias, activation), epilogue_reference(x.double(), bias.double(), activation)
    assert torch.equal(y.isnan(), expected.isnan())
    torch.testing.assert_close(y.double(), expected, rtol=1e-2, atol=1e-6, equal_nan=True)


# -- rows ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("return_sum", [True, False])
@pytest.mark.parametrize("shape", ROWS)
def test_rmsnorm_agrees_with_float64(shape: tuple[int, int], return_sum: bool, dtype: torch.dtype) -> None:
    x, residual = (random(seed, *shape, dtype=dtype, padding=8) for seed in (1, 2))
    weight = random(3, shape[1], dtype=dtype)
    summed = (x.double() + residual.double()).to(dtype)
    expected, _ = rmsnorm_reference(summed.double(), torch.zeros_like(summed).double(), weight.double())
    found = fused_residual_rmsnorm(x, residual, weight, return_sum=return_sum)  # type: ignore[call-overload]
    if return_sum:
        found, found_sum = found
        torch.testing.assert_close(found_sum, summed, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)
    assert_rows_close(found, expected)


@pytest.mark.parametrize("shape", ROWS)
def test_softmax_agrees_with_float64(shape: tuple[int, int], dtype: torch.dtype) -> None:
    x = random(1, *shape, dtype=dtype, padding=8) * 4
    assert_rows_close(fused_softmax(x), x.double().softmax(dim=-1))


def test_softmax_treats_infinities_and_nan_as_pytorch_does(dtype: torch.dtype) -> None:
    inf, nan = float("inf"), float("nan")
    rows = [[0.0, -inf, 1.0], [-inf, -inf, -inf], [inf, 0.0, 1.0], [nan, 0.0, 1.0]]
    x = torch.tensor(rows, dtype=dtype, device="cuda")
    for block in (None, 2):
        found = fused_softmax(x, block=block)
        torch.testing.assert_close(found.double(), x.double().softmax(dim=-1), rtol=1e-2, atol=1e-6, equal_nan=True)


# -- GEMM ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (64, 64, 64), (130, 70, 50), (256, 512, 1024)])
def test_the_fused_linear_layer_agrees_with_float64(
    shape: tuple[int, int, int], activation: ActivationName, dtype: torch.dtype
) -> None:
    m, n, k = shape
    x, w = random(1, m, k, dtype=dtype, padding=8), random(2, k, n, dtype=dtype)
    bias = random(3, n, dtype=dtype)
    small = LinearConfig(32, 32, 32, 4, 2)
    for weight in (w, w.t().contiguous().t()):
        expected = linear_reference(x.double(), weight.double(), bias.double(), activation)
        assert_rows_close(fused_linear(x, weight, bias, activation, config=small), expected)
        assert_rows_close(library_linear(x, weight, bias, activation), expected)


def test_the_configuration_chosen_by_measuring_is_right(dtype: torch.dtype) -> None:
    x, w, bias = (
        random(1, 300, 256, dtype=dtype),
        random(2, 256, 500, dtype=dtype),
        random(3, 500, dtype=dtype),
    )
    expected = linear_reference(x.double(), w.double(), bias.double())
    for _ in range(2):  # the second call takes the remembered choice
        assert_rows_close(fused_linear(x, w, bias), expected)


# -- the device ------------------------------------------------------------------------------------------------


def test_what_the_device_reports_is_what_the_course_says_of_it(gpu: TritonSetup) -> None:
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    known = known_gpu(properties.name)
    limits = device_limits()
    assert limits is not None
    if known is None:
        pytest.skip(f"the course has no entry for {properties.name}")
    assert limits is known and known.name in GPUS
    reported = described_gpu(properties)
    for figure in ("sm_count", "shared_bytes_per_block", "shared_bytes_per_sm", "threads_per_sm", "warp_size"):
        assert getattr(reported, figure) == getattr(known, figure), figure
    assert reported.target == known.target


def test_tensors_on_the_cpu_are_refused_with_the_way_to_move_them(gpu: TritonSetup) -> None:
    x, vector = torch.ones(2, 3), torch.ones(3)
    with pytest.raises(ValueError, match=r"to\('cuda'\)"):
        fused_chain(x, vector, vector, x)


def test_bfloat16_is_refused_where_the_hardware_lacks_it(gpu: TritonSetup) -> None:
    if gpu.bf16:
        pytest.skip("this GPU has bfloat16")
    x = torch.ones(2, 3, dtype=torch.bfloat16, device="cuda")
    with pytest.raises(ValueError, match="bfloat16"):
        fused_epilogue(x, x[0])


def test_a_second_gpu_is_launched_on_when_tensors_are_there(gpu: TritonSetup) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    x, vector = torch.ones(2, 300, device="cuda:1"), torch.ones(300, device="cuda:1")
    expected = chain_reference(x, vector, vector, x)
    torch.testing.assert_close(fused_chain(x, vector, vector, x), expected)
    assert torch.cuda.current_device() == 0


def test_rows_beyond_2_to_the_31_elements_are_computed(gpu: TritonSetup) -> None:
    pitch, width, parts = 2**30, 100, 4
    size = 2 * pitch + parts * width
    if torch.cuda.mem_get_info()[0] < 3 * size:
        pytest.skip("needs 6 GiB of free device memory")
    space = torch.empty(size, dtype=torch.float16, device="cuda")
    x, residual, y, normed = (space.as_strided((3, width), (pitch, 1), index * width) for index in range(parts))
    x.copy_(random(1, 3, width, dtype=torch.float16))
    residual.copy_(random(2, 3, width, dtype=torch.float16))
    bias, scale = random(3, width, dtype=torch.float16), random(4, width, dtype=torch.float16)
    fused_chain(x, bias, scale, residual, out=y)
    assert_rows_close(y, chain_reference(x.double(), bias.double(), scale.double(), residual.double()))
    fused_softmax(x, out=normed)
    assert_rows_close(normed, x.double().softmax(dim=-1))
