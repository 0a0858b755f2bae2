"""Run as a program: compiles every kernel, as every kind of launch has it, and prints the PTX as JSON.

A program of its own, because the tests' process is the interpreter's. ``{kernel: {"strides": [...], how: PTX}}``, where
a stride is the position of a stride among the kernel's arguments at run time and ``how`` is a key of ``LAUNCHES``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from lessons_lib.kernels.compiler.child import specialized_source
from lessons_lib.kernels.mode import prepare_triton

prepare_triton(compile_only=True)

import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402

from lessons_lib.kernels.compiler.sources import kernel_source  # noqa: E402
from lessons_lib.kernels.launch import CHAIN_OPERATORS  # noqa: E402
from lessons_lib.kernels.source import KernelSource  # noqa: E402

SOURCES: dict[str, KernelSource] = {
    "chain": kernel_source("chain", "fp16", (1, 1024)),
    "chain in tiles": kernel_source("chain", "fp16", (8, 128)),
    **{
        f"chain: {operator} alone": kernel_source("chain", "fp16", (4, 64), first=index, last=index)
        for index, operator in enumerate(CHAIN_OPERATORS)
    },
    "epilogue": kernel_source("epilogue", "fp16", (8, 128)),
    "rmsnorm, resident": kernel_source("rmsnorm", "fp16", (1024,), columns=1000),
    "rmsnorm, two passes": kernel_source("rmsnorm", "fp16", (1024,), columns=5000),
    "softmax, resident": kernel_source("softmax", "fp16", (1024,), columns=1000),
    "softmax, two passes": kernel_source("softmax", "fp16", (1024,), columns=5000),
    "linear": kernel_source("linear", "fp16", (64, 64, 32)),
    "linear, masked": kernel_source("linear", "fp16", (64, 64, 32), masked=True),
}


def with_sizes_1(source: KernelSource) -> KernelSource:
    """As a launch compiles it whose integers are all 1: each is a constant then."""
    run_time = {name: kind for name, kind in source.signature.items() if name not in source.sizes}
    return replace(
        source, signature=run_time, constexprs=source.constexprs | dict.fromkeys(source.sizes, 1), sizes=()
    )


def with_wide_sizes(source: KernelSource) -> KernelSource:
    """As a launch compiles it whose integers are all 2**31 or more."""
    return replace(source, signature=source.signature | dict.fromkeys(source.sizes, "i64"))


LAUNCHES: dict[str, tuple[Callable[[KernelSource], KernelSource], bool]] = {
    "sizes a multiple of 16": (lambda source: source, True),
    "any sizes": (lambda source: source, False),
    "sizes of 1": (with_sizes_1, False),
    "sizes from 2**31 on": (with_wide_sizes, False),
}


def main() -> None:
    target = GPUTarget("cuda", 80, 32)
    found = {}
    for kernel, plain in SOURCES.items():
        found[kernel] = {"strides": [index for index, name in enumerate(plain.signature) if "stride" in name]}
        for how, (variant, multiple_of_16) in LAUNCHES.items():
            source = variant(plain)
            options = {"num_warps": source.num_warps, "num_stages": source.num_stages}
            try:
                compiled = triton.compile(
                    specialized_source(source, target, multiple_of_16), target=target, options=options
                )
                found[kernel][how] = compiled.asm["ptx"]
            except Exception as error:
                found[kernel][how] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
