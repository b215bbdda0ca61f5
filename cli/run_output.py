"""Our standard output and error while a harness runs: neither ever keeps us waiting for long, or ends us."""

from __future__ import annotations

import io
import os
import select
import stat
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import TextIO

    from incarnate.supervision.tap import PassOn

__all__ = ["Patient", "passing_on", "patient"]

_WAIT_MILLISECONDS = 100
_FITS = select.PIPE_BUF  # a pipe that takes anything takes so much without waiting


_TRIES = 10  # of a reader that takes nothing, a tenth of a second each


@contextmanager
def passing_on(shared: int) -> Generator[PassOn]:
    """What writes to a descriptor that others share, straight: nothing waits in a buffer of ours."""
    own = _own_terminal(shared)
    try:
        yield _Passing(shared if own is None else own)
    finally:
        if own is not None:
            os.close(own)


class _Passing:
    """Writes to a descriptor that others share, so that it cannot be set not to wait."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def __call__(self, chunk: bytes | memoryview) -> int:
        """How many bytes were taken, all of them unless nobody takes any for a tenth of a second.

        Raises:
            OSError: nobody reads any more, or nothing can be written.
        """
        view, taken = memoryview(chunk), 0
        while taken < len(view):
            if not self._poll.poll(_WAIT_MILLISECONDS):
                return taken
            most = len(view) if self._is_file else taken + _FITS
            try:
                taken += os.write(self._descriptor, view[taken:most])
            except BlockingIOError:  # a terminal that was stopped says that it could be written
                time.sleep(_WAIT_MILLISECONDS / 1000)
                return taken
        return taken


class Patient(io.TextIOBase):
    """A stream of lines to whoever may have gone, or may not read: what is not taken in a second is left out.

    Nothing it is given raises: a run goes on when its terminal is closed, or its log's disk is full.
    """

    def __init__(self, stream: TextIO, pass_on: PassOn | None) -> None:
        """`pass_on` writes to the stream's descriptor; None for one that has none."""
        super().__init__()
        self._stream = stream
        self._pass_on = pass_on
        self._is_torn = False

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()

    def write(self, text: str) -> int:
        """Write it, if anybody takes it."""
        with suppress(OSError, ValueError):
            if self._pass_on is None:
                self._stream.write(text)
            else:
                self._put(self._pass_on, text.encode(self._stream.encoding or "utf-8", "backslashreplace"))
        return len(text)

    def _put(self, pass_on: PassOn, data: bytes) -> None:
        data = b"\n" + data if self._is_torn else data
        taken = 0
        # Who took nothing of the last line is not waited for again.
        for _ in range(1 if self._is_torn else _TRIES):
            some = pass_on(data[taken:])
            taken = len(data) if some is None else taken + some
            if taken == len(data):
                break
        self._is_torn = taken < len(data)


@contextmanager
def patient(stream: TextIO) -> Generator[Patient]:
    """The stream, as one that never keeps us waiting."""
    descriptor = -1
    with suppress(OSError, ValueError):  # a stream of a test has none
        descriptor = stream.fileno()
    if descriptor < 0:
        yield Patient(stream, None)
        return
    stream.flush()
    with passing_on(descriptor) as pass_on:
        yield Patient(stream, pass_on)


def _own_terminal(descriptor: int) -> int | None:
    """A terminal may take a part of a write and then wait: opened once more, it is one that does not."""
    with suppress(OSError):
        if os.isatty(descriptor):
            return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    return None
