"""How each kernel is launched: tile, programs, warps; which rows and columns program ``k`` works on.

One source for the wrappers that launch, the walk that draws and the report that compiles. Pure numbers: no triton, no
torch. A *program* is Triton's word for the work of one thread block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lessons_lib.base.gpus import Gpu, require_gpu
from lessons_lib.base.units import divided_up
from lessons_lib.base.validate import bad_argument, require_choice, require_int, require_items
from lessons_lib.reuse.gemm import resident_buffers, tile_operand_bytes

KernelName = Literal["chain", "rmsnorm", "softmax", "linear", "epilogue"]
DtypeName = Literal["fp16", "bf16", "fp32"]
ActivationName = Literal["none", "relu", "gelu_tanh", "silu"]

KERNELS: tuple[KernelName, ...] = ("chain", "rmsnorm", "softmax", "linear", "epilogue")
ELEMENT_BYTES: dict[DtypeName, int] = {"fp16": 2, "bf16": 2, "fp32": 4}
ACTIVATIONS: tuple[ActivationName, ...] = ("none", "relu", "gelu_tanh", "silu")

# The chain's operators in order; a kernel runs any contiguous run of them.
CHAIN_OPERATORS = ("bias", "gelu", "scale", "residual")

ELEMENTS_PER_TILE = 1024  # elementwise: 8 elements a thread on 4 warps of 32, one 16-byte load of fp16
LARGEST_RESIDENT_ROW = 16384  # elements of a row that one program keeps in registers
TWO_PASS_BLOCK = 4096
WIDE = 4096  # rows and columns of the tensor for which a source is compiled where nobody names its size
LARGEST_TILE = 2**20  # elements: Triton's own limit of a block tensor
GROUP_M = 8  # row tiles of a GEMM that run one after another on one column of B, for L2


def next_power_of_two(value: int) -> int:
    """The smallest power of two that is at least ``value``."""
    return 1 << (require_int("value", value, 1) - 1).bit_length()


# -- elementwise: the chain and the epilogue -----------------------------------------------------------------


@dataclass(frozen=True)
class ElementwiseLaunch:
    """A grid of ``block_m x block_n`` tiles over a ``[rows, columns]`` tensor, row by row; one program a tile."""

    rows: int
    columns: int
    block_m: int
    block_n: int
    num_warps: int = 4
    num_stages: int = 1

    @property
    def tiles_n(self) -> int:
        return divided_up(self.columns, self.block_n)

    @property
    def programs(self) -> int:
        return divided_up(self.rows, self.block_m) * self.tiles_n

    @property
    def tile(self) -> tuple[int, ...]:
        return (self.block_m, self.block_n)

    def corner(self, program: int) -> tuple[int, int]:
        """The first row and column of the tile of ``program``."""
        row_tile, column_tile = divmod(program, self.tiles_n)
        return row_tile * self.block_m, column_tile * self.block_n


def elementwise_launch(rows: int, columns: int, tile: tuple[int, int] | None = None) -> ElementwiseLaunch:
    """Tiles of ``ELEMENTS_PER_TILE`` elements, as wide as the row allows; or the ``tile`` given.

    Raises:
        ValueError: a size is below 1, or a side of ``tile`` is not a power of two.
    """
    rows, columns = require_int("rows", rows, 1), require_int("columns", columns, 1)
    if tile is None:
        width = min(next_power_of_two(columns), ELEMENTS_PER_TILE)
        return ElementwiseLaunch(rows, columns, max(1, ELEMENTS_PER_TILE // width), width)
    block_m, block_n = require_tile(tile, 2)
    return ElementwiseLaunch(rows, columns, block_m, block_n)


def chain_groups(groups: int) -> tuple[tuple[int, int], ...]:
    """The chain's four operators as 4, 2 or 1 kernels: ``(first, last)`` positions in ``CHAIN_OPERATORS``."""
    require_choice("groups", require_int("groups", groups), (1, 2, 4))
    size = len(CHAIN_OPERATORS) // groups
    return tuple((first, first + size - 1) for first in range(0, len(CHAIN_OPERATORS), size))


# -- rows: RMSNorm and softmax -------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowLaunch:
    """One program a row; ``block`` columns at a time, in one step where the row is resident, else in two passes."""

    rows: int
    columns: int
    block: int
    num_warps: int
    num_stages: int = 1

    @property
    def resident(self) -> bool:
        return self.block >= self.columns

    @property
    def programs(self) -> int:
        return self.rows

    @property
    def steps(self) -> int:
        """Blocks of columns in one pass over the row."""
        return divided_up(self.columns, self.block)

    @property
    def tile(self) -> tuple[int, ...]:
        return (self.block,)


def row_launch(rows: int, columns: int, block: int | None = None) -> RowLaunch:
    """The whole row while it has at most ``LARGEST_RESIDENT_ROW`` elements, else blocks of ``TWO_PASS_BLOCK``.

    Raises:
        ValueError: a size is below 1, or ``block`` is no power of two.
    """
    rows, columns = require_int("rows", rows, 1), require_int("columns", columns, 1)
    if block is None:
        block = next_power_of_two(columns) if columns <= LARGEST_RESIDENT_ROW else TWO_PASS_BLOCK
    block = require_power_of_two("block", block)
    return RowLaunch(rows, columns, block, row_warps(block))


def row_warps(block: int) -> int:
    """One warp for 512 columns, from 1 to 16: 16 elements a thread of 32, two 16-byte loads of fp16 in flight a tensor.

    More a thread and fewer rows are resident on an SM; fewer, and the reduction crosses more warps.
    """
    return min(16, max(1, block // 512))


# -- GEMM with an epilogue -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearConfig:
    """A tile of the result, the depth of one step, and how it is spread over warps and stages."""

    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int

    @property
    def tile(self) -> tuple[int, ...]:
        return (self.block_m, self.block_n, self.block_k)


@dataclass(frozen=True)
class LinearLaunch:
    """One program a tile of ``[m, n]``; ``GROUP_M`` row tiles share a column of B before the next column begins."""

    m: int
    n: int
    k: int
    config: LinearConfig

    @property
    def tiles_m(self) -> int:
        return divided_up(self.m, self.config.block_m)

    @property
    def tiles_n(self) -> int:
        return divided_up(self.n, self.config.block_n)

    @property
    def programs(self) -> int:
        return self.tiles_m * self.tiles_n

    @property
    def steps(self) -> int:
        """Steps of the loop over k."""
        return divided_up(self.k, self.config.block_k)

    @property
    def tile(self) -> tuple[int, ...]:
        return self.config.tile

    def corner(self, program: int) -> tuple[int, int]:
        """The first row and column of the tile of ``program``, in the grouped order that the kernel uses."""
        group, within = divmod(program, GROUP_M * self.tiles_n)
        height = min(self.tiles_m - group * GROUP_M, GROUP_M)
        row_tile = group * GROUP_M + within % height
        return row_tile * self.config.block_m, within // height * self.config.block_n


# Largest tile first; which of them a device can hold is ``linear_configs``' business. With contiguous operands and sizes
# that are multiples of 16 none spills under Triton 3.7.1. For the rest (and other versions) ``tuning`` asks the compiler.
_TENSOR_CORE_CONFIGS = (
    LinearConfig(128, 256, 64, 8, 4),
    LinearConfig(128, 256, 32, 8, 4),
    LinearConfig(128, 128, 64, 8, 4),
    LinearConfig(128, 128, 64, 8, 3),
    LinearConfig(128, 128, 32, 8, 4),
    LinearConfig(128, 64, 64, 4, 4),
    LinearConfig(64, 128, 64, 4, 4),
    LinearConfig(64, 64, 64, 4, 4),
    LinearConfig(64, 64, 32, 4, 4),
    LinearConfig(32, 64, 32, 4, 3),
)
# AMD's warps are twice as wide and its shared memory holds 64 KiB: large tiles, one buffer. The first is for 2-byte
# elements: in fp32 it spills.
_AMD_CONFIGS = (
    LinearConfig(256, 256, 32, 8, 2),
    LinearConfig(128, 256, 64, 8, 2),
    LinearConfig(256, 128, 64, 8, 2),
    LinearConfig(128, 128, 64, 8, 2),
    LinearConfig(128, 128, 32, 8, 3),
    LinearConfig(128, 64, 64, 4, 2),
    LinearConfig(64, 128, 64, 4, 2),
    LinearConfig(64, 64, 32, 4, 3),
    LinearConfig(32, 64, 32, 4, 2),
)
# Without tensor cores the operands of `dot` live in registers: small tiles on many warps, or they spill.
_PLAIN_CONFIGS = (LinearConfig(64, 64, 32, 8, 2), LinearConfig(32, 64, 32, 4, 2), LinearConfig(32, 32, 32, 4, 2))


def reaches_tensor_cores(gpu: Gpu, dtype: DtypeName) -> bool:
    """Whether Triton's ``dot`` of this dtype runs at the tensor cores' fp16 rate: capability 8.0 on, or AMD.

    On capability 7.5, Triton 3.3 does not compile fp16 ``dot`` and 3.4 and later emit plain multiply-adds. fp32 is
    kept exact (``input_precision="ieee"``), which no tensor core of NVIDIA's does; AMD's do, at the rate of fp32.
    """
    gpu = require_gpu("gpu", gpu)
    if dtype == "fp32":
        return False
    return gpu.vendor == "AMD" or int(gpu.target.removeprefix("sm_")) >= 80


def linear_configs(gpu: Gpu, dtype: DtypeName) -> tuple[LinearConfig, ...]:
    """The configurations whose operand tiles fit into the shared memory that one block of ``gpu`` may have.

    Necessary, not sufficient: what spills only a compiler knows.
    """
    candidates: tuple[LinearConfig, ...]
    if gpu.vendor == "AMD":
        candidates = _AMD_CONFIGS[1:] if dtype == "fp32" else _AMD_CONFIGS
    else:
        candidates = _TENSOR_CORE_CONFIGS if reaches_tensor_cores(gpu, dtype) else _PLAIN_CONFIGS
    fitting = tuple(
        config for config in candidates if _operand_bytes(config, gpu, dtype) <= gpu.shared_bytes_per_block
    )
    return fitting or candidates[-1:]


def _operand_bytes(config: LinearConfig, gpu: Gpu, dtype: DtypeName) -> int:
    try:
        buffers = resident_buffers(gpu, config.num_stages)
    except ValueError:  # a target that the course has not measured: as many as there can be
        buffers = config.num_stages
    return tile_operand_bytes(config.block_m, config.block_n, config.block_k, buffers, ELEMENT_BYTES[dtype])[
        "total_bytes"
    ]


def require_tile(tile: object, sides: int) -> tuple[int, ...]:
    """``tile`` as integers, if it has ``sides`` sides, each a power of two, and no more elements than Triton allows.

    Raises:
        ValueError: otherwise.
    """
    items = require_items("tile", tile)
    if len(items) != sides:
        raise bad_argument(
            "tile", zh=f"需要 {sides} 个边长，收到 {len(items)} 个", en=f"it needs {sides} sides, got {len(items)}"
        )
    sizes = tuple(require_power_of_two(f"tile[{index}]", side) for index, side in enumerate(items))
    elements = math.prod(sorted(sizes)[-2:])  # a GEMM's three sides make tensors of two
    if elements > LARGEST_TILE:
        raise bad_argument(
            "tile",
            zh=f"共 {elements:,} 个元素，Triton 的一个数据块最多 {LARGEST_TILE:,} 个",
            en=f"it has {elements:,} elements, and a tile of Triton's at most {LARGEST_TILE:,}",
        )
    return sizes


def require_power_of_two(name: str, value: object, minimum: int = 1) -> int:
    """``value`` as an ``int``, if it is a power of two, at least ``minimum`` and no more than Triton's largest tile.

    Raises:
        ValueError: otherwise; the message names ``name``.
    """
    number = require_int(name, value, minimum, LARGEST_TILE)
    if number & (number - 1):
        raise bad_argument(name, zh=f"{number} 不是 2 的幂", en=f"{number} is not a power of two")
    return number
