"""The memory store: the contract in its plainest form, for tests and throw-away sessions.

It keeps the same encoded bytes as every other store, so nothing that a caller mutates later changes a log.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from incarnate.domain.codec import StoredEvent, decode_checkpoint, decode_stored
from incarnate.domain.decisions import evolve
from incarnate.domain.errors import ClosedError, ReadOnlyError
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.storage.port import ActivationInfo, Snapshot, Store

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Self

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.decisions import Change, Decision
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Decide

__all__ = ["MemoryStore"]


class _Rewind(NamedTuple):
    """What one rewind superseded: who cut, when, from where to where, and the rows."""

    generation: int
    cut: int
    incarnation: int
    at_ms: int
    superseded: list[StoredEvent]


class _Log(NamedTuple):
    """Everything kept of one activation at one moment, so a snapshot of itself.

    Only `rows` is shared by the moments: it grows, and each moment sees it up to its own head.
    """

    key: ActivationKey
    created_ms: int
    head: Head
    rows: list[StoredEvent]
    checkpoints: dict[str, tuple[int, bytes]]
    rewinds: tuple[_Rewind, ...]

    def after(self, change: Change) -> _Log:
        """The moment after `change`. Nothing is seen of it before the store keeps it, whatever interrupts this."""
        key, created_ms, head, rows, checkpoints, rewinds = self
        after = evolve(head, change)
        if change.cut is None:
            del rows[head.next_offset :]  # what an interrupted append left
        else:
            superseded = rows[change.cut : head.next_offset]
            rewinds += (_Rewind(after.generation, change.cut, change.incarnation, change.at_ms, superseded),)
            rows = rows[: change.cut]
            checkpoints = {name: kept for name, kept in checkpoints.items() if kept[0] <= change.cut}
        rows += [
            StoredEvent(offset, change.incarnation, change.at_ms, encoded.payload)
            for offset, encoded in enumerate(change.events, change.offset)
        ]
        if change.checkpoint is not None:
            checkpoint = change.checkpoint.checkpoint
            if checkpoint.id not in checkpoints:
                checkpoints = {**checkpoints, checkpoint.id: (checkpoint.offset, change.checkpoint.payload)}
        return _Log(key, created_ms, after, rows, checkpoints, rewinds)

    def events(self, start: int, stop: int) -> list[StoredEvent]:
        return self.rows[start : min(stop, self.head.next_offset)]

    def appended(self, start: int, stop: int) -> list[AppendedEvent]:
        return decode_stored(self.events(start, stop), f"memory://, {self.key}")

    def page(self, start: int, stop: int, max_bytes: int) -> list[AppendedEvent]:
        rows: list[StoredEvent] = []
        size = 0
        for row in self.events(start, stop):
            rows.append(row)
            size += len(row.payload)
            if size >= max_bytes:
                break
        return decode_stored(rows, f"memory://, {self.key}")

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        kept = self.checkpoints.get(checkpoint_id)
        return None if kept is None else decode_checkpoint(kept[1], f"memory://, {self.key}")

    def latest_checkpoint(self) -> Checkpoint | None:
        # max() keeps the first of equals: reversed, that is the latest insert.
        latest = max(reversed(self.checkpoints.values()), key=lambda kept: kept[0], default=None)
        return None if latest is None else decode_checkpoint(latest[1], f"memory://, {self.key}")

    def updated_ms(self) -> int:
        return self.rows[self.head.next_offset - 1].at_ms if self.head.next_offset else self.created_ms

    def lowest_cut(self, generation: int) -> int | None:
        return min((rewind.cut for rewind in self.rewinds if rewind.generation > generation), default=None)


def _untouched(key: ActivationKey, created_ms: int) -> _Log:
    return _Log(key, created_ms, EMPTY_HEAD, [], {}, ())


class MemoryStore(Store):
    """Logs in this process's memory, gone when it is closed."""

    url = "memory://"

    def __init__(self, *, read_only: bool = False) -> None:
        self._read_only = read_only
        self._lock = threading.RLock()
        self._logs: dict[ActivationKey, _Log] | None = {}

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        if self._read_only:
            raise ReadOnlyError(f"{self.url} was opened read-only")
        with self._lock:
            logs = self._open_logs()
            log = logs.get(key) or _untouched(key, now_ms)
            decision = decide(log)
            if decision.change is not None:
                logs[key] = log.after(decision.change)
            return decision

    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        yield self._open_logs().get(key) or _untouched(key, 0)

    def activations(self) -> Iterator[ActivationInfo]:
        with self._lock:
            logs = sorted(self._open_logs().values(), key=lambda log: log.key)
            infos = [ActivationInfo(log.key, log.head, log.created_ms, log.updated_ms()) for log in logs]
        return iter(infos)

    def version(self) -> int:
        return 0  # no other process can reach this memory

    def close(self) -> None:
        with self._lock:
            self._logs = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _open_logs(self) -> dict[ActivationKey, _Log]:
        if self._logs is None:
            raise ClosedError(f"{self.url} is closed")
        return self._logs
