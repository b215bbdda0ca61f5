"""Where the records of an ingest come from: one stream, or the files of a session and of its sub-agents."""

from __future__ import annotations

import heapq
from itertools import accumulate, count
from typing import TYPE_CHECKING, Protocol

import msgspec

from incarnate.actors.lines import MAX_LINE_BYTES, Line, read_blocks
from incarnate.domain.codec import encode_json
from incarnate.domain.dialects.base import ReadsFields
from incarnate.domain.dialects.moments import moment
from incarnate.domain.dialects.records import Broken, Found, RecordStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, BinaryIO

    from incarnate.actors.lines import Block, ByteStream
    from incarnate.domain.dialects.base import Dialect
    from incarnate.domain.dialects.records import Piece

__all__ = ["MergedSource", "Records", "RowSource", "Source", "Sourced", "StreamSource", "decoder_of"]

_TOGETHER = 64  # lines that are decoded before the first of them is mapped: more of them leave the processor's cache


class Sourced(msgspec.Struct, frozen=True, gc=False):
    """A piece; whether more of its stream has already arrived; the file and the sub-agent, where there are several."""

    piece: Piece
    more: bool
    agent: str | None = None
    file: str | None = None


class Records(msgspec.Struct, frozen=True, gc=False):
    """Sound records that arrived together, a line each, with their values; the first is line `line`, at `byte`."""

    line: int
    byte: int
    lines: list[bytes]
    values: list[dict[str, Any]]
    more: bool
    agent: str | None = None
    file: str | None = None

    def each(self) -> Iterator[tuple[int, int, bytes, dict[str, Any]]]:
        """The line, the byte, the bytes and the value of each."""
        starts = accumulate(map(len, self.lines), initial=self.byte)
        return zip(count(self.line), starts, self.lines, self.values, strict=False)


class Source(Protocol):
    """Gives pieces, once."""

    @property
    def lines(self) -> int:
        """How many lines were read."""
        ...

    def __iter__(self) -> Iterator[Sourced]:
        """The pieces in the order of the session."""
        ...


class StreamSource:
    """The pieces of one stream, as they arrive; `on_line` is told the size of each line once it is dealt with.

    `decode` is the dialect's own reading of its records, if it has one; see `ReadsFields`.
    """

    def __init__(
        self,
        stream: BinaryIO | ByteStream,
        likeness: Callable[[object], int],
        on_line: Callable[[int], object] | None = None,
        *,
        decode: Callable[[bytes], object] | None = None,
        agent: str | None = None,
        file: str | None = None,
    ) -> None:
        self._stream = stream
        self._records = RecordStream(likeness, MAX_LINE_BYTES, decode)
        self._on_line = on_line
        self._agent = agent
        self._file = file
        self.lines = 0

    def __iter__(self) -> Iterator[Sourced]:
        """The pieces in the order of the stream."""
        for part in self.together():
            if isinstance(part, Sourced):
                yield part
                continue
            last = part.line + len(part.lines) - 1
            for line, byte, data, value in part.each():
                found = Found(line, byte, data, value)
                yield Sourced(found, part.more or line < last, part.agent, part.file)

    def together(self) -> Iterator[Records | Sourced]:
        """The same, with the sound records that arrived together in one, which spares each of them some steps."""
        for block in read_blocks(self._stream):
            if isinstance(block, Line):
                yield from self._odd(block)
            else:
                yield from self._block(block)
        for piece in self._records.close():
            yield Sourced(piece, more=False, agent=self._agent, file=self._file)

    def _block(self, block: Block) -> Iterator[Records | Sourced]:
        number, start, last = block.first, block.start, len(block.lines)
        for at in range(0, last, _TOGETHER):
            lines = block.lines[at : at + _TOGETHER]
            more = at + len(lines) < last
            values = self._records.sound(lines)
            self.lines = number + len(lines) - 1
            if values is None:
                yield from self._singly(number, start, lines, more=more)
            else:
                yield Records(number, start, lines, values, more, self._agent, self._file)
            number += len(lines)
            start += sum(map(len, lines))
            if self._on_line is not None:
                for data in lines:
                    self._on_line(len(data))

    def _singly(self, number: int, start: int, lines: list[bytes], *, more: bool) -> Iterator[Records | Sourced]:
        """The same lines, of which one at least is not one sound record."""
        last = number + len(lines) - 1
        for data in lines:
            values, follows = self._records.sound([data]), more or number < last
            if values is None:
                yield from self._pieces(Line(number, len(data), whole=True, data=data, start=start, more=follows))
            else:
                yield Records(number, start, [data], values, follows, self._agent, self._file)
            number += 1
            start += len(data)

    def _odd(self, line: Line) -> Iterator[Sourced]:
        self.lines = line.number
        yield from self._pieces(line)
        if self._on_line is not None:
            self._on_line(line.size)

    def _pieces(self, line: Line) -> Iterator[Sourced]:
        """What is in a line that is not one sound record."""
        if line.data is None:
            reason = f"a line of {line.size} bytes; at most {MAX_LINE_BYTES} are read"
            torn = Broken(line.number, line.start, b"", reason, not line.whole)
            pieces = [*self._records.close(), torn]
        else:
            pieces = self._records.feed(line.number, line.start, line.data, whole=line.whole)
        for piece in pieces:
            yield Sourced(piece, line.more, self._agent, self._file)


def decoder_of(dialect: Dialect) -> Callable[[bytes], object] | None:
    """The dialect's own reading of its records, if it has one."""
    return dialect.decode if isinstance(dialect, ReadsFields) else None


class RowSource:
    """The rows of a harness's database, each a record; they count as lines."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = rows
        self.lines = 0

    def __iter__(self) -> Iterator[Sourced]:
        """The rows in their order."""
        for row in self._rows:
            self.lines += 1
            yield Sourced(Found(self.lines, 0, encode_json(row), row), more=True)


class MergedSource:
    """The pieces of several streams by their time: a sub-agent's records where they happened in the session.

    A piece without a time comes right after the one before it in its stream.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    @property
    def lines(self) -> int:
        """How many lines were read, in all streams."""
        return sum([source.lines for source in self._sources])

    def __iter__(self) -> Iterator[Sourced]:
        """The pieces by time."""
        timed = [_timed(source, place) for place, source in enumerate(self._sources)]
        for _, _, sourced in heapq.merge(*timed, key=lambda entry: entry[:2]):
            yield sourced


def _timed(source: Source, place: int) -> Iterator[tuple[float, int, Sourced]]:
    # Never back in time, so that a stream keeps its own order whatever its clock does.
    latest = 0.0
    for sourced in source:
        if isinstance(sourced.piece, Found):
            latest = max(latest, moment(sourced.piece.value) or latest)
        yield latest, place, sourced
