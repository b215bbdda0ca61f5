"""What can be saved of a line that is no single JSON record: records glued together, cut short, or mixed with text.

Every step takes time in proportion to the line: a scan looks for brackets and strings alone, and what is scanned again
behind a false start is bounded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from incarnate.domain.dialects.reader import Record, read_record
from incarnate.domain.errors import EventShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Fragment", "is_json_like", "is_open", "salvage"]

# A whole string, closed or not, or one bracket. Possessive, so that an unclosed string is looked at once.
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_OBJECT = re.compile(rb'\{[ \t\r\n]*"')
_BEGINNING = re.compile(rb'\{|\[\s*(?:[\[{"\]]|\Z)')
_BLANK = b" \t\r\n\0"

_SCANS = 1  # of a line's length; false starts beyond them leave the rest unread
_LEAST_SCANNED = 1024 * 1024

_decode = msgspec.json.Decoder().decode


class Fragment(NamedTuple):
    """A part of a line: where it begins, its bytes, and the record that it holds, if it does."""

    start: int
    data: bytes
    record: Record | None


def salvage(data: bytes, likeness: Callable[[object], int]) -> list[Fragment]:
    """The parts of `data`, blanks and NULs between them left out.

    An object behind something broken may be a part of it. It is taken for a record where `likeness` gives it 1, or 2
    where all up to it is the beginning of a sound value, so that the object may well lie inside.
    """
    return [fragment for fragment in _Salvage(data, likeness).fragments() if fragment.data.strip(_BLANK)]


def is_open(data: bytes) -> bool:
    """An object or a list begins here and does not end: more of it may come."""
    bare = data.lstrip(_BLANK)
    return is_json_like(bare) and _end(bare, 0) is None


def is_json_like(data: bytes) -> bool:
    """It begins as an object or a list of them does; words may begin with a bracket too, as in `[warning] ...`."""
    return _BEGINNING.match(data) is not None


class _Salvage:
    """One line being taken apart."""

    def __init__(self, data: bytes, likeness: Callable[[object], int]) -> None:
        self._data = data
        self._likeness = likeness
        self._budget = _SCANS * len(data) + _LEAST_SCANNED

    def fragments(self) -> Iterator[Fragment]:
        done = search = 0
        while (found := _OBJECT.search(self._data, search)) is not None and self._budget > 0:
            start = found.start()
            taken = self._record(done, start)
            if taken is None:
                search = start + 1
                continue
            yield Fragment(done, self._data[done:start], None)
            yield taken
            done = search = start + len(taken.data)
        yield Fragment(done, self._data[done:], None)

    def _record(self, done: int, start: int) -> Fragment | None:
        """The record that begins at `start`, where all before `done` is dealt with."""
        end = _end(self._data, start)
        self._budget -= (len(self._data) if end is None else end) - start
        if end is None:
            return None
        glued = not self._data[done:start].strip(_BLANK)
        if not glued and self._data[end:].lstrip(_BLANK)[:1] not in (b"", b"{"):
            return None
        try:
            record = read_record(self._data[start:end])
        except EventShapeError:
            return None
        if record is None or not (glued or self._likeness(record.value) >= self._needed(done, start)):
            return None
        return Fragment(start, self._data[start:end], record)

    def _needed(self, done: int, start: int) -> int:
        try:
            # A raw line feed is refused inside a text: an object that begins inside one is no part of the value.
            _decode(self._data[done:start] + b"\n0")
        except msgspec.DecodeError as error:
            return 2 if "truncated" in str(error) else 1
        return 1


def _end(data: bytes, start: int) -> int | None:
    """Where the value that opens at `start` closes; None where it does not."""
    depth = 0
    for token in _TOKENS.finditer(data, start):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
            if depth <= 0:
                return token.end()
    return None
