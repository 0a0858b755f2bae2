"""Q1: the bytes that kernels read and write, for chains and for graphs of operators.

Everything here counts *logical* bytes: a kernel reads each tensor it needs from memory once and writes each
tensor that others need once. Caches, padding and partial reuse make real DRAM traffic differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypedDict

from lessons_lib.base.units import quotient
from lessons_lib.base.validate import bad_argument, require_int, require_items, require_name, shown

# -- a chain of operators ------------------------------------------------------------------------------------


class FusionTraffic(TypedDict):
    """What ``fusion_traffic`` and ``boundary_traffic`` return."""

    launches: int
    materialized_boundaries: int
    intermediate_bytes: int


class ChainTraffic(TypedDict):
    """What ``chain_traffic`` returns."""

    launches: int
    materialized_boundaries: int
    intermediate_bytes: int
    compulsory_bytes: int
    total_bytes: int
    bytes_ratio: float


def fusion_traffic(num_ops: int, tensor_bytes: int, fused_groups: int) -> FusionTraffic:
    """Bytes written and read again at the boundaries between the groups of a chain of operators.

    ``intermediate_bytes = 2 x (fused_groups - 1) x tensor_bytes``: at each boundary between two groups the
    intermediate tensor is written once by one kernel and read once by the next.

    Args:
        num_ops: operators in the chain, at least 1.
        tensor_bytes: size of every boundary tensor in bytes, at least 1.
        fused_groups: groups that the chain is cut into, from 1 (all fused) to ``num_ops`` (none fused).

    Returns:
        ``launches``: kernels launched, one a group; ``materialized_boundaries``: tensors that pass through
        memory between groups; ``intermediate_bytes``: their bytes, written and read.

    Assumes a chain without branches, boundaries of equal size, one kernel a group. The input and the output
    of the chain are not counted (``chain_traffic`` does), and time does not fall in the same ratio as bytes.
    ``num_ops`` only bounds ``fused_groups``: it does not enter the formula.

    Raises:
        ValueError: an argument is not an integer (``True`` and ``1.0`` are none) or is out of range.
    """
    num_ops = require_int("num_ops", num_ops, 1)
    tensor_bytes = require_int("tensor_bytes", tensor_bytes, 1)
    fused_groups = _checked_group_count(fused_groups, num_ops)
    boundaries = fused_groups - 1
    return {
        "launches": fused_groups,
        "materialized_boundaries": boundaries,
        "intermediate_bytes": 2 * boundaries * tensor_bytes,
    }


def chain_traffic(num_ops: int, tensor_bytes: int, fused_groups: int, side_inputs: int = 0) -> ChainTraffic:
    """All bytes that a chain moves: its boundaries, and what no fusion can take away.

    ``compulsory_bytes = (1 input + 1 output + side_inputs) x tensor_bytes``, whatever the grouping.

    Args:
        num_ops, tensor_bytes, fused_groups: as in ``fusion_traffic``.
        side_inputs: further tensors read from memory along the chain (the residual of a residual addition),
            0 or more, each of ``tensor_bytes`` and each read once.

    Returns:
        ``launches``, ``materialized_boundaries`` and ``intermediate_bytes`` as in ``fusion_traffic``;
        ``compulsory_bytes``; ``total_bytes``, the sum of the two; ``bytes_ratio``: total of the unfused
        chain / this total. That is a ratio of *bytes*: a ceiling on the speed-up of a chain bound by memory,
        not a prediction of time.

    Raises:
        ValueError: as ``fusion_traffic``, or ``side_inputs`` is not an integer or is negative.
    """
    boundary = fusion_traffic(num_ops, tensor_bytes, fused_groups)
    unfused = fusion_traffic(num_ops, tensor_bytes, num_ops)
    compulsory = (2 + require_int("side_inputs", side_inputs, 0)) * int(tensor_bytes)
    total = boundary["intermediate_bytes"] + compulsory
    return {
        "launches": boundary["launches"],
        "materialized_boundaries": boundary["materialized_boundaries"],
        "intermediate_bytes": boundary["intermediate_bytes"],
        "compulsory_bytes": compulsory,
        "total_bytes": total,
        "bytes_ratio": quotient(unfused["intermediate_bytes"] + compulsory, total),
    }


def boundary_traffic(boundary_bytes: Sequence[int], cuts: Sequence[int]) -> FusionTraffic:
    """As ``fusion_traffic``, for a chain whose boundaries differ in size: 2 x the sum of those cut.

    Args:
        boundary_bytes: size in bytes of the tensor at each boundary; item ``i`` lies between operators ``i``
            and ``i + 1`` (counted from 0), so that a chain of n operators has n - 1 items.
        cuts: positions in ``boundary_bytes`` where the chain is cut, that is, where the tensor is
            materialized; in any order, each at most once.

    Raises:
        ValueError: a size is not an integer or is below 1; a cut is no position, or stands there twice.
    """
    sizes = _boundary_sizes(boundary_bytes)
    positions: list[int] = []
    for index, cut in enumerate(require_items("cuts", cuts)):
        position = require_int(f"cuts[{index}]", cut, 0)
        if position >= len(sizes):
            raise bad_argument(
                f"cuts[{index}]",
                zh=f"没有位置 {position}：boundary_bytes 只有 {len(sizes)} 项，位置从 0 数起",
                en=f"there is no position {position}: boundary_bytes has {len(sizes)} items, counted from 0",
            )
        if position in positions:
            raise bad_argument("cuts", zh=f"位置 {position} 出现了两次", en=f"position {position} appears twice")
        positions.append(position)
    return {
        "launches": len(positions) + 1,
        "materialized_boundaries": len(positions),
        "intermediate_bytes": 2 * sum(sizes[position] for position in positions),
    }


def best_cuts(boundary_bytes: Sequence[int], num_cuts: int) -> tuple[int, ...]:
    """The ``num_cuts`` positions to cut at for the fewest bytes: those of the smallest boundaries.

    Returns ascending positions in ``boundary_bytes``; among equal boundaries the earlier ones, so that the
    same question always has the same answer.

    Raises:
        ValueError: a size is not an integer or is below 1; ``num_cuts`` is not an integer from 0 to the
            number of boundaries.
    """
    sizes = _boundary_sizes(boundary_bytes)
    count = require_int("num_cuts", num_cuts, 0, len(sizes))
    smallest_first = sorted(range(len(sizes)), key=sizes.__getitem__)
    return tuple(sorted(smallest_first[:count]))


def _checked_group_count(fused_groups: object, num_ops: int) -> int:
    count = require_int("fused_groups", fused_groups, 1)
    if count > num_ops:
        given = f"fused_groups = {shown(count)}, num_ops = {shown(num_ops)}"
        raise bad_argument(
            "fused_groups",
            zh=f"融合组数不能多于算子数，收到的是 {given}",
            en=f"there cannot be more groups than operators, got {given}",
        )
    return count


def _boundary_sizes(boundary_bytes: object) -> list[int]:
    return [
        require_int(f"boundary_bytes[{index}]", size, 1)
        for index, size in enumerate(require_items("boundary_bytes", boundary_bytes))
    ]


# -- a graph of operators ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operator:
    """One operator of a graph: the tensors it reads and the one tensor it produces, all by name.

    ``Operator("mul", ("gate", "x"), "y")``; a tensor that is read twice may be named once or twice.

    Raises:
        ValueError: a name is not a string or is blank, or ``inputs`` is one string and not a list or tuple.
    """

    name: str
    inputs: Sequence[str]
    output: str

    def __post_init__(self) -> None:
        require_name("name", self.name)
        inputs = tuple(
            require_name(f"inputs[{index}]", tensor)
            for index, tensor in enumerate(require_items("inputs", self.inputs))
        )
        require_name("output", self.output)
        object.__setattr__(self, "inputs", inputs)


class KernelTraffic(TypedDict):
    """One kernel of ``plan_traffic``: tensors read and written, name -> bytes, in the order first met."""

    operators: tuple[str, ...]
    reads: dict[str, int]
    writes: dict[str, int]
    read_bytes: int
    write_bytes: int


class PlanTraffic(TypedDict):
    """What ``plan_traffic`` returns."""

    launches: int
    kernels: list[KernelTraffic]
    materialized: tuple[str, ...]
    read_bytes: int
    write_bytes: int
    total_bytes: int
    compulsory_bytes: int
    avoidable_bytes: int


def plan_traffic(
    operators: Sequence[Operator],
    kernels: Sequence[Sequence[str]],
    tensor_bytes: Mapping[str, int],
    outputs: Sequence[str],
) -> PlanTraffic:
    """The bytes that a fusion plan moves: which kernel reads and writes which tensors.

    A kernel reads once each tensor that its operators need and that it does not produce itself. It writes
    once each tensor it produces that is an output, or that another kernel needs without producing it; when
    several kernels produce such a tensor, the first writes it. Everything else stays on chip.

    Args:
        operators: the graph, in any order; a tensor that no operator produces is a graph input.
        kernels: the plan, in the order of launching: groups of operator names. An operator named in several
            kernels is recomputed in each; the order within a group does not matter.
        tensor_bytes: bytes of every tensor of the graph, by name; 0 for one too small to count.
        outputs: tensors that must be in memory at the end. A graph input among them is there already.

    Returns:
        ``launches``; ``kernels``: a ``KernelTraffic`` each; ``materialized``: the tensors written, in order;
        ``read_bytes``, ``write_bytes`` and ``total_bytes`` of the plan; ``compulsory_bytes``: each graph
        input that is used read once and each output written once, which no plan avoids; ``avoidable_bytes``:
        the rest, that is, intermediates written and read, and anything read more than once.

    Assumes that a kernel can keep on chip what it does not write; whether it can is another question: Q2.

    Raises:
        ValueError: an unknown or repeated name, two operators with one name or one output, an operator in no
            kernel, a tensor without a size, a cycle, or a kernel that reads what only a later one writes.
    """
    graph = _checked_graph(operators)
    groups = _checked_kernels(kernels, graph)
    produced = [{graph[name].output: None for name in group} for group in groups]
    needed = [_inputs_from_memory(graph, group, made) for group, made in zip(groups, produced, strict=True)]
    graph_inputs = _graph_inputs(graph)
    sizes = _checked_sizes(tensor_bytes, [op.output for op in graph.values()] + list(graph_inputs))
    results = _checked_outputs(outputs, sizes)

    writer = _first_producer(produced)
    _check_order(groups, needed, writer)
    in_memory = set(results).union(*needed)
    plan = [
        _kernel_traffic(
            group,
            reads={tensor: sizes[tensor] for tensor in needed[index]},
            writes={t: sizes[t] for t in produced[index] if t in in_memory and writer[t] == index},
        )
        for index, group in enumerate(groups)
    ]
    compulsory = sum(sizes[t] for t in graph_inputs) + sum(sizes[t] for t in results if t in writer)
    return _plan_total(plan, compulsory)


def _kernel_traffic(group: tuple[str, ...], reads: dict[str, int], writes: dict[str, int]) -> KernelTraffic:
    return {
        "operators": group,
        "reads": reads,
        "writes": writes,
        "read_bytes": sum(reads.values()),
        "write_bytes": sum(writes.values()),
    }


def _plan_total(plan: list[KernelTraffic], compulsory: int) -> PlanTraffic:
    read_bytes = sum(kernel["read_bytes"] for kernel in plan)
    write_bytes = sum(kernel["write_bytes"] for kernel in plan)
    return {
        "launches": len(plan),
        "kernels": plan,
        "materialized": tuple(tensor for kernel in plan for tensor in kernel["writes"]),
        "read_bytes": read_bytes,
        "write_bytes": write_bytes,
        "total_bytes": read_bytes + write_bytes,
        "compulsory_bytes": compulsory,
        "avoidable_bytes": read_bytes + write_bytes - compulsory,
    }


# Sets of tensors are dicts without values: a dict keeps the order, so that results are the same every time.


def _inputs_from_memory(graph: dict[str, Operator], group: tuple[str, ...], made: dict[str, None]) -> dict[str, None]:
    return {tensor: None for name in group for tensor in graph[name].inputs if tensor not in made}


def _graph_inputs(graph: dict[str, Operator]) -> dict[str, None]:
    made = {operator.output for operator in graph.values()}
    return {tensor: None for operator in graph.values() for tensor in operator.inputs if tensor not in made}


def _first_producer(produced: list[dict[str, None]]) -> dict[str, int]:
    """Tensor -> index of the first kernel that produces it."""
    first: dict[str, int] = {}
    for index, made in enumerate(produced):
        for tensor in made:
            first.setdefault(tensor, index)
    return first


def _checked_graph(operators: object) -> dict[str, Operator]:
    """Operators by name, once it is sure that names and outputs are unique and nothing depends on itself."""
    graph: dict[str, Operator] = {}
    producer: dict[str, str] = {}
    for index, operator in enumerate(require_items("operators", operators)):
        if not isinstance(operator, Operator):
            kind = type(operator).__name__
            raise bad_argument(
                f"operators[{index}]",
                zh=f"需要 Operator，收到的是 {kind}",
                en=f"it must be an Operator, got {kind}",
            )
        if operator.name in graph:
            raise bad_argument(
                "operators",
                zh=f"有两个算子都叫 {operator.name!r}",
                en=f"two operators are named {operator.name!r}",
            )
        if operator.output in producer:
            first = producer[operator.output]
            raise bad_argument(
                "operators",
                zh=f"{first!r} 和 {operator.name!r} 都产生张量 {operator.output!r}",
                en=f"{first!r} and {operator.name!r} both produce tensor {operator.output!r}",
            )
        graph[operator.name] = operator
        producer[operator.output] = operator.name
    if not graph:
        raise bad_argument("operators", zh="至少要有一个算子", en="there must be at least one operator")
    _check_acyclic(graph, producer)
    return graph


def _check_acyclic(graph: dict[str, Operator], producer: dict[str, str]) -> None:
    before = {op.name: [producer[tensor] for tensor in op.inputs if tensor in producer] for op in graph.values()}
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        path = " → ".join(error.args[1])
        raise bad_argument(
            "operators", zh=f"算子之间有环：{path}", en=f"the operators form a cycle: {path}"
        ) from None


def _checked_kernels(kernels: object, graph: dict[str, Operator]) -> list[tuple[str, ...]]:
    groups = [
        _checked_group(f"kernels[{index}]", group, graph)
        for index, group in enumerate(require_items("kernels", kernels))
    ]
    covered = {name for group in groups for name in group}
    missing = [name for name in graph if name not in covered]
    if missing:
        listed = ", ".join(map(repr, missing))
        raise bad_argument(
            "kernels",
            zh=f"这些算子不在任何核函数里：{listed}",
            en=f"these operators are in no kernel: {listed}",
        )
    return groups


def _checked_group(argument: str, group: object, graph: dict[str, Operator]) -> tuple[str, ...]:
    names: list[str] = []
    for index, item in enumerate(require_items(argument, group)):
        name = require_name(f"{argument}[{index}]", item)
        if name not in graph:
            raise bad_argument(argument, zh=f"没有名为 {name!r} 的算子", en=f"there is no operator named {name!r}")
        if name in names:
            raise bad_argument(argument, zh=f"算子 {name!r} 出现了两次", en=f"operator {name!r} appears twice")
        names.append(name)
    if not names:
        raise bad_argument(argument, zh="核函数里没有算子", en="the kernel has no operator")
    return tuple(names)


def _checked_sizes(tensor_bytes: object, tensors: list[str]) -> dict[str, int]:
    if not isinstance(tensor_bytes, Mapping):
        kind = type(tensor_bytes).__name__
        raise bad_argument(
            "tensor_bytes",
            zh=f"需要字典（张量名 → 字节数），收到的是 {kind}",
            en=f"it must be a dict (tensor name -> bytes), got {kind}",
        )
    missing = [tensor for tensor in tensors if tensor not in tensor_bytes]
    if missing:
        listed = ", ".join(map(repr, missing))
        raise bad_argument(
            "tensor_bytes", zh=f"缺少这些张量的字节数：{listed}", en=f"these tensors have no size: {listed}"
        )
    return {tensor: require_int(f"tensor_bytes[{tensor!r}]", tensor_bytes[tensor], 0) for tensor in tensors}


def _checked_outputs(outputs: object, sizes: dict[str, int]) -> dict[str, None]:
    results: dict[str, None] = {}
    for index, item in enumerate(require_items("outputs", outputs)):
        tensor = require_name(f"outputs[{index}]", item)
        if tensor not in sizes:
            raise bad_argument("outputs", zh=f"图中没有张量 {tensor!r}", en=f"the graph has no tensor {tensor!r}")
        results[tensor] = None
    return results


def _check_order(groups: list[tuple[str, ...]], needed: list[dict[str, None]], writer: dict[str, int]) -> None:
    """Refuse a plan in which a kernel reads a tensor that no earlier kernel has produced."""
    for index, tensors in enumerate(needed):
        for tensor in tensors:
            if writer.get(tensor, -1) >= index:
                later = writer[tensor]
                raise bad_argument(
                    "kernels",
                    zh=f"kernels[{index}] {list(groups[index])} 要读 {tensor!r}，"
                    f"但它到 kernels[{later}] {list(groups[later])} 才产生",
                    en=f"kernels[{index}] {list(groups[index])} reads {tensor!r}, "
                    f"which only kernels[{later}] {list(groups[later])} produces",
                )
