"""Prints the handouts: two A4 pages a lesson with blanks, and the answers to them, in both languages.

python -m tools.handouts [--lesson 01] [--language en] [--out dist/handouts] [--screenshots FOLDER]

``make handouts`` installs what this needs (``python3 -m tools.environment --dev``) and prints everything. A Chromium,
Chrome or Edge must be there; CHROMIUM may name it. A Chinese font is needed, too, but not for English alone.
"""

from __future__ import annotations

import argparse
import os
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from notebooks.build.course import Course, read_course
from notebooks.build.read import LANGUAGES, Language
from tools import edition, say
from tools.handouts import pdf
from tools.handouts.pages import Sheet, read_sheets
from tools.handouts.press import Press, press
from tools.handouts.sheet import document
from tools.project import ROOT
from tools.say import Stop, tell

PAGES_EACH = 2


def jobs(
    sheets: list[Sheet], languages: Sequence[Language] = LANGUAGES
) -> Iterator[tuple[str, list[Sheet], Language, bool]]:
    """What there is to print: the file's name, its handouts, the language, and whether with answers."""
    for language in languages:
        for sheet in sheets:
            yield f"{sheet.lesson.name}.{language}", [sheet], language, False
        yield f"answers.{language}", sheets, language, True


def printed(
    machine: Press,
    sheets: list[Sheet],
    language: Language,
    course: Course,
    *,
    answers: bool,
    chinese: bool = True,
) -> bytes:
    """These handouts as a PDF; ``chinese`` as in ``document``.

    Raises:
        Stop: something does not fit its page, or a letter has no font.
    """
    faults = machine.lay_out(document(sheets, language, course, answers=answers, chinese=chinese))
    if faults:
        raise Stop("\n".join(["讲义放不下：", *faults]), "\n".join(["A handout does not fit:", *faults]))
    made = machine.print()
    if pdf.pages(made) != PAGES_EACH * len(sheets):
        raise Stop(
            f"应有 {PAGES_EACH} 页，得到 {pdf.pages(made)} 页", f"{PAGES_EACH} pages a lesson, not {pdf.pages(made)}"
        )
    if missing := without_font(machine.letters(), made):
        raise Stop(
            f"这台机器缺少字体（{missing}）：请装一种中文字体，例如 fonts-noto-cjk；只印英文用 --language en。",
            f"This machine has no font for {missing}: install one for Chinese, such as fonts-noto-cjk, or print English "
            "alone with --language en.",
        )
    return made


def without_font(wanted: str, made: bytes) -> str:
    """The Chinese characters of ``wanted`` that the PDF has no glyph for; Latin ones every machine has.

    A glyph that two characters share may be noted in the PDF as the other: 一 as the radical ⼀, which Unicode calls
    compatible, or 齐 as ⻬, which it does not, so as many characters as there are such radicals are forgiven.
    """
    there = set(unicodedata.normalize("NFKC", "".join(pdf.letters(made))))
    missing = {letter for letter in wanted if "\u4e00" <= letter <= "\u9fff"} - there
    radicals = sum("\u2e80" <= letter <= "\u2eff" for letter in there)
    return "" if len(missing) <= radicals else "".join(sorted(missing))


def course_sheets(wanted: list[str] | None = None) -> tuple[Course, list[Sheet]]:
    """The course, and the handouts of the lessons wanted (``"01"``); all of them by default."""
    course, faults = read_course(ROOT)
    if faults:
        raise Stop(
            "课程源文件有错：先运行 make notebooks。", "The lessons' sources have faults: run make notebooks first."
        )
    sheets = read_sheets(course)
    unknown = sorted(set(wanted or ()) - {sheet.number for sheet in sheets})
    if unknown:
        raise Stop(f"没有这样的课：{' '.join(unknown)}", f"There is no lesson {' '.join(unknown)}")
    return course, [sheet for sheet in sheets if not wanted or sheet.number in wanted]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.handouts", description=__doc__)
    parser.add_argument("--lesson", action="append", metavar="01", help="this lesson only (may be repeated)")
    parser.add_argument("--language", action="append", choices=LANGUAGES, help="this language only; both by default")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "handouts", help="folder for the PDFs")
    parser.add_argument("--screenshots", type=Path, help="folder for a picture of every page")
    options = parser.parse_args()
    say.use_edition(edition.chosen(None))
    # A panel that waits for a guess has no picture, and nobody's own progress belongs on paper.
    os.environ.update(LESSONS_PROGRESS="off", LESSONS_WORKSHOP="")
    course, sheets = course_sheets(options.lesson)
    languages = [language for language in LANGUAGES if not options.language or language in options.language]
    options.out.mkdir(parents=True, exist_ok=True)
    with press() as machine:
        for name, chosen, language, answers in jobs(sheets, languages):
            made = printed(machine, chosen, language, course, answers=answers, chinese="zh" in languages)
            (options.out / f"{name}.pdf").write_bytes(made)
            if options.screenshots:
                machine.screenshots(options.screenshots, name)
            tell(f"{name}.pdf：{pdf.pages(made)} 页", f"{name}.pdf: {pdf.pages(made)} pages")
    return 0


if __name__ == "__main__":
    say.run(main)
