"""The zoo: its blocks compute what they say, their bytes are those counted by hand, their data is up to date."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import Any

import pytest

from lessons_lib.base.gpus import GPUS
from lessons_lib.graph.capture.zoo import ZOO, zoo_block
from lessons_lib.graph.grouping import cost, eager, unfused
from lessons_lib.graph.planning.planner import best_grouping
from lessons_lib.graph.recorded import RecordedBlock, recorded_block, recorded_names

GPU = GPUS["A100 (40 GB)"]
KIB, MIB = 2**10, 2**20


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def inputs(torch: Any, name: str) -> list[Any]:
    """Random data for a small block: probabilities of a mask, classes of a loss, positive variances."""
    torch.manual_seed(0)
    _, specs = ZOO[name].build(small=True)
    made = []
    for spec in specs:
        dtype = getattr(torch, spec.dtype)
        if spec.dtype == "bool":
            made.append(torch.rand(spec.shape) < 0.3)
        elif spec.dtype == "int64":
            made.append(torch.randint(0, ZOO[name].small["words"], spec.shape))
        else:
            made.append(torch.rand(spec.shape, dtype=torch.float32).to(dtype) + 0.1)
    return made


def test_there_are_all_blocks_that_the_course_promises() -> None:
    assert len(ZOO) >= 14
    assert {"swiglu_mlp", "rope", "attention_2d", "attention_4d", "moe_router", "lstm_cell", "cross_entropy"} <= {
        *ZOO
    }
    assert all(block.name == name and not block.name.startswith("_") for name, block in ZOO.items())


def test_titles_notes_and_data_are_there_without_torch_and_load_nothing_heavy() -> None:
    for block in ZOO.values():
        assert block.title.zh != block.title.en
        assert len(block.note.zh) > 15 and len(block.note.en) > 40
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from lessons_lib.graph import recorded\n"
        "from lessons_lib.graph.capture import capture, compiler, zoo\n"
        "print(len(zoo.ZOO), len(recorded.recorded_block('rope').core.ops))\n"
        "assert not {'numpy', 'networkx', 'ipywidgets', 'matplotlib'} & set(sys.modules)\n"
        "try: zoo.zoo_block('rope').build()\n"
        "except ImportError as error: print('pip install torch' in str(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [str(len(ZOO)), str(len(recorded_block("rope").core.ops)), "True"]


def test_a_block_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="swiglu_mlp"):
        zoo_block("swigloo")
    with pytest.raises(ValueError, match="swiglu_mlp"):
        recorded_block("swigloo")


@pytest.mark.parametrize("name", ZOO)
def test_the_captured_block_computes_what_the_function_does(torch: Any, name: str) -> None:
    evaluate = importlib.import_module("lessons_lib.graph.capture.capture").evaluate
    function, _ = ZOO[name].build(small=True)
    given = inputs(torch, name)
    found, wanted = evaluate(ZOO[name].capture(small=True), *given), function(*given)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        assert torch.allclose(one.float(), other.float(), atol=1e-3, rtol=1e-2)


@pytest.mark.parametrize("name", ZOO)
def test_real_sizes_are_large_and_small_ones_small(name: str) -> None:
    real, small = (ZOO[name].inputs(**sizes) for sizes in (ZOO[name].sizes, ZOO[name].small))
    assert len(real) == len(small)
    assert max(_elements(spec) for spec in real) >= 2**17
    assert max(_elements(spec) for spec in small) < 2**10


def _elements(spec: Any) -> int:
    size = 1
    for extent in spec.shape:
        size *= extent
    return size


# -- bytes, counted by hand -----------------------------------------------------------------------------------

HALF = 4096 * 4096 * 2  # a 4096 x 4096 fp16 tensor: 32 MiB
ROW = 4096 * 2  # a vector of 4096
EACH = 4096 * 2  # fp16, one value a row
WIDE = 4096 * 11008 * 2  # of the SwiGLU MLP


@pytest.mark.parametrize(
    "name, eager_bytes, best_bytes",
    [
        # gate and up in, the product out; eager also writes and reads silu(gate). Checkpoint 3.
        ("swiglu_gate", 5 * HALF, 3 * HALF),
        # add 3, square 2, mean 1, eps and rsqrt on rows, scale 2, weight 2; fused: x, residual in, sum and result out.
        ("residual_rmsnorm", 10 * HALF + 6 * EACH + ROW, 4 * HALF + ROW),
        # two passes of the tensor for each of the two operators, the two vectors once; fused: in and out.
        ("layernorm_gelu", 4 * HALF + 2 * ROW, 2 * HALF + 2 * ROW),
        # the library's softmax is one kernel already. Checkpoint 8.
        ("softmax", 2 * 64 * MIB, 2 * 64 * MIB),
        # bias 2, mask 2.5, division 2, residual 3 (the mask has 1 byte an element); fused: x, residual, mask, result.
        ("residual_dropout", 9 * HALF + HALF // 2 + ROW, 3 * HALF + HALF // 2 + ROW),
        # product 2, sum 3; fused 3.
        ("layer_scale", 5 * HALF + ROW, 3 * HALF + ROW),
        # x 8 MiB, two weights 8 MiB, hidden 32 MiB; eager moves hidden four times, fused twice.
        ("bias_gelu_mlp", 32 * MIB + 4 * 32 * MIB + 10 * KIB, 32 * MIB + 2 * 32 * MIB + 10 * KIB),
        # both GEMMs read x, both write wide; silu 2, product 3, the last GEMM reads one. Fused: the gate joins one GEMM,
        # which reads the other's result.
        ("swiglu_mlp", 3 * HALF + 3 * WIDE + 8 * WIDE, 3 * HALF + 3 * WIDE + 4 * WIDE),
        # q, k, v, out 256 KiB each, scores 8 MiB: written by the first GEMM, read and written by scale and by softmax,
        # read by the second; fused in general kernels: scale joins softmax (or the GEMM).
        ("attention_2d", 4 * 256 * KIB + 6 * 8 * MIB, 4 * 256 * KIB + 4 * 8 * MIB),
    ],
)
def test_bytes_counted_by_hand(name: str, eager_bytes: int, best_bytes: int) -> None:
    core = recorded_block(name).core
    assert cost(core, eager(core), GPU).total_bytes == eager_bytes
    plan = best_grouping(core, GPU)
    assert plan.proven
    assert plan.cost.total_bytes == best_bytes


def test_attention_by_hand_rereads_keys_and_values_a_block_of_rows() -> None:
    """Checkpoint 11: 16.5 MiB with blocks of 64 rows."""
    core = recorded_block("attention_2d").core
    plan = best_grouping(core, GPU, by_hand=True)
    assert len(plan.grouping) == 1
    assert plan.cost.total_bytes == int(16.5 * MIB)


def test_cross_entropy_writes_no_probabilities_when_it_is_fused() -> None:
    core = recorded_block("cross_entropy").core
    logits = 4096 * 32000 * 4
    plan = best_grouping(core, GPU)
    assert logits < plan.cost.total_bytes < logits + 100 * KIB
    assert len(plan.grouping) >= 2  # within rows, then across them


def test_the_two_orders_of_the_einsum_differ_in_bytes_and_hardly_in_operations() -> None:
    at_once, stepwise = (recorded_block(f"einsum_{order}").core for order in ("at_once", "step_by_step"))
    costs = [best_grouping(core, GPU).cost for core in (at_once, stepwise)]
    assert (costs[0].launches, costs[1].launches) == (1, 2)
    between = 1000 * 16 * 16 * 1000 * 4
    assert costs[1].total_bytes == costs[0].total_bytes + 2 * between
    assert costs[1].operations == pytest.approx(costs[0].operations, rel=0.01)


@pytest.mark.parametrize("name", recorded_names())
def test_eager_moves_the_same_in_both_views(name: str) -> None:
    block = recorded_block(name)
    parts, whole = cost(block.core, eager(block.core), GPU), cost(block.graph, unfused(block.graph), GPU)
    assert (parts.launches, parts.total_bytes) == (whole.launches, whole.total_bytes)
    assert parts.operations == whole.operations


# -- data -----------------------------------------------------------------------------------------------------


def test_every_block_is_there_as_data_and_no_other() -> None:
    assert set(recorded_names()) == set(ZOO)


@pytest.mark.parametrize("name", ZOO)
def test_data_is_what_a_fresh_capture_gives(torch: Any, name: str) -> None:
    record = importlib.import_module("lessons_lib.graph.record")
    stored = recorded_block(name)
    if torch.__version__.partition("+")[0] != stored.torch:
        pytest.skip(f"recorded with torch {stored.torch}; this is {torch.__version__}")
    fresh = record.fresh_record(ZOO[name])
    assert fresh.graph.to_json() == stored.graph.to_json()
    assert fresh.core.to_json() == stored.core.to_json()
    assert fresh.compiler == stored.compiler
    assert fresh == stored


@pytest.mark.parametrize("name", recorded_names())
def test_recorded_plans_are_what_the_planner_says(name: str) -> None:
    block = recorded_block(name)
    for plan in (block.best, block.by_hand):
        assert cost(block.core, plan.grouping, block.gpu).total_bytes == plan.total_bytes >= plan.bound_bytes
        assert not plan.proven or plan.total_bytes == plan.bound_bytes


def test_data_comes_back_from_json() -> None:
    block = recorded_block("rope")
    assert RecordedBlock.from_json(block.to_json()) == block


def test_operators_carry_their_line_of_code_and_no_path() -> None:
    for name in recorded_names():
        block = recorded_block(name)
        code = {line.strip() for line in block.code.splitlines()}
        assert {op.source for graph in (block.graph, block.core) for op in graph.ops if op.source} <= code
        assert all(block.core.op(op).source for op in block.core.launching)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format":"zoo-block/1"}', None, '{"format":"zoo-block/1","gpu":"X"}']
)
def test_other_json_is_refused(text: Any) -> None:
    with pytest.raises(ValueError):
        RecordedBlock.from_json(text)


@pytest.mark.parametrize(
    "entry, value", [("core", None), ("compiler", {}), ("best", []), ("best", {"groups": [["a"]]}), ("torch", "")]
)
def test_broken_entries_are_refused(entry: str, value: Any) -> None:
    data = json.loads(recorded_block("rope").to_json())
    data[entry] = value
    with pytest.raises(ValueError):
        RecordedBlock.from_json(json.dumps(data))


def test_the_writer_writes_the_blocks_that_are_named(
    torch: Any, tmp_path: Any, monkeypatch: Any, capsys: Any
) -> None:
    record = importlib.import_module("lessons_lib.graph.record")
    monkeypatch.setattr(record, "FOLDER", tmp_path / "data")
    record.main(["layer_scale"])
    (written,) = (tmp_path / "data").iterdir()
    assert RecordedBlock.from_json(written.read_text(encoding="utf-8")).core == recorded_block("layer_scale").core
    assert "layer_scale.json: 2 operators" in capsys.readouterr().out
