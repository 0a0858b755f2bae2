"""Q2 measured: the four NumPy operations of Q1's lab, tile by tile, for tile sizes from 4 KiB to the whole tensor.

Every tile size computes the same bits and makes the same logical traffic; only where the intermediate results stay
differs. Every round times every tile size and every part of the calibration once, so that noise hits all alike.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lessons_lib.base.caches import CpuCaches, cpu_caches
from lessons_lib.base.environment import free_memory_bytes
from lessons_lib.base.optional import require_numpy
from lessons_lib.base.spread import Spread
from lessons_lib.base.units import KIB, MIB
from lessons_lib.base.validate import bad_argument, require_bool, require_int, require_items, require_real
from lessons_lib.reuse.sweep import (
    Level,
    SweepCalibration,
    TilePoint,
    TileSweep,
    cache_level,
    calibration_block,
    memory_level,
    tile_sizes,
    unknown_cache_level,
)
from lessons_lib.traffic.lab import (
    affordable_bytes,
    chain_input,
    interleaved,
    require_float32_bytes,
    run_tiled,
    run_unfused,
    same_bits,
    tile_pass,
)

if TYPE_CHECKING:
    from lessons_lib.traffic.lab import FloatTensor

_ITEM_BYTES = 4  # float32
_FEWEST_ROUNDS = 3
_TINY = 16  # elements of an almost empty tile: what is left is the call
_CALLS = 4096  # of almost empty tiles, to time one
_UNKNOWN_BLOCK = 128 * KIB  # stays in the caches of any recent core
_MOST_POINTS = 32


def sweep_tiles(
    tensor_bytes: int = 64 * MIB,
    tiles: Sequence[int] | None = None,
    repeats: int = 15,
    progress: bool = True,
    budget_seconds: float = 6.0,
) -> TileSweep:
    """Time the four-operator chain for every tile size on this CPU, and calibrate its prediction in the same rounds.

    The baseline is one pass per operator over whole tensors. A first round warms up and tells how many rounds fit
    the budget. The tensor is halved, down to 8 MiB, while five of them would take more than a third of the free
    memory. All arrays are freed on return. Seconds are the thread's own processor time, as in ``measure_chain``.

    Args:
        tensor_bytes: size of ``x`` and of every other tensor, a multiple of 4, at least 4.
        tiles: tile sizes in bytes, multiples of 4, at most 32 of them; those larger than the tensor are cut to it.
            Without any: the powers of two from 4 KiB up, and the whole tensor.
        repeats: rounds at most, at least 3.
        progress: show a progress bar, on standard output.
        budget_seconds: rounds stop being added when they would take longer than this; three are always made.

    Raises:
        ValueError: an argument is of the wrong type or out of range.
        ImportError: NumPy is missing; the message says what to do.
    """
    requested = require_float32_bytes("tensor_bytes", tensor_bytes)
    asked = None if tiles is None else _require_tiles(tiles)
    repeats = require_int("repeats", repeats, _FEWEST_ROUNDS)
    progress = require_bool("progress", progress)
    budget_seconds = require_real("budget_seconds", budget_seconds, above=0)
    np = require_numpy()

    used = affordable_bytes(requested, free_memory_bytes())
    sizes = tile_sizes(used) if asked is None else tuple(sorted({min(size, used) for size in asked}))
    caches = cpu_caches()
    x = chain_input(used)
    t1, t2, t3, y = (np.ones_like(x) for _ in range(4))  # written once: no page is new when the clock runs
    one = np.array(1, dtype=np.float32)

    tiny = min(_TINY, len(x))
    stride = max(1, len(x) // _CALLS)
    starts = range(0, len(x) - tiny + 1, stride)  # all over memory, as the tiles of a run: each start is cold
    blocks = [min(used, size) for size in _calibration_blocks(caches)]
    counts = [max(1, round(used / size)) for size in blocks]
    parts: dict[str, Callable[[], object]] = {
        "unfused": lambda: run_unfused(x, t1, t2, t3, y),
        "copy": lambda: np.multiply(x, one, out=t1),
        "tile calls": lambda: tile_pass(x, y, t2[:tiny], starts),
        "call": lambda: _in_place(t1[:tiny], _CALLS),
        "memory": lambda: _in_place(t1, 1),
    }
    for index, (size, count) in enumerate(zip(blocks, counts, strict=True)):
        parts[f"block {index}"] = partial(_in_place, t1[: size // _ITEM_BYTES], count)
    for size in sizes:
        parts[f"tile {size}"] = partial(run_tiled, x, y, size, t2)
    samples, waited_share = interleaved(parts, repeats, budget_seconds, progress)

    spread = {name: Spread.of(seconds) for name, seconds in samples.items()}
    passes = [
        used / (size * count) * _without_calls(samples[f"block {index}"], samples["call"], count / _CALLS)
        for index, (size, count) in enumerate(zip(blocks, counts, strict=True))
    ]
    return TileSweep(
        requested_bytes=requested,
        tensor_bytes=used,
        caches=caches,
        calibration=SweepCalibration(
            copy=spread["copy"].median,
            tile_calls=spread["tile calls"].median / len(starts),
            levels=_levels(caches, passes, spread["memory"].median, used),
        ),
        unfused=spread["unfused"],
        points=tuple(
            TilePoint(
                size,
                spread[f"tile {size}"],
                Spread.of([a / b for a, b in zip(samples["unfused"], samples[f"tile {size}"], strict=True)]),
            )
            for size in sizes
        ),
        bit_identical=_all_the_same_bits(x, t1, t2, t3, y, sizes),
        waited_share=waited_share,
    )


def _without_calls(blocks: Sequence[float], calls: Sequence[float], share: float) -> float:
    """Seconds of a pass less ``share`` of the calls timed, round by round: what slows one slows the other."""
    return max(0.0, statistics.median(block - share * call for block, call in zip(blocks, calls, strict=True)))


def _require_tiles(tiles: object) -> tuple[int, ...]:
    sizes = tuple(require_float32_bytes(f"tiles[{i}]", size) for i, size in enumerate(require_items("tiles", tiles)))
    if not 2 <= len(sizes) <= _MOST_POINTS:
        raise bad_argument(
            "tiles",
            zh=f"需要 2 到 {_MOST_POINTS} 个大小，收到 {len(sizes)} 个",
            en=f"there must be 2 to {_MOST_POINTS} sizes, got {len(sizes)}",
        )
    return sizes


def _calibration_blocks(caches: CpuCaches) -> list[int]:
    known = caches.known
    return [calibration_block(known, index) for index in range(len(known))] or [_UNKNOWN_BLOCK]


def _levels(caches: CpuCaches, passes: Sequence[float], memory: float, tensor_bytes: int) -> tuple[Level, ...]:
    near = [cache_level(cache, seconds) for cache, seconds in zip(caches.known, passes, strict=False)]
    return (*(near or [unknown_cache_level(tensor_bytes, passes[0])]), memory_level(memory))


def _in_place(block: FloatTensor, count: int) -> None:
    """One operation that changes nothing, on one block, ``count`` times over."""
    np = require_numpy()
    one = np.array(1, dtype=np.float32)
    for _ in range(count):
        np.multiply(block, one, out=block)


def _all_the_same_bits(
    x: FloatTensor, t1: FloatTensor, t2: FloatTensor, t3: FloatTensor, y: FloatTensor, sizes: Sequence[int]
) -> bool:
    """Whether every tile size gives the bits of one pass per operator."""
    run_unfused(x, t1, t2, t3, y)
    for size in sizes:
        t1.fill(math.nan)  # what a run leaves out must not go unnoticed
        run_tiled(x, t1, size, t2)
        if not same_bits(y, t1):
            return False
    return True
