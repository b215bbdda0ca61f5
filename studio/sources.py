"""What follows on what a follower holds: one change after the other until it is level with the log.

An answer is a function of what the follower holds and of the log alone, so that it is the same for all who hold the
same, and a broken connection is gone on with from any place without anything that the server remembers.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from incarnate.domain.codec import encode_appended, encode_json
from incarnate.domain.errors import LogCorruptionError
from incarnate.domain.gaps import check_whole
from incarnate.studio.items import shaped
from incarnate.studio.places import Part, Place
from incarnate.studio.problems import Problem
from incarnate.studio.views import EVENTS, VIEWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Snapshot as LogSnapshot
    from incarnate.studio.archive import Archive
    from incarnate.studio.items import Item
    from incarnate.studio.places import Position
    from incarnate.studio.views import Snapshot

__all__ = ["Source", "Step", "common_events", "page_of", "see_whole", "source_of"]

_MOST_ITEMS = 1000
_MOST_BYTES = 1024 * 1024
"""Of one change. Larger ones come in parts: a follower that does not read holds up one of them."""


class Step(NamedTuple):
    """A change on its way: what the follower holds then, the event's data, and whether more follows at once."""

    position: Place | Part
    data: bytes
    more: bool


class Source(Protocol):
    """One view of one log. Its methods read the store and block; one thread at a time calls it."""

    def step(self, held: Position, /) -> Step | None:
        """What follows on what is held; None where that is all."""
        ...


def source_of(archive: Archive, key: ActivationKey, view: str) -> Source:
    """The source of a view."""
    if view == EVENTS:
        return _Events(archive, key)
    return _Added(archive, key, view) if VIEWS[view].only_adds else _Changed(archive, key, view)


def common_events(archive: Archive, held: Position, now: Place, log: LogSnapshot) -> int:
    """How many events who holds that surely has of this log: those up to the lowest cut since.

    None where it is of another log, though one that began like it: a store that was made anew or put back.
    """
    if not isinstance(held, Place):
        return 0
    common = _uncut(held, now, log)
    if not common or not held.sign:
        return common
    last = _last_mark(archive, held, log)
    return common if last is None or held.sign == now.first + last else 0


def _uncut(held: Place, now: Place, log: LogSnapshot) -> int:
    if held.generation > now.generation or (held.sign and held.first != now.first):
        return 0
    cut = log.lowest_cut(held.generation) if held.generation < now.generation else None
    if cut is None:
        return held.next_offset if held.next_offset <= now.next_offset else 0
    return min(held.next_offset, cut)


def _last_mark(archive: Archive, held: Place, log: LogSnapshot) -> str | None:
    """The mark of the last event there was at that place, wherever it is now; None where it was swept."""
    offset = held.next_offset - 1
    rewinds = log.rewinds() if held.generation < log.head.generation else ()
    over = next((one for one in rewinds if one.generation > held.generation and one.cut <= offset), None)
    if over is not None and over.swept:
        return None
    page = log.page if over is None else partial(log.superseded, over.generation)
    found = page(offset, offset + 1, 1)
    return archive.mark(found[0]) if found else ""


def page_of(key: ActivationKey, log: LogSnapshot, start: int, stop: int, max_bytes: int) -> Sequence[AppendedEvent]:
    """A page of a log, as `page` gives it.

    Raises:
        Problem: an event is missing.
    """
    page = log.page(start, stop, max_bytes)
    see_whole(key, page, start, min(start + 1, stop))
    return page


def see_whole(key: ActivationKey, page: Sequence[AppendedEvent], start: int, stop: int) -> None:
    """See that a page begins at `start` and reaches `stop`, with no event between missing.

    Raises:
        Problem: an event is missing.
    """
    try:
        check_whole(key, page, start, stop)
    except LogCorruptionError as error:
        hint = "incarnate doctor tells more"
        raise Problem(500, "log-damaged", f"{key} lacks an event after {start}", hint) from error


class _Events:
    """The log itself, read page by page: of a log of any size no more is in memory."""

    def __init__(self, archive: Archive, key: ActivationKey) -> None:
        self._archive = archive
        self._key = key

    def step(self, held: Position, /) -> Step | None:
        archive = self._archive
        with archive.moment(self._key) as log:
            now = archive.place(log)
            keep = common_events(archive, held, now, log)
            if isinstance(held, Place) and held[:2] == now[:2] and keep == now.next_offset:
                return None
            page = page_of(self._key, log, keep, min(keep + _MOST_ITEMS, now.next_offset), _MOST_BYTES)
        items = [shaped(each.offset, encode_appended(each), mask=archive.mask) for each in page]
        items = items[: fitting(items)]
        end = keep + len(items)
        sign = now.first + archive.mark(page[len(items) - 1]) if items else now.sign
        place = now._replace(next_offset=end, sign=sign)
        more = end < now.next_offset
        return Step(place, encoded_change(place, keep, items, more=more), more)


class _Kept:
    """A view that is kept in memory."""

    def __init__(self, archive: Archive, key: ActivationKey, view: str) -> None:
        self._archive = archive
        self._key = key
        self._view = view
        self._encode = VIEWS[view].encode

    def _shaped(self, items: Sequence[Any]) -> list[Item]:
        mask, encode = self._archive.mask, self._encode
        found: list[Item] = []
        size = 0
        for item in islice(items, _MOST_ITEMS):
            found.append(shaped(item.offset, encode(item), mask=mask))
            size += len(found[-1].data)
            if size > _MOST_BYTES:
                break
        return found

    def _now(self, held: Position) -> tuple[Snapshot, Place, int]:
        """The view, its place, and how many events it surely has in common with what is held."""
        snapshot = self._archive.view(self._key, self._view)
        with self._archive.moment(self._key) as log:  # later than the view: it may know of more cuts, never of fewer
            sign = self._archive.sign(log, snapshot.next_offset)
            now = Place(snapshot.generation, snapshot.next_offset, sign)
            common = common_events(self._archive, held, now, log)
        return snapshot, now, common


class _Added(_Kept):
    """A view to which events only add: what two places have in common is what the events below add."""

    def step(self, held: Position, /) -> Step | None:
        snapshot, now, common = self._now(held)
        if isinstance(held, Place) and held[:2] == now[:2] and common == now.next_offset:
            return None
        items = snapshot.items
        keep = _count_below(items, common)
        added = self._shaped(items[keep : keep + _MOST_ITEMS])
        end = keep + len(added)
        more = end < len(items)
        # The offset of the next item: all that come before it are there.
        place = self._place_below(items[end].offset, now) if more else now
        return Step(place, encoded_change(place, keep, added, more=more), more)

    def _place_below(self, offset: int, now: Place) -> Place:
        with self._archive.moment(self._key) as log:
            return now._replace(next_offset=offset, sign=self._archive.sign(log, offset))


class _Changed(_Kept):
    """A view of which an event may change any item: told from the views that were given, as long as they are kept."""

    def step(self, held: Position, /) -> Step | None:
        if isinstance(held, Part):
            items = self._archive.remembered(self._key, self._view, held.place)
            if items is not None:
                return self._part(held.place, items, held.given, ())
        snapshot, now, _ = self._now(held)
        if held == now:
            return None
        before = self._archive.remembered(self._key, self._view, held) if isinstance(held, Place) else None
        self._archive.remember(self._key, self._view, now, snapshot.items)
        if before is None:
            return self._part(now, snapshot.items, 0, ())
        keep, replaced = difference(before, snapshot.items)
        if len(replaced) > _MOST_ITEMS:
            keep, replaced = replaced[0], []
        return self._part(now, snapshot.items, keep, replaced)

    def _part(self, place: Place, items: Sequence[Any], keep: int, replaced: Sequence[int]) -> Step:
        added = self._shaped(items[keep : keep + _MOST_ITEMS])
        end = keep + len(added)
        more = end < len(items)
        position = Part(place, end) if more else place
        shaped_again = [(index, self._shaped([items[index]])[0]) for index in replaced]
        return Step(position, encoded_change(position, keep, added, shaped_again, more=more), more)


def difference(before: Sequence[Any], now: Sequence[Any]) -> tuple[int, list[int]]:
    """How many items of `before` can be kept, and which of these are others now."""
    both = min(len(before), len(now))
    changed = [index for index, (one, other) in enumerate(zip(before, now, strict=False)) if one is not other]
    keep = both
    while changed and changed[-1] == keep - 1:
        keep = changed.pop()
    return keep, changed


def fitting(items: Sequence[Item]) -> int:
    """How many of these fit into one change; at least one, if there are any."""
    size = 0
    for count, item in enumerate(items, 1):
        size += len(item.data)
        if size > _MOST_BYTES:
            return count
    return len(items)


def _count_below(items: Sequence[Any], offset: int) -> int:
    """How many items are of events below `offset`: their offsets rise."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle].offset < offset:
            low = middle + 1
        else:
            high = middle
    return low


def encoded_change(
    position: Place | Part,
    keep: int,
    items: Sequence[Item],
    replaced: Sequence[tuple[int, Item]] = (),
    *,
    more: bool,
) -> bytes:
    """The data of a change."""
    place = position if isinstance(position, Place) else position.place
    cut = {str(keep + index): item.cut for index, item in enumerate(items) if item.cut is not None}
    cut |= {str(index): item.cut for index, item in replaced if item.cut is not None}
    rest = (
        {"offsets": [item.offset for item in items]}
        | ({"cut": cut} if cut else {})
        | ({"partial": True} if more else {})
    )
    again = b",".join([b"[%d,%b,%d]" % (index, item.data, item.offset) for index, item in replaced])
    return b'{"id":%b,"generation":%d,"nextOffset":%d,"keep":%d,"total":%d,"replaced":[%b],"items":[%b],%b' % (
        encode_json(str(position)),
        place.generation,
        place.next_offset,
        keep,
        keep + len(items),
        again,
        b",".join([item.data for item in items]),
        encode_json(rest)[1:],
    )
