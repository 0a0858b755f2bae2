"""What the compiler says without a GPU: specialized as a launch, held against the device, and never an endless wait."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from example_report import CLEAN

from lessons_lib import use_language
from lessons_lib.base.gpus import A10, A100, B200, GPUS, H100, H200, MI300X, T4, Gpu
from lessons_lib.kernels.compiler import report as report_module
from lessons_lib.kernels.compiler.child import (
    amdgcn_family,
    amdgcn_load_bytes,
    amdgcn_usage,
    parse_resource_usage,
    ptx_family,
    ptx_load_bytes,
    useful_crash_line,
    useful_line,
)
from lessons_lib.kernels.compiler.compiled import Family
from lessons_lib.kernels.compiler.own_source import own_source
from lessons_lib.kernels.compiler.report import compile_report, gpu_table, report_table, triton_version
from lessons_lib.kernels.compiler.worker import CompileWorker
from lessons_lib.reuse.gemm import resident_buffers, tile_operand_bytes
from lessons_lib.reuse.occupancy import occupancy

VERSION = tuple(int(part) for part in re.findall(r"\d+", triton_version() or "0")[:2])
needs_triton = pytest.mark.skipif(triton_version() is None, reason="needs Triton")
since_3_4 = pytest.mark.skipif(VERSION < (3, 4), reason="Triton before 3.4 compiles this otherwise or not at all")


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LESSONS_CACHE", str(tmp_path_factory.mktemp("compiled")))
        yield


# -- reading the compiler's output -------------------------------------------------------------------------------


def test_registers_and_stack_are_read_from_cuobjdump_the_largest_of_all_functions() -> None:
    words = """
Resource usage:
 Common:
  GLOBAL:0
 Function helper:
  REG:24 STACK:408 SHARED:0 LOCAL:0 TEXTURE:0
 Function chain_kernel:
  REG:255 STACK:16 SHARED:0 LOCAL:0 CONSTANT[0]:432 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
    assert parse_resource_usage(words) == (255, 408)
    with pytest.raises(ValueError, match="no resource usage"):
        parse_resource_usage("cuobjdump fatal   : File '/no' does not contain device code")


@pytest.mark.parametrize(
    ("line", "family"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;", "tcgen05"),
        ("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%f1}, %rd1, %rd2;", "wgmma"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};", "mma"),
        ("fma.rn.f32 %f1, %f2, %f3, %f4;", "fma"),
        ("fence.mbarrier_init.release.cluster;", "fma"),
    ],
)
def test_the_unit_that_multiplies_is_read_from_the_ptx(line: str, family: Family) -> None:
    assert ptx_family(f".entry k() {{ {line} fma.rn.f32 %f1, %f2, %f3, %f4; }}") == family


@pytest.mark.parametrize(
    ("line", "width"),
    [
        ("@%p1 ld.global.b16 { %rs1 }, [ %rd1 + 0 ];", 2),
        ("@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];", 16),
        ("ld.global.L1::evict_first.L2::cache_hint.v2.b64 { %rd1, %rd2 }, [ %rd3 + 0 ], %rd4;", 16),
        ("ld.global.nc.v8.b32 { %r1 }, [ %rd1 ];", 32),
        ("ld.global.L2::128B.b8 { %rs1 }, [ %rd1 ];", 1),
        ("cp.async.cg.shared.global [ %r1 + 0 ], [ %rd2 + 0 ], 0x10, %r3;", 16),
        ("cp.async.ca.shared.global [ %r1 + 0 ], [ %rd2 + 0 ], 4, %r3;", 4),
        ("ld.shared.v4.b32 { %r1 }, [ %r2 ]; ld.param.u64 %rd1, [k_param_0];", 0),
    ],
)
def test_the_widest_load_from_device_memory_is_read_from_the_ptx(line: str, width: int) -> None:
    assert ptx_load_bytes(line) == width
    assert ptx_load_bytes(f"ld.global.b8 {{ %rs1 }}, [ %rd1 ];\n{line}") == max(1, width)


def test_amd_figures_are_read_from_the_assembly() -> None:
    assembly = """
	global_load_ushort v1, v2, s[0:1]
	buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen
	scratch_load_dwordx4 v[0:3], off, off
	v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
  - .agpr_count:     16
    .private_segment_fixed_size: 36
    .vgpr_count:     130
    .vgpr_spill_count: 9
"""
    assert amdgcn_usage(assembly) == (130, 36)
    assert amdgcn_family(assembly) == "mfma"
    assert amdgcn_load_bytes(assembly) == 16
    assert amdgcn_load_bytes("\tscratch_load_dwordx4 v[0:3], off, off\n\tglobal_load_short_d16 v1, v2\n") == 2
    assert amdgcn_family("\tv_fma_f32 v1, v2, v3, v4\n") == "fma"
    with pytest.raises(ValueError, match="vgpr_count"):
        amdgcn_usage("; nothing")


def test_the_telling_line_of_an_error_is_found() -> None:
    quoted = "at 5:8:\ndef k(x_ptr):\n    y = tl.load(x_ptr)\n    return z\n           ^\nz is not defined"
    assert useful_line(ValueError(quoted)) == "z is not defined"
    ptxas = "PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\nptxas fatal   : Value 'sm_100' is not defined"
    assert useful_line(RuntimeError(ptxas)) == "ptxas fatal   : Value 'sm_100' is not defined"
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise ValueError("outer") from inner
    except ValueError as outer:
        assert useful_line(outer) == "'inner'"
    assert useful_line(AssertionError()) == "AssertionError"
    assert useful_line(SystemExit(3)) == "SystemExit 3"
    assert len(useful_line(ValueError("x" * 1000))) == 200


def test_the_telling_line_of_a_crash_is_found_without_where_it_stands() -> None:
    said = 'loc("/home/someone/kernel.py":98:17): error: Unsupported conversion\nmodule {\n tt.func'
    assert useful_crash_line(said) == "Unsupported conversion"
    assert useful_crash_line("python: /project/lib/A.cpp:36: int f(): Assertion `false' failed.") == (
        "Assertion `false' failed."
    )
    assert useful_crash_line("something\nlast words\n\n") == "last words"
    assert useful_crash_line("") == ""


# -- what is compiled --------------------------------------------------------------------------------------------


@needs_triton
@pytest.mark.triton_versions
def test_sizes_that_are_multiples_of_16_load_wide_and_move_the_spill_cliff() -> None:
    for gpu in (T4, A100):
        as_launched = [compile_report("chain", gpu, "fp16", (1, width)) for width in (1024, 4096, 8192)]
        assert [found.spill_bytes for found in as_launched] == [0, 0, 0]
        assert {found.load_bytes for found in as_launched} == {16}
        uneven = [
            compile_report("chain", gpu, "fp16", (1, width), sizes_multiple_of_16=False) for width in (1024, 8192)
        ]
        assert [found.spills for found in uneven] == [False, True]
        assert {found.load_bytes for found in uneven} == {2}
        for wide, narrow in zip((as_launched[0], as_launched[2]), uneven, strict=True):
            assert wide.registers_per_thread is not None
            assert narrow.registers_per_thread is not None
            assert wide.registers_per_thread < narrow.registers_per_thread, "the false cliff"


@needs_triton
@since_3_4
@pytest.mark.triton_versions
def test_four_warps_spill_where_eight_do_not() -> None:
    four = compile_report("linear", T4, "fp16", (64, 64, 32), num_warps=4)
    eight = compile_report("linear", T4, "fp16", (64, 64, 32), num_warps=8)
    assert four.registers_per_thread == T4.max_registers_per_thread
    assert four.spill_bytes is not None
    assert four.spill_bytes > 100
    assert four.launches, "a spill is slow and no refusal"
    assert "spills" in str(four.verdict)
    assert eight.spill_bytes == 0
    assert {four.instruction_family, eight.instruction_family} == {"fma"}


@needs_triton
@pytest.mark.skipif(VERSION < (3, 6), reason="older Tritons need ld.lld for AMD")
@pytest.mark.parametrize(
    ("gpu", "dtype", "family"),
    [
        (T4, "fp16", "fma"),
        (A10, "fp16", "mma"),
        (H100, "bf16", "wgmma"),
        (B200, "fp16", "tcgen05"),
        (MI300X, "fp16", "mfma"),
        (H100, "fp32", "fma"),
    ],
)
def test_the_family_is_the_gpu_generation_s(gpu: Gpu, dtype: Any, family: Family) -> None:
    found = compile_report("linear", gpu, dtype, (64, 64, 32), num_warps=4, num_stages=2)
    assert found.status == "ok"
    assert found.instruction_family == family


@needs_triton
@since_3_4
def test_compiling_is_not_launching() -> None:
    found = compile_report("linear", A10, "fp16", (128, 256, 64), num_warps=8, num_stages=4)
    assert found.status == "over_shared"
    assert found.compiled
    assert found.launches is False
    operands = tile_operand_bytes(128, 256, 64, resident_buffers(A10, 4))["total_bytes"]
    assert found.shared_bytes == operands == 147_456
    assert found.occupancy is not None
    assert found.occupancy["blocks_per_sm"] == 0
    assert found.occupancy["limiters"] == ("shared_memory",)
    assert "does not launch" in str(found.verdict)
    assert "144 KiB" in str(found.verdict)
    assert "99 KiB" in str(found.verdict)
    fits = compile_report("linear", A100, "fp16", (128, 256, 64), num_warps=8, num_stages=4)
    assert fits.launches
    assert fits.shared_bytes == operands


@needs_triton
@pytest.mark.triton_versions
@pytest.mark.parametrize("gpu", [T4, A100, H100])
@pytest.mark.parametrize("kernel", ["chain", "rmsnorm", "softmax", "epilogue"])
def test_occupancy_is_lesson_two_s_of_the_compiler_s_figures(kernel: Any, gpu: Gpu) -> None:
    found = compile_report(kernel, gpu)
    assert found.status == "ok"
    assert found.registers_per_thread is not None
    assert found.shared_bytes is not None
    threads = found.num_warps * 32
    assert found.occupancy == occupancy(gpu, threads, found.registers_per_thread, found.shared_bytes)
    assert found.compile_seconds is not None
    assert 0 < found.compile_seconds < 60
    assert found.triton_version == triton_version()


@needs_triton
@pytest.mark.skipif(VERSION < (3, 6), reason="older Tritons need ld.lld for AMD")
def test_amd_has_no_occupancy_by_nvidia_s_rules() -> None:
    found = compile_report("chain", MI300X)
    assert found.launches
    assert found.occupancy is None
    assert found.threads_per_block == 4 * 64
    assert "NVIDIA's formula does not stand in" in repr(found)


@needs_triton
def test_gpus_of_one_target_share_figures_and_keep_their_own_limits() -> None:
    one, other = compile_report("chain", H100), compile_report("chain", H200)
    assert dataclasses.replace(other, gpu=H100) == one
    assert other.gpu is H200


@needs_triton
def test_the_chain_s_parts_are_compiled_apart() -> None:
    whole, last = compile_report("chain", T4), compile_report("chain", T4, first=3, last=3)
    assert whole.registers_per_thread is not None
    assert last.registers_per_thread is not None
    assert last.registers_per_thread < whole.registers_per_thread


@needs_triton
def test_a_gpu_by_name_is_the_gpu() -> None:
    assert compile_report("softmax", "T4") == compile_report("softmax", T4)


# -- what cannot be compiled -------------------------------------------------------------------------------------


class NoWorker:
    """A worker that must not be asked."""

    def compile(self, request: object, limit_seconds: float) -> dict[str, Any]:
        raise AssertionError(request)


@pytest.fixture
def _never_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_module, "shared_worker", NoWorker)


@pytest.mark.usefixtures("_never_compiled")
def test_what_the_gpu_cannot_do_is_said_and_not_tried() -> None:
    no_bf16 = compile_report("chain", T4, "bf16")
    assert (no_bf16.status, str(no_bf16.verdict)) == ("unsupported", "the T4 has no bfloat16 units")
    wide = compile_report("chain", MI300X, num_warps=32)
    assert (wide.status, wide.launches) == ("unsupported", None)
    assert "2,048 threads" in str(wide.verdict)


@pytest.mark.usefixtures("_never_compiled")
def test_without_triton_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_module, "triton_version", lambda: None)
    found = compile_report("chain", T4)
    assert found.status == "no_triton"
    assert (found.launches, found.spills, found.occupancy, found.registers_per_thread) == (None,) * 4
    assert "no Triton here" in repr(found)
    use_language("zh")
    assert "没有 Triton" in repr(found)
    table = report_table("chain", progress=False).plain
    assert table.count("没有 Triton") == len(GPUS)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("kernel", {"kernel": "attention"}),
        ("kernel", {"kernel": None}),
        ("gpu", {"gpu": "T5"}),
        ("gpu", {"gpu": 75}),
        ("dtype", {"dtype": "fp8"}),
        ("tile", {"tile": (1024,)}),
        ("tile", {"tile": 1024}),
        ("tile\\[1\\]", {"tile": (1, 1000)}),
        ("tile\\[0\\]", {"tile": (0, 1024)}),
        ("tile", {"kernel": "linear", "tile": (64, 8, 32)}),
        ("masked", {"masked": None}),
        ("num_warps", {"num_warps": 3}),
        ("num_warps", {"num_warps": 64}),
        ("num_warps", {"num_warps": True}),
        ("num_stages", {"num_stages": 0}),
        ("num_stages", {"num_stages": 2.0}),
        ("sizes_multiple_of_16", {"sizes_multiple_of_16": 1}),
        ("first", {"first": 4}),
        ("last", {"first": 2, "last": 1}),
        ("activation", {"activation": "tanh"}),
        ("limit_seconds", {"limit_seconds": 0}),
        ("limit_seconds", {"limit_seconds": math.nan}),
    ],
)
@pytest.mark.usefixtures("_never_compiled")
def test_a_bad_argument_is_named_in_both_languages(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        compile_report(**{"kernel": "chain", "gpu": T4, **arguments})


# -- the worker --------------------------------------------------------------------------------------------------


def own_request(text: str, limit: float = 60.0) -> tuple[Any, float]:
    own = {
        "text": text,
        "function": "kernel",
        "signature": {"x_ptr": "*fp16"},
        "constexprs": {"BLOCK": 128},
        "pointers": ["x_ptr"],
        "sizes": [],
    }
    common = {"num_warps": 4, "num_stages": 1, "multiple_of_16": True, "target": "sm_80", "warp_size": 32}
    return {"kernel": own, "arguments": {}, **common}, limit


RIGHT = """
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(x_ptr + lanes, tl.load(x_ptr + lanes) * 2)
"""


@pytest.fixture
def worker() -> Any:
    if triton_version() is None:
        pytest.skip("needs Triton")
    made = CompileWorker()
    yield made
    made.close()


def process_id(worker: CompileWorker) -> int:
    assert worker._process is not None
    return worker._process.pid


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.triton_versions
def test_one_process_answers_every_request_without_torch_and_without_leaving_a_file(worker: CompileWorker) -> None:
    checked = f"import sys\nassert 'torch' not in sys.modules, 'torch'\n{RIGHT}"
    first = worker.compile(*own_request(checked))
    assert first["status"] == "ok", first
    process, folder = process_id(worker), worker._folder
    assert worker.compile(*own_request(checked))["status"] == "ok"
    assert process_id(worker) == process
    assert folder is not None
    assert folder.is_dir()
    worker.close()
    assert gone(process)
    assert not folder.exists()


def test_what_a_kernel_s_module_prints_stays_out_of_the_replies(worker: CompileWorker) -> None:
    noisy = f"import os\nprint('{{}}')\nos.write(1, b'noise')\n{RIGHT}"
    assert worker.compile(*own_request(noisy))["status"] == "ok"
    assert worker.compile(*own_request(RIGHT))["status"] == "ok"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\nsys.exit(3)", "SystemExit 3"),
        ("import os\nos._exit(3)", "the compiler crashed (exit status 3)"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "the compiler crashed (SIGSEGV)"),
        ("import nowhere", "No module named 'nowhere'"),
        ("def kernel(:", "invalid syntax (own_kernel.py, line 1)"),
        (RIGHT.replace("BLOCK)", "LEN)"), "LEN is not defined"),
        ("import os\nos.write(2, b'Assertion `x > 0` failed')\nos.abort()", "(SIGABRT): Assertion `x > 0` failed"),
    ],
)
def test_a_kernel_that_does_not_compile_is_a_failure_and_the_next_one_compiles(
    worker: CompileWorker, text: str, said: str
) -> None:
    reply = worker.compile(*own_request(text))
    assert reply["status"] == "failed"
    assert said in reply["error"]
    assert worker.compile(*own_request(RIGHT))["status"] == "ok"


def test_a_compile_past_its_limit_is_ended_with_all_that_it_started(worker: CompileWorker, tmp_path: Path) -> None:
    note = tmp_path / "started"
    endless = f"""
import subprocess, sys
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(note)!r}, "w").write(str(inner.pid))
while True:
    pass
"""
    assert worker.compile(*own_request(RIGHT))["status"] == "ok"
    process = process_id(worker)
    assert worker.compile(*own_request(endless, limit=2.0)) == {"status": "timeout"}
    assert gone(process)
    inner = int(note.read_text())
    assert gone(inner) or "Z" in Path(f"/proc/{inner}/stat").read_text(), "ended, perhaps not yet collected"
    assert worker.compile(*own_request(RIGHT))["status"] == "ok"


def test_an_interrupt_ends_the_process_and_a_late_reply_is_no_one_s(
    worker: CompileWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worker.compile(*own_request(RIGHT))["status"] == "ok"
    process = process_id(worker)

    class Interrupted:
        def get(self, timeout: float) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr(worker, "_lines", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        worker.compile(*own_request(RIGHT))
    assert gone(process)
    assert worker.compile(*own_request(RIGHT))["status"] == "ok"


def test_a_process_that_was_ended_from_outside_is_started_anew(worker: CompileWorker) -> None:
    assert worker.compile(*own_request(RIGHT))["status"] == "ok"
    process = process_id(worker)
    os.kill(process, signal.SIGKILL)
    assert worker._process is not None
    worker._process.wait(10)
    assert worker.compile(*own_request(RIGHT))["status"] == "ok"
    assert process_id(worker) != process


def test_a_process_that_cannot_start_is_a_failure(worker: CompileWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    reply = worker.compile(*own_request(RIGHT))
    assert reply["status"] == "failed"
    assert "/nowhere/python" in reply["error"]


@needs_triton
def test_a_timeout_is_a_row_that_says_so_and_a_longer_limit_tries_again() -> None:
    tile = (1, 2048)
    found = compile_report("chain", T4, tile=tile, limit_seconds=0.001)
    assert found.status == "timeout"
    assert (found.launches, found.registers_per_thread) == (None, None)
    assert str(found.verdict) == "not compiled within 0.001 s: given up"
    assert compile_report("chain", T4, tile=tile).status == "ok"


@needs_triton
def test_a_tile_that_was_given_up_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compile_report("chain", T4, tile=(2, 2048), limit_seconds=0.002).status == "timeout"
    monkeypatch.setattr(report_module, "shared_worker", NoWorker)
    again = compile_report("chain", T4, tile=(2, 2048), limit_seconds=0.002)
    assert again.status == "timeout"
    with pytest.raises(AssertionError):
        compile_report("chain", T4, tile=(2, 2048), limit_seconds=0.003)


def test_the_report_itself_loads_neither_torch_nor_triton_nor_numpy() -> None:
    code = (
        "import sys; from lessons_lib.kernels.compiler.report import compile_report; found = compile_report('chain', 'T4');"
        "print(sorted({'torch', 'triton', 'numpy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.stdout.strip() == "[]", done.stderr


# -- a kernel of the learner's own -------------------------------------------------------------------------------

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@triton.jit
def _double(x):
    return x + x


@triton.jit
def own_kernel(x_ptr, bias_ptr, y_ptr, columns, x_stride, BLOCK: tl.constexpr):  # noqa: N803
    lanes = tl.arange(0, BLOCK)
    inside = lanes < columns
    row = tl.program_id(0).to(tl.int64) * x_stride
    x = tl.load(x_ptr + row + lanes, mask=inside, other=0.0)
    tl.store(y_ptr + row + lanes, _double(x) + tl.load(bias_ptr + lanes, mask=inside, other=0.0), mask=inside)


@triton.jit
def broken_kernel(x_ptr, BLOCK: tl.constexpr):  # noqa: N803
    tl.store(x_ptr + tl.arange(0, BLOCK), no_such_name)  # noqa: F821


@pytest.mark.triton_versions
def test_a_kernel_of_one_s_own_is_compiled_with_its_helpers() -> None:
    found = compile_report(own_source(own_kernel, BLOCK=2048), T4)
    assert (found.kernel, found.dtype, found.tile, found.status) == ("own_kernel", "fp16", (2048,), "ok")
    assert found.load_bytes == 16
    uneven = compile_report(own_source(own_kernel, BLOCK=2048), T4, sizes_multiple_of_16=False)
    assert uneven.load_bytes == 2
    assert compile_report(own_source(own_kernel, "fp32", BLOCK=2048), T4).dtype == "fp32"
    assert compile_report(own_source(own_kernel, BLOCK=2048), T4, num_warps=8).num_warps == 8


@pytest.mark.triton_versions
def test_a_mistake_in_a_kernel_of_one_s_own_is_named() -> None:
    found = compile_report(own_source(broken_kernel, BLOCK=128), T4)
    assert found.status == "failed"
    assert "no_such_name" in str(found.verdict)


def test_an_own_source_is_made_from_the_names_of_the_parameters() -> None:
    source = own_source(own_kernel, "bf16", BLOCK=256, num_warps=8)
    assert source.signature == {
        "x_ptr": "*bf16",
        "bias_ptr": "*bf16",
        "y_ptr": "*bf16",
        "columns": "i32",
        "x_stride": "i32",
    }
    assert source.sizes == ("columns", "x_stride")
    assert (source.num_warps, source.constexprs) == (8, {"BLOCK": 256})
    assert compile_report(source, T4).status == "unsupported", "bf16"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("BLOCK", {}), ("constexprs", {"BLOCK": 128, "WIDTH": 3}), ("dtype", {"dtype": "int8", "BLOCK": 128})],
)
def test_an_own_source_that_does_not_suit_its_kernel_is_refused(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"(?s)^参数 {name} .*\n{name} "):
        own_source(own_kernel, **arguments)
    with pytest.raises(ValueError, match=r"(?s)^参数 kernel .*\nkernel "):
        own_source("own_kernel")


def test_a_constant_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(ValueError, match=r"(?s)^参数 BLOCK .*\nBLOCK "):
        compile_report(own_source(own_kernel, BLOCK=object()), T4)  # type: ignore[arg-type]


# -- shown -------------------------------------------------------------------------------------------------------

EXAMPLE = dataclasses.replace(
    CLEAN, gpu=T4, registers_per_thread=90, spill_bytes=24, shared_bytes=2048, compile_seconds=0.1234
)


def test_a_report_is_a_table_of_needs_and_limits_that_names_its_compiler_and_no_seconds() -> None:
    plain = repr(EXAMPLE)
    rows = {line.split("  ")[0]: line.split() for line in plain.splitlines()}
    assert rows["registers per thread"][-2:] == ["90", "255"]
    assert "24 B per thread" in plain
    assert rows["shared memory per block"][-4:] == ["2", "KiB", "64", "KiB"]
    assert rows["threads per block"][-2:] == ["128", "1,024"]
    blocks = occupancy(T4, 128, 90, 2048)["blocks_per_sm"]
    assert rows["blocks on one SM"][-3:] == [str(blocks), "(registers)", "16"]
    assert "Triton 3.7.1 for sm_75" in plain
    assert "0.12" not in plain
    assert EXAMPLE._repr_html_().count("<tr") == 9
    use_language("zh")
    assert "寄存器溢出" in repr(EXAMPLE)
    assert "显存" in repr(EXAMPLE)


def test_two_compiles_that_differ_in_seconds_look_the_same() -> None:
    other = dataclasses.replace(EXAMPLE, compile_seconds=9.9)
    assert repr(other) == repr(EXAMPLE)
    assert other._repr_html_() == EXAMPLE._repr_html_()


def test_a_compiler_s_words_are_shown_as_they_are() -> None:
    from lessons_lib.kernels.compiler.compiled import compiler_error

    failed = dataclasses.replace(EXAMPLE, status="failed", detail=compiler_error("<b>{x}</b> & {y"))
    assert "<b>(x)</b> & (y" in repr(failed)
    assert "<b>" not in failed._repr_html_()


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_table_of_gpus_has_a_row_each_and_the_reason_beneath(language: str) -> None:
    use_language(language)
    over = dataclasses.replace(EXAMPLE, gpu=A10, status="over_shared", shared_bytes=147_456)
    refused = dataclasses.replace(EXAMPLE, gpu=MI300X, status="unsupported", registers_per_thread=None)
    plain = gpu_table([EXAMPLE, over, refused]).plain
    lines = plain.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["T4", "A10", "MI300X"]
    assert "144 / 99 KiB" in lines[3]
    assert lines[4].count("–") == 5
    assert "3.7.1" in lines[5]
    assert lines[6].startswith("A10")
    assert lines[7].startswith("MI300X")
    assert gpu_table([]).plain.count("\n") == 1


@needs_triton
def test_the_progress_bar_prints_the_same_characters_every_time_and_none_when_off(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("tqdm")
    printed = []
    for _ in range(2):
        report_table("softmax", gpus=["T4", "A10"])
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1], "a first time, and from the cache"
    assert printed[0].err == ""
    assert "2/2" in printed[0].out
    report_table("softmax", gpus=["T4"], progress=False)
    assert capsys.readouterr() == ("", "")
