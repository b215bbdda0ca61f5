"""Lines of a harness's output, framed by LF alone, in bounded memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

__all__ = ["MAX_LINE_BYTES", "ByteStream", "Line", "read_lines", "reader_of"]

MAX_LINE_BYTES = 128 * 1024 * 1024
"""The longest line that is read: room for an event of the largest size with every character escaped in it."""

_CHUNK = 256 * 1024  # larger ones are not faster; what one holds of a pipe is committed together


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


def read_lines(stream: BinaryIO | ByteStream, max_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """The lines of `stream` as they arrive.

    Never by `str.splitlines`, which breaks a record at the U+2028 that harnesses write raw into their strings.
    """
    read = reader_of(stream)
    number = start = 0
    begun = _Begun(max_bytes)
    while chunk := read(_CHUNK):
        lines = io.BytesIO(chunk).readlines()
        left = b"" if lines[-1].endswith(b"\n") else lines.pop()
        count = len(lines)
        for at, data in enumerate(lines, 1):
            size, whole = begun.end(data) if begun.size else (len(data), data if len(data) <= max_bytes else None)
            number += 1
            yield Line(number, size, True, whole, start, at < count)  # noqa: FBT003 - by name it takes twice as long
            start += size
        begun.add(left)
    if begun.size:
        size, rest = begun.end(b"")
        yield Line(number + 1, size, whole=False, data=rest, start=start)


class _Begun:
    """A line whose end has not come yet: its parts, or only their size once they are too long."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > self._max_bytes:
            self._parts.clear()
        else:
            self._parts.append(part)

    def end(self, part: bytes) -> tuple[int, bytes | None]:
        self.add(part)
        size, data = self.size, b"".join(self._parts) if self.size <= self._max_bytes else None
        self._parts.clear()
        self.size = 0
        return size, data


def reader_of(stream: BinaryIO | ByteStream) -> Callable[[int], bytes]:
    """Reads what is there, up to a size, and waits only for the first byte of it."""
    some: Callable[[int], bytes] | None = getattr(stream, "read1", None)
    if some is not None:
        return some
    line_by_line: Callable[[int], bytes] = stream.readline  # type: ignore[union-attr]  # no ByteStream, so it is the other
    return line_by_line
