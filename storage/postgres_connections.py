"""The connections of a PostgreSQL store: how they are made and set, lent and taken back."""

from __future__ import annotations

import contextlib
import logging
import select
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.pq import ExecStatus, PipelineStatus, TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from incarnate.domain.errors import ClosedError, StoreBusyError
from incarnate.storage.postgres_errors import told

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Self

    from incarnate.storage.postgres_url import Target

__all__ = ["Connection", "Connections", "connect", "is_gone", "roll_back"]

# It tells of every connection that could not be made; our errors say so too, and nobody asked for lines on stderr.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

# Every integer goes over as a bigint: psycopg's own choice by size would prepare each statement once a combination.
_ADAPTERS = AdaptersMap(psycopg.adapters)
_ADAPTERS.register_dumper(int, Int8BinaryDumper)

_SLICE_SECONDS = 0.25
"""How long the pool is waited for before it is asked again: only then does it try once more to connect."""

_IDLE_SECONDS = (0.5, 2.0)
"""A transaction left open without a word is ended by the server after half the wait, within these bounds: the process
that holds its locks was stopped or cut off, and who waits for them must still be served."""

# One statement, so that a connection costs one round trip more. `commit` means the disk even where the server's default
# does not; anything stricter than `on` stays.
_SETTINGS = b"""
SELECT set_config('lock_timeout', %s, false),
       set_config('idle_in_transaction_session_timeout', %s, false),
       set_config('default_transaction_read_only', %s, false),
       set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
UNION ALL
SELECT set_config('lock_timeout', %s, false),
       set_config('idle_in_transaction_session_timeout', %s, false),
       set_config('default_transaction_read_only', %s, false),
       NULL WHERE current_setting('synchronous_commit') <> 'off'
"""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """One connection. `prepared` and `tried` name the statements of ours that it has seen, see `postgres_pipeline`.

    `failures` gets the reason where none could be made, which the pool would only log.
    """

    prepared: set[bytes]
    tried: set[bytes]
    readable: select.poll
    lent: bool = False

    @classmethod
    def connect(  # type: ignore[override]
        cls,
        conninfo: str = "",
        *,
        first: deque[Self] | None = None,
        failures: deque[str] | None = None,
        **parameters: Any,
    ) -> Self:
        """A new one, or that of `first`."""
        if first:
            return first.popleft()
        try:
            db = super().connect(conninfo, **parameters)
        except psycopg.Error as error:
            if failures is not None:
                failures.append(told(error))
            raise
        db.prepared, db.tried = set(), set()
        db.readable = select.poll()
        db.readable.register(db.pgconn.socket, select.POLLIN)
        return db


def connect(target: Target, *, read_only: bool) -> Connection:
    """A connection of its own, in autocommit mode: what belongs together says so in its statements."""
    db = Connection.connect(autocommit=True, context=_ADAPTERS, **target.parameters)
    try:
        _prepare(db, target, read_only=read_only)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: psycopg.Connection[Any], target: Target, *, read_only: bool) -> None:
    least, most = _IDLE_SECONDS
    wait = _milliseconds(target.busy_seconds)
    idle = _milliseconds(min(max(target.busy_seconds / 2, least), most))
    values = (wait, idle, "on" if read_only else "off")
    db.execute(_SETTINGS, values + values)


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))  # 0 would mean for ever


class Connections:
    """A pool of at most `target.connections`, each lent to one thread at a time."""

    def __init__(self, target: Target, first: Connection, *, read_only: bool) -> None:
        self._target = target
        self._first = deque([first])  # it opened the store; to make another one would cost as much again
        self._failures: deque[str] = deque(maxlen=1)
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            connection_class=Connection,
            kwargs={
                "autocommit": True,
                "context": _ADAPTERS,
                "first": self._first,
                "failures": self._failures,
                **target.parameters,
            },
            configure=lambda db: _prepare(db, target, read_only=read_only),
            min_size=0,
            max_size=target.connections,
            num_workers=1,
            reconnect_timeout=0,  # the pool would wait twice as long each time; whoever asks decides how long
            open=True,
        )

    @contextlib.contextmanager
    def lent(self) -> Generator[Connection]:
        """A connection outside any transaction. What it is left in is rolled back, or the connection closed.

        Raises:
            StoreBusyError: there was none within the wait.
        """
        db = self._take()
        try:
            yield db
            self._return(db, whole=True)
        except BaseException as error:
            self._return(db, whole=isinstance(error, Exception))
            raise

    def _take(self) -> Connection:
        deadline = time.monotonic() + self._target.busy_seconds
        while True:
            db = self._wait_for_one(deadline)
            db.lent = True
            try:
                if not is_gone(db):
                    return db
                db.close()
            except BaseException:
                self._return(db, whole=False)
                raise
            self._return(db, whole=False)

    def _wait_for_one(self, deadline: float) -> Connection:
        self._failures.clear()
        while True:
            left = deadline - time.monotonic()
            try:
                return self._pool.getconn(min(max(left, 0.01), _SLICE_SECONDS))
            except PoolClosed as error:
                raise ClosedError(f"{self._target.shown} is closed") from error
            except PoolTimeout as error:
                if left <= _SLICE_SECONDS:
                    raise StoreBusyError(self._no_connection()) from error

    def _no_connection(self) -> str:
        reason = self._failures[-1] if self._failures else f"all {self._target.connections} are in use"
        return f"{self._target.shown}: no connection within {self._target.busy_seconds:g} seconds ({reason})"

    def _return(self, db: Connection, *, whole: bool) -> None:
        if not db.lent:
            return  # an interrupt fell between its return and the end of the block: it may be another's by now
        try:
            _settle(db, whole=whole)
        except BaseException:
            db.close()
            raise
        finally:
            db.lent = False
            self._pool.putconn(db)

    def close(self) -> None:
        """Close the idle ones; those that are lent follow when they come back."""
        self._pool.close()
        while self._first:
            self._first.popleft().close()


def is_gone(db: Connection) -> bool:
    """Whether the server has ended the session meanwhile; without asking it.

    Nobody was asked, so there is nothing to read but the news of the end (or a notice, and then a new connection is no
    loss). To hear it before the next command is sent keeps that command from an unknown outcome.
    """
    if db.closed:
        return True
    return bool(db.readable.poll(0))


def _settle(db: Connection, *, whole: bool) -> None:
    """Leave `db` outside any transaction, or closed. `whole`: no interrupt fell into the middle of its talk."""
    status = db.pgconn.transaction_status
    if not whole or db.pgconn.pipeline_status != PipelineStatus.OFF:
        db.close()
    elif status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
        roll_back(db)
    elif status != TransactionStatus.IDLE:
        db.close()


def roll_back(db: Connection) -> None:
    """End the transaction that `db` is in; where that fails the connection is closed, which ends it too."""
    # Not over a cursor: after a ROLLBACK the driver makes the server forget every prepared statement.
    if db.pgconn.exec_(b"ROLLBACK").status != ExecStatus.COMMAND_OK:
        db.close()
