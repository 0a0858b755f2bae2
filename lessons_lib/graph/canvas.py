"""The canvas: a graph to fuse by pressing its edges, with the cost of every change at once.

The state is a ``Workbench``; this is its picture, its buttons and its words. Where anywidget cannot be loaded, or a
learner prefers them, core buttons do what pressing the picture does, through the same workbench.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from html import escape
from typing import Any

from lessons_lib.base.gpus import GPUS, Gpu
from lessons_lib.base.language import language_tag
from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, require_bool, require_choice, shown
from lessons_lib.graph.capture.zoo import ZOO
from lessons_lib.graph.comparison import compare_groupings, comparison_report
from lessons_lib.graph.compiler_groups import CompilerGroups
from lessons_lib.graph.grouping import Cost, Grouping
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.picture.drawing import draw_graph, operator_table
from lessons_lib.graph.recorded import recorded_block
from lessons_lib.graph.workbench import View, Workbench
from lessons_lib.show.controls import (
    check_box,
    choice_list,
    column_of,
    control_row,
    html_view,
    push_button,
    row_of,
    scroll_box,
    show_or_hide,
    toggle_buttons,
)
from lessons_lib.show.gate import guess_gate, opened_widgets
from lessons_lib.show.live import LiveBox
from lessons_lib.show.pressable import pressable_view
from lessons_lib.show.quiz import paragraph
from lessons_lib.show.shown import Shown

Goal = Text | Callable[[Workbench], Text]

_PICTURE_HEIGHT, _BUTTONS_HEIGHT = 620, 200
_CHANGED, _REFUSED, _SAID = "#009E73", "#D55E00", "#57606a"


class GraphCanvas(LiveBox):
    """A graph of operators to fuse and cut, in the course's picture language.

    Args:
        subject: an ``OpGraph``; or what has one as ``core`` and maybe a compiler's groups as ``compiler``, such as a
            study or a recorded block; or the name of a recorded block.
        gpu: whose rules and rates count: a ``Gpu`` or the name of one.
        compiler: what a compiler made of the graph, in place of the subject's own.
        multi_pass: kernels that go over their rows several times are allowed.
        recompute: operators that may be computed again for each reader.
        plain: buttons in place of a picture that can be pressed.
        goal: what to reach, shown above the picture; a function of the workbench is asked after every change.
        reveal: whether there are buttons that show the compiler's and the best kernels; can be set later.

    In a workshop (see ``show.workshop``) it opens once a guess is committed, one for each graph: until then kernels can
    be pressed from code, but nothing is drawn, and ``compare`` raises ``LockedError``.

    Raises:
        ValueError: an argument of the wrong type, an unknown name, or as ``Workbench``.
    """

    asks_first = True
    """Whether it waits for a guess in a workshop; a puzzle asks in its own way."""

    def __init__(
        self,
        subject: object,
        gpu: Gpu | str = "A100 (40 GB)",
        *,
        compiler: Grouping | CompilerGroups | None = None,
        multi_pass: bool = False,
        recompute: Collection[str] = (),
        plain: bool = False,
        goal: Goal | None = None,
        reveal: bool = True,
    ) -> None:
        super().__init__()
        self._graph, known, self._title = _subject(subject)
        self._compiler = known if compiler is None else compiler
        self.workbench = Workbench(
            self._graph,
            _gpu(gpu),
            compiler=self._compiler.grouping if isinstance(self._compiler, CompilerGroups) else self._compiler,
            multi_pass=multi_pass,
            recompute=recompute,
        )
        if goal is not None and not isinstance(goal, Text) and not callable(goal):
            given = shown(goal)
            raise bad_argument(
                "goal", zh=f"需要 Text 或函数，收到的是 {given}", en=f"it must be a Text or a function, got {given}"
            )
        self._goal, self._reveal = goal, require_bool("reveal", reveal)
        self._listeners: list[Callable[[], object]] = []
        self._listening = True
        self._view = None if require_bool("plain", plain) else pressable_view(_PICTURE_HEIGHT)
        if self._view is not None:
            self._view.on_press(self._pressed)
        name = f"GraphCanvas.{self._graph.name}"
        self.gate = guess_gate(name, "04", self._opened) if self.asks_first else None
        self._build(plain)
        self._say(self.workbench.message, _SAID)
        self.refresh()

    # -- what a cell, or a puzzle around it, calls -----------------------------------------------------------

    @property
    def grouping(self) -> Grouping:
        """The kernels as they are now."""
        return self.workbench.grouping

    @property
    def cost(self) -> Cost:
        """What they cost."""
        return self.workbench.cost

    def press(self, a: str, b: str) -> bool:
        """Fuse the kernels of two operators, or cut between them: see ``Workbench.press_pair``.

        Raises:
            ValueError: an operator that the graph lacks, or a view.
        """
        return self._did(self.workbench.press_pair(a, b))

    def undo(self) -> bool:
        """Back to the state before the last change; whether there was one."""
        return self._did(self.workbench.undo())

    def reset(self) -> None:
        """A kernel for each operator."""
        self.workbench.reset()
        self._did(True)

    def show(self, view: View) -> None:
        """Show known kernels: see ``Workbench.show``.

        Raises:
            ValueError: as there.
        """
        self.workbench.show(view)
        self._did(True, _SAID)

    def recompute(self, op: str) -> bool:
        """Compute an operator again for each of its readers: see ``Workbench.recompute``.

        Raises:
            ValueError: as there.
        """
        return self._did(self.workbench.recompute(op))

    def compare(self, launch_seconds: float = 0.0) -> Shown:
        """The present kernels beside PyTorch's, the compiler's and the best: see ``comparison.compare_groupings``.

        Raises:
            LockedError: the canvas still waits for a guess.
            ValueError: ``launch_seconds`` is not a number of at least 0.
        """
        if self.gate is not None:
            self.gate.require_open()
        bench = self.workbench
        compared = compare_groupings(
            self._graph,
            bench.gpu,
            compiler=self._compiler,
            yours=bench.grouping if bench.graph is self._graph else bench.cost,
            launch_seconds=launch_seconds,
            multi_pass=bench.multi_pass,
        )
        return comparison_report(compared, self._title)

    def say(self, words: Text) -> None:
        """Put words into the status line, until the next press."""
        self._say(words, _SAID)

    def on_change(self, callback: Callable[[], object]) -> None:
        """Call ``callback()`` after every change of the grouping or the graph; a refused press is none.

        Raises:
            ValueError: it cannot be called.
        """
        if not callable(callback):
            given = shown(callback)
            raise bad_argument("callback", zh=f"需要函数，收到的是 {given}", en=f"it must be a function, got {given}")
        self._listeners.append(callback)

    @property
    def reveal(self) -> bool:
        """Whether there are buttons that show the compiler's and the best kernels."""
        return self._reveal

    @reveal.setter
    def reveal(self, value: bool) -> None:
        self._reveal = require_bool("reveal", value)
        self._show_buttons()

    def static_forms(self) -> dict[str, str]:
        if self.gate is not None and self.gate.locked:
            return {"text/plain": self.gate.plain()}
        guess = [] if self.gate is None else [self.gate.plain()]
        return {
            "image/svg+xml": self._draw(live=False),
            "text/plain": "\n".join([*guess, self._table().plain()]),
        }

    def refresh(self) -> None:
        """Draw the present state anew: for after a change through ``workbench``."""
        if self.gate is not None and self.gate.locked:
            return
        if self._view is not None:
            self._view.svg = self._draw(live=True)
        if self._plain_box.value:
            self._plain_view.value = self._draw(live=False)
            self._set_toggles()
        self._table_view.value = self._table().html() if self._table_box.value else ""
        if self._goal is not None:
            goal = self._goal if isinstance(self._goal, Text) else self._goal(self.workbench)
            self._goal_view.value = paragraph(str(goal), bold=True)

    # -- parts -----------------------------------------------------------------------------------------------

    def _build(self, plain: bool) -> None:
        self._goal_view, self._status, self._answer = html_view(), html_view(), html_view()
        self._plain_view, self._table_view = html_view(), html_view()
        self._toggles: list[Any] = []
        self._toggled_graph: OpGraph | None = None
        self._toggle_row = row_of([])
        self._showing = {view: push_button(words, partial(self.show, view)) for view, words in self._views().items()}
        core = [push_button(_UNDO, self.undo), push_button(_RESET, self.reset), *self._showing.values()]
        self._plain_box = check_box(_PLAIN, plain or self._view is None)
        self._table_box = check_box(_TABLE, False)
        self._plain_box.observe(lambda change: self._switch(), names="value")
        self._table_box.observe(lambda change: self.refresh(), names="value")
        switches = [self._table_box] if self._view is None else [self._plain_box, self._table_box]
        self._a, self._b = choice_list(Text(zh="a", en="a"), [], None), choice_list(Text(zh="b", en="b"), [], None)
        for ends in (self._a, self._b):
            ends.observe(lambda change: self._chosen(), names="value")
        self._next_end = self._a
        self._offer_operators()
        asking = [push_button(_FUSE_OR_CUT, self._press_chosen), push_button(_WHY, self._ask_chosen)]
        again = [
            push_button(_AGAIN.format(op=op), partial(self.recompute, op)) for op in self.workbench.may_recompute
        ]
        self._picture = column_of([])
        self._show_buttons()
        self._switch()
        goal = [] if self._goal is None else [self._goal_view]
        self._above = [*goal, row_of([*core, *again]), self._status]
        asked = [row_of([self._a, self._b, *asking]), self._answer]
        self._below = [self._picture, *asked, control_row(switches), self._table_view]
        self.children = opened_widgets(self.gate, self._above, self._below)

    def _views(self) -> dict[View, Text]:
        """What can be shown, each with the words on its button."""
        bench = self.workbench
        found: dict[View, Text] = {"best": _SHOW_BEST}
        if bench.compiler is not None:
            found = {"compiler": _SHOW_COMPILER, **found}
        if _by_hand_may_differ(bench):
            found["by_hand"] = _SHOW_BY_HAND
        return found

    def _show_buttons(self) -> None:
        for button in self._showing.values():
            show_or_hide(button, self._reveal)

    def _switch(self) -> None:
        """The picture that can be pressed, or a plain one with a button an edge."""
        if self._plain_box.value:
            hint = html_view(paragraph(str(_BUTTON_HINT)))
            buttons = scroll_box(self._toggle_row, _BUTTONS_HEIGHT)
            self._picture.children = [hint, buttons, self._plain_view]
        else:
            self._picture.children = [self._view]
        self.refresh()

    def _draw(self, *, live: bool) -> str:
        bench = self.workbench
        chosen = [end.value for end in (self._a, self._b) if end.value is not None]
        return draw_graph(
            bench.graph,
            bench.grouping,
            bench.cost,
            marks=bench.marks,
            folding=bench.folding,
            selected=chosen,
            live=live,
            title=self._title,
            prefix="canvas" if live else "graph",
        )

    def _table(self) -> Any:
        bench = self.workbench
        return operator_table(bench.graph, bench.grouping, bench.cost, folding=bench.folding)

    def _say(self, words: Text, edge: str) -> None:
        # Three lines are always kept free, so that the picture below rarely jumps.
        self._status.value = (
            f'<div style="min-height:66px"><div role="status" lang="{language_tag()}" style="max-width:744px;'
            f'line-height:22px;font-size:13px;padding-left:8px;border-left:4px solid {edge}">{escape(str(words))}'
            "</div></div>"
        )

    # -- what happens ----------------------------------------------------------------------------------------

    def _opened(self) -> None:
        """The guess has been committed."""
        self.children = opened_widgets(self.gate, self._above, self._below)
        self.refresh()

    def _did(self, changed: bool, edge: str = _CHANGED) -> bool:
        """Say and draw what came of a press."""
        self._say(self.workbench.message, edge if changed else _REFUSED)
        if changed:
            self._answer.value = ""
            self._offer_operators()
            self.refresh()
            for callback in self._listeners:
                callback()
        elif self._plain_box.value:
            self._set_toggles()  # the one that was pressed goes back
        return changed

    def _pressed(self, kind: str, number: int) -> None:
        """A part of the picture was pressed; one that is gone by now is let pass."""
        graph = self.workbench.graph
        if kind == "edge" and number < len(graph.edges):
            self._did(self.workbench.press_edge(number))
        elif kind == "op" and number < len(graph.launching):
            self._next_end.value = graph.launching[number]
            self._next_end = self._b if self._next_end is self._a else self._a

    def _toggled(self, index: int) -> None:
        if self._listening:
            self._did(self.workbench.press_edge(self.workbench.folding.shown_edges[index]))

    def _chosen(self) -> None:
        if self._listening:
            self._answer.value = ""
            self.refresh()

    def _press_chosen(self) -> None:
        if self._a.value is None or self._b.value is None:
            self.say(_CHOOSE)
        else:
            self.press(self._a.value, self._b.value)

    def _ask_chosen(self) -> None:
        a, b = self._a.value, self._b.value
        if a is None or b is None or a == b:
            self.say(_CHOOSE)
        else:
            said = self.workbench.ask(a, b)
            self._answer.value = "".join(paragraph(str(text), live=not i, edge=_SAID) for i, text in enumerate(said))

    def _offer_operators(self) -> None:
        """The operators to choose from: other ones after a recompute."""
        graph = self.workbench.graph
        names = self.workbench.folding.shown
        options = [(graph.op(name).words, name) for name in names]
        if tuple(self._a.options) != tuple(options):
            self._listening = False
            for end in (self._a, self._b):
                kept = end.value if end.value in names else None
                end.options, end.value = options, kept
            self._listening = True

    def _set_toggles(self) -> None:
        """A button for each edge, down where its ends are together; new ones when the graph is another one."""
        graph, shown_edges = self.workbench.graph, self.workbench.folding.shown_edges
        if self._toggled_graph is not graph:
            self._toggled_graph = graph
            self._toggles = toggle_buttons([""] * len(shown_edges), self._toggled)
            self._toggle_row.children = self._toggles
        home = {name: index for index, group in enumerate(self.grouping.groups) for name in group}
        self._listening = False
        for button, index in zip(self._toggles, shown_edges, strict=True):
            edge = graph.edges[index]
            together = home[edge.producer] == home[edge.consumer]
            button.value = together
            button.description = f"{_TOGETHER if together else _APART} {edge.producer} → {edge.consumer}"
        self._listening = True


def _subject(subject: object) -> tuple[OpGraph, Any, Text | None]:
    """The graph, the compiler's groups or ``None``, and a title if there is one."""
    if isinstance(subject, str):
        subject = recorded_block(subject)
    if isinstance(subject, OpGraph):
        return subject, None, None
    graph = getattr(subject, "core", None)
    if not isinstance(graph, OpGraph):
        given = shown(subject)
        raise bad_argument(
            "subject",
            zh=f"需要 OpGraph、带 core 的对象或一个已记录的块的名字，收到的是 {given}",
            en=f"it must be an OpGraph, something with one as core, or the name of a recorded block, got {given}",
        )
    block = ZOO.get(str(getattr(subject, "name", "")))
    return graph, getattr(subject, "compiler", None), block.title if block else None


def _gpu(gpu: object) -> Gpu:
    if isinstance(gpu, Gpu):
        return gpu
    require_choice("gpu", gpu, GPUS)
    return GPUS[str(gpu)]


def _by_hand_may_differ(bench: Workbench) -> bool:
    """Whether kernels by hand do better; not worked out for a large graph, where it may take a while."""
    if not any(bench.graph.op(name).kind == "gemm" for name in bench.graph.launching):
        return False  # marks are about GEMMs
    if len(bench.graph.launching) > _LARGEST_PLANNED_AHEAD:
        return True
    return bench.hand_plan.cost.total_bytes < bench.plan.cost.total_bytes


_LARGEST_PLANNED_AHEAD = 60  # operators

_TOGETHER, _APART = "●", "○"
_UNDO, _RESET = Text(zh="撤销", en="undo"), Text(zh="重来", en="reset")
_SHOW_COMPILER = Text(zh="看编译器的", en="show the compiler's")
_SHOW_BEST = Text(zh="看最好的", en="show the best")
_SHOW_BY_HAND = Text(zh="看手写能做到的", en="show the best by hand")
_FUSE_OR_CUT = Text(zh="融合 / 切开", en="fuse or cut")
_WHY = Text(zh="为什么？", en="why?")
_AGAIN = Text(zh="在每个使用处重算 {op}", en="compute {op} again for each reader")
_PLAIN = Text(zh="用按钮代替点击", en="buttons instead of clicks")
_TABLE = Text(zh="显示算子表", en="table of operators")
_BUTTON_HINT = Text(
    zh="每条边一个按钮：● 两端在同一个核函数里，○ 两端分开。",
    en="A button for each edge: ● both ends in one kernel, ○ two kernels.",
)
_CHOOSE = Text(
    zh="请先选两个不同的算子 a 和 b：在下拉框里选，或者点图里的算子。",
    en="Choose two different operators a and b first: in the lists, or by pressing operators in the picture.",
)
