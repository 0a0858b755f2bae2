"""Compile reports on disk, so that a second look costs nothing. A cache that fails costs time and is never an error.

What is kept are texts of JSON under a key of 64 letters, in a ``diskcache`` folder of the learner's own. A folder that
cannot be written to, a damaged file, a missing package (or no SQLite, in a browser): it is simply compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

_NAME = "operator-fusion-lessons"
_LARGEST = 2**26  # bytes of the whole cache; a report takes some hundred
_WAIT_SECONDS = 2.0  # for another process that is writing
_DATABASE = ("cache.db", "cache.db-wal", "cache.db-shm")

_T = TypeVar("_T")


def cache_folder() -> Path:
    """Where reports are kept: ``LESSONS_CACHE`` if it is set, else the system's folder for caches of this user."""
    chosen = os.environ.get("LESSONS_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return _system_folder() / _NAME / "compiled"


def _system_folder() -> Path:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 -- Path.home() raises where there is none
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")


class ReportCache:
    """Mappings by key, in this process and in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._here: dict[str, dict[str, Any]] = {}
        self._store: Any = None
        self._given_up = False

    def get(self, key: str) -> dict[str, Any] | None:
        """What was put under ``key``, or ``None``."""
        if key in self._here:
            return dict(self._here[key])
        text = self._try(lambda store: store.get(key))
        try:
            value = json.loads(text) if isinstance(text, str) else None
        except ValueError:
            value = None
        if not isinstance(value, dict):
            return None
        self._here[key] = value
        return dict(value)

    def put(self, key: str, value: Mapping[str, Any], *, on_disk: bool = True) -> None:
        """Keep ``value`` under ``key``; with ``on_disk=False`` for this process only."""
        self._here[key] = dict(value)
        if on_disk:
            self._try(lambda store: store.set(key, json.dumps(dict(value))))

    def drop(self, key: str) -> None:
        """Forget ``key``."""
        self._here.pop(key, None)
        self._try(lambda store: store.delete(key))

    def close(self) -> None:
        """Let go of the files."""
        store, self._store = self._store, None
        if store is not None:
            with contextlib.suppress(Exception):
                store.close()

    def _try(self, action: Callable[[Any], _T]) -> _T | None:
        """``action`` on the store; a damaged store is made anew once, any other fault ends its use in this process."""
        for attempt in range(2):
            if self._given_up:
                return None
            try:
                if self._store is None:
                    self._store = _open(self.folder)
                return action(self._store)
            except Exception as error:
                self.close()
                if attempt or not _is_damage(error) or not _removed(self.folder):
                    self._given_up = True
        return None


def _is_damage(error: Exception) -> bool:
    """Whether the file is at fault, and not that it is read-only, held by another process, or on a full disk."""
    try:
        import sqlite3
    except ImportError:
        return False
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def _open(folder: Path) -> Any:
    import diskcache

    _require_free(folder / _DATABASE[0])
    return diskcache.Cache(str(folder), timeout=_WAIT_SECONDS, size_limit=_LARGEST)


def _require_free(database: Path) -> None:
    """Wait ``_WAIT_SECONDS`` at most for a file that another process holds: opening it, diskcache waits a minute.

    Raises:
        sqlite3.OperationalError: it is held, or cannot be written to.
        sqlite3.DatabaseError: it is damaged.
    """
    import sqlite3

    if not database.exists():
        return
    connection = sqlite3.connect(database, timeout=_WAIT_SECONDS, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def _removed(folder: Path) -> bool:
    """Whether the files of a damaged store could be removed: nothing else in the folder is touched."""
    try:
        for name in _DATABASE:
            (folder / name).unlink(missing_ok=True)
    except OSError:
        return False
    return True


@functools.cache
def _cache_in(folder: Path) -> ReportCache:
    return ReportCache(folder)


def shared_cache() -> ReportCache:
    """The cache of this process, in ``cache_folder()``."""
    return _cache_in(cache_folder())
