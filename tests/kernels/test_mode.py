"""How kernels run here: the decision for every kind of machine, and what happens in processes of their own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from lessons_lib import use_language
from lessons_lib.base.environment import FoundGpu
from lessons_lib.base.optional import MissingPackageError
from lessons_lib.base.text import Text
from lessons_lib.kernels import mode
from lessons_lib.kernels.mode import (
    CannotLaunchError,
    Surroundings,
    TritonSetup,
    advice_on,
    decide_mode,
    interpret_wish,
    knows_bf16,
    prepare_triton,
    require_runnable,
)

ROOT = Path(__file__).parents[2]
T4 = FoundGpu("nvidia", "Tesla T4", (7, 5), "sm_75")
P100 = FoundGpu("nvidia", "Tesla P100-PCIE-16GB", (6, 0), "sm_60")
H200 = FoundGpu("nvidia", "NVIDIA H200", (9, 0), "sm_90")
MI300X = FoundGpu("amd", "AMD Instinct MI300X", None, "gfx942")

needs_triton = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "triton")), reason="needs PyTorch and Triton"
)


# -- the decision ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected", "words"),
    [
        (Surroundings(gpu=T4), "cuda", "Tesla T4"),
        (Surroundings(gpu=H200), "cuda", "NVIDIA H200"),
        (Surroundings(gpu=MI300X), "hip", "MI300X"),
        (Surroundings(setting="0", gpu=H200), "cuda", "NVIDIA H200"),
        (Surroundings(setting="", gpu=T4), "cuda", "Tesla T4"),
        (Surroundings(), "interpreter", "no GPU"),
        (Surroundings(setting="1"), "interpreter", "no GPU"),
        (Surroundings(gpu=P100), "interpreter", "compute capability 6.0"),
        (Surroundings(hidden_gpu=T4), "interpreter", "this PyTorch does not reach it"),
        (Surroundings(setting="1", gpu=T4), "interpreter", "TRITON_INTERPRET"),
        (Surroundings(setting="true", hidden_gpu=H200), "interpreter", "TRITON_INTERPRET"),
        (Surroundings(setting="0"), "compiler", "compiled, not run"),
        (Surroundings(setting="0", torch=False), "compiler", "compiled, not run"),
        (Surroundings(setting="0", gpu=P100), "compiler", "compiled, not run"),
        (Surroundings(torch=False), "none", "PyTorch is not installed"),
        (Surroundings(triton=False), "none", "Triton is not installed"),
        (Surroundings(triton=False, system="macOS"), "none", "no Triton for macOS"),
        (Surroundings(triton=False, system="Windows"), "none", "Windows"),
        (Surroundings(triton=False, torch=False, system="browser"), "none", "browser"),
    ],
)
def test_each_machine_has_its_mode_and_the_reason_for_it(found: Surroundings, expected: str, words: str) -> None:
    chosen, reason = decide_mode(found)
    assert chosen == expected
    assert words in reason.en
    # A sentence each: a problem may follow.
    assert reason.zh.endswith("。") and reason.en.endswith(".") and not reason.en.endswith("..")


@pytest.mark.parametrize("system", ["Linux", "macOS", "Windows", "browser"])
def test_without_triton_the_lesson_says_what_is_left(system: mode.System) -> None:
    _, reason = decide_mode(Surroundings(triton=False, system=system))
    assert "predictions" in reason.en and "recorded runs" in reason.en
    assert "预测" in reason.zh and "有记录的实测" in reason.zh


def test_the_setting_is_read_as_triton_reads_it() -> None:
    assert [interpret_wish(word) for word in ("1", "true", "ON", "y", " Yes ")] == [True] * 5
    assert [interpret_wish(word) for word in ("0", "false", "off", "2")] == [False] * 4
    assert interpret_wish(None) is None and interpret_wish("") is None


def test_bfloat16_is_told_by_capability() -> None:
    assert [knows_bf16(gpu) for gpu in (T4, P100, H200, MI300X)] == [False, False, True, True]
    assert not knows_bf16(FoundGpu("nvidia", "unknown"))


def test_dot_in_bfloat16_needs_hardware() -> None:
    reason = Text(zh="因", en="because")
    assert TritonSetup("interpreter", reason, "cpu", bf16=True).bf16_dot is False
    assert TritonSetup("cuda", reason, "cuda", bf16=True).bf16_dot is True
    assert TritonSetup("cuda", reason, "cuda", bf16=False).bf16_dot is False


def test_a_failing_self_test_comes_with_advice() -> None:
    assert "gcc" in advice_on("RuntimeError: Failed to find C compiler. Please specify via CC").en
    assert "NumPy" in advice_on("ModuleNotFoundError: No module named 'numpy'").en
    assert "Restart" in advice_on("ValueError: something else").en


# -- how it is shown and enforced ------------------------------------------------------------------------------


def setup_with(monkeypatch: pytest.MonkeyPatch, setup: TritonSetup) -> None:
    monkeypatch.setattr(mode, "_setup", setup)


def test_the_setup_is_shown_in_words_of_the_language_in_use_without_versions() -> None:
    setup = TritonSetup("cuda", Text(zh="在 <GPU> 上", en="on the <GPU>"), "cuda", "3.7.1", (7, 5), False)
    assert repr(setup) == "Triton: on the <GPU>"
    assert "&lt;GPU&gt;" in setup._repr_html_() and 'lang="en"' in setup._repr_html_()
    use_language("zh")
    assert repr(setup) == "Triton: 在 <GPU> 上"
    assert 'lang="zh-CN"' in setup._repr_html_()
    assert "3.7.1" not in repr(setup) + setup._repr_html_()


def test_a_missing_package_is_named_when_a_kernel_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, reason = decide_mode(Surroundings(triton=False, system="macOS"))
    setup_with(monkeypatch, TritonSetup(chosen, reason))
    with pytest.raises(MissingPackageError, match=r"(?s)macOS.*macOS") as raised:
        require_runnable()
    assert raised.value._render_traceback_() == [f"ImportError: {raised.value}"]


def test_a_problem_is_named_when_a_kernel_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    reason, problem = Text(zh="因", en="because"), Text(zh="请重启", en="restart")
    setup_with(monkeypatch, TritonSetup("interpreter", reason, "cpu", problem=problem))
    assert repr(prepare_triton()) == "Triton: because restart"
    with pytest.raises(CannotLaunchError, match=r"请重启\nrestart") as raised:
        require_runnable()
    assert raised.value._render_traceback_() == [f"RuntimeError: {raised.value}"]


def test_a_mode_that_only_compiles_refuses_to_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    setup_with(monkeypatch, TritonSetup(*decide_mode(Surroundings(setting="0"))))
    with pytest.raises(CannotLaunchError, match="compiled, not run"):
        require_runnable()


@pytest.mark.parametrize(
    ("fault", "said"),
    [(Text(zh="结果不对", en="wrong sum"), "wrong sum"), (RuntimeError("Failed to find C compiler."), "gcc")],
)
def test_a_failed_self_test_is_a_problem_and_no_exception(
    monkeypatch: pytest.MonkeyPatch, fault: Text | Exception, said: str
) -> None:
    class SelfTest:
        @staticmethod
        def fault(device: str) -> Text:
            if isinstance(fault, Exception):
                raise fault
            return fault

    monkeypatch.setattr(mode.importlib, "import_module", lambda name: SelfTest)
    setup = mode._tested(TritonSetup("interpreter", Text(zh="因", en="because"), "cpu", "3.7.1"))
    assert setup.mode == "interpreter" and not setup.runs
    assert setup.problem is not None and said in setup.problem.en and "3.7.1" in setup.problem.zh


# -- in processes of their own ---------------------------------------------------------------------------------


def run(code: str, **variables: str | None) -> str:
    """What a fresh Python prints; GPUs hidden. ``None`` takes a variable away."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    for name in ("TRITON_INTERPRET", "TRITON_DEFAULT_FP_FUSION"):
        environment.pop(name, None)
    environment.update({name: value for name, value in variables.items() if value is not None})
    program = ["-c", dedent(code)]
    done = subprocess.run(
        [sys.executable, *program], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


@needs_triton
@pytest.mark.triton_versions
def test_without_a_gpu_the_interpreter_is_chosen_before_triton_is_imported() -> None:
    said = run("""
        import os, sys
        from lessons_lib.kernels.mode import prepare_triton
        assert "triton" not in sys.modules and "torch" not in sys.modules
        setup = prepare_triton()
        assert prepare_triton() is setup
        print(setup.mode, setup.device, setup.runs, setup.bf16, setup.problem)
        print(os.environ["TRITON_INTERPRET"], os.environ["TRITON_DEFAULT_FP_FUSION"])
        print(setup)
    """)
    assert said.splitlines()[:2] == ["interpreter cpu True True None", "1 1"]
    assert "no GPU" in said


@needs_triton
def test_the_words_are_the_same_where_the_interpreter_was_asked_for_and_nothing_else_is_there() -> None:
    code = "from lessons_lib.kernels.mode import prepare_triton\nprint(prepare_triton())"
    assert run(code) == run(code, TRITON_INTERPRET="1")


@needs_triton
def test_an_explicit_fusion_setting_is_left_alone() -> None:
    code = "from lessons_lib.kernels.mode import *\nimport os\nprepare_triton()\nprint(os.environ[{!r}])"
    assert run(code.format("TRITON_DEFAULT_FP_FUSION"), TRITON_DEFAULT_FP_FUSION="0") == "0"


@needs_triton
@pytest.mark.triton_versions
@pytest.mark.parametrize("compile_only", [True, False])
def test_a_process_that_only_compiles_needs_no_torch_and_no_gpu(compile_only: bool) -> None:
    said = run(
        f"""
        import sys
        sys.modules["torch"] = None
        from lessons_lib.kernels.mode import prepare_triton
        setup = prepare_triton(compile_only={compile_only})
        from lessons_lib.kernels.chain import chain_source
        from lessons_lib.kernels.epilogue import epilogue_source
        assert sys.modules["torch"] is None
        print(setup.mode, setup.device, setup.runs, type(chain_source("fp16").function).__name__)
        """,
        TRITON_INTERPRET=None if compile_only else "0",
    )
    assert said == "compiler None False JITFunction"


@needs_triton
@pytest.mark.triton_versions
def test_triton_imported_first_in_another_mode_is_noticed_and_nothing_is_launched() -> None:
    said = run("""
        import os
        import triton, triton.language as tl
        from lessons_lib.kernels.mode import prepare_triton
        print(prepare_triton().mode, os.environ.get("TRITON_INTERPRET"))
        import torch
        from lessons_lib.kernels.epilogue import fused_epilogue
        try:
            fused_epilogue(torch.ones(2, 3), torch.ones(3))
        except RuntimeError as error:
            print(error)
    """)
    first, chinese, english = said.splitlines()
    assert first == "interpreter None"
    assert "重启内核" in chinese and "Restart the kernel" in english


@needs_triton
def test_a_late_setting_of_the_variable_is_noticed_too() -> None:
    said = run("""
        import os, triton
        os.environ["TRITON_INTERPRET"] = "1"
        from lessons_lib.kernels.mode import prepare_triton
        setup = prepare_triton()
        print(setup.mode, setup.runs, "Restart" in setup.problem.en)
    """)
    assert said == "interpreter False True"


@needs_triton
def test_a_gpu_wanted_after_an_interpreted_import_is_noticed() -> None:
    said = run("""
        import os
        os.environ["TRITON_INTERPRET"] = "1"
        import triton
        os.environ["TRITON_INTERPRET"] = "0"
        from lessons_lib.kernels.mode import prepare_triton
        setup = prepare_triton()
        print(setup.mode, setup.runs, "Restart" in setup.problem.en)
    """)
    assert said == "compiler False True"


@needs_triton
def test_a_process_told_to_compile_loads_no_torch_where_no_gpu_is_in_sight() -> None:
    said = run(
        """
        import sys
        from lessons_lib.kernels.mode import prepare_triton
        print(prepare_triton().mode, "torch" in sys.modules)
        """,
        TRITON_INTERPRET="0",
    )
    assert said == "compiler False"


@needs_triton
def test_preparing_runs_the_self_test() -> None:
    said = run("""
        import sys
        from types import SimpleNamespace
        from lessons_lib.base.text import Text
        from lessons_lib.kernels.mode import prepare_triton
        asked = []
        wrong = Text(zh="结果不对", en="a wrong sum")
        fault = lambda device: asked.append(device) or wrong
        sys.modules["lessons_lib.kernels.self_test"] = SimpleNamespace(fault=fault)
        setup = prepare_triton()
        prepare_triton()
        print(asked, setup.mode, setup.runs, "a wrong sum" in setup.problem.en)
    """)
    assert said == "['cpu'] interpreter False True"


def test_without_triton_everything_says_so_and_prepare_raises_nothing() -> None:
    said = run("""
        import sys
        sys.modules["triton"] = None
        from lessons_lib.kernels.mode import prepare_triton
        setup = prepare_triton()
        assert "torch" not in sys.modules
        print(setup.mode, setup.runs, setup.version)
        try:
            import lessons_lib.kernels.chain
        except ImportError as error:
            print(type(error).__name__, len(str(error).splitlines()))
    """)
    assert said.splitlines() == ["none False None", "MissingPackageError 2"]


@needs_triton
def test_a_triton_that_cannot_be_imported_is_named_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("raise OSError('libcudart is missing')\n")
    said = run(
        "from lessons_lib.kernels.mode import prepare_triton\ns = prepare_triton()\nprint(s.mode)\nprint(s)",
        PYTHONPATH=str(tmp_path),
    )
    assert said.startswith("none") and "OSError: libcudart is missing" in said


def test_the_tests_of_this_folder_run_where_they_should(triton_setup: TritonSetup) -> None:
    assert triton_setup.runs
    assert triton_setup.on_gpu or os.environ["TRITON_INTERPRET"] == "1"
