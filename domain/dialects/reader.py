"""One line of a harness's output to a JSON value, mended where it is damaged.

Lines are framed by LF alone: U+2028 and its kin occur raw inside strings. The fast path is msgspec's; the slow one is
taken by the few lines that it refuses, and its work is in proportion to the line's length.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import msgspec

from incarnate.domain.errors import EventShapeError

__all__ = ["MAX_RECORD_DEPTH", "Record", "read_record"]

MAX_RECORD_DEPTH = 320
"""The deepest nesting that is read: the 256 levels of a value that a log can hold, and the harness's envelope."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_REPLACEMENT_BYTES = _REPLACEMENT.encode()
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_decode_fast = msgspec.json.Decoder().decode


class Record(NamedTuple):
    """A line's JSON value, and how many places of it were mended."""

    value: Any
    mended: int


def read_record(line: bytes) -> Record | None:
    """The JSON value of one line, with or without its line feed; None for a blank line.

    Mended and counted: a lone surrogate or a byte that is no UTF-8 becomes U+FFFD, NaN, an infinity or a number beyond
    a double becomes null, a run of NULs around the record goes, a raw control character in a string is kept as it is.

    Raises:
        EventShapeError: the line is no JSON text, is nested deeper than `MAX_RECORD_DEPTH`, or holds an integer of
            more digits than Python reads (4,300).
    """
    bare = line.removeprefix(_BYTE_ORDER_MARK).strip(b" \t\r\n")
    text = bare.strip(b"\0 \t\r\n")
    if not text:
        return None
    nul_runs = int(text != bare)
    if text.count(b"[") + text.count(b"{") > MAX_RECORD_DEPTH and _depth(text) > MAX_RECORD_DEPTH:
        raise EventShapeError(f"no JSON record: nested deeper than {MAX_RECORD_DEPTH} levels")
    try:
        return Record(_decode_fast(text), nul_runs)
    except (msgspec.MsgspecError, RecursionError):
        value, mended = _Mender().read(text)
        return Record(value, mended + nul_runs)


def _depth(text: bytes) -> int:
    """The nesting of a JSON text, strings left out; one pass, no recursion."""
    deepest = depth = 0
    in_string = escaped = False
    for byte in text:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


class _Mender:
    """Reads one damaged text and counts what it mends."""

    def __init__(self) -> None:
        self.mended = 0

    def read(self, data: bytes) -> tuple[Any, int]:
        text = data.decode("utf-8", "replace")
        self.mended += text.count(_REPLACEMENT) - data.count(_REPLACEMENT_BYTES)
        try:
            value = self._parse(text)
        except RecursionError as error:
            raise EventShapeError("no JSON record: nested too deeply for the stack that is left") from error
        except ValueError as error:
            raise EventShapeError(f"no JSON record: {error}") from error
        return self._scalars(value), self.mended

    def _parse(self, text: str) -> Any:
        try:
            return json.loads(text, parse_constant=self._constant, parse_float=self._float)
        except json.JSONDecodeError as error:
            if not error.msg.startswith("Invalid control character"):
                raise
            self.mended += 1
            return json.loads(text, strict=False, parse_constant=self._constant, parse_float=self._float)

    def _constant(self, _: str) -> None:
        self.mended += 1

    def _float(self, digits: str) -> float | None:
        number = float(digits)
        if math.isfinite(number):
            return number
        self.mended += 1
        return None

    def _scalars(self, value: Any) -> Any:
        """The value with every lone surrogate replaced; the depth was checked, so recursion is bounded."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._scalars(item) for item in value]
        if isinstance(value, dict):
            return {self._text(key): self._scalars(item) for key, item in value.items()}
        return value

    def _text(self, text: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            mended = "".join([_REPLACEMENT if "\ud800" <= char <= "\udfff" else char for char in text])
            self.mended += mended.count(_REPLACEMENT) - text.count(_REPLACEMENT)
            return mended
        return text
