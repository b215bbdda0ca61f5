"""A stable reference to an actor that may stop, and be started again, behind it."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pykka

from incarnate.actors.contained import Told
from incarnate.actors.logs import log
from incarnate.domain.errors import (
    AskTimeoutError,
    BackingOffError,
    ClosedError,
    ForkedError,
    IncarnateError,
    MailboxFullError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.actors.addresses import Address
    from incarnate.actors.runtime import RLock
    from incarnate.actors.services import Services

__all__ = ["Home", "Reference", "waiting"]

_FREE_FAILURES = 2
_FIRST_PAUSE = 0.05
_LAST_PAUSE = 5.0
_FORGOTTEN = 60.0
"""An actor that failed is replaced at once. From its third failure in a row on nobody is started for a while, twice
as long each time: what fails at every message must not eat the process with starting anew. An answer ends the row,
and so does a minute without a failure, since a tell has no answer."""


class Home(Protocol):
    """The system that references belong to."""

    lock: RLock
    """Held while an actor is started, so that there is one, and none in a closed system. A signal handler that comes in
    meanwhile on the same thread may start others."""

    services: Services
    usable_in: int
    """The id of the process in which it can be used; 0 once it is closed. What is asked often looks at this alone."""

    ask_timeout: float | None
    """Seconds that an ask waits which gives no timeout of its own; None: for as long as it takes."""

    def check_usable(self) -> None:
        """Refuse where the system was closed or belongs to another process.

        Raises:
            ClosedError, ForkedError: it does.
        """
        ...

    def started(self, ref: Reference) -> None:
        """An actor was started behind `ref`; the lock is held."""
        ...

    def trim(self) -> None:
        """Put to rest whoever is too many; the lock is not held."""
        ...

    def turned_away(self) -> None:
        """A message was refused because too many waited."""
        ...

    def failed(self, name: str) -> None:
        """An actor that calls itself `name` failed."""
        ...


class _Failures(NamedTuple):
    """Failures in a row, and until when nobody is started because of them."""

    in_a_row: int
    until: float
    last: str


class Reference:
    """Asks and tells whatever actor lives behind it, and starts one where none does. Safe to share and to keep."""

    __slots__ = ("__weakref__", "_failures", "_home", "_live", "_touch")

    def __init__(self, home: Home, touch: Callable[[Any], object] | None = None) -> None:
        """`touch` is told of every use of an actor that lives; a `KeyError` of it says that it lives no more."""
        self._home = home
        self._touch = touch
        self._live: pykka.ActorRef[Any] | None = None
        self._failures: _Failures | None = None

    def ask(self, message: Any, *, block: bool = True, timeout: float | None = None, wait: float | None = 0.0) -> Any:
        """The answer to `message`, or with `block=False` a future whose `get` gives it.

        `wait` is for how many seconds a full mailbox may be waited for; None is for ever.

        Raises:
            RefusedError, StoreBusyError: nothing changed.
            MailboxFullError: too much waits for the actor already; it was not sent.
            OutcomeUnknownError: it may have happened or not; as `AskTimeoutError` when no answer came within
                `timeout` seconds, or within the system's `ask_timeout`.
            BackingOffError: what answers here failed again and again; nothing was done.
            ClosedError, ForkedError: the system cannot be used.
        """
        if not block:
            return self._later(message, wait)
        timeout = self._home.ask_timeout if timeout is None else timeout
        if timeout is not None or wait != 0.0:
            return self._until_handled(lambda left: self._sent(message, wait, timeout=left), message, timeout)
        touch = self._touch
        while True:
            if self._home.usable_in != os.getpid():
                self._home.check_usable()
            live = self._live
            if live is None:
                live = self._alive()
            elif touch is not None:
                try:  # noqa: SIM105 - every emit comes by here, and `suppress` costs a third of a microsecond
                    touch(self)
                except KeyError:
                    pass
            try:
                answer = live.ask(message)
            except pykka.ActorDeadError:
                self._alive()  # it stopped before it came to this message, which no one has handled: ask a fresh one
                continue
            except MailboxFullError:
                self._home.turned_away()
                raise
            self._failures = None
            return answer

    def tell(self, message: Any, wait: float | None = 0.0) -> None:
        """Have `message` handled, without an answer: a refusal is only logged. `wait` as for `ask`.

        Raises:
            MailboxFullError, BackingOffError, ClosedError, ForkedError: as `ask`.
        """
        told = Told(message, self._undelivered)
        while True:
            live: Any = self._alive()
            try:
                if wait == 0.0:
                    live.tell(told)
                else:
                    live.tell(told, wait)
            except pykka.ActorDeadError:
                continue  # as in ask
            except MailboxFullError:
                self._home.turned_away()
                raise
            return

    def _undelivered(self, message: Any) -> None:
        """The actor stopped before it came to what it was told: tell a fresh one, since nobody waits who would."""
        try:
            self.tell(message)
        except (ClosedError, ForkedError):
            pass
        except IncarnateError as error:
            log(logging.WARNING, "untold", "%r could not be told %r: %s", self, message, error)

    @property
    def lends(self) -> bool:
        """Whether its actor may ever be held: where calls have a limit of time, nobody runs it himself."""
        return self._home.services.runtime.lends_actors and self._home.ask_timeout is None

    def held(self) -> Address | None:
        """The actor, held by this thread (see `Address.hold`); None where it cannot be.

        Raises:
            BackingOffError, ClosedError, ForkedError: as `ask`.
        """
        live: Any = self._alive()
        if self._touch is not None:
            with suppress(KeyError):  # put to rest by another thread just now
                self._touch(self)
        return live if live.hold() else None

    def answered(self) -> None:
        """The actor answered while it was held: that ends a row of failures."""
        self._failures = None

    def trim(self) -> None:
        """Put to rest whoever is too many, now that nobody is held any more."""
        self._home.trim()

    def check_usable(self) -> None:
        """Refuse where the system was closed or belongs to another process.

        Raises:
            ClosedError, ForkedError: it does.
        """
        if self._home.usable_in != os.getpid():
            self._home.check_usable()

    def stop(self, *, block: bool = True) -> None:
        """Stop the actor, if there is one, once it has handled what was sent before."""
        live = self._live
        if live is not None and not live.actor_stopped.is_set():
            live.stop(block=block)

    @property
    def is_live(self) -> bool:
        """Whether an actor lives behind it."""
        live = self._live
        return live is not None and not live.actor_stopped.is_set()

    @property
    def queued(self) -> int:
        """How many messages wait for the actor."""
        live = self._live
        return 0 if live is None else waiting(live)

    @property
    def is_held(self) -> bool:
        """Whether the running thread is in the middle of a message of the actor, or holds it."""
        live = self._live
        held = None if live is None else getattr(live.actor_inbox, "held", None)
        return held is not None and bool(held())

    @property
    def backs_off(self) -> bool:
        """Whether nobody is started for a while, because of failures."""
        failures = self._failures
        return failures is not None and self._home.services.runtime.monotonic() < failures.until

    def _start(self) -> pykka.ActorRef[Any]:
        """Start the actor that belongs here; it calls `_failed` when it fails."""
        raise NotImplementedError

    def _failed(self, error: BaseException) -> None:
        """The actor failed, and has stopped."""
        before, now = self._failures, self._home.services.runtime.monotonic()
        count = 1 if before is None or now > before.until + _FORGOTTEN else before.in_a_row + 1
        pause = 0.0 if count <= _FREE_FAILURES else min(_LAST_PAUSE, _FIRST_PAUSE * 2.0 ** (count - _FREE_FAILURES - 1))
        self._failures = _Failures(count, now + pause, type(error).__name__)
        self._home.failed(type(self).__name__)
        message = "%r failed %d times in a row; it is replaced, in %g seconds at the earliest"
        log(logging.ERROR, "actor_failed", message, self, count, pause, failures=count, pause=pause)

    def _alive(self) -> pykka.ActorRef[Any]:
        home = self._home
        home.check_usable()
        live = self._live
        if live is None or live.actor_stopped.is_set():
            with home.lock:
                home.check_usable()
                live = self._live
                if live is None or live.actor_stopped.is_set():  # else another thread was first
                    self._check_pause()
                    started = self._start()
                    if self._live is live:
                        self._live = live = started
                        home.started(self)
                    else:  # a signal handler on this thread was first
                        _ = started.stop(block=False)
                        live = self._live or started
            home.trim()
        return live

    def _check_pause(self) -> None:
        failures = self._failures
        if failures is not None:
            left = failures.until - self._home.services.runtime.monotonic()
            if left > 0:
                raise BackingOffError(repr(self), failures.in_a_row, failures.last, left)

    def _sent(self, message: Any, wait: float | None, **how: Any) -> Any:
        live: Any = self._alive()
        if wait != 0.0:
            how["wait"] = wait
        try:
            return live.ask(message, **how)
        except MailboxFullError:
            self._home.turned_away()
            raise

    def _later(self, message: Any, wait: float | None) -> pykka.Future[Any]:
        pending: list[pykka.Future[Any]] = [self._sent(message, wait, block=False)]
        answer = pending[0].__class__()

        def attempt(left: float | None) -> Any:
            future = pending.pop() if pending else self._sent(message, wait, block=False)
            return future.get(timeout=left)

        answer.set_get_hook(lambda left: self._until_handled(attempt, message, left))
        return answer

    def _until_handled(self, attempt: Callable[[float | None], Any], message: Any, timeout: float | None) -> Any:
        clock = self._home.services.runtime.monotonic
        deadline = None if timeout is None else clock() + timeout
        while True:
            try:
                answer = attempt(None if deadline is None else max(0.0, deadline - clock()))
            except pykka.ActorDeadError:
                continue  # as in ask
            except pykka.Timeout as error:
                raise AskTimeoutError(repr(self), type(message).__name__, timeout or 0.0, self.queued) from error
            self._failures = None
            return answer


def waiting(ref: pykka.ActorRef[Any]) -> int:
    """How many messages wait in the inbox of an actor; 0 where it cannot be told."""
    inbox: Any = ref.actor_inbox
    count = getattr(inbox, "__len__", None) or getattr(inbox, "qsize", None)
    return int(count()) if count is not None else 0
