"""Appends in flight: events that a session sends on without waiting for each.

Whoever waits for one of them sends what waits himself, where he may: a thread that did it for him would have to be
woken, and two that run Python in turns lose more time to each other than a commit takes. What nobody waits for is
sent by a thread of the runtime, a moment later.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from incarnate.actors.logs import log
from incarnate.actors.runtime import Deferred
from incarnate.domain.codec import EncodedEvent, encode_event
from incarnate.domain.errors import ClosedError, ReentrantCallError, UnencodableEventError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from incarnate.actors.runtime import Runtime
    from incarnate.domain.events import AppendedEvent, Opaque, SessionEvent

__all__ = ["Pipeline"]

_MAX_BATCH = 512
_MAX_BATCH_BYTES = 16 * 1024 * 1024
_MAX_WAITING = 4096
_MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Events that may be in flight. Whoever adds one more waits: a fast producer must not fill the memory."""

_MANY = 256
"""So many are sent on at once, while others are added: they share a commit well enough."""

_ORPHAN_SECONDS = 0.05
"""How long a waiting call takes to notice that whoever should have woken it was interrupted."""


class _Waiting(NamedTuple):
    """An event as it was when it was added: what its sender does to it later changes nothing."""

    encoded: EncodedEvent | UnencodableEventError
    future: Future[AppendedEvent]
    size: int


class Pipeline(Deferred):
    """Sends events in the order in which they were added, those that wait together in one commit.

    If one fails, all after it fail with the same error, so the log stays gap-free: also those added later, until
    `settle` has told of it.
    """

    def __init__(self, send: Callable[[Sequence[EncodedEvent]], Sequence[AppendedEvent]], runtime: Runtime) -> None:
        self._send = send
        self._runtime = runtime
        self._changed = runtime.condition()  # told to whoever waits
        self._adding = threading.RLock()  # held for two lines; known to its owner: a signal handler may add, too
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0  # of those that wait
        self._runner = runtime.lock()  # held by whoever sends; a lock, so that no interrupt can leave it taken
        self._runner_thread = 0
        self._error: Exception | None = None
        self._calls_back = False
        self.begun = 0

    def add(self, event: SessionEvent | Opaque) -> Future[AppendedEvent]:
        """Send `event` after all that were added before. Waits while 4,096 of them, or 64 MiB, are in flight.

        Raises:
            ClosedError: the system was closed.
            ReentrantCallError: called by a future's callback while 4,096 are in flight.
        """
        encoded: EncodedEvent | UnencodableEventError
        try:
            encoded = encode_event(event)
            size = len(encoded.payload)
        except UnencodableEventError as error:
            encoded, size = error, 0
        future: Future[AppendedEvent] = self._runtime.future(self)
        if not self._has_room:
            self._wait(lambda: self._has_room or self._error is not None)
        with self._adding:
            failed = self._error
            if failed is None:
                self._waiting.append(_Waiting(encoded, future, size))
                self._bytes += size
        if failed is not None:
            future.set_exception(failed)
        elif len(self._waiting) >= _MANY:
            self.hurry()
        else:
            self._begin(self._runtime.linger, self)
        return future

    @property
    def idle(self) -> bool:
        """Whether something waits and nobody sends it."""
        return bool(self._waiting) and not self._runner.locked()

    def hurry(self) -> None:
        """Have what waits sent at once, by a thread of the runtime.

        Raises:
            ClosedError: the system was closed.
        """
        if self.idle:
            self._begin(self._runtime.submit, self.run)

    def awaited(self, future: Future[AppendedEvent], *, forever: bool) -> None:
        """Have what waits sent at once, on this thread where that may be: somebody is about to wait for `future`.

        Raises:
            ClosedError: the system was closed.
            ReentrantCallError: called by a future's callback, which runs before what follows it is sent.
        """
        self._check_reentry()
        if forever and self._may_help:
            self._run(future.done)
        self.hurry()  # where others wait too

    def called_back(self) -> None:
        """As `hurry`: what is done will call somebody back, from now on always on a thread of the runtime.

        Whoever waits might hold a lock that the callback takes.
        """
        self._calls_back = True
        self.hurry()

    @property
    def _may_help(self) -> bool:
        return self.idle and not self._calls_back and self._runtime.helps()

    @property
    def _has_room(self) -> bool:
        return len(self._waiting) < _MAX_WAITING and self._bytes < _MAX_WAITING_BYTES

    def settle(self) -> Exception | None:
        """Wait until nothing is in flight; the error that stopped it, told once.

        Raises:
            ReentrantCallError: called by the callback of a future, which runs before what follows it is sent.
        """
        self._wait(lambda: not self._waiting and not self._runner.locked())
        error, self._error = self._error, None
        return error

    def _wait(self, done: Callable[[], bool]) -> None:
        while not done():
            self._check_reentry()
            if self._may_help:
                self._run(done)
            self.hurry()
            with self._changed:
                if not done():
                    self._changed.wait(_ORPHAN_SECONDS)

    def _check_reentry(self) -> None:
        # Who sends needs what `add` holds: a signal handler that came in there would wait for its own thread.
        if self._runner_thread == self._runtime.current() or self._adding._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001
            raise ReentrantCallError("emit_soon")

    def _begin(self, how: Callable[[Any], object], what: object) -> None:
        try:
            how(what)
        except ClosedError as error:
            self._fail([], error)
            raise

    def run(self) -> None:
        """Send all that waits."""
        self._run(_never)

    def _run(self, enough: Callable[[], bool]) -> None:
        while self._waiting and not enough():  # looked at again after the lock: what was added meanwhile saw it held
            with self._runner:
                self._runner_thread = self._runtime.current()
                try:
                    self._send_waiting(enough)
                finally:
                    self._runner_thread = 0
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _send_waiting(self, enough: Callable[[], bool]) -> None:
        while not enough() and (batch := self._next()):
            try:
                self._send_batch(batch)
            except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must be told
                self._fail(batch, error)

    def _next(self) -> list[_Waiting]:
        """What may share a commit: a batch ends before an event that the contract refuses, which is one by itself."""
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and len(batch) < _MAX_BATCH and size < _MAX_BATCH_BYTES:
            if batch and isinstance(self._waiting[0].encoded, Exception):
                break
            batch.append(self._waiting.popleft())
            size += batch[-1].size
            if isinstance(batch[-1].encoded, Exception):
                break
        self.begun += 1
        with self._adding:
            self._bytes -= size
        self._tell_waiting()
        return batch

    def _send_batch(self, batch: list[_Waiting]) -> None:
        events: list[EncodedEvent] = []
        for one in batch:
            if isinstance(one.encoded, UnencodableEventError):
                raise one.encoded
            events.append(one.encoded)
        for one, appended in zip(batch, self._send(events), strict=True):
            _tell(one.future.set_result, appended)

    def _fail(self, batch: list[_Waiting], error: Exception) -> None:
        with self._adding:
            self._error = error
            batch = [*batch, *self._waiting]
            self._waiting.clear()
            self._bytes = 0
        self._tell_waiting()
        for one in batch:
            _tell(one.future.set_exception, error)


def _never() -> bool:
    return False


def _tell(answer: Callable[[Any], object], what: object) -> None:
    try:
        answer(what)
    except BaseException as error:  # noqa: BLE001 - of a callback: those after it are owed their answers too
        log(logging.ERROR, "callback_failed", "a callback of emit_soon failed", error=error)
