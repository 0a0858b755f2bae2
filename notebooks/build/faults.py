"""What is wrong with a source, and where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Fault:
    """One fault; ``str()`` gives ``file:line: message``, as editors and CI logs expect it."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class BuildError(Exception):
    """The build stops here; each of its lines names a file and says what to do."""
