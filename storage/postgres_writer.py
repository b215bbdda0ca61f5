"""The writes of a PostgreSQL store: a decision and its change in one transaction, any number of activations at once.

A transaction locks the activation's row first and reads the rest of the head after that, so no belief is older than the
lock. Where only events are added, one statement does all of it.
"""

from __future__ import annotations

import random
import time
from itertools import count
from typing import TYPE_CHECKING, Never, TypeVar

import psycopg

from incarnate.domain.errors import StoreBusyError
from incarnate.storage.postgres_append import AppendStatement, is_plain_append
from incarnate.storage.postgres_change import Writes, apply
from incarnate.storage.postgres_connections import is_gone, roll_back
from incarnate.storage.postgres_errors import outcome, told
from incarnate.storage.postgres_log import PostgresLog, Reads, head_row, key_bytes
from incarnate.storage.postgres_pipeline import Statement, bigint_of, run_together
from incarnate.storage.postgres_schema import in_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from incarnate.domain.decisions import Change, Decision
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Decide
    from incarnate.storage.postgres_connections import Connection, Connections
    from incarnate.storage.postgres_url import Target

__all__ = ["PostgresWriter", "Transaction"]

T = TypeVar("T")

_MAX_HEADS = 4096

# Whatever the server's defaults are.
_BEGIN = Statement(b"incarnate_begin", b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
_COMMIT = b"COMMIT"
_RELAX = b"SET LOCAL synchronous_commit = off"

_LOCK = """
SELECT id, fence, generation, next_turn, retired_ms IS NOT NULL FROM {s}.activation
WHERE process_instance_key = $1 AND element_id = $2 FOR UPDATE
"""
# A statement of its own: one that waits for a lock still sees the events of before it waited.
_LAST = """
SELECT "offset" FROM {s}.event
WHERE activation = (SELECT id FROM {s}.activation WHERE process_instance_key = $1 AND element_id = $2)
ORDER BY "offset" DESC LIMIT 1
"""


class _NotSeenError(Exception):
    """A decision needs more than the head that was last seen."""


class _Seen:
    """What `decide` gets of a log without a transaction: its head as it was last seen."""

    def __init__(self, key: ActivationKey, head: Head) -> None:
        self.key = key
        self.head = head

    def _unseen(self, *_arguments: object, **_named: object) -> Never:
        raise _NotSeenError

    events = appended = checkpoint = lowest_cut = _unseen


class Transaction:
    """One write transaction. `committing`: its commit was sent, so that an error may hide that it happened."""

    def __init__(self, db: Connection, sql: _Statements) -> None:
        self.db = db
        self.committing = False
        self._sql = sql

    def begin(self, key: ActivationKey, place: str) -> PostgresLog:
        """Lock the activation, in one round trip, and read its head."""
        names = key_bytes(key)
        _, locked, last = run_together(self.db, [(_BEGIN, ()), (self._sql.lock, names), (self._sql.last, names)])
        row = None
        if locked.ntuples:
            row = (*head_row(locked), bigint_of(last.get_value(0, 0)) if last.ntuples else None)
        return PostgresLog(self.db, self._sql.reads, key, place, row)

    def commit(self) -> None:
        """Send the commit; inside a pipeline it goes with the rest."""
        self.committing = True
        self.db.execute(_COMMIT)


class _Statements:
    def __init__(self, schema: str) -> None:
        self.reads = Reads(schema)
        self.writes = Writes(schema)
        self.lock = Statement(b"incarnate_lock", in_schema(schema, _LOCK))
        self.last = Statement(b"incarnate_last", in_schema(schema, _LAST))
        self.append = AppendStatement(schema, relaxed=False)
        self.append_relaxed = AppendStatement(schema, relaxed=True)


class PostgresWriter:
    """Runs decisions, each on a connection of its own."""

    def __init__(self, connections: Connections, target: Target) -> None:
        self._connections = connections
        self._place = target.shown
        self._busy_seconds = target.busy_seconds
        self._fully = target.durability == "commit"
        self._sql = _Statements(target.schema)
        self._heads: dict[ActivationKey, Head] = {}

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        """Run `decide` and commit what it says; see `Store.transact`."""
        decision = self._append_if_unmoved(key, decide)
        if decision is None:
            decision = self.transact_all(key, (decide,), now_ms)
        return decision

    def transact_all(self, key: ActivationKey, decides: Sequence[Decide], now_ms: int) -> Decision:
        """Run each of `decides` on what the one before it left, in one transaction; see `Store.transact_all`."""
        decision = self.run(lambda transaction: self._attempt(transaction, key, decides, now_ms))
        if len(self._heads) >= _MAX_HEADS:
            self._heads.clear()  # they only save work
        self._heads[key] = decision.head
        return decision

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Do `work` until it is not in the way of another transaction, each time in a new one.

        Raises:
            StoreBusyError: it was, or the server was away, for longer than the wait; nothing was written.
            OutcomeUnknownError: the connection was lost while the commit was on its way.
        """
        deadline = time.monotonic() + self._busy_seconds
        for attempt in count():
            with self._connections.lent() as db:
                transaction = Transaction(db, self._sql)
                try:
                    return work(transaction)
                except psycopg.Error as error:
                    # At least twice: a process that was stopped for long wakes up behind any deadline.
                    late = attempt > 0 and time.monotonic() >= deadline
                    self._judge(error, transaction.committing, db.broken, late)
            time.sleep(random.random() / 100)
        raise AssertionError  # for the type checkers: the loop has no end

    def _judge(self, error: psycopg.Error, committing: bool, broken: bool, late: bool) -> None:  # noqa: FBT001
        failure = outcome(error, self._place, committing=committing, broken=broken)
        if failure is not None:
            raise failure from error
        if late:
            raise StoreBusyError(
                f"{self._place}: nothing was written within {self._busy_seconds:g} seconds ({told(error)})"
            ) from error

    def _append_if_unmoved(self, key: ActivationKey, decide: Decide) -> Decision | None:
        """Decide on the head as it was last seen, and append in one statement if the stored one is still the same.

        The statement is the write's own transaction, locks the row and compares the whole head, so no belief is older
        than the transaction. It is one round trip, where locking, deciding and writing take two. None, with nothing
        written, where anything but one more event comes of it or the head has moved.
        """
        head = self._heads.get(key)
        if head is None:
            return None
        try:
            decision = decide(_Seen(key, head))
        except _NotSeenError:
            return None
        change = decision.change
        if change is None or not is_plain_append(change) or not self._appended(key, head, change):
            return None
        self._heads[key] = decision.head
        return decision

    def _appended(self, key: ActivationKey, head: Head, change: Change) -> bool:
        append = self._sql.append if self._fully or change.durable else self._sql.append_relaxed
        with self._connections.lent() as db:
            try:
                return append.run(db, key, head, change)
            except psycopg.Error as error:
                failure = outcome(error, self._place, committing=True, broken=db.broken)
                if failure is not None:
                    raise failure from error
                if error.sqlstate == "26000":
                    db.close()  # a pooler has put us onto another server process, which knows none of our statements
                return False

    def _attempt(
        self, transaction: Transaction, key: ActivationKey, decides: Sequence[Decide], now_ms: int
    ) -> Decision:
        log = transaction.begin(key, self._place)
        decision = decides[0](log)
        if decision.change is None and (len(decides) == 1 or decision.error is not None):
            roll_back(transaction.db)
            return decision
        if is_gone(transaction.db):  # else what is sent now might seem to have been lost on its way
            raise psycopg.OperationalError("the server ended the session in the middle of the transaction")
        failure: Exception | None = None
        with transaction.db.pipeline():
            durable = self._fully | self._write(transaction.db, log, decision, now_ms)
            for decide in decides[1:]:
                if decision.error is not None:
                    break
                try:
                    decision = decide(log)
                except psycopg.Error:
                    raise
                except Exception as error:  # noqa: BLE001 - those before it stay, as if each had come alone
                    failure = error
                    break
                durable |= self._write(transaction.db, log, decision, now_ms)
            if not durable:
                transaction.db.execute(_RELAX)
            transaction.commit()
        if failure is not None:
            raise failure
        return decision

    def _write(self, db: Connection, log: PostgresLog, decision: Decision, now_ms: int) -> bool:
        """Write what was decided, and bring `log` up to it; whether it must reach the disk."""
        change = decision.change
        if change is None:
            return False
        apply(db, self._sql.writes, log, change, now_ms)
        log.head = decision.head
        return change.durable
