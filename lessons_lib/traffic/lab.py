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
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, Literal

from lessons_lib.base.environment import free_memory_bytes
from lessons_lib.base.roofline import Interval, speedup_interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import KIB, MIB, format_bytes, format_ratio, format_seconds
from lessons_lib.base.validate import bad_argument, require_bool, require_int, require_real
from lessons_lib.traffic.model import chain_traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatTensor = NDArray[np.float32]

CHAIN = ("+ b", "|·|", "× s", "+ c")
"""The operations in order, as a picture labels them."""

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
_clock = thread_time if _OWN_TIME else perf_counter

_NO_NUMPY = Text(
    zh="这个实验要用 NumPy，但当前环境里没有。请先运行：{command}，再重新运行这一格。",
    en="This lab needs NumPy, which is not installed here. Run {command} first, then run this cell again.",
)
_PROGRESS = Text(zh="测量中", en="Measuring")


@dataclass(frozen=True)
class Spread:
    """Repeated measurements of one thing: seconds, or ratios where a field says so."""

    median: float
    low: float  # 20th percentile
    high: float  # 80th percentile
    smallest: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Summarize at least one sample."""
        ordered = sorted(samples)
        return cls(
            median=statistics.median(ordered),
            low=_percentile(ordered, 0.2),
            high=_percentile(ordered, 0.8),
            smallest=ordered[0],
            count=len(ordered),
        )

    @property
    def relative_width(self) -> float:
        """From the 20th to the 80th percentile, as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


@dataclass(frozen=True)
class Calibration:
    """What this machine needs for the parts, in seconds for the whole tensor.

    ``copy``: one pass that changes nothing, over memory (read and write a tensor). ``operations``: the arithmetic
    of each operation on a tile that stays in the cache, calls taken off. ``calls``: Python's and NumPy's own time
    for all the calls of the tiled loop.
    """

    copy: float
    operations: tuple[float, ...]
    calls: float

    @property
    def compute(self) -> float:
        """The arithmetic of all operations together."""
        return math.fsum(self.operations)


@dataclass(frozen=True)
class ChainPrediction:
    """Seconds and ratios that follow from a calibration; see ``predict_chain``."""

    unfused: Interval
    tiled: Interval
    speedup: Interval
    same_overlap_speedup: Interval


@dataclass(frozen=True)
class Gap:
    """Why a measurement lies where it does: ``name`` for programs, ``text`` for readers."""

    name: str
    text: Text


@dataclass(frozen=True)
class ChainMeasurement:
    """What ``measure_chain`` found. Seconds, bytes, and ratios."""

    requested_bytes: int
    tensor_bytes: int
    tile_bytes: int
    copy: Spread
    library_copy: Spread
    calibration: Calibration
    resident: Spread
    unfused: Spread
    tiled: Spread
    speedup: Spread  # of the ratios unfused / tiled, round by round
    bit_identical: bool
    waited_share: float  # of the rounds' elapsed time, not spent on this thread; 0 where it cannot be told

    @property
    def rounds(self) -> int:
        """How often each variant was timed."""
        return self.tiled.count

    @property
    def unfused_bytes(self) -> int:
        """Logical traffic of four passes: each reads and writes one tensor."""
        return _chain_bytes(self.tensor_bytes, len(CHAIN))

    @property
    def tiled_bytes(self) -> int:
        """Logical traffic of one pass: ``x`` read, ``y`` written."""
        return _chain_bytes(self.tensor_bytes, 1)

    @property
    def unfused_calls(self) -> int:
        """NumPy calls of the unfused chain."""
        return len(CHAIN)

    @property
    def tiled_calls(self) -> int:
        """NumPy calls of the tiled loop: more, not fewer; a compiler's fused kernel would be one launch."""
        return len(CHAIN) * math.ceil(self.tensor_bytes / self.tile_bytes)

    @property
    def naive_speedup(self) -> float:
        """The guess by bytes alone."""
        return self.unfused_bytes / self.tiled_bytes

    @property
    def prediction(self) -> ChainPrediction:
        """The intervals that follow from this run's own calibration."""
        return predict_chain(self.calibration)

    @property
    def unfused_agrees(self) -> bool:
        """Whether the unfused time lies in its predicted interval, give or take 5 % or the rounds' own spread."""
        return _side(self.unfused, self.prediction.unfused) == "within"

    @property
    def tiled_agrees(self) -> bool:
        """The same for the tiled time."""
        return _side(self.tiled, self.prediction.tiled) == "within"

    @property
    def reason(self) -> Gap:
        """Why the measured times lie where they do in, or outside, the predicted intervals."""
        return explain_gap(self.calibration, self.unfused, self.tiled, self.resident)

    @property
    def naive_gap(self) -> Gap:
        """Why the bytes alone promise too much."""
        return explain_naive_gap(self.calibration, self.naive_speedup, self.speedup.median)

    @property
    def notes(self) -> tuple[Text, ...]:
        """What else the reader should know about this run."""
        notes = []
        if self.tensor_bytes < self.requested_bytes:
            notes.append(
                _SIZED_DOWN.format(asked=format_bytes(self.requested_bytes), used=format_bytes(self.tensor_bytes))
            )
        if max(self.unfused.relative_width, self.tiled.relative_width) > _NOISY:
            notes.append(_NOISY_NOTE)
        if self.waited_share > _BUSY:
            notes.append(_BUSY_NOTE.format(share=f"{self.waited_share:.0%}"))
        if self.library_copy.median < 0.8 * self.copy.median:
            notes.append(
                _STREAMING_NOTE.format(
                    library=format_seconds(self.library_copy.median), ordinary=format_seconds(self.copy.median)
                )
            )
        return tuple(notes)

    def verdict(self) -> dict[str, bool]:
        """What holds on any sane machine, however slow or noisy: safe to store and compare.

        ``less_than_naive_speedup`` compares the fastest rounds, which other programs disturb least.
        """
        return {
            "bit_identical": self.bit_identical,
            "bytes_ratio_is_number_of_operations": self.unfused_bytes == len(CHAIN) * self.tiled_bytes,
            "less_than_naive_speedup": self.unfused.smallest < self.naive_speedup * self.tiled.smallest,
        }


# -- the measurement -----------------------------------------------------------------------------------------


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
    requested = _require_float32_bytes("tensor_bytes", tensor_bytes)
    tile_bytes = _require_float32_bytes("tile_bytes", tile_bytes)
    repeats = require_int("repeats", repeats, _FEWEST_ROUNDS)
    progress = require_bool("progress", progress)
    budget_seconds = require_real("budget_seconds", budget_seconds, above=0)
    np = _numpy()

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
        "resident": lambda: _tile_pass(x, t1, buffer, [0] * tiles),
        "calls": lambda: _tile_pass(x, t1, buffer[:_TINY], [0] * tiles),
    }
    length = min(len(x), _RESIDENT_TILE // _ITEM_BYTES)  # whatever the tile: this must stay in the cache
    count = max(1, round(len(x) / length))
    for index in range(len(CHAIN)):
        parts[f"operation {index}"] = partial(_repeat, index, x[:length], t1[:length], count)
        parts[f"call {index}"] = partial(_repeat, index, x[:_TINY], t1[:_TINY], count)
    samples, waited_share = _interleaved(parts, repeats, budget_seconds, progress)

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
        bit_identical=_same_bits(y, t1),
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
    tensor_bytes = _require_float32_bytes("tensor_bytes", tensor_bytes)
    np = _numpy()
    values: FloatTensor = np.random.default_rng(0).standard_normal(tensor_bytes // _ITEM_BYTES, dtype=np.float32)
    return values


def run_unfused(x: FloatTensor, t1: FloatTensor, t2: FloatTensor, t3: FloatTensor, y: FloatTensor) -> None:
    """Four passes over whole tensors: each operation reads one from memory and writes one to memory."""
    np = _numpy()
    bias, scale, shift = _constants()
    np.add(x, bias, out=t1)
    np.absolute(t1, out=t2)
    np.multiply(t2, scale, out=t3)
    np.add(t3, shift, out=y)


def run_tiled(x: FloatTensor, y: FloatTensor, tile_bytes: int) -> None:
    """One pass: all four operations on a tile, then the next tile; the last one may be shorter.

    Raises:
        ValueError: ``tile_bytes`` is not a positive multiple of 4, or ``x`` and ``y`` are not flat float32
            tensors of one length.
        ImportError: NumPy is missing; the message says what to do.
    """
    length = _require_float32_bytes("tile_bytes", tile_bytes) // _ITEM_BYTES
    np = _numpy()
    for name, tensor in (("x", x), ("y", y)):
        if getattr(tensor, "dtype", None) != np.float32 or tensor.ndim != 1:
            raise bad_argument(name, zh="需要一维 float32 数组", en="it must be a flat float32 array")
    if len(x) != len(y):
        raise bad_argument("y", zh="长度必须与 x 相同", en="it must be as long as x")
    buffer = np.empty(min(length, len(x)), dtype=np.float32)
    whole_tiles = len(x) // length * length
    _tile_pass(x, y, buffer, range(0, whole_tiles, length))
    if whole_tiles < len(x):
        _tile_pass(x, y, buffer[: len(x) - whole_tiles], [whole_tiles])


def affordable_bytes(tensor_bytes: int, free_bytes: int | None) -> int:
    """``tensor_bytes`` halved, down to 8 MiB, until five tensors take at most a third of ``free_bytes``."""
    while (
        free_bytes is not None
        and free_bytes < _MEMORY_MARGIN * _TENSORS * tensor_bytes
        and tensor_bytes // 2 >= _SMALLEST_TENSOR
    ):
        tensor_bytes = tensor_bytes // 2 // _ITEM_BYTES * _ITEM_BYTES
    return tensor_bytes


def _tile_pass(x: FloatTensor, y: FloatTensor, buffer: FloatTensor, starts: Iterable[int]) -> None:
    """The four operations on the tile at each of ``starts``, as long as ``buffer``."""
    np = _numpy()
    bias, scale, shift = _constants()
    length = len(buffer)
    for start in starts:
        np.add(x[start : start + length], bias, out=buffer)
        np.absolute(buffer, out=buffer)
        np.multiply(buffer, scale, out=buffer)
        np.add(buffer, shift, out=y[start : start + length])


def _repeat(index: int, source: FloatTensor, target: FloatTensor, count: int) -> None:
    """One operation of the chain on one small tile, ``count`` times over."""
    np = _numpy()
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
    np = _numpy()
    return (
        np.array(_BIAS, dtype=np.float32),
        np.array(_SCALE, dtype=np.float32),
        np.array(_SHIFT, dtype=np.float32),
    )


def _same_bits(first: FloatTensor, second: FloatTensor) -> bool:
    """Whether two tensors agree bit by bit, looked at in pieces to need no further tensor."""
    np = _numpy()
    a, b = first.view(np.uint32), second.view(np.uint32)
    step = MIB // _ITEM_BYTES
    return all(np.array_equal(a[start : start + step], b[start : start + step]) for start in range(0, len(a), step))


def _interleaved(
    parts: Mapping[str, Callable[[], object]], repeats: int, budget_seconds: float, progress: bool
) -> tuple[dict[str, list[float]], float]:
    """Seconds of each part in each round, and the share of the elapsed time that this thread waited.

    A first round warms up and sizes the rest, by elapsed time: it is the learner who waits.
    """
    start = perf_counter()
    for part in parts.values():
        part()
    warm_up = perf_counter() - start
    rounds = min(repeats, max(_FEWEST_ROUNDS, int(budget_seconds / max(warm_up, 1e-9)) - 1))
    samples: dict[str, list[float]] = {name: [] for name in parts}
    elapsed = own = 0.0
    for _ in _with_progress(range(rounds), progress):
        start, own_start = perf_counter(), _clock()
        for name, part in parts.items():
            samples[name].append(_seconds(part))
        elapsed += perf_counter() - start
        own += _clock() - own_start
    return samples, max(0.0, 1 - own / elapsed) if _OWN_TIME and elapsed > 0 else 0.0


def _with_progress(rounds: range, progress: bool) -> Iterator[int]:
    try:
        from tqdm import tqdm
    except ImportError:
        return iter(rounds)
    return iter(tqdm(rounds, desc=str(_PROGRESS), file=sys.stdout, leave=False, disable=not progress))


def _seconds(action: Callable[[], object]) -> float:
    start = _clock()
    action()
    return _clock() - start


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        in_browser = sys.platform == "emscripten"
        command = "%pip install numpy" if in_browser else f"{sys.executable or 'python'} -m pip install numpy"
        raise ImportError(_NO_NUMPY.format(command=command).both) from error
    return numpy


def _require_float32_bytes(name: str, value: object) -> int:
    size = require_int(name, value, _ITEM_BYTES)
    if size % _ITEM_BYTES:
        raise bad_argument(
            name,
            zh=f"必须是 4 的倍数（float32 每个元素 4 字节），收到的是 {size}",
            en=f"it must be a multiple of 4 (a float32 takes 4 bytes), got {size}",
        )
    return size


def _chain_bytes(tensor_bytes: int, groups: int) -> int:
    return chain_traffic(num_ops=len(CHAIN), tensor_bytes=tensor_bytes, fused_groups=groups)["total_bytes"]


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Between the two nearest samples, in proportion."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


# -- prediction and reasons: numbers in, numbers and words out -----------------------------------------------


def predict_chain(calibration: Calibration) -> ChainPrediction:
    """The seconds of both variants, each from perfect overlap of bytes and arithmetic to none.

    ``unfused = [sum of max(copy, operation), sum of (copy + operation)]``, over the operations;
    ``tiled = [max(copy, compute + calls), copy + compute + calls]``: calls overlap with no arithmetic, for one core
    does both. The four calls of the unfused chain are not counted.

    ``speedup`` allows each side its own overlap: ``[unfused.low / tiled.high, unfused.high / tiled.low]``.
    ``same_overlap_speedup`` gives both sides the same, as two compiled kernels on one device would have.
    """
    copy = calibration.copy
    work = calibration.compute + calibration.calls
    unfused = Interval(
        math.fsum(max(copy, operation) for operation in calibration.operations),
        math.fsum(copy + operation for operation in calibration.operations),
    )
    tiled = Interval(max(copy, work), copy + work)
    return ChainPrediction(
        unfused=unfused,
        tiled=tiled,
        speedup=Interval(unfused.low / tiled.high, unfused.high / tiled.low),
        same_overlap_speedup=speedup_interval(unfused, tiled),
    )


def explain_gap(calibration: Calibration, unfused: Spread, tiled: Spread, resident: Spread) -> Gap:
    """Name why the two measured times lie where they do, from what was measured.

    ``resident`` is the tiled loop on one tile again and again: slower than arithmetic and calls together only
    if the tile itself is too large for the cache.
    """
    prediction = predict_chain(calibration)
    work = calibration.compute + calibration.calls
    figures = {
        "unfused": format_seconds(unfused.median),
        "unfused_low": format_seconds(prediction.unfused.low),
        "unfused_high": format_seconds(prediction.unfused.high),
        "tiled": format_seconds(tiled.median),
        "tiled_low": format_seconds(prediction.tiled.low),
        "tiled_high": format_seconds(prediction.tiled.high),
        "calls": format_seconds(calibration.calls),
        "resident": format_seconds(resident.median),
        "work": format_seconds(work),
    }
    unfused_side, tiled_side = _side(unfused, prediction.unfused), _side(tiled, prediction.tiled)
    unfused_overlap = _overlap(unfused, prediction.unfused)
    tiled_overlap = _overlap(tiled, prediction.tiled)
    if max(unfused.relative_width, tiled.relative_width) > _NOISY:
        name = "noise"
    elif calibration.calls > max(calibration.copy, calibration.compute):
        name = "calls"
    elif tiled_side == "above" and resident.median > _TOO_LARGE * work:
        name = "tile-out-of-cache"
    elif unfused_side == "below":
        name = "cache-kept-intermediates"
    elif tiled_side == "above":
        name = "slower-than-the-parts"
    elif unfused_side == "above":
        name = "more-tensors-than-the-copy"
    elif tiled_side == "below":
        name = "faster-than-the-parts"
    elif unfused_overlap - tiled_overlap > _UNLIKE:
        name = "overlap-within-a-pass"
    elif tiled_overlap - unfused_overlap > _UNLIKE:
        name = "overlap-within-a-tile"
    else:
        name = "overlap" if unfused_overlap + tiled_overlap >= 1 else "no-overlap"
    return Gap(name, _REASONS[name].format(**figures))


def explain_naive_gap(calibration: Calibration, naive: float, measured: float) -> Gap:
    """Name what the guess by bytes leaves out: the larger of arithmetic and calls."""
    name = "arithmetic" if calibration.compute >= calibration.calls else "calls"
    return Gap(
        name,
        _NAIVE_REASONS[name].format(
            naive=format_ratio(naive),
            measured=format_ratio(measured),
            copy=format_seconds(calibration.copy),
            compute=format_seconds(calibration.compute),
            calls=format_seconds(calibration.calls),
        ),
    )


_NOISY = 0.5  # 20th to 80th percentile, as a share of the median
_BUSY = 0.1  # of the elapsed time
_TOO_LARGE = 1.25
_TOLERANCE = 0.05
_UNLIKE = 0.25  # of an interval


def _side(measured: Spread, predicted: Interval) -> Literal["below", "within", "above"]:
    """Where a median lies; outside means beyond an end by more than 5 % and by more than half the rounds' spread."""
    half_spread = (measured.high - measured.low) / 2
    if measured.median < predicted.low - max(_TOLERANCE * predicted.low, half_spread):
        return "below"
    if measured.median > predicted.high + max(_TOLERANCE * predicted.high, half_spread):
        return "above"
    return "within"


def _overlap(measured: Spread, predicted: Interval) -> float:
    """1 at the low end of the interval (perfect overlap), 0 at the high end (none)."""
    width = predicted.high - predicted.low
    return min(1.0, max(0.0, (predicted.high - measured.median) / width)) if width else 1.0


_SIZED_DOWN = Text(
    zh="可用内存不多，张量从 {asked} 缩小到 {used}；各项比值的含义不变。",
    en="Free memory is short: the tensors were made {used} instead of {asked}. The ratios mean the same.",
)
_NOISY_NOTE = Text(
    zh="各轮之间相差很大，多半有别的程序在占用处理器或内存；关掉它们再测一次会更可信。",
    en="The rounds differ a lot: other programs are probably using the processor or the memory. "
    "Close them and measure again.",
)
_BUSY_NOTE = Text(
    zh="测量期间，处理器有 {share} 的时间在忙别的。表中只计本线程自己的时间，比值仍可比；内存带宽被分走的部分去不掉。",
    en="During {share} of the measurement the processor was busy elsewhere. The table counts this thread's own time, "
    "so the ratios still compare; memory bandwidth taken by others cannot be taken out.",
)
_STREAMING_NOTE = Text(
    zh="系统库的拷贝只用 {library}，同样读写一遍的 NumPy 运算要 {ordinary}：普通的写入会先把目标缓存行读进来"
    "（写分配，write-allocate），库的拷贝绕过了缓存。所以这里用后者做校准。",
    en="The library's copy takes {library}, a NumPy operation over the same bytes {ordinary}: an ordinary store "
    "first reads the line it is about to write (write-allocate), the library's copy goes around the cache. "
    "The prediction is therefore calibrated with the latter.",
)
_REASONS: Mapping[str, Text] = {
    "noise": Text(
        zh="各轮之间的波动太大，这次测量分不出原因。关掉其他程序，再运行一次。",
        en="The rounds differ too much to name a reason. Close other programs and run it again.",
    ),
    "calls": Text(
        zh="调用开销占了大头：单是调用就用去 {calls}，比搬运数据或做运算都多。数据块太小，每次调用的开销摊销不掉。",
        en="Calls dominate: they alone take {calls}, more than moving the data or computing. The tiles are too "
        "small to amortize the cost of a call.",
    ),
    "tile-out-of-cache": Text(
        zh="数据块装不进缓存：只在同一个数据块上反复算，也要 {resident}，而运算加调用本来只需 {work}。"
        "中间结果没有留在片上，分块测得 {tiled}，超过了预测的上限 {tiled_high}。",
        en="The tile does not fit the cache: repeating one and the same tile takes {resident}, where arithmetic "
        "and calls need {work}. The intermediate results do not stay on chip, and the tiled run took {tiled}, "
        "above the predicted {tiled_high}.",
    ),
    "cache-kept-intermediates": Text(
        zh="未融合只用了 {unfused}，低于预测的下限 {unfused_low}：缓存留住了中间张量的一部分，"
        "下一遍不必都从内存读。逻辑读写没有变，真正到内存的少了。",
        en="Unfused took only {unfused}, below the predicted {unfused_low}: a cache kept part of the intermediate "
        "tensors, so the next pass did not read all of them from memory. The logical traffic is the same, "
        "less of it reached memory.",
    ),
    "slower-than-the-parts": Text(
        zh="测得的时间（未融合 {unfused}，分块 {tiled}）超过了各部分之和（{unfused_high}，{tiled_high}），"
        "这里测的三项都解释不了。常见的原因是别的程序抢占内存带宽，或处理器降频；再测一次看它是否还在。",
        en="The measured times (unfused {unfused}, tiled {tiled}) exceed the sum of their parts ({unfused_high}, "
        "{tiled_high}), and none of the three measured terms explains it. Often another program takes memory "
        "bandwidth, or the clock drops: measure again and see whether it stays.",
    ),
    "more-tensors-than-the-copy": Text(
        zh="未融合用了 {unfused}，超过预测的上限 {unfused_high}，分块却在预测之内。校准用的拷贝只碰两个张量，"
        "未融合的四遍要碰五个：较大的缓存也许放得下两个，放不下五个。把张量加大再测，如果差距消失，就是这个原因。",
        en="Unfused took {unfused}, above the predicted {unfused_high}, though tiled lies within. The calibrating "
        "copy touches two tensors, the four passes five: a large cache may hold two and not five. "
        "Measure with larger tensors: if the gap closes, this was the reason.",
    ),
    "faster-than-the-parts": Text(
        zh="分块测得 {tiled}，比预测的下限 {tiled_low} 还快：校准时多半受了干扰，或处理器后来升了频。再测一次。",
        en="Tiled took {tiled}, less than the predicted {tiled_low}: the calibration was probably disturbed, or "
        "the clock rose later. Measure again.",
    ),
    "overlap-within-a-pass": Text(
        zh="重叠只发生在一次调用之内。未融合的每一遍里，处理器一边运算一边预取后面的数据，所以 {unfused} 靠近"
        "下限 {unfused_low}；分块时中间两步只碰缓存，这段时间内存闲着，所以 {tiled} 离下限 {tiled_low} 较远"
        "（各项之和是 {tiled_high}）。编译器生成的融合核函数是一个循环，没有这道缝。",
        en="Overlap happens within one call only. In each unfused pass the processor fetches ahead while it "
        "computes, so {unfused} lies near the lower end {unfused_low}; in the tiled loop the middle steps touch "
        "only the cache while memory sits idle, so {tiled} stays away from its lower end {tiled_low} (the sum of "
        "the parts is {tiled_high}). A compiler's fused kernel is one loop without such a seam.",
    ),
    "overlap": Text(
        zh="搬运和运算重叠得不错：未融合 {unfused}、分块 {tiled} 都更靠近预测的下限（{unfused_low}，{tiled_low}）。",
        en="Moving data and computing overlap well: unfused {unfused} and tiled {tiled} both lie nearer to the "
        "lower ends ({unfused_low}, {tiled_low}).",
    ),
    "no-overlap": Text(
        zh="NumPy 几乎没有让读写和运算重叠：未融合 {unfused}、分块 {tiled} 都靠近各项之和"
        "（{unfused_high}，{tiled_high}）。",
        en="NumPy barely overlaps loads and arithmetic: unfused {unfused} and tiled {tiled} both lie near the "
        "sum of the parts ({unfused_high}, {tiled_high}).",
    ),
    "overlap-within-a-tile": Text(
        zh="分块时读写和运算重叠得更好：{tiled} 更靠近下限 {tiled_low}，未融合的 {unfused} 更靠近"
        "各项之和 {unfused_high}。",
        en="The tiled loop overlaps better: {tiled} lies nearer to its lower end {tiled_low}, unfused {unfused} "
        "nearer to the sum {unfused_high}.",
    ),
}
_NAIVE_REASONS: Mapping[str, Text] = {
    "arithmetic": Text(
        zh="{naive} 只数了字节。融合省下的是搬运：四遍变一遍，每遍 {copy}；运算一次也没有少，仍要 {compute}，"
        "另有调用 {calls}。所以测得的是 {measured}。",
        en="{naive} counts bytes only. Fusion saves moving: one pass instead of four, {copy} each. The arithmetic "
        "is all still there, {compute}, and the calls take {calls}. So it came to {measured}.",
    ),
    "calls": Text(
        zh="{naive} 只数了字节。分块之后搬运只剩一遍（{copy}），可是数据块越小调用越多：调用用去 {calls}，"
        "比运算的 {compute} 还多。所以测得的是 {measured}。",
        en="{naive} counts bytes only. Tiled, one pass of moving is left ({copy}), but smaller tiles mean more "
        "calls: they take {calls}, more than the arithmetic's {compute}. So it came to {measured}.",
    ),
}
