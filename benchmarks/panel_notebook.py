# mypy: untyped-calls-exclude=nbformat
"""The notebook that the panel's benchmark opens: three panels in one kernel, and a cell that times the kernel."""

from __future__ import annotations

from pathlib import Path

import nbformat

_IMPORTS = """
import json
import sys
import time

sys.path.insert(0, ROOT)
from lessons_lib import TrafficPanel
"""

# A floor for both: what Jupyter itself takes to carry a key press to the kernel and one line of text back.
_FLOOR = """
from ipywidgets import HTML, IntSlider, VBox

floor_slider, floor_line = IntSlider(4, 1, 12), HTML("<output>4</output>")
floor_slider.observe(lambda change: setattr(floor_line, "value", f"<output>{change['new']}</output>"), names="value")
VBox([floor_slider, floor_line])
"""

# The parts of our panel's redraw, for the chain that it opens with and for the longest one.
_PARTS = """
def samples_of(work, count=200):
    samples = []
    for _ in range(count):
        began = time.perf_counter()
        work()
        samples.append((time.perf_counter() - began) * 1000)
    return samples

parts = {
    "model": samples_of(panel.compute),
    "picture": samples_of(lambda: panel.picture(panel.result)),
    "table": samples_of(lambda: panel.table(panel.result).html()),
}
panel.set(num_ops=12, fused_groups=12)
parts["picture of 12 operators in 12 groups"] = samples_of(lambda: panel.picture(panel.result))
panel.set(num_ops=4, fused_groups=4)
print(json.dumps(parts))
"""

# Setting a slider from code runs what a key press runs in the kernel: callbacks, picture, messages to the socket.
_KERNEL_TIME = """
def milliseconds(slider, value):
    began = time.perf_counter()
    slider.value = value
    return (time.perf_counter() - began) * 1000

interact_slider = rival.children[0]
taken = {"ours": [], "interact": []}
for value in [5, 6, 5, 4] * ROUNDS:
    taken["ours"].append(milliseconds(panel.controls["num_ops"], value))
    taken["interact"].append(milliseconds(interact_slider, value))
    time.sleep(0.02)
print(json.dumps(taken))
"""


def write_notebook(path: Path, root: Path, kernel_rounds: int) -> None:
    """Write the notebook, which imports the package from ``root``; the benchmark asks for cells by their ids."""
    rival = (Path(__file__).parent / "interact_panel.py").read_text(encoding="utf-8")
    cells = {
        "imports": f"ROOT = {str(root)!r}\n{_IMPORTS}",
        "ours": "panel = TrafficPanel()\npanel",
        "rival-code": rival,
        "interact": "rival = interact_panel()\nrival",
        "floor": _FLOOR,
        "kernel-time": f"ROUNDS = {kernel_rounds}\n{_KERNEL_TIME}",
        "parts": _PARTS,
    }
    notebook = nbformat.v4.new_notebook()
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for name, code in cells.items():
        notebook.cells.append(nbformat.v4.new_code_cell(code.strip(), id=name))
    nbformat.write(notebook, path)
