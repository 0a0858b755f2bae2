"""One command into the course: environment, the learner's copies, JupyterLab on the first lesson.

python -m tools.lab [--edition zh|en] [--instructor] [--port 8888] [--no-browser] [--here]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tools import edition, environment, jupyter, lessons, say
from tools.project import VENV
from tools.say import Stop, tell

START = "00_start.ipynb"


def prepare_lessons(python: Path, name: str) -> Path:
    """Copy what the learner lacks, say what is newer, and return the folder; ``name``: below notebooks/ and work/."""
    source, target = lessons.built(name), lessons.work(name)
    if not any(source.glob("*.ipynb")):
        raise lessons.no_lessons(source)
    names = lessons.missing(source, target)
    notebooks = [str(source / path) for path in names if path.suffix == ".ipynb"]
    if notebooks:
        # Trust is given to content, so it is given first: a copy is never there without it.
        subprocess.run([str(python), "-m", "tools.trust", *notebooks], env=jupyter.environment(), check=True)
    if names:
        lessons.copy(names, source, target)
        tell(f"已复制 {len(names)} 个新文件到 {target}", f"Copied {len(names)} new files to {target}")
    for path in lessons.outdated(source, target):
        lesson, learners = lessons.number(path), name in edition.EDITIONS
        way = f"make reset LESSON={lesson}"
        tell(
            f"第 {lesson} 课有新版本（你的副本没有动），要取新版：{way if learners else f'把 {target / path} 移走'}",
            f"Lesson {lesson} has a newer version (yours was left alone): {way if learners else f'move {target / path} away'}",
        )
    return target


def serve(python: Path, prefix: Path, folder: Path, name: str, *, port: str, browser: bool) -> int:
    """Run JupyterLab until it ends; say where it listens."""
    start = START if (folder / START).exists() else min(path.name for path in folder.glob("*.ipynb"))
    jupyter.write_settings(prefix, name)
    command = jupyter.command(python, folder, start, port=port, browser=browser, root=jupyter.is_root())
    since = jupyter.now()
    tell("正在启动 JupyterLab…", "Starting JupyterLab ...")
    server = subprocess.Popen(command, env=jupyter.environment(), cwd=folder)
    # Ctrl-C reaches Jupyter too, which asks whether to stop; its answer counts. A plain kill is passed on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    where = None
    while server.poll() is None and where is None:
        time.sleep(0.1)
        where = jupyter.address(folder, start, since)
    if where:
        if port and (got := jupyter.port_of(where)) != port:
            tell(f"端口 {port} 已被占用，改用 {got}。", f"Port {port} is taken, using {got}.")
        _tell_address(where, opened=browser)
    return max(server.wait(), 0)


def _this_environment() -> tuple[Path, Path]:
    """The environment that runs this, for conda: its Python and its folder."""
    if not importlib.util.find_spec("jupyterlab"):
        raise Stop(
            "这个环境里没有 JupyterLab，先 conda env create -f environment.yml，再 conda activate operator-fusion。",
            "No JupyterLab in this environment: conda env create -f environment.yml, conda activate operator-fusion.",
        )
    return Path(sys.executable), Path(sys.prefix)


def _tell_address(where: str, *, opened: bool) -> None:
    if opened:
        tell(
            f"\n  浏览器没有自动打开的话，打开这个地址：\n  {where}",
            f"\n  If no browser opens, open this address:\n  {where}",
        )
    else:
        tell(f"\n  在浏览器里打开这个地址：\n  {where}", f"\n  Open this address in a browser:\n  {where}")
        port = jupyter.port_of(where)
        tell(
            f"  （如果这是远程机器，先在自己的电脑上运行：ssh -L {port}:127.0.0.1:{port} 用户@主机）",
            f"  (On a remote machine, first run on your own: ssh -L {port}:127.0.0.1:{port} user@host)",
        )
    tell("  结束：按两次 Ctrl-C。\n", "  To stop: press Ctrl-C twice.\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.lab", description="Open the course.")
    parser.add_argument("--edition", default=os.environ.get("EDITION"), help="zh or en; default: of the locale")
    parser.add_argument("--instructor", action="store_true", help="the instructor's edition: solutions, what to say")
    parser.add_argument("--port", default=os.environ.get("PORT", ""), help="default: 8888, or the next free one")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("--here", action="store_true", help="use this Python's environment (conda), not .venv")
    options = parser.parse_args()
    name = edition.chosen(options.edition)
    say.use_edition(name)
    if options.port and not (options.port.isdecimal() and 1 <= int(options.port) <= 65535):
        raise Stop(
            f"PORT 应是 1 到 65535 的数字，收到的是 {options.port!r}。",
            f"PORT must be a number from 1 to 65535, got {options.port!r}.",
        )
    python, prefix = _this_environment() if options.here else (environment.ensure(), VENV)
    folder = prepare_lessons(python, f"instructor/{name}" if options.instructor else name)
    browser = not options.no_browser and jupyter.has_display(sys.platform, os.environ)
    return serve(python, prefix, folder, name, port=options.port, browser=browser)


if __name__ == "__main__":
    say.run(main)
