"""Events and conditions that an interrupt cannot leave locked.

Those of `threading` are Python code: a signal handler's exception may fall in it right after it took its lock, which
nobody then gives back, and the next caller hangs for ever. Here a lock is taken by its own C code alone, with nothing
between that and the `with` that gives it back.
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["Condition", "Flag"]


class Flag:
    """As `threading.Event`; a wait may also end for nothing, as those of a condition do, and then answers False."""

    __slots__ = ("_gate", "_raised")

    def __init__(self) -> None:
        self._raised = False
        self._gate = threading.Lock()
        self._gate.acquire()  # open while the flag is up

    def is_set(self) -> bool:
        """Whether it is up."""
        return self._raised

    def set(self) -> None:
        """Put it up: whoever waits goes on."""
        self._raised = True
        self._open()

    def clear(self) -> None:
        """Take it down."""
        self._raised = False
        self._gate.acquire(blocking=False)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is up, at most `timeout` seconds; whether it is."""
        if self.is_set():
            return True
        if self._gate.acquire(timeout=-1 if timeout is None else max(0.0, timeout)) and self.is_set():
            self._open()  # for the next who waits
        return self.is_set()

    def _open(self) -> None:
        try:
            self._gate.release()
        except RuntimeError:  # it is open already
            return


class Condition(threading.Condition):
    """As `threading.Condition`."""

    _lock: Any
    # Looked up before the lock is taken; what takes it is then the lock's own method.
    __enter__ = property(lambda self: self._lock.__enter__)  # pyright: ignore[reportAssignmentType]
    __exit__ = property(lambda self: self._lock.__exit__)  # pyright: ignore[reportAssignmentType]
