import pytest

from tools.edition import chosen, of_locale
from tools.say import Stop


@pytest.mark.parametrize(
    ("environment", "system", "edition"),
    [
        ({}, "", "en"),
        ({"LANG": "zh_CN.UTF-8"}, "", "zh"),
        ({"LANG": "zh_TW"}, "", "zh"),
        ({"LANG": "en_US.UTF-8"}, "zh_CN", "en"),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "", "zh"),
        ({"LC_ALL": "C", "LC_MESSAGES": "zh_CN", "LANG": "zh_CN"}, "", "en"),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "", "zh"),
        ({"LC_CTYPE": "zh_CN.UTF-8", "LANG": "de_DE.UTF-8"}, "", "en"),
        ({}, "Chinese (Simplified)_China", "zh"),
        ({}, "German_Germany", "en"),
    ],
)
def test_locale_gives_the_edition(environment, system, edition):
    assert of_locale(environment, system) == edition


def test_a_named_edition_wins_over_the_locale(monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert chosen("en") == "en"
    assert chosen("") == chosen(None) == "zh"


def test_an_unknown_edition_is_refused_in_both_languages():
    with pytest.raises(Stop) as stop:
        chosen("fr")
    assert "'fr'" in stop.value.zh and "'fr'" in stop.value.en
