"""Stores for the tests of what is peculiar to ours: one for each row of the table."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from incarnate.storage.port import Store
from tests.support.stores import BACKENDS, Backend


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return BACKENDS[request.param]


@pytest.fixture
def store(backend: Backend, tmp_path: Path) -> Iterator[Store]:
    with backend.open(tmp_path) as opened:
        yield opened
