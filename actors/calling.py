"""The `calling` dispatcher: an idle actor runs on the thread that asks it, a told one on a small shared pool.

No thread an activation and no thread switch a message: pykka's own actor takes two of them, which costs it all but
a twentieth of the rate (`benchmarks/`). An ask only enqueues; the future's `get` takes the inbox's lock and runs the
messages up to its own, so a caller is answered by itself and no wake-up can be lost.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import pykka
from pykka.messages import _ActorStop

from incarnate.domain.errors import ClosedError, OutcomeUnknownError, ReentrantCallError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pykka._envelope import Envelope  # pykka's documentation names it for new actor types

__all__ = ["CallingActor"]


class _Future(pykka.Future[Any]):
    """An answer; who gets it runs the actor until it is there."""

    __slots__ = ("_arrived", "_error", "_value", "done", "inbox")

    def __init__(self) -> None:
        super().__init__()
        self.done = False
        self.inbox: _Inbox | None = None
        self._value: Any = None
        self._error: BaseException | None = None
        self._arrived: threading.Event | None = None

    def set(self, value: Any = None) -> None:
        self._value = value
        self._settle()

    def set_exception(self, exc_info: Any = None) -> None:
        self._error = (exc_info or sys.exc_info())[1]
        self._settle()

    def _settle(self) -> None:
        self.done = True
        if self._arrived is not None:
            self._arrived.set()

    def get(self, *, timeout: float | None = None) -> Any:
        if self._get_hook is not None:
            return super().get(timeout=timeout)
        if not self.done and self.inbox is not None:
            if timeout is None:
                self.inbox.run_until(self)
            else:
                self._wait(self.inbox, timeout)
        if self._error is not None:
            raise self._error
        return self._value

    def _wait(self, inbox: _Inbox, timeout: float) -> None:
        # A caller with a deadline cannot run the actor itself: nothing could take it back out in time.
        self._arrived = threading.Event()
        inbox.schedule()
        if not self.done and not self._arrived.wait(timeout) and not self.done:
            raise pykka.Timeout(f"{timeout:g} seconds")


class _Inbox:
    """Envelopes in order. Whoever holds the lock is the actor's thread for the moment.

    Always `with lock`, never `lock.acquire()` and `try`: an interrupt can fall between those two and hang every
    thread, but not between entering a `with` and being inside it. `current` is the envelope that was begun: whoever
    finds one on entering knows that an interrupt tore its handler away, and answers it.
    """

    __slots__ = ("_current", "_lock", "_queue", "_scheduled", "actor", "pool")

    def __init__(self) -> None:
        self._queue: deque[Envelope[Any]] = deque()
        self._lock = threading.RLock()
        self._current: Envelope[Any] | None = None
        self._scheduled = False
        self.actor: CallingActor
        self.pool: Executor

    def __len__(self) -> int:
        return len(self._queue)

    def empty(self) -> bool:
        return not self._queue

    def get(self) -> Envelope[Any]:
        return self._queue.popleft()

    def put(self, envelope: Envelope[Any]) -> None:
        future = envelope.reply_to
        if isinstance(future, _Future):
            future.inbox = self
            self._queue.append(envelope)  # run by the future's get
        else:
            self._queue.append(envelope)
            self.schedule()

    def schedule(self) -> None:
        """Have the pool run what is queued.

        Cleared before the queue is drained: a message put after that schedules anew, one put before is drained.
        """
        if not self._scheduled:
            self._scheduled = True
            try:
                self.pool.submit(self._sweep)
            except RuntimeError as error:
                self._scheduled = False
                raise ClosedError(f"{self.actor} was told something after its system was closed") from error

    def _sweep(self) -> None:
        self._scheduled = False
        with self._lock:
            self._run(None)

    def ask(self, ref: _Ref, message: Any) -> Any:
        """The answer to `message`, handled on this thread.

        Where nothing waits it needs no envelope and no future, which are two thirds of an ask's cost: an interrupt
        then tears nobody's message but the caller's own.
        """
        if not self._queue and not self._lock._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - see run_until
            with self._lock:
                if not self._queue and self._current is None:
                    return self.actor.answer(message)
        future: Any = pykka.ActorRef.ask(ref, message, block=False)
        return future.get()

    def run_until(self, future: _Future) -> None:
        """Run messages on this thread until `future` is answered.

        Raises:
            ReentrantCallError: the actor asks itself, directly or through others, and would wait for ever.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - threading.Condition uses it too
            raise ReentrantCallError(f"{self.actor}")
        while not future.done:
            with self._lock:
                self._run(future)

    def _run(self, until: _Future | None) -> None:
        if self._current is not None:
            self._answer_torn(self._current)
        while self._queue and (until is None or not until.done):
            # Looked at, then marked, then taken: an interrupt between any two leaves it to be answered.
            self._current = envelope = self._queue[0]
            self._queue.popleft()
            try:
                self.actor.step(envelope)
            except BaseException as error:
                self._answer_torn(envelope)
                if until is None and not isinstance(error, KeyboardInterrupt):
                    continue
                raise
            self._current = None

    def _answer_torn(self, envelope: Envelope[Any]) -> None:
        self.actor.die()
        reply = envelope.reply_to
        if isinstance(reply, _Future) and not reply.done:
            error = OutcomeUnknownError(f"{self.actor} was interrupted at {type(envelope.message).__name__}")
            reply.set_exception((type(error), error, None))
        if self._queue and self._queue[0] is envelope:
            self._queue.popleft()
        self._current = None


class _Ref(pykka.ActorRef[Any]):
    """A reference whose non-blocking asks are run by the pool, since nobody may ever get their answer."""

    actor_inbox: _Inbox  # pyright: ignore[reportIncompatibleVariableOverride] - a CallingActor's

    def ask(self, message: Any, *, block: bool = True, timeout: float | None = None) -> Any:
        if block and timeout is None:
            return self.actor_inbox.ask(self, message)
        future = super().ask(message, block=False)
        if block:
            return future.get(timeout=timeout)
        if isinstance(future, _Future) and future.inbox is not None:
            future.inbox.schedule()
        return future


class CallingActor(pykka.Actor):
    """Mix-in: runs on its callers' threads. Kept out of pykka's registry, which is a list."""

    actor_inbox: _Inbox  # pyright: ignore[reportIncompatibleVariableOverride] - made below
    runs_on_callers_thread = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._actor_ref = _Ref(self)

    @staticmethod
    def _create_actor_inbox() -> _Inbox:
        return _Inbox()

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return _Future()

    def _start_actor_loop(self) -> None:
        self.actor_inbox.actor = self
        self._actor_loop_setup()

    def answer(self, message: Any) -> Any:
        """Handle one message of the running thread's own.

        Raises:
            pykka.ActorDeadError: the actor has stopped.
        """
        if self.actor_stopped.is_set():
            raise pykka.ActorDeadError(f"{self} stopped before handling the message")
        if isinstance(message, _ActorStop):
            return self._stop()
        return self.on_receive(message)

    def step(self, envelope: Envelope[Any]) -> None:
        """Handle one envelope; what a stopped actor still finds in its inbox is answered, not handled."""
        reply = envelope.reply_to
        try:
            response = self.answer(envelope.message)
        except Exception:  # noqa: BLE001 - whatever it is, it is the sender's answer
            if reply is not None:
                reply.set_exception()
        else:
            if reply is not None:
                reply.set(response)

    def die(self) -> None:
        """Stop now; the next message is for a fresh actor."""
        self.actor_stopped.set()
