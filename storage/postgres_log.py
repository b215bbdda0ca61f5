"""One activation of a PostgreSQL store, as a transaction sees it: reads for `decide` and for snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.codec import decode_checkpoint, decode_stored
from incarnate.domain.events import MAX_INTEGER
from incarnate.domain.gaps import check_whole
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.domain.rewinds import Rewind
from incarnate.storage.postgres_pipeline import Statement, bigint_of, run_together
from incarnate.storage.postgres_schema import in_schema

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.postgres_connections import Connection

__all__ = ["PostgresLog", "Reads", "head_row", "key_bytes", "read", "text_bytes"]

# The next offset is not stored: keeping it in the activation's row would leave a dead version of that row behind with
# each event. The last event's key tells it.
_HEAD = """
SELECT id, fence, generation, next_turn, retired_ms IS NOT NULL,
       (SELECT "offset" FROM {s}.event WHERE activation = id ORDER BY "offset" DESC LIMIT 1)
FROM {s}.activation WHERE process_instance_key = $1 AND element_id = $2
"""
_EVENTS = """
SELECT "offset", incarnation, at_ms, payload FROM {s}.event
WHERE activation = %s AND "offset" >= %s AND "offset" < %s ORDER BY "offset"
"""
# The server adds up the sizes, so that of rows of the largest size, 64 MiB each, only those wanted are sent.
_PAGE = """
SELECT "offset", incarnation, at_ms, payload FROM (
    SELECT "offset", incarnation, at_ms, payload,
           sum(octet_length(payload)) OVER (ORDER BY "offset") - octet_length(payload) AS before
    FROM (
        SELECT "offset", incarnation, at_ms, payload FROM {table}
        WHERE activation = %s AND generation = %s AND "offset" >= %s AND "offset" < %s ORDER BY "offset" LIMIT %s
    ) AS portion
) AS sized WHERE before < %s ORDER BY "offset"
"""
_CHECKPOINT = "SELECT payload FROM {s}.checkpoint WHERE activation = %s AND id = %s"
_LATEST = """
SELECT payload FROM {s}.checkpoint WHERE activation = %s ORDER BY "offset" DESC, number DESC LIMIT 1
"""
_CHECKPOINT_IDS = 'SELECT id FROM {s}.checkpoint WHERE activation = %s ORDER BY "offset", number'
_LOWEST_CUT = "SELECT min(cut) FROM {s}.rewind WHERE activation = %s AND generation > %s"
_REWINDS = """
SELECT generation, cut, head, incarnation, at_ms, swept FROM {s}.rewind WHERE activation = %s ORDER BY generation
"""

_RETIRED_MS = "SELECT retired_ms FROM {s}.activation WHERE id = %s AND NOT swept"

_BEGIN = Statement(b"incarnate_begin_reading", b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
# A reader holds no lock, so one that is slow is in nobody's way.
_PATIENCE = Statement(b"incarnate_patience", b"SELECT set_config('idle_in_transaction_session_timeout', '60000', true)")
_TRUE = b"\x01"

_MOST_ROWS = 1000
_NO_ROW = -1
"""The id of an activation that has no row: nothing is found for it."""


class Reads:
    """The statements of a log's reads, in one schema."""

    def __init__(self, schema: str) -> None:
        page = _PAGE.replace("{table}", "{s}.event").replace(" AND generation = %s", "")
        self.head = Statement(b"incarnate_head", in_schema(schema, _HEAD))
        self.events = in_schema(schema, _EVENTS)
        self.page = in_schema(schema, page)
        self.checkpoint = in_schema(schema, _CHECKPOINT)
        self.latest = in_schema(schema, _LATEST)
        self.checkpoint_ids = in_schema(schema, _CHECKPOINT_IDS)
        self.lowest_cut = in_schema(schema, _LOWEST_CUT)
        self.rewinds = in_schema(schema, _REWINDS)
        self.retired_ms = in_schema(schema, _RETIRED_MS)
        self.superseded = in_schema(schema, _PAGE.replace("{table}", "{s}.superseded"))


class PostgresLog:
    """What is stored of one activation, as the transaction that `db` is in sees it.

    `row` is its id, fence, generation, next turn, whether it is retired, and its last offset; None where it has none.
    """

    def __init__(
        self, db: Connection, reads: Reads, key: ActivationKey, place: str, row: tuple[Any, ...] | None
    ) -> None:
        self.key = key
        self._db = db
        self._reads = reads
        self._place = place
        self.head = EMPTY_HEAD
        self.row_id = _NO_ROW
        if row is not None:
            self.row_id, fence, generation, next_turn, retired, last = row
            self.head = Head(fence, 0 if last is None else last + 1, generation, next_turn, retired)

    @property
    def exists(self) -> bool:
        """Whether the activation has a row."""
        return self.row_id != _NO_ROW

    def events(self, start: int, stop: int) -> list[tuple[Any, ...]]:
        end = self.head.next_offset  # also keeps numbers that PostgreSQL cannot hold away from it
        return self._rows(self._reads.events, (self.row_id, min(start, end), min(stop, end)))

    def appended(self, start: int, stop: int) -> list[AppendedEvent]:
        events = self._decoded(self.events(start, stop))
        check_whole(self.key, events, max(0, start), min(stop, self.head.next_offset))
        return events

    def page(self, start: int, stop: int, max_bytes: int) -> list[AppendedEvent]:
        end = self.head.next_offset
        rows = self._up_to(self._reads.page, (self.row_id,), min(start, end), min(stop, end), max_bytes)
        return self._decoded(rows)

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        return self._one_checkpoint(self._reads.checkpoint, (self.row_id, text_bytes(checkpoint_id)))

    def latest_checkpoint(self) -> Checkpoint | None:
        return self._one_checkpoint(self._reads.latest, (self.row_id,))

    def checkpoint_ids(self) -> list[str]:
        rows = self._rows(self._reads.checkpoint_ids, (self.row_id,))
        return [row[0].decode("utf-8", "backslashreplace") for row in rows]

    def lowest_cut(self, generation: int) -> int | None:
        ((cut,),) = self._rows(self._reads.lowest_cut, (self.row_id, min(generation, MAX_INTEGER)))
        lowest: int | None = cut
        return lowest

    def rewinds(self) -> list[Rewind]:
        return [Rewind(*row) for row in self._rows(self._reads.rewinds, (self.row_id,))]

    def superseded(self, generation: int, start: int, stop: int, max_bytes: int) -> list[AppendedEvent]:
        largest = MAX_INTEGER  # keeps numbers that PostgreSQL cannot hold away from it
        which = (self.row_id, min(generation, largest))
        rows = self._up_to(self._reads.superseded, which, min(start, largest), min(stop, largest), max_bytes)
        return self._decoded(rows, f", superseded by rewind {generation}")

    def retired_ms(self) -> int | None:
        found = self._rows(self._reads.retired_ms, (self.row_id,))
        retired_ms: int | None = found[0][0] if found else None
        return retired_ms

    def _up_to(self, query: bytes, which: tuple[int, ...], start: int, stop: int, max_bytes: int) -> list[Any]:
        """The rows from `start` up to `stop`, and none after that which reaches `max_bytes`."""
        found: list[Any] = []
        left = max(1, max_bytes)
        while True:
            rows = self._rows(query, (*which, start, stop, _MOST_ROWS, min(left, MAX_INTEGER)))
            found += rows
            left -= sum(len(row[3]) for row in rows)
            if left <= 0 or len(rows) < _MOST_ROWS:
                return found
            start = rows[-1][0] + 1

    def _rows(self, query: bytes, arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return self._db.execute(query, arguments, prepare=True, binary=True).fetchall()

    def _decoded(self, rows: list[Any], what: str = "") -> list[AppendedEvent]:
        return decode_stored(rows, f"{self._place}, {self.key}{what}")

    def _one_checkpoint(self, query: bytes, arguments: tuple[Any, ...]) -> Checkpoint | None:
        row = self._db.execute(query, arguments, prepare=True, binary=True).fetchone()
        return None if row is None else decode_checkpoint(row[0], f"{self._place}, checkpoint of {self.key}")


def read(db: Connection, reads: Reads, key: ActivationKey, place: str) -> PostgresLog:
    """Begin a transaction that reads, in one round trip, and see what stands at this moment."""
    *_, found = run_together(db, [(_BEGIN, ()), (_PATIENCE, ()), (reads.head, key_bytes(key))])
    row = None
    if found.ntuples:
        row = (*head_row(found), bigint_of(found.get_value(0, 5)))
    return PostgresLog(db, reads, key, place, row)


def head_row(found: PGresult) -> tuple[int | bool | None, ...]:
    """The first five columns of an activation's row: id, fence, generation, next turn, and whether it is retired."""
    *numbers, retired = (found.get_value(0, column) for column in range(5))
    return (*map(bigint_of, numbers), retired == _TRUE)


def key_bytes(key: ActivationKey) -> tuple[bytes, bytes]:
    """Both parts of `key` as they are stored."""
    return key.process_instance_key.encode(), key.element_id.encode()


def text_bytes(text: str) -> bytes:
    """An id as it is stored; a lone surrogate finds nothing, and no error."""
    return text.encode("utf-8", "surrogatepass")
