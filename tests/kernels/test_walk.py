"""The tile walk: blocks that cover each output once, and that are what the kernels load and store."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lessons_lib.base.gpus import A100
from lessons_lib.kernels.launch import (
    ELEMENT_BYTES,
    GROUP_M,
    KERNELS,
    TWO_PASS_BLOCK,
    LinearConfig,
    elementwise_launch,
    linear_configs,
    row_launch,
)
from lessons_lib.kernels.mode import TritonSetup
from lessons_lib.kernels.walk import (
    Access,
    Operand,
    ProgramWalk,
    all_stores,
    elements_read,
    first_element,
    walk,
    walk_launch,
)
from lessons_lib.reuse.gemm import gemm_traffic
from lessons_lib.reuse.rows import rmsnorm_traffic, softmax_traffic
from lessons_lib.traffic.model import chain_traffic

WRITTEN = {"chain": ["y"], "rmsnorm": ["y", "sum"], "softmax": ["y"], "linear": ["y"], "epilogue": ["y"]}
Case = tuple[Any, tuple[int, ...], Any]

powers = st.sampled_from([1, 2, 4, 8, 16, 32])
sizes = st.integers(1, 40)
elementwise = st.tuples(
    st.sampled_from(["chain", "epilogue"]), st.tuples(sizes, sizes), st.none() | st.tuples(powers, powers)
)
row_wise = st.tuples(st.sampled_from(["rmsnorm", "softmax"]), st.tuples(sizes, sizes), st.none() | st.tuples(powers))
gemms = st.tuples(st.just("linear"), st.tuples(sizes, sizes, sizes), st.none() | st.tuples(powers, powers, powers))
cases = st.one_of(elementwise, row_wise, gemms)


def every_access(kernel: Any, shape: tuple[int, ...], tile: Any) -> Iterator[tuple[int, Access]]:
    for program in range(walk_launch(kernel, shape, tile).programs):
        for step in walk(kernel, shape, program, tile=tile).steps:
            for access in step.loads + step.stores:
                yield program, access


def everything(operand: Operand) -> set[tuple[int, int]]:
    rows, columns = operand.shape
    return {(row, column) for row in range(rows) for column in range(columns)}


def refusal(argument: str) -> str:
    return rf"(?s)^参数 {re.escape(argument)} .*\n{re.escape(argument)} "


# -- what holds for every kernel --------------------------------------------------------------------------------


@given(cases)
def test_the_stores_cover_every_output_exactly_once(case: Case) -> None:
    seen: dict[str, Counter[tuple[int, int]]] = {}
    operands = {}
    for _, store in all_stores(*case):
        operands[store.operand.name] = store.operand
        seen.setdefault(store.operand.name, Counter()).update(store.indices())
    assert sorted(seen) == sorted(WRITTEN[case[0]])
    for name, operand in operands.items():
        assert seen[name] == Counter(everything(operand))


@given(cases)
def test_every_input_is_read_by_as_many_programs_as_told_and_as_often(case: Case) -> None:
    readers: dict[Operand, dict[tuple[int, int], list[int]]] = {}
    for program, access in every_access(*case):
        for index in access.indices():
            readers.setdefault(access.operand, {}).setdefault(index, []).append(program)
    kernel, shape, tile = case
    assert set(readers) == set(walk(kernel, shape, 0, tile=tile).operands)
    for operand, programs in readers.items():
        assert set(programs) == everything(operand)
        for by in programs.values():
            assert set(Counter(by).values()) == {operand.times}
            assert len(set(by)) == operand.programs
    total = {operand.name: sum(map(len, by.values())) for operand, by in readers.items() if not operand.written}
    assert elements_read(kernel, shape, tile) == total


@given(cases)
def test_a_block_is_its_elements_and_its_masked_lanes(case: Case) -> None:
    for _, access in every_access(*case):
        assert access.elements == len(list(access.indices()))
        assert access.elements >= 1, "a program that moves nothing would not be launched"
        assert access.masked == access.operand.block[0] * access.operand.block[1] - access.elements
        assert access.masked >= 0


@given(cases)
def test_a_step_is_one_of_the_program_s_steps_and_only_the_last_need_store(case: Case) -> None:
    kernel, shape, tile = case
    steps = walk(kernel, shape, 0, tile=tile).steps
    for number, step in enumerate(steps):
        seen = walk(kernel, shape, 0, number, tile)
        assert (seen.phase, seen.loads, seen.stores) == (step.phase, step.loads, step.stores)
        assert seen.accesses == step.loads + step.stores
        assert bool(step.stores) == (step.phase in ("whole", "write", "epilogue"))


@given(cases, st.data())
def test_the_first_element_is_where_the_program_s_stores_begin(case: Case, data: st.DataObject) -> None:
    launch = walk_launch(*case)
    program = data.draw(st.integers(0, launch.programs - 1))
    stores = [store for step in walk(case[0], case[1], program, tile=case[2]).steps for store in step.stores]
    first = min((store.rows.start, store.columns.start) for store in stores)
    assert first_element(launch, program) == first


# -- each kernel ------------------------------------------------------------------------------------------------


def phases(found: ProgramWalk) -> list[str]:
    return [step.phase for step in found.steps]


def test_a_chain_loads_two_matrices_and_two_vectors_and_stores_one_matrix() -> None:
    found = walk("chain", (40, 50), 4, tile=(16, 16))
    assert phases(found) == ["whole"]
    spans = [(a.operand.name, list(a.rows.inside)[:1], a.columns.start, a.elements) for a in found.accesses]
    assert spans == [
        ("x", [16], 0, 256),
        ("bias", [0], 0, 16),
        ("scale", [0], 0, 16),
        ("residual", [16], 0, 256),
        ("y", [16], 0, 256),
    ]
    assert {a.operand.name: a.operand.programs for a in found.accesses}["bias"] == 3, "three tiles above each other"


def test_lanes_beyond_both_edges_are_masked() -> None:
    (corner,) = walk("epilogue", (20, 18), 3, tile=(16, 16)).stores
    assert (corner.rows.inside, corner.columns.inside) == (range(16, 20), range(16, 18))
    assert (corner.elements, corner.masked) == (8, 248)


def test_a_row_that_fits_is_read_once_and_a_longer_one_twice() -> None:
    assert phases(walk("softmax", (3, 16384), 2)) == ["whole"]
    long = walk("softmax", (3, 16385), 2)
    assert phases(long) == ["reduce"] * 5 + ["write"] * 5
    assert [step.loads[0].columns.start for step in long.steps] == [*range(0, 16385, TWO_PASS_BLOCK)] * 2
    assert [operand.times for operand in long.operands] == [2, 1]


def test_the_weight_is_wanted_in_the_second_pass_only() -> None:
    first, *_, last = walk("rmsnorm", (3, 50), 1, tile=(16,)).steps
    assert [access.operand.name for access in first.loads] == ["x", "residual"]
    assert [access.operand.name for access in last.loads] == ["x", "residual", "weight"]
    assert [access.operand.name for access in last.stores] == ["y", "sum"]


def test_a_gemm_walks_along_k_and_ends_with_its_epilogue() -> None:
    found = walk("linear", (40, 50, 40), 0, tile=(16, 32, 16))
    assert phases(found) == ["accumulate"] * 3 + ["epilogue"]
    assert [(x.columns.inside, w.rows.inside) for x, w in (step.loads for step in found.steps[:3])] == [
        (inner, inner) for inner in (range(16), range(16, 32), range(32, 40))
    ]
    assert [access.operand.name for access in found.steps[-1].loads] == ["bias"]
    programs = {operand.name: operand.programs for operand in found.operands}
    assert programs == {"x": 2, "w": 3, "bias": 3, "y": 1}


def test_a_group_of_row_tiles_finishes_a_column_before_the_next() -> None:
    launch = walk_launch("linear", (16 * (GROUP_M + 2), 48, 16), (16, 16, 16))
    tiles = [tuple(side // 16 for side in first_element(launch, program)) for program in range(launch.programs)]
    whole = [(row, column) for column in range(3) for row in range(GROUP_M)]
    rest = [(row, column) for column in range(3) for row in (GROUP_M, GROUP_M + 1)]
    assert tiles == whole + rest


def test_the_launch_s_own_tile_is_the_default() -> None:
    assert walk_launch("chain", (40, 50)) == elementwise_launch(40, 50)
    assert walk_launch("softmax", (3, 50)) == row_launch(3, 50)
    assert walk_launch("rmsnorm", (3, 50), (16,)) == row_launch(3, 50, 16)
    assert walk_launch("linear", (64, 64, 64)).tile == linear_configs(A100, "fp16")[-1].tile


def test_a_tensor_of_more_than_2_31_elements_is_no_work_to_walk() -> None:
    found = walk("chain", (2**20, 4096), walk_launch("chain", (2**20, 4096)).programs - 1)
    assert (found.stores[0].rows.stop, found.stores[0].columns.stop) == (2**20, 4096)


# -- the same count as the lessons' formulas --------------------------------------------------------------------


@given(st.tuples(sizes, sizes, sizes), st.tuples(powers, powers, powers))
def test_a_gemm_s_reads_are_lesson_2_s(shape: tuple[int, int, int], tile: tuple[int, int, int]) -> None:
    read = elements_read("linear", shape, tile)
    traffic = gemm_traffic(*shape, tile[0], tile[1], element_bytes=2)
    assert (2 * read["x"], 2 * read["w"]) == (traffic["a_bytes"], traffic["b_bytes"])


@given(sizes, sizes)
def test_a_row_kernel_s_bytes_are_lesson_2_s(rows: int, columns: int) -> None:
    size, matrix = ELEMENT_BYTES["fp16"], rows * columns
    norm = rmsnorm_traffic(rows, columns, size, residual=True, sum_output=True)
    soft = softmax_traffic(rows, columns, size)
    for tile, passes in ((None, "resident_bytes"), ((16,), "two_pass_bytes")):
        if tile == (16,) and columns <= 16:
            continue
        read = elements_read("softmax", (rows, columns), tile)
        assert size * (read["x"] + matrix) == soft[passes]  # type: ignore[literal-required]
        read = elements_read("rmsnorm", (rows, columns), tile)
        written_again = 0 if tile is None else matrix  # the formula's two passes write the sum and read it back
        moved = read["x"] + read["residual"] + 2 * matrix
        assert size * (moved - written_again) == norm[passes]  # type: ignore[literal-required]


def test_a_fused_chain_moves_what_lesson_1_calls_compulsory() -> None:
    read = elements_read("chain", (64, 64))
    matrices = 2 * (read["x"] + read["residual"] + 64 * 64)
    assert matrices == chain_traffic(4, 64 * 64 * 2, 1, side_inputs=1)["total_bytes"]


# -- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("kernel", lambda: walk("gemm", (4, 4), 0)),  # type: ignore[arg-type]
        ("shape", lambda: walk("chain", (4, 4, 4), 0)),
        ("shape", lambda: walk("linear", (4, 4), 0)),
        ("shape", lambda: walk("chain", "44", 0)),  # type: ignore[arg-type]
        ("shape[1]", lambda: walk("chain", (4, 0), 0)),
        ("shape[0]", lambda: walk("softmax", (True, 4), 0)),
        ("program", lambda: walk("softmax", (4, 4), 4)),
        ("program", lambda: walk("softmax", (4, 4), -1)),
        ("step", lambda: walk("softmax", (4, 4), 0, 1)),
        ("tile", lambda: walk("softmax", (4, 4), 0, tile=(4, 4))),
        ("tile[1]", lambda: walk("chain", (4, 4), 0, tile=(4, 3))),
        ("tile[2]", lambda: walk("linear", (4, 4, 4), 0, tile=(16, 16, 0))),
        ("tile", lambda: list(all_stores("linear", (4, 4, 4), (16, 16)))),
        ("shape", lambda: elements_read("linear", (4, 4))),
    ],
)
def test_wrong_use_is_refused_in_both_languages(argument: str, call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=refusal(argument)):
        call()


def test_the_walk_needs_neither_triton_nor_torch() -> None:
    code = "import sys; from lessons_lib.kernels import walk; print({'torch', 'triton', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# -- the same as the kernels, load by load and store by store ---------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """One load or store that the interpreter carried out: bytes of memory, and the lanes that a mask switched off."""

    program: int
    written: bool
    addresses: tuple[int, ...]
    masked: int


@pytest.fixture
def seen(triton_setup: TritonSetup, monkeypatch: pytest.MonkeyPatch) -> list[Seen]:
    """What kernels load and store from here on, in order."""
    if triton_setup.mode != "interpreter":
        pytest.skip("the interpreter's loads and stores are watched, and kernels run on a GPU here")
    from triton.runtime.interpreter import interpreter_builder as builder

    records: list[Seen] = []

    def watch(name: str, written: bool) -> None:
        carried_out = getattr(builder, name)

        def watched(pointers: Any, *rest: Any) -> Any:
            mask = rest[1] if written else rest[0]
            on = pointers.data[mask.data].ravel()
            records.append(Seen(builder.grid_idx[0], written, tuple(map(int, on)), pointers.data.size - on.size))
            return carried_out(pointers, *rest)

        monkeypatch.setattr(builder, name, watched)

    watch("create_masked_load", False)
    watch("create_masked_store", True)
    return records


Moved = tuple[str, bool, frozenset[tuple[int, int]], int]


def located(record: Seen, tensors: dict[str, Any]) -> Moved:
    """Which elements of which tensor a record's addresses are."""
    for name, tensor in tensors.items():
        start, size = tensor.data_ptr(), tensor.element_size()
        end = start + size * (
            1 + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
        )
        if all(start <= address < end for address in record.addresses):
            row_stride = tensor.stride(0) if tensor.ndim == 2 else end
            indices = [divmod((address - start) // size, row_stride) for address in record.addresses]
            assert len(set(indices)) == len(indices), "no element twice in one load or store"
            return name, record.written, frozenset(indices), record.masked
    raise AssertionError("an access outside every tensor")


def drawn(access: Access) -> Moved:
    return access.operand.name, access.operand.written, frozenset(access.indices()), access.masked


def assert_as_drawn(found: list[Seen], tensors: dict[str, Any], case: Case) -> None:
    """Program by program and step by step, the kernel moved what the walk says, in any order within a step."""
    kernel, shape, tile = case
    programs = walk_launch(kernel, shape, tile).programs
    assert {record.program for record in found} == set(range(programs))
    for program in range(programs):
        moved = [located(record, tensors) for record in found if record.program == program]
        for step in walk(kernel, shape, program, tile=tile).steps:
            expected = [drawn(access) for access in step.loads + step.stores]
            assert Counter(moved[: len(expected)]) == Counter(expected), (program, step.phase)
            moved = moved[len(expected) :]
        assert not moved, "the kernel moved more than was drawn"


def matrix(rows: int, columns: int, gap: int = 0) -> Any:
    """fp16 numbers between -1 and 1, rows ``columns + gap`` elements apart."""
    import torch

    whole = torch.linspace(-1, 1, rows * (columns + gap), dtype=torch.float32).reshape(rows, columns + gap)
    return whole.to(torch.float16)[:, :columns]


def vector(columns: int) -> Any:
    return matrix(1, columns)[0]


@pytest.mark.triton_versions
@pytest.mark.parametrize("gap", [0, 5])
@pytest.mark.parametrize(
    ("shape", "tile"),
    [((24, 50), None), ((20, 50), (16, 16)), ((1, 1), None), ((9, 33), (8, 32)), ((1, 70), (1, 32))],
)
def test_the_chain_moves_what_is_drawn(seen: list[Seen], shape: tuple[int, int], tile: Any, gap: int) -> None:
    from lessons_lib.kernels.chain import fused_chain

    x, residual, bias, scale = matrix(*shape, gap), matrix(*shape, gap), vector(shape[1]), vector(shape[1])
    y = fused_chain(x, bias, scale, residual, tile=tile)
    tensors = {"x": x, "bias": bias, "scale": scale, "residual": residual, "y": y}
    assert_as_drawn(seen, tensors, ("chain", shape, tile))


@pytest.mark.triton_versions
@pytest.mark.parametrize(("shape", "tile"), [((24, 50), None), ((20, 50), (16, 16))])
def test_the_epilogue_moves_what_is_drawn(seen: list[Seen], shape: tuple[int, int], tile: Any) -> None:
    from lessons_lib.kernels.epilogue import fused_epilogue

    x, bias = matrix(*shape, 3), vector(shape[1])
    y = fused_epilogue(x, bias, tile=tile)
    assert_as_drawn(seen, {"x": x, "bias": bias, "y": y}, ("epilogue", shape, tile))


@pytest.mark.triton_versions
@pytest.mark.parametrize(("shape", "block"), [((5, 50), None), ((3, 50), 16), ((1, 1), None), ((2, 16385), None)])
def test_softmax_moves_what_is_drawn(seen: list[Seen], shape: tuple[int, int], block: int | None) -> None:
    from lessons_lib.kernels.row import fused_softmax

    x = matrix(*shape, 2)
    y = fused_softmax(x, block=block)
    assert_as_drawn(seen, {"x": x, "y": y}, ("softmax", shape, None if block is None else (block,)))


@pytest.mark.triton_versions
@pytest.mark.parametrize(("shape", "block"), [((5, 50), None), ((3, 50), 16), ((1, 1), None), ((2, 16385), None)])
def test_rmsnorm_moves_what_is_drawn(seen: list[Seen], shape: tuple[int, int], block: int | None) -> None:
    from lessons_lib.kernels.row import fused_residual_rmsnorm

    x, residual, weight = matrix(*shape, 2), matrix(*shape), vector(shape[1])
    y, total = fused_residual_rmsnorm(x, residual, weight, block=block)
    tensors = {"x": x, "residual": residual, "weight": weight, "y": y, "sum": total}
    assert_as_drawn(seen, tensors, ("rmsnorm", shape, None if block is None else (block,)))


@pytest.mark.triton_versions
@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((40, 50, 40), (16, 16, 16)),
        ((32, 32, 32), (16, 16, 16)),
        ((1, 1, 1), (16, 16, 16)),
        ((16 * (GROUP_M + 1), 33, 16), (16, 16, 16)),
        ((40, 50, 70), (32, 64, 32)),
    ],
)
def test_linear_moves_what_is_drawn(
    seen: list[Seen], shape: tuple[int, int, int], tile: tuple[int, int, int]
) -> None:
    from lessons_lib.kernels.linear import fused_linear

    m, n, k = shape
    x, w, bias = matrix(m, k, 2), matrix(k, n), vector(n)
    y = fused_linear(x, w, bias, config=LinearConfig(*tile, num_warps=4, num_stages=1))
    assert_as_drawn(seen, {"x": x, "w": w, "bias": bias, "y": y}, ("linear", shape, tile))


@pytest.mark.triton_versions
def test_a_walk_that_lies_is_found_out(seen: list[Seen]) -> None:
    from lessons_lib.kernels.epilogue import fused_epilogue

    shape = (32, 32)
    x, bias = matrix(*shape), vector(32)
    y = fused_epilogue(x, bias, tile=(16, 16))
    tensors = {"x": x, "bias": bias, "y": y}
    with pytest.raises(AssertionError, match="whole"):
        assert_as_drawn(seen, tensors, ("epilogue", shape, (8, 32)))  # four programs too, on other tiles
    with pytest.raises(AssertionError, match="more than was drawn"):
        assert_as_drawn([*seen, seen[-1]], tensors, ("epilogue", shape, (16, 16)))


def test_the_kernels_walked_are_the_package_s() -> None:
    assert set(WRITTEN) == set(KERNELS)
