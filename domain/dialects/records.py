"""A harness's lines to records, whatever damaged them: nothing ends the stream, and nothing is lost in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from incarnate.domain.dialects.reader import read_record
from incarnate.domain.dialects.salvage import is_json_like, is_open, salvage
from incarnate.domain.errors import EventShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from incarnate.domain.dialects.reader import Record
    from incarnate.domain.dialects.salvage import Fragment

__all__ = ["Broken", "Found", "Piece", "RecordStream", "Text"]

_MOST_JOINS = 8  # of the lines that may be one record: after them, two damages are likelier than one split record
_CUT_SHORT = "a record that is cut short"
_decode = msgspec.json.Decoder().decode
_OPENERS = (b"{", b"[")
_CLOSERS = (b"}", b"]")


class Found(msgspec.Struct, frozen=True, gc=False):
    """A record: its value, its bytes, and what of it was mended.

    `line` counts from 1 and `byte` from 0; `place` counts the records of one line. `repair` says how the record was
    put together, where it was.
    """

    line: int
    byte: int
    data: bytes
    value: Any
    mended: int = 0
    place: int = 0
    repair: str | None = None


class Text(msgspec.Struct, frozen=True, gc=False):
    """A line, or a part of one, that is no JSON: words of the harness between its records."""

    line: int
    byte: int
    data: bytes

    @property
    def text(self) -> str:
        """Its words; what is no UTF-8 in them becomes U+FFFD."""
        return self.data.decode("utf-8", "replace").strip("\0 \t\r\n")


class Broken(msgspec.Struct, frozen=True, gc=False):
    """A part of the stream that gives no record, and why; `torn` for the end of one that may go on."""

    line: int
    byte: int
    data: bytes
    reason: str
    torn: bool = False


Piece = Found | Text | Broken


class _Raw(NamedTuple):
    """A line, or the last part of one, as it was read."""

    line: int
    byte: int
    data: bytes
    whole: bool
    place: int = 0


class RecordStream:
    """The lines of one stream, one after the other.

    A line that begins a record and does not end it is held: the lines after it may be the rest of the record, which a
    raw line feed in a text split, or which was printed over many lines. They are not where they are records
    themselves. What is held when the stream ends is torn.
    """

    def __init__(
        self, likeness: Callable[[object], int], max_bytes: int, decode: Callable[[bytes], object] | None = None
    ) -> None:
        """`decode` is the dialect's own; see `ReadsFields`."""
        self._decode = decode or _decode
        self._likeness = likeness
        self._max_bytes = max_bytes
        self._held: list[_Raw] = []
        self._held_bytes = 0
        self._joins = 0

    def sound(self, lines: Sequence[bytes]) -> list[dict[str, Any]] | None:
        """The records of lines that are one each and no more, as nearly all are; None for any others, to be fed.

        A short cut: what `feed` makes of such a line has this value, maybe with fields that the dialect does not read,
        and nothing else to tell. Only its depth is not
        looked at, which costs half as much as reading it: what a log cannot hold is refused when it comes to that.
        """
        if self._held:
            return None
        decode = self._decode
        try:
            # The dialect's own does not see bytes that are no UTF-8 in fields that it passes over: they are mended.
            values: list[Any] = [decode(data) if data.isascii() else _decode(data) for data in lines]
        except (msgspec.MsgspecError, RecursionError):
            return None
        return values if set(map(type, values)) == {dict} else None

    def feed(self, line: int, byte: int, data: bytes, *, whole: bool = True) -> list[Piece]:
        """The pieces that are complete with this line; `whole` is false for a last line without its line feed."""
        raw = _Raw(line, byte, data, whole)
        return self._go_on(raw) if self._held else self._fresh(raw)

    def close(self) -> list[Piece]:
        """What is still held, at the end of the stream."""
        return self._release()

    def _fresh(self, raw: _Raw) -> list[Piece]:
        try:
            record = read_record(raw.data)
        except EventShapeError as error:
            return self._damaged(raw, str(error))
        if record is None:
            return []
        if not isinstance(record.value, dict | list):
            return [Text(raw.line, raw.byte, raw.data)]
        return [Found(raw.line, raw.byte, raw.data, record.value, record.mended, raw.place)]

    def _damaged(self, raw: _Raw, reason: str) -> list[Piece]:
        fragments = salvage(raw.data, self._likeness)
        if not raw.whole and fragments[0].record is None:
            # The end of a record that is still being written may look like a whole one.
            fragments = [fragments[0]._replace(data=raw.data[fragments[0].start :])]
        pieces: list[Piece] = []
        for place, fragment in enumerate(fragments, raw.place):
            at = raw.byte + fragment.start
            if fragment.record is not None:
                value, mended = fragment.record
                how = "glued to what stands before it" if place else None
                pieces.append(Found(raw.line, at, fragment.data, value, mended, place, how))
            elif place == raw.place + len(fragments) - 1 and is_open(fragment.data):
                self._hold(_Raw(raw.line, at, fragment.data, raw.whole, place))
            else:
                pieces.append(_lost(raw.line, at, fragment.data, reason))
        return pieces

    def _go_on(self, raw: _Raw) -> list[Piece]:
        printed = self._held[0].data.strip() in _OPENERS
        if _is_record(raw, printed=printed):
            return self._release() + self._fresh(raw)
        self._hold(raw)
        if self._held_bytes > self._max_bytes:
            return self._release()
        if printed and not raw.data.startswith(_CLOSERS):
            return []
        return self._join(printed=printed)

    def _join(self, *, printed: bool) -> list[Piece]:
        self._joins += 1
        last = self._held[-1]
        joined = b"".join([raw.data for raw in self._held])
        fragments = salvage(joined, self._likeness)
        if fragments and fragments[0].record is not None and len(fragments[0].data) > len(joined) - len(last.data):
            return self._joined(joined, fragments[0], fragments[0].record, printed=printed)
        if self._joins < _MOST_JOINS and is_open(joined):
            return []
        return self._release()

    def _joined(self, joined: bytes, fragment: Fragment, record: Record, *, printed: bool) -> list[Piece]:
        """The record of the held lines, and what stands behind it on the last one."""
        held = self._take_held()
        first, last = held[0], held[-1]
        # That a document is printed over many lines is no damage; a line feed inside a text is, mended once.
        mended, how = (record.mended, None) if printed else (record.mended - 1, f"a record over {len(held)} lines")
        found = Found(first.line, first.byte, fragment.data, record.value, max(0, mended), first.place, how)
        rest = joined[fragment.start + len(fragment.data) :]
        behind = last._replace(byte=last.byte + len(last.data) - len(rest), data=rest, place=1)
        return [found, *self._fresh(behind)]

    def _hold(self, raw: _Raw) -> None:
        self._held.append(raw)
        self._held_bytes += len(raw.data)

    def _take_held(self) -> list[_Raw]:
        held, self._held, self._held_bytes, self._joins = self._held, [], 0, 0
        return held

    def _release(self) -> list[Piece]:
        """The held lines, each for itself: the first is cut short, what follows may be anything but a record."""
        held = self._take_held()
        pieces: list[Piece] = [Broken(raw.line, raw.byte, raw.data, _CUT_SHORT, torn=not raw.whole) for raw in held[:1]]
        for raw in held[1:]:
            pieces += self._fresh(raw)
            pieces += [Broken(open_.line, open_.byte, open_.data, _CUT_SHORT) for open_ in self._take_held()]
        return pieces


def _is_record(raw: _Raw, *, printed: bool) -> bool:
    """The line is a record for itself; inside a printed document the indented ones are parts of it."""
    if printed and raw.data[:1] in b" \t":
        return False
    try:
        record = read_record(raw.data)
    except EventShapeError:
        return False
    return record is not None and isinstance(record.value, dict | list)


def _lost(line: int, byte: int, data: bytes, reason: str) -> Text | Broken:
    bare = data.strip(b" \t\r\n\0")
    if is_json_like(bare):
        return Broken(line, byte, data, _CUT_SHORT if is_open(bare) else reason)
    return Text(line, byte, data)
