"""The checker of the learner's kernel: right ones pass, every seeded bug is named, nothing brings the notebook down."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lessons_lib import use_language
from lessons_lib.base.gpus import GPUS
from lessons_lib.base.text import Text
from lessons_lib.kernels.cell_source import SourceProblemError, gather_source
from lessons_lib.kernels.compiler.compiled import CompileReport
from lessons_lib.kernels.gate import checker, child as checker_child
from lessons_lib.kernels.gate.cases import CASES, TOLERANCES
from lessons_lib.kernels.gate.checker import check_bias_silu_gate, gate_kernel_reference
from lessons_lib.kernels.gate.child import KERNEL_FILE, REPORT_FILE, REQUEST_FILE
from lessons_lib.kernels.gate.memory import BAND, MemoryMap
from lessons_lib.kernels.gate.trace import probe
from lessons_lib.kernels.gate.words import CAUSES, finding_words, raised_words
from lessons_lib.kernels.mode import TritonSetup
from tests.kernels import seeded_bugs
from tests.kernels.seeded_bugs import BUGS, ERRORS, RIGHT, RIGHT_TEXTS, SKELETONS, kernel_text

pytestmark = [
    pytest.mark.usefixtures("triton_setup"),
    # NumPy says in this process what the learner's kernel does in the child's.
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:tl.make_block_ptr is deprecated"),
]


def reports(text: str, folder: Path, name: str = "bias_silu_gate") -> list[dict[str, Any]]:
    """What the child reports of a kernel, run in this process: for kernels that cannot bring it down."""
    (folder / KERNEL_FILE).write_text(text, encoding="utf-8")
    (folder / REQUEST_FILE).write_text(json.dumps({"name": name, "device": "cpu", "bf16": True}), encoding="utf-8")
    checker_child.check(folder)
    return [json.loads(line) for line in (folder / REPORT_FILE).read_text(encoding="utf-8").splitlines()]


# -- right --------------------------------------------------------------------------------------------------------


def test_a_right_kernel_passes_in_a_process_of_its_own_and_compiles() -> None:
    feedback = check_bias_silu_gate(seeded_bugs.right_with_helper)
    assert feedback.status == "right", feedback
    assert feedback.hints == ()
    assert f"all {len(CASES)} cases" in feedback.words


@pytest.mark.triton_versions
@pytest.mark.parametrize("kernel", RIGHT, ids=lambda kernel: str(kernel.__name__))
def test_kernels_that_go_about_it_differently_are_all_right(kernel: Any, tmp_path: Path) -> None:
    source = gather_source(kernel)
    said = reports(source.text, tmp_path, source.name)
    assert said[-1] == {"finding": None}
    assert [line["case"] for line in said[:-1]] == list(range(len(CASES)))


@pytest.mark.parametrize("name", RIGHT_TEXTS)
def test_right_kernels_that_lie_off_the_usual_path_are_right(name: str, tmp_path: Path) -> None:
    if name == "block pointers" and not hasattr(seeded_bugs.tl, "make_block_ptr"):
        pytest.skip("this Triton has no block pointers")
    assert reports(RIGHT_TEXTS[name], tmp_path)[-1] == {"finding": None}


def test_the_reference_is_the_right_result_of_every_case() -> None:
    import torch

    for case in CASES:
        gate, up = (
            torch.tensor([[value(row, column) for column in range(case.columns)] for row in range(case.rows)])
            for value in (case.gate, case.up)
        )
        bias = torch.tensor([case.bias(column) for column in range(case.columns)])
        y = gate_kernel_reference(gate.double(), bias.double(), up.double())
        got = [case.y(row, column) for row in range(case.rows) for column in range(case.columns)]
        assert torch.allclose(y.reshape(-1), torch.tensor(got, dtype=torch.float64), rtol=1e-12, atol=0)


def test_the_data_are_exact_in_their_dtype_and_y_is_finite_in_it() -> None:
    import torch

    dtypes = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    for case in CASES:
        elements = [(row, column) for row in range(case.rows) for column in range(case.columns)]
        inputs = [case.gate(*at) for at in elements] + [case.up(*at) for at in elements]
        exact = torch.tensor(inputs + [case.bias(column) for column in range(case.columns)], dtype=torch.float64)
        assert torch.equal(exact.to(dtypes[case.dtype]).double(), exact)
        results = torch.tensor([case.y(*at) for at in elements], dtype=torch.float64).to(dtypes[case.dtype])
        assert bool(results.isfinite().all())


def test_the_cases_hold_what_the_checker_promises() -> None:
    assert {case.dtype for case in CASES} == set(TOLERANCES)
    assert any(case.rows == 1 for case in CASES)
    assert any(case.columns == 1 for case in CASES)
    assert any(case.columns % case.block for case in CASES)
    assert any(case.block > case.columns for case in CASES)
    assert any(len(set(case.gaps)) == 3 for case in CASES)
    for case in CASES:
        memory = MemoryMap(case)
        starts = list(memory.starts.values())
        ends = [memory.starts[tensor] + memory.span(tensor) for tensor in memory.starts]
        assert starts[0] >= BAND
        assert all(later - end >= BAND for end, later in zip(ends, [*starts[1:], memory.size], strict=True))


# -- not done -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [None, *SKELETONS])
def test_a_skeleton_is_not_done_and_says_the_same_everywhere(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)  # nothing is started for it
    feedback = check_bias_silu_gate(kernel)
    assert repr(feedback) == "○ Not done yet: complete bias_silu_gate and run this cell again."
    assert len(feedback.hints) == 3


# -- seeded bugs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUGS)
def test_a_seeded_bug_is_caught_and_its_cause_named(name: str, tmp_path: Path) -> None:
    text, fault, cause = BUGS[name]
    said = reports(text, tmp_path)
    finding = said[-1]["finding"]
    assert (finding["fault"], finding["cause"]) == (fault, cause)
    case = CASES[said[-2]["case"]]
    for language in ("zh", "en"):
        use_language(language)
        words = " ".join(map(str, finding_words(finding, case)))
        assert "{" not in words
        if "program" in finding["details"]:
            assert re.search(r"(程序|[Pp]rogram) \d", words)
        if fault == "wrong_value":
            assert re.search(r"y\[\d+, \d+\]", words)
            assert re.search(r"(应为|expected) -?[\d.e+]+", words)


@pytest.mark.triton_versions
@pytest.mark.parametrize("name", ["no mask anywhere", "up with the stride of gate", "bias by row", "sigmoid only"])
def test_these_bugs_are_named_on_every_triton(name: str, tmp_path: Path) -> None:
    text, fault, cause = BUGS[name]
    finding = reports(text, tmp_path)[-1]["finding"]
    assert (finding["fault"], finding["cause"]) == (fault, cause)


def test_every_cause_that_has_words_is_met_by_a_seeded_bug() -> None:
    assert {cause for _, _, cause in BUGS.values() if cause} == set(CAUSES)


def test_a_bug_is_named_with_its_case_element_program_and_numbers() -> None:
    feedback = check_bias_silu_gate(seeded_bugs.bias_by_row)
    assert feedback.status == "wrong"
    assert "The first wrong element is y[0, 1] (program 0): got 0.0415" in feedback.words
    assert "bias is indexed by the row" in feedback.words
    assert "The case: 3 x 64, BLOCK = 32, fp32" in feedback.words
    assert len(feedback.hints) == 3


@pytest.mark.parametrize(
    ("name", "fault", "cause"),
    [
        ("no mask on the store", "outside", "no_mask"),
        ("block forgotten", "unwritten", "block_missing"),
        ("row forgotten in y", "unwritten", "row_missing"),
        ("stores into up", "writes_input", ""),
        ("y with the stride of gate", "outside", ""),
        ("no up", "wrong_value", "no_up"),
        ("exp overflows", "wrong_value", "exp_overflows"),
        ("masked out altogether", "unwritten", "stores_nothing"),
    ],
)
def test_without_a_trace_the_guard_bands_and_the_result_still_tell(
    name: str, fault: str, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker_child, "probe", lambda: False)
    finding = reports(BUGS[name][0], tmp_path)[-1]["finding"]
    assert (finding["fault"], finding["cause"]) == (fault, cause)


def test_without_a_trace_a_right_kernel_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker_child, "probe", lambda: False)
    assert reports(kernel_text(), tmp_path)[-1] == {"finding": None}


@pytest.mark.triton_versions
def test_this_triton_lets_itself_be_watched() -> None:
    assert probe()


# -- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_told_with_its_line_and_what_is_behind_it(name: str, tmp_path: Path) -> None:
    text, said, advice = ERRORS[name]
    raised = reports(text, tmp_path)[-1]["error"]
    assert raised["program"] == 0
    line = text.splitlines()[raised["line"] - 1]
    assert line.startswith("    "), line
    source = gather_source(seeded_bugs.right)
    words = " ".join(map(str, raised_words({**raised, "line": 0}, source)))
    assert said in words
    assert advice in words


def test_a_name_that_cannot_be_shipped_is_told_with_its_line(tmp_path: Path) -> None:
    source = gather_source(seeded_bugs.uses_the_notebook)
    raised = reports(source.text, tmp_path, source.name)[-1]["error"]
    words = " ".join(map(str, raised_words(raised, source)))
    lines = Path(seeded_bugs.__file__).read_text(encoding="utf-8").splitlines()
    number = next(number for number, line in enumerate(lines, 1) if 'SETTINGS["scale"])' in line)
    assert f"line {number}, `{lines[number - 1].strip()}`" in words
    assert "SETTINGS stays behind in the notebook" in words


# -- hostile ------------------------------------------------------------------------------------------------------


def test_an_endless_loop_is_stopped_with_all_that_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started = _watch_processes(monkeypatch)
    feedback = check_bias_silu_gate(seeded_bugs.endless, time_limit=8)
    assert feedback.status == "wrong"
    assert "Not finished within 8 s" in feedback.words
    assert started
    assert all(process.poll() is not None for process in started)


def test_an_interrupt_ends_the_process_and_goes_on_to_the_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    started = _watch_processes(monkeypatch)
    wait = subprocess.Popen.wait

    def interrupted(process: Any, timeout: float | None = None) -> Any:
        if process.poll() is None and timeout is not None and timeout > 10:
            raise KeyboardInterrupt
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_bias_silu_gate(seeded_bugs.endless)
    assert started
    assert all(process.poll() is not None for process in started)


def _watch_processes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    started: list[Any] = []
    popen = subprocess.Popen

    class Watched(popen):  # type: ignore[misc, valid-type, type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(checker.subprocess, "Popen", Watched)
    return started


def test_a_kernel_that_ends_its_process_is_reported() -> None:
    feedback = check_bias_silu_gate(seeded_bugs.ends_the_process)
    assert feedback.status == "wrong"
    assert "ended early (exit status 0)" in feedback.words


def test_what_the_kernel_prints_is_shown_and_cut(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = gather_source(seeded_bugs.prints)
    said = reports(source.text, tmp_path, source.name)
    assert "the columns are" in said[-1]["printed"]
    assert len(said[-1]["printed"]) <= 400
    assert capfd.readouterr() == ("", "")


def test_a_write_far_outside_is_stopped_before_it_happens(tmp_path: Path) -> None:
    finding = reports(BUGS["wild pointer"][0], tmp_path)[-1]["finding"]
    assert finding["fault"] == "outside"


def test_python_that_only_the_interpreter_takes_is_refused_by_the_compiler() -> None:
    feedback = check_bias_silu_gate(seeded_bugs.plain_python)
    assert feedback.status == "wrong"
    assert "does not compile" in feedback.words
    assert "ONE = tl.constexpr(...)" in feedback.words


def test_a_compiler_that_compiles_nothing_here_is_not_the_learners_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = CompileReport("any", GPUS["T4"], "fp16", (1024,), 4, 1, True, "failed", Text(zh="坏了", en="broken"))
    monkeypatch.setattr(checker, "compile_report", lambda *arguments, **options: broken)
    monkeypatch.setattr(checker, "_run", lambda *arguments: None)
    assert check_bias_silu_gate(seeded_bugs.plain_python).status == "right"


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (3, "A function is needed"),
        (len, "A function is needed"),
        (seeded_bugs.not_a_kernel, "put @triton.jit"),
        (seeded_bugs.other_parameters, "The parameters must be those of the skeleton"),
        (lambda x_ptr: None, "source"),
    ],
)
def test_what_is_no_such_kernel_is_refused_before_anything_runs(kernel: Any, words: str) -> None:
    feedback = check_bias_silu_gate(kernel)
    assert feedback.status == "wrong"
    assert words in feedback.words


def test_a_function_without_source_is_refused_in_words() -> None:
    namespace: dict[str, Any] = {}
    exec("def made_up(x_ptr):\n    return 1\n", namespace)
    with pytest.raises(SourceProblemError, match="made_up"):
        gather_source(namespace["made_up"])
    assert "made_up" in check_bias_silu_gate(namespace["made_up"]).words


def test_where_triton_is_missing_the_learner_reads_why(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = Text(zh="没有安装 Triton。", en="Triton is not installed.")
    monkeypatch.setattr(checker, "prepare_triton", lambda: TritonSetup("none", reason))
    feedback = check_bias_silu_gate(seeded_bugs.not_a_kernel)  # as lesson_language's stand-in leaves it
    assert feedback.status == "open"
    assert feedback.words.endswith("Triton is not installed.")


def test_a_process_that_cannot_start_is_not_the_learners_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "_MAIN", "raise ImportError('no such library')")
    feedback = check_bias_silu_gate(seeded_bugs.right)
    assert feedback.status == "open"
    assert "ImportError: no such library" in feedback.words


def test_the_time_limit_must_be_a_number_above_0() -> None:
    with pytest.raises(ValueError, match="time_limit"):
        check_bias_silu_gate(None, time_limit=0)


# -- on a GPU -----------------------------------------------------------------------------------------------------


def test_with_a_gpu_the_kernel_also_runs_there_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no GPU here: what is asked of the two processes and what becomes of their answers is the point."""
    setup = checker.prepare_triton()
    on_gpu = TritonSetup("cuda", setup.reason, "cuda", setup.version, (7, 5), bf16=False)
    monkeypatch.setattr(checker, "prepare_triton", lambda: on_gpu)
    details = {"row": 0, "column": 1, "program": 0, "got": 1.0, "expected": 2.0}
    wrong: dict[str, Any] = {"finding": {"fault": "wrong_value", "cause": "", "details": details}}
    answers = {"cpu": ({"case": 0}, {"finding": None}), "cuda": ({"case": 0}, wrong)}
    asked: list[tuple[str, bool]] = []

    def answered(source: Any, request: checker.Request, deadline: float) -> Any:
        asked.append((request["device"], request["bf16"]))
        return checker._Ended(answers[request["device"]], 0, "")  # type: ignore[arg-type]

    monkeypatch.setattr(checker, "_in_child", answered)
    feedback = check_bias_silu_gate(seeded_bugs.right)
    assert asked == [("cpu", True), ("cuda", False)]
    assert feedback.status == "wrong"
    assert feedback.words.startswith("All right in the interpreter, but not on the GPU.")
    answers["cuda"] = answers["cpu"]
    assert check_bias_silu_gate(seeded_bugs.right).status == "right"


# -- in a notebook ------------------------------------------------------------------------------------------------

_CELLS = (
    "from lessons_lib.kernels.language import tl, triton\n"
    "from lessons_lib.kernels.gate.checker import check_bias_silu_gate\n"
    "HALF = tl.constexpr(0.5)\n"
    "scale_of_nothing = {'not': 'a constant'}",
    "@triton.jit\ndef gated(z, up):\n    return 2 * HALF * z * tl.sigmoid(z) * up",
    "%lsmagic\n" + kernel_text(("z * tl.sigmoid(z) * up", "gated(z, up)")),
    "feedback = check_bias_silu_gate(bias_silu_gate)\nfeedback",
    kernel_text((", mask=mask", "")) + "\ncheck_bias_silu_gate(bias_silu_gate)",
)


def test_in_a_real_notebook_helpers_and_constants_of_other_cells_are_found() -> None:
    nbclient = pytest.importorskip("nbclient")
    cells = [nbformat.v4.new_code_cell(source) for source in _CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [_shown(notebook.cells[index]) for index in (3, 4)]
    assert shown[0].startswith("✓"), shown[0]
    assert "The mask is missing" in shown[1], shown[1]


def test_in_a_notebook_a_line_that_fails_has_its_number_in_the_cell() -> None:
    shell_class = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    shell = shell_class()
    cell = "# a comment\n\n" + ERRORS["raises"][0] + "\nfeedback = check(bias_silu_gate)\n"
    shell.push({"check": check_bias_silu_gate})
    assert shell.run_cell(cell).success
    number = cell.splitlines().index("    raise ValueError('too many cooks')") + 1
    assert f"line {number}, `raise ValueError('too many cooks')`" in shell.user_ns["feedback"].words
    assert "too many cooks" in shell.user_ns["feedback"].words


def test_a_cell_run_again_is_checked_as_it_is_now() -> None:
    shell_class = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    shell = shell_class()
    for text, marker in (
        (kernel_text(("gate + bias", "gate - bias")), "gate - bias"),
        (kernel_text(), "gate + bias"),
    ):
        assert shell.run_cell(text).success
        assert marker in gather_source(shell.user_ns["bias_silu_gate"]).text


def _shown(cell: Any) -> str:
    return str(next(output.data["text/plain"] for output in cell.outputs if "data" in output))


def test_gathering_takes_modules_constants_helpers_and_library_functions_along(tmp_path: Path) -> None:
    module = textwrap.dedent(
        """
        import math
        import triton
        import triton.language as lang
        from lessons_lib.kernels.activations import silu
        from triton.language import exp, float32

        LIMIT: lang.constexpr = 3
        PAIR = (1, float("inf"), None, "s", lang.constexpr(2))
        TABLE = {}

        def plain(z):
            return z

        @triton.jit
        def helper(z):
            return plain(silu(z)) + math.pi * LIMIT

        alias = helper

        @triton.jit
        def kernel(x_ptr, BLOCK: lang.constexpr):
            z = exp(lang.load(x_ptr).to(float32))
            lang.store(x_ptr, alias(z) + PAIR[0] + TABLE)
        """
    )
    (tmp_path / "learner.py").write_text(module, encoding="utf-8")
    source = gather_source(checker_child._load(tmp_path / "learner.py", "kernel"))
    assert source.name == "kernel"
    assert source.left_out == ("TABLE",)
    (tmp_path / "again.py").write_text(source.text, encoding="utf-8")
    again = checker_child._load(tmp_path / "again.py", "kernel")
    names = again.fn.__globals__
    assert names["PAIR"][:4] == (1, float("inf"), None, "s")
    assert names["PAIR"][4].value == 2
    assert names["LIMIT"] == 3
    assert names["__annotations__"]["LIMIT"] is names["lang"].constexpr
    assert names["float32"] == names["lang"].float32
    assert names["alias"] is names["helper"]
    assert names["silu"].__name__ == "silu"
