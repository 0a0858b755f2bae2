"""A sentence in both languages, so that nothing can lack one."""

from __future__ import annotations

from dataclasses import dataclass

from lessons_lib.base.language import Language, current_language


@dataclass(frozen=True)
class Text:
    """One sentence in Chinese and in English; ``str()`` gives the edition's language.

    Raises:
        ValueError: one of the two is empty.
    """

    zh: str
    en: str

    def __post_init__(self) -> None:
        if not (self.zh.strip() and self.en.strip()):
            raise ValueError(f"Text 的 zh 和 en 都不能为空。\nText needs both zh and en, got {self!r}.")

    def __str__(self) -> str:
        return self.text_in(current_language())

    def text_in(self, language: Language) -> str:
        """The sentence in the named language."""
        return self.zh if language == "zh" else self.en

    def format(self, **values: object) -> Text:
        """The same sentence with ``{name}`` fields filled; a ``Text`` value appears in its own language."""
        return Text(
            zh=self.zh.format(**{name: _in_language(value, "zh") for name, value in values.items()}),
            en=self.en.format(**{name: _in_language(value, "en") for name, value in values.items()}),
        )

    @property
    def both(self) -> str:
        """Chinese, then English, a line each: for errors, which must be understood in any edition."""
        return f"{self.zh}\n{self.en}"


def sentences(*words: object) -> str:
    """Sentences one after another in the language in use: Chinese ones need no space between them."""
    return ("" if current_language() == "zh" else " ").join(str(sentence) for sentence in words)


def _in_language(value: object, language: Language) -> object:
    return value.text_in(language) if isinstance(value, Text) else value
