"""What ``torch.compile`` does with a captured function: Inductor's kernels as groups of the same operators.

The exported program goes through Inductor up to and including its generated code, under fake tensors: nothing is
compiled or run, so no C++ compiler and no memory is needed. Every private detail of torch's compiler is in ``inductor``;
when a torch version changes one, ``CompilerUnreadableError`` says so.

Counted are the functions that the generated code calls (``cpp_fused_...``, ``triton_...``) and its library calls, not
Inductor's internal counter, which counts loop nests.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Literal

from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, require_choice, require_real
from lessons_lib.graph.capture.capture import Captured, Program, capture
from lessons_lib.graph.capture.compiler_mapping import groups_from, mapped
from lessons_lib.graph.capture.fx_nodes import short_name
from lessons_lib.graph.capture.inductor import TimeUp, read_kernels
from lessons_lib.graph.capture.torch_import import require_torch
from lessons_lib.graph.compiler_groups import CompilerGroups

Device = Literal["cpu", "cuda"]

LIMIT_SECONDS = 30.0
"""How long Inductor may take. The blocks of the zoo take one or two seconds, a whole layer of Llama three."""

_LOCK = threading.Lock()
_KNOWN: weakref.WeakKeyDictionary[Program, dict[str, CompilerGroups]] = weakref.WeakKeyDictionary()

_UNREADABLE = Text(
    zh="读不出 torch.compile 的分组：PyTorch {version} 的 Inductor 内部和这里用到的不一样（{reason}）。课程里的例子图带有"
    "事先记录的结果；自己的函数请换成 PyTorch 2.11 到 2.13 再试，或者只和 best_grouping 比较。",
    en="The groups of torch.compile cannot be read: Inductor of PyTorch {version} differs inside from what is used here "
    "({reason}). The graphs of the zoo come with recorded results; for a function of your own try PyTorch 2.11 to 2.13, or "
    "compare with best_grouping alone.",
)
_NO_ELEMENT = Text(
    zh="torch.compile 在这里没有分组：所有结果都没有元素（形状里有 0），它一个核函数也不生成。请换成没有 0 的形状。",
    en="torch.compile has no groups here: no result has an element (there is a 0 in each shape), so it makes no kernel. "
    "Use shapes without a 0.",
)
_TOO_SLOW = Text(
    zh="torch.compile 的 Inductor 用了 {limit:g} 秒还没有排好这个函数的核函数，所以停了下来，没有它的分组。可以只取模型的一层，"
    "或者调大 limit_seconds 再试；其余的结果不受影响。",
    en="Inductor of torch.compile was stopped: after {limit:g} s it had not planned the kernels of this function, so its "
    "groups are not here. Take one layer of the model, or try again with a larger limit_seconds; nothing else is affected.",
)


class CompilerUnreadableError(RuntimeError):
    """The compiler's groups are not to be had, as where torch changed inside; the message says why, in both languages."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class CompilerTooSlowError(CompilerUnreadableError):
    """Inductor took longer than it may; the message is bilingual."""


def inductor_grouping(
    what: Captured | Callable[..., Any],
    *examples: Any,
    device: Device = "cpu",
    kwargs: Mapping[str, Any] | None = None,
    limit_seconds: float = LIMIT_SECONDS,
) -> CompilerGroups:
    """How Inductor groups the operators of ``capture(...)``; the first call takes seconds, the same again nothing.

    Args:
        what: what ``capture`` returned; or a function, to be captured on ``examples`` and ``kwargs``.
        device: whose scheduler. ``"cpu"`` works everywhere; ``"cuda"`` needs a GPU, and the two group differently.
        limit_seconds: elapsed time after which Inductor is stopped; the next call begins anew.

    Raises:
        ValueError: ``what`` came from recorded data, ``device`` is not available, or as ``capture``.
        CompilerUnreadableError: this torch does not show its groups; ``CompilerTooSlowError``: not within the limit.
        MissingPackageError: there is no PyTorch.
    """
    torch = require_torch()
    require_choice("device", device, ("cpu", "cuda"))
    limit = require_real("limit_seconds", limit_seconds, above=0)
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
            known[device] = _asked(torch, captured, captured.program, device, limit)
    return known[device]


def _asked(torch: Any, captured: Captured, program: Program, device: Device, limit: float) -> CompilerGroups:
    try:
        seen = read_kernels(torch, program, device, limit)
    except TimeUp:
        raise CompilerTooSlowError(_TOO_SLOW.format(limit=limit).both) from None
    except Exception as error:
        first = str(error).strip().splitlines()[:1] or [""]
        reason = f"{type(error).__name__}: {first[0][:200]}".replace("{", "(").replace("}", ")")
        raise CompilerUnreadableError(_UNREADABLE.format(version=torch.__version__, reason=reason).both) from error
    made = (captured.core.tensor(out) for name in captured.core.launching for out in captured.core.op(name).outputs)
    if not any(tensor.numel for tensor in made):
        raise CompilerUnreadableError(_NO_ELEMENT.both)
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
