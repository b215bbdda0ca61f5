"""One activation inside a transaction of the SQLite store: reads for `decide`, and the writing of a `Change`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.codec import decode_checkpoint, decode_stored
from incarnate.domain.decisions import evolve
from incarnate.domain.errors import LogCorruptionError, OffsetError
from incarnate.domain.events import MAX_INTEGER
from incarnate.domain.gaps import check_whole
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.domain.rewinds import Rewind
from incarnate.storage.sqlite_schema import OFFSET_BITS

if TYPE_CHECKING:
    import sqlite3

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.decisions import Change
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey

__all__ = ["SqliteLog", "Unwritten", "check_room", "is_plain_append"]

# The head is not stored as a row of its own: updating one at each commit dirties a second page, which took
# durability=process down to 0.42 of a bare loop. The last event's position tells the next offset.
_HEAD = """
SELECT id, fence, generation, next_turn, retired_ms IS NOT NULL,
       (SELECT offset FROM event WHERE position >= id << 32 AND position < (id + 1) << 32
        ORDER BY position DESC LIMIT 1)
FROM activation WHERE process_instance_key = ? AND element_id = ?
"""
_EVENTS = """
SELECT offset, incarnation, at_ms, payload FROM event WHERE position >= ? AND position < ? ORDER BY position
"""
_CUT = "DELETE FROM event WHERE position >= ? AND position < ?"
# A statement gives up the interpreter once where executemany does so at every row, and among many threads it may take
# long to come back. OR ROLLBACK spares SQLite the copies of pages that it keeps to undo one statement: of rows of many
# logs at once they are a page each, and cost twice what the rows do.
_INSERTS = {
    count: f"INSERT{how} INTO event VALUES " + ", ".join(["(?, ?, ?, ?)"] * count)
    for how, counts in ((" OR ROLLBACK", (128, 64, 32, 16, 8)), ("", (4, 2, 1)))
    for count in counts
}
# The same for events of one log that follow each other: what they share is bound once, which takes a fifth off.
_RUN = 64
_RUN_ROWS = ", ".join([f"(?1 + {place}, ?2, ?3, ?{place + 4})" for place in range(_RUN)])
_INSERT_RUN = f"INSERT OR ROLLBACK INTO event VALUES {_RUN_ROWS}"  # noqa: S608 - our own words
# Where the head has moved the incarnation comes out as NULL, which the table refuses and OR IGNORE passes over. Ids of
# activations are never used again, so the key need not be compared. An event before the first one of a log is never
# the one that stood there last, so an empty log counts as moved.
_APPEND_IF_UNMOVED = """
INSERT OR IGNORE INTO event VALUES (?1, (
    SELECT ?3 FROM activation
    WHERE id = ?2 AND fence = ?6 AND generation = ?7 AND next_turn = ?8
      AND ?1 - 1 = (SELECT position FROM event WHERE position < (?2 + 1) << 32 ORDER BY position DESC LIMIT 1)
), ?4, ?5)
"""
_LATEST = "SELECT payload FROM checkpoint WHERE activation = ? ORDER BY offset DESC, number DESC LIMIT 1"
_CHECKPOINT_IDS = "SELECT id FROM checkpoint WHERE activation = ? ORDER BY offset, number"
_SUPERSEDED = """
SELECT offset, incarnation, at_ms, payload FROM superseded
WHERE activation = ? AND generation = ? AND offset >= ? AND offset < ? ORDER BY offset
"""
_SUPERSEDE = """
INSERT INTO superseded SELECT activation, ?, offset, incarnation, at_ms, payload FROM event
WHERE position >= ? AND position < ?
"""

_MAX_EVENTS = (1 << OFFSET_BITS) - 1

Row = tuple[int, int, int, bytes]


class Unwritten:
    """Events of a transaction that are still to be inserted, so that one statement inserts those of many logs."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._rows: list[Row] = []

    def add(self, activation: int, change: Change) -> None:
        """Insert the events of `change`, at the latest with the next `write`."""
        incarnation, at_ms = change.incarnation, change.at_ms
        payloads = [encoded.payload for encoded in change.events]
        first = activation << OFFSET_BITS | change.offset
        runs = len(payloads) - len(payloads) % _RUN
        for start in range(0, runs, _RUN):
            self._db.execute(_INSERT_RUN, (first + start, incarnation, at_ms, *payloads[start : start + _RUN]))
        for at in range(runs, len(payloads)):
            self._rows.append((first + at, incarnation, at_ms, payloads[at]))

    def write(self) -> None:
        """Insert them; before a commit, and before anything reads or moves events."""
        rows, start = self._rows, 0
        while start < len(rows):
            count = next(count for count in _INSERTS if count <= len(rows) - start)
            self._db.execute(_INSERTS[count], [value for row in rows[start : start + count] for value in row])
            start += count
        rows.clear()


class SqliteLog:
    """What is stored of one activation, as the transaction that `db` is in sees it.

    With `unwritten`, events that `apply` adds go there.
    """

    def __init__(
        self, db: sqlite3.Connection, key: ActivationKey, place: str, unwritten: Unwritten | None = None
    ) -> None:
        self.key = key
        self._db = db
        self._place = place
        self._unwritten = unwritten
        self.head = EMPTY_HEAD
        self.row_id: int | None = None
        row = db.execute(_HEAD, (key.process_instance_key, key.element_id)).fetchone()
        if row is not None:
            self.row_id, fence, generation, next_turn, retired, last = row
            self.head = Head(fence, 0 if last is None else last + 1, generation, next_turn, bool(retired))

    def again(self, unwritten: Unwritten) -> SqliteLog:
        """The same for another transaction, where nothing has changed since."""
        log = object.__new__(SqliteLog)  # a fifth of what copy() takes
        log.__dict__ = {**self.__dict__, "_unwritten": unwritten}
        return log

    def events(self, start: int, stop: int) -> list[Row]:
        return self._rows(start, stop).fetchall()

    def _rows(self, start: int, stop: int) -> sqlite3.Cursor:
        if self._unwritten is not None:
            self._unwritten.write()
        first, end = (self.row_id or 0) << OFFSET_BITS, self.head.next_offset  # what lies around them is other logs'
        return self._db.execute(_EVENTS, (first + max(0, min(start, end)), first + max(0, min(stop, end))))

    def appended(self, start: int, stop: int) -> list[AppendedEvent]:
        events = decode_stored(self.events(start, stop), f"{self._place}, {self.key}")
        check_whole(self.key, events, max(0, start), min(stop, self.head.next_offset))
        return events

    def page(self, start: int, stop: int, max_bytes: int) -> list[AppendedEvent]:
        return decode_stored(_up_to(self._rows(start, stop), max_bytes), f"{self._place}, {self.key}")

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        return self._one_checkpoint(
            "SELECT payload FROM checkpoint WHERE activation = ? AND id = ?", (self.row_id, _blob(checkpoint_id))
        )

    def latest_checkpoint(self) -> Checkpoint | None:
        return self._one_checkpoint(_LATEST, (self.row_id,))

    def checkpoint_ids(self) -> list[str]:
        rows = self._db.execute(_CHECKPOINT_IDS, (self.row_id,))
        return [row[0].decode("utf-8", "backslashreplace") for row in rows]

    def lowest_cut(self, generation: int) -> int | None:
        row = self._db.execute(
            "SELECT min(cut) FROM rewind WHERE activation = ? AND generation > ?", (self.row_id, generation)
        ).fetchone()
        cut: int | None = row[0]
        return cut

    def rewinds(self) -> list[Rewind]:
        rows = self._db.execute(
            "SELECT generation, cut, head, incarnation, at_ms, swept FROM rewind WHERE activation = ?"
            " ORDER BY generation",
            (self.row_id,),
        )
        return [Rewind(*self._numbers(row[:5]), bool(row[5])) for row in rows]

    def _numbers(self, values: tuple[Any, ...]) -> tuple[int, int, int, int, int]:
        if any(type(value) is not int for value in values):  # somebody edited it by hand
            raise LogCorruptionError(f"{self._place}, {self.key}", f"a rewind is no row of integers: {values!r:.100}")
        return values

    def superseded(self, generation: int, start: int, stop: int, max_bytes: int) -> list[AppendedEvent]:
        largest = MAX_INTEGER  # keeps numbers that SQLite cannot hold away from it
        arguments = (self.row_id, min(generation, largest), min(start, largest), min(stop, largest))
        rows = _up_to(self._db.execute(_SUPERSEDED, arguments), max_bytes)
        return decode_stored(rows, f"{self._place}, {self.key}, superseded by rewind {generation}")

    def retired_ms(self) -> int | None:
        row = self._db.execute(
            "SELECT retired_ms FROM activation WHERE id = ? AND swept = 0", (self.row_id,)
        ).fetchone()
        retired_ms: int | None = None if row is None else row[0]
        return retired_ms

    def _one_checkpoint(self, query: str, arguments: tuple[Any, ...]) -> Checkpoint | None:
        row = self._db.execute(query, arguments).fetchone()
        return None if row is None else decode_checkpoint(row[0], f"{self._place}, checkpoint of {self.key}")

    def append_if_unmoved(self, change: Change) -> bool:
        """Write the one event of `change`, in a transaction of its own, if the stored head is still `self.head`."""
        head = self.head
        assert self.row_id is not None, "a log that was seen to have a head has a row"
        cursor = self._db.execute(
            _APPEND_IF_UNMOVED,
            (
                self.row_id << OFFSET_BITS | change.offset,
                self.row_id,
                change.incarnation,
                change.at_ms,
                change.events[0].payload,
                head.fence,
                head.generation,
                head.next_turn,
            ),
        )
        return cursor.rowcount == 1

    def apply(self, change: Change, now_ms: int) -> None:
        """Write `change`, its events at the latest with the next `write` of what is unwritten; the caller commits."""
        assert self._unwritten is not None, "a log to write to has one"
        activation = self._touch(change, now_ms)
        if change.retired:
            self._db.execute("UPDATE activation SET retired_ms = ? WHERE id = ?", (change.at_ms, activation))
        if change.cut is not None:
            self._supersede(activation, change, change.cut)
        if change.events:
            self._unwritten.add(activation, change)
        if change.checkpoint is not None:
            kept = change.checkpoint
            self._db.execute(
                "INSERT INTO checkpoint (activation, id, offset, payload) VALUES (?, ?, ?, ?)",
                (activation, _blob(kept.checkpoint.id), kept.checkpoint.offset, kept.payload),
            )

    def _touch(self, change: Change, now_ms: int) -> int:
        """The activation's id, its row made or brought up to date."""
        if self.row_id is not None and change.fence is None and change.cut is None and change.next_turn is None:
            return self.row_id  # an append in a turn: the activation's row stays as it is
        head = evolve(self.head, change)
        columns = (head.fence, head.generation, head.next_turn)
        if self.row_id is None:
            cursor = self._db.execute(
                "INSERT INTO activation (process_instance_key, element_id, fence, generation, next_turn, created_ms)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (self.key.process_instance_key, self.key.element_id, *columns, now_ms),
            )
            self.row_id = cursor.lastrowid
            assert self.row_id is not None, "an INSERT gives a row id"
        else:
            self._db.execute(
                "UPDATE activation SET fence = ?, generation = ?, next_turn = ? WHERE id = ?",
                (*columns, self.row_id),
            )
        return self.row_id

    def _supersede(self, activation: int, change: Change, cut: int) -> None:
        if self._unwritten is not None:
            self._unwritten.write()
        generation = self.head.generation + 1
        self._db.execute(
            "INSERT INTO rewind VALUES (?, ?, ?, ?, ?, ?, 0)",
            (activation, generation, cut, self.head.next_offset, change.incarnation, change.at_ms),
        )
        tail = (activation << OFFSET_BITS | cut, (activation + 1) << OFFSET_BITS)
        self._db.execute(_SUPERSEDE, (generation, *tail))
        self._db.execute(_CUT, tail)
        self._db.execute("DELETE FROM checkpoint WHERE activation = ? AND offset > ?", (activation, cut))


def _up_to(cursor: sqlite3.Cursor, max_bytes: int) -> list[Row]:
    rows: list[Row] = []
    size = 0
    for row in cursor:  # one by one: of rows of the largest size, 64 MiB each, few may be in memory at once
        rows.append(row)
        size += len(row[3])
        if size >= max_bytes:
            break
    cursor.close()  # an open one would pin the snapshot of its connection
    return rows


def is_plain_append(change: Change) -> bool:
    """Whether `change` is one more event and nothing else, and may reach the disk as the store's mode says."""
    return (
        len(change.events) == 1
        and change.fence is None
        and change.cut is None
        and change.next_turn is None
        and change.checkpoint is None
        and not change.durable
        and change.offset < _MAX_EVENTS
    )


def check_room(change: Change) -> None:
    """Refuse what would run into the positions of another activation.

    Raises:
        OffsetError: the log would be longer than a SQLite store can hold.
    """
    if change.offset + len(change.events) > _MAX_EVENTS:
        raise OffsetError(f"a SQLite store holds at most {_MAX_EVENTS:,} events of an activation")


def _blob(text: str) -> bytes:
    # As bytes and not as the database's text, so that NUL survives; a lone surrogate finds nothing, and no error.
    return text.encode("utf-8", "surrogatepass")
