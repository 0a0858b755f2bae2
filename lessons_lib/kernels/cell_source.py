"""A learner's kernel as a module of its own, so that it can run in another process.

A cell's functions exist in the notebook's process only. What ships is the text of the kernel, of the helper functions
that it calls, from whatever cell, and of the constants and modules that they name: nothing else of the notebook runs
again.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from lessons_lib.base.text import Text

# Packages that another process imports as well: their functions are named, not copied.
_LIBRARIES = ("triton", "lessons_lib", "torch", "numpy", "math")


class SourceProblemError(Exception):
    """The kernel cannot be shipped; ``words`` say why."""

    def __init__(self, words: Text) -> None:
        super().__init__(words.en)
        self.words = words


@dataclass(frozen=True)
class CellFunction:
    """Where one of the learner's functions stands: its first line in the module and in its cell, from 1 on."""

    name: str
    first_line: int
    cell_line: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class CellSource:
    """A module with the kernel ``name``; ``left_out`` are names whose values cannot be written down."""

    name: str
    text: str
    functions: tuple[CellFunction, ...]
    left_out: tuple[str, ...]

    def in_cell(self, line: int) -> tuple[int, str] | None:
        """The line of the learner's cell that became ``line`` of the module, and its text; ``None`` for another."""
        for function in self.functions:
            index = line - function.first_line
            if 0 <= index < len(function.lines):
                return function.cell_line + index, function.lines[index].strip()
        return None


def underlying_function(kernel: object) -> FunctionType | None:
    """The Python function inside a ``@triton.jit`` function, or the function itself; ``None`` for anything else."""
    for _ in range(8):  # a tuner around a heuristic around a kernel
        if isinstance(kernel, FunctionType):
            return kernel
        try:
            kernel = getattr(kernel, "fn", None)
        except Exception:  # an attribute of the learner's own may raise
            return None
    return None


def function_text(function: FunctionType) -> str:
    """The function's source, decorators included, moved to the left margin.

    Raises:
        SourceProblemError: there is none, as for a function made by ``exec``, or it is a lambda.
    """
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        raise SourceProblemError(_NO_SOURCE.format(name=function.__name__)) from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise SourceProblemError(_NO_SOURCE.format(name=function.__name__))
    return text


def gather_source(kernel: object) -> CellSource:
    """The module that defines ``kernel`` and all that it names.

    Args:
        kernel: a ``@triton.jit`` function, or a plain one.

    Raises:
        SourceProblemError: it is no function, or its source is not to be had.
    """
    function = underlying_function(kernel)
    if function is None:
        raise SourceProblemError(_NO_FUNCTION)
    module = _Module(function.__module__)
    module.add_function(function)
    return module.source(function.__name__)


_NO_FUNCTION = Text(
    zh="这里需要一个用 def 写、带 @triton.jit 的函数。",
    en="A function is needed here, written with def and decorated with @triton.jit.",
)
_NO_SOURCE = Text(
    zh="找不到 {name} 的源代码：请在单元格里用 def 定义它，再运行这一格。",
    en="The source of {name} is not to be found: define it with def in a cell and run this cell again.",
)


@dataclass
class _Module:
    """The parts of the module, in an order in which each finds what it names."""

    home: str | None
    bindings: dict[str, str] = field(default_factory=dict)  # name -> the line that binds it
    functions: dict[str, tuple[str, int]] = field(default_factory=dict)  # name -> text, line in its cell
    left_out: list[str] = field(default_factory=list)

    def add_function(self, function: FunctionType) -> None:
        name = function.__name__
        if name in self.functions:
            return
        text = function_text(function)
        self.functions[name] = text, function.__code__.co_firstlineno
        outside = _outside_names(function)
        for used in _names_in(text):
            if used in outside and used != name:
                self._add(used, outside[used], function)

    def _add(self, name: str, value: object, user: FunctionType) -> None:
        if name in self.bindings or name in self.functions:
            return
        inner = underlying_function(value)
        if inner is not None and self._is_learners(inner):
            self.add_function(inner)
            if name != inner.__name__:
                self.bindings[name] = f"{name} = {inner.__name__}"
            return
        line = _binding(name, value, user)
        if line is None:
            self.left_out.append(name)
        else:
            self.bindings[name] = line

    def _is_learners(self, function: FunctionType) -> bool:
        module = function.__module__ or ""
        return module == self.home and module.partition(".")[0] not in _LIBRARIES

    def source(self, name: str) -> CellSource:
        imports = [line for line in self.bindings.values() if line.startswith(("import ", "from "))]
        constants = [line for line in self.bindings.values() if _is_constant(line)]
        aliases = [line for line in self.bindings.values() if line not in imports and not _is_constant(line)]
        lines = ["from triton.language import constexpr as _constexpr, dtype as _dtype", *imports, *constants, ""]
        functions = []
        # Helpers first: a decorator's or a default's value must exist when its function is defined.
        for function_name, (text, cell_line) in reversed(self.functions.items()):
            own = text.rstrip("\n").split("\n")
            functions.append(CellFunction(function_name, len(lines) + 1, cell_line, tuple(own)))
            lines += [*own, ""]
        return CellSource(name, "\n".join([*lines, *aliases, ""]), tuple(functions), tuple(self.left_out))


def _is_constant(line: str) -> bool:
    return line.endswith(_CONSTANT_MARK)


_CONSTANT_MARK = "  # constant"


def _outside_names(function: FunctionType) -> Mapping[str, object]:
    """What the function finds outside itself: its module's names, and those of a function it was written in."""
    names = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    for local in function.__code__.co_varnames:
        names.pop(local, None)
    return names


def _names_in(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
            yield node.id


def _binding(name: str, value: object, user: FunctionType) -> str | None:
    """A line that binds ``name`` to ``value`` in another process; ``None`` where there is none."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    written = _written(value)
    if written is not None:
        annotated = _is_constexpr_annotation(user.__globals__.get("__annotations__", {}).get(name))
        return f"{name}{': _constexpr' if annotated else ''} = {written}{_CONSTANT_MARK}"
    return _import_of(name, value)


def _is_constexpr_annotation(annotation: object) -> bool:
    return getattr(annotation, "__name__", str(annotation)).rpartition(".")[2] == "constexpr"


def _written(value: object) -> str | None:
    """A constant as Python text."""
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if isinstance(value, tuple):
        items = [_written(item) for item in value]
        return None if None in items else f"({''.join(f'{item}, ' for item in items)})"
    if not type(value).__module__.startswith("triton."):
        return None
    kind = type(value).__name__
    if kind == "constexpr":
        inner = _written(getattr(value, "value", ...))
        return None if inner is None else f"_constexpr({inner})"
    return f"_dtype({str(value)!r})" if kind == "dtype" else None


def _import_of(name: str, value: Any) -> str | None:
    """``from module import ... as name``, for a function or class that a module knows by its name."""
    inner: Callable[..., Any] | Any = underlying_function(value) or value
    module, attribute = getattr(inner, "__module__", None), getattr(inner, "__name__", None)
    named = isinstance(module, str) and isinstance(attribute, str) and module != "__main__"
    if named and hasattr(sys.modules.get(str(module)), str(attribute)):
        return f"from {module} import {attribute} as {name}"
    # The interpreter of older versions leaves functions of its own, without a name, in these modules.
    for module in ("triton.language", "triton.language.math"):
        for attribute, member in vars(sys.modules.get(module, object)).items():
            if member is value:
                return f"from {module} import {attribute} as {name}"
    return None
