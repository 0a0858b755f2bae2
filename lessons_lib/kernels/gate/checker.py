"""Lesson 05: the checker of the kernel that the learner writes, ``y = silu(gate + bias) * up``.

The kernel runs in a process of its own, in Triton's interpreter, where every load and store is watched; then on the GPU
where there is one, else it is compiled for one, because the interpreter takes Python that a compiler does not.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessons_lib.base.gpus import T4
from lessons_lib.base.text import Text, sentences
from lessons_lib.base.validate import require_real
from lessons_lib.kernels.cell_source import CellSource, SourceProblemError, gather_source, underlying_function
from lessons_lib.kernels.child_process import end_group, exit_words
from lessons_lib.kernels.compiler.report import compile_report
from lessons_lib.kernels.gate.cases import CASES, PARAMETERS
from lessons_lib.kernels.gate.child import KERNEL_FILE, REPORT_FILE, REQUEST_FILE, Report, Request
from lessons_lib.kernels.gate.words import (
    CRASHED,
    DONE,
    FELL_SILENT,
    HINTS,
    NO_JIT,
    NO_START,
    ON_GPU,
    OPEN,
    OTHER_PARAMETERS,
    RIGHT,
    case_words,
    compiler_words,
    finding_words,
    printed_words,
    raised_words,
)
from lessons_lib.kernels.mode import TritonSetup, prepare_triton
from lessons_lib.kernels.source import KernelSource
from lessons_lib.show.exercise import Feedback, Status, note_feedback

if TYPE_CHECKING:
    import torch

_MAIN = """
import sys
sys.path[:] = sys.argv[2:]
from pathlib import Path
from lessons_lib.kernels.gate.child import check
check(Path(sys.argv[1]))
"""


def gate_kernel_reference(gate: torch.Tensor, bias: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """``silu(gate + bias) * up`` as three PyTorch operators; gate and up ``[rows, columns]``, bias ``[columns]``."""
    from torch.nn import functional

    return functional.silu(gate + bias) * up


def check_bias_silu_gate(kernel: object, *, time_limit: float = 60.0) -> Feedback:
    """Check the learner's ``bias_silu_gate`` kernel; takes a few seconds; never raises for what the kernel does.

    The checker launches ``rows * ceil(columns / BLOCK)`` programs, each one BLOCK of one row, as
    ``kernel[(programs,)](gate, bias, up, y, rows, columns, gate_stride, up_stride, y_stride, BLOCK=...)``, with gate, up
    and y ``[rows, columns]`` of one dtype, strides in elements, and bias ``[columns]``.

    Args:
        kernel: a ``@triton.jit`` function with the parameters ``gate_cases.PARAMETERS``, written in a cell; helper
            functions and constants may stand in other cells. ``None`` or a skeleton that stores nothing is not done.
        time_limit: seconds, starting a process included, after which it is given up.

    Raises:
        ValueError: ``time_limit`` is no number above 0.
    """
    limit = require_real("time_limit", time_limit, above=0)
    return note_feedback(_feedback(kernel, limit), "check_bias_silu_gate", "05")


def _feedback(kernel: object, limit: float) -> Feedback:
    if kernel is None:
        return _say("open", OPEN)
    try:
        source = gather_source(kernel)
    except SourceProblemError as problem:
        return _say("wrong", problem.words)
    if _is_skeleton(source):
        return _say("open", OPEN)
    setup = prepare_triton()
    if setup.mode == "none":
        return _say("open", setup.reason)
    problem_words = _signature_problem(kernel)
    if problem_words is not None:
        return _say("wrong", problem_words)
    return _checked(kernel, source, setup, time.monotonic() + limit, limit)


def _checked(kernel: object, source: CellSource, setup: TritonSetup, deadline: float, limit: float) -> Feedback:
    problem = _run(source, Request(name=source.name, device="cpu", bf16=True), deadline, limit)
    if problem is not None:
        return problem
    if setup.on_gpu:
        problem = _run(source, Request(name=source.name, device="cuda", bf16=setup.bf16), deadline, limit)
        if problem is not None:
            return Feedback(problem.status, sentences(ON_GPU, problem.words), problem.hints)
    else:
        refusal = _compiler_refusal(kernel, max(1.0, deadline - time.monotonic()))
        if refusal is not None:
            return _say("wrong", *compiler_words(refusal))
    return Feedback("right", sentences(RIGHT.format(cases=len(CASES)), DONE))


def _compiler_refusal(kernel: object, limit_seconds: float) -> Text | None:
    """What the compiler says against the kernel; ``None`` where it compiles, or where nothing compiles here."""
    compiled = compile_report(_as_launched(kernel), T4, limit_seconds=limit_seconds)
    if compiled.status != "failed" or not compile_report("epilogue", T4, limit_seconds=limit_seconds).compiled:
        return None
    return compiled.detail


def _say(status: Status, *words: object) -> Feedback:
    return Feedback(status, sentences(*words), tuple(map(str, HINTS)))


# -- before it runs ----------------------------------------------------------------------------------------------


def _is_skeleton(source: CellSource) -> bool:
    """Whether a ``...`` is still to be filled in, or nothing in the kernel or its helpers stores."""
    nodes = list(ast.walk(ast.parse(source.text)))
    values = [node.value for node in nodes if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign))]
    blank = any(isinstance(value, ast.Constant) and value.value is ... for value in values)
    return blank or not any(
        isinstance(node, ast.Call)
        and isinstance(node.func, (ast.Attribute, ast.Name))
        and _called(node.func).startswith(("store", "atomic_"))
        for node in nodes
    )


def _called(function: ast.Attribute | ast.Name) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id


def _signature_problem(kernel: object) -> Text | None:
    if inspect.isfunction(kernel) or not type(kernel).__module__.startswith("triton."):
        return NO_JIT
    function = underlying_function(kernel)
    parameters = {} if function is None else dict(inspect.signature(function).parameters)
    if tuple(parameters) != PARAMETERS or "constexpr" not in str(parameters["BLOCK"].annotation):
        wanted = ", ".join([*PARAMETERS[:-1], "BLOCK: tl.constexpr"])
        return OTHER_PARAMETERS.format(wanted=wanted)
    return None


def _as_launched(kernel: object) -> KernelSource:
    pointers, sizes = PARAMETERS[:4], PARAMETERS[4:-1]
    signature = dict.fromkeys(pointers, "*fp16") | dict.fromkeys(sizes, "i32")
    return KernelSource(kernel, signature, {"BLOCK": 1024}, pointers, sizes)


# -- the other process -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ended:
    """What a process left: its report, its exit code (``None``: it was given up) and the end of its stderr."""

    reports: tuple[Report, ...]
    code: int | None
    last_words: str


def _run(source: CellSource, request: Request, deadline: float, limit: float) -> Feedback | None:
    """Every case in a process of its own; ``None`` where all are right."""
    ended = _in_child(source, request, deadline)
    last: Mapping[str, Any] = ended.reports[-1] if ended.reports else {}
    number = next((report["case"] for report in reversed(ended.reports) if "case" in report), None)
    where = None if number is None else case_words(CASES[number])
    printed = printed_words(last.get("printed", ""))
    if "finding" in last and last["finding"] is None:
        return None
    if "finding" in last and number is not None:
        return _say("wrong", *finding_words(last["finding"], CASES[number]), where, *printed)
    if "error" in last:
        return _say("wrong", *raised_words(last["error"], source), *([where] if where else []), *printed)
    if ended.code is None:
        return _say("wrong", FELL_SILENT.format(limit=f"{limit:g}"), *([where] if where else []))
    if where is None:
        return _say("open", NO_START.format(error=ended.last_words or f"exit status {ended.code}"))
    return _say("wrong", CRASHED.format(how=exit_words(ended.code)), where)


def _in_child(source: CellSource, request: Request, deadline: float) -> _Ended:
    with tempfile.TemporaryDirectory(prefix="lessons-checker-") as name:
        folder = Path(name)
        (folder / KERNEL_FILE).write_text(source.text, encoding="utf-8")
        (folder / REQUEST_FILE).write_text(json.dumps(request), encoding="utf-8")
        with (folder / "stderr").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, str(folder), *(entry or str(Path.cwd()) for entry in sys.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=folder,
                env=_environment(request["device"]),
                start_new_session=True,
            )
        code: int | None = None
        try:
            code = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        finally:
            end_group(process)
        said = (folder / "stderr").read_text(encoding="utf-8", errors="replace").strip()
        return _Ended(_read_reports(folder / REPORT_FILE), code, said.rpartition("\n")[2][:200])


def _environment(device: str) -> dict[str, str]:
    environment = os.environ | {"TRITON_DEFAULT_FP_FUSION": os.environ.get("TRITON_DEFAULT_FP_FUSION", "1")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}
    if device == "cuda":
        return environment | {"TRITON_INTERPRET": "0"}
    # No driver is asked, and one thread is enough for tensors this small.
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    return environment | hidden | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}


def _read_reports(path: Path) -> tuple[Report, ...]:
    """The lines that are whole: a process that was ended may have been writing."""
    reports: list[Report] = []
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text(encoding="utf-8").splitlines():
            reports.append(json.loads(line))
    return tuple(reports)
