"""Settings of a small course for the builder's tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PYPROJECT = """
[project]
name = "operator-fusion-lessons"
dependencies = ["ipywidgets>=7.7", "drawsvg>=2.4", "lazy-loader>=0.4"]

[tool.lessons]
repository = "someone/course"
ref = "main"
site = "https://someone.example/course/"
published = false
mirrors = ["git+https://mirror.example/course@main"]
extras = ["lab"]
in-browser = { lab = [] }
"""
