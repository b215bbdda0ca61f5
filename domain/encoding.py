"""The encoding contract: what an opaque JSON value may hold, and where a value breaks it (I9).

Accepted: objects with string keys, arrays, strings of Unicode scalar values, numbers, booleans, null. Refused with
their path: NaN and infinities (msgspec would write `null`), lone surrogates, keys that are no strings, depth over 256,
integers of more than 4,300 digits (no JSON reader of Python takes them back), and every other type.
"""

from __future__ import annotations

import math
from types import NoneType
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ENDLESS", "MAX_DEPTH", "first_violation", "is_small", "least_bytes"]

MAX_DEPTH = 256
"""Deeper values overflow the stack of one reader or another; 5,000 levels crash msgspec's and Python's."""

_DIGIT_LIMIT = 10**4300

_PLAIN = frozenset({int, float, bool, NoneType})
_WIDE = 1 << 64
_SCALARS = (str, int, float, NoneType)

ENDLESS = 1 << 62
"""More bytes than any JSON has."""

Step = tuple[Any, str, int]


def first_violation(value: object) -> tuple[str, str] | None:
    """The `(path, reason)` of the first part of `value` that breaks the contract, or None.

    A struct is walked by its wire names: `$.args.items[3]`. The walk is iterative, so that a value which contains
    itself is reported as too deep instead of overflowing the stack. What was found sound is not walked again where it
    is met as deep or less deep, so that one with shared parts costs no more than its parts.
    """
    pending: list[Step] = [(value, "$", 0)]
    sound: dict[int, int] = {}
    while pending:
        current, path, depth = pending.pop()
        if isinstance(current, list | dict):
            if sound.get(id(current), -1) >= depth:
                continue
            sound[id(current)] = depth
        reason = _violation(current)
        if reason is None and depth >= MAX_DEPTH and isinstance(current, list | dict):
            reason = f"nested deeper than {MAX_DEPTH} levels"
        if reason is None and depth and isinstance(current, msgspec.Struct):
            reason = f"{type(current).__name__} is no JSON value"
        if reason is not None:
            return path, reason
        pending.extend(reversed(list(_children(current, path, depth))))
    return None


def _children(value: object, path: str, depth: int) -> Iterator[Step]:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                yield _BadKey(key), path, depth
            elif (reason := _violation(key)) is not None:
                yield _BadKey(key, reason), path, depth
            else:
                yield item, f"{path}.{key}", depth + 1
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield item, f"{path}[{index}]", depth + 1
    elif isinstance(value, msgspec.Struct):
        yield from _fields(value, path, depth)


def _fields(struct: msgspec.Struct, path: str, depth: int) -> Iterator[Step]:
    """The fields of a struct, which is the event itself and no level of the opaque value inside it."""
    for field in msgspec.structs.fields(struct):
        item = getattr(struct, field.name)
        where = f"{path}.{field.encode_name}"
        if isinstance(item, tuple) and field.type is not Any:  # a ledger's entries; an opaque value holds no tuple
            yield from ((part, f"{where}[{index}]", depth) for index, part in enumerate(item))
        elif field.type is Any and isinstance(item, msgspec.Struct):
            yield item, where, depth + 1
        elif item is not msgspec.UNSET:
            yield item, where, depth


def is_small(value: Any, most: int) -> bool:
    """Whether an opaque value is plainly one whose JSON takes about `most` bytes or less: nearly every one is.

    Each part is walked as often as it is met, and nothing is remembered of it.
    """
    kind = type(value)
    if kind is not dict and kind is not list:
        return kind is str or kind in _PLAIN
    size, pending = 0, [value]
    for part in pending:
        items = part
        if type(part) is dict:
            items = part.values()
            size += sum([len(key) if type(key) is str else ENDLESS for key in part])
        for item in items:
            kind = type(item)
            if kind is str:
                size += len(item)
            elif kind is dict or kind is list:
                pending.append(item)
            elif kind is int:
                if not -_WIDE < item < _WIDE:
                    return False
            elif kind not in _PLAIN:
                return False
        size += 8 * len(part)
        if size > most:
            return False
    return True


def least_bytes(value: object) -> int:
    """At least how many bytes the JSON of an opaque value takes, without making it.

    What is met again is counted again, as the encoder writes it again, but not walked again. A value that breaks the
    contract by its type, its depth or by holding itself comes out as larger than any.
    """
    if isinstance(value, str):
        return len(value)
    try:
        size = _least_bytes([value], {}, 0)
    except RecursionError:
        return ENDLESS
    return size if size >= ENDLESS else size - len("[],,")


def _least_bytes(value: Any, known: dict[int, int], depth: int) -> int:
    place = id(value)
    size = known.get(place)
    if size is not None:
        return size
    if depth > MAX_DEPTH:
        return ENDLESS
    known[place] = ENDLESS  # as long as it is not known, it holds itself
    size = 2
    if isinstance(value, dict):
        size += sum([len(key) for key in value if isinstance(key, str)])
        value = value.values()
    for item in value:
        kind = type(item)
        if kind is str:
            size += len(item) + 3
        elif kind is dict or kind is list or isinstance(item, dict | list):
            size += _least_bytes(item, known, depth + 1)
        elif kind is int:
            size += 2 + (item.bit_length() >> 2)
        else:
            size += 2 if isinstance(item, _SCALARS) else ENDLESS
    known[place] = size
    return size


class _BadKey:
    """A key that breaks the contract, met as if it were a value."""

    def __init__(self, key: object, reason: str = "") -> None:
        self.reason = reason or f"the key {key!r:.100} is no string"


def _violation(value: object) -> str | None:
    match value:
        case None | bool() | list() | dict() | msgspec.Struct():
            return None
        case str():
            return None if _is_unicode(value) else f"{value!a:.100} holds a lone surrogate"
        case int():
            return None if -_DIGIT_LIMIT < value < _DIGIT_LIMIT else "an integer of more than 4,300 digits"
        case float():
            return None if math.isfinite(value) else f"{value} is no JSON number"
        case _BadKey():
            return value.reason
        case _:
            return f"{type(value).__name__} is no JSON value"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
