"""How the SQLite store opens its file, and what the driver's errors mean."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from incarnate.domain.errors import IncarnateError, LogCorruptionError, StoreBusyError, StoreFileError
from incarnate.storage.sqlite_schema import MIGRATIONS, check_file, migrate

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["connect", "translated"]

_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full; nothing was written",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_READONLY: "the file or its folder cannot be written",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_PERM: "access was denied",
    sqlite3.SQLITE_TOOBIG: "a value is larger than SQLite takes; nothing was written",
}


def translated(error: sqlite3.Error, path: str) -> IncarnateError:
    """The driver's `error` on the file at `path` as one of ours."""
    # Errors that the driver itself makes (a closed connection, a value it cannot bind) carry no code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreBusyError(f"{path} is locked by another process ({error})")
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return LogCorruptionError(path, str(error))
    return StoreFileError(path, f"{_REASONS.get(code, 'failed')} ({error})")


def connect(path: str, *, read_only: bool, wait: Callable[[Callable[[], object]], None]) -> sqlite3.Connection:
    """A connection to the file at the absolute `path`, in autocommit mode, for any one thread at a time.

    The file is looked at before anything is written to it, through SQLite and never through a descriptor of ours:
    closing one would drop the locks that this process's other connections hold on the same file.

    Raises:
        StoreFileError: it is not one of ours; it was left untouched.
    """
    _check_place(path, read_only=read_only)
    try:
        db = sqlite3.connect(
            f"file:{quote(path)}?mode={'ro' if read_only else 'rw'}",
            uri=True,
            timeout=0,  # busy databases are polled for, see SqliteStore._wait
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error as error:
        raise translated(error, path) from error
    try:
        wait(lambda: check_file(db, path))
        if not read_only:
            wait(lambda: db.execute("PRAGMA journal_mode = WAL"))
            migrate(db, path, lambda: wait(lambda: db.execute("BEGIN IMMEDIATE")), time.time_ns() // 1_000_000)
        elif check_file(db, path) < len(MIGRATIONS):
            raise StoreFileError(path, "is of an older version", hint="open it once without read_only=True")
    except sqlite3.Error as error:
        db.close()
        raise translated(error, path) from error
    except BaseException:
        db.close()
        raise
    return db


def _check_place(path: str, *, read_only: bool) -> None:
    file = Path(path)
    if "\0" in path:
        raise StoreFileError(path, "holds a NUL character")
    if file.is_dir():
        raise StoreFileError(path, "is a folder")
    if file.exists():
        return
    if read_only:
        raise StoreFileError(path, "does not exist", hint="check the path, or open it once without read_only=True")
    if not file.parent.is_dir():
        raise StoreFileError(path, "its folder does not exist", hint=f"mkdir -p {file.parent}")
    try:
        _create(file)
    except OSError as error:
        raise StoreFileError(path, f"cannot be created ({error.strerror})") from error


def _create(file: Path) -> None:
    """Make an empty file that only its owner may read, durably, unless someone else is first."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # mode 0600
    os.close(descriptor)
    try:
        # Linked into place when it is closed already: see connect() on descriptors.
        with suppress(FileExistsError):
            os.link(name, file)
    finally:
        Path(name).unlink()
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
