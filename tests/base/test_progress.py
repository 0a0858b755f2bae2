"""The learner's progress file: kept, merged, never overwritten when it is broken, and never a reason to fail."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from lessons_lib.base import progress
from lessons_lib.base.progress import (
    FILE_NAME,
    VARIABLE,
    export_progress,
    has_progress_file,
    note_progress,
    note_step,
    noted,
    progress_notice,
    progress_of,
    progress_path,
    untold_notice,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LESSONS_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "_unsaved", {})
    monkeypatch.setattr(progress, "_notices", {})
    return tmp_path


def restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a new kernel knows: the file alone."""
    monkeypatch.setattr(progress, "_unsaved", {})
    monkeypatch.setattr(progress, "_notices", {})


def stored() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(Path(FILE_NAME).read_text(encoding="utf-8"))
    return data


def left_over(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {FILE_NAME}


# -- keeping --------------------------------------------------------------------------------------------------


def test_what_is_noted_outlives_the_kernel_and_leaves_one_file(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_progress("puzzles", "gate", {"solved": True, "moves": 3})
    note_progress("puzzles", "cut", {"solved": False})
    note_progress("votes", "首次", {"choice": "省一半"})
    restart(monkeypatch)
    assert progress_of("puzzles") == {"gate": {"solved": True, "moves": 3}, "cut": {"solved": False}}
    assert progress_of("votes") == {"首次": {"choice": "省一半"}}
    assert progress_of("exercises") == {}
    assert stored()["format"] == "fusion-progress" and stored()["version"] == 1
    assert "省一半" in Path(FILE_NAME).read_text(encoding="utf-8")
    assert left_over(own_folder) == set()
    assert progress_notice() is None


def test_a_later_entry_takes_the_place_of_an_earlier_one() -> None:
    note_progress("puzzles", "gate", {"solved": False, "hints": 2})
    note_progress("puzzles", "gate", {"solved": True})
    assert progress_of("puzzles") == {"gate": {"solved": True}}


def test_what_is_given_back_is_a_copy() -> None:
    entry = {"guesses": [1]}
    note_progress("votes", "a", entry)
    entry["guesses"].append(2)
    progress_of("votes")["a"]["guesses"].append(3)
    assert progress_of("votes") == {"a": {"guesses": [1]}}


def test_off_keeps_progress_in_memory_and_writes_nothing(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for word in ("off", "OFF", " off "):
        monkeypatch.setenv("LESSONS_PROGRESS", word)
        assert progress_path() is None
        note_progress("puzzles", word, {"solved": True})
    assert set(progress_of("puzzles")) == {"off", "OFF", " off "}
    progress_of("puzzles")["off"]["solved"] = False
    assert progress_of("puzzles")["off"] == {"solved": True}
    assert list(own_folder.iterdir()) == []
    assert progress_notice() is None


def test_the_variable_names_another_file(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(own_folder))
    monkeypatch.setenv("LESSONS_PROGRESS", "~/mine.json")
    note_progress("puzzles", "gate", {"solved": True})
    assert (own_folder / "mine.json").exists() and not Path(FILE_NAME).exists()
    monkeypatch.setenv("LESSONS_PROGRESS", "")
    assert progress_of("puzzles") == {}


def test_a_link_stays_a_link(own_folder: Path) -> None:
    (own_folder / "elsewhere").mkdir()
    Path(FILE_NAME).symlink_to(own_folder / "elsewhere" / "mine.json")
    note_progress("puzzles", "gate", {"solved": True})
    assert Path(FILE_NAME).is_symlink()
    assert (own_folder / "elsewhere" / "mine.json").exists()


def test_the_files_permissions_stay() -> None:
    note_progress("puzzles", "gate", {})
    Path(FILE_NAME).chmod(0o640)
    note_progress("puzzles", "cut", {})
    assert Path(FILE_NAME).stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("entry", [None, [1], "text", {"a": object()}, {"a": float("nan")}, {"a": "x" * 70_000}])
def test_an_entry_that_json_cannot_hold_is_refused_in_both_languages(entry: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)参数 entry.*entry is not valid"):
        note_progress("puzzles", "gate", entry)
    assert not Path(FILE_NAME).exists()


def test_an_entry_without_end_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    for entry in (endless, {"deep": deep}):
        with pytest.raises(ValueError, match="entry"):
            note_progress("puzzles", "gate", entry)


@pytest.mark.parametrize("section, key", [("", "a"), ("a", " "), (3, "a"), ("a", None)])
def test_blank_names_are_refused(section: Any, key: Any) -> None:
    with pytest.raises(ValueError):
        note_progress(section, key, {})


def test_half_a_surrogate_pair_is_kept_as_its_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    note_progress("votes", "\ud800", {"said": "\udfff"})
    restart(monkeypatch)
    assert progress_of("votes") == {"\ud800": {"said": "\udfff"}}


# -- files that make no sense ---------------------------------------------------------------------------------

HOSTILE = {
    "no JSON": b"{oops",
    "cut off": b'{"format": "fusion-progress", "version": 1, "sections": {"puz',
    "not UTF-8": b"\xff\xfe\x00",
    "a list": b"[]",
    "another format": b'{"format": "zoo-block/1", "version": 1}',
    "sections are a list": b'{"format": "fusion-progress", "version": 1, "sections": []}',
    "no version": b'{"format": "fusion-progress", "sections": {}}',
    "a version in words": b'{"format": "fusion-progress", "version": "1", "sections": {}}',
    "a number of 5000 digits": b'{"format": "fusion-progress", "version": 1, "x": ' + b"9" * 5000 + b"}",
    "deep": b'{"format": "fusion-progress", "version": 1, "x": ' + b"[" * 50 + b"]" * 50 + b"}",
    "very deep": b'{"format": "fusion-progress", "version": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "huge": b'{"format": "fusion-progress", "version": 1, "x": "' + b"x" * 2**23 + b'"}',
}


@pytest.mark.parametrize("contents", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("first", ["read", "write"])
def test_a_file_that_makes_no_sense_is_kept_aside_and_told(own_folder: Path, contents: bytes, first: str) -> None:
    Path(FILE_NAME).write_bytes(contents)
    if first == "read":
        assert progress_of("puzzles") == {}
    note_progress("puzzles", "gate", {"solved": True})
    assert (own_folder / "fusion-progress.broken-1.json").read_bytes() == contents
    assert progress_of("puzzles") == {"gate": {"solved": True}}
    notice = progress_notice()
    assert notice is not None
    assert "fusion-progress.broken-1.json" in notice.zh and "fusion-progress.broken-1.json" in notice.en
    assert left_over(own_folder) == {"fusion-progress.broken-1.json"}


def test_a_second_broken_file_does_not_overwrite_the_first(own_folder: Path) -> None:
    for number in (1, 2, 3):
        Path(FILE_NAME).write_text(f"broken {number}", encoding="utf-8")
        note_progress("puzzles", "gate", {"number": number})
    aside = [own_folder / f"fusion-progress.broken-{number}.json" for number in (1, 2, 3)]
    assert [path.read_text(encoding="utf-8") for path in aside] == ["broken 1", "broken 2", "broken 3"]


@pytest.mark.parametrize("contents", [b"", b"  \n"])
def test_an_empty_file_is_no_progress_and_not_broken(own_folder: Path, contents: bytes) -> None:
    Path(FILE_NAME).write_bytes(contents)
    note_progress("puzzles", "gate", {})
    assert progress_of("puzzles") == {"gate": {}}
    assert left_over(own_folder) == set()


def test_entries_of_the_wrong_type_are_passed_over_and_stay_in_the_file() -> None:
    sections = {"puzzles": {"gate": {"solved": True}, "cut": 3, "": {}, "kept": None}, "votes": [1], "own": {"a": {}}}
    data = {"format": "fusion-progress", "version": 1, "sections": sections, "extra": "kept"}
    Path(FILE_NAME).write_text(json.dumps(data), encoding="utf-8")
    assert progress_of("puzzles") == {"gate": {"solved": True}}
    assert progress_of("votes") == {}
    note_progress("puzzles", "long_row", {})
    after = stored()
    assert after["extra"] == "kept" and after["sections"]["own"] == {"a": {}}
    assert after["sections"]["puzzles"]["cut"] == 3


def test_a_newer_version_is_left_alone(own_folder: Path) -> None:
    contents = json.dumps({"format": "fusion-progress", "version": 99, "sections": {"puzzles": {"gate": {}}}})
    Path(FILE_NAME).write_text(contents, encoding="utf-8")
    note_progress("puzzles", "cut", {"solved": True})
    assert Path(FILE_NAME).read_text(encoding="utf-8") == contents
    assert progress_of("puzzles") == {"cut": {"solved": True}}  # in memory
    notice = progress_notice()
    assert notice is not None and "99" in notice.en and "99" in notice.zh
    assert left_over(own_folder) == set()


# -- places that cannot be written ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place", ["/proc/lessons/progress.json", "/dev/null/x.json", "/sys/mine.json", "not/there/mine.json"]
)
def test_an_unwritable_folder_means_memory_and_a_notice(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", place)
    note_progress("puzzles", "gate", {"solved": True})
    note_progress("puzzles", "cut", {"solved": True})
    assert set(progress_of("puzzles")) == {"gate", "cut"}
    notice = progress_notice()
    assert notice is not None and "内核关闭" in notice.zh and "kernel stops" in notice.en
    assert place not in notice.en  # no path of this machine in a lesson


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/full", "."])
def test_what_is_no_file_is_never_touched(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", place)
    note_progress("puzzles", "gate", {"solved": True})
    assert progress_of("puzzles") == {"gate": {"solved": True}}
    assert Path(place).exists() and not Path(place).is_file()
    assert progress_notice() is not None
    assert not list(Path("/dev").glob(".*.lock"))


def test_what_could_not_be_saved_is_saved_with_the_next_entry(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = progress._replace
    monkeypatch.setattr(progress, "_replace", _fails)
    note_progress("puzzles", "gate", {"solved": True})
    assert progress_notice() is not None and not Path(FILE_NAME).exists()
    monkeypatch.setattr(progress, "_replace", replace)
    note_progress("puzzles", "cut", {})
    assert set(stored()["sections"]["puzzles"]) == {"gate", "cut"}
    assert progress_notice() is None


def _fails(*arguments: object) -> None:
    raise OSError(28, "No space left on device")


# -- written whole or not at all ------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_between_writing_and_replacing_leaves_the_old_file(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    note_progress("puzzles", "gate", {"solved": True})
    before = Path(FILE_NAME).read_bytes()
    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), _fails)
    note_progress("puzzles", "cut", {"solved": True})
    assert Path(FILE_NAME).read_bytes() == before
    assert left_over(own_folder) == set()
    assert set(progress_of("puzzles")) == {"gate", "cut"}


def run(code: str, folder: Path) -> subprocess.Popen[str]:
    variables = {name: value for name, value in os.environ.items() if name != "LESSONS_PROGRESS"}
    variables["PYTHONPATH"] = str(ROOT)
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, env=variables, text=True, stderr=subprocess.PIPE
    )


def test_a_process_killed_between_writing_and_replacing_leaves_the_old_file_and_blocks_nobody(
    own_folder: Path,
) -> None:
    note_progress("puzzles", "gate", {"solved": True})
    before = Path(FILE_NAME).read_bytes()
    code = (
        "import os, pathlib\n"
        "from lessons_lib.base.progress import note_progress\n"
        "pathlib.Path.replace = lambda *a: os._exit(9)\n"
        "note_progress('puzzles', 'cut', {'solved': True})\n"
    )
    assert run(code, own_folder).wait(60) == 9
    assert Path(FILE_NAME).read_bytes() == before
    note_progress("puzzles", "long_row", {"solved": True})  # once the dead process's lock has been seen long enough
    assert set(progress_of("puzzles")) == {"gate", "long_row"}
    assert progress_notice() is None


def test_processes_that_write_at_once_lose_nothing(own_folder: Path) -> None:
    code = (
        "from lessons_lib.base.progress import note_progress, progress_notice\n"
        "for number in range(25): note_progress('puzzles', f'{NAME}-{number}', {'n': number})\n"
        "assert progress_notice() is None\n"
    )
    writers = [run(f"NAME = {name!r}\n{code}", own_folder) for name in "ab"]
    for writer in writers:
        assert writer.wait(120) == 0, writer.stderr
    assert len(progress_of("puzzles")) == 50
    assert left_over(own_folder) == set()


def test_threads_that_write_at_once_lose_nothing() -> None:
    def write(name: str) -> None:
        for number in range(10):
            note_progress("puzzles", f"{name}{number}", {})

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stored()["sections"]["puzzles"]) == 30


def test_two_who_find_the_same_broken_file_set_it_aside_once(own_folder: Path) -> None:
    Path(FILE_NAME).write_text("{", encoding="utf-8")
    code = "from lessons_lib.base.progress import note_progress; note_progress('puzzles', NAME, {})"
    for writer in [run(f"NAME = {name!r}\n{code}", own_folder) for name in "ab"]:
        assert writer.wait(60) == 0
    assert set(progress_of("puzzles")) == {"a", "b"}
    assert left_over(own_folder) == {"fusion-progress.broken-1.json"}


# -- for an instructor ----------------------------------------------------------------------------------------


def test_an_export_holds_the_sections_and_the_name_and_nothing_else(own_folder: Path) -> None:
    note_progress("puzzles", "gate", {"solved": True})
    path = export_progress("  李雷 \n Han\tMeimei\x00 ")
    data = json.loads(path.read_text(encoding="utf-8"))
    assert re.fullmatch("[0-9a-f]{16}", data.pop("learner"))
    assert data == {
        "format": "fusion-results",
        "version": 1,
        "name": "李雷 Han Meimei",
        "sections": {"puzzles": {"gate": {"solved": True}}},
    }
    assert path.resolve() == (own_folder / "fusion-results.json").resolve()
    assert str(own_folder) not in path.read_text(encoding="utf-8")


def learner_of(path: Path) -> object:
    return json.loads(path.read_text(encoding="utf-8"))["learner"]


def test_exports_of_one_file_bear_one_random_number_and_those_of_another_file_another(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_progress("puzzles", "gate", {"solved": True})
    number = learner_of(Path(FILE_NAME))
    code = "from lessons_lib.base.progress import *; note_progress('puzzles', 'kept', {}); export_progress('later')"
    assert run(code, own_folder).wait(60) == 0
    assert learner_of(Path(FILE_NAME)) == learner_of(own_folder / "fusion-results.json") == number
    assert learner_of(export_progress("another name")) == number
    monkeypatch.setenv(VARIABLE, str(own_folder / "second.json"))
    assert learner_of(export_progress()) != number


def test_a_file_without_a_number_gets_one_and_one_that_makes_no_sense_is_not_passed_on(own_folder: Path) -> None:
    old = {"format": "fusion-progress", "version": 1, "sections": {"puzzles": {"gate": {}}}}
    Path(FILE_NAME).write_text(json.dumps(old), encoding="utf-8")
    exported = learner_of(export_progress())
    note_progress("puzzles", "kept", {})
    assert learner_of(Path(FILE_NAME)) == exported
    Path(FILE_NAME).write_text(json.dumps({**old, "learner": "<script>"}), encoding="utf-8")
    assert re.fullmatch("[0-9a-f]{16}", str(learner_of(export_progress())))


def test_a_step_is_noted_with_its_lesson_and_day_and_never_raises(own_folder: Path) -> None:
    note_step("votes", "traffic_vote", "01", {"choice": 2})
    (entry,) = progress_of("votes").values()
    assert (entry["choice"], entry["lesson"]) == (2, "01")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", entry["day"])
    note_step("votes", "", "01", {"choice": 2})
    note_step("votes", "x", "01", {"choice": object()})
    assert set(progress_of("votes")) == {"traffic_vote"}
    assert noted("votes", "traffic_vote") == entry
    assert noted("votes", "nobody") == noted("", "") == {}


def test_with_off_no_step_is_noted(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, " Off ")
    note_step("steps", "traffic_vote", "01", {"choice": 2})
    assert progress_of("steps") == {}
    assert not has_progress_file()


def test_a_notice_is_given_out_once(own_folder: Path) -> None:
    assert untold_notice() is None
    Path(FILE_NAME).write_text("{", encoding="utf-8")
    note_progress("puzzles", "gate", {})
    told = untold_notice()
    assert told is not None
    assert told == progress_notice()
    assert untold_notice() is None


def test_an_export_never_overwrites(own_folder: Path) -> None:
    paths = [
        export_progress(),
        export_progress(),
        export_progress(path=own_folder),
        export_progress(path="mine.json"),
    ]
    assert [path.name for path in paths] == [
        "fusion-results.json",
        "fusion-results-2.json",
        "fusion-results-3.json",
        "mine.json",
    ]
    assert export_progress(path="mine.json").name == "mine-2.json"


def test_an_export_works_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", "off")
    note_progress("puzzles", "gate", {"solved": True})
    data = json.loads(export_progress().read_text(encoding="utf-8"))
    assert data["name"] == "" and data["sections"]["puzzles"] == {"gate": {"solved": True}}


@pytest.mark.parametrize("path", ["not/there/x.json", "/proc/x.json", "\0", 3])
def test_an_export_that_cannot_be_written_says_so_in_both_languages(path: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)参数 path.*cannot be written"):
        export_progress(path=path)


def test_a_name_that_is_none_is_refused_and_a_long_one_cut() -> None:
    with pytest.raises(ValueError, match="name"):
        export_progress(3)  # type: ignore[arg-type]
    data = json.loads(export_progress("x" * 500).read_text(encoding="utf-8"))
    assert data["name"] == "x" * 80


def test_an_export_leaves_out_what_is_no_entry() -> None:
    sections = {"puzzles": {"gate": {"solved": True}, "cut": 3}, "votes": 7}
    data = {"format": "fusion-progress", "version": 1, "sections": sections}
    Path(FILE_NAME).write_text(json.dumps(data), encoding="utf-8")
    exported = json.loads(export_progress().read_text(encoding="utf-8"))
    assert exported["sections"] == {"puzzles": {"gate": {"solved": True}}}


# -- lessons that are run for everybody -----------------------------------------------------------------------


@pytest.mark.parametrize("runner", ["build", "run_notebooks"])
def test_whoever_runs_a_lesson_for_everybody_leaves_no_file(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    monkeypatch.setenv("LESSONS_PROGRESS", "mine.json")
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code = "from lessons_lib.base.progress import note_progress, progress_path\nnote_progress('a', 'b', {})"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"{code}\nprint(progress_path())")])
    if runner == "build":
        from notebooks.build.execute import execute

        (own_folder / "lessons" / "en").mkdir(parents=True)
        execute(notebook, own_folder / "lessons" / "en", "lesson")
    else:
        from tools.run_notebooks import run as run_notebook

        nbformat.write(notebook, own_folder / "lesson.ipynb")
        notebook, faults = run_notebook(own_folder / "lesson.ipynb")
        assert faults == []
    assert notebook.cells[0].outputs[0].text == "None\n"
    assert not list(own_folder.rglob("*.json"))


# -- what a hostile folder does ------------------------------------------------------------------------------------


def test_a_lock_that_cannot_be_taken_away_is_said_and_nobody_hangs(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LOCK_SECONDS", 0.05)
    (own_folder / f".{FILE_NAME}.lock").mkdir()
    note_progress("puzzles", "gate", {"solved": True})
    assert progress_of("puzzles") == {"gate": {"solved": True}}
    assert progress_notice() is not None


def test_a_folder_that_is_gone_loses_nothing_and_raises_nothing(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = own_folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    note_progress("puzzles", "gate", {"solved": True})
    assert progress_of("puzzles") == {"gate": {"solved": True}}
    monkeypatch.chdir(own_folder)


def test_a_home_that_nobody_has_is_no_reason_to_fail(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "~no-such-user-here/x.json")
    note_progress("puzzles", "gate", {"solved": True})
    assert progress_of("puzzles")["gate"] == {"solved": True}


def test_a_mark_that_an_editor_put_in_front_does_not_break_the_file(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_progress("puzzles", "gate", {"solved": True})
    Path(FILE_NAME).write_bytes(b"\xef\xbb\xbf" + Path(FILE_NAME).read_bytes())
    restart(monkeypatch)
    assert progress_of("puzzles") == {"gate": {"solved": True}}
    assert left_over(own_folder) == set()


def test_infinity_is_no_json(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note_progress("puzzles", "gate", {"moves": 7})
    Path(FILE_NAME).write_text(Path(FILE_NAME).read_text(encoding="utf-8").replace("7", "Infinity"), encoding="utf-8")
    restart(monkeypatch)
    assert progress_of("puzzles") == {}
    assert len(left_over(own_folder)) == 1  # set aside


def test_an_export_named_without_an_ending_goes_into_a_folder_of_that_name(own_folder: Path) -> None:
    """A class report reads ``.json`` files only: a file called ``class`` would be lost to it."""
    first = export_progress("Ada", "shared/class")
    second = export_progress("Bo", "shared/class")
    assert [path.relative_to(own_folder).as_posix() for path in (first.resolve(), second.resolve())] == [
        "shared/class/fusion-results.json",
        "shared/class/fusion-results-2.json",
    ]
