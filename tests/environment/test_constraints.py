"""The pins: exact, for every Python of the matrix, and for every requirement of pyproject.toml."""

import re
import sys

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.constraints import HELD, PYTHONS, without_marker
from tools.project import CONSTRAINTS, PYPROJECT, ROOT

tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")

PROJECT = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
SYSTEMS = (("linux", "Linux", "x86_64"), ("darwin", "Darwin", "arm64"), ("win32", "Windows", "AMD64"))


def pins_of(python):
    text = (CONSTRAINTS / f"py{python.replace('.', '')}.txt").read_text(encoding="utf-8")
    return [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]


def every_requirement():
    extras = PROJECT["optional-dependencies"].values()
    return [Requirement(line) for lines in (PROJECT["dependencies"], *extras) for line in lines]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(("sys_platform", "platform_system", "platform_machine"), SYSTEMS)
def test_every_requirement_is_pinned_within_its_range(python, sys_platform, platform_system, platform_machine):
    here = {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": sys_platform,
        "platform_system": platform_system,
        "platform_machine": platform_machine,
        "extra": "",
    }
    pins = {
        canonicalize_name(pin.name): pin for pin in pins_of(python) if not pin.marker or pin.marker.evaluate(here)
    }
    for wanted in every_requirement():
        if wanted.marker and not wanted.marker.evaluate(here):
            continue
        version = re.fullmatch(r"==(.+)", str(pins[canonicalize_name(wanted.name)].specifier))
        assert version and wanted.specifier.contains(version[1]), wanted


@pytest.mark.parametrize("python", PYTHONS)
def test_pins_are_exact_and_name_no_host_and_no_path(python):
    for pin in pins_of(python):
        assert pin.url is None and not pin.extras
        assert [specifier.operator for specifier in pin.specifier] == ["=="], pin


@pytest.mark.parametrize("python", PYTHONS)
def test_torch_is_held_with_the_triton_that_its_cuda_build_asks_for(python):
    pins = {pin.name: str(pin.specifier) for pin in pins_of(python)}
    assert f"torch{pins['torch']}" in HELD
    assert pins["triton"] == "==3.7.1"


def test_only_the_condition_on_the_files_own_python_is_dropped():
    made = (
        "a==1 ; python_full_version < '3.11'\n"
        "b==2 ; python_full_version < '3.11' and sys_platform == 'linux'\n"
        "c==3 ; python_full_version < '3.10.2'\n"
    )
    assert (
        without_marker(made, "3.10")
        == "a==1\nb==2 ; sys_platform == 'linux'\nc==3 ; python_full_version < '3.10.2'\n"
    )


def test_ci_runs_on_every_python_that_has_pins_and_keeps_the_screenshots():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["test"]
    assert tuple(job["strategy"]["matrix"]["python"]) == PYTHONS
    assert {f"py{python.replace('.', '')}.txt" for python in PYTHONS} == {p.name for p in CONSTRAINTS.glob("py*.txt")}
    assert any(".ci/run" in step.get("run", "") for step in job["steps"])
    assert any(step.get("with", {}).get("path") == "artifacts/" for step in job["steps"])
