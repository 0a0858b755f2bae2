"""``python -m lessons_lib.classroom DIR``: a folder of exported results becomes one HTML file and a few lines of text."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lessons_lib.base.language import LANGUAGES, Language, use_language
from lessons_lib.base.text import Text
from lessons_lib.base.validate import bad_argument, shown
from lessons_lib.classroom.course import CourseWords
from lessons_lib.classroom.findings import findings, lesson_table
from lessons_lib.classroom.page import file_notes, files_read, page_html
from lessons_lib.classroom.reading import Problem, clean_file_name, read_folder
from lessons_lib.classroom.roster import Roster, roster_of
from lessons_lib.classroom.summary import ClassSummary, summarize
from lessons_lib.classroom.words import course_words

REPORT_NAME = "class-report.html"
_MOST_LISTED = 20  # files in the terminal; the report has them all

_HEAD = Text(zh="班级报告：{size} 人", en="Class report, learners: {size}")
_SKIPPED = Text(zh="跳过 {count} 个文件：", en="Files skipped: {count}")
_MORE = Text(zh="……另有 {count} 个，见报告", en="... and {count} more, listed in the report")
_WRITTEN = Text(zh="报告写在：{path}", en="The report is in {path}")
_NO_FILE = Text(
    zh="{folder} 里没有一个能用的结果文件，没有生成报告。请放入学员用 lessons_lib.export_progress() 导出的 .json 文件。",
    en="Not one usable results file in {folder}, so there is no report. Put the .json files there that learners exported "
    "with lessons_lib.export_progress().",
)
_ABOUT = Text(
    zh="读一个文件夹里学员导出的结果（每人一个 .json），画出全班的报告。",
    en="Reads a folder of learners' exported results (a .json each) and draws the class report.",
)


@dataclass(frozen=True)
class ClassReport:
    """A class, read and counted.

    Args:
        problems: files that do not count, and why; ``roster``: who does.
        summary: ``None`` where nobody does.
    """

    roster: Roster
    problems: tuple[Problem, ...]
    summary: ClassSummary | None
    words: CourseWords

    def html(self, *, names: bool = True) -> str:
        """The whole page in the language in use; ``names=False`` numbers the learners.

        Raises:
            ValueError: nobody counts.
        """
        if self.summary is None:
            raise bad_argument("DIR", zh="没有能用的结果文件", en="it holds no usable results file")
        return page_html(self.summary, self.words, self.roster, self.problems, names=names)

    def plain(self) -> str:
        """A short summary for a terminal, in the language in use."""
        lines: list[str] = []
        if self.summary is not None:
            lines += [
                str(_HEAD.format(size=self.summary.size)),
                str(files_read(self.roster)),
                "",
                lesson_table(self.summary).plain(),
                "",
            ]
            lines += [f"- {sentence}" for sentence in findings(self.summary, self.words)]
            lines += _cut([f"- {note}" for note in file_notes(self.roster)])
        if self.problems:
            lines += ["", str(_SKIPPED.format(count=len(self.problems)))]
            lines += _cut([f"  {problem}" for problem in self.problems])
        return "\n".join(lines).strip("\n")


def _cut(lines: list[str]) -> list[str]:
    """Lines for a terminal: the first few, and how many more there are."""
    more = len(lines) - _MOST_LISTED
    return lines if more <= 0 else [*lines[:_MOST_LISTED], f"  {_MORE.format(count=more)}"]


def class_report(folder: str | os.PathLike[str], words: CourseWords | None = None) -> ClassReport:
    """Read the files of a folder and count them.

    Args:
        folder: where learners' exports lie, one each.
        words: the library's own for questions and choices; by default it is asked.

    Raises:
        ValueError: ``folder`` is no folder that can be read; in both languages.
    """
    reading = read_folder(folder)
    roster = roster_of(reading.learners)
    known = course_words() if words is None else words
    summary = summarize(roster.learners, known) if roster.learners else None
    return ClassReport(roster, reading.problems, summary, known)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; gives its exit status: 0 with a report, 1 where there is none."""
    parser = argparse.ArgumentParser("python -m lessons_lib.classroom", description=_ABOUT.both)
    parser.add_argument("folder", metavar="DIR", help="学员导出的文件 | the learners' files")
    parser.add_argument("--out", metavar="FILE", default=REPORT_NAME, help=f"报告 | the report ({REPORT_NAME})")
    parser.add_argument("--language", choices=LANGUAGES, default=language_of(os.environ), help="语言 | language")
    parser.add_argument(
        "--no-names", action="store_true", help="报告里不写姓名和文件名 | leave names of learners and files out"
    )
    options = parser.parse_args(arguments)
    use_language(options.language)
    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character shows an escape
        with suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        target = _target(options.out)
        report = class_report(options.folder)
        if report.summary is None:
            print(report.plain(), file=sys.stderr)
            print(_NO_FILE.format(folder=clean_file_name(options.folder)).both, file=sys.stderr)
            return 1
        _write(target, report.html(names=not options.no_names))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(report.plain())
    print(f"\n{_WRITTEN.format(path=target)}")
    return 0


def language_of(variables: Mapping[str, str]) -> Language:
    """The language that a terminal's variables ask for: Chinese where they say so, else English."""
    named = (variables.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, named), "").lower().startswith("zh") else "en"


def _target(out: str) -> Path:
    """Where the report goes. Only ever an HTML file: a slip must not cost a learner's results.

    Raises:
        ValueError: another kind of file.
    """
    target = Path(out).expanduser()
    if target.suffix.lower() not in (".html", ".htm"):
        raise bad_argument("--out", zh=f"{shown(out)} 不是 .html 文件", en=f"{shown(out)} is no .html file")
    return target


def _write(target: Path, page: str) -> None:
    try:
        target.write_text(page, encoding="utf-8", errors="replace", newline="\n")
    except (OSError, ValueError) as error:
        reason = type(error).__name__
        raise bad_argument(
            "--out",
            zh=f"{shown(str(target))} 写不进去（{reason}）",
            en=f"{shown(str(target))} cannot be written ({reason})",
        ) from None
