"""Q1's models: the checkpoints, by formula and by counting, and what must grow with what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain as joined, combinations, pairwise
from numbers import Integral
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.units import MIB
from lessons_lib.traffic.model import (
    Operator,
    PlanTraffic,
    best_cuts,
    boundary_traffic,
    chain_traffic,
    fusion_traffic,
    plan_traffic,
)

T = 64 * MIB
NO_NATURAL_NUMBERS = [0, -1, True, 1.0, "1", None, float("nan")]
sizes = st.integers(min_value=1, max_value=2**72)
op_counts = st.integers(min_value=1, max_value=40)


def refusal(argument: str, *given: str) -> str:
    """A pattern for a message in Chinese, then in English, each naming the argument and what was given."""
    name, told = re.escape(argument), ".*".join(map(re.escape, given))
    return rf"(?s)^参数 {name} .*{told}.*。\n{name} .*{told}.*\.$"


def op(name: str, *inputs: str, output: str) -> Operator:
    return Operator(name, inputs, output)


# -- a chain -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("groups", "boundaries", "mib"), [(4, 3, 384), (2, 1, 128), (1, 0, 0)])
def test_checkpoint_1(groups: int, boundaries: int, mib: int) -> None:
    assert fusion_traffic(4, T, groups) == {
        "launches": groups,
        "materialized_boundaries": boundaries,
        "intermediate_bytes": mib * MIB,
    }


@pytest.mark.parametrize(("groups", "total", "ratio"), [(4, 512, 1), (2, 256, 2), (1, 128, 4)])
def test_checkpoint_2(groups: int, total: int, ratio: float) -> None:
    result = chain_traffic(4, T, groups)
    assert result["compulsory_bytes"] == 2 * T
    assert result["total_bytes"] == total * MIB
    assert result["bytes_ratio"] == ratio


def test_checkpoint_17() -> None:
    four, two, one = (chain_traffic(4, T, groups, side_inputs=1) for groups in (4, 2, 1))
    assert [plan["total_bytes"] // MIB for plan in (four, two, one)] == [576, 320, 192]
    assert [plan["intermediate_bytes"] // MIB for plan in (four, two, one)] == [384, 128, 0]
    assert {plan["compulsory_bytes"] // MIB for plan in (four, two, one)} == {192}
    assert [plan["bytes_ratio"] for plan in (four, two, one)] == [1, 1.8, 3]
    assert two["total_bytes"] / one["total_bytes"] == pytest.approx(1.667, abs=5e-4)


@given(op_counts)
def test_the_ceiling_of_a_unary_chain_is_its_number_of_operators(num_ops: int) -> None:
    assert chain_traffic(num_ops, T, 1)["bytes_ratio"] == num_ops


@given(op_counts, sizes, st.data())
def test_more_groups_never_move_fewer_bytes(num_ops: int, size: int, data: st.DataObject) -> None:
    few = data.draw(st.integers(1, num_ops))
    many = data.draw(st.integers(few, num_ops))
    side = data.draw(st.integers(0, 5))
    assert (
        fusion_traffic(num_ops, size, few)["intermediate_bytes"]
        <= (fusion_traffic(num_ops, size, many)["intermediate_bytes"])
    )
    less, more = (chain_traffic(num_ops, size, groups, side) for groups in (few, many))
    assert less["total_bytes"] <= more["total_bytes"]
    assert less["bytes_ratio"] >= more["bytes_ratio"] >= 1
    assert less["total_bytes"] == less["intermediate_bytes"] + less["compulsory_bytes"]
    assert chain_traffic(num_ops, size, few, side + 1)["bytes_ratio"] <= less["bytes_ratio"]


def test_there_is_no_limit_on_size_and_results_are_plain_int() -> None:
    class Big:
        def __int__(self) -> int:
            return 2**70

    Integral.register(Big)
    result = fusion_traffic(2, Big(), 2)  # type: ignore[arg-type]
    assert result["intermediate_bytes"] == 2**71
    assert {type(value) for value in result.values()} == {int}
    assert chain_traffic(2, Big(), 2)["total_bytes"] == 2**72  # type: ignore[arg-type]


def test_numpy_integers_do() -> None:
    np = pytest.importorskip("numpy")
    result = chain_traffic(np.int8(100), np.int32(2**30), np.uint8(100), np.int64(0))
    assert result["intermediate_bytes"] == 2 * 99 * 2**30
    assert {type(result[key]) for key in ("launches", "total_bytes", "compulsory_bytes")} == {int}


@pytest.mark.parametrize("name", ["num_ops", "tensor_bytes", "fused_groups"])
@pytest.mark.parametrize("value", NO_NATURAL_NUMBERS, ids=repr)
def test_a_bad_argument_is_refused_by_name(name: str, value: Any) -> None:
    arguments = {"num_ops": 4, "tensor_bytes": T, "fused_groups": 1, name: value}
    for function in (fusion_traffic, chain_traffic):
        with pytest.raises(ValueError, match=refusal(name, repr(value))) as caught:
            function(**arguments)
        assert ("type" in str(caught.value)) == (type(value) is not int)


@pytest.mark.parametrize("value", [-1, True, 1.0, None])
def test_side_inputs_is_a_natural_number(value: Any) -> None:
    with pytest.raises(ValueError, match=refusal("side_inputs", repr(value))):
        chain_traffic(4, T, 1, value)


def test_more_groups_than_operators_are_refused_with_both_numbers() -> None:
    for function in (fusion_traffic, chain_traffic):
        with pytest.raises(ValueError, match=refusal("fused_groups", "fused_groups = 5", "num_ops = 4")):
            function(4, T, 5)
        with pytest.raises(ValueError, match=refusal("fused_groups", "2990 bits", "num_ops = 4")):
            function(4, T, 10**900)


# -- unequal boundaries --------------------------------------------------------------------------------------

boundary_lists = st.lists(st.integers(min_value=1, max_value=6), max_size=8)


@given(boundary_lists, st.data())
def test_the_best_cuts_are_those_of_enumeration(boundaries: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(boundaries)))

    def cost(cuts: Sequence[int]) -> int:
        return boundary_traffic(boundaries, cuts)["intermediate_bytes"]

    # combinations() comes in lexicographic order and min() keeps the first: ties go to the earlier cuts.
    assert best_cuts(boundaries, count) == min(combinations(range(len(boundaries)), count), key=cost)


@given(op_counts, sizes, st.data())
def test_equal_boundaries_cost_what_fusion_traffic_says(num_ops: int, size: int, data: st.DataObject) -> None:
    positions = list(range(num_ops - 1))
    cuts = data.draw(st.lists(st.sampled_from(positions), unique=True)) if positions else []
    expected = fusion_traffic(num_ops, size, len(cuts) + 1)
    assert boundary_traffic([size] * (num_ops - 1), cuts) == expected


def test_unequal_boundaries() -> None:
    boundaries = [64 * MIB, 8 * MIB, 32 * MIB]
    assert boundary_traffic(boundaries, [2, 1]) == {
        "launches": 3,
        "materialized_boundaries": 2,
        "intermediate_bytes": 80 * MIB,
    }
    assert best_cuts(boundaries, 1) == (1,)
    assert best_cuts(boundaries, 2) == (1, 2)


@pytest.mark.parametrize(
    ("boundaries", "cuts", "name"),
    [
        ([1, 0], [], "boundary_bytes[1]"),
        ([1, 2.0], [], "boundary_bytes[1]"),
        (5, [], "boundary_bytes"),
        ("12", [], "boundary_bytes"),
        ([1, 2], [2], "cuts[0]"),
        ([1, 2], [0, -1], "cuts[1]"),
        ([1, 2], [True], "cuts[0]"),
        ([1, 2], [0, 0], "cuts"),
        ([1, 2], 1, "cuts"),
    ],
)
def test_bad_boundaries_and_cuts_are_refused(boundaries: Any, cuts: Any, name: str) -> None:
    with pytest.raises(ValueError, match=refusal(name)):
        boundary_traffic(boundaries, cuts)


@pytest.mark.parametrize("count", [-1, 3, 1.0, None])
def test_a_bad_number_of_cuts_is_refused(count: Any) -> None:
    with pytest.raises(ValueError, match=refusal("num_cuts", repr(count))):
        best_cuts([1, 2], count)


# -- a graph -------------------------------------------------------------------------------------------------


def totals(operators: list[Operator], tensor_bytes: dict[str, int], *plans: list[list[str]]) -> list[int]:
    """Total MiB of each plan; the graph's output is ``y``."""
    results = [plan_traffic(operators, plan, tensor_bytes, ["y"]) for plan in plans]
    assert len({result["compulsory_bytes"] for result in results}) == 1
    return [result["total_bytes"] // MIB for result in results]


def test_checkpoint_3_a_second_reader_makes_the_boundary_formula_wrong() -> None:
    size = dict.fromkeys(["x", "up", "s", "g", "y"], 32 * MIB)
    eager = [op("silu", "x", output="g"), op("mul", "g", "up", output="y")]
    assert totals(eager, size, [["silu"], ["mul"]], [["silu", "mul"]]) == [160, 96]
    decomposed = [
        op("sigmoid", "x", output="s"),
        op("mul", "x", "s", output="g"),
        op("mul_up", "g", "up", output="y"),
    ]
    plans = [["sigmoid"], ["mul"], ["mul_up"]], [["sigmoid", "mul", "mul_up"]]
    assert totals(decomposed, size, *plans) == [256, 96]
    unfused = plan_traffic(decomposed, plans[0], size, ["y"])
    assert unfused["avoidable_bytes"] == 160 * MIB
    assert fusion_traffic(3, 32 * MIB, 3)["intermediate_bytes"] == 128 * MIB


def gemm_bias_gelu(*plan: list[str]) -> PlanTraffic:
    m, k, n = 4096, 1024, 4096
    size = {"a": 2 * m * k, "b": 2 * k * n, "bias": 2 * n, **dict.fromkeys(["c", "d", "y"], 2 * m * n)}
    operators = [
        op("gemm", "a", "b", output="c"),
        op("add", "c", "bias", output="d"),
        op("gelu", "d", output="y"),
    ]
    return plan_traffic(operators, plan, size, ["y"])


def test_checkpoint_4() -> None:
    three = gemm_bias_gelu(["gemm"], ["add"], ["gelu"])
    two = gemm_bias_gelu(["gemm", "add"], ["gelu"])
    one = gemm_bias_gelu(["gemm", "add", "gelu"])
    assert [plan["total_bytes"] for plan in (three, two, one)] == [184557568, 117448704, 50339840]
    assert three["total_bytes"] / one["total_bytes"] == pytest.approx(3.666, abs=5e-4)
    assert two["total_bytes"] / one["total_bytes"] == pytest.approx(2.333, abs=5e-4)
    assert (three["avoidable_bytes"], one["avoidable_bytes"]) == (128 * MIB, 0)


def test_checkpoint_7_fan_out() -> None:
    fan_out = [op("f", "x", output="t"), op("g", "t", output="u"), op("h", "t", output="v")]
    size = dict.fromkeys("xtuv", T)
    plans: dict[str, list[list[str]]] = {
        "unfused": [["f"], ["g"], ["h"]],
        "kept on chip": [["f", "g", "h"]],
        "t written for h": [["f", "g"], ["h"]],
        "f alone": [["f"], ["g", "h"]],
        "recomputed": [["f", "g"], ["f", "h"]],
    }
    results = {name: plan_traffic(fan_out, plan, size, ["u", "v"]) for name, plan in plans.items()}
    assert {name: result["total_bytes"] // MIB for name, result in results.items()} == {
        "unfused": 384,
        "kept on chip": 192,
        "t written for h": 320,
        "f alone": 320,
        "recomputed": 256,
    }
    assert results["t written for h"]["kernels"] == [
        {
            "operators": ("f", "g"),
            "reads": {"x": T},
            "writes": {"t": T, "u": T},
            "read_bytes": T,
            "write_bytes": 2 * T,
        },
        {"operators": ("h",), "reads": {"t": T}, "writes": {"v": T}, "read_bytes": T, "write_bytes": T},
    ]
    assert results["t written for h"]["materialized"] == ("t", "u", "v")
    assert results["t written for h"]["launches"] == 2
    assert results["recomputed"]["materialized"] == ("u", "v")


def test_checkpoint_8_naive_softmax() -> None:
    row, matrix = 4 * 4096, 4 * 4096 * 4096
    size = {"x": matrix, "m": row, "d": matrix, "e": matrix, "s": row, "y": matrix}
    softmax = [
        op("max", "x", output="m"),
        op("sub", "x", "m", output="d"),
        op("exp", "d", output="e"),
        op("sum", "e", output="s"),
        op("div", "e", "s", output="y"),
    ]
    naive = plan_traffic(softmax, [[operator.name] for operator in softmax], size, ["y"])
    fused = plan_traffic(softmax, [[operator.name for operator in softmax]], size, ["y"])
    assert (naive["total_bytes"], fused["total_bytes"]) == (536936448, 134217728)


def test_checkpoint_17_by_counting() -> None:
    chain = [
        op("bias", "x", output="a"),
        op("gelu", "a", output="b"),
        op("scale", "b", output="c"),
        op("residual", "c", "r", output="y"),
    ]
    four = [["bias"], ["gelu"], ["scale"], ["residual"]]
    two = [["bias", "gelu"], ["scale", "residual"]]
    assert totals(chain, dict.fromkeys("xabcry", T), four, two, [[*joined(*four)]]) == [576, 320, 192]


@given(st.integers(1, 10), sizes, st.data())
def test_counting_a_unary_chain_gives_both_formulas(num_ops: int, size: int, data: st.DataObject) -> None:
    chain = [op(f"op{i}", f"t{i}", output=f"t{i + 1}") for i in range(num_ops)]
    cuts = sorted(data.draw(st.sets(st.integers(1, num_ops - 1)))) if num_ops > 1 else []
    edges = [0, *cuts, num_ops]
    groups = [[f"op{i}" for i in range(a, b)] for a, b in pairwise(edges)]
    counted = plan_traffic(chain, groups, {f"t{i}": size for i in range(num_ops + 1)}, [f"t{num_ops}"])
    formula = chain_traffic(num_ops, size, len(groups))
    assert counted["launches"] == formula["launches"]
    assert counted["avoidable_bytes"] == fusion_traffic(num_ops, size, len(groups))["intermediate_bytes"]
    assert counted["compulsory_bytes"] == formula["compulsory_bytes"]
    assert counted["total_bytes"] == formula["total_bytes"]
    assert counted["total_bytes"] == counted["read_bytes"] + counted["write_bytes"]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Operator], list[list[str]], dict[str, int], list[str]]:
    """A random graph whose every tensor has a size, a plan that runs it in order, and some outputs."""
    count = draw(st.integers(1, 7))
    tensors = ["in0", "in1"]
    operators = []
    for i in range(count):
        inputs = draw(st.lists(st.sampled_from(tensors), min_size=1, max_size=3))
        operators.append(Operator(f"op{i}", inputs, f"t{i}"))
        tensors.append(f"t{i}")
    cuts = sorted(draw(st.sets(st.integers(1, count - 1)))) if count > 1 else []
    edges = [0, *cuts, count]
    plan = [[f"op{i}" for i in range(a, b)] for a, b in pairwise(edges)]
    outputs = draw(st.lists(st.sampled_from(tensors[2:]), min_size=1, unique=True))
    return operators, plan, {name: draw(st.integers(0, 9)) for name in tensors}, outputs


@given(graphs())
def test_fusing_neighbours_never_moves_more_and_nothing_beats_the_compulsory_bytes(
    graph: tuple[list[Operator], list[list[str]], dict[str, int], list[str]],
) -> None:
    operators, plan, size, outputs = graph
    used = {tensor for operator in operators for tensor in operator.inputs}
    size = {name: count for name, count in size.items() if name in used or name.startswith("t")}
    separate = plan_traffic(operators, plan, size, outputs)
    assert separate["avoidable_bytes"] >= 0
    if len(plan) > 1:
        fused = plan_traffic(operators, [plan[0] + plan[1], *plan[2:]], size, outputs)
        assert fused["total_bytes"] <= separate["total_bytes"]
    everything = plan_traffic(operators, [[*joined(*plan)]], size, outputs)
    assert everything["avoidable_bytes"] == 0
    assert everything["total_bytes"] == separate["compulsory_bytes"]


@given(graphs())
def test_every_tensor_read_from_memory_was_put_there_before(
    graph: tuple[list[Operator], list[list[str]], dict[str, int], list[str]],
) -> None:
    operators, plan, size, outputs = graph
    result = plan_traffic(operators, plan, size, outputs)
    in_memory = {"in0", "in1"}
    for kernel in result["kernels"]:
        assert in_memory.issuperset(kernel["reads"])
        assert in_memory.isdisjoint(kernel["writes"])
        in_memory.update(kernel["writes"])
    read = {tensor for kernel in result["kernels"] for tensor in kernel["reads"]}
    assert set(outputs) <= in_memory
    assert in_memory - {"in0", "in1"} <= read | set(outputs)


def test_the_first_of_several_producers_writes() -> None:
    operators = [op("f", "x", output="t"), op("g", "t", output="u"), op("h", "t", output="v")]
    plan = [["f", "g"], ["f"], ["h"]]
    result = plan_traffic(operators, plan, dict.fromkeys("xtuv", 1), ["u", "v"])
    assert [kernel["writes"] for kernel in result["kernels"]] == [{"t": 1, "u": 1}, {}, {"v": 1}]


def test_the_order_inside_a_kernel_and_the_spelling_of_inputs_do_not_matter() -> None:
    operators = [Operator("square", ["x", "x"], "y"), op("f", "y", output="z")]
    size = {"x": 4, "y": 4, "z": 4, "unrelated": 1}
    result = plan_traffic(operators, [["f", "square"]], size, ["z", "x"])
    assert (result["kernels"][0]["reads"], result["kernels"][0]["writes"]) == ({"x": 4}, {"z": 4})
    assert result["compulsory_bytes"] == 8


F, G = op("f", "x", output="t"), op("g", "t", output="y")
SIZE = {"x": 1, "t": 1, "y": 1}


@pytest.mark.parametrize(
    ("changed", "name", "told"),
    [
        ({"operators": []}, "operators", ()),
        ({"operators": [F, "g"]}, "operators[1]", ("str",)),
        ({"operators": [F, op("f", "t", output="y")]}, "operators", ("'f'",)),
        ({"operators": [F, op("g", "x", output="t")]}, "operators", ("'f'", "'g'", "'t'")),
        ({"operators": [op("f", "y", output="t"), G]}, "operators", ("f", "g")),
        ({"operators": [F, op("g", "y", output="y")]}, "operators", ("g → g",)),
        ({"kernels": [["f"]]}, "kernels", ("'g'",)),
        ({"kernels": [["f"], ["h"]]}, "kernels[1]", ("'h'",)),
        ({"kernels": [["f", "f"], ["g"]]}, "kernels[0]", ("'f'",)),
        ({"kernels": [["f", "g"], []]}, "kernels[1]", ()),
        ({"kernels": ["f", "g"]}, "kernels[0]", ("'f'",)),
        ({"kernels": [["g"], ["f"]]}, "kernels", ("kernels[0]", "'g'", "'t'", "kernels[1]", "'f'")),
        ({"kernels": [["f", 3]]}, "kernels[0][1]", ("3",)),
        ({"tensor_bytes": {"x": 1, "t": 1}}, "tensor_bytes", ("'y'",)),
        ({"tensor_bytes": {**SIZE, "t": -1}}, "tensor_bytes['t']", ("-1",)),
        ({"tensor_bytes": {**SIZE, "t": 1.0}}, "tensor_bytes['t']", ("1.0",)),
        ({"tensor_bytes": [1, 1, 1]}, "tensor_bytes", ("list",)),
        ({"outputs": ["z"]}, "outputs", ("'z'",)),
        ({"outputs": "y"}, "outputs", ("'y'",)),
    ],
    ids=str,
)
def test_a_bad_plan_is_refused_by_name(changed: dict[str, Any], name: str, told: tuple[str, ...]) -> None:
    arguments: dict[str, Any] = {
        "operators": [F, G],
        "kernels": [["f"], ["g"]],
        "tensor_bytes": SIZE,
        "outputs": ["y"],
    }
    plan_traffic(**arguments)
    with pytest.raises(ValueError, match=refusal(name, *told)):
        plan_traffic(**{**arguments, **changed})


def test_a_kernel_around_another_is_refused() -> None:
    chain = [op("f", "x", output="t"), op("g", "t", output="u"), op("h", "u", output="y")]
    for plan in ([["f", "h"], ["g"]], [["g"], ["f", "h"]]):
        with pytest.raises(ValueError, match=refusal("kernels")):
            plan_traffic(chain, plan, dict.fromkeys("xtuy", 1), ["y"])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("", ["x"], "y"), "name"),
        (("f", "x", "y"), "inputs"),
        (("f", [1], "y"), "inputs[0]"),
        (("f", ["x"], None), "output"),
    ],
)
def test_a_bad_operator_is_refused(arguments: Any, name: str) -> None:
    with pytest.raises(ValueError, match=refusal(name)):
        Operator(*arguments)
