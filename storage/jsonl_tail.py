"""The end of the segment that is written to.

A file that becomes longer costs its file system a commit of its own at every sync. So whoever syncs every commit puts
spaces behind some, and writes the next ones over them: a sync then takes two thirds of the time. Only one commit of one
line at a time may be on its way to the disk there. What a power cut leaves of it is no line, and no other line follows;
of two lines the second might arrive alone, and look like a record behind damage.

Nor is the file's status asked for, which costs as much: where somebody has looked at a file's time, Linux gives it a
new one at the next write, and the sync has that to write too. The folder's time tells as well that nothing in it was
removed or replaced.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from incarnate.storage.jsonl_files import Handle

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PADDING", "Tail"]

PADDING = b" "

_PAD_BYTES = 32 * 1024
_PAD_AFTER = 4
"""How many commits must have made the file longer: a session of few leaves no spaces behind if it is killed."""


_TICK_NS = 20_000_000
_LONG_TICK_NS = 2_500_000_000
_SECOND_NS = 1_000_000_000


def _is_settled(stamp: int) -> bool:
    """Whether any further change of a folder would give it another time than `stamp`.

    The clock of a file system goes in steps: of at most 10 milliseconds, or of one or two seconds on old ones, whose
    times are whole seconds.
    """
    step = _TICK_NS if stamp % _SECOND_NS else _LONG_TICK_NS
    return time.time_ns() - stamp > step


class Tail:
    """The file at `path`, open for writing. It `pads` if every commit is synced."""

    def __init__(self, path: Path, *, pads: bool) -> None:
        self.path = path
        self._handle = Handle(path, os.O_RDWR)
        self.fd = self._handle.fd
        self._folder = Handle(path.parent, os.O_RDONLY)
        self._stamp = 0  # the time of the folder when both files were last known to be there
        self._pads = pads
        self._lengthened = 0

    def size_if_ends_at(self, byte: int, lock: Handle) -> int | None:
        """The size of the file; None where it or the lock is not there any more, or something stands from `byte` on."""
        stamp = os.fstat(self._folder.fd).st_mtime_ns
        if stamp != self._stamp:
            if not os.fstat(self.fd).st_nlink or not os.fstat(lock.fd).st_nlink:
                return None
            self._stamp = stamp if _is_settled(stamp) else 0
        size = os.lseek(self.fd, 0, os.SEEK_END)
        if size == byte or (size > byte and os.pread(self.fd, 1, byte) == PADDING):
            return size
        return None

    def write(self, data: bytes, byte: int, size: int | None, *, alone: bool) -> None:
        """Put a commit at `byte`; `alone` if it is one line and nothing else is on its way to the disk.

        Raises:
            OSError: a part of it may be there.
        """
        if size is None:
            size = os.lseek(self.fd, 0, os.SEEK_END)
        if not (alone and self._pads):
            if size > byte:
                os.ftruncate(self.fd, byte)
        elif byte + len(data) > size:
            self._lengthened += 1
            if self._lengthened > _PAD_AFTER:
                data += PADDING * _PAD_BYTES
        written = os.pwrite(self.fd, data, byte)
        while written < len(data):
            written += os.pwrite(self.fd, data[written:], byte + written)

    def cut(self, byte: int) -> None:
        """Remove whatever stands from `byte` on."""
        os.ftruncate(self.fd, byte)
