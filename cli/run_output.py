"""What a harness prints, passed on to our standard output byte for byte, without ever waiting for long."""

from __future__ import annotations

import os
import select
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from incarnate.supervision.tap import PassOn

__all__ = ["passing_on"]

_WAIT_MILLISECONDS = 100
_FITS = select.PIPE_BUF  # a pipe that takes anything takes so much without waiting


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
            except BlockingIOError:
                return taken
        return taken


def _own_terminal(descriptor: int) -> int | None:
    """A terminal may take a part of a write and then wait: opened once more, it is one that does not."""
    with suppress(OSError):
        if os.isatty(descriptor):
            return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    return None
