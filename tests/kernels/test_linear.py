"""act(x @ w + bias): one kernel against float64, its order of tiles, and the library's plan beside it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st

from lessons_lib.base.gpus import GPUS
from lessons_lib.kernels import linear
from lessons_lib.kernels.launch import ACTIVATIONS, ActivationName, LinearConfig, LinearLaunch, linear_configs
from lessons_lib.kernels.linear import (
    fused_linear,
    library_linear,
    linear_advice,
    linear_kernel,
    linear_reference,
    linear_source,
)
from lessons_lib.kernels.tuning import forget_choices
from tests.kernels.elementwise_cases import GUARD, rounding, smallest, untouched

SMALL = LinearConfig(16, 16, 16, 1, 1)
WIDE = LinearConfig(16, 32, 16, 1, 2)
CONFIGS = (None, SMALL, WIDE, LinearConfig(32, 16, 32, 2, 3))
# How w lies in memory: as it is, as the weight.t() of an nn.Linear, as columns cut out of something larger.
LAYOUTS = ("rows", "transposed", "cut")


@dataclass(frozen=True)
class Gemm:
    """Sizes, layout, dtype, bias, activation, configuration and seed of one call."""

    m: int
    n: int
    k: int
    layout: str = "rows"
    dtype: torch.dtype = torch.float16
    bias: bool = True
    activation: ActivationName = "gelu_tanh"
    config: LinearConfig | None = SMALL
    seed: int = 0
    padding: int = 0

    def operands(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        generator = torch.Generator().manual_seed(self.seed)

        def random(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator).to(self.dtype)

        x = random(self.m, self.k + self.padding)[:, : self.k]
        if self.layout == "rows":
            w = random(self.k, self.n)
        elif self.layout == "transposed":
            w = random(self.n, self.k).t()
        else:
            w = random(self.k, 2 * self.n + 3)[:, 1::2][:, : self.n]
        return x, w, random(self.n) if self.bias else None


GEMMS = st.builds(
    Gemm,
    m=st.integers(1, 40),
    n=st.integers(1, 40),
    k=st.integers(1, 50),
    layout=st.sampled_from(LAYOUTS),
    dtype=st.sampled_from([torch.float16, torch.float32]),
    bias=st.booleans(),
    activation=st.sampled_from(ACTIVATIONS),
    config=st.sampled_from(CONFIGS),
    seed=st.integers(0, 2**20),
    padding=st.integers(0, 5),
)


def allowed_error(gemm: Gemm, expected: torch.Tensor) -> torch.Tensor:
    """One rounding where the result is stored; in fp32 one for each of the k sums, and those of the activation."""
    x, w, bias = (None if operand is None else operand.double().abs() for operand in gemm.operands())
    assert x is not None and w is not None
    magnitude = x @ w + (0 if bias is None else bias)
    # An activation's slope is at most 1.13.
    summed = 1.13 * (gemm.k + 2) * 2**-24 * magnitude
    return summed + (1.01 * rounding(gemm.dtype) + 2**-15) * expected.abs() + smallest(gemm.dtype)


def in_float64(gemm: Gemm) -> torch.Tensor:
    x, w, bias = gemm.operands()
    return linear_reference(x.double(), w.double(), None if bias is None else bias.double(), gemm.activation)


def check(gemm: Gemm) -> None:
    x, w, bias = operands = gemm.operands()
    before = [None if operand is None else operand.clone() for operand in operands]
    buffer = torch.full((gemm.m + 2, gemm.n + gemm.padding), GUARD, dtype=gemm.dtype)
    out = buffer[1:-1, : gemm.n]
    y = fused_linear(x, w, bias, gemm.activation, config=gemm.config, out=out)
    assert y is out
    expected = in_float64(gemm)
    error = (y.double() - expected).abs()
    assert bool((error <= allowed_error(gemm, expected)).all()), (gemm, error.max())
    for operand, copy in zip(operands, before, strict=True):
        assert operand is copy is None or torch.equal(operand, copy)  # type: ignore[arg-type]
    assert untouched(buffer, out)


# -- right -----------------------------------------------------------------------------------------------------


@pytest.mark.triton_versions
@settings(max_examples=40)
@given(gemm=GEMMS)
def test_the_kernel_agrees_with_float64_and_writes_its_output_only(gemm: Gemm) -> None:
    check(gemm)


@pytest.mark.triton_versions
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_whole_tiles_need_no_mask(layout: str, activation: ActivationName) -> None:
    check(Gemm(32, 64, 48, layout, activation=activation, config=WIDE))


def test_more_row_tiles_than_a_group_are_all_computed() -> None:
    check(Gemm(16 * 11, 16 * 3, 16, config=SMALL))
    check(Gemm(16 * 17 - 3, 40, 20, config=SMALL, seed=1))


def test_the_configurations_of_real_gpus_run_as_they_are() -> None:
    for gpu in (GPUS["T4"], GPUS["H200"], GPUS["MI300X"]):
        largest, smallest_tile = linear_configs(gpu, "fp16")[0], linear_configs(gpu, "fp16")[-1]
        check(Gemm(70, 90, 100, config=largest))
        check(Gemm(70, 90, 100, dtype=torch.float32, config=smallest_tile))


def test_a_sum_that_leaves_float16_comes_back_in_the_fp32_accumulator() -> None:
    x, w = torch.full((1, 32), 100.0).half(), torch.full((32, 1), 100.0).half()
    w[16:] *= -1
    assert fused_linear(x, w, torch.ones(1).half(), "none", config=SMALL).item() == 1.0


@pytest.mark.triton_versions
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_nan_and_infinities_stay_in_their_row_or_column(
    activation: ActivationName, capfd: pytest.CaptureFixture[str]
) -> None:
    x, w, bias = torch.ones(20, 5), torch.ones(5, 18), torch.zeros(18)
    x[3, 2], x[19, 4], w[1, 17], bias[0] = float("nan"), float("inf"), float("-inf"), float("inf")
    y, expected = fused_linear(x, w, bias, activation), linear_reference(x, w, bias, activation)
    torch.testing.assert_close(y, expected, equal_nan=True)
    assert bool(y[3].isnan().all()) and not bool(y[4:19, 1:17].isnan().any())
    assert capfd.readouterr() == ("", "")


def test_an_expanded_vector_may_be_the_weight() -> None:
    x, row = torch.ones(3, 4), torch.tensor([[1.0, 2.0]])
    assert fused_linear(x, row.expand(4, 2), None, "none").tolist() == [[4.0, 8.0]] * 3


# -- the order of tiles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tiles_m", "tiles_n"), [(1, 1), (3, 2), (8, 3), (11, 3), (17, 2), (9, 1)])
def test_program_k_computes_the_tile_at_the_corner_that_the_launch_says(tiles_m: int, tiles_n: int) -> None:
    """The first 1, 2, ... programs alone write the first 1, 2, ... corners."""
    launch = LinearLaunch(16 * tiles_m, 16 * tiles_n, 16, SMALL)
    x, w = torch.ones(launch.m, 16), torch.ones(16, launch.n)
    for programs in sorted(
        {1, 2, tiles_m, launch.programs - 1, launch.programs} & set(range(1, launch.programs + 1))
    ):
        y = torch.zeros(launch.m, launch.n)
        _launch_first(programs, launch, x, w, y)
        written = {(16 * int(row), 16 * int(column)) for row, column in y[::16, ::16].nonzero()}
        assert written == {launch.corner(program) for program in range(programs)}
        assert y.count_nonzero() == 256 * len(written)


def _launch_first(programs: int, launch: LinearLaunch, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
    @dataclass(frozen=True)
    class Part(LinearLaunch):
        @property
        def programs(self) -> int:
            return programs

    linear._launch(Part(launch.m, launch.n, launch.k, launch.config), x, w, None, y, "none")


# -- on a GPU --------------------------------------------------------------------------------------------------


@pytest.fixture
def _fresh_choices() -> Iterator[None]:
    forget_choices()
    yield
    forget_choices()


@pytest.mark.usefixtures("_fresh_choices")
def test_trials_run_on_the_very_operands_and_the_fastest_configuration_runs_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launched: list[LinearConfig] = []
    likely = linear_configs(GPUS["T4"], "fp16")
    fastest = likely[1]

    def launch(found: LinearLaunch, *operands: Any) -> Any:
        launched.append(found.config)
        return _launch(found, *operands)

    def milliseconds(run: Any, return_mode: str) -> float:
        run()
        return 1.0 if launched[-1] == fastest else 2.0

    import triton.testing

    _launch = linear._launch
    monkeypatch.setattr(linear, "_launch", launch)
    monkeypatch.setattr(linear, "device_limits", lambda: GPUS["T4"])
    monkeypatch.setattr(triton.testing, "do_bench", milliseconds)
    gemm = Gemm(40, 40, 40)
    x, w, bias = gemm.operands()
    expected = in_float64(gemm)
    for expected_launches in (2 * len(likely) + 1, 1):  # compiled and timed, then the call; the next time the call
        launched.clear()
        y = fused_linear(x, w, bias)
        assert bool(((y.double() - expected).abs() <= allowed_error(gemm, expected)).all())
        assert len(launched) == expected_launches and launched[-1] == fastest


# -- the library's plan ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_librarys_plan_agrees_with_float64_within_one_rounding_more(
    dtype: torch.dtype, bias: bool, activation: ActivationName
) -> None:
    gemm = Gemm(20, 30, 40, "transposed", dtype, bias, activation)
    expected = in_float64(gemm)
    x, w, _ = gemm.operands()
    product = 1.13 * 1.01 * torch.finfo(dtype).eps / 2 * (x.double() @ w.double()).abs()
    y = library_linear(*gemm.operands(), activation)
    assert bool(((y.double() - expected).abs() <= allowed_error(gemm, expected) + product).all())
    assert y.dtype == dtype


@pytest.mark.parametrize("name", list(GPUS))
def test_advice_is_given_where_triton_reaches_no_tensor_cores_and_nowhere_else(name: str) -> None:
    gpu = GPUS[name]
    fp16, fp32 = linear_advice(gpu, "fp16"), linear_advice(gpu, "fp32")
    assert (fp16 is not None) == (gpu.target == "sm_75")
    assert (fp32 is not None) == (gpu.vendor == "NVIDIA")  # AMD's matrix cores know fp32
    for advice in (fp16, fp32):
        assert advice is None or ("library_linear" in advice.zh and "library_linear" in advice.en)
    assert fp16 is None or (name in fp16.zh and name in fp16.en)


def test_there_is_no_advice_for_the_interpreter() -> None:
    assert linear_advice(None, "fp16") is None


# -- wrong use -------------------------------------------------------------------------------------------------

X, W, BIAS = torch.ones(2, 8), torch.ones(8, 4), torch.ones(4)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("x", {"x": torch.ones(8)}),
        ("x", {"x": torch.ones(8, 2).t()}),
        ("x", {"x": torch.ones(2, 8, dtype=torch.int8)}),
        ("x", {"x": torch.ones(0, 8)}),
        ("w", {"w": torch.ones(4, 8)}),
        ("w", {"w": torch.ones(8, 4).half()}),
        ("w", {"w": torch.ones(8, 4, requires_grad=True)}),
        ("bias", {"bias": torch.ones(8)}),
        ("bias", {"bias": 1.0}),
        ("activation", {"activation": "gelu"}),
    ],
)
@pytest.mark.parametrize("plan", [fused_linear, library_linear])
def test_both_plans_refuse_wrong_arguments_by_name_and_in_both_languages(
    plan: Any, name: str, arguments: dict[str, Any]
) -> None:
    assert_refused(plan, name, arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("x", {"x": X.bfloat16(), "w": W.bfloat16(), "bias": None}),  # the interpreter's dot would be wrong
        ("config", {"config": (64, 64, 32)}),
        ("config.block_n", {"config": LinearConfig(64, 8, 32, 4, 1)}),
        ("config.block_n", {"config": LinearConfig(64, 48, 32, 4, 1)}),
        ("config.num_warps", {"config": LinearConfig(64, 64, 32, 3, 1)}),
        ("config.num_stages", {"config": LinearConfig(64, 64, 32, 4, 0)}),
        ("out", {"out": torch.empty(2, 5)}),
        ("out", {"out": X[:, :4]}),
        ("out", {"out": torch.empty(4, 2).t()}),
    ],
)
def test_the_kernel_refuses_wrong_arguments_by_name_and_in_both_languages(
    name: str, arguments: dict[str, Any]
) -> None:
    assert_refused(fused_linear, name, arguments)


def assert_refused(plan: Any, name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as refusal:
        plan(**{"x": X, "w": W, "bias": BIAS, **arguments})
    chinese, english = str(refusal.value).splitlines()
    assert chinese.startswith(f"参数 {name} ") and english.startswith(f"{name} ")


# -- what the compiler is given --------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [True, False])
def test_the_compiler_is_given_every_parameter_once_and_as_the_wrapper_launches(masked: bool) -> None:
    config = LinearConfig(32, 64, 32, 4, 3)
    source = linear_source("bf16", config, "silu", masked=masked, k=100)
    assert sorted([*source.signature, *source.constexprs]) == sorted(inspect.signature(linear_kernel.fn).parameters)
    assert {source.signature[name] for name in source.pointers} == {"*bf16"}
    assert {source.signature[name] for name in source.sizes} == {"i32"}
    tile = [source.constexprs[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")]
    assert tile == [32, 64, 32] and source.constexprs["STEPS"] == 4
    assert (source.constexprs["MASKED"], source.constexprs["ACTIVATION"]) == (masked, "silu")
    assert (source.num_warps, source.num_stages) == (4, 3)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("config", {"config": None}), ("activation", {"activation": "tanh"}), ("k", {"k": 0})],
)
def test_a_source_of_nothing_sensible_is_refused(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"参数 {name} "):
        linear_source(**{"dtype": "fp16", "config": SMALL, **arguments})
