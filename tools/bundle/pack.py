"""What goes into the bundle, and where."""

from __future__ import annotations

from pathlib import Path

from tools import edition, lessons
from tools.bundle.start import start_notebook, title_of
from tools.bundle.wheels import licences, own_wheel, pure_wheels, zipped
from tools.project import ROOT
from tools.say import Stop

LIMIT = 15_000_000
_README = Path(__file__).with_name("README.md")


def pack(cache: Path, root: Path = ROOT) -> tuple[str, bytes]:
    """The bundle's file name and its bytes: the same for the same sources."""
    own_name, own = own_wheel(root)
    wheels = {own_name: own, **pure_wheels(cache)}
    folder = f"operator-fusion-lessons-{own_name.split('-')[1]}"
    file = f"{folder}.zip"
    readme = _README.read_text(encoding="utf-8").replace("@FILE@", file).replace("@FOLDER@", folder)
    built = {name: _edition(name, root) for name in edition.EDITIONS}
    listed = {
        name: [(title_of(data.decode()), path) for path, data in files.items() if path.endswith(".ipynb")]
        for name, files in built.items()
    }
    entries = {
        "README.md": readme.encode(),
        "start.ipynb": start_notebook(listed).encode(),
        **{name: (root / name).read_bytes() for name in ("LICENSE", "LICENSE-CONTENT", "NOTICE")},
        **{f"wheels/{name}": wheel for name, wheel in wheels.items()},
        **{f"licenses/{name}": text for name, text in licences(wheels).items()},
    }
    for files in built.values():
        entries |= files
    data = zipped({f"{folder}/{name}": content for name, content in entries.items()})
    if len(data) > LIMIT:
        raise Stop(
            f"离线包有 {len(data) / 1e6:.1f} MB，超过 {LIMIT / 1e6:.0f} MB。",
            f"The bundle has {len(data) / 1e6:.1f} MB, more than {LIMIT / 1e6:.0f} MB.",
        )
    return file, data


def _edition(name: str, root: Path) -> dict[str, bytes]:
    """An edition's files by their path in the bundle, as ``make lab`` hands them out: no answer before its question."""
    files = lessons.learner_files(lessons.built(name, root))
    return {f"{name}/{inside.as_posix()}": data for inside, data in files.items()}
