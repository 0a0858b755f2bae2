"""Wrong use of a kernel is refused before a launch, in both languages, by the argument's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st

from lessons_lib.base.text import Text
from lessons_lib.kernels import checks
from lessons_lib.kernels.chain import fused_chain
from lessons_lib.kernels.checks import output_like, require_operands, share_memory, torch_dtype, torch_dtype_name
from lessons_lib.kernels.epilogue import fused_epilogue
from lessons_lib.kernels.launch import ELEMENT_BYTES
from lessons_lib.kernels.mode import TritonSetup

REASON = Text(zh="因", en="because")
INTERPRETER = TritonSetup("interpreter", REASON, "cpu", bf16=True)
T4 = TritonSetup("cuda", REASON, "cuda", capability=(7, 5), bf16=False)
H200 = TritonSetup("cuda", REASON, "cuda", capability=(9, 0), bf16=True)


@pytest.fixture(autouse=True)
def _in_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "require_runnable", lambda: INTERPRETER)


def refused(act: Callable[[], Any], name: str, zh: str, en: str) -> None:
    """``act`` raises a ValueError: a Chinese line and an English one, both with the argument's name."""
    with pytest.raises(ValueError) as raised:
        act()
    chinese, english = str(raised.value).splitlines()
    assert f"参数 {name} " in chinese and zh in chinese
    assert english.startswith(f"{name} ") and en in english


def chain_with(**changed: Any) -> Callable[[], Any]:
    arguments: dict[str, Any] = {
        "x": torch.ones(3, 5),
        "bias": torch.ones(5),
        "scale": torch.ones(5),
        "residual": torch.ones(3, 5),
    }
    return lambda: fused_chain(**(arguments | changed))


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels launched during a test."""
    seen: list[str] = []
    from lessons_lib.kernels import chain, epilogue

    for module, name in ((chain, "chain_kernel"), (epilogue, "epilogue_kernel")):
        kernel = getattr(module, name)

        class Watched:
            def __init__(self, kernel: Any, name: str) -> None:
                self.kernel, self.name = kernel, name

            def __getitem__(self, grid: Any) -> Any:
                seen.append(self.name)
                return self.kernel[grid]

        monkeypatch.setattr(module, name, Watched(kernel, name))
    return seen


WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    ({"x": [[1.0]]}, "x", "list", "PyTorch tensor"),
    ({"bias": None}, "bias", "NoneType", "PyTorch tensor"),
    ({"x": torch.ones(15)}, "x", "需要 2 维", "2 dimensions, got 1, shape (15,)"),
    ({"bias": torch.ones(1, 5)}, "bias", "需要 1 维", "1 dimension, got 2"),
    ({"x": torch.ones(3, 5).to_sparse()}, "x", "稠密", "dense"),
    ({"x": torch.ones(0, 5), "residual": torch.ones(0, 5)}, "x", "空的", "empty, shape (0, 5)"),
    ({"scale": torch.ones(4)}, "scale", "(5,)", "must have shape (5,), got (4,)"),
    ({"residual": torch.ones(4, 5)}, "residual", "(3, 5)", "must have shape (3, 5), got (4, 5)"),
    ({"x": torch.ones(3, 5, dtype=torch.int32)}, "x", "int32", "float16, bfloat16 or float32, got int32"),
    ({"x": torch.ones(3, 5, dtype=torch.float64)}, "x", "float64", "got float64"),
    ({"x": torch.ones(3, 5, dtype=torch.bool)}, "x", "bool", "got bool"),
    ({"bias": torch.ones(5, dtype=torch.float16)}, "bias", "float16", "that of x, float32, got float16"),
    ({"bias": torch.ones(5, dtype=torch.int64)}, "bias", "int64", "got int64"),
    ({"residual": torch.ones(3, 5, device="meta")}, "residual", "meta", "device of x, cpu, and is on meta"),
    ({"x": torch.ones(3, 5, requires_grad=True)}, "x", "前向", "forward only"),
    ({"scale": torch.nn.Parameter(torch.ones(5))}, "scale", "no_grad", ".detach()"),
    ({"x": torch.ones(5, 3).T}, "x", "连续", "strides (1, 3)"),
    ({"bias": torch.ones(10)[::2]}, "bias", "连续", "contiguous"),
    ({"groups": 3}, "groups", "1, 2, 4", "one of: 1, 2, 4"),
    ({"groups": True}, "groups", "bool", "an integer (int), got True"),
    ({"tile": (8, 100)}, "tile[1]", "2 的幂", "power of two"),
    ({"tile": (8,)}, "tile", "2 个边长", "2 sides"),
    ({"out": torch.ones(3, 4)}, "out", "(3, 5)", "shape (3, 5), got (3, 4)"),
    ({"out": torch.ones(3, 5, dtype=torch.float16)}, "out", "float16", "float32, got float16"),
    ({"out": torch.ones(5, 3).T}, "out", "连续", "contiguous"),
    ({"out": "y"}, "out", "str", "PyTorch tensor"),
    ({"out": torch.ones(5).expand(3, 5)}, "out", "expand", "share memory"),
    ({"out": torch.ones(3, 5, requires_grad=True)}, "out", "前向", "forward only"),
]


@pytest.mark.parametrize(
    ("changed", "name", "zh", "en"), WRONG, ids=[f"{name}-{index}" for index, (_, name, _, _) in enumerate(WRONG)]
)
def test_wrong_use_is_refused_by_name_and_nothing_is_launched(
    changed: dict[str, Any], name: str, zh: str, en: str, launches: list[str]
) -> None:
    refused(chain_with(**changed), name, zh, en)
    assert launches == []


def test_the_watch_on_launches_sees_right_use(launches: list[str]) -> None:
    chain_with(groups=2)()
    fused_epilogue(torch.ones(3, 5), torch.ones(5))
    assert launches == ["chain_kernel", "chain_kernel", "epilogue_kernel"]


def test_an_unknown_activation_is_refused(launches: list[str]) -> None:
    refused(lambda: fused_epilogue(torch.ones(3, 5), torch.ones(5), "gelu"), "activation", "gelu_tanh", "'silu'")  # type: ignore[arg-type]
    assert launches == []


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_tensors_that_want_gradients_pass_where_none_are_recorded(mode: Any) -> None:
    with mode():
        chain_with(bias=torch.nn.Parameter(torch.ones(5)))()


def test_every_kernel_argument_is_checked() -> None:
    for name in ("x", "bias", "scale", "residual"):
        refused(chain_with(**{name: 1.0}), name, "float", "float")
    refused(lambda: fused_epilogue(torch.ones(3, 5), torch.ones(6)), "bias", "(5,)", "(5,)")


# -- device and bfloat16 ---------------------------------------------------------------------------------------


def operands(setup: TritonSetup, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, **options: Any) -> str:
    monkeypatch.setattr(checks, "require_runnable", lambda: setup)
    monkeypatch.setattr(checks, "_require_device", lambda *_: None)  # no GPU is needed to be told of its dtypes
    return require_operands({"x": (torch.ones(2, 3, dtype=dtype), 2)}, **options)


def test_a_tensor_on_the_cpu_is_sent_to_the_gpu_that_runs_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "require_runnable", lambda: H200)
    refused(chain_with(), "x", ".to('cuda')", "move it with .to('cuda')")


def test_a_tensor_elsewhere_is_sent_to_the_cpu_where_the_interpreter_runs() -> None:
    elsewhere = {name: torch.ones(shape, device="meta") for name, shape in SHAPES.items()}
    refused(chain_with(**elsewhere), "x", "解释器", "move it with .to('cpu')")


SHAPES: dict[str, tuple[int, ...]] = {"x": (3, 5), "bias": (5,), "scale": (5,), "residual": (3, 5)}


def test_bfloat16_is_refused_where_the_hardware_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    refused(lambda: operands(T4, monkeypatch, torch.bfloat16), "x", "计算能力 7.5", "compute capability 7.5")
    assert operands(T4, monkeypatch, torch.float16) == "fp16"
    assert operands(H200, monkeypatch, torch.bfloat16, dot=True) == "bf16"


def test_bfloat16_is_refused_by_the_interpreter_for_dot_only(monkeypatch: pytest.MonkeyPatch) -> None:
    refused(lambda: operands(INTERPRETER, monkeypatch, torch.bfloat16, dot=True), "x", "悄悄出错", "silently wrong")
    assert operands(INTERPRETER, monkeypatch, torch.bfloat16) == "bf16"
    assert operands(INTERPRETER, monkeypatch, torch.float32, dot=True) == "fp32"


def test_an_operand_may_be_exempt_from_contiguous_rows() -> None:
    both = {"x": (torch.ones(2, 3), 2), "w": (torch.ones(4, 3).T, 2)}
    refused(lambda: require_operands(both), "w", "连续", "contiguous")
    assert require_operands(both, any_stride=("w",)) == "fp32"


def test_a_single_column_is_contiguous_whatever_its_stride_says() -> None:
    column = torch.arange(3.0)[None, :].T
    assert column.stride() == (1, 3)
    assert fused_epilogue(column, torch.ones(1), "none").tolist() == [[1.0], [2.0], [3.0]]


@pytest.mark.parametrize("dtype", ELEMENT_BYTES)
def test_dtype_names_go_both_ways(dtype: Any) -> None:
    assert torch_dtype_name(torch.ones(1, dtype=torch_dtype(dtype))) == dtype


# -- memory ----------------------------------------------------------------------------------------------------


def test_an_output_over_an_input_is_refused_whole_or_in_part() -> None:
    buffer = torch.ones(6, 5)
    refused(chain_with(x=buffer[:3], out=buffer[:3]), "out", "输入 x ", "input x;")
    refused(chain_with(x=buffer[:3], out=buffer[2:5]), "out", "输入 x ", "input x;")
    refused(chain_with(residual=buffer[:3], out=buffer[2:5]), "out", "输入 residual ", "input residual;")
    line = torch.ones(20)
    refused(chain_with(bias=line[:5], out=line[2:17].view(3, 5)), "out", "输入 bias ", "input bias;")


def test_an_output_beside_an_input_in_one_buffer_is_fine() -> None:
    buffer = torch.ones(6, 10)
    arguments = {"x": buffer[:3, :5], "residual": buffer[3:, :5]}
    for out in (buffer[:3, 5:], buffer[3:, 5:]):
        assert chain_with(**arguments, out=out)() is out
    assert torch.equal(buffer[:, :5], torch.ones(6, 5))


def test_without_an_output_a_new_tensor_like_the_first_input_is_made() -> None:
    x = torch.ones(2, 8, dtype=torch.float16)[:, :5]
    y = output_like(None, (4, 3), {"x": x, "bias": torch.ones(3)})
    assert (tuple(y.shape), y.dtype, y.is_contiguous()) == ((4, 3), torch.float16, True)


@given(
    pitches=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    shapes=st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 4), st.integers(1, 6)),
    starts=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    one_pitch=st.booleans(),
)
def test_no_shared_element_goes_unnoticed(
    pitches: tuple[int, int], shapes: tuple[int, int, int, int], starts: tuple[int, int], one_pitch: bool
) -> None:
    buffer = torch.zeros(128)
    first = (shapes[:2], (pitches[0], 1), starts[0])
    second = (shapes[2:], (pitches[0] if one_pitch else pitches[1], 1), starts[1])
    one, other = buffer.as_strided(*first), buffer.as_strided(*second)
    if elements(*first) & elements(*second):
        assert share_memory(one, other) and share_memory(other, one)
    elif one_pitch and max(shapes[1], shapes[3]) <= pitches[0] and apart_by_columns(first, second):
        assert not share_memory(one, other)


def elements(shape: tuple[int, ...], strides: tuple[int, int], start: int) -> set[int]:
    return {start + row * strides[0] + column for row in range(shape[0]) for column in range(shape[1])}


def apart_by_columns(first: Any, second: Any) -> bool:
    """Whether the two occupy different columns of the pitch that they share."""
    pitch = first[1][0]
    columns = [{(start + column) % pitch for column in range(shape[1])} for shape, _, start in (first, second)]
    return not columns[0] & columns[1]


def test_messages_give_shapes_as_plain_tuples() -> None:
    with pytest.raises(ValueError) as raised:
        chain_with(scale=torch.ones(4))()
    assert not re.search(r"torch\.Size", str(raised.value))
