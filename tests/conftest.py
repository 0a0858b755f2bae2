"""What every test starts from."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from lessons_lib import use_language

# Kernels are tested in Triton's interpreter, and it must know before anything (torch's compiler, say) imports triton:
# hence here and not beside the kernels' tests. An explicit TRITON_INTERPRET=0 runs tests/kernels/test_on_gpu.py.
os.environ.setdefault("TRITON_INTERPRET", "1")
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

# Not the learner's own cache of compiler reports, but one that all processes of this run share.
os.environ.setdefault("LESSONS_CACHE", str(Path(tempfile.gettempdir(), f"lessons-tests-{os.getpid()}")))

# No test leaves a progress file behind; those about the file choose one of their own.
os.environ["LESSONS_PROGRESS"] = "off"
os.environ["LESSONS_WORKSHOP"] = "0"

# Machines that run tests are busy: an example that takes long is no fault.
# Where a run decides about a change, it tries the same examples each time; at home it looks for new ones.
_SAME = bool(os.environ.get("CI"))
settings.register_profile("course", deadline=None, derandomize=_SAME)
settings.register_profile("fewer", deadline=None, derandomize=_SAME, max_examples=10)  # make test-pythons
settings.load_profile("course")


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    use_language("en")
    yield
    use_language("en")
