"""Systems over every dispatcher and over a memory and an SQLite store."""

from collections.abc import Generator
from pathlib import Path

import pytest

from incarnate import SessionSystem
from incarnate.actors.dispatchers import DispatcherName

DISPATCHERS = [pytest.param("calling", id="calling"), pytest.param("thread", id="thread")]


@pytest.fixture(params=DISPATCHERS)
def dispatcher(request: pytest.FixtureRequest) -> DispatcherName:
    name: DispatcherName = request.param
    return name


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/sessions.db"


@pytest.fixture
def system(url: str, dispatcher: DispatcherName) -> Generator[SessionSystem]:
    with SessionSystem.open(url, dispatcher=dispatcher) as opened:
        yield opened
