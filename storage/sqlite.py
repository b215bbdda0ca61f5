"""The SQLite store: one file, safe between threads and processes.

Every write is one `BEGIN IMMEDIATE` transaction that reads the head, decides and commits, so a second process on the
same file is safe by construction. Readers have connections of their own and never wait for the writer (WAL).
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from incarnate.domain.errors import (
    ClosedError,
    ForkedError,
    LogCorruptionError,
    OutcomeUnknownError,
    ReadOnlyError,
    StoreBusyError,
    StoreFileError,
)
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.domain.wording import counted
from incarnate.storage.paths import path_in
from incarnate.storage.port import ActivationInfo, Snapshot, Store, Swept
from incarnate.storage.sqlite_archive import fork, sweep_steps
from incarnate.storage.sqlite_files import Connection, admit, connect, is_busy, look, translated
from incarnate.storage.sqlite_log import SqliteLog
from incarnate.storage.sqlite_place import Place
from incarnate.storage.sqlite_writer import SqliteWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Sequence

    from incarnate.domain.decisions import Decision
    from incarnate.storage.port import Decide, Transaction

__all__ = ["Durability", "SqliteStore"]

Durability = Literal["commit", "process"]

_MAX_IDLE_READERS = 8
_PAGE = 500
_LIST = """
SELECT process_instance_key, element_id, fence, generation, next_turn, retired_ms IS NOT NULL, created_ms,
       (SELECT offset FROM event WHERE position >= id << 32 AND position < (id + 1) << 32
        ORDER BY position DESC LIMIT 1),
       (SELECT at_ms FROM event WHERE position >= id << 32 AND position < (id + 1) << 32
        ORDER BY position DESC LIMIT 1)
FROM activation WHERE swept = 0 AND (process_instance_key, element_id) > (?, ?)
ORDER BY process_instance_key, element_id LIMIT ?
"""


class SqliteStore(Store):
    """Logs in one SQLite file.

    Args:
        path: the file, made readable by its owner alone if it is not there.
        durability: `commit` syncs the disk at every commit; `process` only where I11 asks for it, so that events may
            be lost to a power cut, though not to the death of the process.
        busy_seconds: how long to wait for another process before `StoreBusyError`.
        read_only: never write; the file must exist.

    Raises:
        StoreFileError: the file is no store of ours, is from a newer version, or cannot be opened.
    """

    def __init__(
        self,
        path: str,
        *,
        durability: Durability = "commit",
        busy_seconds: float = 5.0,
        read_only: bool = False,
    ) -> None:
        self.url = f"sqlite:///{path_in(path)}"
        self._path = os.path.abspath(path)  # noqa: PTH100 - links stay; readers open it again later, wherever the process may be by then
        self._busy_seconds = busy_seconds
        self._pid = os.getpid()
        self._closed = False
        self._misplaced = False
        """Whether the file was gone when it was last looked for. Then a write looks before it begins; else one look,
        after it, is enough to acknowledge nothing that is not in the file at the path."""
        self._readers: deque[Connection] = deque()
        self._watch_lock = threading.Lock()
        self._watcher: Connection | None = None
        self._writer: SqliteWriter | None = None
        admit(self._path, read_only=read_only, wait=self._wait)
        self._place = Place(self._path)
        if read_only:
            self._keep(connect(self._path, read_only=True, wait=self._wait))
        else:
            self._writer = SqliteWriter(self._path, fully=durability == "commit", wait=self._wait)
            self._place.opened()

    commits_together = True

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        writer = self._writer
        if writer is None or self._closed or self._misplaced or os.getpid() != self._pid:
            writer = self._writing()
        decision = writer.transact(key, decide, now_ms)
        if not self._place.is_kept():
            self._check_written()
        return decision

    def transact_all(self, key: ActivationKey, decides: Sequence[Decide], now_ms: int) -> Decision:
        decision = self._writing().transact_all(key, decides, now_ms)
        self._check_written()
        return decision

    def transact_each(self, calls: Sequence[Transaction]) -> list[Decision | Exception]:
        found = self._writing().transact_each(calls)
        self._check_written()
        return found

    def fork(self, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int) -> Head:
        head = self._writing().run(lambda db: fork(db, key, new_key, offset, now_ms))
        self._check_written()
        return head

    def sweep(self, before_ms: int, keys: Collection[ActivationKey] | None = None) -> Swept:
        writer = self._writing()
        swept = Swept(0, 0, 0)
        for step in writer.run(lambda db: sweep_steps(db, before_ms, keys)):
            done = writer.run(step)
            swept = Swept(
                swept.activations + done.activations, swept.rewinds + done.rewinds, swept.events + done.events
            )
        return swept

    def vacuum(self) -> None:
        self._writing().vacuum()

    def _writing(self) -> SqliteWriter:
        self._check_usable()
        if self._writer is None:
            raise ReadOnlyError(f"{self.url} was opened read-only")
        return self._writer

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:  # SQLite's connections do not survive a fork
            raise ForkedError("the process was forked after this store was opened")
        if self._closed:
            raise ClosedError(f"{self.url} is closed")
        self._check_place()

    def _check_place(self) -> None:
        """See that the store's files are still those that are open.

        Raises:
            StoreFileError: one was removed or replaced.
        """
        if self._place.is_kept():
            self._misplaced = False
            return
        self._misplaced = True
        path, what = self._place.displaced() or (self._path, "removed")
        raise StoreFileError(path, f"was {what} while it was open", hint="put it back, or open the store anew")

    def _check_written(self) -> None:
        """See that what was committed is in the file at the path, before it is acknowledged."""
        try:
            self._check_place()
        except StoreFileError as error:
            raise OutcomeUnknownError(f"{error}; the write may be in the old file") from error

    def _wait(self, attempt: Callable[[], object]) -> None:
        """Run `attempt` until the database is not busy.

        Polling, with random sleeps of at most a millisecond: SQLite's own busy handler starves a second process
        (measured: 1.5 s without a turn; polling gave 110 turns).
        """
        deadline = time.monotonic() + self._busy_seconds
        while True:
            try:
                attempt()
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                if time.monotonic() >= deadline:
                    raise StoreBusyError(
                        f"{self._path} was locked by another process for {counted(self._busy_seconds, 'second')}"
                    ) from error
                time.sleep(random.random() / 1000)
            else:
                return

    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        with self._reading() as db:
            yield SqliteLog(db, key, self._path)

    def head(self, key: ActivationKey) -> Head:
        heads: list[Head] = []
        with self._borrowed() as db:  # no transaction: one statement is a snapshot of itself, at half the price
            self._wait(lambda: heads.append(SqliteLog(db, key, self._path).head))
        return heads[0]

    @contextmanager
    def _reading(self) -> Generator[Connection]:
        """A connection inside a read transaction, its own for as long as it is used."""
        with self._borrowed() as db:
            db.execute("BEGIN")
            # BEGIN alone takes no snapshot; the first read does, and may find the database busy in recovery.
            self._wait(lambda: db.execute("SELECT 1 FROM activation LIMIT 1").fetchone())
            yield db
            db.execute("COMMIT")

    @contextmanager
    def _borrowed(self) -> Generator[Connection]:
        """An idle connection, or a new one; what failed on it is closed, so that the next reader inherits nothing."""
        self._check_usable()
        try:
            db = self._reader()
            try:
                yield db
            except BaseException:
                db.close()
                self._check_still(db)
                raise
            self._keep(db)
            self._check_still(db)
        except sqlite3.Error as error:
            raise translated(error, self._path) from error

    def _reader(self) -> Connection:
        with suppress(IndexError):  # another thread may be first at the last idle one
            return self._readers.pop()
        return connect(self._path, read_only=True, wait=self._wait)

    def _keep(self, db: Connection) -> None:
        if self._closed or db.still is not None or len(self._readers) >= _MAX_IDLE_READERS:
            db.close()
        else:
            self._readers.append(db)

    def _check_still(self, db: Connection) -> None:
        if db.still is not None and db.still != look(self._path):
            raise StoreBusyError(f"{self._path} was written to while it was read")

    def activations(self) -> Iterator[ActivationInfo]:
        last = ("", "")
        while True:
            with self._reading() as db:  # a page a transaction, so that a slow consumer pins no snapshot
                rows = db.execute(_LIST, (*last, _PAGE)).fetchall()
            for pik, element, fence, generation, next_turn, retired, created_ms, offset, at_ms in rows:
                head = Head(fence, 0 if offset is None else offset + 1, generation, next_turn, bool(retired))
                updated_ms = created_ms if at_ms is None else at_ms
                if type(created_ms) is not int or type(updated_ms) is not int:  # somebody edited it by hand
                    place = f"{self._path}, {pik}/{element}"
                    raise LogCorruptionError(
                        place, f"its times are no integers: {created_ms!r:.40}, {updated_ms!r:.40}"
                    )
                yield ActivationInfo(ActivationKey(pik, element), head, created_ms, max(created_ms, updated_ms))
            if len(rows) < _PAGE:
                return
            last = rows[-1][:2]

    def group_sizes(self) -> Sequence[int]:
        return () if self._writer is None else tuple(self._writer.group_sizes)

    def version(self) -> int:
        """SQLite's data version: it moves with every commit that is not this connection's own."""
        self._check_usable()
        with self._watch_lock:
            self._check_usable()
            try:
                if self._watcher is None:
                    self._watcher = connect(self._path, read_only=True, wait=self._wait)
                if self._watcher.still is not None:
                    return hash(look(self._path))
                return int(self._watcher.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error as error:
                raise translated(error, self._path) from error

    def damage(self) -> Iterator[str]:
        """What SQLite's own check finds, its first hundred complaints."""
        try:
            with self._reading() as db:
                found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(100)")]
        except LogCorruptionError as error:  # too broken to be checked to the end
            found = [str(error)]
        # One row may hold many lines, and the first page of a tree is named before what is wrong in it.
        lines = [line for text in found for line in text.split("\n") if line and not line.startswith("***")]
        return iter([] if lines == ["ok"] else lines)

    def close(self) -> None:
        if os.getpid() != self._pid:
            return  # the connections are the parent's
        self._closed = True
        with self._watch_lock:
            if self._watcher is not None:
                self._watcher.close()
        while self._readers:
            self._readers.pop().close()
        if self._writer is not None:
            self._writer.close()
