"""The end of the segment that is written to.

A file that becomes longer costs its file system a commit of its own at every sync. So whoever syncs every commit puts
spaces behind some, and writes the next ones over them: a sync then takes two thirds of the time. Only one commit of one
line at a time may be on its way to the disk there. What a power cut leaves of it is no line, and no other line follows;
of two lines the second might arrive alone, and look like a record behind damage.

Nor is the file's status asked for, which costs as much: where somebody has looked at a file's time, Linux gives it a
new one at the next write, and the sync has that to write too. The folder at the path tells as well, by its number and
time, that nothing in it was removed, renamed or replaced.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from incarnate.storage.jsonl_files import Handle
from incarnate.storage.settled import is_settled

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PADDING", "Tail"]

PADDING = b" "

_PAD_BYTES = 32 * 1024
_PAD_AFTER = 4
"""How many commits must have made the file longer: a session of few leaves no spaces behind if it is killed."""


def _look_at(folder: Path) -> tuple[int, int, int]:
    status = os.stat(folder)  # noqa: PTH116 - by its path, since it may have been renamed; at every commit
    return status.st_dev, status.st_ino, status.st_mtime_ns


class Tail:
    """The file at `path`, open for writing. It `pads` if every commit is synced."""

    def __init__(self, path: Path, *, pads: bool) -> None:
        self.path = path
        self._handle = Handle(path, os.O_RDWR)
        self.fd = self._handle.fd
        self._folder = path.parent
        self._seen = _look_at(self._folder)  # which folder is at the path, and its time
        self._settled = False  # whether its time will be another one if anything is changed in it
        self._pads = pads
        self._lengthened = 0

    def size_if_ends_at(self, byte: int, lock: Handle) -> int | None:
        """The size of the file; None where something stands from `byte` on, or something is new in the folder.

        It is None once for each change of the folder, so that the caller looks whether all files are in their places.
        """
        try:
            seen = _look_at(self._folder)
        except FileNotFoundError:
            return None
        if seen != self._seen:
            self._seen, self._settled = seen, is_settled(seen[-1])
            return None
        if not self._settled:
            if is_settled(seen[-1]):
                self._settled = True
                return None
            if not self._handle.is_in_place() or not lock.is_in_place():
                return None
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
