"""A fresh copy of one lesson beside the learner's own.

python -m tools.reset 01 [--edition zh|en]
"""

from __future__ import annotations

import argparse
import os
import subprocess

from tools import edition, jupyter, lessons, say
from tools.project import venv_python
from tools.say import tell


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.reset", description="A fresh copy of one lesson.")
    parser.add_argument("lesson", nargs="?", default=os.environ.get("LESSON", ""), help="for example 01")
    parser.add_argument("--edition", default=os.environ.get("EDITION"), help="zh or en; default: of the locale")
    options = parser.parse_args()
    name = edition.chosen(options.edition)
    say.use_edition(name)
    source, target = lessons.built(name), lessons.work(name)
    lesson = lessons.find(options.lesson, source)
    if venv_python().exists():
        trust = [str(venv_python()), "-m", "tools.trust", str(source / lesson)]
        subprocess.run(trust, env=jupyter.environment(), check=False)
    fresh = lessons.fresh_copy(lesson, source, target)
    tell(f"新副本：{fresh}\n你原来的文件没有动。", f"A fresh copy: {fresh}\nYour own file was left alone.")
    return 0


if __name__ == "__main__":
    say.run(main)
