"""A third party's store that keeps the contract, and one for each promise that breaks it."""

import json
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from incarnate.domain.codec import EncodedEvent
from incarnate.domain.decisions import Change, Decision, StoredLog
from incarnate.domain.errors import ClosedError
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.memory import MemoryStore
from incarnate.storage.port import ActivationInfo, Decide, Snapshot, Store, Swept

ROOMS: dict[Path, MemoryStore] = {}


class RoomStore(Store):
    """Memory that every opening of a folder shares: nothing is on the disk, and yet it outlives its openings."""

    def __init__(self, folder: Path) -> None:
        self.url = f"room://{folder}"
        self.memory = ROOMS.setdefault(folder, MemoryStore())
        self.writes = 0
        self._closed = False

    @property
    def logs(self) -> dict[ActivationKey, Any]:
        return self.room._open_logs()  # noqa: SLF001 - what breaks it must reach in

    @property
    def room(self) -> MemoryStore:
        if self._closed:
            raise ClosedError(f"{self.url} is closed")
        return self.memory

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        return self.room.transact(key, decide, now_ms)

    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        with self.room.snapshot(key) as log:
            yield log

    def activations(self) -> Iterator[ActivationInfo]:
        return self.room.activations()

    def fork(self, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int) -> Head:
        return self.room.fork(key, new_key, offset, now_ms)

    def sweep(self, before_ms: int, keys: Collection[ActivationKey] | None = None) -> Swept:
        return self.room.sweep(before_ms, keys)

    def vacuum(self) -> None:
        self.room.vacuum()

    def version(self) -> int:
        return hash(tuple(log.head for log in self.logs.values()))

    def close(self) -> None:
        self._closed = True


class _Seen:
    """A log with some of its answers changed."""

    def __init__(self, log: Any, **changed: Any) -> None:
        self._log = log
        self._changed = changed

    def __getattr__(self, name: str) -> Any:
        return self._changed[name] if name in self._changed else getattr(self._log, name)


def seen(log: Any, **changed: Any) -> Any:
    return _Seen(log, **changed)


class ChangingStore(RoomStore):
    """Writes something else than what was decided."""

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        made: list[Decision] = []

        def work_out(stored: StoredLog) -> Decision:
            made[:] = [decide(stored)]
            change = made[0].change
            return msgspec.structs.replace(made[0], change=None if change is None else self.changed(made[0], change))

        super().transact(key, work_out, now_ms)
        return made[0]

    def changed(self, _decision: Decision, change: Change) -> Change | None:
        raise NotImplementedError


class LeavesAGap(ChangingStore):
    def changed(self, _decision: Decision, change: Change) -> Change | None:
        return msgspec.structs.replace(change, offset=change.offset + 1)


class DropsWhatARefusalChanged(ChangingStore):
    def changed(self, decision: Decision, change: Change) -> Change | None:
        return None if decision.error is not None else change


class ForgetsTurns(ChangingStore):
    def changed(self, _decision: Decision, change: Change) -> Change | None:
        return change if change.events else msgspec.structs.replace(change, next_turn=None)


class KeepsTheRetiredOpen(ChangingStore):
    def changed(self, _decision: Decision, change: Change) -> Change | None:
        return msgspec.structs.replace(change, retired=False)


class WritesOtherBytes(ChangingStore):
    def changed(self, _decision: Decision, change: Change) -> Change | None:
        events = [EncodedEvent(one.event, json.dumps(json.loads(one.payload)).encode()) for one in change.events]
        return msgspec.structs.replace(change, events=tuple(events))


class KeepsAPrunedCheckpoint(RoomStore):
    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        kept = dict(self.logs[key].checkpoints) if key in self.logs else {}
        decision = super().transact(key, decide, now_ms)
        if decision.change is not None and decision.change.cut is not None:
            self.logs[key] = msgspec.structs.replace(self.logs[key], checkpoints=kept)
        return decision


class ChecksTheFenceBeforeItsTransaction(RoomStore):
    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        with self.snapshot(key) as log:
            decision = decide(log)
        return super().transact(key, lambda _: decision, now_ms)


class CachesTheHead(RoomStore):
    cached: Head | None = None

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        def work_out(stored: StoredLog) -> Decision:
            return decide(seen(stored, head=stored.head if self.cached is None else self.cached))

        decision = super().transact(key, work_out, now_ms)
        self.cached = decision.head
        return decision


class WritesABatchInTwoTransactions(RoomStore):
    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        rest: list[Change] = []

        def work_out(stored: StoredLog) -> Decision:
            decision = decide(stored)
            change = decision.change
            if change is None or len(change.events) < 2:
                return decision
            rest.append(Change(offset=change.offset + 1, incarnation=change.incarnation, at_ms=change.at_ms))
            rest[0] = msgspec.structs.replace(rest[0], events=change.events[1:])
            return msgspec.structs.replace(decision, change=msgspec.structs.replace(change, events=change.events[:1]))

        decision = super().transact(key, work_out, now_ms)
        for change in rest:
            second = Decision(change, decision.head)
            super().transact(key, lambda _, second=second: second, now_ms)  # type: ignore[misc]
        return decision


class ForgetsFencesWithoutEvents(RoomStore):
    def close(self) -> None:
        if not self._closed:
            for key in [key for key, log in self.logs.items() if not log.rows]:
                del self.logs[key]
        super().close()


class WritesBehind(RoomStore):
    before: dict[ActivationKey, Any] | None = None

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        self.before = dict(self.logs)
        return super().transact(key, decide, now_ms)

    def close(self) -> None:
        if not self._closed and self.before is not None:
            self.logs.clear()
            self.logs.update(self.before)
        super().close()


class ForgetsCuts(RoomStore):
    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        return super().transact(key, lambda stored: decide(seen(stored, lowest_cut=lambda _: None)), now_ms)


class TakesTheLatestCheckpointForTheNewest(RoomStore):
    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        with super().snapshot(key) as log:
            names = list(self.logs[key].checkpoints) if key in self.logs else []
            yield seen(log, latest_checkpoint=lambda: log.checkpoint(names[-1]) if names else None)


class ForgetsArchives(RoomStore):
    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        with super().snapshot(key) as log:
            yield seen(log, superseded=lambda *_: [])


class ShowsTheLogAsItMoves(RoomStore):
    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        store = self

        class Moving:
            def __getattr__(self, name: str) -> Any:
                with store.room.snapshot(key) as log:
                    return getattr(log, name)

        moving: Any = Moving()
        yield moving


class ListsAtRandom(RoomStore):
    def activations(self) -> Iterator[ActivationInfo]:
        return reversed(list(super().activations()))


class SweepsTooMuch(RoomStore):
    def sweep(self, before_ms: int, keys: Collection[ActivationKey] | None = None) -> Swept:
        return super().sweep(before_ms + 100, keys)


class SweepsOtherKeysToo(RoomStore):
    def sweep(self, before_ms: int, keys: Collection[ActivationKey] | None = None) -> Swept:  # noqa: ARG002 - that is its fault
        return super().sweep(before_ms)


class DoesNotTellWhenItRetired(RoomStore):
    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        with super().snapshot(key) as log:
            yield seen(log, retired_ms=lambda: None)


class ForksWithoutAFence(RoomStore):
    def fork(self, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int) -> Head:
        head = super().fork(key, new_key, offset, now_ms)
        self.logs[new_key] = msgspec.structs.replace(self.logs[new_key], head=msgspec.structs.replace(head, fence=None))
        return head


BROKEN: dict[type[RoomStore], str] = {
    LeavesAGap: "i1",
    ChecksTheFenceBeforeItsTransaction: "i2",
    CachesTheHead: "i2",
    ForgetsFencesWithoutEvents: "i2",
    ForksWithoutAFence: "i2",
    DropsWhatARefusalChanged: "i3",
    KeepsAPrunedCheckpoint: "i4",
    ForgetsArchives: "i4",
    TakesTheLatestCheckpointForTheNewest: "i5",
    WritesBehind: "i6",
    ForgetsCuts: "i6",
    ForgetsTurns: "i8",
    WritesOtherBytes: "i9",
    WritesABatchInTwoTransactions: "nothing_is_written",
    KeepsTheRetiredOpen: "a_retired_log",
    SweepsTooMuch: "a_sweep_removes",
    SweepsOtherKeysToo: "a_sweep_of_some_keys",
    DoesNotTellWhenItRetired: "when_it_was_retired",
    ListsAtRandom: "activations_are_listed",
    ShowsTheLogAsItMoves: "a_snapshot_stands_still",
}
"""Which sentences must fail for a store that breaks its promise so: part of their names."""
