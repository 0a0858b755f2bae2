"""Who is who: one learner may have handed in two files, and two learners may have one name.

Two files are one learner's when one *continues* the other (it has every entry of it, unchanged or with counters, such
as day, tries or answers, that have grown) and both come from one progress file, which bears a random number; or, where
one bears none, when both bear the same name. The fuller one counts. Files with neither name nor number are never taken
for one learner's: two of them may agree by chance.

Pure: the standard library only.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lessons_lib.classroom.records import Entry, Learner

# Beyond this many files of one name, only equal ones are looked for: comparing each with each would take too long.
_MOST_COMPARED = 40


@dataclass(frozen=True)
class Roster:
    """The learners that count.

    Args:
        learners: in the order of the files, with names that differ; unnamed ones stay so.
        replaced: (file left out, file that counts, whether both hold the same).
        namesakes: names that several learners have, with the files of each.
    """

    learners: tuple[Learner, ...]
    replaced: tuple[tuple[str, str, bool], ...] = ()
    namesakes: Mapping[str, tuple[str, ...]] | None = None


def roster_of(learners: Sequence[Learner]) -> Roster:
    """One learner for each person, as far as files can tell."""
    replaced: list[tuple[str, str, bool]] = []
    kept = _kept(learners, lambda one: one.number, replaced)
    kept = _kept(kept, lambda one: _key(one.name), replaced)
    by_name: dict[str, list[Learner]] = defaultdict(list)
    for learner in kept:
        by_name[_key(learner.name)].append(learner)
    namesakes: dict[str, tuple[str, ...]] = {}
    names: dict[int, str] = {}
    for key, same_name in by_name.items():
        several = bool(key) and len(same_name) > 1
        for number, learner in enumerate(same_name, 1):
            names[id(learner)] = f"{learner.name} · {number}" if several else learner.name
        if several:
            namesakes[same_name[0].name] = tuple(learner.file for learner in same_name)
    counted = tuple(replace(learner, name=names[id(learner)]) for learner in kept)
    return Roster(counted, tuple(sorted(_followed(replaced))), namesakes)


def _key(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _kept(
    learners: Sequence[Learner], mark: Callable[[Learner], str], replaced: list[tuple[str, str, bool]]
) -> list[Learner]:
    """Those that no fuller file of the same mark continues, in the order given; the others are noted in ``replaced``."""
    alike: dict[str, list[Learner]] = defaultdict(list)
    for learner in learners:
        alike[mark(learner)].append(learner)
    left = {id(one) for key, group in alike.items() for one in (_fullest(group, replaced) if key else group)}
    return [learner for learner in learners if id(learner) in left]


def _fullest(learners: Sequence[Learner], replaced: list[tuple[str, str, bool]]) -> list[Learner]:
    contents = {id(learner): dict(learner.entries()) for learner in learners}
    fullest_first = sorted(learners, key=lambda learner: _fullness(contents[id(learner)].values()), reverse=True)
    kept: list[Learner] = []
    seen: dict[tuple[object, ...], list[Learner]] = defaultdict(list)
    for learner in fullest_first:
        entries = contents[id(learner)]
        whole = tuple(sorted(entries.items(), key=lambda item: item[0]))
        others = seen[whole] if len(learners) > _MOST_COMPARED else kept
        later = next(
            (one for one in others if _may_be_one(one, learner) and _continues(contents[id(one)], entries)), None
        )
        if later is None:
            kept.append(learner)
            seen[whole].append(learner)
        else:
            replaced.append((learner.file, later.file, contents[id(later)] == entries))
    return kept


def _may_be_one(learner: Learner, other: Learner) -> bool:
    """Not when both say who they are and it is not the same: a copied file, or two people of one name."""
    names, numbers = {_key(learner.name), _key(other.name)} - {""}, {learner.number, other.number} - {""}
    return len(names) < 2 and len(numbers) < 2


def _followed(replaced: Iterable[tuple[str, str, bool]]) -> list[tuple[str, str, bool]]:
    """Each file beside the one that counts, which may itself have replaced the one that it was found beside."""
    beside = {file: (later, same) for file, later, same in replaced}
    found = []
    for file, (later, same) in beside.items():
        while later in beside:
            later, also = beside[later]
            same = same and also
        found.append((file, later, same))
    return found


def _fullness(entries: Iterable[Entry]) -> tuple[int, int, str]:
    listed = list(entries)
    counted = sum(int(counter) for entry in listed for counter in entry.counters if isinstance(counter, int))
    return len(listed), counted, max((entry.day for entry in listed), default="")


def _continues(later: Mapping[tuple[str, str], Entry], earlier: Mapping[tuple[str, str], Entry]) -> bool:
    return all(key in later and _grown(later[key], entry) for key, entry in earlier.items())


def _grown(new: Entry, old: Entry) -> bool:
    """Whether an entry is another one, unchanged or later on."""
    if new == old:
        return True
    pairs = list(zip(new.counters, old.counters, strict=True))
    return all(not _less(a, b) for a, b in pairs) and any(_less(b, a) for a, b in pairs)


def _less(a: object, b: object) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a < b
    return isinstance(a, int) and isinstance(b, int) and a < b
