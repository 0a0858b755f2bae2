import sys

import pytest

from tools import project

tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")


def test_extras_are_read_as_a_toml_reader_reads_them():
    text = project.PYPROJECT.read_text(encoding="utf-8")
    assert list(project.lesson_extras(text)) == tomllib.loads(text)["tool"]["lessons"]["extras"]


def test_extras_of_another_table_are_not_taken():
    text = (
        '[tool.other]\nextras = ["no"]\n\n[tool.lessons]\nref = "main"\nextras = [\n  "lab",\n  "graph",\n]\n[tool.z]'
    )
    assert project.lesson_extras(text) == ("lab", "graph")


def test_requirements_of_every_extra_are_read_as_a_toml_reader_reads_them():
    text = project.PYPROJECT.read_text(encoding="utf-8")
    for extra, requirements in tomllib.loads(text)["project"]["optional-dependencies"].items():
        assert list(project.extra_requirements(text, extra)) == requirements
    with pytest.raises(ValueError, match="nothing"):
        project.extra_requirements(text, "nothing")


def test_a_list_may_hold_brackets_span_lines_and_carry_a_comment():
    text = '[project.optional-dependencies]\na = [\n  "x[y]>=1", # why\n  "z",\n]  # done\nb = ["c"]\n'
    assert project.extra_requirements(text, "a") == ("x[y]>=1", "z")
    assert project.extra_requirements(text, "b") == ("c",)


@pytest.mark.parametrize(
    "line", ["a-b.c", "a-b.c>=1", "a-b.c ; python_version < '3'", "a-b.c[x]", "a-b.c@ file:///y"]
)
def test_a_requirements_name_is_what_comes_before_everything_else(line):
    assert project.requirement_name(line) == "a-b.c"


def test_missing_extras_are_an_error():
    with pytest.raises(ValueError, match="extras"):
        project.lesson_extras('[tool.lessons]\nref = "main"\n[tool.other]\nextras = ["no"]\n')


def test_pins_are_chosen_by_python_and_absent_for_an_unknown_one(tmp_path):
    (tmp_path / "py312.txt").write_text("torch==2.13.0\n")
    assert project.constraints_for((3, 12), tmp_path) == tmp_path / "py312.txt"
    assert project.constraints_for((3, 99), tmp_path) is None


def test_a_requirement_is_pinned_by_its_whole_name(tmp_path):
    pins = tmp_path / "py312.txt"
    pins.write_text("torchvision==0.1\ntriton==3.7.1 ; sys_platform == 'linux'\ntorch==2.13.0\n")
    assert project.pinned("torch", pins) == "torch==2.13.0"
    assert project.pinned("triton", pins) == "triton==3.7.1"
    assert project.pinned("numpy", pins) == "numpy"
    assert project.pinned("torch", None) == "torch"
