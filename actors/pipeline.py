"""Appends in flight: events that a session sends on without waiting for each."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from incarnate.actors.logs import log
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

_ORPHAN_SECONDS = 0.05
"""How long a waiting call takes to notice that whoever should have woken it was interrupted."""


class _Waiting(NamedTuple):
    """An event as it was when it was added: what its sender does to it later changes nothing."""

    encoded: EncodedEvent | UnencodableEventError
    future: Future[AppendedEvent]

    @property
    def size(self) -> int:
        return len(self.encoded.payload) if isinstance(self.encoded, EncodedEvent) else 0


class Pipeline:
    """Sends events in the order in which they were added, those that wait together in one commit.

    If one fails, all after it fail with the same error, so the log stays gap-free: also those added later, until
    `settle` has told of it.
    """

    def __init__(self, send: Callable[[Sequence[EncodedEvent]], Sequence[AppendedEvent]], runtime: Runtime) -> None:
        self._send = send
        self._runtime = runtime
        self._changed = runtime.condition()
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0  # of those that wait
        self._runner = runtime.lock()  # held by whoever sends; a lock, so that no interrupt can leave it taken
        self._runner_thread = 0
        self._error: Exception | None = None

    def add(self, event: SessionEvent | Opaque) -> Future[AppendedEvent]:
        """Send `event` after all that were added before. Waits while 4,096 of them, or 64 MiB, are in flight.

        Raises:
            ClosedError: the system was closed.
            ReentrantCallError: called by a future's callback while 4,096 are in flight.
        """
        future: Future[AppendedEvent] = self._runtime.future()
        future.set_running_or_notify_cancel()  # what is on its way to the log cannot be called back
        one = _Waiting(_encoded(event), future)
        self._wait(lambda: self._has_room or self._error is not None)
        with self._changed:
            if self._error is not None:
                future.set_exception(self._error)
                return future
            self._waiting.append(one)
            self._bytes += one.size
        if not self._runner.locked():
            self._start()
        return future

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
            if self._runner_thread == self._runtime.current():
                raise ReentrantCallError("emit_soon")
            if self._waiting and not self._runner.locked():  # whoever should have started it was interrupted
                self._start()
            with self._changed:
                if not done():
                    self._changed.wait(_ORPHAN_SECONDS)

    def _start(self) -> None:
        try:
            self._runtime.submit(self._run)
        except ClosedError as error:
            self._fail([], error)
            raise

    def _run(self) -> None:
        while self._waiting:  # looked at again after the lock: what was added meanwhile saw it held
            with self._runner:
                self._runner_thread = self._runtime.current()
                try:
                    self._send_waiting()
                finally:
                    self._runner_thread = 0
        with self._changed:
            self._changed.notify_all()

    def _send_waiting(self) -> None:
        while batch := self._next():
            try:
                self._send_batch(batch)
            except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must be told
                self._fail(batch, error)

    def _next(self) -> list[_Waiting]:
        """What may share a commit: a batch ends before an event that the contract refuses, which is one by itself."""
        batch: list[_Waiting] = []
        size = 0
        with self._changed:
            while self._waiting and len(batch) < _MAX_BATCH and size < _MAX_BATCH_BYTES:
                if batch and isinstance(self._waiting[0].encoded, Exception):
                    break
                batch.append(self._waiting.popleft())
                size += batch[-1].size
                if isinstance(batch[-1].encoded, Exception):
                    break
            self._bytes -= size
            self._changed.notify_all()
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
        with self._changed:
            self._error = error
            batch = [*batch, *self._waiting]
            self._waiting.clear()
            self._bytes = 0
            self._changed.notify_all()
        for one in batch:
            _tell(one.future.set_exception, error)


def _tell(answer: Callable[[Any], object], what: object) -> None:
    try:
        answer(what)
    except BaseException as error:  # noqa: BLE001 - of a callback: those after it are owed their answers too
        log(logging.ERROR, "callback_failed", "a callback of emit_soon failed", error=error)


def _encoded(event: SessionEvent | Opaque) -> EncodedEvent | UnencodableEventError:
    try:
        return encode_event(event)
    except UnencodableEventError as error:
        return error
