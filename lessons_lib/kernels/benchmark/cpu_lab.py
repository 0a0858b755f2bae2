"""The lesson's measurement where there is no GPU: the chain by PyTorch's operators, and by ``torch.compile``, on a CPU.

Not Triton: its interpreter is for results. But the same four operators, the same two plans and the same arithmetic of
bytes, with a real compiler that fuses them into one loop.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from lessons_lib.base.environment import free_memory_bytes
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB
from lessons_lib.base.validate import bad_argument, require_bool, require_int, require_real
from lessons_lib.kernels.benchmark.cpu_measurement import CpuMeasurement
from lessons_lib.kernels.benchmark.measuring import Action, CpuStopwatch, measure_rounds
from lessons_lib.kernels.launch import CHAIN_OPERATORS
from lessons_lib.kernels.mode import first_line
from lessons_lib.traffic.lab import affordable_bytes, with_tqdm

if TYPE_CHECKING:
    from torch import Tensor

_COLUMNS = 1024
_ROW_BYTES = 4 * _COLUMNS
_LARGEST_DEVIATION = 1e-5  # from float64, of values up to about 30 in float32
_CHECKED_ROWS = 1024
_MEASURING = Text(zh="测量中", en="Measuring")


def measure_on_cpu(
    tensor_bytes: int = 64 * MIB, *, compiled: bool = True, progress: bool = True, budget_seconds: float = 6.0
) -> CpuMeasurement | None:
    """Time the chain on this CPU: a copy, each operator alone, the four in a row, and one compiled loop.

    Float32 ``[M, 1024]``, all outputs preallocated; every part once a round, round after round, by the clock on the
    wall, for PyTorch works in threads. The tensor is halved, down to 8 MiB, while free memory is short. The first use
    of the compiler in a process takes some seconds, and it needs a C++ compiler.

    Args:
        tensor_bytes: of each tensor, a multiple of 4 KiB, at least 4 KiB.
        compiled: whether to call the compiler.
        progress: show a progress bar, on standard output.
        budget_seconds: rounds stop being added when they would take longer; five are always made.

    Returns:
        ``None`` where PyTorch is not installed.

    Raises:
        ValueError: an argument is of the wrong type or out of range.
    """
    requested = require_int("tensor_bytes", tensor_bytes, _ROW_BYTES)
    if requested % _ROW_BYTES:
        raise bad_argument("tensor_bytes", zh="必须是 4096 的倍数", en="it must be a multiple of 4096")
    compiled, progress = require_bool("compiled", compiled), require_bool("progress", progress)
    budget_seconds = require_real("budget_seconds", budget_seconds, above=0)
    try:
        import torch
    except ImportError:
        return None

    used = max(_ROW_BYTES, affordable_bytes(requested, free_memory_bytes()) // _ROW_BYTES * _ROW_BYTES)
    with torch.no_grad():
        chain = _Chain(torch, used // _ROW_BYTES)
        problem, compile_seconds = chain.compile() if compiled else (_NOT_ASKED, None)
        samples = measure_rounds(
            chain.parts(),
            CpuStopwatch(),
            fewest=5,
            most=25,
            budget_seconds=budget_seconds,
            progress=with_tqdm(str(_MEASURING), progress),
        )
        right = chain.outputs_right()
    spread = {name: Spread.of(seconds) for name, seconds in samples.items()}
    ratios = [a / b for a, b in zip(samples["unfused"], samples.get("compiled", ()), strict=False)]
    return CpuMeasurement(
        requested_bytes=requested,
        tensor_bytes=used,
        threads=torch.get_num_threads(),
        copy=spread["copy"],
        operators=tuple(spread[name] for name in CHAIN_OPERATORS),
        unfused=spread["unfused"],
        compiled=spread.get("compiled"),
        compile_seconds=compile_seconds,
        speedup=Spread.of(ratios) if ratios else None,
        outputs_right=right,
        problem=problem,
    )


class _Chain:
    """The tensors, and every way to run over them."""

    def __init__(self, torch: Any, rows: int) -> None:
        self.torch = torch
        generator = torch.Generator().manual_seed(0)
        self.x, self.residual = (torch.randn(rows, _COLUMNS, generator=generator) for _ in range(2))
        self.bias, self.scale = (torch.randn(_COLUMNS, generator=generator) for _ in range(2))
        # Written once: no page is new when the clock runs.
        self.t1, self.t2, self.t3, self.y = (torch.ones(rows, _COLUMNS) for _ in range(4))
        self.compiled: Callable[..., object] | None = None

    def operators(self) -> dict[str, Action]:
        """The four, each into a tensor of its own."""
        torch = self.torch
        gelu = torch.ops.aten.gelu.out
        actions: tuple[Action, ...] = (
            lambda: torch.add(self.x, self.bias, out=self.t1),
            lambda: gelu(self.t1, approximate="tanh", out=self.t2),
            lambda: torch.mul(self.t2, self.scale, out=self.t3),
            lambda: torch.add(self.residual, self.t3, out=self.y),
        )
        return dict(zip(CHAIN_OPERATORS, actions, strict=True))

    def parts(self) -> dict[str, Action]:
        """Everything that is timed, by name."""
        parts: dict[str, Action] = {"copy": lambda: self.torch.mul(self.x, 1.0, out=self.t1)}
        parts |= self.operators() | {"unfused": self.run_operators}
        return parts | ({"compiled": self.run_compiled} if self.compiled is not None else {})

    def compile(self) -> tuple[Text | None, float | None]:
        """Compile the chain into one loop: (what was in the way, seconds)."""
        start = perf_counter()
        try:
            settings: Any = importlib.import_module("torch._inductor.config")
            # One thread: a pool of compiling processes would stay and take the processor from what is timed.
            with settings.patch(compile_threads=1):
                self.compiled = self.torch.compile(_chain_into, dynamic=False, fullgraph=True)
                self.run_compiled()
        except Exception as error:  # no C++ compiler, no such backend on this system, a Python too new for it, ...
            self.compiled = None
            return why_not_compiled(error), None
        return None, perf_counter() - start

    def run_operators(self) -> None:
        for operator in self.operators().values():
            operator()

    def run_compiled(self) -> None:
        if self.compiled is not None:
            self.compiled(self.x, self.bias, self.scale, self.residual, self.y)

    def outputs_right(self) -> bool:
        """Every way once more, into memory full of NaN, against float64."""
        ways = [self.run_operators, *([self.run_compiled] if self.compiled is not None else [])]
        for way in ways:
            for tensor in (self.t1, self.t2, self.t3, self.y):
                tensor.fill_(float("nan"))
            way()
            if not self._agrees():
                return False
        return True

    def _agrees(self) -> bool:
        from lessons_lib.kernels.benchmark.workloads import gelu_tanh_64

        for start in range(0, len(self.y), _CHECKED_ROWS):
            rows = slice(start, start + _CHECKED_ROWS)
            activated = gelu_tanh_64(self.x[rows].double() + self.bias.double())
            expected = self.residual[rows].double() + self.scale.double() * activated
            if not bool(((self.y[rows].double() - expected).abs() <= _LARGEST_DEVIATION).all()):  # NaN is not
                return False
        return True


def _chain_into(x: Tensor, bias: Tensor, scale: Tensor, residual: Tensor, y: Tensor) -> None:
    """The chain as a compiler is given it, into ``y``: a fresh output each call would time the system's memory."""
    from torch.nn.functional import gelu

    y.copy_(residual + scale * gelu(x + bias, approximate="tanh"))


def why_not_compiled(error: BaseException) -> Text:
    """What a failure of the compiler means to a learner."""
    causes: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 10:
        causes.append(f"{type(cause).__name__} {cause}")
        cause = cause.__cause__ or cause.__context__
    if any("InvalidCxxCompiler" in words or "No working C++ compiler" in words for words in causes):
        return _NO_COMPILER[sys.platform == "win32"]
    return _FAILED.format(error=first_line(error))


_NO_COMPILER = {
    False: Text(
        zh="torch.compile 要用 C++ 编译器（g++ 或 clang++），这里没有；装上之后再运行这一格",
        en="torch.compile needs a C++ compiler (g++ or clang++) and finds none: install one and run this cell again",
    ),
    True: Text(
        zh="torch.compile 要用 Visual C++ 的编译器（cl），这里没有",
        en="torch.compile needs Visual C++'s compiler (cl) and finds none",
    ),
}
_FAILED = Text(zh="torch.compile 在这里编译不了（{error}）", en="torch.compile cannot compile here ({error})")
_NOT_ASKED = Text(zh="这次没有编译", en="nothing was compiled this time")
