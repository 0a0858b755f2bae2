"""Inductor up to its generated code, stopped there and read: the kernels of an exported program.

Every private detail of torch's compiler that this floor uses is in this file. Two hooks besides the one that reads:

- *Each inner function once.* Inductor evaluates the expression of a loop by nested functions, a value that is read twice
  twice, and what that value reads four times: ``x = x * x`` thirty times over would take 2**30 steps. Here a loop's
  expression keeps its value for the same index and the same reader. The loops and what is fused do not change, for what
  Inductor writes down has equal expressions merged.
- *A limit of time.* It is looked at between two nodes, in the thread that asked, and ends the work as an error would:
  whatever Inductor has open is closed on the way out, which no other thread and no signal could see to.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from lessons_lib.graph.capture.capture import Program
from lessons_lib.graph.capture.compiler_mapping import CompilerKernel, Origin
from lessons_lib.graph.capture.fx_nodes import is_view, short_name
from lessons_lib.graph.capture.torch_import import quiet

_GENERATED = re.compile(r"^\s+(?:\w+ = )?((?:cpp_fused|triton)_\w*?)(?:\.run)?\(", re.MULTILINE)


@dataclass
class Seen:
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


class TimeUp(BaseException):
    """Inductor was not done within the limit; no ``except Exception`` of its own holds it up."""


def read_kernels(torch: Any, program: Program, device: str, limit_seconds: float) -> Seen:
    """What Inductor makes of a program; nothing is compiled or run.

    Raises:
        TimeUp: it took longer than ``limit_seconds``, seconds of elapsed time.
    """
    exported = program.trace.exported
    if device != "cpu":
        exported = importlib.import_module("torch.export.passes").move_to_device_pass(exported, device)
    module = exported.graph_module
    values = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    compile_fx = importlib.import_module("torch._inductor.compile_fx").compile_fx
    seen = Seen()
    with contextlib.ExitStack() as stack:
        for context in (contextlib.suppress(_Done), quiet(), torch.no_grad(), _settings()):
            stack.enter_context(context)
        for owner, name, hook in _hooks(torch, seen, monotonic() + limit_seconds):
            stack.enter_context(_hooked(owner, name, hook))
        compile_fx(module, values)
    return seen


def _settings() -> Any:
    """Nothing from caches, no helper processes, and no trial compilations to find the processor's vector units."""
    config = importlib.import_module("torch._inductor.config")
    wanted = {"force_disable_caches": True, "fx_graph_cache": False, "compile_threads": 1, "cpp.vec_isa_ok": True}
    known = {name: value for name, value in wanted.items() if name in config.get_config_copy()}
    return config.patch(known)


# -- hooks ----------------------------------------------------------------------------------------------------

_Method = Callable[..., Any]


def _hooks(torch: Any, seen: Seen, until: float) -> Iterator[tuple[Any, str, Callable[[_Method], _Method]]]:
    """Class, method, and what to put in its place: the reader always, the others where this version has the method."""
    inductor = {name: importlib.import_module(f"torch._inductor.{name}") for name in ("graph", "ir", "scheduler")}
    yield inductor["graph"].GraphLowering, "codegen", lambda codegen: _reading(codegen, seen)
    handlers = importlib.import_module("torch._inductor.virtualized").V
    others = (
        (inductor["ir"], "Pointwise", "make_loader", lambda make: _remembering(make, handlers)),
        (inductor["scheduler"], "Scheduler", "can_fuse", lambda method: _limited(method, until)),
        (torch.fx, "Interpreter", "run_node", lambda method: _limited(method, until)),
    )
    for module, owner, name, hook in others:
        if hasattr(getattr(module, owner, None), name):
            yield getattr(module, owner), name, hook


@contextlib.contextmanager
def _hooked(owner: Any, name: str, hook: Callable[[_Method], _Method]) -> Iterator[None]:
    """A method replaced for calls from this thread; another thread may compile for itself meanwhile."""
    original, mine = getattr(owner, name), threading.get_ident()
    instead = hook(original)

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        return (instead if threading.get_ident() == mine else original)(*args, **kwargs)

    setattr(owner, name, method)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _reading(codegen: _Method, seen: Seen) -> _Method:
    """Reads the scheduler once code is generated, and stops there; branches of a region are generated on the way."""
    within = False

    def hooked(graph: Any) -> Any:
        nonlocal within
        if within:
            return codegen(graph)
        within = True
        _read(graph, codegen(graph), seen)
        raise _Done

    return hooked


def _limited(method: _Method, until: float) -> _Method:
    def hooked(*args: Any, **kwargs: Any) -> Any:
        if monotonic() > until:
            raise TimeUp
        return method(*args, **kwargs)

    return hooked


def _remembering(make_loader: _Method, handlers: Any) -> _Method:
    """Loaders that evaluate a loop's expression once for each index, as long as the same reader (``V.ops``) asks."""

    def hooked(loops: Any) -> Any:
        load = make_loader(loops)
        reader: Any = None
        known: dict[tuple[Any, ...], Any] = {}

        def loader(index: Sequence[Any]) -> Any:
            nonlocal reader
            now, key = handlers.get_ops_handler(), tuple(index)
            if now is not reader:
                known.clear()
                reader = now
            if key not in known:
                known[key] = load(index)
            return known[key]

        return loader

    return hooked


# -- reading --------------------------------------------------------------------------------------------------


def _read(graph: Any, code: Any, seen: Seen) -> None:
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
