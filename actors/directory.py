"""Which actors live in a system: started on demand, one an activation, the least recently used put to rest."""

from __future__ import annotations

import logging
import os
import weakref
from collections import Counter, OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from incarnate.actors.activation import ActivationActor
from incarnate.actors.logs import log
from incarnate.actors.references import Reference
from incarnate.domain.errors import ClosedError, ForkedError
from incarnate.domain.keys import check_key

if TYPE_CHECKING:
    from typing import Protocol

    import pykka

    from incarnate.actors.runtime import RLock
    from incarnate.actors.services import Services
    from incarnate.domain.commands import Subscriber
    from incarnate.domain.keys import ActivationKey

    class KeptView(Protocol):
        """A view, as the directory sees it."""

        @property
        def is_followed(self) -> bool: ...

        def rest(self) -> None:
            """Stop its projector, once it has handled what was sent before."""
            ...


__all__ = ["ActivationRef", "Directory"]

_LOOKED_AT = 16
"""How many busy activations are passed over in the search for an idle one to put to rest."""


class ActivationRef(Reference):
    """A stable reference to an activation, whatever actor lives behind it. Safe to share and to keep."""

    __slots__ = ("_directory", "key", "subscribers", "views")

    def __init__(self, directory: Directory, key: ActivationKey) -> None:
        super().__init__(directory, directory.touch)
        self.key = key
        self.subscribers: list[Subscriber] = []
        self.views: list[KeptView] = []
        self._directory = directory

    def __repr__(self) -> str:
        return f"<ActivationRef {self.key}>"

    def use(self) -> None:
        """Have the activation live, as the most recently used one."""
        self._alive()
        with suppress(KeyError):  # put to rest by another thread just now
            self._directory.touch(self)

    def _start(self) -> pykka.ActorRef[Any]:
        services = self._directory.services
        return services.runtime.start(ActivationActor, self.key, services, self.subscribers, self._failed)


class Directory:
    """The references of one system, of one process.

    A reference lives as long as somebody holds it: its user, a session or a view, or the directory while its actor
    lives or somebody subscribes. So what was used once and forgotten costs no memory.
    """

    def __init__(self, services: Services, *, max_live: int, keep_views: bool, ask_timeout: float | None) -> None:
        self.services = services
        self.ask_timeout = ask_timeout
        self.lock: RLock = services.runtime.rlock()
        self.passivated = 0
        self.activations_started = 0
        self.messages_refused = 0
        self.failures: Counter[str] = Counter()
        self._max_live = max_live
        self._keep_views = keep_views
        self._refs: weakref.WeakValueDictionary[ActivationKey, ActivationRef] = weakref.WeakValueDictionary()
        self._live: OrderedDict[ActivationRef, None] = OrderedDict()  # the least recently used first
        self._kept: set[ActivationRef] = set()  # at rest, and somebody subscribes or has a view
        self._pid = self.usable_in = os.getpid()
        self._closed = False
        self.touch = self._live.move_to_end

    def activation(self, key: ActivationKey) -> ActivationRef:
        """The one reference to `key`.

        Raises:
            KeyFormatError: `key` is no `ActivationKey`.
        """
        self.check_usable()
        check_key(key)
        ref = self._refs.get(key)
        if ref is None:
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

    def live(self) -> list[ActivationRef]:
        """The references whose actors live, the least recently used first."""
        return list(self._live)

    def started(self, ref: Reference) -> None:
        """Count an activation's actor as the most recently used one; the lock is held."""
        if isinstance(ref, ActivationRef):
            self._live[ref] = None
            self._live.move_to_end(ref)
            self._kept.discard(ref)
            self.activations_started += 1

    def turned_away(self) -> None:
        """Count a message that a full mailbox refused."""
        with self.lock:
            self.messages_refused += 1

    def failed(self, name: str) -> None:
        """Count the failure of an actor."""
        with self.lock:
            self.failures[name] += 1

    def trim(self) -> None:
        """Put the least recently used idle activations to rest while there are more than `max_live`."""
        while len(self._live) > self._max_live:
            with self.lock:
                ref = self._take_idle()
            if ref is None:
                return  # all that were looked at are busy: the next start looks again
            self.rest(ref)

    def keep(self, ref: ActivationRef, view: KeptView) -> None:
        """Hold `view` for as long as the actor of `ref` lives."""
        if view not in ref.views:
            with self.lock:
                if view not in ref.views:
                    ref.views.append(view)

    def rest(self, ref: ActivationRef) -> None:
        """Stop the actor of `ref`, which is used no more, and its views unless they are to be kept."""
        if ref.is_live:
            log(logging.DEBUG, "passivated", "%r was put to rest", ref, activation=str(ref.key))
            ref.stop(block=False)
        with self.lock:
            resting = [view for view in ref.views if not (self._keep_views or view.is_followed)]
            ref.views = [view for view in ref.views if view not in resting]
            if ref not in self._live and (
                ref.views or any(not getattr(one, "holds_activation", False) for one in ref.subscribers)
            ):
                self._kept.add(ref)
        for view in resting:
            view.rest()

    def unfollowed(self, ref: ActivationRef) -> None:
        """Nobody follows a view of `ref` any more: put it to rest too where its activation is."""
        if ref not in self._live:
            with self.lock:
                self._kept.discard(ref)
            self.rest(ref)

    def _take_idle(self) -> ActivationRef | None:
        for _ in range(min(_LOOKED_AT, len(self._live) - 1)):  # never the one that was started just now
            ref, _ = self._live.popitem(last=False)
            if not ref.queued and not ref.is_held:  # it would find its request to stop before its next message
                self.passivated += 1
                return ref
            self._live[ref] = None
        return None

    def close(self) -> None:
        """Stop every actor after what it was sent; whoever asks later gets `ClosedError`."""
        with self.lock:
            self._closed = True
            self.usable_in = 0
            refs = list(self._live)
        for ref in refs:
            ref.stop()
        self.services.runtime.close()
