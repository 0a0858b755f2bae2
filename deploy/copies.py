"""A class's own copy of the lessons, for a repository that the hub's links follow: no answer before its question.

    python3 -m deploy.copies FOLDER

The lessons in the course's own repository keep every output, for readers on the web. Here the cells that answer a
question asked before have none, as in the copies that `make lab` hands out. Needs no package.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tools import edition, lessons, say
from tools.project import ROOT
from tools.say import Stop, tell

_LICENCES = ("LICENSE", "LICENSE-CONTENT", "NOTICE")


def write_copies(folder: Path, root: Path = ROOT) -> list[Path]:
    """Write both editions below ``folder`` where the links look for them; the files written, relative to it.

    A file that is there already is replaced, so that the folder can be a repository of its own; others are left alone.

    Raises:
        Stop: ``folder`` is the course's own, whose lessons would lose their outputs; or an edition was not built.
    """
    place, own = folder.resolve(), root.resolve()
    if place == own or own / "notebooks" in (place, *place.parents):
        raise Stop(
            f"{folder} 里是课程本身：请另选一个文件夹，例如 ../our-class。",
            f"{folder} holds the course itself: name another folder, such as ../our-class.",
        )
    files = {Path(name): (root / name).read_bytes() for name in _LICENCES}
    for name in edition.EDITIONS:
        source = lessons.built(name, root)
        files |= {source.relative_to(root) / inside: data for inside, data in lessons.learner_files(source).items()}
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    return list(files)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m deploy.copies", description=__doc__)
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="where to write them: a folder outside the course"
    )
    options = parser.parse_args()
    say.use_edition(edition.chosen(None))
    count = sum(path.suffix == ".ipynb" for path in write_copies(options.folder))
    tell(
        f"{options.folder}：{count} 本笔记本，先问后答的格子没有输出。",
        f"{options.folder}: {count} notebooks; cells that answer a question asked before have no output.",
    )
    return 0


if __name__ == "__main__":
    say.run(main)
