"""Trusts notebooks, as built and as the learner's copies, so that JupyterLab shows their pictures before the first run.

    python -m tools.trust notebooks/zh/*.ipynb

Runs in the course's environment: the only tool that needs a package. `jupyter trust` does the same more slowly.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from tools.lessons import for_learner


def main(paths: list[str]) -> None:
    notary = NotebookNotary()  # type: ignore[no-untyped-call]
    for path in paths:
        built = Path(path).read_text(encoding="utf-8")
        for text in (built, for_learner(built)):  # Binder opens the first, `make lab` the second
            notary.sign(nbformat.reads(text, as_version=4))  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(sys.argv[1:])
