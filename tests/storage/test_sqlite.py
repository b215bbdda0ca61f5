"""What only the SQLite store does: its file, its locks, the driver's errors, interrupts."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from incarnate import SessionSystem, UserMessage
from incarnate.domain.commands import Claim
from incarnate.domain.decisions import Decision, StoredLog, decide
from incarnate.domain.errors import (
    IncarnateError,
    LogCorruptionError,
    ReadOnlyError,
    StoreBusyError,
    StoreFileError,
)
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store
from incarnate.storage.sqlite import SqliteStore
from incarnate.storage.sqlite_files import PAGE_BYTES, translated
from incarnate.storage.sqlite_schema import MIGRATIONS
from tests.support.stores import KEY, Log, checkpoint, raw

Files = dict[str, tuple[bytes, int, int]]


def files(folder: Path) -> Files:
    """Every file in `folder` with its bytes, mode and time of change."""
    status = {path: path.stat() for path in folder.iterdir()}
    return {
        path.name: (path.read_bytes() if path.is_file() else b"", found.st_mode, found.st_mtime_ns)
        for path, found in sorted(status.items())
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with SqliteStore(str(path), busy_seconds=0.02) as opened:
        yield opened


@pytest.fixture
def log(store: Store) -> Log:
    return Log(store)


# Files that are none of ours


def text(path: Path) -> None:
    path.write_text("dear diary, " * 100)


def one_byte(path: Path) -> None:
    path.write_bytes(b"x")


def short_text(path: Path) -> None:
    path.write_bytes(b"x" * 99)


def half_a_header(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0")


def foreign(path: Path) -> None:
    with raw(path) as db:
        db.execute("CREATE TABLE diary (entry)")


def foreign_with_its_log(path: Path) -> None:
    """Somebody else's database as a killed process leaves it: all that it holds stands in its write-ahead log."""
    elsewhere = path.parent.parent / "elsewhere"
    elsewhere.mkdir()
    with raw(elsewhere / path.name) as db:
        db.execute("PRAGMA journal_mode = WAL")
        foreign(elsewhere / path.name)
        shutil.copytree(elsewhere, path.parent, dirs_exist_ok=True)


def newer(path: Path) -> None:
    SqliteStore(str(path)).close()
    with raw(path) as db:
        db.execute("PRAGMA user_version = 99")


def somebody_elses_version(path: Path) -> None:
    with raw(path) as db:
        db.execute("PRAGMA user_version = 1")


def folder(path: Path) -> None:
    path.mkdir()


NO_DATABASE = "is no SQLite database"
FOREIGN = "is an SQLite database, but no store of incarnate"
REFUSED_FILES: list[tuple[Callable[[Path], None], str]] = [
    (text, NO_DATABASE),
    (one_byte, NO_DATABASE),
    (short_text, NO_DATABASE),
    (half_a_header, NO_DATABASE),
    (foreign, FOREIGN),
    (foreign_with_its_log, FOREIGN),
    (somebody_elses_version, FOREIGN),
    (newer, f"was written by a newer version of incarnate (schema 99, this one knows {len(MIGRATIONS)})"),
    (folder, "is a folder"),
]


@pytest.mark.parametrize("read_only", [False, True], ids=["write", "read"])
@pytest.mark.parametrize(("make", "reason"), REFUSED_FILES, ids=[make.__name__ for make, _ in REFUSED_FILES])
def test_a_file_that_is_none_of_ours_is_refused_and_left_untouched(
    tmp_path: Path, make: Callable[[Path], None], reason: str, *, read_only: bool
) -> None:
    path = tmp_path / "inner" / "sessions.db"
    path.parent.mkdir()
    make(path)
    before = files(path.parent)

    with pytest.raises(StoreFileError) as refusal:
        SqliteStore(str(path), read_only=read_only)

    assert f"{path}: {reason}" == str(refusal.value)
    assert before == files(path.parent)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing/sessions.db", "its folder does not exist"),
        ("file/sessions.db", "its folder does not exist"),
        ("a\0b", "holds a NUL character"),
        ("x" * 300, "cannot be looked up (File name too long)"),
        ("x" * 255, "cannot be created (File name too long)"),
        ("\ud800", "cannot be looked up ('utf-8' codec can't encode"),
        ("dangling", "is a link to nowhere/x, which does not exist"),
        ("dangling/sessions.db", "its folder does not exist"),
    ],
)
def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere/x")
    before = files_but_links(tmp_path)

    with pytest.raises(StoreFileError) as refusal:
        SqliteStore(f"{tmp_path}/{name}")

    assert str(refusal.value).startswith(f"{tmp_path}/{name}: {reason}")
    assert before == files_but_links(tmp_path)


def files_but_links(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))  # noqa: PTH208 - a dangling link cannot be looked at


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()

    with SqliteStore(str(path)) as store:
        assert Head(1, 0, 0, 0) == Log(store).claim()


def test_an_empty_file_stays_empty_for_a_reader(path: Path) -> None:
    path.touch()

    with pytest.raises(StoreFileError, match="is empty: nothing was written to it yet"):
        SqliteStore(str(path), read_only=True)

    assert b"" == path.read_bytes()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("name", ["sessions.db", "link"])
def test_the_log_of_an_emptied_file_is_left_to_who_puts_it_back(path: Path, name: str, *, read_only: bool) -> None:
    """SQLite deletes it as soon as anybody looks into the file, by way of a link too."""
    path.touch()
    (path.parent / "link").symlink_to(path)
    log = Path(f"{path}-wal")
    log.write_bytes(b"the last writes")

    with pytest.raises(StoreFileError, match="is empty, and not so its write-ahead log") as refused:
        SqliteStore(str(path.parent / name), read_only=read_only)

    assert f"put it back from a backup, or move {log} away to begin anew" == refused.value.hint
    assert (b"", b"the last writes") == (path.read_bytes(), log.read_bytes())


@pytest.mark.parametrize("read_only", [False, True])
def test_a_pipe_is_refused_and_not_waited_for(path: Path, *, read_only: bool) -> None:
    os.mkfifo(path)

    with pytest.raises(StoreFileError, match="is a pipe, a device or a socket"):
        SqliteStore(str(path), read_only=read_only)


def test_a_link_leads_to_its_store(tmp_path: Path, log: Log) -> None:
    log.claim()
    (tmp_path / "link").symlink_to("sessions.db")

    with SqliteStore(str(tmp_path / "link")) as store:
        assert Head(2, 0, 0, 0) == Log(store).claim()


def test_only_the_owner_can_read_what_is_created(tmp_path: Path, path: Path) -> None:
    mask = os.umask(0)
    try:
        with SqliteStore(str(path)) as store:
            Log(store).append(0, "abc")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(mask)

    assert dict.fromkeys(("sessions.db", "sessions.db-wal", "sessions.db-shm"), 0o600) == modes


def test_nothing_but_the_file_is_left_after_closing(tmp_path: Path, path: Path) -> None:
    with SqliteStore(str(path)) as store:
        Log(store).append(0, "abc")
        assert "abc" == Log(store).names

    assert ["sessions.db"] == [file.name for file in tmp_path.iterdir()]


def test_a_relative_path_stays_where_it_was_after_chdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///sessions.db") as store:
        monkeypatch.chdir(tmp_path / "elsewhere")
        log = Log(store)
        log.append(0, "abc")
        store.version()

        assert ("abc", []) == (log.names, list(Path.cwd().iterdir()))


@pytest.mark.parametrize(
    "name", ["a b", "a%20b", "a%2520b", "a?b", "a#b", "a&busy=1", "ä\U0001f9e0", "\udc80", ":memory:"]
)
def test_the_url_of_a_store_opens_it_again(tmp_path: Path, name: str) -> None:
    with SqliteStore(f"{tmp_path}/{name}") as store, open_store(store.url) as again:
        Log(store).claim()

        assert Head(1, 0, 0, 0) == Log(again).head


# Reading only


@pytest.mark.parametrize("count", [1, 7, 8, 63, 64, 65, 127, 128, 200])
def test_the_events_of_one_write_lie_in_their_order_however_many(path: Path, count: int) -> None:
    events = [UserMessage(id=f"e{number}", parent_id=None, text=f"{number}") for number in range(count)]
    with SessionSystem.open(f"sqlite:///{path}") as system:
        session = system.claim(KEY)
        session.emit_many(events[:1])
        session.emit_many(events)
        stored = list(system.replay(KEY))

    assert [*events[:1], *events] == [appended.event for appended in stored]
    assert list(range(count + 1)) == [appended.offset for appended in stored]
    assert {session.incarnation} == {appended.incarnation for appended in stored}


def test_a_reader_writes_nothing(log: Log, path: Path) -> None:
    log.append(0, "abc")
    log.store.close()
    before = path.read_bytes(), path.stat().st_mtime_ns

    with SqliteStore(str(path), read_only=True) as reader:
        assert "abc" == Log(reader).names
        with pytest.raises(ReadOnlyError, match="was opened read-only"):
            Log(reader).claim()

    assert before == (path.read_bytes(), path.stat().st_mtime_ns)


def test_a_reader_makes_no_file(path: Path) -> None:
    with pytest.raises(StoreFileError, match="does not exist"):
        SqliteStore(str(path), read_only=True)

    assert [] == list(path.parent.iterdir())


def test_a_reader_sees_what_is_written_meanwhile(log: Log, path: Path) -> None:
    with SqliteStore(str(path), read_only=True) as reader:
        log.append(0, "abc")

        assert "abc" == Log(reader).names


# Locks


def test_a_lock_held_for_longer_than_the_wait_is_reported_and_nothing_written(log: Log, path: Path) -> None:
    log.append(0, "a")
    with raw(path) as holder:
        holder.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(StoreBusyError, match=r"sessions\.db was locked by another process for 0\.02 seconds"):
            log.append(1, "b")

        assert 0.02 <= time.monotonic() - began
    assert "a" == log.names
    assert "ab" == "a" + "".join(appended.event.id for appended in log.append(1, "b"))


def test_a_lock_held_for_less_is_waited_for_in_short_sleeps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    with SqliteStore(str(path), busy_seconds=30) as store, raw(path) as holder:

        def release_at_the_third(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                holder.execute("COMMIT")

        holder.execute("BEGIN IMMEDIATE")
        with monkeypatch.context() as patched:
            patched.setattr(time, "sleep", release_at_the_third)
            Log(store).claim()

    assert 3 == len(waits)
    assert all(0 <= wait <= 0.001 for wait in waits)


def test_a_reader_never_waits_for_a_writer(log: Log, path: Path) -> None:
    log.append(0, "a")
    with raw(path) as holder:
        holder.execute("BEGIN IMMEDIATE")

        assert "a" == log.names
        with SqliteStore(str(path), read_only=True, busy_seconds=0) as reader:
            assert "a" == Log(reader).names


def test_opening_a_locked_file_is_reported_as_busy(path: Path) -> None:
    path.touch()
    with raw(path) as holder:
        holder.execute("BEGIN EXCLUSIVE")

        with pytest.raises(StoreBusyError):
            SqliteStore(str(path), busy_seconds=0)


LOCKED = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
"""


def test_opening_and_closing_the_file_again_drops_no_lock_of_this_process(log: Log, path: Path) -> None:
    answers = []

    def look_again(stored: StoredLog) -> Decision:
        with SqliteStore(str(path)) as again, SqliteStore(str(path), read_only=True) as reader:
            assert Log(again).head == Log(reader).head == stored.head
        other = subprocess.run([sys.executable, "-c", LOCKED, path], capture_output=True, text=True, check=True)
        answers.append(other.stdout.strip())
        return decide(stored, Claim(), None, 0)

    log.store.transact(KEY, look_again, 0)

    assert ["database is locked"] == answers


def test_a_reader_that_comes_second_to_the_last_idle_connection_opens_one(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Raced(deque[sqlite3.Connection]):
        def pop(self) -> sqlite3.Connection:  # type: ignore[override]
            taken = super().pop()
            if raced:
                return taken
            raced.append(True)
            taken.close()
            raise IndexError

    raced: list[bool] = []
    log.append(0, "abc")
    log.store.close()
    monkeypatch.setattr("incarnate.storage.sqlite.deque", Raced)
    with open_store(log.store.url) as store:
        assert ["abc", "abc"] == [Log(store).names, Log(store).names]
        assert [True] == raced


# Errors of the driver


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (sqlite3.SQLITE_BUSY, StoreBusyError, "/x.db is locked by another process (why)"),
        (sqlite3.SQLITE_BUSY_RECOVERY, StoreBusyError, "/x.db is locked by another process (why)"),
        (sqlite3.SQLITE_LOCKED, StoreBusyError, "/x.db is locked by another process (why)"),
        (sqlite3.SQLITE_CORRUPT, LogCorruptionError, "/x.db: why"),
        (sqlite3.SQLITE_CORRUPT_INDEX, LogCorruptionError, "/x.db: why"),
        (sqlite3.SQLITE_NOTADB, LogCorruptionError, "/x.db: why"),
        (sqlite3.SQLITE_FULL, StoreFileError, "/x.db: the disk is full; nothing was written (why)"),
        (sqlite3.SQLITE_IOERR_READ, StoreFileError, "/x.db: the disk failed (why)"),
        (sqlite3.SQLITE_READONLY, StoreFileError, "/x.db: the file or its folder cannot be written (why)"),
        (sqlite3.SQLITE_CANTOPEN, StoreFileError, "/x.db: cannot be opened (why)"),
        (sqlite3.SQLITE_PERM, StoreFileError, "/x.db: access was denied (why)"),
        (
            sqlite3.SQLITE_TOOBIG,
            StoreFileError,
            "/x.db: a value is larger than SQLite takes; nothing was written (why)",
        ),
        (sqlite3.SQLITE_PROTOCOL, StoreFileError, "/x.db: failed (why)"),
        (None, StoreFileError, "/x.db: failed (why)"),
    ],
)
def test_an_error_of_the_driver_is_told_in_our_words(
    code: int | None, kind: type[IncarnateError], message: str
) -> None:
    error = sqlite3.OperationalError("why")
    if code is not None:
        error.sqlite_errorcode = code

    told = translated(error, "/x.db")

    assert (kind, message) == (type(told), str(told))
    assert getattr(told, "is_full", False) is (code == sqlite3.SQLITE_FULL)


DAMAGE: dict[str, tuple[str, str]] = {
    "no JSON": ("UPDATE event SET payload = x'ff' WHERE offset = 1", ", offset 1: no event: "),
    "no event": (
        """UPDATE event SET payload = CAST('{"type":"user"}' AS BLOB) WHERE offset = 1""",
        ", offset 1: no event: ",
    ),
    "checkpoint": ("UPDATE checkpoint SET payload = '{}'", ": no checkpoint: "),
}


@pytest.mark.parametrize(("statement", "reason"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_row_is_reported_with_its_place(log: Log, path: Path, statement: str, reason: str) -> None:
    log.append(0, "abc")
    log.put(checkpoint("cp", 1))
    with raw(path) as db:
        db.execute(statement)

    with pytest.raises(LogCorruptionError) as damage:
        log.everything()

    assert str(path) in str(damage.value)
    assert f"{KEY}{reason}" in str(damage.value)


def test_a_damaged_file_is_reported_with_its_path(log: Log, path: Path) -> None:
    log.append(0, "abc")
    log.store.close()
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES)
        file.write(b"\xff" * (path.stat().st_size - PAGE_BYTES))

    with SqliteStore(str(path)) as store, pytest.raises(LogCorruptionError) as damage:
        Log(store).everything()

    assert str(path) == damage.value.place


# Interrupts


def interrupted(_: StoredLog) -> Decision:
    raise KeyboardInterrupt


def test_an_interrupt_inside_decide_leaves_no_transaction_open(log: Log, path: Path) -> None:
    log.append(0, "a")

    with pytest.raises(KeyboardInterrupt):
        log.store.transact(KEY, interrupted, 0)

    with SqliteStore(str(path), busy_seconds=0) as other:
        Log(other).append(1, "b")
    assert "ab" == log.names


STATEMENTS = (
    "BEGIN",
    "SELECT",
    "INSERT INTO rewind",
    "INSERT INTO superseded",
    "DELETE",
    "INSERT INTO event",
    "COMMIT",
)


@pytest.mark.parametrize("when", STATEMENTS)
@pytest.mark.parametrize("options", ["", "?durability=process"])
def test_an_interrupt_between_two_statements_rolls_back(
    path: Path, when: str, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(sqlite3.Connection):
        still = None

        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            interrupt(sql)
            return super().execute(sql, *args)

        def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
            interrupt(sql)
            return super().executemany(sql, *args)

    def interrupt(sql: str) -> None:
        if armed and sql.strip().startswith(when):
            armed.clear()
            raise KeyboardInterrupt

    armed: list[bool] = []
    monkeypatch.setattr("incarnate.storage.sqlite_files.Connection", Interrupted)
    with open_store(f"sqlite:///{path}{options}") as store:
        log = Log(store)
        log.append(0, "abcd")
        log.put(checkpoint("cp", 4))
        before = log.everything()

        armed.append(True)
        with pytest.raises(KeyboardInterrupt):
            log.append(1, "xy")
        assert before == log.everything()

        with SqliteStore(str(path), busy_seconds=0) as other:
            Log(other, ActivationKey("another", "one")).claim()
        log.append(1, "xy")
        assert "axy" == log.names
