"""The measurement of lesson 04: a captured function on this CPU, as PyTorch runs it and as ``torch.compile`` does."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from lessons_lib.base.environment import free_memory_bytes
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.base.validate import bad_argument, require_bool, require_real, shown
from lessons_lib.graph.capture.capture import FakeSpec
from lessons_lib.graph.capture.fx_nodes import launches_nothing
from lessons_lib.graph.grouping import cost, unfused
from lessons_lib.graph.study import COUNTED_ON, ModelStudy
from lessons_lib.kernels.benchmark.cpu_lab import why_not_compiled
from lessons_lib.kernels.benchmark.measuring import CpuStopwatch, measure_rounds
from lessons_lib.kernels.benchmark.model_measurement import ModelMeasurement
from lessons_lib.traffic.lab import with_tqdm

_MOST_OPERATIONS = 2e11  # a few seconds a run on a laptop
_MEMORY_MARGIN = 3  # free memory over what the tensors take
_SMALLEST_COPY = 2**20
_MEASURING = Text(zh="测量中", en="Measuring")


def measure_model(
    study: ModelStudy, *, progress: bool = True, budget_seconds: float = 4.0
) -> ModelMeasurement | Text | None:
    """Time the function of a study on this CPU: eager and compiled, round after round, beside a copy.

    Inputs are random and of the shapes that it was captured with. Every run makes fresh outputs, and so does one of the
    two copies that it is compared with.

    Returns:
        ``None`` where the study is a record and nothing can run; a ``Text`` where it cannot run here: it is too large, its
        tensors have no data, or it fails on data.

    Raises:
        ValueError: an argument is of the wrong type or out of range.
    """
    if not isinstance(study, ModelStudy):
        given = shown(study)
        raise bad_argument(
            "study",
            zh=f"需要 study_model(...) 的结果，收到的是 {given}",
            en=f"it must come from study_model(...), got {given}",
        )
    progress = require_bool("progress", progress)
    budget_seconds = require_real("budget_seconds", budget_seconds, above=0)
    if study.function is None:
        return None
    too_large = _too_large(study)
    if too_large is not None:
        return too_large

    import torch

    inputs = _random_inputs(torch, study.examples)
    with torch.no_grad():
        problem = _cannot_run(torch, study, inputs)
        return problem if problem is not None else _measure(torch, study, inputs, progress, budget_seconds)


def _cannot_run(torch: Any, study: ModelStudy, inputs: list[Any]) -> Text | None:
    """Why the function does not run on data; ``None`` where it does."""
    function = study.function
    assert function is not None  # asked before
    weights = [*function.parameters(), *function.buffers()] if isinstance(function, torch.nn.Module) else []
    if any(getattr(item, "is_meta", False) for item in (*torch.utils._pytree.tree_leaves(inputs), *weights)):
        return _NO_DATA.format(name=study.name)
    try:
        function(*inputs)
    except Exception as error:
        said = f"{type(error).__name__}: {error}".partition("\n")[0][:200].replace("{", "(").replace("}", ")")
        return _FAILS.format(name=study.name, said=said)
    return None


def _measure(
    torch: Any, study: ModelStudy, inputs: list[Any], progress: bool, budget_seconds: float
) -> ModelMeasurement:
    function = study.function
    assert function is not None  # asked before
    size = max(_SMALLEST_COPY, *(tensor.bytes for tensor in study.graph.tensors))
    source, target = (torch.ones(size // 4) for _ in range(2))
    plans: dict[str, Callable[[], object]] = {
        "copy": lambda: target.copy_(source),
        "fresh copy": source.clone,
        "eager": lambda: function(*inputs),
    }
    compiled, problem = _compiled(torch, function, inputs)
    if compiled is not None:
        plans["compiled"] = lambda: compiled(*inputs)
    samples = measure_rounds(
        plans,
        CpuStopwatch(),
        fewest=5,
        most=40,
        budget_seconds=budget_seconds,
        progress=with_tqdm(str(_MEASURING), progress),
    )
    spread = {name: Spread.of(seconds) for name, seconds in samples.items()}
    ratios = [a / b for a, b in zip(samples["eager"], samples.get("compiled", ()), strict=False)]
    regrouped = study.compiler.grouping if study.compiler is not None else unfused(study.core)
    eager, fused = study.eager_cost, cost(study.core, regrouped, COUNTED_ON)
    return ModelMeasurement(
        name=study.name,
        eager_bytes=eager.total_bytes,
        eager_written=eager.write_bytes,
        compiled_bytes=fused.total_bytes,
        compiled_written=fused.write_bytes,
        predicted_launches=eager.launches,
        counted_launches=count_operators(torch, lambda: function(*inputs)),
        tensor_bytes=size // 4 * 4,
        copy=spread["copy"],
        fresh_copy=spread["fresh copy"],
        eager=spread["eager"],
        compiled=spread.get("compiled"),
        speedup=Spread.of(ratios) if ratios else None,
        threads=torch.get_num_threads(),
        outputs_agree=_agree(torch, function, compiled, inputs),
        problem=problem,
    )


def _too_large(study: ModelStudy) -> Text | None:
    needed = sum(tensor.bytes for tensor in study.graph.tensors)
    free = free_memory_bytes()
    operations = sum(op.operations for op in study.graph.ops)
    if free is not None and _MEMORY_MARGIN * needed > free:
        return _NO_ROOM.format(name=study.name, needed=format_bytes(needed), free=format_bytes(free))
    if operations > _MOST_OPERATIONS:
        return _NO_TIME.format(name=study.name, operations=f"{operations / 1e9:,.0f}")
    return None


def _random_inputs(torch: Any, examples: tuple[Any, ...]) -> list[Any]:
    generator = torch.Generator().manual_seed(0)

    def made(example: Any) -> Any:
        if not isinstance(example, FakeSpec):
            return example
        dtype = getattr(torch, example.dtype)
        if dtype.is_floating_point:
            return torch.randn(example.shape, generator=generator).to(dtype)
        return torch.zeros(example.shape, dtype=dtype)  # an index that is in range everywhere

    return list(torch.utils._pytree.tree_map(made, list(examples)))


def _compiled(
    torch: Any, function: Callable[..., Any], inputs: list[Any]
) -> tuple[Callable[..., Any] | None, Text | None]:
    try:
        settings: Any = importlib.import_module("torch._inductor.config")
        with settings.patch(compile_threads=1):  # a pool of compiling processes would stay and disturb the clock
            compiled = torch.compile(function, dynamic=False)
            compiled(*inputs)
    except Exception as error:  # no C++ compiler, a Python too new, an operator it does not take, ...
        return None, why_not_compiled(error)
    return compiled, None


def count_operators(torch: Any, action: Callable[[], object]) -> int:
    """Operators that reach PyTorch's backend while ``action`` runs; views, which launch nothing, are left out."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.count += not launches_nothing(func)
            return func(*args, **(kwargs or {}))

    with Counter() as counter:
        action()
    return int(counter.count)


def _agree(
    torch: Any, function: Callable[..., Any], compiled: Callable[..., Any] | None, inputs: list[Any]
) -> bool | None:
    """Both against float64, as far as the function takes it; else against each other. ``None``: it is random."""
    flat = torch.utils._pytree.tree_leaves
    once, again = (flat(function(*inputs)) for _ in range(2))
    if not all(_close(torch, a, b) for a, b in zip(once, again, strict=True)):
        return None
    ways = [flat(function(*inputs)), *([flat(compiled(*inputs))] if compiled is not None else [])]
    try:
        wide = [i.double() if isinstance(i, torch.Tensor) and i.is_floating_point() else i for i in inputs]
        expected = flat(function(*wide))
    except Exception:  # it asks for a dtype of its own
        expected = ways[0]
    return all(_close(torch, got, want) for way in ways for got, want in zip(way, expected, strict=True))


def _close(torch: Any, got: Any, want: Any) -> bool:
    if not isinstance(got, torch.Tensor):
        return bool(got == want)
    if not got.is_floating_point() or not got.numel():
        return bool(torch.equal(got, want))
    step = torch.finfo(got.dtype).eps * 64
    return bool(torch.allclose(got.double(), want.double(), rtol=step, atol=step * float(want.abs().max() + 1)))


_NO_ROOM = Text(
    zh="{name} 的张量共 {needed}，这台机器空闲的内存只有 {free}，就不在这里运行了。换小一点的形状再测。",
    en="The tensors of {name} take {needed}, and this machine has {free} of free memory: it is not run here. Measure it at "
    "smaller shapes.",
)
_NO_DATA = Text(
    zh="{name} 的输入或权重在 meta 设备上，没有数据，没法运行。要测量，请把它们建在 CPU 上。",
    en="Inputs or weights of {name} are on the meta device: they have no data, so it cannot run. To measure it, make them "
    "on the CPU.",
)
_FAILS = Text(
    zh="{name} 在真实数据上运行时出错，没有测量：{said}",
    en="{name} fails on real data, so it is not measured: {said}",
)
_NO_TIME = Text(
    zh="{name} 运行一次要 {operations} GFLOP 浮点运算，在 CPU 上太久，就不在这里运行了。换小一点的形状再测。",
    en="One run of {name} takes {operations} GFLOP, too long for a CPU: it is not run here. Measure it at smaller shapes.",
)
