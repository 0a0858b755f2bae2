"""What to call a choice, a question or a mistake: the library's words, else what learners saw, else a number."""

from __future__ import annotations

from lessons_lib.base.text import Text
from lessons_lib.classroom.course import LESSONS, CourseWords, title_of
from lessons_lib.classroom.summary import Mistake, VoteCounts

_CHOICE = Text(zh="第 {number} 项", en="choice {number}")
_MISTAKE = Text(zh="常见错误 {number}", en="usual mistake {number}")
_QUESTION = Text(zh="{title}，第 {number} 题", en="{title}, question {number}")
_LESSON = Text(zh="第 {number} 课", en="lesson {number}")


def vote_label(vote: VoteCounts, choice: int, words: CourseWords) -> str:
    """An option of a vote as learners saw it."""
    known = words.votes.get(vote.key)
    if known is not None and choice <= len(known.options):
        return str(known.options[choice - 1][0])
    return vote.labels.get(choice, "") or str(_CHOICE.format(number=choice))


def vote_choices(vote: VoteCounts, words: CourseWords) -> list[int]:
    """The options of a vote, those that nobody chose included where they are known."""
    known = words.votes.get(vote.key)
    options = set(range(1, len(known.options) + 1)) if known else set()
    return sorted(options | set(vote.counts) | set(vote.measured))


def choice_words(quiz: str, question: int, choice: int, words: CourseWords) -> str:
    """A choice of a quiz's question, both from 1."""
    known = words.quizzes.get(quiz, ())
    if question <= len(known) and choice <= len(known[question - 1].choices):
        return str(known[question - 1].choices[choice - 1].words)
    return str(_CHOICE.format(number=choice))


def why_words(quiz: str, question: int, choice: int, words: CourseWords) -> str:
    """Why a choice is right or wrong; blank where nobody knows."""
    known = words.quizzes.get(quiz, ())
    if question <= len(known) and choice <= len(known[question - 1].choices):
        return str(known[question - 1].choices[choice - 1].why)
    return ""


def mistake_text(exercise: str, index: int, words: CourseWords) -> str:
    """An exercise's named mistake, by its index from 0: the words that undo it."""
    known = words.mistakes.get(exercise, ())
    return str(known[index]) if index < len(known) else str(_MISTAKE.format(number=index + 1))


def mistake_words(mistake: Mistake, words: CourseWords) -> str:
    """What was answered, or, of an exercise, the words that undo it."""
    if mistake.question is None:
        return mistake_text(mistake.key, mistake.number, words)
    return choice_words(mistake.key, mistake.question, mistake.number, words)


def mistake_place(mistake: Mistake) -> str:
    """Where a mistake was made: the lesson, and its exercise or the question of its quiz."""
    title = title_of(mistake.key)
    if mistake.question is not None:
        title = question_title(mistake.key, mistake.question)
    return f"{_LESSON.format(number=mistake.lesson)} · {title}" if mistake.lesson else title


def question_title(quiz: str, number: int) -> str:
    """``quiz, question 1``."""
    return str(_QUESTION.format(title=title_of(quiz), number=number))


def lesson_words(number: str) -> str:
    """A lesson's number and short title; blank for none."""
    title = next((lesson.title for lesson in LESSONS if lesson.number == number), None)
    return f"{number} {title}" if title is not None else number and str(_LESSON.format(number=number))
