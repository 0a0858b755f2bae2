"""Q3: conditions that must hold, apart from costs that must be measured."""

from __future__ import annotations

from typing import TypedDict

from lessons_lib.base.validate import require_bool, require_int


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
