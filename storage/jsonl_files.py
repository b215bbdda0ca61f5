"""The files of a JSONL store: descriptors, the names of segments, and how one is made in a single step."""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from incarnate.domain.errors import OutcomeUnknownError, StoreFileError
from incarnate.storage.permissions import DENIALS, PERMISSIONS_HINT, denied
from incarnate.storage.transcript_files import folder_to_disk, to_disk, write_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Handle", "LockFile", "SegmentName", "data_to_disk", "failed", "make_segment", "read_at", "segments_in"]

_NAME = re.compile(r"([0-9]{8})(?:\.([0-9]+))?\.jsonl", re.ASCII)
_HAS_FDATASYNC = hasattr(os, "fdatasync") and not hasattr(fcntl, "F_FULLFSYNC")
_WRITE_BYTES = 1 << 20
_READ_BYTES = 1 << 24  # some systems read at most 2 GiB at once


class SegmentName(NamedTuple):
    """A segment's number, and how often it was written anew without what was swept."""

    number: int
    revision: int = 0

    @property
    def file(self) -> str:
        """The name of its file; `cat *.jsonl` gives the segments in order."""
        return f"{self.number:08}.{self.revision}.jsonl" if self.revision else f"{self.number:08}.jsonl"


def segments_in(folder: Path) -> list[SegmentName]:
    """The segments in a folder, in order, of each the latest; none where there is no folder.

    Raises:
        OSError: the folder cannot be read.
    """
    newest: dict[int, int] = {}
    try:
        names = os.listdir(folder)  # noqa: PTH208 - no Path for each of many names
    except FileNotFoundError:
        return []
    for name in names:
        if found := _NAME.fullmatch(name):
            number, revision = int(found[1]), int(found[2] or 0)
            newest[number] = max(revision, newest.get(number, 0))
    return [SegmentName(number, newest[number]) for number in sorted(newest)]


class Handle:
    """A descriptor that is closed when nobody uses it any more."""

    def __init__(self, path: Path, flags: int) -> None:
        self.path = path
        self.pid = os.getpid()
        self.fd = -1
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o600)

    def __del__(self) -> None:
        if self.fd >= 0:
            with suppress(OSError):
                os.close(self.fd)

    def is_in_place(self) -> bool:
        """Whether the file at its path is still this one: it may have been removed, renamed or replaced."""
        try:
            there = os.stat(self.path)  # noqa: PTH116 - a fifth of what Path takes
        except FileNotFoundError:
            return False
        here = os.fstat(self.fd)
        return here.st_ino == there.st_ino and here.st_dev == there.st_dev

    def lock(self) -> bool:
        """Whether it is now locked by this descriptor, against all others in any process."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(self) -> None:
        """Let the next one have it. Not to hold it is no error."""
        if os.getpid() == self.pid:  # a forked child shares the lock: on its way out it would take it from its parent
            fcntl.flock(self.fd, fcntl.LOCK_UN)


class LockFile(Handle):
    """What is locked to write to a journal. A forked child lets go of it at once.

    It shares the lock with its parent: a child that lives on would keep out everybody for as long, where its parent was
    killed in the middle of a commit.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, os.O_RDWR | os.O_CREAT)
        _watch_forks()
        _locks.add(self)


_locks: WeakSet[LockFile] = WeakSet()


@functools.cache
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=_let_go)


def _let_go() -> None:
    for lock in _locks:
        descriptor, lock.fd = lock.fd, -1
        os.close(descriptor)
    _locks.clear()


def read_at(fd: int, start: int, stop: int) -> bytes:
    """The bytes from `start` up to `stop`, or up to the end of the file."""
    data = os.pread(fd, min(stop - start, _READ_BYTES), start)
    if len(data) == stop - start or not data:
        return data
    parts = [data]
    start += len(data)
    while start < stop and (part := os.pread(fd, min(stop - start, _READ_BYTES), start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def data_to_disk(fd: int) -> None:
    """Return when what was written has reached the disk itself; the file's times may follow later."""
    if _HAS_FDATASYNC:
        os.fdatasync(fd)
    else:
        to_disk(fd)


def make_segment(path: Path, lines: Iterable[bytes]) -> None:
    """A new file at `path` with `lines` in it, durably, whole or not at all.

    Raises:
        StoreFileError: it cannot be made; nothing was changed.
        OutcomeUnknownError: it is there, but its name may not have reached the disk.
    """
    unfinished = Path(f"{path}.new")  # one writer at a time: nobody else's
    try:
        try:
            handle = Handle(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for data in _joined(lines):
                write_all(handle.fd, data)
            to_disk(handle.fd)
            unfinished.replace(path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise
    except OSError as error:
        raise failed(error, path) from error
    try:
        folder_to_disk(path.parent)
    except OSError as error:
        raise OutcomeUnknownError(f"{path}: its folder could not be synced ({error.strerror})") from error


def _joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines together, so that a write takes many."""
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _WRITE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


_REASONS = {
    errno.ENOSPC: "the disk is full; nothing was written",
    errno.EDQUOT: "the disk quota is used up; nothing was written",
    errno.EFBIG: "no file may grow that large; nothing was written",
    errno.EROFS: "the disk is read-only",
    errno.EMFILE: "this process has too many files open",
}


_FULL = {errno.ENOSPC, errno.EDQUOT}


def failed(error: OSError, path: Path) -> StoreFileError:
    """The system's `error` on a file of a store as one of ours."""
    if error.errno in DENIALS:
        return StoreFileError(str(path), denied(str(path)), hint=PERMISSIONS_HINT)
    reason = _REASONS.get(error.errno or 0, "cannot be read or written")
    told = f"{reason} ({error.strerror or error})"
    return StoreFileError(str(path), told, hint="check the disk and the path", is_full=error.errno in _FULL)
