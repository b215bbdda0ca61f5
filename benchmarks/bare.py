"""The rival without a library: `sqlite3` alone, on a table as one writes it by hand, and rows of the same bytes."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

import msgspec

from incarnate import SessionEvent, encode_event
from incarnate.storage.sqlite_files import PAGE_BYTES
from incarnate.storage.sqlite_schema import OFFSET_BITS

__all__ = ["BareLog", "create", "encoded", "read", "url_of"]

_TABLE = """CREATE TABLE event (
    activation INTEGER NOT NULL, offset INTEGER NOT NULL, incarnation INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    payload BLOB NOT NULL, PRIMARY KEY (activation, offset)
) WITHOUT ROWID"""
_INSERT = "INSERT INTO event VALUES (?, ?, ?, ?, ?)"

_FIRST = 1 << OFFSET_BITS
_SELECT = (
    "SELECT position, incarnation, at_ms, payload FROM event WHERE position >= ? AND position < ? ORDER BY position"
)

_decoder = msgspec.json.Decoder(list[SessionEvent])

Row = tuple[int, int, int, int, bytes]


def url_of(path: Path, durability: str = "commit") -> str:
    """The store's URL of a file."""
    return f"sqlite:///{path}?durability={durability}"


def encoded(events: Sequence[SessionEvent]) -> list[bytes]:
    """The bytes that incarnate stores for `events`."""
    return [encode_event(event).payload for event in events]


def create(path: Path) -> None:
    """An empty file with the table, in pages of the size that incarnate's own files have, unless it is there."""
    if path.exists():
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(_TABLE)


class BareLog:
    """A log as one would write it by hand: no fence, no check of what is written, no second process."""

    def __init__(self, path: Path, synchronous: Literal["FULL", "NORMAL"]) -> None:
        create(path)
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(f"PRAGMA synchronous = {synchronous}")
        self._offset = 0

    def rows(self, payloads: Sequence[bytes]) -> list[Row]:
        """The next rows of the log."""
        start, self._offset = self._offset, self._offset + len(payloads)
        now_ms = time.time_ns() // 1_000_000
        return [(1, offset, 1, now_ms, payload) for offset, payload in enumerate(payloads, start)]

    def insert_each(self, rows: Sequence[Row]) -> None:
        """One transaction a row."""
        execute = self._db.execute
        for row in rows:
            execute("BEGIN IMMEDIATE")
            execute(_INSERT, row)
            execute("COMMIT")

    def seconds_for_each(self, events: Sequence[SessionEvent]) -> float:
        """How long one transaction a row takes; the encoding is not counted."""
        rows = self.rows(encoded(events))
        start = time.perf_counter()
        self.insert_each(rows)
        return time.perf_counter() - start

    def insert_all(self, rows: Sequence[Row]) -> None:
        """All rows in one transaction."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(_INSERT, rows)
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


def read(path: Path, count: int) -> Iterator[list[SessionEvent]]:
    """The first `count` events of a file of incarnate's in batches of 1,000, each decoded as one JSON array."""
    db = sqlite3.connect(path, isolation_level=None)
    cursor = db.execute(_SELECT, (_FIRST, _FIRST + count))
    while rows := cursor.fetchmany(1000):
        yield _decoder.decode(b"[" + b",".join([row[3] for row in rows]) + b"]")
    db.close()
