"""The report as one HTML file: opens from a disk, asks nobody for anything, prints, stands on a light or a dark ground.

No script runs in it, and a policy in its head forbids any: names and answers in it were typed by strangers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from lessons_lib.base.language import language_tag
from lessons_lib.base.questions import QUESTIONS
from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes, format_range
from lessons_lib.classroom.course import (
    MEASURED_VOTES,
    CourseWords,
    asked_interval,
    asked_number,
    asked_words,
    title_of,
)
from lessons_lib.classroom.drawing import BUCKETS, draw_class
from lessons_lib.classroom.findings import findings, lesson_table
from lessons_lib.classroom.reading import Problem
from lessons_lib.classroom.roster import Roster
from lessons_lib.classroom.summary import (
    RIGHT_BUCKET,
    ClassSummary,
    ExerciseCounts,
    GuessCounts,
    LearnerRow,
    QuestionCounts,
    VoteCounts,
)
from lessons_lib.classroom.wording import (
    choice_words,
    lesson_words,
    mistake_text,
    question_title,
    vote_choices,
    vote_label,
    why_words,
)
from lessons_lib.graph.puzzles.levels import PUZZLES
from lessons_lib.show.picture import FONTS
from lessons_lib.show.table import Table

_TITLE = Text(zh="班级报告", en="Class report")
_LEAD = Text(zh="{course} · {size} 人", en="{course} · learners: {size}")
_LEAD_DAY = Text(zh="最近的记录：{day}", en="latest entry: {day}")
_COURSE = Text(zh="算子融合", en="Operator fusion")
_READ = Text(
    zh="读了 {files} 个文件，来自 {size} 人。请和到场的人数比一比：没交文件的人不在这份报告里。",
    en="Files read: {files}, of this many learners: {size}. Compare with the number who came: whoever handed in no file is "
    "not in this report.",
)
_LESSONS = Text(zh="各课", en="Lesson by lesson")
_GUESSES = Text(zh="揭晓之前的猜测", en="Guesses before the answer")
_GUESSES_NOTE = Text(
    zh="✓ 是对的答案。↑ 后面是实测最接近这一项的机器数：每台机器的答案不一样。",
    en="✓ marks the true answer. ↑ counts the machines whose own measurement is nearest to this option: the truth differs "
    "from machine to machine.",
)
_QUIZZES = Text(zh="测验", en="Quizzes")
_QUIZZES_NOTE = Text(
    zh="按选的人数排。灰字是最常见的错误选项的解释。",
    en="Choices by how many chose them; in grey, what undoes the commonest wrong one.",
)
_EXERCISES = Text(zh="练习", en="Exercises")
_EXERCISES_NOTE = Text(
    zh="常见错误：在做对之前遇到过的也算，每人只算一次。",
    en="Usual mistakes, those met on the way to the right answer included; each learner counts once.",
)
_PUZZLES = Text(zh="融合题", en="Fusion puzzles")
_LEARNERS = Text(zh="每个人", en="Learner by learner")
_FILES = Text(zh="文件", en="Files")
_SKIPPED = Text(zh="跳过的文件", en="Files that were skipped")
_NONE = Text(zh="这一部分还没有记录。", en="Nothing has been recorded for this part yet.")
_ANSWERED = Text(zh="{count} 人作答", en="answered by {count}")
_HITS = Text(zh="{hits}/{judged} 猜中", en="{hits} of {judged} right")
_OWN_TRUTH = Text(
    zh="答案因机器而异，实测值没有记下来", en="the truth differs by machine; no measurement was recorded"
)
_ANSWER = Text(zh="答案 {number} {unit}", en="the answer: {number} {unit}")
_MEDIAN = Text(zh="中位数 {ratio}×", en="median {ratio}×")
_STANDING = Text(
    zh="做对 {right} 人，没做对 {wrong} 人，没做完 {open} 人；试的次数中位数 {tries}",
    en="right: {right}, wrong: {wrong}, unfinished: {open}; median of tries: {tries}",
)
_NO_MISTAKE = Text(zh="没有遇到常见错误。", en="No usual mistake was met.")
_RATIO = Text(zh="猜的 ÷ 正确的值", en="guess ÷ the right value")
_TYPED = Text(zh="学员的原话", en="as typed")
_MORE_TYPED = Text(zh="……另有 {count} 种", en="... and {count} more")
_UNNAMED = Text(zh="（没写姓名）", en="(no name)")
_NUMBERED = Text(zh="学员 {number}", en="learner {number}")
_HEAD_CHOICE = Text(zh="选项", en="choice")
_HEAD_MISTAKE = Text(zh="常见错误", en="usual mistake")
_HEAD_COUNT = Text(zh="人数", en="learners")
_PUZZLE_HEAD = (
    Text(zh="题", en="puzzle"),
    Text(zh="做过", en="tried"),
    Text(zh="解出", en="solved"),
    Text(zh="★ 自己做到最优", en="★ best, no help"),
    Text(zh="看了答案", en="looked it up"),
    Text(zh="字节：最少 / 中位数", en="bytes: best / median"),
    Text(zh="启动：最少 / 中位数", en="launches: best / median"),
)
_LEARNER_HEAD = (
    Text(zh="姓名", en="name"),
    Text(zh="课", en="lessons"),
    Text(zh="练习做对", en="exercises right"),
    Text(zh="测验答对", en="quiz right"),
    Text(zh="题解出（★）", en="puzzles (★)"),
    Text(zh="最近", en="latest"),
    Text(zh="文件", en="file"),
)
_LEFT_OUT = Text(
    zh="{file}：有 {count} 条记录读不懂，没有算进来；其余的算了。",
    en="{file}: entries that make no sense were left out ({count}); the rest counts.",
)
_SAME = Text(
    zh="{file} 和 {other} 出自同一个人，内容也一样，只算一次。",
    en="{file} is of the same learner as {other}, with the same contents, and is not counted twice.",
)
_LATER = Text(
    zh="{file} 是 {other} 的早一次导出（同一个人，后者的记录更多），只算后者。",
    en="{file} is an earlier export of {other} (same learner, fewer entries); the later one counts.",
)
_NAMESAKES = Text(
    zh="有 {count} 个文件都叫“{name}”，记录对不上，当作不同的人：{files}。",
    en="{count} files bear the name “{name}” and do not continue each other, so they count as different people: {files}.",
)
_FOOT = Text(
    zh="这个文件里没有脚本，不联网。姓名和答案由学员自己填写。",
    en="This file has no script in it and asks nobody for anything. Names and answers are what learners typed.",
)

_MOST_TYPED = 16  # guesses as typed on a card: the commonest

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
_STYLE = f"""
:root {{ color-scheme: light dark; --ground: #f3f5f7; --ink: #1b1f24; --muted: #57606a; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ground: #15191e; --ink: #e6e9ec; --muted: #a3acb5; }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; padding: 28px 16px 40px; background: var(--ground); color: var(--ink); font: 15px/1.6 {FONTS}; }}
main {{ max-width: 1000px; margin: 0 auto; overflow-wrap: anywhere; }}
.cards {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(min(430px, 100%), 1fr)); gap: 10px; align-items: start; }}
h1 {{ font-size: 26px; line-height: 1.3; margin: 0; }}
h2 {{ font-size: 19px; margin: 34px 0 8px; }}
.lead, .note, footer {{ color: var(--muted); margin: 2px 0 10px; }}
.note, footer {{ font-size: 13px; }}
ul.findings {{ margin: 12px 0 16px; padding-left: 22px; }}
.scroll {{ overflow-x: auto; }}
.card {{ background: #fff; color: #1b1f24; border: 1px solid #d0d7de; border-radius: 10px; padding: 12px 16px;
  break-inside: avoid; }}
.card h3 {{ font-size: 14px; margin: 0 0 2px; }}
.card p {{ margin: 2px 0 6px; font-size: 14px; }}
.card .muted {{ color: #57606a; font-size: 13px; }}
.counts {{ border-collapse: collapse; width: 100%; font-size: 13px; }}
.counts th {{ text-align: left; font-weight: 600; color: #57606a; padding: 3px 6px; border-bottom: 1px solid #d0d7de; }}
.counts td {{ padding: 4px 6px; border-bottom: 1px solid #e7ecf0; vertical-align: top; }}
.counts tr:last-child td {{ border-bottom: 0; }}
.counts .mark {{ width: 22px; font-weight: 700; }}
.counts .number {{ width: 76px; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
.counts .bars {{ width: 120px; padding-top: 8px; }}
th {{ overflow-wrap: normal; min-width: 3.2em; }}
.bar {{ height: 11px; min-width: 2px; background: #fbe3d6; border: 1px solid #d55e00; border-radius: 2px; }}
.right .bar {{ background: #00795a; border-color: #00795a; }}
.plain .bar {{ background: #e7ecf0; border-color: #57606a; }}
.right td {{ font-weight: 600; }}
svg {{ margin: 4px auto 12px; }}
.scroll > div {{ margin-left: auto; margin-right: auto; }}
@page {{ size: A4; margin: 14mm; }}
@media print {{
  :root {{ --ground: #fff; --ink: #1b1f24; --muted: #57606a; color-scheme: light; }}
  body {{ padding: 0; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  main {{ max-width: none; }}
  h2 {{ break-after: avoid; }}
  svg {{ max-height: 198mm; margin-left: auto; margin-right: auto; break-inside: avoid; }}
  tr {{ break-inside: avoid; }}
}}
"""


def page_html(
    summary: ClassSummary, words: CourseWords, roster: Roster, problems: Sequence[Problem], *, names: bool = True
) -> str:
    """The report, a whole HTML document in the language in use.

    Args:
        names: without them learners are numbered, and no file is named.
    """
    title = escape(str(_TITLE))
    parts = [
        f"<h1>{title}</h1>",
        f'<p class="lead">{escape(_lead(summary))}</p>',
        f'<p class="note">{escape(str(files_read(roster)))}</p>',
        _listed(findings(summary, words), "findings"),
        draw_class(summary, words),
        _section(_LESSONS, "lessons", _scrolled(lesson_table(summary))),
        _cards(_GUESSES, "guesses", _guesses(summary, words), _GUESSES_NOTE),
        _cards(_QUIZZES, "quizzes", [_question(one, words) for one in summary.questions], _QUIZZES_NOTE),
        _cards(_EXERCISES, "exercises", [_exercise(one, words) for one in summary.exercises], _EXERCISES_NOTE),
        _section(_PUZZLES, "puzzles", _puzzles(summary)),
        _section(_LEARNERS, "learners", _learners(summary.rows, names=names)),
        _files(roster, problems) if names else "",
        f"<footer>{escape(str(_FOOT))}</footer>",
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="{language_tag()}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def files_read(roster: Roster) -> Text:
    """How many files could be read, and of how many learners they are."""
    return _READ.format(files=len(roster.learners) + len(roster.replaced), size=len(roster.learners))


def file_notes(roster: Roster) -> list[Text]:
    """What was done about files of one name, and about entries that made no sense."""
    notes = [(_SAME if same else _LATER).format(file=file, other=other) for file, other, same in roster.replaced]
    notes += [
        _NAMESAKES.format(count=len(files), name=name, files=", ".join(files))
        for name, files in (roster.namesakes or {}).items()
    ]
    odd = [learner for learner in roster.learners if learner.left_out]
    return notes + [_LEFT_OUT.format(file=learner.file, count=learner.left_out) for learner in odd]


# -- parts ------------------------------------------------------------------------------------------------------


def _lead(summary: ClassSummary) -> str:
    lead = str(_LEAD.format(course=_COURSE, size=summary.size))
    return f"{lead} · {_LEAD_DAY.format(day=summary.last_day)}" if summary.last_day else lead


def _section(title: Text, key: str, inner: str) -> str:
    inner = inner or f'<p class="note">{escape(str(_NONE))}</p>'
    return f'<section id="{key}">\n<h2>{escape(str(title))}</h2>\n{inner}\n</section>'


def _cards(title: Text, key: str, cards: Sequence[str], note: Text) -> str:
    listed = "\n".join(cards)
    inner = f'<p class="note">{escape(str(note))}</p>\n<div class="cards">\n{listed}\n</div>' if cards else ""
    return _section(title, key, inner)


def _scrolled(table: Table) -> str:
    """A table that a narrow screen can push sideways."""
    return f'<div class="scroll">{table.html()}</div>'


def _listed(lines: Iterable[object], kind: str) -> str:
    items = "".join(f"<li>{escape(str(line))}</li>" for line in lines)
    return f'<ul class="{kind}">{items}</ul>' if items else ""


def _card(key: str, title: str, inner: str, *said: tuple[str, str]) -> str:
    paragraphs = "".join(f'<p class="{kind}">{escape(words)}</p>' for kind, words in said if words)
    return f'<div class="card" data-id="{escape(key)}"><h3>{escape(title)}</h3>{paragraphs}{inner}</div>'


def _counts(header: Text, rows: Iterable[tuple[str, str, int, str]], total: int) -> str:
    """Rows of (mark, words, count, beside it) with a bar each, as a share of ``total``."""
    looks = {"✓": "right", "✗": "wrong"}
    body = "".join(
        f'<tr class="{looks.get(mark, "plain")}"><td class="mark">{mark}</td><td>{escape(words)}</td>'
        f'<td class="number">{count}{escape(beside)}</td><td class="bars">'
        + (f'<div class="bar" style="width:{100 * count / total:.1f}%"></div>' if count else "")
        + "</td></tr>"
        for mark, words, count, beside in rows
    )
    head = f'<th></th><th scope="col">{escape(str(header))}</th><th class="number" scope="col">{escape(str(_HEAD_COUNT))}</th>'
    return f'<table class="counts"><thead><tr>{head}<th></th></tr></thead><tbody>{body}</tbody></table>'


def _heading(lesson: str, title: str) -> str:
    return f"{lesson_words(lesson)} · {title}" if lesson else title


def _guesses(summary: ClassSummary, words: CourseWords) -> list[str]:
    cards = [(vote.lesson or "~", _vote(vote, words)) for vote in summary.votes]
    cards += [(guess.lesson or "~", _guess(guess)) for guess in summary.guesses]
    return [card for _, card in sorted(cards, key=lambda card: card[0])]


def _vote(vote: VoteCounts, words: CourseWords) -> str:
    question = str(words.votes[vote.key].question) if vote.key in words.votes else ""
    unknown = str(_OWN_TRUTH) if vote.key in MEASURED_VOTES else ""
    hits = str(_HITS.format(hits=vote.hits, judged=vote.judged)) if vote.judged else unknown
    said = " · ".join(filter(None, [str(_ANSWERED.format(count=vote.answered)), hits]))
    rows = []
    for choice in vote_choices(vote, words):
        mark = "" if vote.right is None else "✓" if choice == vote.right else "✗"
        beside = f" ↑{vote.measured[choice]}" if vote.measured.get(choice) else ""
        rows.append((mark, vote_label(vote, choice, words), vote.counts.get(choice, 0), beside))
    table = _counts(_HEAD_CHOICE, rows, vote.answered)
    return _card(vote.key, _heading(vote.lesson, title_of(vote.key)), table, ("", question), ("muted", said))


def _guess(guess: GuessCounts) -> str:
    said = [str(_ANSWERED.format(count=guess.answered))]
    if guess.judged:
        said.append(str(_HITS.format(hits=guess.hits, judged=guess.judged)))
    if answer := _right_value(guess.key):
        said.append(answer)
    if guess.median_ratio is not None:
        said.append(str(_MEDIAN.format(ratio=f"{guess.median_ratio:.3g}")))
    rows = [
        ("✓" if place == RIGHT_BUCKET else "✗", label, count, "")
        for place, (label, count) in enumerate(zip(BUCKETS, guess.buckets, strict=True))
    ]
    table = _counts(_RATIO, rows, guess.judged) if guess.judged else ""
    if guess.others:
        table += _counts(_TYPED, _typed(guess), guess.answered)
    heading = _heading(guess.lesson, title_of(guess.key))
    return _card(guess.key, heading, table, ("", asked_words(guess.key)), ("muted", " · ".join(said)))


def _right_value(panel: str) -> str:
    """What a panel's question asks for, a number or an interval; blank where it is neither."""
    if (asked := asked_number(panel)) is not None:
        return str(_ANSWER.format(number=f"{asked[0]:,g}", unit=asked[1])).rstrip()
    if (between := asked_interval(panel)) is not None:
        span = format_range(between.low, between.high, lambda number: f"{number:.3g}")
        return str(_ANSWER.format(number=span, unit=QUESTIONS[panel].unit or "")).rstrip()
    return ""


def _typed(guess: GuessCounts) -> list[tuple[str, str, int, str]]:
    """Rows of what was typed where no ratio says anything, in its order: the commonest few."""
    kept = set(sorted(guess.others, key=lambda words: -guess.others[words])[:_MOST_TYPED])
    rows = [("", words, count, "") for words, count in guess.others.items() if words in kept]
    rest = [count for words, count in guess.others.items() if words not in kept]
    return [*rows, ("", str(_MORE_TYPED.format(count=len(rest))), sum(rest), "")] if rest else rows


def _question(question: QuestionCounts, words: CourseWords) -> str:
    known = words.quizzes.get(question.quiz)
    asked = str(known[question.number - 1].question) if known else ""
    choices = set(question.counts) | (set(range(1, len(known[question.number - 1].choices) + 1)) if known else set())
    ordered = sorted(choices, key=lambda choice: (-question.counts.get(choice, 0), choice))
    rows = []
    for choice in ordered:
        mark = "" if question.right is None else "✓" if choice == question.right else "✗"
        label = choice_words(question.quiz, question.number, choice, words)
        rows.append((mark, label, question.counts.get(choice, 0), ""))
    wrong = [choice for choice in ordered if choice != question.right and question.counts.get(choice, 0)]
    why = why_words(question.quiz, question.number, wrong[0], words) if wrong and question.right else ""
    said = str(_ANSWERED.format(count=question.answered))
    return _card(
        f"{question.quiz}-{question.number}",
        _heading(question.lesson, question_title(question.quiz, question.number)),
        _counts(_HEAD_CHOICE, rows, max(1, question.answered))
        + (f'<p class="muted">✗ → {escape(why)}</p>' if why else ""),
        ("", asked),
        ("muted", said),
    )


def _exercise(exercise: ExerciseCounts, words: CourseWords) -> str:
    said = _STANDING.format(
        right=exercise.right, wrong=exercise.wrong, open=exercise.open, tries=f"{exercise.median_tries:g}"
    )
    ordered = sorted(exercise.mistakes, key=lambda index: (-exercise.mistakes[index], index))
    rows = [("✗", mistake_text(exercise.key, index, words), exercise.mistakes[index], "") for index in ordered]
    table = _counts(_HEAD_MISTAKE, rows, exercise.answered) if rows else f"<p>{escape(str(_NO_MISTAKE))}</p>"
    return _card(exercise.key, _heading(exercise.lesson, title_of(exercise.key)), table, ("muted", str(said)))


def _puzzles(summary: ClassSummary) -> str:
    if not summary.puzzles:
        return ""
    numbers = {level.name: f"{level.number} " for level in PUZZLES}
    rows = [
        [
            f"{numbers.get(puzzle.key, '')}{title_of(puzzle.key)}",
            str(puzzle.tried),
            str(puzzle.solved),
            str(puzzle.starred),
            str(puzzle.shown),
            _pair(puzzle.best_bytes, puzzle.median_bytes, lambda count: format_bytes(round(count))),
            _pair(puzzle.best_launches, puzzle.median_launches, lambda count: f"{count:g}"),
        ]
        for puzzle in summary.puzzles
    ]
    return _scrolled(Table([str(title) for title in _PUZZLE_HEAD], rows))


def _pair(best: float | None, median: float | None, written: Callable[[float], str]) -> str:
    return "–" if best is None or median is None else f"{written(best)} / {written(median)}"


def _learners(rows: Sequence[LearnerRow], *, names: bool) -> str:
    header = [str(title) for title in _LEARNER_HEAD]
    cells = [
        [
            (row.name or str(_UNNAMED)) if names else str(_NUMBERED.format(number=number)),
            _run(row.lessons),
            str(row.exercises),
            f"{row.quiz_right}/{row.quiz_answered}",
            f"{row.puzzles} ({row.stars})",
            row.day or "–",
            row.file,
        ]
        for number, row in enumerate(rows, 1)
    ]
    last = None if names else -1
    return _scrolled(Table(header[:last], [row[:last] for row in cells], prose=True))


def _run(lessons: Sequence[str]) -> str:
    """``01–03 05`` for lessons that follow one another."""
    runs: list[list[str]] = []
    for lesson in lessons:
        if runs and int(lesson) == int(runs[-1][-1]) + 1:
            runs[-1].append(lesson)
        else:
            runs.append([lesson])
    return " ".join(run[0] if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs) or "–"


def _files(roster: Roster, problems: Sequence[Problem]) -> str:
    notes = _listed(file_notes(roster), "notes")
    skipped = _listed(problems, "skipped")
    if skipped:
        skipped = f"<h3>{escape(str(_SKIPPED))}</h3>{skipped}"
    return _section(_FILES, "files", notes + skipped) if notes or skipped else ""
