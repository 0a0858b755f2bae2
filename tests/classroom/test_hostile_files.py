"""Files that are broken, hostile or double: reported with name and reason, and no harm to the others."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from made_up import learner, write

from lessons_lib import use_language
from lessons_lib.classroom import reading
from lessons_lib.classroom.course import CourseWords
from lessons_lib.classroom.page import file_notes
from lessons_lib.classroom.reading import MOST_BYTES, MOST_FILES, clean_file_name, read_folder
from lessons_lib.classroom.records import ExerciseEntry, GuessEntry, PuzzleEntry, QuizEntry, VoteEntry
from lessons_lib.classroom.report import class_report, main
from lessons_lib.classroom.roster import roster_of
from lessons_lib.classroom.summary import MOST_UNKNOWN

pytestmark = pytest.mark.once

EMPTY: dict[str, Any] = {"format": "fusion-results", "version": 1, "name": "n", "sections": {}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one good file."""
    made = tmp_path / "class"
    made.mkdir()
    write(made / "good.json", learner(0))
    return made


def _problems(folder: Path) -> dict[str, str]:
    """Reasons in English by file; the good file counts in any case."""
    found = read_folder(folder)
    assert [one.file for one in found.learners] == ["good.json"]
    for problem in found.problems:
        assert problem.reason.zh
        assert problem.reason.zh != problem.reason.en
    return {problem.file: problem.reason.en for problem in found.problems}


def _with(**changes: Any) -> bytes:
    return json.dumps({**EMPTY, **changes}).encode()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty"),
        (b" \n\t ", "empty"),
        (b"\xef\xbb\xbf", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"not json", "not valid JSON"),
        (b"\x00" * 100, "not valid JSON"),
        (b'{"name": "\xff\xfe"}', "not UTF-8"),
        (json.dumps(EMPTY).encode("utf-16"), "not UTF-8"),
        (b"PK\x03\x04" + b"\x00" * 50, "archive"),
        (b"\x1f\x8b\x08" + b"\x00" * 50, "archive"),
        (b"[]", "export_progress"),
        (b"3", "export_progress"),
        (b"null", "export_progress"),
        (b'"fusion-results"', "export_progress"),
        (_with(format="other"), "export_progress"),
        (_with(format=["fusion-results"]), "export_progress"),
        (_with(version=True), "version"),
        (_with(version="1"), "version"),
        (_with(version=0), "version"),
        (_with(sections=[1]), "sections"),
        (_with(sections=None), "sections"),
        (_with(name=["a"]), "name"),
        (_with(name=None), "name"),
        (b'{"format": "fusion-results", "version": NaN, "sections": {}}', "NaN"),
        (b'{"format": "fusion-results", "version": 1, "sections": {"a": [Infinity]}}', "Infinity"),
        (b'{"format": "fusion-results", "version": 1, "sections": {"a": -Infinity}}', "-Infinity"),
        (b'{"format": "fusion-results", "version": 1, "sections": {"a": 1e999}}', "too large to store"),
        (b'{"format": "fusion-results", "version": ' + b"9" * 100_000 + b"}", "100000 digits"),
        (b'{"a":' * 150_000 + b"1" + b"}" * 150_000, "nested too deeply"),
        (b"[" * 500_000, "nested too deeply"),
    ],
    ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else value,
)
def test_a_file_that_makes_no_sense_is_reported_and_skipped(folder: Path, raw: bytes, reason: str) -> None:
    (folder / "bad.json").write_bytes(raw)
    assert reason in _problems(folder)["bad.json"]


def test_a_byte_order_mark_does_no_harm(folder: Path) -> None:
    (folder / "good.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(learner(1)).encode())
    assert _problems(folder) == {}


def test_a_large_file_is_measured_and_never_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "large.json").open("wb") as file:
        file.truncate(100 * 2**20)
    opened: list[str] = []
    really_open = os.open

    def noting(path: Any, *rest: Any, **more: Any) -> int:
        opened.append(Path(path).name)
        return really_open(path, *rest, **more)

    monkeypatch.setattr(os, "open", noting)
    assert "too large: 100 MiB, at most 1 MiB" in _problems(folder)["large.json"]
    assert opened == ["good.json"]


def test_a_file_that_grows_while_it_is_read_is_cut_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "grows.json").write_bytes(b" " * (MOST_BYTES + 10))
    monkeypatch.setattr(reading, "_size_of_regular", lambda folder, name: 10)
    assert "too large" in _problems(folder)["grows.json"]


def test_large_files_crowd_nobody_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("aa.json", "bb.json", "cc.json"):
        (folder / name).write_bytes(_with(padding="x" * 200_000))
    monkeypatch.setattr(reading, "MOST_BYTES_IN_ALL", 300_000)
    found = read_folder(folder)
    assert [one.file for one in found.learners] == ["aa.json", "good.json"]
    assert ["in all" in problem.reason.en for problem in found.problems] == [True, True]


def test_too_many_files_are_not_all_looked_at(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 3):
        (tmp_path / f"{number:05}.json").touch()
    found = read_folder(tmp_path)
    assert len(found.problems) == MOST_FILES + 1
    assert found.problems[-1].reason.en.startswith("3 more were not looked at")


def test_links_folders_pipes_and_sockets_are_not_opened(folder: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside.json", learner(1))
    (folder / "link.json").symlink_to(outside)
    (folder / "dangling.json").symlink_to("/nowhere/at/all")
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "endless.json").symlink_to("/dev/zero")
    (folder / "folder.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(folder)  # a socket's path has to be short
        try:
            made.bind("socket.json")
        finally:
            os.chdir(here)
        problems = _problems(folder)
    for name in ("link.json", "dangling.json", "loop.json", "endless.json"):
        assert "a link, which is not followed" in problems[name]
    assert "a folder, not looked into" in problems["folder.json"]
    assert "no ordinary file" in problems["pipe.json"]
    assert "no ordinary file" in problems["socket.json"]


@pytest.mark.parametrize("made", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "link"])
def test_a_file_swapped_before_it_is_opened_stops_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[Path], None]
) -> None:
    made(folder / "swapped.json")
    monkeypatch.setattr(reading, "_size_of_regular", lambda folder, name: 10)
    reason = _problems(folder)["swapped.json"]
    assert "turned into something else" in reason or "cannot be read" in reason


def test_other_kinds_of_files_are_named_and_archives_stay_closed(folder: Path) -> None:
    (folder / "all.zip").write_bytes(b"PK\x03\x04")
    (folder / "notes.txt").write_text("hello")
    (folder / "old-report.html").write_text("<p>")
    (folder / ".hidden.json").write_text("{")
    problems = _problems(folder)
    assert set(problems) == {"all.zip", "notes.txt"}
    assert "unpack archives first" in problems["all.zip"]


def test_a_file_without_permission_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "locked.json", learner(1))
    really_open = os.open

    def refusing(path: Any, *rest: Any, **more: Any) -> int:
        if Path(path).name == "locked.json":
            raise PermissionError
        return really_open(path, *rest, **more)

    monkeypatch.setattr(os, "open", refusing)
    assert _problems(folder) == {"locked.json": "cannot be read (PermissionError)"}


def test_names_of_files_are_shown_without_control_characters(folder: Path) -> None:
    names = [
        "a\x1b[31mred.json",
        "b\nline.json",
        "c\u202egnp.json",
        "x\\..\\..\\up.json",
        "é" * 100 + ".json",
        "%2e%2e.json",
    ]
    for name in names:
        (folder / name).write_text("{")
    (Path(os.fsdecode(os.fsencode(folder) + b"/d\xff\xfe.json"))).write_text("{")
    shown = set(_problems(folder))
    assert len(shown) == len(names) + 1
    assert all(name.isprintable() and len(name) <= 80 for name in shown)
    assert {"a\\x1b[31mred.json", "b\\nline.json", "c\\u202egnp.json", "d\\udcff\\udcfe.json"} <= shown
    assert clean_file_name("plain.json") == "plain.json"


# -- inside a file ----------------------------------------------------------------------------------------------


def _read(folder: Path, sections: dict[str, Any], name: str = "n") -> reading.Learner:
    write(folder / "one.json", {**EMPTY, "name": name, "sections": sections})
    (found,) = (one for one in read_folder(folder).learners if one.file == "one.json")
    return found


@pytest.mark.parametrize(
    ("section", "entry"),
    [
        ("votes", 3),
        ("votes", "01"),
        ("votes", {}),
        ("votes", {"choice": "2"}),
        ("votes", {"choice": True}),
        ("votes", {"choice": 0}),
        ("votes", {"choice": 10**30}),
        ("votes", {"choice": 1.0}),
        ("votes", {"choice": 1, "label": ["x"]}),
        ("votes", {"choice": 1, "lesson": 1}),
        ("votes", {"choice": 1, "value": {"a": 1}}),
        ("votes", {"choice": 1, "changes": -1}),
        ("votes", {"choice": 1, "changes": "many"}),
        ("guesses", {"guess": "4", "number": 4, "unit": ["MiB"]}),
        ("quizzes", {"answers": [1], "first": "1"}),
        ("quizzes", {"answers": [1], "first": [1] * 21}),
        ("guesses", {"guess": None}),
        ("guesses", {"guess": [1]}),
        ("guesses", {"guess": "4", "number": True}),
        ("exercises", {"status": "done"}),
        ("exercises", {"status": ["right"]}),
        ("exercises", {"status": "right", "tries": -1}),
        ("exercises", {"status": "wrong", "mistake": "0"}),
        ("exercises", {"status": "wrong", "mistakes": 3}),
        ("quizzes", {"answers": "123"}),
        ("quizzes", {"answers": [1, "2"]}),
        ("quizzes", {"answers": [1] * 1000}),
        ("quizzes", {"answers": [1, 2], "right": 3}),
        ("puzzles", "01"),
        ("puzzles", {"solved": 1}),
        ("puzzles", {"solved": True, "launches": 10**12}),
        ("puzzles", {"solved": True, "total_bytes": -1}),
    ],
    ids=repr,
)
def test_an_entry_that_makes_no_sense_is_left_out_and_the_rest_counts(folder: Path, section: str, entry: Any) -> None:
    good = {"choice": 2, "lesson": "01"}
    sections = {
        "votes": {"lab_vote": good},
        section: {"odd": entry, **({"lab_vote": good} if section == "votes" else {})},
    }
    found = _read(folder, sections)
    assert found.left_out == 1
    assert dict(found.votes).keys() == {"lab_vote"}
    (note,) = file_notes(roster_of([found]))
    assert "one.json" in note.en


@pytest.mark.parametrize("key", ["", " ", "<b>", "../../etc/passwd", "a" * 65, "x\ny", "\u202e", "9"])
def test_ids_that_are_none_are_left_out(folder: Path, key: str) -> None:
    assert _read(folder, {"votes": {key: {"choice": 1}}}).left_out == 1


def test_odd_lessons_and_days_are_blank_and_unknown_sections_pass_in_silence(folder: Path) -> None:
    entry = {"choice": 1, "lesson": "1; DROP", "day": "yesterday"}
    unknown = {
        "badges": {"x": {"lesson": "02"}, "y": 3},
        "more": [1, 2],
        "text": "hello",
        "votes": {"lab_vote": entry},
    }
    found = _read(folder, unknown)
    assert (found.votes["lab_vote"].lesson, found.votes["lab_vote"].day) == ("", "")
    assert (found.others, found.left_out) == ({"02"}, 0)


@pytest.mark.parametrize("number", [3, None, "", "ABCDEF0123456789", "a" * 17, ["0123456789abcdef"], "<script>"])
def test_an_odd_learner_s_number_counts_as_none(folder: Path, number: object) -> None:
    write(folder / "a.json", {**EMPTY, "learner": number})
    (found,) = (one for one in read_folder(folder).learners if one.file == "a.json")
    assert found.number == ""


def test_a_unit_or_a_number_beyond_all_bounds_stops_nothing(folder: Path) -> None:
    guess = {"guess": "9", "number": 10**299, "unit": "TiB"}
    keys = ("TrafficPanel", "GraphCanvas.swiglu_mlp", "GraphCanvas.x.y.z", "nobody.knows", "LayoutPanel.")
    odd = {"guess": "9 q", "number": 9, "unit": "q" * 50}
    sections = {"guesses": {**dict.fromkeys(keys, guess), "CompilePanel": odd}}
    write(folder / "a.json", {**EMPTY, "sections": sections})
    report = class_report(folder)
    assert not report.problems
    assert report.summary is not None
    assert {"nobody.knows", "GraphCanvas.x.y.z", "CompilePanel"} <= {one.key for one in report.summary.guesses}
    assert "nobody.knows" in report.html()


def test_sections_of_the_wrong_type_hold_nothing(folder: Path) -> None:
    found = _read(folder, {"votes": [1], "guesses": "x", "exercises": None, "quizzes": 3, "puzzles": True})
    assert list(found.entries()) == []


def test_a_learner_may_type_a_large_number(folder: Path) -> None:
    found = _read(folder, {"guesses": {"TrafficPanel": {"guess": "9" * 200, "number": 10**200, "measured": 4}}})
    assert found.guesses["TrafficPanel"].number == 10**200
    page = class_report(folder, CourseWords()).html()
    assert "TrafficPanel" in page


def test_a_section_with_a_thousand_entries_is_cut(folder: Path) -> None:
    found = _read(folder, {"votes": {f"v{number}": {"choice": 1} for number in range(1000)}})
    assert len(found.votes) == reading.MOST_ENTRIES
    assert len(re.findall(r'data-id="v\d+"', class_report(folder, CourseWords()).html())) == MOST_UNKNOWN


_SCRIPT = "<script>alert(1)</script>"
_IMAGE = "\"><img src=x onerror='alert(1)'>"


class _Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(
    "evil", [_SCRIPT, _IMAGE, "]]>--><svg onload=alert(1)>", "{format} {0} %s ${x}", "&lt;b&gt;"]
)
def test_scripts_in_names_labels_and_file_names_are_only_words(folder: Path, evil: str, language: str) -> None:
    use_language(language)
    vote = {"choice": 7, "label": evil, "value": evil, "lesson": "01", "day": "2026-01-01"}
    sections = {
        "votes": {"traffic_vote": vote, "new_vote": vote},
        "guesses": {"TrafficPanel": {"guess": evil, "number": 3, "measured": 3}},
    }
    for number in range(3):  # one name on files that do not continue each other: a note repeats it
        vote["choice"] = 7 + number
        write(folder / f"{number}{evil.replace('/', '|')}.json", {**EMPTY, "name": evil, "sections": sections})
    (folder / f"broken{evil.replace('/', '|')}.json").write_text("{")
    report = class_report(folder)
    page = _Tags(report.html())
    assert not page.tags & {"script", "img", "b"}
    said = "".join(page.words)
    assert said.count(evil) >= 4
    assert evil in report.plain()


def test_a_name_with_half_a_surrogate_or_control_characters_is_cleaned(folder: Path, tmp_path: Path) -> None:
    raw = json.dumps({**EMPTY, "name": "A\ud800\x1b[2J\u202eB\u0000\n" + "x" * 10_000})
    (folder / "odd.json").write_text(raw, encoding="ascii")
    (found,) = (one for one in read_folder(folder).learners if one.file == "odd.json")
    assert found.name == "A [2J B " + "x" * 72
    assert main([str(folder), "--out", str(tmp_path / "r.html")]) == 0


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_fields = st.sampled_from(
    [
        *("guess", "mistake"),
        *(
            one.name
            for kind in (VoteEntry, GuessEntry, ExerciseEntry, QuizEntry, PuzzleEntry)
            for one in fields(kind)
        ),
    ]
)
_entry = st.dictionaries(_fields, _json | st.sampled_from(["01", "right", 1, 2, [1, None], True]), max_size=6) | _json
_keys = st.sampled_from(
    ["traffic_vote", "lab_vote", "TrafficPanel", "check_total_bytes", "traffic_quiz", "gate", "new"]
)
_section = st.dictionaries(_keys | st.text(max_size=5), _entry, max_size=4) | _json
_sections = st.dictionaries(
    st.sampled_from(["votes", "guesses", "exercises", "quizzes", "puzzles", "other"]), _section, max_size=6
)


@settings(max_examples=60)
@given(contents=st.lists(st.tuples(st.sampled_from(["", "A", "B"]), _sections), min_size=1, max_size=4))
def test_whatever_the_entries_are_there_is_a_report(
    tmp_path_factory: pytest.TempPathFactory, contents: list[tuple[str, dict[str, Any]]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    for number, (name, sections) in enumerate(contents):
        raw = json.dumps({**EMPTY, "name": name, "sections": sections})
        (folder / f"{number}.json").write_text(raw, encoding="ascii")
    report = class_report(folder, CourseWords())
    assert len(report.roster.learners) + len(report.roster.replaced) == len(contents)
    assert report.html().encode("utf-8")
    assert report.plain()


@settings(max_examples=150)
@given(raw=st.binary(max_size=400) | st.text(max_size=400).map(lambda words: words.encode("utf-8", "surrogatepass")))
def test_whatever_the_bytes_are_the_file_is_reported(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "x.json").write_bytes(raw)
    assert len(read_folder(folder).problems) == 1


# -- who is who -------------------------------------------------------------------------------------------------


def _class_of(folder: Path, **files: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Names and files that count, of files written by name."""
    for name, data in files.items():
        write(folder / f"{name}.json", data)
    learners = roster_of(read_folder(folder).learners).learners
    return [one.name for one in learners], [one.file for one in learners]


def test_the_same_file_twice_counts_once(tmp_path: Path) -> None:
    assert _class_of(tmp_path, a=learner(3), b=learner(3), c=learner(4, "other")) == (
        ["王小明", "other"],
        ["a.json", "c.json"],
    )
    (note,) = file_notes(roster_of(read_folder(tmp_path).learners))
    assert note.en.startswith("b.json is of the same learner as a.json, with the same contents")


def _earlier(data: dict[str, Any]) -> dict[str, Any]:
    """The same learner's export of some days before: fewer entries, fewer tries, an open quiz."""
    old: dict[str, Any] = json.loads(json.dumps(data))
    sections = old["sections"]
    sections["puzzles"] = {"gate": {**sections["puzzles"]["gate"], "solved": False, "star": False}}
    del sections["exercises"]["check_fused_bytes"]
    tried = sections["exercises"]["check_total_bytes"]
    tried.update(status="wrong", tries=1, mistakes=[1], mistake=1)
    quiz = sections["quizzes"]["reuse_quiz"]
    quiz["answers"] = [quiz["answers"][0], None, None]
    return old


def test_of_two_exports_of_one_learner_the_later_counts_whatever_the_files_are_called(tmp_path: Path) -> None:
    now = learner(2)
    assert _class_of(tmp_path, b=now, z=_earlier(now)) == (["Ada"], ["b.json"])
    assert _class_of(tmp_path, a=_earlier(now)) == (["Ada"], ["b.json"])
    notes = file_notes(roster_of(read_folder(tmp_path).learners))
    assert [note.en.split(" ")[0] for note in notes] == ["a.json", "z.json"]
    assert all("earlier export of b.json" in note.en for note in notes)


def test_two_learners_of_one_name_are_both_kept_and_told_apart(tmp_path: Path) -> None:
    names, files = _class_of(tmp_path, a=learner(1, "Wei"), b=learner(2, " wei"), c=learner(3, "ＷＥＩ"))
    assert names == ["Wei · 1", "wei · 2", "WEI · 3"] or names == ["Wei · 1", "wei · 2", "ＷＥＩ · 3"]
    assert files == ["a.json", "b.json", "c.json"]
    (note,) = file_notes(roster_of(read_folder(tmp_path).learners))
    assert "a.json, b.json, c.json" in note.en


def test_a_namesake_with_fewer_entries_but_another_answer_is_another_person(tmp_path: Path) -> None:
    other = _earlier(learner(2))
    other["sections"]["votes"]["traffic_vote"]["choice"] = 4
    assert _class_of(tmp_path, a=learner(2), b=other)[0] == ["Ada · 1", "Ada · 2"]


def test_nameless_files_with_equal_contents_are_two_learners(tmp_path: Path) -> None:
    assert _class_of(tmp_path, a=learner(4), b=learner(4))[1] == ["a.json", "b.json"]


def test_hundreds_of_files_of_one_name_are_all_kept_but_equal_ones(tmp_path: Path) -> None:
    for number in range(120):
        data = learner(number % 30, "same")
        data["sections"]["guesses"]["TrafficPanel"]["number"] = number // 2
        data["sections"]["quizzes"] = {}
        write(tmp_path / f"{number:03}.json", data)
    roster = roster_of(read_folder(tmp_path).learners)
    assert len(roster.learners) == 120
    write(tmp_path / "again.json", json.loads((tmp_path / "007.json").read_text()))
    assert len(roster_of(read_folder(tmp_path).learners).learners) == 120


# -- the command ------------------------------------------------------------------------------------------------


def test_one_good_file_is_enough(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(30):
        (folder / f"bad{number}.json").write_text("{")
    assert main([str(folder), "--out", str(tmp_path / "r.html"), "--language", "en"]) == 0
    said = capsys.readouterr().out
    assert "Files skipped: 30" in said
    assert "bad0.json: not valid JSON" in said
    assert "and 10 more" in said
    assert (tmp_path / "r.html").read_text(encoding="utf-8").count("not valid JSON") == 30


@pytest.mark.parametrize("language", ["zh", "en"])
def test_no_good_file_means_no_report_and_status_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], language: str
) -> None:
    (tmp_path / "bad.json").write_text("{")
    out = tmp_path / "r.html"
    assert main([str(tmp_path), "--out", str(out), "--language", language]) == 1
    said = capsys.readouterr()
    assert not out.exists()
    assert not said.out
    assert "bad.json" in said.err
    assert "没有一个能用的结果文件" in said.err
    assert "Not one usable results file" in said.err


def test_a_folder_that_is_none_is_refused_in_both_languages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for given_path in (tmp_path / "nowhere", write(tmp_path / "file.json", learner(0)), "a\0b"):
        assert main([str(given_path)]) == 1
        said = capsys.readouterr().err
        assert "不是能读的文件夹" in said
        assert "no folder that can be read" in said
