"""A good class: its known answers, in the summary, in the page and in the picture."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made_up import (
    ANSWER,
    BEGIN,
    EXERCISES,
    MISTAKES,
    QUIZZES,
    SIZE,
    SOLVE,
    SOLVE_ALL,
    VOTES,
    learner,
    write,
    write_class,
)

import lessons_lib
from lessons_lib import use_language
from lessons_lib.base.questions import QUESTIONS
from lessons_lib.base.spread import Spread
from lessons_lib.classroom.class_picture import lines_of
from lessons_lib.classroom.course import (
    LESSONS,
    MEASURED_VOTES,
    CourseWords,
    asked_interval,
    asked_number,
    asked_words,
    lesson_of,
    title_of,
    true_choice,
    true_value,
)
from lessons_lib.classroom.report import ClassReport, class_report, language_of, main
from lessons_lib.classroom.words import course_words
from lessons_lib.show.panel import Panel
from lessons_lib.show.quiz import Vote
from lessons_lib.traffic.measurement import ChainMeasurement
from lessons_lib.traffic.prediction import Calibration

LANGUAGES = ("zh", "en")


def _spread(seconds: float) -> Spread:
    return Spread(seconds, seconds, seconds, seconds, 9)


MEASURED = ChainMeasurement(
    requested_bytes=2**26,
    tensor_bytes=2**26,
    tile_bytes=2**18,
    copy=_spread(0.010),
    library_copy=_spread(0.010),
    calibration=Calibration(copy=0.010, operations=(0.002,) * 4, calls=0.001),
    resident=_spread(0.009),
    unfused=_spread(0.041),
    tiled=_spread(0.016),
    speedup=_spread(0.041 / 0.016),
    bit_identical=True,
    waited_share=0.0,
)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("class")
    write_class(made)
    return made


@pytest.fixture(scope="module")
def report(folder: Path) -> ClassReport:
    return class_report(folder)


# -- the course -------------------------------------------------------------------------------------------------


def test_the_course_knows_every_vote_exercise_and_quiz_that_the_lessons_call() -> None:
    for lesson in LESSONS:
        (source,) = (ROOT / "notebooks/source").glob(f"{lesson.number}_*.py")
        called = set(re.findall(r"\b(check_\w+|\w+_vote|\w+_quiz)\(", source.read_text(encoding="utf-8")))
        assert called == {*lesson.votes, *lesson.exercises, *lesson.quizzes}


def test_every_id_of_the_course_is_a_name_of_the_library_with_a_title_of_its_own() -> None:
    for lesson in LESSONS:
        for key in lesson.ids:
            assert key in lessons_lib.__all__
            assert title_of(key) != key


def test_every_vote_has_its_truth_among_its_options_or_is_measured() -> None:
    words = course_words()
    for lesson in LESSONS:
        for vote in lesson.votes:
            values = [value for _, value in words.votes[vote].options]
            assert (true_choice(vote, values) is None) == (vote in MEASURED_VOTES)


def test_the_true_values_are_those_of_the_worked_cases() -> None:
    assert true_value("traffic_vote") == 384 * 2**20
    assert true_value("reuse_vote") == 64 * 2**10
    assert true_value("graph_vote") == 224
    assert true_value("kernel_vote") == 3.0
    assert true_value("losing_vote") == "slower"
    assert true_value("of_a_newer_course") is None


def test_the_library_is_asked_for_its_own_words() -> None:
    words = course_words()
    assert set(words.votes) == {vote for lesson in LESSONS for vote in lesson.votes}
    assert [len(words.quizzes[quiz]) for quiz in QUIZZES.values()] == [3] * 5
    assert all(question.choices[question.right - 1].right for quiz in words.quizzes.values() for question in quiz)
    # The learner's own kernel is judged by a diagnosis of its own, which names no mistake by number.
    assert {key for keys in EXERCISES.values() for key in keys} - set(words.mistakes) == {"check_bias_silu_gate"}
    assert all(words.mistakes.values())


def test_a_mistake_s_words_are_those_that_the_checker_says() -> None:
    def by_operators(num_ops: int, tensor_bytes: int, fused_groups: int, side_inputs: int) -> int:
        return (2 * num_ops + side_inputs) * tensor_bytes

    said = lessons_lib.check_total_bytes(by_operators).words
    assert said.endswith(str(course_words().mistakes["check_total_bytes"][1]))
    assert lessons_lib.check_swiglu_saved(128).words.endswith(str(course_words().mistakes["check_swiglu_saved"][0]))


# -- the numbers ------------------------------------------------------------------------------------------------


def test_where_people_stop(report: ClassReport) -> None:
    assert report.summary is not None
    assert report.summary.size == SIZE
    zeroth, *lessons = report.summary.lessons
    assert (zeroth.began, zeroth.records) == (0, False)
    assert {one.lesson: one.began for one in lessons} == BEGIN
    assert {one.lesson: one.solved for one in lessons} == SOLVE
    assert {one.lesson: one.all_solved for one in lessons} == SOLVE_ALL
    assert {one.lesson: one.quiz for one in lessons} == ANSWER
    assert [one.stopped for one in lessons] == [4, 4, 4, 9, 9]
    assert sum(one.stopped for one in lessons) == SIZE


def test_guesses_are_counted_and_held_against_the_truth(report: ClassReport) -> None:
    assert report.summary is not None
    votes = {vote.key: vote for vote in report.summary.votes}
    assert list(votes) == list(VOTES)
    for key, (_, spread) in VOTES.items():
        assert dict(votes[key].counts) == dict(spread)
    assert (votes["traffic_vote"].right, votes["traffic_vote"].hits, votes["traffic_vote"].judged) == (3, 9, 30)
    assert (votes["losing_vote"].right, votes["losing_vote"].hits) == (3, 1)
    assert (votes["tile_vote"].right, votes["tile_vote"].judged) == (None, 0)


def test_a_measured_vote_is_held_against_each_machines_own_measurement(report: ClassReport) -> None:
    assert report.summary is not None
    (vote,) = (vote for vote in report.summary.votes if vote.key == "lab_vote")
    assert vote.right is None
    assert dict(vote.measured) == {3: 17, 4: 9}
    # Learners 0-4 chose 1.5×: right but for 0 and 3. Learners 19-25 chose 2×: right are 21 and 24.
    assert (vote.hits, vote.judged) == (5, 26)


def test_typed_guesses_fall_into_buckets_of_guess_over_truth(report: ClassReport) -> None:
    assert report.summary is not None
    (guess,) = report.summary.guesses
    assert (guess.answered, guess.judged, guess.hits) == (30, 25, 10)
    assert guess.buckets == (0, 0, 6, 10, 0, 9, 0)
    assert guess.median_ratio == 1.0


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_page_has_the_forms_question_and_its_answer_beside_the_guesses(
    report: ClassReport, language: str
) -> None:
    lessons_lib.use_language(language)
    page = report.html()
    _, card = page.split('<div class="card" data-id="TrafficPanel">')
    card, _ = card.split("</table>", 1)
    assert escape(str(QUESTIONS["TrafficPanel"].words)) in card
    assert ("答案 256 MiB" if language == "zh" else "the answer: 256 MiB") in card
    assert ("猜的 ÷ 正确的值" if language == "zh" else "guess ÷ the right value") in card


def guessed(folder: Path, panel: str, *typed: str) -> _Page:
    """The page of a class that typed these guesses at one panel, a learner each."""
    for i, words in enumerate(typed):
        entry = {"guess": words, "lesson": "01"}
        if (found := QUESTIONS[panel].number_in(words)) is not None:
            entry |= {"number": found.number, "unit": found.unit}
        write(folder / f"{i:02}.json", {**learner(0, f"learner {i}"), "sections": {"guesses": {panel: entry}}})
    return _Page(class_report(folder).html())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_panel_whose_truth_is_an_interval_has_the_interval_and_the_guesses_as_typed(
    tmp_path: Path, language: str
) -> None:
    use_language(language)
    page = guessed(tmp_path, "EpiloguePanel", "3.67×", "about 1.7", "1.5 or so", "about 1.7", "no <idea>")
    rows = [[row[1], row[2]] for row in page.cards["EpiloguePanel"][1:]]
    assert rows == [["1.5 or so", "1"], ["about 1.7", "2"], ["3.67×", "1"], ["no <idea>", "1"]]
    answer = "答案 1.61 – 1.78 ×" if language == "zh" else "the answer: 1.61 – 1.78 ×"
    assert answer in " ".join(page.text)


def test_a_panel_that_asks_for_words_lists_them_the_commonest_where_there_are_many(tmp_path: Path) -> None:
    page = guessed(
        tmp_path, "CompilerPanel", "no, it holds tiles", "no, it holds tiles", *(f"yes {i}" for i in range(30))
    )
    rows = [(row[1], row[2]) for row in page.cards["CompilerPanel"][1:]]
    assert rows[0] == ("no, it holds tiles", "2")
    assert len(rows) < 20 and rows[-1] == ("... and 15 more", "15")
    assert sum(int(count) for _, count in rows) == 32


def test_what_no_number_answers_stands_below_the_numbers(report: ClassReport) -> None:
    assert report.summary is not None
    (guess,) = report.summary.guesses
    assert guess.others == {"a lot": 5}
    assert sum(guess.others.values()) + guess.judged == guess.answered


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_report_says_how_many_files_of_how_many_learners_it_has_read(
    folder: Path, language: str, tmp_path: Path
) -> None:
    use_language(language)
    for i in range(4):
        write(tmp_path / f"{i}.json", learner(i, f"learner {i}"))
    write(tmp_path / "again.json", learner(0, "learner 0"))
    write(tmp_path / "odd.json", {"format": "something else"})
    said = class_report(tmp_path)
    first = "读了 5 个文件，来自 4 人" if language == "zh" else "Files read: 5, of this many learners: 4"
    then = "到场的人数" if language == "zh" else "the number who came"
    for text in (said.html(), said.plain()):
        assert first in text and then in text


def test_every_question_that_has_a_true_number_wants_one() -> None:
    panels = [key for lesson in LESSONS for key in lesson.panels if key not in ("GraphCanvas", "PuzzlePanel")]
    assert set(panels) <= set(QUESTIONS)
    assert all(lesson_of(key) for key in QUESTIONS)
    judged = {key for key in QUESTIONS if asked_number(key) is not None}
    assert {key for key, question in QUESTIONS.items() if question.unit is None}.isdisjoint(judged)
    assert asked_words("of_a_newer_course") == ""


def test_wrong_answers_come_commonest_first(report: ClassReport) -> None:
    assert report.summary is not None
    mistakes = report.summary.mistakes
    assert [one.count for one in mistakes] == sorted((one.count for one in mistakes), reverse=True)
    first = mistakes[0]
    assert (first.key, first.question, first.number, first.count, first.answered) == ("traffic_quiz", 1, 1, 18, 29)
    met = {(one.key, one.number): one.count for one in mistakes if one.question is None}
    assert met == {(key, index): count for key, spread in MISTAKES.items() for index, count in spread}


def test_a_quiz_question_left_open_counts_for_nobody(report: ClassReport) -> None:
    assert report.summary is not None
    answered = {(one.quiz, one.number): one.answered for one in report.summary.questions}
    for lesson, quiz in QUIZZES.items():
        assert [answered[quiz, number] for number in (1, 2, 3)] == [
            ANSWER[lesson] + 1,
            ANSWER[lesson] + 1,
            ANSWER[lesson],
        ]


def test_exercises_and_puzzles(report: ClassReport) -> None:
    assert report.summary is not None
    exercises = {one.key: one for one in report.summary.exercises}
    assert list(exercises) == [key for keys in EXERCISES.values() for key in keys]
    assert exercises["check_total_bytes"].right == SOLVE["01"]
    assert all(one.answered == BEGIN[one.lesson] for one in exercises.values())
    puzzles = {one.key: one for one in report.summary.puzzles}
    assert (puzzles["gate"].tried, puzzles["gate"].solved, puzzles["gate"].starred) == (18, 16, 8)
    assert (puzzles["attention"].tried, puzzles["attention"].solved, puzzles["attention"].shown) == (2, 0, 1)
    assert (puzzles["gate"].best_bytes, puzzles["side_input"].best_launches) == (96 * 2**20, 2)


def test_learners_without_a_name_are_never_taken_for_one(report: ClassReport) -> None:
    assert sum(one.name == "" for one in report.roster.learners) == 2
    assert len(report.roster.learners) == SIZE


# -- the page ---------------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """What a page says, and what it would fetch or run."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[list[str]] = []
        self.text: list[str] = []
        self.drawn: list[str] = []
        self._open: list[str] = []
        self.cards: dict[str, list[list[str]]] = {}
        self._card: list[list[str]] | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("tr", "td", "th"):
            self.cells += [[]] if tag == "tr" else []
            if tag != "tr":
                self.cells[-1].append("")
        if "data-id" in dict(attrs):
            self._card = self.cards.setdefault(str(dict(attrs)["data-id"]), [])
        if tag == "tr" and self._card is not None:
            self._card.append(self.cells[-1])
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass
        if tag == "section":
            self._card = None

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        if "svg" in self._open:
            self.drawn.append(data.strip())
        elif "td" in self._open or "th" in self._open:
            self.cells[-1][-1] += data
        self.text.append(data)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_has_the_known_answers(report: ClassReport, language: str) -> None:
    use_language(language)
    page = _Page(report.html())
    lessons = {row[0][:2]: row[1:] for row in page.cells if re.match(r"0\d ", row[0]) and len(row) == 6}
    assert lessons["00"] == ["–"] * 5
    for lesson in BEGIN:
        counts = (BEGIN[lesson], SOLVE[lesson], SOLVE_ALL[lesson], ANSWER[lesson])
        assert lessons[lesson][:4] == [str(count) for count in counts]
    vote = [row[:3] for row in page.cards["traffic_vote"][1:]]
    assert vote == [["✗", "192 MiB", "1"], ["✗", "256 MiB", "4"], ["✓", "384 MiB", "9"], ["✗", "512 MiB", "16"]]
    assert [row[2] for row in page.cards["lab_vote"][1:]] == ["0", "0", "5 ↑17", "7 ↑9", "0", "14"]
    quiz = page.cards["traffic_quiz-1"][1:]
    assert [(row[0], row[2]) for row in quiz] == [("✗", "18"), ("✓", "11"), ("✗", "0")]
    assert quiz[0][1] == str(course_words().quizzes["traffic_quiz"][0].choices[0].words)
    mistakes = page.cards["check_total_bytes"][1:]
    words = course_words().mistakes["check_total_bytes"]
    assert [row[1:3] for row in mistakes] == [[str(words[1]), "13"], [str(words[2]), "6"]]
    learners = [row for row in page.cells if row[-1].endswith("-fusion-results.json")]
    assert len(learners) == SIZE
    assert learners[5][:3] == ["Grace Hopper", "01–05", "7"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_picture_has_the_known_answers(report: ClassReport, language: str) -> None:
    use_language(language)
    drawn = [words for words in _Page(report.html()).drawn if words]
    first = drawn.index("30")
    assert drawn[first : first + 3] == ["30", "27", "28"]
    assert "✓ 384 MiB · 9" in drawn
    assert "✓ 9/30" in drawn
    assert "✓ 0/17" in drawn
    assert "✗ 18/29" in drawn
    assert "16/18" in drawn
    assert "★ 8" in drawn


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_runs_nothing_and_asks_nobody(report: ClassReport, language: str) -> None:
    use_language(language)
    html = report.html()
    page = _Page(html)
    assert not {tag for tag, _ in page.tags} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "a",
        "form",
    }
    for _, attributes in page.tags:
        fetched = {"src", "href", "xlink:href", "srcset", "data", "action", "poster"} & attributes.keys()
        assert not fetched
        assert not [name for name in attributes if name.startswith("on")]
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", html)
    assert not re.search(r"https?:|//|url\(|@import|javascript:", without_namespaces)
    (policy,) = (a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_the_page_says_its_language_and_holds_no_word_of_the_other(report: ClassReport) -> None:
    use_language("en")
    names = {character for one in report.roster.learners for character in one.name}
    page = _Page(report.html())
    assert dict(page.tags)["html"]["lang"] == "en"
    assert not {c for c in "".join(page.text) if "\u4e00" <= c <= "\u9fff"} - names
    use_language("zh")
    assert dict(_Page(report.html()).tags)["html"]["lang"] == "zh-CN"


def test_names_can_be_left_out(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "broken-Alice.json").write_text("{")
    write(tmp_path / "Bob.json", learner(0, "Bob Secret"))
    page = class_report(tmp_path).html(names=False)
    assert "Bob" not in page
    assert "Alice" not in page
    assert "learner 1" in page


def test_without_the_library_s_words_the_page_has_what_learners_saw(folder: Path) -> None:
    page = _Page(class_report(folder, CourseWords()).html())
    assert ["", "choice 1", "18"] in [row[:3] for row in page.cards["traffic_quiz-1"]]
    assert [row[1] for row in page.cards["traffic_vote"][1:]] == ["label 1", "label 2", "label 3", "label 4"]


def test_ids_of_a_newer_course_are_shown_as_they_are(tmp_path: Path) -> None:
    data = learner(0)
    data["version"] = 3
    data["sections"]["votes"]["future_vote"] = {"choice": 2, "label": "maybe", "lesson": "07", "day": "2027-01-01"}
    data["sections"]["puzzles"]["new_level"] = {"solved": True, "launches": 1, "total_bytes": 8, "extra": [1]}
    write(tmp_path / "a.json", data)
    report = class_report(tmp_path)
    page = _Page(report.html())
    assert not report.problems
    assert ["maybe", "1"] in [row[1:3] for row in page.cards["future_vote"]]
    assert any(row[0] == "new_level" for row in page.cells if row)


def test_a_class_that_has_done_nothing_yet_still_has_a_report(tmp_path: Path) -> None:
    write(tmp_path / "a.json", {"format": "fusion-results", "version": 1, "name": "", "sections": {}})
    for language in LANGUAGES:
        use_language(language)
        page = _Page(class_report(tmp_path).html())
        assert [row[1] for row in page.cells if row[0].startswith("01 ")] == ["0"]
        assert not page.cards


# -- the whole way ----------------------------------------------------------------------------------------------


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's own progress file in a workshop; the folder of the class lies beside it."""
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "own.json"))
    monkeypatch.setenv("LESSONS_WORKSHOP", "1")
    (tmp_path / "class").mkdir()
    return tmp_path / "class"


def _vote_for(vote: Vote, option: int) -> Vote:
    vote.choose(option)
    vote.commit()
    return vote


def _guess_at(panel: Panel, words: str) -> None:
    assert panel.gate is not None
    panel.gate.commit(words)


def test_what_a_learner_does_in_the_lessons_arrives_in_the_class_report(kernel: Path) -> None:
    def by_operators(num_ops: int, tensor_bytes: int, fused_groups: int, side_inputs: int) -> int:
        return (2 * num_ops + side_inputs) * tensor_bytes

    def total_bytes(num_ops: int, tensor_bytes: int, fused_groups: int, side_inputs: int) -> int:
        return (2 * fused_groups + side_inputs) * tensor_bytes

    lessons_lib.machine_report()
    _vote_for(lessons_lib.traffic_vote(), 3)
    _guess_at(lessons_lib.TrafficPanel(), "0.25 GiB，不变")
    _guess_at(lessons_lib.EpiloguePanel(), "hardly any")
    lessons_lib.lab_report(MEASURED, _vote_for(lessons_lib.lab_vote(), 6).value)
    for attempt in (None, by_operators, total_bytes):
        lessons_lib.check_total_bytes(attempt)
    lessons_lib.check_swiglu_saved(128)
    quiz = lessons_lib.traffic_quiz()
    for question, choice in ((1, 1), (1, 2), (2, 3), (3, 2)):
        quiz.answer(question, choice)
    _guess_at(lessons_lib.LayoutPanel(), "第 16 次")
    canvas = lessons_lib.GraphCanvas("swiglu_mlp")
    assert canvas.gate is not None
    canvas.gate.commit("172 MiB")
    puzzles = lessons_lib.PuzzlePanel()
    puzzles.hint()
    lessons_lib.export_progress("李雷", kernel)

    report = class_report(kernel)
    assert not report.problems
    (learner,) = report.roster.learners
    assert learner.left_out == 0
    assert len(learner.number) == 16
    summary = report.summary
    assert summary is not None
    (row,) = summary.rows
    assert (row.name, row.lessons, row.exercises, row.quiz_right) == ("李雷", ("00", "01", "03", "04"), 1, 2)
    assert [(one.lesson, one.began) for one in summary.lessons][:2] == [("00", 1), ("01", 1)]
    votes = {vote.key: vote for vote in summary.votes}
    assert (votes["traffic_vote"].hits, votes["traffic_vote"].judged) == (1, 1)
    assert dict(votes["lab_vote"].measured) == {5: 1}  # 2.56 is nearest to 3×; the guess was 4×
    assert (votes["lab_vote"].hits, votes["lab_vote"].judged) == (0, 1)
    guesses = {guess.key: guess for guess in summary.guesses}
    assert list(guesses) == ["TrafficPanel", "EpiloguePanel", "LayoutPanel", "GraphCanvas.swiglu_mlp"]
    assert (guesses["TrafficPanel"].hits, guesses["TrafficPanel"].judged) == (1, 1)
    assert (guesses["EpiloguePanel"].answered, guesses["EpiloguePanel"].judged) == (1, 0)
    assert guesses["LayoutPanel"].median_ratio == 2
    assert (guesses["GraphCanvas.swiglu_mlp"].hits, guesses["GraphCanvas.swiglu_mlp"].lesson) == (1, "04")
    met = [(one.key, one.question, one.number) for one in summary.mistakes]
    assert sorted(met, key=str) == sorted(
        [("check_total_bytes", None, 1), ("check_swiglu_saved", None, 0), ("traffic_quiz", 1, 1)], key=str
    )
    page = report.html()
    assert "李雷" in page
    assert str(course_words().mistakes["check_total_bytes"][1]) in page


def test_two_exports_of_one_learner_are_one_whatever_the_name_and_two_learners_of_one_name_are_two(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lessons_lib.check_swiglu_saved(128)
    lessons_lib.export_progress("", kernel / "a.json")
    quiz = lessons_lib.traffic_quiz()
    quiz.answer(1, 1)
    lessons_lib.export_progress("Ada", kernel / "b.json")
    quiz.answer(1, 2)
    lessons_lib.check_swiglu_saved(160)
    lessons_lib.export_progress("Ada", kernel / "c.json")
    monkeypatch.setenv("LESSONS_PROGRESS", str(tmp_path / "other.json"))
    lessons_lib.check_swiglu_saved(128)
    lessons_lib.export_progress("Ada", kernel / "d.json")
    roster = class_report(kernel).roster
    assert [(one.file, one.name) for one in roster.learners] == [("c.json", "Ada · 1"), ("d.json", "Ada · 2")]
    assert roster.replaced == (("a.json", "c.json", False), ("b.json", "c.json", False))


def test_a_file_that_was_handed_round_makes_nobody_vanish(kernel: Path) -> None:
    lessons_lib.check_swiglu_saved(128)
    for name in ("Ada", "Grace"):
        lessons_lib.export_progress(name, kernel)
    assert {one.name for one in class_report(kernel).roster.learners} == {"Ada", "Grace"}


def test_the_numbers_asked_for_above_the_panels_are_those_of_the_worked_cases() -> None:
    asked = ("TrafficPanel", "LayoutPanel", "CompilePanel", "TileWalkPanel")
    assert [asked_number(panel) for panel in asked] == [(256, "MiB"), (8, ""), (46512, ""), (240, "")]
    assert asked_number("GraphCanvas.gated residual") == (96, "MiB")
    assert asked_number("GraphCanvas.swiglu_mlp") == (172, "MiB")
    assert asked_number("EpiloguePanel") is asked_number("of a newer course") is None
    between = asked_interval("EpiloguePanel")
    assert between is not None and (round(between.low, 2), round(between.high, 2)) == (1.61, 1.78)
    assert asked_interval("TrafficPanel") is asked_interval("of a newer course") is None


def test_a_panel_asked_about_twice_has_two_titles_and_its_own_lesson() -> None:
    assert title_of("GraphCanvas.gated residual") == f"{title_of('GraphCanvas')} · gated residual"
    assert [lesson_of(key) for key in ("GraphCanvas.x", "DecisionPanel", "DecisionPanel.evidence")] == [
        "04",
        "03",
        "05",
    ]
    assert title_of("nobody.knows") == "nobody.knows"


# -- the command ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("language", "words"), [("zh", "班级报告：30 人"), ("en", "Class report, learners: 30")])
def test_the_command_writes_the_report_and_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], language: str, words: str
) -> None:
    out = tmp_path / "r.html"
    assert main([str(folder), "--out", str(out), "--language", language]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(words)
    assert str(out) in said.out
    assert len(said.out.splitlines()) < 25
    assert not said.err
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_same_class_gives_the_same_report(folder: Path, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        assert main([str(folder), "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_command_writes_html_files_only(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = write(tmp_path / "results.json", learner(0))
    before = kept.read_bytes()
    assert main([str(folder), "--out", str(kept)]) == 1
    assert kept.read_bytes() == before
    assert "--out" in capsys.readouterr().err
    assert main([str(folder), "--out", str(tmp_path / "nowhere/r.html")]) == 1


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "de_DE", "LC_MESSAGES": "zh_TW"}, "zh"),
        ({"LC_ALL": "", "LANG": "zh"}, "zh"),
    ],
)
def test_the_terminal_s_variables_choose_the_language(variables: dict[str, str], language: str) -> None:
    assert language_of(variables) == language


def test_the_module_runs_in_an_ascii_terminal_and_loads_nothing_heavy(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    code = (
        "import sys\nfrom lessons_lib.classroom.report import main\n"
        "early = {'ipywidgets', 'drawsvg', 'IPython'} & set(sys.modules) - {'drawsvg'}\n"
        "assert not early, early\n"
        f"assert main([{str(folder)!r}, '--out', {str(out)!r}, '--language', 'zh']) == 0\n"
        "heavy = {'torch', 'numpy', 'triton', 'matplotlib', 'diskcache'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert out.exists()


def test_without_ipywidgets_the_report_is_written_all_the_same(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    code = (
        "import sys\nsys.modules['ipywidgets'] = None\nfrom lessons_lib.classroom.report import main\n"
        f"sys.exit(main([{str(folder)!r}, '--out', {str(out)!r}, '--language', 'en']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "label 3" in out.read_text(encoding="utf-8")


# -- words in the picture ---------------------------------------------------------------------------------------


def test_long_words_are_broken_into_lines_and_cut_at_the_last() -> None:
    words = "Each kernel reads its inputs once and writes its outputs once, whatever the order. " * 4
    lines = lines_of(words, 12, 300, 2)
    assert len(lines) == 2
    assert lines[1].endswith("…")
    assert words.startswith(lines[0])
    assert lines_of("short", 12, 300, 2) == ["short"]
    chinese = lines_of("中间张量的读写，一共是多少？" * 6, 12, 300, 2)
    assert all(len(line) * 12 <= 312 for line in chinese)
    assert not chinese[1].startswith("，")
    assert all(len(line) < 60 for line in lines_of("x" * 500, 12, 300, 2))
