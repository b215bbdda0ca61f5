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


class _Log:
    """Everything kept of one activation; also its own snapshot, read under the store's lock."""

    def __init__(self, key: ActivationKey, created_ms: int) -> None:
        self.key = key
        self.head: Head = EMPTY_HEAD
        self.created_ms = created_ms
        self.rows: list[StoredEvent] = []
        self.checkpoints: dict[str, tuple[int, bytes]] = {}
        self.rewinds: list[_Rewind] = []

    def apply(self, change: Change) -> None:
        if change.cut is not None:
            self._supersede(change, change.cut)
        for index, encoded in enumerate(change.events):
            self.rows.append(StoredEvent(change.offset + index, change.incarnation, change.at_ms, encoded.payload))
        if change.checkpoint is not None:
            checkpoint, payload = change.checkpoint
            self.checkpoints.setdefault(checkpoint.id, (checkpoint.offset, payload))
        self.head = evolve(self.head, change)

    def _supersede(self, change: Change, cut: int) -> None:
        generation = self.head.generation + 1
        self.rewinds.append(_Rewind(generation, cut, change.incarnation, change.at_ms, self.rows[cut:]))
        del self.rows[cut:]
        self.checkpoints = {name: kept for name, kept in self.checkpoints.items() if kept[0] <= cut}

    def events(self, start: int, stop: int) -> list[StoredEvent]:
        return self.rows[start:stop]

    def appended(self, start: int, stop: int) -> list[AppendedEvent]:
        return decode_stored(self.rows[start:stop], f"memory://, {self.key}")

    def page(self, start: int, stop: int, max_bytes: int) -> list[AppendedEvent]:
        rows: list[StoredEvent] = []
        size = 0
        for row in self.rows[start:stop]:
            if size >= max_bytes:
                break
            rows.append(row)
            size += len(row.payload)
        return decode_stored(rows, f"memory://, {self.key}")

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        kept = self.checkpoints.get(checkpoint_id)
        return None if kept is None else decode_checkpoint(kept[1], f"memory://, {self.key}")

    def latest_checkpoint(self) -> Checkpoint | None:
        # max() keeps the first of equals: reversed, that is the latest insert.
        latest = max(reversed(self.checkpoints.values()), key=lambda kept: kept[0], default=None)
        return None if latest is None else decode_checkpoint(latest[1], f"memory://, {self.key}")

    def lowest_cut(self, generation: int) -> int | None:
        return min((rewind.cut for rewind in self.rewinds if rewind.generation > generation), default=None)


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
            log = logs.get(key) or _Log(key, now_ms)
            decision = decide(log)
            if decision.change is not None:
                logs[key] = log
                log.apply(decision.change)
            return decision

    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        with self._lock:
            yield self._open_logs().get(key) or _Log(key, 0)

    def activations(self) -> Iterator[ActivationInfo]:
        with self._lock:
            logs = sorted(self._open_logs().values(), key=lambda log: log.key)
            infos = [
                ActivationInfo(log.key, log.head, log.created_ms, log.rows[-1].at_ms if log.rows else log.created_ms)
                for log in logs
            ]
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
