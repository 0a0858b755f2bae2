"""``triton`` and ``tl`` for the kernel files: prepared for this machine first, then imported.

Raises:
    MissingPackageError: there is no Triton, or no PyTorch, here.
"""

from __future__ import annotations

from lessons_lib.base.optional import MissingPackageError
from lessons_lib.kernels.mode import prepare_triton

_setup = prepare_triton()
if _setup.mode == "none":
    raise MissingPackageError(_setup.reason.both)

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

__all__ = ["tl", "triton"]
