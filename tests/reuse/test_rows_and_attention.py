"""Row kernels and attention: checkpoints 8, 11 and 15, by formula and by counting a plan's bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.gpus import A100, T4
from lessons_lib.base.units import KIB, MIB
from lessons_lib.reuse.attention import attention_traffic
from lessons_lib.reuse.rows import rmsnorm_traffic, softmax_traffic
from lessons_lib.traffic.model import Operator, plan_traffic

sizes = st.integers(1, 2**20)
elements = st.integers(1, 8)


def refusal(argument: str, *told: str) -> str:
    words = ".*".join(map(re.escape, told))
    return rf"(?s)^参数 {argument} .*{words}.*。\n{argument} .*{words}.*\.$"


def one_kernel_each(operators: list[Operator], size: dict[str, int], outputs: list[str]) -> int:
    return plan_traffic(operators, [[op.name] for op in operators], size, outputs)["total_bytes"]


# -- softmax and RMSNorm -------------------------------------------------------------------------------------


def test_checkpoint_8() -> None:
    assert softmax_traffic(4096, 4096) == {
        "row_bytes": 16 * KIB,
        "naive_bytes": 536_936_448,
        "resident_bytes": 134_217_728,
        "two_pass_bytes": 201_326_592,
        "resident_ratio": pytest.approx(4.0005, abs=5e-5),
        "two_pass_ratio": pytest.approx(2.667, abs=5e-4),
    }


@given(sizes, sizes, elements)
def test_counting_a_softmax_gives_the_formula(rows: int, columns: int, element: int) -> None:
    vector, matrix = element * rows, element * rows * columns
    operators = [
        Operator("max", ["x"], "m"),
        Operator("sub", ["x", "m"], "d"),
        Operator("exp", ["d"], "e"),
        Operator("sum", ["e"], "s"),
        Operator("div", ["e", "s"], "y"),
    ]
    size = {"x": matrix, "m": vector, "d": matrix, "e": matrix, "s": vector, "y": matrix}
    result = softmax_traffic(rows, columns, element)
    assert result["naive_bytes"] == one_kernel_each(operators, size, ["y"])
    fused = plan_traffic(operators, [[op.name for op in operators]], size, ["y"])
    assert result["resident_bytes"] == fused["total_bytes"]
    assert result["resident_bytes"] < result["two_pass_bytes"] < result["naive_bytes"]
    assert result["two_pass_bytes"] - result["resident_bytes"] == rows * result["row_bytes"]


def test_checkpoint_15() -> None:
    plain = rmsnorm_traffic(4096, 4096)
    assert plain == {
        "row_bytes": 8 * KIB,
        "naive_bytes": 224 * MIB,
        "resident_bytes": 64 * MIB,
        "two_pass_bytes": 96 * MIB,
        "resident_ratio": 3.5,
        "two_pass_ratio": pytest.approx(2.333, abs=5e-4),
    }
    kept = rmsnorm_traffic(4096, 4096, residual=True, sum_output=True)
    dropped = rmsnorm_traffic(4096, 4096, residual=True)
    assert (kept["resident_bytes"], dropped["resident_bytes"]) == (128 * MIB, 96 * MIB)
    assert kept["naive_bytes"] == dropped["naive_bytes"] == 320 * MIB
    assert kept["two_pass_bytes"] == dropped["two_pass_bytes"] == 160 * MIB


@given(sizes, sizes, elements, st.booleans(), st.booleans())
def test_counting_an_rmsnorm_gives_the_formula(
    rows: int, columns: int, element: int, residual: bool, sum_output: bool
) -> None:
    matrix = element * rows * columns
    names = ["x", "r", "q", "u", "y", "h"] if residual else ["h", "q", "u", "y"]
    operators = [Operator("add", ["x", "r"], "h")] if residual else []
    operators += [
        Operator("square", ["h"], "q"),
        Operator("mean", ["q"], "v"),
        Operator("scale", ["h", "v"], "u"),
        Operator("weight", ["u", "w"], "y"),
    ]
    size = {**dict.fromkeys(names, matrix), "v": 0, "w": 0}
    sum_output = sum_output and residual
    outputs = ["y", "h"] if sum_output else ["y"]
    result = rmsnorm_traffic(rows, columns, element, residual, sum_output)
    assert result["naive_bytes"] == one_kernel_each(operators, size, outputs)
    fused = plan_traffic(operators, [[op.name for op in operators]], size, outputs)
    assert result["resident_bytes"] == fused["total_bytes"]
    assert result["resident_bytes"] < result["two_pass_bytes"] < result["naive_bytes"]
    assert result["row_bytes"] * rows == matrix


def test_a_sum_without_a_residual_is_refused() -> None:
    with pytest.raises(ValueError, match=refusal("sum_output", "residual=False")):
        rmsnorm_traffic(1, 1, sum_output=True)


@pytest.mark.parametrize("name", ["residual", "sum_output"])
@pytest.mark.parametrize("value", [1, None, "yes"], ids=repr)
def test_a_flag_is_a_bool(name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"residual": True, "sum_output": True, name: value}
    with pytest.raises(ValueError, match=refusal(name, repr(value))):
        rmsnorm_traffic(1, 1, **arguments)


# -- attention -----------------------------------------------------------------------------------------------


def test_checkpoint_11() -> None:
    assert attention_traffic(2048, 64, 64) == {
        "score_bytes": 8 * MIB,
        "unfused_bytes": 49 * MIB,
        "query_output_bytes": 512 * KIB,
        "kv_bytes": 512 * KIB,
        "kv_reads": 32,
        "kv_reread_bytes": 31 * 512 * KIB,
        "tiled_bytes": int(16.5 * MIB),
        "tiled_once_bytes": MIB,
        "ratio": pytest.approx(49 / 16.5),
    }
    assert attention_traffic(2048, 64, 128)["tiled_bytes"] == int(8.5 * MIB)
    assert attention_traffic(2048, 64, 64)["kv_bytes"] < T4.l2_bytes < A100.l2_bytes


@given(sizes, sizes, sizes, elements)
def test_counting_attention_gives_the_formula(queries: int, keys: int, dim: int, element: int) -> None:
    operators = [
        Operator("qk", ["q", "k"], "s"),
        Operator("scale", ["s"], "t"),
        Operator("softmax", ["t"], "p"),
        Operator("pv", ["p", "v"], "o"),
    ]
    size = dict.fromkeys("stp", element * queries * keys)
    size |= dict.fromkeys("qo", element * queries * dim) | dict.fromkeys("kv", element * keys * dim)
    result = attention_traffic(queries, dim, queries, keys, element)
    assert result["unfused_bytes"] == one_kernel_each(operators, size, ["o"])
    fused = plan_traffic(operators, [[op.name for op in operators]], size, ["o"])
    assert result["tiled_bytes"] == result["tiled_once_bytes"] == fused["total_bytes"]
    assert (result["kv_reads"], result["kv_reread_bytes"]) == (1, 0)


@given(sizes, sizes, sizes, sizes, sizes)
def test_larger_blocks_never_read_more(queries: int, keys: int, dim: int, block: int, more: int) -> None:
    result = attention_traffic(queries, dim, block, keys)
    assert attention_traffic(queries, dim, block + more, keys)["tiled_bytes"] <= result["tiled_bytes"]
    assert result["tiled_bytes"] == result["query_output_bytes"] + result["kv_bytes"] + result["kv_reread_bytes"]
    assert result["tiled_once_bytes"] <= result["tiled_bytes"]


def test_blocks_of_a_single_query_lose_to_the_unfused_kernels() -> None:
    assert attention_traffic(2048, 64, 1)["ratio"] < 1  # K and V are read for every query
    assert attention_traffic(2048, 64, 10**9)["kv_reads"] == 1


# -- refusals ------------------------------------------------------------------------------------------------

CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (softmax_traffic, {"rows": 1, "columns": 1, "element_bytes": 1}),
    (rmsnorm_traffic, {"rows": 1, "columns": 1, "element_bytes": 1}),
    (attention_traffic, {"queries": 1, "head_dim": 1, "block_queries": 1, "keys": 1, "element_bytes": 1}),
]


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", float("nan")], ids=repr)
@pytest.mark.parametrize(("call", "arguments"), CALLS, ids=[call.__name__ for call, _ in CALLS])
def test_a_bad_argument_is_refused_by_name(call: Callable[..., Any], arguments: dict[str, Any], value: Any) -> None:
    call(**arguments)
    for name in arguments:
        with pytest.raises(ValueError, match=refusal(name, repr(value))):
            call(**{**arguments, name: value})
