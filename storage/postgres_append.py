"""The one statement that adds an event where the stored head is still the one that was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.storage.postgres_log import key_bytes
from incarnate.storage.postgres_pipeline import Statement, bigint, run
from incarnate.storage.postgres_schema import in_schema

if TYPE_CHECKING:
    from incarnate.domain.decisions import Change
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.postgres_connections import Connection

__all__ = ["AppendStatement", "is_plain_append"]

# The row is locked, and compared as it is once the lock is had: fence, generation, turn, not retired. The offset
# is compared by the table's key: within a generation a log only grows, so its head stands where it was seen if
# and only if that offset is free. To look for the last event cost twice as much as all the rest of the statement.
_KEEP_TURN = """
INSERT INTO {s}.event (activation, "offset", incarnation, at_ms, payload)
SELECT id, $6::bigint, $7::bigint, $8::bigint, $9::bytea FROM {s}.activation WHERE {unmoved} FOR UPDATE
ON CONFLICT DO NOTHING
"""
# Here a taken offset is an error, so that the turn is not raised either.
_RAISE_TURN = """
WITH seen AS (UPDATE {s}.activation SET next_turn = $10::bigint WHERE {unmoved} RETURNING id)
INSERT INTO {s}.event (activation, "offset", incarnation, at_ms, payload)
SELECT id, $6::bigint, $7::bigint, $8::bigint, $9::bytea FROM seen
"""
_UNMOVED = """
process_instance_key = $1::bytea AND element_id = $2::bytea
AND fence = $3::bigint AND generation = $4::bigint AND next_turn = $5::bigint AND retired_ms IS NULL
"""
_RELAXED = " AND set_config('synchronous_commit', 'off', true) = 'off'"


def is_plain_append(change: Change) -> bool:
    """Whether `change` is one more event, that may raise the turn counter, and nothing else."""
    return (
        len(change.events) == 1
        and change.fence is None
        and change.cut is None
        and change.checkpoint is None
        and not change.retired
    )


class AppendStatement:
    """The statement in one schema; `relaxed`: its commit does not wait for the disk."""

    def __init__(self, schema: str, *, relaxed: bool) -> None:
        name = b"incarnate_append" + b"_relaxed" * relaxed
        unmoved = _UNMOVED + _RELAXED * relaxed
        keep, turn = (in_schema(schema, text.replace("{unmoved}", unmoved)) for text in (_KEEP_TURN, _RAISE_TURN))
        self._keep = Statement(name, keep)
        self._turn = Statement(name + b"_turn", turn)

    def run(self, db: Connection, key: ActivationKey, head: Head, change: Change) -> bool:
        """Write the one event of `change` in a transaction of its own, if the stored head is still `head`.

        Raises:
            psycopg.Error: as the driver's own cursors would.
        """
        assert head.fence is not None, "whoever appends has been admitted"
        pik, element = key_bytes(key)
        values = [
            pik,
            element,
            bigint(head.fence),
            bigint(head.generation),
            bigint(head.next_turn),
            bigint(change.offset),
            bigint(change.incarnation),
            bigint(change.at_ms),
            change.events[0].payload,
        ]
        statement = self._keep
        if change.next_turn is not None:
            statement = self._turn
            values.append(bigint(change.next_turn))
        return run(db, statement, values).command_tuples == 1
