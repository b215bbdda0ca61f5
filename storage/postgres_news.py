"""How a PostgreSQL store tells other processes that it has written, and hears it from them.

Nothing depends on it but how soon a view elsewhere looks again. A NOTIFY inside each write's transaction would make
all commits of the server wait for one lock (measured: 16 sessions at 0.3 of the rate), so a thread sends one for all
that was committed in the last few milliseconds. Where that is lost, or the engine knows no LISTEN, a listener asks for
the number of the latest transaction instead.
"""

from __future__ import annotations

import logging
import secrets
import select
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg

from incarnate.domain.errors import IncarnateError
from incarnate.storage.postgres_connections import connect
from incarnate.storage.postgres_errors import told

if TYPE_CHECKING:
    from psycopg import Notify

    from incarnate.storage.postgres_connections import Connection, Connections
    from incarnate.storage.postgres_url import Target

__all__ = ["Listener", "Teller"]

_log = logging.getLogger("incarnate")

_GATHER_SECONDS = 0.03
"""At most this often a process tells the others: a view elsewhere is to look again within a tenth of a second."""

_DOUBT_SECONDS = 1.0
"""How often a listener asks although nobody told it anything."""

_POLL_SECONDS = 0.1
"""How often it asks where the engine knows no LISTEN."""

_RETRY_SECONDS = 0.5

# Nobody waits for the disk on its account: a lost notice is no loss.
_TELL = b"SELECT set_config('synchronous_commit', 'off', true), pg_notify('incarnate', %s)"
_LISTEN = b"LISTEN incarnate"
_LATEST = b"SELECT pg_snapshot_xmax(pg_current_snapshot())::text"


class Teller:
    """Tells the others, from a thread of its own that begins with the first write."""

    def __init__(self, connections: Connections, target: Target) -> None:
        self.name = secrets.token_hex(8)
        self._connections = connections
        self._message = f"{target.schema}/{self.name}"
        self._lock = threading.Lock()
        self._written = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def written(self) -> None:
        """Something was committed; never waits."""
        if not self._written.is_set():
            self._written.set()
            if self._thread is None:
                self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                thread = threading.Thread(target=self._run, name="incarnate-postgres-teller", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # no further thread: what was written was written, the next write tries
                    self._written.clear()
                    _log.info("nobody tells other processes for now (%s)", error)
                else:
                    self._thread = thread

    def _run(self) -> None:
        while True:
            self._written.wait()
            if self._closing.is_set():
                return
            self._written.clear()  # before it is told: what is written meanwhile is told once more
            if not self._tell():
                return
            self._closing.wait(_GATHER_SECONDS)

    def _tell(self) -> bool:
        """Whether it is worth telling again."""
        try:
            with self._connections.lent() as db:
                db.execute(_TELL, (self._message,), prepare=True)
        except psycopg.Error as error:
            if error.sqlstate is not None and error.sqlstate[:2] in {"0A", "42"}:
                _log.info("this server knows no NOTIFY (%s): views in other processes poll", told(error))
                return False
        except IncarnateError:
            pass  # busy, or closed: the next write tries again, and listeners look by themselves
        return True

    def close(self) -> None:
        """Tell what is not told yet, and stop."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._closing.set()
        if thread is not None:
            untold = self._written.is_set()
            self._written.set()
            thread.join()
            if untold:
                self._tell()


class Listener:
    """Counts what others have told, from a thread and a connection of its own."""

    def __init__(self, target: Target, name: str, *, read_only: bool) -> None:
        self._target = target
        self._name = name
        self._read_only = read_only
        self._count = 0
        self._latest: str | None = None
        self._ready = threading.Event()
        self._closing = threading.Event()
        self._bell, self._ear = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="incarnate-postgres-listener", daemon=True)
        self._thread.start()

    def count(self) -> int:
        """How often somebody may have written so far."""
        self._ready.wait(self._target.busy_seconds)
        return self._count

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                with connect(self._target, read_only=self._read_only) as db:
                    self._hear(db)
            except (psycopg.Error, OSError) as error:
                _log.info("%s: listening stopped for now (%s)", self._target.shown, told(error))
            # Whoever polls must look again by itself: what was told in between is lost.
            self._count += 1
            self._ready.set()
            self._closing.wait(_RETRY_SECONDS)

    def _hear(self, db: Connection) -> None:
        seconds = _DOUBT_SECONDS if self._listens(db) else _POLL_SECONDS
        db.add_notify_handler(self._told)
        self._look(db)
        self._ready.set()
        poll = select.poll()
        poll.register(db.fileno(), select.POLLIN)
        poll.register(self._ear, select.POLLIN)
        asked = time.monotonic()
        while not self._closing.is_set():
            poll.poll(max(0.0, asked + seconds - time.monotonic()) * 1000)
            self._read(db)
            if time.monotonic() >= asked + seconds:
                self._look(db)
                asked = time.monotonic()

    def _listens(self, db: Connection) -> bool:
        try:
            db.execute(_LISTEN)
        except psycopg.Error as error:
            if db.broken:
                raise
            _log.info("%s: no LISTEN (%s); polling instead", self._target.shown, told(error))
            return False
        return True

    def _read(self, db: Connection) -> None:
        db.pgconn.consume_input()
        while (notice := db.pgconn.notifies()) is not None:
            self._take(notice.extra.decode())

    def _told(self, notice: Notify) -> None:
        self._take(notice.payload)

    def _take(self, payload: str) -> None:
        schema, _, name = payload.partition("/")
        if schema == self._target.schema and name != self._name:
            self._count += 1

    def _look(self, db: Connection) -> None:
        """Ask for the number of the latest transaction: it moves with every write, of whoever it is."""
        try:
            row = db.execute(_LATEST, prepare=True).fetchone()
            latest = None if row is None else str(row[0])
        except psycopg.Error:
            if db.broken:
                raise
            latest = f"{time.monotonic()}"  # an engine that does not know: it may always have moved
        if self._latest is not None and latest != self._latest:
            self._count += 1
        self._latest = latest

    def close(self) -> None:
        """Stop listening."""
        self._closing.set()
        with suppress(OSError):
            self._bell.send(b"x")
        self._thread.join()
        self._bell.close()
        self._ear.close()
