"""Drives a real JupyterLab in a real Chromium: start, open, run all, press keys, look."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, sync_playwright

from tools.chromium import FLAGS, find_chromium

# Every cell stands in the page, and nothing pops up over it.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser with an empty profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield browser
        browser.close()


class Lab:
    """A running JupyterLab server over one folder."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = address, token

    def open(self, page: Page, notebook: str) -> OpenNotebook:
        """Show ``notebook`` alone in ``page`` and wait for its kernel."""
        page.goto(f"{self.address}/doc/tree/{notebook}?token={self.token}")
        page.wait_for_function(
            "() => window.jupyterapp?.shell?.currentWidget?.context?.sessionContext?.session?.kernel?.status"
            " === 'idle'",
            timeout=60_000,
        )
        return OpenNotebook(page)


_CELL_MODEL = "id => [...window.jupyterapp.shell.currentWidget.content.model.cells].find(cell => cell.id === id)"


class OpenNotebook:
    """One notebook in the browser."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def run_all(self, seconds: float = 90) -> None:
        """Run every cell and wait until the last is done."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.page.wait_for_function(
            """() => {
                const model = window.jupyterapp.shell.currentWidget.content.model;
                const cells = [...model.cells].filter(c => c.type === 'code' && c.sharedModel.source.trim());
                return cells.every(c => c.executionCount !== null && c.executionState !== 'running');
            }""",
            timeout=seconds * 1000,
        )
        self.page.wait_for_timeout(500)

    def cell(self, cell_id: str) -> Locator:
        """The cell with this id, scrolled into view."""
        index = self.page.evaluate(
            "id => [...window.jupyterapp.shell.currentWidget.content.model.cells].findIndex(c => c.id === id)",
            cell_id,
        )
        assert index >= 0, f"no cell {cell_id}"
        cell = self.page.locator(".jp-Notebook .jp-Cell").nth(index)
        cell.scroll_into_view_if_needed()
        return cell

    def source(self, cell_id: str) -> str:
        """The code of a cell."""
        code: str = self.page.evaluate(f"id => ({_CELL_MODEL})(id).sharedModel.getSource()", cell_id)
        return code

    def replace_source(self, cell_id: str, code: str) -> None:
        """Put ``code`` into a cell, as a learner who types it."""
        self.page.evaluate(f"([id, code]) => ({_CELL_MODEL})(id).sharedModel.setSource(code)", [cell_id, code])

    def run_cell(self, cell_id: str) -> None:
        """Run one cell and wait for it."""
        self.cell(cell_id).locator(".jp-InputArea-prompt").click()
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")

    def errors(self) -> list[str]:
        """Tracebacks shown in the notebook."""
        return self.page.locator(".jp-Cell .jp-RenderedText[data-mime-type*='error']").all_inner_texts()


@contextmanager
def jupyter_lab(folder: Path, scratch: Path) -> Iterator[Lab]:
    """JupyterLab over ``folder``; what it writes about itself goes to ``scratch``."""
    settings = scratch / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "overrides.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    port, token = _free_port(), secrets.token_hex(16)
    command = [
        *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ServerApp.ip=127.0.0.1"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}"),
        *(
            "--LabApp.expose_app_in_browser=True",
            f"--LabApp.app_settings_dir={settings}",
            f"--ServerApp.root_dir={folder}",
        ),
        *(["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
    ]
    homes = {name: str(scratch / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    with (scratch / "jupyter.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **homes})
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token={token}", server, scratch / "jupyter.log")
        yield Lab(f"http://127.0.0.1:{port}", token)
    finally:
        server.terminate()
        server.wait(timeout=20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")
