"""The lesson's panel as one would write it with ``interact`` and matplotlib: the thing to compare with.

The benchmark's notebook carries this file as a cell. Written as it would be taught: one function that draws a new
figure from the controls' values, with the same model, the same picture and the same table.
"""

import math

import matplotlib.pyplot as plt
from ipywidgets import Checkbox, IntSlider, SelectionSlider, interactive
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from lessons_lib import chain_traffic, format_bytes

OPERATORS = ["+ b", "gelu", "× s", "clip", "+ c", "tanh", "× t", "relu", "- m", "exp", "÷ d", "abs"]
READ, WRITE, ON_CHIP, INK, MUTED, LINE = "#0072B2", "#D55E00", "#009E73", "#1b1f24", "#57606a", "#d0d7de"


def box(ax: Axes, x: float, y: float, width: float, height: float, face: str, edge: str, style: str = "-") -> None:
    """A rounded box with its lower left corner at (x, y)."""
    shape = "round,pad=0,rounding_size=6"
    ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, fc=face, ec=edge, ls=style))


def arrow(ax: Axes, x: float, y_from: float, y_to: float, colour: str, tensor_bytes: int, counted: bool) -> None:
    """A vertical arrow, wider for more bytes; grey and dashed where its bytes are not counted."""
    width = 1.5 + math.log(tensor_bytes / 2**20, 4) * 0.7 if counted else 1
    style = {"arrowstyle": "-|>", "color": colour if counted else MUTED, "lw": width, "ls": "-" if counted else "--"}
    ax.annotate("", xy=(x, y_to), xytext=(x, y_from), arrowprops=style)


def tensor(ax: Axes, x: float, width: float, name: str, tensor_bytes: int, counted: bool) -> None:
    """A tensor in the memory band, with its size where it fits."""
    box(ax, x - width / 2, 52, width, 34, "white", MUTED, "-" if counted else "--")
    label = f"{name}\n{format_bytes(tensor_bytes)}" if width > 60 else name
    ax.text(x, 69, label, ha="center", va="center", fontsize=8, color=INK if counted else MUTED)


def draw_operator(ax: Axes, left: float, right: float, words: str) -> None:
    """One operator inside a kernel."""
    box(ax, left + 13, 178, right - left - 26, 38, "white", INK)
    ax.text((left + right) / 2, 197, words, ha="center", va="center", fontsize=9, weight="bold")


def draw_kept(ax: Axes, x: float, name: str) -> None:
    """A tensor that stays on chip: a link between two operators and a capsule beneath."""
    ax.plot([x - 13, x + 13], [197, 197], color=ON_CHIP, lw=3)
    capsule = {"boxstyle": "round,pad=0.3,rounding_size=0.8", "fc": "#00795a", "ec": "none"}
    ax.text(x, 162, name, ha="center", va="center", fontsize=8, color="white", bbox=capsule)


def draw_kernels(ax: Axes, xs: list[float], groups: int, side_input: bool) -> set[int]:
    """The kernels with what is inside them; returns the positions of the tensors between them."""
    small, larger = divmod(len(xs) - 1, groups)
    first, cuts = 0, set()
    for number in range(1, groups + 1):
        end = first + small + (number <= larger)
        left, right = xs[first] + 7, xs[end] - 7
        box(ax, left, 148, right - left, 92, "#eef6f3", ON_CHIP)
        name = f"kernel {number}" if right - left > 70 else str(number)
        ax.text(left + 8, 223, name, fontsize=9, weight="bold", color="#00664a")
        for position in range(first, end):
            last = side_input and position == len(xs) - 2
            draw_operator(ax, xs[position], xs[position + 1], "+ r" if last else OPERATORS[position])
            if position > first:
                draw_kept(ax, xs[position], f"t{position}")
        first = end
        cuts.add(end)
    return cuts - {first}


def draw_tensors(
    ax: Axes, xs: list[float], pitch: float, cuts: set[int], tensor_bytes: int, compulsory: bool
) -> None:
    """The tensors in memory, each with the arrows of its traffic."""
    last, width, offset = len(xs) - 1, min(74.0, pitch - 6), min(18.0, pitch / 4)
    for position in sorted({0, last} | cuts):
        inner = position in cuts
        counted = inner or compulsory
        if position > 0:
            arrow(ax, xs[position] - offset, 146, 88, WRITE, tensor_bytes, counted)
        if position < last:
            arrow(ax, xs[position] + offset, 88, 146, READ, tensor_bytes, counted)
        tensor(ax, xs[position], width, f"t{position}" if inner else "y" if position else "x", tensor_bytes, counted)


def draw_frame(ax: Axes, title: str, figures: list[str], compulsory: bool) -> None:
    """Card, bands, legend, title and the arithmetic at the top right."""
    ax.set(xlim=(0, 760), ylim=(0, 346))
    ax.axis("off")
    box(ax, 1, 1, 758, 344, "white", LINE)
    box(ax, 20, 16, 720, 84, "#f6f8fa", LINE)
    ax.text(28, 28, "device memory" if compulsory else "device memory · dashed: not counted", fontsize=8, color=MUTED)
    ax.text(28, 252, "on chip", fontsize=8, color=MUTED)
    legend = [(494, "●", "kept on chip", ON_CHIP), (614, "▲", "read", READ), (672, "▼", "write", WRITE)]
    for x, mark, words, colour in legend:
        ax.text(x, 28, mark, fontsize=8, color=colour)
        ax.text(x + 14, 28, words, fontsize=8)
    ax.text(28, 312, title, fontsize=12, weight="bold")
    for row, line in enumerate(figures):
        ax.text(732, 312 - 20 * row, line, ha="right", fontsize=9.5)


def print_table(num_ops: int, tensor_bytes: int, groups: int, compulsory: bool, side_input: bool) -> None:
    """The three plans of the lesson beneath the picture."""
    print(f"{'plan':14}{'launches':>10}{'boundaries':>12}{'intermediate':>14}{'total' if compulsory else '':>12}")
    for name, count in (("unfused", num_ops), ("this grouping", groups), ("all fused", 1)):
        plan = chain_traffic(num_ops, tensor_bytes, count, side_inputs=int(side_input))
        total = format_bytes(plan["total_bytes"]) if compulsory else ""
        print(f"{name:14}{count:>10}{count - 1:>12}{format_bytes(plan['intermediate_bytes']):>14}{total:>12}")


def draw(num_ops: int, tensor_bytes: int, fused_groups: int, compulsory: bool, side_input: bool) -> None:
    """One figure and one table for the controls' values."""
    plan, size = chain_traffic(num_ops, tensor_bytes, fused_groups, int(side_input)), format_bytes(tensor_bytes)
    figures = [f"launches: {fused_groups}"]
    figures += [f"intermediate 2 × {fused_groups - 1} × {size} = {format_bytes(plan['intermediate_bytes'])}"]
    if compulsory:
        figures += [f"compulsory {2 + side_input} × {size} = {format_bytes(plan['compulsory_bytes'])}"]
        figures += [f"total {format_bytes(plan['total_bytes'])}"]
    steps = num_ops + int(side_input)
    pitch = min(160.0, 640 / steps)
    left = (760 - pitch * steps) / 2
    xs = [left + pitch * step for step in [*range(num_ops), steps]]

    _, ax = plt.subplots(figsize=(7.6, 3.46))
    draw_frame(ax, f"{num_ops} operators, {fused_groups} groups", figures, compulsory)
    cuts = draw_kernels(ax, xs, fused_groups, side_input)
    draw_tensors(ax, xs, pitch, cuts, tensor_bytes, compulsory)
    if side_input:
        arrow(ax, left + pitch * num_ops, 88, 146, READ, tensor_bytes, compulsory)
        tensor(ax, left + pitch * num_ops, min(74.0, pitch - 6), "r", tensor_bytes, compulsory)
    plt.show()
    print_table(num_ops, tensor_bytes, fused_groups, compulsory, side_input)


def interact_panel() -> interactive:
    """What ``interact(draw, ...)`` displays, with the groups bounded by the operators."""
    groups = IntSlider(4, 1, 4, description="groups")
    operators = IntSlider(4, 1, 12, description="operators")
    operators.observe(lambda change: setattr(groups, "max", change["new"]), names="value")
    sizes = [(format_bytes(2**power), 2**power) for power in range(20, 31)]
    return interactive(
        draw,
        num_ops=operators,
        tensor_bytes=SelectionSlider(options=sizes, value=64 * 2**20, description="tensor size"),
        fused_groups=groups,
        compulsory=Checkbox(False, description="count compulsory traffic"),
        side_input=Checkbox(False, description="add a side input"),
    )
