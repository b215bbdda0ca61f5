"""How events lie in a SQLite file: what an older file becomes, where a log ends, and what an append does not read."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incarnate import SessionSystem, UserMessage
from incarnate.domain.commands import AppendMany
from incarnate.domain.errors import OffsetError, StoreFileError
from incarnate.storage.contract.batches import step
from incarnate.storage.port import Store, Transaction
from incarnate.storage.sqlite import SqliteStore
from incarnate.storage.sqlite_schema import MIGRATIONS, OFFSET_BITS
from tests.support.stores import KEY, OTHER, Log, checkpoint, notes, raw, sqlite_url

OLDER = """
    CREATE TABLE older (
        activation INTEGER NOT NULL, offset INTEGER NOT NULL, incarnation INTEGER NOT NULL, at_ms INTEGER NOT NULL,
        payload BLOB NOT NULL, PRIMARY KEY (activation, offset)
    ) WITHOUT ROWID;
    INSERT INTO older SELECT activation, offset, incarnation, at_ms, payload FROM event;
    DROP TABLE event;
    ALTER TABLE older RENAME TO event;
    DELETE FROM migration WHERE name = '0003 positions';
    PRAGMA user_version = 2;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with SqliteStore(str(path)) as opened:
        yield opened


def older(path: Path) -> list[object]:
    """A file of the schema before this one; what its two logs hold."""
    with SqliteStore(str(path)) as store:
        log, other = Log(store), Log(store, OTHER)
        log.append(0, "abcdef")
        log.put(checkpoint("cp", 4))
        log.append(4, "xy")
        other.append(0, "z" * 70)
        held: list[object] = [log.everything(), other.everything()]
    with raw(path) as db:
        db.executescript(OLDER)
    return held


def held_by(path: Path) -> list[object]:
    with SqliteStore(str(path)) as store:
        assert [] == list(store.damage())
        return [Log(store, key).everything() for key in (KEY, OTHER)]


def test_a_file_of_an_older_schema_keeps_all_that_it_holds(path: Path) -> None:
    before = older(path)

    assert before == held_by(path)


def test_a_log_of_an_older_schema_goes_on(path: Path) -> None:
    older(path)

    with SqliteStore(str(path)) as store:
        log = Log(store)
        log.append(6, "z")

        assert "abcdxyz" == log.names


@pytest.mark.parametrize("statement", range(len(MIGRATIONS[2][1])))
def test_a_change_of_schema_that_is_broken_off_changes_nothing(
    path: Path, statement: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(sqlite3.Connection):
        still = None

        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            if sql == MIGRATIONS[2][1][statement]:
                raise KeyboardInterrupt
            return super().execute(sql, *args)

    before = older(path)
    with monkeypatch.context() as patch:
        patch.setattr("incarnate.storage.sqlite_files.Connection", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            SqliteStore(str(path))

    with raw(path) as db:
        assert [(2,)] == db.execute("PRAGMA user_version").fetchall()
    assert before == held_by(path)


KILLED = """
import os, signal, sqlite3, sys
from incarnate.storage import sqlite_files
from incarnate.storage.sqlite import SqliteStore

class Killed(sqlite3.Connection):
    still = None

    def execute(self, sql, *args):
        if sql.startswith(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(sql, *args)

sqlite_files.Connection = Killed
SqliteStore(sys.argv[1])
"""


@pytest.mark.parametrize("before", ["INSERT INTO event", "DROP TABLE event_0001", "PRAGMA user_version = 3"])
def test_a_kill_in_a_change_of_schema_loses_nothing(path: Path, before: str) -> None:
    held = older(path)

    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), before], check=False)

    assert -signal.SIGKILL == killed.returncode
    assert held == held_by(path)


def test_a_reader_does_not_change_the_schema(path: Path) -> None:
    older(path)

    with pytest.raises(StoreFileError, match="is of an older version"):
        SqliteStore(str(path), read_only=True)


def test_a_program_of_an_older_version_that_has_the_file_open_is_refused_its_writes(path: Path) -> None:
    append = "INSERT INTO event VALUES (1, ?, 1, 0, '{}')"
    before = older(path)
    with raw(path) as db:
        db.execute("BEGIN")
        db.execute(append, (6,))
        db.execute("ROLLBACK")

        assert before == held_by(path)

        with pytest.raises(sqlite3.OperationalError, match="table event has 4 columns but 5 values were supplied"):
            db.execute(append, (6,))


def test_a_sqlite_that_is_too_old_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 26, 0))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.26.0")

    with pytest.raises(StoreFileError, match=r"needs SQLite 3\.31 or later; this Python has 3\.26\.0"):
        SqliteStore(str(path))


def nearly_full(path: Path, store: Store) -> Log:
    """A log in whose file there is room for one more event, and a log that follows it there."""
    log = Log(store)
    log.append(0, "a")
    Log(store, OTHER).append(0, "b")
    with raw(path) as db:
        db.execute(f"UPDATE event SET position = (1 << {OFFSET_BITS}) + (1 << {OFFSET_BITS}) - 3 WHERE activation = 1")
    return log


def test_a_log_ends_where_the_next_one_begins(path: Path, store: Store) -> None:
    log = nearly_full(path, store)
    last = store.head(KEY).next_offset

    log.append(last, "y")
    with pytest.raises(OffsetError, match="a SQLite store holds at most 4,294,967,295 events of an activation"):
        log.append(last + 1, "z")

    assert (last + 1, "b") == (store.head(KEY).next_offset, Log(store, OTHER).names)


def test_a_log_that_is_full_is_no_trouble_for_those_written_with_it(path: Path, store: Store) -> None:
    nearly_full(path, store)
    last = store.head(KEY).next_offset

    full, other = store.transact_each(
        [
            Transaction(KEY, step(AppendMany(1, last, notes("yz"))), 0),
            Transaction(OTHER, step(AppendMany(1, 1, notes("c"))), 0),
        ]
    )

    assert isinstance(full, OffsetError)
    assert not isinstance(other, Exception)
    assert (last, "bc") == (store.head(KEY).next_offset, Log(store, OTHER).names)


def test_no_range_reaches_into_another_log(store: Store) -> None:
    logs = [Log(store, KEY), Log(store, OTHER)]
    for log in logs:
        log.append(0, "abc")

    for log in logs:
        with store.snapshot(log.key) as snapshot:
            assert [0, 1, 2] == [event.offset for event in snapshot.appended(-5, 1 << 60)]
            assert [] == snapshot.appended(-5, -1)
            assert [] == snapshot.appended(3, 1 << 60)


def test_an_event_beside_a_large_one_does_not_read_it(tmp_path: Path) -> None:
    large = 20 << 20  # far above what SQLite keeps in memory
    with SessionSystem.open(sqlite_url(tmp_path)) as system:
        session = system.claim(KEY)
        session.emit(UserMessage(id="e0", parent_id=None, text="x" * large))
        before = read_by_this_process()

        for number in range(1, 9):
            session.emit(UserMessage(id=f"e{number}", parent_id=f"e{number - 1}", text="small"))

        assert read_by_this_process() - before < large / 10


def read_by_this_process() -> int:
    """How many bytes it has read so far, from the page cache too."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines())
    return int(counts["rchar"])


def test_the_file_can_be_read_by_activation_and_offset(path: Path, store: Store) -> None:
    for key in (KEY, OTHER):
        Log(store, key).append(0, "ab")

    with raw(path) as db:
        rows = db.execute("SELECT activation, offset FROM event").fetchall()

    assert [(1, 0), (1, 1), (2, 0), (2, 1)] == rows
