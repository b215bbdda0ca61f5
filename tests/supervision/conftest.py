"""What the tests of supervision share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.started import Started
from tests.support.supervised import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A home folder; nothing that was started in it lives when its test is over."""
    with Place(tmp_path) as place:
        yield place
        place.expect_nobody()


@pytest.fixture
def start() -> Iterator[Started]:
    started = Started()
    yield started
    started.close()
