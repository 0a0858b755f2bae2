"""How large the data caches of this machine's processor are, found with the standard library.

Best effort: a level that cannot be read is ``None``, and nothing raises. A virtual machine may report the caches of
the whole processor, of which it has a share. Reading is kept apart from understanding, so that parsers can be tested.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lessons_lib.base.units import KIB

_TOOL_TIMEOUT_SECONDS = 3
_GLIBC_SIZES = (188, 191, 194)  # _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE
_UNITS = {"": 1, "K": KIB, "M": KIB**2, "G": KIB**3}


@dataclass(frozen=True)
class Cache:
    """One data or unified cache: its size, and whether other cores use it too (``None`` where unknown)."""

    level: int
    size_bytes: int
    shared: bool | None = None


@dataclass(frozen=True)
class CpuCaches:
    """The caches between one core and memory; ``None`` for a level that is missing or cannot be read."""

    l1d: Cache | None = None
    l2: Cache | None = None
    l3: Cache | None = None

    @property
    def known(self) -> tuple[Cache, ...]:
        """Those that were found, the one closest to the core first."""
        return tuple(cache for cache in (self.l1d, self.l2, self.l3) if cache is not None)

    @classmethod
    def of(cls, caches: Iterable[Cache]) -> CpuCaches:
        """The first cache of each level from 1 to 3 that has a size."""
        found: dict[int, Cache] = {}
        for cache in caches:
            if cache.size_bytes > 0:
                found.setdefault(cache.level, cache)
        return cls(found.get(1), found.get(2), found.get(3))


def cpu_caches() -> CpuCaches:
    """The caches of a core that this process may use, in well under a second; never raises."""
    try:
        if sys.platform == "win32":
            return parse_windows_records(_windows_records())
        if sys.platform == "darwin":
            return parse_sysctl(_sysctl())
        if sys.platform == "emscripten":
            return CpuCaches()
        found = parse_sysfs(_sysfs_entries(Path("/sys/devices/system/cpu")))
        return found if found.known else of_sizes(_sysconf())
    except Exception:  # machines are odd in unforeseen ways
        return CpuCaches()


# -- Linux ---------------------------------------------------------------------------------------------------


def parse_sysfs(entries: Iterable[Mapping[str, str]]) -> CpuCaches:
    """The caches from the texts of one core's ``cache/index*`` folders.

    Each entry maps the file names ``level``, ``type``, ``size`` and ``shared_cpu_list`` to their texts. Threads of
    one core share its first-level cache: a cache is shared when more than those use it.
    """
    rows = []
    for entry in entries:
        level, size = entry.get("level", "").strip(), parse_size(entry.get("size", ""))
        if entry.get("type", "").strip() in ("Data", "Unified") and level.isdecimal() and size:
            rows.append((int(level), size, parse_cpu_list(entry.get("shared_cpu_list", ""))))
    own = next((cpus for level, _, cpus in rows if level == 1), None)
    return CpuCaches.of(
        Cache(level, size, None if not cpus else len(cpus) > (len(own) if own else 1)) for level, size, cpus in rows
    )


def parse_size(text: str) -> int | None:
    """Bytes of a size as Linux writes it: ``"512K"`` -> 524288."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip())
    return int(match[1]) * _UNITS[match[2]] if match else None


def parse_cpu_list(text: str) -> frozenset[int]:
    """The numbers in a list like ``"0-3,8"``; none where it is not one."""
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text.strip()):
        return frozenset()
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def of_sizes(sizes: Iterable[int]) -> CpuCaches:
    """The caches from the sizes of levels 1, 2, 3, where 0 and -1 mean unknown."""
    return CpuCaches.of(Cache(level, size) for level, size in enumerate(sizes, 1))


def _sysfs_entries(root: Path) -> list[dict[str, str]]:
    usable: list[int] = sorted(getattr(os, "sched_getaffinity", lambda _: {0})(0))
    for cpu in usable:
        folders = sorted((root / f"cpu{cpu}" / "cache").glob("index*"))
        if folders:
            return [
                {name: _read(folder / name) for name in ("level", "type", "size", "shared_cpu_list")}
                for folder in folders
            ]
    return []


def _sysconf() -> list[int]:
    """What glibc asks the processor itself, for containers without that folder; another C library raises."""
    if sys.platform != "linux":
        return []
    return [os.sysconf(number) for number in _GLIBC_SIZES]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# -- macOS ---------------------------------------------------------------------------------------------------


def parse_sysctl(listed: str) -> CpuCaches:
    """The caches from the output of ``sysctl hw``; on Apple silicon those of the fast cores (``perflevel0``)."""
    values = dict(re.findall(r"^hw\.([\w.]+): (\d+)$", listed, re.MULTILINE))
    # Logical processors that share memory, the first-level cache, the second-level cache, and so on.
    config = re.search(r"^hw\.cacheconfig: ([\d ]+)$", listed, re.MULTILINE)
    sharing = [int(count) for count in config[1].split()] if config else []
    if "perflevel0.cpusperl2" in values:
        sharing = [0, 1, int(values["perflevel0.cpusperl2"])]
    caches = []
    for level, name in enumerate(("l1dcachesize", "l2cachesize", "l3cachesize"), 1):
        size = values.get(f"perflevel0.{name}") or values.get(name)
        if size:
            known = len(sharing) > level and sharing[level] > 0
            caches.append(Cache(level, int(size), sharing[level] > sharing[1] if known else None))
    return CpuCaches.of(caches)


def _sysctl() -> str:
    done = subprocess.run(["sysctl", "hw"], capture_output=True, timeout=_TOOL_TIMEOUT_SECONDS, check=False)
    return done.stdout.decode("utf-8", errors="replace")


# -- Windows -------------------------------------------------------------------------------------------------

_RECORD = struct.Struct("<QI4x BBHII 4x")  # SYSTEM_LOGICAL_PROCESSOR_INFORMATION of a 64-bit process
_RELATION_CACHE = 2
_INSTRUCTION, _TRACE = 1, 3


def parse_windows_records(records: bytes) -> CpuCaches:
    """The caches of the first core from what ``GetLogicalProcessorInformation`` of a 64-bit Windows fills in."""
    rows = []
    whole = len(records) // _RECORD.size * _RECORD.size
    for mask, relation, level, _, _, size, kind in _RECORD.iter_unpack(records[:whole]):
        if relation == _RELATION_CACHE and kind not in (_INSTRUCTION, _TRACE):
            rows.append((level, size, mask))
    own = next((mask for level, _, mask in rows if level == 1), 0)
    return CpuCaches.of(
        Cache(level, size, mask != own if own else None) for level, size, mask in rows if not own or mask & own
    )


def _windows_records() -> bytes:
    if sys.platform != "win32" or struct.calcsize("P") != 8:
        return b""
    import ctypes

    length = ctypes.c_ulong(0)
    ask = ctypes.windll.kernel32.GetLogicalProcessorInformation
    ask(None, ctypes.byref(length))
    buffer = ctypes.create_string_buffer(length.value)
    return buffer.raw if ask(buffer, ctypes.byref(length)) else b""
