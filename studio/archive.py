"""The store as the studio reads it: read-only, one moment at a time, and opened anew where its file was replaced."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from incarnate.actors.system import SessionSystem
from incarnate.domain.codec import encode_appended
from incarnate.domain.errors import ClosedError, StoreFileError
from incarnate.domain.heads import EMPTY_HEAD
from incarnate.domain.keys import ActivationKey
from incarnate.storage.locate import open_store
from incarnate.studio.places import MARK_DIGITS, Place
from incarnate.studio.problems import Problem
from incarnate.studio.views import VIEWS, Placed

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from incarnate.actors.view import View
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.heads import Head
    from incarnate.domain.projections.base import Projection
    from incarnate.storage.port import Snapshot as LogSnapshot
    from incarnate.storage.port import Store
    from incarnate.studio.views import Snapshot

__all__ = ["Archive"]

_MOST_VIEWS = 32
"""Views kept in memory. Each is as large as its session, and one that was let go of is built anew in seconds."""

_MOST_SUMS = 64
"""Views that only count. They hold some bytes an event, by which they are kept level."""

_MOST_GIVEN = 64
"""Model histories that a change can be told from, of all sessions. They share what is the same; without its own a
follower gets the whole history."""

_FIRST_BYTES = 1
_NOBODY = ActivationKey("-", "-")


V = TypeVar("V")


class KeptViews:
    """Views that stay in memory while they are among the last used."""

    def __init__(self, system: SessionSystem, most: int) -> None:
        self._system = system
        self._most = most
        self._lock = threading.Lock()
        self._views: OrderedDict[tuple[ActivationKey, str], View[Any]] = OrderedDict()

    def of(self, key: ActivationKey, projection: Projection[V]) -> View[V]:
        """The view of `key` by `projection`."""
        name = (key, projection.name)
        with self._lock:
            view = self._views.get(name)
            if view is None:
                view = self._views[name] = self._system.view(key, projection)
            self._views.move_to_end(name)
            while len(self._views) > self._most:
                self._views.popitem(last=False)[1].rest()
        return view


class Archive:
    """What threads of the server read from. It takes no lease and writes nothing: the store is opened read-only."""

    def __init__(self, url: str, *, mask: bool = True) -> None:
        self.url = url
        self.mask = mask
        self._lock = threading.Lock()
        self._store: Store
        self._system: SessionSystem
        self._given: OrderedDict[tuple[ActivationKey, str, Place], Sequence[Any]] = OrderedDict()
        self._closed = False
        self._open()

    def _open(self) -> None:
        self._store = open_store(self.url, read_only=True)
        self._system = SessionSystem(self._store)
        self._views = KeptViews(self._system, _MOST_VIEWS)
        self._sums = KeptViews(self._system, _MOST_SUMS)

    @property
    def store(self) -> Store:
        """The store as it is open now."""
        return self._store

    @property
    def system(self) -> SessionSystem:
        """The system over it."""
        return self._system

    def version(self) -> tuple[int, int]:
        """What changes when anything may have been written: the store's own version, and which opening it is of.

        Raises:
            StoreFileError: the file was removed, and there is no other yet.
            StoreBusyError, UnavailableError: the store could not be read.
        """
        self._head(_NOBODY)  # a store looks for its file where it is read, not where it tells its version
        return id(self._system), self._store.version()

    def _head(self, key: ActivationKey) -> Head:
        """The head of a log; every request begins with one, so that each finds out that the store was replaced."""
        system = self._system
        try:
            return self._store.head(key)
        except StoreFileError:
            self._open_anew(system)
            return self._store.head(key)

    def _open_anew(self, old: SessionSystem) -> None:
        with self._lock:
            if self._closed:
                raise ClosedError("the studio is closed")
            if self._system is not old:
                return  # another thread did it
            self._open()  # raises while there is no store
            self._given.clear()
        old.close()

    @staticmethod
    def unknown(key: ActivationKey) -> Problem:
        """The answer to who asks for what is not there."""
        return Problem(404, "unknown-session", f"the store holds no session {key}", "ask /api/sessions what it holds")

    def head(self, key: ActivationKey) -> Head:
        """Where the log of `key` stands.

        Raises:
            Problem: the store holds no such activation.
        """
        head = self._head(key)
        self._check_there(key, head)
        return head

    def _check_there(self, key: ActivationKey, head: Head) -> None:
        # What was swept keeps its fence: only the list tells it from what was retired without an event.
        swept = head.retired and not head.next_offset and key not in set(self._store.keys())
        if swept or head == EMPTY_HEAD:
            raise self.unknown(key)

    @contextmanager
    def moment(self, key: ActivationKey) -> Generator[LogSnapshot]:
        """The log of `key` at one moment; it may hold a connection.

        Raises:
            Problem: the store holds no such activation.
        """
        self._head(key)
        with self._store.snapshot(key) as log:
            self._check_there(key, log.head)
            yield log

    def place(self, log: LogSnapshot) -> Place:
        """Where a log stands at a moment."""
        head = log.head
        return Place(head.generation, head.next_offset, self.sign(log, head.next_offset))

    def sign(self, log: LogSnapshot, next_offset: int) -> str:
        """What tells this log below an offset from another under its key, and masked answers from others.

        It is made of the first event and of the last one there: two logs that were one for a while, such as a store
        and a backup of it that both went on, have the first in common. Empty where there is none.
        """
        first = log.page(0, 1, _FIRST_BYTES)
        last = log.page(next_offset - 1, next_offset, _FIRST_BYTES) if next_offset else ()
        return "".join([self.mark(first[0]), self.mark(last[0])]) if first and last else ""

    def mark(self, appended: AppendedEvent) -> str:
        """What tells one event from another: `MARK_DIGITS` hexadecimal digits."""
        told = encode_appended(appended) + (b"masked" if self.mask else b"")
        return blake2b(told, digest_size=MARK_DIGITS // 2).hexdigest()

    def view(self, key: ActivationKey, name: str) -> Snapshot:
        """A view of `key` that is level with its log; see `VIEWS`.

        Raises:
            ViewFailedError, StoreBusyError, LogCorruptionError: from reading it.
        """
        snapshot: Snapshot = self._views.of(key, Placed(VIEWS[name].projection())).get()
        return snapshot

    def sum(self, key: ActivationKey, projection: Projection[V]) -> V:
        """What a projection that only counts makes of `key`.

        Raises:
            ViewFailedError, StoreBusyError, LogCorruptionError: from reading it.
        """
        return self._sums.of(key, projection).get()

    def remember(self, key: ActivationKey, name: str, place: Place, items: Sequence[Any]) -> None:
        """Keep what a view held at a place that somebody was given."""
        with self._lock:
            self._given[key, name, place] = items
            self._given.move_to_end((key, name, place))
            while len(self._given) > _MOST_GIVEN:
                self._given.popitem(last=False)

    def remembered(self, key: ActivationKey, name: str, place: Place) -> Sequence[Any] | None:
        """What a view held at that place; None where that is not known any more."""
        with self._lock:
            return self._given.get((key, name, place))

    def close(self) -> None:
        """Let go of the store."""
        with self._lock:
            self._closed = True
            self._given.clear()
        self._system.close()
