"""Reads a whole store and says what is wrong with it: no lease, no write, and no record that hides those after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from incarnate.domain.diagnosis import Diagnosis, Examiner, Finding
from incarnate.domain.errors import CorruptError, KeyFormatError, LogCorruptionError
from incarnate.domain.heads import EMPTY_HEAD, Head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.rewinds import Rewind
    from incarnate.storage.port import Store

__all__ = ["examine"]

_PAGE_EVENTS = 1000
_PAGE_BYTES = 4 * 1024 * 1024
_ATTEMPTS = 5

# What a read of damaged bytes raises. A column of the wrong type ends in a TypeError or ValueError of Python's own.
_DAMAGED = (CorruptError, KeyFormatError, TypeError, ValueError, ArithmeticError)


class _Unreadable(NamedTuple):
    offset: int
    reason: str


class _MovedError(Exception):
    """The log was rewound or swept while it was read."""


def examine(store: Store) -> Iterator[Diagnosis]:
    """What can be found out about each activation of `store`; see `SessionSystem.examine`."""
    repair = "bring the store back from a copy, or copy what can be read to another store"
    broken = tuple([Finding("damage", "store", None, None, text, repair) for text in store.damage()])
    if broken:
        yield Diagnosis(None, None, broken)
    keys = store.keys()
    while True:
        try:
            key = next(keys, None)
        except _DAMAGED as error:
            text = f"the list of activations ends here: {_reason(error)}"
            repair = "bring the store back from a copy, or copy the activations that are listed to another store"
            yield Diagnosis(None, None, (Finding("damage", "listing", None, None, text, repair),))
            return
        if key is None:
            return
        yield _examine_log(store, key)


def _examine_log(store: Store, key: ActivationKey) -> Diagnosis:
    for attempt in range(1, _ATTEMPTS + 1):
        examiner = Examiner(key, EMPTY_HEAD)
        try:
            _Reading(store, key).into(examiner)
        except _MovedError:
            if attempt < _ATTEMPTS:
                continue
            busy = Finding("warning", "moving", key, None, "it was rewound each time it was read", "look again later")
            return Diagnosis(key, examiner.head, (busy,))
        except _DAMAGED as error:
            examiner.take_unreadable_log(_reason(error))
        return examiner.diagnosis
    raise AssertionError("the last attempt returns")


class _Reading:
    """Reads one activation, a snapshot a page, so that nothing is held for long; a log that moves is read again."""

    def __init__(self, store: Store, key: ActivationKey) -> None:
        self._store = store
        self._key = key
        self._head = EMPTY_HEAD

    def into(self, examiner: Examiner) -> None:
        """Have `examiner` take in all that can be read.

        Raises:
            _MovedError: the log was rewound or swept meanwhile.
        """
        with self._store.snapshot(self._key) as log:
            examiner.head = self._head = log.head
        for record in _records(self._page, 0, self._head.next_offset):
            if isinstance(record, _Unreadable):
                examiner.take_unreadable(record.offset, record.reason)
            else:
                examiner.take(record)
        examiner.take_end()
        self._checkpoints(examiner)
        rewinds = self._rewinds()
        examiner.take_rewinds(rewinds)
        for rewind in rewinds:
            if not rewind.swept:
                self._archive(examiner, rewind)

    def _page(self, start: int, stop: int) -> Sequence[AppendedEvent]:
        with self._store.snapshot(self._key) as log:
            self._check_still(log.head)
            return log.page(start, stop, _PAGE_BYTES)

    def _check_still(self, head: Head) -> None:
        if head.generation != self._head.generation or head.next_offset < self._head.next_offset:
            raise _MovedError

    def _checkpoints(self, examiner: Examiner) -> None:
        with self._store.snapshot(self._key) as log:
            head, ids = log.head, log.checkpoint_ids()
        for checkpoint_id in ids:
            try:
                with self._store.snapshot(self._key) as log:
                    self._check_still(log.head)
                    checkpoint = log.checkpoint(checkpoint_id)
            except _DAMAGED as error:
                examiner.take_unreadable_checkpoint(checkpoint_id, _reason(error))
            else:
                if checkpoint is None:
                    examiner.take_unreadable_checkpoint(checkpoint_id, "its id is damaged")
                else:
                    examiner.take_checkpoint(checkpoint, head)

    def _rewinds(self) -> list[Rewind]:
        with self._store.snapshot(self._key) as log:
            self._check_still(log.head)
            return list(log.rewinds())

    def _archive(self, examiner: Examiner, rewind: Rewind) -> None:
        def page(start: int, stop: int) -> Sequence[AppendedEvent]:
            with self._store.snapshot(self._key) as log:
                return log.superseded(rewind.generation, start, stop, _PAGE_BYTES)

        expected = rewind.cut
        for record in _records(page, rewind.cut, rewind.head):
            if record.offset > expected:
                examiner.take_archive_damage(rewind, expected, f"nothing stands there up to {record.offset}")
            expected = record.offset + 1
            if isinstance(record, _Unreadable):
                examiner.take_archive_damage(rewind, record.offset, record.reason)
            else:
                examiner.take_superseded(record)
        if expected < rewind.head and rewind in self._rewinds():  # else it was swept meanwhile
            examiner.take_archive_damage(rewind, expected, f"nothing stands there up to {rewind.head}")


def _records(
    page: Callable[[int, int], Sequence[AppendedEvent]], start: int, end: int
) -> Iterator[AppendedEvent | _Unreadable]:
    """What stands from `start` up to `end`, the unreadable too, in the order of the offsets.

    A page that cannot be read is halved until one record is left, so that a few reads find it; where nothing stands
    the pages grow, so that a gap of any size costs few.
    """
    position, size = start, _PAGE_EVENTS
    while position < end:
        stop = min(position + size, end)
        try:
            events = page(position, stop)
        except _DAMAGED as error:
            if stop == position + 1:
                yield _Unreadable(position, _reason(error))
                position += 1
            size = max(1, (stop - position) // 2)
            continue
        if events:
            yield from events
            position, size = events[-1].offset + 1, min(2 * size, _PAGE_EVENTS)
        else:
            position, size = stop, 2 * size


def _reason(error: Exception) -> str:
    if isinstance(error, (LogCorruptionError, KeyFormatError)):
        return str(error)
    return f"{type(error).__name__}: {error}"
