"""Whether the blocks fit: sections exist, minutes add up, and no cell runs before what it uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from notebooks.build.course import Course
from tools.schedule.plan import PLAN, Block, Plan, Schedule
from tools.schedule.sections import Section, course_sections, number_of

Sections = Mapping[str, Section]


def expanded(keys: Iterable[str], sections: Sections) -> list[Section]:
    """The sections of these keys, ``"01/*"`` as all of its lesson; keys that no lesson has are left out."""
    found: list[Section] = []
    for key in keys:
        if key.endswith("/*"):
            found += [section for other, section in sections.items() if other.startswith(key[:-1])]
        elif key in sections:
            found.append(sections[key])
    return found


def total(sections: Iterable[Section]) -> float:
    """Their minutes."""
    return sum(section.minutes for section in sections)


def fit_faults(plan: Plan, course: Course) -> list[str]:
    """What keeps the plan from being taught as it stands; empty if nothing does."""
    sections = course_sections(course)
    faults = [fault for schedule in plan.schedules for fault in _schedule_faults(schedule, sections)]
    numbers = {number_of(lesson) for lesson in course.lessons}
    for number in sorted(numbers ^ set(plan.needs)):
        faults.append(f"[needs] and the lessons differ in {number}")
    return [f"{PLAN}: {fault}" for fault in faults]


def _schedule_faults(schedule: Schedule, sections: Sections) -> Iterator[str]:
    for number, block in enumerate(schedule.blocks, 1):
        place = f"{schedule.name}, block {number} ({block.title['en']})"
        yield from (f"{place}: {fault}" for fault in _block_faults(block, sections))
    for extra in schedule.extras:
        yield from (f"{schedule.name}: {fault}" for fault in _unknown(extra.sections, sections))
    stated = sum(block.minutes for block in schedule.blocks)
    if stated != schedule.minutes:
        yield f"{schedule.name}: its blocks take {stated} min, it states {schedule.minutes}"
    taken = Counter(s.key for block in schedule.blocks for s in expanded(block.sections, sections))
    yield from (f"{schedule.name}: takes {key} {count} times" for key, count in taken.items() if count > 1)
    if schedule.whole_course:
        yield from (f"{schedule.name}: leaves out {key}" for key in sections if key not in taken)
    in_time, late = (list(_order_faults(schedule, sections, late=late)) for late in (False, True))
    yield from (f"{schedule.name}: {fault}" for fault in in_time)
    yield from (f"{schedule.name}, when late: {fault}" for fault in late if fault not in in_time)


def _block_faults(block: Block, sections: Sections) -> Iterator[str]:
    yield from _unknown((*block.sections, *block.prepared, *block.skip, *block.ahead), sections)
    taught = total(expanded(block.sections, sections))
    if taught + block.buffer != block.minutes:
        fits = block.minutes - taught
        advice = f"set buffer to {fits:g}" if fits >= 0 else "take less, or more minutes"
        yield f"sections {taught:g} + buffer {block.buffer} = {taught + block.buffer:g} min, it states {block.minutes}: {advice}"
    if block.buffer and not block.reserve["en"]:
        yield f"a buffer of {block.buffer} min, and no word on what it is for (reserve)"
    here = {section.key for section in expanded(block.sections, sections)}
    yield from (f"skips {key}, which it does not take" for key in block.skip if key not in here)
    if block.leads != "break" and not (block.teacher["en"] and block.learners["en"]):
        yield "says not what teacher and learners do"


def _unknown(keys: Iterable[str], sections: Sections) -> Iterator[str]:
    for key in keys:
        if not expanded([key], sections):
            yield f"no section {key} (a section is a prose cell with minutes; its key has no -zh, -en)"


def _order_faults(schedule: Schedule, sections: Sections, *, late: bool) -> Iterator[str]:
    """Cells that would stop with a NameError when only the sections of this schedule are run, in its order.

    Args:
        late: without what may be skipped.
    """
    known: dict[str, set[str]] = {}
    for block in schedule.blocks:
        for section in expanded((*block.prepared, *block.sections), sections):
            if late and section.key in block.skip:
                continue
            names = known.setdefault(section.lesson, set())
            yield from _missing(section, names, sections)
            names |= section.defined
        spare = {lesson: set(names) for lesson, names in known.items()}
        yield from _run_after(spare, block.ahead, sections)
    for extra in schedule.extras:
        yield from _run_after({}, extra.sections, sections)


def _run_after(known: dict[str, set[str]], keys: Iterable[str], sections: Sections) -> Iterator[str]:
    for section in expanded(keys, sections):
        names = known.setdefault(section.lesson, set())
        yield from _missing(section, names, sections)
        names |= section.defined


def _missing(section: Section, known: set[str], sections: Sections) -> Iterator[str]:
    for name in sorted(section.wanted - known):
        makers = [s.key for s in sections.values() if s.lesson == section.lesson and name in s.defined]
        if makers:
            yield f"{section.key} uses {name}, which {makers[0]} defines and which does not run before it"
