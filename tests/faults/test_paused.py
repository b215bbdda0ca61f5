"""A process is paused by SIGSTOP, another takes its activation over, and the first one goes on as if nothing was."""

import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from incarnate.domain.errors import StoreBusyError
from incarnate.storage.locate import open_store
from tests.support.faults import agent
from tests.support.faults_agent import KEY
from tests.support.postgres_server import postgres_url
from tests.support.processes import Child
from tests.support.stores import Log, jsonl_url, sqlite_url

WAIT = 1.0
Url = Callable[[Path], str]

DURABLE: dict[str, Url] = {
    "sqlite": lambda folder: sqlite_url(folder, f"?busy={WAIT}"),
    "sqlite-process": lambda folder: sqlite_url(folder, f"?busy={WAIT}&durability=process"),
    "jsonl": lambda folder: jsonl_url(folder, f"?busy={WAIT}"),
    "jsonl-process": lambda folder: jsonl_url(folder, f"?busy={WAIT}&durability=process&segment=1"),
    "postgres": lambda folder: postgres_url(folder, f"&busy={WAIT}"),
    "postgres-process": lambda folder: postgres_url(folder, f"&busy={WAIT}&durability=process"),
}
DECIDE_FIRST = [name for name in DURABLE if not name.startswith("jsonl")]
"""Those that decide on the head as it was last seen before they lock anything."""

WAITED_FOR = [name for name in DURABLE if not name.startswith("postgres")]
"""Those whose lock a paused process keeps; a server ends the transaction of one that says nothing."""


@pytest.fixture(params=DURABLE)
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def url(name: str, tmp_path: Path) -> str:
    url = DURABLE[name](tmp_path)
    with open_store(url) as store:
        log = Log(store, KEY)
        log.lease(1)
        log.append(0, "a")
    return url


@contextmanager
def paused(child: Child) -> Generator[None]:
    """It is paused inside, and goes on afterwards."""
    word, pid = child.read().split()
    assert "pauses" == word
    assert os.WIFSTOPPED(os.waitpid(int(pid), os.WUNTRACED)[1])
    try:
        yield
    finally:
        os.kill(int(pid), signal.SIGCONT)


def take_over(url: str, offset: int) -> None:
    with open_store(url) as store:
        log = Log(store, KEY)
        assert 2 == log.claim().fence
        log.append(offset, "x", 2)


def found(url: str) -> tuple[list[str], list[int]]:
    with open_store(url) as store:
        events = Log(store, KEY).events
    return [appended.event.id for appended in events], [appended.offset for appended in events]


def test_i2_a_process_that_was_paused_before_its_write_is_refused_on_waking(url: str) -> None:
    with agent("paused", url, "before") as child:
        with paused(child):
            take_over(url, 1)

        assert ["StaleIncarnationError"] * 2 == child.end()
    assert (["a", "x"], [0, 1]) == found(url)


@pytest.mark.parametrize("name", DECIDE_FIRST, indirect=True)
def test_i2_a_process_that_was_paused_on_a_head_seen_before_is_refused_on_waking(url: str) -> None:
    with agent("paused", url, "deciding") as child:
        child.expect("written")
        with paused(child):
            take_over(url, 2)

        assert ["StaleIncarnationError"] * 2 == child.end()
    assert (["a", "b", "x"], [0, 1, 2]) == found(url)


@pytest.mark.parametrize("name", WAITED_FOR, indirect=True)
def test_a_take_over_from_a_process_paused_inside_its_write_is_told_within_the_wait_that_it_is_busy(url: str) -> None:
    with agent("paused", url, "inside") as child:
        with paused(child):
            began = time.monotonic()
            with pytest.raises(StoreBusyError, match="was locked by another process for 1"):
                take_over(url, 1)
            waited = time.monotonic() - began

        assert ["written", "written"] == child.end()
    assert WAIT <= waited < WAIT + 5
    take_over(url, 3)
    assert (["a", "late", "later", "x"], [0, 1, 2, 3]) == found(url)


@pytest.mark.parametrize("name", [name for name in DURABLE if name not in WAITED_FOR], indirect=True)
def test_i2_a_server_ends_the_transaction_of_a_paused_process_and_the_take_over_proceeds(url: str) -> None:
    with agent("paused", url, "inside") as child:
        with paused(child):
            take_over(url, 1)

        assert ["StaleIncarnationError"] * 2 == child.end()
    assert (["a", "x"], [0, 1]) == found(url)
