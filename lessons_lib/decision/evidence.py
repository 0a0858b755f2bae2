"""The court's evidence: computed with NumPy in the cell that asks for it, against float64, in well under a second.

Values come from NumPy's frozen ``RandomState`` or are counted off, and operations whose results the floating-point
standard fixes are used wherever bits are found equal, so that every verdict is the same on every machine: sums that a
BLAS may reorder are made exact by the choice of data, and what an ``exp`` or ``tanh`` of the system decides is only
ever compared with a tolerance. Bytes and times are formulas; nothing is timed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lessons_lib.base.gpus import A100, T4
from lessons_lib.base.optional import require_numpy
from lessons_lib.base.roofline import Interval, speedup_interval
from lessons_lib.base.text import Text
from lessons_lib.base.units import KIB, MIB, format_bytes, format_range, format_ratio
from lessons_lib.base.validate import require_int
from lessons_lib.decision.court import (
    CASES,
    QUESTIONS,
    TOLERANCE_WORDS,
    TOLERANCES,
    CaseName,
    Exhibit,
    Findings,
    Hearing,
    Plan,
    Question,
    compare,
    learner_ruling,
    ledger_answer,
    profit_answer,
    require_case,
)
from lessons_lib.decision.ledger import LayoutLedger, layout_ledger
from lessons_lib.decision.model import Evidence
from lessons_lib.reuse.gemm import tile_operand_bytes
from lessons_lib.reuse.model import onchip_reuse, retile
from lessons_lib.reuse.rows import softmax_traffic
from lessons_lib.traffic.epilogue import epilogue_plans
from lessons_lib.traffic.model import Operator, chain_traffic, plan_traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

NUMPY = Text(zh="NumPy，这台机器", en="NumPy, this machine")
FORMULA = Text(zh="公式", en="a formula")

_FLOAT32 = 4  # bytes
_YES, _NO = Text(zh="是", en="yes"), Text(zh="否", en="no")
_APART, _FUSED = Text(zh="分开", en="separate"), Text(zh="融合", en="fused")
_WHAT = Text(zh="看什么", en="what")
_TRAFFIC = Text(zh="逻辑读写", en="logical traffic")
_BIT_EQUAL = Text(zh="逐位相等", en="bit-equal")
_WITHIN = Text(zh="相对误差不超过 {tolerance}", en="relative error at most {tolerance}")
_NEVER = Text(zh="永不", en="never")


def try_case(case: str, legal: object = None, profitable: object = None, bit_equal: object = None) -> Hearing:
    """Set the learner's ruling beside the evidence, computed now.

    Args:
        case: a name in ``CASES``.
        legal, profitable, bit_equal: ``"yes"``, ``"no"`` or ``"depends"``; while one is ``None`` no evidence is
            computed and none is shown.

    Raises:
        ValueError: an unknown case, or an answer that is none of the three.
        ImportError: NumPy is missing; the message says what to do.
    """
    name = require_case(case).name
    given = learner_ruling(legal, profitable, bit_equal)
    return Hearing(name, "open") if given is None else compare(examine(name), given)


def examine(case: str) -> Findings:
    """The evidence of a case, computed now.

    Raises:
        ValueError: there is no such case.
        ImportError: NumPy is missing; the message says what to do.
    """
    return _EXAMINERS[require_case(case).name]()


# -- measures -----------------------------------------------------------------------------------------------------


def same_bits(first: Any, second: Any) -> bool:
    """Whether two arrays agree in type, shape and every bit; 0.0 and -0.0 do not."""
    return bool(first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes())


def relative_error(result: Any, reference: Any, scale: Any = None) -> float:
    """The largest ``|result - reference| / scale``, worked out in float64.

    Args:
        result, reference: arrays of one shape; the reference is float64.
        scale: what the error is relative to, nowhere 0: ``|reference|`` itself, or the largest magnitude that the
            computation meets, for results that cancel.
    """
    np = require_numpy()
    size = np.abs(reference if scale is None else scale)
    return float(np.max(np.abs(result.astype(np.float64) - reference) / size))


def five_pass_softmax(x: Any) -> Any:
    """Softmax over the last axis as five operators: maximum, subtract, exponential, sum, divide."""
    np = require_numpy()
    largest = x.max(axis=-1, keepdims=True)
    shifted = x - largest
    powers = np.exp(shifted)
    return powers / powers.sum(axis=-1, keepdims=True)


def online_softmax(x: Any, tile_columns: int) -> Any:
    """Softmax over the rows of a matrix that never holds more than one tile of a row.

    First pass: a running maximum and a running sum; when the maximum moves, the sum so far is multiplied by
    ``exp(old - new)``. Second pass: ``exp(x - maximum) / sum``, tile by tile. The last tile may be narrower.

    Source: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867.

    Args:
        x: a matrix of floats, each row with at least one finite value.
        tile_columns: columns of a tile, at least 1.

    Raises:
        ValueError: ``tile_columns`` is not an integer or is below 1.
    """
    width = require_int("tile_columns", tile_columns, 1)
    np = require_numpy()
    largest = np.full((x.shape[0], 1), -np.inf, dtype=x.dtype)
    total = np.zeros((x.shape[0], 1), dtype=x.dtype)
    tiles = [slice(start, start + width) for start in range(0, x.shape[1], width)]
    for tile in tiles:
        part = x[:, tile]
        higher = np.maximum(largest, part.max(axis=1, keepdims=True))
        total = total * np.exp(largest - higher) + np.exp(part - higher).sum(axis=1, keepdims=True)
        largest = higher
    result = np.empty_like(x)
    for tile in tiles:
        result[:, tile] = np.exp(x[:, tile] - largest) / total
    return result


# -- (a) rounding at a boundary -----------------------------------------------------------------------------------


def _rounding() -> Findings:
    np = require_numpy()
    x = np.unique(np.arange(4095).astype(np.float16))  # every non-negative integer below 4096 that fp16 has
    boundary = (x + np.float16(1)).astype(np.float16)
    separate = (boundary - np.float16(2048)).astype(np.float16)
    fused = ((x.astype(np.float32) + np.float32(1)) - np.float32(2048)).astype(np.float16)
    on_the_way = x.astype(np.float64) + 1
    exact = on_the_way - 2048
    at = int(np.flatnonzero(x == 2048)[0])
    numbers = {
        "separate_value": float(separate[at]),
        "fused_value": float(fused[at]),
        "separate_error": float(np.max(np.abs(separate - exact))),
        "fused_error": float(np.max(np.abs(fused - exact))),
        "separate_relative": relative_error(separate, exact, on_the_way),
        "fused_relative": relative_error(fused, exact, on_the_way),
        "count": len(x),
        "different": int(np.count_nonzero(separate != fused)),
        "before": chain_traffic(2, 64 * MIB, 2)["total_bytes"],
        "after": chain_traffic(2, 64 * MIB, 1)["total_bytes"],
    }
    ran = Text(zh="逐元素算子，{count} 个值都算过", en="elementwise, run on {count} values")
    gain = _bytes_gain(numbers["before"], numbers["after"])
    plan = Plan(
        name=_FUSED,
        evidence=(
            _tolerance_evidence(numbers["fused_relative"], "float16"),
            _shape_evidence(ran.format(count=_count(numbers["count"]))),
        ),
        profitable=profit_answer(gain),
        bit_equal=same_bits(separate, fused),
    )
    words = {
        name: f"{numbers[name]:g}" for name in ("separate_value", "fused_value", "separate_error", "fused_error")
    }
    why = _why(
        "rounding",
        **words,
        separate_relative=f"{numbers['separate_relative']:.2%}",
        tolerance=TOLERANCE_WORDS["float16"],
        before=_bytes(numbers["before"]),
        after=_bytes(numbers["after"]),
        gain=format_ratio(gain.low),
        count=_count(numbers["count"]),
        different=_count(numbers["different"]),
    )
    return Findings("rounding", (plan,), _rounding_exhibit(numbers), why, numbers)


def _rounding_exhibit(numbers: Mapping[str, float]) -> Exhibit:
    tolerance = TOLERANCES["float16"]
    error = Text(zh="与 float64 的最大误差", en="largest error against float64")
    different = Text(zh="与分开时不同的结果", en="results unlike the separate ones")
    return Exhibit(
        header=(_WHAT, _APART, _FUSED),
        rows=(
            ("(2048 + 1) − 2048", f"{numbers['separate_value']:g}", f"{numbers['fused_value']:g}"),
            (error, f"{numbers['separate_error']:g}", f"{numbers['fused_error']:g}"),
            (
                _WITHIN.format(tolerance=TOLERANCE_WORDS["float16"]),
                _yes_no(numbers["separate_relative"] <= tolerance),
                _yes_no(numbers["fused_relative"] <= tolerance),
            ),
            (different, "", f"{_count(numbers['different'])} / {_count(numbers['count'])}"),
            (_TRAFFIC, _bytes(numbers["before"]), _bytes(numbers["after"])),
        ),
        note=Text(
            zh="相对误差以计算途中最大的数 x + 1 为基准。数值试了 4096 以下 fp16 能表示的所有非负整数；"
            "读写按 64 MiB 的张量计。",
            en="Relative errors are relative to the largest value on the way, x + 1. Tried: every non-negative "
            "integer below 4096 that fp16 can hold. Traffic is for 64 MiB tensors.",
        ),
    )


# -- (b) a re-order that pays and one that never does -------------------------------------------------------------

_SAVED = 8 * MIB
_PANEL = 16  # columns of one panel of the packed layout
_EACH = Text(zh="甲：激活，每次", en="A: activation, each call")
_ONCE = Text(zh="乙：权重，一次", en="B: weight, once")


def _each_call(calls: int = 1) -> LayoutLedger:
    return layout_ledger(8 * MIB, _SAVED, "each_call", calls)


def _once(calls: int = 1) -> LayoutLedger:
    return layout_ledger(32 * MIB, _SAVED, "once", calls)


def _reorder() -> Findings:
    x, w = _fractions((24, 64), 256, seed=1), _fractions((64, 48), 256, seed=2)
    separate = _product(x, w)
    equal = (
        same_bits(_product_of_packed_x(_pack(x), w), separate),
        same_bits(_product_of_packed_w(x, _pack(w)), separate),
    )
    each, once = _each_call(), _once()
    why = _why(
        "reorder",
        each_cost=_bytes(each["reorder_bytes"]),
        once_cost=_bytes(once["reorder_bytes"]),
        saved=_bytes(_SAVED),
        break_even=_call(once["break_even_calls"]),
        gains_from=_call(once["gains_from_call"]),
    )
    plans = (_reorder_plan(_EACH, each, equal[0]), _reorder_plan(_ONCE, once, equal[1]))
    numbers = {"each_reorder": each["reorder_bytes"], "once_reorder": once["reorder_bytes"]}
    return Findings("reorder", plans, _reorder_exhibit(equal), why, numbers)


def _reorder_plan(name: Text, ledger: LayoutLedger, equal: bool) -> Plan:
    full = Text(
        zh="列数是 {panel} 的倍数，每 {panel} 列打成一条，条条都满",
        en="columns are a multiple of {panel}: every panel is full",
    )
    return Plan(
        name=name,
        evidence=(_bits_evidence(equal), _shape_evidence(full.format(panel=_PANEL))),
        profitable=ledger_answer(ledger),
        bit_equal=equal,
        reorder_bytes=ledger["reorder_bytes"],
    )


def _reorder_exhibit(equal: tuple[bool, bool]) -> Exhibit:
    each, once = _each_call(), _once()
    net = Text(zh="调用 {calls} 次后的净省", en="net saving at call {calls}")
    return Exhibit(
        header=(_WHAT, _EACH, _ONCE),
        rows=(
            (
                Text(zh="一次转换的读写", en="traffic of one conversion"),
                _bytes(each["reorder_bytes"]),
                _bytes(once["reorder_bytes"]),
            ),
            *(
                (
                    net.format(calls=calls),
                    _signed_bytes(_each_call(calls)["net_bytes"]),
                    _signed_bytes(_once(calls)["net_bytes"]),
                )
                for calls in (1, 8, 9, 100)
            ),
            (
                Text(zh="第几次打平", en="breaks even at call"),
                _call(each["break_even_calls"]),
                _call(once["break_even_calls"]),
            ),
            (
                Text(zh="第几次起净省", en="gains from call"),
                _call(each["gains_from_call"]),
                _call(once["gains_from_call"]),
            ),
            (_BIT_EQUAL, *map(_yes_no, equal)),
        ),
        note=Text(
            zh="每次调用省 8 MiB 是给定的。逐位对照用小矩阵，乘积按 k 的次序逐个相加，不经过 BLAS。",
            en="The 8 MiB saved per call are given. Bits are compared on small matrices, products added in the order "
            "of k, without a BLAS.",
        ),
    )


def _pack(matrix: Float32) -> Float32:
    """[rows, columns] -> [panels, rows, 16], so that each panel of columns is contiguous."""
    rows, columns = matrix.shape
    packed = matrix.reshape(rows, columns // _PANEL, _PANEL).transpose(1, 0, 2)
    result: Float32 = require_numpy().ascontiguousarray(packed)
    return result


def _product(x: Float32, w: Float32) -> Float32:
    """``x @ w`` with products added one by one in the order of k, so that no BLAS decides about the last bits."""
    total: Float32 = require_numpy().zeros((x.shape[0], w.shape[1]), dtype=x.dtype)
    for k in range(x.shape[1]):
        total += x[:, k : k + 1] * w[k : k + 1, :]
    return total


def _product_of_packed_x(packed: Float32, w: Float32) -> Float32:
    """As ``_product``, column k of ``x`` taken from its panel."""
    total: Float32 = require_numpy().zeros((packed.shape[1], w.shape[1]), dtype=w.dtype)
    for k in range(w.shape[0]):
        panel, column = divmod(k, _PANEL)
        total += packed[panel, :, column : column + 1] * w[k : k + 1, :]
    return total


def _product_of_packed_w(x: Float32, packed: Float32) -> Float32:
    """As ``_product``, a panel of columns of ``w`` after the other."""
    result: Float32 = require_numpy().concatenate([_product(x, panel) for panel in packed], axis=1)
    return result


# -- (c) a tile that does not fit ---------------------------------------------------------------------------------

_TILE, _READS, _BUDGET = 128 * KIB, 3, 96 * KIB
_WHOLE = Text(zh="甲：整块", en="A: whole")
_CUT = Text(zh="乙：切开", en="B: cut")


def _tile() -> Findings:
    cut = retile(_TILE, _READS, _BUDGET)
    x = _fractions((_TILE // _FLOAT32,), 256, seed=3)
    separate = _three_passes(x)
    equal = (
        same_bits(_in_tiles(_three_reads, x, len(x)), separate),
        same_bits(_in_tiles(_three_reads, x, cut["piece_bytes"] // _FLOAT32), separate),
    )
    read = _READS * _TILE
    numbers = {
        "pieces": cut["pieces"],
        "piece": cut["piece_bytes"],
        "whole_avoided": cut["avoided_whole_bytes"],
        "cut_avoided": cut["avoided_read_bytes"],
        "whole_read": read - cut["avoided_whole_bytes"],
        "cut_read": read - cut["avoided_read_bytes"],
    }
    plans = (
        _tile_plan(_WHOLE, _TILE, _bytes_gain(read, numbers["whole_read"]), equal[0]),
        _tile_plan(_CUT, cut["piece_bytes"], _bytes_gain(read, numbers["cut_read"]), equal[1]),
    )
    why = _why(
        "tile",
        **{
            name: _bytes(numbers[name])
            for name in ("piece", "whole_avoided", "cut_avoided", "whole_read", "cut_read")
        },
        whole_use=format_ratio(onchip_reuse(_TILE, _READS, _BUDGET)["budget_utilization"]),
        pieces=cut["pieces"],
        count=_count(len(x)),
    )
    return Findings("tile", plans, _tile_exhibit(numbers, equal), why, numbers)


def _tile_plan(name: Text, tile_bytes: int, gain: Interval, equal: bool) -> Plan:
    return Plan(
        name=name,
        evidence=(_bits_evidence(equal), _fit_evidence(tile_bytes, _BUDGET)),
        profitable=profit_answer(gain),
        bit_equal=equal,
    )


def _tile_exhibit(numbers: Mapping[str, float], equal: tuple[bool, bool]) -> Exhibit:
    piece = int(numbers["piece"])
    checks = [onchip_reuse(size, _READS, _BUDGET) for size in (_TILE, piece)]
    return Exhibit(
        header=(_WHAT, _WHOLE, _CUT),
        rows=(
            (Text(zh="数据块", en="tiles"), f"1 × {_bytes(_TILE)}", f"{numbers['pieces']:g} × {_bytes(piece)}"),
            (
                Text(zh="是预算的几倍", en="tile ÷ budget"),
                *(format_ratio(check["budget_utilization"]) for check in checks),
            ),
            (Text(zh="片上放得下", en="fits on chip"), *(_yes_no(check["fits_onchip"]) for check in checks)),
            (
                Text(zh="省下的读", en="reads avoided"),
                _bytes(numbers["whole_avoided"]),
                _bytes(numbers["cut_avoided"]),
            ),
            (
                Text(zh="还要从内存读", en="still read from memory"),
                _bytes(numbers["whole_read"]),
                _bytes(numbers["cut_read"]),
            ),
            (_BIT_EQUAL, *map(_yes_no, equal)),
        ),
        note=Text(
            zh="只数这个数据块的读；输出和其他临时值也要占片上空间，这里没有算。",
            en="Only reads of this tile are counted. Outputs and other temporaries take room on chip as well; they "
            "are left out.",
        ),
    )


def _three_passes(x: Float32) -> Float32:
    """``|x|``, ``* x``, ``+ x``: three operators over the whole tensor, each fixed to the bit by the standard."""
    np = require_numpy()
    size, product, result = (np.empty_like(x) for _ in range(3))
    np.abs(x, out=size)
    np.multiply(size, x, out=product)
    np.add(product, x, out=result)
    done: Float32 = result
    return done


def _three_reads(tile: Float32) -> Float32:
    """The same three operators on one tile, one after another."""
    result: Float32 = require_numpy().abs(tile) * tile + tile
    return result


def _in_tiles(chain: Callable[[Float32], Float32], x: Float32, length: int) -> Float32:
    tiles = [chain(x[start : start + length]) for start in range(0, len(x), length)]
    result: Float32 = require_numpy().concatenate(tiles)
    return result


# -- (d) a reduction whose row does not fit -----------------------------------------------------------------------

_ROWS, _COLUMNS, _TRIED_ROWS = 1024, 131_072, 8
_TILE_COLUMNS = 16 * KIB // 4
_ODD_COLUMNS = 5_000  # leaves a narrower last tile


def _softmax() -> Findings:
    tolerance = TOLERANCES["float32"]
    traffic = softmax_traffic(_ROWS, _COLUMNS, _FLOAT32)
    x = _fractions((_TRIED_ROWS, _COLUMNS), 256, seed=4)
    separate, fused = five_pass_softmax(x), online_softmax(x, _TILE_COLUMNS)
    exact = five_pass_softmax(x.astype("float64"))
    odd = x[:, :_ODD_COLUMNS]
    odd_exact = five_pass_softmax(odd.astype("float64"))
    numbers = {
        "row": traffic["row_bytes"],
        "before": traffic["naive_bytes"],
        "after": traffic["two_pass_bytes"],
        "resident": traffic["resident_bytes"],
        "separate_relative": relative_error(separate, exact),
        "fused_relative": relative_error(fused, exact),
        "odd_relative": relative_error(online_softmax(odd, _TILE_COLUMNS), odd_exact),
        "bit_equal": same_bits(separate, fused),
    }
    gain = _bytes_gain(numbers["before"], numbers["after"])
    odd_words = Text(
        zh="{columns} 列也算过：最后一个数据块较窄",
        en="also run on {columns} columns, where the last tile is narrower",
    )
    plan = Plan(
        name=Text(zh="逐块读两遍", en="two passes over tiles"),
        evidence=(
            _tolerance_evidence(numbers["fused_relative"], "float32"),
            _shape_evidence(odd_words.format(columns=_count(_ODD_COLUMNS)), numbers["odd_relative"] <= tolerance),
            _fit_evidence(_TILE_COLUMNS * _FLOAT32, T4.shared_bytes_per_block),
        ),
        profitable=profit_answer(gain),
        bit_equal=bool(numbers["bit_equal"]),
    )
    why = _why(
        "softmax",
        **{name: _bytes(numbers[name]) for name in ("row", "before", "after", "resident")},
        tile=_bytes(_TILE_COLUMNS * _FLOAT32),
        tolerance=TOLERANCE_WORDS["float32"],
        gain=format_ratio(gain.low),
    )
    return Findings("softmax", (plan,), _softmax_exhibit(numbers), why, numbers)


def _softmax_exhibit(numbers: Mapping[str, float]) -> Exhibit:
    tolerance, budget = TOLERANCES["float32"], T4.shared_bytes_per_block
    tile_bytes = _TILE_COLUMNS * _FLOAT32
    before = int(numbers["before"])
    return Exhibit(
        header=(
            _WHAT,
            Text(zh="五个核函数", en="five kernels"),
            Text(zh="整行驻留", en="row resident"),
            Text(zh="逐块读两遍", en="two passes over tiles"),
        ),
        rows=(
            (Text(zh="片上要放", en="held on chip"), "", _bytes(numbers["row"]), _bytes(tile_bytes)),
            (
                Text(zh="片上放得下（{budget}）", en="fits on chip ({budget})").format(budget=_bytes(budget)),
                "",
                _yes_no(numbers["row"] <= budget),
                _yes_no(tile_bytes <= budget),
            ),
            (_TRAFFIC, *(_bytes(numbers[name]) for name in ("before", "resident", "after"))),
            (
                Text(zh="五个核函数 ÷ 本方案", en="five kernels ÷ this"),
                "",
                *(format_ratio(before / numbers[name]) for name in ("resident", "after")),
            ),
            (
                _WITHIN.format(tolerance=TOLERANCE_WORDS["float32"]),
                _yes_no(numbers["separate_relative"] <= tolerance),
                "",
                _yes_no(numbers["fused_relative"] <= tolerance),
            ),
            (_BIT_EQUAL, "", "", _yes_no(bool(numbers["bit_equal"]))),
        ),
        note=Text(
            zh="读写按 {rows} 行计，数值算了 {tried} 行；误差以每个元素的 float64 结果为基准。"
            "{budget} 是 T4 一个线程块的共享内存。",
            en="Traffic is for {rows} rows, values for {tried} of them; errors are relative to each float64 "
            "element. {budget} is the shared memory of one block on a T4.",
        ).format(rows=_count(_ROWS), tried=_TRIED_ROWS, budget=_bytes(budget)),
    )


# -- (e) a GEMM whose time hardly moves ---------------------------------------------------------------------------

_SIZE, _K, _SMALL_K, _TRIED_SIZE = 4096, 16_384, 1024, 64
_BLOCK = (128, 128, 32)


def _gemm() -> Findings:
    plans, small = (epilogue_plans(_SIZE, k, _SIZE, A100) for k in (_K, _SMALL_K))
    gain = speedup_interval(plans[3].time, plans[1].time)
    small_gain = speedup_interval(small[3].time, small[1].time)
    separate, fused, exact, on_the_way = _epilogues()
    numbers = {
        "low": gain.low,
        "high": gain.high,
        "small_low": small_gain.low,
        "small_high": small_gain.high,
        "before": plans[3].traffic["total_bytes"],
        "after": plans[1].traffic["total_bytes"],
        "separate_relative": relative_error(separate, exact, on_the_way),
        "fused_relative": relative_error(fused, exact, on_the_way),
        "bit_equal": same_bits(separate, fused),
    }
    whole_blocks = Text(
        zh="M、N、K 都能被数据块 {block} 整除", en="M, N and K are multiples of the tile {block}: no remainder"
    )
    plan = Plan(
        name=Text(zh="尾声在累加器上", en="epilogue on the accumulators"),
        evidence=(
            _tolerance_evidence(numbers["fused_relative"], "float16"),
            _shape_evidence(
                whole_blocks.format(block="×".join(map(str, _BLOCK))),
                all(size % block == 0 for size, block in zip((_SIZE, _SIZE, _K), _BLOCK, strict=True)),
                FORMULA,
            ),
            _fit_evidence(tile_operand_bytes(*_BLOCK)["total_bytes"], A100.shared_bytes_per_block),
        ),
        profitable=profit_answer(gain),
        bit_equal=bool(numbers["bit_equal"]),
    )
    why = _why(
        "gemm",
        tolerance=TOLERANCE_WORDS["float16"],
        bytes_gain=format_ratio(numbers["before"] / numbers["after"]),
        gain=_ratios(gain),
        small_gain=_ratios(small_gain),
    )
    return Findings("gemm", (plan,), _gemm_exhibit(numbers), why, numbers)


def _epilogues() -> tuple[Any, Any, Any, Any]:
    """``gelu(x @ w + b)`` from three kernels and from one, in float64, and the largest magnitudes on the way.

    Inputs are small multiples of powers of two, exact in fp16, and every partial sum is exact in fp32: whatever
    order a BLAS adds in, the product is the same. Values reach about 15, where fp16 steps by 1/128.
    """
    np = require_numpy()
    x = _multiples((_TRIED_SIZE, _K), 8, 1 / 8, seed=5)
    w = _multiples((_K, _TRIED_SIZE), 8, 1 / 128, seed=6)
    b = _multiples((_TRIED_SIZE,), 1024, 1 / 1024, seed=7)
    product = x @ w
    rounded = product.astype(np.float16)
    biased = (rounded.astype(np.float32) + b).astype(np.float16)
    separate = _gelu(biased.astype(np.float32)).astype(np.float16)
    fused = _gelu(product + b).astype(np.float16)
    exact_sum = product.astype(np.float64) + b.astype(np.float64)
    on_the_way = np.maximum(np.abs(product.astype(np.float64)), np.abs(exact_sum))
    return separate, fused, _gelu(exact_sum), on_the_way


def _gelu(x: Any) -> Any:
    """GELU by its tanh formula, in the type of ``x``."""
    kind = x.dtype.type
    inner = kind(0.7978845608028654) * (x + kind(0.044715) * x * x * x)
    return kind(0.5) * x * (kind(1) + require_numpy().tanh(inner))


def _gemm_exhibit(numbers: Mapping[str, float]) -> Exhibit:
    tolerance = TOLERANCES["float16"]
    return Exhibit(
        header=(
            _WHAT,
            Text(zh="三个核函数", en="three kernels"),
            Text(zh="尾声在累加器上", en="epilogue in the GEMM"),
        ),
        rows=(
            (_TRAFFIC, _bytes(numbers["before"]), _bytes(numbers["after"])),
            (Text(zh="字节之比", en="ratio of bytes"), "", format_ratio(numbers["before"] / numbers["after"])),
            (
                Text(zh="预测的加速比，K = {k}", en="predicted speed-up, K = {k}").format(k=_count(_K)),
                "",
                _ratios(Interval(numbers["low"], numbers["high"])),
            ),
            (
                Text(zh="预测的加速比，K = {k}", en="predicted speed-up, K = {k}").format(k=_count(_SMALL_K)),
                "",
                _ratios(Interval(numbers["small_low"], numbers["small_high"])),
            ),
            (
                _WITHIN.format(tolerance=TOLERANCE_WORDS["float16"]),
                _yes_no(numbers["separate_relative"] <= tolerance),
                _yes_no(numbers["fused_relative"] <= tolerance),
            ),
            (
                Text(zh="离 float64 更近", en="closer to float64"),
                _yes_no(numbers["separate_relative"] < numbers["fused_relative"]),
                _yes_no(numbers["fused_relative"] < numbers["separate_relative"]),
            ),
            (_BIT_EQUAL, "", _yes_no(bool(numbers["bit_equal"]))),
        ),
        note=Text(
            zh="预测用 A100 的标称值，没有计启动。数值只算了结果的一角，{size} × {size}，K 不变；"
            "误差以计算途中最大的数为基准。",
            en="Predicted from an A100's stated rates, launches not counted. Values are for a corner of the result, "
            "{size} × {size}, with the full K; errors are relative to the largest value on the way.",
        ).format(size=_TRIED_SIZE),
    )


# -- (f) a fan-out whose write must stay --------------------------------------------------------------------------

_GRAPH = (Operator("f", ("x",), "t"), Operator("g", ("t",), "u"), Operator("h", ("t",), "v"))
_PLANS: Mapping[str, Sequence[Sequence[str]]] = MappingProxyType(
    {
        "separate": (("f",), ("g",), ("h",)),
        "kept": (("f", "g"), ("h",)),
        "recomputed": (("f", "g"), ("f", "h")),
        "all_fused": (("f", "g", "h"),),
    }
)
_PLAN_NAMES: Mapping[str, Text] = MappingProxyType(
    {
        "separate": Text(zh="三个核函数", en="three kernels"),
        "kept": Text(zh="f、g 融合，t 写出", en="f and g fused, t written"),
        "recomputed": Text(zh="两个核函数各算一遍 f", en="f in both kernels"),
        "all_fused": Text(zh="三个都融合", en="all three fused"),
    }
)


def _fan_out() -> Findings:
    numbers: dict[str, float] = {name: _fan_out_bytes(kernels) for name, kernels in _PLANS.items()}
    x = _fractions((64 * KIB,), 256, seed=8)
    separate = _run_fan_out(x, _PLANS["separate"], len(x))
    equal = {name: all(map(same_bits, _run_fan_out(x, kernels, 4096), separate)) for name, kernels in _PLANS.items()}
    exact = _run_fan_out(x.astype("float64"), _PLANS["separate"], len(x))
    kept = _run_fan_out(x, _PLANS["kept"], 4096)
    numbers["relative"] = max(relative_error(*pair) for pair in zip(kept, exact, strict=True))
    gain = _bytes_gain(numbers["separate"], numbers["kept"])
    ran = Text(zh="逐元素算子，{count} 个值都算过", en="elementwise, run on {count} values")
    plan = Plan(
        name=_PLAN_NAMES["kept"],
        evidence=(
            _tolerance_evidence(numbers["relative"], "float32"),
            _shape_evidence(ran.format(count=_count(len(x)))),
        ),
        profitable=profit_answer(gain),
        bit_equal=equal["kept"],
    )
    why = _why(
        "fan_out",
        before=_bytes(numbers["separate"]),
        after=_bytes(numbers["kept"]),
        gain=format_ratio(gain.low),
        recomputed=_bytes(numbers["recomputed"]),
        all_fused=_bytes(numbers["all_fused"]),
        plans=len(_PLANS),
    )
    return Findings("fan_out", (plan,), _fan_out_exhibit(numbers, equal), why, numbers)


def _fan_out_bytes(kernels: Sequence[Sequence[str]]) -> int:
    sizes = dict.fromkeys("xtuv", 64 * MIB)
    return plan_traffic(_GRAPH, kernels, sizes, outputs=("u", "v"))["total_bytes"]


def _run_fan_out(x: Any, kernels: Sequence[Sequence[str]], length: int) -> tuple[Any, Any]:
    """u and v under a plan, each kernel tile by tile; what a kernel makes and another needs passes through memory."""
    np = require_numpy()
    operators: Mapping[str, Callable[[Any], Any]] = {
        "f": lambda x: x * x.dtype.type(1.25) + x.dtype.type(300),  # positive: errors relative to it are sound
        "g": lambda t: t * t,
        "h": lambda t: t + t.dtype.type(0.1),
    }
    memory = {"x": x, **{tensor: np.zeros_like(x) for tensor in "tuv"}}
    by_name = {operator.name: operator for operator in _GRAPH}
    for kernel in kernels:
        for start in range(0, len(x), length):
            tile = slice(start, start + length)
            on_chip: dict[str, Any] = {}
            for operator in map(by_name.__getitem__, kernel):
                source = operator.inputs[0]
                value = on_chip[source] if source in on_chip else memory[source][tile]
                on_chip[operator.output] = operators[operator.name](value)
            for tensor, value in on_chip.items():
                memory[tensor][tile] = value
    return memory["u"], memory["v"]


def _fan_out_exhibit(numbers: Mapping[str, float], equal: Mapping[str, bool]) -> Exhibit:
    return Exhibit(
        header=(
            Text(zh="方案", en="plan"),
            _TRAFFIC,
            Text(zh="三个核函数 ÷ 本方案", en="three kernels ÷ this"),
            _BIT_EQUAL,
        ),
        rows=tuple(
            (
                _PLAN_NAMES[name],
                _bytes(numbers[name]),
                format_ratio(numbers["separate"] / numbers[name]),
                _yes_no(equal[name]),
            )
            for name in _PLANS
        ),
        note=Text(
            zh="读写按 64 MiB 的张量计；数值用 {count} 个元素，每个核函数逐块算。重算 f 省了 t 的读写，"
            "多了一遍 f 的运算。",
            en="Traffic is for 64 MiB tensors; values are for {count} elements, every kernel tile by tile. "
            "Recomputing f trades the traffic of t for running f once more.",
        ).format(count=_count(64 * KIB)),
    )


# -- parts --------------------------------------------------------------------------------------------------------


def _tolerance_evidence(error: float, dtype: str) -> Evidence:
    """Within the tolerance of ``dtype`` or not; a NaN is not."""
    within = error <= TOLERANCES[dtype]
    words = Text(
        zh="与 float64 的相对误差{verdict} {tolerance}（{dtype} 的容差）",
        en="relative error against float64 {verdict} {tolerance}, the tolerance for {dtype}",
    )
    verdict = Text(zh="不超过", en="is at most") if within else Text(zh="超过", en="is above")
    return Evidence(
        "semantics_match",
        "pass" if within else "fail",
        words.format(verdict=verdict, tolerance=TOLERANCE_WORDS[dtype], dtype=dtype),
        NUMPY,
    )


def _bits_evidence(equal: bool) -> Evidence:
    words = (
        Text(zh="与分开算的结果逐位相等", en="bit for bit what the separate operators give")
        if equal
        else Text(zh="与分开算的结果不同", en="not what the separate operators give")
    )
    return Evidence("semantics_match", "pass" if equal else "fail", words, NUMPY)


def _shape_evidence(words: Text, supported: bool = True, source: Text = NUMPY) -> Evidence:
    return Evidence("shape_supported", "pass" if supported else "fail", words, source)


def _fit_evidence(needed: int, budget: int) -> Evidence:
    fits = onchip_reuse(needed, 1, budget)["fits_onchip"]
    words = Text(zh="数据块 {needed}，预算 {budget}", en="tile {needed}, budget {budget}")
    return Evidence(
        "onchip_fit",
        "pass" if fits else "fail",
        words.format(needed=_bytes(needed), budget=_bytes(budget)),
        FORMULA,
    )


def _bytes_gain(before: float, after: float) -> Interval:
    """The quotient of logical bytes as an interval of one point: a ceiling for kernels bound by memory."""
    return Interval(before / after, before / after)


def _why(case: CaseName, **fields: object) -> Mapping[Question, Text]:
    return MappingProxyType({question: CASES[case].why[question].format(**fields) for question in QUESTIONS})


def _bytes(count: float) -> str:
    return format_bytes(int(count))


def _signed_bytes(count: int) -> str:
    return f"−{_bytes(-count)}" if count < 0 else _bytes(count)


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _ratios(interval: Interval) -> str:
    return format_range(interval.low, interval.high, format_ratio)


def _call(number: int | None) -> Text | str:
    return _NEVER if number is None else _count(number)


def _yes_no(answer: bool) -> Text:
    return _YES if answer else _NO


def _multiples(shape: tuple[int, ...], largest: int, step: float, seed: int) -> Float32:
    """Random multiples of ``step``, a power of two, from ``-largest x step`` to ``largest x step``.

    ``RandomState`` is frozen (NEP 19): the same values on every machine and with every NumPy.
    """
    np = require_numpy()
    whole = np.random.RandomState(seed).randint(-largest, largest + 1, size=shape, dtype=np.int32)
    result: Float32 = whole.astype(np.float32) * np.float32(step)
    return result


def _fractions(shape: tuple[int, ...], steps: int, seed: int) -> Float32:
    """Random float32 values from -8 to 8 in steps of ``1 / steps``."""
    return _multiples(shape, 8 * steps, 1 / steps, seed)


_EXAMINERS: Mapping[CaseName, Callable[[], Findings]] = MappingProxyType(
    {
        "rounding": _rounding,
        "reorder": _reorder,
        "tile": _tile,
        "softmax": _softmax,
        "gemm": _gemm,
        "fan_out": _fan_out,
    }
)
