import json
from pathlib import Path

import pytest

from tools import lessons
from tools.say import Stop

TRAFFIC = Path("01_traffic.ipynb")


def book(words):
    """A small notebook: prose, a cell whose output stays, and one that answers a question asked before."""
    code = {"cell_type": "code", "source": "1 + 1", "execution_count": 1, "outputs": [{"output_type": "stream"}]}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": words},
        {**code, "metadata": {}},
        {**code, "metadata": {"tags": ["answer"]}},
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def copied(words):
    return lessons.for_learner(book(words))


@pytest.fixture
def course(tmp_path):
    """An edition with two lessons, a data file and what must not be copied; and where the learner works."""
    source, target = tmp_path / "notebooks" / "en", tmp_path / "work" / "en"
    names = ("00_start.ipynb", "01_traffic.ipynb", "data/sizes.csv", ".ipynb_checkpoints/old.ipynb", ".hidden")
    for name in (*names, "fusion-progress.json", "fusion-results-ada.json"):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(book(name) if name.endswith(".ipynb") else f"course: {name}")
    return source, target


def copy_all(source, target):
    names = lessons.missing(source, target)
    lessons.copy(names, source, target)
    return names


def test_first_time_copies_lessons_and_data_and_nothing_hidden_or_somebodys_own(course):
    source, target = course
    copy_all(source, target)
    visible = sorted(p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file())
    assert visible == [".lessons.json", "00_start.ipynb", "01_traffic.ipynb", "data/sizes.csv"]
    assert (target / TRAFFIC).read_text() == copied("01_traffic.ipynb")


def test_second_time_overwrites_nothing_and_adds_what_is_new(course):
    source, target = course
    copy_all(source, target)
    (target / TRAFFIC).write_text("the learner's answers")
    (target / "data" / "sizes.csv").write_text("the learner's data")
    (source / TRAFFIC).write_text(book("second version"))
    (source / "02_reuse.ipynb").write_text(book("a new lesson"))
    assert copy_all(source, target) == [Path("02_reuse.ipynb")]
    assert (target / TRAFFIC).read_text() == "the learner's answers"
    assert (target / "data" / "sizes.csv").read_text() == "the learner's data"


def test_a_file_of_the_learners_own_with_a_lessons_name_is_kept(course):
    source, target = course
    target.mkdir(parents=True)
    (target / TRAFFIC).write_text("mine")
    copy_all(source, target)
    assert (target / TRAFFIC).read_text() == "mine"
    assert lessons.outdated(source, target) == []


def test_a_dangling_link_counts_as_there(course):
    source, target = course
    target.mkdir(parents=True)
    (target / TRAFFIC).symlink_to("nowhere")
    assert TRAFFIC not in copy_all(source, target)


def test_a_newer_lesson_is_named_until_a_fresh_copy_is_taken(course):
    source, target = course
    copy_all(source, target)
    (target / TRAFFIC).write_text("the learner's answers")
    assert lessons.outdated(source, target) == []
    (source / TRAFFIC).write_text(book("second version"))
    assert lessons.outdated(source, target) == [TRAFFIC]
    lessons.fresh_copy(TRAFFIC, source, target)
    assert lessons.outdated(source, target) == []


def test_fresh_copies_lie_beside_and_never_overwrite(course):
    source, target = course
    copy_all(source, target)
    (target / TRAFFIC).write_text("the learner's answers")
    first = lessons.fresh_copy(TRAFFIC, source, target)
    first.write_text("the learner's second try")
    second = lessons.fresh_copy(TRAFFIC, source, target)
    assert (first.name, second.name) == ("01_traffic.fresh-1.ipynb", "01_traffic.fresh-2.ipynb")
    assert (target / TRAFFIC).read_text() == "the learner's answers"
    assert first.read_text() == "the learner's second try"
    assert second.read_text() == copied("01_traffic.ipynb")


def test_an_interrupted_copy_is_made_again(course, monkeypatch):
    source, target = course

    def cut_short(source, part):
        Path(part).write_text("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(lessons, "_write_part", cut_short)
        copy_all(source, target)
    assert not list(target.glob("*.ipynb"))
    copy_all(source, target)
    assert (target / TRAFFIC).read_text() == copied("01_traffic.ipynb")


def test_a_damaged_record_hinders_nobody(course):
    source, target = course
    copy_all(source, target)
    (target / ".lessons.json").write_text("{")
    assert lessons.outdated(source, target) == []
    assert copy_all(source, target) == []


@pytest.mark.parametrize("asked", ["1", "01", "01_traffic", "01_traffic.ipynb"])
def test_a_lesson_is_found_by_number_or_name(course, asked):
    assert lessons.find(asked, course[0]) == TRAFFIC


@pytest.mark.parametrize("asked", ["", "09", "9"])
def test_a_lesson_that_is_not_one_is_refused_with_the_list(course, asked):
    with pytest.raises(Stop) as stop:
        lessons.find(asked, course[0])
    assert "00, 01" in stop.value.en and "00, 01" in stop.value.zh


def test_a_lessons_number_finds_it_again(course):
    assert lessons.find(lessons.number(TRAFFIC), course[0]) == TRAFFIC


def test_a_learner_gets_no_answer_before_the_guess():
    before, after = json.loads(book("x")), json.loads(lessons.for_learner(book("x")))
    assert after["cells"][:2] == before["cells"][:2]
    answer = after["cells"][2]
    assert (answer["outputs"], answer["execution_count"]) == ([], None)
    assert answer["source"] == "1 + 1"


def test_what_is_handed_out_at_once_is_what_is_copied_one_by_one(course):
    source, target = course
    copy_all(source, target)
    copies = {p.relative_to(target): p.read_bytes() for p in target.rglob("*") if p.is_file()}
    assert lessons.learner_files(source) == {n: data for n, data in copies.items() if n.name != ".lessons.json"}


def test_an_edition_that_was_not_built_is_said_so(tmp_path):
    with pytest.raises(Stop, match="make notebooks"):
        lessons.learner_files(tmp_path)
