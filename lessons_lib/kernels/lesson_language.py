"""``triton`` and ``tl`` for a learner's cell, which must run where Triton is not installed, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lessons_lib.base.optional import MissingPackageError


class _StandIn:
    """Enough of a module to define a kernel with; the checker then says in words what is missing."""

    def jit(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def __getattr__(self, name: str) -> _StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


triton: Any
tl: Any
try:
    from lessons_lib.kernels.language import tl, triton
except MissingPackageError:
    triton = tl = _StandIn()
