"""Q3's costs: what a layout conversion or a compilation costs once or each call, against what each call saves.

A ledger adds up; it never forbids. Bytes are logical bytes, as everywhere in the course, and fewer bytes are not
the same share of time.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, NamedTuple, TypedDict, get_args

from lessons_lib.base.validate import bad_argument, require_choice, require_int, require_real

When = Literal["once", "each_call"]
WHEN: tuple[When, ...] = get_args(When)


class LayoutLedger(TypedDict):
    """What ``layout_ledger`` returns."""

    reorder_bytes: int
    cost_bytes: int
    saved_bytes: int
    net_bytes: int
    break_even_calls: int | None
    gains_from_call: int | None


class CompileLedger(TypedDict):
    """What ``compile_ledger`` returns."""

    cost_seconds: float
    saved_seconds: float
    net_seconds: float
    break_even_calls: int | None
    gains_from_call: int | None


class LedgerPoint(NamedTuple):
    """One point of a drawing: the net of ``calls`` calls, in bytes or seconds."""

    calls: int
    net: float


def layout_ledger(
    reordered_tensor_bytes: int, saved_bytes_per_call: int, when: When = "each_call", calls: int = 1
) -> LayoutLedger:
    """The bytes that ``calls`` calls of a fused kernel save, less those that its layout conversion moves.

    ``reorder_bytes = 2 x reordered_tensor_bytes``: the tensor is read in one layout and written in the other.
    ``net_bytes = calls x saved_bytes_per_call - cost``, where the cost is ``reorder_bytes`` once, or each call.

    Args:
        reordered_tensor_bytes: size of the tensor whose layout changes, 0 (nothing to convert) or more.
        saved_bytes_per_call: what fusion saves each call, conversion not counted, 0 or more.
        when: ``"once"``: converted before the first call and kept, as a weight can be; ``"each_call"``: converted
            anew for every call, as an activation must be.
        calls: calls so far, 0 or more.

    Returns:
        ``reorder_bytes``: of one conversion; ``cost_bytes``, ``saved_bytes`` and ``net_bytes`` after ``calls``
        calls, all exact; ``break_even_calls``: the fewest calls, at least 1, with a net of 0 or more;
        ``gains_from_call``: the first call with a net above 0. The last two are ``None`` where there is none.

    Assumes that every call saves the same, and that no other kernel could absorb the conversion into a read it
    makes anyway. A negative net is a cost to compare, not a veto: a measurement may still favour the fused kernel.

    Raises:
        ValueError: a number is not an integer or is negative; ``when`` is neither of the two.
    """
    reordered = require_int("reordered_tensor_bytes", reordered_tensor_bytes, 0)
    saved = require_int("saved_bytes_per_call", saved_bytes_per_call, 0)
    require_choice("when", when, WHEN)
    calls = require_int("calls", calls, 0)
    reorder = 2 * reordered
    once, each = (reorder, 0) if when == "once" else (0, reorder)
    return {
        "reorder_bytes": reorder,
        "cost_bytes": once + each * calls,
        "saved_bytes": saved * calls,
        "net_bytes": (saved - each) * calls - once,
        "break_even_calls": _break_even(once, saved - each),
        "gains_from_call": _gains_from(once, saved - each),
    }


def compile_ledger(compile_seconds: float, saved_seconds_per_call: float, calls: int = 1) -> CompileLedger:
    """The seconds that ``calls`` calls save, less the seconds of compiling once.

    Args:
        compile_seconds: time to compile, 0 or more.
        saved_seconds_per_call: time of the separate kernels less that of the fused one, as measured; negative when
            the fused one is slower, and then compiling never pays.
        calls: calls so far, 0 or more.

    Returns:
        ``cost_seconds``, ``saved_seconds`` and ``net_seconds`` after ``calls`` calls; ``break_even_calls`` and
        ``gains_from_call`` as in ``layout_ledger``.

    A ``float`` counts as the decimal it is written as (0.1 is a tenth), and the sums are made without rounding:
    4 s of compiling against 0.1 s a call break even at exactly 40 calls. Assumes that nothing is compiled again,
    as a new shape would demand.

    Raises:
        ValueError: a time is not a finite number, ``compile_seconds`` is negative, or ``calls`` is not an integer of
            0 or more.
    """
    cost = _exact(require_real("compile_seconds", compile_seconds, 0))
    saved = _exact(require_real("saved_seconds_per_call", saved_seconds_per_call))
    calls = require_int("calls", calls, 0)
    try:
        sums = float(saved * calls), float(saved * calls - cost)
    except OverflowError:
        raise bad_argument(
            "calls", zh="次数太多，总秒数无法表示", en="there are too many: the sum of seconds has no float"
        ) from None
    return {
        "cost_seconds": float(cost),
        "saved_seconds": sums[0],
        "net_seconds": sums[1],
        "break_even_calls": _break_even(cost, saved),
        "gains_from_call": _gains_from(cost, saved),
    }


def layout_series(
    reordered_tensor_bytes: int, saved_bytes_per_call: int, when: When, last_call: int, points: int = 101
) -> tuple[LedgerPoint, ...]:
    """The net bytes of ``layout_ledger`` from 0 to ``last_call`` calls, for drawing.

    Every number of calls where ``points`` allows it, else that many, evenly spread; both ends are always there.

    Raises:
        ValueError: as ``layout_ledger``; ``last_call`` is below 1, or ``points`` below 2.
    """
    return tuple(
        LedgerPoint(calls, layout_ledger(reordered_tensor_bytes, saved_bytes_per_call, when, calls)["net_bytes"])
        for calls in _spread_calls(last_call, points)
    )


def compile_series(
    compile_seconds: float, saved_seconds_per_call: float, last_call: int, points: int = 101
) -> tuple[LedgerPoint, ...]:
    """The net seconds of ``compile_ledger`` from 0 to ``last_call`` calls; otherwise as ``layout_series``.

    Raises:
        ValueError: as ``compile_ledger``; ``last_call`` is below 1, or ``points`` below 2.
    """
    return tuple(
        LedgerPoint(calls, compile_ledger(compile_seconds, saved_seconds_per_call, calls)["net_seconds"])
        for calls in _spread_calls(last_call, points)
    )


def _break_even(once: int | Fraction, per_call: int | Fraction) -> int | None:
    """The fewest calls, at least 1, with ``per_call x calls >= once``."""
    if per_call <= 0:
        return 1 if per_call == once == 0 else None
    return max(1, int(-(-once // per_call)))


def _gains_from(once: int | Fraction, per_call: int | Fraction) -> int | None:
    """The fewest calls with ``per_call x calls > once``."""
    return int(once // per_call) + 1 if per_call > 0 else None


def _exact(seconds: float) -> Fraction:
    return Fraction(repr(seconds))


def _spread_calls(last_call: object, points: object) -> list[int]:
    last = require_int("last_call", last_call, 1)
    count = require_int("points", points, 2)
    if last < count:
        return list(range(last + 1))
    return [last * index // (count - 1) for index in range(count)]
