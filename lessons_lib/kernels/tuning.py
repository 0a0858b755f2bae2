"""Which tile a GEMM gets: by an estimate, and on a GPU by trying the likeliest there.

A configuration that spills is never chosen while a clean one exists. No triton and no torch here: who asks brings a
``Probe`` that compiles and times.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lessons_lib.base.gpus import A100, Gpu, require_gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import divided_up
from lessons_lib.base.validate import require_choice, require_int
from lessons_lib.kernels.launch import ELEMENT_BYTES, DtypeName, LinearConfig, LinearLaunch, linear_configs
from lessons_lib.kernels.mode import CannotLaunchError, first_line

# Clean configurations that are timed. Compiling one takes a second or more, timing it an eighth.
TIMED = 4

# Multiply-adds of a tensor core in the time in which L2 delivers one element of an operand to the same SM. About 60 on
# an A100; the order of configurations depends on it little.
_MULTIPLY_ADDS_PER_ELEMENT = 64


class Probe(Protocol):
    """What a GPU can say of a configuration. Each raises where it neither compiles nor launches."""

    def spills(self, config: LinearConfig) -> int:
        """Values that a thread spills to memory."""

    def seconds(self, config: LinearConfig) -> float:
        """How long the kernel takes."""


@dataclass(frozen=True)
class Trial:
    """A configuration, the values a thread of it spills, and its time, ``None`` before it is measured."""

    config: LinearConfig
    spills: int
    seconds: float | None = None


# -- without a GPU: numbers only -----------------------------------------------------------------------------------


def likely_configs(gpu: Gpu | None, dtype: DtypeName, m: int, n: int, k: int) -> tuple[LinearConfig, ...]:
    """What ``linear_configs`` offers for ``[m, k] @ [k, n]``, the least ``estimated_cost`` first.

    Args:
        gpu: the GPU that runs it; ``None``: the interpreter, one program after another and any tile.
        dtype: of the operands.
        m, n, k: at least 1 each.

    Raises:
        ValueError: an argument is not valid.
    """
    require_choice("dtype", dtype, ELEMENT_BYTES)
    m, n, k = (require_int(name, size, 1) for name, size in (("m", m), ("n", n), ("k", k)))
    at_once = 1 if gpu is None else require_gpu("gpu", gpu).sm_count
    configs = linear_configs(A100, "fp16") if gpu is None else linear_configs(gpu, dtype)
    return tuple(sorted(configs, key=lambda config: estimated_cost(LinearLaunch(m, n, k, config), at_once)))


def estimated_cost(launch: LinearLaunch, at_once: int) -> int:
    """Time of a launch in multiply-adds of one SM: only the order of two such figures means anything.

    Rounds of ``at_once`` programs, one an SM, times what a program does in each step along k: ``block_m x block_n``
    multiply-adds and ``block_m + block_n`` elements to fetch. So a large tile wins by its reuse, until there are too
    few of them to go round, or too much of each lies beyond the edge.
    """
    config = launch.config
    multiply_adds = config.block_m * config.block_n
    elements = config.block_m + config.block_n
    depth = launch.steps * config.block_k
    return divided_up(launch.programs, at_once) * depth * (multiply_adds + _MULTIPLY_ADDS_PER_ELEMENT * elements)


def worth_timing(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The clean ones; all of them if none is clean."""
    return tuple(trial for trial in trials if not trial.spills) or tuple(trials)


def best_trial(trials: Sequence[Trial]) -> Trial:
    """The fastest of those ``worth_timing``; without times the first.

    ``trials`` must not be empty.
    """
    candidates = worth_timing(trials)
    timed = [trial for trial in candidates if trial.seconds is not None]
    return min(timed, key=lambda trial: trial.seconds or 0.0) if timed else candidates[0]


# -- on a GPU ------------------------------------------------------------------------------------------------------

_chosen: dict[Hashable, LinearConfig] = {}


def choose_config(
    gpu: Gpu | None,
    dtype: DtypeName,
    m: int,
    n: int,
    k: int,
    probe: Probe | None = None,
    variant: Hashable = None,
) -> LinearConfig:
    """The configuration for ``[m, k] @ [k, n]``: the likeliest, or with a ``probe`` the fastest of the likeliest.

    With a probe, configurations are compiled from the likeliest on until ``TIMED`` of them neither fail nor spill;
    those are timed. If every one spills, all are timed. The answer is kept for the process.

    Args:
        gpu: the GPU that runs it; ``None``: the interpreter.
        dtype: of the operands.
        m, n, k: at least 1 each.
        probe: compiles and times on that GPU.
        variant: what else distinguishes this GEMM from one of the same sizes (layout, activation).

    Raises:
        ValueError: an argument is not valid.
        CannotLaunchError: nothing that the GPU could hold compiles and launches.
    """
    if probe is None:
        return likely_configs(gpu, dtype, m, n, k)[0]
    key = (gpu, dtype, m, n, k, variant)
    if key not in _chosen:
        _chosen[key] = _measured(likely_configs(gpu, dtype, m, n, k), probe)
    return _chosen[key]


def forget_choices() -> None:
    """Choose anew from now on."""
    _chosen.clear()


def _measured(configs: Sequence[LinearConfig], probe: Probe) -> LinearConfig:
    trials = worth_timing(_compiled(configs, probe))
    if len(trials) == 1:
        return trials[0].config
    return best_trial([replace(trial, seconds=probe.seconds(trial.config)) for trial in trials]).config


def _compiled(configs: Sequence[LinearConfig], probe: Probe) -> list[Trial]:
    trials: list[Trial] = []
    fault: Exception | None = None
    for config in configs:
        try:
            trials.append(Trial(config, probe.spills(config)))
        except Exception as error:  # more shared memory than estimated, a compiler that gives up: try the next
            fault = error
        if sum(not trial.spills for trial in trials) == TIMED:
            break
    if not trials:
        reason = first_line(fault) if fault else "?"
        raise CannotLaunchError(_NOTHING_COMPILES.format(reason=reason).both) from fault
    return trials


_NOTHING_COMPILES = Text(
    zh="这块 GPU 上没有一种数据块配置能编译并启动（{reason}）。请改用 library_linear：库 GEMM 加一个融合尾声核函数。",
    en="No tile compiles and launches on this GPU ({reason}). Use library_linear instead: the library's GEMM and one "
    "fused epilogue kernel.",
)
