"""Group commit: threads that write at once settle together, one of them doing the work of all."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from incarnate.domain.decisions import Decision
from incarnate.domain.errors import OutcomeUnknownError, ReentrantCallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Decide

__all__ = ["CommitGroup", "Entry", "Guess"]

_MAX_BATCH = 512

_ORPHAN_SECONDS = 0.05
"""How long a waiting call takes to notice that whoever should have woken it was interrupted."""

_PATIENT_LOOKS = 20
"""How often it looks while somebody commits, before it goes for the lead. That one may have been interrupted so badly
that he only seems to; but where commits take longer than a look and all go for the lead, they share none."""


class Guess(NamedTuple):
    """What a call comes to if the head of its log is still the very object that it was decided on."""

    head: Head
    decision: Decision


class Entry:
    """One call that waits to be decided and committed; settled once it has a `decision` or an `error`."""

    __slots__ = ("_gate", "begun", "decide", "decision", "error", "guess", "key", "now_ms")

    def __init__(self, key: ActivationKey, decide: Decide, now_ms: int, guess: Guess | None = None) -> None:
        self.key = key
        self.decide = decide
        self.now_ms = now_ms
        self.guess = guess
        self.decision: Decision | None = None
        self.error: BaseException | None = None
        self.begun = False
        self._gate: threading.Lock | None = None

    @property
    def settled(self) -> bool:
        """Whether there is something to answer."""
        return self.decision is not None or self.error is not None

    def outcome(self) -> Decision | Exception:
        """What it was settled with."""
        found = self.error or self.decision
        assert isinstance(found, Exception | Decision), "an entry that is settled has one of them"
        return found

    def wait(self) -> bool:
        """Wait a moment, or until `wake`; whether it was that."""
        gate = self._gate
        if gate is None:
            gate = self._gate = threading.Lock()
            gate.acquire()
        return self.settled or gate.acquire(timeout=_ORPHAN_SECONDS)

    def wake(self) -> None:
        """Have whoever waits look again."""
        if self._gate is not None:
            with suppress(RuntimeError):  # woken already
                self._gate.release()


class CommitGroup:
    """Puts the calls of many threads into batches.

    Everyone joins what waits, and whoever is the first of it goes for the lead: it settles all that waits by then, and
    goes. So nobody serves others without end. Nobody else goes for the lead: a lock is handed on to one at a time, and
    64 threads that queued for it to learn that they were settled shared commits of 3 on average.

    The lead is a lock held by `with`, so no interrupt can lose it; a wake-up that one did lose costs a twentieth of a
    second.
    """

    def __init__(self) -> None:
        self.lead = threading.RLock()  # knows its owner: a signal handler may come in at any line
        self.waiting: deque[Entry] = deque()
        self.busy = False  # only a hint: whoever finds it wrong waits a twentieth of a second

    def settle(self, entry: Entry, settle_batch: Callable[[list[Entry]], None]) -> None:
        """Have `entry` settled, by this thread or another. `settle_batch` settles every entry that it is given.

        Raises:
            ReentrantCallError: this thread is in the middle of a commit.
        """
        self.refuse_reentry()
        self.waiting.append(entry)
        try:
            looks = 0
            while not entry.settled:
                if not self._is_first(entry):
                    looks += 1
                    # Where no wake-up came in time, who should have given it was interrupted, or the disk is slow.
                    if entry.wait() or (self.busy and looks % _PATIENT_LOOKS):
                        continue
                with self.lead:
                    if not entry.settled:
                        self.busy = True
                        try:
                            self._settle(entry, settle_batch)
                        finally:
                            self.busy = False
        finally:
            if not entry.settled:  # interrupted: nobody shall begin it now
                with suppress(ValueError):
                    self.waiting.remove(entry)
            if self.waiting:
                self.wake_first()

    def settle_all(self, entries: list[Entry], settle_batch: Callable[[list[Entry]], None]) -> None:
        """Have all of `entries` settled, by this thread, as many together as may be.

        Raises:
            ReentrantCallError: this thread is in the middle of a commit.
        """
        self.refuse_reentry()
        for start in range(0, len(entries), _MAX_BATCH):
            batch = entries[start : start + _MAX_BATCH]
            try:
                with self.lead:
                    self.busy = True
                    try:
                        settle_batch(batch)
                    finally:
                        self.busy = False
            except Exception as error:  # noqa: BLE001 - the batches before it are committed, and are told so
                _settle_with(error, batch)
            finally:
                if self.waiting:
                    self.wake_first()

    def refuse_reentry(self) -> None:
        """Refuse a call by a signal handler or a subscriber of a commit: it would be part of that.

        Raises:
            ReentrantCallError: this thread is in the middle of a commit.
        """
        if self.lead._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - threading.Condition uses it too
            raise ReentrantCallError("a store")

    def _is_first(self, entry: Entry) -> bool:
        try:
            return self.waiting[0] is entry
        except IndexError:  # whoever leads has taken them all
            return False

    def wake_first(self) -> None:
        """Have the first that waits look again; it leads what came with it."""
        with suppress(IndexError):  # another was first to take it
            self.waiting[0].wake()

    def _settle(self, entry: Entry, settle_batch: Callable[[list[Entry]], None]) -> None:
        """Settle `entry` and what waits with it; the lead is ours."""
        if entry.begun:
            with suppress(ValueError):  # what is answered as unknown shall not be begun after all
                self.waiting.remove(entry)
            entry.error = OutcomeUnknownError("the thread that committed for this one was interrupted")
            return
        batch = self._batch()
        try:
            settle_batch(batch)
        except BaseException as error:
            _settle_with(error, batch)
            if not isinstance(error, Exception):
                raise
        finally:
            for one in batch:
                one.wake()

    def _batch(self) -> list[Entry]:
        """What waits, in the order in which it came."""
        batch: list[Entry] = []
        while self.waiting and len(batch) < _MAX_BATCH:
            one = self.waiting[0]  # taken out last: where an interrupt falls before that, it is still there or begun
            one.begun = True
            batch.append(one)
            self.waiting.popleft()
        return batch


def _settle_with(error: BaseException, batch: list[Entry]) -> None:
    for one in batch:
        if not one.settled:
            one.error = _answer(error)


def _answer(error: BaseException) -> BaseException:
    if isinstance(error, Exception):
        return error
    return OutcomeUnknownError(f"the thread that committed for this one was interrupted ({error!r})")
