"""What program ``k`` of a kernel loads and stores, step by step: the launch's own parameters, written out as blocks.

Pure numbers from ``launch``: nothing runs here. The tests hold every load and store to what the kernel does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from lessons_lib.base.gpus import A100
from lessons_lib.base.validate import bad_argument, require_choice, require_int, require_items
from lessons_lib.kernels.launch import (
    KERNELS,
    ElementwiseLaunch,
    KernelName,
    LinearConfig,
    LinearLaunch,
    RowLaunch,
    elementwise_launch,
    linear_configs,
    require_tile,
    row_launch,
)

Launch = ElementwiseLaunch | RowLaunch | LinearLaunch

# What a step does: everything at once; a first pass that reduces and a second that writes; the loop over k of a GEMM
# and what follows it.
Phase = Literal["whole", "reduce", "write", "accumulate", "epilogue"]

VECTORS = ("bias", "scale", "weight")  # operands of one dimension: [columns]


@dataclass(frozen=True)
class Span:
    """A block's side along one dimension: lanes ``start`` to ``stop``, of which those from ``size`` on are masked."""

    start: int
    stop: int
    size: int

    @property
    def inside(self) -> range:
        """The indices that exist."""
        return range(self.start, min(self.stop, self.size))

    @property
    def lanes(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Operand:
    """A tensor that a kernel reads or writes.

    Attributes:
        name: as the wrapper's argument, or ``"y"`` and ``"sum"`` for what it returns.
        shape: ``(rows, columns)``; a vector is one row.
        block: rows and columns of one load or store.
        written: whether the kernel writes it; else it reads it.
        programs: how many programs touch each element.
        times: how often each of them does.
    """

    name: str
    shape: tuple[int, int]
    block: tuple[int, int]
    written: bool
    programs: int
    times: int = 1

    @property
    def vector(self) -> bool:
        """Whether it has one dimension."""
        return self.name in VECTORS


@dataclass(frozen=True)
class Access:
    """One load or one store of one block of ``operand``."""

    operand: Operand
    rows: Span
    columns: Span

    @property
    def elements(self) -> int:
        """Elements moved: lanes that exist."""
        return len(self.rows.inside) * len(self.columns.inside)

    @property
    def masked(self) -> int:
        """Lanes beyond the tensor's edge: they compute, and move nothing."""
        return self.rows.lanes * self.columns.lanes - self.elements

    def indices(self) -> Iterator[tuple[int, int]]:
        """Row and column of every element moved."""
        return ((row, column) for row in self.rows.inside for column in self.columns.inside)


@dataclass(frozen=True)
class WalkStep:
    """What a program loads and then stores before it takes the next block of its reduction."""

    phase: Phase
    loads: tuple[Access, ...]
    stores: tuple[Access, ...] = ()


@dataclass(frozen=True)
class ProgramWalk:
    """What ``walk`` returns.

    Attributes:
        kernel, shape: as given.
        launch: grid and tile.
        operands: every tensor of the kernel, in the order of the wrapper's arguments, then what it returns.
        program, step: which program and which of its ``steps`` is meant.
        steps: all steps of this program.
    """

    kernel: KernelName
    shape: tuple[int, ...]
    launch: Launch
    operands: tuple[Operand, ...]
    program: int
    step: int
    steps: tuple[WalkStep, ...]

    @property
    def programs(self) -> int:
        return self.launch.programs

    @property
    def phase(self) -> Phase:
        return self.steps[self.step].phase

    @property
    def loads(self) -> tuple[Access, ...]:
        """The loads of the present step."""
        return self.steps[self.step].loads

    @property
    def stores(self) -> tuple[Access, ...]:
        """The stores of the present step."""
        return self.steps[self.step].stores

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The loads of the present step, then its stores."""
        return self.loads + self.stores


def walk(
    kernel: KernelName,
    shape: tuple[int, ...],
    program: int,
    step: int = 0,
    tile: tuple[int, ...] | None = None,
) -> ProgramWalk:
    """What program ``program`` of a kernel loads and stores in step ``step``.

    Args:
        kernel: a name in ``KERNELS``. ``chain`` is all four operators in one kernel, ``rmsnorm`` also returns the
            sum, ``linear`` has a bias.
        shape: ``(rows, columns)``; of ``linear`` ``(m, n, k)``. At least 1 each.
        program: 0 up to the launch's number of programs less one.
        step: 0 up to the program's number of steps less one. A kernel that holds its whole block at once has one
            step; a row in two passes has two a block; ``linear`` has one a block of k and one for the epilogue.
        tile: powers of two: ``(block_m, block_n)``, ``(block,)`` for rows, ``(block_m, block_n, block_k)`` for
            ``linear``; ``None``: the launch's own, for ``linear``, which chooses one by the GPU, the smallest of them.

    Elements are logical: a re-read operand may come from L2. No order between programs is promised by a GPU.

    Raises:
        ValueError: an argument is out of its range, or the wrong number of sizes; the message names it.
    """
    plan = _plan(kernel, shape, tile)
    require_int("program", program, 0, plan.launch.programs - 1)
    steps = plan.steps(program)
    require_int("step", step, 0, len(steps) - 1)
    return ProgramWalk(kernel, plan.shape, plan.launch, plan.operands, program, step, steps)


def walk_launch(kernel: KernelName, shape: tuple[int, ...], tile: tuple[int, ...] | None = None) -> Launch:
    """Grid and tile that ``walk`` with these arguments walks through.

    Raises:
        ValueError: as ``walk``.
    """
    return _plan(kernel, shape, tile).launch


def all_stores(
    kernel: KernelName, shape: tuple[int, ...], tile: tuple[int, ...] | None = None
) -> Iterator[tuple[int, Access]]:
    """Every store of every program, as ``(program, store)``: together they cover each output exactly once.

    Raises:
        ValueError: as ``walk``.
    """
    plan = _plan(kernel, shape, tile)
    return ((program, store) for program, step in _all_steps(plan) for store in step.stores)


def first_element(launch: Launch, program: int) -> tuple[int, int]:
    """Row and column of the first element that ``program`` writes."""
    return (program, 0) if isinstance(launch, RowLaunch) else launch.corner(program)


def elements_read(kernel: KernelName, shape: tuple[int, ...], tile: tuple[int, ...] | None = None) -> dict[str, int]:
    """Elements that all programs together load, by operand: each counted as often as it is loaded.

    Raises:
        ValueError: as ``walk``.
    """
    plan = _plan(kernel, shape, tile)
    return {
        operand.name: operand.shape[0] * operand.shape[1] * operand.programs * operand.times
        for operand in plan.operands
        if not operand.written
    }


# -- one plan a kernel ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    shape: tuple[int, ...]
    launch: Launch
    operands: tuple[Operand, ...]
    steps: Callable[[int], tuple[WalkStep, ...]]


def _plan(kernel: KernelName, shape: tuple[int, ...], tile: tuple[int, ...] | None) -> _Plan:
    require_choice("kernel", kernel, KERNELS)
    if kernel == "linear":
        return _linear(_sizes(shape, ("m", "n", "k")), tile)
    rows, columns = _sizes(shape, ("rows", "columns"))
    if kernel in ("rmsnorm", "softmax"):
        block = None if tile is None else require_tile(tile, 1)[0]
        launch = row_launch(rows, columns, block)
        return _rmsnorm(launch) if kernel == "rmsnorm" else _softmax(launch)
    sides = None if tile is None else require_tile(tile, 2)
    grid = elementwise_launch(rows, columns, None if sides is None else (sides[0], sides[1]))
    if kernel == "chain":
        return _elementwise(grid, vector_inputs=("bias", "scale"), matrix_inputs=("residual",))
    return _elementwise(grid, vector_inputs=("bias",))


def _sizes(shape: tuple[int, ...], names: tuple[str, ...]) -> tuple[int, ...]:
    items = require_items("shape", shape)
    if len(items) != len(names):
        listed = ", ".join(names)
        raise bad_argument(
            "shape",
            zh=f"需要 ({listed}) 这 {len(names)} 个数，收到 {len(items)} 个",
            en=f"it needs the {len(names)} numbers ({listed}), got {len(items)}",
        )
    return tuple(require_int(f"shape[{index}]", item, 1) for index, item in enumerate(items))


def _elementwise(
    launch: ElementwiseLaunch, vector_inputs: tuple[str, ...], matrix_inputs: tuple[str, ...] = ()
) -> _Plan:
    shape, block = (launch.rows, launch.columns), (launch.block_m, launch.block_n)
    row_tiles = launch.programs // launch.tiles_n
    vectors = [
        Operand(name, (1, launch.columns), (1, launch.block_n), written=False, programs=row_tiles)
        for name in vector_inputs
    ]
    matrices = [Operand(name, shape, block, written=False, programs=1) for name in ("x", *matrix_inputs)]
    operands = (matrices[0], *vectors, *matrices[1:], Operand("y", shape, block, written=True, programs=1))

    def steps(program: int) -> tuple[WalkStep, ...]:
        row, column = launch.corner(program)
        reached = [_block(operand, row, column) for operand in operands]
        return (WalkStep("whole", tuple(reached[:-1]), tuple(reached[-1:])),)

    return _Plan(shape, launch, operands, steps)


def _softmax(launch: RowLaunch) -> _Plan:
    shape, block = (launch.rows, launch.columns), (1, launch.block)
    x = Operand("x", shape, block, written=False, programs=1, times=1 if launch.resident else 2)
    y = Operand("y", shape, block, written=True, programs=1)
    return _row_plan(launch, (x, y), first=(x,), second=(x,), results=(y,))


def _rmsnorm(launch: RowLaunch) -> _Plan:
    shape, block = (launch.rows, launch.columns), (1, launch.block)
    times = 1 if launch.resident else 2
    x = Operand("x", shape, block, written=False, programs=1, times=times)
    residual = Operand("residual", shape, block, written=False, programs=1, times=times)
    weight = Operand("weight", (1, launch.columns), block, written=False, programs=launch.rows)
    y = Operand("y", shape, block, written=True, programs=1)
    total = Operand("sum", shape, block, written=True, programs=1)
    return _row_plan(
        launch,
        (x, residual, weight, y, total),
        first=(x, residual),
        second=(x, residual, weight),
        results=(y, total),
    )


def _row_plan(
    launch: RowLaunch,
    operands: tuple[Operand, ...],
    *,
    first: tuple[Operand, ...],
    second: tuple[Operand, ...],
    results: tuple[Operand, ...],
) -> _Plan:
    """One step where the row is resident; else ``first`` is loaded block by block, then ``second``."""

    def steps(program: int) -> tuple[WalkStep, ...]:
        def reach(chosen: tuple[Operand, ...], column: int) -> tuple[Access, ...]:
            return tuple(_block(operand, program, column) for operand in chosen)

        columns = range(0, launch.columns, launch.block)
        if launch.resident:
            return (WalkStep("whole", reach(second, 0), reach(results, 0)),)
        return (
            *(WalkStep("reduce", reach(first, column)) for column in columns),
            *(WalkStep("write", reach(second, column), reach(results, column)) for column in columns),
        )

    return _Plan((launch.rows, launch.columns), launch, operands, steps)


def _linear(shape: tuple[int, ...], tile: tuple[int, ...] | None) -> _Plan:
    m, n, k = shape
    smallest = linear_configs(A100, "fp16")[-1]
    block_m, block_n, block_k = smallest.tile if tile is None else require_tile(tile, 3)
    config = LinearConfig(block_m, block_n, block_k, smallest.num_warps, smallest.num_stages)
    launch = LinearLaunch(m, n, k, config)
    x = Operand("x", (m, k), (block_m, block_k), written=False, programs=launch.tiles_n)
    w = Operand("w", (k, n), (block_k, block_n), written=False, programs=launch.tiles_m)
    bias = Operand("bias", (1, n), (1, block_n), written=False, programs=launch.tiles_m)
    y = Operand("y", (m, n), (block_m, block_n), written=True, programs=1)

    def steps(program: int) -> tuple[WalkStep, ...]:
        row, column = launch.corner(program)
        return (
            *(
                WalkStep("accumulate", (_block(x, row, inner), _block(w, inner, column)))
                for inner in range(0, k, block_k)
            ),
            WalkStep("epilogue", (_block(bias, 0, column),), (_block(y, row, column),)),
        )

    return _Plan(shape, launch, (x, w, bias, y), steps)


def _block(operand: Operand, row: int, column: int) -> Access:
    """The block of ``operand`` whose first row and column these are; a vector has but one row."""
    (rows, columns), (height, width) = operand.shape, operand.block
    row = 0 if operand.vector else row
    return Access(operand, Span(row, row + height, rows), Span(column, column + width, columns))


def _all_steps(plan: _Plan) -> Iterator[tuple[int, WalkStep]]:
    return ((program, step) for program in range(plan.launch.programs) for step in plan.steps(program))
