"""What every test starts from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from lessons_lib import use_language

# Machines that run tests are busy: an example that takes long is no fault.
settings.register_profile("course", deadline=None)
settings.load_profile("course")


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    use_language("en")
    yield
    use_language("en")
