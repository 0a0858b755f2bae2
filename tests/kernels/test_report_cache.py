"""A second look costs nothing; a cache that is damaged, locked, read-only or missing costs time and is no error."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

diskcache = pytest.importorskip("diskcache")

from lessons_lib.base.gpus import A100, T4  # noqa: E402
from lessons_lib.kernels.compiler import cache as cache_module, report as report_module  # noqa: E402
from lessons_lib.kernels.compiler.cache import ReportCache, cache_folder, shared_cache  # noqa: E402
from lessons_lib.kernels.compiler.child import MISSING_FIGURE  # noqa: E402
from lessons_lib.kernels.compiler.report import compile_report, triton_version  # noqa: E402

needs_triton = pytest.mark.skipif(triton_version() is None, reason="needs Triton")

FIGURES = {
    "status": "ok",
    "registers": 40,
    "spill_bytes": 0,
    "shared_bytes": 512,
    "load_bytes": 16,
    "family": "fma",
    "seconds": 0.5,
}


class CountingWorker:
    """Answers every request with the same figures, and counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.reply: dict[str, Any] = FIGURES

    def compile(self, request: object, limit_seconds: float) -> dict[str, Any]:
        self.asked += 1
        return dict(self.reply)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    chosen = tmp_path / "cache"
    monkeypatch.setenv("LESSONS_CACHE", str(chosen))
    yield chosen
    shared_cache().close()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> CountingWorker:
    made = CountingWorker()
    monkeypatch.setattr(report_module, "shared_worker", lambda: made)
    monkeypatch.setattr(report_module, "triton_version", lambda: "3.7.1")
    return made


def another_process(monkeypatch: pytest.MonkeyPatch) -> ReportCache:
    """What a later process finds: the folder, and nothing in memory."""
    shared_cache().close()
    found = ReportCache(cache_folder())
    monkeypatch.setattr(report_module, "shared_cache", lambda: found)
    return found


# -- what is kept ------------------------------------------------------------------------------------------------


def test_a_second_look_asks_no_compiler_in_this_process_and_in_another(
    folder: Path, worker: CountingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compile_report("chain", T4)
    assert (first.registers_per_thread, first.shared_bytes, worker.asked) == (40, 512, 1)
    assert compile_report("chain", T4) == first
    assert worker.asked == 1
    another_process(monkeypatch)
    assert compile_report("chain", T4) == first
    assert worker.asked == 1
    assert (folder / "cache.db").is_file()


@pytest.mark.usefixtures("folder")
def test_every_parameter_is_a_question_of_its_own(worker: CountingWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"kernel": "epilogue"},
        {"gpu": A100},
        {"dtype": "fp32"},
        {"tile": (1, 2048)},
        {"num_warps": 8},
        {"num_stages": 2},
        {"sizes_multiple_of_16": False},
        {"first": 1},
        {"last": 2},
        {"kernel": "epilogue", "activation": "silu"},
    ]
    for count, change in enumerate(changes, 1):
        compile_report(**{"kernel": "chain", "gpu": T4, **change})
        assert worker.asked == count, change
    compile_report("chain", T4, limit_seconds=10)
    assert worker.asked == len(changes), "how long one would have waited changes no figure"
    monkeypatch.setattr(report_module, "triton_version", lambda: "3.8.0")
    assert compile_report("chain", T4).triton_version == "3.8.0"
    assert worker.asked == len(changes) + 1
    monkeypatch.setattr(report_module, "_own_sources", lambda: "another chain.py")
    compile_report("chain", T4)
    assert worker.asked == len(changes) + 2


def test_every_file_that_decides_is_in_the_key() -> None:
    """The kernels, and every file with a kernel's function that one of them imports."""
    kernels = Path(report_module.__file__).parents[1]
    texts = {
        path.relative_to(kernels).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in kernels.glob("**/*.py")
    }
    deciding = set(report_module._DECIDING)
    assert deciding <= set(texts)
    for name in deciding:
        found = re.findall(r"from lessons_lib\.kernels\.([\w.]+) import", texts[name])
        imported = {module.replace(".", "/") for module in found}
        compiled = {other for other in imported if "@triton.jit" in texts[other]}
        assert compiled <= deciding, name


@pytest.mark.usefixtures("folder")
def test_failures_are_not_kept(worker: CountingWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    worker.reply = {"status": "failed", "error": "no space left"}
    assert compile_report("chain", T4).status == "failed"
    worker.reply = FIGURES
    assert compile_report("chain", T4).status == "ok"
    assert worker.asked == 2
    another_process(monkeypatch)
    assert compile_report("chain", T4).status == "ok"


@pytest.mark.usefixtures("folder")
def test_giving_up_is_kept_in_this_process_only(worker: CountingWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    worker.reply = {"status": "timeout"}
    for _ in range(2):
        assert compile_report("chain", T4, limit_seconds=5).status == "timeout"
    assert worker.asked == 1
    another_process(monkeypatch)
    assert compile_report("chain", T4, limit_seconds=5).status == "timeout"
    assert worker.asked == 2


@pytest.mark.usefixtures("folder")
def test_figures_that_no_tool_gives_stay_unknown(worker: CountingWorker) -> None:
    worker.reply = {**FIGURES, "registers": MISSING_FIGURE, "spill_bytes": MISSING_FIGURE}
    found = compile_report("chain", T4)
    assert (found.status, found.registers_per_thread, found.spills, found.occupancy) == ("ok", None, None, None)
    assert "registers per thread" in repr(found)


# -- what can go wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"this is no database" * 1000,
        b"SQLite format 3\0" + b"\xff" * 8000,
    ],
)
def test_a_damaged_file_is_made_anew(
    folder: Path, worker: CountingWorker, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    first = compile_report("chain", T4)
    another_process(monkeypatch).close()
    for extra in ("cache.db-wal", "cache.db-shm"):
        (folder / extra).unlink(missing_ok=True)
    (folder / "cache.db").write_bytes(damage)
    (folder / "mine.txt").write_text("a file of the learner's own")
    another_process(monkeypatch)
    assert compile_report("chain", T4) == first
    assert worker.asked == 2
    another_process(monkeypatch)
    assert compile_report("chain", T4) == first
    assert worker.asked == 2, "kept again"
    assert (folder / "mine.txt").exists()


def test_a_page_damaged_in_the_middle_costs_time_only(
    folder: Path, worker: CountingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_report("chain", T4)
    cache = another_process(monkeypatch)
    for number in range(200):  # many pages
        cache.put(f"{number}", {"text": "x" * 500})
    cache.close()
    with sqlite3.connect(folder / "cache.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode=DELETE")
    database.close()
    raw = bytearray((folder / "cache.db").read_bytes())
    raw[4096:-4096] = os.urandom(len(raw) - 8192)  # the first page is sound: it opens
    (folder / "cache.db").write_bytes(raw)
    another_process(monkeypatch)
    for _ in range(3):
        assert compile_report("chain", T4).status == "ok"
    assert worker.asked == 2


@pytest.mark.parametrize(
    "record",
    [
        "no JSON",
        "[1, 2]",
        "{}",
        json.dumps({**FIGURES, "registers": "many"}),
        json.dumps({**FIGURES, "spill_bytes": -7}),
        json.dumps({**FIGURES, "shared_bytes": True}),
        json.dumps({**FIGURES, "family": "magic"}),
        json.dumps({**FIGURES, "seconds": None}),
        json.dumps({**FIGURES, "status": "failed"}),
        42,
    ],
)
def test_a_record_that_makes_no_sense_is_compiled_again(
    folder: Path, worker: CountingWorker, monkeypatch: pytest.MonkeyPatch, record: object
) -> None:
    first = compile_report("chain", T4)
    another_process(monkeypatch).close()
    with diskcache.Cache(str(folder)) as store:
        (key,) = list(store)
        store[key] = record
    another_process(monkeypatch)
    assert compile_report("chain", T4) == first
    assert worker.asked == 2
    another_process(monkeypatch)
    assert compile_report("chain", T4) == first
    assert worker.asked == 2


def test_a_folder_that_is_a_file_costs_time_only(
    tmp_path: Path, worker: CountingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LESSONS_CACHE", str(tmp_path / "file"))
    assert compile_report("chain", T4).status == "ok"
    assert compile_report("chain", T4).status == "ok"
    assert worker.asked == 1, "this process remembers"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that even root cannot write to")
def test_a_folder_that_cannot_be_made_costs_time_only(
    worker: CountingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONS_CACHE", "/proc/lessons")
    assert compile_report("chain", T4).status == "ok"
    assert worker.asked == 1


READ_ONLY = """
import os, sys, diskcache
from pathlib import Path
from lessons_lib.kernels.compiler.cache import ReportCache
if os.geteuid() == 0:  # root may write anywhere
    os.setgid(65534)
    os.setuid(65534)
cache = ReportCache(Path(sys.argv[1]))
found = cache.get("key")
cache.put("other", {"figure": 2})
print(found in (None, {"figure": 1}), cache.get("other"), ReportCache(Path(sys.argv[1])).get("other"))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users, one of whom may not write")
def test_a_read_only_folder_costs_time_only() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "cache"
        Path(name).chmod(0o755)
        cache = ReportCache(folder)
        cache.put("key", {"figure": 1})
        cache.close()
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(folder)],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        folder.chmod(0o755)
    assert done.stdout.strip() == "True {'figure': 2} None", done.stderr


def test_another_process_that_holds_the_file_costs_time_only(
    folder: Path, worker: CountingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_report("chain", T4)
    another_process(monkeypatch).close()
    monkeypatch.setattr(cache_module, "_WAIT_SECONDS", 0.05)
    holder = sqlite3.connect(folder / "cache.db", isolation_level=None)
    holder.execute("PRAGMA locking_mode=EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    try:
        cache = another_process(monkeypatch)
        assert compile_report("chain", T4).status == "ok"
        cache.put("more", {"figure": 1})
        assert cache.get("more") == {"figure": 1}
    finally:
        holder.close()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("missing", [("diskcache",), ("diskcache", "sqlite3")])
def test_without_diskcache_nothing_is_kept_and_nothing_fails(
    worker: CountingWorker, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    assert compile_report("chain", T4).status == "ok"
    another_process(monkeypatch)
    assert compile_report("chain", T4).status == "ok"
    assert worker.asked == 2


@needs_triton
@pytest.mark.usefixtures("folder")
def test_the_real_compiler_s_figures_come_back_from_disk_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_report("softmax", A100)
    assert first.status == "ok"
    another_process(monkeypatch)
    monkeypatch.setattr(report_module, "shared_worker", lambda: None)
    again = compile_report("softmax", A100)
    assert again == first
    assert dataclasses.asdict(again) == dataclasses.asdict(first)


# -- where it is -------------------------------------------------------------------------------------------------


def test_the_folder_is_the_one_that_the_learner_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LESSONS_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LESSONS_CACHE", "~/here")
    assert cache_folder() == tmp_path / "here"


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "HOME/.cache"),
        ("linux", {"XDG_CACHE_HOME": "/else"}, "/else"),
        ("darwin", {}, "HOME/Library/Caches"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
        ("win32", {}, "HOME/AppData/Local"),
    ],
)
def test_else_it_is_the_system_s_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, variables: dict[str, str], expected: str
) -> None:
    for name in ("LESSONS_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(cache_module.sys, "platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(cache_folder()).startswith(expected.replace("HOME", str(tmp_path)))
