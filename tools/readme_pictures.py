"""The panel's picture in the READMEs, drawn by the library itself: python -m tools.readme_pictures"""

from __future__ import annotations

from pathlib import Path

from tools.project import ROOT


def pictures() -> dict[Path, str]:
    """File -> SVG, one an edition: four operators in two groups, everything counted."""
    from lessons_lib import TrafficPanel, current_language, use_language

    drawn, before = {}, current_language()
    for edition in ("en", "zh"):
        use_language(edition)
        panel = TrafficPanel()
        panel.set(fused_groups=2, compulsory=True)
        drawn[ROOT / "docs" / f"panel.{edition}.svg"] = panel.static_forms()["image/svg+xml"] + "\n"
    use_language(before)
    return drawn


if __name__ == "__main__":
    for path, svg in pictures().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(svg, encoding="utf-8")
