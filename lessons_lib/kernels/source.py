"""What the compiler needs of a kernel, and what a launch would tell it: no triton, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KernelSource:
    """One kernel with everything fixed that is fixed before it is compiled.

    Attributes:
        function: the ``@triton.jit`` function.
        signature: the type of each argument given at run time, in the order of the parameters: ``"*fp16"`` for a
            pointer, ``"i32"`` for a size or a stride in elements, ``"fp32"`` for a number.
        constexprs: the value of each ``tl.constexpr`` parameter.
        pointers: the parameters a launch finds aligned to 16 bytes, as every tensor of PyTorch's own is.
        sizes: the integers that a launch specializes on when they are a multiple of 16.
        num_warps: warps of one program.
        num_stages: depth of the software pipeline of its loops.
    """

    function: Any
    signature: dict[str, str]
    constexprs: dict[str, int | float | str | bool]
    pointers: tuple[str, ...]
    sizes: tuple[str, ...] = ()
    num_warps: int = 4
    num_stages: int = 1
