"""Lines of a harness's output, framed by LF alone, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

__all__ = ["MAX_LINE_BYTES", "Line", "read_lines"]

MAX_LINE_BYTES = 128 * 1024 * 1024
"""The longest line that is read: room for an event of the largest size with every character escaped in it."""


class Line(NamedTuple):
    """One line of a stream.

    `number` counts from 1 and `size` is its length in bytes, line feed included. `whole` is false for the last line
    of a stream that does not end in a line feed. `data` is None where the line is longer than the limit.
    """

    number: int
    size: int
    whole: bool
    data: bytes | None


def read_lines(stream: BinaryIO, max_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """The lines of `stream` as they arrive.

    Never by `str.splitlines`, which breaks a record at the U+2028 that harnesses write raw into their strings.
    """
    number = 0
    while data := stream.readline(max_bytes):
        number += 1
        size, kept = len(data), True
        while not data.endswith(b"\n") and size >= max_bytes and (more := stream.readline(max_bytes)):
            data, size, kept = more, size + len(more), False
        yield Line(number, size, data.endswith(b"\n"), data if kept else None)
