"""Which configuration a GEMM gets: the estimate's order, and what a probe's answers make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.gpus import GPUS
from lessons_lib.kernels.launch import DtypeName, LinearConfig, LinearLaunch, linear_configs
from lessons_lib.kernels.mode import CannotLaunchError
from lessons_lib.kernels.tuning import (
    TIMED,
    Trial,
    best_trial,
    choose_config,
    estimated_cost,
    forget_choices,
    likely_configs,
    worth_timing,
)

A100, T4 = GPUS["A100 (40 GB)"], GPUS["T4"]
CONFIGS = linear_configs(A100, "fp16")


@pytest.fixture(autouse=True)
def _no_choice_yet() -> Iterator[None]:
    forget_choices()
    yield
    forget_choices()


@dataclass
class MadeUpGpu:
    """Answers from tables: 0 spills and one second where they say nothing; ``broken`` ones do not compile."""

    spilling: Mapping[LinearConfig, int] = field(default_factory=dict)
    times: Mapping[LinearConfig, float] = field(default_factory=dict)
    broken: tuple[LinearConfig, ...] = ()
    compiled: list[LinearConfig] = field(default_factory=list)
    timed: list[LinearConfig] = field(default_factory=list)

    def spills(self, config: LinearConfig) -> int:
        self.compiled.append(config)
        if config in self.broken:
            raise RuntimeError("out of resource: shared memory\nand more")
        return self.spilling.get(config, 0)

    def seconds(self, config: LinearConfig) -> float:
        self.timed.append(config)
        return self.times.get(config, 1.0)


# -- the estimate ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", GPUS.values(), ids=list(GPUS))
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_the_estimate_reorders_what_the_gpu_can_hold_and_adds_nothing(gpu: object, dtype: DtypeName) -> None:
    likely = likely_configs(gpu, dtype, 777, 1000, 64)  # type: ignore[arg-type]
    assert sorted(likely, key=str) == sorted(linear_configs(gpu, dtype), key=str)  # type: ignore[arg-type]


def test_a_large_gemm_gets_the_largest_tile_and_a_small_one_a_small_tile() -> None:
    assert choose_config(A100, "fp16", 4096, 4096, 4096).tile == (128, 256, 64)
    assert choose_config(T4, "fp16", 4096, 4096, 1024).tile == (64, 64, 32)
    assert choose_config(A100, "fp16", 16, 64, 32).tile == (32, 64, 32)


def test_tiles_become_smaller_where_larger_ones_leave_processors_idle() -> None:
    """1024 x 1024 is 32 tiles of 128 x 256 for an A100's 108 SMs."""
    chosen = choose_config(A100, "fp16", 1024, 1024, 4096)
    assert LinearLaunch(1024, 1024, 4096, chosen).programs > 32


def test_the_cost_counts_rounds_of_the_programs_that_run_at_once() -> None:
    config = LinearConfig(64, 64, 32, 4, 1)
    one_round, two_rounds = (LinearLaunch(64 * programs, 64, 32, config) for programs in (108, 109))
    assert estimated_cost(two_rounds, 108) == 2 * estimated_cost(one_round, 108)
    # A tile, in 32 steps of k: 64 x 64 multiply-adds, and 128 elements that each cost as much as 64.
    assert estimated_cost(one_round, 108) == 32 * (64 * 64 + 64 * 128)


def test_the_cost_counts_what_lies_beyond_the_edge_along_k() -> None:
    shallow, deep = LinearConfig(64, 64, 32, 4, 1), LinearConfig(64, 64, 64, 4, 1)
    assert estimated_cost(LinearLaunch(64, 64, 32, deep), 1) == 2 * estimated_cost(
        LinearLaunch(64, 64, 32, shallow), 1
    )


def test_the_interpreter_which_has_no_gpu_gets_few_programs() -> None:
    for m, n in ((5, 7), (300, 300), (1000, 40)):
        chosen = choose_config(None, "fp32", m, n, 50)
        assert LinearLaunch(m, n, 50, chosen).programs <= 32


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("gpu", ("A100", "fp16", 1, 1, 1)),
        ("dtype", (A100, "float16", 1, 1, 1)),
        ("m", (A100, "fp16", 0, 1, 1)),
        ("n", (A100, "fp16", 1, 1.5, 1)),
        ("k", (A100, "fp16", 1, 1, True)),
    ],
)
def test_wrong_arguments_are_refused_by_name(name: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=f"参数 {name} "):
        choose_config(*arguments)  # type: ignore[arg-type]


# -- the choice among trials -----------------------------------------------------------------------------------

TRIALS = st.lists(
    st.builds(
        Trial,
        config=st.sampled_from(CONFIGS),
        spills=st.sampled_from([0, 0, 8, 400]),
        seconds=st.one_of(st.none(), st.floats(1e-6, 1e-2)),
    ),
    min_size=1,
    max_size=8,
)


@given(trials=TRIALS)
def test_one_that_spills_is_never_chosen_while_a_clean_one_exists(trials: list[Trial]) -> None:
    best = best_trial(trials)
    assert best in trials
    assert best.spills == 0 or all(trial.spills for trial in trials)
    rivals = [trial for trial in worth_timing(trials) if trial.seconds is not None]
    assert all((best.seconds or 0.0) <= (rival.seconds or 0.0) for rival in rivals)
    assert best.seconds is not None or not rivals


def test_a_spilling_one_is_not_chosen_though_it_is_faster() -> None:
    clean, spilling = Trial(CONFIGS[1], 0, 2e-3), Trial(CONFIGS[0], 4, 1e-3)
    assert best_trial([spilling, clean]) == clean
    assert best_trial([spilling, Trial(CONFIGS[2], 8, 5e-4)]).config == CONFIGS[2]


# -- with a GPU's answers --------------------------------------------------------------------------------------


def test_the_fastest_of_the_likeliest_clean_ones_is_chosen() -> None:
    likely = likely_configs(A100, "fp16", 4096, 4096, 4096)
    gpu = MadeUpGpu(times={likely[2]: 0.5, likely[TIMED]: 0.1})
    assert choose_config(A100, "fp16", 4096, 4096, 4096, gpu) == likely[2]
    assert gpu.compiled == gpu.timed == list(likely[:TIMED])


def test_spilling_and_failing_ones_are_passed_over_for_the_next_likely() -> None:
    likely = likely_configs(A100, "fp16", 4096, 4096, 4096)
    gpu = MadeUpGpu(spilling={likely[0]: 8}, times={likely[0]: 0.01}, broken=(likely[1],))
    chosen = choose_config(A100, "fp16", 4096, 4096, 4096, gpu)
    assert chosen == likely[2]
    assert gpu.timed == list(likely[2 : 2 + TIMED])


def test_where_every_one_spills_all_are_timed() -> None:
    likely = likely_configs(T4, "fp16", 512, 512, 512)
    gpu = MadeUpGpu(spilling=dict.fromkeys(likely, 100), times={likely[-1]: 0.5})
    assert choose_config(T4, "fp16", 512, 512, 512, gpu) == likely[-1]
    assert gpu.timed == list(likely)


def test_a_single_one_that_works_is_taken_without_timing() -> None:
    likely = likely_configs(A100, "fp16", 512, 512, 512)
    gpu = MadeUpGpu(broken=likely[:-1])
    assert choose_config(A100, "fp16", 512, 512, 512, gpu) == likely[-1]
    assert gpu.timed == []


def test_where_nothing_compiles_the_error_names_the_reason_and_the_other_plan() -> None:
    gpu = MadeUpGpu(broken=linear_configs(T4, "fp16"))
    with pytest.raises(CannotLaunchError, match="library_linear") as refusal:
        choose_config(T4, "fp16", 64, 64, 64, gpu)
    chinese, english = str(refusal.value).splitlines()
    assert "out of resource: shared memory" in chinese and "out of resource: shared memory" in english
    assert isinstance(refusal.value.__cause__, RuntimeError)


def test_the_choice_is_kept_for_the_same_gemm_and_made_anew_for_another() -> None:
    gpu = MadeUpGpu()
    first = choose_config(A100, "fp16", 256, 256, 256, gpu, "row-major")
    asked = len(gpu.compiled)
    assert choose_config(A100, "fp16", 256, 256, 256, gpu, "row-major") == first
    assert len(gpu.compiled) == asked
    others: list[tuple[DtypeName, int, str]] = [
        ("fp16", 512, "row-major"),
        ("bf16", 256, "row-major"),
        ("fp16", 256, "col"),
    ]
    for dtype, m, variant in others:
        choose_config(A100, dtype, m, 256, 256, gpu, variant)
        assert len(gpu.compiled) > asked
        asked = len(gpu.compiled)
    forget_choices()
    choose_config(A100, "fp16", 256, 256, 256, gpu, "row-major")
    assert len(gpu.compiled) > asked


def test_without_a_probe_nothing_is_kept() -> None:
    estimate = choose_config(A100, "fp16", 256, 256, 256)
    gpu = MadeUpGpu(broken=(estimate,))
    assert choose_config(A100, "fp16", 256, 256, 256, gpu) != estimate
