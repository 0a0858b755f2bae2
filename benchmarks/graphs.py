"""Operator graphs: capture of a large model, its grouping, a click on its canvas, and one table over the zoo."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from benchmarks.browser import ROOT
from benchmarks.results import Aim, Section
from benchmarks.summary import SUMMARY_HEADER, Summary, megabytes, milliseconds, seconds, times
from lessons_lib.base.gpus import GPUS
from lessons_lib.base.units import MIB, count_of, format_bytes
from lessons_lib.graph.canvas import GraphCanvas
from lessons_lib.graph.capture.capture import Captured, FakeSpec, capture, fake
from lessons_lib.graph.grouping import Grouping, cost, eager, greedy, unfused
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.picture.drawing import draw_graph
from lessons_lib.graph.picture.folding import fold
from lessons_lib.graph.planning.planner import best_grouping
from lessons_lib.graph.recorded import RecordedBlock, recorded_block, recorded_names

GPU = GPUS["A100 (40 GB)"]
LAYERS = 32
CAPTURES = 3
ROUNDS = 7
CLICKS = 120
SIZES = (1_000, 3_000, 10_000)

AIM_CAPTURE_S = 30
AIM_GROUPING_S = 1
AIM_CLICK_MS = 100
# Times may grow by this much more than operators.
NEAR_LINEAR = 1.5

TOKENS = 2048

# In a process of its own, so that memory at the peak is the capture's; a small capture first loads torch's parts.
_CAPTURE = """
import json, resource, sys, time
from benchmarks.graphs import captured_llama
captured_llama(1)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
before, began, worked = peak(), time.perf_counter(), time.process_time()
captured = captured_llama({layers})
elapsed, spent = time.perf_counter() - began, time.process_time() - worked
core = captured.core
print(json.dumps(dict(
    elapsed=elapsed, spent=spent, grown=peak() - before, nodes=len(core.ops), launching=len(core.launching),
    tensors=sum(tensor.bytes for tensor in core.tensors),
)))
"""


# -- capture --------------------------------------------------------------------------------------------------


def measure_capture() -> Section:
    """Capture a Llama-shaped model with the widths of the largest, again and again."""
    runs = [_captured_once() for _ in range(CAPTURES)]
    spent, elapsed, grown = (Summary.of([run[key] for run in runs]) for key in ("spent", "elapsed", "grown"))
    nodes, launching, tensors = (int(runs[0][key]) for key in ("nodes", "launching", "tensors"))
    return Section(
        title="Graphs: capture of a large model",
        how=f"`capture` of a {LAYERS}-layer model of Llama's form with the widths of 70 billion weights "
        f"(`benchmarks/llama.py`), {TOKENS:,} tokens, on the meta device: {nodes:,} operators, {launching:,} of them "
        f"launching, {format_bytes(tensors)} of tensors that are never made. {CAPTURES} fresh processes, a one-layer "
        f"capture before the clock starts; torch {importlib.metadata.version('torch')}.",
        header=["", *SUMMARY_HEADER],
        rows=[
            ["capture, processor time", *spent.cells(seconds)],
            ["capture, elapsed", *elapsed.cells(seconds)],
            ["growth of the resident set, at its peak", *grown.cells(megabytes)],
        ],
        aims=[
            Aim(f"under {AIM_CAPTURE_S} s of processor time", seconds(spent.median), spent.median < AIM_CAPTURE_S),
            Aim("about 3,000 operators", f"{nodes:,}", nodes >= 3_000),
        ],
        not_said="the time to make such a model with weights, or to compile it; a learner's first capture, which also "
        "loads torch; elapsed time on a machine that does nothing else.",
    )


def _captured_once() -> dict[str, float]:
    code = _CAPTURE.format(layers=LAYERS)
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    figures: dict[str, float] = json.loads(said)
    return figures


def captured_llama(layers: int, narrower: int = 0) -> Captured:
    """The whole model, embedding and output included; see ``llama.Llama``."""
    import torch

    from benchmarks.llama import Llama

    with torch.device("meta"):
        model = Llama(layers, narrower).half().eval()
    return capture(model, fake((1, TOKENS), "int64"), *_positions(model.widths.head), name="llama")


def llama_layer() -> OpGraph:
    """One layer of it, as core operators: ``x`` in, one tensor of the same shape out."""
    import torch

    from benchmarks.llama import Layer, Widths

    widths = Widths()
    with torch.device("meta"):
        layer = Layer(widths).half().eval()
    x = fake((1, TOKENS, widths.hidden), "float16")
    return capture(layer, x, *_positions(widths.head), name="layer").core


def _positions(head: int) -> tuple[FakeSpec, FakeSpec, FakeSpec]:
    """Cosines, sines and the causal mask."""
    angles = fake((TOKENS, head), "float16")
    return angles, angles, fake((TOKENS, TOKENS), "float16")


# -- grouping -------------------------------------------------------------------------------------------------


# Family of graphs, operators, planner -> the times, round by round.
Times = Mapping[tuple[str, int, str], Sequence[float]]

_MODEL = "the captured model"
_PLANNERS: Mapping[str, Callable[[OpGraph], object]] = {
    "greedy": lambda graph: greedy(graph, GPU),
    "best_grouping": lambda graph: best_grouping(graph, GPU),
}


def measure_grouping() -> Section:
    """Time both planners on graphs of several sizes, the sizes taking turns."""
    layer, cell = llama_layer(), recorded_block("lstm_cell").core
    graphs = [(_MODEL, captured_llama(LAYERS).core)]
    for size in SIZES:
        graphs.append(("Llama layers", stacked(layer, {layer.outputs[0]: "x"}, size)))
        graphs.append(("LSTM cells", stacked(cell, {cell.outputs[0]: "h", cell.outputs[1]: "c"}, size)))
    spent: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        for family, graph in graphs:
            for planner in _PLANNERS:
                spent[family, len(graph.ops), planner].append(_seconds(planner, graph))
    return grouping_section(spent)


def _seconds(planner: str, graph: OpGraph) -> float:
    """The processor time on a copy: a graph keeps what was once worked out about it."""
    fresh = replace(graph)
    began = time.process_time()
    _PLANNERS[planner](fresh)
    return time.process_time() - began


def grouping_section(spent: Times) -> Section:
    """The figures in words and tables."""
    summed = {key: Summary.of([value * 1000 for value in samples]) for key, samples in spent.items()}
    rows = [
        [f"{family}, {operators:,} operators: `{planner}`", *summary.cells(milliseconds)]
        for (family, operators, planner), summary in summed.items()
    ]
    aims = [
        Aim(
            f"{family}: `{planner}` under {AIM_GROUPING_S} s",
            milliseconds(it.median),
            it.median < AIM_GROUPING_S * 1000,
        )
        for (family, _, planner), it in summed.items()
        if family == _MODEL
    ]
    for family, planner in dict.fromkeys((family, planner) for family, _, planner in spent if family != _MODEL):
        words, ratio, limit = _growth(spent, family, planner)
        rows.append([f"{words}, round by round", *ratio.cells(times)])
        aims.append(Aim(f"{words}: at most {times(limit)}", times(ratio.median), ratio.median <= limit))
    return Section(
        title="Graphs: grouping",
        how=f"Processor time, {ROUNDS} rounds, graphs and planners taking turns, each on a fresh copy of the graph. Operators are "
        "those of the core graph, views included. Llama layers are chained, and so are LSTM cells, which share their "
        "weights. `best_grouping` begins with greedy merging: its time holds both.",
        header=["", *SUMMARY_HEADER],
        rows=rows,
        aims=aims,
        not_said="how good the groupings are; that is the next table's subject.",
    )


def _growth(spent: Times, family: str, planner: str) -> tuple[str, Summary, float]:
    """Most operators over least: in words, the ratio of the times, and the ratio up to which it is near linear."""
    sizes = [operators for name, operators, other in spent if (name, other) == (family, planner)]
    least, most = min(sizes), max(sizes)
    pairs = zip(spent[family, least, planner], spent[family, most, planner], strict=True)
    ratio = Summary.of([more / less for less, more in pairs])
    return f"{family}, {most:,} ÷ {least:,} operators: `{planner}`", ratio, NEAR_LINEAR * most / least


def stacked(graph: OpGraph, state: Mapping[str, str], operators: int) -> OpGraph:
    """Copies of ``graph``, about so many operators in all.

    Args:
        state: output -> the input of the next copy that it becomes; all other inputs are shared by the copies.
    """
    copies = max(1, round(operators / len(graph.ops)))
    names = {tensor: tensor for tensor in graph.inputs}
    ops, tensors = [], [graph.tensor(tensor) for tensor in graph.inputs]
    for number in range(copies):
        made = [tensor for tensor in graph.tensors if tensor.name not in graph.inputs]
        names |= {tensor.name: f"{tensor.name}.{number}" for tensor in made}
        tensors += [replace(tensor, name=names[tensor.name]) for tensor in made]
        for op in graph.ops:
            inputs, outputs = (tuple(names[tensor] for tensor in listed) for listed in (op.inputs, op.outputs))
            ops.append(replace(op, name=f"{op.name}.{number}", inputs=inputs, outputs=outputs))
        names |= {given: names[tensor] for tensor, given in state.items()}
    return OpGraph(
        graph.name, tuple(ops), tuple(tensors), graph.inputs, tuple(names[given] for given in state.values())
    )


# -- the canvas -----------------------------------------------------------------------------------------------


def measure_canvas() -> Section:
    """Press one edge after another of canvases of several sizes; what a click takes in the kernel."""
    graphs = {
        "one layer": captured_llama(1).core,
        "four unlike layers": captured_llama(4, narrower=2048).core,
        f"{LAYERS} layers, folded": captured_llama(LAYERS).core,
    }
    canvases = {_canvas_name(name, graph): GraphCanvas(graph, GPU.name) for name, graph in graphs.items()}
    spent: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in canvases}
    for number in range(CLICKS):
        for name, canvas in canvases.items():
            for part, taken in _click(canvas, number).items():
                spent[name][part].append(taken * 1000)
    return canvas_section(spent)


def _canvas_name(name: str, graph: OpGraph) -> str:
    shown = len(fold(graph).shown)
    return f"{name}, {count_of(len(graph.launching), 'operator')}" + (
        "" if shown == len(graph.launching) else f", {shown} shown"
    )


def _click(canvas: GraphCanvas, number: int) -> dict[str, float]:
    """Seconds of one press on the next edge that is shown: the state, then picture and table in the widgets."""
    bench = canvas.workbench
    edges = bench.folding.shown_edges
    began = time.perf_counter()
    bench.press_edge(edges[number % len(edges)])
    pressed = time.perf_counter()
    canvas.refresh()
    refreshed = time.perf_counter()
    draw_graph(bench.graph, bench.grouping, bench.cost, marks=bench.marks, folding=bench.folding, live=True)
    drawn = time.perf_counter()
    return {"click": refreshed - began, "of it: state": pressed - began, "the picture alone": drawn - refreshed}


def canvas_section(spent: Mapping[str, Mapping[str, Sequence[float]]]) -> Section:
    """The figures, in milliseconds, in words and tables; the first canvas is the one that the aim is about."""
    summed = {(name, part): Summary.of(it) for name, parts in spent.items() for part, it in parts.items()}
    first = next(iter(spent))
    click = summed[first, "click"]
    return Section(
        title="Graphs: a click on the canvas",
        how=f"`press_edge`, then picture, numbers and table in the canvas' widgets, in the kernel: {CLICKS} presses, one "
        "shown edge after another, legal or refused, the canvases taking turns. Models of Llama's form with embedding "
        "and output; layers that are alike are drawn once, and a press holds for all of them.",
        header=["", *SUMMARY_HEADER],
        rows=[[f"{name}: {part}", *it.cells(milliseconds)] for (name, part), it in summed.items()],
        aims=[Aim(f"{first}: under {AIM_CLICK_MS} ms", milliseconds(click.median), click.median < AIM_CLICK_MS)],
        not_said="the way to the browser and back, which the panel's table has, and the browser's own drawing.",
    )


# -- the zoo --------------------------------------------------------------------------------------------------


def measure_zoo() -> Section:
    """Bytes and launches of every recorded block, by every way to group it."""
    return zoo_section([recorded_block(name) for name in recorded_names()])


def zoo_section(blocks: Sequence[RecordedBlock]) -> Section:
    """One row a block; counted, not timed."""
    rows, worse, proven = [], [], 0
    for block in blocks:
        compiler, best, by_hand = (_moved(block, it.grouping) for it in (block.compiler, block.best, block.by_hand))
        pattern = ", ".join(call for call in dict.fromkeys(block.compiler.calls) if "attention" in call)
        ours = by_hand if pattern else best
        if ours[0] > compiler[0]:
            worse.append(block.name)
        proven += block.best.proven
        others = (eager(block.core), unfused(block.core), greedy(block.core, block.gpu))
        moved = [_moved(block, grouping) for grouping in others]
        cells = [*map(_written, moved), _written(compiler) + _note(block, pattern)]
        cells.append(f"{_written(best)} {'✓' if block.best.proven else ''}".strip())
        cells += [_written(by_hand), f"{block.best.bound_bytes / MIB:,.1f}"]
        rows.append([block.name, *cells])
    return Section(
        title="Graphs: the zoo, MiB and launches",
        how=f"{count_of(len(blocks), 'block')} at real sizes, as recorded with torch {blocks[0].torch} and Inductor's "
        "scheduler for the CPU; logical traffic in MiB / launches, all by the same `cost`. No fusion: every core-ATen "
        "operator by itself. Best: general kernels, ✓ proven. By hand: also attention and prologues. Bound: no grouping "
        "of general kernels moves less. (a): Inductor replaced the operators by a library's attention, which is "
        "compared with the best by hand. (b): Inductor computes an operator again in several kernels, which `cost` counts as "
        "written and read; beside it what Inductor itself counts.",
        header=["block", "eager", "no fusion", "greedy", "Inductor", "best", "by hand", "bound"],
        rows=rows,
        aims=[
            Aim("no block where the best moves more than Inductor", ", ".join(worse) or "none", not worse),
            Aim("every best grouping proven", f"{proven} of {len(blocks)}", proven == len(blocks)),
        ],
        not_said="measured traffic or times; what Inductor does on a GPU, where its scheduler is another one.",
    )


def _note(block: RecordedBlock, pattern: str) -> str:
    if block.compiler.repeated:
        return f" (b: {block.compiler.buffer_bytes / MIB:,.1f})"
    return " (a)" if pattern else ""


def _moved(block: RecordedBlock, grouping: Grouping) -> tuple[int, int]:
    spent = cost(block.core, grouping, block.gpu)
    return spent.total_bytes, spent.launches


def _written(moved: tuple[int, int]) -> str:
    return f"{moved[0] / MIB:,.1f} / {moved[1]}"
