"""JupyterLab as the course starts it: on this machine only, token on, no news pop-up, in the edition's language."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tools.project import ROOT

_HOME = ROOT / ".cache" / "jupyter"
_LOCALE = {"zh": "zh_CN", "en": "en"}


def environment() -> dict[str, str]:
    """Folders of its own, so that no setting of another Jupyter (a token switched off, say) reaches the course."""
    folders = {f"JUPYTER_{kind.upper()}_DIR": _HOME / kind for kind in ("config", "data", "runtime")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return {**os.environ, **{name: str(folder) for name, folder in folders.items()}}


def settings(edition: str) -> dict[str, dict[str, object]]:
    """JupyterLab's settings for an edition."""
    return {
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
        "@jupyterlab/translation-extension:plugin": {"locale": _LOCALE[edition]},
    }


def write_settings(prefix: Path, edition: str) -> None:
    """Put the settings where a JupyterLab installed under ``prefix`` reads them."""
    folder = prefix / "share" / "jupyter" / "lab" / "settings"
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / "overrides.part"
    part.write_text(json.dumps(settings(edition), indent=1), encoding="utf-8")
    part.replace(folder / "overrides.json")


def has_display(system: str, variables: Mapping[str, str]) -> bool:
    """Whether a browser could open here: only Linux is known to run without a screen."""
    return not system.startswith("linux") or bool(variables.get("DISPLAY") or variables.get("WAYLAND_DISPLAY"))


def is_root() -> bool:
    """Whether this is the superuser, whom Jupyter refuses unless told."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def page(folder: Path, start: str) -> str:
    """The page that opens ``start``. Each edition has a workspace: tabs of one never come up in the other."""
    return f"lab/workspaces/{folder.name}/tree/{start}"


def command(python: Path, folder: Path, start: str, *, port: str, browser: bool, root: bool) -> list[str]:
    """The command that serves ``folder`` and opens ``start``. A port that is taken makes Jupyter try the next."""
    return [
        str(python),
        "-m",
        "jupyterlab",
        "--ServerApp.log_level=WARN",
        "--LabApp.log_level=WARN",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/{page(folder, start)}",
        *([f"--ServerApp.port={port}"] if port else []),
        *([] if browser else ["--no-browser"]),
        *(["--allow-root"] if root else []),
    ]


def address(folder: Path, start: str, since: float, runtime: Path = _HOME / "runtime") -> str | None:
    """Where the server of ``folder`` that started after ``since`` listens, token included; None while none does."""
    for path in runtime.glob("jpserver-*.json"):
        try:
            server = json.loads(path.read_text(encoding="utf-8"))
            if path.stat().st_mtime >= since and Path(server["root_dir"]) == folder:
                return f"{server['url']}{page(folder, start)}?token={server['token']}"
        except (OSError, ValueError, KeyError):  # being written, or just removed
            continue
    return None


def port_of(address: str) -> str:
    """The port in an address that ``address`` found."""
    return str(urlsplit(address).port)


def main() -> None:
    """For Binder, whose JupyterLab is not the course's own: ``python -m tools.jupyter en``."""
    write_settings(Path(sys.prefix), sys.argv[1])


def now() -> float:
    """A moment to compare file times with; some file systems keep whole seconds only."""
    return float(int(time.time()))


if __name__ == "__main__":
    main()
