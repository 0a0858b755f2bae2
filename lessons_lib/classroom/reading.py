"""Reads a folder of files that strangers wrote. Nothing in them is believed, nothing in them can stop the others.

Only regular files named ``*.json`` that lie in the folder itself are opened, never through a link; each is measured
before it is read. A file that makes no sense is a ``Problem``: its name and the reason, in both languages. Sections,
fields and ids that this version does not know are passed over in silence: a newer course wrote them.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TypedDict, TypeVar

from lessons_lib.base.progress import EXPORT_FORMAT, FORMAT
from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB, format_bytes
from lessons_lib.base.validate import bad_argument, shown
from lessons_lib.classroom.records import (
    Entry,
    ExerciseEntry,
    GuessEntry,
    Learner,
    PuzzleEntry,
    QuizEntry,
    VoteEntry,
)

MOST_BYTES = 1 * MIB  # of a file; a real one has some 20 KiB
MOST_BYTES_IN_ALL = 32 * MIB
MOST_FILES = 2_000
MOST_ENTRIES = 100  # of a section; the course has some thirty
LONGEST_NAME = 80
_MOST_QUESTIONS = 20
_MOST_CHOICES = 20
_MOST_COUNT = 10**9
_MOST_PUZZLE_BYTES = 10**18
_LONGEST_NUMBER = 300  # digits: every shorter integer has a float

_PROBLEM = Text(zh="{file}：{reason}", en="{file}: {reason}")

_T = TypeVar("_T", bound=Entry)


@dataclass(frozen=True)
class Problem:
    """A file, or something that is none, and why it does not count."""

    file: str
    reason: Text

    def __str__(self) -> str:
        return str(_PROBLEM.format(file=self.file, reason=self.reason))


@dataclass(frozen=True)
class Reading:
    """What a folder gave: learners and problems, each in the order of the files' names."""

    learners: tuple[Learner, ...]
    problems: tuple[Problem, ...]


class _UnfitError(Exception):
    """A file that does not count."""

    def __init__(self, zh: str, en: str) -> None:
        self.reason = Text(zh=zh, en=en)


# -- the folder -------------------------------------------------------------------------------------------------


def read_folder(folder: str | os.PathLike[str]) -> Reading:
    """Every learner's file in ``folder``, and what was wrong with the others.

    Raises:
        ValueError: ``folder`` is no folder, or cannot be listed; in both languages.
    """
    names = _names_in(Path(folder))
    problems: dict[str, Problem] = {}
    sizes: dict[str, int] = {}
    for name in names[:MOST_FILES]:
        try:
            sizes[name] = _size_of_regular(Path(folder), name)
        except _UnfitError as unfit:
            problems[name] = Problem(clean_file_name(name), unfit.reason)
    learners: dict[str, Learner] = {}
    left = MOST_BYTES_IN_ALL
    for name in sorted(sizes, key=lambda name: (sizes[name], name)):  # so that large files crowd nobody out
        try:
            if sizes[name] > left:
                _reject_crowd()
            left -= sizes[name]
            learners[name] = _learner(clean_file_name(name), _contents(Path(folder), name))
        except _UnfitError as unfit:
            problems[name] = Problem(clean_file_name(name), unfit.reason)
    listed = [problems[name] for name in names[:MOST_FILES] if name in problems]
    if len(names) > MOST_FILES:
        listed.append(Problem("…", _too_many(len(names) - MOST_FILES)))
    return Reading(tuple(learners[name] for name in names if name in learners), tuple(listed))


def clean_file_name(name: str) -> str:
    """A file's name as it can be shown: control characters, text direction and broken bytes as escapes."""
    words = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)
    return words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 9]}…{words[-8:]}"


def _names_in(folder: Path) -> list[str]:
    """What lies in the folder, sorted; without hidden files and finished reports."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except (OSError, ValueError) as error:
        reason = type(error).__name__
        raise bad_argument(
            "DIR",
            zh=f"{shown(str(folder))} 不是能读的文件夹（{reason}）",
            en=f"{shown(str(folder))} is no folder that can be read ({reason})",
        ) from None
    return sorted(name for name in names if not name.startswith(".") and not name.lower().endswith((".html", ".htm")))


def _size_of_regular(folder: Path, name: str) -> int:
    """The size of a file that may be opened.

    Raises:
        _UnfitError: it may not.
    """
    try:
        found = (folder / name).lstat()
    except (OSError, ValueError) as error:
        raise _unreadable(error) from None
    if stat.S_ISLNK(found.st_mode):
        raise _UnfitError("是链接，不跟随；请放文件本身", "a link, which is not followed; put the file itself here")
    if stat.S_ISDIR(found.st_mode):
        raise _UnfitError(
            "是文件夹，不往里看；请把文件直接放在这里", "a folder, not looked into; put the files themselves here"
        )
    if not stat.S_ISREG(found.st_mode):
        raise _UnfitError("不是普通文件（设备、管道之类）", "no ordinary file (a device, a pipe or the like)")
    if not name.lower().endswith(".json"):
        raise _UnfitError("不是 .json 文件；压缩包请先解开", "no .json file; unpack archives first")
    _check_size(found.st_size)
    return found.st_size


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        limit, given = format_bytes(MOST_BYTES), format_bytes(size)
        raise _UnfitError(f"太大：{given}，最多 {limit}", f"too large: {given}, at most {limit}")


def _contents(folder: Path, name: str) -> bytes:
    """The bytes of a regular file; looked at once more when it is open, for it may have been swapped.

    Raises:
        _UnfitError: it cannot be read, or has changed into something else.
    """
    flags = os.O_RDONLY
    for extra in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, extra, 0)
    try:
        with os.fdopen(os.open(folder / name, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _UnfitError("读的时候变成了别的东西", "it turned into something else while it was read")
            raw = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(error) from None
    _check_size(len(raw))
    return raw


def _unreadable(error: Exception) -> _UnfitError:
    reason = type(error).__name__
    return _UnfitError(f"读不了（{reason}）", f"cannot be read ({reason})")


def _reject_crowd() -> NoReturn:
    limit = format_bytes(MOST_BYTES_IN_ALL)
    raise _UnfitError(f"没有读：文件加起来超过 {limit}", f"not read: the files take more than {limit} in all")


def _too_many(count: int) -> Text:
    return Text(
        zh=f"另有 {count} 个没有看：一个文件夹最多 {MOST_FILES} 个文件",
        en=f"{count} more were not looked at: at most {MOST_FILES} files in a folder",
    )


# -- a file -----------------------------------------------------------------------------------------------------


def _learner(file: str, raw: bytes) -> Learner:
    data = _parsed(raw)
    sections = data["sections"]
    left_out = 0

    def read(section: str, of: Callable[[Mapping[str, Any]], _T]) -> dict[str, _T]:
        nonlocal left_out
        found: dict[str, _T] = {}
        for key, entry in _entries(sections.get(section, {})):
            try:
                found[_id(key)] = of(_mapping(entry))
            except (_UnfitError, _OddError):
                left_out += 1
        return found

    return Learner(
        file=file,
        name=_clean(data.get("name", ""), LONGEST_NAME),
        number=_learner_number(data.get("learner")),
        votes=read("votes", _vote),
        guesses=read("guesses", _guess),
        exercises=read("exercises", _exercise),
        quizzes=read("quizzes", _quiz),
        puzzles=read("puzzles", _puzzle),
        others=frozenset(_other_lessons(sections)),
        left_out=left_out,
    )


def _learner_number(value: object) -> str:
    return value if isinstance(value, str) and _NUMBER.fullmatch(value) else ""


def _parsed(raw: bytes) -> dict[str, Any]:
    """The file's JSON, once its outline is that of an export.

    Raises:
        _UnfitError: it is not; the reason says what is wrong.
    """
    if not raw.strip():
        raise _UnfitError("文件是空的", "the file is empty")
    if raw.startswith((b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!")):
        raise _UnfitError("是压缩包，不打开", "an archive, which is not opened")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _UnfitError("不是 UTF-8 文本", "the text is not UTF-8") from None
    try:
        data = json.loads(text, parse_constant=_no_number, parse_int=_int, parse_float=_float)
    except RecursionError:
        raise _UnfitError("嵌套太深", "nested too deeply") from None
    except ValueError:
        raise _UnfitError("不是合法的 JSON", "not valid JSON") from None
    if not isinstance(data, dict) or data.get("format") not in (EXPORT_FORMAT, FORMAT):
        raise _UnfitError("不是 export_progress() 导出的文件", "not a file that export_progress() wrote")
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise _UnfitError("没有版本号", "it has no version")
    if not isinstance(data.get("sections"), dict):
        raise _UnfitError("缺少 sections，或者类型不对", "its sections are missing, or of the wrong type")
    if not isinstance(data.get("name", ""), str):
        raise _UnfitError("姓名不是文字", "its name is no text")
    return data


def _no_number(word: str) -> NoReturn:
    raise _UnfitError(f"含有 {word}，不是 JSON 里的数", f"it holds {word}, which is no number in JSON")


def _int(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise _UnfitError(f"含有 {len(digits)} 位的整数", f"it holds an integer of {len(digits)} digits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _UnfitError("含有大得写不下的数", "it holds a number too large to store")
    return number


# -- an entry ---------------------------------------------------------------------------------------------------


class _OddError(Exception):
    """An entry that makes no sense; the rest of its file still counts."""


_ID = re.compile(r"[^\W\d][\w.\- ]{0,63}")
_LESSON = re.compile(r"[0-9]{2}", re.ASCII)
_NUMBER = re.compile(r"[0-9a-f]{16}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_STATUSES = {"open": "open", "wrong": "wrong", "right": "right"}


def _entries(section: object) -> Iterator[tuple[object, object]]:
    return islice(section.items(), MOST_ENTRIES) if isinstance(section, dict) else iter(())


def _mapping(entry: object) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise _OddError
    return entry


def _id(key: object) -> str:
    if not isinstance(key, str) or not _ID.fullmatch(key):
        raise _OddError
    return key


class _Common(TypedDict):
    lesson: str
    day: str


def _common(entry: Mapping[str, Any]) -> _Common:
    """Lesson and day; a blank for what is missing or odd."""
    lesson, day = entry.get("lesson", ""), entry.get("day", "")
    if not isinstance(lesson, str) or not isinstance(day, str):
        raise _OddError
    return {
        "lesson": lesson if _LESSON.fullmatch(lesson) else "",
        "day": day if _DAY.fullmatch(day) else "",
    }


def _vote(entry: Mapping[str, Any]) -> VoteEntry:
    value = entry.get("value")
    return VoteEntry(
        **_common(entry),
        choice=_count(entry.get("choice"), 1, _MOST_CHOICES),
        value=_clean(value, LONGEST_NAME) if isinstance(value, str) else _number(value),
        label=_clean(entry.get("label", ""), LONGEST_NAME),
        changes=_count(entry.get("changes", 0), 0, _MOST_COUNT),
        measured=_number(entry.get("measured")),
    )


def _guess(entry: Mapping[str, Any]) -> GuessEntry:
    typed = entry.get("guess")
    number = _number(entry.get("number"))
    measured = next(
        (_number(entry[name]) for name in ("measured", "shown", "value") if entry.get(name) is not None), None
    )
    if number is None and not isinstance(typed, str):
        number = _number(typed)
    if number is None and not isinstance(typed, str):
        raise _OddError
    words = _clean(typed, LONGEST_NAME) if isinstance(typed, str) else ""
    unit = _clean(entry.get("unit", ""), 8)
    return GuessEntry(**_common(entry), words=words, number=number, unit=unit, measured=measured)


def _exercise(entry: Mapping[str, Any]) -> ExerciseEntry:
    status: Any = _STATUSES.get(entry["status"]) if isinstance(entry.get("status"), str) else None
    if status is None:
        raise _OddError
    met = entry.get("mistakes", [])
    last = entry.get("mistake")
    if not isinstance(met, list):
        raise _OddError
    indices = {_count(index, 0, 99) for index in [*met[:100], last] if index is not None}
    tries = _count(entry.get("tries", 0), 0, _MOST_COUNT)
    return ExerciseEntry(**_common(entry), status=status, tries=tries, mistakes=tuple(sorted(indices)))


def _quiz(entry: Mapping[str, Any]) -> QuizEntry:
    answers = _choices(entry.get("answers"))
    return QuizEntry(
        **_common(entry),
        answers=answers,
        right=_count(entry.get("right", 0), 0, len(answers)),
        first=_choices(entry.get("first", [])),
        changes=_count(entry.get("changes", 0), 0, _MOST_COUNT),
    )


def _choices(answers: object) -> tuple[int | None, ...]:
    if not isinstance(answers, list) or len(answers) > _MOST_QUESTIONS:
        raise _OddError
    return tuple(None if answer is None else _count(answer, 1, _MOST_CHOICES) for answer in answers)


def _puzzle(entry: Mapping[str, Any]) -> PuzzleEntry:
    flags = {name: entry.get(name, False) for name in ("solved", "star", "shown")}
    if not all(isinstance(flag, bool) for flag in flags.values()):
        raise _OddError
    return PuzzleEntry(
        **_common(entry),
        **flags,
        hints=_count(entry.get("hints", 0), 0, 99),
        launches=_count(entry.get("launches", 0), 0, _MOST_COUNT),
        total_bytes=_count(entry.get("total_bytes", 0), 0, _MOST_PUZZLE_BYTES),
        moves=_count(entry.get("moves", 0), 0, _MOST_COUNT),
    )


def _count(value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _OddError
    return value


def _number(value: object) -> float | None:
    """A number, or ``None`` for what is none; whole numbers stay whole."""
    if value is None or isinstance(value, str):
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _OddError
    return value


def _clean(value: object, longest: int) -> str:
    """One line of printable characters: nothing that moves a cursor, turns text around or breaks an encoding."""
    if not isinstance(value, str):
        raise _OddError
    words = value[: 4 * longest]
    if not words.isprintable():
        words = "".join(c if c.isprintable() else " " for c in words)
    return " ".join(words.split())[:longest]


def _other_lessons(sections: Mapping[str, Any]) -> Iterator[str]:
    known = {"votes", "guesses", "exercises", "quizzes", "puzzles"}
    for section in islice((name for name in sections if name not in known), MOST_ENTRIES):
        for _, entry in _entries(sections[section]):
            lesson = entry.get("lesson") if isinstance(entry, dict) else None
            if isinstance(lesson, str) and _LESSON.fullmatch(lesson):
                yield lesson
