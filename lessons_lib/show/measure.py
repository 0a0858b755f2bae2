"""Sizes that all pictures share, and how wide words are: pure, so that a layout needs no drawing library."""

from __future__ import annotations

import unicodedata

CARD_WIDTH = 760
MARGIN = 20
SMALL = 12
BODY = 13
TITLE = 16


def text_width(words: str, size: float) -> float:
    """An upper estimate of how wide ``words`` are in pixels: no font can be asked before a browser draws."""
    full = sum(unicodedata.east_asian_width(character) in "WF" for character in words)
    return size * (full + 0.62 * (len(words) - full))


def bold_width(words: str, size: float) -> float:
    """The same of bold words such as names, where a few wide letters weigh more."""
    return text_width(words, size) + 0.42 * size * sum(words.count(letter) for letter in "mwMW@%")


def shortened(words: str, size: float, width: float) -> str:
    """``words``, with an ellipsis in place of their middle where they are wider than ``width`` pixels, even if bold.

    The last few characters stay: they tell ``mul_1`` from ``mul_2``.
    """
    words = " ".join(words.split())
    if bold_width(words, size) <= width:
        return words
    tail = words[-2:]
    for kept in range(min(len(words) - 3, int(width / size * 2)), 0, -1):
        short = f"{words[:kept].rstrip()}…{tail}"
        if bold_width(short, size) <= width:
            return short
    return "…"
