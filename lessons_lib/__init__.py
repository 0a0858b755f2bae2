"""Operator fusion, hands on: what a lesson's cell may call, loaded on first use.

``import lessons_lib`` loads no widget, no NumPy and no torch; the stub beside this file is the list of names.
"""

import sys

try:
    import lazy_loader
except ImportError as missing:
    from lessons_lib.base.optional import MissingPackageError

    raise MissingPackageError(
        f"这个 Python（{sys.executable}）里没有 {missing.name}。请用课程自己的 Python：先 make setup，再用 .venv/bin/python。\n"
        f"This Python ({sys.executable}) has no {missing.name}. Use the course's own: make setup, then .venv/bin/python."
    ) from None

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
