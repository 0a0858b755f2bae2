"""The class in one picture: where people stop, guesses before the answer, the commonest wrong answers, the puzzles.

Colour never stands alone: every column and share has its number, what is right a tick, what is wrong a cross.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lessons_lib.base.text import Text
from lessons_lib.classroom.class_picture import LEFT, RIGHT, ClassPicture, Look, lines_of
from lessons_lib.classroom.course import CourseWords, title_of
from lessons_lib.classroom.summary import (
    RIGHT_BUCKET,
    ClassSummary,
    GuessCounts,
    LessonCounts,
    Mistake,
    VoteCounts,
)
from lessons_lib.classroom.wording import (
    lesson_words,
    mistake_place,
    mistake_words,
    vote_choices,
    vote_label,
)
from lessons_lib.graph.puzzles.levels import PUZZLES
from lessons_lib.show.measure import SMALL, shortened
from lessons_lib.show.picture import INK, MUTED

MOST_GUESSES = 14
MOST_MISTAKES = 5
BUCKETS = ("< ¼×", "¼–½×", "½–0.9×", "≈ 1×", "1.1–2×", "2–4×", "≥ 4×")

_STOP = Text(zh="学到哪里停下", en="Where people stop")
_GUESSES = Text(zh="揭晓之前的猜测", en="Guesses before the answer")
_WRONG = Text(zh="最常见的错误", en="The commonest wrong answers")
_PUZZLES = Text(zh="融合题", en="Fusion puzzles")
_STAGES: tuple[tuple[Look, Text], ...] = (
    ("outlined", Text(zh="开始", en="began")),
    ("pale", Text(zh="做对一道练习", en="got an exercise right")),
    ("solid", Text(zh="答完测验", en="answered the quiz")),
)
_SIZE = Text(zh="全班 {size} 人", en="class of {size}")
_NOTHING = Text(zh="不留记录", en="leaves no record")
_TRUE = Text(
    zh="✓ 深色：对的答案 ｜ ↑ 实测最接近这一项的机器数",
    en="✓ dark: the true answer  |  ↑ machines that measured nearest to it",
)
_WRONG_NOTE = Text(zh="✗ 答错人数 / 作答人数", en="✗ gave it / answered")
_PUZZLE_NOTE = Text(
    zh="解出 / 做过 ｜ ★ 没看提示就做到最优", en="solved / tried  |  ★ the best there is, no hint taken"
)
_NO_WRONG = Text(zh="还没有记下错误的答案。", en="No wrong answer has been recorded yet.")
_NO_GUESSES = Text(zh="还没有人先猜。", en="Nobody has guessed yet.")
_NO_PUZZLES = Text(zh="还没有人做题。", en="Nobody has tried a puzzle yet.")
_LABEL = Text(
    zh="{size} 人的班级图：每课开始、做对练习、答完测验的人数；{guesses} 次猜测的分布；最常见的错误；每道题的解出人数",
    en="a class of {size}: how many began each lesson, got an exercise right and answered the quiz; how {guesses} guesses "
    "are spread; the commonest wrong answers; how many solved each puzzle",
)

_HEAD = 38.0  # of a part, down to its first row
_COLUMNS, _FULL = 178.0, 104.0
_GUESS_ROW, _WRONG_ROW, _PUZZLE_ROW, _EMPTY_ROW = 31.0, 25.0, 27.0, 24.0
_LINE, _WORDS_LEFT = 16.0, LEFT + 166.0
_GAP = 22.0
_BAR_LEFT, _BAR_RIGHT = 286.0, RIGHT - 62.0

_Draw = Callable[[ClassPicture, float], None]


def draw_class(summary: ClassSummary, words: CourseWords) -> str:
    """The class as an SVG string.

    Args:
        summary: of at least one learner.
        words: the library's own, for labels; may be empty.
    """
    guesses = guesses_drawn(summary)
    said = _said(summary.mistakes[:MOST_MISTAKES], words)
    pairs = (len(PUZZLES) + 1) // 2
    parts: list[tuple[float, _Draw]] = [
        (_COLUMNS, lambda picture, y: _draw_stops(picture, y, summary)),
        (_GUESS_ROW * len(guesses) or _EMPTY_ROW, lambda picture, y: _draw_guesses(picture, y, guesses, words)),
        (
            sum(_WRONG_ROW + _LINE * len(lines) for _, lines in said) or _EMPTY_ROW,
            lambda picture, y: _draw_wrong(picture, y, said),
        ),
        (
            _PUZZLE_ROW * pairs if summary.puzzles else _EMPTY_ROW,
            lambda picture, y: _draw_puzzles(picture, y, summary),
        ),
    ]
    height = sum(rows + _HEAD for rows, _ in parts) + _GAP * len(parts)
    picture = ClassPicture(round(height) + 6, str(_LABEL.format(size=summary.size, guesses=len(guesses))), "class")
    y = 14.0
    for place, (rows, draw) in enumerate(parts):
        if place:
            picture.separator(y - _GAP / 2)
        draw(picture, y)
        y += rows + _HEAD + _GAP
    return picture.svg()


def guesses_drawn(summary: ClassSummary) -> list[VoteCounts | GuessCounts]:
    """Votes and typed guesses that the picture has room for, by lesson: those that most learners gave."""
    found: list[VoteCounts | GuessCounts] = [*summary.votes]
    found += (guess for guess in summary.guesses if guess.judged)
    kept = sorted(found, key=lambda one: -one.answered)[:MOST_GUESSES]
    return sorted(kept, key=lambda one: (one.lesson or "~", found.index(one)))


# -- where people stop ------------------------------------------------------------------------------------------


def _draw_stops(picture: ClassPicture, y: float, summary: ClassSummary) -> None:
    picture.part(y, _STOP, _SIZE.format(size=summary.size))
    x = LEFT + 0.0
    for look, words in _STAGES:
        x = picture.key(x, y + 42, look, words)
    bottom = y + _HEAD + _COLUMNS - 34
    pitch = (RIGHT - LEFT) / len(summary.lessons)
    for place, lesson in enumerate(summary.lessons):
        _draw_lesson(picture, LEFT + pitch * place, pitch, bottom, lesson, _FULL / summary.size)
    picture.rule(LEFT, RIGHT, bottom)


def _draw_lesson(
    picture: ClassPicture, x: float, pitch: float, bottom: float, lesson: LessonCounts, scale: float
) -> None:
    middle = x + pitch / 2
    title = shortened(lesson_words(lesson.lesson), SMALL, pitch * 1.05)
    picture.text(middle, bottom + 20, title, anchor="middle", bold=True)
    if not lesson.records:
        picture.text(middle, bottom - 12, _NOTHING, anchor="middle", colour=MUTED)
        return
    counts = (lesson.began, lesson.solved, lesson.quiz) if lesson.asks else (lesson.began,)
    for place, (count, (look, _)) in enumerate(zip(counts, _STAGES, strict=False)):
        picture.stage(middle - 43 + 29 * place, bottom, 26, count * scale, look, count)


# -- guesses ----------------------------------------------------------------------------------------------------


def _draw_guesses(
    picture: ClassPicture, y: float, guesses: Sequence[VoteCounts | GuessCounts], words: CourseWords
) -> None:
    picture.part(y, _GUESSES, _TRUE if guesses else "")
    if not guesses:
        picture.text(LEFT, y + _HEAD + 10, _NO_GUESSES, colour=MUTED)
    for place, guess in enumerate(guesses):
        top = y + _HEAD + _GUESS_ROW * place
        picture.text(LEFT, top + 16, guess.lesson or "…", colour=MUTED, bold=True)
        picture.text(LEFT + 24, top + 16, shortened(title_of(guess.key), SMALL, _BAR_LEFT - LEFT - 32))
        if isinstance(guess, VoteCounts):
            _draw_vote(picture, top, guess, words)
        else:
            _draw_buckets(picture, top, guess)
        if guess.judged:
            picture.text(RIGHT, top + 16, f"✓ {guess.hits}/{guess.judged}", anchor="end", bold=True)
        else:
            picture.text(RIGHT, top + 16, f"{guess.answered}", anchor="end", colour=MUTED)


def _draw_vote(picture: ClassPicture, top: float, vote: VoteCounts, words: CourseWords) -> None:
    shares = []
    for choice in vote_choices(vote, words):
        label, count = vote_label(vote, choice, words), vote.counts.get(choice, 0)
        tick = "✓ " if choice == vote.right else ""
        arrow = f" ↑{vote.measured[choice]}" if vote.measured.get(choice) else ""
        full, tight = f"{tick}{label} · {count}{arrow}", f"{tick}{label}·{count}"
        labels = [full, f"{tight}{arrow}", tight, f"{tick}{count}{arrow}", str(count)]
        shares.append((count, choice == vote.right, labels))
    _draw_shares(picture, top, shares)


def _draw_buckets(picture: ClassPicture, top: float, guess: GuessCounts) -> None:
    shares = []
    for place, (label, count) in enumerate(zip(BUCKETS, guess.buckets, strict=True)):
        right = place == RIGHT_BUCKET
        tick = "✓ " if right else ""
        labels = [f"{tick}{label} · {count}", f"{tick}{count}", str(count)]
        shares.append((count, right, labels))
    _draw_shares(picture, top, shares)


def _draw_shares(picture: ClassPicture, top: float, shares: Sequence[tuple[int, bool, list[str]]]) -> None:
    """Shares of a bar as wide as all of them together."""
    total = sum(count for count, *_ in shares)
    x = _BAR_LEFT
    for place, (count, right, labels) in enumerate(shares):
        width = (_BAR_RIGHT - _BAR_LEFT) * count / total
        if count:
            picture.share_of(x, top, width, 24, place=place, right=right, labels=labels)
        x += width


# -- wrong answers and puzzles ----------------------------------------------------------------------------------


def _said(mistakes: Sequence[Mistake], words: CourseWords) -> list[tuple[Mistake, list[str]]]:
    """Wrong answers with their words in lines."""
    return [(one, lines_of(mistake_words(one, words), SMALL, RIGHT - _WORDS_LEFT, 2)) for one in mistakes]


def _draw_wrong(picture: ClassPicture, y: float, said: Sequence[tuple[Mistake, list[str]]]) -> None:
    picture.part(y, _WRONG, _WRONG_NOTE if said else "")
    top = y + _HEAD
    if not said:
        picture.text(LEFT, top + 10, _NO_WRONG, colour=MUTED)
    for mistake, lines in said:
        middle = top + 1 + 7.5 * len(lines)
        picture.text(LEFT, middle + 11, f"✗ {mistake.count}/{mistake.answered}", bold=True)
        picture.wrong_bar(LEFT + 62, middle - 2, 86 * mistake.count / mistake.answered, 86, 18)
        picture.text(_WORDS_LEFT, top + 8, mistake_place(mistake), colour=MUTED)
        for row, line in enumerate(lines):
            picture.text(_WORDS_LEFT, top + 24 + _LINE * row, line)
        top += _WRONG_ROW + _LINE * len(lines)


def _draw_puzzles(picture: ClassPicture, y: float, summary: ClassSummary) -> None:
    picture.part(y, _PUZZLES, _PUZZLE_NOTE if summary.puzzles else "")
    if not summary.puzzles:
        picture.text(LEFT, y + _HEAD + 10, _NO_PUZZLES, colour=MUTED)
        return
    counts = {puzzle.key: puzzle for puzzle in summary.puzzles}
    half = (len(PUZZLES) + 1) // 2
    for place, level in enumerate(PUZZLES):
        x = LEFT + 364 * (place // half)
        top = y + _HEAD + _PUZZLE_ROW * (place % half)
        found = counts.get(level.name)
        solved, starred, tried = (found.solved, found.starred, found.tried) if found else (0, 0, 0)
        scale = 118 / summary.size
        picture.text(x + 16, top + 14, level.number, anchor="end", colour=MUTED, bold=True)
        picture.text(x + 24, top + 14, level.title, colour=INK if tried else MUTED)
        picture.solved_bar(x + 138, top, 118, solved * scale, starred * scale, 19)
        picture.text(x + 264, top + 14, f"{solved}/{tried}", bold=bool(tried), colour=INK if tried else MUTED)
        if starred:
            picture.text(x + 310, top + 14, f"★ {starred}")
