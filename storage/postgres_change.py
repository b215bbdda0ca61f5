"""How a `Change` is written into the tables of the PostgreSQL store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.decisions import evolve
from incarnate.storage.postgres_log import key_bytes, text_bytes
from incarnate.storage.postgres_schema import in_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from incarnate.domain.codec import EncodedCheckpoint, EncodedEvent
    from incarnate.domain.decisions import Change
    from incarnate.storage.postgres_connections import Connection
    from incarnate.storage.postgres_log import PostgresLog

__all__ = ["Writes", "apply"]

_CREATE = """
INSERT INTO {s}.activation (process_instance_key, element_id, fence, generation, next_turn, created_ms)
VALUES (%s, %s, %s, %s, %s, %s) RETURNING id
"""
_TOUCH = "UPDATE {s}.activation SET fence = %s, generation = %s, next_turn = %s WHERE id = %s"
_RETIRE = "UPDATE {s}.activation SET retired_ms = %s WHERE id = %s"
_INSERT = """
INSERT INTO {s}.event (activation, "offset", incarnation, at_ms, payload) VALUES (%s, %s, %s, %s, %s)
"""
_INSERT_MANY = """
INSERT INTO {s}.event (activation, "offset", incarnation, at_ms, payload)
SELECT %s::bigint, %s::bigint + row.number - 1, %s::bigint, %s::bigint, row.payload
FROM unnest(%b::bytea[]) WITH ORDINALITY AS row (payload, number)
"""
# The array goes over in binary: as text it is quoted as `standard_conforming_strings` of the session says, and where
# that is off every payload came out as its own escape. It takes half the bytes and a tenth of the time, too.
_REWIND = """
INSERT INTO {s}.rewind (activation, generation, cut, head, incarnation, at_ms) VALUES (%s, %s, %s, %s, %s, %s)
"""
_SUPERSEDE = """
INSERT INTO {s}.superseded (activation, generation, "offset", incarnation, at_ms, payload)
SELECT activation, %s, "offset", incarnation, at_ms, payload FROM {s}.event WHERE activation = %s AND "offset" >= %s
"""
_CUT = 'DELETE FROM {s}.event WHERE activation = %s AND "offset" >= %s'
_PRUNE = 'DELETE FROM {s}.checkpoint WHERE activation = %s AND "offset" > %s'
# The number tells the latest of those at one offset. Under the activation's lock, and no sequence: an engine that hands
# those out in blocks to its nodes would not number them in the order of the inserts.
_CHECKPOINT = """
INSERT INTO {s}.checkpoint (activation, id, "offset", payload, number)
SELECT %s::bigint, %s::bytea, %s::bigint, %s::bytea, (
    SELECT coalesce(max(number), 0) + 1 FROM {s}.checkpoint WHERE activation = %s AND "offset" = %s
)
"""

_MOST_BYTES = 16 * 1024 * 1024
"""How much of a batch one statement takes: PostgreSQL's messages end at 1 GiB, and an event may have 64 MiB."""


class Writes:
    """The statements of a change, in one schema."""

    def __init__(self, schema: str) -> None:
        self.create = in_schema(schema, _CREATE)
        self.touch = in_schema(schema, _TOUCH)
        self.retire = in_schema(schema, _RETIRE)
        self.insert = in_schema(schema, _INSERT)
        self.insert_many = in_schema(schema, _INSERT_MANY)
        self.rewind = in_schema(schema, _REWIND)
        self.supersede = in_schema(schema, _SUPERSEDE)
        self.cut = in_schema(schema, _CUT)
        self.prune = in_schema(schema, _PRUNE)
        self.checkpoint = in_schema(schema, _CHECKPOINT)


def apply(db: Connection, sql: Writes, log: PostgresLog, change: Change, now_ms: int) -> None:
    """Write `change` onto what `log` found under its lock; the caller commits."""
    activation = _touch(db, sql, log, change, now_ms)
    if change.retired:
        db.execute(sql.retire, (change.at_ms, activation))
    if change.cut is not None:
        _supersede(db, sql, log, change, change.cut)
    if change.events:
        _insert(db, sql, activation, change)
    if change.checkpoint is not None:
        _keep(db, sql, activation, change.checkpoint)


def _touch(db: Connection, sql: Writes, log: PostgresLog, change: Change, now_ms: int) -> int:
    """The activation's id, its row made or brought up to date; `log` knows it from then on."""
    old, new = log.head, evolve(log.head, change)
    columns = (new.fence, new.generation, new.next_turn)
    if not log.exists:
        row = db.execute(sql.create, (*key_bytes(log.key), *columns, now_ms), prepare=True, binary=True).fetchone()
        assert row is not None, "an INSERT gives its id"
        log.row_id = int(row[0])
    elif columns != (old.fence, old.generation, old.next_turn):
        db.execute(sql.touch, (*columns, log.row_id), prepare=True)
    return log.row_id


def _supersede(db: Connection, sql: Writes, log: PostgresLog, change: Change, cut: int) -> None:
    activation, generation = log.row_id, log.head.generation + 1
    done = (activation, generation, cut, log.head.next_offset, change.incarnation, change.at_ms)
    db.execute(sql.rewind, done, prepare=True)
    db.execute(sql.supersede, (generation, activation, cut), prepare=True)
    db.execute(sql.cut, (activation, cut), prepare=True)
    db.execute(sql.prune, (activation, cut), prepare=True)


def _insert(db: Connection, sql: Writes, activation: int, change: Change) -> None:
    incarnation, at_ms = change.incarnation, change.at_ms
    for offset, payloads in _portions(change.offset, change.events):
        if len(payloads) == 1:
            db.execute(sql.insert, (activation, offset, incarnation, at_ms, payloads[0]), prepare=True)
        else:
            db.execute(sql.insert_many, (activation, offset, incarnation, at_ms, payloads), prepare=True)


def _portions(offset: int, events: tuple[EncodedEvent, ...]) -> Iterator[tuple[int, list[bytes]]]:
    """The payloads in lists that a statement can carry, each with the offset of its first."""
    taken: list[bytes] = []
    size = 0
    for encoded in events:
        taken.append(encoded.payload)
        size += len(encoded.payload)
        if size >= _MOST_BYTES:
            yield offset, taken
            offset, taken, size = offset + len(taken), [], 0
    if taken:
        yield offset, taken


def _keep(db: Connection, sql: Writes, activation: int, kept: EncodedCheckpoint) -> None:
    offset = kept.checkpoint.offset
    values = (activation, text_bytes(kept.checkpoint.id), offset, kept.payload, activation, offset)
    db.execute(sql.checkpoint, values, prepare=True)
