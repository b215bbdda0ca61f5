"""A page of a view's items, as one request gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from incarnate.domain.codec import encode_appended, encode_json
from incarnate.studio.items import MOST_ITEM_BYTES, shaped
from incarnate.studio.masking import mask_json
from incarnate.studio.places import Place
from incarnate.studio.problems import Problem
from incarnate.studio.sources import page_of, see_whole
from incarnate.studio.views import EVENTS, VIEWS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from incarnate.domain.keys import ActivationKey
    from incarnate.studio.archive import Archive
    from incarnate.studio.items import Item

__all__ = ["Range", "messages", "superseded_page"]

_MOST_BYTES = 4 * 1024 * 1024
_MOST_WHOLE_BYTES = 64 * 1024 * 1024


class Range(NamedTuple):
    """What is asked for: `limit` items from `start` on; `full`: one item whole, however large."""

    start: int
    limit: int
    full: bool = False

    @property
    def most_item_bytes(self) -> int:
        """The largest item that is not cut."""
        return _MOST_WHOLE_BYTES if self.full else MOST_ITEM_BYTES


def messages(archive: Archive, key: ActivationKey, view: str, wanted: Range) -> bytes:
    """The answer: items of a view, beside what they are of."""
    return _of_events(archive, key, wanted) if view == EVENTS else _of_view(archive, key, view, wanted)


def _of_events(archive: Archive, key: ActivationKey, wanted: Range) -> bytes:
    with archive.moment(key) as log:
        place = archive.place(log)
        page = page_of(key, log, wanted.start, min(wanted.start + wanted.limit, place.next_offset), _MOST_BYTES)
    items = _fitting([(each.offset, encode_appended(each)) for each in page], archive, wanted)
    return _encoded(EVENTS, place, place.next_offset, wanted.start, items)


def _of_view(archive: Archive, key: ActivationKey, view: str, wanted: Range) -> bytes:
    archive.head(key)
    snapshot = archive.view(key, view)
    with archive.moment(key) as log:
        sign = archive.sign(log, snapshot.next_offset)
    place = Place(snapshot.generation, snapshot.next_offset, sign)
    archive.remember(key, view, place, snapshot.items)
    encode = VIEWS[view].encode
    some = snapshot.items[wanted.start : wanted.start + wanted.limit]
    items = _fitting([(item.offset, encode(item)) for item in some], archive, wanted)
    about = {} if snapshot.diagnostics is None else {"diagnostics": _told(snapshot.diagnostics, archive)}
    return _encoded(view, place, len(snapshot.items), wanted.start, items, about)


def _told(diagnostics: Any, archive: Archive) -> msgspec.Raw:
    data = encode_json(diagnostics)
    return msgspec.Raw(mask_json(data) if archive.mask else data)


def superseded_page(archive: Archive, key: ActivationKey, generation: int, wanted: Range) -> bytes:
    """A page of what a rewind superseded; the index of an item is counted from the cut.

    Raises:
        Problem: there was no such rewind, or what it superseded was swept.
    """
    with archive.moment(key) as log:
        rewind = next((one for one in log.rewinds() if one.generation == generation), None)
        if rewind is None:
            raise Problem(404, "unknown-rewind", f"{key} has not been rewound to generation {generation}")
        if rewind.swept:
            raise Problem(404, "swept", f"what rewind {generation} of {key} superseded was swept")
        start = min(rewind.cut + wanted.start, rewind.head)
        page = log.superseded(generation, start, min(start + wanted.limit, rewind.head), _MOST_BYTES)
        place = archive.place(log)
    see_whole(key, page, start, min(start + 1, rewind.head))
    items = _fitting([(each.offset, encode_appended(each)) for each in page], archive, wanted)
    about = {"rewind": generation, "cutAt": rewind.cut, "head": rewind.head}
    return _encoded("superseded", place, rewind.head - rewind.cut, wanted.start, items, about)


def _fitting(found: Sequence[tuple[int, bytes]], archive: Archive, wanted: Range) -> list[Item]:
    items: list[Item] = []
    size = 0
    for offset, data in found:
        item = shaped(offset, data, mask=archive.mask, most=wanted.most_item_bytes)
        size += len(item.data)
        if items and size > _MOST_BYTES:
            break
        items.append(item)
    return items


def _encoded(
    view: str, place: Place, total: int, start: int, items: Sequence[Item], about: dict[str, Any] | None = None
) -> bytes:
    fields: dict[str, Any] = {
        "view": view,
        "id": str(place),
        "generation": place.generation,
        "nextOffset": place.next_offset,
        "total": total,
        "from": start,
        "offsets": [item.offset for item in items],
        **(about or {}),
    }
    cut = {str(start + index): item.cut for index, item in enumerate(items) if item.cut is not None}
    if cut:
        fields["cut"] = cut
    return encode_json(fields)[:-1] + b',"items":[%b]}' % b",".join([item.data for item in items])
