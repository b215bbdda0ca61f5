"""Which actors live in a system: started on demand, one an activation, replaced when they stopped."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from incarnate.actors.activation import ActivationActor
from incarnate.actors.references import Reference
from incarnate.domain.errors import ClosedError, ForkedError
from incarnate.domain.keys import check_key

if TYPE_CHECKING:
    from collections.abc import Callable

    import pykka

    from incarnate.actors.runtime import Lock, Runtime
    from incarnate.domain.commands import Subscriber
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Store

__all__ = ["ActivationRef", "Directory"]


class ActivationRef(Reference):
    """A stable reference to an activation, whatever actor lives behind it. Safe to share and to keep."""

    __slots__ = ("_directory", "key", "subscribers")

    def __init__(self, directory: Directory, key: ActivationKey) -> None:
        super().__init__(directory)
        self.key = key
        self.subscribers: list[Subscriber] = []
        self._directory = directory

    def __repr__(self) -> str:
        return f"<ActivationRef {self.key}>"

    def _start(self) -> pykka.ActorRef[Any]:
        directory = self._directory
        return directory.runtime.start(ActivationActor, self.key, directory.store, directory.clock, self.subscribers)


class Directory:
    """The references of one system, of one process, and what their actors need."""

    def __init__(self, store: Store, runtime: Runtime, clock: Callable[[], int]) -> None:
        self.store = store
        self.runtime = runtime
        self.clock = clock
        self.lock: Lock = runtime.lock()
        self._refs: dict[ActivationKey, ActivationRef] = {}
        self._pid = os.getpid()
        self._closed = False

    def activation(self, key: ActivationKey) -> ActivationRef:
        """The one reference to `key`.

        Raises:
            KeyFormatError: `key` is no `ActivationKey`.
        """
        self.check_usable()
        ref = self._refs.get(key)
        if ref is None:
            check_key(key)
            with self.lock:
                ref = self._refs.setdefault(key, ActivationRef(self, key))
        return ref

    def check_call(self, *keys: ActivationKey) -> None:
        """Refuse a call about `keys` that goes to the store itself, not to an actor.

        Raises:
            KeyFormatError: one is no `ActivationKey`.
            ClosedError, ForkedError: the system cannot be used.
        """
        self.check_usable()
        for key in keys:
            check_key(key)

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

    def close(self) -> None:
        """Stop every actor after what it was sent; whoever asks later gets `ClosedError`."""
        with self.lock:
            self._closed = True
            refs = list(self._refs.values())
        for ref in refs:
            ref.stop()
        self.runtime.close()
