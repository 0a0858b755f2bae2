"""The tile-size sweep: right results, a prediction by hand, words that follow the numbers; no clock is asserted."""

from __future__ import annotations

import gc
import string
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

from lessons_lib import use_language  # noqa: E402
from lessons_lib.base.caches import Cache, CpuCaches  # noqa: E402
from lessons_lib.base.progress import progress_of  # noqa: E402
from lessons_lib.base.spread import Spread  # noqa: E402
from lessons_lib.base.text import Text  # noqa: E402
from lessons_lib.base.units import KIB, MIB  # noqa: E402
from lessons_lib.reuse import lab, sweep as sweep_module, sweep_plot  # noqa: E402
from lessons_lib.reuse.exercises import tile_vote  # noqa: E402
from lessons_lib.reuse.lab import sweep_tiles  # noqa: E402
from lessons_lib.reuse.sweep import (  # noqa: E402
    Cliff,
    SweepCalibration,
    TilePoint,
    TileSweep,
    cache_level,
    calibration_block,
    compare_cliffs,
    find_cliff,
    memory_level,
    predict_cliff,
    predict_tile,
    tile_sizes,
    unknown_cache_level,
)
from lessons_lib.reuse.sweep_report import sweep_report, sweep_verdict  # noqa: E402
from lessons_lib.show import fonts  # noqa: E402
from lessons_lib.show.chart import ShownChart  # noqa: E402
from lessons_lib.traffic.lab import chain_input, run_tiled  # noqa: E402

L1, L2, L3 = Cache(1, 32 * KIB, False), Cache(2, 512 * KIB, False), Cache(3, 32 * MIB, True)
CACHES = CpuCaches(L1, L2, L3)
# Copy 8, passes 1, 1, 2, 5; 0.001 a tile: in no unit in particular.
CALIBRATION = SweepCalibration(
    8.0, 0.001, (cache_level(L1, 1.0), cache_level(L2, 1.0), cache_level(L3, 2.0), memory_level(5.0))
)
TENSOR = 64 * MIB


def steady(median: float, width: float = 0.0) -> Spread:
    return Spread(median, median * (1 - width / 2), median * (1 + width / 2), median * (1 - width / 2), 9)


def made(
    speedups: dict[int, float] | None = None,
    calibration: SweepCalibration = CALIBRATION,
    caches: CpuCaches = CACHES,
    width: float = 0.0,
) -> TileSweep:
    """A sweep as it could have been measured: what was predicted, without overlap, unless ``speedups`` say else."""
    expected = {tile: 36 / predict_tile(calibration, TENSOR, tile).high for tile in (speedups or tile_sizes(TENSOR))}
    points = tuple(
        TilePoint(tile, steady(36 / ratio, width), steady(ratio, width))
        for tile, ratio in (speedups or expected).items()
    )
    return TileSweep(TENSOR, TENSOR, caches, calibration, steady(36.0), points, True, 0.0)


@pytest.fixture(scope="module")
def measured() -> TileSweep:
    return sweep_tiles(256 * KIB, repeats=3, progress=False)


# -- the measurement -------------------------------------------------------------------------------------------


def test_sweep_is_whole(measured: TileSweep) -> None:
    assert [point.tile_bytes for point in measured.points] == [size * KIB for size in (4, 8, 16, 32, 64, 128, 256)]
    assert measured.rounds == 3
    assert measured.calibration.copy > 0
    assert measured.calibration.tile_calls > 0
    assert measured.calibration.levels[-1].is_memory
    for point in measured.points:
        assert 0 < point.seconds.smallest <= point.seconds.low <= point.seconds.median <= point.seconds.high
        assert point.speedup.low <= point.speedup.median <= point.speedup.high
        assert measured.predicted(point).low > 0
    assert measured.best in measured.points
    assert measured.calls(measured.points[0]) == 4 * 64
    assert measured.calls(measured.points[-1]) == 4
    assert list(measured.verdict()) == [
        "bit_identical_for_every_tile",
        "smallest_tile_is_not_the_fastest",
        "no_tile_reaches_the_ratio_of_bytes",
    ]
    assert measured.bit_identical


def test_tiles_may_be_chosen_and_need_not_divide_the_tensor() -> None:
    result = sweep_tiles(64 * KIB, tiles=[1 << 30, 12_000, 4], repeats=3, progress=False)
    assert [point.tile_bytes for point in result.points] == [4, 12_000, 64 * KIB]
    assert result.bit_identical


def test_smallest_tensor() -> None:
    assert sweep_tiles(4, tiles=[4, 8], repeats=3, progress=False).points[0].tile_bytes == 4


def test_a_tile_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(x: object, y: object, tile: int, workspace: object = None) -> None:
        run_tiled(x, y, tile, workspace)  # type: ignore[arg-type]
        if tile == 8 * KIB:
            y[-1] = 0  # type: ignore[index]

    monkeypatch.setattr(lab, "run_tiled", forgetful)
    assert not sweep_tiles(64 * KIB, repeats=3, progress=False).bit_identical


def test_a_workspace_changes_no_bit() -> None:
    x = chain_input(40_000)
    plain, given, workspace = np.empty_like(x), np.empty_like(x), np.ones_like(x)
    run_tiled(x, plain, 12_000)
    run_tiled(x, given, 12_000, workspace)
    assert np.array_equal(plain.view(np.uint32), given.view(np.uint32))
    with pytest.raises(ValueError, match="workspace"):
        run_tiled(x, given, 12_000, workspace[:-1])
    with pytest.raises(ValueError, match="workspace"):
        run_tiled(x, given, 12_000, workspace.astype(np.float64))


def test_memory_short_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "free_memory_bytes", lambda: 0)
    result = sweep_tiles(16 * MIB, [MIB, 16 * MIB], repeats=3, progress=False, budget_seconds=1e-9)
    assert (result.tensor_bytes, result.points[-1].tile_bytes) == (8 * MIB, 8 * MIB)
    assert "8 MiB" in result.notes[0].en


def test_unknown_caches_are_measured_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "cpu_caches", CpuCaches)
    result = sweep_tiles(256 * KIB, repeats=3, progress=False)
    assert [str(level.name) for level in result.calibration.levels] == ["the cache", "memory"]
    assert result.cliff_words.name in ("unknown", "unknown-and-none")


def test_progress_goes_to_standard_output_only(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    sweep_tiles(16 * KIB, repeats=3)
    shown = capfd.readouterr()
    assert shown.err == ""
    assert "/3" in shown.out


def test_arrays_are_freed() -> None:
    sweep_tiles(16 * KIB, repeats=3, progress=False)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = sweep_tiles(2 * MIB, [64 * KIB, 2 * MIB], repeats=3, progress=False)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.bit_identical
    assert 10 * MIB <= peak - before < 12 * MIB
    assert after - before < MIB // 2


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("tensor_bytes", 6),
        ("tiles", [4 * KIB]),
        ("tiles", 4096),
        ("tiles", [4, 6]),
        ("tiles", [4] * 33),
        ("repeats", 2),
        ("progress", 1),
        ("budget_seconds", 0),
    ],
)
def test_bad_argument_is_named_in_both_languages(argument: str, value: object) -> None:
    with pytest.raises(ValueError, match=argument) as refused:
        sweep_tiles(**{"tensor_bytes": 4 * KIB, argument: value})  # type: ignore[arg-type]
    zh, en = str(refused.value).split("\n")
    assert argument in zh
    assert argument in en


# -- the prediction --------------------------------------------------------------------------------------------


def test_tile_sizes() -> None:
    assert tile_sizes(TENSOR) == tuple(4 * KIB << step for step in range(15))
    assert tile_sizes(10 * KIB) == (4 * KIB, 8 * KIB, 10 * KIB)
    assert tile_sizes(4) == (4,)


def test_calibration_blocks_lie_between_the_caches() -> None:
    assert [calibration_block(CACHES.known, index) for index in range(3)] == [16 * KIB, 128 * KIB, 4 * MIB]


@pytest.mark.parametrize(
    ("tile", "low", "high"),
    [
        (4 * KIB, 8 + 2 + 16.384, 8 + 4 + 16.384),  # 16,384 tiles; surely in L1
        (16 * KIB, 8 + 2 + 4.096, 8 + 4 + 4.096),  # L1 or L2, equally fast
        (128 * KIB, 8 + 2 + 0.512, 8 + 4 + 0.512),  # surely in L2
        (256 * KIB, 8 + 2 + 0.256, 8 + 8 + 0.256),  # L2 possibly, L3 surely
        (512 * KIB, 8 + 4 + 0.128, 8 + 8 + 0.128),
        (16 * MIB, 8 + 4 + 0.004, 8 + 20 + 0.004),  # L3 possibly
        (32 * MIB, 10 + 10 + 0.002, 8 + 20 + 0.002),  # memory: two passes take longer than the copy
    ],
)
def test_prediction_by_hand(tile: int, low: float, high: float) -> None:
    interval = predict_tile(CALIBRATION, TENSOR, tile)
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_predicted_cliff_is_where_the_largest_fall_is() -> None:
    cliff = predict_cliff(CALIBRATION, TENSOR, tile_sizes(TENSOR))
    assert cliff is not None
    assert (cliff.before, cliff.after, cliff.level) == (8 * MIB, 32 * MIB, CALIBRATION.levels[2])
    flat = replace(CALIBRATION, levels=(cache_level(L3, 1.0), memory_level(1.1)))
    assert predict_cliff(flat, TENSOR, tile_sizes(TENSOR)) is None
    assert predict_cliff(CALIBRATION, 8 * MIB, [4 * KIB, 8 * MIB]) is None  # the sweep never leaves L3
    unknown = replace(CALIBRATION, levels=(unknown_cache_level(TENSOR, 1.0), memory_level(5.0)))
    assert predict_cliff(unknown, TENSOR, tile_sizes(TENSOR)) is None


def test_a_slow_second_level_is_no_cliff_where_calls_rule() -> None:
    levels = (cache_level(L1, 0.1), cache_level(L2, 1.5), memory_level(1.6))
    assert predict_cliff(replace(CALIBRATION, levels=levels), TENSOR, tile_sizes(TENSOR)) is None


def test_measured_cliff_is_the_steepest_step_right_of_the_top() -> None:
    curve = [(1, 0.5), (2, 2.0), (4, 1.9), (8, 1.2), (16, 1.1)]
    cliff = find_cliff(curve)
    assert cliff is not None
    assert (cliff.before, cliff.after, cliff.fall) == (4, 8, 1.9 / 1.2)
    assert find_cliff([(1, 0.5), (2, 2.0), (4, 1.9)]) is None
    assert find_cliff([(1, 2.0)]) is None


@pytest.mark.parametrize(
    ("measured", "name"),
    [((8, 16), "agree"), ((4, 8), "earlier"), ((16, 32), "agree"), ((32, 64), "later"), (None, "not-found")],
)
def test_cliffs_are_compared(measured: tuple[int, int] | None, name: str) -> None:
    predicted = Cliff(8 * MIB, 32 * MIB, 1.5, CALIBRATION.levels[2])
    found = Cliff(measured[0] * MIB, measured[1] * MIB, 1.3) if measured else None
    words = compare_cliffs(predicted, found, known=True)
    assert words.name == name
    assert "{" not in words.text.both


def test_cliffs_without_a_prediction() -> None:
    found = Cliff(8 * MIB, 16 * MIB, 1.3)
    assert compare_cliffs(None, None, known=True).name == "none"
    assert compare_cliffs(None, found, known=True).name == "unexpected"
    assert compare_cliffs(None, None, known=False).name == "unknown-and-none"
    unknown = compare_cliffs(None, found, known=False)
    assert unknown.name == "unknown"
    assert "16 MiB to 32 MiB" in unknown.text.en  # source and target: twice the tile


# -- words -----------------------------------------------------------------------------------------------------


def names(sweep: TileSweep) -> list[str]:
    for reason in sweep.reasons:
        assert isinstance(reason.text, Text)
        assert "{" not in reason.text.both
    return [reason.name for reason in sweep.reasons]


def test_the_usual_curve() -> None:
    sweep = made()
    assert names(sweep) == ["calls", "cache-memory", "memory-in-place"]
    assert sweep.agreeing == len(sweep.points)
    assert sweep.cliff_words.name == "agree"
    assert sweep.notes == ()
    assert sweep.verdict() == dict.fromkeys(sweep.verdict(), True)


def test_reasons_follow_the_numbers() -> None:
    tiles = (4 * KIB, 256 * KIB, 64 * MIB)

    def curve(left: float, middle: float, right: float, calibration: SweepCalibration = CALIBRATION) -> list[str]:
        return names(made(dict(zip(tiles, (left, middle, right), strict=True)), calibration))

    assert curve(0.5, 2.0, 0.7) == ["calls", "cache-memory", "memory"]
    assert curve(2.1, 2.0, 0.7)[0] == "smallest-is-fastest"
    assert curve(0.5, 2.0, 1.95)[2] == "flat"
    assert curve(0.5, 2.0, 2.4)[1:] == ["no-cache", "flat"]
    cheap_calls = replace(CALIBRATION, tile_calls=1e-6)
    assert curve(1.5, 2.0, 0.7, cheap_calls)[0] == "some-calls"
    slow_operators = replace(CALIBRATION, levels=(cache_level(L3, 3.0), memory_level(5.0)))
    assert curve(0.5, 2.0, 0.7, slow_operators)[1] == "cache-arithmetic"
    huge = replace(CALIBRATION, levels=(cache_level(L2, 1.0), cache_level(Cache(3, 256 * MIB), 2.0), memory_level(5)))
    assert curve(0.5, 2.0, 1.5, huge)[2] == "still-in-cache"


def test_notes_follow_the_measurement() -> None:
    assert "differ" in made(width=0.8).notes[0].en
    assert "40%" in replace(made(), waited_share=0.4).notes[0].zh
    assert "128 MiB" in replace(made(), requested_bytes=128 * MIB).notes[0].zh


def test_verdict_notices() -> None:
    odd = made({4 * KIB: 5.0, 64 * MIB: 1.0})
    assert odd.verdict() == {
        "bit_identical_for_every_tile": True,
        "smallest_tile_is_not_the_fastest": False,
        "no_tile_reaches_the_ratio_of_bytes": False,
    }
    assert repr(sweep_verdict(odd)).splitlines() == [
        "✓ every tile size gives the same bits",
        "✗ the smallest tile is not the fastest",
        "✗ no tile reaches the 4× that bytes promise",
    ]


def test_guess_is_answered() -> None:
    sweep = made({4 * KIB: 0.5, 256 * KIB: 2.0, 512 * KIB: 1.95, 64 * MIB: 1.0})
    assert "the fastest indeed" in sweep.guess_words(256 * KIB).en
    assert "about as fast" in sweep.guess_words(500_000).en
    assert "256 KiB, 2×" in sweep.guess_words(4).en
    with pytest.raises(ValueError, match="guess"):
        sweep_report(sweep, guess=0)


def test_both_languages_fill_the_same_fields() -> None:
    groups = ("_LEFT_WORDS", "_MIDDLE_WORDS", "_RIGHT_WORDS", "_CLIFF_WORDS", "_GUESS_WORDS")
    texts = [text for group in groups for text in getattr(sweep_module, group).values()]
    for text in (*texts, *sweep_plot.LABELS):
        zh, en = ({field for _, field, _, _ in string.Formatter().parse(t) if field} for t in (text.zh, text.en))
        assert zh == en, text


# -- the report ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["zh", "en"])
def test_report_shows_chart_table_and_words(language: str, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    use_language(language)
    sweep = made()
    shown = sweep_report(sweep, guess=MIB)
    assert isinstance(shown, ShownChart)
    assert shown.png.startswith(b"\x89PNG")
    assert len(shown.png) < 150_000
    assert "65,536" in shown.plain
    assert f"▸ {sweep.best.tile_bytes // KIB} KiB" in shown.plain
    assert str(sweep.cliff_words.text) in shown.plain
    assert str(sweep.guess_words(MIB)) in shown.plain
    assert capfd.readouterr() == ("", "")


def test_the_fastest_tile_is_noted_beside_the_vote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "own.json"))
    monkeypatch.setenv("LESSONS_WORKSHOP", "1")
    sweep, vote = made(), tile_vote()
    assert "Vote above" in repr(sweep_report(sweep, guess=vote.value))
    vote.choose(4)
    vote.commit()
    assert str(sweep.guess_words(2 * MIB)) in repr(sweep_report(sweep, guess=vote.value))
    noted = progress_of("votes")["tile_vote"]
    assert (noted["value"], noted["measured"]) == (2 * MIB, sweep.best.tile_bytes)


def test_every_word_on_the_chart_is_at_least_11_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.text import Text as DrawnText

    sizes: dict[str, float] = {}

    def look(figure: object) -> bytes:
        figure.canvas.draw()  # type: ignore[attr-defined]
        for text in figure.findobj(DrawnText):  # type: ignore[attr-defined]
            if text.get_text() and text.get_visible():
                sizes[text.get_text()] = text.get_fontsize() / 72 * 100
        return b""

    monkeypatch.setattr(sweep_plot, "png_of", look)
    small = CpuCaches(L1, L2, Cache(3, 256 * MIB, True))  # larger than the axis: named at its end
    sweep_plot.sweep_png(made(caches=small), guess=MIB)
    assert {"L1d 32 KiB", "L2 512 KiB", "L3 256 MiB →", "your guess", "4 KiB", "64 MiB"} <= set(sizes)
    assert min(sizes.values()) >= 11


def test_chart_of_a_machine_with_unknown_caches() -> None:
    pytest.importorskip("matplotlib")
    calibration = replace(CALIBRATION, levels=(unknown_cache_level(TENSOR, 1.0), memory_level(5.0)))
    assert sweep_plot.sweep_png(made(None, calibration, CpuCaches()))


def test_without_matplotlib_the_report_says_how_to_get_the_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    shown = sweep_report(made())
    assert not isinstance(shown, ShownChart)
    assert "65,536" in shown.plain
    assert "pip install matplotlib" in shown.plain
    assert fonts.FAMILY not in shown.html
