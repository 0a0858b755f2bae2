"""Q3: conditions that must hold, apart from costs that must be measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypedDict, get_args

from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, require_bool, require_choice, require_int, require_items, shown

# -- the four conditions, each known --------------------------------------------------------------------------


class FusionDecision(TypedDict):
    """What ``fusion_decision`` returns."""

    stated_conditions_met: bool
    failures: list[str]
    extra_reorder_bytes: int


def fusion_decision(
    semantics_match: bool,
    shape_supported: bool,
    onchip_fit: bool,
    backend_lowered: bool,
    reorder_bytes: int = 0,
) -> FusionDecision:
    """Record which stated conditions hold, and the bytes of layout conversion beside them.

    A condition can rule a fusion out; a cost cannot: ``reorder_bytes`` is kept for a later comparison and
    never changes the verdict.

    Args:
        semantics_match: the fused and the separate operators mean the same (within the tolerance agreed on).
        shape_supported: the shapes are ones that the fused kernel handles.
        onchip_fit: the tiles and temporaries fit on chip.
        backend_lowered: the backend really produced the fused kernel.
        reorder_bytes: extra bytes moved for layout conversion, 0 or more.

    Returns:
        ``stated_conditions_met``: all four hold; ``failures``: the names of those that do not, in the order
        of the arguments; ``extra_reorder_bytes``: ``reorder_bytes`` as given.

    Takes the four answers as stated: it compiles nothing, runs nothing and compares no values. Conditions met
    are no proof that the fused version is faster.

    Raises:
        ValueError: a condition is not a ``bool`` (1 and "yes" are none), or ``reorder_bytes`` is not an
            integer or is negative.
    """
    checks = {
        "semantics_match": semantics_match,
        "shape_supported": shape_supported,
        "onchip_fit": onchip_fit,
        "backend_lowered": backend_lowered,
    }
    failures = [name for name, answer in checks.items() if not require_bool(name, answer)]
    return {
        "stated_conditions_met": not failures,
        "failures": failures,
        "extra_reorder_bytes": require_int("reorder_bytes", reorder_bytes, 0),
    }


# -- the four conditions, some of them not checked yet --------------------------------------------------------

Condition = Literal["semantics_match", "shape_supported", "onchip_fit", "backend_lowered"]
Status = Literal["pass", "fail", "not_checked"]
Outcome = Literal["met", "refused", "open"]

CONDITIONS: tuple[Condition, ...] = get_args(Condition)
STATUSES: tuple[Status, ...] = get_args(Status)

CONDITION_NAMES: Mapping[Condition, Text] = MappingProxyType(
    {
        "semantics_match": Text(zh="语义一致", en="same meaning"),
        "shape_supported": Text(zh="形状支持", en="shape supported"),
        "onchip_fit": Text(zh="片上放得下", en="fits on chip"),
        "backend_lowered": Text(zh="后端已生成", en="backend lowered it"),
    }
)
STATUS_NAMES: Mapping[Status, Text] = MappingProxyType(
    {
        "pass": Text(zh="通过", en="pass"),
        "fail": Text(zh="不通过", en="fail"),
        "not_checked": Text(zh="未核对", en="not checked"),
    }
)

# The later one counts when several pieces of evidence speak about one condition.
_BY_WEIGHT: tuple[Status, ...] = ("pass", "not_checked", "fail")


@dataclass(frozen=True)
class Evidence:
    """What one source saw about one condition.

    Args:
        condition: one of ``CONDITIONS``, the arguments of ``fusion_decision``.
        status: ``"pass"``, ``"fail"``, or ``"not_checked"`` for a gap that the source knows of and names ("only
            float32 was run"). A source with nothing to say about a condition gives no evidence on it.
        observation: what was seen, in a sentence with its numbers.
        source: who looked: a formula, NumPy on this machine, a compiler.

    Raises:
        ValueError: an unknown condition or status, an observation that is no ``Text``, or a blank source.
    """

    condition: Condition
    status: Status
    observation: Text
    source: Text | str

    def __post_init__(self) -> None:
        require_choice("condition", self.condition, CONDITIONS)
        require_choice("status", self.status, STATUSES)
        if not isinstance(self.observation, Text):
            raise _no_text("observation", self.observation)
        if not isinstance(self.source, Text) and not (isinstance(self.source, str) and self.source.strip()):
            raise _no_text("source", self.source)


@dataclass(frozen=True)
class Decision:
    """What ``decide`` returns.

    Args:
        outcome: ``"met"``: all four conditions are checked and pass; ``"refused"``: a checked one fails;
            ``"open"``: none fails, and at least one is not checked.
        statuses: the status of each condition, in the order of ``CONDITIONS``.
        failures: the conditions that fail, in that order.
        unchecked: the conditions that nobody has checked to the end, in that order.
        evidence: everything given, in the order given.
        stated: what ``fusion_decision`` says, once all four are checked; ``None`` before.
        reorder_bytes: extra bytes for layout conversion; a cost beside the outcome, never a part of it.
    """

    outcome: Outcome
    statuses: Mapping[Condition, Status]
    failures: tuple[Condition, ...]
    unchecked: tuple[Condition, ...]
    evidence: tuple[Evidence, ...]
    stated: FusionDecision | None
    reorder_bytes: int

    @property
    def words(self) -> Text:
        """The outcome as one sentence that names the conditions it rests on."""
        return _OUTCOME_WORDS[self.outcome].format(failures=_listed(self.failures), unchecked=_listed(self.unchecked))

    def rows(self) -> list[tuple[Text, Text, Text | str, Text | str]]:
        """Condition, its status, what was seen and who looked: a row for each piece of evidence, by condition.

        The status is the condition's own, so that the rows of one condition agree; one without evidence has one row.
        """
        rows: list[tuple[Text, Text, Text | str, Text | str]] = []
        for condition, status in self.statuses.items():
            seen = [item for item in self.evidence if item.condition == condition]
            told: list[tuple[Text | str, Text | str]] = [(item.observation, item.source) for item in seen]
            for observation, source in told or [("", "")]:
                rows.append((CONDITION_NAMES[condition], STATUS_NAMES[status], observation, source))
        return rows


def decide(evidence: Iterable[Evidence], reorder_bytes: int = 0) -> Decision:
    """Weigh evidence from any sources; a condition that nobody checked is neither met nor failed.

    Only checked conditions count: their answers go to ``fusion_decision`` once all four are known, and one
    checked failure refuses at once. Several pieces of evidence on one condition: the worst counts, in the order
    ``fail``, ``not_checked``, ``pass``. A failure seen once stands, whoever else saw a pass. A *stated*
    ``not_checked`` outweighs a pass because it names a part that nobody has looked at, which a pass on another
    part cannot close; whoever saw nothing at all gives no evidence, and silence takes nothing away.

    Args:
        evidence: in any order, from any sources; an empty list leaves everything open.
        reorder_bytes: extra bytes moved for layout conversion, 0 or more; never changes the outcome.

    Believes its evidence: it runs and compiles nothing. Conditions met are no proof of speed.

    Raises:
        ValueError: an item of ``evidence`` is no ``Evidence``; ``reorder_bytes`` is not an integer or is negative.
    """
    items = tuple(_checked_evidence(index, item) for index, item in enumerate(require_items("evidence", evidence)))
    reorder_bytes = require_int("reorder_bytes", reorder_bytes, 0)
    statuses = {condition: _status(condition, items) for condition in CONDITIONS}
    failures = tuple(name for name, status in statuses.items() if status == "fail")
    unchecked = tuple(name for name, status in statuses.items() if status == "not_checked")
    answers = {name: status == "pass" for name, status in statuses.items()}
    return Decision(
        outcome="refused" if failures else "open" if unchecked else "met",
        statuses=MappingProxyType(statuses),
        failures=failures,
        unchecked=unchecked,
        evidence=items,
        stated=None if unchecked else fusion_decision(**answers, reorder_bytes=reorder_bytes),
        reorder_bytes=reorder_bytes,
    )


_OUTCOME_WORDS: Mapping[Outcome, Text] = {
    "met": Text(
        zh="四个条件都已核对并通过；快不快要另行实测。",
        en="All four conditions are checked and pass; whether it is faster is another question, to be measured.",
    ),
    "refused": Text(zh="不成立：{failures}不通过。", en="Refused: {failures} failed."),
    "open": Text(zh="未定：{unchecked}还没有核对。", en="Open, not checked yet: {unchecked}."),
}


def _listed(conditions: Iterable[Condition]) -> Text:
    names = [CONDITION_NAMES[condition] for condition in conditions] or [Text(zh="无", en="none")]
    return Text(zh="、".join(name.zh for name in names), en=", ".join(name.en for name in names))


def _status(condition: Condition, evidence: tuple[Evidence, ...]) -> Status:
    seen = [item.status for item in evidence if item.condition == condition]
    return max(seen, key=_BY_WEIGHT.index, default="not_checked")


def _checked_evidence(index: int, item: object) -> Evidence:
    if not isinstance(item, Evidence):
        kind = type(item).__name__
        raise bad_argument(
            f"evidence[{index}]", zh=f"需要 Evidence，收到的是 {kind}", en=f"it must be an Evidence, got {kind}"
        )
    return item


def _no_text(name: str, value: object) -> ValueError:
    kind = type(value).__name__
    return bad_argument(
        name,
        zh=f"需要写明内容的 Text，收到的是 {kind}: {shown(value)}",
        en=f"it must be a Text that says something, got {kind}: {shown(value)}",
    )
