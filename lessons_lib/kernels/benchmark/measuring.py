"""The timing loop: every plan once a round, round after round, so that noise hits all alike.

What a clock and a cache are is the ``Stopwatch``'s business: a GPU's events, a host's clock, or a test's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

from lessons_lib.base.environment import measuring_seconds

Action = Callable[[], object]
Progress = Callable[[Iterable[int]], Iterable[int]]
_Mark = TypeVar("_Mark")
_Key = TypeVar("_Key", bound=str)


class Stopwatch(Protocol[_Mark]):
    """What the loop needs of a device."""

    def clear_cache(self) -> None:
        """Put something else into the caches, once; may return before it is done."""

    def mark(self) -> _Mark:
        """A point in the device's work, as of what has been launched so far."""

    def synchronize(self) -> None:
        """Wait until all that was launched is done."""

    def seconds_between(self, start: _Mark, end: _Mark) -> float:
        """From mark to mark, after ``synchronize``."""


def measure_rounds(
    plans: Mapping[_Key, Action],
    stopwatch: Stopwatch[Any],
    *,
    fewest: int = 10,
    most: int = 100,
    budget_seconds: float = 2.0,
    clock: Callable[[], float] = perf_counter,
    progress: Progress = iter,
) -> dict[_Key, list[float]]:
    """Seconds of each plan in each round.

    Every plan runs once before the clock does (a compiler's time is no kernel's), and once more to size the rest: as
    many rounds as fit ``budget_seconds``, at least ``fewest``, at most ``most``. A round is, for each plan in turn:
    clear the cache, mark, run, mark. Nothing waits in between, so that launches queue ahead of the device.

    Args:
        plans: at least one, warmed up or not.
        clock: the host's, which sizes the rounds.
        progress: given the rounds' numbers, gives them back while it shows them.
    """
    for plan in plans.values():
        plan()
    stopwatch.synchronize()
    start = clock()
    _round(plans, stopwatch)
    stopwatch.synchronize()
    once = max(clock() - start, 1e-9)
    rounds = min(most, max(fewest, int(measuring_seconds(budget_seconds) / once)))
    marks = [_round(plans, stopwatch) for _ in progress(range(rounds))]
    stopwatch.synchronize()
    return {name: [stopwatch.seconds_between(*entry[name]) for entry in marks] for name in plans}


def _round(plans: Mapping[_Key, Action], stopwatch: Stopwatch[_Mark]) -> dict[_Key, tuple[_Mark, _Mark]]:
    marks = {}
    for name, plan in plans.items():
        stopwatch.clear_cache()
        start = stopwatch.mark()
        plan()
        marks[name] = (start, stopwatch.mark())
    return marks


def repeated(action: Action, times: int) -> Action:
    """The action ``times`` over, back to back: for calls too short to time one by one."""

    def run() -> None:
        for _ in range(times):
            action()

    return run


class HostStopwatch(Generic[_Mark]):
    """The host's clock around work of another stopwatch's device, waiting for it at each mark: launches count.

    Seconds are those of one of ``calls`` calls that a plan makes.
    """

    def __init__(self, device: Stopwatch[_Mark], calls: int, clock: Callable[[], float] = perf_counter) -> None:
        self._device, self._calls, self._clock = device, calls, clock

    def clear_cache(self) -> None:
        """Nothing: what is called over and over finds its few bytes in the cache."""

    def mark(self) -> float:
        self._device.synchronize()
        return self._clock()

    def synchronize(self) -> None:
        self._device.synchronize()

    def seconds_between(self, start: float, end: float) -> float:
        return (end - start) / self._calls


class CpuStopwatch:
    """The host's clock; ``clear_cache`` overwrites ``cache_bytes`` of memory, nothing by default."""

    def __init__(self, cache_bytes: int = 0) -> None:
        self._cache = bytearray(cache_bytes)

    def clear_cache(self) -> None:
        self._cache[:] = bytes(len(self._cache))

    def mark(self) -> float:
        return perf_counter()

    def synchronize(self) -> None:
        """Nothing: what returns is done."""

    def seconds_between(self, start: float, end: float) -> float:
        return end - start


class GpuStopwatch:
    """Events in the current stream of the current GPU, CUDA's or HIP's.

    The cache is cleared by writing more than any L2 holds: 256 MiB, on AMD 512 MiB for its Infinity Cache. That also
    keeps the GPU busy while the host launches the plan, so that no launch is timed.
    """

    def __init__(self) -> None:
        import torch

        self._torch: Any = torch
        size = (512 if torch.version.hip else 256) * 2**20
        self._cache = torch.empty(size, dtype=torch.int8, device="cuda")

    def clear_cache(self) -> None:
        self._cache.zero_()

    def mark(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def synchronize(self) -> None:
        self._torch.cuda.synchronize()

    def seconds_between(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) / 1e3


def count_launches(action: Action) -> int | None:
    """Kernels that the action launches on the GPU, counted by ``torch.profiler``; ``None`` where it sees none.

    Copies and fills by the driver are no kernels and are left out.
    """
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    try:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            action()
            torch.cuda.synchronize()
        events = list(profiler.events() or ())
    except Exception:  # the system does not let this process profile, or the profiler fails in a way of its own
        return None
    kernels = [
        event for event in events if event.device_type in (DeviceType.CUDA, DeviceType.HIP) and is_kernel(event)
    ]
    return len(kernels) or None


def is_kernel(event: Any) -> bool:
    """Whether a profiler's event on the GPU's side is a kernel, and no copy, fill or label."""
    if getattr(event, "is_user_annotation", False):
        return False
    return not str(event.name).lower().startswith(_NO_KERNELS)


_NO_KERNELS = ("memcpy", "memset", "torch-compiled region", "## ", "profilerstep", "copydevice", "fillbuffer")
