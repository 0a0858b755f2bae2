"""Kernel tests run in Triton's interpreter on the CPU (``tests/conftest`` sets it), those on a GPU in ``test_on_gpu``.

Where Triton or PyTorch is missing, a module that needs it is skipped, with the reason that a learner would read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from lessons_lib.base.optional import MissingPackageError
from lessons_lib.kernels.mode import TritonSetup, prepare_triton

# Called before any test module is collected, so that nothing imports triton first.
_SETUP = prepare_triton()
_OPTIONAL = ("torch", "triton", "numpy")


class KernelTests(pytest.Module):
    """A test module that is skipped, not broken, where what it imports is missing here."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return list(super().collect())
        except self.CollectError as error:
            cause = error.__cause__
            if isinstance(cause, MissingPackageError) or getattr(cause, "name", None) in _OPTIONAL:
                pytest.skip(f"{cause}", allow_module_level=True)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return KernelTests.from_parent(parent, path=module_path)  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def triton_setup() -> TritonSetup:
    """How kernels run in this process; skips where they do not, and says why."""
    if not _SETUP.runs:
        pytest.skip(repr(_SETUP))
    return _SETUP
