"""One browser and one JupyterLab for all tests; learners' copies of both editions lie in its folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = ROOT / "artifacts" / "screenshots"

playwright_api = pytest.importorskip("playwright.sync_api")

from lab_driver import Lab, chromium, jupyter_lab  # noqa: E402

from tools.chromium import find_chromium  # noqa: E402


@pytest.fixture(scope="session")
def browser() -> Iterator[playwright_api.Browser]:
    """Chromium; without one these tests are skipped, or fail where CI promises a whole run."""
    if find_chromium() is None:
        reason = "no Chromium or Chrome found: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab over fresh copies of the built lessons."""
    folder = tmp_path_factory.mktemp("lessons")
    for edition in ("zh", "en"):
        shutil.copytree(ROOT / "notebooks" / edition, folder / edition)
    with jupyter_lab(folder, tmp_path_factory.mktemp("jupyter")) as running:
        yield running


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures for a person to look at are left."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return ARTIFACTS
