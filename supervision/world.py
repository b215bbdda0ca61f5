"""The world beside the mind: the commit that a repository stands at, and what changed in it."""

from __future__ import annotations

import logging
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from incarnate.actors.logs import log
from incarnate.domain.checkpoints import EffectEntry
from incarnate.supervision.commands import legible

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Look", "NoWorld", "Repository", "World"]

_MOST_FILES = 200  # a checkpoint stays small, whatever a build leaves behind
_SECONDS = 10.0  # for one look
_BLIND_SECONDS = (
    60.0  # without asking again: a disk that hangs must not keep the log and a stop waiting at each boundary
)
_NO_COMMIT = "-"
_REMOVED = "D"  # as git has it
_RESTORED = "clean"

_State = tuple[str, int, int]  # what git says of a file, its size, and when it was changed


class Look(NamedTuple):
    """The commit, and what changed since the last look."""

    commit_sha: str
    effects: tuple[EffectEntry, ...] = ()


class World(Protocol):
    """What checkpoints join the mind with."""

    def look(self) -> Look:
        """How it is now. Raises nothing: a world that cannot be seen has no commit."""
        ...


class NoWorld:
    """No repository was named."""

    def look(self) -> Look:
        """No commit, and no change."""
        return Look(_NO_COMMIT)


class Repository:
    """A git working tree. Files that are changed or untracked are told apart by size and time of change."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._commit = _NO_COMMIT
        self._files: dict[str, _State] = {}
        self._blind_until: dict[str, float] = {}
        # What changed is named from the top of the tree, of which `folder` may be a part.
        top = self._git(time.monotonic() + _SECONDS, "rev-parse", "--show-toplevel")
        self._top = Path(os.fsdecode(top.removesuffix(b"\n"))) if top else folder
        self.look()

    def look(self) -> Look:
        """The commit of HEAD; a new one and the files that changed since the last look are the effects.

        It takes 10 seconds at most; what git could not tell in them is not asked again for a minute.
        """
        until = time.monotonic() + _SECONDS
        commit = (self._git(until, "rev-parse", "--verify", "HEAD") or b"").decode().strip() or _NO_COMMIT
        status = self._git(until, "status", "--porcelain=v1", "-z", "--untracked-files=all")
        files = self._files if status is None else dict(self._changed(status))
        told = [(path, state) for path, state in files.items() if self._files.get(path) != state]
        told += self._undone(files, is_committed=commit != self._commit)
        effects = [
            EffectEntry(id=legible(path), kind="file", detail={"status": status, "size": size})
            for path, (status, size, _) in told
        ]
        if commit not in {self._commit, _NO_COMMIT}:
            effects.insert(0, EffectEntry(id=commit, kind="git-commit", detail={"after": self._commit}))
        self._commit, self._files = self._commit if commit == _NO_COMMIT else commit, files
        if len(effects) > _MOST_FILES:
            more = EffectEntry(id="more", kind="files", detail={"count": len(effects) - _MOST_FILES})
            effects = [*effects[:_MOST_FILES], more]
        return Look(commit, tuple(effects))

    def _changed(self, status: bytes) -> Iterator[tuple[str, _State]]:
        fields = iter(status.split(b"\0"))
        for field in fields:
            if len(field) < len(b"XY p"):
                continue
            kind, path = field[:2].decode().strip(), os.fsdecode(field[3:])
            before = next(fields, b"") if kind.startswith(("R", "C")) else b""
            if before and kind.startswith("R"):
                yield os.fsdecode(before), (_REMOVED, 0, 0)
            size, changed = self._seen(path) or (0, 0)
            yield path, (kind, size, changed)

    def _undone(self, files: dict[str, _State], *, is_committed: bool) -> Iterator[tuple[str, _State]]:
        """What git says nothing of any more: removed though no commit had it, or as the commit has it again."""
        for path, (kind, _, _) in self._files.items():
            if path not in files:
                seen = self._seen(path)
                if seen is None and kind != _REMOVED:
                    yield path, (_REMOVED, 0, 0)
                elif seen is not None and not is_committed:
                    yield path, (_RESTORED, seen[0], seen[1])

    def _seen(self, path: str) -> tuple[int, int] | None:
        """Its size, and when it was changed."""
        try:
            found = (self._top / path).lstat()
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns

    def _git(self, until: float, *words: str) -> bytes | None:
        """What git answers; None where it refuses, or takes longer than until a time of the monotonic clock."""
        left = until - time.monotonic()
        if left <= 0 or until < self._blind_until.get(words[0], 0.0):
            return None
        # Without optional locks: a harness that runs git beside us must not meet ours.
        command = ["git", "--no-optional-locks", "-C", str(self._folder), *words]
        try:
            answer = subprocess.run(  # noqa: S603 - a list, no shell
                command, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=left
            )
        except OSError as error:
            log(logging.WARNING, "harness_failed", "%s cannot be looked at: %s", self._folder, error)
            return None
        except subprocess.TimeoutExpired:
            why = f"took {_SECONDS:g} seconds, and is not asked again for {_BLIND_SECONDS:g}"
            log(logging.WARNING, "harness_failed", "git %s of %s %s", words[0], self._folder, why)
            self._blind_until[words[0]] = until + _BLIND_SECONDS
            return None
        return answer.stdout if answer.returncode == 0 else None
