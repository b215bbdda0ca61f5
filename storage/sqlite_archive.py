"""Forks, and the sweeping of what is not needed any more, in a SQLite store."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from incarnate.domain.errors import KeyTakenError, OffsetError
from incarnate.domain.heads import Head
from incarnate.storage.port import Swept
from incarnate.storage.sqlite_log import SqliteLog

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection

    from incarnate.domain.keys import ActivationKey

__all__ = ["fork", "sweep_steps"]

_NEW = """
INSERT INTO activation (process_instance_key, element_id, fence, generation, next_turn, created_ms)
VALUES (?, ?, ?, 0, ?, ?)
"""
_COPY_EVENTS = """
INSERT INTO event SELECT ?1 << 32 | offset, incarnation, at_ms, payload FROM event
WHERE position >= ?2 << 32 AND position < (?2 << 32) + ?3
"""
_DELETE_EVENTS = "DELETE FROM event WHERE position >= ?1 << 32 AND position < (?1 + 1) << 32"
_COPY_CHECKPOINTS = """
INSERT INTO checkpoint (activation, id, offset, payload)
SELECT ?, id, offset, payload FROM checkpoint WHERE activation = ? AND offset <= ? ORDER BY number
"""


def fork(db: sqlite3.Connection, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int) -> Head:
    """Copy what lies below `offset` onto `new_key`; the caller commits. See `Store.fork`."""
    source, target = (SqliteLog(db, one, "") for one in (key, new_key))
    head = source.head
    if not 0 <= offset <= head.next_offset:
        raise OffsetError(f"{key} ends at {head.next_offset}; it cannot be forked at {offset}")
    if target.row_id is not None:
        raise KeyTakenError(new_key)
    cursor = db.execute(_NEW, (new_key.process_instance_key, new_key.element_id, head.fence, head.next_turn, now_ms))
    db.execute(_COPY_EVENTS, (cursor.lastrowid, source.row_id, offset))
    db.execute(_COPY_CHECKPOINTS, (cursor.lastrowid, source.row_id, offset))
    return Head(head.fence, offset, 0, head.next_turn)


def sweep_steps(
    db: sqlite3.Connection, before_ms: int, keys: Collection[ActivationKey] | None
) -> list[Callable[[sqlite3.Connection], Swept]]:
    """What a sweep has to do, one transaction each."""
    among = None if keys is None else {SqliteLog(db, key, "").row_id for key in keys}
    retired = db.execute(
        "SELECT id FROM activation WHERE swept = 0 AND retired_ms < ? ORDER BY id", (before_ms,)
    ).fetchall()
    rewound = db.execute(
        "SELECT DISTINCT activation FROM rewind WHERE swept = 0 AND at_ms < ? ORDER BY activation", (before_ms,)
    ).fetchall()
    steps = {row[0]: partial(_sweep_rewinds, activation=row[0], before_ms=before_ms) for row in rewound}
    steps.update({row[0]: partial(_sweep_activation, activation=row[0]) for row in retired})
    return [step for activation, step in steps.items() if among is None or activation in among]


def _sweep_activation(db: sqlite3.Connection, activation: int) -> Swept:
    rewinds = _sweep_rewinds(db, activation, None)
    events = db.execute(_DELETE_EVENTS, (activation,)).rowcount
    db.execute("DELETE FROM checkpoint WHERE activation = ?", (activation,))
    db.execute("UPDATE activation SET swept = 1 WHERE id = ?", (activation,))
    return Swept(1, rewinds.rewinds, rewinds.events + events)


def _sweep_rewinds(db: sqlite3.Connection, activation: int, before_ms: int | None) -> Swept:
    where = "activation = ?1 AND swept = 0 AND (?2 IS NULL OR at_ms < ?2)"
    events = db.execute(
        f"DELETE FROM superseded WHERE activation = ?1 AND generation IN (SELECT generation FROM rewind WHERE {where})",  # noqa: S608 - our own words
        (activation, before_ms),
    ).rowcount
    rewinds = db.execute(f"UPDATE rewind SET swept = 1 WHERE {where}", (activation, before_ms)).rowcount  # noqa: S608
    return Swept(0, rewinds, events)
