"""The data file ``teaching/schedules.toml``: which sections make up which block, and what people do in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, cast, get_args

from notebooks.build.config import read_toml
from notebooks.build.faults import BuildError
from notebooks.build.read import LANGUAGES, Language

PLAN = "teaching/schedules.toml"

Leads = Literal["teacher", "learners", "both", "break"]
Words = Mapping[Language, str]
_NO_WORDS: Words = {"zh": "", "en": ""}


@dataclass(frozen=True)
class Block:
    """A stretch of a schedule.

    Args:
        minutes: its stated length.
        sections: keys of sections, ``"01/formula"``, in the order in which they are taken; ``"01/*"``: a whole lesson.
        prepared: sections whose cells are run beforehand, without a word: later cells use what they define.
        buffer: the minutes that are not in the lessons, and ``reserve``, what they are for; they come at the end of the
            block, with ``buffer_first`` at its beginning.
        leads: who talks.
        teacher, learners: what they do.
        skip: sections to leave out when late, and ``late``, what else to do then.
        ahead: sections for those who are done early, and ``early``, what else they may do.
    """

    minutes: int
    title: Words
    sections: tuple[str, ...] = ()
    prepared: tuple[str, ...] = ()
    buffer: int = 0
    buffer_first: bool = False
    reserve: Words = field(default_factory=lambda: _NO_WORDS)
    leads: Leads = "both"
    teacher: Words = field(default_factory=lambda: _NO_WORDS)
    learners: Words = field(default_factory=lambda: _NO_WORDS)
    skip: tuple[str, ...] = ()
    late: Words = field(default_factory=lambda: _NO_WORDS)
    ahead: tuple[str, ...] = ()
    early: Words = field(default_factory=lambda: _NO_WORDS)


@dataclass(frozen=True)
class Extra:
    """What does not run against the clock: homework, or a demonstration in place of something."""

    title: Words
    sections: tuple[str, ...]
    words: Words


@dataclass(frozen=True)
class Schedule:
    """A page. ``whole_course``: every section of every lesson is in it."""

    name: str
    minutes: int
    title: Words
    opening: Words
    blocks: tuple[Block, ...]
    extras: tuple[Extra, ...] = ()
    whole_course: bool = False


@dataclass(frozen=True)
class LessonNeeds:
    """What the sources cannot know of a lesson: free memory, and how long its measuring cells take."""

    memory: Words
    seconds: Words


@dataclass(frozen=True)
class Plan:
    """The data file."""

    schedules: tuple[Schedule, ...]
    needs: Mapping[str, LessonNeeds]


def read_plan(root: Path) -> Plan:
    """The data file of the course under ``root``.

    Raises:
        BuildError: a key is unknown, missing, or of the wrong type; the message names the place.
    """
    path = root / PLAN
    try:
        data: dict[str, Any] = dict(read_toml(path))
    except (OSError, ValueError) as error:
        raise BuildError(f"{PLAN}: {error}") from error
    if set(data) != {"schedule", "needs"}:
        raise BuildError(f"{PLAN}: needs [[schedule]] and [needs], and nothing else")
    schedules = tuple(_schedule(entry) for entry in data["schedule"])
    needs = {number: _needs(number, entry) for number, entry in data["needs"].items()}
    return Plan(schedules, needs)


def _schedule(entry: dict[str, Any]) -> Schedule:
    place = f"schedule '{entry.get('name', '?')}'"
    known = dict(entry)
    blocks, extras = known.pop("block", []), known.pop("extra", [])
    taken = _taken(Schedule, known, place, but={"blocks", "extras"})
    return Schedule(
        **taken,
        blocks=tuple(Block(**_taken(Block, raw, f"{place}, block {n}")) for n, raw in enumerate(blocks, 1)),
        extras=tuple(Extra(**_taken(Extra, raw, f"{place}, extra {n}")) for n, raw in enumerate(extras, 1)),
    )


def _needs(number: str, entry: dict[str, Any]) -> LessonNeeds:
    return LessonNeeds(**_taken(LessonNeeds, entry, f"needs of lesson {number}"))


def _taken(
    kind: Any, entry: dict[str, Any], place: str, but: frozenset[str] | set[str] = frozenset()
) -> dict[str, Any]:
    """``entry``'s values as the fields of ``kind`` want them."""
    kinds = {part.name: str(part.type) for part in fields(kind) if part.name not in but}
    for name in entry:
        if name not in kinds:
            raise BuildError(f"{PLAN}: {place}: unknown key '{name}'")
    taken = {name: _value(value, kinds[name], f"{place}: {name}") for name, value in entry.items()}
    try:
        kind(**taken, **dict.fromkeys(but, ()))
    except TypeError as error:  # it names the fields that are missing
        raise BuildError(f"{PLAN}: {place}: {str(error).partition(')')[2].strip()}") from None
    return taken


def _value(value: Any, kind: str, place: str) -> Any:
    if kind == "Words":
        if (
            not isinstance(value, dict)
            or set(value) != set(LANGUAGES)
            or not all(_is_words(v) for v in value.values())
        ):
            raise BuildError(f"{PLAN}: {place}: needs words in zh and in en")
        return {language: value[language].strip() for language in LANGUAGES}
    if kind.startswith("tuple") and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if kind == "Leads" and value in get_args(Leads):
        return cast(Leads, value)
    if kind == "int" and type(value) is int and value >= 0:
        return value
    if {"str": str, "bool": bool}.get(kind) is type(value):
        return value
    raise BuildError(f"{PLAN}: {place}: {value!r} is no {kind}")


def _is_words(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
