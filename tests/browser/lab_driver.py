# mypy: untyped-calls-exclude=nbformat
"""Drives a real JupyterLab in a real Chromium: start, open, run all, press keys, look."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Locator, Page, sync_playwright

from tools.chromium import FLAGS, find_chromium

# Every cell stands in the page, and nothing pops up over it.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}

# Said by Chromium or by JupyterLab itself whatever the notebook; none concerns a lesson. The last: JupyterLite, where
# it is installed to build the site, leaves a kernel in JupyterLab that only a JupyterLite can load.
IGNORED = re.compile(r"favicon|ResizeObserver loop|Shared module @jupyterlite/")
HERE = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser with an empty profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield browser
        browser.close()


class Lab:
    """A running JupyterLab server over one folder; what was opened is noted in another, for all processes."""

    def __init__(self, address: str, token: str, opened: Path) -> None:
        self.address, self.token, self.opened = address, token, opened

    def write(self, notebook: str, cells: Mapping[str, str]) -> None:
        """Put a notebook of code cells into the folder: id -> code."""
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        content = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source, id=name) for name, source in cells.items()],
            metadata={"kernelspec": kernel},
        )
        body = json.dumps({"type": "notebook", "content": content}).encode()
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        address = f"{self.address}/api/contents/{notebook}"
        with urllib.request.urlopen(urllib.request.Request(address, body, headers, method="PUT")) as answer:
            assert answer.status in (200, 201)

    @contextmanager
    def running(self, notebook: str, context: BrowserContext, seconds: float = 90) -> Iterator[OpenNotebook]:
        """``notebook`` alone in a page of its own, run from top to bottom; page and kernel end with it."""
        self._note(notebook)
        page = context.new_page()
        complaints = watched(page)
        page.goto(f"{self.address}/doc/tree/{notebook}?token={self.token}")
        page.wait_for_function(f"() => {KERNEL}?.status === 'idle'", timeout=60_000)
        opened = OpenNotebook(page, complaints)
        opened.run_all(seconds)
        yield opened
        page.evaluate(f"() => {KERNEL}.shutdown()")
        page.close()

    def _note(self, notebook: str) -> None:
        """Opening takes longest: tests that were dealt out one by one would do it again and again, and all pass."""
        self.opened.mkdir(exist_ok=True)
        try:
            (self.opened / notebook.replace("/", "-")).touch(exist_ok=False)
        except FileExistsError:
            pytest.fail(f"{notebook} is opened a second time: its tests belong together, in one process")


def wait_until(page: Page, holds: Callable[[], bool], otherwise: str, seconds: float = 90) -> None:
    """Go on as soon as ``holds`` does; fail with ``otherwise`` if that takes longer than ``seconds``."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            pytest.fail(otherwise)
        page.wait_for_timeout(50)


def watched(page: Page) -> list[str]:
    """Fills with what goes wrong in ``page``: errors on its console, dialogs, requests that leave this machine."""
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not IGNORED.search(message.text):
            complaints.append(message.text)

    def refuse(dialog: Dialog) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def only_here(address: str) -> None:
        if not address.startswith(HERE):
            complaints.append(f"external request: {address}")

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", refuse)
    page.on("request", lambda request: only_here(request.url))
    return complaints


KERNEL = "window.jupyterapp?.shell?.currentWidget?.context?.sessionContext?.session?.kernel"
_CELL_MODEL = "id => [...window.jupyterapp.shell.currentWidget.content.model.cells].find(cell => cell.id === id)"


class OpenNotebook:
    """One notebook in the browser, and what went wrong in the page while it was open."""

    def __init__(self, page: Page, complaints: list[str] | None = None) -> None:
        self.page = page
        self.complaints = [] if complaints is None else complaints

    def run_all(self, seconds: float = 90) -> None:
        """Run every cell and wait until the last is done, or one has raised: those after it are not run then."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.page.wait_for_function(
            """() => {
                const model = window.jupyterapp.shell.currentWidget.content.model;
                const cells = [...model.cells].filter(c => c.type === 'code' && c.sharedModel.source.trim());
                if (cells.some(c => c.executionState === 'running')) return false;
                const raised = c => c.outputs.toJSON().some(output => output.output_type === 'error');
                return cells.every(c => c.executionCount !== null) || cells.some(raised);
            }""",
            timeout=seconds * 1000,
        )
        self.page.wait_for_timeout(500)

    def settle(self) -> None:
        """Wait until the kernel has answered everything sent to it, and the page has drawn that.

        Twice, for what a widget sends while an answer is on its way goes off with that answer.
        """
        for _ in range(2):
            self.page.evaluate(f"() => {KERNEL}.requestKernelInfo().then(() => true)")
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

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
        """What was raised in the notebook, by cell. Asked of the model: how a traceback looks differs by version."""
        found: list[str] = self.page.evaluate(
            """() => [...window.jupyterapp.shell.currentWidget.content.model.cells].flatMap(cell =>
                (cell.type === 'code' ? cell.outputs.toJSON() : [])
                    .filter(output => output.output_type === 'error')
                    .map(error => `${cell.id}: ${error.ename}: ${error.evalue}`))"""
        )
        return found


@contextmanager
def jupyter_lab(folder: Path, scratch: Path, opened: Path | None = None) -> Iterator[Lab]:
    """JupyterLab over ``folder``; what it writes about itself, and about ``opened`` notebooks, goes to ``scratch``."""
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
        yield Lab(f"http://127.0.0.1:{port}", token, opened or scratch / "opened")
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
