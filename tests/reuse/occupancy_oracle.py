"""NVIDIA's ``cuda_occupancy.h`` as an oracle: found, compiled, asked; and the table of its answers written anew.

    CUDA_OCCUPANCY_INCLUDE=/folder/of/headers python tests/reuse/occupancy_oracle.py

writes ``occupancy_oracle.json`` beside this file. Without the variable the headers come from an installed triton.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE / "occupancy_oracle.json"
VARIABLE = "CUDA_OCCUPANCY_INCLUDE"
TARGETS = (75, 80, 86, 89, 90, 100)
FIELDS = (
    "blocks_per_sm",
    "limiting_factors",
    "limit_warps",
    "limit_registers",
    "limit_shared_memory",  # -1: no limit
    "limit_blocks",
    "allocated_registers_per_block",
    "allocated_shared_bytes_per_block",
)
FACTORS = {"warps": 1, "registers": 2, "shared_memory": 4, "blocks": 8}  # cudaOccLimitingFactor

Question = tuple[int, int, int, int]


class OracleMissingError(Exception):
    """Why there is no oracle on this machine."""


def headers() -> Path:
    """The folder with ``cuda_occupancy.h``: from the variable, else of an installed triton, which is not imported."""
    given = os.environ.get(VARIABLE)
    if given:
        folder = Path(given)
        if not (folder / "cuda_occupancy.h").is_file():
            raise FileNotFoundError(f"{VARIABLE} = {given!r} has no cuda_occupancy.h")
        return folder
    spec = find_spec("triton")
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "backends" / "nvidia" / "include"
        if (folder / "cuda_occupancy.h").is_file():
            return folder
    raise OracleMissingError(f"no cuda_occupancy.h: triton is not installed and {VARIABLE} is not set")


class Oracle:
    """A running oracle; ``version`` is the header's own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.version = self._line()

    def __call__(self, question: Question) -> dict[str, int]:
        assert self._process.stdin
        self._process.stdin.write(" ".join(map(str, question)) + "\n")
        self._process.stdin.flush()
        return dict(zip(FIELDS, map(int, self._line().split()), strict=True))

    def _line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError("the oracle stopped: a question it does not know")
        return line


@contextmanager
def oracle() -> Iterator[Oracle]:
    """Compile and start it; ``OracleMissingError`` says what is missing."""
    folder = headers()
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        raise OracleMissingError("no C++ compiler (g++, c++, clang++)")
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "oracle"
        source = HERE / "occupancy_oracle.cpp"
        subprocess.run([compiler, "-O1", f"-isystem{folder}", str(source), "-o", str(program)], check=True)
        with subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield Oracle(process)
            assert process.stdin
            process.stdin.close()


def questions() -> Iterator[Question]:
    """What the table asks: edges of every target, then random configurations, the same every time."""
    shared_kib = {75: 64, 80: 163, 86: 99, 89: 99, 90: 227, 100: 227}
    chance = random.Random(20_24)
    for target in TARGETS:
        most = shared_kib[target] * 1024
        yield from ((target, 1, 1, 0), (target, 32, 16, 0), (target, 33, 32, 0), (target, 1024, 64, 0))
        yield from ((target, 1024, 65, 0), (target, 1025, 32, 0), (target, 160, 255, 0), (target, 128, 168, 49_152))
        yield from ((target, 128, 32, most), (target, 128, 32, most + 1), (target, 256, 64, most // 2))
        for _ in range(24):
            threads = chance.choice((32, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1024, chance.randint(1, 1056)))
            shared = chance.choice(
                (0, chance.randint(1, 9_000), chance.randint(1, most), chance.randint(1, most + 99))
            )
            yield target, threads, chance.randint(1, 255), shared


def write_table() -> None:
    version = re.search(r"#define CUDA_VERSION (\d+)", (headers() / "cuda.h").read_text(encoding="utf-8"))
    with oracle() as ask:
        origin = f"NVIDIA cuda_occupancy.h {ask.version}, CUDA_VERSION {version[1] if version else 'unknown'}"
        rows = [[*question, *ask(question).values()] for question in questions()]
    columns = ["target", "threads_per_block", "registers_per_thread", "shared_bytes_per_block", *FIELDS]
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    TABLE.write_text(
        f'{{\n  "origin": {json.dumps(origin)},\n  "written_by": "tests/reuse/occupancy_oracle.py",\n'
        f'  "columns": {json.dumps(columns)},\n  "rows": [\n{lines}\n  ]\n}}\n',
        encoding="utf-8",
    )
    print(f"{len(rows)} rows, {origin}")


if __name__ == "__main__":
    write_table()
