"""A learner's own kernel, described for the compiler by the names of its parameters."""

from __future__ import annotations

import inspect
from typing import Any

from lessons_lib.base.validate import bad_argument, require_choice
from lessons_lib.kernels.cell_source import underlying_function
from lessons_lib.kernels.launch import ELEMENT_BYTES, DtypeName
from lessons_lib.kernels.source import KernelSource


def own_source(
    kernel: Any, dtype: DtypeName = "fp16", *, num_warps: int = 4, num_stages: int = 1, **constexprs: int | str | bool
) -> KernelSource:
    """What ``compile_report`` needs to know of a kernel of your own: ``own_source(my_kernel, BLOCK=1024)``.

    A parameter whose name ends in ``_ptr`` is a pointer to ``dtype``, one that is given here a constant, every other
    one a size or a stride. A kernel with other parameters (an ``eps``) needs a ``KernelSource`` written by hand.

    Args:
        kernel: a ``@triton.jit`` function, defined in a cell or in a file.
        dtype: of every tensor.
        num_warps, num_stages: of its launch.
        constexprs: a value for each of its ``tl.constexpr`` parameters.

    Raises:
        ValueError: it is no function, or the constants are not those of its parameters.
    """
    function = underlying_function(kernel)
    if function is None:
        raise bad_argument(
            "kernel", zh="需要一个带 @triton.jit 的函数", en="it must be a function decorated with @triton.jit"
        )
    require_choice("dtype", dtype, ELEMENT_BYTES)
    parameters = inspect.signature(function).parameters
    for name in constexprs:
        require_choice("constexprs", name, parameters)
    for name, parameter in parameters.items():
        if "constexpr" in str(parameter.annotation) and name not in constexprs:
            raise bad_argument(
                name, zh="是 tl.constexpr，要给出它的值", en="it is a tl.constexpr and needs a value here"
            )
    pointers = tuple(name for name in parameters if name.endswith("_ptr") and name not in constexprs)
    sizes = tuple(name for name in parameters if name not in pointers and name not in constexprs)
    return KernelSource(
        function=kernel,
        signature={name: f"*{dtype}" if name in pointers else "i32" for name in (*pointers, *sizes)},
        constexprs=dict(constexprs),
        pointers=pointers,
        sizes=sizes,
        num_warps=num_warps,
        num_stages=num_stages,
    )
