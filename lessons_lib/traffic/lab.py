"""Q1 measured: four NumPy operations over a large tensor, one pass each, against one pass tile by tile.

The chain is unary and elementwise: ``t1 = x + b``, ``t2 = |t1|``, ``t3 = t2 * s``, ``y = t3 + c`` in float32.
Unfused, every operation reads a whole tensor and writes a whole tensor (four passes, three intermediate
tensors in memory). Tiled, all four run on one tile before the next tile is touched, and the intermediate
results live in one small buffer that stays in the cache: ``x`` is read once, ``y`` is written once.

The prediction is calibrated on the same machine in the same rounds: one pass that changes nothing (the bytes),
the same arithmetic on a tile that stays in the cache, and the same loop on almost empty tiles (the calls).

The four operations are cheap on purpose: each is far below the time of a pass, so that bytes decide. NumPy's
``maximum`` would not do: it treats NaN on the way and takes longer than moving the tensor.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from lessons_lib.base.environment import free_memory_bytes, measuring_seconds
from lessons_lib.base.optional import require_numpy
from lessons_lib.base.spread import Spread
from lessons_lib.base.text import Text
from lessons_lib.base.units import KIB, MIB
from lessons_lib.base.validate import bad_argument, require_bool, require_int, require_real
from lessons_lib.traffic.measurement import CHAIN, ChainMeasurement
from lessons_lib.traffic.prediction import Calibration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatTensor = NDArray[np.float32]

_ITEM_BYTES = 4  # float32
_BIAS, _SCALE, _SHIFT = 0.5, 1.25, -0.75
_TENSORS = 5  # x, t1, t2, t3, y
_MEMORY_MARGIN = 3
_SMALLEST_TENSOR = 8 * MIB
_RESIDENT_TILE = 128 * KIB  # source and target of one operation then fit the second-level cache of any recent core
_TINY = 16  # elements of an almost empty tile: what is left is the call
_FEWEST_ROUNDS = 3

# The thread's own processor time: NumPy's elementwise operations run on this thread alone, and time that the system
# gives to other programs would fall on short parts and long parts unequally. Elsewhere that clock is too coarse.
_OWN_TIME = sys.platform in ("linux", "darwin")
_clock = time.thread_time if _OWN_TIME else perf_counter

_PROGRESS = Text(zh="测量中", en="Measuring")


def measure_chain(
    tensor_bytes: int = 64 * MIB,
    tile_bytes: int = 256 * KIB,
    repeats: int = 15,
    progress: bool = True,
    budget_seconds: float = 8.0,
) -> ChainMeasurement:
    """Time the chain unfused and tiled on this CPU, and calibrate the prediction in the same rounds.

    Every round times every part once (A B C A B C ...), so that noise hits all alike; a first round warms up and
    tells how many rounds fit the budget. The tensor is halved, down to 8 MiB, while five of them would take more
    than a third of the free memory. All arrays are freed on return.

    On Linux and macOS seconds are the thread's own processor time, so that a busy machine distorts little; elsewhere
    they are elapsed time.

    Args:
        tensor_bytes: size of ``x`` and of every other tensor, a multiple of 4, at least 4.
        tile_bytes: size of a tile, a multiple of 4, at least 4; cut to the tensor's size. 256 KiB is long
            enough to hide the calls and short enough for the caches close to one core.
        repeats: rounds at most, at least 3.
        progress: show a progress bar, on standard output.
        budget_seconds: rounds stop being added when they would take longer than this; three are always made.

    Raises:
        ValueError: an argument is of the wrong type or out of range.
        ImportError: NumPy is missing; the message says what to do.
    """
    requested = require_float32_bytes("tensor_bytes", tensor_bytes)
    tile_bytes = require_float32_bytes("tile_bytes", tile_bytes)
    repeats = require_int("repeats", repeats, _FEWEST_ROUNDS)
    progress = require_bool("progress", progress)
    budget_seconds = require_real("budget_seconds", budget_seconds, above=0)
    np = require_numpy()

    used = affordable_bytes(requested, free_memory_bytes())
    tile_bytes = min(tile_bytes, used)
    x = chain_input(used)
    t1, t2, t3, y = (np.ones_like(x) for _ in range(4))  # written once: no page is new when the clock runs
    one = np.array(1, dtype=np.float32)
    tile_length = tile_bytes // _ITEM_BYTES
    tiles = math.ceil(len(x) / tile_length)
    buffer = np.ones(tile_length, dtype=np.float32)

    parts: dict[str, Callable[[], object]] = {
        "copy": lambda: np.multiply(x, one, out=t1),
        "library copy": lambda: np.copyto(t1, x),
        "unfused": lambda: run_unfused(x, t1, t2, t3, y),
        "tiled": lambda: run_tiled(x, y, tile_bytes),
        "resident": lambda: tile_pass(x, t1, buffer, [0] * tiles),
        "calls": lambda: tile_pass(x, t1, buffer[:_TINY], [0] * tiles),
    }
    length = min(len(x), _RESIDENT_TILE // _ITEM_BYTES)  # whatever the tile: this must stay in the cache
    count = max(1, round(len(x) / length))
    for index in range(len(CHAIN)):
        parts[f"operation {index}"] = partial(_repeat, index, x[:length], t1[:length], count)
        parts[f"call {index}"] = partial(_repeat, index, x[:_TINY], t1[:_TINY], count)
    samples, waited_share = interleaved(parts, repeats, budget_seconds, progress)

    run_unfused(x, t1, t2, t3, y)
    run_tiled(x, t1, tile_bytes)
    spread = {name: Spread.of(seconds) for name, seconds in samples.items()}
    whole = len(x) / (count * length)
    return ChainMeasurement(
        requested_bytes=requested,
        tensor_bytes=used,
        tile_bytes=tile_bytes,
        copy=spread["copy"],
        library_copy=spread["library copy"],
        calibration=Calibration(
            copy=spread["copy"].median,
            operations=tuple(
                whole * max(0.0, spread[f"operation {index}"].median - spread[f"call {index}"].median)
                for index in range(len(CHAIN))
            ),
            calls=spread["calls"].median,
        ),
        resident=spread["resident"],
        unfused=spread["unfused"],
        tiled=spread["tiled"],
        speedup=Spread.of([a / b for a, b in zip(samples["unfused"], samples["tiled"], strict=True)]),
        bit_identical=same_bits(y, t1),
        waited_share=waited_share,
    )


def time_tiled(x: FloatTensor, y: FloatTensor, tile_bytes: int, repeats: int = 5) -> Spread:
    """Time the tiled chain from ``x`` to ``y`` after one warm-up, by the clock of ``measure_chain``; for a sweep.

    Raises:
        ValueError: an argument is of the wrong type or out of range, or ``x`` and ``y`` do not match.
        ImportError: NumPy is missing; the message says what to do.
    """
    repeats = require_int("repeats", repeats, 1)
    run_tiled(x, y, tile_bytes)
    return Spread.of([_seconds(lambda: run_tiled(x, y, tile_bytes)) for _ in range(repeats)])


def chain_input(tensor_bytes: int) -> FloatTensor:
    """A float32 tensor of ``tensor_bytes`` with values of either sign, the same at every call.

    Raises:
        ValueError: ``tensor_bytes`` is not a positive multiple of 4.
        ImportError: NumPy is missing; the message says what to do.
    """
    tensor_bytes = require_float32_bytes("tensor_bytes", tensor_bytes)
    np = require_numpy()
    values: FloatTensor = np.random.default_rng(0).standard_normal(tensor_bytes // _ITEM_BYTES, dtype=np.float32)
    return values


def run_unfused(x: FloatTensor, t1: FloatTensor, t2: FloatTensor, t3: FloatTensor, y: FloatTensor) -> None:
    """Four passes over whole tensors: each operation reads one from memory and writes one to memory."""
    np = require_numpy()
    bias, scale, shift = _constants()
    np.add(x, bias, out=t1)
    np.absolute(t1, out=t2)
    np.multiply(t2, scale, out=t3)
    np.add(t3, shift, out=y)


def run_tiled(x: FloatTensor, y: FloatTensor, tile_bytes: int, workspace: FloatTensor | None = None) -> None:
    """One pass: all four operations on a tile, then the next tile; the last one may be shorter.

    The intermediate results live in the first tile's worth of ``workspace``, as long as ``x`` and written before;
    without one a buffer is made, whose pages are new: a tile of many MiB feels that.

    Raises:
        ValueError: ``tile_bytes`` is not a positive multiple of 4, or ``x``, ``y`` and ``workspace`` are not flat
            float32 tensors of one length.
        ImportError: NumPy is missing; the message says what to do.
    """
    length = require_float32_bytes("tile_bytes", tile_bytes) // _ITEM_BYTES
    np = require_numpy()
    if workspace is None:
        workspace = np.empty(min(length, len(x)), dtype=np.float32)
    elif len(workspace) != len(x):
        raise bad_argument("workspace", zh="长度必须与 x 相同", en="it must be as long as x")
    for name, tensor in (("x", x), ("y", y), ("workspace", workspace)):
        if getattr(tensor, "dtype", None) != np.float32 or tensor.ndim != 1:
            raise bad_argument(name, zh="需要一维 float32 数组", en="it must be a flat float32 array")
    if len(x) != len(y):
        raise bad_argument("y", zh="长度必须与 x 相同", en="it must be as long as x")
    buffer = workspace[:length]
    whole_tiles = len(x) // length * length
    tile_pass(x, y, buffer, range(0, whole_tiles, length))
    if whole_tiles < len(x):
        tile_pass(x, y, buffer[: len(x) - whole_tiles], [whole_tiles])


def affordable_bytes(tensor_bytes: int, free_bytes: int | None) -> int:
    """``tensor_bytes`` halved, down to 8 MiB, until five tensors take at most a third of ``free_bytes``."""
    while (
        free_bytes is not None
        and free_bytes < _MEMORY_MARGIN * _TENSORS * tensor_bytes
        and tensor_bytes // 2 >= _SMALLEST_TENSOR
    ):
        tensor_bytes = tensor_bytes // 2 // _ITEM_BYTES * _ITEM_BYTES
    return tensor_bytes


def tile_pass(x: FloatTensor, y: FloatTensor, buffer: FloatTensor, starts: Iterable[int]) -> None:
    """The four operations on the tile at each of ``starts``, as long as ``buffer``."""
    np = require_numpy()
    bias, scale, shift = _constants()
    length = len(buffer)
    for start in starts:
        np.add(x[start : start + length], bias, out=buffer)
        np.absolute(buffer, out=buffer)
        np.multiply(buffer, scale, out=buffer)
        np.add(buffer, shift, out=y[start : start + length])


def _repeat(index: int, source: FloatTensor, target: FloatTensor, count: int) -> None:
    """One operation of the chain on one small tile, ``count`` times over."""
    np = require_numpy()
    bias, scale, shift = _constants()
    if index == 1:
        for _ in range(count):
            np.absolute(source, out=target)
        return
    operation, constant = {0: (np.add, bias), 2: (np.multiply, scale), 3: (np.add, shift)}[index]
    for _ in range(count):
        operation(source, constant, out=target)


def _constants() -> tuple[FloatTensor, FloatTensor, FloatTensor]:
    # Arrays without a dimension: NumPy converts a plain number anew at every call, which a small tile would feel.
    np = require_numpy()
    return (
        np.array(_BIAS, dtype=np.float32),
        np.array(_SCALE, dtype=np.float32),
        np.array(_SHIFT, dtype=np.float32),
    )


def same_bits(first: FloatTensor, second: FloatTensor) -> bool:
    """Whether two tensors agree bit by bit, looked at in pieces to need no further tensor."""
    np = require_numpy()
    a, b = first.view(np.uint32), second.view(np.uint32)
    step = MIB // _ITEM_BYTES
    return all(np.array_equal(a[start : start + step], b[start : start + step]) for start in range(0, len(a), step))


def interleaved(
    parts: Mapping[str, Callable[[], object]], repeats: int, budget_seconds: float, progress: bool
) -> tuple[dict[str, list[float]], float]:
    """Seconds of each part in each round, and the share of the elapsed time that this thread waited.

    A first round warms up and sizes the rest, by elapsed time: it is the learner who waits.
    """
    start = perf_counter()
    for part in parts.values():
        part()
    warm_up = perf_counter() - start
    rounds = min(repeats, max(_FEWEST_ROUNDS, int(measuring_seconds(budget_seconds) / max(warm_up, 1e-9)) - 1))
    samples: dict[str, list[float]] = {name: [] for name in parts}
    elapsed = own = 0.0
    for _ in with_tqdm(str(_PROGRESS), progress)(range(rounds)):
        start, own_start = perf_counter(), _clock()
        for name, part in parts.items():
            samples[name].append(_seconds(part))
        elapsed += perf_counter() - start
        own += _clock() - own_start
    return samples, max(0.0, 1 - own / elapsed) if _OWN_TIME and elapsed > 0 else 0.0


def with_tqdm(label: str, shown: bool) -> Callable[[Iterable[int]], Iterator[int]]:
    """A progress bar on standard output: a notebook compares what comes on standard error. None without tqdm."""

    def progress(rounds: Iterable[int]) -> Iterator[int]:
        try:
            from tqdm import tqdm
        except ImportError:
            return iter(rounds)
        return iter(tqdm(rounds, desc=label, file=sys.stdout, leave=False, disable=not shown))

    return progress


def _seconds(action: Callable[[], object]) -> float:
    start = _clock()
    action()
    return _clock() - start


def require_float32_bytes(name: str, value: object) -> int:
    size = require_int(name, value, _ITEM_BYTES)
    if size % _ITEM_BYTES:
        raise bad_argument(
            name,
            zh=f"必须是 4 的倍数（float32 每个元素 4 字节），收到的是 {size}",
            en=f"it must be a multiple of 4 (a float32 takes 4 bytes), got {size}",
        )
    return size
