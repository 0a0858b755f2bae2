"""environment.yml and binder/ describe the environment of pyproject.toml: same names, minimum versions, conditions."""

import os
import subprocess
import sys

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.project import PYPROJECT, ROOT, lesson_extras

tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")

FILES = ("environment.yml", "binder/environment.yml")

# conda-forge's own names; torch's CPU build has one of its own, so that no CUDA comes along.
CONDA_NAMES = {"pytorch-cpu": "torch"}


def dependencies(file):
    """Of a conda file: the conda lines without Python and pip themselves, and the pip lines."""
    listed = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["dependencies"]
    conda = [line for line in listed if isinstance(line, str) and not line.startswith(("python", "pip"))]
    return conda, next(entry["pip"] for entry in listed if isinstance(entry, dict))


def described(lines):
    """Name to minimum version and condition (a marker, such as on the system)."""
    wanted = [Requirement(line) for line in lines]
    return {canonicalize_name(it.name): (str(it.specifier), str(it.marker or "")) for it in wanted}


def packages(file):
    """The packages of conda and pip together. conda knows no condition: what has one is pip's."""
    conda, pip = dependencies(file)
    assert not [line for line in conda if ";" in line]
    found = described(line for line in (*conda, *pip) if not line.startswith("-"))
    return {CONDA_NAMES.get(name, name): it for name, it in found.items()}


def wanted():
    """The same from pyproject.toml: its own requirements and those of the lessons' extras."""
    text = PYPROJECT.read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    lines = [*project["dependencies"]]
    for extra in lesson_extras(text):
        lines += project["optional-dependencies"][extra]
    return described(lines)


@pytest.mark.parametrize("file", FILES)
def test_conda_files_hold_the_packages_of_pyproject(file):
    assert packages(file) == wanted()


def test_a_condition_that_differs_is_seen():
    linux, anywhere = "triton; platform_system == 'Linux'", "triton"
    assert described([linux]) == described(['triton ; platform_system=="Linux"'])
    assert described([linux]) != described([anywhere])


@pytest.mark.parametrize("file", FILES)
def test_no_conda_file_brings_cuda(file):
    conda, pip = dependencies(file)
    cuda = ("cuda", "nvidia", "pytorch>", "pytorch=", "pytorch-cuda", "torch")
    assert not [line for line in (*conda, *pip) if line.startswith(cuda)]


def test_conda_installs_the_course_itself_and_binder_leaves_that_to_post_build():
    assert "--editable ." in dependencies("environment.yml")[1]
    assert not [line for line in dependencies("binder/environment.yml")[1] if line.startswith("-")]


def test_post_build_stops_at_the_first_failure_and_installs_the_lessons_extras():
    path = ROOT / "binder" / "postBuild"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert os.access(path, os.X_OK) and lines[0] == "#!/bin/bash"
    assert "set -e" in lines[: next(n for n, line in enumerate(lines) if line.startswith("python"))]
    extras = ",".join(lesson_extras(PYPROJECT.read_text(encoding="utf-8")))
    assert any(f'--editable ".[{extras}]"' in line for line in lines)


def test_repo2docker_takes_the_binder_files():
    """In a process of its own, since its detection looks at the current folder; it needs no container."""
    pytest.importorskip("repo2docker")
    script = (
        "from repo2docker.buildpacks import CondaBuildPack\n"
        "pack = CondaBuildPack(base_image='any')\n"
        "assert pack.detect()\n"
        "print(pack.binder_dir, pack.python_version, pack.get_post_build_scripts())\n"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "binder" in result.stdout and "3.12" in result.stdout and "postBuild" in result.stdout
