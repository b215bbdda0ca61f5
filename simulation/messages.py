"""Which messages actors were sent, by whom and in which order, while somebody looked."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pykka

from incarnate.actors.contained import ContainedActor
from incarnate.actors.directory import ActivationRef
from incarnate.actors.references import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

__all__ = ["MessageLog", "Sent", "recording"]

_LONGEST = 160

_handling: ContextVar[str | None] = ContextVar("incarnate_handling", default=None)
"""Whose message the running thread, task or greenlet handles."""


class Sent(NamedTuple):
    """A message as it was sent: `sender` is the actor that sent it while it handled another, None outside of any.

    An activation is named by its key, any other actor by its class.
    """

    sender: str | None
    receiver: str
    kind: Literal["ask", "tell"]
    message: Any

    def __str__(self) -> str:
        text = repr(self.message)
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        return f"{self.sender or '(outside)'} -> {self.receiver}: {self.kind} {shown}"


class MessageLog:
    """The messages that were sent, in the order of their sending; what is refused or never answered stands in it too.

    Iterate it, or ask for those `to` a receiver or `of` some types. Its text has a line a message.
    """

    def __init__(self) -> None:
        self._sent: list[Sent] = []

    def __iter__(self) -> Iterator[Sent]:
        return iter(tuple(self._sent))

    def __len__(self) -> int:
        return len(self._sent)

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        return f"<MessageLog of {len(self)} messages\n{self}>"

    def to(self, receiver: object) -> list[Sent]:
        """Those to an activation, by its key or the text of it, or to the actors of a class, by its name."""
        return [sent for sent in self if sent.receiver == str(receiver)]

    def of(self, *types: type) -> list[Any]:
        """The messages of some types, such as `incarnate.Append`."""
        return [sent.message for sent in self if isinstance(sent.message, types)]

    def names(self) -> list[str]:
        """The type of each message: `["Claim", "Append"]`."""
        return [type(sent.message).__name__ for sent in self]

    def clear(self) -> None:
        """Forget what was sent until now."""
        self._sent.clear()

    def add(self, sent: Sent) -> None:
        """Take a message in."""
        self._sent.append(sent)


@contextmanager
def recording() -> Generator[MessageLog]:
    """Record every message of this process that is sent inside the `with`.

    References are changed for that long, so that nobody else pays for it: ours, and pykka's for actors of one's own.
    """
    log = MessageLog()
    changes: list[tuple[Any, str, Any]] = [
        (Reference, "ask", _recorded(log, Reference.ask, "ask")),
        (Reference, "tell", _recorded(log, Reference.tell, "tell")),
        (pykka.ActorRef, "ask", _recorded(log, pykka.ActorRef.ask, "ask")),
        (pykka.ActorRef, "tell", _recorded(log, pykka.ActorRef.tell, "tell")),
        (ContainedActor, "on_receive", _named(ContainedActor.on_receive)),
        (pykka.Actor, "_handle_receive", _named(pykka.Actor._handle_receive)),  # noqa: SLF001 - what its loop calls
    ]
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in changes]
    try:
        for owner, name, changed in changes:
            setattr(owner, name, changed)
        yield log
    finally:
        for owner, name, old in before:
            setattr(owner, name, old)


def _recorded(log: MessageLog, send: Callable[..., Any], kind: Literal["ask", "tell"]) -> Callable[..., Any]:
    @functools.wraps(send)
    def recorded(ref: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        receiver = _receiver(ref)
        if receiver is not None:
            log.add(Sent(_handling.get(), receiver, kind, message))
        return send(ref, message, *args, **kwargs)

    return recorded


def _receiver(ref: Any) -> str | None:
    """The name of who is sent to; None for pykka's reference to an actor of ours, whose own has told of it."""
    if isinstance(ref, ActivationRef):
        return str(ref.key)
    if isinstance(ref, Reference):
        return type(ref).__name__.strip("_")
    return None if issubclass(ref.actor_class, ContainedActor) else str(ref.actor_class.__name__)


def _named(handle: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(handle)
    def named(actor: Any, message: Any) -> Any:
        token = _handling.set(_name(actor))
        try:
            return handle(actor, message)
        finally:
            _handling.reset(token)

    return named


def _name(actor: Any) -> str:
    key = getattr(actor, "_key", None) if isinstance(actor, ContainedActor) else None
    return type(actor).__name__ if key is None else str(key)
