"""The PostgreSQL store when its server is killed, its connections are cut, its writers stop, its notices are lost."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import psycopg
import pytest

from incarnate import Claim, SessionSystem, StudioTranscript
from incarnate.domain.decisions import Decision, StoredLog, decide
from incarnate.domain.errors import IncarnateError, OutcomeUnknownError, StoreBusyError
from incarnate.domain.keys import ActivationKey
from incarnate.storage import postgres_news
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store
from tests.support.postgres_server import Server, execute, postgres_url, schema_of, server_url
from tests.support.processes import Child
from tests.support.stores import KEY, Log
from tests.support.waiting import soon

WRITERS = 4
KILLS = 3
MOST_KILLS = 30  # until one falls between a commit and its answer: on a busy machine some do not


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as started:
        yield started


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres_url(tmp_path)


# The server is killed


class Writer:
    """Appends to a log of its own until told to stop, repeats what was left unknown, and remembers what it was told."""

    def __init__(self, store: Store, number: int, stop: threading.Event) -> None:
        self.log = Log(store, ActivationKey("kill", str(number)))
        self.acknowledged: dict[int, str] = {}
        self.failures: list[IncarnateError] = []
        self._stop = stop

    @property
    def met_unknown(self) -> bool:
        return any(isinstance(error, OutcomeUnknownError) for error in tuple(self.failures))

    def run(self) -> None:
        offset = 0
        while not self._stop.is_set():
            name = f"event {offset}"
            try:
                self.log.append_one(offset, name, expected=(0, offset))
            except (OutcomeUnknownError, StoreBusyError) as error:
                self.failures.append(error)
            else:
                self.acknowledged[offset] = name
                offset += 1


@pytest.mark.timeout(180)
def test_i6_a_killed_server_loses_nothing_that_it_acknowledged(server: Server) -> None:
    stop = threading.Event()
    with open_store(server.url) as store, ThreadPoolExecutor(WRITERS) as pool:
        writers = [Writer(store, number, stop) for number in range(WRITERS)]
        running = [pool.submit(writer.run) for writer in writers]
        try:
            for kills in range(MOST_KILLS):
                if kills >= KILLS and any(writer.met_unknown for writer in writers):
                    break
                goal = 50 + sum(len(writer.acknowledged) for writer in writers)
                assert soon(lambda goal=goal: sum(len(w.acknowledged) for w in writers) >= goal, 30)  # type: ignore[misc]
                server.kill()
                server.start()
        finally:
            stop.set()
        for future in running:
            future.result()
    with open_store(server.url) as store:
        for writer in writers:
            events = {appended.offset: appended.event.id for appended in Log(store, writer.log.key).events}

            assert list(range(len(events))) == list(events)
            assert writer.acknowledged == {offset: events.get(offset) for offset in writer.acknowledged}
            assert len(events) <= len(writer.acknowledged) + 1  # the one in flight at the end
            assert 2 == Log(store, writer.log.key).claim().fence
    assert any(writer.met_unknown for writer in writers)


def test_a_command_after_a_restart_heals_by_itself(server: Server) -> None:
    with open_store(server.url) as store:
        log = Log(store)
        log.append_one(0, "a")
        server.kill()
        server.start()

        log.append_one(1, "b")
        assert "ab" == log.names


def test_while_the_server_is_away_nothing_is_unknown(server: Server) -> None:
    with open_store(f"{server.url}&busy=0.5") as store:
        log = Log(store)
        log.append_one(0, "a")
        server.kill()

        with pytest.raises(StoreBusyError, match=r"no connection within 0\.5 seconds \(.*the server running"):
            log.append_one(1, "b")
        with pytest.raises(StoreBusyError):
            log.head  # noqa: B018
        server.start()
        log.append_one(1, "b")
        assert "ab" == log.names


# A connection is cut


def terminate(schema: str) -> None:
    """Have the server end every session that works in `schema`, and wait until it did."""
    ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity WHERE application_name = %s"
    execute(server_url(), ended, schema)


def named(url: str, tmp_path: Path) -> str:
    return f"{url}&application_name={schema_of(tmp_path)}"


def test_an_idle_connection_that_was_cut_is_noticed_before_it_is_used(url: str, tmp_path: Path) -> None:
    with open_store(named(url, tmp_path)) as store:
        log = Log(store)
        for offset in range(5):
            log.append_one(offset, "e")
            terminate(schema_of(tmp_path))

        assert list(range(5)) == log.offsets


def test_a_connection_cut_before_the_commit_was_sent_is_another_try(url: str, tmp_path: Path) -> None:
    attempts = count()
    with open_store(named(url, tmp_path)) as store:

        def cut_once(stored: StoredLog) -> Decision:
            if next(attempts) == 0:
                terminate(schema_of(tmp_path))
            return claim(stored)

        assert 1 == store.transact(KEY, cut_once, 0).head.fence
        assert 1 == Log(store).head.fence


def test_a_connection_cut_while_the_commit_was_on_its_way_leaves_the_outcome_unknown(url: str, tmp_path: Path) -> None:
    with open_store(named(url, tmp_path)) as store, ThreadPoolExecutor() as pool:
        log = Log(store)
        log.append_one(0, "a")
        with psycopg.connect(server_url()) as holder:
            holder.execute(f'SELECT 1 FROM "{schema_of(tmp_path)}".activation FOR UPDATE'.encode())
            late = pool.submit(log.append_one, 1, "b", 1, (0, 1))
            assert soon(is_waiting)
            terminate(schema_of(tmp_path))

            assert isinstance(late.exception(5), OutcomeUnknownError)
        log.append_one(1, "b", expected=(0, 1))  # the same call once more

        assert "ab" == log.names


def is_waiting() -> bool:
    return [] != execute(server_url(), "SELECT 1 FROM pg_catalog.pg_stat_activity WHERE wait_event_type = 'Lock'")


def claim(stored: StoredLog) -> Decision:
    return decide(stored, Claim(), None, 0)


# A writer stops


def test_i2_a_stale_process_is_refused_at_its_next_write(url: str) -> None:
    with SessionSystem.open(url) as system, Child("until_fenced", url) as child:
        child.expect("claim 1")
        child.go_on()
        child.expect("event")
        child.pause()
        system.lease(KEY, 7)
        child.resume()
        child.go_on()

        assert [f"stale {KEY} 1 7"] == child.end()


def test_i2_a_writer_stopped_inside_its_transaction_is_ended_by_the_server_and_refused(url: str) -> None:
    with open_store(url) as store:
        Log(store).append_one(0, "a")
        with Child("inside", url) as child:
            child.expect("ready")
            child.pause()
            begun = time.monotonic()

            assert 2 == Log(store).claim().fence
            assert time.monotonic() - begun < 30
            child.resume()
            child.go_on()
            assert ["refused StaleIncarnationError 2"] == child.end()
        assert "a" == Log(store).names


# Notices


def test_a_view_in_another_process_is_woken_by_a_notice(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a tenth of a second on a quiet machine; it is given ten times that."""
    monkeypatch.setattr(postgres_news, "_DOUBT_SECONDS", 60)  # no look by itself is taken for one
    delays = []
    with SessionSystem.open(url) as system, Child("until_fenced", url) as child, ThreadPoolExecutor() as pool:
        child.expect("claim 1")
        with system.view(KEY, StudioTranscript()).changes() as stream:
            changes = iter(stream)
            next(changes)
            vars(system)["_store"].version()
            for _ in range(9):
                change = pool.submit(next, changes)
                child.go_on()
                child.expect("event")
                told = time.monotonic()
                change.result(20)
                delays.append(time.monotonic() - told)

    assert sorted(delays)[len(delays) // 2] < 1, delays


def test_a_notice_of_ones_own_does_not_count(url: str) -> None:
    with open_store(url) as store:
        before = store.version()
        Log(store).claim()
        with open_store(url) as other:
            assert before == store.version()
            Log(other).claim()

            assert soon(lambda: before != store.version())


def test_what_nobody_told_is_found_by_asking(url: str, tmp_path: Path) -> None:
    with open_store(url) as store:
        Log(store).claim()
        before = store.version()
        execute(server_url(), f'UPDATE "{schema_of(tmp_path)}".activation SET fence = 9')

        assert soon(lambda: before != store.version())
        assert 9 == Log(store).head.fence


def test_a_listener_whose_connection_is_cut_listens_again(url: str, tmp_path: Path) -> None:
    with open_store(named(url, tmp_path)) as store, open_store(url) as other:
        before = store.version()
        terminate(schema_of(tmp_path))
        assert soon(lambda: before != store.version())  # it may have missed something
        before = store.version()
        Log(other).claim()

        assert soon(lambda: before != store.version())
