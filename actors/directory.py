"""Which actor lives behind a key: started on demand, one a key, replaced when it stopped."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pykka

from incarnate.actors.activation import ActivationActor
from incarnate.actors.contained import Told
from incarnate.domain.errors import ClosedError, ForkedError, OutcomeUnknownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.actors.dispatchers import Dispatcher
    from incarnate.domain.commands import Subscriber
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Store

__all__ = ["ActivationRef", "Directory"]


class ActivationRef:
    """A stable reference to an activation, whatever actor lives behind it. Safe to share and to keep."""

    __slots__ = ("_directory", "_live", "key", "subscribers")

    def __init__(self, directory: Directory, key: ActivationKey) -> None:
        self.key = key
        self.subscribers: list[Subscriber] = []
        self._directory = directory
        self._live: pykka.ActorRef[Any] | None = None

    def __repr__(self) -> str:
        return f"<ActivationRef {self.key}>"

    def ask(self, command: Any, *, block: bool = True, timeout: float | None = None) -> Any:
        """The answer to `command`, or with `block=False` a future whose `get` gives it.

        Raises:
            RefusedError, StoreBusyError: nothing changed.
            OutcomeUnknownError: it may have happened or not; also when no answer came within `timeout` seconds.
            ClosedError, ForkedError: the system cannot be used.
        """
        if block and timeout is None:
            while True:
                try:
                    return self._alive().ask(command)
                except pykka.ActorDeadError:
                    continue  # it stopped before it came to this message: a fresh actor takes it
        if block:
            return self._until_handled(lambda: self._alive().ask(command, timeout=timeout), command)
        future = self._alive().ask(command, block=False)
        answer = future.__class__()
        answer.set_get_hook(lambda wait: self._settle(future, command, wait))
        return answer

    def tell(self, command: Any) -> None:
        """Have `command` handled, without an answer: a refusal is only logged."""
        self._alive().tell(Told(command))

    def _settle(self, future: pykka.Future[Any], command: Any, timeout: float | None) -> Any:
        pending = [future]
        return self._until_handled(
            lambda: (pending.pop() if pending else self._alive().ask(command, block=False)).get(timeout=timeout),
            command,
        )

    def _until_handled(self, attempt: Callable[[], Any], command: Any) -> Any:
        while True:
            try:
                return attempt()
            except pykka.ActorDeadError:
                continue  # it stopped before it came to this message, which no one has handled: a fresh actor takes it
            except pykka.Timeout as error:
                raise OutcomeUnknownError(f"{self!r} did not answer {type(command).__name__} in {error}") from error

    def _alive(self) -> pykka.ActorRef[Any]:
        directory = self._directory
        directory.check_usable()
        live = self._live
        if live is None or live.actor_stopped.is_set():
            live = self._live = directory.start(self, live)
        return live

    def stop(self) -> None:
        """Stop the actor once it has handled what was sent before."""
        live = self._live
        if live is not None:
            live.stop()


class Directory:
    """The references and live actors of one system, of one process."""

    def __init__(self, store: Store, dispatcher: Dispatcher, clock: Callable[[], int]) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._clock = clock
        self._lock = threading.Lock()
        self._refs: dict[ActivationKey, ActivationRef] = {}
        self._pid = os.getpid()
        self._closed = False

    def activation(self, key: ActivationKey) -> ActivationRef:
        """The one reference to `key`."""
        self.check_usable()
        ref = self._refs.get(key)
        if ref is None:
            with self._lock:
                ref = self._refs.setdefault(key, ActivationRef(self, key))
        return ref

    def check_usable(self) -> None:
        """Refuse where the system was closed or belongs to another process.

        Raises:
            ClosedError, ForkedError: it does.
        """
        if os.getpid() != self._pid:
            raise ForkedError("the process was forked after this system was opened")
        if self._closed:
            raise ClosedError("the system is closed")

    @property
    def forked(self) -> bool:
        """Whether this is a forked child's copy."""
        return os.getpid() != self._pid

    def start(self, ref: ActivationRef, stopped: pykka.ActorRef[Any] | None) -> pykka.ActorRef[Any]:
        """A live actor for `ref`, in place of `stopped`; the one that another thread was first to start, if any."""
        with self._lock:
            self.check_usable()
            live = ref._live  # noqa: SLF001 - the two classes are one thing, a directory and its entries
            if live is not None and live is not stopped and not live.actor_stopped.is_set():
                return live
            live = self._dispatcher.start(ActivationActor, ref.key, self._store, self._clock, ref.subscribers)
            ref._live = live  # noqa: SLF001
            return live

    def close(self) -> None:
        """Stop every actor after what it was sent; whoever asks later gets `ClosedError`."""
        with self._lock:
            self._closed = True
            refs = list(self._refs.values())
        for ref in refs:
            ref.stop()
        self._dispatcher.close()
