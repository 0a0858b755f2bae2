"""The puzzles of ``puzzles`` to play: a canvas with a goal, a score beside the compiler's, hints, and an explanation.

What the learner has reached is kept with ``base.progress`` and there again when the panel is opened the next day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from lessons_lib.base.language import language_tag
from lessons_lib.base.progress import note_progress, progress_notice, progress_of, stamped
from lessons_lib.base.text import Text, sentences
from lessons_lib.base.units import count_of, format_bytes
from lessons_lib.graph.canvas import GraphCanvas
from lessons_lib.graph.grouping import Grouping, unfused
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.planning.exact import Objective
from lessons_lib.graph.puzzles.levels import PUZZLES, Attempt, Puzzle, Score, puzzle
from lessons_lib.show.controls import column_of, html_view, push_button, row_of, show_or_hide
from lessons_lib.show.live import LiveBox
from lessons_lib.show.table import Table

_MOST = 2**60  # of any number in the progress file that is believed

_LESSON = "04"

SECTION = "puzzles"
"""The section of the progress file; its keys are the puzzles' names."""


@dataclass(frozen=True)
class Standing:
    """What the learner has reached in a puzzle, as the progress file has it.

    Args:
        solved: at any time; ``star``: solved once with the best there is, no hint taken and nothing looked up.
        shown: the solution was looked up.
        hints: the most that were taken, up to 3.
        launches, total_bytes, moves: of the best attempt that counts; 0: none yet.
    """

    solved: bool = False
    star: bool = False
    shown: bool = False
    hints: int = 0
    launches: int = 0
    total_bytes: int = 0
    moves: int = 0

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Standing:
        """What of an entry makes sense: the file may hold anything."""
        usual = asdict(cls())
        kept: dict[str, Any] = {name: entry.get(name) for name in usual}
        fits = {name: value for name, value in kept.items() if type(value) is type(usual[name])}
        return cls(**{name: value for name, value in fits.items() if 0 <= value < _MOST})

    @property
    def score(self) -> Score | None:
        """The best attempt's score, if there is one."""
        return Score(self.launches, self.total_bytes) if self.launches else None

    @property
    def mark(self) -> str:
        """A shape for each standing; ``_LEGEND`` has the words."""
        return "★" if self.star else "✓" if self.solved else "◇" if self.shown else "○"

    @property
    def words(self) -> Text:
        """The same in words."""
        return _STANDINGS[self.mark]


def standings() -> dict[str, Standing]:
    """What the learner has reached in each puzzle, by its name."""
    kept = progress_of(SECTION)
    return {level.name: Standing.of(kept.get(level.name, {})) for level in PUZZLES}


class PuzzlePanel(LiveBox):
    """Ten puzzles, one at a time.

    Args:
        level: the one to begin with, from 1.
        plain: buttons in place of a picture that can be pressed.

    Raises:
        ValueError: there is no such level.
    """

    def __init__(self, level: int = 1, *, plain: bool = False) -> None:
        super().__init__()
        first = puzzle(level)
        self._plain = plain
        self._buttons = [push_button("", self._opener(other.number)) for other in PUZZLES]
        for button in self._buttons:
            button.layout.width, button.layout.margin = "144px", "0 8px 8px 0"
        self._summary, self._head, self._scores = html_view(), html_view(), html_view()
        self._verdict, self._hint_view = html_view(), html_view()
        self._hint, self._show = push_button("", self.hint), push_button(_SHOW_ME, self.show_solution)
        self._next = push_button(_NEXT, lambda: self.start(self.level.number % len(PUZZLES) + 1))
        self._place = column_of([])
        self.children = [
            row_of(list(self._buttons)),
            self._summary,
            self._head,
            self._scores,
            self._verdict,
            row_of([self._hint, self._show, self._next]),
            self._hint_view,
            self._place,
        ]
        self.start(first.number)

    # -- what a cell calls -----------------------------------------------------------------------------------

    def start(self, level: int) -> None:
        """Begin a level, a kernel for each operator.

        Raises:
            ValueError: there is no such level.
        """
        self.level: Puzzle = puzzle(level)
        self.hints_taken, self._helped, self._playing = 0, False, True
        self._before_showing: tuple[OpGraph, Grouping] | None = None
        self._standings = standings()  # read here and after a write: a press must not wait for a file
        old, self.canvas = list(self._place.children), self._new_canvas()
        self._place.children = [self.canvas]
        for canvas in old:
            _close(canvas)
        self.canvas.on_change(self._changed)
        self._redraw()

    def press(self, a: str, b: str) -> bool:
        """Fuse two operators, or cut between them: see ``GraphCanvas.press``; what lies between may come along.

        Raises:
            ValueError: an operator that the graph lacks, or a view.
        """
        return self.canvas.press(a, b)

    def hint(self) -> Text | None:
        """Show the next hint and give it; ``None`` once all three are there. A star needs none."""
        if self.hints_taken == len(self.level.hints):
            return None
        self.hints_taken, self._helped = self.hints_taken + 1, True
        self._note(replace(self.standing, hints=max(self.standing.hints, self.hints_taken)))
        self._redraw()
        return self.level.hints[self.hints_taken - 1]

    def show_solution(self) -> None:
        """Put the best kernels on the canvas. That solves nothing: after ``reset`` or ``undo`` the level is open."""
        before = self._before_showing or (self.canvas.workbench.graph, self.canvas.grouping)
        self._helped, self._playing = True, False
        solution = self.level.solution
        self.canvas.reset()
        for op in solution.recomputed:
            self.canvas.recompute(op)
        self.canvas.workbench.set_grouping(solution.plan.grouping.groups)
        self._before_showing, self._playing = before, True
        self.canvas.refresh()
        self.canvas.say(_SHOWN)
        self._note(replace(self.standing, shown=True))
        self._redraw()

    @property
    def standing(self) -> Standing:
        """What the learner has reached in this level, at any time."""
        return self._standings[self.level.name]

    @property
    def attempt(self) -> Attempt:
        """The kernels on the canvas, judged."""
        return self.level.judge(self.canvas.workbench.graph, self.canvas.grouping)

    @property
    def solved(self) -> bool:
        """Whether what is on the canvas now is a solution, and the learner's own."""
        return self._before_showing is None and self.canvas.workbench.moves > 0 and self.attempt.solved

    @property
    def _begun(self) -> bool:
        """Whether a guess can no longer be spoiled: something was moved, or the level is known from before."""
        return self.canvas.workbench.moves > 0 or self.standing.solved or self.standing.shown

    def static_forms(self) -> dict[str, str]:
        level = self.level
        table = _score_table(level, self.attempt.score, self.canvas.workbench.moves > 0)
        svg = self.canvas.static_forms()["image/svg+xml"]
        return {
            "text/html": _head_html(level) + svg + table.html(),
            "text/plain": "\n".join([str(_title(level)), str(level.story), "", table.plain()]),
        }

    # -- what happens ----------------------------------------------------------------------------------------

    def _opener(self, number: int) -> Callable[[], None]:
        return lambda: self.start(number)

    def _new_canvas(self) -> GraphCanvas:
        level = self.level
        return _PuzzleCanvas(
            level.record,
            level.gpu,
            multi_pass=level.multi_pass,
            recompute=level.recompute,
            plain=self._plain,
            reveal=False,
        )

    def _changed(self) -> None:
        if not self._playing:
            return
        bench = self.canvas.workbench
        own = ((self.level.graph, unfused(self.level.graph)), self._before_showing)
        if any(state and state[0] is bench.graph and state[1] == bench.grouping for state in own):
            self._before_showing = None  # back at the start, or at what the learner had
        if self._before_showing is None and bench.moves:
            self._note(self._improved(self.attempt))
        self._redraw()

    def _improved(self, attempt: Attempt) -> Standing:
        """The standing with this attempt, if it is better than what was."""
        known, level = self.standing, self.level
        if not attempt.counts:
            return known
        if attempt.solved:
            star = known.star or (attempt.best and not self._helped)
            known = replace(known, solved=True, star=star)
        old, new = known.score, attempt.score
        moves = self.canvas.workbench.moves
        if old is None or (_rank(level, new), moves) < (_rank(level, old), known.moves):
            known = replace(known, launches=new.launches, total_bytes=new.total_bytes, moves=moves)
        return known

    def _note(self, standing: Standing) -> None:
        if standing != self.standing:
            note_progress(SECTION, self.level.name, stamped(_LESSON, asdict(standing)))
            self._standings = {**standings(), self.level.name: standing}

    # -- what is shown ---------------------------------------------------------------------------------------

    def _redraw(self) -> None:
        known = self._standings
        for level, button in zip(PUZZLES, self._buttons, strict=True):
            standing = known[level.name]
            button.description = f"{standing.mark} {level.number} {level.title}"
            button.tooltip = str(_tooltip(level, standing))
            here = level is self.level
            button.layout.border = "2px solid #0072B2" if here else "1px solid #d0d7de"
        count = sum(standing.solved for standing in known.values())
        self._summary.value = _small([_SUMMARY.format(count=count, total=len(PUZZLES)), _LEGEND, progress_notice()])
        self._head.value = _head_html(self.level)
        revealed = self.standing.solved or self.standing.shown
        self._scores.value = _strip(
            self.level, self.attempt, self.standing, begun=self._begun, solved=self.solved, revealed=revealed
        )
        self._verdict.value = self._verdict_html()
        left = len(self.level.hints) - self.hints_taken
        self._hint.description = str(_HINT.format(left=left))
        self._hint.disabled = left == 0
        for button in (self._hint, self._show):
            show_or_hide(button, not self.solved)
        show_or_hide(self._next, revealed)
        self._hint_view.value = "".join(
            _note_html([_HINT_WORDS.format(number=number, words=words)], "#56B4E9")
            for number, words in enumerate(self.level.hints[: self.hints_taken], 1)
        )

    def _verdict_html(self) -> str:
        """Solved, looked up, solved before, or why what is on the canvas does not count."""
        attempt, standing = self.attempt, self.standing
        if self.solved:
            return _note_html([_solved_words(self.level, attempt, self.canvas.workbench.moves)], "#009E73", True) + (
                _explained(self.level, unfolded=True)
            )
        if self._before_showing is not None:
            return _note_html([_LOOKED_UP], "#CC79A7", True) + _explained(self.level, unfolded=True)
        if attempt.by_hand and not attempt.counts:
            return _note_html([_BY_HAND], "#D55E00", True)
        if standing.solved or standing.shown:
            return _explained(self.level, unfolded=False)
        return _note_html([], "transparent", True)


class _PuzzleCanvas(GraphCanvas):
    """A puzzle hides its answer by itself: in a workshop, too, it is there to be tried."""

    asks_first = False


def _rank(level: Puzzle, score: Score) -> tuple[int, int]:
    pair = score.total_bytes, score.launches
    return pair if level.objective == "bytes" else (pair[1], pair[0])


def _close(widget: Any) -> None:
    """Take a widget and its parts out of the notebook, so that levels played do not pile up there."""
    for part in getattr(widget, "children", ()):
        _close(part)
    widget.close()


# -- words and looks ------------------------------------------------------------------------------------------


def _title(level: Puzzle) -> Text:
    return _TITLE.format(number=level.number, total=len(PUZZLES), title=level.title)


def _launches(count: int) -> Text:
    return (_LAUNCH if count == 1 else _LAUNCHES).format(count=count)


def _figure(score: Score, objective: Objective) -> tuple[Text, Text]:
    """What counts, and the other number."""
    moved = Text(zh=format_bytes(score.total_bytes), en=format_bytes(score.total_bytes))
    pair = moved, _launches(score.launches)
    return pair if objective == "bytes" else (pair[1], pair[0])


def _compiler_figure(level: Puzzle) -> tuple[Text, Text]:
    """As ``_figure``; where loop nests share a call, a nest is not passed off as a launch."""
    if not level.in_fewer_calls:
        return _figure(level.compiler, level.objective)
    nests, calls = level.compiler.launches, level.record.compiler.launches
    given = {"nests": nests, "calls": calls, "noun": "call" if calls == 1 else "calls"}
    if level.objective == "bytes":
        return _figure(level.compiler, "bytes")[0], _NESTS_AND_CALLS.format(**given)
    return _NESTS.format(**given), _CALLS.format(**given)


def _goal_words(level: Puzzle) -> Text:
    if level.aim == "beat the compiler":
        return _LESS_THAN.format(figure=_figure(level.compiler, level.objective)[0])
    goal = level.goal
    return Text(zh=format_bytes(goal), en=format_bytes(goal)) if level.objective == "bytes" else _launches(goal)


def _score_table(level: Puzzle, yours: Score, begun: bool) -> Table:
    rows = [[str(_YOURS), *(str(words) for words in _figure(yours, level.objective))]]
    if begun:
        rows.append([str(_GOAL), str(_goal_words(level)), ""])
        rows.append([str(_COMPILER), *(str(words) for words in _compiler_figure(level))])
    else:
        rows += [[str(name), str(_HIDDEN), ""] for name in (_GOAL, _COMPILER)]
    header = [_SCORE, _BYTES, _STARTS] if level.objective == "bytes" else [_SCORE, _STARTS, _BYTES]
    return Table([str(words) for words in header], rows, marked=0)


def _strip(level: Puzzle, attempt: Attempt, standing: Standing, *, begun: bool, solved: bool, revealed: bool) -> str:
    """Four boxes side by side: yours, the goal, the compiler's, the best.

    The story asks for a guess that goal and compiler would answer: they show once a move is made.
    """
    yours, beside = _figure(attempt.score, level.objective)
    compiled, compiled_beside = _compiler_figure(level)
    best, best_beside = _figure(level.solution.score, level.objective)
    earlier = standing.score
    label = _YOURS
    if earlier is not None and earlier != attempt.score:
        label = _SO_FAR.format(yours=_YOURS, best=_figure(earlier, level.objective)[0])
    boxes = [
        _box(label, Text(zh=f"✓ {yours.zh}", en=f"✓ {yours.en}") if solved else yours, beside, solved),
        _box(_GOAL, _goal_words(level) if begun else _HIDDEN, _OBJECTIVES[level.objective], False),
        _box(_COMPILER, *((compiled, compiled_beside) if begun else (_HIDDEN, _HIDDEN_UNTIL_MOVE)), False),
        _box(_BEST, best, best_beside, False) if revealed else _box(_BEST, _HIDDEN, _HIDDEN_UNTIL, False),
    ]
    return (
        f'<div lang="{language_tag()}" style="display:flex;flex-wrap:wrap;gap:8px;max-width:760px;margin:4px 0 6px">'
        f"{''.join(boxes)}</div>"
    )


def _box(label: Text, figure: Text, beside: Text, reached: bool) -> str:
    look = "border:2px solid #009E73;background:#eef6f3" if reached else "border:1px solid #d0d7de;background:#fff"
    return (
        f'<div style="flex:1 1 150px;min-width:150px;box-sizing:border-box;padding:6px 12px;border-radius:10px;{look};'
        f'color:#1b1f24;line-height:1.45"><div style="font-size:12px;color:#57606a">{escape(str(label))}</div>'
        f'<div style="font-size:18px;font-weight:600;font-variant-numeric:tabular-nums">{escape(str(figure))}</div>'
        f'<div style="font-size:12px;color:#57606a">{escape(str(beside))}</div></div>'
    )


def _head_html(level: Puzzle) -> str:
    return (
        f'<div lang="{language_tag()}" style="max-width:744px;line-height:1.65;font-size:14px;margin:2px 0 6px">'
        f'<div style="font-weight:600;font-size:15px">{escape(str(_title(level)))}</div>'
        f"<div>{escape(str(level.story))}</div></div>"
    )


def _note_html(words: list[Text], edge: str, live: bool = False) -> str:
    role = ' role="status"' if live else ""
    return (
        f'<div{role} lang="{language_tag()}" style="max-width:730px;line-height:1.65;font-size:14px;margin:2px 0 4px;'
        f'padding-left:8px;border-left:4px solid {edge}">{escape(sentences(*words))}</div>'
    )


def _explained(level: Puzzle, *, unfolded: bool) -> str:
    words = _note_html([level.explanation], "#d0d7de")
    if unfolded:
        return words
    return f'<details lang="{language_tag()}" style="font-size:14px"><summary>{escape(str(_EARLIER))}</summary>{words}</details>'


def _small(words: list[Text | None]) -> str:
    return (
        f'<div lang="{language_tag()}" style="max-width:744px;font-size:12px;line-height:1.6;margin-bottom:4px">'
        f"{escape(sentences(*(text for text in words if text is not None)))}</div>"
    )


def _tooltip(level: Puzzle, standing: Standing) -> Text:
    words = standing.words
    if standing.solved and standing.score is not None:
        figure = _figure(standing.score, level.objective)[0]
        moves = standing.moves
        words = _WITH_SCORE.format(words=words, figure=figure, moves=moves, count=count_of(moves, "move"))
    return Text(zh=f"{_title(level).zh}：{words.zh}", en=f"{_title(level).en}: {words.en}")


def _solved_words(level: Puzzle, attempt: Attempt, moves: int) -> Text:
    compiled = level.compiler.counted(level.objective)
    reached = attempt.score.counted(level.objective)
    words = _SOLVED_BEST if attempt.best else _SOLVED
    beside = _BEATS if reached < compiled else _AS_GOOD
    if reached < compiled and level.in_fewer_calls and level.objective == "launches":
        beside = _FEWER_NESTS
    if attempt.best and not level.solution.plan.proven:
        words = _SOLVED_KNOWN
    return words.format(
        moves=moves, count=count_of(moves, "move"), beside=beside, figure=_figure(attempt.score, level.objective)[0]
    )


_STANDINGS: Mapping[str, Text] = {
    "○": Text(zh="未解", en="open"),
    "✓": Text(zh="已解", en="solved"),
    "★": Text(zh="不靠提示做到最好", en="the best, without help"),
    "◇": Text(zh="看过答案", en="looked up"),
}
_LEGEND = Text(
    zh="图例：" + "，".join(f"{mark} {words.zh}" for mark, words in _STANDINGS.items()) + "。",
    en="Legend: " + ", ".join(f"{mark} {words.en}" for mark, words in _STANDINGS.items()) + ".",
)
_SUMMARY = Text(zh="已解 {count} / {total} 关。", en="Solved {count} of {total}.")
_TITLE = Text(zh="第 {number} 关（共 {total} 关）：{title}", en="Level {number} of {total}: {title}")
_WITH_SCORE = Text(zh="{words}，{figure}，{moves} 步", en="{words}, {figure} in {count}")
_YOURS, _GOAL = Text(zh="你的", en="yours"), Text(zh="目标", en="goal")
_COMPILER, _BEST = Text(zh="torch.compile（CPU）", en="torch.compile (CPU)"), Text(zh="最好", en="the best")
_HIDDEN_UNTIL_MOVE = Text(zh="先猜，动一步就揭晓", en="guess; shown after a move")
_HIDDEN, _HIDDEN_UNTIL = Text(zh="？", en="?"), Text(zh="解出后揭晓", en="hidden until solved")
_SCORE, _BYTES, _STARTS = (
    Text(zh="得分", en="score"),
    Text(zh="读写", en="bytes moved"),
    Text(zh="启动", en="launches"),
)
_OBJECTIVES: Mapping[Objective, Text] = {
    "bytes": Text(zh="读写越少越好", en="fewer bytes are better"),
    "launches": Text(zh="启动越少越好", en="fewer launches are better"),
}
_LESS_THAN = Text(zh="少于 {figure}", en="below {figure}")
_SO_FAR = Text(zh="{yours}（此前最好 {best}）", en="{yours} (best so far {best})")
_LAUNCHES = Text(zh="{count} 次启动", en="{count} launches")
_LAUNCH = Text(zh="{count} 次启动", en="{count} launch")
_NESTS = Text(zh="{nests} 组循环", en="{nests} loop nests")
_CALLS = Text(zh="{calls} 次调用；GPU 上通常是一个核函数", en="in {calls} {noun}; on a GPU usually one kernel")
_NESTS_AND_CALLS = Text(zh="{nests} 组循环，{calls} 次调用", en="{nests} loop nests in {calls} {noun}")
_HINT = Text(zh="提示（还有 {left} 条）", en="hint ({left} left)")
_HINT_WORDS = Text(zh="提示 {number}：{words}", en="Hint {number}: {words}")
_SHOW_ME, _NEXT = Text(zh="看答案", en="show me"), Text(zh="下一关 →", en="next level →")
_SOLVED = Text(
    zh="✓ 过关：{figure}，{moves} 步，{beside}。还不是最好的，可以接着改。",
    en="✓ Solved: {figure} in {count}, {beside}. It is not the best yet; carry on if you like.",
)
_SOLVED_BEST = Text(
    zh="✓ 过关：{figure}，{moves} 步，{beside}；已经证明，按这里的规则不能更好。",
    en="✓ Solved: {figure} in {count}, {beside}; proven to be the best that these rules allow.",
)
_SOLVED_KNOWN = Text(
    zh="✓ 过关：{figure}，{moves} 步，{beside}；没有找到更好的。",
    en="✓ Solved: {figure} in {count}, {beside}; nothing better is known.",
)
_BEATS = Text(zh="胜过 torch.compile", en="better than torch.compile")
_FEWER_NESTS = Text(zh="循环比 torch.compile 在 CPU 上的少", en="fewer loop nests than torch.compile on a CPU")
_AS_GOOD = Text(zh="与 torch.compile 打平", en="level with torch.compile")
_LOOKED_UP = Text(
    zh="◇ 这是一种最好的分法，还不算你解的。点“重来”，自己做一遍。",
    en="◇ This is one of the best ways. It does not count as yours: press reset, and do it yourself.",
)
_SHOWN = Text(zh="这是一种最好的分法。", en="This is one of the best ways.")
_BY_HAND = Text(
    zh="有一个核函数只能手写或靠模板、模式匹配，在这一关不算；虚线框就是它。",
    en="One of the kernels is made by hand, by a template or by a pattern only, which does not count in this level: the "
    "dashed one.",
)
_EARLIER = Text(zh="这一关你解过或看过答案：讲解", en="You solved this or looked it up before: the explanation")
