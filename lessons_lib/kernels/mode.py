"""Where Triton kernels run on this machine, decided before anything imports triton.

Triton reads ``TRITON_INTERPRET`` while it is imported: set later, half of it still asks for a GPU. So whoever wants
kernels calls ``prepare_triton()`` first; ``kernels/language`` does it for every kernel of this package. Nothing is
installed here, and nothing raises: what is missing or wrong is said in ``TritonSetup.reason`` and ``.problem``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Literal

from lessons_lib.base.environment import FoundGpu, System, list_gpus, system_name, triton_mode
from lessons_lib.base.language import language_tag
from lessons_lib.base.optional import MissingPackageError
from lessons_lib.base.text import Text, sentences

Mode = Literal["cuda", "hip", "interpreter", "compiler", "none"]

# The oldest compute capability whose instructions know bfloat16. ``torch.cuda.is_bf16_supported()`` also says yes to
# a T4, where bfloat16 is emulated.
OLDEST_BF16_CAPABILITY = (8, 0)

_INTERPRET = "TRITON_INTERPRET"
_FP_FUSION = "TRITON_DEFAULT_FP_FUSION"
_SWITCHED_ON = ("1", "true", "yes", "on", "y")  # as Triton reads it


@dataclass(frozen=True, repr=False)
class TritonSetup:
    """How kernels run here, as found once a process.

    Attributes:
        mode: ``"cuda"`` or ``"hip"``: on the GPU; ``"interpreter"``: on the CPU, for results and not for speed;
            ``"compiler"``: compiled and never launched (``TRITON_INTERPRET=0`` without a GPU); ``"none"``.
        reason: why this mode.
        device: where tensors for the kernels belong, as PyTorch names it: ``"cuda"`` (AMD's too), ``"cpu"``; else
            ``None``.
        version: Triton's own, ``None`` without it.
        capability: NVIDIA's compute capability, ``None`` off its GPUs.
        bf16: whether elementwise and row kernels take bfloat16: a GPU of capability 8.0 on, any AMD GPU, and the
            interpreter, for kernels compute in fp32.
        problem: what keeps kernels from running although the mode is right, and what to do; ``None`` if nothing.
    """

    mode: Mode
    reason: Text
    device: Literal["cuda", "cpu"] | None = None
    version: str | None = None
    capability: tuple[int, int] | None = None
    bf16: bool = False
    problem: Text | None = None

    @property
    def on_gpu(self) -> bool:
        return self.mode in ("cuda", "hip")

    @property
    def runs(self) -> bool:
        """Whether a kernel can be launched."""
        return self.device is not None and self.problem is None

    @property
    def bf16_dot(self) -> bool:
        """Whether ``tl.dot`` of bfloat16 is right: the interpreter's is silently wrong."""
        return self.bf16 and self.mode != "interpreter"

    @property
    def words(self) -> tuple[Text, ...]:
        """Reason and problem: no version in them, so that a stored output holds elsewhere."""
        return (self.reason,) if self.problem is None else (self.reason, self.problem)

    def __repr__(self) -> str:
        return f"Triton: {sentences(*self.words)}"

    def _repr_html_(self) -> str:
        return f'<p lang="{language_tag()}" style="max-width:740px;line-height:1.6">{escape(repr(self))}</p>'


class CannotLaunchError(RuntimeError):
    """Kernels do not run here. IPython shows the message alone: the way to it tells a learner nothing."""

    def _render_traceback_(self) -> list[str]:
        return [f"RuntimeError: {self}"]


_setup: TritonSetup | None = None


def prepare_triton(*, compile_only: bool = False) -> TritonSetup:
    """Decide how kernels run in this process, set Triton's variables accordingly, import and test Triton.

    On a GPU where PyTorch and Triton reach one, else in the interpreter. A ``TRITON_INTERPRET`` of the learner's own
    is respected. The first call takes a second or two, further calls return its answer. Never raises.

    Args:
        compile_only: for a process that compiles kernels and launches none: looks for no GPU, needs no PyTorch.
    """
    global _setup
    if _setup is None:
        os.environ.setdefault(_FP_FUSION, "1")  # today's default, said aloud: Triton 3.9 warns without it
        if compile_only:
            os.environ[_INTERPRET] = "0"
        _setup = _found_setup(compile_only)
        if _setup.runs:
            _setup = _tested(_setup)
    return _setup


def require_runnable() -> TritonSetup:
    """``prepare_triton()``, if kernels can be launched.

    Raises:
        MissingPackageError: Triton or PyTorch is missing.
        CannotLaunchError: they are there, and still no kernel runs; the message says what to do.
    """
    setup = prepare_triton()
    if setup.mode == "none":
        raise MissingPackageError(setup.reason.both)
    if not setup.runs:
        raise CannotLaunchError((setup.problem or setup.reason).both)
    return setup


# -- the decision, apart from the machine ----------------------------------------------------------------------


@dataclass(frozen=True)
class Surroundings:
    """What the decision depends on.

    Attributes:
        setting: the value of ``TRITON_INTERPRET``, ``None`` if not set.
        triton, torch: whether they are installed.
        gpu: the GPU that PyTorch would use.
        hidden_gpu: a GPU of this machine that PyTorch does not reach.
        system: the operating system.
    """

    setting: str | None = None
    triton: bool = True
    torch: bool = True
    gpu: FoundGpu | None = None
    hidden_gpu: FoundGpu | None = None
    system: System = "Linux"


def decide_mode(found: Surroundings) -> tuple[Mode, Text]:
    """The mode, and why."""
    if not found.triton:
        return "none", _NO_TRITON.get(found.system, _NO_TRITON["Linux"])
    wish = interpret_wish(found.setting)
    if wish is False and (not found.torch or found.gpu is None or not found.gpu.usable_by_triton):
        return "compiler", _COMPILER
    if not found.torch:
        return "none", _NO_TORCH
    if wish is True and (found.gpu or found.hidden_gpu):
        return "interpreter", _CHOSEN_INTERPRETER
    if found.gpu is None and found.hidden_gpu is not None:
        return "interpreter", _HIDDEN_GPU.format(name=found.hidden_gpu.name)
    mode, words = triton_mode(True, () if found.gpu is None else (found.gpu,))
    reason = Text(zh=f"{words.zh}。", en=f"{words.en}.")
    if mode == "gpu" and found.gpu is not None:
        return ("hip" if found.gpu.vendor == "amd" else "cuda"), reason
    return "interpreter", reason


def interpret_wish(setting: str | None) -> bool | None:
    """What a ``TRITON_INTERPRET`` asks for: the interpreter, not the interpreter, or (unset, empty) nothing."""
    if not setting:
        return None
    return setting.strip().lower() in _SWITCHED_ON


def knows_bf16(gpu: FoundGpu) -> bool:
    """Whether the GPU computes in bfloat16 itself, told by its capability."""
    return gpu.vendor == "amd" or (gpu.capability is not None and gpu.capability >= OLDEST_BF16_CAPABILITY)


_READABLE = Text(
    zh="这一课照样可以读：预测、用公式估算的编译报告都看得到；有记录的实测时，也看得到",
    en="The lesson can still be read: predictions, estimates by formula, and recorded runs where there are any",
)
_NO_TRITON: Mapping[System, Text] = {
    "Linux": Text(
        zh="没有安装 Triton。{readable}。PyTorch 的 CUDA 版自带配套的 Triton；CPU 版可以另外安装。",
        en="Triton is not installed. {readable}. PyTorch's CUDA build brings the Triton that suits it; beside a CPU "
        "build it is installed separately.",
    ).format(readable=_READABLE),
    "macOS": Text(
        zh="Triton 没有 macOS 版。{readable}。想运行核函数，请用 Colab 或魔搭打开。",
        en="There is no Triton for macOS. {readable}. To run kernels, open it on Colab or ModelScope.",
    ).format(readable=_READABLE),
    "Windows": Text(
        zh="Triton 没有官方的 Windows 版。{readable}。想运行核函数，请用 WSL、Colab 或魔搭打开。",
        en="There is no official Triton for Windows. {readable}. To run kernels, use WSL, Colab or ModelScope.",
    ).format(readable=_READABLE),
    "browser": Text(
        zh="浏览器里没有 Triton。{readable}。想运行核函数，请用 Colab 或魔搭打开。",
        en="There is no Triton inside a browser. {readable}. To run kernels, open it on Colab or ModelScope.",
    ).format(readable=_READABLE),
}
_NO_TORCH = Text(
    zh="没有安装 PyTorch，核函数要用它的张量。{readable}。",
    en="PyTorch is not installed, and kernels work on its tensors. {readable}.",
).format(readable=_READABLE)
_BROKEN_TRITON = Text(
    zh="Triton 装了却导入不了（{error}）。{readable}。",
    en="Triton is installed but cannot be imported ({error}). {readable}.",
)
_COMPILER = Text(
    zh="没有可用的 GPU，而 TRITON_INTERPRET=0 不许用解释器：核函数只编译，不运行。",
    en="No usable GPU, and TRITON_INTERPRET=0 rules the interpreter out: kernels are compiled, not run.",
)
_CHOSEN_INTERPRETER = Text(
    zh="按 TRITON_INTERPRET 的设置，用解释器在 CPU 上运行：结果正确，快慢不作数。",
    en="TRITON_INTERPRET asks for the interpreter, which runs kernels on the CPU, for correct results, not for speed.",
)
_HIDDEN_GPU = Text(
    zh="这台机器有 {name}，但装的 PyTorch 用不上它：改用解释器在 CPU 上运行。",
    en="this machine has a {name}, but this PyTorch does not reach it, so the interpreter runs kernels on the CPU.",
)
_RESTART = Text(
    zh="在这一格之前，已经有别的代码以另一种方式导入了 Triton。请重启内核，先运行这一格。",
    en="Something imported Triton before this cell, in another mode. Restart the kernel and run this cell first.",
)


# -- the machine -----------------------------------------------------------------------------------------------


def _found_setup(compile_only: bool) -> TritonSetup:
    setting = os.environ.get(_INTERPRET)
    system = system_name(sys.platform)
    found = Surroundings(setting, triton=_installed("triton"), torch=_installed("torch"), system=system)
    if found.triton and found.torch and not compile_only:
        found = _with_gpus(found)
    mode, reason = decide_mode(found)
    if mode == "none":
        return TritonSetup(mode, reason)
    problem = None if imported_mode() in (None, _import_mode(mode)) else _RESTART
    if problem is None:
        os.environ[_INTERPRET] = "1" if mode == "interpreter" else "0"
    try:
        version = str(importlib.import_module("triton").__version__)
    except Exception as error:  # a library of the system that is missing, a NumPy too new, ...
        return TritonSetup("none", _BROKEN_TRITON.format(error=first_line(error), readable=_READABLE))
    if mode == "interpreter":
        return TritonSetup(mode, reason, "cpu", version, bf16=True, problem=problem)
    if mode == "compiler" or found.gpu is None:
        return TritonSetup(mode, reason, None, version, bf16=True, problem=problem)
    return TritonSetup(mode, reason, "cuda", version, found.gpu.capability, knows_bf16(found.gpu), problem)


def imported_mode() -> Literal["interpreter", "compiler"] | None:
    """How triton was imported in this process; ``None`` if it was not."""
    standard = sys.modules.get("triton.language.standard")
    function = getattr(standard, "cdiv", None)
    if function is None:
        return None
    return "interpreter" if type(function).__name__ == "InterpretedFunction" else "compiler"


def _import_mode(mode: Mode) -> Literal["interpreter", "compiler"]:
    return "interpreter" if mode == "interpreter" else "compiler"


def _installed(package: str) -> bool:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # a module without a specification of its own
        return package in sys.modules
    return spec is not None and spec.origin is not None  # a mere folder of that name has no origin


def _gpu_in_sight() -> bool:
    hidden = "" in (os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("HIP_VISIBLE_DEVICES"))
    devices = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
    return not hidden and (bool(list_gpus()) or any(Path(device).exists() for device in devices))


def _with_gpus(found: Surroundings) -> Surroundings:
    """With what PyTorch and the system say of GPUs. PyTorch takes seconds to import: asked only where it matters."""
    wish = interpret_wish(found.setting)
    if wish is True:
        return replace(found, hidden_gpu=next(iter(list_gpus()), None))
    if wish is False and not _gpu_in_sight():
        return found
    try:
        gpu = _torch_gpu()
    except Exception:  # torch is there but cannot be imported, or its driver cannot be asked
        return replace(found, torch="torch" in sys.modules)
    return replace(found, gpu=gpu, hidden_gpu=None if gpu else next(iter(list_gpus()), None))


def _torch_gpu() -> FoundGpu | None:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns on stderr about old GPUs and drivers; the reason says it
        if not torch.cuda.is_available():
            return None
        index = torch.cuda.current_device()
        name = torch.cuda.get_device_name(index)
        if torch.version.hip:
            target = str(torch.cuda.get_device_properties(index).gcnArchName).partition(":")[0]
            return FoundGpu("amd", name, target=target)
        major, minor = torch.cuda.get_device_capability(index)
        return FoundGpu("nvidia", name, (major, minor), f"sm_{major}{minor}")


# -- the self-test ---------------------------------------------------------------------------------------------

_FAILED = Text(
    zh="自检没有通过（Triton {version}）：{error}。{advice}",
    en="The self-test failed (Triton {version}): {error}. {advice}",
)
_ADVICE: tuple[tuple[tuple[str, ...], Text], ...] = (
    (
        ("c compiler", "gcc", "cc1"),
        Text(
            zh="Triton 启动核函数要用 C 编译器：请安装 gcc，再重启内核。",
            en="Triton needs a C compiler to launch kernels: install gcc, then restart the kernel.",
        ),
    ),
    (
        ("numpy",),
        Text(
            zh="解释器要用 NumPy：请安装，再重启内核。",
            en="The interpreter needs NumPy: install it, then restart the kernel.",
        ),
    ),
)
_ANY_ADVICE = Text(
    zh="请重启内核，先运行这一格；仍然不行，就装回 PyTorch 配套的那个 Triton 版本。",
    en="Restart the kernel and run this cell first; if that does not help, go back to the version of Triton that your "
    "PyTorch asks for.",
)


def _tested(setup: TritonSetup) -> TritonSetup:
    try:
        module = importlib.import_module("lessons_lib.kernels.self_test")
        fault = module.fault(setup.device)
    except Exception as error:
        fault = first_line(error)
    if fault is None:
        return setup
    problem = _FAILED.format(version=setup.version, error=fault, advice=advice_on(str(fault)))
    return replace(setup, problem=problem)


def advice_on(error: str) -> Text:
    """What a learner can do about this error of the self-test."""
    for words, advice in _ADVICE:
        if any(word in error.lower() for word in words):
            return advice
    return _ANY_ADVICE


def first_line(error: BaseException) -> str:
    """The error's kind and the first line it says, cut to 160 characters."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {said}"[:160].rstrip(": ")
