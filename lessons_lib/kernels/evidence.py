"""Lesson 03's four conditions for a kernel of this course: run on this machine, compiled for the GPU asked about.

What nobody can look at here is ``not_checked`` and says why. Conditions that hold are no proof of speed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lessons_lib.base.gpus import GPUS, Gpu, require_gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.base.validate import require_choice
from lessons_lib.decision.model import Condition, Evidence
from lessons_lib.kernels.compiler.compiled import FAMILY_WORDS, NONE, UNKNOWN, CompileReport
from lessons_lib.kernels.compiler.report import compile_report
from lessons_lib.kernels.launch import ELEMENT_BYTES, DtypeName, KernelName, RowLaunch
from lessons_lib.kernels.mode import TritonSetup, first_line, prepare_triton
from lessons_lib.kernels.trial import largest_error
from lessons_lib.kernels.tuning import likely_configs
from lessons_lib.kernels.walk import Launch, walk_launch

# How far from float64 a result may lie, relative to |reference| + its root mean square. A store rounds fp16 by 2**-11
# at most and bf16 by 2**-8 (the interpreter truncates: 2**-7), and rmsnorm rounds its sum as well; fp32 leaves room
# for long sums.
TOLERANCES: Mapping[DtypeName, float] = MappingProxyType({"fp16": 2e-3, "bf16": 1.6e-2, "fp32": 1e-5})

_WITHIN = Text(
    zh="{shape}：与 float64 的误差最大 {error}，允许 {tolerance}（相对于 |参考值| + 均方根）",
    en="{shape}: largest error against float64 {error}, allowed {tolerance} (relative to |reference| + root mean "
    "square)",
)
_SAMPLE = Text(zh="{run}（代表 {whole}）", en="{run}, standing for {whole}")
_SHAPES_RIGHT = Text(
    zh="接受 {shape}，也接受边界形状 {edges}，结果都在允许的误差之内",
    en="{shape} and its edges {edges} are accepted, and every result is within tolerance",
)
_EDGES_OPEN = Text(
    zh="{shape} 没有跑，边界形状 {edges} 没有问题", en="{shape} was not run; its edges {edges} are right"
)
_SHAPE_WRONG = Text(
    zh="{shape} 接受了，但误差 {error} 超过允许的 {tolerance}",
    en="{shape} is accepted, but its error {error} is above the {tolerance} allowed",
)
_SHAPE_REFUSED = Text(zh="{shape} 被拒绝：{why}", en="{shape} is refused: {why}")
_NOT_RUN = Text(zh="{shape} 没有跑成：{error}", en="{shape} did not run: {error}")
_TOO_LARGE = Text(
    zh="{shape} 在这里跑不动，归约的那一维又不能只取一段",
    en="{shape} is too large to run here, and a reduction cannot be cut short",
)
_NO_BF16 = Text(zh="这台机器跑不了 bfloat16 的这个核函数", en="this machine does not run this kernel in bfloat16")
_TWO_PASSES = Text(
    zh="一行 {columns} 个元素要读两遍，而编译报告只编译一遍读完的核函数",
    en="a row of {columns} elements takes two passes, and the report only compiles the kernel that takes one",
)
_ON_CHIP = Text(
    zh="每线程 {registers} 个寄存器，溢出：{spill}；每线程块 {shared} 共享内存，上限 {limit}",
    en="{registers} registers per thread, spill {spill}; {shared} of shared memory per block, limit {limit}",
)
_LOWERED = Text(
    zh="为 {target} 编译成功，数据块 {tile}，{warps} 个 warp", en="compiled for {target}, tile {tile}, {warps} warps"
)
_MULTIPLIES = Text(zh="{lowered}；乘加用{family}", en="{lowered}; multiplies on {family}")
_HERE = Text(zh="这台机器", en="this machine")
_INTERPRETER = Text(zh="Triton 的解释器，这台机器", en="Triton's interpreter, this machine")
_THIS_GPU = Text(zh="这台机器的 {name}", en="the {name} of this machine")
_COMPILER = Text(zh="Triton {version} 的编译器", en="the compiler of Triton {version}")
_REPORT = Text(zh="编译报告", en="the compile report")


def gather_evidence(
    kernel: KernelName, gpu: Gpu | str, shape: tuple[int, ...], dtype: DtypeName = "fp16"
) -> tuple[Evidence, ...]:
    """What can be seen here of the four conditions, for ``decide`` and ``DecisionPanel``: one ``Evidence`` each.

    - ``semantics_match``: the kernel runs on this machine (its GPU, or the interpreter) on as much of the shape as it
      can take, and agrees with PyTorch in float64 within ``TOLERANCES``;
    - ``shape_supported``: the wrapper accepts the shape and those around its edges (one row, one column, a column
      more, a column less, rows that lie apart) and is right on each;
    - ``onchip_fit``: compiled for ``gpu``, specialized as a launch of this shape would be, it spills no register and
      a block asks for no more shared memory than it may have;
    - ``backend_lowered``: it compiles for ``gpu``; for ``linear`` it also says on which unit it multiplies.

    Args:
        kernel: a name in ``KERNELS``.
        gpu: a ``Gpu`` or its name in ``GPUS``; it need not be in this machine.
        shape: ``(rows, columns)``; of ``linear`` ``(m, n, k)``. At least 1 each.
        dtype: ``"fp16"``, ``"bf16"`` or ``"fp32"``.

    Raises:
        ValueError: an argument is of the wrong type or out of range; the message names it.
    """
    launch = walk_launch(kernel, shape)  # refuses what is no kernel, and what is no shape of it
    require_choice("dtype", dtype, ELEMENT_BYTES)
    if isinstance(gpu, str):
        require_choice("gpu", gpu, GPUS)
    found = GPUS[gpu] if isinstance(gpu, str) else require_gpu("gpu", gpu)
    sizes = tuple(int(size) for size in shape)
    return (*_evidence_of_runs(kernel, sizes, dtype), *_evidence_of_compiler(kernel, found, sizes, dtype, launch))


# -- run on this machine ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """What became of one run: its error, or why there is none."""

    shape: tuple[int, ...]
    error: float | None = None
    refusal: Text | None = None
    crash: str = ""


def _evidence_of_runs(kernel: KernelName, shape: tuple[int, ...], dtype: DtypeName) -> tuple[Evidence, Evidence]:
    setup = prepare_triton()
    source = _source(setup)
    obstacle = _obstacle(setup, kernel, dtype)
    if obstacle is not None:
        return (
            Evidence("semantics_match", "not_checked", obstacle, source),
            Evidence("shape_supported", "not_checked", obstacle, source),
        )
    device = setup.device or "cpu"
    sample = _sample(kernel, shape, setup.on_gpu)
    run = None if sample is None else _run(kernel, sample, dtype, device)
    edges = [_run(kernel, edge, dtype, device, gap=3) for edge in _edges(kernel, sample or shape)]
    return _semantics(run, shape, dtype, source), _shapes(run, edges, shape, dtype, source)


def _source(setup: TritonSetup) -> Text:
    if setup.on_gpu:
        import torch

        return _THIS_GPU.format(name=torch.cuda.get_device_name())
    return _INTERPRETER if setup.mode == "interpreter" else _HERE


def _obstacle(setup: TritonSetup, kernel: KernelName, dtype: DtypeName) -> Text | None:
    """Why no kernel, or not this one, can be run on this machine."""
    if not setup.runs:
        return Text(zh="".join(word.zh for word in setup.words), en=" ".join(word.en for word in setup.words))
    if dtype == "bf16" and not (setup.bf16_dot if kernel == "linear" else setup.bf16):
        return _NO_BF16
    return None


def _sample(kernel: KernelName, shape: tuple[int, ...], on_gpu: bool) -> tuple[int, ...] | None:
    """As much of ``shape`` as runs here in a second or so: all of a reduction, fewer independent rows and columns.

    ``None`` where the reduction alone is too long.
    """
    most = 2**24 if on_gpu else 2**16  # elements
    if kernel == "linear":
        m, n, k = shape
        side = 2**12 if on_gpu else 2**7
        return None if k > 2**14 else (min(m, side), min(n, side), k)
    rows, columns = shape
    if kernel in ("rmsnorm", "softmax"):
        return None if columns > 16 * most else (min(rows, max(1, most // columns)), columns)
    columns = min(columns, most)
    return min(rows, most // columns), columns


def _edges(kernel: KernelName, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes around the given one: one row, one column, one more, one less."""
    if kernel == "linear":
        m, n, k = min(shape[0], 33), shape[1], min(shape[2], 64)
        n = min(n, 129)
        return [(1, n, k), (m, 1, k), (m, n + 1, k + 1), (m, max(1, n - 1), max(1, k - 1))]
    columns = min(shape[1], 2**15)
    return [(1, columns), (3, 1), (3, columns + 1), (3, max(1, columns - 1))]


def _run(kernel: KernelName, shape: tuple[int, ...], dtype: DtypeName, device: str, gap: int = 0) -> _Run:
    try:
        return _Run(shape, largest_error(kernel, shape, dtype, device, gap))
    except ValueError as refusal:
        said = str(refusal).splitlines() or ["?"]
        return _Run(shape, refusal=Text(zh=said[0], en=said[-1]))
    except Exception as crash:  # the compiler, the driver, memory: whatever it is, no result was seen
        return _Run(shape, crash=first_line(crash))


def _semantics(run: _Run | None, shape: tuple[int, ...], dtype: DtypeName, source: Text) -> Evidence:
    def evidence(status: str, words: Text) -> Evidence:
        return Evidence("semantics_match", status, words, source)  # type: ignore[arg-type]

    if run is None:
        return evidence("not_checked", _TOO_LARGE.format(shape=_written(shape)))
    if run.error is None:
        return evidence("not_checked", _no_error(run))
    tolerance = TOLERANCES[dtype]
    within = _WITHIN.format(shape=_named(run.shape, shape), error=_digits(run.error), tolerance=f"{tolerance:g}")
    return evidence("pass" if run.error <= tolerance else "fail", within)


def _shapes(run: _Run | None, edges: list[_Run], shape: tuple[int, ...], dtype: DtypeName, source: Text) -> Evidence:
    def evidence(status: str, words: Text) -> Evidence:
        return Evidence("shape_supported", status, words, source)  # type: ignore[arg-type]

    tolerance = TOLERANCES[dtype]
    for entry in (*([] if run is None else [run]), *edges):
        if entry.refusal is not None:
            return evidence("fail", _no_error(entry))
        if entry.error is None:
            return evidence("not_checked", _no_error(entry))
        if entry.error > tolerance:
            wrong = {"error": _digits(entry.error), "tolerance": f"{tolerance:g}"}
            return evidence("fail", _SHAPE_WRONG.format(shape=_written(entry.shape), **wrong))
    listed = ", ".join(_written(entry.shape) for entry in edges)
    if run is None:
        return evidence("not_checked", _EDGES_OPEN.format(shape=_written(shape), edges=listed))
    return evidence("pass", _SHAPES_RIGHT.format(shape=_named(run.shape, shape), edges=listed))


def _no_error(run: _Run) -> Text:
    if run.refusal is not None:
        return _SHAPE_REFUSED.format(shape=_written(run.shape), why=run.refusal)
    return _NOT_RUN.format(shape=_written(run.shape), error=run.crash)


def _named(run: tuple[int, ...], whole: tuple[int, ...]) -> Text | str:
    return _written(run) if run == whole else _SAMPLE.format(run=_written(run), whole=_written(whole))


def _written(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _digits(error: float) -> str:
    return "∞" if math.isinf(error) else f"{error:.1g}"


# -- compiled for the GPU asked about --------------------------------------------------------------------------------


def _evidence_of_compiler(
    kernel: KernelName, gpu: Gpu, shape: tuple[int, ...], dtype: DtypeName, launch: Launch
) -> tuple[Evidence, Evidence]:
    if isinstance(launch, RowLaunch) and not launch.resident:
        words = _TWO_PASSES.format(columns=f"{launch.columns:,}")
        return _unseen("onchip_fit", words), _unseen("backend_lowered", words)
    report = _compiled(kernel, gpu, shape, dtype, launch)
    return _fit(report), _lowered(report)


def _compiled(
    kernel: KernelName, gpu: Gpu, shape: tuple[int, ...], dtype: DtypeName, launch: Launch
) -> CompileReport:
    """The kernel as a launch of this shape has it compiled; of ``linear`` the likeliest configuration that is clean."""
    # A launch tells the compiler of each size; how many rows there are changes no load of an elementwise or row kernel.
    multiple = all(size % 16 == 0 for size in (shape if kernel == "linear" else shape[1:]))
    if kernel != "linear":
        return compile_report(kernel, gpu, dtype, launch.tile, sizes_multiple_of_16=multiple)
    first = None
    m, n, k = shape
    for config in likely_configs(gpu, dtype, m, n, k):
        report = compile_report(
            kernel, gpu, dtype, config.tile, config.num_warps, config.num_stages, sizes_multiple_of_16=multiple
        )
        first = first or report
        if report.launches and not report.spills:
            return report
        if not report.compiled:
            break
    assert first is not None, "there is a configuration for every GPU"
    return first


def _fit(report: CompileReport) -> Evidence:
    if not report.compiled:
        return _unseen("onchip_fit", report.verdict)
    words = _ON_CHIP.format(
        registers=UNKNOWN if report.registers_per_thread is None else report.registers_per_thread,
        spill=NONE if report.spill_bytes == 0 else report.spill_words,
        shared=format_bytes(report.shared_bytes or 0),
        limit=format_bytes(report.gpu.shared_bytes_per_block),
    )
    clean = bool(report.launches) and not report.spills
    return Evidence("onchip_fit", "pass" if clean else "fail", words, _by(report))


def _lowered(report: CompileReport) -> Evidence:
    if report.status in ("timeout", "no_triton"):
        return _unseen("backend_lowered", report.verdict)
    if not report.compiled:
        return Evidence("backend_lowered", "fail", report.verdict, _by(report))
    words = _LOWERED.format(target=report.gpu.target, tile=report.tile_words, warps=report.num_warps)
    if report.kernel == "linear" and report.instruction_family is not None:
        words = _MULTIPLIES.format(lowered=words, family=FAMILY_WORDS[report.instruction_family])
    return Evidence("backend_lowered", "pass", words, _by(report))


def _unseen(condition: Condition, words: Text) -> Evidence:
    return Evidence(condition, "not_checked", words, _REPORT)


def _by(report: CompileReport) -> Text:
    return _REPORT if report.triton_version is None else _COMPILER.format(version=report.triton_version)
