"""A picture whose parts can be pressed, by mouse or by keyboard; the one place that knows anywidget.

anywidget is loaded when a view is made, and only then: ``import lessons_lib`` stays light, and where it cannot be
loaded callers show core buttons instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

Part = Literal["edge", "op"]
PressCallback = Callable[[Part, int], None]

_REMEMBERED = 200  # presses that have been answered; the front end sends its last 20 each time


def pressable_view(height: int = 560) -> Any | None:
    """A widget that shows an SVG picture and reports which of its parts are pressed; ``None`` without anywidget.

    Its trait ``svg`` is the picture, drawn by us: it is put into the page as it is. Elements in it with ``data-edge``
    or ``data-op`` (a number) can be clicked, or focused and pressed with Enter or Space; Tab stops once at the edges
    and once at the operators, and the arrows, Home and End lead on. Focus and scroll position outlive a new picture.
    ``on_press(callback)``: ``callback("edge", 12)``.

    Args:
        height: pixels from which the picture scrolls.
    """
    made = _view_class()
    return None if made is None else made(height=height)


@cache
def _view_class() -> Any | None:
    try:
        import anywidget
        import traitlets
    except Exception:  # missing, or a version that does not fit: either way there are buttons
        return None

    class PressableView(anywidget.AnyWidget):
        """See ``pressable_view``."""

        _esm = files("lessons_lib.show").joinpath("pressable.js").read_text(encoding="utf-8")
        svg = traitlets.Unicode("").tag(sync=True)
        height = traitlets.Int(560).tag(sync=True)
        presses = traitlets.List(traitlets.Unicode()).tag(sync=True)

        def __init__(self, **values: Any) -> None:
            super().__init__(**values)
            self._callbacks: list[PressCallback] = []
            self._answered: deque[str] = deque(maxlen=_REMEMBERED)
            self.observe(lambda change: self._answer(change["new"]), names="presses")

        def on_press(self, callback: PressCallback) -> None:
            """Call ``callback(kind, number)`` at each press."""
            self._callbacks.append(callback)

        def _answer(self, entries: list[str]) -> None:
            for entry in entries:
                if entry in self._answered:
                    continue
                self._answered.append(entry)
                part = _part_of(entry)
                if part is not None:
                    for callback in self._callbacks:
                        callback(*part)

    return PressableView


def _part_of(entry: str) -> tuple[Part, int] | None:
    """``"edge:12:..."`` as ``("edge", 12)``; ``None`` for anything else."""
    kind, _, rest = entry.partition(":")
    number = rest.partition(":")[0]
    if kind not in ("edge", "op") or not (number.isascii() and number.isdigit()) or len(number) > 9:
        return None
    return cast(Part, kind), int(number)
