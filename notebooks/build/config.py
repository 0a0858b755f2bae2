"""What the builder takes from ``pyproject.toml``: where the course lives and what it needs."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The same reader: in the standard library since Python 3.11, a package of its own before.
_toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


@dataclass(frozen=True)
class Config:
    """``[tool.lessons]``, and the parts of ``[project]`` that a notebook's first cell repeats."""

    package: str
    requirements: tuple[str, ...]
    repository: str
    ref: str
    site: str
    published: bool
    mirrors: tuple[str, ...]
    extras: tuple[str, ...]
    in_browser: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def repository_url(self) -> str:
        return f"https://github.com/{self.repository}"

    @property
    def wheel_pattern(self) -> str:
        """What a wheel of the package is called, whatever its version."""
        return f"{self.package.replace('-', '_')}-*.whl"

    @property
    def modules(self) -> dict[str, str]:
        """Each requirement by the module it provides: ``{"lazy_loader": "lazy-loader>=0.4"}``."""
        return {_name(requirement).replace("-", "_"): requirement for requirement in self.requirements}

    @property
    def sources(self) -> list[str]:
        """Where pip may find the package, in the order to try.

        The archive comes before git: it needs no git, and pip's own timeout ends it early.
        PyPI is asked only once the name there is ours.
        """
        return [
            f"{self.repository_url}/archive/{self.ref}.zip",
            f"git+{self.repository_url}@{self.ref}",
            *self.mirrors,
            *([self.package] if self.published else []),
        ]


def read_config(root: Path) -> Config:
    """The settings of the course under ``root``."""
    pyproject = read_toml(root / "pyproject.toml")
    project, lessons = pyproject["project"], pyproject["tool"]["lessons"]
    return Config(
        package=project["name"],
        requirements=tuple(project["dependencies"]),
        repository=lessons["repository"],
        ref=lessons["ref"],
        site=lessons["site"],
        published=lessons["published"],
        mirrors=tuple(lessons["mirrors"]),
        extras=tuple(lessons["extras"]),
        in_browser={extra: tuple(brought) for extra, brought in lessons.get("in-browser", {}).items()},
    )


def read_toml(path: Path) -> dict[str, dict[str, Any]]:
    """A TOML file whose top level is tables."""
    tables: dict[str, dict[str, Any]] = _toml.loads(path.read_text(encoding="utf-8"))
    return tables


def _name(requirement: str) -> str:
    """``"lazy-loader"`` of ``"lazy-loader>=0.4"``."""
    found = re.match(r"[A-Za-z0-9._-]*[A-Za-z0-9]", requirement)
    return found.group() if found else requirement
