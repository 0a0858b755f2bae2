"""What the learner has done, in a file of the learner's own: ``fusion-progress.json`` in the current folder.

The file holds *sections* (``"puzzles"``), in each section *entries* by key. The environment variable ``LESSONS_PROGRESS``
names another file; ``off`` keeps everything in memory. Nothing here raises because of the file: where it cannot be read
or written, progress lives in memory until the kernel stops, and ``progress_notice`` says so.

- Written whole or not at all: into a temporary file beside it, which then takes its place.
- Each write reads the file first, under a lock, so that two notebooks do not lose each other's entries.
- A file that makes no sense is renamed ``fusion-progress.broken-1.json``; it is never overwritten.
- Sections and fields that this version does not know stay as they are.
- It names its learner by a random number, made with the file, so that two files of one learner can be told.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any

from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, require_name, shown

FILE_NAME = "fusion-progress.json"
VARIABLE = "LESSONS_PROGRESS"
FORMAT, VERSION = "fusion-progress", 1
EXPORT_FORMAT, EXPORT_NAME = "fusion-results", "fusion-results.json"

_MOST_BYTES = 4 * 2**20  # of a file; a year of lessons has some ten thousand
_MOST_ENTRY_BYTES = 64 * 2**10
_DEEPEST = 32
_LONGEST_NAME = 80
_LOCK_SECONDS = 3.0  # a lock that has not changed for this long belongs to a process that died

_BROKEN = Text(
    zh="进度文件读不懂，已改名为 {name}（内容没有动过），进度从头记起。",
    en="The progress file made no sense. It is now called {name}, its contents untouched; progress starts afresh.",
)
_NEWER = Text(
    zh="进度文件是更新版本的课程写的（版本 {version}）。为了不损坏它，这次的进度只保留到内核关闭为止。",
    en="The progress file was written by a newer version of the course (version {version}). So as not to damage it, "
    "progress is kept only until the kernel stops.",
)
_UNWRITABLE = Text(
    zh="进度文件写不进去（{reason}），进度只保留到内核关闭为止。",
    en="The progress file cannot be written ({reason}), so progress is kept only until the kernel stops.",
)

Entries = dict[str, dict[str, Any]]

_guard = threading.RLock()
_unsaved: dict[Path | None, dict[str, Entries]] = {}  # by file; None: LESSONS_PROGRESS=off
_notices: dict[Path, Text] = {}
_told: set[tuple[Path, str]] = set()
_ids: dict[Path | None, str] = {}  # for files that bear none yet
_ID = re.compile(r"[0-9a-f]{16}")


class _CorruptError(Exception):
    """The file makes no sense."""


class _UnusableError(Exception):
    """The file is best left alone."""

    def __init__(self, notice: Text) -> None:
        self.notice = notice


# -- what the lessons call ------------------------------------------------------------------------------------


def note_progress(section: str, key: str, entry: Mapping[str, Any]) -> None:
    """Keep ``entry`` under ``key`` of ``section``, in place of what was there; in the file if that can be.

    Raises:
        ValueError: a blank name, or an entry that is no mapping from strings to what JSON can hold, or one of more than
            64 KiB.
    """
    section, key = require_name("section", section), require_name("key", key)
    kept = _checked_entry(entry)
    with _guard:
        path = progress_path()
        unsaved = _unsaved.setdefault(path, {})
        unsaved.setdefault(section, {})[key] = kept
        if path is not None:
            _save(path, unsaved)


def note_step(section: str, key: str, lesson: str, fields: Mapping[str, Any]) -> None:
    """Keep what the learner has just done in a lesson: ``note_progress`` of ``stamped`` fields that never raises.

    With ``LESSONS_PROGRESS=off`` nothing is kept, for then a test or a builder did it.
    """
    with suppress(Exception):  # a note that cannot be taken must not stop a lesson
        if has_progress_file():
            note_progress(section, key, stamped(lesson, fields))


def stamped(lesson: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of these fields, with its lesson (``"01"``) and the day (``"2026-11-29"``)."""
    return {**fields, "lesson": lesson, "day": date.today().isoformat()}


def noted(section: str, key: str) -> dict[str, Any]:
    """The entry under ``key``, whatever it holds; empty where there is none, or nothing can be read; never raises."""
    with suppress(Exception):
        return progress_of(section).get(key, {})
    return {}


def progress_of(section: str) -> Entries:
    """The entries of a section by key, those of other notebooks included; a copy. Entries that are none are left out.

    Raises:
        ValueError: a blank name.
    """
    return _sections().get(require_name("section", section), {})


def progress_path() -> Path | None:
    """The file that progress goes to, links followed; ``None`` where ``LESSONS_PROGRESS=off``."""
    chosen = os.environ.get(VARIABLE, "").strip()
    if chosen.lower() == "off":
        return None
    try:
        return Path(os.path.realpath(Path(chosen).expanduser() if chosen else FILE_NAME))
    except (OSError, RuntimeError):  # the folder that the kernel runs in is gone, or "~nobody" has no home
        return Path(chosen or FILE_NAME)


def has_progress_file() -> bool:
    """Whether progress is a learner's own, and no test's or builder's: ``LESSONS_PROGRESS`` is not ``off``."""
    return os.environ.get(VARIABLE, "").strip().lower() != "off"


def progress_notice() -> Text | None:
    """What the learner should know about the file; ``None`` where all is well."""
    path = progress_path()
    return None if path is None else _notices.get(path)


def untold_notice() -> Text | None:
    """``progress_notice``, once each: ``None`` for one that has been given out before; never raises."""
    with suppress(Exception):
        path, notice = progress_path(), progress_notice()
        if path is not None and notice is not None and (path, notice.en) not in _told:
            _told.add((path, notice.en))
            return notice
    return None


def export_progress(name: str = "", path: str | os.PathLike[str] | None = None) -> Path:
    """Write everything noted so far into one JSON file for an instructor; gives its path.

    It holds no personal data but the name typed here, and the file's random number. An existing file is never
    overwritten: the new one gets a number.

    Args:
        name: of the learner, cut to 80 characters; may be blank.
        path: a file that ends in ``.json``, or a folder to put ``fusion-results.json`` in, made where it is missing; by
            default the current folder.

    Raises:
        ValueError: the name is no string, or nothing can be written there; in both languages.
    """
    if not isinstance(name, str):
        raise bad_argument(
            "name", zh=f"需要字符串，收到的是 {shown(name)}", en=f"it must be a string, got {shown(name)}"
        )
    cleaned = " ".join("".join(c if c.isprintable() else " " for c in name).split())[:_LONGEST_NAME]
    sections = _sections()
    learner = _learner_in(progress_path())
    data = {"format": EXPORT_FORMAT, "version": VERSION, "name": cleaned, "learner": learner, "sections": sections}
    try:
        target = Path() if path is None else Path(path).expanduser()
        if target.suffix.lower() != ".json":  # whoever reads a class looks for nothing else
            target.mkdir(parents=True, exist_ok=True)
        return _written_new(target / EXPORT_NAME if target.is_dir() else target, _bytes_of(data))
    except (OSError, TypeError, ValueError) as error:
        reason = type(error).__name__
        raise bad_argument(
            "path", zh=f"{shown(path)} 写不进去（{reason}）", en=f"{shown(path)} cannot be written ({reason})"
        ) from None


# -- reading --------------------------------------------------------------------------------------------------


def _sections() -> dict[str, Entries]:
    """All sections: what the file holds, and over it what could not be saved."""
    with _guard:
        path = progress_path()
        stored = {} if path is None else _stored_sections(path)
        sections = {name: _entries(entries) for name, entries in stored.items() if isinstance(entries, dict)}
        for name, entries in _unsaved.get(path, {}).items():
            sections.setdefault(name, {}).update(json.loads(json.dumps(entries)))
        return sections


def _entries(entries: Mapping[str, Any]) -> Entries:
    return {key: entry for key, entry in entries.items() if key.strip() and isinstance(entry, dict)}


def _learner_in(path: Path | None) -> str:
    """The random number that tells this learner's files from another's."""
    stored: object = None
    if path is not None:
        with suppress(OSError, _CorruptError, _UnusableError):
            stored = _read(path).get("learner")
    return stored if isinstance(stored, str) and _ID.fullmatch(stored) else _new_id(path)


def _new_id(path: Path | None) -> str:
    """Sixteen hexadecimal digits; the same ones for the same file while the kernel lives."""
    return _ids.setdefault(path, secrets.token_hex(8))


def _stored_sections(path: Path) -> dict[str, Any]:
    try:
        return _sections_in(_read(path))
    except _CorruptError:
        with suppress(OSError, _UnusableError), _locked(path):
            _read_or_set_aside(path)
    except _UnusableError as error:
        _notices[path] = error.notice
    except OSError as error:
        _notices[path] = _unwritable(error)
    return {}


def _read_or_set_aside(path: Path) -> dict[str, Any]:
    """What the file holds, once it is locked; a file that makes no sense is renamed and counts as empty."""
    try:
        return _read(path)
    except _CorruptError:
        _notices[path] = _BROKEN.format(name=_set_aside(path).name)
        return {}


def _read(path: Path) -> dict[str, Any]:
    """The file's whole contents; none if it is not there or is empty.

    Raises:
        OSError, _CorruptError, _UnusableError: as their names say.
    """
    if not path.exists():
        return {}
    if not path.is_file():
        raise _UnusableError(_unwritable(FileExistsError()))
    with path.open("rb") as file:
        raw = file.read(_MOST_BYTES + 1)
    if not raw.strip():
        return {}
    try:
        text = raw.decode("utf-8-sig")  # an editor on Windows may have put a mark in front
        data = json.loads(text, parse_constant=_refuse_constant) if len(raw) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        raise _CorruptError from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or _is_deeper(data, _DEEPEST):
        raise _CorruptError
    version = data.get("version")
    if not isinstance(version, int) or version < 1:
        raise _CorruptError
    if version > VERSION:
        raise _UnusableError(_NEWER.format(version=shown(version)))
    _sections_in(data)
    return data


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _sections_in(data: Mapping[str, Any]) -> dict[str, Any]:
    sections = data.get("sections", {})
    if not isinstance(sections, dict):
        raise _CorruptError
    return sections


def _is_deeper(value: object, limit: int) -> bool:
    level: list[object] = [value]
    for _ in range(limit):
        level = [
            item
            for outer in level
            if isinstance(outer, (dict, list))
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _checked_entry(entry: object) -> dict[str, Any]:
    """A copy of an entry, once it is sure that JSON holds it."""
    try:
        text = json.dumps(dict(entry), allow_nan=False) if isinstance(entry, Mapping) else ""
        kept = json.loads(text) if 0 < len(text) <= _MOST_ENTRY_BYTES else None
    except (TypeError, ValueError, RecursionError):
        kept = None
    if not isinstance(kept, dict) or _is_deeper(kept, _DEEPEST - 3):
        raise bad_argument(
            "entry",
            zh=f"需要能写成 JSON、不超过 64 KiB 的字典，收到的是 {shown(entry)}",
            en=f"it must be a mapping that JSON can hold in 64 KiB, got {shown(entry)}",
        )
    return kept


# -- writing --------------------------------------------------------------------------------------------------


def _save(path: Path, unsaved: dict[str, Entries]) -> None:
    """Merge what is unsaved into the file; it stays in memory where that fails."""
    try:
        with _locked(path):
            data = _read_or_set_aside(path)
            data.setdefault("learner", _new_id(path))
            sections = data.setdefault("sections", {})
            for section, entries in unsaved.items():
                known = sections.get(section)
                sections[section] = {**(known if isinstance(known, dict) else {}), **entries}
            _replace(path, _bytes_of({"format": FORMAT, "version": VERSION, **data}))
    except _UnusableError as error:
        _notices[path] = error.notice
    except OSError as error:
        _notices[path] = _unwritable(error)
    else:
        unsaved.clear()
        if _notices.get(path, _BROKEN).en.startswith(_UNWRITABLE.en[:30]):
            del _notices[path]


def _bytes_of(data: Mapping[str, Any]) -> bytes:
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    return text.encode("utf-8", errors="backslashreplace")  # half a surrogate pair becomes the escape that JSON has


def _replace(path: Path, contents: bytes) -> None:
    """Put a file in the place of another in one step."""
    handle, name = tempfile.mkstemp(prefix=".fusion-progress-", suffix=".tmp", dir=path.parent)
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        made.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        made.replace(path)
    except BaseException:
        with suppress(OSError):
            made.unlink()
        raise


def _set_aside(path: Path) -> Path:
    """Rename a file to the first free ``….broken-1.json``."""
    for number in range(1, 1000):
        aside = path.with_name(f"{path.stem}.broken-{number}{path.suffix}")
        with suppress(FileExistsError):
            aside.open("xb").close()  # the name is ours: replacing it overwrites nothing
            return path.replace(aside)
    raise _UnusableError(_unwritable(FileExistsError()))


def _written_new(path: Path, contents: bytes) -> Path:
    """A new file with these contents; where the name is taken, with a number behind it."""
    number = re.compile(r"-\d+$")
    for count in range(1, 10_000):
        target = path if count == 1 else path.with_name(f"{number.sub('', path.stem)}-{count}{path.suffix}")
        with suppress(FileExistsError), target.open("xb") as file:
            file.write(contents)
            return target
    raise FileExistsError


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Alone with the file among all processes: whoever makes the lock file may write.

    A file system needs nothing but exclusive creation for this, so it works on network drives and in the browser, too.
    """
    lock = path.with_name(f".{path.name}.lock")
    seen, since = None, time.monotonic()
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            with suppress(FileNotFoundError):
                stamp = lock.stat().st_mtime_ns, lock.stat().st_ino
                if stamp != seen:
                    seen, since = stamp, time.monotonic()
                elif time.monotonic() - since > _LOCK_SECONDS:
                    lock.unlink()  # a folder, or one in a folder that is read-only, cannot be: that is said and no hang
            time.sleep(0.005)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()


def _unwritable(error: OSError) -> Text:
    return _UNWRITABLE.format(reason=type(error).__name__)
