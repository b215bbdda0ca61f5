"""Group commit: threads that write at once settle together, one of them doing the work of all."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from incarnate.domain.errors import OutcomeUnknownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.domain.decisions import Decision
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Decide

__all__ = ["CommitGroup", "Entry"]

_MAX_BATCH = 512

_ORPHAN_SECONDS = 0.05
"""How long a waiting call takes to notice that whoever should have woken it was interrupted."""


class Entry:
    """One call that waits to be decided and committed; settled once it has a `decision` or an `error`."""

    __slots__ = ("_gate", "begun", "decide", "decision", "error", "key", "now_ms")

    def __init__(self, key: ActivationKey, decide: Decide, now_ms: int) -> None:
        self.key = key
        self.decide = decide
        self.now_ms = now_ms
        self.decision: Decision | None = None
        self.error: BaseException | None = None
        self.begun = False
        self._gate: threading.Lock | None = None

    @property
    def settled(self) -> bool:
        """Whether there is something to answer."""
        return self.decision is not None or self.error is not None

    def wait(self) -> None:
        """Wait a moment, or until `wake`."""
        gate = self._gate
        if gate is None:
            gate = self._gate = threading.Lock()
            gate.acquire()
        if not self.settled:
            gate.acquire(timeout=_ORPHAN_SECONDS)

    def wake(self) -> None:
        """Have whoever waits look again."""
        if self._gate is not None:
            with suppress(RuntimeError):  # woken already
                self._gate.release()


class CommitGroup:
    """Puts the calls of many threads into batches.

    Who finds nobody leading leads: it takes what waits, settles it, wakes the first that came meanwhile, and goes. So
    nobody serves others without end, and a call alone pays no more than a lock. The lead is a lock held by `with`, so
    no interrupt can lose it; a wake-up that one did lose costs a twentieth of a second.
    """

    def __init__(self) -> None:
        self._lead_lock = threading.Lock()
        self._waiting: deque[Entry] = deque()

    def settle(self, entry: Entry, lead: Callable[[list[Entry]], None]) -> None:
        """Have `entry` settled, by this thread or another. `lead` settles every entry of the batch it is given."""
        if not self._lead_lock.locked():
            self._lead(entry, lead)
            return
        self._waiting.append(entry)
        try:
            while not entry.settled:
                if self._lead_lock.locked():
                    entry.wait()
                else:
                    self._lead(entry, lead)
        finally:
            if not entry.begun:  # interrupted: nobody shall begin it now
                with suppress(ValueError):
                    self._waiting.remove(entry)

    def _lead(self, entry: Entry, lead: Callable[[list[Entry]], None]) -> None:
        with self._lead_lock:
            if entry.settled:
                return
            if entry.begun:
                entry.error = OutcomeUnknownError("the thread that committed for this one was interrupted")
                return
            batch = self._batch(entry)
            try:
                lead(batch)
            except BaseException as error:
                for one in batch:
                    if not one.settled:
                        one.error = _answer(error)
                if not isinstance(error, Exception):
                    raise
            finally:
                for one in batch:
                    one.wake()
        with suppress(IndexError):
            self._waiting[0].wake()

    def _batch(self, entry: Entry) -> list[Entry]:
        """`entry` and what waits with it, in the order in which they came."""
        batch: list[Entry] = []
        while self._waiting and len(batch) < _MAX_BATCH:
            one = self._waiting.popleft()
            one.begun = True
            batch.append(one)
        if not entry.begun:
            entry.begun = True
            batch.append(entry)
            with suppress(ValueError):
                self._waiting.remove(entry)
        return batch


def _answer(error: BaseException) -> BaseException:
    if isinstance(error, Exception):
        return error
    return OutcomeUnknownError(f"the thread that committed for this one was interrupted ({error!r})")
