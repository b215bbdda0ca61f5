"""What waits for an actor: in order, and not without bound."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import pykka
from pykka.messages import _ActorStop

from incarnate.actors.logs import log
from incarnate.actors.waits import closes_circle, here, running
from incarnate.domain.errors import IncarnateError, MailboxFullError, ReentrantCallError

if TYPE_CHECKING:
    from pykka._envelope import Envelope  # pykka's documentation names it for new actor types

    from incarnate.actors.contained import ContainedActor
    from incarnate.actors.waits import Entry, Stack

__all__ = ["DEFAULT_MAX_MAILBOX", "Mailbox", "Pending", "enter"]

DEFAULT_MAX_MAILBOX = 10_000

_FIRST_LOOK = 0.05
_LAST_LOOK = 1.0
"""How long whoever waits takes to look again by itself. Nothing depends on it but what an interrupt tore away from
whoever should have gone on: it costs twenty wake-ups in the first second and one in each after it."""


class Pending(Protocol):
    """An answer that is waited for."""

    done: bool

    def held(self) -> bool:
        """As `Entry`."""
        ...

    def wanted(self) -> Mailbox | None:
        """As `Entry`."""
        ...

    def arrives(self, timeout: float) -> bool:
        """Whether it is there within `timeout` seconds."""
        ...


class Mailbox:
    """The messages that wait for one actor. A dispatcher says who takes them out."""

    __slots__ = ("_room", "_stops", "actor", "holder", "limit")

    def __init__(self) -> None:
        self.actor: ContainedActor
        self.limit: int = sys.maxsize
        self.holder: Stack | None = None
        self._room: deque[threading.Lock] | None = None
        self._stops = 0  # requests to stop that wait; the first that is handled is the end

    def __len__(self) -> int:
        raise NotImplementedError

    def empty(self) -> bool:
        """Whether nothing waits."""
        return not len(self)

    def get(self) -> Envelope[Any]:
        """Take out the next message."""
        raise NotImplementedError

    def put(self, envelope: Envelope[Any], wait: float | None = 0.0) -> None:
        """Take in a message; where there are `limit` already, wait for room, at most for `wait` seconds.

        A request to stop is never refused. Senders that look at the same moment may go over the limit by as many.

        Raises:
            MailboxFullError: there was no room in time, or it would be waited for inside a call that has to end first.
        """
        if type(envelope.message) is _ActorStop:
            self._stops += 1
        elif len(self) >= self.limit:
            self._await_room(wait)
        self._take_in(envelope)

    def handle_soon(self) -> None:
        """See to it that what was put is handled: its sender does not wait for it."""

    def serve(self) -> None:
        """See to it that what was put is handled, by a thread that is there for it: somebody waits."""

    def handle(self, envelope: Envelope[Any]) -> KeyboardInterrupt | None:
        """Handle one message and give its sender the answer, whatever comes of it; an interrupt that fell in it.

        What a stopped actor still finds is answered, not handled.
        """
        reply = envelope.reply_to
        here.depth = getattr(reply, "depth", 0)
        try:
            response = self.actor.answer(envelope.message)
        except BaseException as error:  # noqa: BLE001 - whatever it is, somebody waits
            failure = self._answer_to(error, envelope)
            if reply is not None:
                reply.set_exception((type(failure), failure, failure.__traceback__))
            elif not isinstance(error, pykka.ActorDeadError):
                log(logging.ERROR, "failed", "%s was told %s", self.actor, type(envelope.message).__name__, error=error)
            return error if isinstance(error, KeyboardInterrupt) else None
        if reply is not None:
            reply.set(response)
        return None

    def _answer_to(self, error: BaseException, envelope: Envelope[Any]) -> BaseException:
        """What the sender gets: what the actor raised, or a failure where it could not even contain that."""
        if isinstance(error, IncarnateError | pykka.ActorDeadError):
            return error
        try:
            return self.actor.die(error, type(envelope.message))
        except Exception:  # noqa: BLE001 - no memory or no stack left
            return error

    def held(self) -> bool:
        """Whether the running thread handles this actor's messages."""
        raise NotImplementedError

    def wanted(self) -> Mailbox:
        """Itself."""
        return self

    def check_wait(self, stack: Stack) -> None:
        """Refuse to wait for this mailbox, which is on top of `stack`, where that would be for ever.

        Raises:
            ReentrantCallError: the actor asks itself, directly or through others, on this thread or on several.
        """
        if self.held() or (len(stack) > 1 and closes_circle(stack, self)):
            raise ReentrantCallError(str(self.actor))

    def wait_for(self, answer: Pending, timeout: float | None) -> None:
        """Wait until `answer`, which is due from here, has come.

        Raises:
            pykka.Timeout: it did not within `timeout` seconds.
            ReentrantCallError: see `check_wait`.
        """
        stack = running()
        depth = enter(stack, answer)
        try:
            self.check_wait(stack)
            self.park(answer, timeout)
        finally:
            del stack[depth:]

    def park(self, answer: Pending, timeout: float | None) -> None:
        """Wait until `answer` has come, without a look at who waits for whom.

        Raises:
            pykka.Timeout: it did not within `timeout` seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        look = _FIRST_LOOK
        while not answer.done:
            self.serve()
            left = look if until is None else min(look, until - time.monotonic())
            if not answer.arrives(max(0.0, left)) and until is not None and time.monotonic() >= until:
                raise pykka.Timeout(f"{timeout:g} seconds")
            look = min(_LAST_LOOK, 2 * look)

    def _take_in(self, envelope: Envelope[Any]) -> None:
        raise NotImplementedError

    def _is_full(self) -> bool:
        """Whether as many wait as may. A request to stop takes nobody's place: whoever sends knows nothing of it."""
        return len(self) - self._stops >= self.limit

    def _await_room(self, wait: float | None) -> None:
        if not self._is_full():
            return
        self.handle_soon()  # whoever should have seen to it was interrupted, if this is of any use
        until = None if wait is None else time.monotonic() + wait
        stack = running()
        depth = enter(stack, self)
        try:
            may_wait = wait != 0 and not self.held() and not (depth and closes_circle(stack, self))
            while may_wait and self._is_full() and not self.actor.actor_stopped.is_set():
                left = _FIRST_LOOK if until is None else until - time.monotonic()
                if left <= 0:
                    break
                self._wait_for_room(min(left, _FIRST_LOOK))
        finally:
            del stack[depth:]
        if self._is_full() and not self.actor.actor_stopped.is_set():
            raise MailboxFullError(str(self.actor), self.limit)

    def _wait_for_room(self, seconds: float) -> None:
        gate = threading.Lock()
        gate.acquire()  # not to guard anything: whoever makes room releases it
        if self._room is None:
            self._room = deque()
        try:
            self._room.append(gate)
            if self._is_full():
                gate.acquire(timeout=seconds)
        finally:  # a gate that nobody waits at any more would swallow the next one's turn
            with suppress(ValueError):
                self._room.remove(gate)

    def _made_room(self) -> None:
        """One message was taken out: let one in. Called only where somebody waits."""
        try:
            gate = self._room.popleft() if self._room else None
        except IndexError:
            return
        if gate is not None:
            gate.release()


def enter(stack: Stack, entry: Entry) -> int:
    """Put what is waited for on the running thread's stack, so that others see it; how far to cut it back."""
    depth = len(stack)
    if depth:
        top = stack[-1].wanted()
        if top is not None:
            top.holder = stack
    stack.append(entry)
    return depth
