"""An actor that no message can take down, nor the process with it.

pykka lets any `BaseException` in one actor stop every actor of the process and leave the caller waiting, and lets a
failed `tell` kill the actor. Here everything is caught at the edge: a refusal is answered and the actor lives on;
after anything else it is answered too and this one actor stops, so that the next message is served by a fresh one.
"""

from __future__ import annotations

import functools
import logging
import threading
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import pykka
from pykka.messages import _ActorStop

from incarnate.actors.logs import log
from incarnate.domain.errors import IncarnateError, OutcomeUnknownError

__all__ = ["ContainedActor", "StopFlag", "Told"]

_making = threading.RLock()


class Told(NamedTuple):
    """A message whose sender waits for no answer. Whoever stops before it comes to it calls `undelivered` with it."""

    message: Any
    undelivered: Callable[[Any], object] | None = None


class StopFlag(threading.Event):
    """An event that is looked at often and waited for almost never: a whole one is 1.5 KB an actor."""

    def __init__(self) -> None:
        self.raised = False
        self._event: threading.Event | None = None

    def is_set(self) -> bool:
        """Whether the actor has stopped, or is about to."""
        return self.raised

    def set(self) -> None:
        """Stop it."""
        self.raised = True
        if self._event is not None:
            self._event.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it has stopped within `timeout` seconds."""
        if self._event is None:
            with _making:
                if self._event is None:
                    self._event = threading.Event()
        return self.raised or self._event.wait(timeout)


class ContainedActor(pykka.Actor):
    """Subclasses say what a message does in `handle`; a dispatcher says on which thread."""

    actor_stopped: StopFlag

    failure: type[IncarnateError] = OutcomeUnknownError
    """What a caller gets where the actor failed."""

    runs_on_callers_thread = False
    """Set by the dispatcher: an interrupt then belongs to the thread, and not to whoever's message this is."""

    report_failure: Callable[[BaseException], None] | None = None
    """Told of a failure, once the actor has stopped: by whoever starts another in its place."""

    def __init__(self) -> None:
        # pykka's own makes an event and an id, which cost more time and memory than all the rest of an idle actor.
        self.actor_inbox = self._create_actor_inbox()
        self.actor_stopped = StopFlag()  # pyright: ignore[reportIncompatibleVariableOverride] - it is an event
        self._actor_ref = self._create_actor_ref()

    def _create_actor_ref(self) -> pykka.ActorRef[Any]:
        return pykka.ActorRef(self)

    @functools.cached_property
    def actor_urn(self) -> str:  # type: ignore[override] # an attribute of pykka's, made for every actor
        """The actor's id, made when it is first asked for."""
        return uuid.uuid4().urn

    def handle(self, message: Any) -> Any:
        """Do what `message` asks and return the answer.

        Raises:
            IncarnateError: the answer is a refusal.
        """
        raise NotImplementedError

    def on_receive(self, message: Any) -> Any:
        """Handle a message and contain whatever comes of it."""
        told = type(message) is Told
        try:
            return self.handle(message.message if told else message)
        except IncarnateError as error:
            if not told:
                raise
            log(logging.WARNING, "refused", "%s refused %r: %s", self, message.message, error)
        except BaseException as error:
            self.actor_stopped.raised = True  # before any call: with the stack or the memory at its end each may fail
            failure = self._fail(error, type(message))
            if not told:
                raise failure from error
            log(logging.ERROR, "failed", "%s failed at %r", self, message.message, error=error)
        return None

    def answer(self, message: Any) -> Any:
        """The answer to what was taken from the mailbox.

        Raises:
            pykka.ActorDeadError: the actor has stopped.
            IncarnateError: the answer is a refusal, or the actor failed.
            KeyboardInterrupt: it fell in the middle, and the actor has stopped.
        """
        if self.actor_stopped.raised:
            if type(message) is Told and message.undelivered is not None:
                return message.undelivered(message.message)
            raise pykka.ActorDeadError(f"{shown(self)} stopped before handling the message")
        if type(message) is _ActorStop:
            return self._stop()
        return self.on_receive(message)

    def die(self, error: BaseException, kind: type[Any]) -> IncarnateError:
        """Stop after `error` at a message of that kind; what its sender gets."""
        self.actor_stopped.raised = True
        self.actor_stopped.set()
        return self.failure(f"{shown(self)} failed at {kind.__name__}: {shown(error, repr)}")

    def _fail(self, error: BaseException, kind: type[Any]) -> IncarnateError:
        self._stop()
        if self.runs_on_callers_thread and isinstance(error, KeyboardInterrupt):
            raise error
        if self.report_failure is not None:
            try:
                self.report_failure(error)
            except BaseException as second:  # noqa: BLE001 - the sender must be answered, whoever hears of it
                log(logging.ERROR, "failed", "a failure could not be reported", error=second)
        return self.die(error, kind)

    def _stop(self) -> None:
        """Stop now. pykka's own also looks for the actor in its registry, which is a list."""
        self.actor_stopped.set()
        try:
            self.on_stop()
        except Exception as error:  # noqa: BLE001 - it has stopped, however it took it
            log(logging.ERROR, "failed", "%s failed to stop well", self, error=error)

    def _actor_loop_setup(self) -> None:
        try:
            self.on_start()
        except BaseException as error:  # noqa: BLE001 - as for a message
            self.actor_stopped.raised = True
            self._fail(error, type(self))
            log(logging.ERROR, "failed", "%s failed to start", self, error=error)


def shown(value: object, how: Callable[[object], str] = str) -> str:
    """`value` in words, also where it has none: the text of an error must not become another error."""
    try:
        return how(value)
    except Exception:  # noqa: BLE001 - it is the user's `__str__`
        return f"<{type(value).__name__}>"
