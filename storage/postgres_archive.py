"""Forks, and the sweeping of what is not needed any more, in a PostgreSQL store."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from incarnate.domain.errors import KeyTakenError, OffsetError
from incarnate.domain.heads import Head
from incarnate.storage.port import Swept
from incarnate.storage.postgres_connections import roll_back
from incarnate.storage.postgres_log import key_bytes
from incarnate.storage.postgres_schema import in_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.postgres_writer import Transaction

__all__ = ["Archive"]

_ID = "SELECT id FROM {s}.activation WHERE process_instance_key = %s AND element_id = %s"
_NEW = """
INSERT INTO {s}.activation (process_instance_key, element_id, fence, generation, next_turn, created_ms)
VALUES (%s, %s, %s, 0, %s, %s) RETURNING id
"""
_COPY_EVENTS = """
INSERT INTO {s}.event (activation, "offset", incarnation, at_ms, payload)
SELECT %s, "offset", incarnation, at_ms, payload FROM {s}.event WHERE activation = %s AND "offset" < %s
"""
_COPY_CHECKPOINTS = """
INSERT INTO {s}.checkpoint (activation, id, "offset", number, payload)
SELECT %s, id, "offset", number, payload FROM {s}.checkpoint WHERE activation = %s AND "offset" <= %s
"""
_RETIRED = "SELECT id FROM {s}.activation WHERE NOT swept AND retired_ms < %s ORDER BY id"
_REWOUND = """
SELECT DISTINCT activation FROM {s}.rewind WHERE NOT swept AND at_ms < %s ORDER BY activation
"""
_LOCK = "SELECT swept FROM {s}.activation WHERE id = %s FOR UPDATE"
_DELETE_EVENTS = "DELETE FROM {s}.event WHERE activation = %s"
_DELETE_CHECKPOINTS = "DELETE FROM {s}.checkpoint WHERE activation = %s"
_MARK_SWEPT = "UPDATE {s}.activation SET swept = true WHERE id = %s"
_DELETE_SUPERSEDED = """
DELETE FROM {s}.superseded WHERE activation = %s AND generation IN (
    SELECT generation FROM {s}.rewind WHERE activation = %s AND NOT swept AND at_ms < %s
)
"""
_MARK_REWINDS = "UPDATE {s}.rewind SET swept = true WHERE activation = %s AND NOT swept AND at_ms < %s"

_FOR_EVER_MS = 2**62


class Archive:
    """What is done to whole logs; each call is one transaction, which it commits."""

    def __init__(self, schema: str, place: str) -> None:
        self._schema = schema
        self._place = place

    def fork(
        self, transaction: Transaction, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int
    ) -> Head:
        """Copy what lies below `offset` onto `new_key`; see `Store.fork`."""
        db = transaction.db
        source = transaction.begin(key, self._place)
        head = source.head
        if not 0 <= offset <= head.next_offset:
            raise OffsetError(f"{key} ends at {head.next_offset}; it cannot be forked at {offset}")
        if db.execute(self._sql(_ID), key_bytes(new_key)).fetchone() is not None:
            raise KeyTakenError(new_key)
        new = db.execute(self._sql(_NEW), (*key_bytes(new_key), head.fence, head.next_turn, now_ms)).fetchone()
        assert new is not None, "an INSERT gives its id"
        for copy in (_COPY_EVENTS, _COPY_CHECKPOINTS):
            db.execute(self._sql(copy), (new[0], source.row_id, offset))
        transaction.commit()
        return Head(head.fence, offset, 0, head.next_turn)

    def sweep_steps(
        self, transaction: Transaction, before_ms: int, keys: Collection[ActivationKey] | None
    ) -> list[Callable[[Transaction], Swept]]:
        """What a sweep has to do, one transaction each."""
        among = None if keys is None else self._ids(transaction, keys)
        retired = transaction.db.execute(self._sql(_RETIRED), (before_ms,)).fetchall()
        rewound = transaction.db.execute(self._sql(_REWOUND), (before_ms,)).fetchall()
        steps = {row[0]: partial(self._sweep_old, activation=row[0], before_ms=before_ms) for row in rewound}
        steps.update({row[0]: partial(self._sweep_activation, activation=row[0]) for row in retired})
        return [step for activation, step in steps.items() if among is None or activation in among]

    def _ids(self, transaction: Transaction, keys: Collection[ActivationKey]) -> set[int]:
        """The ids of those of `keys` that have a row."""
        rows = [transaction.db.execute(self._sql(_ID), key_bytes(key)).fetchone() for key in keys]
        return {row[0] for row in rows if row is not None}

    def _sweep_activation(self, transaction: Transaction, activation: int) -> Swept:
        db = transaction.db
        if self._lock(transaction, activation):
            roll_back(db)  # somebody else has swept it meanwhile
            return Swept(0, 0, 0)
        rewinds = self._sweep_rewinds(transaction, activation, _FOR_EVER_MS)
        events = db.execute(self._sql(_DELETE_EVENTS), (activation,)).rowcount
        db.execute(self._sql(_DELETE_CHECKPOINTS), (activation,))
        db.execute(self._sql(_MARK_SWEPT), (activation,))
        transaction.commit()
        return Swept(1, rewinds.rewinds, rewinds.events + events)

    def _sweep_old(self, transaction: Transaction, activation: int, before_ms: int) -> Swept:
        self._lock(transaction, activation)
        swept = self._sweep_rewinds(transaction, activation, before_ms)
        transaction.commit()
        return swept

    def _lock(self, transaction: Transaction, activation: int) -> bool:
        """Lock the activation in a new transaction; whether it was swept."""
        transaction.db.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        row = transaction.db.execute(self._sql(_LOCK), (activation,)).fetchone()
        return row is not None and bool(row[0])

    def _sweep_rewinds(self, transaction: Transaction, activation: int, before_ms: int) -> Swept:
        db = transaction.db
        events = db.execute(self._sql(_DELETE_SUPERSEDED), (activation, activation, before_ms)).rowcount
        rewinds = db.execute(self._sql(_MARK_REWINDS), (activation, before_ms)).rowcount
        return Swept(0, rewinds, events)

    def _sql(self, text: str) -> bytes:
        return in_schema(self._schema, text)
