"""Reading a segment from a place on: whole commits, where a torn one begins, and damage that is no torn tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from incarnate.domain.errors import LogCorruptionError
from incarnate.domain.journal import SUFFIX_BYTES, Line, crc_after, holds_record, is_chained, parse
from incarnate.storage.jsonl_files import read_at
from incarnate.storage.jsonl_tail import PADDING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Placed", "Scan", "Scanned", "corrupt", "scanned"]

_CHUNK_BYTES = 1 << 20


class Placed(NamedTuple):
    """A line, the byte of its segment that it begins at, and its length."""

    line: Line
    byte: int
    length: int


class Scanned(NamedTuple):
    """The lines of whole commits, and the byte and the CRC of the segment behind them."""

    lines: list[Placed]
    end: int
    crc: int


def scanned(text: bytes, lines: list[Line], start: int, crc: int) -> Scanned:
    """The whole commits among `lines`, whose `text` is known to be good and begins at byte `start`."""
    count = 0
    while count < len(lines) and count + lines[count].lines <= len(lines):
        count += max(lines[count].lines, 1)
    placed: list[Placed] = []
    end = start
    for line, length in zip(lines[:count], map(len, text.split(b"\n")), strict=False):
        placed.append(Placed(line, end, length + 1))
        end += length + 1
    if placed:
        crc = crc_after(text[end - start - SUFFIX_BYTES : end - start]) or 0
    return Scanned(placed, end, crc)


class Scan:
    """The whole commits of a segment from byte `start` on, where its CRC is `crc`, a chunk at a time.

    When it was gone through, `end` is where they end, and `torn` how many bytes behind them are a torn tail.
    """

    def __init__(self, fd: int, path: Path, start: int, crc: int) -> None:
        self.end = start
        self.torn = 0
        self._crc = crc
        self._fd = fd
        self._path = path

    def __iter__(self) -> Iterator[Scanned]:
        """Each chunk.

        Raises:
            LogCorruptionError: a line that cannot be read is followed by one that can, or is a whole one.
        """
        size = _CHUNK_BYTES
        while data := read_at(self._fd, self.end, self.end + size):
            text, lines, bad = self._good(data)
            found = scanned(text, lines, self.end, self._crc)
            if found.lines:
                self.end, self._crc, size = found.end, found.crc, _CHUNK_BYTES
                yield found
            elif len(data) == size and bad is None:
                size *= 4  # one commit is longer than what was read
            elif bad is None:
                self.torn = 0 if data.strip(PADDING) == b"" else len(data)
                return
            if bad is not None:
                self.torn = self._judge(bad)
                return

    def _good(self, data: bytes) -> tuple[bytes, list[Line], int | None]:
        """The whole lines that `data` begins with and that follow unchanged upon what was read before.

        And where the first one begins that does not.
        """
        text = data[: data.rfind(b"\n") + 1]
        if not text:
            return text, [], None
        if is_chained(text, self._crc) and (lines := parse(text)) is not None:
            return text, lines, None
        good, crc = 0, self._crc
        while True:
            line = text[good : text.index(b"\n", good) + 1]
            if not is_chained(line, crc) or parse(line) is None:
                return text[:good], parse(text[:good]) or [], self.end + good
            good += len(line)
            crc = crc_after(line[-SUFFIX_BYTES:]) or 0

    def _judge(self, bad: int) -> int:
        """The length of the torn tail, in which there is no whole record from byte `bad` on."""
        position, rest = bad, b""
        while data := read_at(self._fd, position, position + _CHUNK_BYTES):
            position += len(data)
            *lines, rest = (rest + data).split(b"\n")
            if any(holds_record(line + b"\n") for line in lines):
                raise corrupt(self._path, self._fd, bad, "is damaged, and records follow; nothing was changed")
        return position - self.end


def corrupt(path: Path, fd: int, byte: int, reason: str) -> LogCorruptionError:
    """What is wrong at a byte of a segment, with the number of its line."""
    line = 1
    for start in range(0, byte, _CHUNK_BYTES):
        line += read_at(fd, start, min(start + _CHUNK_BYTES, byte)).count(b"\n")
    error = LogCorruptionError(f"{path}, line {line}, byte {byte}", reason)
    error.hint = "copy the folder before anything else writes to it; the lines before that one are whole"
    return error
