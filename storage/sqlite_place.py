"""Whether the files of an open SQLite store are still in their places.

SQLite does not look. It would go on in a file that nobody can open any more, or mix two of them up by way of the
write-ahead log, which it finds by its name. Where that log or its index is removed, other processes make new ones: two
writers then neither see nor fence each other, and what one of them was acknowledged is lost.
"""

from __future__ import annotations

import os

from incarnate.storage.settled import is_settled

__all__ = ["Place"]

_BESIDE = ("", "-wal", "-shm")

_Identity = tuple[int, int]


class Place:
    """The files of the store at the absolute `path`, which may be a link. They are looked at once in its life."""

    def __init__(self, path: str) -> None:
        """Call it before anything is opened: a file that was replaced since is told, not mixed up."""
        real = os.path.realpath(path)
        self._folder = os.path.dirname(real)  # noqa: PTH120 - no Path for what is asked at every write
        self._linked = real != path
        self._real = real
        self._files = {path: _identity(path)}
        self._settled: tuple[int, int, int] | None = None
        """The folder and its time when all files were in their places, and any change would have given it another."""

    def opened(self) -> None:
        """A writer has opened it: from now on what lies beside it stays what it is, too."""
        self._settled = None
        for end in _BESIDE[1:]:
            found = _identity(self._real + end)
            if found is not None:
                self._files[self._real + end] = found

    def is_kept(self) -> bool:
        """Whether all files are in their places. One look at the folder tells as a rule: at every write and read."""
        try:
            status = os.stat(self._folder)  # noqa: PTH116 - as above
        except OSError:
            return False
        seen = status.st_dev, status.st_ino, status.st_mtime_ns
        if seen == self._settled and not self._linked:
            return True
        if self.displaced() is not None:
            return False
        self._settled = seen if is_settled(seen[-1]) else None
        return True

    def displaced(self) -> tuple[str, str] | None:
        """The first file that is not what it was, and what happened to it."""
        for path, file in self._files.items():
            now = _identity(path)
            if now != file:
                return path, "removed" if now is None else "replaced"
        return None


def _identity(path: str) -> _Identity | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return None
    return status.st_dev, status.st_ino
