"""A learner's function as a study: captured where PyTorch is, a record where it is not, and honest about which."""

from __future__ import annotations

import importlib.util

import pytest

from lessons_lib import use_language
from lessons_lib.graph import study
from lessons_lib.graph.grouping import cost, unfused
from lessons_lib.graph.recorded import recorded_block
from lessons_lib.graph.study import recorded_study, study_model


def gated_residual(gate, up, residual):  # type: ignore[no-untyped-def]
    import torch.nn.functional as functional

    return functional.silu(gate) * up + residual


SHAPES = ((4096, 2048),) * 3


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_a_capture_and_its_record_say_the_same() -> None:
    pytest.importorskip("torch")
    captured = study_model(gated_residual, *SHAPES, dtype="float32", recorded="gated_residual")
    recorded = recorded_study("gated_residual")
    assert captured.core.launching == recorded.core.launching
    gpu = recorded_block("gated_residual").gpu
    for graph in ("graph", "core"):
        here, there = getattr(captured, graph), getattr(recorded, graph)
        assert cost(here, unfused(here), gpu).total_bytes == cost(there, unfused(there), gpu).total_bytes
    assert repr(captured) in repr(recorded)  # the record adds that it is one
    assert "gate, up, residual" in captured.code


@pytest.mark.parametrize("language", ["zh", "en"])
def test_each_operator_stands_beside_its_own_parts(language: str) -> None:
    use_language(language)
    plain = repr(recorded_study("gated_residual")).splitlines()
    assert [line.split()[0] for line in plain[2:5]] == ["silu", "mul", "add"]
    assert "sigmoid + mul" in plain[2] and "+" not in plain[3] and "+" not in plain[4]


def test_without_pytorch_the_record_opens_and_says_so(no_torch: None) -> None:
    opened = study_model(gated_residual, *SHAPES, dtype="float32", recorded="gated_residual")
    assert opened.function is None and len(opened.notes) == 1
    assert str(opened.notes[0]) in repr(opened)


def test_without_pytorch_another_function_is_not_passed_off_as_the_record(no_torch: None) -> None:
    def mine(x):  # type: ignore[no-untyped-def]
        return x

    opened = study_model(mine, (4, 4), recorded="layernorm_gelu")
    assert len(opened.notes) == 2 and "layernorm_gelu" in opened.notes[1].en


def test_arguments_are_refused_in_both_languages() -> None:
    with pytest.raises(ValueError, match=r"function.*\n.*function"):
        study_model(3, (4, 4))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="recorded"):
        study_model(gated_residual, *SHAPES, recorded="no such block")


def test_a_compiler_that_cannot_be_read_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")

    def unreadable(captured: object, **settings: object) -> None:
        raise study.CompilerUnreadableError("读不出\ncannot be read")

    monkeypatch.setattr(study, "inductor_grouping", unreadable)
    found = study_model(gated_residual, (8, 8), (8, 8), (8, 8))
    assert found.compiler is None
    assert (found.notes[-1].zh, found.notes[-1].en) == ("读不出", "cannot be read")


def test_a_compiler_that_is_not_done_in_time_leaves_the_rest_and_a_note() -> None:
    pytest.importorskip("torch")
    found = study_model(gated_residual, (8, 8), (8, 8), (8, 8), limit_seconds=1e-9)
    assert found.compiler is None and found.core.launching
    assert "停了下来" in found.notes[-1].zh and "was stopped" in found.notes[-1].en
    assert str(found.notes[-1]) in repr(found)
    assert study_model(gated_residual, (8, 8), (8, 8), (8, 8)).compiler is not None


def test_tensors_constants_and_shapes_may_be_mixed() -> None:
    torch = pytest.importorskip("torch")

    def scaled(x, factor, weight):  # type: ignore[no-untyped-def]
        return x * factor * weight

    found = study_model(scaled, (8, 16), 3.0, torch.ones(16), dtype="float32")
    assert [tensor.shape for tensor in found.core.tensors if tensor.name in found.core.inputs] == [(8, 16), (16,)]


def test_a_shape_may_come_from_numpy() -> None:
    pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    found = study_model(lambda x: x + 1, (numpy.int64(8), 16))
    assert found.core.tensor("x").shape == (8, 16)
