"""Where the records of an ingest come from: one stream, or the files of a session and of its sub-agents."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Protocol

import msgspec

from incarnate.actors.lines import MAX_LINE_BYTES, read_lines
from incarnate.domain.codec import encode_json
from incarnate.domain.dialects.moments import moment
from incarnate.domain.dialects.records import Broken, Found, RecordStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, BinaryIO

    from incarnate.actors.lines import ByteStream
    from incarnate.domain.dialects.records import Piece

__all__ = ["MergedSource", "RowSource", "Source", "Sourced", "StreamSource"]


class Sourced(msgspec.Struct, frozen=True, gc=False):
    """A piece; whether more of its stream has already arrived; the file and the sub-agent, where there are several."""

    piece: Piece
    more: bool
    agent: str | None = None
    file: str | None = None


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
    """The pieces of one stream, as they arrive; `on_line` is told the size of each line once it is dealt with."""

    def __init__(
        self,
        stream: BinaryIO | ByteStream,
        likeness: Callable[[object], int],
        on_line: Callable[[int], object] | None = None,
        *,
        agent: str | None = None,
        file: str | None = None,
    ) -> None:
        self._stream = stream
        self._likeness = likeness
        self._on_line = on_line
        self._agent = agent
        self._file = file
        self.lines = 0

    def __iter__(self) -> Iterator[Sourced]:
        """The pieces in the order of the stream."""
        records = RecordStream(self._likeness, MAX_LINE_BYTES)
        agent, file, tell, sound = self._agent, self._file, self._on_line, records.sound
        for line in read_lines(self._stream):
            self.lines = line.number
            data = line.data
            if data is not None:
                value = sound(data)
                if value is not None:
                    yield Sourced(Found(line.number, line.start, data, value), line.more, agent, file)
                    if tell is not None:
                        tell(line.size)
                    continue
                pieces = records.feed(line.number, line.start, data, whole=line.whole)
            else:
                reason = f"a line of {line.size} bytes; at most {MAX_LINE_BYTES} are read"
                pieces = [*records.close(), Broken(line.number, line.start, b"", reason, not line.whole)]
            for piece in pieces:
                yield Sourced(piece, line.more, agent, file)
            if tell is not None:
                tell(line.size)
        for piece in records.close():
            yield Sourced(piece, more=False, agent=agent, file=file)


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
