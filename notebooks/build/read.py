"""Read one lesson's source: percent format through jupytext, then cells, then twins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import jupytext

from notebooks.build.config import Config
from notebooks.build.faults import Fault

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
Audience = Literal["learner", "instructor"]
AUDIENCES: tuple[Audience, ...] = get_args(Audience)
LANGUAGE_NAMES: dict[Language, str] = {"zh": "Chinese", "en": "English"}
GPU_NEEDS = ("none", "optional", "recommended")

BOOTSTRAP = "bootstrap"
BOOTSTRAP_BODY = "# generated"

TAGS = {
    "markdown": {"instructor"},
    "code": {
        "answer",
        "exercise",
        "solution",
        "instructor",
        "nbval-ignore-output",
        "nbval-check-output",
        "nbval-raises-exception",
        "nbval-skip",
    },
}
ATTRIBUTES = {
    "markdown": {"id", "lang", "tags", "minutes", "gpu", "needs"},
    "code": {"id", "tags"},
}
# What jupytext notes down about the text itself.
_JUPYTEXT_KEYS = {"lines_to_next_cell", "lines_to_end_of_cell_marker", "cell_marker"}

_MARKER = re.compile(r"\s*#\s*%%(%*)(\s.*)?$")
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Cell:
    """One cell of a source, its attributes checked. ``line`` is that of its marker, counted from 1."""

    kind: Literal["markdown", "code"]
    id: str
    source: str
    line: int
    body_line: int
    language: Language | None = None
    tags: tuple[str, ...] = ()
    minutes: float = 0
    gpu: str = "none"
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Twins:
    """A markdown cell in both languages."""

    id: str
    zh: Cell
    en: Cell

    def __getitem__(self, language: Language) -> Cell:
        return self.zh if language == "zh" else self.en

    @property
    def tags(self) -> tuple[str, ...]:
        return self.zh.tags


@dataclass(frozen=True)
class Lesson:
    """One lesson: code once, prose twice, in the order of the source."""

    name: str
    file: str
    blocks: tuple[Twins | Cell, ...]

    @property
    def opening(self) -> Twins:
        """The title cell, which carries what the lesson needs."""
        return self.prose[0]

    @property
    def prose(self) -> list[Twins]:
        return [block for block in self.blocks if isinstance(block, Twins)]

    @property
    def code(self) -> list[Cell]:
        return [block for block in self.blocks if isinstance(block, Cell)]

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell of the source."""
        for block in self.blocks:
            yield from (block.zh, block.en) if isinstance(block, Twins) else (block,)

    @property
    def minutes(self) -> float:
        return sum(twins.zh.minutes for twins in self.prose)

    @property
    def gpu(self) -> str:
        return self.opening.zh.gpu

    @property
    def needs(self) -> tuple[str, ...]:
        return self.opening.zh.needs

    def title(self, language: Language) -> str:
        return _heading(self.opening[language]) or self.name

    def solution_of(self, exercise: Cell) -> Cell | None:
        """The solution that comes after ``exercise`` and before the next exercise."""
        following = self.code[self.code.index(exercise) + 1 :]
        nearest = next((cell for cell in following if {"exercise", "solution"} & set(cell.tags)), None)
        return nearest if nearest is not None and "solution" in nearest.tags else None


def read_lesson(path: Path, file: str, config: Config) -> tuple[Lesson | None, list[Fault]]:
    """The lesson in ``path``, and every fault of its structure; no lesson when no cell can be read."""
    faults: list[Fault] = []

    def fault(line: int, message: str) -> None:
        faults.append(Fault(file, line, message))

    raw_cells = _raw_cells(path, fault)
    if faults:
        return None, faults
    checked = [_checked_cell(raw, line, config, fault) for raw, line in raw_cells]
    cells = [cell for cell in checked if cell is not None]
    lesson = Lesson(path.stem, file, tuple(_blocks(cells, fault)))
    _check_ids(lesson, fault)
    _check_opening(lesson, fault)
    _check_bootstrap(lesson, fault)
    _check_exercises(lesson, fault)
    return (lesson if lesson.prose else None), faults


_Report = Callable[[int, str], None]


def _raw_cells(path: Path, fault: _Report) -> list[tuple[Any, int]]:
    """jupytext's cells, each with the line of its marker."""
    try:
        text = path.read_text(encoding="utf-8")
        cells = jupytext.reads(text, fmt="py:percent").cells
    except Exception as error:  # whatever jupytext or its YAML reader raises is the author's to mend
        fault(1, f"jupytext cannot read it: {str(error).splitlines()[0]}")
        return []
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _MARKER.match(line)]
    if len(lines) != len(cells):
        fault(1, f"{len(cells)} cells, but {len(lines)} cell markers (# %%): every cell needs its own")
        return []
    return list(zip(cells, lines, strict=True))


def _checked_cell(raw: Any, line: int, config: Config, fault: _Report) -> Cell | None:
    """``raw`` as a ``Cell``, or nothing if it cannot even be placed."""
    kind, metadata = raw.cell_type, raw.metadata
    if "incorrectly_encoded_metadata" in metadata:
        written = metadata["incorrectly_encoded_metadata"]
        fault(line, f"cannot read the attributes: {written} (text values need quotes)")
        return None
    if kind not in TAGS:
        fault(line, f"a {kind} cell has no place in a lesson")
        return None
    for name in sorted(set(metadata) - ATTRIBUTES[kind] - _JUPYTEXT_KEYS):
        fault(line, f"unknown attribute '{name}' on a {kind} cell")
    cell = Cell(
        kind=kind,
        id=_checked_id(metadata.get("id"), line, fault),
        source=raw.source,
        line=line,
        body_line=line + (2 if metadata.get("cell_marker") in ('"""', "'''") else 1),
        language=_checked_language(kind, metadata.get("lang"), line, fault),
        tags=_checked_tags(kind, metadata.get("tags", []), line, fault),
    )
    if kind == "markdown":
        cell = _with_numbers(cell, metadata, config, fault)
        _check_suffix(cell, fault)
    return cell


def _checked_id(value: Any, line: int, fault: _Report) -> str:
    if value is None:
        fault(line, 'missing id (every cell carries its own id="...")')
        return ""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        fault(line, f"bad id {value!r}: lower-case letters, digits, '-' and '_', at most 64")
        return ""
    return value


def _checked_language(kind: str, value: Any, line: int, fault: _Report) -> Language | None:
    if kind == "code":
        if value is not None:
            fault(line, "a code cell has no lang: it is the same in both editions")
        return None
    if value not in LANGUAGES:
        fault(line, f'a markdown cell needs lang="zh" or lang="en", got {value!r}')
        return None
    return "zh" if value == "zh" else "en"


def _checked_tags(kind: str, value: Any, line: int, fault: _Report) -> tuple[str, ...]:
    tags = _strings(value)
    for tag in tags:
        if tag not in TAGS[kind]:
            fault(line, f"unknown tag '{tag}' on a {kind} cell (known: {', '.join(sorted(TAGS[kind]))})")
    return tags


def _with_numbers(cell: Cell, metadata: Any, config: Config, fault: _Report) -> Cell:
    """``cell`` with its minutes, and what the lesson needs."""
    minutes = metadata.get("minutes", 0)
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or minutes < 0:
        fault(cell.line, f"minutes must be a number of minutes, got {minutes!r}")
        minutes = 0
    gpu = metadata.get("gpu", "none")
    if gpu not in GPU_NEEDS:
        fault(cell.line, f"gpu must be one of {', '.join(GPU_NEEDS)}, got {gpu!r}")
        gpu = "none"
    needs = _strings(metadata.get("needs", []))
    for extra in needs:
        if extra not in config.extras:
            fault(cell.line, f"needs '{extra}', which is not among [tool.lessons] extras in pyproject.toml")
    return replace(cell, minutes=minutes, gpu=gpu, needs=needs)


def _strings(value: Any) -> tuple[str, ...]:
    """An attribute that holds one word, words with spaces or commas between, or a list of words."""
    words = re.split(r"[\s,]+", value.strip()) if isinstance(value, str) else value
    return tuple(str(word) for word in words) if isinstance(words, list) else (str(words),)


def _check_suffix(cell: Cell, fault: _Report) -> None:
    if cell.id and cell.language and not cell.id.endswith(f"-{cell.language}"):
        fault(cell.line, f"bad id '{cell.id}': a lang=\"{cell.language}\" cell's id ends in -{cell.language}")


def _blocks(cells: list[Cell], fault: _Report) -> Iterator[Twins | Cell]:
    """Code cells as they are, prose cells in twins: Chinese first, English next."""
    rest = list(cells)
    while rest:
        cell = rest.pop(0)
        if cell.kind == "code":
            yield cell
        elif cell.language is None or not cell.id:
            continue  # its own fault is reported, a second one would not help
        elif cell.language == "zh" and rest and _are_twins(cell, rest[0]):
            english = rest.pop(0)
            _check_agreement(cell, english, fault)
            yield Twins(_stem(cell), cell, english)
        elif cell.language == "en" and rest and _are_twins(rest[0], cell):
            fault(cell.line, f"'{cell.id}' stands before its twin: Chinese first, English next")
            yield Twins(_stem(cell), rest.pop(0), cell)
        else:
            other: Language = "en" if cell.language == "zh" else "zh"
            fault(cell.line, f"'{cell.id}' has no {LANGUAGE_NAMES[other]} twin '{_stem(cell)}-{other}' beside it")


def _are_twins(chinese: Cell, english: Cell) -> bool:
    return (chinese.language, english.language) == ("zh", "en") and _stem(chinese) == _stem(english)


def _stem(cell: Cell) -> str:
    return cell.id.removesuffix(f"-{cell.language}")


def _check_agreement(chinese: Cell, english: Cell, fault: _Report) -> None:
    for name in ("minutes", "gpu", "needs", "tags"):
        ours, theirs = getattr(chinese, name), getattr(english, name)
        if ours != theirs:
            fault(english.line, f"'{english.id}' and its twin differ in {name}: zh {ours!r}, en {theirs!r}")


def _check_ids(lesson: Lesson, fault: _Report) -> None:
    """Ids are unique in the source; the built cells' ids, without -zh and -en, in each edition."""
    seen: dict[str, int] = {}
    for block in lesson.blocks:
        line = block.zh.line if isinstance(block, Twins) else block.line
        if block.id and block.id in seen:
            fault(line, f"duplicate id '{block.id}', first used in line {seen[block.id]}")
        seen.setdefault(block.id, line)


def _check_opening(lesson: Lesson, fault: _Report) -> None:
    if not lesson.blocks or not isinstance(lesson.blocks[0], Twins):
        fault(1, "the first cell is the title, in both languages")
        return
    for language in LANGUAGES:
        opening = lesson.opening[language]
        if _heading(opening) is None:
            fault(opening.line, f"'{opening.id}' is the title: it needs a '# ' heading")
    for twins in lesson.prose[1:]:
        if twins.zh.gpu != "none" or twins.zh.needs:
            fault(twins.zh.line, f"'{twins.zh.id}': gpu and needs stand on the title cell only")
        if twins.zh.minutes and "instructor" in twins.tags:
            fault(twins.zh.line, f"'{twins.zh.id}': a word to the instructor takes no minutes of the lesson")


def _heading(cell: Cell) -> str | None:
    found = re.search(r"^# +(.+?)\s*$", cell.source, re.MULTILINE)
    return found.group(1) if found else None


def _check_bootstrap(lesson: Lesson, fault: _Report) -> None:
    if not lesson.code or lesson.code[0].id != BOOTSTRAP:
        line = lesson.code[0].line if lesson.code else 1
        fault(line, f'the first code cell is `# %% id="{BOOTSTRAP}"` with the body `{BOOTSTRAP_BODY}`')
    elif lesson.code[0].source.strip() != BOOTSTRAP_BODY or lesson.code[0].tags:
        fault(lesson.code[0].line, f"the bootstrap cell is generated: its body is `{BOOTSTRAP_BODY}`, no tags")


def _check_exercises(lesson: Lesson, fault: _Report) -> None:
    """Exercises and solutions take turns: one solution for each exercise."""
    solutions = []
    for cell in lesson.code:
        if {"exercise", "solution"} <= set(cell.tags):
            fault(cell.line, f"'{cell.id}' is an exercise or a solution, not both")
        elif "exercise" in cell.tags:
            solution = lesson.solution_of(cell)
            if solution is None:
                fault(cell.line, f"exercise '{cell.id}' has no solution after it")
            else:
                solutions.append(solution)
    for cell in lesson.code:
        if "solution" in cell.tags and "exercise" not in cell.tags and cell not in solutions:
            fault(cell.line, f"solution '{cell.id}' has no exercise of its own before it")
