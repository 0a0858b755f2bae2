"""Operator fusion, hands on: what a lesson's cell may call, loaded on first use.

``import lessons_lib`` loads no widget, no NumPy and no torch; the stub beside this file is the list of names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
