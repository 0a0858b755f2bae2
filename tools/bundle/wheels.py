"""The wheels of the bundle: our own, freshly built, and the pure-Python ones that a Jupyter may lack."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tools.pip_run import explained
from tools.project import CONSTRAINTS, ROOT, pinned
from tools.side_environment import CACHE as ENVIRONMENTS, ready

# The package's requirements and what these need, for a Jupyter that has IPython and nothing else; tqdm, with colorama
# on Windows, for the labs; anywidget and what it needs, for pictures that can be pressed; and diskcache, for the kernels.
# NumPy, matplotlib, torch and triton are not pure Python, so they are not here.
PURE = (
    "drawsvg",
    "lazy-loader",
    "packaging",
    "ipywidgets",
    "comm",
    "traitlets",
    "widgetsnbextension",
    "jupyterlab-widgets",
    "tqdm",
    "colorama",
    "anywidget",
    "psygnal",
    "typing-extensions",
    "diskcache",
)
# The oldest Python's pins: a wheel for it serves all later ones.
_PINS = CONSTRAINTS / "py310.txt"
_PURE_ONLY = ("--only-binary=:all:", "--python-version=3.10", "--platform=any", "--implementation=py", "--abi=none")
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "LICENSE-CONTENT", "NOTICE")


def pure_wheels(cache: Path) -> dict[str, bytes]:
    """File name -> wheel of every package in ``PURE``, at the pinned version; downloaded once into ``cache``."""
    cache.mkdir(parents=True, exist_ok=True)
    patterns = {requirement: _file_pattern(requirement) for requirement in (pinned(name, _PINS) for name in PURE)}
    missing = [requirement for requirement, pattern in patterns.items() if not any(cache.glob(pattern))]
    if missing:
        _pip("download", "--no-deps", *_PURE_ONLY, "--dest", str(cache), *missing)
    wheels = [next(cache.glob(pattern)) for pattern in patterns.values()]
    return {wheel.name: wheel.read_bytes() for wheel in wheels}


def _file_pattern(requirement: str) -> str:
    name, _, version = requirement.partition("==")
    return f"{name.replace('-', '_')}-{version}-*.whl"


def own_wheel(root: Path = ROOT) -> tuple[str, bytes]:
    """Our wheel's file name and its bytes, which depend on nothing but the sources and the pinned setuptools."""
    with tempfile.TemporaryDirectory() as name:
        tree, out = Path(name) / "tree", Path(name) / "out"
        tree.mkdir()
        # A copy: setuptools leaves its work beside the sources, and takes in what an earlier run left there.
        for file in SOURCES:
            shutil.copyfile(root / file, tree / file)
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(root / "lessons_lib", tree / "lessons_lib", ignore=ignored)
        _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(tree))
        wheel = next(out.glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            entries = {entry: archive.read(entry) for entry in archive.namelist()}
        return wheel.name, zipped(entries)


def licences(wheels: Mapping[str, bytes]) -> dict[str, bytes]:
    """``package/file`` -> the text of every licence that a wheel carries."""
    found = {}
    for name, data in wheels.items():
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            for entry in wheel.namelist():
                file = entry.rpartition("/")[2]
                if ".dist-info/" in entry and re.match(r"LICEN[CS]E|NOTICE|COPYING|OFL", file, re.IGNORECASE):
                    found[f"{name.split('-')[0]}/{file}"] = wheel.read(entry)
    return found


def zipped(entries: Mapping[str, bytes]) -> bytes:
    """A zip of these files, the same bytes whenever and by whomever it is made."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        # A wheel's own description goes last, so that a reader finds it at once.
        for name in sorted(entries, key=lambda entry: (".dist-info/" in entry, entry)):
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3  # Unix, for the permissions
            info.external_attr = 0o100644 << 16
            info.compress_type = zipfile.ZIP_STORED if name.endswith(".whl") else zipfile.ZIP_DEFLATED
            archive.writestr(info, entries[name], compresslevel=9)
    return out.getvalue()


def _pip(*arguments: str) -> None:
    """pip of an environment with setuptools and nothing else: the Python that runs this may have no pip."""
    python = ready(ENVIRONMENTS / "wheel", Path(sys.executable), [pinned("setuptools", _PINS)])
    command = [str(python), "-m", "pip", *arguments, "--quiet", "--no-input", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise explained(done.stdout + done.stderr)
