"""A Chromium that reaches nobody but this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

playwright_api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("jupyterlite_core")

from site_driver import ARTIFACTS, offline_chromium, skip_unless_ci  # noqa: E402

from tests.processes import ByNotebook  # noqa: E402
from tools.chromium import find_chromium  # noqa: E402


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByNotebook:
    """Whatever ``--dist`` says: an edition runs in one process, and beside it another reads the pages."""
    return ByNotebook(config, log)


@pytest.fixture(scope="session")
def offline() -> Iterator[playwright_api.Browser]:
    if find_chromium() is None:
        skip_unless_ci("no Chromium or Chrome found: apt-get install chromium")
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    with offline_chromium() as browser:
        yield browser
