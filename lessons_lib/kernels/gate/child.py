"""The process in which a learner's kernel runs: it may crash, hang or exit without taking the notebook along.

``check(FOLDER)``: ``FOLDER/request.json`` names the kernel in ``FOLDER/cell.py`` and the device. One JSON object a line
goes to ``FOLDER/report.jsonl``: ``{"case": 0}`` when a case begins and, at the
end, ``{"finding": ...}`` with what is wrong, or ``null``. What the kernel prints is kept for the first fault.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from lessons_lib.kernels.gate.cases import CASES, GateCase
from lessons_lib.kernels.gate.diagnosis import Observation, diagnose
from lessons_lib.kernels.gate.memory import Access, MemoryMap
from lessons_lib.kernels.gate.trace import Trace, probe, tracing

if TYPE_CHECKING:
    import torch

KERNEL_FILE, REQUEST_FILE, REPORT_FILE = "cell.py", "request.json", "report.jsonl"

_LONGEST_MESSAGE = 300
_LONGEST_PRINT = 400
# NaNs that no arithmetic makes, as integers of the element's size: what y holds before, and what the gaps between rows
# and the guard bands hold. They differ, for arithmetic on one NaN may give the same NaN.
_POISON_Y = {"fp32": 0x7FC5A5A5, "fp16": 0x7E5A, "bf16": 0x7FDA}
_POISON_BESIDE = {"fp32": 0x7FC3C3C3, "fp16": 0x7E3C, "bf16": 0x7FCC}


class Request(TypedDict):
    """``name``: the kernel; ``device``: ``"cpu"`` (the interpreter) or ``"cuda"``; ``bf16``: whether to try it."""

    name: str
    device: str
    bf16: bool


class Raised(TypedDict):
    """An error out of the learner's code: ``line`` of ``cell.py`` (0: unknown), ``program`` (-1: unknown)."""

    kind: str
    message: str
    line: int
    program: int


class Report(TypedDict, total=False):
    """One line. ``finding``: of ``gate_diagnosis``; ``error``: what was raised instead of a result."""

    case: int
    finding: dict[str, Any] | None
    error: Raised
    printed: str


def check(folder: Path) -> None:
    """Run every case until one is wrong, and say so in the report."""
    request: Request = json.loads((folder / REQUEST_FILE).read_text(encoding="utf-8"))
    with (folder / REPORT_FILE).open("a", encoding="utf-8") as file:
        for line in _reports(request, folder / KERNEL_FILE):
            file.write(json.dumps(line) + "\n")
            file.flush()


def _reports(request: Request, path: Path) -> Iterator[Report]:
    printed = _FirstWords()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            kernel = _load(path, request["name"])
        except BaseException as error:  # SystemExit too: it is the learner's
            yield {"error": _raised(error, path, -1)}
            return
        watched = request["device"] == "cpu" and probe()
        narrow: list[Report] = []
        for number, case in enumerate(CASES):
            if case.dtype == "bf16" and not request["bf16"]:
                continue
            yield {"case": number}
            outcome = _run(kernel, case, request["device"], watched, path)
            finding = diagnose(outcome) if isinstance(outcome, Observation) else None
            if not isinstance(outcome, Observation):
                yield {"error": outcome, "printed": printed.words}
                return
            if finding is not None and finding.fault != "narrow":
                yield {"finding": asdict(finding), "printed": printed.words}
                return
            if finding is not None:  # worth saying only once every result is right
                narrow += [{"case": number}, {"finding": asdict(finding)}]
    yield from narrow[:2] or [{"finding": None}]


def _load(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location("cell", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


# -- one case ----------------------------------------------------------------------------------------------------


def _run(kernel: Any, case: GateCase, device: str, watched: bool, path: Path) -> Observation | Raised:
    memory = MemoryMap(case)
    arena = _filled(memory, device)
    before = _bits(arena).clone()
    trace = Trace(memory, arena.data_ptr(), arena.element_size()) if watched else None
    try:
        with tracing(trace) if trace else contextlib.nullcontext():
            _launch(kernel, memory, arena)
    except BaseException as error:
        if trace is None or trace.violation is None:
            return _raised(error, path, _program(device))
    return _observe(memory, arena, before, trace)


def _filled(memory: MemoryMap, device: str) -> torch.Tensor:
    """The three inputs with their data, and poison everywhere else."""
    import torch

    case = memory.case
    dtypes = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    integers = torch.int32 if case.dtype == "fp32" else torch.int16
    bits = torch.full((memory.size,), _POISON_BESIDE[case.dtype], dtype=integers)
    for index, _ in memory.elements("y", case.y):
        bits[index] = _POISON_Y[case.dtype]
    arena = bits.view(dtypes[case.dtype])
    for index, value in memory.elements("gate", case.gate):
        arena[index] = value
    for index, value in memory.elements("up", case.up):
        arena[index] = value
    for index, value in memory.elements("bias", lambda row, column: case.bias(column)):
        arena[index] = value
    return arena.to(device)


def _launch(kernel: Any, memory: MemoryMap, arena: torch.Tensor) -> None:
    import torch

    case = memory.case
    bias = arena[memory.starts["bias"] :][: case.columns]
    gate, up, y = (
        arena.as_strided((case.rows, case.columns), (case.stride(tensor), 1), memory.starts[tensor])
        for tensor in ("gate", "up", "y")
    )
    strides = case.stride("gate"), case.stride("up"), case.stride("y")
    kernel[(case.programs,)](gate, bias, up, y, case.rows, case.columns, *strides, BLOCK=case.block)
    if arena.is_cuda:
        torch.cuda.synchronize()


def _observe(memory: MemoryMap, arena: torch.Tensor, before: torch.Tensor, trace: Trace | None) -> Observation:
    case = memory.case
    changed = set((_bits(arena) != before).nonzero().reshape(-1).tolist())
    y = {index for index, _ in memory.elements("y", case.y)}
    beside = min(changed - y, default=None)
    written = changed if trace is None else {index for access in trace.accesses for index in _written(access)}
    start, stride = memory.starts["y"], case.stride("y")
    return Observation(
        case,
        got=arena.as_strided((case.rows, case.columns), (stride, 1), start).double().tolist(),
        unwritten=frozenset(divmod(index - start, stride) for index in y - written),
        changed=None if beside is None else memory.place(beside),
        accesses=None if trace is None else tuple(trace.accesses),
        violation=None if trace is None else trace.violation,
        narrow=None if trace is None else trace.narrow,
    )


def _written(access: Access) -> set[int]:
    return set() if access.kind == "load" else access.touched


def _bits(arena: torch.Tensor) -> torch.Tensor:
    """The elements as integers: NaN compares equal to itself."""
    import torch

    return arena.view(torch.int32 if arena.element_size() == 4 else torch.int16)


# -- what the kernel says ----------------------------------------------------------------------------------------


def _raised(error: BaseException, path: Path, program: int) -> Raised:
    """The innermost error, and the last of the learner's own lines on the way to it."""
    lines: list[int] = []
    while True:
        frames = traceback.extract_tb(error.__traceback__)
        lines += [frame.lineno or 0 for frame in frames if frame.filename == str(path)]
        if error.__cause__ is None:
            break
        error = error.__cause__
    return {
        "kind": type(error).__name__,
        "message": str(error).strip()[:_LONGEST_MESSAGE],
        "line": lines[-1] if lines else 0,
        "program": program,
    }


def _program(device: str) -> int:
    """The program that the interpreter is at."""
    from triton.runtime import interpreter

    place = getattr(interpreter.interpreter_builder, "grid_idx", None) if device == "cpu" else None
    return -1 if place is None else int(place[0])


class _FirstWords(io.TextIOBase):
    """Keeps the first words printed and drops the rest: an endless loop may print, too."""

    def __init__(self) -> None:
        self.words = ""

    def writable(self) -> bool:
        return True

    def write(self, words: str) -> int:
        if len(self.words) < _LONGEST_PRINT:
            self.words = (self.words + words)[:_LONGEST_PRINT]
        return len(words)
