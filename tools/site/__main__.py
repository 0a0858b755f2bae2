"""Builds dist/site.

    python -m tools.site [--self-hosted] [--out dist/site]

Any web server may serve the folder: python -m http.server -d dist/site
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from notebooks.build.course import Course, read_course
from tools import edition, say
from tools.project import ROOT
from tools.say import Stop, tell
from tools.site.editions import EDITIONS, built
from tools.site.lite import RUN, build_lite
from tools.site.pages import landing_page, reading_page, start_page
from tools.site.runtime import self_hosted_runtime
from tools.site.wheels import collect_wheels, requirement_names

CACHE = ROOT / ".cache" / "site"


def build_site(out: Path, *, self_hosted: bool = False, cache: Path = CACHE) -> None:
    """Write the whole site to ``out``, replacing what was there.

    Args:
        self_hosted: serve the Python for the browser from the site itself instead of from its CDN.
        cache: what was downloaded is kept here, and a second build needs no network.
    """
    course = _faultless_course()
    with tempfile.TemporaryDirectory() as name:
        fresh, wheels = Path(name) / "site", Path(name) / "wheels"
        with _timed("wheels"):
            collect_wheels(wheels, course.config, cache / "wheels")
        with _timed("Python"):
            runtime = self_hosted_runtime(cache, requirement_names(course.config)) if self_hosted else None
        with _timed("JupyterLite"):
            build_lite(fresh / RUN, course, wheels, runtime)
        with _timed("pages"):
            write_pages(fresh, course)
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(fresh, out)


def write_pages(out: Path, course: Course) -> None:
    """Every page that needs no Python: the start, the table of lessons, the lessons to read."""
    _write(out / "index.html", start_page())
    for language in EDITIONS:
        _write(out / language / "index.html", landing_page(language, course))
        for lesson in course.lessons:
            _write(out / language / f"{lesson.name}.html", reading_page(lesson, language, course))
    (out / ".nojekyll").touch()  # a branch served by GitHub would otherwise lose files whose name starts with _


def _faultless_course() -> Course:
    course, faults = read_course(ROOT)
    if faults:
        named = "\n".join(map(str, faults))
        raise Stop(f"课程源文件有错，先改好：\n{named}", f"Mend the lessons' sources first:\n{named}")
    found = built(course)
    if left_out := [lesson.name for lesson in course.lessons if lesson not in found.lessons]:
        raise Stop(
            f"还没有生成：{' '.join(left_out)}；先运行 make notebooks。",
            f"Not built yet: {' '.join(left_out)}; run make notebooks first.",
        )
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def _timed(what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"  {what}: {time.perf_counter() - started:.1f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.site", description="Build the website of the course.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "site", help="default: dist/site")
    parser.add_argument("--self-hosted", action="store_true", help="Pyodide comes with the site (needs npm)")
    options = parser.parse_args()
    say.use_edition(edition.chosen(None))
    build_site(options.out, self_hosted=options.self_hosted)
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file()) / 2**20
    tell(
        f"网站：{options.out}，{size:.0f} MiB。查看：python -m http.server -d {options.out}",
        f"The site: {options.out}, {size:.0f} MiB. To see it: python -m http.server -d {options.out}",
    )
    return 0


if __name__ == "__main__":
    say.run(main)
