"""What this machine can run, found in a moment with the standard library, importing nothing heavy.

Every probe is best effort: what cannot be found out is ``None`` or left out, and nothing raises.
Reading files and running tools is kept apart from understanding their text, so that parsers can be tested.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB, format_bytes

System = Literal["Linux", "macOS", "Windows", "browser"]
Place = Literal["colab", "kaggle", "modelscope", "binder", "jupyterlite", "local"]
TritonMode = Literal["gpu", "interpreter", "none"]

# The oldest NVIDIA compute capability that the course runs Triton on: the T4's.
OLDEST_CAPABILITY = (7, 5)
PACKAGES = ("torch", "triton", "numpy", "matplotlib", "ipywidgets")

MEASURE_VARIABLE = "LESSONS_MEASURE_SECONDS"
_TOOL_TIMEOUT_SECONDS = 3
_T = TypeVar("_T")


@dataclass(frozen=True)
class FoundGpu:
    """One GPU that this process may use.

    ``capability`` is NVIDIA's compute capability, ``(7, 5)`` for a T4; ``target`` the compiler's name of the
    architecture, ``"sm_75"`` or ``"gfx942"``. Either is ``None`` where unknown, ``memory_bytes`` too.
    """

    vendor: Literal["nvidia", "amd"]
    name: str
    capability: tuple[int, int] | None = None
    target: str | None = None
    memory_bytes: int | None = None

    @property
    def usable_by_triton(self) -> bool:
        """An AMD GPU of the ROCm driver, or an NVIDIA GPU of compute capability 7.5 or newer."""
        return self.vendor == "amd" or (self.capability is not None and self.capability >= OLDEST_CAPABILITY)


@dataclass(frozen=True)
class Environment:
    """What ``environment()`` found.

    ``cpu_cores`` counts the logical cores this process may use. ``packages`` maps each installed package of
    ``PACKAGES`` to its version. ``chinese_font`` is ``None`` where it cannot be told.
    """

    python: str
    implementation: str
    system: System
    place: Place
    cpu_name: str
    cpu_cores: int
    free_memory_bytes: int | None
    gpus: tuple[FoundGpu, ...]
    packages: Mapping[str, str]
    triton_mode: TritonMode
    triton_reason: Text
    chinese_font: bool | None

    def rows(self) -> list[tuple[Text, Text | str]]:
        """Label and value pairs for a table in the language in use."""
        memory = self.free_memory_bytes
        return [
            (Text(zh="Python", en="Python"), f"{self.python} ({self.implementation})"),
            (
                Text(zh="运行环境", en="Where"),
                _PLACE_NAMES[self.place].format(system=_SYSTEM_NAMES[self.system]),
            ),
            (Text(zh="处理器", en="Processor"), _CORES.format(name=self.cpu_name, cores=self.cpu_cores)),
            (Text(zh="可用内存", en="Free memory"), _UNKNOWN if memory is None else format_bytes(memory)),
            (
                Text(zh="GPU", en="GPU"),
                "; ".join(map(_gpu_words, self.gpus)) or Text(zh="没有找到", en="none found"),
            ),
            (Text(zh="Triton", en="Triton"), self.triton_reason),
            *((Text(zh=name, en=name), self.packages.get(name) or _MISSING) for name in PACKAGES),
            (Text(zh="中文字体（绘图用）", en="Chinese font for plots"), _FONT_WORDS[self.chinese_font]),
        ]


def environment() -> Environment:
    """Look at this machine: well under a second (a slow tool is given up after 3 s); never raises."""
    gpus = list_gpus()
    packages = {name: version for name in PACKAGES if (version := _attempt(partial(_version, name), None))}
    mode, reason = triton_mode("triton" in packages, gpus)
    return Environment(
        python=platform.python_version(),
        implementation=platform.python_implementation(),
        system=system_name(sys.platform),
        place=place_name(os.environ, sys.platform),
        cpu_name=_attempt(_cpu_name, "") or platform.machine() or "CPU",
        cpu_cores=_attempt(_usable_cores, 1),
        free_memory_bytes=free_memory_bytes(),
        gpus=gpus,
        packages=packages,
        triton_mode=mode,
        triton_reason=reason,
        chinese_font=_attempt(_has_chinese_font, None),
    )


_UNKNOWN = Text(zh="无法得知", en="unknown")
_MISSING = Text(zh="未安装", en="not installed")
_CORES = Text(zh="{name}，可用逻辑核心 {cores} 个", en="{name}, logical cores usable: {cores}")
_SYSTEM_NAMES: Mapping[System, Text] = {
    "Linux": Text(zh="Linux", en="Linux"),
    "macOS": Text(zh="macOS", en="macOS"),
    "Windows": Text(zh="Windows", en="Windows"),
    "browser": Text(zh="浏览器", en="browser"),
}
_PLACE_NAMES: Mapping[Place, Text] = {
    "colab": Text(zh="Google Colab（{system}）", en="Google Colab ({system})"),
    "kaggle": Text(zh="Kaggle（{system}）", en="Kaggle ({system})"),
    "modelscope": Text(zh="魔搭 ModelScope（{system}）", en="ModelScope ({system})"),
    "binder": Text(zh="Binder（{system}）", en="Binder ({system})"),
    "jupyterlite": Text(zh="JupyterLite（{system}）", en="JupyterLite ({system})"),
    "local": Text(zh="本机（{system}）", en="this machine ({system})"),
}
_FONT_WORDS: Mapping[bool | None, Text] = {
    True: Text(zh="有", en="yes"),
    False: Text(zh="没有找到；课程的图用自带的字体", en="none found; the course brings one for its own plots"),
    None: _UNKNOWN,
}


def _gpu_words(gpu: FoundGpu) -> str:
    details = [format_bytes(gpu.memory_bytes)] if gpu.memory_bytes else []
    details += [gpu.target] if gpu.target else []
    return f"{gpu.name} ({', '.join(details)})" if details else gpu.name


# -- where ---------------------------------------------------------------------------------------------------

# Variables that a hosted service sets for its notebooks. Kaggle comes before Colab: its image is built on
# Colab's and carries some of Colab's variables.
_PLACE_VARIABLES: tuple[tuple[Place, tuple[str, ...]], ...] = (
    ("kaggle", ("KAGGLE_KERNEL_RUN_TYPE", "KAGGLE_URL_BASE")),
    ("colab", ("COLAB_RELEASE_TAG", "COLAB_BACKEND_VERSION", "COLAB_GPU")),
    ("modelscope", ("MODELSCOPE_ENVIRONMENT",)),
    ("binder", ("BINDER_LAUNCH_HOST", "BINDER_SERVICE_HOST", "BINDER_REPO_URL")),
)


def system_name(sys_platform: str) -> System:
    """The operating system's usual name, from ``sys.platform``; an unknown Unix counts as Linux."""
    known: dict[str, System] = {
        "darwin": "macOS",
        "win32": "Windows",
        "cygwin": "Windows",
        "emscripten": "browser",
    }
    return known.get(sys_platform, "Linux")


def place_name(variables: Mapping[str, str], sys_platform: str) -> Place:
    """The service this runs on, told by the environment variables it sets; ``"local"`` without any.

    Kaggle: ``KAGGLE_KERNEL_RUN_TYPE``, ``KAGGLE_URL_BASE``. Colab: ``COLAB_RELEASE_TAG``,
    ``COLAB_BACKEND_VERSION``, ``COLAB_GPU``. ModelScope: ``MODELSCOPE_ENVIRONMENT``. Binder:
    ``BINDER_LAUNCH_HOST``, ``BINDER_SERVICE_HOST``, ``BINDER_REPO_URL``. JupyterLite sets none: there
    ``sys.platform`` is ``"emscripten"``.
    """
    if sys_platform == "emscripten":
        return "jupyterlite"
    for place, names in _PLACE_VARIABLES:
        if any(name in variables for name in names):
            return place
    return "local"


# -- processor -----------------------------------------------------------------------------------------------


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_name() -> str:
    if sys.platform == "win32":
        import winreg

        path = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
            return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
    if sys.platform == "darwin":
        return (_output_of("sysctl", "-n", "machdep.cpu.brand_string") or "").strip()
    return parse_cpu_name(_read(Path("/proc/cpuinfo")) or "")


def parse_cpu_name(cpuinfo: str) -> str:
    """The processor's name in the text of ``/proc/cpuinfo``; empty if it has none (most ARM chips)."""
    match = re.search(r"^(?:model name|Model|cpu model)[ \t]*:[ \t]*(\S.*)$", cpuinfo, re.MULTILINE)
    return re.sub(r"\s+", " ", match[1]).strip() if match else ""


# -- memory --------------------------------------------------------------------------------------------------


def free_memory_bytes() -> int | None:
    """Memory this process can still take, in bytes; ``None`` where that cannot be told (a browser).

    On Linux: ``MemAvailable``, bounded by what the control groups (v1 or v2) of a container leave. On macOS
    the pages that are free or can be dropped, on Windows the physical memory available. Never raises.
    """
    return _attempt(_free_memory, None)


def _free_memory() -> int | None:
    if sys.platform == "win32":
        return _free_memory_of_windows()
    if sys.platform == "darwin":
        return parse_vm_stat(_output_of("vm_stat") or "")
    bounds = [parse_meminfo(_read(Path("/proc/meminfo")) or ""), *_cgroup_rooms(Path("/sys/fs/cgroup"))]
    return min((bound for bound in bounds if bound is not None), default=None)


def parse_meminfo(meminfo: str) -> int | None:
    """``MemAvailable`` in bytes, from the text of ``/proc/meminfo``."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def parse_vm_stat(vm_stat: str) -> int | None:
    """Bytes of free, speculative, inactive and purgeable pages, from the output of macOS's ``vm_stat``."""
    page = re.search(r"page size of (\d+) bytes", vm_stat)
    pages = re.findall(r"^Pages (?:free|speculative|inactive|purgeable):\s+(\d+)\.", vm_stat, re.MULTILINE)
    return int(page[1]) * sum(map(int, pages)) if page and pages else None


def parse_cgroup_paths(cgroup: str) -> tuple[str | None, str | None]:
    """This process's v2 path and its path in v1's memory hierarchy, from ``/proc/self/cgroup``."""
    unified = re.search(r"^0::(/.*)$", cgroup, re.MULTILINE)
    memory = re.search(r"^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(/.*)$", cgroup, re.MULTILINE)
    return (unified[1] if unified else None), (memory[1] if memory else None)


def parse_cgroup_room(limit: str, usage: str, stat: str) -> int | None:
    """Bytes a control group leaves: limit - usage, where file pages that can be dropped are not in use.

    Takes the texts of v2's ``memory.max``, ``memory.current``, ``memory.stat`` or of v1's
    ``memory.limit_in_bytes``, ``memory.usage_in_bytes``, ``memory.stat``; ``None`` when there is no limit
    (``max``) or a text is not a number.
    """
    if not (limit.strip().isdecimal() and usage.strip().isdecimal()):
        return None
    # v1 lists a group's own pages and, as total_, those of its children too: the latter count.
    droppable = _number_after("total_inactive_file", stat) or _number_after("inactive_file", stat)
    used = max(0, int(usage) - (droppable or 0))
    return max(0, int(limit) - used)


def _number_after(name: str, stat: str) -> int | None:
    match = re.search(rf"^{name} (\d+)$", stat, re.MULTILINE)
    return int(match[1]) if match else None


def _cgroup_rooms(mount: Path) -> list[int | None]:
    unified, memory = parse_cgroup_paths(_read(Path("/proc/self/cgroup")) or "")
    rooms = [_cgroup_room(folder, "memory.max", "memory.current") for folder in _with_parents(mount, unified or "/")]
    return rooms + [
        _cgroup_room(folder, "memory.limit_in_bytes", "memory.usage_in_bytes")
        for folder in _with_parents(mount / "memory", memory or "/")
    ]


def _with_parents(mount: Path, path: str) -> list[Path]:
    """A group's folder and those above it: each may set a limit. Missing ones are harmless."""
    folder = mount / path.strip("/")
    return [folder, *(parent for parent in folder.parents if parent == mount or mount in parent.parents)]


def _cgroup_room(folder: Path, limit: str, usage: str) -> int | None:
    texts = [_read(folder / name) or "" for name in (limit, usage, "memory.stat")]
    return parse_cgroup_room(*texts)


def _free_memory_of_windows() -> int | None:
    if sys.platform != "win32":
        return None
    import ctypes

    class MemoryStatus(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "free", "a", "b", "c", "d", "e")),
        )

    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return int(status.free)


# -- GPUs ----------------------------------------------------------------------------------------------------

_NO_GPUS: tuple[FoundGpu, ...] = ()
_SMI_FOLDERS = ("/usr/lib/wsl/lib", "/usr/local/nvidia/bin", "/opt/bin")


def measuring_seconds(budget: float) -> float:
    """``budget``, or what ``LESSONS_MEASURE_SECONDS`` allows where that is less.

    For a server that many share, and for checks that look at no time. Every measurement still makes its fewest rounds.
    What is no positive number allows everything.
    """
    try:
        allowed = float(os.environ.get(MEASURE_VARIABLE, ""))
    except ValueError:
        return budget
    return min(budget, allowed) if allowed > 0 else budget


def list_gpus() -> tuple[FoundGpu, ...]:
    """The GPUs this process may use: NVIDIA's from ``nvidia-smi``, AMD's from Linux's kfd driver.

    Never raises.
    """
    if sys.platform == "emscripten":
        return ()
    nvidia, amd = _attempt(_nvidia_gpus, _NO_GPUS), _attempt(_amd_gpus, _NO_GPUS)
    nvidia = _attempt(partial(visible, nvidia, os.environ.get("CUDA_VISIBLE_DEVICES")), nvidia)
    amd = _attempt(partial(visible, amd, os.environ.get("HIP_VISIBLE_DEVICES")), amd)
    return (*nvidia, *amd)


def visible(found: tuple[FoundGpu, ...], setting: str | None) -> tuple[FoundGpu, ...]:
    """The GPUs that ``CUDA_VISIBLE_DEVICES`` or ``HIP_VISIBLE_DEVICES`` leaves, in its order.

    Unset leaves all, empty none; a list of numbers ends at the first that is no GPU (``-1``). A list of
    identifiers (``GPU-...``) is not looked up: it leaves all.
    """
    if setting is None:
        return found
    chosen: list[FoundGpu] = []
    for item in filter(None, (part.strip() for part in setting.split(","))):
        if not re.fullmatch(r"-?\d+", item):
            return found
        if not 0 <= int(item) < len(found):
            break
        chosen.append(found[int(item)])
    return tuple(chosen)


def _nvidia_gpus() -> tuple[FoundGpu, ...]:
    tool = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path=os.pathsep.join(_SMI_FOLDERS))
    if tool is None:
        return ()
    for fields in (
        "name,compute_cap,memory.total",
        "name,memory.total",
    ):  # old drivers do not know compute_cap
        listed = _output_of(tool, f"--query-gpu={fields}", "--format=csv,noheader,nounits")
        if listed is not None:
            return parse_nvidia_smi(listed)
    return ()


def parse_nvidia_smi(listed: str) -> tuple[FoundGpu, ...]:
    """GPUs from lines like ``Tesla T4, 7.5, 15360``: name, capability (which may be missing), MiB."""
    found = []
    for line in listed.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) < 2:
            continue
        capability = re.fullmatch(r"(\d+)\.(\d+)", fields[1])
        major_minor = (int(capability[1]), int(capability[2])) if capability else None
        found.append(
            FoundGpu(
                vendor="nvidia",
                name=fields[0],
                capability=major_minor,
                target=f"sm_{major_minor[0]}{major_minor[1]}" if major_minor else None,
                memory_bytes=int(fields[-1]) * MIB if fields[-1].isdecimal() else None,
            )
        )
    return tuple(found)


def _amd_gpus() -> tuple[FoundGpu, ...]:
    """AMD GPUs of the kfd driver whose render device this process has (a container may hide some)."""
    found = []
    for node in sorted(Path("/sys/class/kfd/kfd/topology/nodes").glob("*"), key=lambda node: int(node.name)):
        banks = [_read(bank) or "" for bank in sorted(node.glob("mem_banks/*/properties"))]
        properties = _read(node / "properties") or ""
        render = f"renderD{parse_kfd(properties).get('drm_render_minor', 0)}"
        product = (_read(Path("/sys/class/drm") / render / "device/product_name") or "").strip()
        gpu = parse_kfd_node(properties, banks, product)
        if gpu is not None and os.access(f"/dev/dri/{render}", os.R_OK | os.W_OK):
            found.append(gpu)
    return tuple(found)


def parse_kfd(properties: str) -> dict[str, int]:
    """The ``name number`` lines of a kfd ``properties`` file."""
    pairs = (line.split() for line in properties.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def parse_kfd_node(properties: str, banks: Iterable[str], product: str = "") -> FoundGpu | None:
    """The GPU of a kfd topology node, ``None`` for a CPU's node.

    ``gfx_target_version`` is decimal, two digits each for minor version and stepping: 90402 is gfx942, whose
    last two digits the compiler writes in hexadecimal (90010 is gfx90a). ``banks``: the texts of its memory
    banks; their sizes add up.
    """
    version = parse_kfd(properties).get("gfx_target_version", 0)
    if not version:
        return None
    target = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    memory = sum(parse_kfd(bank).get("size_in_bytes", 0) for bank in banks)
    return FoundGpu(vendor="amd", name=product or "AMD GPU", target=target, memory_bytes=memory or None)


# -- Triton, packages ----------------------------------------------------------------------------------------


def triton_mode(installed: bool, found: Iterable[FoundGpu]) -> tuple[TritonMode, Text]:
    """How the kernel lesson runs here, and why.

    ``"none"`` without Triton; ``"gpu"`` with Triton and an AMD GPU or an NVIDIA GPU of capability 7.5 or
    newer; else ``"interpreter"``, in which kernels run on the CPU, for their results and not for speed.
    """
    if not installed:
        return "none", Text(
            zh="未安装：只影响编写核函数的一课，其他课都能完整学习",
            en="not installed: only the lesson on writing kernels needs it",
        )
    listed = list(found)
    usable = next((gpu for gpu in listed if gpu.usable_by_triton), None)
    if usable is not None:
        return "gpu", Text(zh="在 GPU 上运行：{name}", en="runs on the GPU: {name}").format(name=usable.name)
    if listed:
        return "interpreter", _OLD_GPU.format(name=listed[0].name, found=_capability_words(listed[0]))
    return "interpreter", Text(
        zh="没有 GPU，用解释器在 CPU 上运行：结果正确，快慢不作数",
        en="no GPU: the interpreter runs kernels on the CPU, for correct results, not for speed",
    )


_OLD_GPU = Text(
    zh="{name} 的计算能力{found}，至少要 7.5（例如 T4）：改用解释器在 CPU 上运行",
    en="{name}: compute capability {found}, at least 7.5 is needed (a T4, say), so the interpreter runs "
    "kernels on the CPU",
)


def _capability_words(gpu: FoundGpu) -> Text:
    if gpu.capability is None:
        return Text(zh="未知", en="unknown")
    major, minor = gpu.capability
    return Text(zh=f"是 {major}.{minor}", en=f"{major}.{minor}")


_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "triton": ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-windows"),
}


def _version(package: str) -> str | None:
    """The version of an installed package without importing it, ``"?"`` if it does not say; else ``None``."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:  # a mere folder of that name has no origin
        return None
    for distribution in _DISTRIBUTIONS.get(package, (package,)):
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "?"


# -- fonts ---------------------------------------------------------------------------------------------------

_FONT_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "darwin": ("/System/Library/Fonts", "/Library/Fonts", "~/Library/Fonts", "/System/Library/AssetsV2"),
    "win32": (r"C:\Windows\Fonts", r"~\AppData\Local\Microsoft\Windows\Fonts"),
}
_FONT_FILES = re.compile(
    r"pingfang|stheiti|hiragino sans gb|songti|kaiti|msyh|simhei|simsun|simkai|deng\w*\.ttf|source ?han"
    r"|noto(sans|serif)(cjk|sc)|wqy|wenquanyi|lxgw",
    re.IGNORECASE,
)


def is_chinese_font_file(name: str) -> bool:
    """Whether a file of this name is one of the usual Chinese fonts."""
    return _FONT_FILES.match(name) is not None


def _has_chinese_font() -> bool | None:
    listed = _output_of("fc-list", ":lang=zh") if sys.platform != "emscripten" else None
    if listed is not None and (listed.strip() or sys.platform not in _FONT_FOLDERS):
        return bool(listed.strip())
    folders = [Path(folder).expanduser() for folder in _FONT_FOLDERS.get(sys.platform, ())]
    names = [file.name for folder in folders if folder.is_dir() for file in folder.iterdir()]
    return any(map(is_chinese_font_file, names)) if names else None


# -- input and output, without surprises ---------------------------------------------------------------------


def _attempt(probe: Callable[[], _T], otherwise: _T) -> _T:
    """The probe's answer, or ``otherwise`` whatever goes wrong: machines are odd in unforeseen ways."""
    try:
        return probe()
    except Exception:
        return otherwise


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _output_of(*command: str) -> str | None:
    """What a tool prints, or ``None`` if it is not there, fails, or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TOOL_TIMEOUT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", errors="replace")
