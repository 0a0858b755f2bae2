"""The first code cell of every lesson, as real code: ``bootstrap.py`` fills in the constants and the last lines.

Everything below the rule goes into the notebooks. It must run on any Python a learner may have:
standard library only, nothing of the course, no network while everything needed is there.
"""

# ----
import importlib
import os
import site
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

# These five come from pyproject.toml.
_PACKAGE = "operator-fusion-lessons"
_MODULES: dict[str, str] = {}
_SOURCES: list[str] = []
_PUBLISHED = False
_HELP = ""


def _has(module: str) -> bool:
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


async def _install(*wanted: str, options: list[str]) -> bool:
    """Install; True if it worked. What is already there stays as it is."""
    try:
        if sys.platform == "emscripten":  # a Python inside the browser: no processes, its own installer
            installer = importlib.import_module("piplite" if _has("piplite") else "micropip")
            deps = "--no-deps" not in options
            asks_pypi = deps or _PUBLISHED
            await installer.install(list(wanted), deps=deps, index_urls=None if asks_pypi else [])
        else:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--timeout=10", "--retries=0"]
            quiet = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
            subprocess.run([*pip, *options, *wanted], check=True, capture_output=True, timeout=120, env=quiet)
            if site.ENABLE_USER_SITE:  # pip may just have created that folder
                site.addsitedir(site.getusersitepackages())
    except Exception:  # whatever went wrong, the next way may work
        return False
    importlib.invalidate_caches()
    return True


async def _prepare() -> list[str]:
    """Make lessons_lib importable: as it is, from the folders above, from wheels beside, from its sources."""
    browser = sys.platform == "emscripten"
    folders = [Path.cwd(), *Path.cwd().parents]
    beside = [place for f in folders[:3] for place in (f, f / "wheels") if any(place.glob("*.whl"))]
    if not _has("lessons_lib"):
        homes = [f for f in folders if (f / "pyproject.toml").is_file() and (f / "lessons_lib/__init__.py").is_file()]
        sys.path[:0] = map(str, homes[:1])
    if not _has("lessons_lib"):
        name = f"{_PACKAGE.replace('-', '_')}-*.whl"
        wheels = [wheel for place in beside for wheel in sorted(place.glob(name), reverse=True)]
        in_browser = [*(f"emfs:{wheel}" for wheel in wheels), _PACKAGE]
        for way in in_browser if browser else [*map(str, wheels), *_SOURCES]:
            print("lessons_lib <-", way)
            if await _install(way, options=["--no-deps"]) and _has("lessons_lib"):
                break
    if missing := [requirement for module, requirement in _MODULES.items() if not _has(module)]:
        print("+", *missing)
        local = [f"--find-links={place}" for place in beside]
        for options in ([*local, "--no-index"], local) if local else ([],):
            if await _install(*missing, options=options):
                break
    return [module for module in ("lessons_lib", *_MODULES) if not _has(module)]
