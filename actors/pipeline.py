"""Appends in flight: events that a session sends on without waiting for each.

Whoever waits for one of them sends what waits himself, where he may: a thread that did it for him would have to be
woken, and two that run Python in turns lose more time to each other than a commit takes. What nobody waits for is
sent by a thread of the runtime, a moment later.
"""

from __future__ import annotations

import functools
import logging
import os
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from incarnate.actors.backlog import Backlog, Waiting
from incarnate.actors.crews import Errand
from incarnate.actors.logs import log
from incarnate.actors.runtime import Deferred
from incarnate.domain.codec import EncodedEvent, encode_event
from incarnate.domain.errors import (
    ClosedError,
    ForkedError,
    OutcomeUnknownError,
    ReentrantCallError,
    UnencodableEventError,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from incarnate.actors.runtime import Runtime
    from incarnate.domain.events import AppendedEvent, Opaque, SessionEvent

__all__ = ["Pipeline"]

_MANY = 256
"""So many are sent on at once, while others are added: they share a commit well enough."""

_SECONDS_A_TURN = 0.02
"""How long a session has a thread of the runtime before it goes to the end of the line: they are few, and who adds
without end would keep it for ever."""

_ORPHAN_SECONDS = 0.05
"""How long a waiting call takes to notice that whoever should have woken it was interrupted."""


class Pipeline(Deferred):
    """Sends events in the order in which they were added, those that wait together in one commit.

    If one fails, all after it fail with the same error, so the log stays gap-free: also those added later, until
    `settle` has told of it.
    """

    def __init__(self, send: Callable[[Sequence[EncodedEvent]], Sequence[AppendedEvent]], runtime: Runtime) -> None:
        self._send = send
        self._runtime = runtime
        self._changed = runtime.condition()  # told to whoever waits
        self._backlog = Backlog()
        self._told = 0  # the number of the last whose sender has his answer
        self._runner = runtime.lock()  # held by whoever sends; a lock, so that no interrupt can leave it taken
        self._runner_thread = 0
        self._errand: Errand | None = None  # the run that was asked for and has not begun
        self._calls_back = False
        self._helper = 0  # the thread that sends because it waits
        self._late: deque[Callable[[], object]] = deque()  # callbacks that are not for a helper to call
        self._pid = os.getpid()
        self.begun = 0

    def add(self, event: SessionEvent | Opaque) -> Future[AppendedEvent]:
        """Send `event` after all that were added before. Waits while 4,096 of them, or 64 MiB, are in flight.

        Raises:
            ClosedError: the system was closed; the event is not sent.
            ReentrantCallError: called by a future's callback while 4,096 are in flight.
            RuntimeError: there is no thread to be had; the event is not sent.
        """
        encoded: EncodedEvent | UnencodableEventError
        try:
            encoded = encode_event(event)
            size = len(encoded.payload)
        except UnencodableEventError as error:
            encoded, size = error, 0
        future: Future[AppendedEvent] = self._runtime.future(self)
        backlog = self._backlog
        if not backlog.has_room:
            self._wait(lambda: backlog.has_room or backlog.error is not None)
        one = backlog.add(encoded, size, future)
        if one is not None:
            self._have_sent(one)
        return future

    def _have_sent(self, one: Waiting) -> None:
        try:
            if len(self._backlog.waiting) >= _MANY:
                self._hurry()
            else:
                self._runtime.linger(self)
        except (ClosedError, RuntimeError) as error:
            if self._backlog.take_back(one):  # those before it are looked after already: only this one came too late
                one.future.set_exception(error)
                raise

    @property
    def idle(self) -> bool:
        """Whether there is something to do and nobody does it, nor is about to."""
        if not self._has_work or self._runner.locked():
            return False
        errand = self._errand  # after the lock: who lets go of that has sent for another, or is about to look again
        return errand is None or not errand.sent

    @property
    def _has_work(self) -> bool:
        return bool(self._backlog.waiting or self._late)

    def hurry(self) -> None:
        """Have what waits sent at once, by a thread of the runtime.

        Raises:
            ClosedError: the system was closed; whoever waits is told.
            RuntimeError: there is no further thread to be had.
        """
        if self.idle:
            try:
                self._submit()
            except ClosedError as error:
                self._fail([], error)
                raise

    def _submit(self) -> None:
        self._errand = errand = Errand(self.run)
        self._runtime.submit(errand)
        errand.sent = True

    def _hurry(self) -> None:
        try:
            self.hurry()
        except RuntimeError:  # no further thread: the one that looks after it does it
            self._runtime.linger(self)

    def awaited(self, future: Future[AppendedEvent], *, forever: bool) -> None:
        """Have what waits sent at once, on this thread where that may be: somebody is about to wait for `future`.

        Raises:
            ClosedError: the system was closed.
            ForkedError: it is a forked child's copy, to which no answer comes.
            ReentrantCallError: called by a future's callback, which runs before what follows it is sent.
        """
        if os.getpid() != self._pid:
            raise ForkedError("the process was forked after this system was opened")
        self._check_reentry()
        if forever and self._may_help:
            self._help(future.done)
        self._hurry()  # where others wait too

    def called_back(self) -> None:
        """As `hurry`: what is done will call somebody back, from now on always on a thread of the runtime.

        Whoever waits might hold a lock that the callback takes.
        """
        self._calls_back = True
        self._hurry()

    def call(self, callback: Callable[[Future[Any]], object], future: Future[Any]) -> None:
        """Call `callback`; on a thread of the runtime where this one only helps, and began before it was to call."""
        if self._helper == self._runtime.current():
            self._late.append(functools.partial(callback, future))
        else:
            callback(future)

    @property
    def _may_help(self) -> bool:
        waits = bool(self._backlog.waiting)
        return waits and not self._runner.locked() and not self._calls_back and self._runtime.helps()

    def settle(self) -> Exception | None:
        """Wait until nothing is in flight of what was added before; the error that stopped it, told once.

        What others add meanwhile is not waited for: it need never end.

        Raises:
            ReentrantCallError: called by the callback of a future, which runs before what follows it is sent.
        """
        last = self._backlog.added
        self._wait(lambda: self._has_told(last))
        error, self._backlog.error = self._backlog.error, None
        return error

    @property
    def is_settled(self) -> bool:
        """Whether `settle` would neither wait nor tell of anything."""
        backlog = self._backlog
        told = self._has_told(backlog.added)
        return told and backlog.error is None  # looked at last: it is there before it is told

    def _has_told(self, last: int) -> bool:
        """Whether whoever sent an event up to the one numbered `last` has his answer."""
        return not self._late and (self._told >= last or self._is_empty)

    @property
    def _is_empty(self) -> bool:
        return not self._backlog.waiting and not self._runner.locked()

    def _wait(self, done: Callable[[], bool]) -> None:
        while not done():
            self._check_reentry()
            if self._may_help:
                self._help(done)
            self._hurry()
            with self._changed:
                if not done():
                    self._changed.wait(_ORPHAN_SECONDS)

    def _check_reentry(self) -> None:
        # Who sends needs what `add` holds: a signal handler that came in there would wait for its own thread.
        if self._runner_thread == self._runtime.current() or self._backlog.is_held:
            raise ReentrantCallError("emit_soon")

    def run(self) -> None:
        """Send what waits, for a turn, and see to it that the rest is sent too."""
        passed_on = False
        while not passed_on:
            if self._has_work:
                with self._runner:
                    self._errand = None  # not before: whoever comes between the two would see that nobody is about to
                    passed_on = self._take_turns()
            else:
                self._errand = None  # who adds something from here on asks for another run, or is seen by this one
                if not self._has_work:
                    break
        self._tell_waiting()

    def _take_turns(self) -> bool:
        """Send what waits; whether some is left to another run, because others may need this thread."""
        while True:
            self._send_waiting(_turn(self._runtime.monotonic))
            if not self._has_work:
                return False
            try:
                self._submit()
            except (ClosedError, RuntimeError):  # what waits was added before, and there is this thread
                continue
            return True

    def _help(self, enough: Callable[[], bool]) -> None:
        """Send what waits until it is `enough`; on a thread into which no interrupt falls.

        Where another is at it already it is that one's to do: a lock is not handed on in turn, and whoever waited for
        it might be answered long before he had it.
        """
        runner = cast("threading.Lock", self._runner)  # a simulation has no helpers
        if runner.acquire(blocking=False):
            try:
                self._helper = self._runtime.current()
                self._send_waiting(enough)
            finally:
                self._helper = 0
                runner.release()
            self._tell_waiting()

    def _tell_waiting(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _send_waiting(self, enough: Callable[[], bool]) -> None:
        """Send a batch after the other until it is `enough`; the runner's lock is ours."""
        self._runner_thread = self._runtime.current()
        try:
            more = True
            while more and not enough():
                more = self._send_next()
        finally:
            self._runner_thread = 0

    def _send_next(self) -> bool:
        """Send one batch, after the callbacks of those before it; whether there was one."""
        batch: list[Waiting] = []
        try:
            while self._late and not self._helper:
                _tell(self._late.popleft())
            self._backlog.take_into(batch)
            self.begun += 1
            self._tell_waiting()
            self._send_batch(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must be told
            self._fail(batch, error)
        except BaseException as error:
            self._fail(batch, OutcomeUnknownError(f"the thread that sent this was interrupted ({error!r})"))
            raise
        return bool(batch)

    def _send_batch(self, batch: list[Waiting]) -> None:
        events: list[EncodedEvent] = []
        for one in batch:
            if isinstance(one.encoded, UnencodableEventError):
                raise one.encoded
            events.append(one.encoded)
        for one, appended in zip(batch, self._send(events) if events else (), strict=True):
            _tell(one.future.set_result, appended)
        self._told = batch[-1].number if batch else self._told

    def _fail(self, batch: list[Waiting], error: Exception) -> None:
        batch = [*batch, *self._backlog.fail(error)]
        self._tell_waiting()
        for one in batch:
            _tell(one.future.set_exception, error)
        self._told = batch[-1].number if batch else self._told


def _turn(monotonic: Callable[[], float]) -> Callable[[], bool]:
    """Whether a turn that begins now is over."""
    until = monotonic() + _SECONDS_A_TURN
    return lambda: monotonic() > until


def _tell(answer: Callable[..., object], *what: object) -> None:
    try:
        answer(*what)
    except BaseException as error:  # noqa: BLE001 - of a callback: those after it are owed their answers too
        log(logging.ERROR, "callback_failed", "a callback of emit_soon failed", error=error)
