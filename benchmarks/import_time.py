"""``import lessons_lib`` over bare Python, and what the first use of its parts loads."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from benchmarks.browser import ROOT
from benchmarks.results import Aim, Section
from benchmarks.summary import SUMMARY_HEADER, Summary, milliseconds

ROUNDS = 25
AIM_MS = 50.0
HEAVY = ("ipywidgets", "numpy", "matplotlib", "torch", "triton", "drawsvg", "IPython", "traitlets")

_BARE = "pass"
_IMPORT = "import lessons_lib"
_LOADED = """
import json, sys
before = set(sys.modules)
import lessons_lib
print(json.dumps(sorted(set(sys.modules) - before)))
"""
# Timed inside the process, one after the other: what is new at each step of a lesson.
_FIRST_USES = {
    "first call of a calculator": "lessons_lib.fusion_traffic(4, 64 * 2**20, 2)",
    "first panel (loads ipywidgets and drawsvg)": "lessons_lib.TrafficPanel()",
    "second panel": "lessons_lib.TrafficPanel()",
}


def measure() -> Section:
    """Start Python over and over, with and without the import, taking turns."""
    bare: list[float] = []
    imported: list[float] = []
    uses: list[dict[str, float]] = []
    _run(_IMPORT)  # writes the compiled modules, which an installed package has
    for number in range(ROUNDS):
        order = ((_BARE, bare), (_IMPORT, imported))
        for code, samples in order if number % 2 else reversed(order):
            samples.append(_run(code))
        uses.append(_first_uses())
    difference = Summary.of([with_it - without for without, with_it in zip(bare, imported, strict=True)])
    loaded = _loaded()
    heavy = [name for name in HEAVY if name in loaded]
    rows = {
        "python -c pass": Summary.of(bare),
        "python -c 'import lessons_lib'": Summary.of(imported),
        "difference, pair by pair": difference,
        **{name: Summary.of([use[name] for use in uses]) for name in _FIRST_USES},
    }
    return Section(
        title="Import",
        how=f"{ROUNDS} pairs of fresh processes, compiled modules and disk cache warm; the last rows are timed "
        f"inside a process, in this order. The import loads {len(loaded)} modules that bare Python has not.",
        header=["", *SUMMARY_HEADER],
        rows=[[name, *summary.cells(milliseconds)] for name, summary in rows.items()],
        aims=[
            Aim(f"difference under {AIM_MS:.0f} ms", milliseconds(difference.median), difference.median < AIM_MS),
            Aim(f"loads none of {', '.join(HEAVY)}", ", ".join(heavy) or "none", not heavy),
        ],
        not_said="a learner's first import after installing, when files come from the disk and are compiled; the "
        "time of a lesson's first cell, which in a notebook finds ipywidgets partly loaded by the kernel.",
    )


def _run(code: str) -> float:
    """Milliseconds from start to end of a Python process that runs ``code``."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    return (time.perf_counter() - began) * 1000


def _loaded() -> set[str]:
    """Modules that the import loads into a fresh process."""
    said = subprocess.run([sys.executable, "-c", _LOADED], cwd=ROOT, check=True, capture_output=True, text=True)
    return set(json.loads(said.stdout))


def _first_uses() -> dict[str, float]:
    """Milliseconds of each first use, in one fresh process."""
    code = ["import json, time, lessons_lib", "spent = []"]
    for use in _FIRST_USES.values():
        code += ["began = time.perf_counter()", use, "spent.append((time.perf_counter() - began) * 1000)"]
    code.append("print(json.dumps(spent))")
    said = subprocess.run(
        [sys.executable, "-c", "\n".join(code)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return dict(zip(_FIRST_USES, json.loads(said.stdout), strict=True))
