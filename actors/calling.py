"""The `calling` dispatcher: an idle actor runs on the thread that asks it, all else on threads that are shared.

No thread an activation and no thread switch a message: pykka's own actor takes two of them, which costs it all but
a twentieth of the rate (`benchmarks/`). Whoever asks an actor that is idle takes its lock and handles his own message,
and never anybody else's. Where something waits already, or runs, an ask is queued as a tell is, and waits for its
turn while a thread of the runtime handles what is queued, in order: so nobody waits behind a lock, which is unfair,
and nobody serves others.

Two crews of threads serve what is queued. `told` has few: an actor's turn there is short, and then the others have
theirs. `urgent` has as many as there are callers who wait: what somebody waits for must not depend on a thread that
itself waits for him.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import pykka
from pykka._envelope import Envelope  # pykka's documentation names it for new actor types
from pykka.messages import _ActorStop

from incarnate.actors.addresses import Address
from incarnate.actors.answers import Answer
from incarnate.actors.contained import ContainedActor
from incarnate.actors.crews import Errand
from incarnate.actors.logs import log
from incarnate.actors.mailboxes import Mailbox, enter
from incarnate.actors.waits import here, running
from incarnate.domain.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.actors.crews import Crew

__all__ = ["CallingActor", "Crews"]

_MESSAGES_A_TURN = 64
_SECONDS_A_TURN = 0.005
"""How long an actor has a thread of the `told` crew before it goes to the end of the line."""

_CALLS_A_THREAD = 32
"""Actors that may ask each other on one thread. Deeper asks go to a fresh one: Python's stack ends at about 100."""

_making = threading.RLock()
_DIRECT: Envelope[Any] = Envelope(None)
"""What is begun while a caller handles his own message, which has no envelope."""


class Crews(NamedTuple):
    """The threads of a runtime."""

    told: Crew
    urgent: Crew


class CallingMailbox(Mailbox):
    """Whoever holds the lock is the actor's thread for the moment.

    Always `with lock`, never `lock.acquire()` and `try`, but on a crew's threads: an interrupt can fall between those
    two and hang every thread, but not between entering a `with` and being inside it. `begun` is the envelope whose
    handler runs: whoever finds one on entering knows that an interrupt tore it away, and answers it.
    """

    __slots__ = ("_errand", "_urgent", "begun", "crews", "lock", "queue")

    def __init__(self) -> None:
        super().__init__()
        self.queue: deque[Envelope[Any]] | Sequence[Envelope[Any]] = ()  # a deque is 760 bytes, and most need none
        self.lock = threading.RLock()
        self.begun: Envelope[Any] | None = None
        self.crews: Crews
        self._errand: Errand | None = None
        self._urgent: Errand | None = None

    def __len__(self) -> int:
        return len(self.queue)

    def get(self) -> Envelope[Any]:
        return self._made().popleft()

    def held(self) -> bool:
        return self.lock._is_owned()  # type: ignore[attr-defined,no-any-return] # noqa: SLF001 - as threading.Condition

    def handle_soon(self) -> None:
        errand = self._errand
        if errand is None or not errand.sent:
            self._errand = errand = Errand(self._take_turn)
            try:
                self.crews.told.submit(errand)
                errand.sent = True
            except RuntimeError as error:  # not sent, so the next message tries again
                log(logging.ERROR, "failed", "no thread for %s", self.actor, error=error)

    def serve(self) -> None:
        errand = self._urgent
        if errand is None or not errand.sent:
            self._urgent = errand = Errand(self._run_queued)
            try:
                self.crews.urgent.submit(errand)
                errand.sent = True
            except (ClosedError, RuntimeError):  # the system was closed, or there is no further thread to be had
                interrupt = self._run_queued()
                if interrupt is not None:
                    raise interrupt from None

    def direct(self, message: Any) -> Any:
        """Handle a caller's own message; he holds the lock, and nothing was begun or waits."""
        self.begun = _DIRECT
        try:
            answer = self.actor.answer(message)
        except Exception:
            self.begun = None
            raise
        self.begun = None  # not after an interrupt: it may have torn the handler, and whoever comes next sees to that
        return answer

    def _made(self) -> deque[Envelope[Any]]:
        if not isinstance(self.queue, deque):
            with _making:
                if not isinstance(self.queue, deque):
                    self.queue = deque()
        return self.queue

    def _take_in(self, envelope: Envelope[Any]) -> None:
        self._made().append(envelope)

    def _take_turn(self) -> None:
        """A short run, on a thread of the `told` crew, which must not wait behind the lock: others need it."""
        more = True
        while more:
            if not self.lock.acquire(blocking=False):
                self._errand = None
                self.serve()
                return
            here.stack.append(self)
            try:
                self._errand = None  # what is put from here on sends for another turn
                self._run(_MESSAGES_A_TURN, time.monotonic() + _SECONDS_A_TURN)
            finally:
                here.stack.clear()
                self.lock.release()
            more = bool(self.queue) and not self._has_sent()

    def _has_sent(self) -> bool:
        try:
            self.handle_soon()
        except ClosedError:  # what is queued was put before
            return False
        return True

    def _run_queued(self) -> KeyboardInterrupt | None:
        """Handle what is queued by now. Whoever comes later sends for another run, since `_urgent` is cleared first."""
        stack = running()
        depth, outer = enter(stack, self), here.depth
        try:
            with self.lock:
                self._urgent = None
                return self._run(len(self.queue))
        finally:
            here.depth = outer
            del stack[depth:]

    def _run(self, most: int, until: float = 0.0) -> KeyboardInterrupt | None:
        """Handle `most` messages, fewer when it is later than `until`; an interrupt that fell in one of them."""
        interrupt: KeyboardInterrupt | None = None
        if self.begun is not None:
            self._answer_torn(self.begun)
        queue = self._made()
        while queue and most > 0:
            # Looked at, then marked, then taken: an interrupt between any two leaves it to be answered.
            self.begun = envelope = queue[0]
            queue.popleft()
            if self._room:
                self._made_room()
            interrupt = self.handle(envelope) or interrupt
            self.begun = None
            most -= 1
            if until and time.monotonic() > until:
                break
        return interrupt

    def _answer_torn(self, envelope: Envelope[Any]) -> None:
        error = self.actor.die(KeyboardInterrupt(), type(envelope.message))
        if envelope.reply_to is not None and envelope is not _DIRECT:
            envelope.reply_to.set_exception((type(error), error, None))
        if self.queue and self.queue[0] is envelope:
            self._made().popleft()
        self.begun = None


class CallingAddress(Address):
    """An address that a caller may answer himself."""

    actor_inbox: CallingMailbox  # pyright: ignore[reportIncompatibleVariableOverride] - a CallingActor's

    def ask(self, message: Any, *, block: bool = True, timeout: float | None = None, wait: float | None = 0.0) -> Any:
        """As `Address.ask`; on this thread where nothing waits or runs there.

        That takes no envelope and no future, which are two thirds of an ask's cost, and an interrupt then tears
        nobody's message but the caller's own.
        """
        mailbox = self.actor_inbox
        stack = here.stack
        if stack or mailbox.begun is not None or mailbox.queue or timeout is not None or not block:
            return self._ask_otherwise(message, block, timeout, wait)
        stack.append(mailbox)
        try:
            with mailbox.lock:
                if mailbox.begun is None and not mailbox.queue:  # type: ignore[redundant-expr] # other threads
                    return mailbox.direct(message)
        finally:
            stack.clear()
        return super().ask(message, wait=wait)

    def hold(self) -> bool:
        """As `Address.hold`, never waiting for another. Not on the main thread: an interrupt may fall in between."""
        mailbox = self.actor_inbox
        if not mailbox.lock.acquire(blocking=False):
            return False
        held = False
        try:
            if mailbox.begun is None and not mailbox.queue and not self.actor_stopped.is_set():
                here.stack.append(mailbox)
                mailbox.begun = _DIRECT
                held = True
        finally:
            if not held:
                mailbox.lock.release()
        return held

    def let_go(self) -> None:
        """As `Address.let_go`."""
        mailbox = self.actor_inbox
        try:
            here.stack.remove(mailbox)
        finally:
            mailbox.begun = None
            mailbox.lock.release()

    def stop(self, *, block: bool = True, timeout: float | None = None) -> Any:
        """As `Address.stop`; at once where nothing waits or runs there."""
        mailbox = self.actor_inbox
        if here.stack or mailbox.begun is not None or mailbox.queue:
            return super().stop(block=block, timeout=timeout)
        answer = Answer()
        try:
            self.ask(_ActorStop())
            answer.set(True)
        except pykka.ActorDeadError:
            answer.set(False)
        return answer.result() if block else answer

    def _ask_otherwise(self, message: Any, block: bool, timeout: float | None, wait: float | None) -> Any:  # noqa: FBT001
        mailbox = self.actor_inbox
        stack = running()
        if timeout is not None or not block or len(stack) >= _CALLS_A_THREAD:
            return super().ask(message, block=block, timeout=timeout, wait=wait)
        depth = enter(stack, mailbox)
        try:
            mailbox.check_wait(stack)
            if mailbox.begun is None and not mailbox.queue:
                with mailbox.lock:
                    if mailbox.begun is None and not mailbox.queue:  # type: ignore[redundant-expr] # other threads
                        return mailbox.direct(message)
        finally:
            del stack[depth:]
        return super().ask(message, wait=wait)


class CallingActor(ContainedActor):
    """Mix-in: runs on its callers' threads. Kept out of pykka's registry, which is a list."""

    actor_inbox: CallingMailbox  # pyright: ignore[reportIncompatibleVariableOverride] - made below
    runs_on_callers_thread = True

    @staticmethod
    def _create_actor_inbox() -> CallingMailbox:
        return CallingMailbox()

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return Answer()

    def _create_actor_ref(self) -> pykka.ActorRef[Any]:
        self.actor_inbox.actor = self
        return CallingAddress(self)

    def begin(self, crews: Crews, limit: int) -> None:
        """Take messages, at most `limit` that wait."""
        self.actor_inbox.crews = crews
        self.actor_inbox.limit = limit
        self._actor_loop_setup()

    def _start_actor_loop(self) -> None:
        raise NotImplementedError("it is started by its runtime")
