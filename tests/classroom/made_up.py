"""Thirty made-up learners, the same on every machine: who did what follows from the learner's number alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SIZE = 30
# How many of the thirty begin each lesson: learner ``i`` begins it where i is below.
BEGIN = {"01": 30, "02": 26, "03": 22, "04": 18, "05": 9}
SOLVE = {"01": 27, "02": 20, "03": 18, "04": 12, "05": 4}  # one exercise right
SOLVE_ALL = {"01": 21, "02": 14, "03": 18, "04": 12, "05": 2}
ANSWER = {"01": 28, "02": 15, "03": 17, "04": 11, "05": 6}

EXERCISES = {
    "01": ("check_total_bytes", "check_swiglu_saved"),
    "02": ("check_avoided_bytes", "check_gemm_tile_kib"),
    "03": ("check_net_bytes", "check_break_even"),
    "04": ("check_kernel_mib",),
    "05": ("check_bias_silu_gate", "check_fused_bytes"),
}
QUIZZES = {"01": "traffic_quiz", "02": "reuse_quiz", "03": "decision_quiz", "04": "graph_quiz", "05": "kernel_quiz"}
# The choices of the first learners, of the next, ...: (choice, how many).
VOTES: Mapping[str, tuple[str, Sequence[tuple[int, int]]]] = {
    "traffic_vote": ("01", ((2, 4), (3, 9), (4, 16), (1, 1))),
    "lab_vote": ("01", ((3, 5), (6, 14), (4, 7))),
    "reuse_vote": ("02", ((4, 12), (3, 14))),
    "tile_vote": ("02", ((1, 2), (2, 3), (3, 10), (6, 8))),
    "veto_vote": ("03", ((1, 15), (3, 5), (2, 2))),
    "graph_vote": ("04", ((1, 9), (2, 6), (3, 3))),
    "compiler_vote": ("04", ((1, 6), (4, 4), (2, 7))),
    "kernel_vote": ("05", ((3, 6), (2, 3))),
    "losing_vote": ("05", ((1, 8), (3, 1))),
}
# The mistakes met in an exercise on the way: (index, how many learners).
MISTAKES = {"check_total_bytes": ((1, 13), (2, 6)), "check_swiglu_saved": ((0, 17),), "check_net_bytes": ((0, 5),)}
PUZZLES = ("gate", "side_input", "kept", "epilogue", "reduction", "cut", "long_row", "recompute", "attention")
DAY = "2026-11-2"


def learner(i: int, name: str | None = None) -> dict[str, Any]:
    """The export of learner ``i``, from 0."""
    lessons = [lesson for lesson, count in BEGIN.items() if i < count]
    sections = {
        "votes": _votes(i),
        "guesses": _guesses(i),
        "exercises": {key: entry for lesson in lessons for key, entry in _exercises(i, lesson).items()},
        "quizzes": {QUIZZES[lesson]: _quiz(i, lesson) for lesson in lessons if i < ANSWER[lesson] + 1},
        "puzzles": _puzzles(i),
        "weather": {"rain": {"lesson": "04" if "04" in lessons else "01", "drops": [1, 2]}},  # of a newer version
    }
    chosen = NAMES[i] if name is None else name
    return {"format": "fusion-results", "version": 1, "name": chosen, "sections": sections}


def write_class(folder: Path) -> None:
    """All thirty, a file each."""
    for i in range(SIZE):
        write(folder / f"{i + 1:02}-fusion-results.json", learner(i))


def write(path: Path, data: object) -> Path:
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return path


NAMES = (
    *("李雷", "韩梅梅", "Ada", "王小明", "", "Grace Hopper", "张伟", "Łukasz", "Ngọc Ánh", "陈静", "José", "赵一"),
    *("Sofía", "孙二", "Priya", "周三", "Oluwaseun", "吴四", "", "郑五", "Zoë", "冯六", "Björn", "卫七", "Mei"),
    *("蒋八", "Омар", "沈九", "Fatima", "韩十"),
)


def _votes(i: int) -> dict[str, Any]:
    entries = {}
    for key, (lesson, spread) in VOTES.items():
        before = 0
        for choice, count in spread:
            if before <= i < before + count:
                entry: dict[str, Any] = {
                    "choice": choice,
                    "label": f"label {choice}",
                    "lesson": lesson,
                    "day": f"{DAY}1",
                }
                if key == "lab_vote":
                    entry["measured"] = 1.6 if i % 3 else 2.2  # nearest: choice 3, choice 4
                entries[key] = entry
            before += count
    return entries


def _guesses(i: int) -> dict[str, Any]:
    """Typed guesses at the traffic panel: of 30, ten right, six at half, nine at double, five in words."""
    typed = 384 if i < 10 else 192 if i < 16 else 768 if i < 25 else None
    words = f"{typed} MiB" if typed else "a lot"
    entry = {"guess": words, "number": typed, "measured": 384, "lesson": "01", "day": f"{DAY}1"}
    return {"TrafficPanel": entry}


def _exercises(i: int, lesson: str) -> dict[str, Any]:
    found = {}
    for place, key in enumerate(EXERCISES[lesson]):
        right = i < (SOLVE if place == 0 else SOLVE_ALL)[lesson]
        met = [index for index, count in MISTAKES.get(key, ()) if i < count]
        found[key] = {
            "status": "right" if right else "wrong" if i % 2 else "open",
            "tries": 1 + len(met),
            "mistake": None if right or not met else met[-1],
            "mistakes": met,
            "lesson": lesson,
            "day": f"{DAY}{2 + int(lesson)}",
        }
    return found


def _quiz(i: int, lesson: str) -> dict[str, Any]:
    """Three questions; the one learner beyond those who finish leaves the last one open."""
    answers: list[int | None] = [1 + (i % 5 > 2), 1 + (i + int(lesson)) % 3, 2 if i % 4 else 3]
    if i >= ANSWER[lesson]:
        answers[2] = None
    return {"answers": answers, "right": 0, "lesson": lesson, "day": f"{DAY}{2 + int(lesson)}"}


def _puzzles(i: int) -> dict[str, Any]:
    """Learner i of lesson 04 tries the first 9 - i // 2 puzzles, solves all but the last, stars every other."""
    if i >= BEGIN["04"]:
        return {}
    tried = PUZZLES[: max(1, 9 - i // 2)]
    return {
        name: {
            "solved": place < len(tried) - 1,
            "star": place < len(tried) - 1 and (i + place) % 2 == 0,
            "shown": place == len(tried) - 1 and i % 3 == 0,
            "hints": i % 4,
            "launches": 1 + place % 3,
            "total_bytes": (96 + 32 * (i % 3)) * 2**20,
            "moves": 3 + i % 5,
        }
        for place, name in enumerate(tried)
    }
