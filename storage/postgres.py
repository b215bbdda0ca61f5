"""The PostgreSQL store: one schema of a database, for processes on any number of machines.

Every write is one transaction that locks the activation's row, reads the head, decides and commits; activations do not
wait for each other. Readers wait for nobody.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg

from incarnate.domain.errors import ClosedError, ForkedError, ReadOnlyError, StoreServerError
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.port import ActivationInfo, Snapshot, Store, Swept
from incarnate.storage.postgres_archive import Archive
from incarnate.storage.postgres_connections import Connection, Connections, connect, roll_back
from incarnate.storage.postgres_errors import meaning, told, translated
from incarnate.storage.postgres_log import Reads, read
from incarnate.storage.postgres_news import Listener, Teller
from incarnate.storage.postgres_schema import MIGRATIONS, in_schema, migrate, schema_version
from incarnate.storage.postgres_url import parse
from incarnate.storage.postgres_writer import PostgresWriter

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    from incarnate.domain.decisions import Decision
    from incarnate.storage.port import Decide
    from incarnate.storage.postgres_url import Target

__all__ = ["PostgresStore"]

_PAGE = 500
_LIST = """
SELECT process_instance_key, element_id, fence, generation, next_turn, retired_ms IS NOT NULL, created_ms,
       (SELECT "offset" FROM {s}.event WHERE activation = id ORDER BY "offset" DESC LIMIT 1),
       (SELECT at_ms FROM {s}.event WHERE activation = id ORDER BY "offset" DESC LIMIT 1)
FROM {s}.activation WHERE NOT swept AND (process_instance_key, element_id) > (%s::bytea, %s::bytea)
ORDER BY process_instance_key, element_id LIMIT %s
"""
_TABLES = ("activation", "event", "checkpoint", "rewind", "superseded")


class PostgresStore(Store):
    """Logs in one schema of a PostgreSQL database.

    Args:
        url: libpq's, with our options beside its own: `durability=commit|process`, `busy=SECONDS` (how long to wait
            for a lock, a connection or a server that is away), `schema=NAME` and `pool=CONNECTIONS`.
        read_only: never write; the tables must exist.

    Raises:
        StoreUrlError: libpq does not take the URL, or an option is none.
        StoreServerError: the server cannot be reached, refuses us, or the schema is no store of ours.
    """

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self._target = target = parse(url)
        self.url = target.shown
        self._read_only = read_only
        self._pid = os.getpid()
        self._closed = False
        first = _admit(target, read_only=read_only)
        self._reads = Reads(target.schema)
        self._list = in_schema(target.schema, _LIST)
        self._archive = Archive(target.schema, target.shown)
        self._listener: Listener | None = None
        self._listener_lock = threading.Lock()
        self._connections = Connections(target, first, read_only=read_only)
        self._writer = PostgresWriter(self._connections, target)
        self._teller = Teller(self._connections, target)

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        decision = self._writing().transact(key, decide, now_ms)
        if decision.change is not None:
            self._teller.written()
        return decision

    def transact_all(self, key: ActivationKey, decides: Sequence[Decide], now_ms: int) -> Decision:
        decision = self._writing().transact_all(key, decides, now_ms)
        self._teller.written()
        return decision

    def fork(self, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int) -> Head:
        head = self._writing().run(lambda t: self._archive.fork(t, key, new_key, offset, now_ms))
        self._teller.written()
        return head

    def sweep(self, before_ms: int, keys: Collection[ActivationKey] | None = None) -> Swept:
        writer = self._writing()
        done = [writer.run(step) for step in writer.run(lambda t: self._archive.sweep_steps(t, before_ms, keys))]
        self._teller.written()
        return Swept(
            sum(one.activations for one in done), sum(one.rewinds for one in done), sum(one.events for one in done)
        )

    def vacuum(self) -> None:
        self._writing()
        tables = ", ".join(f"{{s}}.{table}" for table in _TABLES)
        # An engine that does not know the word gives back its room by itself.
        unknown = (psycopg.errors.SyntaxError, psycopg.errors.FeatureNotSupported)
        with self._connection() as db, suppress(*unknown):
            db.execute(in_schema(self._target.schema, f"VACUUM (FULL, ANALYZE) {tables}"))

    def _writing(self) -> PostgresWriter:
        self._check_usable()
        if self._read_only:
            raise ReadOnlyError(f"{self.url} was opened read-only")
        return self._writer

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:  # both processes would talk over one socket
            raise ForkedError("the process was forked after this store was opened")
        if self._closed:
            raise ClosedError(f"{self.url} is closed")

    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        with self._connection() as db:
            yield read(db, self._reads, key, self.url)
            roll_back(db)  # it has only read

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        """One for reading, its errors translated: nothing is written, so nothing is unknown."""
        self._check_usable()
        try:
            with self._connections.lent() as db:
                yield db
        except psycopg.Error as error:
            raise translated(error, self.url) from error

    def activations(self) -> Iterator[ActivationInfo]:
        last = (b"", b"")
        while True:
            with self._connection() as db:  # a page at a time, so that a slow consumer holds no connection
                rows = db.execute(self._list, (*last, _PAGE), prepare=True, binary=True).fetchall()
            for pik, element, fence, generation, next_turn, retired, created_ms, offset, at_ms in rows:
                head = Head(fence, 0 if offset is None else offset + 1, generation, next_turn, retired)
                updated_ms = created_ms if at_ms is None else max(created_ms, at_ms)
                yield ActivationInfo(ActivationKey(pik.decode(), element.decode()), head, created_ms, updated_ms)
            if len(rows) < _PAGE:
                return
            last = rows[-1][:2]

    def version(self) -> int:
        """How often other processes have told that they wrote, soon after they did."""
        self._check_usable()
        if self._listener is None:
            with self._listener_lock:
                self._check_usable()
                if self._listener is None:
                    self._listener = Listener(self._target, self._teller.name, read_only=self._read_only)
        return self._listener.count()

    def close(self) -> None:
        if os.getpid() != self._pid or self._closed:
            return  # in a forked child the connections are the parent's
        self._closed = True
        with self._listener_lock:
            if self._listener is not None:
                self._listener.close()
        self._teller.close()
        self._connections.close()


def _admit(target: Target, *, read_only: bool) -> Connection:
    """See that the schema is one of ours, or make it one; the connection that did."""
    try:
        db = connect(target, read_only=read_only)
        try:
            _check(db, target, read_only=read_only)
        except BaseException:
            db.close()
            raise
    except psycopg.Error as error:
        if meaning(error)[0] == "lost":
            raise StoreServerError(target.shown, f"cannot be reached ({told(error)})") from error
        raise translated(error, target.shown) from error
    return db


def _check(db: Connection, target: Target, *, read_only: bool) -> None:
    if not read_only:
        migrate(db, target.schema, target.shown)
    elif schema_version(db, target.schema, target.shown) < len(MIGRATIONS):
        raise StoreServerError(
            target.shown,
            f"the schema {target.schema!r} holds no store, or one of an older version",
            hint="open it once without read_only=True",
        )
