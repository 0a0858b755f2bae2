"""Python for the browser, served by the site itself: Pyodide's core from npm, the kernel's packages from PyPI."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jupyterlite_pyodide_kernel import constants as pyodide  # type: ignore[import-untyped]

from tools.say import Stop
from tools.site.wheels import download

# The whole of Pyodide's npm package that a browser loads.
_CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", pyodide.PYODIDE_LOCK)
# What the kernel loads as it starts.
_KERNEL = ("micropip", "ipython", "jedi", "traitlets", "packaging", "typing-extensions")


def self_hosted_runtime(cache: Path, requirements: Iterable[str]) -> Path:
    """A folder with Pyodide, the kernel's packages and ``requirements``, fetched once into ``cache``.

    Packages beyond these (NumPy, matplotlib) stay on Pyodide's CDN: a lab that wants one says so.
    """
    served = sorted({*_KERNEL, *requirements})
    folder = cache / f"pyodide-{pyodide.PYODIDE_VERSION}-{hashlib.sha256(repr(served).encode()).hexdigest()[:8]}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as name:
            fresh = Path(name) / "pyodide"
            _unpack_core(fresh, Path(name))
            lock = json.loads((fresh / pyodide.PYODIDE_LOCK).read_text(encoding="utf-8"))
            _serve_packages(lock["packages"], served, fresh)
            (fresh / pyodide.PYODIDE_LOCK).write_text(json.dumps(lock), encoding="utf-8")
            fresh.rename(folder)  # whole or not at all
    return folder


def _unpack_core(target: Path, scratch: Path) -> None:
    npm = shutil.which("npm")
    if not npm:
        raise Stop("缺少 npm：请先安装 Node.js。", "npm is missing: install Node.js first.")
    command = [npm, "pack", "--silent", f"pyodide@{pyodide.PYODIDE_VERSION}"]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    packed = next(scratch.glob("pyodide-*.tgz"), None)
    if done.returncode or packed is None:
        raise Stop(
            f"npm 取不到 Pyodide，请检查网络：\n{done.stderr[-500:]}",
            f"npm could not get Pyodide, check the network:\n{done.stderr[-500:]}",
        )
    target.mkdir()
    with tarfile.open(packed) as archive:
        for name in _CORE:
            member = archive.extractfile(f"package/{name}")
            assert member is not None
            (target / name).write_bytes(member.read())


def _serve_packages(packages: dict[str, Any], served: Iterable[str], folder: Path) -> None:
    """Put the wheels of ``served`` into ``folder``; all other packages keep their place on the CDN."""
    ours = closure(packages, served)
    for name, package in packages.items():
        if name not in ours:
            package["file_name"] = f"{pyodide.PYODIDE_CDN_URL}/{package['file_name']}"
            continue
        requirement = f"{name}=={package['version']}"
        wheel = download(requirement, folder, f"--python-version={pyodide.PYODIDE_PYTHON_VERSION}")
        # PyPI's own wheel, where Pyodide has one packed anew: same version, other checksum.
        package["file_name"] = wheel.name
        package["sha256"] = hashlib.sha256(wheel.read_bytes()).hexdigest()


def closure(packages: dict[str, Any], roots: Iterable[str]) -> set[str]:
    """The ``roots`` and everything they depend on, by the names of Pyodide's lock."""
    found: set[str] = set()
    waiting = [name for name in roots if name in packages]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [need.lower().replace("_", "-") for need in packages[name]["depends"]]
    return found
