"""One line of a harness's output to a JSON value, mended where it is damaged.

Lines are framed by LF alone: U+2028 and its kin occur raw inside strings. The fast path is msgspec's; the slow one is
taken by the few lines that it refuses. Both take time in proportion to the line's length, whatever is in it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

import msgspec

from incarnate.domain.errors import EventShapeError

__all__ = ["MAX_RECORD_DEPTH", "Record", "read_record"]

MAX_RECORD_DEPTH = 320
"""The deepest nesting that is read: the 256 levels of a value that a log can hold, and the harness's envelope."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_REPLACEMENT_BYTES = _REPLACEMENT.encode()
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# A whole string, closed or not, or one bracket. Possessive, so that an unclosed string is looked at once.
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)

# An escaped surrogate pair, a surrogate on its own, or any other escape, which is passed over.
_ESCAPES = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)

_decode_fast = msgspec.json.Decoder().decode


class Record(NamedTuple):
    """A line's JSON value, and how many places of it were mended."""

    value: Any
    mended: int


def read_record(line: bytes) -> Record | None:
    """The JSON value of one line, with or without its line feed; None for a blank line.

    Mended and counted: a lone surrogate or a byte that is no UTF-8 becomes U+FFFD; NaN, an infinity or a number beyond
    a double becomes null; a run of NULs before or after the record goes; raw control characters in strings stay.

    Raises:
        EventShapeError: the line is no JSON text, is nested deeper than `MAX_RECORD_DEPTH`, or holds an integer of
            more digits than Python reads (4,300).
    """
    bare = line.removeprefix(_BYTE_ORDER_MARK).strip(b" \t\r\n")
    text = bare.strip(b"\0 \t\r\n")
    if not text:
        return None
    nul_runs = int(text != bare)
    # As many brackets as levels: counting them spares nearly every line the search.
    if text.count(b"[") + text.count(b"{") > MAX_RECORD_DEPTH and _depth(text) > MAX_RECORD_DEPTH:
        raise EventShapeError(f"no JSON record: nested deeper than {MAX_RECORD_DEPTH} levels")
    try:
        return Record(_decode_fast(text), nul_runs)
    except (msgspec.MsgspecError, RecursionError):
        mender = _Mender()
        value = mender.read(text)
        return Record(value, mender.mended + nul_runs)


def _depth(text: bytes) -> int:
    """The nesting of a JSON text, brackets in strings left out."""
    deepest = depth = 0
    for token in _TOKENS.finditer(text):
        first = text[token.start() : token.start() + 1]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"]}":
            depth -= 1
    return deepest


class _Mender:
    """Reads one damaged text and counts what it mends."""

    def __init__(self) -> None:
        self.mended = 0

    def read(self, data: bytes) -> Any:
        text = data.decode("utf-8", "replace")
        self.mended += text.count(_REPLACEMENT) - data.count(_REPLACEMENT_BYTES)
        text = _ESCAPES.sub(self._escape, text)
        try:
            return self._parse(text)
        except RecursionError as error:
            raise EventShapeError("no JSON record: nested too deeply for the stack that is left") from error
        except ValueError as error:
            raise EventShapeError(f"no JSON record: {error}") from error

    def _parse(self, text: str) -> Any:
        before = self.mended
        try:
            return json.loads(text, parse_constant=self._constant, parse_float=self._float)
        except json.JSONDecodeError as error:
            if not error.msg.startswith("Invalid control character"):
                raise
            self.mended = before + 1
            return json.loads(text, strict=False, parse_constant=self._constant, parse_float=self._float)

    def _escape(self, found: re.Match[str]) -> str:
        if found["lone"] is None:
            return found[0]
        self.mended += 1
        return _REPLACEMENT

    def _constant(self, _: str) -> None:
        self.mended += 1

    def _float(self, digits: str) -> float | None:
        number = float(digits)
        if math.isfinite(number):
            return number
        self.mended += 1
        return None
