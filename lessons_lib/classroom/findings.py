"""What a teacher should see first: three or four sentences, and the table of the lessons."""

from __future__ import annotations

from lessons_lib.base.text import Text
from lessons_lib.classroom.course import CourseWords, title_of
from lessons_lib.classroom.summary import ClassSummary, GuessCounts, LessonCounts, VoteCounts
from lessons_lib.classroom.wording import lesson_words, mistake_place, mistake_words
from lessons_lib.graph.puzzles.levels import PUZZLES
from lessons_lib.show.table import Table

_DROP = Text(
    zh="第 {number} 课掉队最多：{began} 人开始，{quiz} 人答完测验。",
    en="Lesson {number} loses most: {began} began it, {quiz} answered its quiz.",
)
_NO_DROP = Text(zh="每一课都是开始的人全部答完了测验。", en="Everyone who began a lesson answered its quiz.")
_SURPRISE = Text(
    zh="最出乎意料：{title}，{judged} 人里 {hits} 人猜中。",
    en="The greatest surprise: {title}; {hits} of {judged} guessed right.",
)
_MISTAKE = Text(
    zh="最常见的错误（{count}/{answered}）：{place}：{words}",
    en="The commonest wrong answer ({count} of {answered}): {place}: {words}",
)
_PUZZLES = Text(
    zh="融合题：{tried} 人做过，最远解到第 {number} 题（{title}，{solved} 人）。",
    en="Puzzles: tried by {tried}; the highest level solved is {number} ({title}, by {solved}).",
)
_HEAD = (
    Text(zh="课", en="lesson"),
    Text(zh="开始", en="began"),
    Text(zh="做对一道练习", en="an exercise right"),
    Text(zh="练习全对", en="all exercises right"),
    Text(zh="答完测验", en="quiz answered"),
    Text(zh="学到这里为止", en="got this far"),
)
_NOTE = Text(
    zh="一个人在每一格里最多算一次。“学到这里为止”：之后的课没有任何记录。第 00 课不留记录。",
    en="Each learner counts once in a cell. “Got this far”: no entry in any later lesson. Lesson 00 leaves no record.",
)
_LEAST_JUDGED = 3


def findings(summary: ClassSummary, words: CourseWords) -> list[str]:
    """The most telling figures as sentences in the language in use; fewer where there is little to tell."""
    found = [_drop(summary), _surprise(summary), _mistake(summary, words), _puzzles(summary)]
    return [str(sentence) for sentence in found if sentence is not None]


def lesson_table(summary: ClassSummary) -> Table:
    """How many began each lesson, did its exercises, answered its quiz, and went no further."""
    return Table([str(title) for title in _HEAD], [_row(lesson) for lesson in summary.lessons], note=str(_NOTE))


def _row(lesson: LessonCounts) -> list[str]:
    counts = (lesson.began, lesson.solved, lesson.all_solved, lesson.quiz, lesson.stopped)
    asked = (True, lesson.asks, lesson.asks, lesson.asks, True)
    shown = (lesson.records and told for told in asked)
    return [
        lesson_words(lesson.lesson),
        *(str(count) if told else "–" for count, told in zip(counts, shown, strict=True)),
    ]


def _drop(summary: ClassSummary) -> Text | None:
    begun = [lesson for lesson in summary.lessons if lesson.began and lesson.asks]
    if not begun:
        return None
    worst = max(begun, key=lambda lesson: lesson.began - lesson.quiz)
    if worst.began == worst.quiz:
        return _NO_DROP
    return _DROP.format(number=worst.lesson, began=worst.began, quiz=worst.quiz)


def _surprise(summary: ClassSummary) -> Text | None:
    guesses: list[VoteCounts | GuessCounts] = [*summary.votes, *summary.guesses]
    judged = [guess for guess in guesses if guess.judged >= _LEAST_JUDGED]
    if not judged:
        return None
    worst = min(judged, key=lambda guess: guess.hits / guess.judged)
    return _SURPRISE.format(title=title_of(worst.key), hits=worst.hits, judged=worst.judged)


def _mistake(summary: ClassSummary, words: CourseWords) -> Text | None:
    if not summary.mistakes:
        return None
    first = summary.mistakes[0]
    return _MISTAKE.format(
        count=first.count, answered=first.answered, place=mistake_place(first), words=mistake_words(first, words)
    )


def _puzzles(summary: ClassSummary) -> Text | None:
    counts = {puzzle.key: puzzle for puzzle in summary.puzzles}
    solved = [level for level in PUZZLES if level.name in counts and counts[level.name].solved]
    if not solved:
        return None
    last = solved[-1]
    return _PUZZLES.format(
        tried=max(puzzle.tried for puzzle in summary.puzzles),
        number=last.number,
        title=last.title,
        solved=counts[last.name].solved,
    )
