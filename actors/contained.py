"""An actor that no message can take down, nor the process with it.

pykka lets any `BaseException` in one actor stop every actor of the process and leave the caller waiting, and lets a
failed `tell` kill the actor. Here everything is caught at the edge: a refusal is answered and the actor lives on;
after anything else it is answered too and this one actor stops, so that the next message is served by a fresh one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import pykka

from incarnate.actors.logs import log
from incarnate.domain.errors import IncarnateError, OutcomeUnknownError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ContainedActor", "Told"]


class Told(NamedTuple):
    """A message whose sender waits for no answer."""

    message: Any


class ContainedActor(pykka.Actor):
    """Subclasses say what a message does in `handle`; a dispatcher says on which thread."""

    failure: type[IncarnateError] = OutcomeUnknownError
    """What a caller gets where the actor failed."""

    runs_on_callers_thread = False
    """Set by the dispatcher: an interrupt then belongs to the thread, and not to whoever's message this is."""

    report_failure: Callable[[BaseException], None] | None = None
    """Told of a failure, once the actor has stopped: by whoever starts another in its place."""

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
            self._stop()
            if self.runs_on_callers_thread and isinstance(error, KeyboardInterrupt):
                raise
            if self.report_failure is not None:
                self.report_failure(error)
            if not told:
                raise self.failure(f"{self} failed at {type(message).__name__}: {error!r}") from error
            log(logging.ERROR, "failed", "%s failed at %r", self, message.message, error=error)
        return None
