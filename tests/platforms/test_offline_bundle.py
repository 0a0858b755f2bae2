"""The bundle, built and used with no network: in a clean environment, in a folder with a blank in its name.

Where the system allows it, the lessons run in a network of their own that holds nothing but a loopback (unshare);
elsewhere a guard in every Python refuses all other addresses. The last lines of the run say which.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from offline_runner import GUARD
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from platform_tools import RUNNER, built_bundle, unpacked, way_to_cut

from tools.bundle.__main__ import CACHE
from tools.bundle.pack import LIMIT, pack
from tools.bundle.start import title_of
from tools.bundle.wheels import SOURCES
from tools.constraints import PYTHONS
from tools.edition import EDITIONS
from tools.lessons import learner_files
from tools.project import ROOT, this_constraints
from tools.side_environment import CACHE as ENVIRONMENTS, offshoot, ready

# A Jupyter kernel with what Anaconda, Colab and ModelScope have, and without sliders: nothing of the course.
CLEAN = ("ipykernel", "nbclient", "nbformat", "numpy", "matplotlib")
MACHINES = [
    {"python_version": python, "python_full_version": f"{python}.9", "platform_system": system, "extra": ""}
    for python in PYTHONS
    for system in ("Linux", "Darwin", "Windows")
]


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_bundle(tmp_path_factory)


@pytest.fixture
def folder(bundle: Path, tmp_path: Path) -> Path:
    return unpacked(bundle, tmp_path / "离线 包")


@pytest.fixture
def clean_python(tmp_path: Path) -> Path:
    """A Python of its own that sees no more than a Jupyter kernel, NumPy and matplotlib."""
    pins = this_constraints()
    base = ENVIRONMENTS / "offline"
    ready(
        base, Path(sys.executable), [*CLEAN, *(["--constraint", str(pins)] if pins else [])], [pins] if pins else []
    )
    return offshoot(base, tmp_path / "env")


def notebooks(folder: Path, edition: str) -> list[str]:
    return sorted(str(path) for path in (folder / edition).glob("*.ipynb"))


def run_offline(python: Path, paths: list[str], home: Path, cut: list[str] | None) -> dict[str, str]:
    """Run these notebooks with no network: path -> what the first code cell printed."""
    guard = home / "guard"
    home.mkdir(exist_ok=True)
    dead = "http://127.0.0.1:9"
    environment = {
        # No setting of this machine's pip: it could name a folder of wheels.
        **{name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON", "JUPYTER"))},
        "PIP_CONFIG_FILE": os.devnull,
        "HOME": str(home),
        "USERPROFILE": str(home),
        "PYTHONIOENCODING": "utf-8",
        "CUT": "unshare" if cut else "guard",
        **{name: dead for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY") if not cut},
    }
    if not cut:
        guard.mkdir()
        (guard / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
        environment["PYTHONPATH"] = str(guard)
    done = subprocess.run(
        [*(cut or []), str(python), str(RUNNER), *paths],
        env=environment,
        cwd=home,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert list(printed) == paths
    return printed


def ask(python: Path, code: str) -> str:
    return subprocess.run(
        [str(python), "-c", code], check=True, capture_output=True, text=True, cwd=python.parent
    ).stdout.strip()


def place_of(python: Path, module: str) -> str:
    return ask(python, f"import importlib.util as u; s = u.find_spec('{module}'); print(s.origin if s else '')")


def test_a_lesson_opened_directly_installs_from_the_wheels_beside_it(folder: Path, clean_python: Path) -> None:
    """Every Chinese lesson, without the start notebook: the way after a restart of a ModelScope instance."""
    assert not any(place_of(clean_python, module) for module in ("lessons_lib", "ipywidgets", "drawsvg"))
    printed = run_offline(clean_python, notebooks(folder, "zh"), folder.parent / "home", way_to_cut())
    first, *others = printed.values()
    assert re.search(r"lessons_lib <- .*operator_fusion_lessons-\S+\.whl", first)
    assert not any(others), "the first lesson installed everything"
    assert not place_of(clean_python, "anywidget"), "lessons on graphs did without: buttons instead of clicks"
    assert Path(place_of(clean_python, "lessons_lib")).is_relative_to(clean_python.parents[1])


def test_the_start_notebook_installs_everything_and_the_lessons_find_it(folder: Path, clean_python: Path) -> None:
    """Every English lesson, after the start notebook."""
    paths = [str(folder / "start.ipynb"), *notebooks(folder, "en")]
    start, *lessons = run_offline(clean_python, paths, folder.parent / "home", way_to_cut()).values()
    assert start.startswith("✓ 准备好了") and "刷新一次浏览器页面" in start
    assert "torch, triton missing" in start and "numpy" not in start
    assert not any(lessons), "nothing was left for a lesson to install"
    assert all(place_of(clean_python, module) for module in ("tqdm", "anywidget", "diskcache"))


def test_the_guard_is_a_guard(folder: Path, clean_python: Path, tmp_path: Path) -> None:
    """The other way to cut the network off, also where the first is permitted: it refuses, and kernels work."""
    lesson = notebooks(folder, "en")[0]
    assert "lessons_lib <-" in run_offline(clean_python, [lesson], tmp_path / "home", None)[lesson]


def test_the_start_notebook_says_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    """Opened without its wheels, as from a zip viewer."""
    notebook = nbformat.read(folder / "start.ipynb", as_version=4)
    code = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    assert "请先解压整个离线包" in done.stderr and "Unpack the whole zip" in done.stderr


def test_it_is_small(bundle: Path) -> None:
    assert bundle.stat().st_size < LIMIT


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in SOURCES:
        shutil.copyfile(ROOT / name, copy / name)
    for name in ("lessons_lib", "notebooks/zh", "notebooks/en"):
        shutil.copytree(ROOT / name, copy / name, copy_function=shutil.copyfile)
    once = pack(CACHE, copy)
    for path in (*copy.glob("lessons_lib/*.py"), copy / "LICENSE"):
        path.chmod(0o600)
        os.utime(path, (10**9, 10**9))
    for left_over in ("notebooks/en/.ipynb_checkpoints/old.ipynb", "lessons_lib/__pycache__/text.pyc"):
        (copy / left_over).parent.mkdir(exist_ok=True)
        (copy / left_over).touch()
    same = pack(CACHE, copy) == once
    assert same  # alone: for its message pytest would compare megabytes by the letter, for minutes


def test_it_holds_both_editions_the_licences_and_nothing_of_a_system(bundle: Path, folder: Path) -> None:
    for edition in EDITIONS:
        there = {path.relative_to(folder / edition): path.read_bytes() for path in (folder / edition).rglob("*.*")}
        assert there == learner_files(ROOT / "notebooks" / edition)
    wheels = [path.name for path in (folder / "wheels").iterdir()]
    assert all(name.endswith("-none-any.whl") for name in wheels)
    with_licence = {path.name for path in (folder / "licenses").iterdir()}
    assert with_licence == {name.split("-")[0] for name in wheels}
    assert all((folder / name).exists() for name in ("LICENSE", "LICENSE-CONTENT", "NOTICE", "README.md"))
    with zipfile.ZipFile(bundle) as archive:
        assert all(name.isascii() for name in archive.namelist()), "old unzip programs spoil other names"


def test_no_lesson_inside_answers_a_question_before_it_is_asked(folder: Path) -> None:
    answers = [
        (path.parent.name, cell)
        for path in folder.glob("??/*.ipynb")
        for cell in nbformat.read(path, as_version=4).cells
        if "answer" in cell.metadata.get("tags", ())
    ]
    assert {edition for edition, _ in answers} == set(EDITIONS)
    assert [cell.id for _, cell in answers if cell.outputs or cell.execution_count is not None] == []


def test_our_wheel_has_every_file_of_the_library(folder: Path) -> None:
    """Fonts and stubs too: what package-data forgets is missed only by those who install."""
    with zipfile.ZipFile(next((folder / "wheels").glob("operator_fusion_lessons-*.whl"))) as wheel:
        packed = set(wheel.namelist())
    files = [path for path in (ROOT / "lessons_lib").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert [path for path in files if path.relative_to(ROOT).as_posix() not in packed] == []


def test_every_wheel_finds_what_it_asks_for(folder: Path) -> None:
    """On every system and Python; a Jupyter kernel always has IPython."""
    wheels = list((folder / "wheels").iterdir())
    there = {canonicalize_name(path.name.split("-")[0]) for path in wheels} | {"ipython"}
    for path in wheels:
        with zipfile.ZipFile(path) as wheel:
            (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            text = wheel.read(metadata).decode()
        for line in re.findall(r"^Requires-Dist: (.+)$", text, re.MULTILINE):
            wanted = Requirement(line)
            if not wanted.marker or any(wanted.marker.evaluate(machine) for machine in MACHINES):
                assert canonicalize_name(wanted.name) in there, f"{path.name}: {line}"


def test_every_link_inside_leads_somewhere(folder: Path) -> None:
    for path in folder.rglob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        targets = [target for target in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in target]
        assert [target for target in targets if not (path.parent / target).exists()] == [], path.name


def test_start_lists_every_lesson_of_both_editions_by_its_title(folder: Path) -> None:
    text = (folder / "start.ipynb").read_text(encoding="utf-8")
    for edition in EDITIONS:
        for path in (folder / edition).glob("*.ipynb"):
            assert f"[{title_of(path.read_text(encoding='utf-8'))}]({edition}/{path.name})" in text


def test_its_readme_names_the_files_that_are_there(bundle: Path, folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "@" not in text and bundle.name in text and f"{folder.name}/start.ipynb" in text
    for name in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE):
        assert all((folder / part).exists() for part in re.findall(r"`([^`]+)`", name)), name
    chinese, english = text.split("## English")
    assert "魔搭" in chinese and "ModelScope" in english
    assert chinese.count("\n1. ") == english.count("\n1. ") == 2
