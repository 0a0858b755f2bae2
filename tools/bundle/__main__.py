"""Writes dist/operator-fusion-lessons-<version>.zip.

    python3 -m tools.bundle

Any Python that can make environments will do: it needs no package, and what builds the wheels comes into an environment
of its own.
"""

from __future__ import annotations

from tools import edition, say
from tools.bundle.pack import pack
from tools.project import ROOT
from tools.say import tell

CACHE = ROOT / ".cache" / "bundle-wheels"


def main() -> int:
    say.use_edition(edition.chosen(None))
    name, data = pack(CACHE)
    target = ROOT / "dist" / name
    target.parent.mkdir(exist_ok=True)
    part = target.with_suffix(".part")
    part.write_bytes(data)
    part.replace(target)
    megabytes = f"{len(data) / 1e6:.1f} MB"
    tell(f"离线包：{target}（{megabytes}）", f"The bundle: {target} ({megabytes})")
    return 0


if __name__ == "__main__":
    say.run(main)
