"""The pure parts of the benchmarks: percentiles, tables, the written results. Nothing here asserts a time."""

import ast
import json

import nbformat
import pytest

pytest.importorskip("psutil")
pytest.importorskip("playwright.sync_api")

from benchmarks import panel, summary
from benchmarks.panel_notebook import write_notebook
from benchmarks.results import Aim, Section, document, markdown_table
from benchmarks.summary import Summary, megabytes, milliseconds, percentile, times


def test_percentiles_lie_between_the_two_nearest_samples():
    samples = list(range(101))
    assert [percentile(samples, percent) for percent in (1, 5, 50, 95, 99)] == [1, 5, 50, 95, 99]
    assert percentile([3.0, 1.0], 50) == 2.0
    assert percentile([1.0, 2.0, 3.0], 95) == pytest.approx(2.9)
    assert percentile([7.0], 95) == 7.0


@pytest.mark.parametrize(("samples", "percent"), [([], 50), ([1.0], 0), ([1.0], 100)])
def test_a_percentile_needs_samples_and_a_percentage(samples, percent):
    with pytest.raises(ValueError, match="samples"):
        percentile(samples, percent)


def test_a_summary_is_in_order_and_fills_a_row():
    found = Summary.of([5.0, 1.0, 9.0, 3.0])
    assert found.low <= found.median == 4.0 <= found.high
    assert len(found.cells(milliseconds)) == len(summary.SUMMARY_HEADER)
    assert found.cells(milliseconds)[-1] == "4"


def test_figures_are_written_with_their_units():
    assert milliseconds(16.66) == "16.7 ms" and milliseconds(0.123) == "0.12 ms" and milliseconds(-0.5) == "-0.50 ms"
    assert megabytes(119_950_000) == "119.9 MB" or megabytes(119_950_000) == "120.0 MB"
    assert times(7.294) == "7.29×" and times(12.34) == "12.3×"


def test_a_table_is_aligned_escaped_and_rectangular():
    lines = markdown_table(["", "median"], [["a|b", "1"]]).splitlines()
    assert lines == ["|  | median |", "| --- | ---: |", "| a\\|b | 1 |"]
    with pytest.raises(ValueError, match="2 cells"):
        markdown_table(["", "median"], [["only one"]])


def section(met):
    return Section("Speed", "Measured so.", ["", "median"], [["this", "1 ms"]], [Aim("fast", "1 ms", met)], "a law.")


def test_a_section_says_aim_outcome_and_limits():
    assert "| fast | 1 ms | yes |" in section(True).markdown()
    assert "| fast | 1 ms | **no** |" in section(False).markdown()
    assert section(True).markdown().startswith("## Speed\n\nMeasured so.\n\n| ")
    assert section(True).markdown().endswith("not: a law.")


def test_the_document_says_how_to_reproduce_it():
    text = document({"processor": "a chip"}, "2001-02-03", [section(True), section(False)])
    assert text.startswith("# Benchmarks") and text.count("## Speed") == 2 and text.endswith("\n")
    assert "make bench" in text and "2001-02-03" in text and "| processor | a chip |" in text


def test_a_round_of_presses_ends_where_it_began_and_never_moves_a_second_control():
    values = {0: 4, 1: 6, 2: 4}
    for slider, key in panel.ROUND:
        values[slider] += 1 if key == "ArrowRight" else -1
        assert 1 <= values[2] <= values[0] <= 12 and 0 <= values[1] <= 10
    assert values == {0: 4, 1: 6, 2: 4}
    assert len(panel.ROUND) * panel.ROUNDS >= 60


def test_the_notebook_is_valid_and_holds_the_cells_that_are_asked_for(tmp_path):
    write_notebook(tmp_path / "panels.ipynb", tmp_path, kernel_rounds=2)
    notebook = nbformat.read(tmp_path / "panels.ipynb", as_version=4)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert {panel.OURS.cell, panel.INTERACT.cell, panel.FLOOR.cell, "kernel-time", "parts"} <= set(ids)
    for cell in notebook.cells:
        ast.parse(cell.source)


def section_of_made_up_samples(interact):
    presses = {"ours": [10.0, 12.0], "interact": [interact] * 2, "floor": [8.0, 9.0]}
    measured = {cell: [[{"changed": ms, "painted": ms + 16}] for ms in each] for cell, each in presses.items()}
    kernel = {"ours": [3.0], "interact": [100.0]}
    return panel.section(measured, kernel, json.loads('{"model": [0.1], "picture": [2.0]}'))


def test_the_panels_aims_follow_the_medians():
    assert [aim.met for aim in section_of_made_up_samples(110.0).aims] == [True, True]
    assert [aim.met for aim in section_of_made_up_samples(30.0).aims] == [False, True]
    assert section_of_made_up_samples(110.0).aims[0].measured == "10.1×"
