"""The zoo as data: its graphs, what Inductor did with them, and the best plans, for machines without PyTorch.

Written by ``python -m lessons_lib.graph.record``; each file names the version of PyTorch that made it.

Pure: the standard library and this package only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lessons_lib.base.gpus import GPUS, Gpu
from lessons_lib.base.validate import bad_argument, require_choice, require_int, require_name, shown
from lessons_lib.graph.compiler_groups import CompilerGroups
from lessons_lib.graph.grouping import Grouping
from lessons_lib.graph.opgraph import OpGraph

FORMAT = "zoo-block/1"


@dataclass(frozen=True)
class RecordedPlan:
    """What ``best_grouping`` found: see ``planner.Plan``."""

    grouping: Grouping
    total_bytes: int
    bound_bytes: int
    proven: bool


@dataclass(frozen=True)
class RecordedBlock:
    """A block of the zoo as data.

    Args:
        name: as in ``zoo.ZOO``.
        torch: the version of PyTorch that captured it.
        code: the function as Python source.
        graph: its eager operators.
        core: their core-ATen parts.
        compiler: what Inductor did for the CPU.
        gpu: for which the plans are; they group ``core``.
        best: the fewest bytes that general kernels can move.
        by_hand: the fewest with groups that only a hand or a pattern makes.
    """

    name: str
    torch: str
    code: str
    graph: OpGraph
    core: OpGraph
    compiler: CompilerGroups
    gpu: Gpu
    best: RecordedPlan
    by_hand: RecordedPlan

    def to_json(self) -> str:
        """As JSON, indented by one."""
        data = {
            "format": FORMAT,
            "name": self.name,
            "torch": self.torch,
            "gpu": self.gpu.name,
            "code": self.code,
            "graph": json.loads(self.graph.to_json()),
            "core": json.loads(self.core.to_json()),
            "compiler": json.loads(self.compiler.to_json()),
            "best": _plan_data(self.best),
            "by_hand": _plan_data(self.by_hand),
        }
        lines = (f"{json.dumps(key)}:{_line(value)}" for key, value in data.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> RecordedBlock:
        """What ``to_json`` wrote.

        Raises:
            ValueError: not JSON, not of this format, or with entries that are not valid; in both languages.
        """
        data = _parsed(text)
        require_choice("gpu", data.get("gpu"), GPUS)
        return cls(
            name=require_name("name", data.get("name")),
            torch=require_name("torch", data.get("torch")),
            code=require_name("code", data.get("code")),
            graph=OpGraph.from_json(json.dumps(data.get("graph"))),
            core=OpGraph.from_json(json.dumps(data.get("core"))),
            compiler=CompilerGroups.from_json(json.dumps(data.get("compiler"))),
            gpu=GPUS[data["gpu"]],
            best=_plan("best", data.get("best")),
            by_hand=_plan("by_hand", data.get("by_hand")),
        )


def recorded_names() -> tuple[str, ...]:
    """The names of the blocks that are here as data, sorted."""
    folder = files("lessons_lib.graph").joinpath("data")
    found = (entry.name for entry in folder.iterdir()) if folder.is_dir() else ()
    return tuple(sorted(name.removesuffix(".json") for name in found if name.endswith(".json")))


@cache
def recorded_block(name: str) -> RecordedBlock:
    """A block as data.

    Raises:
        ValueError: there is none of that name; the message lists them.
    """
    require_choice("name", name, recorded_names())
    path = files("lessons_lib.graph").joinpath("data").joinpath(f"{name}.json")
    return RecordedBlock.from_json(path.read_text(encoding="utf-8"))


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _plan_data(plan: RecordedPlan) -> dict[str, object]:
    return {
        "groups": plan.grouping.groups,
        "total_bytes": plan.total_bytes,
        "bound_bytes": plan.bound_bytes,
        "proven": plan.proven,
    }


def _parsed(text: object) -> dict[str, Any]:
    try:
        data = json.loads(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError) as error:
        raise bad_argument("text", zh=f"不是 JSON：{error}", en=f"it is not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise bad_argument("text", zh=f'没有 "format": "{FORMAT}" 这一项', en=f'it lacks "format": "{FORMAT}"')
    return data


def _plan(name: str, data: object) -> RecordedPlan:
    if not isinstance(data, dict):
        raise bad_argument(
            name, zh=f"需要对象，收到的是 {shown(data)}", en=f"it must be an object, got {shown(data)}"
        )
    total, bound = (require_int(f"{name}.{key}", data.get(key), 0) for key in ("total_bytes", "bound_bytes"))
    return RecordedPlan(Grouping(data.get("groups")), total, bound, data.get("proven") is True)  # type: ignore[arg-type]
