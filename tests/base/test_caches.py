"""Cache sizes read from the texts that real systems give; and that looking never raises."""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lessons_lib.base import caches
from lessons_lib.base.caches import Cache, CpuCaches
from lessons_lib.base.units import KIB, MIB


def entry(level: str, kind: str, size: str, cpus: str) -> dict[str, str]:
    return {"level": f"{level}\n", "type": f"{kind}\n", "size": f"{size}\n", "shared_cpu_list": f"{cpus}\n"}


def test_linux_two_threads_a_core() -> None:
    found = caches.parse_sysfs(
        [
            entry("1", "Data", "48K", "0,4"),
            entry("1", "Instruction", "32K", "0,4"),
            entry("2", "Unified", "2048K", "0,4"),
            entry("3", "Unified", "33792K", "0-7"),
        ]
    )
    assert found == CpuCaches(Cache(1, 48 * KIB, False), Cache(2, 2 * MIB, False), Cache(3, 33 * MIB, True))
    assert [cache.level for cache in found.known] == [1, 2, 3]


def test_linux_second_level_of_a_cluster_is_shared() -> None:
    found = caches.parse_sysfs([entry("1", "Data", "64K", "0"), entry("2", "Unified", "1M", "0-3")])
    assert found == CpuCaches(Cache(1, 64 * KIB, False), Cache(2, MIB, True), None)


def test_linux_arm_without_sizes_is_unknown() -> None:
    assert caches.parse_sysfs([entry("1", "Data", "", "0"), {"level": "2", "type": "Unified"}]) == CpuCaches()
    assert caches.parse_sysfs([]).known == ()


def test_linux_sharing_unknown() -> None:
    assert caches.parse_sysfs([{"level": "2", "type": "Unified", "size": "512K"}]).l2 == Cache(2, 512 * KIB, None)


@pytest.mark.parametrize(
    ("text", "size"), [("32K", 32768), ("1M\n", MIB), ("512", 512), ("", None), ("K", None), ("-1K", None)]
)
def test_sizes(text: str, size: int | None) -> None:
    assert caches.parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("0-", set()), ("a", set())]
)
def test_lists_of_processors(text: str, cpus: set[int]) -> None:
    assert caches.parse_cpu_list(text) == cpus


def test_c_library() -> None:
    assert caches.of_sizes([32768, 0, -1]) == CpuCaches(Cache(1, 32768))
    assert caches.of_sizes([]) == CpuCaches()


def test_apple_silicon() -> None:
    listed = """hw.ncpu: 10
hw.l1dcachesize: 65536
hw.l2cachesize: 4194304
hw.perflevel0.physicalcpu: 8
hw.perflevel0.l1icachesize: 196608
hw.perflevel0.l1dcachesize: 131072
hw.perflevel0.l2cachesize: 12582912
hw.perflevel0.cpusperl2: 4
hw.perflevel1.l1dcachesize: 65536
"""
    assert caches.parse_sysctl(listed) == CpuCaches(Cache(1, 128 * KIB, False), Cache(2, 12 * MIB, True), None)


def test_intel_mac() -> None:
    listed = """hw.cacheconfig: 8 2 2 8 0 0 0 0 0 0
hw.l1icachesize: 32768
hw.l1dcachesize: 32768
hw.l2cachesize: 262144
hw.l3cachesize: 6291456
"""
    assert caches.parse_sysctl(listed) == CpuCaches(
        Cache(1, 32 * KIB, False), Cache(2, 256 * KIB, False), Cache(3, 6 * MIB, True)
    )
    assert caches.parse_sysctl("") == CpuCaches()


def record(mask: int, relation: int, level: int = 0, size: int = 0, kind: int = 0) -> bytes:
    return struct.pack("<QIIBBHIII", mask, relation, 0, level, 8, 64, size, kind, 0)


def test_windows() -> None:
    records = b"".join(
        [
            record(0b0011, 0),  # a core
            record(0b0011, 2, 1, 48 * KIB, 2),
            record(0b0011, 2, 1, 32 * KIB, 1),  # instructions
            record(0b1100, 2, 2, 4 * MIB, 0),  # of another core
            record(0b0011, 2, 2, MIB, 0),
            record(0b1111, 2, 3, 24 * MIB, 0),
            b"\0" * 5,
        ]
    )
    assert len(record(1, 0)) == 32
    assert caches.parse_windows_records(records) == CpuCaches(
        Cache(1, 48 * KIB, False), Cache(2, MIB, False), Cache(3, 24 * MIB, True)
    )
    assert caches.parse_windows_records(b"") == CpuCaches()


def test_this_machine_answers_quickly() -> None:
    start = time.perf_counter()
    found = caches.cpu_caches()
    assert time.perf_counter() - start < 3
    for cache in found.known:
        assert KIB <= cache.size_bytes < 4 * KIB * MIB


def test_a_folder_like_that_of_linux_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches.os, "sched_getaffinity", lambda _: {3, 7}, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    folder = tmp_path / "cpu7/cache/index0"
    folder.mkdir(parents=True)
    for name, text in entry("1", "Data", "32K", "7").items():
        (folder / name).write_text(text)
    assert caches.parse_sysfs(caches._sysfs_entries(tmp_path)) == CpuCaches(Cache(1, 32 * KIB, False))


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32", "emscripten", "plan9"])
def test_looking_never_raises(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("sysctl", 3)

    monkeypatch.setattr(caches, "sys", SimpleNamespace(platform=platform))
    for name in ("_sysfs_entries", "_sysctl", "_windows_records", "_sysconf"):
        monkeypatch.setattr(caches, name, fail)
    assert caches.cpu_caches() == CpuCaches()
