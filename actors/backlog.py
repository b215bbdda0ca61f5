"""Events that wait to be sent."""

from __future__ import annotations

import threading
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from incarnate.domain.errors import UnencodableEventError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from incarnate.domain.codec import EncodedEvent
    from incarnate.domain.events import AppendedEvent

__all__ = ["Backlog", "Waiting"]

_MAX_BATCH = 512
_MAX_BATCH_BYTES = 16 * 1024 * 1024
_MAX_WAITING = 4096
_MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Events that may be in flight. Whoever adds one more waits: a fast producer must not fill the memory."""


class Waiting(NamedTuple):
    """An event as it was when it was added: what its sender does to it later changes nothing."""

    encoded: EncodedEvent | UnencodableEventError
    future: Future[AppendedEvent]
    size: int
    number: int


class Backlog:
    """Events that wait to be sent, in the order in which they were added; after an `error` none are taken in.

    Its lock is held for a few lines at a time, and known to its owner: a signal handler may add, too.
    """

    __slots__ = ("_bytes", "_lock", "added", "error", "waiting")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.waiting: deque[Waiting] = deque()
        self._bytes = 0
        self.added = 0  # how many so far, which is the number of the last
        self.error: Exception | None = None

    @property
    def has_room(self) -> bool:
        """Whether one more may be added."""
        return len(self.waiting) < _MAX_WAITING and self._bytes < _MAX_WAITING_BYTES

    @property
    def is_held(self) -> bool:
        """Whether the running thread is in the middle of a change: a signal handler came in there."""
        return self._lock._is_owned()  # type: ignore[attr-defined,no-any-return] # noqa: SLF001 - as threading.Condition

    def add(
        self, encoded: EncodedEvent | UnencodableEventError, size: int, future: Future[AppendedEvent]
    ) -> Waiting | None:
        """Take in an event; None after an `error`, which `future` then has."""
        with self._lock:
            self.added += 1
            one = Waiting(encoded, future, size, self.added)
            failed = self.error
            if failed is None:
                self.waiting.append(one)
                self._bytes += size
                return one
        future.set_exception(failed)
        return None

    def take_back(self, one: Waiting) -> bool:
        """Let `one` wait no more; whether it still did."""
        with self._lock:
            for place in range(len(self.waiting) - 1, -1, -1):
                if self.waiting[place] is one:
                    del self.waiting[place]
                    self._bytes -= one.size
                    return True
        return False

    def take_into(self, batch: list[Waiting]) -> None:
        """Take what may share a commit: it ends before an event that the contract refuses, which is one by itself."""
        size = 0
        with self._lock:  # who fails them all must not come in between
            for one in islice(self.waiting, _MAX_BATCH):
                unsound = isinstance(one.encoded, Exception)
                if batch and (unsound or size >= _MAX_BATCH_BYTES):
                    break
                batch.append(one)
                size += one.size
                if unsound:
                    break
            for _ in batch:
                self.waiting.popleft()
            self._bytes -= size

    def fail(self, error: Exception) -> list[Waiting]:
        """Take in no more because of `error`; all that waited, and do no longer."""
        with self._lock:
            self.error = error
            waited = [*self.waiting]
            self.waiting.clear()
            self._bytes = 0
        return waited
