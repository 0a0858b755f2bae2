"""The learner's own copies of the lessons: made once, never overwritten, refreshed beside the old one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from tools.project import ROOT
from tools.say import Stop

_RECORD = ".lessons.json"
# What a learner has reached or handed in; it lies here where somebody worked in the course's own folder.
_PERSONAL = ("fusion-progress*.json", "fusion-results*.json")


def built(edition: str, root: Path = ROOT) -> Path:
    """Where the course keeps an edition's lessons."""
    return root / "notebooks" / edition


def work(edition: str, root: Path = ROOT) -> Path:
    """Where the learner's copies of an edition lie."""
    return root / "work" / edition


def missing(source: Path, target: Path) -> list[Path]:
    """The course's files that the learner has no copy of yet, relative to ``source``."""
    return [name for name in _course_files(source) if not os.path.lexists(target / name)]


def copy(names: list[Path], source: Path, target: Path) -> None:
    """Copy these files where nothing is in their way; each appears whole or not at all."""
    record = _read_record(target)
    target.mkdir(parents=True, exist_ok=True)
    # Noted before copying: a note without its file is harmless, a file without its note never hears of news.
    _write_record(target, {**record, **{name.as_posix(): _digest(source / name) for name in names}})
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        _copy_whole(source / name, target / name)


def outdated(source: Path, target: Path) -> list[Path]:
    """Lessons of which the course now has another version than the one the learner's copy was made from."""
    record = _read_record(target)
    lessons = [name for name in _course_files(source) if name.suffix == ".ipynb" and (target / name).exists()]
    return [name for name in lessons if record.get(name.as_posix(), "") not in ("", _digest(source / name))]


def find(lesson: str, source: Path) -> Path:
    """The lesson that starts with this number or name, relative to ``source``."""
    lessons = sorted(path.name for path in source.glob("*.ipynb"))
    asked = lesson.zfill(2) if lesson.isdecimal() else lesson
    found = [name for name in lessons if asked and name.startswith(asked)]
    if len(found) != 1:
        listed = ", ".join(name.split("_")[0] for name in lessons)
        raise Stop(
            f"没有 {lesson!r} 这一课；用法：make reset LESSON=01。现有：{listed}。",
            f"There is no lesson {lesson!r}; use make reset LESSON=01. There are: {listed}.",
        )
    return Path(found[0])


def fresh_copy(name: Path, source: Path, target: Path) -> Path:
    """Put a fresh copy of a lesson beside the learner's own, and return where."""
    target.mkdir(parents=True, exist_ok=True)
    number = 1
    while os.path.lexists(fresh := target / f"{name.stem}.fresh-{number}{name.suffix}"):
        number += 1
    _copy_whole(source / name, fresh)
    _write_record(target, {**_read_record(target), name.as_posix(): _digest(source / name)})
    return fresh


def number(name: Path) -> str:
    """What ``make reset LESSON=`` takes for this lesson."""
    return name.name.split("_")[0].removesuffix(".ipynb")


def learner_files(source: Path) -> dict[Path, bytes]:
    """Every file of an edition as a learner gets it, by its path relative to ``source``.

    Raises:
        Stop: there are no lessons.
    """
    found = {name: _as_learner_gets(source / name) for name in _course_files(source)}
    if not any(name.suffix == ".ipynb" for name in found):
        raise no_lessons(source)
    return found


def no_lessons(source: Path) -> Stop:
    """What to do about an edition that was not built."""
    return Stop(
        f"{source} 里没有课程：请先运行 make notebooks。",
        f"There are no lessons in {source}: run make notebooks first.",
    )


def _course_files(source: Path) -> Iterator[Path]:
    """Every file of an edition, caches, hidden files and somebody's progress aside, relative to it."""
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        hidden = any(part.startswith((".", "__pycache__")) for part in name.parts)
        if path.is_file() and not hidden and not any(name.match(pattern) for pattern in _PERSONAL):
            yield name


def for_learner(notebook: str) -> str:
    """The text of a built notebook as a learner gets it: cells that answer a question asked before lose their output.

    The built notebook keeps it, for readers on the web and for the tests.
    """
    book = json.loads(notebook)
    for cell in book.get("cells", ()):
        if "answer" in cell.get("metadata", {}).get("tags", ()):
            cell.update(outputs=[], execution_count=None)
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _copy_whole(source: Path, target: Path) -> None:
    """Copy under another name first, so that an interrupted copy is never taken for a lesson."""
    part = target.with_name(f".{target.name}.part")
    _write_part(source, part)
    part.replace(target)


def _write_part(source: Path, part: Path) -> None:
    part.write_bytes(_as_learner_gets(source))


def _as_learner_gets(path: Path) -> bytes:
    data = path.read_bytes()
    return for_learner(data.decode("utf-8")).encode() if path.suffix == ".ipynb" else data


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_record(target: Path) -> dict[str, str]:
    try:
        record: dict[str, str] = json.loads((target / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record


def _write_record(target: Path, record: dict[str, str]) -> None:
    part = target / f"{_RECORD}.part"
    part.write_text(json.dumps(record, indent=1, sort_keys=True), encoding="utf-8")
    part.replace(target / _RECORD)
