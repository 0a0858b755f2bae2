"""``python -m lessons_lib.graph.record``: captures the zoo and writes it to ``data/``, one JSON file a block.

Run it after a change to the zoo, to the capture or to the planner, with the version of PyTorch that the course names;
a test compares the files with a fresh capture. Names after the command limit it to these blocks.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lessons_lib.base.gpus import GPUS
from lessons_lib.graph.capture.compiler import inductor_grouping
from lessons_lib.graph.capture.torch_import import require_torch
from lessons_lib.graph.capture.zoo import ZOO, ZooBlock, zoo_block
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.planning.planner import best_grouping
from lessons_lib.graph.recorded import RecordedBlock, RecordedPlan

FOLDER = Path(__file__).parent / "data"
GPU = "A100 (40 GB)"


def fresh_record(block: ZooBlock) -> RecordedBlock:
    """A block captured, compiled and planned now.

    Operators have their line of code as ``source``: numbers of lines would change with every edit of the zoo.
    """
    torch = require_torch()
    captured, gpu = block.capture(), GPUS[GPU]
    compiler = inductor_grouping(captured)
    core = _with_code(captured.core, captured.code)
    plans = []
    for by_hand in (False, True):
        plan = best_grouping(core, gpu, by_hand=by_hand)
        plans.append(RecordedPlan(plan.grouping, plan.cost.total_bytes, plan.bound_bytes, plan.proven))
    return RecordedBlock(
        name=block.name,
        torch=torch.__version__.partition("+")[0],
        code=inspect.getsource(block.build()[0]),
        graph=_with_code(captured.graph, captured.code),
        core=core,
        compiler=replace(compiler, torch=compiler.torch.partition("+")[0]),
        gpu=gpu,
        best=plans[0],
        by_hand=plans[1],
    )


def main(names: Sequence[str]) -> None:
    """Write the files of the blocks named, or of all."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or ZOO:
        record = fresh_record(zoo_block(name))
        path = FOLDER / f"{name}.json"
        path.write_text(record.to_json(), encoding="utf-8")
        print(f"{path.name}: {len(record.core.launching)} operators, {record.compiler.launches} launches compiled")
    if not names:
        for path in FOLDER.glob("*.json"):
            if path.stem not in ZOO:
                path.unlink()


def _with_code(graph: OpGraph, code: Mapping[str, str]) -> OpGraph:
    ops = tuple(replace(op, source=code.get(op.name, "")) for op in graph.ops)
    return replace(graph, ops=ops)


if __name__ == "__main__":
    main(sys.argv[1:])
