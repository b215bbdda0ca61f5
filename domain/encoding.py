"""The encoding contract: what an opaque JSON value may hold, and where a value breaks it (I9).

Accepted: objects with string keys, arrays, strings of Unicode scalar values, numbers, booleans, null. Refused with
their path: NaN and infinities (msgspec would write `null`), lone surrogates, keys that are no strings, depth over 256,
integers of more than 4,300 digits (no JSON reader of Python takes them back), and every other type.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_DEPTH", "first_violation"]

MAX_DEPTH = 256
"""Deeper values overflow the stack of one reader or another; 5,000 levels crash msgspec's and Python's."""

_DIGIT_LIMIT = 10**4300

Step = tuple[Any, str, int]


def first_violation(value: object) -> tuple[str, str] | None:
    """The `(path, reason)` of the first part of `value` that breaks the contract, or None.

    A struct is walked by its wire names: `$.args.items[3]`. The walk is iterative, so that a value which contains
    itself is reported as too deep instead of overflowing the stack.
    """
    pending: list[Step] = [(value, "$", 0)]
    while pending:
        current, path, depth = pending.pop()
        reason = _violation(current)
        if reason is None and depth >= MAX_DEPTH and isinstance(current, list | dict):
            reason = f"nested deeper than {MAX_DEPTH} levels"
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
        elif item is not msgspec.UNSET:
            yield item, where, depth


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
