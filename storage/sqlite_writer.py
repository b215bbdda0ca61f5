"""The one connection of a SQLite store that writes: decisions and their changes in one transaction.

Threads that come while a commit is under way wait for it together and are then committed together: one of them leads
and does the work of all, so that one sync of the disk serves many sessions.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from incarnate.domain.decisions import Decision
from incarnate.domain.errors import ClosedError, OutcomeUnknownError, StoreBusyError
from incarnate.storage.groups import CommitGroup, Entry, Guess
from incarnate.storage.sqlite_files import PAGE_BYTES, connect, is_busy, translated
from incarnate.storage.sqlite_log import SqliteLog, Unwritten, check_room, is_plain_append

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Decide, Transaction
    from incarnate.storage.sqlite_files import Wait

__all__ = ["SqliteWriter"]

T = TypeVar("T")

_Answer = tuple[Decision | None, Exception | None]

_MAX_LOGS = 4096

_SIZES = 16  # powers of two: no batch is as large as the last

_GROW_AFTER = 32
_LOG_PAGES = 500
_UNSYNCED_LOG_PAGES = 2000
"""After so many pages the write-ahead log is folded back into the file, with two syncs. Where the commits themselves
are not synced those two are most of what a commit costs: 500 pages gave 0.52 of a bare loop's rate, 2,000 gave 0.58."""

_GROWN_BYTES = (_LOG_PAGES + 50) * (PAGE_BYTES + 24)
"""A commit that makes the write-ahead log longer costs twice one that overwrites it, until it is as long as it gets:
SQLite starts it again after as many pages as it is told. Every last close deletes it, so a short session would never
get there."""


class SqliteWriter:
    """Takes one decision at a time, whatever thread it comes from.

    `fully`: sync the disk at every commit. Else only where a change asks for it (I11).
    """

    def __init__(self, path: str, *, fully: bool, wait: Wait) -> None:
        self._path = path
        self._fully = fully
        self._wait = wait
        self._group = CommitGroup()
        self._db = connect(path, read_only=False, wait=wait)
        self._closed = False
        self._logs: dict[ActivationKey, SqliteLog] = {}
        self._version: int | None = None
        """SQLite's data version as of which all of `_logs` are true: it moves when another connection commits. None
        where they may not be, from before a write of our own until what it changed is remembered."""
        self._commits = 0
        self.group_sizes = [0] * _SIZES
        self._sync(fully=fully)
        self._db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES if fully else _UNSYNCED_LOG_PAGES}")

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        """Run `decide` and commit what it says; see `Store.transact`."""
        found = self._at_once(key, decide)
        if isinstance(found, Decision):
            return found
        entry = Entry(key, decide, now_ms, found)
        self._group.settle(entry, self._settle_batch)
        if entry.error is not None:
            raise entry.error
        assert entry.decision is not None, "an entry that is settled has a decision or an error"
        return entry.decision

    def _at_once(self, key: ActivationKey, decide: Decide) -> Decision | Guess | None:
        """`_append_if_unmoved` where nobody else writes or waits: then there is no group to make."""
        group = self._group
        if group.waiting or group.busy or group.lead._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001
            return None  # `settle` waits, or refuses a call from inside a commit
        with group.lead:
            group.busy = True
            try:
                found = self._append_if_unmoved(key, decide)
                if isinstance(found, Decision):
                    self._count_commit(1)
                return found
            except sqlite3.Error as error:
                raise translated(error, self._path) from error
            finally:
                group.busy = False
                if group.waiting:
                    group.wake_first()

    def transact_all(self, key: ActivationKey, decides: Sequence[Decide], now_ms: int) -> Decision:
        """All of `decides` in one transaction where that can be; see `Store.transact_all`."""
        entries = [Entry(key, decide, now_ms) for decide in decides]
        self._group.refuse_reentry()
        with self._group.lead:
            self._settle_batch(entries)
        for entry in entries:
            if entry.error is not None:
                raise entry.error
        decisions = [entry.decision for entry in entries if entry.decision is not None]
        return next((decision for decision in decisions if decision.error is not None), decisions[-1])

    def transact_each(self, calls: Sequence[Transaction]) -> list[Decision | Exception]:
        """All of `calls` in one transaction where that can be; see `Store.transact_each`."""
        entries = [Entry(*call) for call in calls]
        self._group.settle_all(entries, self._settle_batch)
        return [entry.outcome() for entry in entries]

    def _settle_batch(self, batch: list[Entry]) -> None:
        """Settle every entry of `batch`; the caller holds the lead."""
        self._check_open()
        if len(batch) > 1 and self._settle_together(batch):
            self._count_commit(len(batch))
            return
        for entry in batch:  # where one of them cannot be written, each by itself, so that it alone fails
            self._settle_alone(entry)
            self._count_commit(1)

    def _count_commit(self, size: int) -> None:
        self.group_sizes[size.bit_length()] += 1
        self._commits += 1
        if self._commits == _GROW_AFTER and self._fully:
            self._grow_log()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{self._path} is closed")

    def _settle_alone(self, entry: Entry) -> None:
        try:
            found = entry.guess or self._append_if_unmoved(entry.key, entry.decide)
            if isinstance(found, Decision):
                entry.decision = found
            else:
                entry.guess = found
                entry.decision = self._settle(entry)
        except sqlite3.Error as error:
            entry.error = translated(error, self._path)
            entry.error.__cause__ = error
        except Exception as error:  # noqa: BLE001 - whatever its decide raised is for its own caller
            entry.error = error

    def _settle(self, entry: Entry) -> Decision:
        if not self._attempt([entry], fully=self._fully):
            self._attempt_fully([entry])
        if entry.error is not None:
            raise entry.error
        assert entry.decision is not None, "an attempt decides every entry"
        return entry.decision

    def _settle_together(self, batch: list[Entry]) -> bool:
        """Commit all of `batch` in one transaction; False, with nothing written, where that cannot be."""
        try:
            if not self._attempt(batch, fully=self._fully):
                self._attempt_fully(batch)
        except OutcomeUnknownError as error:
            for entry in batch:  # refusals too: what they were refused for may not have been written
                entry.error = error
        except (sqlite3.Error, StoreBusyError):
            return False
        return True

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` in a transaction that reaches the disk."""
        self._group.refuse_reentry()
        with self._group.lead:
            self._check_open()
            self._version = None
            try:
                self._sync(fully=True)
                self._wait(lambda: self._db.execute("BEGIN IMMEDIATE"))
                done = work(self._db)
                self._commit()
            except sqlite3.Error as error:
                raise translated(error, self._path) from error
            finally:
                self._roll_back()
                self._sync(fully=self._fully)
            self._logs.clear()  # it may have changed any of them
            return done

    def vacuum(self) -> None:
        """Make the file as small as what it holds, and empty the write-ahead log."""
        self._group.refuse_reentry()
        with self._group.lead:
            self._check_open()
            try:
                self._wait(lambda: self._db.execute("VACUUM"))
                self._wait(lambda: self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
            except sqlite3.Error as error:
                raise translated(error, self._path) from error

    def _append_if_unmoved(self, key: ActivationKey, decide: Decide) -> Decision | Guess | None:
        """Decide on the head as it was last seen, and append in one statement if the stored one is still the same.

        The statement is the write's own transaction and compares the whole head in it, so no belief is older than the
        transaction. It costs what a bare INSERT does, where BEGIN, reading the head and COMMIT cost half as much
        again. A guess, with nothing written, where anything but one more event comes of it; None where nothing is
        known or the head has moved. The caller holds the lead.
        """
        log = self._logs.get(key)
        if log is None or self._closed or self._db.in_transaction:
            return None
        decision, head = decide(log), log.head
        change = decision.change
        if change is None or not is_plain_append(change):
            return Guess(head, decision)
        version, self._version = self._version, None
        try:
            if not log.append_if_unmoved(change):
                return None
        except sqlite3.Error as error:
            if is_busy(error):
                return None
            raise self._unknown(error) from error
        log.head = decision.head
        self._version = version
        return decision

    def _attempt_fully(self, batch: list[Entry]) -> None:
        # SQLite refuses to change the sync mode inside a transaction, so decisions are worked out anew in one that
        # syncs: decide is pure, and only leases, checkpoints and turn numbers pay for it.
        self._sync(fully=True)
        try:
            self._attempt(batch, fully=True)
        finally:
            self._sync(fully=False)

    def _attempt(self, batch: list[Entry], *, fully: bool) -> bool:
        """Decide and commit; False, with nothing written, where a change needs a sync and this is none."""
        logs: dict[ActivationKey, SqliteLog] = {}
        unwritten = Unwritten(self._db)
        answers: list[_Answer] = []
        version, self._version = self._version, None
        try:
            self._roll_back()  # in case an interrupt fell into the last call's own rolling back
            self._wait(lambda: self._db.execute("BEGIN IMMEDIATE"))
            version = self._check_logs(version)
            for entry in batch:
                log = logs.get(entry.key)
                if log is None:
                    log = logs[entry.key] = self._log(entry.key, unwritten)
                answer = self._write(log, entry, fully=fully)
                if answer is None:
                    self._roll_back()
                    return False
                answers.append(answer)
            unwritten.write()
            self._commit()
        except BaseException:  # an interrupt too: what is half written, or not yet committed, must not stay open
            self._roll_back()
            raise
        self._remember(logs)
        self._version = version
        for entry, answer in zip(batch, answers, strict=True):  # not before: whoever waits for one goes on with it
            entry.decision, entry.error = answer
        return True

    def _check_logs(self, version: int | None) -> int:
        """Forget what was seen where another connection has committed since `version`; the version now.

        Inside the write's own transaction, so no belief is older than that. It is one statement for all of a batch,
        where reading each head is one for each log.
        """
        now: int = self._db.execute("SELECT data_version FROM pragma_data_version").fetchone()[0]
        if now != version:
            self._logs.clear()
        return now

    def _log(self, key: ActivationKey, unwritten: Unwritten) -> SqliteLog:
        seen = self._logs.get(key)
        return SqliteLog(self._db, key, self._path, unwritten) if seen is None else seen.again(unwritten)

    def _write(self, log: SqliteLog, entry: Entry, *, fully: bool) -> _Answer | None:
        """Decide `entry` on what the transaction holds so far, and write its change; None where it needs a sync."""
        try:
            guess = entry.guess
            decision = guess.decision if guess is not None and guess.head is log.head else entry.decide(log)
            change = decision.change
            if change is not None:
                check_room(change)
        except Exception as error:  # noqa: BLE001 - it has written nothing, and the others of the batch go on
            return None, error
        if change is not None:
            if change.durable and not fully:
                return None
            log.apply(change, entry.now_ms)
        log.head = decision.head
        return decision, None

    def _remember(self, logs: dict[ActivationKey, SqliteLog]) -> None:
        if len(self._logs) >= _MAX_LOGS:
            self._logs.clear()  # they only save work
        self._logs.update(logs)

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._unknown(error) from error

    def _unknown(self, error: sqlite3.Error) -> OutcomeUnknownError:
        # The commit frame may be in the log file although its sync failed: a crash now could bring it back.
        return OutcomeUnknownError(f"{self._path}: the commit failed ({error})")

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            with suppress(sqlite3.Error):  # the error that led here is the one to tell
                self._db.execute("ROLLBACK")

    def _sync(self, *, fully: bool) -> None:
        self._db.execute(f"PRAGMA synchronous = {'FULL' if fully else 'NORMAL'}")

    def _grow_log(self) -> None:
        """Make the write-ahead log as long as it will get, with zeros that no reader takes for a frame.

        Under the write lock, so that no other process lengthens it meanwhile. It is only a gain in speed: where it
        fails, a full disk say, nothing is lost.
        """
        with suppress(sqlite3.Error, OSError):
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._lengthen_log()
                self._db.execute("ROLLBACK")
            except BaseException:  # an interrupt too, wherever it falls: the file must not stay locked
                self._roll_back()
                raise

    def _lengthen_log(self) -> None:
        descriptor = os.open(f"{self._path}-wal", os.O_WRONLY)
        try:
            size = os.fstat(descriptor).st_size
            if size < _GROWN_BYTES:
                os.pwrite(descriptor, bytes(_GROWN_BYTES - size), size)
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the connection; the last one on a file folds the write-ahead log into it."""
        with self._group.lead:
            if not self._closed:
                self._closed = True
                self._roll_back()
                self._db.close()
