"""The Q3 panels: conditions with three answers, and the two ledgers as the learner moves them."""

from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

from lessons_lib import CompilePanel, DecisionPanel, LayoutPanel, use_language
from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB
from lessons_lib.decision.drawing import draw_decision
from lessons_lib.decision.ledger import WHEN, compile_ledger, layout_ledger
from lessons_lib.decision.model import CONDITION_NAMES, CONDITIONS, STATUS_NAMES, STATUSES, Decision, Evidence, decide
from lessons_lib.show.panel import Panel
from lessons_lib.show.picture import CARD_WIDTH, MUTED, ON_CHIP, WRITE, text_width

SVG = "{http://www.w3.org/2000/svg}"
SEEN = Text(zh="误差 0.03%", en="an error of 0.03%")
BY_HAND = "set by you, no evidence"
every_status = st.tuples(*(st.sampled_from(STATUSES) for _ in CONDITIONS))


def seen(condition: Any, status: Any, source: str = "NumPy") -> Evidence:
    return Evidence(condition, status, SEEN, source)


def statuses(panel: DecisionPanel) -> list[str]:
    return [getattr(panel, condition) for condition in CONDITIONS]


def root_of(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def words(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


# -- four conditions ----------------------------------------------------------------------------------------------


def test_without_evidence_nothing_is_checked_and_nothing_is_concluded() -> None:
    panel = DecisionPanel()
    assert statuses(panel) == ["not_checked"] * 4
    assert panel.result == decide([])
    assert (panel.result.outcome, panel.result.stated) == ("open", None)
    assert panel.result.unchecked == CONDITIONS


def test_evidence_sets_the_conditions_it_speaks_of_and_stands_in_the_table() -> None:
    panel = DecisionPanel([seen("onchip_fit", "fail", "a formula"), seen("semantics_match", "pass")])
    assert statuses(panel) == ["pass", "not_checked", "fail", "not_checked"]
    assert panel.result.outcome == "refused"
    rows = panel.table(panel.result).rows
    assert rows[0] == ["same meaning", "pass", "an error of 0.03%", "NumPy"]
    assert rows[1] == ["shape supported", "not checked", "", ""]
    assert rows[2] == ["fits on chip", "fail", "an error of 0.03%", "a formula"]


def test_evidence_is_dropped_when_moved_by_hand_and_comes_back_with_its_status() -> None:
    panel = DecisionPanel([seen("semantics_match", "pass")])
    panel.semantics_match = "fail"
    assert panel.table(panel.result).rows[0] == ["same meaning", "fail", BY_HAND, "–"]
    assert panel.result.evidence[0].source == "–"
    panel.semantics_match = "not_checked"
    assert panel.table(panel.result).rows[0] == ["same meaning", "not checked", "", ""]
    assert panel.result.evidence == ()
    panel.semantics_match = "pass"
    assert panel.table(panel.result).rows[0][2:] == ["an error of 0.03%", "NumPy"]


def test_all_the_evidence_on_a_condition_is_shown_and_the_worst_counts() -> None:
    panel = DecisionPanel([seen("onchip_fit", "pass", "a formula"), seen("onchip_fit", "fail", "a compiler")])
    assert panel.onchip_fit == "fail"
    sources = [row[3] for row in panel.table(panel.result).rows if row[0] == "fits on chip"]
    assert sources == ["a formula", "a compiler"]


@settings(max_examples=81)
@given(every_status)
def test_only_what_is_checked_reaches_the_decision(given_statuses: tuple[str, ...]) -> None:
    panel = DecisionPanel()
    panel.set(**dict(zip(CONDITIONS, given_statuses, strict=True)))
    result: Decision = panel.result
    assert tuple(result.statuses.values()) == given_statuses
    assert [item.condition for item in result.evidence] == [
        condition for condition, status in zip(CONDITIONS, given_statuses, strict=True) if status != "not_checked"
    ]
    if "fail" in given_statuses:
        assert result.outcome == "refused"
    else:
        assert result.outcome == ("open" if "not_checked" in given_statuses else "met")
    checked = "not_checked" not in given_statuses
    assert (result.stated is not None) == checked
    if result.stated is not None:
        assert result.stated["failures"] == [
            condition for condition, status in zip(CONDITIONS, given_statuses, strict=True) if status == "fail"
        ]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("value", [True, False, None, "yes", "unknown", ""], ids=repr)
def test_a_condition_is_one_of_three_words(condition: str, value: object) -> None:
    panel = DecisionPanel([seen("semantics_match", "pass")])
    shown = panel.static_forms()
    with pytest.raises(ValueError, match=rf"(?s)^参数 {condition} .*\n{condition} must be one of: 'pass', 'fail', "):
        setattr(panel, condition, value)
    assert panel.static_forms() == shown


def test_one_bad_condition_among_several_puts_all_back() -> None:
    panel = DecisionPanel([seen("semantics_match", "pass")])
    with pytest.raises(ValueError, match="backend_lowered"):
        panel.set(semantics_match="fail", onchip_fit="pass", backend_lowered="maybe")
    assert statuses(panel) == ["pass", "not_checked", "not_checked", "not_checked"]
    assert panel.result.evidence == (seen("semantics_match", "pass"),)


@pytest.mark.parametrize("evidence", [["semantics_match"], [None], 3, None], ids=repr)
def test_what_is_no_evidence_is_refused(evidence: Any) -> None:
    with pytest.raises(ValueError, match="evidence"):
        DecisionPanel(evidence)


def test_evidence_may_come_one_by_one() -> None:
    panel = DecisionPanel(seen(condition, "pass") for condition in CONDITIONS)
    assert panel.result.outcome == "met"


def test_the_layout_conversion_is_no_condition() -> None:
    assert "a cost and not a condition" in DecisionPanel().table(decide([])).note
    assert set(DecisionPanel().controls) == set(CONDITIONS)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_gate_shows_its_status_by_word_mark_colour_and_outline(language: str) -> None:
    use_language(language)
    marks = {"pass": ("✓", ON_CHIP), "fail": ("✗", WRITE), "not_checked": ("?", MUTED)}
    for chosen in itertools.product(STATUSES, repeat=4):
        evidence = [
            seen(condition, status)
            for condition, status in zip(CONDITIONS, chosen, strict=True)
            if status != "not_checked"
        ]
        root = root_of(draw_decision(decide(evidence)))
        gates = [box for box in root.iter(f"{SVG}rect") if box.get("stroke-width") == "2.5"]
        assert [gate.get("stroke") for gate in gates] == [marks[status][1] for status in chosen]
        assert [gate.get("stroke-dasharray") is not None for gate in gates] == [
            status == "not_checked" for status in chosen
        ]
        said = words(root)
        assert [word for word in said if word in "✓✗?"] == [marks[status][0] for status in chosen]
        names = {str(name) for name in STATUS_NAMES.values()}
        assert [word for word in said if word in names] == [str(STATUS_NAMES[status]) for status in chosen]
        inside(root)
        for gate, condition in zip(gates, CONDITIONS, strict=True):
            (name,) = [text for text in root.iter(f"{SVG}text") if text.text == str(CONDITION_NAMES[condition])]
            middle = float(gate.get("x", 0)) + float(gate.get("width", 0)) / 2
            assert float(name.get("x", 0)) == pytest.approx(middle)
            assert text_width(name.text or "", 13) <= float(gate.get("width", 0)) - 12


def test_the_picture_of_each_outcome_says_what_to_do_next() -> None:
    said = {
        outcome: words(root_of(draw_decision(decide([seen(condition, status) for condition in CONDITIONS]))))
        for outcome, status in (("met", "pass"), ("refused", "fail"), ("open", "not_checked"))
    }
    assert len({(lines[0], lines[-1]) for lines in said.values()}) == 3
    assert all(lines[-1].startswith("→ ") for lines in said.values())
    assert "measure" in said["met"][-1].lower(), "conditions that hold are no proof of speed"


def inside(root: ElementTree.Element) -> None:
    height = float(root.get("height", 0))
    for box in root.iter(f"{SVG}rect"):
        assert float(box.get("x", 0)) >= 0
        assert float(box.get("x", 0)) + float(box.get("width", 0)) <= CARD_WIDTH
    for element in root.iter(f"{SVG}text"):
        size, x, y = (float(element.get(name, 0)) for name in ("font-size", "x", "y"))
        assert size >= 12
        wide = text_width(element.text or "", size)
        if len(element.text or "") > 60:
            wide *= 0.9  # wide letters and narrow ones: a whole sentence averages out
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[element.get("text-anchor", "start")]
        assert left >= 8, element.text
        assert left + wide <= CARD_WIDTH - 8, element.text
        assert size <= y <= height - 4


# -- the ledgers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("panel", "moves"),
    [
        (
            LayoutPanel,
            {"reordered_tensor_bytes": 64 * MIB, "saved_bytes_per_call": 16 * MIB, "calls": 4, "when": "each_call"},
        ),
        (CompilePanel, {"compile_seconds": 10, "saved_us": 20, "calls": 1024}),
        (
            DecisionPanel,
            dict(zip(CONDITIONS, ("pass", "fail", "pass", "fail"), strict=True)),
        ),
    ],
)
def test_result_picture_and_table_follow_every_control(panel: type[Panel], moves: dict[str, object]) -> None:
    shown = panel()
    assert list(moves) == list(shown.controls)
    for name, value in moves.items():
        before = shown.static_forms()
        setattr(shown, name, value)
        after = shown.static_forms()
        assert after["image/svg+xml"] != before["image/svg+xml"], name
        assert shown._picture_view.value == after["image/svg+xml"]
        assert after["text/plain"] != before["text/plain"], name


@pytest.mark.parametrize(
    ("panel", "name", "value"),
    [
        (LayoutPanel, "reordered_tensor_bytes", 3 * MIB),
        (LayoutPanel, "reordered_tensor_bytes", 0),
        (LayoutPanel, "saved_bytes_per_call", float(MIB)),
        (LayoutPanel, "calls", 3),
        (LayoutPanel, "calls", True),
        (LayoutPanel, "when", "never"),
        (CompilePanel, "compile_seconds", -1),
        (CompilePanel, "compile_seconds", 61),
        (CompilePanel, "saved_us", 0.5),
        (CompilePanel, "calls", 2**21),
    ],
)
def test_a_bad_value_names_itself_and_changes_nothing(panel: type[Panel], name: str, value: object) -> None:
    shown = panel()
    before = shown.static_forms()
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        setattr(shown, name, value)
    assert shown.static_forms() == before


def test_checkpoint_14_in_the_panel() -> None:
    panel = LayoutPanel()
    panel.set(reordered_tensor_bytes=32 * MIB, saved_bytes_per_call=8 * MIB, calls=8, when="once")
    assert panel.result["net_bytes"] == 0
    assert (panel.result["break_even_calls"], panel.result["gains_from_call"]) == (8, 9)
    assert panel.table(panel.result).rows[0] == ["once, at loading", "64 MiB", "64 MiB", "0 B", "even at call 8"]
    panel.set(reordered_tensor_bytes=8 * MIB, when="each_call")
    assert panel.result["break_even_calls"] is None
    assert panel.table(panel.result).rows[1] == ["at each call", "128 MiB", "64 MiB", "−64 MiB", "never even"]
    assert words(root_of(panel.static_forms()["image/svg+xml"])).count("never even") == 1


def test_the_table_marks_the_way_that_is_drawn() -> None:
    panel = LayoutPanel()
    assert panel.table(panel.result).marked == 0
    panel.when = "each_call"
    assert panel.table(panel.result).marked == 1


exponents = st.integers(0, 8)


@settings(max_examples=40)
@given(exponents, exponents, st.integers(0, 10), st.sampled_from(WHEN))
def test_the_layout_panel_is_its_ledger_and_draws_beyond_break_even(
    tensor: int, saved: int, calls: int, when: Any
) -> None:
    panel = LAYOUT
    panel.set(reordered_tensor_bytes=2**tensor * MIB, saved_bytes_per_call=2**saved * MIB, calls=2**calls, when=when)
    expected = layout_ledger(2**tensor * MIB, 2**saved * MIB, when, 2**calls)
    assert panel.result == expected
    root = root_of(panel.static_forms()["image/svg+xml"])
    inside(root)
    ahead = [path for path in root.iter(f"{SVG}path") if path.get("stroke") == ON_CHIP]
    assert (len(ahead) == 1) == (expected["gains_from_call"] is not None)
    (dot,) = root.iter(f"{SVG}circle")
    assert dot.get("fill") == (ON_CHIP if expected["net_bytes"] >= 0 else WRITE)


@settings(max_examples=40)
@given(st.integers(0, 60), st.integers(0, 500), st.integers(0, 20))
def test_the_compile_panel_is_its_ledger_in_microseconds(cost: int, saved: int, calls: int) -> None:
    panel = COMPILE
    panel.set(compile_seconds=cost, saved_us=saved, calls=2**calls)
    result = panel.result
    # Whole microseconds: what a call saves is no rounded fraction of a second.
    assert result["net_seconds"] == pytest.approx((saved * 2**calls - cost * 10**6) / 10**6, abs=1e-12)
    assert result["break_even_calls"] == (max(1, -(-cost * 10**6 // saved)) if saved else (1 if cost == 0 else None))
    root = root_of(panel.static_forms()["image/svg+xml"])
    inside(root)
    row = panel.table(result).rows[0]
    assert row[0] == f"{2**calls:,}"
    assert ("never" in row[4]) == (result["break_even_calls"] is None)


LAYOUT, COMPILE = LayoutPanel(), CompilePanel()


def test_compile_ledger_of_lesson_01() -> None:
    panel = CompilePanel()
    assert panel.result == compile_ledger(4, 86e-6, 65536)
    assert panel.result["break_even_calls"] == 46512
    assert "even at call 46,512" in words(root_of(panel.static_forms()["image/svg+xml"]))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_ledgers_stay_inside_their_cards_at_every_corner(language: str) -> None:
    use_language(language)
    layout, compiling = LayoutPanel(), CompilePanel()
    for tensor, saved, calls, when in itertools.product((MIB, 256 * MIB), (MIB, 256 * MIB), (1, 1024), WHEN):
        layout.set(reordered_tensor_bytes=tensor, saved_bytes_per_call=saved, calls=calls, when=when)
        inside(root_of(layout.static_forms()["image/svg+xml"]))
    for cost, us, calls in itertools.product((0, 60), (0, 1, 500), (1, 2**20)):
        compiling.set(compile_seconds=cost, saved_us=us, calls=calls)
        inside(root_of(compiling.static_forms()["image/svg+xml"]))
