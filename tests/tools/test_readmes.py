"""What the READMEs say must be there: pictures as the library draws them, commands and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.project import ROOT
from tools.readme_pictures import pictures

READMES = ["README.md", "README.zh.md", "CONTRIBUTING.md"]


def test_pictures_are_as_the_library_draws_them() -> None:
    for path, svg in pictures().items():
        assert path.read_text(encoding="utf-8") == svg, "stale: python -m tools.readme_pictures"


@pytest.mark.parametrize("name", READMES)
def test_every_relative_link_leads_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)|src=\"([^\"]+)\"", text)
    targets = [link or source for link, source in links if "://" not in (link or source)]
    assert targets
    missing = [target for target in targets if not (ROOT / target).exists()]
    assert missing == []


@pytest.mark.parametrize("name", READMES)
def test_every_make_target_and_tool_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)", text, re.MULTILINE)):
        assert re.search(rf"^{target[0] or target[1]}:", makefile, re.MULTILINE), target
    for module in set(re.findall(r"-m ((?:tools|notebooks|benchmarks)[.a-z_]*)", text)):
        path = Path(*module.split("."))
        assert (ROOT / path).is_dir() or (ROOT / path).with_suffix(".py").is_file(), module


def test_the_two_readmes_have_the_same_shape() -> None:
    shapes = []
    for name in ("README.md", "README.zh.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        shapes.append((re.findall(r"^(#+) ", text, re.MULTILINE), text.count("```")))
    assert shapes[0] == shapes[1]
