"""The compiler's evidence without a GPU: what a kernel needs on any GPU of the course, specialized as a launch would be.

The compiling happens in another process (``worker``), its results are kept (``cache``); what stands here are
the question, the answer, and the table "this kernel on eight GPUs".
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lessons_lib.base.gpus import GPUS, Gpu, require_gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.base.validate import bad_argument, require_bool, require_choice, require_int, require_real
from lessons_lib.kernels.cell_source import SourceProblemError, gather_source
from lessons_lib.kernels.compiler.cache import shared_cache
from lessons_lib.kernels.compiler.child import MISSING_FIGURE, Request
from lessons_lib.kernels.compiler.compiled import (
    FAMILY_WORDS,
    NO_BF16,
    NOT_COMPILED,
    TIMED_OUT,
    TOO_MANY_THREADS,
    UNKNOWN,
    CompileReport,
    compiler_error,
    tile_words,
)
from lessons_lib.kernels.compiler.worker import shared_worker
from lessons_lib.kernels.launch import (
    ACTIVATIONS,
    CHAIN_OPERATORS,
    ELEMENT_BYTES,
    KERNELS,
    WIDE,
    ActivationName,
    DtypeName,
    KernelName,
    elementwise_launch,
    require_tile,
    row_launch,
)
from lessons_lib.kernels.source import KernelSource
from lessons_lib.kernels.tuning import likely_configs
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table

__all__ = ["CompileReport", "compile_report", "default_launch", "report_table", "triton_version"]

_MOST_WARPS = 32
_MOST_STAGES = 8
_SMALLEST_SIDE = 16  # of a tile that tl.dot multiplies
_T = TypeVar("_T")


def compile_report(
    kernel: KernelName | KernelSource,
    gpu: Gpu | str,
    dtype: DtypeName = "fp16",
    tile: Sequence[int] | None = None,
    num_warps: int | None = None,
    num_stages: int | None = None,
    sizes_multiple_of_16: bool = True,
    *,
    first: int = 0,
    last: int = len(CHAIN_OPERATORS) - 1,
    activation: ActivationName = "gelu_tanh",
    masked: bool = False,
    limit_seconds: float = 60.0,
) -> CompileReport:
    """Compile a kernel for a GPU that need not be here, and say what it would take there.

    In a process of its own; a tenth of a second to a second for sane tiles, nothing for what was compiled before.

    Args:
        kernel: a name of ``launch.KERNELS``; or a ``KernelSource`` with a ``@triton.jit`` function of the learner's
            own, which fixes its tile and its types itself.
        gpu: a ``Gpu`` or its name in ``GPUS``.
        dtype: of every tensor: ``"fp16"``, ``"bf16"`` or ``"fp32"``.
        tile: powers of two: ``(block_m, block_n)`` of the chain and the epilogue, ``(block,)`` of a row kernel whose
            row is as wide, ``(block_m, block_n, block_k)`` of the linear layer. By default, as the launch's own.
        num_warps: a power of two up to 32; num_stages: 1 to 8. By default the launch's own.
        sizes_multiple_of_16: whether sizes and strides are: a launch tells the compiler, which then loads wide.
        first, last: the chain's operators, positions in ``launch.CHAIN_OPERATORS``.
        activation: of the epilogue and the linear layer.
        masked: whether tiles of the linear layer reach beyond an edge, as they do for sizes that are not multiples
            of the tile's; sizes that are not multiples of 16 always need it.
        limit_seconds: after which a compile is given up, more than 0.

    Raises:
        ValueError: an argument is of the wrong type or out of range. What the compiler refuses is a report.
    """
    found = _gpu(gpu)
    require_bool("sizes_multiple_of_16", sizes_multiple_of_16)
    require_bool("masked", masked)
    limit = require_real("limit_seconds", limit_seconds, above=0)
    if isinstance(kernel, KernelSource):
        question = _own_question(kernel, found, num_warps, num_stages, sizes_multiple_of_16)
    else:
        require_choice("kernel", kernel, KERNELS)
        require_choice("dtype", dtype, ELEMENT_BYTES)
        require_choice("activation", activation, ACTIVATIONS)
        require_int("first", first, 0, len(CHAIN_OPERATORS) - 1)
        require_int("last", last, first, len(CHAIN_OPERATORS) - 1)
        chosen, warps, stages = _launch_of(kernel, found, dtype, tile, num_warps, num_stages)
        arguments: dict[str, Any] = {"dtype": dtype, "tile": list(chosen)}
        arguments |= {"first": first, "last": last} if kernel == "chain" else {}
        arguments |= {"activation": activation} if kernel in ("linear", "epilogue") else {}
        arguments |= {"masked": masked or not sizes_multiple_of_16} if kernel == "linear" else {}
        report_of = CompileReport(kernel, found, dtype, chosen, warps, stages, sizes_multiple_of_16, "no_triton")
        question = report_of, _request(report_of, kernel, arguments)
    return _answered(*question, limit)


def default_launch(
    kernel: KernelName, gpu: Gpu, dtype: DtypeName, tile: tuple[int, ...] | None = None
) -> tuple[tuple[int, ...], int, int]:
    """Tile, warps and stages of the launch on a wide tensor; with a ``tile``, the warps that suit it."""
    if kernel in ("chain", "epilogue"):
        pair = None if tile is None else (tile[0], tile[1])
        elementwise = elementwise_launch(WIDE, WIDE, pair)
        return elementwise.tile, elementwise.num_warps, elementwise.num_stages
    if kernel in ("rmsnorm", "softmax"):
        row = row_launch(1, WIDE, None if tile is None else tile[0])
        return row.tile, row.num_warps, row.num_stages
    configs = likely_configs(gpu, dtype, WIDE, WIDE, WIDE)
    config = next((config for config in configs if tile in (None, config.tile)), configs[0])
    return tile or config.tile, config.num_warps, config.num_stages


def triton_version() -> str | None:
    """The installed Triton's version, without importing it; ``None`` where there is none."""
    try:
        spec = importlib.util.find_spec("triton")
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:  # a mere folder of that name has no origin
        return None
    for name in ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-windows"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "?"


# -- the question ------------------------------------------------------------------------------------------------


def _gpu(gpu: object) -> Gpu:
    if isinstance(gpu, str):
        require_choice("gpu", gpu, GPUS)
        return GPUS[gpu]
    return require_gpu("gpu", gpu)


def _launch_of(
    kernel: KernelName,
    gpu: Gpu,
    dtype: DtypeName,
    tile: object,
    num_warps: int | None,
    num_stages: int | None,
) -> tuple[tuple[int, ...], int, int]:
    sides = {"chain": 2, "epilogue": 2, "rmsnorm": 1, "softmax": 1, "linear": 3}[kernel]
    given = None if tile is None else require_tile(tile, sides)
    if kernel == "linear" and given is not None and min(given) < _SMALLEST_SIDE:
        raise bad_argument(
            "tile",
            zh=f"tl.dot 要求每个边长不小于 {_SMALLEST_SIDE}，收到 {min(given)}",
            en=f"tl.dot takes no side below {_SMALLEST_SIDE}, got {min(given)}",
        )
    chosen, warps, stages = default_launch(kernel, gpu, dtype, given)
    return chosen, _warps(num_warps, warps), _stages(num_stages, stages)


def _warps(num_warps: int | None, default: int) -> int:
    if num_warps is None:
        return default
    warps = require_int("num_warps", num_warps, 1, _MOST_WARPS)
    if warps & (warps - 1):
        raise bad_argument("num_warps", zh=f"{warps} 不是 2 的幂", en=f"{warps} is not a power of two")
    return warps


def _stages(num_stages: int | None, default: int) -> int:
    return default if num_stages is None else require_int("num_stages", num_stages, 1, _MOST_STAGES)


def _own_question(
    source: KernelSource, gpu: Gpu, num_warps: int | None, num_stages: int | None, multiple_of_16: bool
) -> tuple[CompileReport, Request]:
    try:
        module = gather_source(source.function)
    except SourceProblemError as problem:
        raise bad_argument("kernel", zh=problem.words.zh.rstrip("。"), en=problem.words.en.rstrip(".")) from problem
    for name, value in source.constexprs.items():
        if not isinstance(value, (bool, int, float, str)):
            raise bad_argument(
                name, zh="需要数字、字符串或 True/False", en="it must be a number, a string, True or False"
            )
    tile = tuple(
        value
        for name, value in source.constexprs.items()
        if "BLOCK" in name.upper() and isinstance(value, int) and not isinstance(value, bool)
    )
    pointed = {kind.lstrip("*") for kind in source.signature.values() if kind.startswith("*")}
    warps, stages = _warps(num_warps, source.num_warps), _stages(num_stages, source.num_stages)
    dtype = ", ".join(sorted(pointed))
    report_of = CompileReport(module.name, gpu, dtype, tile, warps, stages, multiple_of_16, "no_triton")
    own = {
        "text": module.text,
        "function": module.name,
        "signature": source.signature,
        "constexprs": source.constexprs,
        "pointers": list(source.pointers),
        "sizes": list(source.sizes),
    }
    return report_of, _request(report_of, own, {})


def _request(report_of: CompileReport, kernel: Any, arguments: dict[str, Any]) -> Request:
    return {
        "kernel": kernel,
        "arguments": arguments,
        "num_warps": report_of.num_warps,
        "num_stages": report_of.num_stages,
        "multiple_of_16": report_of.sizes_multiple_of_16,
        "target": report_of.gpu.target,
        "warp_size": report_of.gpu.warp_size,
    }


# -- the answer --------------------------------------------------------------------------------------------------


def _answered(question: CompileReport, request: Request, limit: float) -> CompileReport:
    gpu, version = question.gpu, triton_version()
    if "bf16" in question.dtype and not gpu.bf16:
        return dataclasses.replace(question, status="unsupported", detail=NO_BF16.format(gpu=gpu.name))
    if question.threads_per_block > gpu.threads_per_block:
        threads, most = question.threads_per_block, gpu.threads_per_block
        detail = TOO_MANY_THREADS.format(threads=f"{threads:,}", gpu=gpu.name, limit=f"{most:,}")
        return dataclasses.replace(question, status="unsupported", detail=detail)
    if version is None:
        return dataclasses.replace(question, status="no_triton", detail=NOT_COMPILED)
    reply = _reply(request, version, limit)
    if reply["status"] == "timeout":
        return dataclasses.replace(
            question, status="timeout", detail=TIMED_OUT.format(limit=limit), triton_version=version
        )
    if reply["status"] != "ok":
        detail = compiler_error(str(reply.get("error") or "?"))
        return dataclasses.replace(question, status="failed", detail=detail, triton_version=version)
    over = reply["shared_bytes"] > gpu.shared_bytes_per_block
    return dataclasses.replace(
        question,
        status="over_shared" if over else "ok",
        registers_per_thread=_known(reply["registers"]),
        spill_bytes=_known(reply["spill_bytes"]),
        shared_bytes=reply["shared_bytes"],
        instruction_family=reply["family"],
        load_bytes=reply["load_bytes"],
        compile_seconds=reply["seconds"],
        triton_version=version,
    )


def _known(figure: int) -> int | None:
    return None if figure == MISSING_FIGURE else figure


def _reply(request: Request, version: str, limit: float) -> Mapping[str, Any]:
    """From the cache, else from the compiler. A failure may be the machine's and is not kept; giving up is kept for
    this process, lest a panel wait for it again."""
    cache, key = shared_cache(), _key(request, version)
    kept = cache.get(key)
    if kept is not None:
        if _is_sound(kept):
            return kept
        cache.drop(key)
    given_up = cache.get(f"{key}-given-up")
    if given_up is not None and given_up.get("limit", 0) >= limit:
        return {"status": "timeout"}
    reply = shared_worker().compile(request, limit)
    if _is_sound(reply):
        cache.put(key, reply)
    elif reply.get("status") == "ok":
        return {"status": "failed", "error": "an answer without figures"}
    elif reply.get("status") == "timeout":
        cache.put(f"{key}-given-up", {"limit": limit}, on_disk=False)
    return reply


def _is_sound(reply: Mapping[str, Any]) -> bool:
    """Whether this is a set of figures: a file in a folder of the learner's may hold anything."""
    integers = ("registers", "spill_bytes", "shared_bytes", "load_bytes")
    return (
        reply.get("status") == "ok"
        and all(type(reply.get(name)) is int and reply[name] >= MISSING_FIGURE for name in integers)
        and type(reply.get("seconds")) is float
        and reply.get("family") in FAMILY_WORDS
    )


def _key(request: Request, version: str) -> str:
    said = json.dumps([request, version, _own_sources()], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


# All that decides what is compiled and how it is read.
_DECIDING = (
    "activations",
    "chain",
    "compiler/child",
    "compiler/sources",
    "epilogue",
    "launch",
    "linear",
    "row",
    "source",
)


@functools.cache
def _own_sources() -> str:
    digest = hashlib.sha256()
    for name in _DECIDING:
        digest.update((Path(__file__).parents[1] / f"{name}.py").read_bytes())
    return digest.hexdigest()


# -- this kernel on eight GPUs -----------------------------------------------------------------------------------

_COLUMNS = (
    Text(zh="GPU", en="GPU"),
    Text(zh="数据块，warp 数", en="tile, warps"),
    Text(zh="寄存器", en="registers"),
    Text(zh="溢出", en="spill"),
    Text(zh="共享内存 / 上限", en="shared / limit"),
    Text(zh="线程块/SM", en="blocks/SM"),
    Text(zh="指令", en="instructions"),
)
_PROGRESS = Text(zh="编译", en="compiling")
_NOTE = Text(
    zh="{kernel}，{dtype}，{sizes}，Triton {version} 编译，没有用到 GPU。mma、wgmma、tcgen05 是张量核心的指令，mfma 是 AMD 矩阵核心的，"
    "fma 是普通乘加。括号里是占用率；AMD 的占用率规则不同，没有计算。",
    en="{kernel}, {dtype}, {sizes}, compiled by Triton {version} without a GPU. mma, wgmma and tcgen05 run on tensor "
    "cores, mfma on AMD's matrix cores, fma is a plain multiply-add. Occupancy in brackets; AMD's rules for it differ "
    "and are not modelled.",
)
_SIZES = {
    True: Text(zh="大小是 16 的倍数", en="sizes multiples of 16"),
    False: Text(zh="大小不是 16 的倍数", en="sizes not multiples of 16"),
}


def report_table(
    kernel: KernelName | KernelSource,
    dtype: DtypeName = "fp16",
    tile: Sequence[int] | None = None,
    num_warps: int | None = None,
    num_stages: int | None = None,
    sizes_multiple_of_16: bool = True,
    *,
    gpus: Iterable[Gpu | str] | None = None,
    progress: bool = True,
    **options: Any,
) -> Shown:
    """The same kernel compiled for every GPU of the course: a row each, the reason where there are no figures.

    Args:
        kernel, dtype, tile, num_warps, num_stages, sizes_multiple_of_16: as in ``compile_report``.
        gpus: by default all of ``GPUS``.
        progress: show a progress bar, on standard output.
        options: further arguments of ``compile_report``, by name.

    Raises:
        ValueError: as ``compile_report``.
    """
    require_bool("progress", progress)
    chosen = [_gpu(gpu) for gpu in (GPUS.values() if gpus is None else gpus)]
    reports = [
        compile_report(kernel, gpu, dtype, tile, num_warps, num_stages, sizes_multiple_of_16, **options)
        for gpu in _with_progress(chosen, progress)
    ]
    return gpu_table(reports)


def gpu_table(reports: Sequence[CompileReport]) -> Shown:
    """Reports of one kernel as a table; those without figures say why beneath it."""
    rows, words = [], []
    for entry in reports:
        rows.append(_gpu_row(entry))
        if entry.status != "ok":
            words.append(_WHY.format(gpu=entry.gpu.name, why=entry.verdict))
    if not reports:
        return report(Table([str(column) for column in _COLUMNS], []))
    one = reports[0]
    versions = [entry.triton_version for entry in reports if entry.triton_version]
    note = _NOTE.format(
        kernel=one.kernel,
        dtype=one.dtype,
        sizes=_SIZES[one.sizes_multiple_of_16],
        version=versions[0] if versions else UNKNOWN,
    )
    return report(Table([str(column) for column in _COLUMNS], rows, note=str(note) if versions else ""), words)


_WHY = Text(zh="{gpu}：{why}。", en="{gpu}: {why}.")


def _gpu_row(entry: CompileReport) -> list[str]:
    setting = f"{tile_words(entry.tile)}, {entry.num_warps}"
    name = entry.gpu.name
    if not entry.compiled:
        return [name, setting, *([UNKNOWN] * 5)]
    shared = f"{format_bytes(entry.shared_bytes or 0).removesuffix(' KiB')} / {format_bytes(entry.gpu.shared_bytes_per_block)}"
    return [
        name,
        setting,
        UNKNOWN if entry.registers_per_thread is None else str(entry.registers_per_thread),
        UNKNOWN if entry.spill_bytes is None else format_bytes(entry.spill_bytes),
        shared,
        entry.blocks_words,
        entry.instruction_family or UNKNOWN,
    ]


def _with_progress(items: list[_T], progress: bool) -> Iterator[_T]:
    try:
        from tqdm import tqdm
    except ImportError:
        return iter(items)
    # The same characters at every run, whatever the machine: a stored notebook is compared with a new one.
    return iter(
        tqdm(
            items,
            desc=str(_PROGRESS),
            file=sys.stdout,
            leave=False,
            disable=not progress,
            bar_format="{desc} {bar:24} {n_fmt}/{total_fmt}",
            mininterval=0,
            maxinterval=float("inf"),
            ascii=False,
            ncols=80,
        )
    )
