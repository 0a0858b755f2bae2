"""Charts by matplotlib that look the same everywhere and show Chinese on a machine without a Chinese font.

A small subset of Noto Sans SC comes with the package (``font/``, made by ``tools/font_subset.py``). It has a name of
its own, so that it never stands in for a whole font in a learner's own plots, and every setting ends with the chart.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lessons_lib.base.text import Text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAMILY = "Fusion Lessons SC"
FONT_FILE = Path(__file__).parent / "font" / "FusionLessonsSC-Regular.otf"

CHART_WIDTH = 760
_DPI = 100  # at which a point of matplotlib's is 100/72 px of a chart ``CHART_WIDTH`` wide
_PIXEL_RATIO = 2  # stored pixels for each shown one: sharp on a fine screen
_COLOURS = 256  # of the stored picture: a chart has few, and the file is a third

_NO_MATPLOTLIB = Text(
    zh="这张图要用 matplotlib，但当前环境里没有。请先运行：{command}，再重新运行这一格。",
    en="This chart needs matplotlib, which is not installed here. Run {command} first, then run this cell again.",
)


def points(pixels: float) -> float:
    """Matplotlib's points for a size in pixels of the chart as it is shown."""
    return pixels * 72 / _DPI


@contextmanager
def chart(height: int) -> Iterator[Figure]:
    """An empty figure ``CHART_WIDTH`` by ``height`` pixels to draw on, in the course's look.

    matplotlib's settings and styles of the learner neither reach it nor are changed by it.

    Raises:
        ImportError: matplotlib is missing; the message says what to do.
    """
    with _quiet_loading():
        try:
            import matplotlib.style
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError(_NO_MATPLOTLIB.format(command=_install_command()).both) from error
        _register_font()
    with matplotlib.style.context(["default", _look()]):
        yield Figure(figsize=(CHART_WIDTH / _DPI, height / _DPI), dpi=_DPI, layout="constrained")


def png_of(figure: Figure) -> bytes:
    """The finished figure as a PNG of twice its pixels; to be called within ``chart``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    FigureCanvasAgg(figure)
    drawn, out = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, dpi=_DPI * _PIXEL_RATIO, format="png")
    picture = Image.open(drawn).convert("RGB")
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def _look() -> dict[str, object]:
    """Settings over matplotlib's defaults: a glyph missing in the first family is taken from the second."""
    ink, muted, line = "#1b1f24", "#57606a", "#d0d7de"
    return {
        "font.family": ["DejaVu Sans", FAMILY],
        "font.size": points(12),
        "axes.titlesize": points(15),
        "axes.titleweight": "normal",
        "axes.titlelocation": "left",
        "axes.labelsize": points(12.5),
        "xtick.labelsize": points(11.5),
        "ytick.labelsize": points(11.5),
        "legend.fontsize": points(12),
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.edgecolor": muted,
        "xtick.color": muted,
        "ytick.color": muted,
        "xtick.labelcolor": ink,
        "ytick.labelcolor": ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": line,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "figure.facecolor": "#ffffff",
        "axes.facecolor": "#ffffff",
    }


def _register_font() -> None:
    from matplotlib import font_manager

    if all(entry.name != FAMILY for entry in font_manager.fontManager.ttflist):
        font_manager.fontManager.addfont(FONT_FILE)


@contextmanager
def _quiet_loading() -> Iterator[None]:
    """matplotlib's first start says on stderr that it builds a list of fonts; a notebook compares its stderr."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _install_command() -> str:
    if sys.platform == "emscripten":
        return "%pip install matplotlib"
    return f"{sys.executable or 'python'} -m pip install matplotlib"
