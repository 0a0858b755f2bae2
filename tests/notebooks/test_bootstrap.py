"""Every way into a lesson, really taken: each test runs the first cell in a Python of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import venv
import zipfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from small_course import PYPROJECT

from notebooks.build.bootstrap import bootstrap_source
from notebooks.build.config import Config, read_config

MODULES = ("ipywidgets", "drawsvg", "lazy_loader")
LIBRARY = "def use_language(language):\n    open('language.txt', 'w').write(language)\n"
REQUIREMENTS = ["ipywidgets>=7.7", "drawsvg>=2.4", "lazy-loader>=0.4"]
ARCHIVE = "https://github.com/someone/course/archive/main.zip"
GIT = "git+https://github.com/someone/course@main"
MIRROR = "git+https://mirror.example/course@main"

# Runs cell.py as a kernel would, top-level await and all, after the guards.
RUNNER = """
import ast, asyncio, inspect, sys
sys.path[:] = [place for place in sys.path if "site-packages" not in place] + ["there"]
# The course itself may be installed as an editable package, which has a finder of its own.
editable = [finder for finder in sys.meta_path if getattr(finder, "__module__", "").startswith("__editable__")]
sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in editable]
{guards}
code = compile(open("cell.py", encoding="utf-8").read(), "cell.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
space = {{"__name__": "__main__"}}
result = eval(code, space)
if inspect.iscoroutine(result):
    asyncio.run(result)
"""
NO_WAY_OUT = """
import socket, subprocess
def forbidden(*arguments, **options):
    raise SystemExit(f"forbidden: {arguments}")
asyncio.run(asyncio.sleep(0))
subprocess.run = subprocess.Popen = forbidden
socket.socket.connect = socket.getaddrinfo = forbidden
"""
# A pip that notes down what it is asked for, and "installs" what its answers say.
FAKE_PIP = """
import json, pathlib, sys
asked = sys.argv[1:]
with open("asked.txt", "a") as log:
    print(*asked, file=log)
answers = json.loads(pathlib.Path("answers.json").read_text())
for module in answers.get(asked[-1], ["fail"]):
    if module == "fail":
        sys.exit(1)
    if module == "hang":
        import time
        time.sleep(60)
    pathlib.Path("there", module).mkdir(parents=True)
    text = pathlib.Path("library.txt").read_text() if module == "lessons_lib" else ""
    pathlib.Path("there", module, "__init__.py").write_text(text)
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings/pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    return read_config(tmp_path / "settings")


@pytest.fixture
def place(tmp_path: Path, config: Config) -> Path:
    """Where a learner's notebook lies: nothing there but the cell and an empty folder for modules."""
    here = tmp_path / "a/b/c"
    (here / "there").mkdir(parents=True)
    (here / "library.txt").write_text(LIBRARY, encoding="utf-8")
    write_cell(here, config)
    return here


def write_cell(here: Path, config: Config, *needs: str) -> None:
    (here / "cell.py").write_text(bootstrap_source("zh", config, needs), encoding="utf-8")


def put(folder: Path, *modules: str) -> None:
    for module in modules:
        (folder / module).mkdir(parents=True)
        text = LIBRARY if module == "lessons_lib" else ""
        (folder / module / "__init__.py").write_text(text, encoding="utf-8")


def run(
    here: Path, guards: str = "", python: str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the cell in ``here``."""
    (here / "runner.py").write_text(RUNNER.format(guards=guards), encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON"))}
    environment |= {"PYTHONIOENCODING": "utf-8", **variables}
    return subprocess.run(
        [python, "runner.py"], cwd=here, env=environment, capture_output=True, text=True, timeout=60, encoding="utf-8"
    )


def with_fake_pip(here: Path, answers: str) -> subprocess.CompletedProcess[str]:
    put(here / "fake", "pip")
    (here / "fake/pip/__main__.py").write_text(FAKE_PIP, encoding="utf-8")
    (here / "answers.json").write_text(answers, encoding="utf-8")
    return run(here, PYTHONPATH="fake")


def asked_for(here: Path) -> list[str]:
    """What pip was asked to install, call by call, options left out."""
    calls = (here / "asked.txt").read_text(encoding="utf-8").splitlines()
    return [" ".join(word for word in call.split()[1:] if not word.startswith("-")) for call in calls]


def works(done: subprocess.CompletedProcess[str], here: Path) -> bool:
    assert done.returncode == 0, done.stderr
    return (here / "language.txt").read_text(encoding="utf-8") == "zh"


def test_when_everything_is_there_nothing_happens(place: Path) -> None:
    put(place / "there", "lessons_lib", *MODULES)
    done = run(place, NO_WAY_OUT)
    assert works(done, place)
    assert done.stdout + done.stderr == ""


def test_finds_the_repository_above(place: Path) -> None:
    put(place / "there", *MODULES)
    put(place.parents[1], "lessons_lib")
    put(place, "wheels")
    (place.parents[1] / "pyproject.toml").touch()
    done = run(place, NO_WAY_OUT)
    assert works(done, place)
    assert done.stdout + done.stderr == ""


def test_a_folder_of_that_name_is_not_the_repository(place: Path) -> None:
    put(place / "there", *MODULES)
    put(place.parents[1], "lessons_lib")  # but no pyproject.toml
    (place / "lessons_lib").mkdir()  # and an empty folder where Python looks first
    done = with_fake_pip(place, f'{{"{ARCHIVE}": ["lessons_lib"]}}')
    assert works(done, place)
    assert asked_for(place) == [ARCHIVE]


def test_a_checkout_gets_only_the_missing_requirements(place: Path) -> None:
    put(place / "there", "ipywidgets")
    put(place.parent, "lessons_lib")
    (place.parent / "pyproject.toml").touch()
    done = with_fake_pip(place, '{"lazy-loader>=0.4": ["drawsvg", "lazy_loader"]}')
    assert works(done, place)
    assert asked_for(place) == ["drawsvg>=2.4 lazy-loader>=0.4"]


def test_sources_are_tried_in_order_with_short_timeouts_and_without_dependencies(place: Path) -> None:
    put(place / "there", *MODULES)
    done = with_fake_pip(place, f'{{"{MIRROR}": ["lessons_lib"]}}')
    assert works(done, place)
    assert asked_for(place) == [ARCHIVE, GIT, MIRROR]
    for call in (place / "asked.txt").read_text(encoding="utf-8").splitlines():
        assert {"--timeout=10", "--retries=0", "--no-deps"} <= set(call.split())
    assert "lessons_lib <- https://github.com" in done.stdout


@pytest.mark.parametrize(("published", "last"), [(False, MIRROR), (True, "operator-fusion-lessons")])
def test_pypi_is_asked_only_once_the_name_is_ours(place: Path, config: Config, published: bool, last: str) -> None:
    put(place / "there", *MODULES)
    write_cell(place, replace(config, published=published))
    assert with_fake_pip(place, "{}").returncode == 1
    assert asked_for(place)[-1] == last


def test_when_nothing_helps_one_message_in_both_languages_says_what_to_do(place: Path) -> None:
    put(place / "there", "ipywidgets", "drawsvg")
    done = with_fake_pip(place, "{}")
    assert done.returncode == 1
    message = done.stderr.split("RuntimeError: ")[1]
    assert message.startswith("缺少 lessons_lib, lazy_loader，")
    assert "\nlessons_lib, lazy_loader: missing, and could not be installed." in message
    for way in ("检查网络", "check the network", "operator_fusion_lessons-*.whl", "github.com/someone/course"):
        assert way in message


def test_a_source_that_hangs_is_given_up(place: Path) -> None:
    put(place / "there", *MODULES)
    cell = place / "cell.py"
    cell.write_text(cell.read_text(encoding="utf-8").replace("timeout=120", "timeout=1"), encoding="utf-8")
    done = with_fake_pip(place, f'{{"{ARCHIVE}": ["hang"], "{GIT}": ["lessons_lib"]}}')
    assert works(done, place)


def test_a_wheel_beside_comes_before_any_source(place: Path) -> None:
    put(place / "there", *MODULES)
    old = place.parents[1] / "wheels/operator_fusion_lessons-0.1.0-py3-none-any.whl"
    new = place / "operator_fusion_lessons-0.2.0-py3-none-any.whl"
    for wheel in (old, new):
        wheel.parent.mkdir(exist_ok=True)
        wheel.touch()
    assert with_fake_pip(place, "{}").returncode == 1
    assert asked_for(place)[:3] == [str(new.resolve()), str(old.resolve()), ARCHIVE]


def make_wheel(folder: Path, module: str, name: str, requires: tuple[str, ...] = ()) -> None:
    """A real wheel of one empty module."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name.replace('-', '_')}-9.0.dist-info"
    needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    files = {
        f"{module}/__init__.py": LIBRARY if module == "lessons_lib" else "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.0\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{name.replace('-', '_')}-9.0-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)


def fresh_python(folder: Path) -> str:
    """A new environment with nothing but this environment's pip, which is faster than unpacking another."""
    pip = find_spec("pip")
    assert pip is not None and pip.origin is not None
    venv.create(folder, symlinks=os.name != "nt")
    packages = next(folder.rglob("site-packages"))
    (packages / "pip").symlink_to(Path(pip.origin).parent, target_is_directory=True)
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def test_a_folder_of_wheels_is_enough_and_an_index_fills_its_gaps(place: Path, tmp_path: Path) -> None:
    """A real pip in a fresh environment, with no network: only files."""
    python = fresh_python(tmp_path / "env")
    offline = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": (tmp_path / "index").as_uri(), "PIP_NO_CACHE_DIR": "1"}
    wheels = place.parent / "wheels"
    make_wheel(wheels, "lessons_lib", "operator-fusion-lessons", tuple(REQUIREMENTS))
    make_wheel(wheels, "ipywidgets", "ipywidgets")
    make_wheel(wheels, "drawsvg", "drawsvg")
    keep_packages = "import site; site.main(); sys.path += site.getsitepackages()"

    lacking = run(place, keep_packages, python, **offline)
    assert lacking.returncode == 1
    assert "缺少 ipywidgets, drawsvg, lazy_loader，" in lacking.stderr

    make_wheel(tmp_path / "index/lazy-loader", "lazy_loader", "lazy-loader")
    wheel = next((tmp_path / "index/lazy-loader").glob("*.whl")).name
    (tmp_path / "index/lazy-loader/index.html").write_text(f'<a href="{wheel}">{wheel}</a>', encoding="utf-8")
    assert not (place / "language.txt").exists()
    # The index alone cannot give ipywidgets and drawsvg, the folder alone cannot give lazy-loader.
    filled = run(place, keep_packages, python, **offline)
    assert works(filled, place)

    again = run(place, keep_packages + NO_WAY_OUT, python, **offline)
    assert works(again, place)
    assert again.stdout == ""


BROWSER = textwrap.dedent(
    """
    import pathlib, types
    piplite = types.ModuleType("piplite")
    piplite.__spec__ = types.SimpleNamespace(origin="browser")
    async def install(wanted, deps=True, index_urls=None):
        with open("asked.txt", "a") as log:
            print("install", *wanted, f"deps={deps}", f"index={index_urls}", file=log)
        for name in wanted:
            if name == REFUSED:
                raise ValueError(name)
            module = "lessons_lib" if "fusion" in name else name.partition(">")[0].replace("-", "_")
            pathlib.Path("there", module).mkdir()
            text = pathlib.Path("library.txt").read_text() if module == "lessons_lib" else ""
            pathlib.Path("there", module, "__init__.py").write_text(text)
    piplite.install = install
    sys.modules["piplite"] = piplite
    # Everything is imported before the platform changes: asyncio would look for the browser's own loop.
    import importlib.util, os, site, subprocess
    asyncio.run(asyncio.sleep(0))
    sys.platform = "emscripten"
    """
)


def test_a_browser_takes_its_own_installer_and_no_process(place: Path) -> None:
    done = run(place, f"REFUSED = None\n{BROWSER}\n{NO_WAY_OUT}")
    assert works(done, place)
    assert asked_for(place) == [
        "operator-fusion-lessons deps=False index=[]",  # the site's own index, not PyPI
        f"{' '.join(REQUIREMENTS)} deps=True index=None",
    ]


@pytest.mark.parametrize("refused", [None, "press>=2"])
def test_a_browser_gets_what_it_can_have_of_the_lessons_extras_and_does_without(
    place: Path, config: Config, refused: str | None
) -> None:
    write_cell(place, replace(config, in_browser={"lab": (), "graph": ("press>=2",)}), "lab", "graph")
    put(place / "there", "lessons_lib", *MODULES)
    done = run(place, f"REFUSED = {refused!r}\n{BROWSER}\n{NO_WAY_OUT}")
    assert works(done, place)
    assert asked_for(place) == ["press>=2 deps=True index=None"]


def test_outside_a_browser_no_extra_is_installed(place: Path, config: Config) -> None:
    write_cell(place, replace(config, in_browser={"graph": ("press>=2",)}), "graph")
    put(place / "there", "lessons_lib", *MODULES)
    done = run(place, NO_WAY_OUT)
    assert works(done, place) and done.stdout + done.stderr == ""


def test_the_cell_of_a_lesson_without_such_extras_stays_as_it_was(config: Config) -> None:
    more = replace(config, in_browser={"lab": (), "graph": ("press>=2",)})
    assert bootstrap_source("zh", more, ("lab", "kernel")) == bootstrap_source("zh", config)
    assert bootstrap_source("zh", more, ("graph",)) != bootstrap_source("zh", config)


def test_a_browser_takes_a_wheel_beside(place: Path) -> None:
    wheel = place / "wheels/operator_fusion_lessons-0.1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    done = run(place, f"REFUSED = None\n{BROWSER}\n{NO_WAY_OUT}")
    assert works(done, place)
    assert asked_for(place)[0] == f"emfs:{wheel.resolve()} deps=False index=[]"


def test_a_browser_without_the_package_gets_the_message(place: Path) -> None:
    done = run(place, f"REFUSED = 'operator-fusion-lessons'\n{BROWSER}\n{NO_WAY_OUT}")
    assert done.returncode == 1
    assert "缺少 lessons_lib，" in done.stderr


def test_in_a_real_kernel_the_message_is_short(place: Path, config: Config) -> None:
    """Top-level await in a kernel; the learner sees the cell's last lines and the message, no pip, no frames."""
    config = replace(config, requirements=("no-such-package",))
    put(place, "lessons_lib")
    block = nbformat.v4.new_code_cell("import subprocess\ndef no(*a, **k): raise OSError\nsubprocess.run = no")
    cell = nbformat.v4.new_code_cell(bootstrap_source("en", config))
    notebook = nbformat.v4.new_notebook(cells=[block, cell])
    client = NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(place)}})
    with pytest.raises(CellExecutionError, match="no_such_package: missing, and could not be installed"):
        client.execute()
    frames = "\n".join(cell.outputs[-1].traceback)
    assert "subprocess" not in frames
    assert len(frames.splitlines()) < 30
