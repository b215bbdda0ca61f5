"""The session system: where a program opens a store and gets its sessions."""

from __future__ import annotations

import threading
import time
import uuid
import weakref
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from incarnate.actors.clocks import checked
from incarnate.actors.directory import ActivationRef, Directory
from incarnate.actors.dispatchers import DispatcherName, make_runtime
from incarnate.actors.doctor import examine
from incarnate.actors.mailboxes import DEFAULT_MAX_MAILBOX
from incarnate.actors.measuring import measure
from incarnate.actors.metrics import Meters, Metrics
from incarnate.actors.mirror import Mirror
from incarnate.actors.replay import replay, replay_superseded
from incarnate.actors.services import Services
from incarnate.actors.session import Session
from incarnate.actors.sweeping import sweepable
from incarnate.actors.view import View
from incarnate.actors.watch import StoreWatch
from incarnate.domain.checkpoints import Checkpoint
from incarnate.domain.commands import Claim, Lease, Retire, Subscribe
from incarnate.domain.errors import MalformedCommandError, OffsetError
from incarnate.domain.projections.transcript import TranscriptRows
from incarnate.storage.copying import Copied, copy_activations
from incarnate.storage.locate import open_store
from incarnate.storage.plugins import without_password
from incarnate.storage.transcripts import Sync, TranscriptFile

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Self

    from incarnate.actors.runtime import Runtime
    from incarnate.domain.diagnosis import Diagnosis
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.projections.base import Projection
    from incarnate.domain.rewinds import Rewind
    from incarnate.storage.port import ActivationInfo, Store, Swept

__all__ = ["SessionSystem"]

V = TypeVar("V")


_MAX_LIVE = 10_000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _new_id() -> str:
    return str(uuid.uuid4())


class SessionSystem:
    """Finds, starts and stops the activation actors of one store. Several may live in one process.

    Use it as a context manager, or call `close`. Any thread may use it. A forked child may not.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], int] = _now_ms,
        new_id: Callable[[], str] = _new_id,
        dispatcher: DispatcherName | Runtime = "calling",
        max_live: int = _MAX_LIVE,
        max_mailbox: int | None = DEFAULT_MAX_MAILBOX,
        keep_views: bool = False,
        ask_timeout: float | None = None,
    ) -> None:
        if max_live < 1:
            raise ValueError(f"max_live must be at least 1, not {max_live}")
        if ask_timeout is not None and not ask_timeout > 0:  # NaN too: each call would raise, and be done all the same
            raise ValueError(f"ask_timeout must be above 0, or None for as long as it takes, not {ask_timeout!r}")
        self._store = store
        self._clock = clock = checked(clock)
        self._new_id = new_id
        self._runtime = runtime = make_runtime(dispatcher, max_mailbox=max_mailbox)
        services = Services(store, clock, runtime, Meters())
        self._directory = Directory(services, max_live=max_live, keep_views=keep_views, ask_timeout=ask_timeout)
        self._watch = StoreWatch(store, runtime)
        self._views: weakref.WeakValueDictionary[tuple[ActivationKey, str], View[Any]] = weakref.WeakValueDictionary()
        self._views_lock = threading.RLock()  # a signal handler may come in while it is held
        self._mirrors: list[Mirror] = []

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Callable[[], int] = _now_ms,
        new_id: Callable[[], str] = _new_id,
        dispatcher: DispatcherName | Runtime = "calling",
        read_only: bool = False,
        max_live: int = _MAX_LIVE,
        max_mailbox: int | None = DEFAULT_MAX_MAILBOX,
        keep_views: bool = False,
        ask_timeout: float | None = None,
    ) -> Self:
        """A system over the store that `url` names (see `incarnate.storage.locate`).

        Args:
            url: `memory://`, `sqlite:///relative.db`, `jsonl:////absolute/folder`, `postgresql://host/database`...
            clock: milliseconds since the epoch, UTC.
            new_id: ids of checkpoints, each one new.
            dispatcher: `calling` runs actors on the asking thread, `thread` gives each its own.
            read_only: never take a lease and never write; the store must exist.
            max_live: how many activations have an actor at once. The least recently used ones beyond it are put to
                rest, and come back at their next use; nobody notices but `metrics`.
            max_mailbox: how many messages may wait for one actor, None for no bound: one more is refused with
                `MailboxFullError`, or waits where it is sent with `wait=`.
            keep_views: keep the views of an activation that is put to rest, in memory. Else they are built from the
                log when they are next asked for; those that somebody follows are always kept.
            ask_timeout: seconds that a call waits for its actor before it raises `AskTimeoutError`; None: for as
                long as it takes. With one, no actor runs on its caller's thread.

        Raises:
            ValueError: an option is out of range, or there is no such dispatcher.
            StoreUrlError, StoreFileError, StoreServerError, StoreBusyError, MissingExtraError: the store cannot be
                opened.
        """
        store = open_store(url, read_only=read_only)
        try:
            return cls(
                store,
                clock=clock,
                new_id=new_id,
                dispatcher=dispatcher,
                max_live=max_live,
                max_mailbox=max_mailbox,
                keep_views=keep_views,
                ask_timeout=ask_timeout,
            )
        except BaseException:
            store.close()  # nobody else has it: its file would stay locked
            raise

    @property
    def url(self) -> str:
        """The store's URL."""
        return self._store.url

    def lease(self, key: ActivationKey, incarnation: int) -> Session:
        """Take `key` at `incarnation`, or renew it there.

        Raises:
            StaleIncarnationError: a newer incarnation was admitted before.
            OutOfRangeError: `incarnation` is no integer from 0 to 2^53 - 1.
        """
        ref = self.activation(key)
        return self._session(ref, incarnation, ref.ask(Lease(incarnation)))

    def claim(self, key: ActivationKey) -> Session:
        """Take `key` at the next free incarnation, 1 on a fresh key, atomically.

        Raises:
            OutOfRangeError: there is no incarnation above the last.
        """
        ref = self.activation(key)
        head: Head = ref.ask(Claim())
        assert head.fence is not None, "a claim raises the fence"
        return self._session(ref, head.fence, head)

    def _session(self, ref: ActivationRef, incarnation: int, head: Head) -> Session:
        return Session(
            ref,
            self._store,
            incarnation=incarnation,
            head=head,
            clock=self._clock,
            new_id=self._new_id,
            watch=self._watch_fence,
            runtime=self._runtime,
        )

    def _watch_fence(self, ref: ActivationRef, incarnation: int, callback: Callable[[], object]) -> None:
        ref.ask(Subscribe(self._watch))
        self._watch.on_fenced(ref, incarnation, callback)

    def view(self, key: ActivationKey, projection: Projection[V]) -> View[V]:
        """The view that `projection` makes of `key`: one for all who ask with a projection of the same name.

        It reads the log when first asked for its value. `projection` itself is never changed.

        Raises:
            MalformedCommandError: `projection` is none, such as a class that makes one.
        """
        self._directory.check_call(key)
        if not isinstance(getattr(projection, "name", None), str):
            raise MalformedCommandError("view", "projection", f"must be a Projection, not {projection!r:.100}")
        view = self._views.get((key, projection.name))
        if view is None:
            made = View(self._directory, self._watch, self.activation(key), projection)
            with self._views_lock:
                view = self._views.setdefault((key, projection.name), made)
        view.attach()
        return view

    def mirror(
        self,
        key: ActivationKey,
        directory: str | os.PathLike[str],
        session_id: str | None = None,
        sync: Sync = "os",
    ) -> Mirror:
        """Keep the transcript file of `session_id` in `directory` level with the log, until it or the system is closed.

        The session is called as the activation is, unless `session_id` is given. Rows that the file has and the log
        does not are saved beside it and cut.

        Raises:
            LogCorruptionError: a torn record stands in front of valid ones; the file was left untouched.
            StoreBusyError: someone else has the file open.
            StoreFileError: it cannot be opened.
        """
        view = self.view(key, TranscriptRows())
        name = str(key) if session_id is None else session_id
        mirror = Mirror(view, lambda: TranscriptFile.open(directory, name, sync), self._runtime)
        self._mirrors = [*[other for other in self._mirrors if not other.closed], mirror]
        return mirror

    def activation(self, key: ActivationKey) -> ActivationRef:
        """A stable reference to the activation, for those who send the messages themselves."""
        return self._directory.activation(key)

    def replay(self, key: ActivationKey, start: int = 0, stop: int | None = None) -> Iterator[AppendedEvent]:
        """The events from `start` up to, not including, `stop` (None: the head as the replay begins).

        In bounded memory, and holding no connection while its consumer thinks.

        Raises:
            OffsetError: the range ends before it starts.
            LogRewoundError: a rewind cut below what was already given.
            LogCorruptionError: a stored event cannot be read.
        """
        self._directory.check_call(key)
        return replay(self._store, key, start, stop)

    def activations(self) -> Iterator[ActivationInfo]:
        """What the store holds, in the order of the keys."""
        self._directory.check_usable()
        return self._store.activations()

    def rewinds(self, key: ActivationKey) -> list[Rewind]:
        """Every rewind of `key`, the first one first: who cut, when, from where to where."""
        self._directory.check_call(key)
        with self._store.snapshot(key) as log:
            return list(log.rewinds())

    def checkpoints(self, key: ActivationKey) -> list[Checkpoint]:
        """The checkpoints of `key` that no rewind pruned: the lowest offset first, of equal ones the first made."""
        self._directory.check_call(key)
        with self._store.snapshot(key) as log:
            found = [log.checkpoint(checkpoint_id) for checkpoint_id in log.checkpoint_ids()]
        return [checkpoint for checkpoint in found if checkpoint is not None]

    def replay_superseded(self, key: ActivationKey, generation: int) -> Iterator[AppendedEvent]:
        """The events that the rewind to `generation` superseded; none where they were swept.

        Raises:
            OffsetError: there was no such rewind.
        """
        for rewind in self.rewinds(key):
            if rewind.generation == generation:
                return replay_superseded(self._store, key, rewind)
        raise OffsetError(f"{key} has not been rewound to generation {generation}")

    def fork(self, key: ActivationKey, new_key: ActivationKey, at: Checkpoint | int | None = None) -> Head:
        """Make `new_key` of what `key` held at a checkpoint or below an offset; None: of all that it holds.

        Nothing goes through this process. The fork has its own fence and turn counter from there on, which begin where
        those of `key` stand.

        Raises:
            OffsetError: `at` is above the head.
            KeyTakenError: somebody has touched `new_key`.
            MalformedCommandError: `at` is neither, such as a checkpoint's id.
        """
        self._directory.check_call(key, new_key)
        if at is None:
            with self._store.snapshot(key) as log:
                at = log.head.next_offset
        offset = at.offset if isinstance(at, Checkpoint) else at
        if type(offset) is not int:
            raise MalformedCommandError("fork", "at", f"must be a Checkpoint or an offset, not {at!r:.100}")
        return self._store.fork(key, new_key, offset, self._clock())

    def retire(self, key: ActivationKey) -> Head:
        """Raise the fence of `key` and close its log for ever. Its events stay until they are swept."""
        head: Head = self.activation(key).ask(Retire())
        return head

    def sweep(self, older_than: timedelta, keys: Iterable[ActivationKey] | None = None) -> Swept:
        """Remove what was retired, and the archives of what was rewound, longer ago than `older_than`.

        Nothing else is ever removed, and with `keys` nothing of any other activation (of none where it is empty). A
        swept activation keeps its fence: its key cannot be used again. `sweepable` tells beforehand what it would be.

        Raises:
            MalformedCommandError: `older_than` is no timedelta.
            KeyFormatError: one of `keys` is no `ActivationKey`.
        """
        before_ms, among = self._to_sweep("sweep", older_than, keys)
        # A back end that knows of no keys can be swept whole.
        return self._store.sweep(before_ms) if among is None else self._store.sweep(before_ms, among)

    def sweepable(
        self, older_than: timedelta, keys: Iterable[ActivationKey] | None = None
    ) -> dict[ActivationKey, Swept]:
        """What `sweep` would remove now of each activation, in the order of the keys; nothing is removed or written.

        Raises:
            MalformedCommandError, KeyFormatError: as `sweep`.
        """
        return sweepable(self._store, *self._to_sweep("sweepable", older_than, keys))

    def _to_sweep(
        self, asked: str, older_than: timedelta, keys: Iterable[ActivationKey] | None
    ) -> tuple[int, list[ActivationKey] | None]:
        if not isinstance(older_than, timedelta):  # pyright: ignore[reportUnnecessaryIsInstance] - not all check
            raise MalformedCommandError(asked, "older_than", f"must be a timedelta, not {older_than!r:.100}")
        among = None if keys is None else list(keys)
        self._directory.check_call(*among or ())
        return self._clock() - int(older_than.total_seconds() * 1000), among

    def metrics(self) -> Metrics:
        """What lives in this system now, and what it has done since it was opened."""
        self._directory.check_usable()
        return measure(self._directory, self._known_views())

    def _known_views(self) -> tuple[View[Any], ...]:
        with self._views_lock:  # another thread may make one meanwhile, which an iteration does not survive
            return tuple(self._views.values())

    def examine(self) -> Iterator[Diagnosis]:
        """What is wrong with each activation that the store holds, and how large it is, in the order of the keys.

        Takes no lease and never writes; what is damaged does not hide what comes after it. Of the log that is read it
        keeps a few numbers for each event, and a page of events at a time.

        Raises:
            StoreBusyError, UnavailableError: the store could not be read at all.
        """
        self._directory.check_usable()
        return examine(self._store)

    def copy_to(self, target: Store, keys: Sequence[ActivationKey] = ()) -> Iterator[Copied]:
        """Copy the logs of `keys`, or of all activations, to another store, and read them back event by event.

        Offsets, incarnations, times, bytes, checkpoints, the fence, the turn counter and the retirement are the same
        there; archives of rewinds stay behind. A copy that was killed is continued. What `target` holds under the
        same key with another content is left as it is: the answer holds the error, and the next key is copied.

        Raises:
            StoreBusyError, OutcomeUnknownError, UnavailableError: a store failed; the copy can be run again.
        """
        self._directory.check_call(*keys)
        return copy_activations(self._store, target, keys, self._clock())

    def vacuum(self) -> None:
        """Give the room of what was removed back to the file system; writers wait meanwhile."""
        self._directory.check_usable()
        self._store.vacuum()

    def close(self) -> None:
        """Stop every actor after what it was sent, then let go of the store. Closing twice is no error.

        In a forked child it does nothing: the connections are the parent's.
        """
        if not self._directory.forked:
            self._runtime.drain()  # what is in flight first
            for mirror in self._mirrors:
                mirror.close()
            self._watch.close()
            for view in self._known_views():
                view.close()
            self._directory.close()
            self._store.close()

    def __repr__(self) -> str:
        return f"<SessionSystem {without_password(self.url)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
