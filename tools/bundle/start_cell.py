"""The one code cell of the bundle's ``start.ipynb``, as real code: everything below the rule goes into it."""

# ----
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

wheels = Path("wheels").resolve()
course = sorted(wheels.glob("operator_fusion_lessons-*.whl"))
if not course:
    raise RuntimeError(
        f"{wheels} 里没有课程库。请先解压整个离线包，再打开解压后文件夹里的 start.ipynb。\n"
        f"No course library in {wheels}. Unpack the whole zip, then open the start.ipynb in the unpacked folder."
    )
had_widgets = all(find_spec(module) for module in ("ipywidgets", "anywidget"))


def run(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise RuntimeError(
            "安装没有成功，原因见下面几行；换一个自己能安装软件包的 Python 环境（如 Anaconda 或 venv）再试。\n"
            "The installation failed, the lines below say why; try a Python environment of your own, "
            f"such as Anaconda's or a venv.\n{(done.stdout + done.stderr)[-1500:]}"
        )


# From the folder alone; what is already there keeps its version.
pip = ("pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", f"--find-links={wheels}")
run(*pip, "--no-deps", "--force-reinstall", str(course[-1]))
run(*pip, str(course[-1]), "tqdm", "anywidget", "diskcache")

print("✓ 准备好了，可以打开下面的课。 / Ready: open a lesson below.")
if not had_widgets:
    print(
        "· 刚刚装上了滑块控件：请刷新一次浏览器页面。 / Sliders were just installed: reload this browser page once."
    )
if missing := [module for module in ("numpy", "matplotlib") if not find_spec(module)]:
    names = ", ".join(missing)
    print(f"· 缺少 {names}：面板和练习可用，实测部分不可用。")
    print(f"· {names} missing: panels and exercises work, the labs do not.")
if missing := [module for module in ("torch", "triton") if not find_spec(module)]:
    names = ", ".join(missing)
    print(f"· 缺少 {names}：用到它们的课照样能上，只是有的格子只说明、不运行。")
    print(f"· {names} missing: lessons that use them can still be taken; some cells then explain instead of run.")
