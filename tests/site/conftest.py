"""A Chromium that reaches nobody but this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

playwright_api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("jupyterlite_core")

from site_driver import ARTIFACTS, offline_chromium, skip_unless_ci  # noqa: E402

from tools.chromium import find_chromium  # noqa: E402


@pytest.fixture(scope="session")
def offline() -> Iterator[playwright_api.Browser]:
    if find_chromium() is None:
        skip_unless_ci("no Chromium or Chrome found: apt-get install chromium")
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    with offline_chromium() as browser:
        yield browser
