"""The Q3 panels: four conditions with three answers each; the ledger of a layout conversion; that of compiling."""

from __future__ import annotations

from collections.abc import Iterable

from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB, format_bytes, format_seconds
from lessons_lib.decision.drawing import draw_decision
from lessons_lib.decision.ledger import (
    CompileLedger,
    LayoutLedger,
    compile_ledger,
    compile_series,
    layout_ledger,
    layout_series,
)
from lessons_lib.decision.model import CONDITION_NAMES, CONDITIONS, STATUS_NAMES, STATUSES, Decision, Evidence, decide
from lessons_lib.show.controls import choice_buttons, int_slider, power_slider, size_slider
from lessons_lib.show.curve import draw_net
from lessons_lib.show.panel import Panel, Parameter
from lessons_lib.show.table import Table

_BY_HAND = Text(zh="你填的，没有证据", en="set by you, no evidence")
_CONDITIONS_NOTE = Text(
    zh="条件成立只说明可以融合，不能说明更快。布局转换是代价，不是条件，所以不在这里。",
    en="Conditions that hold allow a fusion; they do not prove that it is faster. A layout conversion is a cost and not a "
    "condition, so it is not among them.",
)


def _status_buttons(condition: str) -> Parameter:
    words = [(STATUS_NAMES[status], status) for status in STATUSES]
    return Parameter(
        lambda: choice_buttons(CONDITION_NAMES[condition], words, "not_checked")  # type: ignore[index]
    )


class DecisionPanel(Panel):
    """The four conditions, each pass, fail or not checked; only checked ones reach ``fusion_decision``.

    Args:
        evidence: what has been seen so far, from any source; it sets the conditions it speaks of. A condition moved
            by hand afterwards shows that nobody has looked.

    ``result`` is a ``Decision``.
    """

    lesson = "03"

    semantics_match = _status_buttons("semantics_match")
    shape_supported = _status_buttons("shape_supported")
    onchip_fit = _status_buttons("onchip_fit")
    backend_lowered = _status_buttons("backend_lowered")

    def __init__(self, evidence: Iterable[Evidence] = ()) -> None:
        self._evidence = decide(evidence)
        self._all_seen = len({item.condition for item in self._evidence.evidence}) == len(CONDITIONS)
        if self._all_seen:
            self.lesson = "05"  # where a kernel's whole evidence is gathered
        super().__init__()
        self.set(**{str(name): status for name, status in self._evidence.statuses.items()})

    def guess_name(self) -> str:
        # What one piece of evidence decides is another question than what all four do.
        return f"{super().guess_name()}.evidence" if self._all_seen else super().guess_name()

    def compute(self) -> Decision:
        given = []
        for condition in CONDITIONS:
            status = getattr(self, condition)
            seen = [item for item in self._evidence.evidence if item.condition == condition]
            if seen and self._evidence.statuses[condition] == status:
                given += seen
            elif status != "not_checked":
                given.append(Evidence(condition, status, _BY_HAND, "–"))
        return decide(given)

    def picture(self, result: Decision) -> str:
        return draw_decision(result)

    def table(self, result: Decision) -> Table:
        columns = (
            Text(zh="条件", en="condition"),
            Text(zh="状态", en="status"),
            Text(zh="看到了什么", en="what was seen"),
            Text(zh="谁看的", en="who looked"),
        )
        rows = [[str(cell) for cell in row] for row in result.rows()]
        return Table([str(column) for column in columns], rows, note=str(_CONDITIONS_NOTE), prose=True)


_LAYOUT_TITLE = Text(zh="布局转换的账", en="The ledger of a layout conversion")
_LAYOUT_LABEL = Text(zh="随调用次数变化的净省字节：{words}", en="Net bytes saved by number of calls: {words}")
_EVEN = Text(zh="第 {calls} 次调用时打平", en="even at call {calls}")
_NEVER = Text(zh="永远打不平", en="never even")
_WHEN = (
    (Text(zh="装载时一次", en="once, at loading"), "once"),
    (Text(zh="每次调用", en="at each call"), "each_call"),
)
_LAYOUT_NOTE = Text(
    zh="转换要把张量读一遍、写一遍，所以代价是张量的 2 倍。字节账不是时间账。",
    en="A conversion reads its tensor and writes it, so it costs twice the tensor. Bytes are not time.",
)


class LayoutPanel(Panel):
    """A re-ordered tensor, what the fusion saves a call, and when the conversion is paid. ``result``: a ``LayoutLedger``."""

    lesson = "03"

    reordered_tensor_bytes = Parameter(
        lambda: size_slider(
            Text(zh="要转换的张量", en="tensor re-ordered"), 32 * MIB, smallest=MIB, largest=256 * MIB
        )
    )
    saved_bytes_per_call = Parameter(
        lambda: size_slider(Text(zh="每次调用省", en="saved per call"), 8 * MIB, smallest=MIB, largest=256 * MIB)
    )
    calls = Parameter(lambda: power_slider(Text(zh="调用次数", en="calls"), 16, smallest=1, largest=1024))
    when = Parameter(lambda: choice_buttons(Text(zh="何时转换", en="converted"), _WHEN, "once"))

    def compute(self) -> LayoutLedger:
        return self._ledger(self.when)

    def picture(self, result: LayoutLedger) -> str:
        points = layout_series(
            self.reordered_tensor_bytes, self.saved_bytes_per_call, self.when, self._last_call(result)
        )
        even = _even_words(result["break_even_calls"])
        return draw_net(
            [(point.calls, point.net) for point in points],
            (self.calls, result["net_bytes"]),
            _signed_bytes,
            title=str(_LAYOUT_TITLE),
            figures=[(even, True)],
            label=str(_LAYOUT_LABEL.format(words=even)),
            prefix="layout",
        )

    def table(self, result: LayoutLedger) -> Table:
        columns = (
            Text(zh="何时转换", en="converted"),
            Text(zh="转换花掉", en="cost"),
            Text(zh="融合省下", en="saved"),
            Text(zh="净省", en="net"),
            Text(zh="打平", en="break-even"),
        )
        ledgers = [(words, self._ledger(when)) for words, when in _WHEN]
        rows = [
            [
                str(words),
                format_bytes(ledger["cost_bytes"]),
                format_bytes(ledger["saved_bytes"]),
                _signed_bytes(ledger["net_bytes"]),
                _even_words(ledger["break_even_calls"]),
            ]
            for words, ledger in ledgers
        ]
        marked = [when for _, when in _WHEN].index(self.when)
        return Table([str(column) for column in columns], rows, marked=marked, note=str(_LAYOUT_NOTE))

    def _ledger(self, when: str) -> LayoutLedger:
        return layout_ledger(self.reordered_tensor_bytes, self.saved_bytes_per_call, when, self.calls)  # type: ignore[arg-type]

    def _last_call(self, result: LayoutLedger) -> int:
        return max(int(self.calls), 2 * min(result["break_even_calls"] or 0, 1024), 16)


_COMPILE_TITLE = Text(zh="编译时间的账", en="The ledger of compiling")
_COMPILE_LABEL = Text(zh="随调用次数变化的净省时间：{words}", en="Net time saved by number of calls: {words}")
_COMPILE_NOTE = Text(
    zh="编译一次，之后每次调用都省。形状一变就可能重新编译，这笔账就得从头算。",
    en="Compile once, save at every call. A new shape may compile again, and the ledger starts anew.",
)


class CompilePanel(Panel):
    """Seconds of compiling against what each call saves. ``result``: a ``CompileLedger``."""

    lesson = "03"

    compile_seconds = Parameter(lambda: int_slider(Text(zh="编译秒数", en="seconds to compile"), 4, 0, 60))
    saved_us = Parameter(lambda: int_slider(Text(zh="每次调用省 µs", en="µs saved per call"), 86, 0, 500))
    calls = Parameter(lambda: power_slider(Text(zh="调用次数", en="calls"), 65536, smallest=1, largest=2**20))

    def compute(self) -> CompileLedger:
        return compile_ledger(self.compile_seconds, self.saved_us / 10**6, self.calls)

    def picture(self, result: CompileLedger) -> str:
        last = max(self.calls, 2 * min(result["break_even_calls"] or 0, 2**20), 16)
        points = compile_series(self.compile_seconds, self.saved_us / 10**6, last)
        even = _even_words(result["break_even_calls"])
        return draw_net(
            [(point.calls, point.net) for point in points],
            (self.calls, result["net_seconds"]),
            _signed_seconds,
            title=str(_COMPILE_TITLE),
            figures=[(even, True)],
            label=str(_COMPILE_LABEL.format(words=even)),
            prefix="compile",
        )

    def table(self, result: CompileLedger) -> Table:
        columns = (
            Text(zh="调用次数", en="calls"),
            Text(zh="编译花掉", en="cost"),
            Text(zh="融合省下", en="saved"),
            Text(zh="净省", en="net"),
            Text(zh="打平", en="break-even"),
        )
        row = [
            f"{self.calls:,}",
            format_seconds(result["cost_seconds"]),
            format_seconds(result["saved_seconds"]),
            _signed_seconds(result["net_seconds"]),
            _even_words(result["break_even_calls"]),
        ]
        return Table([str(column) for column in columns], [row], note=str(_COMPILE_NOTE))


def _signed_bytes(count: float) -> str:
    return format_bytes(int(count)).replace("-", "−")


def _signed_seconds(seconds: float) -> str:
    return format_seconds(seconds).replace("-", "−")


def _even_words(calls: int | None) -> str:
    return str(_NEVER if calls is None else _EVEN.format(calls=f"{calls:,}"))
