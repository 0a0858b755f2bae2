"""Serves a built site from 127.0.0.1 and opens it in a Chromium that reaches nothing else."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, BrowserContext, Route, sync_playwright

from tools.chromium import FLAGS, find_chromium
from tools.project import ROOT

ARTIFACTS = ROOT / "artifacts" / "screenshots"
# Below the page's own requests, which Playwright stops: workers, service workers and the browser itself.
_NOBODY_ELSE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012  # the base class has it so
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """The address under which ``folder`` is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@contextmanager
def offline_chromium() -> Iterator[Browser]:
    """A headless browser for which no host but this one exists."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=[*FLAGS, _NOBODY_ELSE])
        yield browser
        browser.close()


def refuse_others(context: BrowserContext, address: str) -> list[str]:
    """Refuse every request that leaves ``address``; the list fills with what was asked for."""
    refused: list[str] = []

    def is_foreign(url: str) -> bool:
        return not url.startswith((f"{address}/", "data:", "blob:"))

    def refuse(route: Route) -> None:
        route.abort()

    context.on("request", lambda request: refused.append(request.url) if is_foreign(request.url) else None)
    context.route(is_foreign, refuse)
    return refused


def skip_unless_ci(reason: str) -> NoReturn:
    """What cannot be tested here is skipped, or fails where CI promises a whole run."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
