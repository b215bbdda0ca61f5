"""Tables of the SQLite store, and how a file becomes one of ours.

Each migration runs in one transaction together with its own record. An event's key is one integer, the activation's id
above its offset: SQLite then finds a place without reading what lies beside it. Under a key of two columns it compares
whole rows, and an event of a megabyte made each small one after it take 0.7 ms where it takes 17 us.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from incarnate.domain.errors import StoreFileError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["APPLICATION_ID", "MIGRATIONS", "OFFSET_BITS", "check_file", "migrate"]

APPLICATION_ID = 0x696E6361
"""`inca`, at byte 68 of the file: `file` and `PRAGMA application_id` tell it from other databases."""

OFFSET_BITS = 32
"""How much of an event's position is its offset; what is above is its activation's id."""

_GENERATED_COLUMNS = (3, 31)

MIGRATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "0001 logs",
        (
            """CREATE TABLE activation (
                id INTEGER PRIMARY KEY,
                process_instance_key TEXT NOT NULL,
                element_id TEXT NOT NULL,
                fence INTEGER,
                generation INTEGER NOT NULL,
                next_turn INTEGER NOT NULL,
                created_ms INTEGER NOT NULL,
                UNIQUE (process_instance_key, element_id)
            )""",
            """CREATE TABLE event (
                activation INTEGER NOT NULL,
                offset INTEGER NOT NULL,
                incarnation INTEGER NOT NULL,
                at_ms INTEGER NOT NULL,
                payload BLOB NOT NULL,
                PRIMARY KEY (activation, offset)
            ) WITHOUT ROWID""",
            """CREATE TABLE checkpoint (
                number INTEGER PRIMARY KEY,
                activation INTEGER NOT NULL,
                id BLOB NOT NULL,
                offset INTEGER NOT NULL,
                payload BLOB NOT NULL,
                UNIQUE (activation, id)
            )""",
            "CREATE INDEX checkpoint_by_offset ON checkpoint (activation, offset, number)",
            """CREATE TABLE rewind (
                activation INTEGER NOT NULL,
                generation INTEGER NOT NULL,
                cut INTEGER NOT NULL,
                head INTEGER NOT NULL,
                incarnation INTEGER NOT NULL,
                at_ms INTEGER NOT NULL,
                PRIMARY KEY (activation, generation)
            ) WITHOUT ROWID""",
            """CREATE TABLE superseded (
                activation INTEGER NOT NULL,
                generation INTEGER NOT NULL,
                offset INTEGER NOT NULL,
                incarnation INTEGER NOT NULL,
                at_ms INTEGER NOT NULL,
                payload BLOB NOT NULL,
                PRIMARY KEY (activation, generation, offset)
            ) WITHOUT ROWID""",
        ),
    ),
    (
        "0002 retirement",
        (
            "ALTER TABLE activation ADD COLUMN retired_ms INTEGER",
            "ALTER TABLE activation ADD COLUMN swept INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE rewind ADD COLUMN swept INTEGER NOT NULL DEFAULT 0",
        ),
    ),
    (
        "0003 positions",
        (
            "ALTER TABLE event RENAME TO event_0001",
            """CREATE TABLE event (
                position INTEGER PRIMARY KEY,
                incarnation INTEGER NOT NULL,
                at_ms INTEGER NOT NULL,
                payload BLOB NOT NULL,
                activation INTEGER GENERATED ALWAYS AS (position >> 32) VIRTUAL,
                offset INTEGER GENERATED ALWAYS AS (position & 4294967295) VIRTUAL
            )""",
            """INSERT INTO event
            SELECT activation << 32 | offset, incarnation, at_ms, payload FROM event_0001
            ORDER BY activation, offset""",
            "DROP TABLE event_0001",
        ),
    ),
)


def check_file(db: sqlite3.Connection, path: str) -> int:
    """How many migrations the file at `path` has seen; 0 for an empty one. Reads only.

    Raises:
        StoreFileError: it is no database, not one of ours, or from a newer version.
    """
    try:
        # In this order: another process may make an empty file ours in between, all at once.
        empty = db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        application = int(db.execute("PRAGMA application_id").fetchone()[0])
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_NOTADB:
            raise
        raise StoreFileError(path, "is no SQLite database") from error
    if application != APPLICATION_ID and not (empty and application == version == 0):
        raise StoreFileError(path, "is an SQLite database, but no store of incarnate")
    if version > len(MIGRATIONS):
        raise StoreFileError(
            path,
            f"was written by a newer version of incarnate (schema {version}, this one knows {len(MIGRATIONS)})",
            hint="upgrade incarnate",
        )
    return version


def migrate(db: sqlite3.Connection, path: str, begin: Callable[[], None], now_ms: int) -> None:
    """Bring the file up to date. `begin` opens a write transaction, waiting for other processes.

    Raises:
        StoreFileError: SQLite itself is too old for it.
    """
    if sqlite3.sqlite_version_info < _GENERATED_COLUMNS:
        raise StoreFileError(
            path,
            f"needs SQLite 3.31 or later; this Python has {sqlite3.sqlite_version}",
            hint="use a Python that was built with a newer one",
        )
    while check_file(db, path) < len(MIGRATIONS):
        begin()
        with db:  # commits, or rolls back on an exception
            done = check_file(db, path)  # again inside the transaction: another process may have been first
            if done < len(MIGRATIONS):
                _apply(db, done, now_ms)


def _apply(db: sqlite3.Connection, done: int, now_ms: int) -> None:
    name, statements = MIGRATIONS[done]
    if done == 0:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("CREATE TABLE migration (name TEXT PRIMARY KEY, applied_ms INTEGER NOT NULL)")
    for statement in statements:
        db.execute(statement)
    db.execute("INSERT INTO migration VALUES (?, ?)", (name, now_ms))
    db.execute(f"PRAGMA user_version = {done + 1}")
