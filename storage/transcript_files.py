"""How transcript files are opened, locked, read and written; what was removed from one is saved beside it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from incarnate.domain.errors import StoreBusyError, StoreFileError
from incarnate.domain.transcripts.prefix import start_of_last
from incarnate.storage.permissions import DENIALS, PERMISSIONS_HINT, denied

__all__ = [
    "Cut",
    "folder_to_disk",
    "last_rows",
    "open_locked",
    "read_bytes",
    "replace_file",
    "save_beside",
    "to_disk",
    "translated",
    "write_all",
]

_READ_BYTES = 1 << 24  # some systems read at most 2 GiB at once
_TAIL_BYTES = 1 << 16  # read at first to find the last records, then twice as much
_MOST_OF_NAME = 180  # bytes of the file's name in that of what lies beside it; names have at most 255


class Cut(NamedTuple):
    """Bytes that were no record: where they began, how many they were, and the file that holds them now."""

    line: int
    offset: int
    length: int
    saved: str | None


def translated(error: OSError, path: Path, doing: str) -> StoreFileError:
    """The system's `error` on a transcript file as one of ours."""
    if error.errno in DENIALS:
        return StoreFileError(str(path), denied(str(path)), hint=PERMISSIONS_HINT)
    return StoreFileError(
        str(path), f"cannot be {doing} ({error.strerror or error})", hint="check the disk and the path"
    )


def open_locked(path: Path, *, create: bool) -> int:
    """A descriptor of the file, which no one else may write to until it is closed. A new file is its owner's alone.

    The lock (flock) holds against other processes and against a second descriptor of this one.

    Raises:
        StoreBusyError: someone else has it.
        StoreFileError: it cannot be opened, or is no regular file.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
    if create:  # a link in the folder of transcripts leads to a file that is none
        flags |= os.O_CREAT | os.O_NOFOLLOW
    while True:
        try:
            descriptor = os.open(path, flags, 0o600)
        except (OSError, ValueError) as error:  # a NUL in the path is a ValueError
            raise translated(error if isinstance(error, OSError) else OSError(str(error)), path, "opened") from error
        try:
            if _is_locked_here(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_locked_here(descriptor: int, path: Path) -> bool:
    """Whether the lock was had on the file that `path` names; a repair may have put another in its place."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise StoreFileError(str(path), "is no regular file", hint="check the path")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        busy = StoreBusyError(f"{path} is open in another writer; nothing was changed")
        busy.hint = "close the other one first: a transcript file has one writer at a time"
        raise busy from error
    except OSError as error:
        raise translated(error, path, "locked") from error
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def read_bytes(descriptor: int, size: int, begin: int = 0) -> bytes:
    """`size` bytes from `begin` on, or all that there are."""
    parts: list[bytes] = []
    offset, end = begin, begin + size
    while offset < end and (part := os.pread(descriptor, min(_READ_BYTES, end - offset), offset)):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


def last_rows(descriptor: int, size: int, count: int) -> tuple[int, bytes]:
    """Where the last `count` records of a valid file of `size` bytes begin, and all from there on."""
    most = _TAIL_BYTES
    while True:
        begin = max(0, size - most)
        tail = read_bytes(descriptor, size - begin, begin)
        start = start_of_last(tail, count, whole=begin == 0)
        if start is not None:
            return begin + start, tail[start:]
        if begin == 0:
            raise OSError(errno.EIO, f"it holds fewer than {count} records")
        most *= 2


def write_all(descriptor: int, data: bytes) -> None:
    """Write `data` at once; what a short write left over follows."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, data[written:])


def to_disk(descriptor: int) -> None:
    """Return when what was written has reached the disk itself."""
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync leaves it in the drive's cache
    if full is None:
        os.fsync(descriptor)
    else:
        fcntl.fcntl(descriptor, full)


def folder_to_disk(folder: Path) -> None:
    """Return when the names in `folder` have reached the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_beside(path: Path, offset: int, data: bytes, what: str = "torn") -> Path:
    """Save what is about to be removed from `path` at `offset`, durably, and say where; the name says `what` it is.

    The name comes from the bytes: a crash before they are removed leads to the same file again, not to a second one.

    Raises:
        StoreFileError: it cannot be saved.
    """
    name = os.fsencode(path.name)[:_MOST_OF_NAME].decode("utf-8", "ignore")
    target = path.with_name(f"{name}.{what}-{offset}-{hashlib.sha256(data).hexdigest()[:16]}")
    replace_file(target, data, 0o600)
    return target


def replace_file(path: Path, data: bytes, mode: int) -> None:
    """Put `data` at `path`, durably, whole or not at all.

    Raises:
        StoreFileError: it cannot be written; whatever was there still is.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".transcript-")
        try:
            try:
                write_all(descriptor, data)
                os.fchmod(descriptor, mode)
                to_disk(descriptor)
            finally:
                os.close(descriptor)
            Path(temporary).replace(path)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(temporary).unlink()
            raise
        folder_to_disk(path.parent)
    except OSError as error:
        raise translated(error, path, "written") from error
