"""A widget that is live in a running notebook and still shows itself where nothing runs.

Displayed, it gives several representations in one output: the widget, a static one (what GitHub and nbviewer show)
and plain text (what a test compares and a screen reader reads). Works on ipywidgets 7.7 and 8.
"""

from __future__ import annotations

import sys
from typing import Any

import ipywidgets as widgets

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class LiveBox(widgets.VBox):
    """A column of core widgets with static twins; subclasses say what these are in ``static_forms``."""

    # ipywidgets 7 would display itself through this and bypass the bundle below.
    _ipython_display_ = None

    def static_forms(self) -> dict[str, str]:
        """Representations by MIME type that need no running kernel; ``text/plain`` must be among them."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **kwargs: Any) -> dict[str, Any]:
        forms: dict[str, Any] = dict(self.static_forms())
        if "google.colab" in sys.modules:
            # Which of the two Colab would prefer is not known: it gets the live one only.
            forms.pop("image/svg+xml", None)
        forms[WIDGET_VIEW] = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return forms
