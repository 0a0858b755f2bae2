"""What Inductor does, mapped back to the graph; and the mapping itself on kernels written by hand."""

from __future__ import annotations

import concurrent.futures
import importlib
import itertools
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


def test_the_note_speaks_of_shared_functions_only_where_there_are_some() -> None:
    notes = {name: recorded_block(name).compiler.note for name in ("swiglu_mlp", "decode_rmsnorm")}
    assert "share a function" in notes["decode_rmsnorm"].en and "share a function" not in notes["swiglu_mlp"].en


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


def test_a_region_is_one_call_and_its_branches_are_no_kernels_of_the_graph(torch: Any) -> None:
    def branches(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: torch.sin(x) + 1, lambda x: x * 2, (x,))

    captured, groups = asked(branches, (64, 64))
    assert groups.grouping.groups[-1] == ("cond",) and groups.calls[-1] == "cond"
    assert {name for group in groups.grouping.groups for name in group} == set(captured.core.launching)


def test_without_an_element_there_are_no_kernels_and_torch_is_not_blamed(torch: Any) -> None:
    compiler = importlib.import_module("lessons_lib.graph.capture.compiler")
    with pytest.raises(compiler.CompilerUnreadableError, match=r"没有元素.*\n.*no result has an element") as refused:
        asked(lambda x: torch.relu(x) + 1, (0, 8))
    assert torch.__version__ not in str(refused.value)
    _, groups = asked(lambda x: torch.relu(x).sum(), (0, 8))  # a sum of nothing is written all the same
    assert groups.launches == 1


def test_a_value_that_is_read_twice_is_evaluated_once(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left alone, Inductor evaluates the first of these steps 2**16 times, and each time in several passes."""
    interpreter, steps = torch.fx.Interpreter, 0
    original = interpreter.run_node

    def counted(self: Any, node: Any) -> Any:
        nonlocal steps
        steps += 1
        return original(self, node)

    monkeypatch.setattr(interpreter, "run_node", counted)

    def recurrence(x: Any) -> Any:
        for _ in range(16):
            x = torch.sin(x) * x
        return x

    captured, groups = asked(recurrence, (64, 64))
    assert set(groups.grouping.groups[0]) == set(captured.core.launching)
    assert groups.launches == 1
    assert steps < 2**12


def hooks(torch: Any) -> list[Any]:
    inductor = {name: importlib.import_module(f"torch._inductor.{name}") for name in ("graph", "ir", "scheduler")}
    owners = (inductor["graph"].GraphLowering, inductor["ir"].Pointwise, inductor["scheduler"].Scheduler)
    settings = importlib.import_module("torch._inductor.config").get_config_copy()
    return [*(vars(owner).copy() for owner in (*owners, torch.fx.Interpreter)), settings]


@pytest.mark.parametrize("in_thread", [False, True], ids=["main thread", "another thread"])
@pytest.mark.parametrize("looks", [1, 8, 20, 60])
def test_a_compiler_that_takes_too_long_is_stopped_and_can_be_asked_again(
    torch: Any, monkeypatch: pytest.MonkeyPatch, looks: int, in_thread: bool
) -> None:
    """Wherever it is by then: the clock jumps at the nth look at it."""
    compiler = importlib.import_module("lessons_lib.graph.capture.compiler")
    inductor = importlib.import_module("lessons_lib.graph.capture.inductor")
    capture = importlib.import_module("lessons_lib.graph.capture.capture")

    def block(x: Any) -> Any:
        return torch.softmax(torch.sin(x) * x, -1)

    captured, expected = capture.capture(block, capture.fake((64, 64))), asked(block, (64, 64))[1]
    before, seen = hooks(torch), itertools.count()

    def ask() -> None:
        with pytest.raises(compiler.CompilerTooSlowError, match=r"停了下来.*\n.*was stopped: after 5 s"):
            compiler.inductor_grouping(captured, limit_seconds=5)

    with monkeypatch.context() as patch:
        patch.setattr(inductor, "monotonic", lambda: 0.0 if next(seen) < looks else 6.0)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(ask).result() if in_thread else ask()
    assert hooks(torch) == before
    assert type(torch._inductor.virtualized.V.graph).__name__ == "NullHandler"  # nothing is being lowered
    assert compiler.inductor_grouping(captured) == expected


def test_another_thread_may_trace_at_its_leisure(torch: Any) -> None:
    """The limit of one thread's question is none of another's."""
    inductor = importlib.import_module("lessons_lib.graph.capture.inductor")
    traced = torch.fx.symbolic_trace(lambda x: x + 1)
    run = torch.fx.Interpreter(traced).run
    with inductor._hooked(torch.fx.Interpreter, "run_node", lambda method: inductor._limited(method, 0.0)):
        with pytest.raises(inductor.TimeUp):
            run(torch.zeros(2))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            assert pool.submit(run, torch.zeros(2)).result().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("limit", [0, -1, True, "5", float("nan")])
def test_a_limit_that_is_none_is_refused(torch: Any, limit: Any) -> None:
    compiler = importlib.import_module("lessons_lib.graph.capture.compiler")
    with pytest.raises(ValueError, match=r"limit_seconds.*\n?.*limit_seconds"):
        compiler.inductor_grouping(lambda x: x + 1, torch.zeros(2), limit_seconds=limit)


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
