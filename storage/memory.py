"""The memory store: the contract in its plainest form, for tests and throw-away sessions.

It keeps the same encoded bytes as every other store, so nothing that a caller mutates later changes a log.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from incarnate.domain.codec import StoredEvent, decode_checkpoint, decode_stored
from incarnate.domain.decisions import evolve
from incarnate.domain.errors import ClosedError, KeyTakenError, OffsetError, ReadOnlyError, ReentrantCallError
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.domain.projections.vector import Vector
from incarnate.domain.rewinds import Rewind
from incarnate.storage.port import ActivationInfo, Snapshot, Store, Swept

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator
    from contextlib import AbstractContextManager

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.decisions import Change, Decision
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Decide

__all__ = ["MemoryStore"]


class _Log(msgspec.Struct, frozen=True):
    """Everything kept of one activation at one moment: immutable, and so its own snapshot."""

    key: ActivationKey
    created_ms: int
    head: Head = EMPTY_HEAD
    rows: Any = Vector()  # of StoredEvent: a persistent vector, so that a change costs what it changes
    checkpoints: dict[str, tuple[int, bytes]] = {}
    archive: tuple[tuple[Rewind, tuple[StoredEvent, ...]], ...] = ()
    closed_ms: int | None = None
    swept: bool = False

    def after(self, change: Change) -> _Log:
        """The moment after `change`."""
        head = evolve(self.head, change)
        rows, checkpoints, archive = self.rows, self.checkpoints, self.archive
        cut = change.cut
        if cut is not None:
            rewind = Rewind(head.generation, cut, self.head.next_offset, change.incarnation, change.at_ms)
            archive = (*archive, (rewind, rows[cut:]))
            rows = rows.take(cut)
            checkpoints = {name: kept for name, kept in checkpoints.items() if kept[0] <= cut}
        for offset, encoded in enumerate(change.events, change.offset):
            rows = rows.append(StoredEvent(offset, change.incarnation, change.at_ms, encoded.payload))
        if change.checkpoint is not None and change.checkpoint.checkpoint.id not in checkpoints:
            checkpoint = change.checkpoint.checkpoint
            checkpoints = {**checkpoints, checkpoint.id: (checkpoint.offset, change.checkpoint.payload)}
        closed_ms = change.at_ms if change.retired else self.closed_ms
        return _Log(self.key, self.created_ms, head, rows, checkpoints, archive, closed_ms)

    def fork(self, key: ActivationKey, offset: int, now_ms: int) -> _Log:
        """A new activation from what lies below `offset`."""
        head = Head(self.head.fence, offset, 0, self.head.next_turn)
        kept = {name: kept for name, kept in self.checkpoints.items() if kept[0] <= offset}
        return _Log(key, now_ms, head, self.rows.take(offset), kept)

    def events(self, start: int, stop: int) -> tuple[StoredEvent, ...]:
        rows: tuple[StoredEvent, ...] = self.rows[start:stop]
        return rows

    def appended(self, start: int, stop: int) -> list[AppendedEvent]:
        return decode_stored(self.events(start, stop), self._place)

    def page(self, start: int, stop: int, max_bytes: int) -> list[AppendedEvent]:
        return decode_stored(_up_to(self.events(start, stop), max_bytes), self._place)

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        kept = self.checkpoints.get(checkpoint_id)
        return None if kept is None else decode_checkpoint(kept[1], self._place)

    def latest_checkpoint(self) -> Checkpoint | None:
        # max() keeps the first of equals: reversed, that is the latest insert.
        latest = max(reversed(self.checkpoints.values()), key=lambda kept: kept[0], default=None)
        return None if latest is None else decode_checkpoint(latest[1], self._place)

    def checkpoint_ids(self) -> list[str]:
        return sorted(self.checkpoints, key=lambda name: self.checkpoints[name][0])

    def lowest_cut(self, generation: int) -> int | None:
        return min((rewind.cut for rewind in self.rewinds() if rewind.generation > generation), default=None)

    def rewinds(self) -> list[Rewind]:
        return [rewind for rewind, _ in self.archive]

    def superseded(self, generation: int, start: int, stop: int, max_bytes: int) -> list[AppendedEvent]:
        rows = [
            row
            for rewind, superseded in self.archive
            if rewind.generation == generation
            for row in superseded
            if start <= row.offset < stop
        ]
        return decode_stored(_up_to(rows, max_bytes), f"{self._place}, superseded by rewind {generation}")

    def retired_ms(self) -> int | None:
        return None if self.swept else self.closed_ms

    @property
    def info(self) -> ActivationInfo:
        """What a listing tells of it."""
        updated_ms = self.rows[-1].at_ms if self.rows else 0
        return ActivationInfo(self.key, self.head, self.created_ms, max(self.created_ms, updated_ms))

    @property
    def _place(self) -> str:
        return f"memory://, {self.key}"


def _up_to(rows: Iterable[StoredEvent], max_bytes: int) -> list[StoredEvent]:
    taken: list[StoredEvent] = []
    size = 0
    for row in rows:
        taken.append(row)
        size += len(row.payload)
        if size >= max_bytes:
            break
    return taken


class MemoryStore(Store):
    """Logs in this process's memory, gone when it is closed."""

    url = "memory://"
    commits_together = True  # nothing is waited for

    def __init__(self, *, read_only: bool = False) -> None:
        self._read_only = read_only
        self._lock = threading.RLock()
        self._logs: dict[ActivationKey, _Log] | None = {}

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        with self._alone():
            logs = self._writable_logs()
            log = logs.get(key) or _Log(key, now_ms)
            decision = decide(log)
            if decision.change is not None:
                logs[key] = log.after(decision.change)
            return decision

    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        yield self._open_logs().get(key) or _Log(key, 0)

    def head(self, key: ActivationKey) -> Head:
        log = self._open_logs().get(key)
        return EMPTY_HEAD if log is None else log.head

    def activations(self) -> Iterator[ActivationInfo]:
        with self._lock:
            logs = sorted(self._open_logs().values(), key=lambda log: log.key)
        return iter([log.info for log in logs if not log.swept])

    def fork(self, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int) -> Head:
        with self._alone():
            logs = self._writable_logs()
            source = logs.get(key) or _Log(key, 0)
            if not 0 <= offset <= source.head.next_offset:
                raise OffsetError(f"{key} ends at {source.head.next_offset}; it cannot be forked at {offset}")
            if new_key in logs:
                raise KeyTakenError(new_key)
            logs[new_key] = source.fork(new_key, offset, now_ms)
            return logs[new_key].head

    def sweep(self, before_ms: int, keys: Collection[ActivationKey] | None = None) -> Swept:
        with self._alone():
            logs = self._writable_logs()
            swept = [_swept(log, before_ms) for log in logs.values() if keys is None or log.key in keys]
            logs.update({log.key: log for log, _ in swept})
            counts = [count for _, count in swept]
        return Swept(*(sum(column) for column in zip(*counts, strict=True))) if counts else Swept(0, 0, 0)

    def vacuum(self) -> None:
        self._writable_logs()

    def version(self) -> int:
        return 0  # no other process can reach this memory

    def close(self) -> None:
        with self._lock:
            self._logs = None

    def _alone(self) -> AbstractContextManager[object]:
        """The lock of a write, for `with`.

        Raises:
            ReentrantCallError: this thread is in the middle of a write: a signal handler's would be overwritten by it.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - threading.Condition uses it too
            raise ReentrantCallError("a store")
        return self._lock

    def _open_logs(self) -> dict[ActivationKey, _Log]:
        if self._logs is None:
            raise ClosedError(f"{self.url} is closed")
        return self._logs

    def _writable_logs(self) -> dict[ActivationKey, _Log]:
        logs = self._open_logs()
        if self._read_only:
            raise ReadOnlyError(f"{self.url} was opened read-only")
        return logs


def _swept(log: _Log, before_ms: int) -> tuple[_Log, tuple[int, int, int]]:
    """`log` without what a sweep removes, and how many activations, rewinds and events that were."""
    retired_ms = log.retired_ms()
    whole = retired_ms is not None and retired_ms < before_ms
    events = len(log.rows) if whole else 0
    archive: list[tuple[Rewind, tuple[StoredEvent, ...]]] = []
    rewinds = 0
    for rewind, rows in log.archive:
        if not rewind.swept and (whole or rewind.at_ms < before_ms):
            archive.append((msgspec.structs.replace(rewind, swept=True), ()))
            rewinds += 1
            events += len(rows)
        else:
            archive.append((rewind, rows))
    kept = msgspec.structs.replace(log, archive=tuple(archive))
    if whole:
        head = msgspec.structs.replace(log.head, next_offset=0)
        kept = msgspec.structs.replace(kept, head=head, rows=Vector(), checkpoints={}, swept=True)
    return kept, (int(whole), rewinds, events)
