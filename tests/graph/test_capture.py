"""Capturing PyTorch functions: right graphs, complete graphs, and refusals that say what to change."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from lessons_lib.base.gpus import GPUS
from lessons_lib.base.optional import MissingPackageError
from lessons_lib.graph.capture import fx_nodes
from lessons_lib.graph.capture.aten import FUNCTION, AtenCall, Operand, traits_of
from lessons_lib.graph.capture.capture import FakeSpec, capture, evaluate, fake
from lessons_lib.graph.capture.refusals import Line
from lessons_lib.graph.grouping import cost, eager, unfused

torch = pytest.importorskip("torch")
functional = importlib.import_module("torch.nn.functional")
nn = importlib.import_module("torch.nn")

GPU = GPUS["A100 (40 GB)"]
SQUARE = fake((4, 4))


def kinds(graph: Any) -> dict[str, str]:
    return {op.name: op.kind for op in graph.ops if op.kind != "view"}


def labels(graph: Any) -> list[str]:
    return [graph.op(name).label for name in graph.launching]


# -- the two views --------------------------------------------------------------------------------------------


def test_eager_operators_and_their_parts() -> None:
    captured = capture(lambda gate, up: functional.silu(gate) * up, SQUARE, SQUARE, name="gate")
    assert labels(captured.graph) == ["silu", "mul"]
    assert labels(captured.core) == ["sigmoid", "mul", "mul"]
    assert [captured.core.op(name).eager for name in captured.core.launching] == ["silu", "silu", "mul"]
    assert captured.graph.name == captured.core.name == captured.name == "gate"


def test_a_composite_is_as_many_eager_operators_as_it_launches() -> None:
    captured = capture(functional.cross_entropy, fake((6, 9)), fake((6,), "int64"))
    assert labels(captured.graph) == ["log_softmax", "nll_loss_forward"]
    assert captured.graph.op("cross_entropy_loss.log_softmax").kind == "opaque"


def test_rms_norm_is_one_eager_operator_of_several_parts() -> None:
    captured = capture(lambda x, w: functional.rms_norm(x, (4,), w), SQUARE, fake((4,)))
    assert labels(captured.graph) == ["rms_norm"]
    assert "reduction" in kinds(captured.core).values()
    assert len(captured.core.launching) >= 5


def test_attention_in_one_call_is_opaque_and_its_operations_are_counted() -> None:
    captured = capture(
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v), *[fake((1, 2, 8, 4), "float16")] * 3
    )
    (name,) = captured.core.launching
    op = captured.core.op(name)
    scores = 2 * 8 * 8
    assert op.kind == "opaque"
    assert op.operations == scores * (2 * 4 + 2 * 4 + 4 + 2 * FUNCTION)


def test_views_launch_nothing_and_a_reshape_that_copies_launches() -> None:
    def viewed(x: Any) -> Any:
        return x.transpose(0, 1).unsqueeze(0)[..., 1:].squeeze(0) + 1

    assert labels(capture(viewed, SQUARE).core) == ["add"]
    copied = capture(lambda x: x.transpose(0, 1).reshape(16) + 1, SQUARE)
    assert labels(copied.core) == ["clone", "add"]
    assert copied.core.op("clone").kind == "injective"


def test_inputs_are_named_as_the_function_names_them_and_weights_as_the_module_does() -> None:
    def named(batch: dict[str, Any], states: list[Any], *, scale: Any) -> Any:
        return batch["x"] * scale + states[1]

    captured = capture(named, {"x": SQUARE}, [SQUARE, SQUARE], kwargs={"scale": fake((4,))})
    assert captured.core.inputs == ("batch['x']", "states[1]", "scale")
    module = capture(nn.Linear(4, 3), SQUARE)
    assert set(module.core.inputs) == {"weight", "bias", "input"}
    (gemm,) = module.core.launching
    operands = [module.core.root_of(name) for name in module.core.op(gemm).inputs]
    assert operands == ["input", "weight", "bias"]  # left, right, then the side input


def test_keyword_inputs_may_come_in_any_order() -> None:
    def weighted(x: Any, *, a: Any, b: Any) -> Any:
        return x @ a - b

    given = {"b": torch.randn(4, 3), "a": torch.randn(4, 3)}
    captured = capture(weighted, SQUARE, kwargs=given)
    x = torch.randn(4, 4)
    assert torch.equal(evaluate(captured, x, **given), weighted(x, **given))


def test_a_tensor_from_outside_the_function_is_an_input_of_the_graph() -> None:
    weight = torch.randn(4, 4)
    captured = capture(lambda x: x @ weight, SQUARE)
    assert len(captured.core.inputs) == 2
    x = torch.randn(4, 4)
    assert torch.allclose(evaluate(captured, x), x @ weight)


def test_constants_and_outputs_that_are_no_tensors_are_left_out() -> None:
    captured = capture(lambda x, n, mode: {"a": x * n, "b": (x, n, None)} if mode == "on" else x, SQUARE, 3, "on")
    assert captured.core.inputs == ("x",)
    assert captured.core.outputs == ("mul", "x")


def test_several_outputs_of_one_operator() -> None:
    captured = capture(lambda x: torch.topk(x, 2), SQUARE)
    (name,) = captured.core.launching
    assert captured.core.op(name).kind == "opaque"
    assert [captured.core.tensor(tensor).dtype for tensor in captured.core.outputs] == ["float32", "int64"]
    halves = capture(lambda x: torch.cat((-x.chunk(2, -1)[1], x.chunk(2, -1)[0]), -1), SQUARE)
    assert labels(halves.core) == ["neg", "cat"]
    assert [edge.bytes for edge in halves.core.edges] == [32]


def test_an_unknown_operator_is_opaque() -> None:
    @torch.library.custom_op("lessons_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with pytest.raises(ValueError, match="register_fake") as refused:
        capture(lambda x: twice(x) + 1, SQUARE)
    assert "无法变成算子图" in str(refused.value)
    twice.register_fake(lambda x: torch.empty_like(x))
    captured = capture(lambda x: twice(x) + 1, SQUARE)
    assert kinds(captured.core) == {"twice": "opaque", "add": "elementwise"}
    x = torch.randn(4, 4)
    assert torch.equal(evaluate(captured, x), x * 2 + 1)


def test_control_flow_that_stays_in_the_graph_is_opaque() -> None:
    def chosen(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t + 1, (x,)) + 1

    captured = capture(chosen, SQUARE)
    assert kinds(captured.core)["cond"] == "opaque"
    x = torch.randn(4, 4)
    assert torch.equal(evaluate(captured, x), chosen(x))


def test_autocast_is_seen_through() -> None:
    def mixed(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            y = x @ x
        return y + 1

    captured = capture(mixed, SQUARE)
    assert labels(captured.core) == ["to bfloat16", "to bfloat16", "mm", "add"]
    assert all(captured.core.op(name).source.startswith("test_capture.py:") for name in captured.core.launching)


# -- sizes ----------------------------------------------------------------------------------------------------


def test_a_large_module_on_meta_takes_no_memory_and_stays_as_it_was() -> None:
    with torch.device("meta"):
        module = nn.Sequential(nn.Linear(8192, 28672, bias=False), nn.SiLU(), nn.Linear(28672, 8192, bias=False))
    module = module.to(torch.float16)
    captured = capture(module, fake((2048, 8192), "float16"), name="70B")
    weights = [captured.core.tensor(name).bytes for name in captured.core.inputs if "weight" in name]
    assert sum(weights) == 2 * 8192 * 28672 * 2
    assert all(parameter.is_meta for parameter in module.parameters())
    assert captured.core.op("mm").operations == 2 * 2048 * 8192 * 28672
    assert captured.graph.op("linear").source == "0 (Linear)"


def test_operations_by_operator() -> None:
    captured = capture(
        lambda x, w, b: torch.exp(functional.conv2d(x, w, b, padding=1)),
        fake((2, 3, 8, 8)),
        fake((5, 3, 3, 3)),
        fake((5,)),
    )
    out = 2 * 5 * 8 * 8
    assert captured.core.op("convolution").operations == 2 * out * 27 + out
    assert captured.core.op("exp").operations == FUNCTION * out


def test_real_tensors_and_fake_ones_give_the_same_graph() -> None:
    def block(x: Any, w: Any) -> Any:
        return functional.gelu(x @ w)

    real = capture(block, torch.randn(4, 6), torch.randn(6, 2))
    assert real.core == capture(block, fake((4, 6)), fake((6, 2), torch.float32)).core


@pytest.mark.parametrize(
    "shape, dtype", [((2, -1), "float32"), ((2.5,), "float32"), ((2,), "float33"), ("2", "int8")]
)
def test_a_fake_tensor_needs_extents_and_a_known_dtype(shape: Any, dtype: str) -> None:
    with pytest.raises(ValueError):
        fake(shape, dtype)
    assert FakeSpec((2,)).dtype == "float32"


def test_an_expanded_input_has_the_bytes_that_it_holds() -> None:
    graph = capture(lambda x, mask: x + mask, fake((2, 8, 4, 4)), torch.ones(1, 1, 4, 4).expand(2, 8, 4, 4)).graph
    assert (graph.tensor("mask").shape, graph.tensor("mask").bytes) == ((2, 8, 4, 4), 64)
    assert cost(graph, unfused(graph), GPU).read_bytes == 1024 + 64


def test_empty_memory_is_no_kernel_and_nothing_to_read() -> None:
    def copied(x: Any) -> Any:
        return torch.empty_like(x).copy_(x) + 1

    captured = capture(copied, SQUARE)
    assert labels(captured.graph) == ["copy_", "add"] and captured.graph.inputs == ("x",)
    assert cost(captured.graph, unfused(captured.graph), GPU).total_bytes == 4 * 64

    def filled(x: Any, y: Any) -> Any:
        both = torch.empty(8, 4)
        both[:4] = x
        both[4:] = y
        return both

    x, y = torch.rand(4, 4), torch.rand(4, 4)
    captured = capture(filled, x, y)
    assert len(captured.graph.launching) == 2
    assert captured.core.tensor("empty").bytes == 0
    assert torch.equal(evaluate(captured, x, y), filled(x, y))


# -- completeness ---------------------------------------------------------------------------------------------

_UNARY: dict[str, Callable[[Any], Any]] = {
    "silu": lambda x: functional.silu(x),
    "gelu": lambda x: functional.gelu(x),
    "tanh": lambda x: torch.tanh(x),
    "transpose": lambda x: x.t(),
    "copy": lambda x: x.t().contiguous(),
    "softmax": lambda x: torch.softmax(x, -1),
    "columns": lambda x: torch.softmax(x, 0),
    "layer_norm": lambda x: functional.layer_norm(x, (6,)),
    "rms": lambda x: functional.rms_norm(x, (6,)),
    "centre": lambda x: x - x.mean(-1, keepdim=True),
    "spread": lambda x: x / (1 + x.var(0)),
    "roll": lambda x: torch.cat((x[:, 2:], x[:, :2]), 1),
    "fold": lambda x: x.reshape(3, 12).cumsum(0).reshape(6, 6),
    "mask": lambda x: x.masked_fill(torch.ones_like(x).tril() > 0, 0.5),
    "pick": lambda x: x[torch.tensor([0, 2, 4, 1, 3, 5])],
    "write": lambda x: (x * 1).add_(x.t()),
    "write_part": lambda x: _with_first_row_zero(x),
    "cast": lambda x: (x.half() * 2).float(),
    "flip": lambda x: torch.flip(x, (1,)),
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "matmul": lambda x, y: x @ y / 6,
    "linear": lambda x, y: functional.linear(x, y, y[0]) / 6,
    "broadcast": lambda x, y: x + y[0],
    "where": lambda x, y: torch.where(x > 0, x, y),
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y) / 6,
}


def _with_first_row_zero(x: Any) -> Any:
    y = x.clone()
    y[0] = 0
    return y


_STEPS = st.lists(
    st.tuples(st.sampled_from([*_UNARY, *_BINARY]), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=7
)


@settings(max_examples=25)
@given(_STEPS, st.integers(0, 3))
def test_the_captured_graph_computes_what_the_function_does(steps: list[tuple[str, int, int]], kept: int) -> None:
    def program(x: Any, y: Any) -> Any:
        values = [x, y]
        for name, i, j in steps:
            one, other = values[-1 - i % len(values)], values[-1 - j % len(values)]
            values.append(_UNARY[name](one) if name in _UNARY else _BINARY[name](one, other))
        return values[-1], values[-1 - kept % len(values)] + 0

    inputs = torch.randn(6, 6), torch.randn(6, 6)
    captured = capture(program, fake((6, 6)), fake((6, 6)))
    found, wanted = evaluate(captured, *inputs), program(*inputs)
    flat = found if isinstance(found, tuple) else (found, found)
    for one, other in zip(flat, wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-4, rtol=1e-3, equal_nan=True)
    # What eager operators move is the same whether they are drawn as one or in parts.
    apart, whole = (cost(graph, grouping(graph), GPU) for graph, grouping in _views_of(captured))
    assert (apart.launches, apart.total_bytes) == (whole.launches, whole.total_bytes)


def _views_of(captured: Any) -> list[tuple[Any, Callable[[Any], Any]]]:
    return [(captured.core, eager), (captured.graph, unfused)]


def test_evaluation_gives_an_operator_only_what_its_graph_says() -> None:
    captured = capture(lambda x, y: x + y, SQUARE, SQUARE)
    object.__setattr__(captured.core.op("add"), "inputs", ("x", "x"))
    x, y = torch.ones(4, 4), torch.full((4, 4), 5.0)
    assert not torch.equal(evaluate(captured, x, y), x + y)


def test_evaluation_refuses_inputs_that_do_not_fit_or_have_no_data() -> None:
    captured = capture(lambda x: x + 1, SQUARE)
    for inputs in ((), (torch.randn(3, 4),), (3,), (torch.empty(4, 4, device="meta"),)):
        with pytest.raises(ValueError, match="x"):
            evaluate(captured, *inputs)
    with pytest.raises(ValueError, match="captured"):
        evaluate(captured.core, torch.randn(4, 4))  # type: ignore[arg-type]


def test_writes_to_a_part_are_noted() -> None:
    captured = capture(_with_first_row_zero, SQUARE)
    (note,) = captured.notes
    assert "test_capture.py:" in note.en and "torch.cat" in note.zh
    assert not capture(lambda x: (x * 2).add_(1), SQUARE).notes


def test_a_region_is_said_to_be_one_operator_that_nobody_looks_into() -> None:
    def branches(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: torch.sin(x) + 1, lambda x: x * 2, (x,))

    captured = capture(branches, SQUARE)
    assert kinds(captured.core)["cond"] == "opaque"
    (note,) = captured.notes
    assert "cond 在图里是一个不透明算子" in note.zh and note.en.startswith("cond: one opaque operator here.")


@pytest.mark.parametrize(
    ("function", "label", "size"),
    [
        (lambda x: functional.max_pool2d(x, 2), "max_pool2d", 4 * 8),
        (lambda x: torch.max(x, -1).values, "max", 16 * 8),
        (lambda x: torch.max(x, -1).indices, "max", 16 * 4),
        (lambda x: torch.topk(x, 2)[0] + torch.sort(x).values[..., :2], "topk, sort", 32 * 8 + 64 * 8),
    ],
)
def test_a_result_that_nobody_reads_is_not_counted_and_a_note_says_how_large_it_is(
    function: Any, label: str, size: int
) -> None:
    captured = capture(function, fake((1, 4, 4, 4) if "pool" not in label else (1, 1, 4, 4)))
    (note,) = captured.notes
    assert note.en.startswith(f"{label}: there are results that nobody reads") and f" {size} B in all" in note.en
    assert note.zh.startswith(f"{label} 还有没人读的结果") and f"共 {size} B" in note.zh


def test_results_that_are_all_read_or_are_views_have_no_note() -> None:
    for function in (
        lambda x: torch.max(x, -1),
        lambda x: torch.split(x, 2, -1)[0] + 1,
        lambda x: functional.layer_norm(x, (4,)),
    ):
        assert not capture(function, SQUARE).notes


def test_without_an_element_nothing_is_launched_and_a_note_says_so() -> None:
    captured = capture(lambda x: torch.relu(x).sum() + 1, fake((0, 4)))
    (note,) = captured.notes
    assert note.en.startswith("relu: there is no element in the result") and note.zh.startswith("relu 的结果没有元素")


# -- refusals -------------------------------------------------------------------------------------------------


def _branches(x: Any) -> Any:
    total = x.sum()
    if total > 0:  # here
        return x * 2
    return x


def _takes_out(x: Any) -> Any:
    y = x + 1
    return y * x.max().item()  # here


def _size_from_data(x: Any) -> Any:
    y = x + 1
    return y[y > 0]  # here


def _leaves_torch(x: Any) -> Any:
    y = x + 1
    return torch.from_numpy(y.numpy())  # here


def _writes_to_argument(x: Any) -> Any:
    turned = x.t()
    turned.add_(1)  # here
    return turned * 2


def _does_not_run(x: Any) -> Any:
    return x @ x[:3]  # here


@pytest.mark.parametrize(
    "function, says",
    [
        (_branches, ("torch.where", "must be the same")),
        (_takes_out, ("x.max()", "takes a number out")),
        (_size_from_data, ("torch.where(mask, x, 0)", "depends on the data")),
        (_leaves_torch, ("numpy", "leaves PyTorch")),
        (_writes_to_argument, ("x", "writes to its argument x")),
        (_does_not_run, ("RuntimeError", "does not run on these example inputs")),
    ],
)
def test_what_cannot_be_captured_is_refused_with_its_line(
    function: Callable[[Any], Any], says: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    here = importlib.import_module("inspect").getsourcelines(function)
    line = here[1] + next(index for index, text in enumerate(here[0]) if "# here" in text)
    with pytest.raises(ValueError) as refused:
        capture(function, SQUARE)
    chinese, english = str(refused.value).splitlines()
    assert says[0] in chinese and says[1] in english
    assert f"第 {line} 行" in chinese and f"test_capture.py, line {line}," in english
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err == ""


def test_a_buffer_that_is_written_asks_for_eval() -> None:
    with pytest.raises(ValueError, match=r"running_mean(.|\n)*\.eval\(\)"):
        capture(nn.BatchNorm2d(3), fake((2, 3, 4, 4)))
    assert capture(nn.BatchNorm2d(3).eval(), fake((2, 3, 4, 4))).core.launching


def test_a_write_to_a_tensor_from_outside_is_refused() -> None:
    cache = torch.zeros(4, 4)
    with pytest.raises(ValueError, match="outside the function"):
        capture(lambda x: cache.add_(x) * 2, SQUARE)
    assert torch.equal(cache, torch.zeros(4, 4))


@pytest.mark.parametrize("function", [lambda x: None, lambda x: x, lambda x: x.t(), lambda x: 3])
def test_a_function_that_computes_nothing_is_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="no operator"):
        capture(function, SQUARE)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ValueError, match="function"):
        capture(3, SQUARE)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="name"):
        capture(lambda x: x + 1, SQUARE, name=" ")
    with pytest.raises(ValueError, match="missing 1 required"):
        capture(lambda x, y: x + y, SQUARE)


def test_prints_of_the_function_come_out_and_warnings_of_torch_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    def talks(x: Any) -> Any:
        print("hello")
        warnings.warn("a warning of the library", stacklevel=1)
        return x + 1

    capture(talks, SQUARE)
    printed = capsys.readouterr()
    assert printed.out == "hello\n" and printed.err == ""


def test_without_torch_the_message_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    original = importlib.import_module

    def missing(name: str, *rest: Any) -> Any:
        if name == "torch":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr("lessons_lib.graph.capture.torch_import.importlib.import_module", missing)
    with pytest.raises(MissingPackageError, match="pip install torch"):
        capture(lambda x: x, SQUARE)


class Holder:
    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def per_row(x: Any) -> Any:
    return torch.vmap(lambda row: row.sum() * 2)(x)


def slope(x: Any) -> Any:
    return torch.func.grad(lambda y: (y * y).sum())(x)


@pytest.mark.parametrize(
    "function", [per_row, slope, torch.vmap(lambda row: row.sum())], ids=["vmap", "grad", "bare"]
)
def test_transforms_are_refused_and_leave_nothing_behind(function: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"函数变换.*\n.*transforms a function"):
        capture(function, SQUARE)
    assert labels(capture(lambda x: x + 1, SQUARE).graph) == ["add"]


def test_an_error_within_a_transform_leaves_nothing_behind() -> None:
    def left_open(x: Any) -> Any:
        torch._C._functorch._vmap_increment_nesting(4, "error")
        raise RuntimeError("stop")

    depth = torch._C._functorch.get_dynamic_layer_stack_depth()
    with pytest.raises(ValueError, match="stop"):
        capture(left_open, SQUARE)
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == depth
    assert labels(capture(lambda x: x + 1, SQUARE).graph) == ["add"]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tensors_whose_bytes_are_not_elements_times_size_are_refused() -> None:
    made: list[Callable[[], Any]] = [
        lambda: torch.eye(4).to_sparse(),
        lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    ]
    for make in made:
        with pytest.raises(ValueError, match=r"参数 batch\['x'\].*\nbatch\['x'\] is not valid.*sparse"):
            capture(lambda batch: batch["x"] * 2, {"x": make()})
    with pytest.raises(ValueError, match=r"test_capture.py.*\n.*test_capture.py, line \d+.*sparse"):
        capture(lambda x: x.to_sparse().to_dense(), SQUARE)


@pytest.mark.parametrize("shape", [(2**62,), (2**40, 2**40), (2**70,), (0, 2**70)])
def test_a_tensor_that_no_memory_holds_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"参数 shape.*\nshape is not valid"):
        fake(shape)


@pytest.mark.parametrize(
    ("function", "example", "words"),
    [
        (lambda x: Holder(x + 1), SQUARE, "object of type Holder"),
        (Holder, SQUARE, "make an instance first"),
        (lambda x: x, Holder(None), "object of type Holder among the example inputs"),
    ],
    ids=["returned", "class", "given"],
)
def test_objects_that_hide_tensors_are_refused_by_their_type(
    function: Callable[[Any], Any], example: Any, words: str
) -> None:
    with pytest.raises(ValueError, match=rf"Holder[^\n]*\n[^\n]*{words}") as refused:
        capture(function, example)
    assert "pytree" not in str(refused.value)


def test_a_name_that_is_no_title_gives_way_to_the_type() -> None:
    class Odd:
        def __init__(self, name: object) -> None:
            self.__name__ = name

        def __call__(self, x: Any) -> Any:
            return x + 1

    assert [capture(Odd(name), SQUARE).name for name in (3, "", "<>")] == ["Odd"] * 3


def test_a_line_of_the_standard_library_is_not_the_learners() -> None:
    assert not fx_nodes._is_learners(importlib.import_module("contextlib").__file__)
    assert not fx_nodes._is_learners(torch.__file__)
    assert fx_nodes._is_learners(__file__) and fx_nodes._is_learners("/home/me/model.py")


# -- lines ----------------------------------------------------------------------------------------------------


def test_operators_know_their_line_in_functions_and_in_modules() -> None:
    def two_lines(x: Any) -> Any:
        y = torch.exp(x)
        return torch.tanh(y)

    first = two_lines.__code__.co_firstlineno + 1
    captured = capture(two_lines, SQUARE)
    assert [captured.core.op(name).source for name in captured.core.launching] == [
        f"test_capture.py:{first}",
        f"test_capture.py:{first + 1}",
    ]
    assert captured.code["exp"] == "y = torch.exp(x)"

    class Module(nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, x: Any) -> Any:
            return torch.exp(x)

    assert capture(Module(), SQUARE).core.op("exp").source.startswith("test_capture.py:")


def test_a_line_of_a_notebook_is_a_line_of_its_cell() -> None:
    line = Line("/tmp/ipykernel_1/2.py", 3, "y = x.item()")
    assert line.place == "cell:3"
    assert "本单元第 3 行" in line.words.zh and "line 3 of the cell" in line.words.en


# -- the table of operators -----------------------------------------------------------------------------------


def call(name: str, shape: tuple[int, ...], out: tuple[int, ...], **arguments: Any) -> AtenCall:
    return AtenCall(
        name, {"self": Operand("x", shape), **arguments}, (out,), view=name in ("permute", "slice", "view")
    )


@pytest.mark.parametrize(
    "given_call, kind, axes",
    [
        (call("permute", (2, 3, 4), (2, 4, 3), dims=[0, 2, 1]), "view", (1, 2)),
        (call("slice", (2, 8), (2, 4), dim=-1, start=4), "view", (1,)),
        (call("slice", (2, 8), (2, 8), dim=1), "view", ()),
        (call("view", (2, 8), (16,), size=[16]), "view", ()),
        (call("flip", (2, 8), (2, 8), dims=[-1]), "injective", (1,)),
        (call("constant_pad_nd", (2, 8), (2, 9), pad=[0, 1]), "injective", (1,)),
        (call("index", (2, 8), (2, 3), indices=[None, Operand("i", (3,))]), "injective", (1,)),
        (call("sum", (2, 8), (2,), dim=[-1]), "reduction", (1,)),
        (call("amax", (2, 8), ()), "reduction", (0, 1)),
        (call("sum", (), ()), "elementwise", None),
        (call("clone", (2, 8), (2, 8)), "injective", ()),
        (call("median", (2, 8), (2,), dim=1), "opaque", None),
    ],
)
def test_kinds_and_axes(given_call: AtenCall, kind: str, axes: tuple[int, ...] | None) -> None:
    traits = traits_of(given_call)
    assert (traits.kind, traits.axes) == (kind, axes)


def test_what_pytorch_tags_pointwise_is_opaque_if_its_shapes_say_otherwise() -> None:
    odd = AtenCall("strange", {"self": Operand("x", (3, 5))}, ((5, 3),), pointwise=True)
    assert traits_of(odd).kind == "opaque"


def test_an_argument_of_which_only_the_shape_matters_is_not_read() -> None:
    assert traits_of(call("full_like", (2, 8), (2, 8), fill_value=0)).inputs == ()
    copied = call("copy", (2, 8), (2, 8), src=Operand("y", (2, 8)))
    assert traits_of(copied).inputs == ("y",)
