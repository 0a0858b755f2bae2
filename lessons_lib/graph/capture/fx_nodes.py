"""Nodes of ``torch.fx`` graphs: what they are called, what they alias, which line of the learner's they come from.

Nothing here imports PyTorch; nodes are looked at as they are.
"""

from __future__ import annotations

import linecache
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lessons_lib.graph.capture.refusals import Line

_OWN_FILES = {str(Path(__file__).with_name(name)) for name in ("tracing.py", "capture.py", "fx_nodes.py")}
_STDLIB = Path(sysconfig.get_paths()["stdlib"])
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)\n\s*(?P<code>.*)')


def is_getitem(node: Any) -> bool:
    """Whether a node only picks one of several outputs."""
    return getattr(node.target, "__name__", "") == "getitem"


def is_view(node: Any) -> bool:
    """Whether a node's outputs are views of its first input, by its schema."""
    if is_getitem(node):
        return is_view(node.args[0])
    return launches_nothing(node.target)


def launches_nothing(operator: Any) -> bool:
    """Whether an operator only looks at its input in another way; ``_unsafe_view`` does not admit it in its schema."""
    return short_name(operator) == "_unsafe_view" or schema_says_view(operator)


def schema_says_view(operator: Any) -> bool:
    """Whether an operator's schema says that it returns views, and that it writes to nothing."""
    schema = getattr(operator, "_schema", None)
    if schema is None or schema.is_mutable or not schema.returns:
        return False
    alias = schema.returns[0].alias_info
    return alias is not None and not alias.is_write


def is_region(operator: Any) -> bool:
    """Whether an operator takes functions, as ``torch.cond`` and ``while_loop`` do: it has no schema."""
    return not hasattr(operator, "_schema") and type(operator).__module__.startswith("torch._higher_order_ops")


def short_name(operator: Any) -> str:
    """``aten.mm.default`` -> ``mm``; other namespaces keep theirs."""
    written = str(operator)
    if written.startswith(("aten.", "prims.")):
        return written.split(".")[1]
    name = getattr(operator, "name", None)
    full = name() if callable(name) else getattr(operator, "__name__", written)
    return str(full).replace("::", ".").removesuffix(".default")


def line_of(node: Any) -> Line | None:
    """The learner's line that a node comes from."""
    frames = _FRAME.finditer(node.meta.get("stack_trace") or "") if node is not None else ()
    found = [Line(f["file"], int(f["line"]), f["code"].strip()) for f in frames if _is_learners(f["file"])]
    return found[-1] if found else None


def module_of(node: Any) -> str:
    """The innermost module that a node was called in, ``layers.2 (LayerNorm)``; blank outside all."""
    stack = [entry for entry in (node.meta.get("nn_module_stack") or {}).values() if entry[0]]
    if not stack:
        return ""
    path, kind = stack[-1][:2]
    return f"{path} ({getattr(kind, '__name__', str(kind)).rpartition('.')[2]})"


def learner_line(error: BaseException) -> Line | None:
    """The innermost line of the learner's on the way to an error."""
    found, step = None, error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if _is_learners(file):
            found = Line(file, step.tb_lineno, linecache.getline(file, step.tb_lineno).strip())
        step = step.tb_next
    return found


def _is_learners(file: str) -> bool:
    if file in _OWN_FILES or file.startswith("<"):
        return False
    path = Path(file)
    installed = any(part in ("site-packages", "dist-packages") for part in path.parts)
    return "torch" not in path.parts if installed else not path.is_relative_to(_STDLIB)


def is_scatter(node: Any) -> bool:
    """Whether a node is a write of a part of a tensor, functionalized."""
    return short_name(node.target) in ("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter")


def writes(node: Any) -> bool:
    """Whether a node writes to one of its arguments."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable and bool(node.args)


def base_of(node: Any) -> Any:
    """The node whose memory a node has, as far as schemas tell."""
    while getattr(node, "op", "") == "call_function" and node.args:
        schema = getattr(node.target, "_schema", None)
        aliases = schema is not None and schema.returns and schema.returns[0].alias_info is not None
        if not aliases and not is_getitem(node):
            return node
        node = node.args[0]
    return node


def last_of(graph: Any) -> Any:
    """The last node of a graph; its root while it is empty."""
    return graph._root.prev


# -- graphs ---------------------------------------------------------------------------------------------------


def make_functional(torch: Any, graph: Any) -> None:
    """Decompositions may write in place (``add_``); each such node becomes ``add``, and later readers read it."""
    passed: set[Any] = set()
    for node in graph.nodes:
        passed.add(node)
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or not schema.is_mutable or not node.args:
            continue
        packet = getattr(torch.ops.aten, short_name(node.target).rstrip("_"), None)
        functional = getattr(packet, node.target._overloadname, None)
        if functional is None or short_name(node.target) == "copy_":
            continue
        written = node.args[0]
        for reader in list(written.users):
            if reader not in passed:
                reader.replace_input_with(written, node)
        node.target = functional


def live_nodes(module: Any, outputs: Sequence[Any]) -> list[Any]:
    """The nodes that the outputs need, in order."""
    needed, waiting = set(outputs), list(outputs)
    while waiting:
        for node in waiting.pop().all_input_nodes:
            if node not in needed:
                needed.add(node)
                waiting.append(node)
    return [node for node in module.graph.nodes if node in needed]
