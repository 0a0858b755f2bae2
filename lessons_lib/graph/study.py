"""A model to fuse: captured here where PyTorch is, or a recorded block where it is not."""

from __future__ import annotations

import importlib.util
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from lessons_lib.base.gpus import A100
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.base.validate import require_choice
from lessons_lib.graph.capture.capture import FakeSpec, capture, require_function
from lessons_lib.graph.capture.compiler import LIMIT_SECONDS, CompilerUnreadableError, inductor_grouping
from lessons_lib.graph.compiler_groups import CompilerGroups
from lessons_lib.graph.grouping import Cost, cost, eager, unfused
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.recorded import recorded_block, recorded_names
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table

COUNTED_ON = A100  # on which bytes depend where a library reads again the rows that do not fit on chip


@dataclass(frozen=True, eq=False)
class ModelStudy:
    """A model as graphs; displayed, a table of its eager operators and the parts that a compiler may regroup.

    Args:
        name: the function's.
        code: its source; blank where Python does not know it.
        graph: the eager operators: what PyTorch launches without a compiler.
        core: their core-ATen parts.
        compiler: what Inductor did for the CPU; ``None`` where this version of PyTorch does not show it, or not in
            time; ``notes`` say which.
        notes: what to know about it, such as that it was not captured here.
        function: what was captured, and ``examples``, its example inputs; ``None`` for a record.
    """

    name: str
    code: str
    graph: OpGraph
    core: OpGraph
    compiler: CompilerGroups | None
    notes: tuple[Text, ...] = ()
    function: Callable[..., Any] | None = field(default=None, repr=False)
    examples: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def eager_cost(self) -> Cost:
        """What PyTorch moves without a compiler: one kernel for each of its operators, counted by their parts."""
        return cost(self.core, eager(self.core), COUNTED_ON)

    def _shown(self) -> Shown:
        moved = self.eager_cost
        core = unfused(self.core)
        rows = []
        for group in moved.groups:
            first = self.core.op(group.ops[0])
            op = self.graph.op(first.eager or first.name)
            parts = [self.core.op(name) for name in self.core.launching]
            labels = [part.label for part in parts if (part.eager or part.name) == op.name]
            rows.append(
                [op.label, " + ".join(labels), format_bytes(group.read_bytes), format_bytes(group.write_bytes)]
            )
        summary = _SUMMARY.format(
            launches=moved.launches, traffic=format_bytes(moved.total_bytes), parts=len(core), name=self.name
        )
        return report(Table([str(title) for title in _COLUMNS], rows), [summary, *self.notes])

    def __repr__(self) -> str:
        return self._shown().plain

    def _repr_html_(self) -> str:
        return self._shown().html


def study_model(
    function: Callable[..., Any],
    *inputs: Any,
    dtype: str = "float16",
    recorded: str | None = None,
    limit_seconds: float = LIMIT_SECONDS,
) -> ModelStudy:
    """Capture ``function`` and ask Inductor how it would group it; nothing runs and no memory is needed.

    Args:
        function: any callable or ``nn.Module``.
        inputs: for each argument a shape such as ``(4096, 11008)``, a ``fake(shape, dtype)``, a tensor, or a constant.
        dtype: of inputs given as shapes.
        recorded: the block of ``recorded_names()`` to open instead where PyTorch is not installed.
        limit_seconds: elapsed time after which Inductor is stopped, and the study goes on without its groups.

    Raises:
        ValueError: as ``capture``; ``recorded`` is no block.
        MissingPackageError: there is no PyTorch, and ``recorded`` names nothing to open instead.
    """
    require_function(function)
    examples = [FakeSpec(tuple(item), dtype) if _is_shape(item) else item for item in inputs]
    if recorded is not None:
        require_choice("recorded", recorded, recorded_names())
        if importlib.util.find_spec("torch") is None:
            return recorded_study(recorded, instead_of=function)
    captured = capture(function, *examples)
    compiler, notes = None, captured.notes
    try:
        compiler = inductor_grouping(captured, limit_seconds=limit_seconds)
        compiler = replace(compiler, torch=compiler.torch.partition("+")[0])  # "+cpu" tells a learner nothing
    except CompilerUnreadableError as error:
        words = str(error).partition("\n")
        notes += (Text(zh=words[0], en=words[2] or words[0]),)
    graphs = (captured.graph, captured.core)
    return ModelStudy(captured.name, _source(function), *graphs, compiler, notes, function, tuple(examples))


def recorded_study(name: str, *, instead_of: Callable[..., Any] | None = None) -> ModelStudy:
    """A recorded block as a study; with ``instead_of``, whether it stands for another function is said.

    Raises:
        ValueError: there is no such block.
    """
    block = recorded_block(name)
    notes = [_RECORDED.format(version=block.torch)]
    if instead_of is not None and getattr(instead_of, "__name__", "") != name:
        notes.append(_OTHER.format(name=name))
    return ModelStudy(name, block.code, block.graph, block.core, block.compiler, tuple(notes))


def _is_shape(item: object) -> bool:
    """Any integers but ``True`` and ``False``, NumPy's too."""
    return isinstance(item, (tuple, list)) and all(
        isinstance(extent, Integral) and not isinstance(extent, bool) for extent in item
    )


def _source(function: Callable[..., Any]) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):  # typed at a prompt, built in, or an instance of a class
        return ""


_COLUMNS = (
    Text(zh="PyTorch 的算子", en="PyTorch operator"),
    Text(zh="编译器看到的", en="what a compiler sees"),
    Text(zh="读", en="read"),
    Text(zh="写", en="written"),
)
_SUMMARY = Text(
    zh="{name}：不编译时启动 {launches} 次，逻辑读写 {traffic}；编译器可以重新分组的算子有 {parts} 个。",
    en="{name}: without a compiler, launches: {launches}, logical traffic: {traffic}; operators that a compiler "
    "may regroup: {parts}.",
)
_RECORDED = Text(
    zh="这张图不是在这台机器上捕获的，是随课程提供的记录（PyTorch {version}）。",
    en="This graph was not captured on this machine: it is a record that comes with the course (PyTorch {version}).",
)
_OTHER = Text(
    zh="没有 PyTorch，看不了你自己的函数；下面是例子 {name}。装上 PyTorch 再运行这一格，就能看自己的了。",
    en="Without PyTorch your own function cannot be read; this is the example {name}. Install PyTorch and run this "
    "cell again to see your own.",
)
