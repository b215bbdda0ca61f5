"""Systems for sessions of the OpenAI Agents SDK, whose tracing would look for a network."""

from collections.abc import Generator
from pathlib import Path

import pytest
from agents import set_tracing_disabled

from incarnate import SessionSystem

set_tracing_disabled(disabled=True)

URLS = {"memory": "memory://", "sqlite": "sqlite:///{}/sessions.db", "jsonl": "jsonl:///{}/journals"}


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return URLS[request.param].format(tmp_path)


@pytest.fixture
def system(url: str) -> Generator[SessionSystem]:
    with SessionSystem.open(url) as opened:
        yield opened
