"""Who adds to a journal: under a lock, behind what is there then, whole commits, as one write each."""

from __future__ import annotations

import fcntl
import logging
import os
import random
import secrets
import threading
import time
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from incarnate.domain.errors import (
    ForkedError,
    IncarnateError,
    OutcomeUnknownError,
    ReentrantCallError,
    StoreBusyError,
)
from incarnate.domain.journal import bodies_of, header_body, lone_event, next_body, seal, seal_each
from incarnate.storage.jsonl_files import Handle, LockFile, SegmentName, data_to_disk, failed, make_segment, read_at
from incarnate.storage.jsonl_index import Place
from incarnate.storage.jsonl_journal import INDEX_AFTER_BYTES, displaced
from incarnate.storage.jsonl_log import JsonlLog
from incarnate.storage.jsonl_tail import PADDING, Tail
from incarnate.storage.transcript_files import folder_to_disk, save_beside, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from incarnate.domain.decisions import Decision
    from incarnate.storage.jsonl_journal import Journal, Seen
    from incarnate.storage.port import Decide

__all__ = ["JsonlWriter", "Writing"]

T = TypeVar("T")

_INDEX_AT_CLOSE = 64 * 1024

_log = logging.getLogger("incarnate")


class Writing(NamedTuple):
    """How a store writes: does every commit reach the disk, how long to wait, when to begin a new segment."""

    fully: bool
    busy_seconds: float
    segment_bytes: int
    touch: Callable[[], None]
    """Called when something was written."""
    look: Callable[[], None]
    """Called when a journal was opened to be written to: its folder may be another than before."""


class JsonlWriter:
    """The one that adds to a journal in this process: one call at a time, whatever thread it comes from."""

    def __init__(self, journal: Journal, writing: Writing) -> None:
        self.journal = journal
        self.used = True
        """Set by whoever takes it, for the store to see whether anybody still does."""
        self._writing = writing
        self._pid = os.getpid()
        self._mutex = threading.RLock()  # knows its owner: a signal handler may come in at any line
        self._lock_file: Handle | None = None
        self._tail: Tail | None = None  # of the segment that is written to
        self._alone: JsonlLog | None = None  # the log as it was last seen, where an event may be added to it at once
        self._ragged = False  # whether what a failed write left could not be cut off
        self._unsure: Place | None = None  # where that begins of which a failed sync left nobody sure
        self._synced: Place | None = None  # the end of the last commit that has reached the disk

    def transact(self, decides: Sequence[Decide], now_ms: int) -> Decision:
        """Run each of `decides` up to the first refusal; all that they commit reaches the disk at once.

        See `Store.transact` and `Store.transact_all`.
        """

        def work(seen: Seen | None) -> Decision:
            self._alone = None
            owed = False
            decision: Decision | None = None
            for decide in decides:
                with self.journal.lock:
                    log = JsonlLog(self.journal, seen)
                decision = decide(log)
                change = decision.change
                if change is not None:
                    owed = owed or self._writing.fully or change.durable
                    bodies = bodies_of(change, log.head, now_ms)
                    seen = self._commit(seen, bodies, now_ms, alone=len(bodies) == len(decides) == 1)
                elif decision.error is None:
                    owed = True  # what is acknowledged may rest on what another did not wait for
                if decision.error is not None:
                    break
            if owed:
                self._reach_disk(seen)
            self.journal.save_index()
            self._remember(seen)
            assert decision is not None, "something was to be decided"
            return decision

        return self.exclusive(work)

    def _remember(self, seen: Seen | None) -> None:
        """Make ready for `append_alone`."""
        if seen is not None and seen.whole and seen.fold.grows and not seen.place.ended:
            self._writable(seen)
            with self.journal.lock:
                self._alone = JsonlLog(self.journal, seen)

    def append_alone(self, decide: Decide) -> Decision | None:
        """Decide on the journal as it was last seen, if it is still the same, and write if one event comes of it.

        It does what `transact` does, in a third of the time. None, with nothing written, in every other case.
        """
        self._refuse_reentry()
        with self._mutex:
            log, lock, tail = self._alone, self._lock_file, self._tail
            if log is None or lock is None or tail is None:
                return None
            locked = True
            try:
                try:
                    fcntl.flock(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return self._append_alone(log, lock, tail, decide)
                finally:
                    lock.unlock()
                    locked = False
            except BlockingIOError:
                return None
            except OSError as error:
                raise failed(error, self.journal.folder) from error
            finally:
                if locked:  # an interrupt fell into the first one
                    lock.unlock()

    def _append_alone(self, log: JsonlLog, lock: Handle, tail: Tail, decide: Decide) -> Decision | None:
        seen = log.seen
        if seen is None or not seen.whole or self._unsure is not None:
            return None
        before = seen.place
        size = tail.size_if_ends_at(before.byte, lock)
        # What is seen moves on when somebody reads: then it knows of a take-over which the log from before does not.
        if size is None or before != log.place:
            self._alone = None  # until `transact` has looked at everything
            return None
        decision = decide(log)
        change = decision.change
        line = None if change is None else lone_event(change, before.crc)
        if change is None or line is None or before.byte + len(line[0]) > self._writing.segment_bytes:
            return None
        self._check_process()
        data, crc = line
        self._write(seen, tail, data, size, alone=True)
        with self.journal.lock:
            seen.add_event(change.offset, change.at_ms, before, len(data), crc)
        self._writing.touch()
        if self._writing.fully or change.durable:
            self._sync(seen, tail)
        log.follow(decision.head)
        if seen.grown > INDEX_AFTER_BYTES:
            self.journal.save_index()
        return decision

    def exclusive(self, work: Callable[[Seen | None], T]) -> T:
        """Do `work` on the journal as it is while nobody else may write to it.

        Raises:
            StoreBusyError, StoreFileError, LogCorruptionError: nothing was done.
            ReentrantCallError: this thread is in the middle of it.
        """
        self._refuse_reentry()
        with self._mutex:
            try:
                try:
                    self._acquire()
                    return work(self._mended())
                finally:
                    self._release()
            except OSError as error:
                raise failed(error, self.journal.folder) from error
            finally:
                self._release()  # an interrupt may have fallen into the first one

    def _refuse_reentry(self) -> None:
        if self._mutex._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - threading.Condition uses it too
            raise ReentrantCallError("a store")

    def _acquire(self) -> None:
        """Lock the activation.

        Polling, with random sleeps of at most a millisecond: whoever waits in the system's queue is starved by one that
        locks again at once.
        """
        deadline = time.monotonic() + self._writing.busy_seconds
        while not self._try_to_lock():
            if time.monotonic() >= deadline:
                seconds = f"{self._writing.busy_seconds:g} seconds"
                raise StoreBusyError(f"{self.journal.folder} was locked by another process for {seconds}")
            time.sleep(random.random() / 1000)

    def _try_to_lock(self) -> bool:
        if self._lock_file is None:
            if not self.journal.was_there:
                self.journal.folder.mkdir(mode=0o700, exist_ok=True)
            try:
                self._lock_file = LockFile(self.journal.folder / "lock")
            except FileNotFoundError:
                raise displaced(self.journal.folder, "removed") from None
            self._writing.look()
        if not self._lock_file.lock():
            return False
        if self._lock_file.is_in_place():
            return True
        self._lock_file = None  # somebody removed or renamed it: a lock on it keeps nobody out
        return False

    def _release(self) -> None:
        if self._lock_file is not None:
            self._lock_file.unlock()

    def _mended(self) -> Seen | None:
        """What is there, when a torn tail was cut off and what a sync may have lost was written again."""
        seen = self.journal.look()
        if seen is not None and seen.torn:
            self._cut_torn(seen)
        if seen is not None and self._unsure is not None:
            self._write_again(seen, self._unsure)
        self._ragged = False
        return seen

    def _cut_torn(self, seen: Seen) -> None:
        path, byte = seen.file.path, seen.place.byte
        if not self._ragged:
            torn = read_at(seen.file.fd, byte, byte + seen.torn).rstrip(PADDING)
            saved = save_beside(path, byte, torn)
            _log.warning("%s: cut %d torn bytes at byte %d; they are in %s", path, len(torn), byte, saved)
        tail = self._writable(seen)
        tail.cut(byte)
        data_to_disk(tail.fd)
        seen.torn = 0

    def _write_again(self, seen: Seen, start: Place) -> None:
        """Write what a failed sync left unsure once more, from what can be read of it.

        The system may have dropped the pages and call them clean: to sync them again would only say that all is well.
        """
        first = start.byte if start.segment == seen.place.segment else 0
        data = read_at(seen.file.fd, first, seen.place.byte)
        file = Handle(seen.file.path, os.O_WRONLY)
        os.lseek(file.fd, first, os.SEEK_SET)
        write_all(file.fd, data)
        data_to_disk(file.fd)
        folder_to_disk(self.journal.folder)
        self._unsure = None

    def _commit(self, seen: Seen | None, bodies: Sequence[bytes], now_ms: int, *, alone: bool) -> Seen | None:
        """Add lines, all or none, in a new segment where the last one is full; what is there then.

        Raises:
            StoreFileError: nothing was written.
            OutcomeUnknownError: they may have been.
        """
        if not bodies:
            return seen
        self._check_process()
        if seen is None:
            folder_to_disk(self.journal.folder.parent)
            self.begin(1, now_ms, bodies, begins=True)
            return self.journal.look()
        data, _ = seal(bodies, seen.place.crc)
        limit = self._writing.segment_bytes
        if seen.place.ended or (seen.place.byte + len(data) > limit and seen.place.byte > limit // 2):
            self.end(seen)
            self.begin(seen.place.segment + 1, seen.fold.created_ms, bodies)
        else:
            self._append(seen, data, alone=alone)
        return seen if seen.whole else self.journal.look()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:  # forked since the lock was taken, which it shares with its parent
            raise ForkedError("the process was forked while this store was writing")

    def end(self, seen: Seen) -> None:
        """End the segment that is written to, durably: whoever writes next begins another."""
        if not seen.place.ended:
            data, _ = seal([next_body(seen.place.segment + 1)], seen.place.crc)
            self._append(seen, data)
        self._reach_disk(seen)

    def create(self, created_ms: int, bodies: Iterable[bytes]) -> None:
        """Make the journal of many lines, all or none, without holding all of them in memory."""
        folder_to_disk(self.journal.folder.parent)
        first, crc = self._header(1, created_ms, begins=True)
        self._make(1, chain((first,), seal_each(bodies, crc)))

    def begin(self, number: int, created_ms: int, bodies: Sequence[bytes], *, begins: bool = False) -> None:
        """Begin a segment with `bodies` as one commit, durably; with `begins`, no older one counts any more."""
        first, crc = self._header(number, created_ms, begins=begins)
        self._make(number, (first, seal(bodies, crc)[0]))

    def _header(self, number: int, created_ms: int, *, begins: bool) -> tuple[bytes, int]:
        header = header_body(self.journal.key, number, secrets.token_hex(8), created_ms, begins=begins)
        return seal((header,), 0)

    def _make(self, number: int, lines: Iterable[bytes]) -> None:
        try:
            make_segment(self.journal.folder / SegmentName(number).file, lines)
            seen = self.journal.look()
            if seen is not None:
                seen.unsynced, self._synced = False, seen.place
        finally:
            self._writing.touch()

    def _append(self, seen: Seen, data: bytes, *, alone: bool = False) -> None:
        before = seen.place
        self._write(seen, self._writable(seen), data, None, alone=alone)
        self.journal.written(data, before)
        self._writing.touch()

    def _write(self, seen: Seen, tail: Tail, data: bytes, size: int | None, *, alone: bool) -> None:
        byte = seen.place.byte
        if alone and self._writing.fully and seen.unsynced:
            self._sync(seen, tail)
        seen.unsynced = True
        try:
            tail.write(data, byte, size, alone=alone)
        except OSError as error:
            self._ragged = True
            with suppress(OSError):
                tail.cut(byte)
                self._ragged = False
            raise failed(error, tail.path) from error

    def _reach_disk(self, seen: Seen | None) -> None:
        if seen is not None and seen.unsynced:
            self._sync(seen, self._writable(seen))

    def _sync(self, seen: Seen, tail: Tail) -> None:
        try:
            data_to_disk(tail.fd)
        except OSError as error:
            self._unsure = self._synced or Place(seen.place.segment, 0, 0, ended=False)
            raise OutcomeUnknownError(f"{tail.path}: the sync failed ({error.strerror or error})") from error
        seen.unsynced, self._synced = False, seen.place

    def _writable(self, seen: Seen) -> Tail:
        if self._tail is None or self._tail.path != seen.file.path or not os.fstat(self._tail.fd).st_nlink:
            self._tail = Tail(seen.file.path, pads=self._writing.fully)
        return self._tail

    def close(self) -> None:
        """Cut off the spaces at the end, unless another process is writing; save the index."""
        if self._tail is None or self._mutex._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - as above
            return  # nothing was written, or a signal handler closes the store in the middle of a write
        with self._mutex, suppress(OSError, IncarnateError):
            try:
                seen = self.journal.look() if self._try_to_lock() else None
                if seen is not None and not seen.torn and not seen.place.ended:
                    self._writable(seen).cut(seen.place.byte)
            finally:
                self._release()
        self.journal.save_index(at_least=_INDEX_AT_CLOSE)
