"""A text has both languages and shows the one in use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lessons_lib.base.language import current_language, use_language
from lessons_lib.base.text import Text


@pytest.fixture(autouse=True)
def _language_restored() -> Iterator[None]:
    before = current_language()
    yield
    use_language(before)


def test_a_text_follows_the_language() -> None:
    text = Text(zh="融合", en="fusion")
    use_language("zh")
    assert str(text) == "融合"
    use_language("en")
    assert str(text) == "fusion"
    assert text.both == "融合\nfusion"


def test_an_unknown_language_is_refused_and_changes_nothing() -> None:
    use_language("zh")
    with pytest.raises(ValueError, match=r"参数 language .*'fr'.*\nlanguage must .*'fr'"):
        use_language("fr")
    assert current_language() == "zh"


def test_fields_are_filled_in_each_language() -> None:
    text = Text(zh="{n} 个{what}", en="{n} of {what}").format(n=3, what=Text(zh="组", en="groups"))
    assert text == Text(zh="3 个组", en="3 of groups")


@pytest.mark.parametrize(("zh", "en"), [("", "x"), ("x", " ")])
def test_a_text_lacks_no_language(zh: str, en: str) -> None:
    with pytest.raises(ValueError, match="zh"):
        Text(zh=zh, en=en)
