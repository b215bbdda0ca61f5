"""The items of a view as the page gets them: JSON, masked, and cut where they are too large to be sent unasked."""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import blake2b
from typing import NamedTuple

from incarnate.domain.codec import encode_json
from incarnate.studio.cutting import fitted
from incarnate.studio.foreign_json import decoded, readable
from incarnate.studio.masking import mask_json

__all__ = ["MOST_ITEM_BYTES", "Item", "shaped"]

MOST_ITEM_BYTES = 256 * 1024
"""The largest item that is sent whole without being asked for."""

_MOST_KEPT = 64  # cut items: 16 MB


class Item(NamedTuple):
    """One item: the offset of its event, its JSON, and how many bytes that had before it was cut; None: it was not."""

    offset: int
    data: bytes
    cut: int | None = None


class _Kept:
    """The last items that were cut, by what they were cut from: followers and pages ask for the same ones again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cut: OrderedDict[tuple[bytes, bool, int], bytes] = OrderedDict()

    def cut(self, data: bytes, *, mask: bool, most: int) -> bytes:
        """The JSON cut to `most` bytes."""
        name = blake2b(data, digest_size=16).digest(), mask, most
        with self._lock:
            found = self._cut.get(name)
        if found is None:
            found = encode_json(fitted(decoded(data), most, mask=mask)[0])
        with self._lock:
            self._cut[name] = found
            self._cut.move_to_end(name)
            while len(self._cut) > _MOST_KEPT:
                self._cut.popitem(last=False)
        return found


_kept = _Kept()


def shaped(offset: int, data: bytes, *, mask: bool, most: int = MOST_ITEM_BYTES) -> Item:
    """An item as it is sent."""
    if len(data) > most:
        return Item(offset, _kept.cut(readable(data), mask=mask, most=most), len(data))
    return Item(offset, mask_json(data) if mask else readable(data))
