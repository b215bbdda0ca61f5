"""How an actor is reached: by asks, which wait for the answer, and tells, which do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pykka
from pykka._envelope import Envelope  # pykka's documentation names it for new actor types
from pykka.messages import _ActorStop

from incarnate.actors.answers import Answer
from incarnate.actors.mailboxes import enter
from incarnate.actors.waits import here, running
from incarnate.domain.errors import CallDepthError

if TYPE_CHECKING:
    from incarnate.actors.contained import ContainedActor
    from incarnate.actors.mailboxes import Mailbox

__all__ = ["Address"]

_MOST_CALLS = 16_384
"""Actors that may ask on, one in the other. So many have a few hundred threads; without an end they had all."""


class Address(pykka.ActorRef[Any]):
    """pykka's reference to an actor, for a mailbox that has a bound.

    `wait` is for how many seconds a full mailbox may be waited for; None is for ever.
    """

    actor_inbox: Mailbox

    def __init__(self, actor: ContainedActor) -> None:
        # pykka's own makes an id of each actor, which costs more than the rest of the actor; see `actor_urn`.
        self.actor_class = type(actor)
        self.actor_inbox = cast("Mailbox", actor.actor_inbox)  # pyright: ignore[reportIncompatibleVariableOverride]
        self.actor_stopped = actor.actor_stopped

    @property
    def actor_urn(self) -> str:  # type: ignore[override] # an attribute of pykka's
        """The actor's id, made when it is first asked for."""
        return self.actor_inbox.actor.actor_urn

    def __str__(self) -> str:
        return str(self.actor_inbox.actor)

    def tell(self, message: Any, wait: float | None = 0.0) -> None:
        """Have `message` handled, without an answer.

        Raises:
            pykka.ActorDeadError: the actor has stopped.
            MailboxFullError: too much waits for it already.
            ClosedError: its system was closed.
        """
        self._check_alive()
        self.actor_inbox.put(Envelope(message), wait)
        self.actor_inbox.handle_soon()

    def ask(self, message: Any, *, block: bool = True, timeout: float | None = None, wait: float | None = 0.0) -> Any:
        """The answer to `message`, or with `block=False` a future of it.

        Raises:
            pykka.ActorDeadError: the actor stopped before it came to `message`.
            pykka.Timeout: no answer came within `timeout` seconds.
            MailboxFullError: too much waits for the actor already; it will not handle this.
            ReentrantCallError: the actor waits for this call, so it was not sent.
            CallDepthError: too many actors have asked on, one in the other.
        """
        if not block:
            return self._ask_later(message, wait)
        answer = Answer()
        mailbox = answer.mailbox = self.actor_inbox
        stack = running()
        answer.depth = here.depth + len(stack)
        if answer.depth > _MOST_CALLS:
            raise CallDepthError(str(mailbox.actor), answer.depth)
        depth = enter(stack, answer)
        try:
            mailbox.check_wait(stack)
            self._check_alive()
            mailbox.put(Envelope(message, reply_to=answer), wait)
            mailbox.park(answer, timeout)
        finally:
            del stack[depth:]
        return answer.result()

    def stop(self, *, block: bool = True, timeout: float | None = None) -> Any:
        """Stop the actor once it has handled what was sent before; whether it lived, or a future of that.

        Raises:
            pykka.Timeout: it did not come to that within `timeout` seconds; it will.
            ReentrantCallError: the actor waits for this call, so it was not asked to stop; `block=False` can.
        """
        if block:
            try:
                self.ask(_ActorStop(), timeout=timeout)
            except pykka.ActorDeadError:
                return False
            return True
        asked = self._ask_later(_ActorStop(), None)
        answer = Answer()
        answer.set_get_hook(lambda wait: _stopped(asked, wait))
        return answer

    def hold(self) -> bool:
        """Become the thread that handles its messages, until `let_go`, where nobody is it and nothing waits."""
        return False

    def let_go(self) -> None:
        """Give back what `hold` gave."""

    def answer(self, message: Any) -> Any:
        """The answer to `message` while it is held; raises as `ask`."""
        return self.actor_inbox.actor.answer(message)

    def _ask_later(self, message: Any, wait: float | None) -> Answer:
        answer = Answer()
        answer.mailbox = self.actor_inbox
        if self.actor_stopped.is_set():
            error = pykka.ActorDeadError(f"{self} has stopped")
            answer.set_exception((type(error), error, None))
        else:
            self.actor_inbox.put(Envelope(message, reply_to=answer), wait)
            self.actor_inbox.handle_soon()
        return answer

    def _check_alive(self) -> None:
        if self.actor_stopped.is_set():
            raise pykka.ActorDeadError(f"{self} has stopped")


def _stopped(asked: Answer, timeout: float | None) -> bool:
    try:
        asked.get(timeout=timeout)
    except pykka.ActorDeadError:
        return False
    return True
