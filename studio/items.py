"""The items of a view as the page gets them: JSON, masked, and cut where they are too large to be sent unasked."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from incarnate.domain.codec import encode_json
from incarnate.studio.masking import mask_json

__all__ = ["MOST_ITEM_BYTES", "Item", "shaped"]

MOST_ITEM_BYTES = 256 * 1024
"""The largest item that is sent whole without being asked for."""

_SHORTEST = 256
_MARK = "… [cut]"
_decode = msgspec.json.Decoder().decode


class Item(NamedTuple):
    """One item: the offset of its event, its JSON, and how many bytes that had before it was cut; None: it was not."""

    offset: int
    data: bytes
    cut: int | None = None


def shaped(offset: int, data: bytes, *, mask: bool, most: int = MOST_ITEM_BYTES) -> Item:
    """An item as it is sent."""
    if mask:
        data = mask_json(data)
    return Item(offset, data) if len(data) <= most else Item(offset, _cut(data, most), len(data))


def _cut(data: bytes, most: int) -> bytes:
    """The same JSON with its long strings, and long lists and objects, cut until it fits."""
    value, longest = _decode(data), most // 2
    while longest >= _SHORTEST:
        encoded = encode_json(_shortened(value, longest, longest))
        if len(encoded) <= most:
            return encoded
        longest //= 4
    return encode_json(_shortened(value, _SHORTEST, 16))


def _shortened(value: Any, longest: int, most: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else value[:longest] + _MARK
    if isinstance(value, list):
        kept = [_shortened(item, longest, most) for item in value[:most]]
        return kept if len(value) <= most else [*kept, _MARK]
    if isinstance(value, dict):
        some = list(value.items())[:most]
        return {name[:longest]: _shortened(item, longest, most) for name, item in some}
    return value
