"""One link a lesson: it brings the course into the learner's own folder on a hub and opens the lesson there.

    python -m deploy.links [--check]                                              writes deploy/links.md
    python -m deploy.links --hub https://... [--branch ...] [--repo https://...]  prints it for yours

The links are nbgitpuller's: a click gets what is new and keeps what the learner changed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from notebooks.build.config import Config
from notebooks.build.course import Course, read_course
from notebooks.build.links import notebook_path, table
from notebooks.build.read import Language, Lesson

ROOT = Path(__file__).resolve().parents[1]
LINKS = ROOT / "deploy" / "links.md"
HUB = "https://hub.example.org"

_TITLES: dict[Language, str] = {"zh": "中文", "en": "English"}
_HEAD: dict[Language, tuple[str, str]] = {"zh": ("课", "链接"), "en": ("Lesson", "Link")}
_WORDS = """\
# Links to the lessons on a hub · hub 上每一课的链接

Written by `python -m deploy.links`; do not edit. For your own hub: `python -m deploy.links --hub https://...`.
由 `python -m deploy.links` 生成，不要手改。换成自己的 hub：`python -m deploy.links --hub https://...`。"""


def pull_link(lesson: Lesson, language: Language, config: Config, hub: str = HUB, repository: str = "") -> str:
    """The address on ``hub`` that fetches the course and opens ``lesson``.

    Args:
        repository: where to fetch it; the course's own address by default.
    """
    source = (repository or config.repository_url).rstrip("/")
    folder = source.rpartition("/")[2]  # nbgitpuller's own choice
    query = {
        "repo": source,
        "branch": config.ref,
        "urlpath": f"lab/tree/{folder}/{notebook_path(lesson, language)}",
    }
    return f"{hub.rstrip('/')}/hub/user-redirect/git-pull?{urlencode(query)}"


def links_page(course: Course, hub: str = HUB, repository: str = "") -> str:
    """``links.md``: a table a language."""
    parts = [_WORDS]
    for language, title in _TITLES.items():
        rows = [
            (lesson.title(language), f"<{pull_link(lesson, language, course.config, hub, repository)}>")
            for lesson in course.lessons
        ]
        parts += [f"## {title}", table(_HEAD[language], rows)]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Write ``links.md``; or check it; or, for a hub or a branch that is named, print the page."""
    parser = argparse.ArgumentParser(prog="python -m deploy.links", description=__doc__)
    parser.add_argument("--hub", help="print the page for your hub, https://...")
    parser.add_argument("--branch", help="print it for the course's branch that a class follows")
    parser.add_argument("--repo", default="", help="print it for a copy of the course's repository")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if links.md is stale")
    options = parser.parse_args()
    course, faults = read_course(ROOT)
    if faults:
        print(*faults, sep="\n", file=sys.stderr)
        return 1
    if options.branch or options.repo or options.hub:
        ref = options.branch or course.config.ref
        named = replace(course, config=replace(course.config, ref=ref))
        print(links_page(named, options.hub or HUB, options.repo), end="")
        return 0
    page = links_page(course)
    if not options.check:
        LINKS.write_text(page, encoding="utf-8")
    elif not LINKS.exists() or LINKS.read_text(encoding="utf-8") != page:
        print("deploy/links.md is stale: run python -m deploy.links", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
