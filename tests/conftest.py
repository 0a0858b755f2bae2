"""What every test starts from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lessons_lib import use_language


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    use_language("en")
    yield
    use_language("en")
