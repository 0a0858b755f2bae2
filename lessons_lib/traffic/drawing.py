"""The course's picture for a chain of equal tensors: fusing lifts a tensor out of memory into its kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lessons_lib.base.language import current_language
from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB, count_of, format_bytes
from lessons_lib.show.picture import CARD_WIDTH, MARGIN, MEMORY_LABEL, Picture, text_width
from lessons_lib.traffic.model import ChainTraffic

# The chain's operators by position: all unary and elementwise, so that every tensor has one size.
OPERATORS = ("+ b", "gelu", "× s", "clip", "+ c", "tanh", "× t", "relu", "− m", "exp", "÷ d", "abs")
SIDE_OPERATOR = "+ r"

_HEIGHT = 346
_KERNEL_TOP, _KERNEL_HEIGHT = 106, 92
_OPERATOR_TOP, _OPERATOR_HEIGHT = 130, 38
_MEMORY_TOP, _MEMORY_HEIGHT = 246, 84
_TENSOR_TOP = _MEMORY_TOP + 14
_WIDEST_PITCH = 160
_WIDEST_TENSOR, _BETWEEN_TENSORS = 74.0, 6

_LABEL = Text(
    zh="{ops} 个算子分成 {groups} 个核函数：{groups} 次启动，{boundaries} 个组间边界，中间读写 {bytes}",
    en="operators: {ops}, kernels and launches: {groups}, group boundaries: {boundaries}, "
    "intermediate traffic: {bytes}",
)
_LAUNCHES = Text(zh="启动 {launches} 次", en="launches: {launches}")
_INTERMEDIATE = Text(
    zh="中间读写 2 × {boundaries} × {size} = {bytes}", en="intermediate 2 × {boundaries} × {size} = {bytes}"
)
_COMPULSORY = Text(
    zh="必需读写（{names}）{count} × {size} = {bytes}", en="compulsory ({names}) {count} × {size} = {bytes}"
)
_TOTAL = Text(zh="合计 {bytes}", en="total {bytes}")
_KERNEL = Text(zh="核函数 {number}", en="kernel {number}")
_UNCOUNTED = Text(zh="{memory} · 虚线：未计入", en="{memory} · dashed: not counted")
_EACH = Text(zh="{memory} · 每个张量 {size}", en="{memory} · each tensor {size}")


@dataclass(frozen=True)
class _Slots:
    """Where things stand along x: tensor i lies at ``tensors[i]``, operator i between tensors i and i + 1."""

    tensors: tuple[float, ...]
    side: float | None
    pitch: float

    @property
    def tensor_width(self) -> float:
        return min(_WIDEST_TENSOR, self.pitch - _BETWEEN_TENSORS)

    @property
    def gap(self) -> float:
        """Half the distance between two kernels at a boundary."""
        return min(7.0, self.pitch / 12)

    @property
    def arrow_offset(self) -> float:
        """How far a read or a write arrow stands from the middle of its tensor."""
        return min(18.0, self.pitch / 4)


def draw_chain(traffic: ChainTraffic, tensor_bytes: int, num_ops: int, *, compulsory: bool, side_input: bool) -> str:
    """The chain as an SVG string.

    Args:
        traffic: the result of ``chain_traffic`` for this chain.
        tensor_bytes: size of every tensor in bytes.
        num_ops: operators in the chain, 1 to 12.
        compulsory: whether input, output and side input are counted; if not they are drawn dashed.
        side_input: whether the last operator also reads a tensor from outside the chain.
    """
    groups = traffic["launches"]
    size = format_bytes(tensor_bytes)
    picture = Picture(_HEIGHT, _described(traffic, num_ops), prefix="chain")
    picture.heading(_title(num_ops, groups), _figures(traffic, size, compulsory=compulsory, side_input=side_input))
    picture.chip_label(_KERNEL_TOP - 10)
    slots = _slots(num_ops, side_input)
    sizes_shown = text_width(size, 12) <= slots.tensor_width - 4
    picture.memory_band(_MEMORY_TOP, _MEMORY_HEIGHT, _memory_words(size, compulsory, sizes_shown))

    cuts = _draw_kernels(picture, slots, _even_groups(num_ops, groups), side_input)
    _draw_tensors(picture, slots, cuts, size if sizes_shown else None, tensor_bytes, compulsory)
    if slots.side is not None:
        arrow = _arrow_width(tensor_bytes)
        picture.read_arrow(slots.side, _TENSOR_TOP - 2, _kernel_bottom(), arrow, counted=compulsory)
        picture.tensor(
            slots.side,
            _TENSOR_TOP,
            slots.tensor_width,
            "r",
            size if sizes_shown else None,
            counted=compulsory,
        )
    return picture.svg()


def _title(num_ops: int, groups: int) -> Text:
    return Text(
        zh=f"{num_ops} 个算子，{groups} 组",
        en=f"{count_of(num_ops, 'operator')}, {count_of(groups, 'group')}",
    )


def _described(traffic: ChainTraffic, num_ops: int) -> str:
    return str(
        _LABEL.format(
            ops=num_ops,
            groups=traffic["launches"],
            boundaries=traffic["launches"] - 1,
            bytes=format_bytes(traffic["intermediate_bytes"]),
        )
    )


def _figures(traffic: ChainTraffic, size: str, *, compulsory: bool, side_input: bool) -> list[tuple[str, bool]]:
    """The numbers at the top right, with their arithmetic; the ones in bold are what the panel is about."""
    intermediate = format_bytes(traffic["intermediate_bytes"])
    lines = [
        (str(_LAUNCHES.format(launches=traffic["launches"])), True),
        (
            str(_INTERMEDIATE.format(boundaries=traffic["launches"] - 1, size=size, bytes=intermediate)),
            not compulsory,
        ),
    ]
    if compulsory:
        names = (
            ("x, r, y" if side_input else "x, y")
            if current_language() == "en"
            else ("x、r、y" if side_input else "x、y")
        )
        forced = _COMPULSORY.format(
            names=names,
            count=3 if side_input else 2,
            size=size,
            bytes=format_bytes(traffic["compulsory_bytes"]),
        )
        lines += [
            (str(forced), False),
            (str(_TOTAL.format(bytes=format_bytes(traffic["total_bytes"]))), True),
        ]
    return lines


def _memory_words(size: str, compulsory: bool, sizes_shown: bool) -> str:
    words: Text = MEMORY_LABEL
    if not sizes_shown:
        words = _EACH.format(memory=words, size=size)
    if not compulsory:
        words = _UNCOUNTED.format(memory=words)
    return str(words)


def _slots(num_ops: int, side_input: bool) -> _Slots:
    """Equal steps from x to y; an operator with a side input takes two, so that r has a place of its own."""
    steps = num_ops + (1 if side_input else 0)
    # The first and the last tensor are centred on the ends and must stay inside the memory band.
    inside = CARD_WIDTH - 2 * (MARGIN + 7)
    pitch = min(_WIDEST_PITCH, max((inside - _WIDEST_TENSOR) / steps, (inside + _BETWEEN_TENSORS) / (steps + 1)))
    left = (CARD_WIDTH - pitch * steps) / 2
    chain = [left + pitch * step for step in range(num_ops)]
    return _Slots((*chain, left + pitch * steps), left + pitch * num_ops if side_input else None, pitch)


def _even_groups(num_ops: int, groups: int) -> list[int]:
    """How many operators each group gets: as equal as can be, the larger ones first."""
    small, larger = divmod(num_ops, groups)
    return [small + 1] * larger + [small] * (groups - larger)


def _draw_kernels(picture: Picture, slots: _Slots, groups: list[int], side_input: bool) -> set[int]:
    """Draw the chip band; returns the positions of the materialized tensors inside the chain."""
    first, cuts = 0, set()
    longest = text_width(str(_KERNEL.format(number=len(groups))), 12)
    named = longest <= min(groups) * slots.pitch - 2 * slots.gap - 14
    for number, count in enumerate(groups, start=1):
        left, right = slots.tensors[first] + slots.gap, slots.tensors[first + count] - slots.gap
        name = str(_KERNEL.format(number=number)) if named else str(number)
        picture.kernel(left, _KERNEL_TOP, right - left, _KERNEL_HEIGHT, name)
        for position in range(first, first + count):
            last = side_input and position == len(slots.tensors) - 2
            _draw_operator(picture, slots, position, SIDE_OPERATOR if last else OPERATORS[position])
            if position > first:
                _draw_kept(picture, slots, position)
        first += count
        cuts.add(first)
    return cuts - {first}


def _draw_operator(picture: Picture, slots: _Slots, position: int, name: str) -> None:
    inset = slots.gap + min(6.0, slots.pitch / 14)
    left, right = slots.tensors[position] + inset, slots.tensors[position + 1] - inset
    picture.operator(left, _OPERATOR_TOP, right - left, _OPERATOR_HEIGHT, name)


def _draw_kept(picture: Picture, slots: _Slots, position: int) -> None:
    """A tensor that never leaves the chip: the link between its two operators, and its capsule beneath."""
    inset = slots.gap + min(6.0, slots.pitch / 14)
    x = slots.tensors[position]
    picture.link(x - inset, x + inset, _OPERATOR_TOP + _OPERATOR_HEIGHT / 2)
    picture.capsule(x, _KERNEL_TOP + _KERNEL_HEIGHT - 13, f"t{position}")


def _draw_tensors(
    picture: Picture, slots: _Slots, cuts: set[int], size: str | None, tensor_bytes: int, compulsory: bool
) -> None:
    """Draw what lies in memory with its arrows: input and output at the ends, materialized tensors between."""
    arrow = _arrow_width(tensor_bytes)
    last = len(slots.tensors) - 1
    for position in sorted({0, last} | cuts):
        x, inner = slots.tensors[position], position in cuts
        counted = inner or compulsory
        name = f"t{position}" if inner else "x" if position == 0 else "y"
        if position > 0:
            at = x - slots.arrow_offset
            picture.write_arrow(at, _kernel_bottom(), _TENSOR_TOP - 2, arrow, counted=counted)
        if position < last:
            at = x + slots.arrow_offset
            picture.read_arrow(at, _TENSOR_TOP - 2, _kernel_bottom(), arrow, counted=counted)
        picture.tensor(x, _TENSOR_TOP, slots.tensor_width, name, size, counted=counted)


def _kernel_bottom() -> float:
    return _KERNEL_TOP + _KERNEL_HEIGHT + 2


def _arrow_width(tensor_bytes: int) -> float:
    """Wider for more bytes, one pixel per doubling of the logarithm's base 4: 1 MiB is 2 px, 1 GiB is 7 px."""
    return min(8.0, max(2.0, 2 + math.log(max(1.0, tensor_bytes / MIB), 4)))
