"""The handouts: two A4 pages a lesson on which everything fits, and blanks that the library fills in for the answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

pytest.importorskip("latex2mathml")

import lessons_lib
from notebooks.build.course import Course
from notebooks.build.read import LANGUAGES, Language
from tools.chromium import find_chromium
from tools.handouts import pdf, pictures
from tools.handouts.__main__ import course_sheets, jobs, main, printed, without_font
from tools.handouts.pages import PAGES, Sheet, read_sheets
from tools.handouts.pictures import picture
from tools.handouts.press import Press, press
from tools.handouts.sheet import document
from tools.handouts.values import figures, gated_residual, right_choice
from tools.say import Stop

pytestmark = pytest.mark.once
LESSONS = ("00", "01", "02", "03", "04", "05")
PAGE = '<section class="page" data-page="x-1" style="{style}"><main>{inside}</main></section>'
STYLE = "width:210mm;height:297mm;padding:10mm;box-sizing:border-box;overflow:hidden"


@pytest.fixture(autouse=True)
def _english_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LESSONS_WORKSHOP", "")
    before = lessons_lib.current_language()
    yield
    lessons_lib.use_language(before)


@pytest.fixture(scope="module")
def handouts() -> tuple[Course, list[Sheet]]:
    return course_sheets()


@pytest.fixture(scope="module")
def machine() -> Iterator[Press]:
    """A press; without a Chromium these tests are skipped, or fail where CI promises a whole run."""
    reason = None if find_chromium() else "no Chromium or Chrome found: apt-get install chromium"
    try:
        import playwright  # noqa: F401
    except ImportError:
        reason = "no Playwright"
    if reason:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    with press() as running:
        yield running


@pytest.fixture(scope="module")
def made(machine: Press, handouts: tuple[Course, list[Sheet]]) -> dict[str, tuple[bytes, str]]:
    """Name -> a PDF, and the letters that it should show; printing refuses whatever does not fit its page."""
    course, sheets = handouts
    found = {}
    for name, chosen, language, answers in jobs(sheets):
        found[name] = (printed(machine, chosen, language, course, answers=answers), machine.letters())
    return found


# -- on paper ---------------------------------------------------------------------------------------------------------


def test_every_lesson_is_two_a4_pages_in_both_languages_and_the_answers_are_all_of_them(
    made: dict[str, tuple[bytes, str]], handouts: tuple[Course, list[Sheet]]
) -> None:
    names = [sheet.lesson.name for sheet in handouts[1]]
    assert sorted(made) == sorted(f"{name}.{language}" for name in (*names, "answers") for language in LANGUAGES)
    for name, (data, _) in made.items():
        assert pdf.pages(data) == (2 * len(names) if name.startswith("answers") else 2), name
        assert pdf.page_sizes(data) == {(210, 297)}, name


def test_every_font_is_in_the_file_the_chinese_one_too(made: dict[str, tuple[bytes, str]]) -> None:
    for name, (data, letters) in made.items():
        fonts = pdf.fonts(data)
        assert fonts and all(fonts.values()), (name, fonts)
        assert without_font(letters, data) == "", name
        if name.endswith(".zh"):
            assert sum("\u4e00" <= letter <= "\u9fff" for letter in set(letters)) > 100
    assert without_font("龘齉", made["01_traffic.en"][0]) == "齉龘"  # neither is in the course


def test_english_alone_needs_no_chinese_font(machine: Press, handouts: tuple[Course, list[Sheet]]) -> None:
    course, sheets = handouts
    found = list(jobs(sheets, ["en"]))
    assert [name for name, *_ in found] == [*(f"{sheet.lesson.name}.en" for sheet in sheets), "answers.en"]
    _, chosen, language, answers = found[-1]
    data = printed(machine, chosen, language, course, answers=answers, chinese=False)
    for letters in (machine.letters(), "".join(pdf.letters(data))):
        assert re.findall("[\u2e80-\u9fff\uff00-\uffef]", letters) == []
    assert "Start Here" in machine.letters() and "intermediate tensor" in machine.letters()


def test_the_pages_ask_for_nothing_from_outside(made: dict[str, tuple[bytes, str]], machine: Press) -> None:
    assert made and machine.asked == []
    machine.lay_out('<img src="http://example.invalid/picture.png">')
    with pytest.raises(Stop, match=r"example\.invalid"):
        machine.print()
    machine.asked.clear()


@pytest.mark.parametrize(
    ("inside", "fault"),
    [
        ("<p>line</p>" * 60, "too tall"),
        (f"<div class='text'><pre>{'x' * 200}</pre></div>", "too wide"),
        ("<p style='position:absolute;left:12mm;top:20mm'>one</p>" * 2, "'one' over 'one'"),
        ("<p style='position:absolute;left:205mm;top:20mm'>outside</p>", "'outside' leaves the page"),
        (
            "<svg width='200' height='90' viewBox='0 0 800 360'><text x='9' y='40' font-size='12'>tiny</text></svg>",
            "2.3 pt",
        ),
        (
            "<svg width='90' height='90' viewBox='0 0 90 90'><text x='60' y='40' font-size='12'>beyond</text></svg>",
            "cut off",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_page(machine: Press, inside: str, fault: str) -> None:
    good = machine.lay_out(f"<body style='margin:0'>{PAGE.format(style=STYLE, inside='<p>short</p>')}")
    assert good == []
    found = machine.lay_out(f"<body style='margin:0'>{PAGE.format(style=STYLE, inside=inside)}")
    assert any(line.startswith("x-1") and fault in line for line in found), found


def test_a_handout_that_grows_too_long_is_refused(machine: Press, handouts: tuple[Course, list[Sheet]]) -> None:
    course, sheets = handouts
    sheet = sheets[1]
    long = {language: sheet.texts["guesses"][language] * 6 for language in LANGUAGES}
    with pytest.raises(Stop, match="does not fit"):
        printed(machine, [replace(sheet, texts={**sheet.texts, "guesses": long})], "en", course, answers=False)


def test_the_tool_writes_the_files_of_one_lesson(
    machine: Press, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine  # without a Chromium this is skipped
    command = [sys.executable, "-m", "tools.handouts", "--lesson", "03", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    names = [f"{name}.{language}.pdf" for name in ("03_decision", "answers") for language in ("en", "zh")]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    alone = tmp_path / "alone"
    command = [sys.executable, "-m", "tools.handouts", "--lesson", "01", "--language", "en", "--out", str(alone)]
    assert subprocess.run(command, capture_output=True, text=True, timeout=120).returncode == 0
    assert sorted(path.name for path in alone.iterdir()) == ["01_traffic.en.pdf", "answers.en.pdf"]
    monkeypatch.setattr("sys.argv", ["handouts", "--lesson", "99", "--out", str(tmp_path)])
    with pytest.raises(Stop, match="no lesson 99"):
        main()


# -- what stands on them ----------------------------------------------------------------------------------------------


def blanks(html: str) -> list[str]:
    return re.findall(r'<span class="blank"[^>]*>(.*?)</span>', html)


@pytest.mark.parametrize("number", LESSONS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_handout_has_blanks_where_its_answers_have_figures(
    handouts: tuple[Course, list[Sheet]], number: str, language: Language
) -> None:
    course, sheets = handouts
    sheet = [sheet for sheet in sheets if sheet.number == number]
    empty, filled = (document(sheet, language, course, answers=answers) for answers in (False, True))
    assert len(blanks(filled)) >= 8
    assert set(blanks(empty)) == {"&nbsp;"} and len(blanks(empty)) == len(blanks(filled))
    known = figures(number)
    assert {unescape(blank) for blank in blanks(filled)} <= set(known.values())
    assert empty.count('<li class="right">') == 0
    assert filled.count('<li class="right">') == len(sheet[0].votes)
    assert (sheet[0].solution is None) or (
        '<pre class="solution">' in filled and "solution" not in empty.split("</style>")[1]
    )


def head_of_page_two(html: str) -> str:
    return re.sub("<[^>]+>", "", html.split('data-page="')[2].partition("<header>")[2].partition("</header>")[0])


@pytest.mark.parametrize("number", LESSONS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_answers_have_the_quizs_key_and_learners_have_not(
    handouts: tuple[Course, list[Sheet]], number: str, language: Language
) -> None:
    course, sheets = handouts
    sheet = [sheet for sheet in sheets if sheet.number == number]
    empty, filled = (document(sheet, language, course, answers=answers) for answers in (False, True))
    called = re.findall(
        r"^quiz = (\w+_quiz)\(\)", "\n".join(cell.source for cell in sheet[0].lesson.code), re.MULTILINE
    )
    name = "课末测验：" if language == "zh" else "quiz: "
    found = re.search(rf"{name}([\d、, ]+) · ", head_of_page_two(filled))
    assert (found is None) == (called == []) == (number == "00")
    assert name not in empty
    if found:
        quiz = getattr(lessons_lib, called[0])()
        answers = [int(digit) for digit in re.findall(r"\d", found[1])]
        assert len(answers) == len(quiz.questions)
        for radio, answer in zip(quiz._radios, answers, strict=True):
            radio.value = answer - 1
        assert quiz.score == len(answers)


def test_an_exercise_for_one_number_has_it_behind_its_working(handouts: tuple[Course, list[Sheet]]) -> None:
    course, sheets = handouts
    last = {}
    for sheet in sheets:
        html = document([sheet], "en", course, answers=True)
        working = re.findall(r'<pre class="solution">(.*?)</pre>', html, re.DOTALL)
        last[sheet.number] = unescape("\n".join(working)).rpartition("\n")[2]
        assert "# 160" not in document([sheet], "en", course, answers=False)
    assert last["01"] == "saved_mib = (apart - fused) * 32  # 160"
    assert last["03"] == "calls = 2 * 48 // 6  # 16"
    assert not any(re.search(r"# \d+$", last[number]) for number in ("02", "04", "05"))  # functions


def front_and_back(handouts: tuple[Course, list[Sheet]], number: str, language: Language) -> tuple[str, str]:
    """The HTML of the two pages that a learner gets."""
    course, sheets = handouts
    html = document([sheet for sheet in sheets if sheet.number == number], language, course, answers=False)
    _, front, back = html.split('<section class="page"')
    return front, back


@pytest.mark.parametrize("number", LESSONS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_answers_a_guess_stands_on_the_back(
    handouts: tuple[Course, list[Sheet]], number: str, language: Language
) -> None:
    front, back = front_and_back(handouts, number, language)
    parts = [re.findall(r'<section class="part(?: grows)? (\w+)"', page) for page in (front, back)]
    assert parts[0] == ["guess", "picture", "notes"]
    assert parts[1] == (["numbers", "terms"] if number == "00" else ["numbers", "check", "exercise", "takeaway"])
    assert 'class="formula"' not in front


@pytest.mark.parametrize("number", LESSONS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_picture_has_neither_a_votes_answer_nor_a_guesss(
    handouts: tuple[Course, list[Sheet]], number: str, language: Language
) -> None:
    front, _ = front_and_back(handouts, number, language)
    drawn, below = front.split('<div class="caption">')
    shown = " | ".join([*re.findall(r"<text[^>]*>([^<]*)</text>", drawn), below])
    sheet = next(sheet for sheet in handouts[1] if sheet.number == number)
    known = figures(number)
    answers = [
        f"{known[name]} {unit}"
        for name, unit in re.findall(r"\[\[(\w+)\]\] ([KM]iB|[µm]s)", sheet.texts["guesses"]["en"])
    ]
    outcomes = [known[name] for name in ("half_known", "one_failed") if number == "03"]
    votes = [
        str(label)
        for name in sheet.votes
        for label, value in getattr(lessons_lib, name)().options
        if value == right_choice(name) and not str(label).isdigit()
    ]
    assert number == "03" or answers or votes
    for words in (*answers, *outcomes, *votes):
        assert not re.search(rf"(?<![\d.,]){re.escape(words)}", shown), words
    assert not re.search(r"\d\)? × \d[^|]*=", shown)  # nor a formula with its numbers


@pytest.mark.parametrize("number", [number for number in LESSONS if number != "05"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_pictures_missing_figures_are_blanks_that_the_answers_fill(number: str, language: Language) -> None:
    lessons_lib.use_language(language)
    empty, filled = (
        re.findall(r"<text[^>]*>([^<]*)</text>", picture(number, answers=answers)) for answers in (False, True)
    )
    assert any("____" in words for words in empty)
    assert not any("____" in words for words in filled)
    assert 'aria-label=""' in picture(number, answers=False)


def test_a_picture_whose_figures_moved_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = replace(pictures._PICTURES["02"], blanks=((732, 55),))
    monkeypatch.setitem(pictures._PICTURES, "02", moved)
    with pytest.raises(Stop, match=r"lesson 02 has no words at \[\(732, 55\)\]"):
        picture("02", answers=False)


@pytest.mark.parametrize("number", LESSONS)
def test_both_languages_ask_for_the_same_figures(handouts: tuple[Course, list[Sheet]], number: str) -> None:
    sheet = next(sheet for sheet in handouts[1] if sheet.number == number)
    for name, text in sheet.texts.items():
        zh, en = (re.findall(r"\[\[\w+\]\]|\(\(\w+\)\)", text[language]) for language in LANGUAGES)
        assert zh == en, name


# The worked cases of the course, from arithmetic done elsewhere.
WORKED = {
    "00": {"fp16": "32", "t4": "105", "warps": "8"},
    "01": {
        "launches_4": "4",
        "boundaries_2": "1",
        "between_4": "384",
        "between_2": "128",
        "between_1": "0",
        "total_4": "512",
        "total_1": "128",
        "side_4": "576",
        "side_2": "320",
        "side_1": "192",
        "ceiling_side": "3",
        "fan_apart": "384",
        "fan_all": "192",
        "fan_fg": "320",
        "fan_twice": "256",
        "cut_bytes": "40",
        "three_1024": "176",
        "one_1024": "48",
        "bytes_1024": "3.67",
        "time_1024": "1.61 – 1.78",
    },
    "02": {
        "avoided_32": "64",
        "avoided_128": "0",
        "retiled": "256",
        "read_1": "0",
        "produced_1": "64",
        "naive": "512",
        "resident": "128",
        "attention": "49",
        "attention_64": "16.5",
        "attention_128": "8.5",
        "shared_128_256": "96",
        "occupancy_24": "67%",
        "gemm_64_64": "4,128",
        "gemm_128_256": "1,568",
    },
    "03": {
        "weight_even": "8",
        "weight_gains": "9",
        "activation_net": "−8",
        "saved_us": "86",
        "rounding_bit_equal": "no",
    },
    "04": {
        "apart": "352",
        "fused": "128",
        "saved": "224",
        "pair_saved": "96",
        "eager_mib": "1,042",
        "best_mib": "698",
    },
    "05": {"total_4": "576", "total_2": "320", "total_1": "192", "masked": "240", "tiny_4": "20"},
}


@pytest.mark.parametrize("number", LESSONS)
def test_the_figures_are_those_of_the_worked_cases(number: str) -> None:
    lessons_lib.use_language("en")
    found = figures(number)
    assert {name: found[name] for name in WORKED[number]} == WORKED[number]


def test_the_right_choices_are_among_those_offered(handouts: tuple[Course, list[Sheet]]) -> None:
    lessons_lib.use_language("en")
    right = {}
    for name in (name for sheet in handouts[1] for name in sheet.votes):
        chosen = [str(label) for label, value in getattr(lessons_lib, name)().options if value == right_choice(name)]
        right[name] = chosen
    assert right["traffic_vote"] == ["384 MiB"] and right["reuse_vote"] == ["64 KiB"]
    assert right["graph_vote"] == ["224 MiB"] and right["compiler_vote"] == ["4"]
    assert right["kernel_vote"] == ["3×"] and right["losing_vote"] == ["slower"]
    assert all(len(chosen) == 1 for chosen in right.values())


def test_the_graph_on_paper_is_the_lessons_own(handouts: tuple[Course, list[Sheet]]) -> None:
    lesson = next(lesson for lesson in handouts[0].lessons if lesson.name.startswith("04"))
    names: dict[str, object] = {}
    exec(next(cell.source for cell in lesson.code if cell.id == "hand-graph"), names)
    assert names["graph"] == gated_residual()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[between_6_3]]", "[[between_6_9]]", r"values\.py has no between_6_9"),
        ('exercise = "exercise-2"', 'exercise = "exercise-9"', "no cell 'exercise-9'"),
        ("guesses.en = ", "guesses.fr = ", "guesses: needs words in zh and in en"),
        ('["05"]', '["06"]', r"differ in \['05', '06'\]"),
    ],
)
def test_a_fault_of_the_pages_is_named(
    handouts: tuple[Course, list[Sheet]], tmp_path: Path, old: str, new: str, said: str
) -> None:
    course, _ = handouts
    text = PAGES.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "pages.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(Stop, match=said):
        sheets = read_sheets(course, tmp_path / "pages.toml")
        document(sheets, "zh", course, answers=False)
