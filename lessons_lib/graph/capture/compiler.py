"""What ``torch.compile`` does with a captured function: Inductor's kernels as groups of the same operators.

The exported program goes through Inductor up to and including its generated code, under fake tensors: nothing is
compiled or run, so no C++ compiler and no memory is needed. Every private detail of torch's compiler that this floor
uses is in this file; when a torch version changes one, ``CompilerUnreadableError`` says so.

Counted are the functions that the generated code calls (``cpp_fused_...``, ``triton_...``) and its library calls, not
Inductor's internal counter, which counts loop nests.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, require_choice
from lessons_lib.graph.capture.capture import Captured, Program, capture
from lessons_lib.graph.capture.compiler_mapping import CompilerKernel, Origin, groups_from, mapped
from lessons_lib.graph.capture.fx_nodes import is_view, short_name
from lessons_lib.graph.capture.torch_import import quiet, require_torch
from lessons_lib.graph.compiler_groups import CompilerGroups

Device = Literal["cpu", "cuda"]

_LOCK = threading.Lock()
_KNOWN: weakref.WeakKeyDictionary[Program, dict[str, CompilerGroups]] = weakref.WeakKeyDictionary()
_GENERATED = re.compile(r"^\s+(?:\w+ = )?((?:cpp_fused|triton)_\w*?)(?:\.run)?\(", re.MULTILINE)

_UNREADABLE = Text(
    zh="读不出 torch.compile 的分组：PyTorch {version} 的 Inductor 内部和这里用到的不一样（{reason}）。课程里的例子图带有"
    "事先记录的结果；自己的函数请换成 PyTorch 2.11 到 2.13 再试，或者只和 best_grouping 比较。",
    en="The groups of torch.compile cannot be read: Inductor of PyTorch {version} differs inside from what is used here "
    "({reason}). The graphs of the zoo come with recorded results; for a function of your own try PyTorch 2.11 to 2.13, or "
    "compare with best_grouping alone.",
)


class CompilerUnreadableError(RuntimeError):
    """This version of torch does not show its groups in the way that is known here; the message is bilingual."""

    def _render_traceback_(self) -> list[str]:
        return [f"CompilerUnreadableError: {self}"]


def inductor_grouping(
    what: Captured | Callable[..., Any],
    *examples: Any,
    device: Device = "cpu",
    kwargs: Mapping[str, Any] | None = None,
) -> CompilerGroups:
    """How Inductor groups the operators of ``capture(...)``; the first call takes seconds, the same again nothing.

    Args:
        what: what ``capture`` returned; or a function, to be captured on ``examples`` and ``kwargs``.
        device: whose scheduler. ``"cpu"`` works everywhere; ``"cuda"`` needs a GPU, and the two group differently.

    Raises:
        ValueError: ``what`` came from recorded data, ``device`` is not available, or as ``capture``.
        CompilerUnreadableError: this torch does not show its groups.
        MissingPackageError: there is no PyTorch.
    """
    torch = require_torch()
    require_choice("device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise bad_argument(
            "device",
            zh="这里没有 CUDA GPU，问不到 GPU 的调度器；请用 device='cpu'",
            en="there is no CUDA GPU here, so the GPU's scheduler cannot be asked; use device='cpu'",
        )
    captured = what if isinstance(what, Captured) else capture(what, *examples, kwargs=kwargs)
    if captured.program is None:
        raise bad_argument(
            "what",
            zh="这张图来自数据文件，没有可以编译的程序；它的分组已经随数据给出",
            en="this graph comes from data, with no program to compile; its groups come with the data",
        )
    known = _KNOWN.setdefault(captured.program, {})
    if device not in known:
        with _LOCK:
            known[device] = _asked(torch, captured, captured.program, device)
    return known[device]


def _asked(torch: Any, captured: Captured, program: Program, device: Device) -> CompilerGroups:
    try:
        seen = _compile(torch, program, device)
    except Exception as error:
        first = str(error).strip().splitlines()[:1] or [""]
        reason = f"{type(error).__name__}: {first[0][:200]}".replace("{", "(").replace("}", ")")
        raise CompilerUnreadableError(_UNREADABLE.format(version=torch.__version__, reason=reason).both) from error
    if not seen.kernels:
        reason = "no scheduler nodes"
        raise CompilerUnreadableError(_UNREADABLE.format(version=torch.__version__, reason=reason).both)
    trace, core = program.trace, captured.core
    nodes = {node.name: node for node in trace.nodes}
    parents = {name: trace.parent_of[node].name for name, node in nodes.items() if node in trace.parent_of}
    names = {name: short_name(node.target) for name, node in nodes.items()}
    found = mapped(core, parents, names, seen.kernels)
    return groups_from(
        core,
        found,
        seen.kernels,
        seen.functions(),
        launches=seen.calls + sum(bool(kernel.call) for kernel in seen.kernels),
        device=device,
        torch=torch.__version__,
        buffer_bytes=seen.buffer_bytes,
    )


# -- Inductor -------------------------------------------------------------------------------------------------


@dataclass
class _Seen:
    """What the hook reads before Inductor goes on to compile."""

    kernels: list[CompilerKernel] = field(default_factory=list)
    calls: int = 0
    buffer_bytes: int = 0

    def functions(self) -> list[int]:
        """Kernel by kernel the number of its function: on the CPU loops without a library call between share one."""
        numbers: list[int] = []
        number, before = -1, True
        for kernel in self.kernels:
            number += bool(kernel.call) or before
            before = bool(kernel.call)
            numbers.append(number)
        runs = len({n for n, kernel in zip(numbers, self.kernels, strict=True) if not kernel.call})
        return numbers if runs == self.calls else list(range(len(self.kernels)))


class _Done(BaseException):  # passes every ``except Exception`` on the way out
    pass


def _compile(torch: Any, program: Program, device: Device) -> _Seen:
    exported = program.trace.exported
    if device != "cpu":
        exported = importlib.import_module("torch.export.passes").move_to_device_pass(exported, device)
    module = exported.graph_module
    values = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    compile_fx = importlib.import_module("torch._inductor.compile_fx").compile_fx
    seen = _Seen()
    with quiet(), torch.no_grad(), _settings(), _hooked(seen), contextlib.suppress(_Done):
        compile_fx(module, values)
    return seen


def _settings() -> Any:
    """Nothing from caches, no helper processes, and no trial compilations to find the processor's vector units."""
    config = importlib.import_module("torch._inductor.config")
    wanted = {"force_disable_caches": True, "fx_graph_cache": False, "compile_threads": 1, "cpp.vec_isa_ok": True}
    known = {name: value for name, value in wanted.items() if name in config.get_config_copy()}
    return config.patch(known)


@contextlib.contextmanager
def _hooked(seen: _Seen) -> Iterator[None]:
    """Reads the scheduler once code is generated, and stops there."""
    lowering = importlib.import_module("torch._inductor.graph").GraphLowering
    original = lowering.codegen

    def codegen(graph: Any) -> Any:
        code = original(graph)
        _read(graph, code, seen)
        raise _Done

    lowering.codegen = codegen
    try:
        yield
    finally:
        lowering.codegen = original


def _read(graph: Any, code: Any, seen: _Seen) -> None:
    order = {node: index for index, node in enumerate(graph.module.graph.nodes)}
    for group in graph.scheduler.nodes:
        kernel = _kernel(group, order)
        if kernel is not None:
            seen.kernels.append(kernel)
    first = code[0] if isinstance(code, tuple) else code
    text = str(getattr(first, "value", first))
    body = text[text.index("def call(") :]
    seen.calls = sum(1 for _ in _GENERATED.finditer(body))
    with contextlib.suppress(Exception):  # a figure for comparison, in some versions only
        seen.buffer_bytes = int(sum(group.get_read_write_buffers_sizes() for group in graph.scheduler.nodes))


def _kernel(group: Any, order: Mapping[Any, int]) -> CompilerKernel | None:
    """One scheduler node after fusion; ``None`` where it launches nothing."""
    kind = type(group).__name__
    if kind == "NopKernelSchedulerNode" or type(group.node).__name__ == "MultiOutput":
        return None
    library = kind == "ExternKernelSchedulerNode"
    found: dict[Any, None] = {}
    for part in group.get_nodes():
        buffer = part.node
        if buffer is None:
            continue
        origins = [node for node in buffer.origins if node in order]
        if library:  # what it reads is among its origins too; only the call itself counts
            own = getattr(buffer, "origin_node", None) or max(origins, key=order.__getitem__, default=None)
            origins = [own] if own is not None else []
        found.update(dict.fromkeys(origins))
    nodes = [node for node in found if node in order and node.op == "call_function" and not is_view(node)]
    nodes.sort(key=order.__getitem__)
    call = _call_name(group.node, nodes) if library else ""
    return CompilerKernel(tuple(_origin(node) for node in nodes), call)


def _origin(node: Any) -> Origin:
    return Origin(node.name, short_name(node.target), _parent(node))


def _parent(node: Any) -> str:
    """The exported node that a node of Inductor's graph comes from; blank where a pattern replaced it."""
    sources = node.meta.get("from_node") or ()
    return str(getattr(sources[0], "name", "")) if sources else ""


def _call_name(buffer: Any, nodes: list[Any]) -> str:
    if nodes:
        return short_name(nodes[-1].target).lstrip("_")
    return str(getattr(buffer, "python_kernel_name", "") or type(buffer).__name__)
