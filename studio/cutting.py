"""A JSON value cut to a size, and masked on the way: what is not shown is not looked at."""

from __future__ import annotations

from typing import Any

from incarnate.domain.codec import encode_json
from incarnate.studio.masking import MASK, Part, mask_start, mask_value, masked_name, parts_of

__all__ = ["CUT", "fitted"]

CUT = "… [cut]"

_DEPTH = 24  # each level is measured anew: a value that is large deeper than this is cut whole
_LEAST = 64
_ROOM_FOR_CUT = 16
_AROUND = 4  # bytes: quotes, a colon and a comma
_LEAST_SHARE = 32  # so much of each part that is shown at all


def fitted(value: Any, most: int, *, mask: bool) -> tuple[Any, bool]:
    """`value` with what makes it larger than `most` bytes of JSON left out, and whether anything was.

    Short parts stay whole, and long ones share what room these leave. A secret is known before a text is cut.
    """
    if len(encode_json(value)) <= most:
        return (mask_value(value) if mask else value), False
    room = most
    while room >= _LEAST:
        shown = _Cutting(mask=mask).cut(value, room, _DEPTH, is_secret=False)
        if len(encode_json(shown)) <= most:
            return shown, True
        room //= 2  # masks and marks may be longer than what they stand for
    return CUT, True


class _Cutting:
    def __init__(self, *, mask: bool) -> None:
        self._mask = mask

    def cut(self, value: Any, room: int, depth: int, *, is_secret: bool) -> Any:
        """A value that is larger than `room`, cut to about that."""
        if isinstance(value, str):
            return MASK if self._mask and is_secret else self._text(value, room)
        if not depth or not isinstance(value, dict | list | tuple):
            return CUT
        return self._cut_parts(value if isinstance(value, dict) else list(value), room, depth, is_secret=is_secret)

    def _text(self, text: str, room: int) -> str:
        length = max(0, room - _ROOM_FOR_CUT)
        shown = mask_start(text, length) if self._mask else text[:length]
        size = len(encode_json(shown))
        if size > room:  # letters that take several bytes
            length = length * length // size
            shown = mask_start(text, length) if self._mask else text[:length]
        return shown + CUT

    def _cut_parts(self, value: dict[str, Any] | list[Any], room: int, depth: int, *, is_secret: bool) -> Any:
        some, sizes = self._measured(value, room)
        share = _share(sizes, room)
        names: dict[str, Any] = {}
        items: list[Any] = []
        for part, size in zip(some, sizes, strict=True):
            below = self._part(part, size, share, depth, is_secret=is_secret or part.is_secret)
            if part.name is None:
                items.append(below)
            elif isinstance(value, dict):
                names[self._name(part.name, share, names, value)] = below
        if isinstance(value, dict):
            return names
        return items if len(items) == len(value) else [*items, CUT]

    def _part(self, part: Part, size: int, share: int, depth: int, *, is_secret: bool) -> Any:
        if size <= share:
            return mask_value(part.value, is_secret=is_secret) if self._mask else part.value
        room = share - (0 if part.name is None else min(len(part.name), share))
        return self.cut(part.value, room, depth - 1, is_secret=is_secret)

    def _measured(self, value: dict[str, Any] | list[Any], room: int) -> tuple[list[Part], list[int]]:
        """The first parts, no more than can be shown, and how large they are."""
        some: list[Part] = []
        sizes: list[int] = []
        for part in parts_of(value):
            name = 0 if part.name is None else len(part.name)
            size = len(encode_json(part.value)) + name + _AROUND
            room -= min(size, _LEAST_SHARE)
            if room < 0 and some:
                break
            some.append(part)
            sizes.append(size)
        return some, sizes

    def _name(self, name: str, room: int, taken: dict[str, Any], others: dict[str, Any]) -> str:
        short = mask_start(name, room) if self._mask and len(name) > room else name[:room]
        return masked_name(short, taken, others) if self._mask else short


def _share(sizes: list[int], room: int) -> int:
    """How large each may be, so that those which are smaller stay whole and all fit together."""
    left, count = room, len(sizes)
    for size in sorted(sizes):
        if size * count > left:
            break
        left -= size
        count -= 1
    return left // max(1, count)
