"""A log from which somebody deleted rows: nobody reads it as if it were whole."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from incarnate import ReplayAnalysis, SessionSystem, StudioTranscript
from incarnate.domain.commands import AppendMany, Replay
from incarnate.domain.errors import LogCorruptionError
from tests.support.stores import KEY, OTHER, notes, sqlite_url

LENGTH = 2400  # three pages of a replay
MISSING = [(0, 1), (10, 11), (999, 1000), (1000, 1001), (700, 2100), (2398, 2399)]

READERS: dict[str, Callable[[SessionSystem], object]] = {
    "replay": lambda system: list(system.replay(KEY)),
    "part of a replay": lambda system: list(system.replay(KEY, 0, 2399)),
    "a query": lambda system: system.activation(KEY).ask(Replay(0)),
    "restore": lambda system: system.claim(KEY).restore(),
    "a view": lambda system: system.view(KEY, StudioTranscript()).get(),
    "an analysis": lambda system: system.view(KEY, ReplayAnalysis()).get(),
    "a fork's log": lambda system: (system.fork(KEY, OTHER, 2400), list(system.replay(OTHER))),
}


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = sqlite_url(tmp_path)
    with SessionSystem.open(url) as system:
        system.lease(KEY, 1).emit_many(notes("x" * LENGTH))
        system.lease(KEY, 1).checkpoint("sha")
    return url


def delete(url: str, table: str, start: int, stop: int) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db, db:
        assert db.execute(f"DELETE FROM {table} WHERE offset >= ? AND offset < ?", (start, stop)).rowcount


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("start", "stop"), MISSING)
def test_an_event_that_is_missing_is_told_with_its_offset(url: str, start: int, stop: int, reader: str) -> None:
    delete(url, "event", start, stop)

    with SessionSystem.open(url) as system, pytest.raises(LogCorruptionError, match=f"offset {start} is missing"):
        READERS[reader](system)


@pytest.mark.parametrize(("start", "stop"), [(3, 4), (40, 41), (2398, 2400), (3, 2400)])
def test_a_superseded_event_that_is_missing_is_told_with_its_offset(url: str, start: int, stop: int) -> None:
    with SessionSystem.open(url) as system:
        system.activation(KEY).ask(AppendMany(1, 3, notes("y")))
    delete(url, "superseded", start, stop)

    with SessionSystem.open(url) as system, pytest.raises(LogCorruptionError, match=f"offset {start} is missing"):
        list(system.replay_superseded(KEY, 1))


def test_a_tail_that_is_swept_while_it_is_replayed_ends_there(url: str) -> None:
    with SessionSystem.open(url) as system:
        system.activation(KEY).ask(AppendMany(1, 3, notes("y")))
        replayed = system.replay_superseded(KEY, 1)
        first = next(replayed)
        assert 1 == system.sweep(timedelta(seconds=-1)).rewinds

        assert 3 == first.offset
        assert LENGTH - 3 > 1 + len(list(replayed))
