"""The session handle: what a supervisor holds while it owns an activation."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import msgspec

from incarnate.actors.pipeline import Pipeline
from incarnate.domain.checkpoints import Checkpoint, EffectEntry, Seed
from incarnate.domain.commands import Append, AppendMany, GetCheckpoint, GetHead, NextTurn, PutCheckpoint
from incarnate.domain.errors import (
    CheckpointError,
    HeadMovedError,
    MalformedCommandError,
    ReentrantCallError,
    StaleIncarnationError,
    WouldRewindError,
)
from incarnate.domain.events import timestamp
from incarnate.domain.turns import turn_id

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from incarnate.actors.directory import ActivationRef
    from incarnate.actors.runtime import Runtime
    from incarnate.domain.codec import EncodedEvent
    from incarnate.domain.errors import RefusedError
    from incarnate.domain.events import AppendedEvent, Opaque, SessionEvent
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Store

__all__ = ["Begun", "Session", "check_callback"]

T = TypeVar("T")


class _Cursor(msgspec.Struct, frozen=True, gc=False):
    """Where the next event goes, and the head as this handle last saw it.

    They differ after a restore: the next event then goes below the head and supersedes the rest, knowingly.
    `unsafe`: going on from here would erase a log without a checkpoint.
    """

    offset: int
    seen: tuple[int, int]
    unsafe: bool = False


class Begun(NamedTuple):
    """An emit that was begun: what to ask of whom."""

    ref: ActivationRef
    command: Append


class Session:
    """One incarnation's handle on an activation. May be shared by threads: each call is atomic.

    Every write says which head it expects, so a second writer with the same incarnation is refused with
    `HeadMovedError` instead of being rewound. A call that raised `OutcomeUnknownError` may be repeated as it is.

    Every write may raise:
        StaleIncarnationError: a newer incarnation has taken over; stop.
        HeadMovedError: someone else wrote with the same incarnation; restore or lease again.
        WouldRewindError: see `restore`.
        UnencodableEventError: a value outside the encoding contract, with its path.
        StoreBusyError, OutcomeUnknownError, ClosedError, ForkedError: see each.
    """

    def __init__(
        self,
        ref: ActivationRef,
        store: Store,
        *,
        incarnation: int,
        head: Head,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        watch: Callable[[ActivationRef, int, Callable[[], object]], None],
        runtime: Runtime,
    ) -> None:
        self._ref = ref
        self._store = store
        self._incarnation = incarnation
        self._clock = clock
        self._new_id = new_id
        self._watch = watch
        self._runtime = runtime
        self._pipeline: Pipeline | None = None
        self._lock = runtime.rlock()
        self._cursor = _Cursor(head.next_offset, head.expected)

    def __repr__(self) -> str:
        return f"<Session {self.key} incarnation {self._incarnation} at {self.next_offset}>"

    @property
    def key(self) -> ActivationKey:
        """The activation."""
        return self._ref.key

    @property
    def incarnation(self) -> int:
        """The fencing token of this handle."""
        return self._incarnation

    @property
    def next_offset(self) -> int:
        """Where the next event goes."""
        return self._cursor.offset

    def emit(self, event: SessionEvent | Opaque) -> AppendedEvent:
        """Append one event. It is durable when this returns."""
        self._check_call()
        if self._pipeline is not None:
            self.settle()
        with self._lock:
            cursor = self._safe_cursor()
            appended: AppendedEvent = self._ref.ask(Append(self._incarnation, cursor.offset, event, cursor.seen))
            self._advance(cursor, 1)
            return appended

    def begin_emit(self, event: SessionEvent | Opaque) -> Begun | None:
        """What `emit` asks of whom, this handle being held until `end_emit`; None, and it is not, where it is not free.

        For `emit_together`.

        Raises:
            ClosedError, ForkedError, ReentrantCallError: as `emit`.
        """
        self._check_call()
        lock = cast("threading.RLock", self._lock)  # a simulation has no loop
        pipeline = self._pipeline
        if pipeline is not None and not pipeline.is_settled:
            return None
        if not self.emits_together or not lock.acquire(blocking=False):
            return None
        begun: Begun | None = None
        try:
            cursor = self._cursor
            if not cursor.unsafe:
                begun = Begun(self._ref, Append(self._incarnation, cursor.offset, event, cursor.seen))
        finally:
            if begun is None:
                lock.release()
        return begun

    def end_emit(self, *, written: bool) -> None:
        """What `begin_emit` began is over."""
        try:
            if written:
                self._advance(self._cursor, 1)
        finally:
            cast("threading.RLock", self._lock).release()

    def trim(self) -> None:
        """Put to rest whoever was started for emits together, and is too many."""
        self._ref.trim()

    @property
    def emits_together(self) -> bool:
        """Whether an emit costs less together with those of other sessions than each by itself at the same time."""
        return self._ref.lends and getattr(self._store, "commits_together", False)  # somebody's store may be older

    def emit_many(self, events: Iterable[SessionEvent | Opaque]) -> tuple[AppendedEvent, ...]:
        """Append events, all or none, in one commit. Without any, nothing happens.

        Raises:
            MalformedCommandError: `events` is no iterable, such as one event by itself.
        """
        given = _iterated("emit_many", "events", "events", events)
        self.settle()
        return self._append(tuple(given))

    def emit_soon(self, event: SessionEvent | Opaque) -> Future[AppendedEvent]:
        """Append one event without waiting: the future has the stored event once it is durable.

        Many may be in flight, up to 4,096 or 64 MiB, after which this waits; order is kept, and those that wait
        together share a commit. If one fails, all after it fail with the same error, and so does every `emit_soon`
        until the next `emit`, `emit_many` or `checkpoint`, which raises it once, or the next `restore`, which makes a
        new beginning.
        """
        self._check_call()
        pipeline = self._pipeline
        if pipeline is None:
            with self._lock:
                pipeline = self._pipeline = self._pipeline or Pipeline(self._append, self._runtime)
        return pipeline.add(event)

    def _append(self, batch: Sequence[SessionEvent | Opaque | EncodedEvent]) -> tuple[AppendedEvent, ...]:
        with self._lock:
            cursor = self._safe_cursor() if batch else self._cursor
            appended: tuple[AppendedEvent, ...] = self._ref.ask(
                AppendMany(self._incarnation, cursor.offset, tuple(batch), cursor.seen)
            )
            if batch:
                self._advance(cursor, len(batch))
            return appended

    def checkpoint(self, commit_sha: str, effect_ledger: Iterable[EffectEntry] = ()) -> Checkpoint:
        """Join the mind up to here with the world at `commit_sha` after `effect_ledger`.

        Raises:
            CheckpointError: the id that `new_id` gave already holds a different checkpoint.
            MalformedCommandError: `effect_ledger` is no iterable, such as one effect by itself.
        """
        given = _iterated("checkpoint", "effect_ledger", "effects", effect_ledger)
        self.settle()
        # All that is somebody else's code runs before the lock is taken: it may call back.
        checkpoint_id, ledger, at = self._new_id(), tuple(given), timestamp(self._clock())
        with self._lock:
            cursor = self._safe_cursor()
            checkpoint = Checkpoint(
                id=checkpoint_id,
                offset=cursor.offset,
                commit_sha=commit_sha,
                effect_ledger=ledger,
                incarnation=self._incarnation,
                at=at,
            )
            self._ref.ask(PutCheckpoint(self._incarnation, checkpoint, cursor.seen))
            stored: Checkpoint | None = self._ref.ask(GetCheckpoint(checkpoint.id))
            if stored is None:
                raise self._moved(cursor)  # it was kept, and a rewind below it has pruned it since
            if stored != checkpoint:
                raise CheckpointError(f"checkpoint {checkpoint.id!r} of {self.key} is stored with other contents")
            return checkpoint

    def _moved(self, cursor: _Cursor) -> RefusedError:
        """Why what was written is not there any more."""
        head: Head = self._ref.ask(GetHead())
        if head.fence is not None and head.fence > self._incarnation:
            return StaleIncarnationError(key=self.key, incarnation=self._incarnation, current=head.fence)
        return HeadMovedError(key=self.key, expected=cursor.seen, current=head.expected)

    def restore(self, checkpoint_id: str | None = None, *, rewind: bool = False) -> Seed:
        """The seed to go on from: the newest checkpoint or that of `checkpoint_id` (unknown: the newest).

        The next write goes to its offset and supersedes what lies above. Where the log has events and no checkpoint
        at all, that would erase it: then the next write raises `WouldRewindError`, unless `rewind` is true.

        Raises:
            MalformedCommandError: `checkpoint_id` is no text.
        """
        if not isinstance(checkpoint_id, str | None):  # pyright: ignore[reportUnnecessaryIsInstance] - not all check
            raise MalformedCommandError("restore", "checkpoint_id", f"must be a str, not {checkpoint_id!r:.100}")
        self._check_call()
        if self._pipeline is not None:
            self._pipeline.settle()  # whatever stopped it: this is a new beginning
        with self._lock:
            # One snapshot: checkpoint, events and head belong together.
            with self._store.snapshot(self.key) as log:
                head = log.head
                named = None if checkpoint_id is None else log.checkpoint(checkpoint_id)
                checkpoint = named or log.latest_checkpoint()
                offset = 0 if checkpoint is None else checkpoint.offset
                seed = Seed(checkpoint, tuple(log.appended(0, offset)), offset, head.next_offset - offset)
            unsafe = checkpoint is None and seed.discards > 0 and not rewind
            self._cursor = _Cursor(offset, head.expected, unsafe)
            return seed

    def settle(self) -> None:
        """Wait until nothing that `emit_soon` sent is in flight.

        Raises:
            IncarnateError: what stopped `emit_soon`, told once.
            ClosedError, ForkedError, ReentrantCallError: see each.
        """
        self._check_call()
        if self._pipeline is not None:
            error = self._pipeline.settle()
            if error is not None:
                raise error

    def _check_call(self) -> None:
        """Refuse before any lock is taken: a forked child may find it held for ever.

        Raises:
            ClosedError, ForkedError: the system cannot be used.
            ReentrantCallError: a call of this handle on this thread is not over yet.
        """
        self._ref.check_usable()
        if self._lock._is_owned():  # noqa: SLF001 - threading.Condition uses it too
            raise ReentrantCallError(f"the session of {self.key}")

    def next_turn(self) -> int:
        """A turn number that this activation never used before (I8)."""
        number: int = self._ref.ask(NextTurn(self._incarnation))
        return number

    def next_turn_id(self) -> str:
        """The same as an id: `turn-7`."""
        return turn_id(self.next_turn())

    def on_fenced(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, from a thread of the system, when a newer incarnation has taken over.

        In whatever process: the store is watched. Its exceptions are logged.

        Raises:
            MalformedCommandError: `callback` cannot be called, or is a coroutine function, of which nothing would run.
        """
        check_callback(callback)
        self._watch(self._ref, self._incarnation, callback)

    def _safe_cursor(self) -> _Cursor:
        cursor = self._cursor
        if cursor.unsafe:
            raise WouldRewindError(key=self.key, discards=cursor.seen[1])
        return cursor

    def _advance(self, cursor: _Cursor, count: int) -> None:
        generation, next_offset = cursor.seen
        offset = cursor.offset + count
        self._cursor = _Cursor(offset, (generation + 1 if cursor.offset < next_offset else generation, offset))


def check_callback(callback: object) -> None:
    """Refuse what would only fail at the take-over, where nobody hears of it: `on_fenced(stop.set())` for one.

    Raises:
        MalformedCommandError: `callback` is no plain function.
    """
    if not callable(callback) or inspect.iscoroutinefunction(callback):
        raise MalformedCommandError("on_fenced", "callback", f"must be a plain function, not {callback!r:.100}")


def _iterated(call: str, field: str, items: str, given: Iterable[T]) -> Iterator[T]:
    """An iterator over `given`, the argument `field` of `call`, which most often is one of `items` by mistake."""
    try:
        return iter(given)
    except TypeError as error:
        raise MalformedCommandError(
            call, field, f"must be a list of {items} or another iterable, not {given!r:.100}"
        ) from error
