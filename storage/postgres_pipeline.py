"""Statements sent to the client library directly, several in one round trip where they can be.

Two reasons. The driver's way over a cursor costs as much time as all the rest of an append. And its pipelines end with
a Flush after their Sync, which makes PostgreSQL forget that the session is idle in a transaction: a stopped writer
would hold its lock for ever.
"""

from __future__ import annotations

import select
import struct
from typing import TYPE_CHECKING, NamedTuple

from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.pq.abc import PGresult

    from incarnate.storage.postgres_connections import Connection

__all__ = ["Statement", "bigint", "bigint_of", "run", "run_together"]

bigint = struct.Struct("!q").pack
_bigint_of = struct.Struct("!q").unpack
_DONE = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK})
_BINARY = 1


class Statement(NamedTuple):
    """One that is prepared under its name where a connection sees it twice; its parameters are `$1` and so on."""

    name: bytes
    query: bytes


def bigint_of(value: bytes | None) -> int | None:
    """A column of a result."""
    if value is None:
        return None
    (number,) = _bigint_of(value)
    return int(number)


def run(db: Connection, statement: Statement, values: Sequence[bytes]) -> PGresult:
    """The statement's result.

    Raises:
        psycopg.Error: as the driver's own cursors would.
    """
    _prepare(db, statement)
    _send(db, statement, values)
    return _only_result(db)


def run_together(db: Connection, steps: Sequence[tuple[Statement, Sequence[bytes]]]) -> list[PGresult]:
    """The results of all `steps`, in one round trip; where one fails the others after it are left out.

    Raises:
        psycopg.Error: of the first that failed.
    """
    pgconn = db.pgconn
    for statement, _ in steps:
        _prepare(db, statement)
    pgconn.enter_pipeline_mode()
    for statement, values in steps:
        _send(db, statement, values)
    pgconn.pipeline_sync()
    results: list[PGresult] = []
    while (result := _next_result(db)) is None or result.status != ExecStatus.PIPELINE_SYNC:
        if result is not None:  # None stands between the results of two statements
            results.append(result)
    pgconn.exit_pipeline_mode()
    for result in results:
        _check(result)
    return results


def _prepare(db: Connection, statement: Statement) -> None:
    if statement.name in db.tried and statement.name not in db.prepared:
        db.pgconn.send_prepare(statement.name, statement.query)
        _only_result(db)
        db.prepared.add(statement.name)


def _send(db: Connection, statement: Statement, values: Sequence[bytes]) -> None:
    formats = [_BINARY] * len(values)
    if statement.name in db.prepared:
        db.pgconn.send_query_prepared(statement.name, values, formats, _BINARY)
    else:
        db.tried.add(statement.name)
        db.pgconn.send_query_params(statement.query, values, param_formats=formats, result_format=_BINARY)


def _only_result(db: Connection) -> PGresult:
    pgconn = db.pgconn
    _wait(db)
    result = pgconn.get_result()
    assert result is not None, "a statement was sent"
    while pgconn.get_result() is not None:  # up to None, which says that the server is ready again
        pass
    _check(result)
    return result


def _check(result: PGresult) -> None:
    if result.status not in _DONE:
        raise error_from_result(result)


def _next_result(db: Connection) -> PGresult | None:
    _wait(db)
    return db.pgconn.get_result()


def _wait(db: Connection) -> None:
    """Wait for the next result; an interrupt may end the wait, and then the connection is of no use."""
    pgconn = db.pgconn
    if pgconn.flush():  # a large event, and a socket that is full
        poll = select.poll()
        poll.register(pgconn.socket, select.POLLIN | select.POLLOUT)
        while pgconn.flush():
            poll.poll()
            pgconn.consume_input()
    while pgconn.is_busy():
        db.readable.poll()
        pgconn.consume_input()
