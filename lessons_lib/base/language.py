"""The language of the edition a learner has opened."""

from __future__ import annotations

from typing import Literal, get_args

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_current: Language = "en"


def use_language(language: str) -> None:
    """Show everything that follows in ``language``: ``"zh"`` (Chinese) or ``"en"`` (English).

    Raises:
        ValueError: ``language`` is neither; the language in use stays.
    """
    global _current
    if not isinstance(language, str) or language not in LANGUAGES:
        given = repr(language)[:80] if isinstance(language, str) else f"<{type(language).__name__}>"
        raise ValueError(
            f"参数 language 只能是 'zh' 或 'en'，收到的是 {given}。\nlanguage must be 'zh' or 'en', got {given}."
        )
    _current = language


def current_language() -> Language:
    """The language in use; English until ``use_language`` says otherwise."""
    return _current


def language_tag() -> str:
    """The edition's language for an HTML ``lang`` attribute.

    Chromium picks Japanese glyph forms for Chinese text that does not name its language.
    """
    return "zh-CN" if current_language() == "zh" else "en"
