"""A chart, a table and words for a notebook: two outputs, so that the chart stays a picture.

The chart is displayed as ``image/png`` and the rest as HTML, not as one HTML with the picture inside: GitHub shows a
stored ``image/png`` and may drop a picture in HTML, nbval leaves ``image/png`` out of its comparison, and the bytes
are stored once either way.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from lessons_lib.show.fonts import CHART_WIDTH
from lessons_lib.show.shown import Shown


@dataclass(frozen=True, repr=False)
class ShownChart(Shown):
    """Like ``Shown``, below a picture: ``png``, named ``label`` where pictures do not show."""

    png: bytes
    label: str

    def _ipython_display_(self) -> None:
        import IPython.display

        display: Any = IPython.display.display
        picture = {"image/png": base64.b64encode(self.png).decode("ascii"), "text/plain": self.label}
        display(picture, metadata={"image/png": {"width": CHART_WIDTH}}, raw=True)
        display({"text/html": self.html, "text/plain": self.plain}, raw=True)
