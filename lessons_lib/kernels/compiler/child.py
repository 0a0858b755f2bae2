"""The process that compiles kernels: one JSON request a line in, one JSON reply a line out.

Its own process, because the interpreter and the compiler cannot share one, because a compile can only be given up by
ending its process, and because a compiler that crashes must not take a notebook along. Nothing here imports torch.

Source of the figures: the registers and the stack are what NVIDIA's ``cuobjdump -res-usage``, which Triton's wheel
brings, reads from the machine code; on AMD they stand in the metadata at the end of the assembly text.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TypedDict

from lessons_lib.kernels.launch import KernelName
from lessons_lib.kernels.source import KernelSource

MISSING_FIGURE = -1  # a figure that this version's tools do not give

_TOOL_SECONDS = 60


class Request(TypedDict):
    """One kernel, one target.

    ``kernel``: a name of ``launch.KERNELS``, or the module that holds a kernel of the learner's own;
    ``arguments``: of ``sources.kernel_source``; ``multiple_of_16``: whether sizes and strides are.
    """

    kernel: KernelName | OwnKernel
    arguments: dict[str, Any]
    num_warps: int
    num_stages: int
    multiple_of_16: bool
    target: str
    warp_size: int


class OwnKernel(TypedDict):
    """A kernel shipped as text; the other fields are those of ``KernelSource``."""

    text: str
    function: str
    signature: dict[str, str]
    constexprs: dict[str, Any]
    pointers: list[str]
    sizes: list[str]


class Figures(TypedDict):
    """What a compiled kernel needs; bytes. ``load_bytes``: the widest load from device memory of one thread."""

    registers: int
    spill_bytes: int
    shared_bytes: int
    family: str
    load_bytes: int
    seconds: float


def serve() -> None:
    """Answer requests until the other side closes the pipe."""
    # Whatever a compiler or a kernel's module prints must not get between the replies.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    channel.write(json.dumps(_ready()) + "\n")
    channel.flush()
    for line in sys.stdin:
        channel.write(json.dumps(answer(json.loads(line))) + "\n")
        channel.flush()


def _ready() -> dict[str, str]:
    from lessons_lib.kernels.mode import prepare_triton

    setup = prepare_triton(compile_only=True)
    return {"version": setup.version} if setup.version else {"error": setup.reason.en}


def answer(request: Request) -> dict[str, Any]:
    """``Figures`` with ``status`` ``"ok"``; or ``"failed"`` with the compiler's first useful line as ``error``."""
    try:
        return {"status": "ok", **compile_figures(request)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a learner's module may ask for it
        return {"status": "failed", "error": useful_line(error)}


def compile_figures(request: Request) -> Figures:
    """Compile the kernel for the target and read off what it needs."""
    import triton
    from triton.backends.compiler import GPUTarget

    source = _source(request)
    arch = request["target"]
    nvidia = arch.startswith("sm_")
    target = GPUTarget("cuda", int(arch[3:]), 32) if nvidia else GPUTarget("hip", arch, request["warp_size"])
    options = {"num_warps": request["num_warps"], "num_stages": request["num_stages"]}
    ast_source = specialized_source(source, target, request["multiple_of_16"])
    start = time.perf_counter()
    compiled = triton.compile(ast_source, target=target, options=options)
    seconds = time.perf_counter() - start
    if nvidia:
        registers, stack = cubin_usage(compiled.asm["cubin"])
        family, load_bytes = ptx_family(compiled.asm["ptx"]), ptx_load_bytes(compiled.asm["ptx"])
    else:
        registers, stack = amdgcn_usage(compiled.asm["amdgcn"])
        family, load_bytes = amdgcn_family(compiled.asm["amdgcn"]), amdgcn_load_bytes(compiled.asm["amdgcn"])
    return {
        "registers": registers,
        "spill_bytes": stack,
        "shared_bytes": int(compiled.metadata.shared),
        "family": family,
        "load_bytes": load_bytes,
        "seconds": seconds,
    }


# -- the kernel --------------------------------------------------------------------------------------------------


def _source(request: Request) -> KernelSource:
    kernel = request["kernel"]
    if isinstance(kernel, str):
        from lessons_lib.kernels.compiler.sources import kernel_source

        return kernel_source(kernel, **request["arguments"])
    return KernelSource(
        _function(kernel["text"], kernel["function"]),
        kernel["signature"],
        kernel["constexprs"],
        tuple(kernel["pointers"]),
        tuple(kernel["sizes"]),
    )


def _function(text: str, name: str) -> Any:
    """The function from a module with this text; a file, because Triton reads a kernel's source from one."""
    path = Path(tempfile.mkdtemp(prefix="kernel-")) / "own_kernel.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("own_kernel", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def specialized_source(source: KernelSource, target: Any, multiple_of_16: bool) -> Any:
    """The kernel specialized as a launch would be: tensors start at a multiple of 16 bytes, sizes may be one too."""
    from triton.compiler import ASTSource

    names = list(source.function.arg_names)
    aligned = {*source.pointers, *(source.sizes if multiple_of_16 else ())}
    if "constexprs" not in inspect.signature(ASTSource.__init__).parameters:  # Triton 3.2
        return specialized_source_3_2(source, names, aligned)
    from triton.compiler.compiler import make_backend

    backend = make_backend(target)
    # "D": divisible by 16; "S": a tensor of less than 2 GiB, which AMD's compiler addresses in a way of its own.
    words = {True: "DS" if _buffer_operations() else "D", False: "D"}
    attributes = {(names.index(name),): backend.parse_attr(words[name in source.pointers]) for name in aligned}
    signature = {name: source.signature.get(name, "constexpr") for name in names}
    return ASTSource(source.function, signature=signature, constexprs=source.constexprs, attrs=attributes)


def specialized_source_3_2(source: KernelSource, names: list[str], aligned: set[str]) -> Any:
    from triton.backends.compiler import AttrsDescriptor
    from triton.compiler import ASTSource

    return ASTSource(
        source.function,
        signature={name: source.signature[name] for name in names if name in source.signature},
        constants=source.constexprs,
        attrs=AttrsDescriptor.from_hints({names.index(name): 16 for name in aligned}),
    )


def _buffer_operations() -> bool:
    """Whether a launch on AMD tells the compiler that a tensor is small: on by default from Triton 3.6 on."""
    import triton

    knobs = getattr(triton, "knobs", None)
    return bool(getattr(getattr(knobs, "amd", None), "use_buffer_ops", False))


# -- NVIDIA ------------------------------------------------------------------------------------------------------


def cubin_usage(cubin: bytes) -> tuple[int, int]:
    """Registers a thread and bytes of its stack, which for these kernels is what was spilled."""
    tool = _cuobjdump()
    if tool is None:
        return MISSING_FIGURE, MISSING_FIGURE
    # A name of its own for each call; Windows could not open a NamedTemporaryFile a second time.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        command = [tool, "-res-usage", str(path)]
        done = subprocess.run(command, capture_output=True, timeout=_TOOL_SECONDS, check=True, text=True)
    return parse_resource_usage(done.stdout)


def parse_resource_usage(words: str) -> tuple[int, int]:
    """Registers and stack from the words of ``cuobjdump -res-usage``; the largest where there are several functions.

    Raises:
        ValueError: there is no such line.
    """
    found = [(int(registers), int(stack)) for registers, stack in re.findall(r"\bREG:(\d+) STACK:(\d+)", words)]
    if not found:
        raise ValueError(f"no resource usage in: {words[:200]!r}")
    return max(registers for registers, _ in found), max(stack for _, stack in found)


def _cuobjdump() -> str | None:
    import triton

    executable = "cuobjdump.exe" if os.name == "nt" else "cuobjdump"
    shipped = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / executable
    return str(shipped) if shipped.is_file() else shutil.which("cuobjdump")


def ptx_family(ptx: str) -> str:
    """Which unit does the arithmetic: a generation of tensor cores, or the ordinary cores (``"fma"``)."""
    for family, instruction in (("tcgen05", "tcgen05.mma"), ("wgmma", "wgmma.mma_async"), ("mma", "mma.sync")):
        if instruction in ptx:
            return family
    return "fma"


_PTX_LOAD = re.compile(r"\bld\.global(?:\.(?!v[248]\b)[a-zA-Z_:\d]+?)*?(?:\.v([248]))?\.[bufs](8|16|32|64|128)\b")
_PTX_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global[^;]*?\],\s*\[[^\]]*\],\s*(0x[0-9a-f]+|\d+)")


def ptx_load_bytes(ptx: str) -> int:
    """The widest load of one thread, into registers or (``cp.async``) into shared memory; 0 if there is none."""
    loads = [int(count or 1) * int(bits) // 8 for count, bits in _PTX_LOAD.findall(ptx)]
    return max([*loads, *(int(size, 0) for size in _PTX_COPY.findall(ptx))], default=0)


# -- AMD ---------------------------------------------------------------------------------------------------------


def amdgcn_usage(assembly: str) -> tuple[int, int]:
    """Vector registers a thread and bytes of its scratch memory, from the metadata of the code object.

    Raises:
        ValueError: there is no such metadata.
    """
    registers = re.search(r"^\s*\.vgpr_count:\s*(\d+)", assembly, re.MULTILINE)
    scratch = re.search(r"^\s*\.private_segment_fixed_size:\s*(\d+)", assembly, re.MULTILINE)
    if registers is None or scratch is None:
        raise ValueError("no .vgpr_count or .private_segment_fixed_size in the assembly")
    return int(registers[1]), int(scratch[1])


def amdgcn_family(assembly: str) -> str:
    """``"mfma"`` for the matrix cores, else ``"fma"``."""
    return "mfma" if "v_mfma_" in assembly else "fma"


_AMD_WIDTHS = {"ubyte": 1, "sbyte": 1, "ushort": 2, "sshort": 2, "short": 2, "dword": 4}


def amdgcn_load_bytes(assembly: str) -> int:
    """The widest load of one thread; 0 if there is none."""
    widest = 0
    for kind, count in re.findall(r"\b(?:global|buffer)_load_(?:lds_)?([a-z]+?)(?:_d16\w*)?(?:x(\d))?\s", assembly):
        widest = max(widest, _AMD_WIDTHS.get(kind, 0) * int(count or 1))
    return widest


# -- what went wrong ---------------------------------------------------------------------------------------------


_PTXAS_HEADING = "`ptxas` stderr:"


def useful_line(error: BaseException) -> str:
    """The line of an error that tells most, at most 200 characters.

    Triton quotes the source up to a caret before it says what is wrong with it; ptxas is quoted after a heading.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines()]
    for last, line in enumerate(reversed(lines)):
        if line and set(line) == {"^"}:
            lines = lines[len(lines) - last :]
            break
    if _PTXAS_HEADING in lines:
        lines = lines[lines.index(_PTXAS_HEADING) + 1 :]
    said = next((line for line in lines if line), "")
    words = said if said and not isinstance(error, SystemExit) else f"{type(error).__name__} {said}".strip()
    return words if len(words) <= 200 else words[:199] + "…"


def useful_crash_line(stderr: str) -> str:
    """The line of what a compiler printed that tells most, without where it stands; empty if it printed nothing."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"assertion|error:|fatal|unsupported", line, re.IGNORECASE)]
    chosen = (telling or lines[-1:] or [""])[0]
    return re.sub(r"^.*?(?=Assertion `)|^.*?\berror: ", "", chosen)[:200]
