"""A transcript mirror: keeps a transcript file of an activation on disk, as it grows and rewinds.

The log is the truth and the file a copy, so there is one way to begin, to go on after a crash and to recover from a
failed disk: open the file, take the whole view, keep the rows that both begin with, cut the others and append the rest.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from incarnate.actors.logs import log
from incarnate.domain.errors import ClosedError, ForkedError, IncarnateError, StoreFileError
from incarnate.domain.transcripts.rows import encode_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Self

    from incarnate.actors.runtime import Runtime
    from incarnate.actors.view import View
    from incarnate.domain.projections.base import Change
    from incarnate.domain.projections.vector import Vector
    from incarnate.storage.transcripts import TranscriptFile

__all__ = ["Mirror", "MirrorStatus"]

_FIRST_RETRY = 0.1
_LAST_RETRY = 5.0
"""Seconds until a failed mirror tries again: twice as long each time, up to the last."""


class MirrorStatus(NamedTuple):
    """How a mirror does.

    Attributes:
        path: the file.
        rows: how many rows the mirror last knew to be in it.
        write_errors: how often it failed to follow the log, for whatever reason.
        error: why it does not follow it now; empty while all is well.
        saved: where the rows are that it found in the file and the log did not hold.
    """

    path: Path
    rows: int
    write_errors: int
    error: str
    saved: tuple[Path, ...]


class Mirror:
    """A transcript file that follows an activation's log; `SessionSystem.mirror` makes it. Any thread may use it.

    It writes from a thread of its own and takes its changes from a view, so it never holds up a writer. Where the
    file cannot be written it says so in `status`, and tries again until it can; the rows are in the log meanwhile.

    Rows that a rewind of the log supersedes are cut off: the store's archive has them. What stands in the file when
    the mirror opens it and is not in the log may be somebody else's: it is saved beside the file before it is cut.
    """

    def __init__(self, view: View[Vector[bytes]], reopen: Callable[[], TranscriptFile], runtime: Runtime) -> None:
        """Use `SessionSystem.mirror`. Opens the file at once, so that whoever asked learns that it cannot be."""
        self._view = view
        self._monotonic = runtime.monotonic
        self._reopen = reopen
        self._file: TranscriptFile | None = reopen()
        self._unknown = True  # it may hold what the log does not
        self._status = MirrorStatus(self._file.path, self._file.rows, 0, "", ())
        self._changes = view.changes()
        self._done = -1  # how many of the changes are in the file
        self._ended = False
        self._moved = runtime.condition()
        self._retry = runtime.event()
        self._task = runtime.spawn(self._run, f"incarnate-mirror {view.key}")

    def __repr__(self) -> str:
        return f"<Mirror {self.path} of {self._view.key}>"

    @property
    def path(self) -> Path:
        """The file."""
        return self._status.path

    @property
    def status(self) -> MirrorStatus:
        """How it does, as it was a moment ago."""
        return self._status

    @property
    def closed(self) -> bool:
        """Whether it has let go of the file for good."""
        return self._ended

    def left_out(self) -> dict[str, int]:
        """How often the transcript has no place for an event of the log or a part of one, by kind.

        Raises:
            ViewFailedError, StoreBusyError, LogCorruptionError: the log cannot be read.
            ClosedError, ForkedError: the system cannot be used.
        """
        counts: dict[str, int] = self._view.diagnostics()
        return counts

    def caught_up(self, timeout: float | None = None) -> bool:
        """Wait until the file holds everything acknowledged before the call; whether it came to that in time.

        A mirror that failed tries again at once. `timeout` is in seconds; None waits for as long as it takes.

        Raises:
            ViewFailedError, StoreBusyError, LogCorruptionError: the log cannot be read.
            ClosedError, ForkedError: the mirror or its system cannot be used.
        """
        deadline = None if timeout is None else self._monotonic() + timeout
        target = self._target()
        self._retry.set()
        with self._moved:
            left = None if deadline is None else max(0.0, deadline - self._monotonic())
            self._moved.wait_for(lambda: self._done >= target or self._ended, left)
            return self._done >= target

    def flush(self, timeout: float | None = None) -> bool:
        """The same, and on the disk itself.

        Raises:
            StoreFileError: the disk does not take it; the mirror opens the file anew.
            ViewFailedError, StoreBusyError, LogCorruptionError, ClosedError, ForkedError: as above.
        """
        file = self._file if self.caught_up(timeout) else None
        if file is None:
            return False
        try:
            file.sync()
        except StoreFileError:
            self._changes.start_over()
            raise
        except ClosedError:  # the mirror has let go of it since
            return False
        return True

    def close(self) -> None:
        """Write what was acknowledged before, in one try, and let go of the file. Closing twice is no error.

        What could not be written is in the log, and the next mirror of the same file writes it.
        """
        with suppress(IncarnateError):
            target, failures = self._target(), self._status.write_errors
            self._retry.set()
            with self._moved:
                self._moved.wait_for(
                    lambda: self._done >= target or self._status.write_errors > failures or self._ended
                )
        self._changes.close()
        self._retry.set()
        self._task.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _target(self) -> int:
        """How many changes there are when all that was acknowledged is among them."""
        if self._ended:
            raise ClosedError(f"the mirror {self.path} was closed")
        self._view.get()  # takes everything in, and so tells the changes
        return self._changes.told

    # the mirror's thread

    def _run(self) -> None:
        delay = _FIRST_RETRY
        try:
            while True:
                try:
                    change = self._changes.next()
                    if change is None:
                        return
                    self._follow(change)
                    delay = _FIRST_RETRY
                except (ClosedError, ForkedError) as error:
                    self._fail(error)
                    return
                except Exception as error:  # noqa: BLE001 - whatever it is, the mirror must tell it and go on
                    self._fail(error)
                    self._retry.wait(delay)
                    self._retry.clear()
                    delay = min(2 * delay, _LAST_RETRY)
        finally:
            self._let_go()
            with self._moved:
                self._ended = True
                self._moved.notify_all()

    def _follow(self, change: Change) -> None:
        """Bring the file to where the view is after `change`."""
        file = self._usable()
        keep, items = change.keep, change.items
        if keep == 0 and file.rows:  # the whole view, or a rewind to its begin
            keep = _common(file, items)
            items = items[keep:]
        saved = file.keep(keep, save=self._unknown)
        self._unknown = False
        if items and not file.append_encoded(items):
            failure = file.failure
            assert failure is not None, "a row that was not written has a reason"
            raise failure
        self._settle(file.rows, saved)

    def _usable(self) -> TranscriptFile:
        """The file, opened anew after a failure."""
        if self._file is not None and self._file.failure is not None:
            self._let_go()
        if self._file is None:
            self._file = self._reopen()
            self._unknown = True
        return self._file

    def _settle(self, rows: int, saved: Path | None) -> None:
        before = self._status
        if before.error:
            log(logging.INFO, "mirror_recovered", "%r goes on after %d failures", self, before.write_errors)
        more = () if saved is None else (saved,)
        with self._moved:
            self._status = before._replace(rows=rows, error="", saved=before.saved + more)
            self._done = self._changes.given
            self._moved.notify_all()

    def _fail(self, error: Exception) -> None:
        before = self._status
        if not before.error:  # a full disk would fill the log with the rest
            log(logging.WARNING, "mirror_failed", "%r fails: %s", self, error, error=_untold(error))
        self._let_go()
        self._changes.start_over()
        with self._moved:
            self._status = before._replace(write_errors=before.write_errors + 1, error=str(error) or repr(error))
            self._moved.notify_all()

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(StoreFileError):  # it was told already, and the log has the rows
                file.close()


def _untold(error: Exception) -> Exception | None:
    return None if isinstance(error, IncarnateError) else error  # ours say all there is; others need their traceback


def _common(file: TranscriptFile, items: Sequence[bytes]) -> int:
    """How many rows both begin with, compared as bytes: Python takes `true` for 1."""
    pairs = enumerate(zip(file.events(), items, strict=False))
    return next((at for at, (row, item) in pairs if encode_row(row) != item), min(file.rows, len(items)))
