"""A replay in pages: bounded memory, and nothing held while the consumer thinks."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeVar, cast

from incarnate.domain.errors import LogRewoundError, OffsetError
from incarnate.domain.gaps import check_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.rewinds import Rewind
    from incarnate.storage.port import Store

__all__ = ["Paged", "end_of_range", "replay", "replay_superseded"]

T = TypeVar("T")

_PAGE_EVENTS = 1000
_PAGE_BYTES = 8 * 1024 * 1024


class Paged(chain[T]):
    """Iterates what is read in pages. Who wants whole pages takes `pages` instead: the two share one position."""

    pages: Iterator[Sequence[T]]

    @classmethod
    def of(cls, pages: Iterator[Sequence[T]]) -> Self:
        """The items of `pages`, one after the other."""
        paged = cast("Self", cls.from_iterable(pages))  # of this class, whatever its annotation says
        paged.pages = pages
        return paged


def replay(store: Store, key: ActivationKey, start: int, stop: int | None) -> Paged[AppendedEvent]:
    """The events of `key` from `start` up to `stop`; see `SessionSystem.replay`."""
    with store.snapshot(key) as log:
        head = log.head
    end = end_of_range(start, stop, head.next_offset)
    return Paged.of(_pages(store, key, start, end, head.generation))


def _pages(
    store: Store, key: ActivationKey, start: int, end: int, generation: int
) -> Iterator[Sequence[AppendedEvent]]:
    position = start
    while position < end:
        with store.snapshot(key) as log:
            if log.head.generation != generation:
                cut = log.lowest_cut(generation)
                if cut is not None and cut < position:
                    raise LogRewoundError(key=key, cut=cut, given=position)
                generation = log.head.generation  # it cut above what was given: go on with what is there now
            if log.head.next_offset <= position:
                return  # rewound above what was given, and not grown back
            page = log.page(position, min(position + _PAGE_EVENTS, end), _PAGE_BYTES)
        check_whole(key, page, position, position + 1)
        yield page
        position += len(page)


def replay_superseded(store: Store, key: ActivationKey, rewind: Rewind) -> Paged[AppendedEvent]:
    """The events that `rewind` superseded, in pages as a replay."""
    return Paged.of(_superseded(store, key, rewind))


def _superseded(store: Store, key: ActivationKey, rewind: Rewind) -> Iterator[Sequence[AppendedEvent]]:
    position = rewind.cut
    while position < rewind.head:
        with store.snapshot(key) as log:
            page = log.superseded(rewind.generation, position, min(position + _PAGE_EVENTS, rewind.head), _PAGE_BYTES)
            if not page and any(one.swept for one in log.rewinds() if one.generation == rewind.generation):
                return  # swept since
        check_whole(key, page, position, position + 1)
        yield page
        position += len(page)


def end_of_range(start: int, stop: int | None, next_offset: int) -> int:
    """Where a replay from `start` up to `stop` of a log that ends at `next_offset` ends.

    Raises:
        OffsetError: it starts below 0 or ends before it starts (`fixtures/vectors/log_traces.jsonl`).
    """
    if start < 0 or (stop is not None and stop < start):
        raise OffsetError(f"no events lie from offset {start} up to {stop}")
    return next_offset if stop is None else min(stop, next_offset)
