"""The browser tests' driver of a real JupyterLab, for benchmarks too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]

if TYPE_CHECKING:
    from tests.browser.lab_driver import OpenNotebook, chromium, jupyter_lab
else:
    # The tests import it by this name as well: the folder of the tests is no package.
    sys.path.append(str(ROOT / "tests" / "browser"))
    from lab_driver import OpenNotebook, chromium, jupyter_lab

__all__ = ["ROOT", "OpenNotebook", "chromium", "jupyter_lab"]
