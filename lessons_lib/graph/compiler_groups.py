"""What a compiler did with a graph: its kernels as a grouping of the core operators.

Pure: the standard library and this package only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, require_int, require_items, require_name, shown
from lessons_lib.graph.grouping import Grouping

_FORMAT = "compiler-groups/1"


@dataclass(frozen=True)
class CompilerGroups:
    """A compiler's kernels.

    Args:
        grouping: of the core graph's operators.
        functions: for each group the number, from 0, of the function that it is a part of. The CPU's code generator puts
            several loop nests, one after another, into one function: one call, but each nest goes through memory by
            itself. On a GPU each group is a kernel.
        launches: how many functions and library calls the generated code makes.
        calls: for each group what is called: a library's operator, or blank for generated loops.
        device: whose scheduler it was: ``"cpu"`` or ``"cuda"``.
        torch: the version of PyTorch.
        repeated: operators that the compiler computes in several kernels rather than store. Here they are in one, so
            ``cost`` counts their result as written and read.
        guessed: operators of which the compiler keeps no record, because it replaced, folded or dropped them; they were
            placed with their neighbours.
        extra: kernels that hold no operator of the graph: changes of layout, parts of a concatenation.
        buffer_bytes: what the compiler itself counts as read and written; 0 where it does not say.
    """

    grouping: Grouping
    functions: tuple[int, ...]
    launches: int
    calls: tuple[str, ...]
    device: str
    torch: str
    repeated: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    extra: int = 0
    buffer_bytes: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.grouping, Grouping):
            given = shown(self.grouping)
            raise bad_argument(
                "grouping", zh=f"需要 Grouping，收到的是 {given}", en=f"it must be a Grouping, got {given}"
            )
        functions = enumerate(require_items("functions", self.functions))
        numbers = tuple(require_int(f"functions[{index}]", number, 0) for index, number in functions)
        object.__setattr__(self, "functions", numbers)
        for entry in ("calls", "repeated", "guessed"):
            words = require_items(entry, getattr(self, entry))
            if not all(isinstance(word, str) for word in words):
                raise bad_argument(entry, zh="只能是字符串", en="it must hold strings only")
            object.__setattr__(self, entry, words)
        if not len(self.functions) == len(self.calls) == len(self.grouping):
            raise bad_argument(
                "functions", zh="functions、calls 要和分组一一对应", en="functions and calls need one entry a group"
            )
        for entry in ("launches", "extra", "buffer_bytes"):
            object.__setattr__(self, entry, require_int(entry, getattr(self, entry), 0))
        for entry in ("device", "torch"):
            require_name(entry, getattr(self, entry))

    @property
    def note(self) -> Text:
        """Which scheduler was asked, and what that means for the count."""
        words = _GPU if self.device != "cpu" else _CPU_NESTS if self.launches < len(self.grouping) else _CPU
        return words.format(version=self.torch, launches=self.launches, groups=len(self.grouping))

    def to_json(self) -> str:
        """As one line of JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "grouping"}
        return json.dumps(
            {"format": _FORMAT, "groups": self.grouping.groups, **values}, ensure_ascii=False, separators=(",", ":")
        )

    @classmethod
    def from_json(cls, text: str) -> CompilerGroups:
        """What ``to_json`` wrote.

        Raises:
            ValueError: not JSON, not of this format, or with entries that are not valid; in both languages.
        """
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise bad_argument("text", zh=f"不是 JSON：{error}", en=f"it is not JSON: {error}") from None
        if not isinstance(data, dict) or data.pop("format", None) != _FORMAT:
            raise bad_argument("text", zh=f'没有 "format": "{_FORMAT}" 这一项', en=f'it lacks "format": "{_FORMAT}"')
        groups = data.pop("groups", None)
        known = {field.name for field in fields(cls)} - {"grouping"}
        needed = {field.name for field in fields(cls)} - {"grouping", "repeated", "guessed", "extra", "buffer_bytes"}
        if set(data) - known or needed - set(data):
            wrong = sorted(set(data) ^ known)
            raise bad_argument("text", zh=f"字段不对：{shown(wrong)}", en=f"its fields are wrong: {shown(wrong)}")
        return cls(Grouping(groups), **data)


_CPU = Text(
    zh="torch.compile 的分组来自 PyTorch {version} 的 Inductor，取的是 CPU 的调度器：{groups} 组，{launches} 次调用；GPU 的"
    "调度器可能分得不一样。",
    en="The groups of torch.compile are those of Inductor of PyTorch {version} and its scheduler for the CPU; groups: "
    "{groups}, calls: {launches}. Its scheduler for GPUs may group differently.",
)
_CPU_NESTS = Text(
    zh="torch.compile 的分组来自 PyTorch {version} 的 Inductor，取的是 CPU 的调度器：{groups} 组循环，{launches} 次调用。相邻的"
    "几组放在同一个函数里，但每组仍各自读写内存，所以在这里各算一个核函数；GPU 的调度器可能分得不一样。",
    en="The groups of torch.compile are those of Inductor of PyTorch {version} and its scheduler for the CPU; groups of loops: "
    "{groups}, calls: {launches}. Neighbouring groups share a function, but each goes through memory by itself, so each "
    "counts as a kernel here. Its scheduler for GPUs may group differently.",
)
_GPU = Text(
    zh="torch.compile 的分组来自 PyTorch {version} 的 Inductor，取的是 GPU 的调度器：{groups} 组，{launches} 次启动。CPU 的"
    "调度器可能分得不一样。",
    en="The groups of torch.compile are those of Inductor of PyTorch {version} and its scheduler for GPUs; groups: {groups}, "
    "launches: {launches}. Its scheduler for the CPU may group differently.",
)
