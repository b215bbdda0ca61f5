"""How much of a transcript file holds: the longest valid prefix, and what lies behind it.

The rule is the reference's (`fixtures/vectors/transcript_files.jsonl`): lines end in LF or CRLF, an empty line is
harmless, a line of blanks is torn, and a complete last record that only lacks its line end counts. NULs at the end of
the file are of us: they are what a file system leaves after a power cut where a record should stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from incarnate.domain.errors import EventShapeError
from incarnate.domain.transcripts.rows import Row, decode_row

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Removed", "Replay", "Sifted", "Torn", "replay", "sift", "start_of_last"]


class Torn(NamedTuple):
    """Where the first record that cannot be read begins: its line, counted from 1, and its byte, counted from 0."""

    line: int
    offset: int


class Replay(NamedTuple):
    """The rows of the longest valid prefix, its length, and the torn record that ends it, if one does."""

    rows: list[Row]
    valid_bytes: int
    torn: Torn | None


class Removed(NamedTuple):
    """Bytes that are no part of any record, and where they stood."""

    line: int
    offset: int
    data: bytes


class Sifted(NamedTuple):
    """A file without its damage: what was kept, as it stood, its rows, and what was removed, in order."""

    kept: bytes
    rows: list[Row]
    removed: list[Removed]


class _Line(NamedTuple):
    number: int
    offset: int
    text: bytes
    ending: bytes


def replay(data: bytes) -> Replay:
    """What a transcript file of these bytes holds."""
    written = data.rstrip(b"\0")
    rows: list[Row] = []
    for line in _lines(written):
        if line.text:
            row = _row(line.text)
            if row is None:
                return Replay(rows, line.offset, Torn(line.number, line.offset))
            rows.append(row)
    if len(written) < len(data):
        return Replay(rows, len(written), Torn(written.count(b"\n") + 1, len(written)))
    return Replay(rows, len(data), None)


def sift(data: bytes) -> Sifted:
    """Every valid record of these bytes, wherever it stands, and all the rest.

    A record with NULs before or behind it in its line is kept without them: nothing else can have stood there.
    """
    kept: list[bytes] = []
    rows: list[Row] = []
    removed: list[Removed] = []
    for line in _lines(data):
        text = line.text.strip(b"\0")  # no record begins or ends with one
        row = _row(text)
        if row is None and line.text:
            removed.append(Removed(line.number, line.offset, line.text + line.ending))
            continue
        kept.append(text + line.ending)
        if row is not None:
            rows.append(row)
            removed += _around(line, text)
    return Sifted(b"".join(kept), rows, removed)


def start_of_last(tail: bytes, count: int, *, whole: bool) -> int | None:
    """Where the last `count` records of a valid file begin, of which `tail` is the end; None if it holds fewer.

    `whole` says that `tail` is all of the file, so that its first line is one. Empty lines are no records.
    """
    end = len(tail)
    while count and end:
        newline = tail.rfind(b"\n", 0, end - 1)
        if newline < 0 and not whole:
            return None
        if tail[newline + 1 : end].rstrip(b"\r\n"):
            count -= 1
        end = newline + 1
    return None if count else end


def _around(line: _Line, text: bytes) -> Iterator[Removed]:
    before, _, behind = line.text.partition(text)
    if before:
        yield Removed(line.number, line.offset, before)
    if behind:
        yield Removed(line.number, line.offset + len(before) + len(text), behind)


def _row(text: bytes) -> Row | None:
    try:
        return decode_row(text)
    except EventShapeError:
        return None


def _lines(data: bytes) -> Iterator[_Line]:
    """Split at LF alone: `splitlines` would cut a text at U+2028."""
    number, start = 1, 0
    while start < len(data):
        newline = data.find(b"\n", start)
        end = len(data) if newline < 0 else newline + 1
        raw = data[start:end]
        text = raw.removesuffix(b"\n").removesuffix(b"\r")
        yield _Line(number, start, text, raw[len(text) :])
        number, start = number + 1, end
