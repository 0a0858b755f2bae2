"""A kernel by its name, ready to be compiled. Imports kernels, and so triton: for the compiler's own process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lessons_lib.kernels.launch import ActivationName, DtypeName, KernelName, LinearConfig
from lessons_lib.kernels.source import KernelSource


def kernel_source(
    kernel: KernelName,
    dtype: DtypeName,
    tile: Sequence[int],
    *,
    first: int = 0,
    last: int = 3,
    columns: int | None = None,
    activation: ActivationName = "gelu_tanh",
    masked: bool = False,
) -> KernelSource:
    """The kernel ``kernel`` of this course.

    Args:
        kernel: a name of ``launch.KERNELS``.
        dtype: of every tensor.
        tile: ``(block_m, block_n)`` of the chain and the epilogue, ``(block,)`` of a row kernel,
            ``(block_m, block_n, block_k)`` of the linear layer.
        first, last: the chain's operators, positions in ``launch.CHAIN_OPERATORS``.
        columns: of a row kernel's row; as wide as its block, so that the row is resident, without one.
        activation: of the epilogue and the linear layer.
        masked: whether tiles of the linear layer reach beyond an edge.
    """
    build: Any = _BUILDERS[kernel]
    options = {
        "first": first,
        "last": last,
        "columns": columns,
        "activation": activation,
        "masked": masked,
    }
    source: KernelSource = build(dtype, tuple(tile), options)
    return source


def _chain(dtype: DtypeName, tile: tuple[int, int], options: dict[str, Any]) -> KernelSource:
    from lessons_lib.kernels.chain import chain_source

    return chain_source(dtype, tile, options["first"], options["last"])


def _epilogue(dtype: DtypeName, tile: tuple[int, int], options: dict[str, Any]) -> KernelSource:
    from lessons_lib.kernels.epilogue import epilogue_source

    return epilogue_source(dtype, tile, activation=options["activation"])


def _rmsnorm(dtype: DtypeName, tile: tuple[int], options: dict[str, Any]) -> KernelSource:
    from lessons_lib.kernels.row import rmsnorm_source

    return rmsnorm_source(dtype, options["columns"] or tile[0], tile[0])


def _softmax(dtype: DtypeName, tile: tuple[int], options: dict[str, Any]) -> KernelSource:
    from lessons_lib.kernels.row import softmax_source

    return softmax_source(dtype, options["columns"] or tile[0], tile[0])


def _linear(dtype: DtypeName, tile: tuple[int, int, int], options: dict[str, Any]) -> KernelSource:
    from lessons_lib.kernels.linear import linear_source

    # Warps and stages are the caller's to set: they change no source.
    config = LinearConfig(*tile, num_warps=4, num_stages=1)
    return linear_source(dtype, config, options["activation"], masked=options["masked"])


_BUILDERS = {
    "chain": _chain,
    "rmsnorm": _rmsnorm,
    "softmax": _softmax,
    "linear": _linear,
    "epilogue": _epilogue,
}
