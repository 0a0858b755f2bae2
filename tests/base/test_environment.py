"""What the machine is, read from the texts that real systems give; and that looking never raises."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lessons_lib.base import environment as env
from lessons_lib.base.environment import MEASURE_VARIABLE, FoundGpu, measuring_seconds
from lessons_lib.base.language import current_language, use_language
from lessons_lib.base.text import Text

T4 = FoundGpu("nvidia", "Tesla T4", (7, 5), "sm_75", 15360 * 2**20)
P100 = FoundGpu("nvidia", "Tesla P100-PCIE-16GB", (6, 0), "sm_60", 16384 * 2**20)
MI300X = FoundGpu("amd", "AMD Instinct MI300X", None, "gfx942", 206141652992)


@pytest.fixture(autouse=True)
def _language_restored() -> Iterator[None]:
    before = current_language()
    yield
    use_language(before)


# -- where ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "platform", "place"),
    [
        ({}, "linux", "local"),
        ({"COLAB_RELEASE_TAG": "release-colab"}, "linux", "colab"),
        ({"COLAB_GPU": "1"}, "linux", "colab"),
        ({"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}, "linux", "kaggle"),
        ({"COLAB_GPU": "1", "KAGGLE_URL_BASE": "https://www.kaggle.com"}, "linux", "kaggle"),
        ({"MODELSCOPE_ENVIRONMENT": "dsw"}, "linux", "modelscope"),
        ({"BINDER_SERVICE_HOST": "10.0.0.1"}, "linux", "binder"),
        ({"BINDER_REPO_URL": "https://example.org"}, "linux", "binder"),
        ({"COLAB_GPU": "1"}, "emscripten", "jupyterlite"),
    ],
)
def test_the_place_is_told_by_its_variables(variables: dict[str, str], platform: str, place: str) -> None:
    assert env.place_name(variables, platform) == place


def test_the_system_has_its_usual_name() -> None:
    names = {name: env.system_name(name) for name in ("linux", "darwin", "win32", "emscripten", "freebsd14")}
    assert list(names.values()) == ["Linux", "macOS", "Windows", "browser", "Linux"]


def test_the_processor_has_a_name_or_none() -> None:
    xeon = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R)  CPU @ 2.00GHz\nprocessor\t: 1\n"
    assert env.parse_cpu_name(xeon) == "Intel(R) Xeon(R) CPU @ 2.00GHz"
    assert env.parse_cpu_name("processor\t: 0\nBogoMIPS\t: 243.75\nCPU part\t: 0xd0c\n") == ""
    assert env.parse_cpu_name("processor : 0\n\nModel\t\t: Raspberry Pi 5\n") == "Raspberry Pi 5"
    assert env.parse_cpu_name("model name\t:\nother: x\n") == ""


# -- memory --------------------------------------------------------------------------------------------------

MEMINFO = """MemTotal:       13290472 kB
MemFree:         6240064 kB
MemAvailable:   11873124 kB
"""
VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10000.
Pages active:                            999999.
Pages inactive:                            2000.
Pages speculative:                          300.
Pages wired down:                        888888.
Pages purgeable:                             40.
"Translation faults":                1234567890.
"""


def test_memory_of_linux_and_macos() -> None:
    assert env.parse_meminfo(MEMINFO) == 11873124 * 1024
    assert env.parse_meminfo("MemTotal: 5 kB\n") is None
    assert env.parse_vm_stat(VM_STAT) == 16384 * 12340
    assert env.parse_vm_stat("") is None
    assert env.parse_vm_stat("(page size of 4096 bytes)") is None


def test_the_paths_of_the_control_groups() -> None:
    assert env.parse_cgroup_paths("0::/user.slice/session-1.scope\n") == ("/user.slice/session-1.scope", None)
    v1 = "11:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n1:name=systemd:/docker/ab\n0::/\n"
    assert env.parse_cgroup_paths(v1) == ("/", "/docker/ab")
    assert env.parse_cgroup_paths("3:hugetlb,memory:/a b\n") == (None, "/a b")
    assert env.parse_cgroup_paths("") == (None, None)


@pytest.mark.parametrize(
    ("limit", "usage", "stat", "room"),
    [
        ("2147483648\n", "1500000000\n", "anon 1\ninactive_file 500000000\n", 1147483648),
        ("1000\n", "400\n", "inactive_file 1\ntotal_inactive_file 300\n", 900),
        ("1000\n", "400\n", "", 600),
        ("1000\n", "1400\n", "", 0),
        ("1000\n", "100\n", "inactive_file 300\n", 1000),
        ("max\n", "400\n", "", None),
        ("", "", "", None),
        ("1000", "", "", None),
    ],
)
def test_the_room_in_a_control_group(limit: str, usage: str, stat: str, room: int | None) -> None:
    assert env.parse_cgroup_room(limit, usage, stat) == room


def fake_files(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    monkeypatch.setattr(env, "_read", lambda path: files.get(path.as_posix()))


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="reads Linux's files")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/proc/meminfo": MEMINFO}, 11873124 * 1024),
        (
            {
                "/proc/meminfo": MEMINFO,
                "/proc/self/cgroup": "0::/pod/app\n",
                "/sys/fs/cgroup/pod/app/memory.max": "max\n",
                "/sys/fs/cgroup/pod/app/memory.current": "1\n",
                "/sys/fs/cgroup/pod/memory.max": "5000\n",
                "/sys/fs/cgroup/pod/memory.current": "2000\n",
            },
            3000,
        ),
        (
            {
                "/proc/meminfo": MEMINFO,
                "/proc/self/cgroup": "4:memory:/docker/ab\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "7000\n",
                "/sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n",
                "/sys/fs/cgroup/memory/memory.stat": "total_inactive_file 500\n",
            },
            6500,
        ),
        (
            {
                "/proc/meminfo": "MemAvailable: 1 kB\n",
                "/sys/fs/cgroup/memory.max": "5000\n",
                "/sys/fs/cgroup/memory.current": "0\n",
            },
            1024,
        ),
        ({}, None),
    ],
)
def test_free_memory_is_the_tightest_bound(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int | None
) -> None:
    fake_files(monkeypatch, files)
    assert env.free_memory_bytes() == expected


def test_free_memory_of_this_machine_is_plausible() -> None:
    free = env.free_memory_bytes()
    assert free is None or 2**20 < free < 2**50


# -- GPUs ----------------------------------------------------------------------------------------------------


def test_nvidia_smi_is_understood() -> None:
    two = env.parse_nvidia_smi("Tesla T4, 7.5, 15360\nTesla P100-PCIE-16GB, 6.0, 16384\n")
    assert two == (T4, P100)
    assert env.parse_nvidia_smi("NVIDIA GB10, 12.1, [N/A]\n") == (
        FoundGpu("nvidia", "NVIDIA GB10", (12, 1), "sm_121"),
    )
    old_driver = env.parse_nvidia_smi("Tesla K80, 11441\n")
    assert old_driver == (FoundGpu("nvidia", "Tesla K80", memory_bytes=11441 * 2**20),)
    assert env.parse_nvidia_smi("No devices were found\n") == ()
    assert env.parse_nvidia_smi("") == ()


def test_kfd_is_understood() -> None:
    properties = "cpu_cores_count 0\nsimd_count 1216\ngfx_target_version 90402\ndrm_render_minor 128\nodd line x\n"
    bank = "heap_type 1\nsize_in_bytes 206141652992\nflags 0\n"
    assert env.parse_kfd_node(properties, [bank], "AMD Instinct MI300X") == MI300X
    assert env.parse_kfd_node("gfx_target_version 90010\n", []) == FoundGpu("amd", "AMD GPU", target="gfx90a")
    assert env.parse_kfd_node("gfx_target_version 110501\n", []) == FoundGpu("amd", "AMD GPU", target="gfx1151")
    assert env.parse_kfd_node("cpu_cores_count 16\ngfx_target_version 0\n", [bank]) is None
    assert env.parse_kfd_node("", []) is None


@pytest.mark.parametrize(
    ("setting", "left"),
    [
        (None, (T4, P100)),
        ("", ()),
        ("-1", ()),
        ("1", (P100,)),
        ("1, 0", (P100, T4)),
        ("0,-1,1", (T4,)),
        ("0,2,1", (T4,)),
        ("GPU-5ac6", (T4, P100)),
    ],
)
def test_hidden_gpus_are_left_out(setting: str | None, left: tuple[FoundGpu, ...]) -> None:
    assert env.visible((T4, P100), setting) == left


def test_an_old_driver_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def old_tool(*command: str) -> str | None:
        return None if "compute_cap" in command[1] else "Tesla K80, 11441\n"

    monkeypatch.setattr(env.shutil, "which", lambda *_, **__: "nvidia-smi")
    monkeypatch.setattr(env, "_output_of", old_tool)
    monkeypatch.setattr(env, "_amd_gpus", lambda: (MI300X,))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    assert [gpu.name for gpu in env.list_gpus()] == ["Tesla K80", "AMD Instinct MI300X"]


# -- Triton --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("installed", "gpus", "mode", "told"),
    [
        (False, [T4], "none", ""),
        (False, [], "none", ""),
        (True, [T4], "gpu", "Tesla T4"),
        (True, [P100, T4], "gpu", "Tesla T4"),
        (True, [MI300X], "gpu", "MI300X"),
        (True, [P100], "interpreter", "6.0"),
        (True, [FoundGpu("nvidia", "Tesla K80")], "interpreter", "Tesla K80"),
        (True, [], "interpreter", "CPU"),
    ],
)
def test_the_mode_of_triton_and_its_reason(installed: bool, gpus: list[FoundGpu], mode: str, told: str) -> None:
    found, reason = env.triton_mode(installed, gpus)
    assert found == mode
    assert told in reason.zh
    assert told in reason.en


@pytest.mark.parametrize(
    ("capability", "usable"), [((7, 4), False), ((7, 5), True), ((8, 0), True), ((12, 0), True), (None, False)]
)
def test_capability_7_5_is_where_it_begins(capability: tuple[int, int] | None, usable: bool) -> None:
    assert FoundGpu("nvidia", "any", capability).usable_by_triton is usable


# -- packages and fonts --------------------------------------------------------------------------------------


def test_a_package_is_found_without_being_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package in ("made_up_package", "made_up_without_version"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    info = tmp_path / "made_up_package-9.8.7.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made_up_package\nVersion: 9.8.7\n")
    (tmp_path / "made_up_folder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert env._version("made_up_package") == "9.8.7"
    assert env._version("made_up_without_version") == "?"
    assert env._version("made_up_folder") is None, "a mere folder of that name is no package"
    assert env._version("made_up_nothing") is None


def test_triton_is_found_under_its_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env.importlib.util, "find_spec", lambda _: SimpleNamespace(origin="triton/__init__.py"))
    versions = {"pytorch-triton-rocm": "3.5.1"}

    def version(name: str) -> str:
        if name not in versions:
            raise env.importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(env.importlib.metadata, "version", version)
    assert env._version("triton") == "3.5.1"


def test_looking_imports_nothing_heavy() -> None:
    code = (
        "import sys; from lessons_lib.base.environment import environment; environment();"
        "print({'torch', 'triton', 'numpy', 'matplotlib', 'ipywidgets'} & set(sys.modules))"
    )
    root = str(Path(env.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    "name", ["PingFang.ttc", "msyh.ttc", "NotoSansCJK-Regular.ttc", "simsun.ttc", "STHeiti Light.ttc"]
)
def test_chinese_fonts_are_known_by_name(name: str) -> None:
    assert env.is_chinese_font_file(name)


@pytest.mark.parametrize("name", ["DejaVuSans.ttf", "Arial.ttf", "NotoSans-Regular.ttf", "NotoSansJP.otf"])
def test_other_fonts_are_not_taken_for_chinese(name: str) -> None:
    assert not env.is_chinese_font_file(name)


@pytest.mark.parametrize(
    ("platform", "listed", "expected"),
    [
        ("linux", "/usr/share/fonts/NotoSansCJK.ttc: Noto Sans CJK SC\n", True),
        ("linux", "\n", False),
        ("linux", None, None),
        ("darwin", "PingFang SC", True),
        ("emscripten", "not asked", None),
    ],
)
def test_fonts_by_fontconfig(
    monkeypatch: pytest.MonkeyPatch, platform: str, listed: str | None, expected: bool | None
) -> None:
    monkeypatch.setattr(env.sys, "platform", platform)
    monkeypatch.setattr(env, "_output_of", lambda *_: listed)
    assert env._has_chinese_font() is expected


@pytest.mark.parametrize(("file", "expected"), [("msyh.ttc", True), ("arial.ttf", False), (None, None)])
def test_fonts_by_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str | None, expected: bool | None
) -> None:
    if file:
        (tmp_path / file).touch()
    monkeypatch.setattr(env, "_FONT_FOLDERS", {"win32": (str(tmp_path), str(tmp_path / "missing"))})
    monkeypatch.setattr(env, "_output_of", lambda *_: None)
    monkeypatch.setattr(env.sys, "platform", "win32")
    assert env._has_chinese_font() is expected


# -- the whole -----------------------------------------------------------------------------------------------


def test_this_machine_is_described_quickly_and_in_both_languages() -> None:
    start = time.perf_counter()
    found = env.environment()
    assert time.perf_counter() - start < 8  # two tools, 3 s each at the worst; a tenth of a second as a rule
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert found.cpu_cores >= 1
    labels: dict[Any, list[str]] = {}
    for language in ("zh", "en"):
        use_language(language)
        rows = found.rows()
        assert all(isinstance(label, Text) and str(value) for label, value in rows)
        labels[language] = [str(label) for label, _ in rows]
    assert len(set(labels["en"])) == len(labels["en"])
    assert labels["zh"] != labels["en"]


def test_looking_never_raises_even_where_everything_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Any:
        raise RuntimeError("this machine is odd")

    for name in ("_read", "_output_of", "_cpu_name", "_usable_cores", "_version"):
        monkeypatch.setattr(env, name, broken)
    monkeypatch.setattr(env.shutil, "which", broken)
    found = env.environment()
    assert found.free_memory_bytes is None
    assert (found.gpus, found.packages, found.triton_mode) == ((), {}, "none")
    assert found.chinese_font is None
    assert all(str(value) for _, value in found.rows())


def test_the_rows_tell_what_was_found() -> None:
    found = env.Environment(
        python="3.13.1",
        implementation="CPython",
        system="Linux",
        place="colab",
        cpu_name="Xeon",
        cpu_cores=2,
        free_memory_bytes=12 * 2**30,
        gpus=(T4, FoundGpu("amd", "AMD GPU")),
        packages={"torch": "2.11.0"},
        triton_mode="none",
        triton_reason=Text(zh="原因", en="reason"),
        chinese_font=False,
    )
    use_language("en")
    shown = {str(label): str(value) for label, value in found.rows()}
    assert shown == {
        "Python": "3.13.1 (CPython)",
        "Where": "Google Colab (Linux)",
        "Processor": "Xeon, logical cores usable: 2",
        "Free memory": "12 GiB",
        "GPU": "Tesla T4 (15 GiB, sm_75); AMD GPU",
        "Triton": "reason",
        "torch": "2.11.0",
        "triton": "not installed",
        "numpy": "not installed",
        "matplotlib": "not installed",
        "ipywidgets": "not installed",
        "Chinese font for plots": "none found; the course brings one for its own plots",
    }


def test_a_tool_that_is_missing_fails_or_hangs_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "_TOOL_TIMEOUT_SECONDS", 0.5)
    assert env._output_of("no-such-tool-anywhere") is None
    assert env._output_of(sys.executable, "-c", "raise SystemExit(3)") is None
    assert env._output_of(sys.executable, "-c", "import time; time.sleep(30)") is None
    monkeypatch.setattr(env, "_TOOL_TIMEOUT_SECONDS", 20)
    assert (env._output_of(sys.executable, "-c", "print('ok')") or "").strip() == "ok"


@pytest.mark.parametrize(
    ("said", "allowed"),
    [("0.5", 0.5), ("9", 6.0), ("0", 6.0), ("-1", 6.0), ("nan", 6.0), ("soon", 6.0), ("", 6.0), ("inf", 6.0)],
)
def test_a_server_may_cap_what_a_measurement_takes(
    said: str, allowed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEASURE_VARIABLE, said)
    assert measuring_seconds(6.0) == allowed
