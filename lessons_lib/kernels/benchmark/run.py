"""Measure the course's kernels on the GPU at hand, beside PyTorch, ``torch.compile`` and Liger-Kernel.

    python -m lessons_lib.kernels.benchmark --quick
    python -m lessons_lib.kernels.benchmark --out run.json

Needs a GPU on which Triton runs. Without one nothing is measured, and nothing is made up.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib.metadata
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from lessons_lib.base.environment import system_name
from lessons_lib.base.language import LANGUAGES, use_language
from lessons_lib.base.text import Text
from lessons_lib.base.validate import require_bool
from lessons_lib.kernels.benchmark.experiments import Bench, run_experiment
from lessons_lib.kernels.benchmark.measuring import CpuStopwatch, GpuStopwatch, count_launches
from lessons_lib.kernels.benchmark.prediction import EXPERIMENT_WORDS, Experiment, experiments
from lessons_lib.kernels.benchmark.runs import SCHEMA, ExperimentRun, Run, RunEnvironment, recorded_runs, write_run
from lessons_lib.kernels.benchmark.workloads import make_workload
from lessons_lib.kernels.device import known_gpu
from lessons_lib.kernels.mode import CannotLaunchError, TritonSetup, prepare_triton, require_runnable

QUICK_SECONDS, FULL_SECONDS = 95.0, 200.0  # after which no further plan is begun

# Small enough for the interpreter, with edges that no tile fits.
REHEARSAL = (
    Experiment("chain", "chain", "fp16", 9, 70),
    Experiment("rmsnorm", "rmsnorm", "fp16", 5, 70),
    Experiment("linear_k256", "linear", "fp16", 20, 24, 40),
    Experiment("tiny", "chain", "fp16", 2, 40, clock="host"),
    Experiment("softmax", "softmax", "fp32", 5, 70),
)


class NoGpuError(CannotLaunchError):
    """There is nothing to measure on."""


def measure_kernels(quick: bool = True, progress: bool = True) -> Run | None:
    """On a GPU: measure now. Without one: the newest recorded run, or ``None`` where there is none.

    Args:
        quick: under two minutes on a T4; else larger tensors and more rounds.
        progress: show a progress bar, on standard output.

    Raises:
        ValueError: an argument is not a ``bool``.
    """
    quick, progress = require_bool("quick", quick), require_bool("progress", progress)
    if can_measure(prepare_triton()):
        return run_benchmark(quick, progress=progress)
    return next(iter(recorded_runs()), None)


def can_measure(setup: TritonSetup) -> bool:
    """Whether kernels run on a GPU here."""
    return setup.on_gpu and setup.runs


def run_benchmark(quick: bool = False, *, tensor_bytes: int | None = None, progress: bool = True) -> Run:
    """Every experiment on the GPU at hand.

    Args:
        quick: 64 MiB tensors, two GEMMs and fewer rounds.
        tensor_bytes: of each matrix of the chain and the row kernels; 256 MiB, with ``quick`` 64 MiB.
        progress: show a progress bar, on standard output.

    Raises:
        NoGpuError: no kernel runs on a GPU here; the message says why.
        ValueError: an argument is of the wrong type or out of range.
    """
    progress = require_bool("progress", progress)
    planned = experiments(quick, tensor_bytes)
    setup = prepare_triton()
    if not can_measure(setup):
        why = setup.problem or setup.reason
        reason = Text(zh=why.zh.rstrip("。"), en=why.en.rstrip("."))
        raise NoGpuError(_NO_GPU.format(reason=reason).both)
    import torch

    with torch.no_grad(), _bar(planned, progress) as (advance, name):
        bench = replace(_gpu_bench(quick), advance=advance)
        done = {}
        for experiment in in_order_of_running(planned):
            name(str(EXPERIMENT_WORDS[experiment.name]))
            done[experiment.name] = run_experiment(experiment, partial(make_workload, device="cuda"), bench)
            bench.release()
    return Run(SCHEMA, quick, gpu_environment(), tuple(done[experiment.name] for experiment in planned))


def in_order_of_running(planned: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """Those timed by the host's clock first: once a profiler has counted launches, each may cost the host more."""
    return tuple(sorted(planned, key=lambda experiment: experiment.clock != "host"))


def rehearse(planned: Sequence[Experiment] = REHEARSAL) -> tuple[ExperimentRun, ...]:
    """Run every plan that needs no GPU on tiny tensors on the CPU, ours in Triton's interpreter; check each output.

    For tests of this harness. Its times mean nothing, and it gives no ``Run`` that could be kept.

    Raises:
        MissingPackageError, CannotLaunchError: no kernel runs here.
    """
    setup = require_runnable()
    import torch

    bench = Bench(CpuStopwatch(), fewest=1, most=1, calls=2)
    make = partial(make_workload, device=setup.device or "cpu", compiled=False, liger=False)
    with torch.no_grad():
        return tuple(run_experiment(experiment, make, bench) for experiment in planned)


def _gpu_bench(quick: bool) -> Bench:
    import torch

    end = perf_counter() + (QUICK_SECONDS if quick else FULL_SECONDS)

    def release() -> None:
        gc.collect()
        torch.cuda.empty_cache()

    return Bench(
        GpuStopwatch(),
        count_launches=count_launches,
        ran_out_of_memory=lambda error: isinstance(error, torch.cuda.OutOfMemoryError),
        release=release,
        out_of_time=lambda: perf_counter() > end,
        most=50 if quick else 200,
        budget_seconds=2.0 if quick else 6.0,
    )


@contextmanager
def _bar(planned: Sequence[Experiment], shown: bool) -> Iterator[tuple[Callable[[], None], Callable[[str], None]]]:
    """A step for each plan and one for the rounds of each experiment; on standard output, gone when done."""
    try:
        from tqdm import tqdm
    except ImportError:
        yield (lambda: None), (lambda name: None)
        return
    steps = sum(len(experiment.plans) + len(experiment.calibrations) + 1 for experiment in planned)
    with tqdm(total=steps, file=sys.stdout, leave=False, disable=not shown) as bar:

        def advance() -> None:
            bar.update()

        yield advance, bar.set_description


# -- the environment -----------------------------------------------------------------------------------------


def gpu_environment() -> RunEnvironment:
    """What the GPU at hand is, and the versions that drive it."""
    import torch
    import triton

    properties: Any = torch.cuda.get_device_properties(torch.cuda.current_device())
    name, hip = str(properties.name), torch.version.hip
    known = known_gpu(name)
    architecture = str(getattr(properties, "gcnArchName", "")).partition(":")[0]
    return RunEnvironment(
        gpu=name,
        known_as=None if known is None else known.name,
        vendor="AMD" if hip else "NVIDIA",
        capability=architecture if hip else f"{properties.major}.{properties.minor}",
        memory_bytes=_positive(getattr(properties, "total_memory", None)),
        l2_bytes=_positive(getattr(properties, "L2_cache_size", None)),
        sm_count=_positive(getattr(properties, "multi_processor_count", None)),
        driver=_driver_version(),
        toolkit=hip or torch.version.cuda,
        torch=torch.__version__,
        triton=triton.__version__,
        liger=_installed("liger-kernel"),
        python=platform.python_version(),
        system=system_name(sys.platform),
        course=_installed("operator-fusion-lessons") or "0",
        date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    )


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _driver_version() -> str | None:
    """NVIDIA's driver by its tool, AMD's by its kernel module; ``None`` where neither says."""
    module = Path("/sys/module/amdgpu/version")
    if module.exists():
        return module.read_text(encoding="utf-8").strip() or None
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    try:
        command = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
        listed = subprocess.run(command, capture_output=True, timeout=5, check=True, text=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return listed.strip().splitlines()[0].strip() if listed.strip() else None


# -- the command ---------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit status: 1 where nothing could be measured or an output is wrong."""
    options = _parser().parse_args(arguments)
    use_language(options.language)
    try:
        run = run_benchmark(options.quick, progress=not options.no_progress)
    except NoGpuError as error:
        print(error, file=sys.stderr)
        return 1
    from lessons_lib.kernels.benchmark.report import benchmark_report

    print(benchmark_report(run))
    if options.out is not None:
        write_run(run, options.out)
        print(_WRITTEN.format(path=options.out))
    return int(any(plan.status == "wrong" for entry in run.experiments for plan in entry.plans))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lessons_lib.kernels.benchmark", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="under two minutes on a T4 / T4 上不到两分钟")
    parser.add_argument("--out", type=Path, help="keep the run as JSON / 把这次运行存成 JSON")
    parser.add_argument("--language", choices=LANGUAGES, default="en", help="of the report / 报告的语言")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar / 不显示进度条")
    return parser


_NO_GPU = Text(
    zh="没有测：{reason}。在有 GPU 的机器上再运行；这里不编造任何数字。",
    en="Nothing was measured: {reason}. Run it on a machine with a GPU; no figure is made up here.",
)
_WRITTEN = Text(zh="已写入 {path}", en="written to {path}")
