"""What is deployed: the values against the chart's keys and the measured figures, the commands against their programs."""

from __future__ import annotations

import copy
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from chart import CHART, FILE_KEYS, unknown
from nbformat.sign import NotebookNotary

from benchmarks.classroom_lessons import LIMIT_MB
from benchmarks.results import sections_in
from deploy.copies import write_copies

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
READMES = ("README.md", "README.zh.md")
VALUES = yaml.safe_load((DEPLOY / "values.yaml").read_text(encoding="utf-8"))
LEARNER = VALUES["singleuser"]


def blocks(readme: str, language: str) -> list[str]:
    """The code blocks of a README."""
    return re.findall(rf"^```{language}\n(.*?)^```", (DEPLOY / readme).read_text(encoding="utf-8"), re.M | re.S)


def commands(readme: str) -> list[list[str]]:
    """Every command of a README, its parts apart."""
    lines = "".join(blocks(readme, "sh")).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines]


def in_bytes(amount: str) -> float:
    """A chart's memory: ``1G`` is 2**30 bytes."""
    return float(amount[:-1]) * {"M": 2**20, "G": 2**30}[amount[-1]]


# -- the chart ------------------------------------------------------------------------------------------------


def test_the_chart_knows_every_key() -> None:
    assert unknown(VALUES) == []
    for file in LEARNER["extraFiles"].values():
        assert set(file) <= FILE_KEYS


@pytest.mark.parametrize(
    ("path", "value"),
    [("memory.limits", "1G"), ("memory.limit", True), ("cpu.limit", "2 cores"), ("startTimeout", "600")],
)
def test_a_misspelt_key_or_a_value_of_another_kind_is_found(path: str, value: object) -> None:
    values = copy.deepcopy(VALUES)
    part, name = path.split(".") if "." in path else ("", path)
    (values["singleuser"][part] if part else values["singleuser"])[name] = value
    assert any(path in wrong for wrong in unknown(values))


def test_the_readmes_own_values_are_the_charts_too_and_the_same_in_both_languages() -> None:
    own, other = (blocks(readme, "yaml") for readme in READMES)
    assert own == other and len(own) == 1
    assert unknown(yaml.safe_load(own[0])) == []


def test_values_and_readmes_name_one_version_of_the_chart() -> None:
    assert f"chart {CHART}" in (DEPLOY / "values.yaml").read_text(encoding="utf-8").splitlines()[0]
    for readme in READMES:
        helm = next(command for command in commands(readme) if command[0] == "helm")
        assert helm[helm.index("--version") + 1] == CHART
        assert "deploy/values.yaml" in helm


def test_no_password_is_committed() -> None:
    assert "SharedPasswordAuthenticator" not in VALUES["hub"]["config"]


# -- what the chart passes on ---------------------------------------------------------------------------------


def test_jupyter_server_knows_every_setting_of_its_file() -> None:
    manager = importlib.import_module("jupyter_server.services.kernels.kernelmanager").MappingKernelManager
    data = LEARNER["extraFiles"]["jupyter_server_config.json"]["data"]
    assert set(data) == {"MappingKernelManager"}
    for name, value in data["MappingKernelManager"].items():
        manager.class_traits(config=True)[name].validate(manager(), value)


def test_the_hub_knows_every_setting_of_the_authenticator() -> None:
    pytest.importorskip("jupyterhub")
    authenticator = importlib.import_module("jupyterhub.authenticators.shared").SharedPasswordAuthenticator
    assert VALUES["hub"]["config"]["JupyterHub"]["authenticator_class"] == "shared-password"
    own = yaml.safe_load(blocks("README.md", "yaml")[0])["hub"]["config"]
    for settings in (VALUES["hub"]["config"]["Authenticator"], *own.values()):
        assert set(settings) <= set(authenticator.class_traits(config=True))
    authenticator(**own["SharedPasswordAuthenticator"])  # long enough


def test_after_the_start_a_learners_lessons_are_trusted_those_of_the_classs_copies_too(tmp_path: Path) -> None:
    """The hook's own command, with this repository in the image's place and a home of its own."""
    command = LEARNER["lifecycleHooks"]["postStart"]["exec"]["command"]
    home = {"HOME": str(tmp_path), "JUPYTER_DATA_DIR": str(tmp_path / "data")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    here = [part.replace("/srv/repo", shlex.quote(str(ROOT))) for part in command]
    subprocess.run(here, env={**os.environ, **home, "PATH": path}, check=True, capture_output=True)
    notary = NotebookNotary(data_dir=str(tmp_path / "data"))
    write_copies(tmp_path / "class")
    built = sorted(path for place in (ROOT, tmp_path / "class") for path in place.glob("notebooks/??/0*.ipynb"))
    assert len(built) == 4 * len(sorted((ROOT / "notebooks" / "en").glob("*.ipynb")))
    assert [path for path in built if not notary.check_signature(nbformat.read(path, as_version=4))] == []
    stranger = nbformat.read(built[0], as_version=4)
    stranger.cells[0].source += "changed"
    assert not notary.check_signature(stranger)


# -- the measured figures -------------------------------------------------------------------------------------


def measured(title: str, row: str) -> float:
    """Bytes in a row's first cell of a section of ``RESULTS.md``, or the largest of a column."""
    found = sections_in((ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8"))
    assert title in found, f"no section {title!r}: python -m benchmarks classroom classroom-lessons --write"
    figures = re.findall(rf"^\| {re.escape(row)}[^|]*\| ([\d.]+) MB", found[title], re.M)
    assert figures, f"no row {row!r} in the section {title!r}"
    return float(figures[0]) * 1e6


def test_the_guarantee_covers_a_server_and_the_kernel_of_any_lesson() -> None:
    server = measured("Classroom: one server, many learners", "the learner's server")
    lessons = sorted(path.stem for path in (ROOT / "notebooks" / "en").glob("*.ipynb"))
    heaviest = max(measured("Classroom: memory of each lesson", lesson) for lesson in lessons)
    assert server + heaviest < in_bytes(LEARNER["memory"]["guarantee"])


def test_the_readmes_small_guarantee_covers_the_lessons_without_torch() -> None:
    server = measured("Classroom: one server, many learners", "the learner's server")
    light = max(measured("Classroom: memory of each lesson", name) for name in ("00_", "01_", "02_", "03_"))
    for readme in READMES:
        assert "| 256M |" in (DEPLOY / readme).read_text(encoding="utf-8")
    assert server + light < in_bytes("256M")


def test_the_limit_covers_a_server_with_every_lesson_open_and_one_at_its_peak() -> None:
    server = measured("Classroom: one server, many learners", "the learner's server")
    everything = measured("Classroom: memory of each lesson", "all these kernels open at once")
    assert server + everything < in_bytes(LEARNER["memory"]["limit"])
    assert in_bytes(LEARNER["memory"]["limit"]) > LIMIT_MB * 1e6


def test_the_readmes_sums_follow_from_the_guarantees() -> None:
    for readme in READMES:
        text = (DEPLOY / readme).read_text(encoding="utf-8")
        rows = re.findall(r"\| (\d+)(M|G) \| ([\d,]+) GB \| ([\d,]+) GB \| ([\d,]+) GB \|", text)
        assert [f"{amount}{unit}" for amount, unit, *_ in rows] == ["256M", LEARNER["memory"]["guarantee"]]
        for amount, unit, *sums in rows:
            each = int(amount) / (1000 if unit == "M" else 1)
            wanted = [f"{count * each:,.0f}" for count in (30, 100, 1000)]
            assert sums == wanted


# -- the commands ---------------------------------------------------------------------------------------------


def test_both_readmes_give_the_same_commands() -> None:
    assert commands(READMES[0]) == commands(READMES[1])


def test_repo2docker_takes_the_command_and_puts_the_course_where_no_volume_covers_it() -> None:
    """Its Dockerfile, without a build; the last line is nbgitpuller's."""
    pytest.importorskip("repo2docker")
    command = next(command for command in commands("README.md") if command[0] == "jupyter-repo2docker")
    code = (
        "import json, sys\n"
        "from repo2docker.__main__ import make_r2d\n"
        "made = make_r2d(json.loads(sys.argv[1]))\n"
        "print(json.dumps([made.target_repo_dir, made.user_name, made.user_id, made.appendix, made.output_image_spec]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(command[1:])], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    folder, user, number, appendix, image = json.loads(done.stdout.splitlines()[-1])
    hook = " ".join(LEARNER["lifecycleHooks"]["postStart"]["exec"]["command"])
    assert f"{folder}/notebooks/" in hook
    home = VALUES["hub"]["config"]["KubeSpawner"]["working_dir"]
    assert home == f"/home/{user}" and not folder.startswith(home) and number == 1000
    assert "nbgitpuller==" in appendix
    own = yaml.safe_load(blocks("README.md", "yaml")[0])["singleuser"]["image"]
    assert image == f"{own['name']}:{own['tag']}"


# -- what the image leaves out --------------------------------------------------------------------------------


def names_in(gitignore: str) -> list[str]:
    """A path for every pattern of a .gitignore, its stars made up; what must stay (``!``) aside."""
    lines = [line for line in gitignore.splitlines() if line and line[0] not in "#!"]
    return [line.strip("/").replace("*", "-313") for line in lines]


def test_the_image_takes_the_course_and_nothing_that_git_ignores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As repo2docker itself picks the files, where it looks for the list of those to leave out."""
    repo2docker = pytest.importorskip("repo2docker.buildpacks")
    picks = pytest.importorskip("docker.utils.build").exclude_paths
    ignored = names_in((ROOT / ".gitignore").read_text(encoding="utf-8"))
    assert {".venv-313", ".cache", "work", "dist", "-313.egg-info"} <= set(ignored)
    folders = [name for name in (*ignored, "node_modules") if not name.endswith(".json")]
    left_out = {f"{name}/file" for name in folders} | {name for name in ignored if name.endswith(".json")}
    left_out |= {f"lessons_lib/{name}" for name in ("__pycache__/text.pyc", "fusion-progress-313.json")}
    taken = {
        "notebooks/build/rules.py",
        "notebooks/zh/00_start.ipynb",
        "lessons_lib/kernels/launch.py",
        "binder/postBuild",
    }
    for name in left_out | taken:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(ROOT)
    patterns = Path(repo2docker.CondaBuildPack("no image").binder_path(".dockerignore")).read_text(encoding="utf-8")
    lines = [line for line in patterns.splitlines() if line and not line.startswith("#")]
    files = {path for path in picks(str(tmp_path), lines) if (tmp_path / path).is_file()}
    assert files == taken
