"""How the SQLite store opens its file, and what the driver's errors mean."""

from __future__ import annotations

import errno
import functools
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote
from weakref import WeakKeyDictionary

from incarnate.domain.errors import ForkedError, IncarnateError, LogCorruptionError, StoreBusyError, StoreFileError
from incarnate.storage.permissions import DENIALS, PERMISSIONS_HINT, denied
from incarnate.storage.sqlite_schema import MIGRATIONS, check_file, migrate

__all__ = ["PAGE_BYTES", "Connection", "Wait", "admit", "connect", "is_busy", "look", "translated"]

PAGE_BYTES = 8192

Wait = Callable[[Callable[[], object]], None]
"""Runs what it is given until the database is not busy."""

_HEADER_BYTES = 100

_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full; nothing was written",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_READONLY: "the file or its folder cannot be written",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_PERM: "access was denied",
    sqlite3.SQLITE_TOOBIG: "a value is larger than SQLite takes; nothing was written",
}
_DENIALS = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}


def translated(error: sqlite3.Error, path: str) -> IncarnateError:
    """The driver's `error` on the file at `path` as one of ours."""
    # Errors that the driver itself makes (a closed connection, a value it cannot bind) carry no code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if is_busy(error):
        return StoreBusyError(f"{path} is locked by another process ({error})")
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return LogCorruptionError(path, str(error))
    if code == sqlite3.SQLITE_CANTOPEN and Path(path).exists() and not os.access(path, os.R_OK):
        return StoreFileError(path, denied(path, "read"), hint=PERMISSIONS_HINT)
    hint = PERMISSIONS_HINT if code in _DENIALS else ""
    told = f"{_REASONS.get(code, 'failed')} ({error})"
    return StoreFileError(path, told, hint=hint, is_full=code == sqlite3.SQLITE_FULL)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection is in the way, for now."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def admit(path: str, *, read_only: bool, wait: Wait) -> None:
    """See that the absolute `path` is a file of ours, or one that may become one; make it where it is missing.

    It is looked at before anything is written to it, through SQLite and never through a descriptor of ours: closing
    one would drop the locks that this process's other connections hold on the same file.

    Raises:
        StoreFileError: it is not; it was left untouched.
        ForkedError: it was open in the process that this one was forked from.
    """
    try:
        _check_place(path, read_only=read_only)
        _check_fork(path)
        _peek(path, wait)
    except (OSError, ValueError) as error:  # a folder that may not be entered, a name too long, a lone surrogate
        raise _no_place(path, f"cannot be looked up ({getattr(error, 'strerror', None) or error})", error) from error


def connect(path: str, *, read_only: bool, wait: Wait) -> Connection:
    """A connection to the file at the absolute `path`, in autocommit mode, for any one thread at a time.

    Where a reader may not write to the folder and there is no write-ahead log, the connection is a `still` one:
    SQLite takes the file as it is, and whoever reads compares `look` afterwards.

    Raises:
        StoreFileError: it is not one of ours; it was left untouched.
    """
    try:
        try:
            return _opened(path, "mode=ro" if read_only else "mode=rw", lambda db: _prepare(db, path, wait, read_only))
        except sqlite3.OperationalError as error:
            if not read_only or not _lies_still(error, path):
                raise
            return _opened(path, _STILL, lambda db: _prepare(db, path, wait, read_only))
    except sqlite3.Error as error:
        raise translated(error, path) from error


class Connection(sqlite3.Connection):
    """`still` is what the file looked like, where SQLite was told that nobody writes to it; else None."""

    still: object = None

    def close(self) -> None:
        """Close it; SQLite then holds nothing of the file in this process, if no other is open on it."""
        super().close()
        _open.pop(self, None)


# Which file each connection of this process is open on, and those of the processes that it was forked from.
_open: WeakKeyDictionary[Connection, tuple[int, int]] = WeakKeyDictionary()
_inherited: set[tuple[int, int]] = set()


@functools.cache
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=lambda: _inherited.update(_open.values()))


def _check_fork(path: str) -> None:
    """Refuse a file that was open when this process was forked.

    SQLite knows by its number which locks its process holds on a file, and a forked child knows those of its parent as
    its own. It takes none of them: the parent's last close then folds and deletes the log that the child writes to, and
    what the child was acknowledged is gone.
    """
    status = os.stat(path)  # noqa: PTH116 - as everywhere here
    if (status.st_dev, status.st_ino) in _inherited:
        raise ForkedError(f"{path} was open in the process that this one was forked from")


_STILL = "mode=ro&immutable=1"


def _opened(path: str, options: str, first: Callable[[Connection], object]) -> Connection:
    seen = look(path) if options == _STILL else None
    db = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?{options}",
        uri=True,
        timeout=0,  # busy databases are polled for, see SqliteStore._wait
        isolation_level=None,
        check_same_thread=False,
        factory=Connection,
    )
    try:
        db.still = seen
        status = os.stat(path)  # noqa: PTH116 - as everywhere here
        _open[db] = status.st_dev, status.st_ino
        _watch_forks()
        first(db)
    except BaseException:
        db.close()
        raise
    return db


def _peek(path: str, wait: Wait) -> None:
    """Refuse a file that is none of ours before SQLite may touch it.

    Closing the last connection to somebody else's database would fold its write-ahead log into it, so it is looked
    at as if it were immutable first, and read-only where all that it holds may stand in that log.
    """
    if Path(path).stat().st_size:
        with suppress(sqlite3.Error):  # somebody writes to it at this moment: looked at again below
            _opened(path, _STILL, lambda db: check_file(db, path)).close()
        if _size(_log_of(path)):
            with suppress(sqlite3.Error):
                _opened(path, "mode=ro", lambda db: wait(lambda: check_file(db, path))).close()


def _lies_still(error: sqlite3.OperationalError, path: str) -> bool:
    """Whether only the folder, in which SQLite may not make a write-ahead log, stands in the way of a reader."""
    code = error.sqlite_errorcode & 0xFF
    return code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN} and not _size(_log_of(path))


def look(path: str) -> tuple[object, ...]:
    """What a write by anybody would change about the file at `path`."""
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, _size(_log_of(path))


def _log_of(path: str) -> str:
    """Its write-ahead log, which SQLite keeps beside what a link leads to."""
    return f"{os.path.realpath(path)}-wal"


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _prepare(db: Connection, path: str, wait: Wait, read_only: bool) -> None:  # noqa: FBT001
    done = 0

    def check() -> None:
        nonlocal done
        done = check_file(db, path)

    wait(check)
    if not read_only:
        wait(lambda: _log_ahead(db, path))
        migrate(db, path, lambda: wait(lambda: db.execute("BEGIN IMMEDIATE")), time.time_ns() // 1_000_000)
    elif done < len(MIGRATIONS):
        reason = "is of an older version" if done else "is empty: nothing was written to it yet"
        raise StoreFileError(path, reason, hint="open it once without read_only=True")


def _log_ahead(db: Connection, path: str) -> None:
    # Only a new file takes it. What does not fit into a page any more goes to the next one: with 4 KiB, mixed events of
    # 592 bytes took 1.22 times their payloads, with 8 KiB 1.10.
    db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":  # SQLite says so instead of failing, as on network file systems without shared memory
        raise StoreFileError(
            path,
            f"its file system takes no write-ahead log (journal mode {mode})",
            hint="put the store on a local disk",
        )


def _check_place(path: str, *, read_only: bool) -> None:
    file = Path(path)
    os.fsencode(path)
    if "\0" in path:
        raise StoreFileError(path, "holds a NUL character")
    if file.is_dir():
        raise StoreFileError(path, "is a folder")
    if file.exists():
        _check_file(path, file)
        return
    if file.is_symlink():
        raise StoreFileError(path, f"is a link to {os.readlink(path)}, which does not exist")  # noqa: PTH115
    if read_only:
        raise StoreFileError(path, "does not exist", hint="check the path, or open it once without read_only=True")
    if not file.parent.is_dir():
        raise StoreFileError(path, "its folder does not exist", hint=f"mkdir -p {file.parent}")
    try:
        _create(file)
    except OSError as error:
        may_not = error.errno in DENIALS
        reason = denied(path, "create") if may_not else f"cannot be created ({error.strerror})"
        raise _no_place(path, reason, error) from error


def _check_file(path: str, file: Path) -> None:
    log = _log_of(path)
    logged = _size(log)  # before the size of the file, which is never empty once it has a log
    if not file.is_file():
        raise StoreFileError(path, "is a pipe, a device or a socket")  # a pipe would be waited for without end
    size = file.stat().st_size
    if not size and logged:  # whoever opens it makes SQLite delete the log, even to read
        told = f"is empty, and not so its write-ahead log {log}, which holds what was written last"
        raise StoreFileError(path, told, hint=f"put it back from a backup, or move {log} away to begin anew")
    if 0 < size < _HEADER_BYTES:  # SQLite would take a single byte for an empty database
        raise StoreFileError(path, "is no SQLite database")


def _no_place(path: str, reason: str, error: Exception) -> StoreFileError:
    denied = isinstance(error, OSError) and error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}
    return StoreFileError(path, reason, hint=PERMISSIONS_HINT if denied else "")


def _create(file: Path) -> None:
    """Make an empty file that only its owner may read, durably, unless someone else is first."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # mode 0600
    os.close(descriptor)
    try:
        # Linked into place when it is closed already: see admit() on descriptors.
        with suppress(FileExistsError):
            os.link(name, file)
    finally:
        Path(name).unlink()
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
