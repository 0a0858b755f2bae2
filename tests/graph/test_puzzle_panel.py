"""The puzzle panel: played by presses in both languages, scored at once, explained only afterwards, kept overnight."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from puzzle_solutions import RECOMPUTED, SOLUTIONS

from lessons_lib import use_language
from lessons_lib.base import progress
from lessons_lib.base.progress import export_progress, note_progress, progress_of
from lessons_lib.base.text import Text
from lessons_lib.graph.puzzles import panel as panel_module
from lessons_lib.graph.puzzles.levels import PUZZLES, Puzzle
from lessons_lib.graph.puzzles.panel import SECTION, PuzzlePanel, Standing, standings

EACH = pytest.mark.parametrize("level", PUZZLES, ids=[level.name for level in PUZZLES])


@pytest.fixture(autouse=True)
def nothing_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_unsaved", {})
    monkeypatch.setattr(progress, "_notices", {})


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "fusion-progress.json"
    monkeypatch.setenv("LESSONS_PROGRESS", str(path))
    return path


def play(panel: PuzzlePanel) -> None:
    """Press a level's solution."""
    for op in RECOMPUTED.get(panel.level.name, ()):
        assert panel.canvas.recompute(op)
    for a, b in SOLUTIONS[panel.level.name]:
        assert panel.press(a, b), panel.canvas.workbench.message.en


def said(panel: PuzzlePanel) -> str:
    """All that the panel shows around the canvas, without tags."""
    views = (panel._summary, panel._head, panel._scores, panel._verdict, panel._hint_view)
    return re.sub(r"<[^>]*>", " ", " ".join(view.value for view in views))


def opening(text: Text) -> str:
    """The first words of a text in the edition's language, as HTML has them."""
    return str(text).replace("&", "&amp;").replace("'", "&#x27;")[:24]


def visible(button: Any) -> bool:
    return button.layout.display != "none"


# -- playing --------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_level_is_solved_by_presses_and_explained_only_then(level: Puzzle, language: str) -> None:
    use_language(language)
    panel = PuzzlePanel(level.number)
    assert str(level.title) in said(panel) and opening(level.story) in said(panel)
    assert opening(level.explanation) not in said(panel) and not panel.solved
    assert not visible(panel._next)
    play(panel)
    assert panel.solved
    assert opening(level.explanation) in said(panel)
    assert ("过关" if language == "zh" else "Solved:") in panel._verdict.value
    assert visible(panel._next) and not visible(panel._show)
    assert standings()[level.name] == Standing(
        solved=True,
        star=True,
        launches=level.solution.score.launches,
        total_bytes=level.solution.score.total_bytes,
        moves=panel.canvas.workbench.moves,
    )


def test_the_score_follows_every_press_and_the_best_stays_hidden() -> None:
    panel = PuzzlePanel(1)
    assert "256 MiB" in panel._scores.value and "hidden until solved" in panel._scores.value
    panel.press("sigmoid", "mul")
    assert "160 MiB" in panel._scores.value and "256 MiB" not in panel._scores.value
    panel.press("mul", "mul_1")
    assert "✓ 96 MiB" in panel._scores.value and "hidden" not in panel._scores.value
    panel.canvas.undo()
    assert "160 MiB" in panel._scores.value and "so far 96 MiB" in panel._scores.value
    assert not panel.solved and panel.standing.solved


def test_a_level_about_launches_scores_launches() -> None:
    panel = PuzzlePanel(5)
    assert re.search(r"font-weight:600[^>]*>7 launches<", panel._scores.value)
    play(panel)
    assert re.search(r"font-weight:600[^>]*>✓ 1 launch<", panel._scores.value)


def test_loop_nests_that_share_a_call_are_not_passed_off_as_launches() -> None:
    panel = PuzzlePanel(5)
    play(panel)
    assert "2 loop nests" in panel._scores.value and "in 1 call; on a GPU" in panel._scores.value
    assert "2 launches" not in panel._scores.value and "better than torch.compile" not in panel._verdict.value
    assert "fewer loop nests than torch.compile on a CPU" in panel._verdict.value
    panel.start(6)
    play(panel)
    assert "2 loop nests in 1 call" in panel._scores.value and "better than torch.compile" in panel._verdict.value
    panel.start(4)
    play(panel)
    assert "3 launches" in panel._scores.value and "loop nests" not in panel._scores.value


def test_beating_the_compiler_solves_the_last_level_and_the_star_is_for_the_best() -> None:
    panel = PuzzlePanel(10)
    level = panel.level
    for a, b in SOLUTIONS["half_layer"][:-1]:
        panel.press(a, b)
    assert panel.solved and not panel.attempt.best
    assert panel.standing.solved and not panel.standing.star
    assert "carry on" in panel._verdict.value and panel._buttons[9].description.startswith("✓")
    panel.press(*SOLUTIONS["half_layer"][-1])
    assert panel.attempt.best and panel.standing.star
    assert panel.standing.total_bytes == level.solution.score.total_bytes


def test_kernels_by_hand_do_not_count_where_the_level_does_not_allow_them() -> None:
    panel = PuzzlePanel(4)
    panel.press("mm", "add")
    panel.press("gelu", "mm_1")
    assert not panel.solved and "does not count" in panel._verdict.value
    assert not panel.standing.solved
    assert panel.standing.total_bytes == panel.level.compiler.total_bytes  # what was reached before that press


def test_a_refused_press_changes_neither_score_nor_standing() -> None:
    panel = PuzzlePanel(9)
    for a, b in (("mm", "amax"), ("amax", "mm_1"), ("mm", "mm")):
        assert not panel.press(a, b)
    assert panel.attempt.score == panel.level.start and panel.standing == Standing()


def test_two_operators_take_along_what_lies_between_them() -> None:
    panel = PuzzlePanel(9)
    assert panel.press("mm", "mm_1")
    assert len(panel.canvas.grouping) == 1
    assert "between" in panel.canvas.workbench.message.en and "之间" in panel.canvas.workbench.message.zh
    assert panel.press("mm", "mm_1") and len(panel.canvas.grouping) > 1  # a second press cuts


def test_the_canvas_offers_nobody_elses_kernels() -> None:
    canvas = PuzzlePanel(6).canvas
    assert not canvas.reveal


@pytest.mark.parametrize("level", [0, 11, "1", True])
def test_a_level_that_is_not_there_is_refused(level: Any) -> None:
    with pytest.raises(ValueError, match="level"):
        PuzzlePanel(level)
    panel = PuzzlePanel()
    with pytest.raises(ValueError, match="level"):
        panel.start(level)
    assert panel.level.number == 1


def test_buttons_do_the_same_in_place_of_a_picture() -> None:
    panel = PuzzlePanel(1, plain=True)
    for toggle in panel.canvas._toggles:
        toggle.value = True
    assert panel.solved


def test_level_buttons_and_next_lead_on() -> None:
    panel = PuzzlePanel(3)
    play(panel)
    panel._next.click()
    assert panel.level.number == 4
    panel._buttons[9].click()
    assert panel.level.number == 10
    panel.show_solution()
    panel._next.click()
    assert panel.level.number == 1


def test_levels_played_leave_no_widgets_behind() -> None:
    panel = PuzzlePanel(1)
    old = panel.canvas
    panel.start(2)
    assert old.comm is None and all(child.comm is None for child in old.children)


# -- hints and the answer -------------------------------------------------------------------------------------


def test_hints_come_one_at_a_time_and_cost_the_star() -> None:
    panel = PuzzlePanel(2)
    for count in (1, 2, 3):
        assert panel.hint() == panel.level.hints[count - 1]
        shown = [opening(hint) in said(panel) for hint in panel.level.hints]
        assert shown == [number < count for number in range(3)]
        assert panel._hint.disabled == (count == 3)
    assert panel.hint() is None
    assert panel.standing.hints == 3
    play(panel)
    assert panel.solved and not panel.standing.star
    assert panel._buttons[1].description.startswith("✓")
    panel.start(2)
    play(panel)
    assert panel.standing.star  # another day, without help


@EACH
def test_showing_the_answer_is_noted_and_solves_nothing_until_it_is_done_by_hand(level: Puzzle) -> None:
    panel = PuzzlePanel(level.number)
    panel.show_solution()
    assert panel.attempt.best and not panel.solved
    assert panel.standing.shown and not panel.standing.solved
    assert panel._buttons[level.number - 1].description.startswith("◇")
    assert opening(level.explanation) in said(panel)
    panel.canvas.reset()
    assert not panel.solved
    play(panel)
    assert panel.solved and panel.standing.solved and panel.standing.shown and not panel.standing.star


def test_the_answer_cut_and_fused_again_is_still_not_the_learners_own() -> None:
    panel = PuzzlePanel(6)
    panel.show_solution()
    panel.press("abs_1", "amax")
    panel.press("abs_1", "amax")
    assert not panel.solved and not panel.standing.solved and panel.standing.launches == 0


def test_undo_leads_from_the_answer_back_to_ones_own() -> None:
    panel = PuzzlePanel(8)
    panel.press("add", "add_1")
    own = panel.canvas.grouping
    panel.show_solution()
    while panel.canvas.grouping != own:
        assert panel.canvas.undo()
    assert panel._before_showing is None
    assert panel.canvas.recompute("_to_copy")
    for a, b in SOLUTIONS["recompute"][1:]:
        panel.press(a, b)
    assert panel.solved


# -- kept -----------------------------------------------------------------------------------------------------


def test_the_next_day_the_panel_knows_what_was_solved(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = PuzzlePanel(1)
    assert not own_file.exists()  # looking writes nothing
    play(panel)
    panel.start(2)
    panel.hint()
    panel.start(3)
    panel.show_solution()
    monkeypatch.setattr(progress, "_unsaved", {})
    again = PuzzlePanel(1)
    marks = [button.description[0] for button in again._buttons]
    assert marks == ["★", "○", "◇"] + ["○"] * 7
    assert "the best, without help, 96 MiB in 2 moves" in again._buttons[0].tooltip
    assert "looked up" in again._buttons[2].tooltip and "open" in again._buttons[1].tooltip
    assert "Solved 1 of 10" in again._summary.value
    assert not again.solved and again.attempt.score == again.level.start
    assert "<details" in again._verdict.value and "so far 96 MiB" in again._scores.value
    assert standings()["side_input"].hints == 1


def test_a_worse_attempt_does_not_spoil_a_better_one(own_file: Path) -> None:
    panel = PuzzlePanel(1)
    play(panel)
    panel.start(1)
    panel.press("sigmoid", "mul")
    assert panel.standing.solved and panel.standing.moves == 2
    assert progress_of(SECTION)["gate"]["total_bytes"] == panel.level.goal
    assert (progress_of(SECTION)["gate"]["lesson"], len(progress_of(SECTION)["gate"]["day"])) == ("04", 10)


def test_another_notebook_of_the_same_learner_is_seen(own_file: Path) -> None:
    one, other = PuzzlePanel(1), PuzzlePanel(2)
    play(one)
    play(other)
    assert "Solved 2 of 10" in other._summary.value
    assert {name for name, standing in standings().items() if standing.solved} == {"gate", "side_input"}


HOSTILE: list[Any] = [
    {"solved": "yes", "moves": True, "launches": -1},
    {"solved": 1, "hints": 10**30, "total_bytes": "<img src=x onerror=alert(1)>"},
    {"launches": 1.5, "shown": None, "star": [], "extra": {"deep": {}}},
    {},
]


@pytest.mark.parametrize("entry", HOSTILE)
def test_an_entry_that_makes_no_sense_is_no_progress(own_file: Path, entry: dict[str, Any]) -> None:
    note_progress(SECTION, "gate", entry)
    note_progress(SECTION, "<script>", {"solved": True})
    panel = PuzzlePanel(1)
    assert panel.standing == Standing() and "<img" not in said(panel)
    play(panel)
    assert panel.standing.solved


def test_a_broken_file_is_told_and_play_goes_on(own_file: Path) -> None:
    own_file.write_text("{", encoding="utf-8")
    panel = PuzzlePanel(1)
    assert "fusion-progress.broken-1.json" in panel._summary.value
    play(panel)
    assert json.loads(own_file.read_text(encoding="utf-8"))["sections"][SECTION]["gate"]["solved"] is True


def test_a_place_that_cannot_be_written_is_told_and_play_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_PROGRESS", "/proc/mine.json")
    panel = PuzzlePanel(1)
    play(panel)
    assert panel.solved and "kernel stops" in panel._summary.value
    assert PuzzlePanel(1).standing.solved


def test_an_export_for_the_instructor_has_the_puzzles(own_file: Path, tmp_path: Path) -> None:
    panel = PuzzlePanel(1)
    play(panel)
    data = json.loads(export_progress("Han Meimei", tmp_path).read_text(encoding="utf-8"))
    assert data["sections"][SECTION]["gate"]["solved"] is True


# -- without a kernel -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["zh", "en"])
def test_static_forms_tell_the_level_and_nothing_of_the_learner(own_file: Path, language: str) -> None:
    use_language(language)
    fresh = PuzzlePanel(6).static_forms()
    played = PuzzlePanel(6)
    play(played)
    played.hint()
    assert PuzzlePanel(6).static_forms() == fresh
    plain = fresh["text/plain"]
    assert plain.startswith("第 6 关" if language == "zh" else "Level 6 of 10")
    assert "416 MiB" in plain
    assert not re.search(r"(?<!\d)96 MiB|128 MiB", plain.partition("\n\n")[2])  # goal and compiler: after a move
    assert "<svg" in fresh["text/html"] and str(played.level.title) in fresh["text/html"]
    for form in fresh.values():
        assert opening(played.level.explanation) not in form


def test_a_mark_is_a_shape_and_has_words() -> None:
    every = [Standing(), Standing(solved=True), Standing(solved=True, star=True), Standing(shown=True)]
    assert len({standing.mark for standing in every}) == len({standing.words.zh for standing in every}) == 4
    panel = PuzzlePanel(1)
    for standing in every:
        assert standing.mark in panel._summary.value and standing.words.en in panel._summary.value


def test_goal_and_compiler_show_only_after_a_move_for_the_story_asks_for_a_guess() -> None:
    panel = PuzzlePanel(1)
    goal = f"{panel.level.goal >> 20} MiB"
    assert goal not in panel.static_forms()["text/plain"] and goal not in panel._scores.value
    panel.press("sigmoid", "mul")
    assert goal in panel.static_forms()["text/plain"] and goal in panel._scores.value


def test_a_press_reads_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a level's beginning and what was written are read."""
    reads = 0
    original = panel_module.progress_of

    def counted(section: str) -> object:
        nonlocal reads
        reads += 1
        return original(section)

    monkeypatch.setattr(panel_module, "progress_of", counted)
    panel = PuzzlePanel(2)
    assert reads == 1
    panel.show_solution()
    written = reads
    panel.canvas.undo()
    panel.canvas.reset()
    assert (written, reads) == (2, 2)
    assert panel.standing.shown
