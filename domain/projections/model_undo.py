"""The undo of a long history, kept where the garbage collector does not walk it again and again.

A list of a million entries is visited entry by entry at every full collection, which took a third of a rebuild's
time. A tuple whose entries are no containers (structs with `gc=False`) is visited once and then left alone.
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["SEAL_EVERY", "UndoStack"]

T = TypeVar("T")

SEAL_EVERY = 1024
"""After so many entries whoever pushes calls `seal`; a power of two, so that finding out costs next to nothing."""


class UndoStack(Generic[T]):
    """A stack: push with `recent.append`, `pop` what was pushed last."""

    __slots__ = ("_sealed", "recent")

    def __init__(self) -> None:
        self.recent: list[T] = []
        self._sealed: list[tuple[T, ...]] = []

    def pop(self) -> T:
        """The entry that was pushed last, taken off."""
        if not self.recent:
            self.recent = list(self._sealed.pop())
        return self.recent.pop()

    def seal(self) -> None:
        """Put what was pushed since the last time out of the collector's sight."""
        self._sealed.append(tuple(self.recent))
        self.recent = []
