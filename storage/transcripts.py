"""Transcript files: one session a file, one record a line, each written through at once.

What is on the disk after a crash is what was acknowledged, and at most one torn record behind it, which is cut off when
the file is opened again. A torn record in front of valid ones is left for `repair` to decide.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from incarnate.domain.errors import ClosedError, ForkedError, LogCorruptionError, OutOfRangeError, StoreFileError
from incarnate.domain.events import MAX_INTEGER
from incarnate.domain.transcripts.names import file_name
from incarnate.domain.transcripts.prefix import Replay, Torn, replay, sift
from incarnate.domain.transcripts.rows import Row, decode_row, encode_row
from incarnate.domain.transcripts.turns import next_turn_after_rows
from incarnate.domain.turns import turn_id
from incarnate.storage.transcript_files import (
    Cut,
    folder_to_disk,
    last_rows,
    open_locked,
    read_bytes,
    save_beside,
    to_disk,
    translated,
    write_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

__all__ = ["Sync", "TranscriptFile"]

Sync = Literal["os", "each"]
"""When a record reaches the disk itself: with `sync()` or when the system sees fit, or before `append` returns."""

_log = logging.getLogger("incarnate")

_ROW_START = b'{"type":"'


class _State(NamedTuple):
    """All that a write changes. It is replaced in one step, so that an interrupt leaves the one or the other."""

    size: int
    rows: int  # in the file
    ends_line: bool
    waiting: list[bytes]
    written: int  # how many of those that waited


class TranscriptFile:
    """The transcript of one session, open for its one writer. Every method may be called from any thread.

    A record that cannot be written (a full disk) waits in memory, counted in `write_errors`; so do those after it, so
    that the order stands. Each later `append`, `sync` and `close` tries again. No part of a record stays in the file,
    so nothing can be merged with it.
    """

    def __init__(self, path: Path, descriptor: int, sync: Sync) -> None:
        """Use `TranscriptFile.open`. Takes the descriptor over, if it succeeds."""
        self.path = path
        self.torn: Cut | None = None
        self._sync: Sync = sync
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._write_errors = 0
        self._reason = ""
        self._ragged = False  # part of a record may stand behind `size`
        self._disk_failed = False
        replayed, data = self._admit(descriptor)
        self._next_turn = next_turn_after_rows(replayed.rows, 0)
        size = replayed.valid_bytes
        self._state = _State(size, len(replayed.rows), size == 0 or data[size - 1 : size] == b"\n", [], 0)
        # Last, so that a failure above leaves nothing that would close the descriptor a second time.
        self._file = open(descriptor, "r+b", buffering=0)  # noqa: SIM115 closed by `close`

    @classmethod
    def open(cls, directory: str | os.PathLike[str], session_id: str, sync: Sync = "os") -> Self:
        """The transcript of `session_id` in `directory`; both are made where they are missing.

        A torn tail is cut off, after it was saved beside the file; `torn` says where it stood. A complete last record
        that only lacks its line end stays.

        Raises:
            LogCorruptionError: a torn record stands in front of valid ones; the file was left untouched.
            StoreBusyError: someone else has it open.
            StoreFileError: it cannot be opened, or what must be cut cannot be saved.
        """
        path = Path(directory).absolute() / file_name(session_id)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise StoreFileError(str(path), f"its folder cannot be made ({error})") from error
        descriptor = open_locked(path, create=True)
        try:
            return cls(path, descriptor, sync)
        except OSError as error:
            os.close(descriptor)
            raise translated(error, path, "read") from error
        except BaseException:
            os.close(descriptor)
            raise

    def _admit(self, descriptor: int) -> tuple[Replay, bytes]:
        data = read_bytes(descriptor, os.fstat(descriptor).st_size)
        if not data:
            folder_to_disk(self.path.parent)  # it may be new: its name must outlive a power cut as its records do
        replayed = replay(data)
        if replayed.torn is not None:
            self._cut(descriptor, replayed.torn, data[replayed.valid_bytes :])
        return replayed, data

    def _cut(self, descriptor: int, torn: Torn, tail: bytes) -> None:
        if sift(tail).rows:
            raise _corrupt(self.path, torn, "a torn record stands in front of valid ones; nothing was changed")
        if not _left_by_a_crash(tail, first=torn.offset == 0):
            raise _corrupt(self.path, torn, "this is no record that a crash cut off; nothing was changed")
        saved = save_beside(self.path, torn.offset, tail)
        os.ftruncate(descriptor, torn.offset)
        to_disk(descriptor)
        self.torn = Cut(torn.line, torn.offset, len(tail), str(saved))
        _log.warning("%s: cut %d torn bytes at line %d, byte %d; they are in %s", self.path, len(tail), *torn, saved)

    @property
    def write_errors(self) -> int:
        """How many writes and syncs have failed since the file was opened."""
        return self._write_errors

    @property
    def unwritten(self) -> list[Row]:
        """The rows that wait in memory for a disk that takes them; still there after `close`."""
        with self._lock:
            return [decode_row(payload) for payload in self._state.waiting[self._state.written :]]

    @property
    def rows(self) -> int:
        """How many rows it holds, those included that wait in memory."""
        state = self._state
        return state.rows + len(state.waiting) - state.written

    @property
    def failure(self) -> StoreFileError | None:
        """Why rows wait in memory, or the disk is not to be trusted; None while all is well."""
        state = self._state
        return self._failure() if self._disk_failed or len(state.waiting) > state.written else None

    def append(self, row: Row) -> bool:
        """Write a row through; whether it is in the file now, and on the disk with `sync="each"`.

        A failed write is no error: the row waits in memory.

        Raises:
            UnencodableEventError: the row would not read back equal; nothing was changed.
            StoreFileError: another program wrote to the file or removed it; nothing was changed.
            ClosedError, ForkedError: it was closed, or this is a forked child.
        """
        return self._append((row,), (encode_row(row),))

    def append_encoded(self, payloads: Iterable[bytes]) -> bool:
        """Write rows through as `append` does, given as the bytes that `encode_row` makes of them.

        Without any it only writes what waits.

        Raises:
            EventShapeError: one is no row; nothing was changed.
            StoreFileError, ClosedError, ForkedError: as above.
        """
        encoded = tuple(payloads)
        return self._append([decode_row(payload) for payload in encoded], encoded)

    def _append(self, rows: Iterable[Row], payloads: Iterable[bytes]) -> bool:
        with self._lock:
            self._check()
            self._next_turn = next_turn_after_rows(rows, self._next_turn)
            self._state.waiting.extend(payloads)
            return self._flush() and (self._sync == "os" or self._reach_disk())

    def keep(self, count: int, *, save: bool = False) -> Path | None:
        """Keep the first `count` rows and drop the rest, in one step that a kill does not divide.

        It reads no more of the file than about what it cuts. The cut is on the disk before this returns: else, after
        a power cut, rows written later could stand in front of some that were cut. Turn numbers go on.

        Args:
            count: how many; all stay where there are no more.
            save: put what is cut into a file beside this one first, and answer its path.

        Raises:
            ValueError: `count` is negative.
            StoreFileError: it cannot be cut, or what is cut cannot be saved, and nothing was changed; or the cut did
                not reach the disk: see `sync`.
            ClosedError, ForkedError: as above.
        """
        if count < 0:
            raise ValueError(f"a transcript cannot keep {count} rows")
        with self._lock:
            self._check()
            state = self._state
            if count >= state.rows:
                kept = state.waiting[: state.written + count - state.rows]
                self._state = state._replace(waiting=kept) if len(kept) > state.written else _settled(state)
                return None
            try:
                saved = self._cut_rows(state.rows - count, save=save)
            except OSError as error:
                raise translated(error, self.path, "cut") from error
            if not self._reach_disk():
                raise self._failure()
            return saved

    def _cut_rows(self, count: int, *, save: bool) -> Path | None:
        descriptor, state = self._file.fileno(), self._state
        start, tail = last_rows(descriptor, state.size, count)
        saved = save_beside(self.path, start, tail, "cut") if save else None
        os.ftruncate(descriptor, start)
        self._state = _State(start, state.rows - count, True, [], 0)  # noqa: FBT003
        self._ragged = False
        return saved

    def sync(self) -> None:
        """Return when every row has reached the disk itself.

        Raises:
            StoreFileError: it does not take them. After a failed sync nobody knows what the disk holds, so every later
                one fails too, until the file is closed and opened again.
            ClosedError, ForkedError: as above.
        """
        with self._lock:
            self._check()
            if not (self._flush() and self._reach_disk()):
                raise self._failure()

    def events(self) -> list[Row]:
        """Every row: read back from the file, then those that wait in memory.

        Raises:
            LogCorruptionError: another program changed the file.
            ClosedError, ForkedError: as above.
        """
        with self._lock:
            self._check()
            try:
                replayed = replay(read_bytes(self._file.fileno(), self._state.size))
            except OSError as error:
                raise translated(error, self.path, "read") from error
            if replayed.torn is not None:
                raise _corrupt(self.path, replayed.torn, "changed by another program while it was open")
            return replayed.rows + self.unwritten

    def next_turn_id(self) -> str:
        """`turn-0`, `turn-1`, ...: above every number that this file holds or this object gave.

        A number that was given but not written is forgotten with the object.

        Raises:
            OutOfRangeError: the largest number has been used.
        """
        with self._lock:
            if self._next_turn > MAX_INTEGER:
                raise OutOfRangeError("turn", self._next_turn)
            number, self._next_turn = self._next_turn, self._next_turn + 1
            return turn_id(number)

    def clear(self) -> None:
        """Forget every row, and start again at `turn-0`.

        Raises:
            StoreFileError: the file cannot be emptied; nothing was changed.
            ClosedError, ForkedError: as above.
        """
        with self._lock:
            self._check()
            try:
                os.ftruncate(self._file.fileno(), 0)
            except OSError as error:
                raise translated(error, self.path, "emptied") from error
            self._state = _State(0, 0, True, [], 0)  # noqa: FBT003
            self._next_turn = 0
            self._ragged = False
            if self._sync == "each" and not self._reach_disk():
                raise self._failure()

    def close(self) -> None:
        """Write what waits, and let go of the file. Closing twice is no error.

        Raises:
            StoreFileError: rows still wait, and are lost with this object; `unwritten` has them.
        """
        with self._lock:
            if self._file.closed:
                return
            if os.getpid() != self._pid:  # the parent goes on writing, under the lock that both share
                self._file.close()
                return
            try:
                flushed = self._flush()
            finally:
                self._file.close()
            if not flushed:
                raise self._failure()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exc: object) -> None:
        try:
            self.close()
        except StoreFileError as error:
            if kind is None:
                raise
            _log.warning("%s", error)  # what is on its way out says more

    def _check(self) -> None:
        if self._file.closed:
            closed = ClosedError(f"the transcript file {self.path} was closed")
            closed.hint = "open it again with TranscriptFile.open"
            raise closed
        if os.getpid() != self._pid:
            forked = ForkedError("the process was forked after this transcript file was opened")
            forked.hint = "close it in the parent, then open it in the child"
            raise forked
        status = os.fstat(self._file.fileno())
        if not status.st_nlink or (status.st_size != self._state.size and not self._ragged):
            what = "changed by another program" if status.st_nlink else "removed"
            raise StoreFileError(str(self.path), f"was {what} while it was open", hint="close it and open it again")

    def _flush(self) -> bool:
        """Write what waits, in order, a record a write; whether nothing waits any more."""
        while self._state.written < len(self._state.waiting):
            try:
                self._write(self._state.waiting[self._state.written])
            except OSError as error:
                self._failed(error)
                return False
        return True

    def _write(self, payload: bytes) -> None:
        descriptor, state = self._file.fileno(), self._state
        if self._ragged:
            os.ftruncate(descriptor, state.size)
        data = payload + b"\n" if state.ends_line else b"\n" + payload + b"\n"
        self._ragged = True
        try:
            write_all(descriptor, data)
        except OSError:
            os.ftruncate(descriptor, state.size)
            self._ragged = False
            raise
        new = _State(state.size + len(data), state.rows + 1, True, state.waiting, state.written + 1)  # noqa: FBT003
        self._state = _settled(new) if new.written == len(new.waiting) else new
        self._ragged = False

    def _reach_disk(self) -> bool:
        # After a failed fsync the system may have dropped the pages, and a second one would say that all is well.
        if not self._disk_failed:
            try:
                to_disk(self._file.fileno())
            except OSError as error:
                self._disk_failed = True
                self._failed(error)
        return not self._disk_failed

    def _failed(self, error: OSError) -> None:
        self._write_errors += 1
        self._reason = error.strerror or str(error)
        if self._write_errors == 1:  # a full disk would fill the log with the rest
            _log.warning("%s", self._failure())

    def _failure(self) -> StoreFileError:
        rows = len(self._state.waiting) - self._state.written
        what = f"{rows} {'row' if rows == 1 else 'rows'} could not be written" if rows else "the disk failed"
        hint = "close it and open it again" if self._disk_failed else "make room on the disk, then try again"
        return StoreFileError(str(self.path), f"{what} ({self._reason})", hint=hint)


def _settled(state: _State) -> _State:
    """The same, when nothing waits any more."""
    return state._replace(waiting=[], written=0)


def _corrupt(path: Path, torn: Torn, reason: str) -> LogCorruptionError:
    error = LogCorruptionError(f"{path}, line {torn.line}, byte {torn.offset}", reason)
    error.hint = f"look at it with: incarnate repair --dry-run {path}"
    return error


def _left_by_a_crash(tail: bytes, *, first: bool) -> bool:
    """Whether `tail` may be one torn record. Anything more is somebody else's file, or damage for `repair` to judge."""
    lines = [line for line in tail.split(b"\n") if line.strip(b" \t\r\0")]
    if len(lines) > 1:
        return False
    return not (first and lines) or lines[0].startswith(_ROW_START[: len(lines[0])])
