"""The panel class: parameters by name, refusals that change nothing, one redraw a move, three forms at once."""

from __future__ import annotations

import re
import sys
import types

import pytest
from hypothesis import given, settings, strategies as st

from lessons_lib import TrafficPanel
from lessons_lib.show.live import WIDGET_VIEW
from lessons_lib.show.panel import Panel


def state(panel: Panel) -> dict[str, object]:
    return {name: control.value for name, control in panel.controls.items()}


def note(panel: Panel) -> str:
    return re.sub("<[^>]*>", "", panel._note_view.value)


def test_a_parameter_reads_and_moves_its_control() -> None:
    panel = TrafficPanel()
    panel.num_ops = 6
    assert panel.controls["num_ops"].value == panel.num_ops == 6
    panel.controls["num_ops"].value = 7
    assert panel.num_ops == 7


def test_result_picture_and_table_follow_every_control() -> None:
    panel = TrafficPanel()
    moves = {"num_ops": 6, "tensor_bytes": 2**20, "fused_groups": 2, "compulsory": True, "side_input": True}
    for name, value in moves.items():
        before = panel.static_forms()
        setattr(panel, name, value)
        after = panel.static_forms()
        assert after["image/svg+xml"] != before["image/svg+xml"], name
        assert panel._picture_view.value == after["image/svg+xml"]
        assert after["text/plain"] != before["text/plain"], name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_ops", 0),
        ("num_ops", 13),
        ("num_ops", 4.0),
        ("num_ops", True),
        ("num_ops", "4"),
        ("num_ops", None),
        ("fused_groups", 5),
        ("tensor_bytes", 3),
        ("tensor_bytes", float(2**26)),
        ("compulsory", 1),
        ("side_input", "yes"),
    ],
)
def test_a_bad_value_names_itself_and_changes_nothing(name: str, value: object) -> None:
    panel = TrafficPanel()
    before, drawn = state(panel), panel.static_forms()
    with pytest.raises(ValueError, match=name):
        setattr(panel, name, value)
    assert state(panel) == before
    assert panel.static_forms() == drawn


def test_one_bad_value_among_several_puts_all_back() -> None:
    panel = TrafficPanel()
    panel.set(num_ops=8, fused_groups=6)
    before, drawn = state(panel), panel.static_forms()
    for values, culprit in (
        ({"num_ops": 2, "tensor_bytes": 5}, "tensor_bytes"),
        ({"num_ops": 12, "fused_groups": 99}, "fused_groups"),
        ({"num_ops": 3, "wings": 2}, "wings"),
    ):
        with pytest.raises(ValueError, match=culprit):
            panel.set(**values)
        assert state(panel) == before
        assert panel.controls["fused_groups"].max == 8
        assert panel.static_forms() == drawn


def test_a_bound_moves_the_other_control_and_says_so() -> None:
    panel = TrafficPanel()
    panel.set(num_ops=8, fused_groups=8)
    assert note(panel) == ""
    panel.controls["num_ops"].value = 3
    assert panel.fused_groups == panel.controls["fused_groups"].max == 3
    assert "moved to 3" in note(panel)
    panel.num_ops = 5
    assert panel.fused_groups == 3
    assert note(panel) == ""


def test_each_move_redraws_once(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = TrafficPanel()
    panel.set(num_ops=8, fused_groups=8)
    drawn: list[object] = []
    picture = panel.picture
    monkeypatch.setattr(panel, "picture", lambda result: drawn.append(result) or picture(result))
    panel.controls["num_ops"].value = 3  # moves the groups too
    assert len(drawn) == 1
    panel.set(num_ops=6, fused_groups=2, compulsory=True)
    assert len(drawn) == 2


def test_displayed_it_gives_the_widget_a_picture_and_text() -> None:
    bundle = TrafficPanel()._repr_mimebundle_()
    assert set(bundle) == {WIDGET_VIEW, "image/svg+xml", "text/plain"}
    assert bundle[WIDGET_VIEW]["version_major"] == 2
    assert bundle["image/svg+xml"].startswith("<svg")


def test_on_colab_the_picture_is_left_to_the_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert set(TrafficPanel()._repr_mimebundle_()) == {WIDGET_VIEW, "text/plain"}


def test_ipywidgets_7_does_not_bypass_the_bundle() -> None:
    assert TrafficPanel()._ipython_display_ is None


@settings(max_examples=60, deadline=None)
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(["num_ops", "fused_groups", "tensor_bytes", "compulsory"]), st.integers(-3, 2**31)),
        max_size=6,
    )
)
def test_no_sequence_of_moves_leaves_more_groups_than_operators(moves: list[tuple[str, int]]) -> None:
    panel = TrafficPanel()
    for name, value in moves:
        try:
            setattr(panel, name, value if name != "compulsory" else bool(value % 2))
        except ValueError:
            continue
    assert 1 <= panel.fused_groups <= panel.num_ops <= 12
    assert panel.result["launches"] == panel.fused_groups


def test_a_misspelt_parameter_is_refused() -> None:
    panel = TrafficPanel()
    with pytest.raises(ValueError, match="num_op"):
        panel.num_op = 6


def test_whatever_fails_on_the_way_everything_is_put_back() -> None:
    class Bad(int):
        def __int__(self) -> int:
            raise ZeroDivisionError

    panel = TrafficPanel()
    before, drawn = state(panel), panel.static_forms()
    with pytest.raises(ZeroDivisionError):
        panel.set(num_ops=3, tensor_bytes=Bad(3))
    assert (state(panel), panel.static_forms()) == (before, drawn)


def test_what_had_to_move_is_said_whatever_else_is_set() -> None:
    panel = TrafficPanel()
    panel.set(num_ops=2, compulsory=True)
    assert "moved to 2" in note(panel)
