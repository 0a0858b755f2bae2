"""Three learners on one JupyterHub: each with a server and a folder of their own, brought there by a lesson's link."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

if sys.platform == "win32":
    pytest.skip("JupyterHub does not run on Windows", allow_module_level=True)
pytest.importorskip("jupyterhub")
pytest.importorskip("nbgitpuller")

import requests
from hub_driver import Hub, HubLearner, running_hub
from hub_proxy import NoProxyError, proxy_command

from benchmarks.classroom_learner import Learner, Manner
from deploy.copies import write_copies
from deploy.links import pull_link
from notebooks.build.course import read_course

ROOT = Path(__file__).resolve().parents[2]
VALUES = yaml.safe_load((ROOT / "deploy" / "values.yaml").read_text(encoding="utf-8"))
NAMES = ("ada", "bo", "chen")
LESSON = "notebooks/zh/01_traffic.ipynb"
PULLED = f"operator-fusion/{LESSON}"
LAB = ("lab", "lab-verdict")  # the measurement has tests of its own
# In a workshop a panel is locked until a guess is committed: the cell that moves it from code comes after that.
MANNER = Manner(left_out=(*LAB, "panel-code"), seconds=0)


@pytest.fixture(scope="module")
def committed() -> str:
    """What the committed lessons are before anybody comes."""
    return _digest(ROOT / "notebooks")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The class's own repository, in the place of the one that the links name."""
    folder = tmp_path_factory.mktemp("course") / "operator-fusion"
    write_copies(folder)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _commit(folder)
    return folder


@pytest.fixture(scope="module")
def learners(course: Path, committed: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[HubLearner]]:
    """Three learners at once: each logs in, gets a server and follows the link to lesson 01."""
    folder = tmp_path_factory.mktemp("hub")
    (folder / "etc").mkdir()
    for name, file in VALUES["singleuser"]["extraFiles"].items():
        (folder / "etc" / name).write_text(json.dumps(file["data"]), encoding="utf-8")
    with running_hub(folder, VALUES, _proxy()) as hub, ThreadPoolExecutor(len(NAMES)) as at_once:
        yield list(at_once.map(lambda name: _arrive(hub, name, course), NAMES))


def test_every_learner_runs_the_lesson_in_a_kernel_of_the_own_server(learners: list[HubLearner]) -> None:
    async def all_at_once() -> dict[str, list[str]]:
        running = {it.name: Learner(it.server, it.token, PULLED, MANNER) for it in learners}
        await asyncio.gather(*(learner.run_lesson() for learner in running.values()))
        return {name: learner.errors for name, learner in running.items()}

    assert asyncio.run(all_at_once()) == {name: [] for name in NAMES}
    for learner in learners:
        kernels = requests.get(f"{learner.server}/api/kernels", headers=learner.headers, timeout=30).json()
        assert len(kernels) == 1


def test_no_learner_finds_an_answer_before_the_question(learners: list[HubLearner]) -> None:
    cells = learners[0].contents(PULLED).json()["content"]["cells"]
    answers = [cell for cell in cells if "answer" in cell["metadata"].get("tags", ())]
    assert answers and [cell["id"] for cell in answers if cell["outputs"]] == []


def test_a_panel_is_locked_until_a_guess_as_values_yaml_asks(learners: list[HubLearner]) -> None:
    assert VALUES["singleuser"]["extraEnv"]["LESSONS_WORKSHOP"] == "1"
    hasty = Learner(learners[0].server, learners[0].token, PULLED, replace(MANNER, left_out=LAB))
    asyncio.run(hasty.run_lesson())
    assert [error.split(": ")[:2] for error in hasty.errors] == [["cell panel-code", "LockedError"]]


def test_what_one_learner_writes_no_other_sees(learners: list[HubLearner]) -> None:
    ada, bo, chen = learners
    ada.save("mine.txt", {"type": "file", "format": "text", "content": "ada's"})
    assert (ada.home / "mine.txt").read_text(encoding="utf-8") == "ada's"
    assert ada.contents("mine.txt").status_code == 200
    for other in (bo, chen):
        assert other.contents("mine.txt").status_code == 404
        refused = requests.get(f"{ada.server}/api/contents/mine.txt", headers=other.headers, timeout=30)
        assert refused.status_code == 403


def test_a_later_click_on_the_link_brings_what_is_new_and_keeps_what_the_learner_wrote(
    learners: list[HubLearner], course: Path
) -> None:
    ada, bo, _ = learners
    notebook = ada.contents(PULLED).json()["content"]
    exercise = next(cell for cell in notebook["cells"] if cell["id"] == "swiglu")
    exercise["source"] = "saved_mib = 160  # ada's own"
    ada.save(PULLED, {"type": "notebook", "content": notebook})
    upstream = json.loads((course / LESSON).read_text(encoding="utf-8"))
    next(cell for cell in upstream["cells"] if cell["id"] == "swiglu")["source"] = ["saved_mib = None  # corrected"]
    (course / LESSON).write_text(json.dumps(upstream, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (course / "notebooks" / "zh" / "new.txt").write_text("new", encoding="utf-8")
    _commit(course)
    for learner in (ada, bo):
        assert '"finished"' in _pull(learner, course)
        assert learner.contents("operator-fusion/notebooks/zh/new.txt").status_code == 200
    assert "saved_mib = 160  # ada's own" in _cell(ada, "swiglu")
    assert "# corrected" in _cell(bo, "swiglu")


def test_the_course_itself_is_as_it_was(learners: list[HubLearner], committed: str) -> None:
    assert _digest(ROOT / "notebooks") == committed


# -- how ------------------------------------------------------------------------------------------------------


def _proxy() -> list[str]:
    try:
        return proxy_command()
    except NoProxyError as error:
        if error.broken and os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


def _arrive(hub: Hub, name: str, course: Path) -> HubLearner:
    learner = HubLearner(hub, name)
    learner.log_in()
    learner.start_server()
    opened = learner.follow(_link(hub.address))
    assert urlsplit(opened).path == f"/user/{name}/git-pull", opened
    assert '"finished"' in _pull(learner, course)
    return learner


def _link(address: str) -> str:
    """The link to the Chinese lesson 01, as ``links.md`` has it for a hub."""
    found, _ = read_course(ROOT)
    lesson = next(lesson for lesson in found.lessons if lesson.name == "01_traffic")
    return pull_link(lesson, "zh", found.config, address)


def _pull(learner: HubLearner, course: Path) -> str:
    """Fetch what the link names, from the repository of this test."""
    query = parse_qs(urlsplit(_link(learner.hub.address)).query)
    assert query["urlpath"] == [f"lab/tree/{PULLED}"]
    return learner.pull({"repo": course.as_uri(), "branch": query["branch"][0], "targetpath": course.name})


def _cell(learner: HubLearner, cell_id: str) -> str:
    cells = learner.contents(PULLED).json()["content"]["cells"]
    source: str = next(cell["source"] for cell in cells if cell["id"] == cell_id)
    return source


def _commit(folder: Path) -> None:
    _git(folder, "add", "--all")
    _git(
        folder, "-c", "user.name=course", "-c", "user.email=course@example.org", "commit", "--quiet", "-m", "lessons"
    )


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def _digest(folder: Path) -> str:
    """Of every notebook's name and content."""
    whole = hashlib.sha256()
    for path in sorted(folder.glob("??/*.ipynb")):
        whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()
