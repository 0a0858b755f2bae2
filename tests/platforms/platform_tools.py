"""What the tests of this folder share: the bundle, built once; the Pythons that are here; the way off the network."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.processes import meeting_place
from tools.bundle.__main__ import CACHE as WHEELS_CACHE
from tools.bundle.pack import pack
from tools.pythons import find
from tools.side_environment import locked

RUNNER = Path(__file__).with_name("offline_runner.py")


def built_bundle(factory: pytest.TempPathFactory) -> Path:
    """The zip, built by the first test that asks for it, whichever worker that is in."""
    folder = meeting_place(factory) / "bundle"
    with locked(folder):
        if not folder.exists():
            name, data = pack(WHEELS_CACHE)
            folder.mkdir()
            (folder / name).write_bytes(data)
    return next(folder.glob("*.zip"))


def unpacked(bundle: Path, place: Path) -> Path:
    """The folder that comes out of the zip."""
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(place)
    return next(path for path in place.iterdir() if (path / "start.ipynb").exists())


def python_or_skip(version: str) -> Path:
    python = find(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    return python


def way_to_cut() -> list[str] | None:
    """The command that gives a process a network of its own, or None where that is not permitted."""
    for words in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        # Without the loopback no kernel can be reached, so the permission to switch it on is part of the question.
        ask = (
            f"import sys; sys.path.insert(0, {str(RUNNER.parent)!r}); import offline_runner as r; r.raise_loopback()"
        )
        try:
            if not subprocess.run([*words, sys.executable, "-c", ask], capture_output=True).returncode:
                return words
        except OSError:
            continue
    return None
