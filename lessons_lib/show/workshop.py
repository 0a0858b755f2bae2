"""Commit before reveal: in a workshop, panels and votes open once the learner has committed a guess. Off by default.

``LESSONS_WORKSHOP=1`` switches it on for every lesson, as a classroom's image does; ``workshop(True)`` in a cell for the
lesson at hand. No widget is needed here; the form is in ``gate``.
"""

from __future__ import annotations

import os

from lessons_lib.base.text import Text
from lessons_lib.base.validate import require_bool
from lessons_lib.show.guesses import noted_choice
from lessons_lib.show.shown import Shown, report_words

VARIABLE = "LESSONS_WORKSHOP"

_VOTE_FIRST = Text(
    zh="先在上面投票，点“确定”，再运行这一格：结果要和你的猜测放在一起看。",
    en="Vote above and press commit first, then run this cell again: the result is to stand beside your guess.",
)
_ON = ("1", "on", "true", "yes")

_chosen: bool | None = None


def workshop(on: bool = True) -> None:
    """Switch commit-before-reveal on or off for the panels and votes that are made from now on.

    Raises:
        ValueError: ``on`` is not ``True`` or ``False``.
    """
    global _chosen
    _chosen = require_bool("on", on)


def in_workshop() -> bool:
    """Whether panels and votes wait for a guess: as ``workshop`` said, else as ``LESSONS_WORKSHOP`` says."""
    return os.environ.get(VARIABLE, "").strip().lower() in _ON if _chosen is None else _chosen


def vote_first(key: str, guess: object) -> Shown | None:
    """What a measurement's report shows in a workshop before its vote; ``None`` where the report may be seen.

    Args:
        key: of the vote; ``guess``: what the report was given, ``None`` for none.
    """
    if guess is not None or not in_workshop() or noted_choice(key) is not None:
        return None
    return report_words([_VOTE_FIRST])
