"""What Inductor does, mapped back to the graph; and the mapping itself on kernels written by hand."""

from __future__ import annotations

import importlib
import json
import shutil
from typing import Any

import pytest
from graph_builders import Builder, softmax  # type: ignore[import-not-found]

from lessons_lib.base.gpus import GPUS
from lessons_lib.graph.capture.compiler_mapping import CompilerKernel, Mapped, Origin, groups_from, mapped
from lessons_lib.graph.compiler_groups import CompilerGroups
from lessons_lib.graph.grouping import Grouping, check, cost, marks
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.planning.planner import best_grouping
from lessons_lib.graph.recompute import as_compiled
from lessons_lib.graph.recorded import recorded_block, recorded_names

GPU = GPUS["A100 (40 GB)"]


# -- the mapping, without torch -------------------------------------------------------------------------------


def loops(*origins: tuple[str, str]) -> CompilerKernel:
    """A kernel of ``(parent, operator)`` pairs; the node's name is that of the operator with its parent."""
    return CompilerKernel(tuple(Origin(f"{parent}/{operator}", operator, parent) for parent, operator in origins))


def library(call: str, *origins: tuple[str, str]) -> CompilerKernel:
    return CompilerKernel(loops(*origins).origins, call)


def place(graph: OpGraph, kernels: list[CompilerKernel], parents: dict[str, str] | None = None) -> Mapped:
    every = {name: name for name in graph.launching}
    return mapped(graph, {**every, **(parents or {})}, every, kernels)


def groups(graph: OpGraph, found: Mapped) -> list[set[str]]:
    numbers = sorted(set(found.kernel_of.values()))
    return [{name for name in graph.launching if found.kernel_of[name] == number} for number in numbers]


def chain(*kinds: str) -> OpGraph:
    build = Builder()
    last = build.input("x", 8, 8)
    build.input("w", 8, 8)
    for index, kind in enumerate(kinds):
        last = build.op(f"{kind}{index}", kind, [last, "w"] if kind == "gemm" else [last], (8, 8))
    return build.graph(last)


def test_operators_go_where_their_nodes_are() -> None:
    graph = chain("gemm", "elementwise", "elementwise")
    found = place(graph, [library("mm", ("gemm0", "mm")), loops(("elementwise1", "a"), ("elementwise2", "b"))])
    assert groups(graph, found) == [{"gemm0"}, {"elementwise1", "elementwise2"}]
    assert not found.repeated and not found.guessed


def test_parts_of_one_call_are_told_apart_by_operator_and_order() -> None:
    graph = softmax(4, 8)
    parents = dict.fromkeys(graph.launching, "softmax")
    kernels = [loops(("softmax", "max"), ("softmax", "sub"), ("softmax", "exp")), loops(("softmax", "div"))]
    found = place(graph, kernels, parents)
    assert {"max", "sub", "exp"} <= groups(graph, found)[0]
    assert found.guessed == ("sum",)  # the compiler has no node of that name: it goes to what reads it
    assert found.kernel_of["sum"] == found.kernel_of["div"]


def test_an_operator_computed_twice_is_where_its_readers_can_get_it() -> None:
    build = Builder()
    build.input("x", 8)
    build.op("shared", "elementwise", ["x"])
    build.op("one", "elementwise", ["shared"])
    build.op("two", "elementwise", ["shared"])
    graph = build.graph("one", "two")
    both = [loops(("shared", "s"), ("one", "a")), loops(("shared", "s"), ("two", "b"))]
    found = place(graph, both)
    assert found.repeated == ("shared",)
    assert found.kernel_of["shared"] == 0  # the second could not serve the first


def test_a_gemm_is_where_the_library_is_called_not_where_its_operand_is_prepared() -> None:
    graph = chain("gemm", "elementwise")
    found = place(graph, [loops(("gemm0", "layout")), library("mm", ("gemm0", "mm")), loops(("elementwise1", "a"))])
    assert found.kernel_of == {"gemm0": 1, "elementwise1": 2}
    assert not found.repeated


def test_a_stretch_that_a_pattern_replaced_is_the_kernel_without_parents() -> None:
    graph = chain("elementwise", "gemm", "elementwise", "gemm", "elementwise")
    flash = library("flash", ("", "flash"))
    kernels = [loops(("elementwise0", "a")), flash, loops(("elementwise4", "b"))]
    found = place(graph, kernels)
    assert groups(graph, found) == [{"elementwise0"}, {"gemm1", "elementwise2", "gemm3"}, {"elementwise4"}]
    assert found.guessed == ("gemm1", "elementwise2", "gemm3")


def test_a_gemm_that_a_pattern_gave_a_sum_is_in_the_call_of_that_sum() -> None:
    graph = chain("gemm", "elementwise")
    found = place(graph, [library("addmm", ("elementwise1", "addmm"))])
    assert groups(graph, found) == [{"gemm0", "elementwise1"}]


def test_what_the_compiler_dropped_never_makes_kernels_wait_for_each_other() -> None:
    build = Builder()
    build.input("x", 8)
    build.op("a", "elementwise", ["x"])
    build.op("dropped", "elementwise", ["a"])
    build.op("b", "opaque", ["dropped"])
    build.op("c", "elementwise", ["b", "dropped"])
    graph = build.graph("c")
    found = place(graph, [loops(("a", "a"), ("c", "c")), library("b", ("b", "b"))])
    about = {"launches": 2, "device": "cpu", "torch": "0"}
    result = groups_from(graph, found, [loops(("a", "a"), ("c", "c")), library("b", ("b", "b"))], [0, 1], **about)
    assert {name for group in result.grouping.groups for name in group} == set(graph.launching)


def test_functions_hold_the_groups_of_their_kernels_and_extra_kernels_are_counted() -> None:
    graph = chain("elementwise", "gemm", "elementwise")
    kernels = [
        loops(("elementwise0", "a")),
        loops(("gemm1", "layout")),
        library("mm", ("gemm1", "mm")),
        loops(("elementwise2", "b")),
    ]
    result = groups_from(graph, place(graph, kernels), kernels, [0, 0, 1, 2], launches=3, device="cpu", torch="0")
    assert result.functions == (0, 1, 2)
    assert result.calls == ("", "mm", "")
    assert result.extra == 1


# -- as data --------------------------------------------------------------------------------------------------


def small_groups() -> CompilerGroups:
    return CompilerGroups(
        Grouping((("a",), ("b", "c"))), (0, 0), 1, ("", "mm"), "cpu", "2.13.0", ("b",), ("c",), 1, 64
    )


def test_groups_come_back_from_json() -> None:
    assert CompilerGroups.from_json(small_groups().to_json()) == small_groups()


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"format":"compiler-groups/1"}', 7])
def test_other_json_is_refused_in_both_languages(text: Any) -> None:
    with pytest.raises(ValueError, match=r"不"):
        CompilerGroups.from_json(text)


@pytest.mark.parametrize(
    "entry, value",
    [
        ("functions", [0]),
        ("functions", [0, -1]),
        ("groups", [["a"], ["a"]]),
        ("groups", "ab"),
        ("launches", "many"),
        ("calls", ["", 3]),
        ("device", ""),
        ("more", 1),
    ],
)
def test_entries_that_are_not_valid_are_refused(entry: str, value: Any) -> None:
    data = json.loads(small_groups().to_json())
    data[entry] = value
    with pytest.raises(ValueError):
        CompilerGroups.from_json(json.dumps(data))


def test_the_note_says_whose_scheduler_it_was() -> None:
    note = small_groups().note
    assert "CPU" in note.en and "2.13.0" in note.en and "CPU" in note.zh


# -- what was recorded ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", recorded_names())
def test_a_compilers_groups_obey_the_rules(name: str) -> None:
    """But the one that a row must fit on chip: generated loops go over it again."""
    block = recorded_block(name)
    assert [p for p in check(block.core, block.compiler.grouping, GPU) if not p.multi_pass] == []


COUNTED_APART = {
    "attention_4d",  # a pattern's flash kernel: Inductor counts K and V once, not once a block
    "conv_bn_relu",  # two changes of layout, which are no operators of the graph
    "long_softmax",  # rows that do not fit on a GPU's chip are counted once a pass here, and once by Inductor
}


@pytest.mark.parametrize("name", sorted({*recorded_names()} - COUNTED_APART))
def test_the_compiler_itself_counts_the_same_bytes(name: str) -> None:
    """What it computes twice rather than store counts as computed twice."""
    block = recorded_block(name)
    assert cost(*as_compiled(block.core, block.compiler), GPU).total_bytes == block.compiler.buffer_bytes


@pytest.mark.parametrize("name", recorded_names())
def test_the_best_plan_moves_no_more_than_the_compiler(name: str) -> None:
    block = recorded_block(name)
    by_pattern = bool(marks(block.core, block.compiler.grouping, GPU))
    passes = any(problem.multi_pass for problem in check(block.core, block.compiler.grouping, GPU))
    best = best_grouping(block.core, GPU, by_hand=by_pattern, multi_pass=passes).cost
    assert best.total_bytes <= cost(block.core, block.compiler.grouping, GPU).total_bytes
    if not passes:
        assert best.total_bytes == (block.by_hand if by_pattern else block.best).total_bytes


# -- Inductor itself ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def asked(function: Any, *shapes: tuple[int, ...], dtype: str = "float32") -> tuple[Any, CompilerGroups]:
    capture = importlib.import_module("lessons_lib.graph.capture.capture")
    compiler = importlib.import_module("lessons_lib.graph.capture.compiler")
    captured = capture.capture(function, *(capture.fake(shape, dtype) for shape in shapes))
    return captured, compiler.inductor_grouping(captured)


def test_softmax_is_one_kernel_and_one_function(torch: Any) -> None:
    captured, groups = asked(lambda x: torch.softmax(x, -1), (64, 128))
    assert len(groups.grouping) == groups.launches == 1
    assert set(groups.grouping.groups[0]) == set(captured.core.launching)
    assert groups.device == "cpu" and groups.torch == torch.__version__


def test_neighbouring_loops_share_a_function_but_not_a_group(torch: Any) -> None:
    _, groups = asked(lambda x: torch.softmax(torch.softmax(x, -1), 0), (64, 128))
    assert groups.launches == 1
    assert len(groups.grouping) > 1
    assert set(groups.functions) == {0}


def test_attention_becomes_one_library_call_in_four_dimensions_only(torch: Any) -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(q @ k.transpose(-2, -1) / 8, -1) @ v

    _, in_4d = asked(attention, *[(2, 4, 128, 64)] * 3)
    assert in_4d.launches == 1 and "attention" in in_4d.calls[0]
    captured, in_2d = asked(attention, *[(128, 64)] * 3)
    assert in_2d.launches == 3
    assert sum("mm" in call for call in in_2d.calls) == 2
    assert check(captured.core, in_2d.grouping, GPU) == ()


def test_sizes_that_no_memory_could_hold(torch: Any) -> None:
    _, groups = asked(lambda x, w: torch.relu(x @ w), (1 << 20, 1 << 16), (1 << 16, 1 << 16), dtype="float16")
    assert groups.launches == 2


def test_the_same_question_is_answered_from_memory(torch: Any) -> None:
    compiler = importlib.import_module("lessons_lib.graph.capture.compiler")
    captured, groups = asked(lambda x: torch.exp(x) + 1, (64, 64))
    assert compiler.inductor_grouping(captured) is groups


def test_a_plain_function_is_captured_on_the_way(torch: Any) -> None:
    compiler = importlib.import_module("lessons_lib.graph.capture.compiler")
    groups = compiler.inductor_grouping(lambda x: torch.exp(x) + 1, torch.zeros(4, 4))
    assert groups.launches == 1


def test_a_gpu_that_is_not_there_is_refused(torch: Any) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    compiler = importlib.import_module("lessons_lib.graph.capture.compiler")
    with pytest.raises(ValueError, match="no CUDA GPU here"):
        compiler.inductor_grouping(lambda x: x + 1, torch.zeros(2), device="cuda")
    with pytest.raises(ValueError, match="device"):
        compiler.inductor_grouping(lambda x: x + 1, torch.zeros(2), device="tpu")


def test_a_graph_from_data_has_no_program_to_compile(torch: Any) -> None:
    compiler = importlib.import_module("lessons_lib.graph.capture.compiler")
    captured_type = importlib.import_module("lessons_lib.graph.capture.capture").Captured
    block = recorded_block("softmax")
    with pytest.raises(ValueError, match="comes from data"):
        compiler.inductor_grouping(captured_type(block.graph, block.core))


def test_a_torch_that_changed_inside_is_told_in_both_languages(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = importlib.import_module("lessons_lib.graph.capture.compiler")
    monkeypatch.delattr(importlib.import_module("torch._inductor.graph").GraphLowering, "codegen")
    with pytest.raises(compiler.CompilerUnreadableError) as refused:
        compiler.inductor_grouping(lambda x: torch.exp(x) + 1, torch.zeros(4, 4))
    assert "读不出" in str(refused.value) and torch.__version__ in str(refused.value)


def test_the_hook_leaves_the_compiler_as_it_was(torch: Any) -> None:
    lowering = importlib.import_module("torch._inductor.graph").GraphLowering
    before = lowering.codegen
    asked(lambda x: torch.exp(x) + 2, (64, 64))
    assert lowering.codegen is before


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_the_count_is_that_of_the_code_that_torch_compile_runs(torch: Any) -> None:
    def block(x: Any, w: Any) -> Any:
        return torch.softmax(torch.relu(x @ w), -1).sum(0)

    _, groups = asked(block, (64, 64), (64, 64))
    run = importlib.import_module("torch._inductor.utils").run_and_get_code
    with torch.no_grad():
        _, (code, *_) = run(torch.compile(block), torch.randn(64, 64), torch.randn(64, 64))
    body = code[code.index("def call(") :]
    calls = [line for line in body.splitlines() if line.strip().startswith(("cpp_fused_", "extern_kernels."))]
    assert groups.launches == len(calls)
