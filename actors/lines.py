"""Lines of a harness's output, framed by LF alone, in bounded memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

__all__ = ["MAX_LINE_BYTES", "Block", "ByteStream", "Line", "read_blocks", "read_lines", "reader_of"]

MAX_LINE_BYTES = 128 * 1024 * 1024
"""The longest line that is read: room for an event of the largest size with every character escaped in it."""

_CHUNK = 1024 * 1024
"""What one read takes at most; an ingest commits together what one holds. With a quarter of it a file of records of a
few kilobytes takes a quarter longer, for the commits. It costs 4 MiB of memory, for what the lines become."""


class ByteStream(Protocol):
    """Gives bytes as they arrive, as buffered files and pipes do."""

    def read1(self, size: int, /) -> bytes:
        """What is there, at most `size` bytes; waits for the first one only. Nothing at the end."""
        ...


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of a stream.

    `number` counts from 1, `start` is where it begins in the stream and `size` its length in bytes, line feed included.
    `whole` is false for the last line of a stream that does not end in a line feed. `data` is None where the line is
    longer than the limit. `more` says that the next line has already arrived.
    """

    number: int
    size: int
    whole: bool
    data: bytes | None
    start: int = 0
    more: bool = False


class Block(msgspec.Struct, frozen=True, gc=False):
    """Whole lines that arrived together; the first has the number `first` and begins at `start`."""

    first: int
    start: int
    lines: list[bytes]


def read_lines(stream: BinaryIO | ByteStream, max_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """The lines of `stream` as they arrive.

    Never by `str.splitlines`, which breaks a record at the U+2028 that harnesses write raw into their strings.
    """
    for part in read_blocks(stream, max_bytes):
        if isinstance(part, Line):
            yield part
            continue
        start, last = part.start, part.first + len(part.lines) - 1
        for number, data in enumerate(part.lines, part.first):
            yield Line(number, len(data), True, data, start, number < last)  # noqa: FBT003 - by name: twice the time
            start += len(data)


def read_blocks(stream: BinaryIO | ByteStream, max_bytes: int = MAX_LINE_BYTES) -> Iterator[Block | Line]:
    """The same lines in blocks, which spares each of them a step of a generator; by itself one that is not whole."""
    read, begun = reader_of(stream), _Begun(max_bytes)
    number = start = 0
    while chunk := read(_CHUNK):
        lines = io.BytesIO(chunk).readlines()
        left = b"" if lines[-1].endswith(b"\n") else lines.pop()
        if begun.size + len(chunk) > max_bytes:
            for at, data in enumerate(lines, 1):
                size, kept = begun.end(data)
                yield Line(number + at, size, whole=True, data=kept, start=start, more=at < len(lines))
                start += size
        elif lines:
            lines[0] = begun.end(lines[0])[1] or b""  # never nothing: it ends in a line feed and is not too long
            yield Block(number + 1, start, lines)
            start += sum([len(line) for line in lines])
        number += len(lines)
        begun.add(left)
    if begun.size:
        size, rest = begun.end(b"")
        yield Line(number + 1, size, whole=False, data=rest, start=start)


class _Begun:
    """A line whose end has not come yet, or only its size once it is too long.

    Kept as one piece: of a line that came by two bytes a list of the parts took sixty times its size.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._data = bytearray()
        self.size = 0

    def add(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > self._max_bytes:
            self._data = bytearray()
        else:
            self._data += part

    def end(self, part: bytes) -> tuple[int, bytes | None]:
        self.add(part)
        size, data = self.size, bytes(self._data) if self.size <= self._max_bytes else None
        self._data = bytearray()
        self.size = 0
        return size, data


def reader_of(stream: BinaryIO | ByteStream) -> Callable[[int], bytes]:
    """Reads what is there, up to a size, and waits only for the first byte of it."""
    some: Callable[[int], bytes] | None = getattr(stream, "read1", None)
    if some is not None:
        return some
    line_by_line: Callable[[int], bytes] = stream.readline  # type: ignore[union-attr]  # no ByteStream, so it is the other
    return line_by_line
