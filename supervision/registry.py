"""The supervisors of this user on this machine: a file for each, locked while it lives."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from incarnate.storage.homes import home_folder
from incarnate.supervision.edge import Identity
from incarnate.supervision.process_table import Process, process_table, send

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["STATE_VARIABLE", "STOP_IN_HASTE", "Entry", "Found", "Registry", "RunRecord", "state_folder"]

STOP_IN_HASTE = signal.SIGUSR1
"""Asks a supervisor to end at once: of two SIGTERMs, one after the other, a busy machine may make one."""

STATE_VARIABLE = "INCARNATE_STATE_DIR"
"""Names the folder of the records."""

_ENCODER = msgspec.json.Encoder()
_LOOKS = 10
_LOOK_SECONDS = 0.01


def state_folder(env: Mapping[str, str] | None = None) -> Path:
    """Where supervisors are recorded: `$INCARNATE_STATE_DIR`, else a folder of the user's state."""
    env = os.environ if env is None else env
    named = env.get(STATE_VARIABLE, "")
    if named:
        return Path(named)
    home = home_folder(env)
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "incarnate" / "runs"
    state = env.get("XDG_STATE_HOME", "")
    # The specification has a relative one ignored.
    return (Path(state) if Path(state).is_absolute() else home / ".local" / "state") / "incarnate" / "runs"


class RunRecord(msgspec.Struct, frozen=True, rename="camel"):
    """One supervisor. Times are ISO-8601 in UTC.

    Attributes:
        key, store: the activation, and the store's URL as the supervisor tells it.
        harness: the name of its dialect.
        pid: its process.
        started_at: when it began.
        argv, cwd: the harness's command line.
        phase: how far its life has come.
        incarnation: its own, None until it is claimed.
        identity: of the harness's tree; None while nothing runs.
        restarts: how often the harness was started again.
        offset: the head of the log, and `offset_at` when that was looked at.
        session: the harness's own session.
        host: the machine, or container, that it runs on: its pids mean nothing elsewhere. Set by the registry.
        pid_started: the start time of its process. Set by the registry.
    """

    key: str
    store: str
    harness: str
    pid: int
    started_at: str
    argv: tuple[str, ...] = ()
    cwd: str = ""
    phase: str = "fresh"
    incarnation: int | None = None
    identity: Identity | None = None
    restarts: int = 0
    offset: int = 0
    offset_at: str = ""
    session: str | None = None
    host: str = ""
    pid_started: int = 0


_DECODER = msgspec.json.Decoder(RunRecord)


class Entry:
    """The record of a supervisor that lives, in its own hands. One thread at a time calls it."""

    def __init__(self, path: Path, lock: int, record: RunRecord) -> None:
        self._path = path
        self._lock = lock
        self._first = record
        self._is_closed = False
        self.update(record)

    def update(self, record: RunRecord) -> None:
        """Replace it. All readers see all of it or nothing; a kill right after loses nothing.

        Raises:
            OSError: it cannot be written; what was recorded before still is.
        """
        self._hold()
        record = replace(record, host=self._first.host, pid_started=self._first.pid_started)
        # No sync: after a power cut nothing lives that the record could lead to.
        draft = self._path.with_suffix(".new")
        draft.write_bytes(_ENCODER.encode(record) + b"\n")
        draft.replace(self._path)

    def _hold(self) -> None:
        """See that others see the lock: once the folder was cleaned, nobody could list or stop us any more."""
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(_lock_of(self._path)), os.fstat(self._lock)):  # noqa: PTH116 - beside fstat
                return
        lock = _make_lock(self._path)
        os.close(self._lock)
        self._lock = lock

    def close(self) -> None:
        """This supervisor is over, and left nothing alive."""
        if not self._is_closed:
            self._is_closed = True
            _forget(self._path, self._lock)


class Found(NamedTuple):
    """A record of somebody. Of a dead one the lock is held, so that nobody else acts on it meanwhile."""

    record: RunRecord
    path: Path
    lock: int | None = None

    def forget(self) -> None:
        """Nothing of a dead one lives any more. Of a living one nothing is forgotten."""
        if self.lock is not None:
            _forget(self.path, self.lock)


class Registry:
    """The records in one folder, which is made when the first one is."""

    def __init__(self, folder: Path, *, host: str | None = None) -> None:
        self._folder = folder
        self._host = socket.gethostname() if host is None else host

    def open(self, record: RunRecord) -> Entry:
        """Record a new supervisor: this process. There may be others of the same key.

        Raises:
            OSError: the folder cannot be made or written.
        """
        path = self._folder / f"{uuid.uuid4().hex}.json"
        lock = _make_lock(path)
        try:
            us = process_table().find(record.pid)
            return Entry(path, lock, replace(record, host=self._host, pid_started=us.started if us else 0))
        except BaseException:
            _forget(path, lock)
            raise

    def check(self) -> None:
        """See that the records can be listed: `live` and `dead` take a folder that cannot be read for an empty one.

        Raises:
            OSError: the folder may be there, and cannot be read.
        """
        with suppress(FileNotFoundError):
            os.scandir(self._folder).close()

    def live(self) -> list[Found]:
        """All that live, the oldest first; those of other machines too, if they share the folder."""
        return sorted(self._live(), key=lambda found: (found.record.started_at, found.record.pid))

    def dead(self) -> list[Found]:
        """Those that died on this machine, whatever their activation. Each is to be forgotten once it left nothing."""
        found: list[Found] = []
        for path in self._paths():
            record, lock = _read(path), None
            if record is None or record.host != self._host:
                continue
            with suppress(PermissionError):  # another user's, and theirs to end
                lock = self._lock_dead(path, record)
            if lock is None:
                continue
            # Read again: it may have been changed, or forgotten, before it was locked.
            again = _read(path)
            if again is None:
                _forget(path, lock)
            else:
                found.append(Found(again, path, lock))
        return found

    def stop(self, record: RunRecord, *, in_haste: bool = False) -> bool:
        """Ask a supervisor of this machine to end; whether it was there to be asked.

        Raises:
            PermissionError: it is another user's.
        """
        if not self.is_here(record):
            return False
        table, process = process_table(), _process(record)
        was_there = send(table, process, STOP_IN_HASTE if in_haste else signal.SIGTERM)
        send(table, process, signal.SIGCONT)  # one that a ^Z has stopped would never hear of it
        return was_there

    def is_here(self, record: RunRecord) -> bool:
        """Whether it runs, or ran, on this machine."""
        return record.host == self._host

    def _live(self) -> Iterator[Found]:
        for path in self._paths():
            record = _read(path)
            if record is None:
                continue
            # Shared, so that of two who look at once neither sees the other one's lock as the supervisor's.
            try:
                lock = _try_lock(path, fcntl.LOCK_SH)
            except PermissionError:  # another user's, in a folder that is shared: its process tells as much
                if self.is_here(record) and process_table().find(record.pid) == _process(record):
                    yield Found(record, path)
                continue
            if lock is not None:
                os.close(lock)
            elif _lock_of(path).exists():
                yield Found(record, path)

    def _lock_dead(self, path: Path, record: RunRecord) -> int | None:
        """The lock of one that died; None while it lives, or while somebody else ends what it left."""
        for _ in range(_LOOKS):
            lock = _try_lock(path, fcntl.LOCK_EX)
            if lock is not None or process_table().find(record.pid) == _process(record):
                return lock
            if not _lock_of(path).exists():
                return None
            time.sleep(_LOOK_SECONDS)  # whoever only looks has let go of it by then
        return None

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))


def _process(record: RunRecord) -> Process:
    return Process(record.pid, record.pid_started)


def _lock_of(path: Path) -> Path:
    """The lock's own file: the record's is replaced at each change, and a lock would stay with the one before."""
    return path.with_suffix(".lock")


def _make_lock(path: Path) -> int:
    """The lock of a record of ours, in a folder that is made where it is missing: held before anybody can see it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(".lock-new")
    lock = os.open(draft, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.replace(_lock_of(path))
    except BaseException:
        os.close(lock)
        raise
    return lock


def _try_lock(path: Path, kind: int) -> int | None:
    """The lock of a record whose supervisor has died; None while it lives, or once it is over."""
    try:
        lock = os.open(_lock_of(path), os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _read(path: Path) -> RunRecord | None:
    """A record; None if it is gone, of another user who shows it to nobody, or of a version that we do not know."""
    try:
        return _DECODER.decode(path.read_bytes())
    except (FileNotFoundError, PermissionError, msgspec.MsgspecError):
        return None


def _forget(path: Path, lock: int) -> None:
    try:
        for file in (path, path.with_suffix(".new"), _lock_of(path)):
            with suppress(FileNotFoundError):
                file.unlink()
    finally:
        os.close(lock)
