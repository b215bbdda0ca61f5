"""Copies of logs between any two stores, through the port alone, verified event by event.

A copy is written as the changes that made the log: the fence and the turn counter first, so that nobody is admitted
below an incarnation whose events are on their way, then events with their checkpoints, the retirement last. Each
step is decided on the head that the one before it left. So a copy that was killed is a valid log, and is continued.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

import msgspec

from incarnate.domain.codec import EncodedEvent, StoredEvent, encode_checkpoint
from incarnate.domain.decisions import Change, Decision, StoredLog, evolve
from incarnate.domain.errors import CorruptError, IncarnateError, KeyTakenError, LogCorruptionError
from incarnate.domain.gaps import check_whole
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.domain.keys import ActivationKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.storage.port import Decide, Snapshot, Store

__all__ = ["Copied", "copy_activations"]

_PAGE_EVENTS = 1000
_PAGE_BYTES = 4 * 1024 * 1024


class Copied(msgspec.Struct, frozen=True):
    """How the copy of one activation went.

    `events` and `checkpoints` are what the copy holds and was found to be the same, `added` how many events this run
    brought. `archives` counts those of rewinds that stayed behind. Where there is an `error` nothing was
    verified: the copy holds what it held, and perhaps some of what was to be added.
    """

    key: ActivationKey
    events: int = 0
    added: int = 0
    checkpoints: int = 0
    archives: int = 0
    error: IncarnateError | None = None


def copy_activations(source: Store, target: Store, keys: Sequence[ActivationKey], now_ms: int) -> Iterator[Copied]:
    """Copy `keys`, or all that `source` holds; see `SessionSystem.copy_to`."""
    created = _created(source)
    for key in keys or source.keys():
        try:
            with source.snapshot(key) as log:
                copied = _Copy(log, source.url, target, created.get(key, now_ms), now_ms).run()
        except (KeyTakenError, CorruptError) as error:
            copied = Copied(key, error=error)
        yield copied


def _created(source: Store) -> dict[ActivationKey, int]:
    """When each activation was created; those behind one that is damaged count as new."""
    created: dict[ActivationKey, int] = {}
    with suppress(CorruptError):
        for info in source.activations():
            created[info.key] = info.created_ms
    return created


class _Copy:
    """The copy of one activation, as it stood at one moment."""

    def __init__(self, log: Snapshot, url: str, target: Store, created_ms: int, now_ms: int) -> None:
        self._log = log
        self._url = url
        self._target = target
        self._created_ms = created_ms
        self._now_ms = now_ms
        self._key = log.key
        self._head = EMPTY_HEAD  # of the copy, as the last step left it

    def run(self) -> Copied:
        log, key = self._log, self._key
        with self._target.snapshot(key) as found:
            self._head = found.head
        start = self._head.next_offset
        self._check_head()
        self._check_events(0, start)
        there = self._check_checkpoints(whole=False)
        self._raise_fence()
        self._add_events(start, [id for id in log.checkpoint_ids() if id not in there])
        if log.head.retired and not self._head.retired:
            self._commit([Change(at_ms=self._now_ms, retired=True, durable=True)])
        end = log.head.next_offset
        self._check_events(start, end)
        checkpoints = self._check_checkpoints(whole=True)
        archives = sum(not rewind.swept for rewind in log.rewinds())
        return Copied(key, end, end - start, len(checkpoints), archives)

    def _check_head(self) -> None:
        """Refuse a target that somebody else has touched, or that has gone its own way."""
        there, here = self._head, self._log.head
        if there.generation:
            raise self._taken("was rewound")
        if there.next_offset > here.next_offset:
            raise self._taken(f"goes on to offset {there.next_offset}, here to {here.next_offset}")
        if there.fence is not None and (here.fence is None or there.fence > here.fence):
            raise self._taken(f"was taken by incarnation {there.fence}")
        if there.next_turn > here.next_turn:
            raise self._taken(f"has begun turns up to {there.next_turn - 1}")
        if there.retired and msgspec.structs.replace(here, generation=0) != there:
            raise self._taken("is retired")

    def _raise_fence(self) -> None:
        there, here = self._head, self._log.head
        fence = here.fence if here.fence != there.fence else None
        turn = here.next_turn if here.next_turn > there.next_turn else None
        if fence is not None or turn is not None:
            self._commit([Change(fence=fence, next_turn=turn, durable=True)])

    def _add_events(self, start: int, checkpoint_ids: list[str]) -> None:
        """Bring over the events from `start` on, and each checkpoint behind what lies below it."""
        checkpoints = deque(self._checkpoint(self._log, id) for id in checkpoint_ids)
        for checkpoint in checkpoints:
            if checkpoint.offset > self._log.head.next_offset:
                raise LogCorruptionError(
                    self._url, f"the checkpoint {checkpoint.id!r} of {self._key} is above the head"
                )
        self._commit(self._due(checkpoints, start))
        for page in self._pages(start):
            last = page[-1][0].offset + 1
            self._commit([*_changes(page), *self._due(checkpoints, last)])

    def _due(self, checkpoints: deque[Checkpoint], head: int) -> list[Change]:
        due: list[Change] = []
        while checkpoints and checkpoints[0].offset <= head:
            due.append(Change(checkpoint=encode_checkpoint(checkpoints.popleft()), durable=True))
        return due

    def _pages(self, start: int) -> Iterator[list[tuple[StoredEvent, EncodedEvent]]]:
        """Rows of the log and what to write for them, in portions that fit into memory."""
        position, end = start, self._log.head.next_offset
        while position < end:
            events = self._log.page(position, min(position + _PAGE_EVENTS, end), _PAGE_BYTES)
            check_whole(self._key, events, position, position + 1)
            rows = [StoredEvent(*row) for row in self._log.events(position, position + len(events))]
            yield [
                (row, EncodedEvent(appended.event, bytes(row.payload)))
                for row, appended in zip(rows, events, strict=True)
            ]
            position += len(events)

    def _commit(self, changes: list[Change]) -> None:
        """Write `changes`, one after the other, if nobody else writes to the copy."""
        if not changes:
            return
        decides: list[Decide] = []
        for change in changes:
            before, self._head = self._head, evolve(self._head, change)
            decides.append(self._step(before, Decision(change, self._head)))
        error = self._target.transact_all(self._key, decides, self._created_ms).error
        if error is not None:
            raise error

    def _step(self, before: Head, decision: Decision) -> Decide:
        def decide(stored: StoredLog) -> Decision:
            if stored.head != before:
                return Decision(None, stored.head, error=self._taken("is being written to"))
            return decision

        return decide

    def _check_events(self, start: int, end: int) -> None:
        """Compare every event from `start` up to `end` with the copy's."""
        position = start
        while position < end:
            with self._target.snapshot(self._key) as there:
                if there.head != self._head:
                    raise self._taken("is being written to")
                count = len(there.page(position, min(position + _PAGE_EVENTS, end), _PAGE_BYTES))
                copied = [tuple(row) for row in there.events(position, position + count)]
            rows = [tuple(row) for row in self._log.events(position, position + count)]
            for row, copy in zip_longest(rows, copied):
                if row != copy:
                    raise self._taken(f"holds something else at offset {(row or copy)[0]}")
            if not rows:
                raise self._taken(f"holds nothing at offset {position}")
            position += len(rows)

    def _check_checkpoints(self, *, whole: bool) -> set[str]:
        """Compare the copy's checkpoints, all of them or those that are there; answers their ids."""
        with self._target.snapshot(self._key) as there:
            ids = list(there.checkpoint_ids())
            copied = [self._checkpoint(there, id) for id in ids]
        if whole and ids != list(self._log.checkpoint_ids()):
            raise self._taken("holds other checkpoints")
        for checkpoint in copied:
            if self._log.checkpoint(checkpoint.id) != checkpoint:
                raise self._taken(f"holds another checkpoint {checkpoint.id!r}")
        return set(ids)

    def _checkpoint(self, log: Snapshot, checkpoint_id: str) -> Checkpoint:
        checkpoint = log.checkpoint(checkpoint_id)
        if checkpoint is None:
            place = self._url if log is self._log else self._target.url
            raise LogCorruptionError(place, f"the checkpoint {checkpoint_id!r} of {self._key} cannot be found")
        return checkpoint

    def _taken(self, reason: str) -> KeyTakenError:
        error = KeyTakenError(self._key, f"in {self._target.url} it {reason}")
        error.hint = "copy it to a store that holds nothing under this key"
        return error


def _changes(page: list[tuple[StoredEvent, EncodedEvent]]) -> list[Change]:
    """One change for each run of events of one incarnation and time; the last reaches the disk, and all before it."""
    changes: list[Change] = []
    last = page[-1][0].offset
    for (incarnation, at_ms), run in groupby(page, key=lambda pair: pair[0][1:3]):
        pairs = list(run)
        events = tuple([encoded for _, encoded in pairs])
        durable = pairs[-1][0].offset == last
        changes.append(
            Change(offset=pairs[0][0].offset, incarnation=incarnation, at_ms=at_ms, events=events, durable=durable)
        )
    return changes
