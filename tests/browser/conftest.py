"""One browser and one JupyterLab for all tests; learners' copies of both editions lie in its folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = ROOT / "artifacts" / "screenshots"

playwright_api = pytest.importorskip("playwright.sync_api")

from lab_driver import Lab, chromium, jupyter_lab  # noqa: E402

from tests.processes import ByNotebook, meeting_place  # noqa: E402
from tools.chromium import find_chromium  # noqa: E402

playwright_api.expect.set_options(timeout=20_000)  # another process drives a browser of its own at the same time


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByNotebook:
    """Whatever ``--dist`` says."""
    return ByNotebook(config, log)


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
def context(browser: playwright_api.Browser) -> Iterator[playwright_api.BrowserContext]:
    """A learner's window; what JupyterLab is made of is fetched into it once."""
    made = browser.new_context(viewport={"width": 1024, "height": 1400})
    yield made
    made.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab over fresh copies of the built lessons."""
    folder = tmp_path_factory.mktemp("lessons")
    for edition in ("zh", "en"):
        shutil.copytree(ROOT / "notebooks" / edition, folder / edition)
    opened = meeting_place(tmp_path_factory) / "opened"
    with jupyter_lab(folder, tmp_path_factory.mktemp("jupyter"), opened) as running:
        yield running


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures for a person to look at are left."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return ARTIFACTS
