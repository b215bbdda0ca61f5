"""A stable reference to an actor that may stop, and be started again, behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pykka

from incarnate.actors.contained import Told
from incarnate.domain.errors import OutcomeUnknownError
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.actors.runtime import Lock, Runtime

__all__ = ["Home", "Reference"]


class Home(Protocol):
    """The system that references belong to."""

    lock: Lock
    """Held while an actor is started, so that there is one, and none in a closed system."""

    runtime: Runtime
    """What actors run on."""

    def check_usable(self) -> None:
        """Refuse where the system was closed or belongs to another process.

        Raises:
            ClosedError, ForkedError: it does.
        """
        ...


class Reference:
    """Asks and tells whatever actor lives behind it, and starts one where none does. Safe to share and to keep."""

    __slots__ = ("_home", "_live")

    def __init__(self, home: Home) -> None:
        self._home = home
        self._live: pykka.ActorRef[Any] | None = None

    def ask(self, message: Any, *, block: bool = True, timeout: float | None = None) -> Any:
        """The answer to `message`, or with `block=False` a future whose `get` gives it.

        Raises:
            RefusedError, StoreBusyError: nothing changed.
            OutcomeUnknownError: it may have happened or not; also when no answer came within `timeout` seconds.
            ClosedError, ForkedError: the system cannot be used.
        """
        if not block:
            return self._later(message)
        if timeout is None:
            while True:
                self._home.check_usable()
                live = self._live
                if live is None or live.actor_stopped.is_set():
                    live = self._alive()
                try:
                    return live.ask(message)
                except pykka.ActorDeadError:
                    continue  # it stopped before it came to this message, which no one has handled: ask a fresh one
        return self._until_handled(lambda wait: self._alive().ask(message, timeout=wait), message, timeout)

    def tell(self, message: Any) -> None:
        """Have `message` handled, without an answer: a refusal is only logged."""
        self._alive().tell(Told(message))

    def check_usable(self) -> None:
        """Refuse where the system was closed or belongs to another process.

        Raises:
            ClosedError, ForkedError: it does.
        """
        self._home.check_usable()

    def stop(self) -> None:
        """Stop the actor, if there is one, once it has handled what was sent before."""
        live = self._live
        if live is not None:
            live.stop()

    def _start(self) -> pykka.ActorRef[Any]:
        """Start the actor that belongs here."""
        raise NotImplementedError

    def _alive(self) -> pykka.ActorRef[Any]:
        self._home.check_usable()
        live = self._live
        if live is None or live.actor_stopped.is_set():
            with self._home.lock:
                self._home.check_usable()
                live = self._live
                if live is None or live.actor_stopped.is_set():  # else another thread was first
                    live = self._live = self._start()
        return live

    def _later(self, message: Any) -> pykka.Future[Any]:
        pending: list[pykka.Future[Any]] = [self._alive().ask(message, block=False)]
        answer = pending[0].__class__()

        def attempt(wait: float | None) -> Any:
            future = pending.pop() if pending else self._alive().ask(message, block=False)
            return future.get(timeout=wait)

        answer.set_get_hook(lambda wait: self._until_handled(attempt, message, wait))
        return answer

    def _until_handled(self, attempt: Callable[[float | None], Any], message: Any, timeout: float | None) -> Any:
        clock = self._home.runtime.monotonic
        deadline = None if timeout is None else clock() + timeout
        while True:
            try:
                return attempt(None if deadline is None else max(0.0, deadline - clock()))
            except pykka.ActorDeadError:
                continue  # as in ask
            except pykka.Timeout as error:
                raise OutcomeUnknownError(
                    f"{self!r} did not answer {type(message).__name__} in {counted(timeout or 0, 'second')}"
                ) from error
