"""The schedules add up, from the lessons' own minutes, and a check fails as soon as they do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from notebooks.build.course import read_course
from notebooks.build.read import LANGUAGES
from tools.project import ROOT
from tools.schedule.__main__ import main
from tools.schedule.fit import expanded, fit_faults, total
from tools.schedule.plan import Block, read_plan
from tools.schedule.sections import course_sections

pytestmark = pytest.mark.once
Change = Callable[[str, str, str], None]

COURSE, _ = read_course(ROOT)
PLAN = read_plan(ROOT)
SECTIONS = course_sections(COURSE)
SCHEDULES = {schedule.name: schedule for schedule in PLAN.schedules}
BLOCKS = [(schedule.name, block) for schedule in PLAN.schedules for block in schedule.blocks]
LENGTHS = {"lecture-45": 45, "workshop-90": 90, "half-day": 210}
WORKSHOP = [10, 20, 15, 10, 20, 10, 5]
_ROW = re.compile(r"^\| (\d+:\d\d) \| (.+?) \|.*?\| (\d+) \|$", re.MULTILINE)
_BLOCK = re.compile(r"^## (\d+:\d\d)–(\d+:\d\d) ", re.MULTILINE)


def minutes(time: str) -> int:
    hours, rest = time.split(":")
    return 60 * int(hours) + int(rest)


def test_the_schedules_in_the_repository_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--check", "--root", str(ROOT)])
    assert code == 0, capsys.readouterr()


def test_every_section_is_in_exactly_one_lesson_and_their_minutes_are_its_length() -> None:
    for lesson in COURSE.lessons:
        own = [section for section in SECTIONS.values() if section.lesson == lesson.name]
        assert total(own) == lesson.minutes
        code = [cell.id for cell in lesson.code if cell.id != "bootstrap" and "solution" not in cell.tags]
        assert [cell.id for section in own for cell in section.code] == code


@pytest.mark.parametrize("name", LENGTHS)
def test_a_schedule_takes_as_long_as_it_says(name: str) -> None:
    assert SCHEDULES[name].minutes == LENGTHS[name]
    assert sum(block.minutes for block in SCHEDULES[name].blocks) == LENGTHS[name]


@pytest.mark.parametrize("block", [block for _, block in BLOCKS], ids=[f"{n}-{b.title['en']}" for n, b in BLOCKS])
def test_a_block_is_its_sections_and_a_stated_buffer(block: Block) -> None:
    found = expanded(block.sections, SECTIONS)
    assert len(found) >= len(block.sections)
    assert sum(section.minutes for section in found) + block.buffer == block.minutes
    assert not block.buffer or (block.reserve["zh"] and block.reserve["en"])


def test_the_workshop_has_the_blocks_of_the_course_plan() -> None:
    blocks = SCHEDULES["workshop-90"].blocks
    assert [block.minutes for block in blocks] == WORKSHOP
    lessons = [{key[:2] for key in block.sections} for block in blocks]
    assert lessons == [{"01"}, {"01"}, {"02"}, set(), {"04"}, {"03"}, {"01", "02"}]
    extras = SCHEDULES["workshop-90"].extras
    assert {key[:2] for extra in extras for key in extra.sections} == {"05"}
    catch_up, demo = blocks[3], extras[1]
    assert total(expanded(demo.sections, SECTIONS)) == catch_up.minutes


def test_half_a_day_is_the_whole_course_once() -> None:
    taken = [s.key for block in SCHEDULES["half-day"].blocks for s in expanded(block.sections, SECTIONS)]
    assert taken == list(SECTIONS)


def test_no_laptop_is_needed_for_anything_in_the_lecture() -> None:
    assert {block.leads for block in SCHEDULES["lecture-45"].blocks} <= {"teacher", "both"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", LENGTHS)
def test_the_clock_on_a_page_runs_from_zero_without_a_gap(name: str, language: str) -> None:
    text = (ROOT / "teaching" / language / f"{name}.md").read_text(encoding="utf-8")
    spans = [(minutes(start), minutes(end)) for start, end in _BLOCK.findall(text)]
    assert spans[0][0] == 0
    assert spans[-1][1] == LENGTHS[name]
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]
    for part, (start, end) in zip(_BLOCK.split(text)[3::3], spans, strict=True):
        rows = _ROW.findall(part.split("\n## ")[0])
        assert not rows or start + sum(int(length) for _, _, length in rows) == end
        now = start
        for time, _, length in rows:
            assert minutes(time) == now
            now += int(length)


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_page_names_every_section_that_it_takes(language: str) -> None:
    for schedule in PLAN.schedules:
        text = (ROOT / "teaching" / language / f"{schedule.name}.md").read_text(encoding="utf-8")
        for block in schedule.blocks:
            for section in expanded(block.sections, SECTIONS):
                assert f"`{section.key}`" in text
                assert section.titles[language] in text.replace("\\|", "|")  # type: ignore[index]


def test_a_changed_minute_fails_the_check_and_stops_the_writing(
    copied: Path, change: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (copied / "teaching/en/workshop-90.md").read_bytes()
    change("notebooks/source/01_traffic.py", r'(id="branches-(?:zh|en)".*) minutes=\d+', r"\1 minutes=9")
    assert main(["--check", "--root", str(copied)]) == 1
    said = capsys.readouterr().err
    assert "workshop-90, block 2" in said
    assert "half-day, block 2" in said
    assert "lecture-45" not in said
    assert main(["--root", str(copied)]) == 1
    assert (copied / "teaching/en/workshop-90.md").read_bytes() == before


def test_a_buffer_that_follows_makes_the_block_fit_again_and_the_pages_stale(
    copied: Path, change: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    change("notebooks/source/04_your_model.py", r'(id="own-(?:zh|en)".*) minutes=(\d+)', r"\1 minutes=\g<2>.5")
    assert main(["--check", "--root", str(copied)]) == 1
    change("notebooks/source/04_your_model.py", r'(id="own-(?:zh|en)".*) minutes=2\.5', r"\1 minutes=11")
    assert main(["--check", "--root", str(copied)]) == 1
    assert "set buffer to 0" in capsys.readouterr().err
    change("teaching/schedules.toml", r'(sections = \["04/\*"\]\nbuffer = )9', r"\g<1>0")
    assert main(["--check", "--root", str(copied)]) == 1
    assert "teaching/en/half-day.md: stale" in capsys.readouterr().out
    assert main(["--root", str(copied)]) == 0
    assert main(["--check", "--root", str(copied)]) == 0


def test_a_renamed_cell_fails_the_check(copied: Path, change: Change, capsys: pytest.CaptureFixture[str]) -> None:
    change("notebooks/source/02_reuse.py", r'id="rows-(zh|en)"', r'id="reductions-\1"')
    assert main(["--check", "--root", str(copied)]) == 1
    assert "no section 02/rows" in capsys.readouterr().err


def test_a_new_heading_makes_the_pages_stale(
    copied: Path, change: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    change("notebooks/source/02_reuse.py", r"^# ## Does a reduction end fusion\?$", "# ## What about reductions?")
    assert main(["--check", "--root", str(copied)]) == 1
    assert set(capsys.readouterr().out.split("\n")[:2]) == {
        f"teaching/en/{name}.md: stale, run python -m tools.schedule" for name in ("workshop-90", "half-day")
    }


@pytest.mark.parametrize(
    ("pattern", "by", "said"),
    [
        (r'prepared = \["04/hand", "04/capture"\]', "", "uses GraphCanvas, which 04/hand defines"),
        (
            r'sections = \["01/title", "01/guess-first", "01/formula"\]',
            'sections = ["01/branches", "01/title"]',
            "uses MIB",
        ),
        (
            r'skip = \["00/terms", "00/kinds"\]',
            'skip = ["00/terms"]\nearly.xx = "x"',
            "early: needs words in zh and in en",
        ),
        (r'skip = \["02/gemm", "02/exercise-2"\]', 'skip = ["02/blocks"]', "when late: 02/gemm uses GPUS"),
        (r'skip = \["02/rows"\]', 'skip = ["02/lab-intro"]', "skips 02/lab-intro, which it does not take"),
        (r'ahead = \["02/blocks", "02/gemm"\]', 'ahead = ["02/gemm"]', "02/gemm uses GPUS"),
        (r'"01/takeaway", "03/takeaway"', '"01/takeaway", "01/title"', "takes 01/title 2 times"),
        (r'sections = \["00/\*"\]', 'sections = ["00/title"]', "leaves out 00/terms"),
        (r"^minutes = 210$", "minutes = 200", "its blocks take 210 min, it states 200"),
        (r"^\[needs.03\]$", "[needs.07]", "[needs] and the lessons differ in 03"),
        (r'^reserve.en = "counting hands"$', "", "needs words in zh and in en"),
        (r'^leads = "break"$', 'leads = "pause"', "'pause' is no Leads"),
        (r"^buffer = 12$", "bufer = 12", "unknown key 'bufer'"),
        (r'^name = "half-day"$', "", "name"),
    ],
)
def test_a_fault_in_the_data_is_named(
    copied: Path, change: Change, capsys: pytest.CaptureFixture[str], pattern: str, by: str, said: str
) -> None:
    change("teaching/schedules.toml", pattern, by)
    assert main(["--check", "--root", str(copied)]) == 1
    assert said in capsys.readouterr().err


def test_a_buffer_must_say_what_it_is_for() -> None:
    schedule = SCHEDULES["lecture-45"]
    silent = Block(45, {"zh": "空", "en": "empty"}, buffer=45, leads="break")
    bare = type(PLAN)((type(schedule)("x", 45, schedule.title, schedule.opening, (silent,)),), PLAN.needs)
    assert any("no word on what it is for" in fault for fault in fit_faults(bare, COURSE))
