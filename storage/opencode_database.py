"""The rows of a session in OpenCode's own database, which is only read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from incarnate.domain.errors import StoreFileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["root_sessions", "session_rows"]

_ROOTS = "SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_created DESC, id"
_TABLES = "SELECT name FROM sqlite_master"

# `ours`: the session and those that it started, however far down.
_OURS = """
WITH RECURSIVE ours(id) AS (
    SELECT id FROM session WHERE id = ?
    UNION SELECT session.id FROM session JOIN ours ON session.parent_id = ours.id
) SELECT """
_SESSIONS = "id, parent_id FROM session WHERE id IN ours ORDER BY parent_id IS NOT NULL, id"
_EVENTS = "* FROM event WHERE aggregate_id IN ours ORDER BY rowid"
_MESSAGES = "* FROM message WHERE session_id IN ours ORDER BY time_created, id"
_PARTS = "* FROM part WHERE session_id IN ours ORDER BY time_created, id"


def root_sessions(path: Path) -> list[str]:
    """The sessions that no other one started, the newest first.

    Raises:
        StoreFileError: it is no database of OpenCode.
    """
    with closing(_open(path)) as database:
        return [row["id"] for row in _rows(database, path, _ROOTS)]


def session_rows(path: Path, session: str) -> Iterator[dict[str, Any]]:
    """The rows of a session and of those that it started, as `{"table": ..., "row": ...}`.

    First the sessions, then OpenCode's own log of events; where it keeps none of them, its messages and parts.

    Raises:
        StoreFileError: it is no database of OpenCode.
    """
    with closing(_open(path)) as database:
        yield from _named("session", database, path, _SESSIONS, session)
        tables = {row["name"] for row in _rows(database, path, _TABLES)}
        seen = False
        if "event" in tables:
            for row in _named("event", database, path, _EVENTS, session):
                seen = True
                yield row
        if not seen:
            yield from _named("message", database, path, _MESSAGES, session)
            yield from _named("part", database, path, _PARTS, session)


def _open(path: Path) -> sqlite3.Connection:
    # Never immutable: OpenCode may be writing, and what its journal holds counts.
    database = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    return database


def _named(table: str, database: sqlite3.Connection, path: Path, query: str, session: str) -> Iterator[dict[str, Any]]:
    for row in _rows(database, path, _OURS + query, session):
        yield {"table": table, "row": dict(row)}


def _rows(database: sqlite3.Connection, path: Path, query: str, *arguments: str) -> Iterator[sqlite3.Row]:
    try:
        yield from database.execute(query, arguments)
    except sqlite3.DatabaseError as error:
        raise StoreFileError(
            str(path), f"no database of OpenCode ({error})", hint="check the path, or name the harness with --harness"
        ) from error
