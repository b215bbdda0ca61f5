"""The stores that the contract runs over: every row of the table, and those that keep what they are given."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from incarnate.storage.port import Store
from tests.support.stores import BACKENDS, Backend, Log

Open = Callable[[], Store]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return BACKENDS[request.param]


@pytest.fixture
def store(backend: Backend, tmp_path: Path) -> Iterator[Store]:
    with backend.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def log(store: Store) -> Log:
    return Log(store)


@pytest.fixture(params=[name for name, row in BACKENDS.items() if row.keeps])
def open_again(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Each call opens the same store."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(BACKENDS[request.param].open(tmp_path))
