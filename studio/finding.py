"""Where in a log a text stands, or events of a kind: read once, and gone on with from there where it is asked again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from incarnate.domain.codec import encode_json
from incarnate.domain.events import Compaction, FailedOutcome, Opaque, Reasoning, ToolCall, ToolResult, TurnEnd, Usage
from incarnate.studio.masking import mask_json, mask_text, mask_value
from incarnate.studio.sources import common_events, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from incarnate.domain.events import AppendedEvent, SessionEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.studio.archive import Archive
    from incarnate.studio.places import Place

__all__ = ["Finder", "Wanted"]

_PAGE_EVENTS = 2000
_PAGE_BYTES = 8 * 1024 * 1024
_MOST_KNOWN = 32


class Wanted(NamedTuple):
    """A search: events whose text holds `text`, whatever its case, and whose type is among `kinds`; without: any."""

    text: str = ""
    kinds: frozenset[str] = frozenset()


class _Found(NamedTuple):
    place: Place
    offsets: list[int]


class Finder:
    """Searches logs. What it found is kept for the last few searches, so that the next key pressed reads only news."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[ActivationKey, Wanted], _Found] = OrderedDict()

    def find(self, key: ActivationKey, wanted: Wanted, start: int, limit: int) -> dict[str, Any]:
        """The offsets of what is found from `start` on, at most `limit`, and how much is found in all.

        Raises:
            Problem: the store holds no such activation.
        """
        found = self._searched(key, wanted)
        after = [offset for offset in found.offsets if offset >= start]
        return {
            "id": str(found.place),
            "generation": found.place.generation,
            "nextOffset": found.place.next_offset,
            "offsets": after[:limit],
            "total": len(found.offsets),
        }

    def _searched(self, key: ActivationKey, wanted: Wanted) -> _Found:
        with self._lock:
            known = self._known.get((key, wanted))
        place: Place | None
        offsets: list[int]
        place, offsets = (None, []) if known is None else (known.place, list(known.offsets))
        while True:
            with self._archive.moment(key) as log:
                now = self._archive.place(log)
                common = common_events(self._archive, place, now, log)
                page = page_of(key, log, common, min(common + _PAGE_EVENTS, now.next_offset), _PAGE_BYTES)
            while offsets and offsets[-1] >= common:
                offsets.pop()
            offsets += [each.offset for each in page if self._matches(each, wanted)]
            sign = now.first + self._archive.mark(page[-1]) if page else now.sign
            place = now._replace(next_offset=common + len(page), sign=sign)
            if place.next_offset == now.next_offset:
                break
        found = _Found(place, offsets)
        with self._lock:
            self._known[key, wanted] = found
            self._known.move_to_end((key, wanted))
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return found

    def _matches(self, appended: AppendedEvent, wanted: Wanted) -> bool:
        event = appended.event
        if wanted.kinds and kind_of(event) not in wanted.kinds:
            return False
        if not wanted.text:
            return True
        if not _hold(texts_of(event), wanted.text):
            return False
        # A search must not tell what is masked: asking for one letter more each time would spell it.
        return not self._archive.mask or _hold(texts_of(event, mask=True), wanted.text)


def kind_of(event: SessionEvent | Opaque) -> str:
    """The type of an event, as its JSON has it."""
    return event.type if isinstance(event, Opaque) else str(event.__struct_config__.tag)


def texts_of(event: SessionEvent | Opaque, *, mask: bool = False) -> Iterator[str]:
    """What is said in an event, for a search; with `mask`, as it is shown."""
    match event:
        case ToolCall():
            yield from _strings([event.name, mask_value(event.args) if mask else event.args])
        case ToolResult():
            yield from _strings(mask_value(event.result) if mask else event.result)
        case Opaque():
            yield (mask_json(event.raw) if mask else event.raw).decode("utf-8", "replace")
        case _:
            pass
    for text in _said(event):
        yield mask_text(text) if mask else text


def _said(event: SessionEvent | Opaque) -> Iterator[str]:
    match event:
        case ToolCall() | Opaque():
            pass
        case ToolResult():
            if event.error is not UNSET:
                yield event.error
        case Reasoning():
            yield "" if event.text is UNSET else event.text
        case Compaction():
            yield event.reason
            yield "" if event.summary is UNSET else event.summary
        case Usage():
            yield "" if event.model is UNSET else event.model
        case TurnEnd():
            if isinstance(event.outcome, FailedOutcome):
                yield f"{event.outcome.error.kind}: {event.outcome.error.message}"
        case _:
            yield getattr(event, "text", "")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
    elif value is not None:
        yield encode_json(value).decode()


def _hold(texts: Iterator[str], wanted: str) -> bool:
    return any(wanted in text or wanted in text.casefold() for text in texts)
