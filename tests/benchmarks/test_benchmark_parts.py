"""The pure parts of the benchmarks: percentiles, tables, the written results. Nothing here asserts a time."""

import ast
import json
from dataclasses import replace

import nbformat
import pytest

pytest.importorskip("psutil")
pytest.importorskip("playwright.sync_api")

from benchmarks import __main__ as main, graphs, panel, summary
from benchmarks.panel_notebook import write_notebook
from benchmarks.results import (
    Aim,
    OtherMachineError,
    Section,
    dated,
    document,
    markdown_table,
    require_same_machine,
    sections_in,
)
from benchmarks.summary import Summary, megabytes, milliseconds, percentile, times
from lessons_lib.graph.canvas import GraphCanvas
from lessons_lib.graph.grouping import check, cost, unfused
from lessons_lib.graph.recorded import recorded_block


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


MACHINE = {"processor": "a chip", "load when the run began": "0.1", "Python": "3.14"}


def written(*titles, machine=MACHINE):
    measured = {title: dated(replace(section(True), title=title), machine, "2001-02-03") for title in titles}
    return document(machine, measured, ["speed", "size"])


def test_the_document_says_how_to_reproduce_it():
    text = written("Speed", "Size")
    assert text.startswith("# Benchmarks") and text.count("Measured so.") == 2 and text.endswith("\n")
    assert "make bench" in text and "| processor | a chip |" in text and "`size`" in text
    assert text.count("Measured on 2001-02-03; load when it began: 0.1.") == 2


def test_a_document_gives_its_sections_back_as_they_were():
    text = written("Speed", "Size: of all")
    found = sections_in(text)
    assert list(found) == ["Speed", "Size: of all"]
    assert document(MACHINE, found, ["speed", "size"]) == text
    assert sections_in("") == {}


@pytest.mark.parametrize("other", [{"processor": "another chip"}, {"Python": "3.15"}])
def test_what_another_machine_measured_is_not_mixed_in(other):
    with pytest.raises(OtherMachineError, match=next(iter(other))):
        require_same_machine(written("Speed"), {**MACHINE, **other})


def test_load_and_rows_that_only_one_has_are_no_other_machine():
    require_same_machine(written("Speed"), {**MACHINE, "load when the run began": "9.0", "torch": "2.13"})
    require_same_machine("", MACHINE)


@pytest.fixture
def made_up_subjects(tmp_path, monkeypatch):
    """Two subjects that measure nothing, and results of their own."""
    results = tmp_path / "RESULTS.md"
    monkeypatch.setattr(main, "RESULTS", results)
    monkeypatch.setattr(main, "SUBJECTS", {"speed": "", "size": ""})
    monkeypatch.setattr(main.machine, "machine", lambda: MACHINE)
    monkeypatch.setattr(main, "measure_subject", lambda name: lambda: replace(section(False), title=name))
    return results


@pytest.mark.parametrize(
    ("arguments", "sections"),
    [([], ["speed", "size"]), (["size"], ["size", "other"]), (["size", "--write"], ["size", "other"])],
)
def test_named_subjects_replace_their_own_section_and_only_when_asked(
    made_up_subjects, monkeypatch, arguments, sections
):
    before = written("size", "other")
    made_up_subjects.write_text(before, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["benchmarks", *arguments])
    assert main.main() == 0
    after = made_up_subjects.read_text(encoding="utf-8")
    assert list(sections_in(after)) == sections
    assert (after == before) is (arguments == ["size"])
    if "--write" in arguments:
        assert sections_in(after)["other"] == sections_in(before)["other"]


def test_every_subject_has_a_measurement():
    assert all(callable(main.measure_subject(name)) for name in main.SUBJECTS)


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


# -- graphs ---------------------------------------------------------------------------------------------------


def test_a_stack_of_layers_is_one_graph_whose_state_goes_from_copy_to_copy():
    cell = recorded_block("lstm_cell").core
    hidden, state = cell.outputs
    stack = graphs.stacked(cell, {hidden: "h", state: "c"}, 3 * len(cell.ops))
    assert len(stack.ops) == 3 * len(cell.ops)
    assert stack.inputs == cell.inputs and stack.outputs == (f"{hidden}.2", f"{state}.2")
    once, thrice = (sum(op.operations for op in graph.ops) for graph in (cell, stack))
    assert thrice == 3 * once
    apart = unfused(stack)
    assert check(stack, apart, graphs.GPU) == ()
    assert cost(stack, apart, graphs.GPU).total_bytes == 3 * cost(cell, unfused(cell), graphs.GPU).total_bytes


def made_up_times(model, growth):
    return {
        ("the captured model", 3000, "greedy"): [model],
        ("layers", 1000, "greedy"): [0.1, 0.2],
        ("layers", 3000, "greedy"): [0.3, 0.6],
        ("layers", 10_000, "greedy"): [0.1 * growth, 0.2 * growth],
    }


def test_the_aims_of_grouping_are_a_second_and_near_linear_growth():
    assert [aim.met for aim in graphs.grouping_section(made_up_times(0.5, 12)).aims] == [True, True]
    assert [aim.met for aim in graphs.grouping_section(made_up_times(1.5, 30)).aims] == [False, False]
    assert graphs.grouping_section(made_up_times(0.5, 12)).aims[1].measured == "12.0×"


def test_the_table_of_the_zoo_counts_a_block_whose_best_is_worse_than_the_compilers():
    block = recorded_block("swiglu_gate")
    table = graphs.zoo_section([block])
    assert [aim.met for aim in table.aims] == [True, True]
    assert table.rows[0][0] == "swiglu_gate" and "96.0 / 1 ✓" in table.rows[0]
    apart = replace(block, best=replace(block.best, grouping=unfused(block.core), proven=False))
    assert [aim.measured for aim in graphs.zoo_section([apart]).aims] == ["swiglu_gate", "0 of 1"]


def test_a_patterns_attention_is_compared_with_the_best_by_hand():
    row = graphs.zoo_section([recorded_block("attention_4d")])
    assert row.aims[0].met and any(cell.endswith("(a)") for cell in row.rows[0])


def test_a_click_is_a_press_and_a_new_picture_and_only_the_smallest_canvas_has_the_aim():
    canvas = GraphCanvas(recorded_block("swiglu_gate"))
    before = canvas.grouping
    taken = graphs._click(canvas, 0)
    assert canvas.grouping != before and min(taken.values()) > 0
    assert taken["click"] >= taken["of it: state"]
    slow, quick = {"click": [150.0], "of it: state": [1.0]}, {"click": [50.0], "of it: state": [1.0]}
    assert [aim.met for aim in graphs.canvas_section({"small": quick, "large": slow}).aims] == [True]
    assert [aim.met for aim in graphs.canvas_section({"small": slow, "large": slow}).aims] == [False]
