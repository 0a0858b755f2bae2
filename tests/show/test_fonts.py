"""Charts: Chinese without a Chinese font, no word on stderr, and the learner's own plots left alone."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")

from matplotlib import font_manager  # noqa: E402
from matplotlib.ft2font import FT2Font  # noqa: E402
from PIL import Image  # noqa: E402

from lessons_lib.kernels.benchmark import plot as benchmark_plot  # noqa: E402
from lessons_lib.reuse import sweep_plot  # noqa: E402
from lessons_lib.show import fonts  # noqa: E402
from lessons_lib.show.chart import ShownChart  # noqa: E402
from lessons_lib.show.fonts import CHART_WIDTH, FAMILY, FONT_FILE, chart, png_of  # noqa: E402
from tools import font_subset  # noqa: E402

# Every Text that a chart draws; a new chart adds its own.
CHART_LABELS = (*sweep_plot.LABELS, *benchmark_plot.LABELS)


@pytest.fixture
def _no_other_fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose only fonts are matplotlib's own."""
    manager = font_manager.fontManager
    own = [entry for entry in manager.ttflist if Path(entry.fname).is_relative_to(matplotlib.get_data_path())]
    assert own
    monkeypatch.setattr(manager, "ttflist", own)
    monkeypatch.setattr(font_manager, "_load_fontmanager", None)
    _forget_found_fonts()
    yield
    _forget_found_fonts()


def _forget_found_fonts() -> None:
    for name in ("_findfont_cached", "_find_fonts_by_props_cached"):
        getattr(getattr(font_manager.FontManager, name, None), "cache_clear", lambda: None)()


def draw(words: str) -> bytes:
    with warnings.catch_warnings(), chart(120) as figure:
        warnings.simplefilter("error")
        figure.text(0.02, 0.5, words)
        return png_of(figure)


# -- the font --------------------------------------------------------------------------------------------------


def test_every_label_of_a_chart_is_in_the_shipped_font() -> None:
    held = FT2Font(str(FONT_FILE)).get_charmap()
    dejavu = FT2Font(font_manager.findfont("DejaVu Sans")).get_charmap()
    missing = {character for label in CHART_LABELS for character in label.zh if ord(character) not in (held | dejavu)}
    assert not missing, f"run tools/font_subset.py: {''.join(sorted(missing))}"


def test_the_words_of_charts_to_come_are_in_it_too() -> None:
    held = FT2Font(str(FONT_FILE)).get_charmap()
    assert {character for character in font_subset.characters([]) if ord(character) not in held} == set()


@pytest.mark.usefixtures("_no_other_fonts")
def test_chinese_is_drawn_on_a_machine_without_a_chinese_font(capfd: pytest.CaptureFixture[str]) -> None:
    for label in CHART_LABELS:
        draw(label.zh)
    assert draw("缓存") != draw("内存") != draw("")
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("_no_other_fonts")
def test_a_missing_character_would_be_noticed() -> None:
    with pytest.raises(UserWarning, match=r"[Gg]lyph"):
        draw("龘")


def test_the_font_has_a_name_of_its_own_its_licence_beside_it_and_is_small() -> None:
    font = FT2Font(str(FONT_FILE))
    assert font.family_name == FAMILY == font_subset.FAMILY
    assert font_subset.FILE == FONT_FILE
    licence = (FONT_FILE.parent / "OFL.txt").read_text(encoding="utf-8")
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert "Adobe" in licence
    assert FONT_FILE.stat().st_size < 250_000


# -- settings ----------------------------------------------------------------------------------------------------


def test_settings_of_the_learner_neither_change_nor_reach_the_chart() -> None:
    plain = draw("缓存")
    with matplotlib.rc_context({"figure.facecolor": "black", "text.color": "white", "font.size": 30}):
        before = dict(matplotlib.rcParams)
        assert draw("缓存") == plain
        assert dict(matplotlib.rcParams) == before
    corner = Image.open(io.BytesIO(plain)).convert("RGB").getpixel((0, 0))
    assert corner == (255, 255, 255)


def test_the_picture_has_twice_the_pixels() -> None:
    assert Image.open(io.BytesIO(draw("x"))).size == (2 * CHART_WIDTH, 240)


def test_a_first_start_says_nothing(tmp_path: Path) -> None:
    code = (
        "from lessons_lib.show.fonts import chart, png_of\n"
        "with chart(100) as figure:\n    figure.text(0, 0.5, '数据块 tile')\n    png_of(figure)\n"
        "import sys; assert 'matplotlib.pyplot' not in sys.modules"
    )
    environment = {**os.environ, "MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_library_loads_without_matplotlib() -> None:
    code = "import sys, lessons_lib.show.fonts, lessons_lib.show.chart; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("platform", "command"), [("emscripten", "%pip install"), ("linux", "-m pip install")])
def test_missing_matplotlib_says_what_to_do(monkeypatch: pytest.MonkeyPatch, platform: str, command: str) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    monkeypatch.setattr(fonts.sys, "platform", platform)
    with pytest.raises(ImportError) as missing, chart(100):
        pass
    zh, en = str(missing.value).split("\n")
    assert command in zh
    assert command in en


# -- in a notebook -----------------------------------------------------------------------------------------------


def test_a_chart_is_displayed_as_a_picture_and_the_rest_as_html(monkeypatch: pytest.MonkeyPatch) -> None:
    display = pytest.importorskip("IPython.display")
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(display, "display", lambda bundle, **options: shown.append(bundle))
    ShownChart("<p>html</p>", "plain", b"png", "label")._ipython_display_()
    assert shown == [
        {"image/png": "cG5n", "text/plain": "label"},
        {"text/html": "<p>html</p>", "text/plain": "plain"},
    ]
    assert repr(ShownChart("", "plain", b"", "")) == "plain"
