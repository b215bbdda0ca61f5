"""What is peculiar to the PostgreSQL store: its URL, its schema, its sessions, its size limits, its connections."""

import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from incarnate.domain.commands import AppendMany, Claim
from incarnate.domain.decisions import Decision, StoredLog, decide
from incarnate.domain.errors import (
    ForkedError,
    LogCorruptionError,
    MissingExtraError,
    ReadOnlyError,
    StoreBusyError,
    StoreServerError,
    StoreUrlError,
)
from incarnate.domain.events import TurnStart
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store
from incarnate.storage.postgres_schema import MIGRATIONS
from tests.support.postgres_server import Server, execute, postgres_url, schema_of, server_url
from tests.support.stores import KEY, Log, checkpoint, note, perform
from tests.support.waiting import soon


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres_url(tmp_path)


@pytest.fixture
def schema(tmp_path: Path) -> str:
    return schema_of(tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def log(store: Store) -> Log:
    return Log(store)


def sql(statement: str, *values: object) -> list[tuple[object, ...]]:
    return execute(server_url(), statement, *values)


# URLs

SECRET = "pa$$w0rd"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("durability=fast", "durability must be commit or process, not 'fast'"),
        ("busy=soon", "busy must be a number of seconds, not 'soon'"),
        ("busy=nan", "busy must be a number of seconds, not 'nan'"),
        ("busy=-1", "busy must be a number of seconds, not '-1'"),
        ("pool=1", "pool must be a number from 2 to 1000, not '1'"),
        ("pool=%C2%B2", "pool must be a number from 2 to 1000, not '²'"),
        ("schema=a%22b", "schema must be at most 63 letters, digits and _ that begin with no digit, not 'a\"b'"),
        ("schema=", "schema must be at most 63 letters, digits and _ that begin with no digit, not ''"),
        ("host=x&speed=high", "not speed"),
        ("busy", "the options after ? must read name=value&name=value"),
        ("connect_timeout=%zz", "is no URL that PostgreSQL's client library takes"),
    ],
)
def test_a_url_that_names_no_store_is_refused_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(StoreUrlError) as refusal:
        open_store(f"postgresql://me:{SECRET}@host/db?password={SECRET}&{url}")

    assert reason in str(refusal.value)
    assert "'postgresql://me@host/db?" in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert SECRET not in f"{refusal.value}{refusal.value.hint}"


def test_an_unknown_scheme_with_a_password_does_not_tell_it() -> None:
    with pytest.raises(StoreUrlError) as refusal:
        open_store(f"mysql://me:{SECRET}@host/db")

    assert SECRET not in f"{refusal.value}{refusal.value.hint}"


def test_a_password_appears_neither_in_the_url_nor_in_errors_nor_in_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = f"postgresql://me:{SECRET}@127.0.0.1:1/db?password={SECRET}"
    with pytest.raises(StoreServerError, match="cannot be reached") as refusal:
        open_store(url)

    assert SECRET not in f"{refusal.value}{refusal.value.place}{refusal.value.hint}{refusal.value.__cause__}"
    assert SECRET not in caplog.text


def test_the_url_of_a_store_opens_it_again(store: Store, log: Log) -> None:
    log.append(0, "ab")

    with open_store(store.url) as again:
        assert "ab" == Log(again).names


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("incarnate.storage.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(MissingExtraError) as missing:
        open_store("postgresql:///db")

    assert 'pip install "incarnate[postgres]"' == missing.value.hint


# Sessions


def test_the_short_scheme_of_psql_leads_to_the_same_store(tmp_path: Path) -> None:
    url = postgres_url(tmp_path)
    with open_store(url) as store:
        Log(store).append(0, "ab")
    with open_store(url.replace("postgresql://", "postgres://")) as again:
        assert ("ab", store.url) == (Log(again).names, again.url)


def test_every_session_has_limits_for_locks_and_for_saying_nothing(tmp_path: Path) -> None:
    with open_store(postgres_url(tmp_path, "&busy=3&application_name=mine")) as store:
        Log(store).claim()
        shown = settings_of(store, "lock_timeout", "idle_in_transaction_session_timeout", "application_name")

    assert ["3s", "1500ms", "mine"] == shown


def settings_of(store: Store, *names: str) -> list[str]:
    with vars(store)["_connections"].lent() as db:
        return [db.execute(f"SHOW {name}").fetchone()[0] for name in names]


@pytest.mark.parametrize("default", ["off", "on", "remote_apply"])
def test_a_commit_waits_for_the_disk_whatever_the_role_says(url: str, default: str) -> None:
    with open_store(f"{url}&options=-c%20synchronous_commit%3D{default}") as store:
        assert ["on" if default == "off" else default] == settings_of(store, "synchronous_commit")


def test_i11_with_durability_process_only_events_do_not_wait_for_the_disk(tmp_path: Path) -> None:
    with open_store(postgres_url(tmp_path, "&durability=process")) as store:
        log = Log(store)
        log.claim()
        seen = [spied(store, lambda: log.append_one(0, "a")), spied(store, log.claim)]
        log.append_one(1, "b", incarnation=2)

        assert [["off"], []] == seen
        assert ["on"] == settings_of(store, "synchronous_commit")


def spied(store: Store, use: Callable[[], object]) -> list[str]:
    """How `synchronous_commit` stood when a row was added to the events."""
    schema = vars(store)["_target"].schema
    name = f'"{schema}"'
    sql(f"CREATE TABLE IF NOT EXISTS {name}.spy (value text)")
    sql(
        f"CREATE OR REPLACE FUNCTION {name}.spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" INSERT INTO {name}.spy VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$"
    )
    sql(f"CREATE OR REPLACE TRIGGER spy AFTER INSERT ON {name}.event FOR EACH ROW EXECUTE FUNCTION {name}.spy()")
    use()
    rows = sql(f"SELECT value FROM {name}.spy")
    sql(f"DELETE FROM {name}.spy")
    return [str(row[0]) for row in rows]


def test_a_read_only_store_opens_read_only_transactions_alone(url: str, log: Log) -> None:
    log.append(0, "ab")
    with open_store(url, read_only=True) as reader:
        assert "ab" == Log(reader).names
        assert ["on"] == settings_of(reader, "default_transaction_read_only")
        with pytest.raises(ReadOnlyError):
            Log(reader).claim()
        before = reader.version()
        log.append(2, "c")
        assert soon(lambda: before != reader.version())


def test_a_read_only_store_that_is_not_there_is_refused_and_not_made(url: str, schema: str) -> None:
    with pytest.raises(StoreServerError, match="holds no store"):
        open_store(url, read_only=True)

    assert [] == sql("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", schema)


# The schema


def test_processes_that_make_the_tables_at_once_all_get_the_same_store(url: str, schema: str) -> None:
    start = threading.Barrier(6)

    def claim(_: int) -> int | None:
        start.wait()
        with open_store(url) as store:
            return Log(store).claim().fence

    with ThreadPoolExecutor(6) as pool:
        fences = list(pool.map(claim, range(6)))

    assert list(range(1, 7)) == sorted(fence for fence in fences if fence is not None)
    assert [(len(MIGRATIONS),)] == sql(f'SELECT count(*) FROM "{schema}".migration')


def test_a_schema_of_a_newer_version_is_refused_and_left_alone(url: str, schema: str) -> None:
    open_store(url).close()
    sql(f'INSERT INTO "{schema}".migration VALUES (99, %s, 0)', "0099 wonders")

    for read_only in (False, True):
        with pytest.raises(StoreServerError, match="newer version of incarnate") as refusal:
            open_store(url, read_only=read_only)
        assert "upgrade incarnate" == refusal.value.hint


def test_somebody_elses_tables_are_refused_and_left_alone(url: str, schema: str) -> None:
    sql(f'CREATE SCHEMA "{schema}"')
    sql(f'CREATE TABLE "{schema}".event (id int)')

    with pytest.raises(StoreServerError, match="holds tables that are no store of incarnate"):
        open_store(url)

    tables = sql("SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = %s", schema)
    assert [("event",)] == tables


def test_a_damaged_row_is_told_with_its_place(log: Log, schema: str) -> None:
    log.append(0, "abc")
    sql(f'UPDATE "{schema}".event SET payload = \'{{\' WHERE "offset" = 1')

    with pytest.raises(LogCorruptionError, match="pik-1/implement-task, offset 1"):
        log.events  # noqa: B018


def test_a_store_whose_tables_are_dropped_says_so(log: Log, schema: str) -> None:
    log.append(0, "a")
    sql(f'DROP SCHEMA "{schema}" CASCADE')

    with pytest.raises(StoreServerError, match="tables are gone"):
        log.append(1, "b")
    with pytest.raises(StoreServerError, match="tables are gone"):
        log.head  # noqa: B018


# Races


def test_writers_that_race_to_touch_a_key_first_all_get_through(url: str) -> None:
    start = threading.Barrier(4)
    keys = [ActivationKey("race", str(number)) for number in range(20)]

    def claims(_: int) -> list[int | None]:
        with open_store(url) as store:
            start.wait()
            return [Log(store, key).claim().fence for key in keys]

    with ThreadPoolExecutor(4) as pool:
        fences = list(pool.map(claims, range(4)))

    assert [[1, 2, 3, 4]] * 20 == [sorted(taken) for taken in zip(*fences, strict=True)]


def test_an_append_that_waits_for_a_take_over_sees_it(log: Log, url: str) -> None:
    log.append_one(0, "a")
    seen = threading.Event()
    with open_store(url) as other, ThreadPoolExecutor() as pool:

        def take_over(stored: StoredLog) -> Decision:
            late.append(pool.submit(log.append_one, 1, "b"))
            assert soon(lambda: waiting(KEY))
            seen.set()
            return claim(stored)

        late: list[object] = []
        other.transact(KEY, take_over, 0)

        assert "StaleIncarnationError" == type(late[0].exception(5)).__name__  # type: ignore[attr-defined]
    assert seen.is_set()
    assert "a" == log.names


def claim(stored: StoredLog) -> Decision:
    return decide(stored, Claim(), None, 0)


def waiting(_: ActivationKey) -> bool:
    return [] != sql("SELECT 1 FROM pg_catalog.pg_stat_activity WHERE wait_event_type = 'Lock'")


def test_a_serialization_failure_is_tried_again(log: Log, store: Store) -> None:
    log.append_one(0, "a")
    failing = ["40001", "40P01", "40001"]

    def fails_thrice(stored: StoredLog) -> Decision:
        if stored.head.next_offset and failing:
            vars(stored)["_db"].execute(raising(failing.pop()))
        return claim(stored)

    del vars(vars(store)["_writer"])["_heads"][KEY]  # else the first is on the head as it was last seen

    assert 2 == store.transact(KEY, fails_thrice, 0).head.fence
    assert [] == failing


def raising(code: str) -> str:
    return f"DO $$ BEGIN RAISE SQLSTATE '{code}'; END $$"


def test_a_serialization_failure_without_end_is_told_as_busy(tmp_path: Path) -> None:
    with open_store(postgres_url(tmp_path, "&busy=0.05")) as store:

        def fails(stored: StoredLog) -> Decision:
            vars(stored)["_db"].execute(raising("40001"))
            raise AssertionError

        with pytest.raises(StoreBusyError, match=r"nothing was written within 0\.05 seconds"):
            store.transact(KEY, fails, 0)
        assert 1 == Log(store).claim().fence


def test_the_url_sets_the_wait_for_a_lock(log: Log, tmp_path: Path) -> None:
    log.claim()
    with open_store(postgres_url(tmp_path, "&busy=0.05")) as store:

        def claim_meanwhile(stored: StoredLog) -> Decision:
            with pytest.raises(StoreBusyError, match="another process holds the activation"):
                Log(store).claim()
            assert 1 == Log(store, ActivationKey("pik", "another")).claim().fence  # nobody else waits
            return claim(stored)

        del vars(vars(log.store)["_writer"])["_heads"][KEY]
        log.store.transact(KEY, claim_meanwhile, 0)

    assert 2 == log.head.fence


# Connections


def test_more_threads_than_connections_take_turns(tmp_path: Path) -> None:
    with open_store(postgres_url(tmp_path, "&pool=2")) as store, ThreadPoolExecutor(8) as pool:

        def write(number: int) -> list[int]:
            log = Log(store, ActivationKey("pik", str(number)))
            for offset in range(20):
                log.append_one(offset, "e")
            return log.offsets

        written = list(pool.map(write, range(8)))

    assert [list(range(20))] * 8 == written


def test_a_role_with_few_connections_is_served_by_those_it_has() -> None:
    with Server() as server:
        server.execute("CREATE ROLE few LOGIN SUPERUSER CONNECTION LIMIT 3")  # no limit for superusers
        server.execute("ALTER ROLE few NOSUPERUSER")
        server.execute("GRANT CREATE ON DATABASE postgres TO few")
        url = server.url.replace("user=postgres", "user=few") + "&busy=2"
        with open_store(url) as store, ThreadPoolExecutor(6) as pool:
            fences = list(pool.map(lambda number: Log(store, ActivationKey("few", str(number % 2))).claim(), range(30)))

        assert 30 == len(fences)


def test_where_no_connection_is_to_be_had_the_reason_is_told() -> None:
    with (
        Server("max_connections=5", "superuser_reserved_connections=0", "max_wal_senders=0") as server,
        open_store(server.url + "&busy=0.3") as store,
    ):
        others = [psycopg.connect(server.url) for _ in range(4)]
        with store.snapshot(KEY), pytest.raises(StoreBusyError, match="too many clients already"):
            Log(store).claim()
        with pytest.raises(StoreServerError, match=r"cannot be reached|short of something"):
            open_store(server.url)
        for other in others:
            other.close()

        assert 1 == Log(store).claim().fence


def test_a_forked_child_is_refused_and_harms_no_connection_of_its_parent(store: Store, log: Log) -> None:
    log.append_one(0, "a")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child's lines are not counted
        try:
            said = []
            for use in (log.claim, lambda: log.head, store.version, lambda: list(store.activations())):
                try:
                    use()
                except ForkedError:
                    said.append("forked")
            store.close()
            gc.collect()
            os.write(writing, " ".join(said).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert b"forked forked forked forked" == os.read(reading, 1000)
    os.close(reading)
    os.close(writing)
    log.append_one(1, "b")
    assert "ab" == log.names


# Sizes


def test_a_batch_larger_than_a_statement_carries_is_written_whole(log: Log) -> None:
    large = [note(str(number), "x" * 6_000_000) for number in range(7)]
    log.append(0, large)

    assert large == [appended.event for appended in log.events]


def test_i9_a_batch_reads_back_equal_where_the_server_escapes_strings_the_old_way(tmp_path: Path) -> None:
    with open_store(postgres_url(tmp_path, "&options=-c%20standard_conforming_strings%3Doff")) as store:
        log = Log(store)
        log.append(0, "abc")

        assert "abc" == log.names


def test_a_batch_may_raise_the_turn_and_a_single_turn_does_in_one_statement(log: Log) -> None:
    log.append_one(0, "a")
    log.do(AppendMany(1, 1, (TurnStart(id="t", parent_id=None, turn=4),)))
    log.do(AppendMany(1, 2, (TurnStart(id="u", parent_id=None, turn=7), note("b"))))

    assert Head(1, 4, 0, 8) == log.head


def test_a_page_of_many_small_events_is_not_cut_at_a_thousand(log: Log) -> None:
    log.append(0, [note(str(number)) for number in range(2500)])

    with log.store.snapshot(KEY) as snapshot:
        assert 2500 == len(snapshot.page(0, 2500, 10**9))


def test_i5_of_checkpoints_at_one_offset_the_latest_insert_counts(log: Log) -> None:
    log.append(0, "a")
    for name in "zay":
        log.put(checkpoint(name, 1))

    assert "y" == log.latest


def test_a_key_of_any_text_is_found_by_what_it_is(store: Store) -> None:
    keys = [ActivationKey("a" * 1024, "\U0001f9e0" * 256), ActivationKey("%s", "%(x)s"), ActivationKey("'", '"')]
    for key in keys:
        perform(store, key, Claim())

    assert sorted(keys) == [info.key for info in store.activations()]
