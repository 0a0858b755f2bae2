"""What the learner has voted, for those who show or judge it later; no widget is needed here."""

from __future__ import annotations

from lessons_lib.base.progress import has_progress_file, note_step, noted
from lessons_lib.base.text import Text

SECTION = "votes"
"""The section of the progress file; its keys are the functions that make the votes."""

YOUR_GUESS = Text(zh="你的猜测", en="your guess")
_GUESS_LINE = Text(zh="你的猜测（{asked}）：{guess}。", en="Your guess ({asked}): {guess}.")


def noted_choice(key: str, options: int = 99) -> int | None:
    """The option, from 1, that was voted for at any time; ``None`` for none, or one beyond ``options``."""
    choice = noted(SECTION, key).get("choice")
    return choice if isinstance(choice, int) and not isinstance(choice, bool) and 1 <= choice <= options else None


def note_measured(key: str, value: float) -> None:
    """Keep beside a vote what was measured, in the unit of its options' values; the first measurement stays.

    Without a vote there is nothing to keep it beside.
    """
    entry = noted(SECTION, key) if has_progress_file() else {}
    if "choice" in entry and "measured" not in entry:
        note_step(SECTION, key, str(entry.get("lesson", "")), {**entry, "measured": value})


def _voted(key: str) -> object:
    """The value of the option that was voted for; ``None`` without a vote or a progress file."""
    return noted(SECTION, key).get("value") if has_progress_file() else None


def voted_number(key: str) -> float | None:
    """The value of the option that was voted for, if it is a number and a progress file holds it."""
    value = _voted(key)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def voted_word(key: str) -> str | None:
    """The value of the option that was voted for, if it is a word and a progress file holds it."""
    value = _voted(key)
    return value if isinstance(value, str) else None


def guess_line(asked: Text, guess: Text | str) -> Text:
    """The line “your guess” of a report.

    Args:
        asked: what the guess was about, a few words.
    """
    return _GUESS_LINE.format(asked=asked, guess=guess)
