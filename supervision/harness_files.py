"""The session files of a harness on this machine: where they are, and what the last turn in them holds."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from incarnate.actors.lines import MAX_LINE_BYTES, read_lines
from incarnate.actors.logs import log
from incarnate.domain.dialects.base import Finishing
from incarnate.domain.dialects.records import Found, RecordStream
from incarnate.domain.errors import DialectError
from incarnate.supervision.reconcile import last_turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from incarnate.domain.dialects.base import Dialect
    from incarnate.domain.dialects.layouts import SessionFiles
    from incarnate.domain.events import SessionEvent

__all__ = ["HarnessFiles", "SessionFolder", "default_root"]

_ROOTS: dict[str, tuple[tuple[str | None, str], ...]] = {
    "@github/copilot": (("COPILOT_HOME", ""), (None, ".copilot")),
    "claude-code": (("CLAUDE_CONFIG_DIR", "projects"), (None, ".claude/projects")),
    "codex": (("CODEX_HOME", "sessions"), (None, ".codex/sessions")),
    "gemini-cli": ((None, ".gemini/tmp"),),
    "kimi": ((None, ".kimi/sessions"), (None, ".kimi-code/sessions")),
    "pi": (("PI_CODING_AGENT_DIR", "sessions"), (None, ".pi/agent/sessions")),
    "qwen-code": ((None, ".qwen/projects"),),
}
"""For each harness, folders below one that a variable names, or below the home folder."""


def default_root(harness: str, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where the harness keeps its sessions; nothing where that is not known."""
    home = Path(env.get("HOME") or Path.home())
    found: list[Path] = []
    for variable, below in _ROOTS.get(harness, ()):
        base = home if variable is None else Path(env.get(variable) or os.devnull)
        found.append(base / below)
    return tuple([folder for folder in found if folder.is_dir()])


class HarnessFiles(Protocol):
    """What a harness itself keeps of its sessions."""

    def is_here(self, session: str) -> bool:
        """Whether this machine has the session, or may have it."""
        ...

    def newest(self, since: float) -> str | None:
        """The session that was written last, if that is after `since` (seconds since the epoch)."""
        ...

    def last_turn(self, session: str) -> list[SessionEvent]:
        """The last turn that its files hold, as drafts; nothing where there are none."""
        ...


class SessionFolder:
    """Session files below some folders. Without a folder nothing is known, and every session may be here."""

    def __init__(self, dialect: Dialect, roots: tuple[Path, ...], *, is_known: bool = True) -> None:
        self._dialect = dialect
        self._roots = roots
        self._is_known = is_known

    @classmethod
    def of(cls, dialect: Dialect, env: Mapping[str, str], folder: Path | None = None) -> SessionFolder:
        """Those of `folder`, or of where the harness keeps them."""
        if folder is not None:
            return cls(dialect, (folder,))
        return cls(dialect, default_root(dialect.name, env), is_known=dialect.name in _ROOTS)

    def is_here(self, session: str) -> bool:
        """As the port."""
        return not self._is_known or self._find(session) is not None

    def newest(self, since: float) -> str | None:
        """As the port."""
        found = [(_modified(files.path), files.session) for files in self._sessions()]
        modified, session = max(found, default=(0.0, ""))
        return session if modified >= since and session else None

    def last_turn(self, session: str) -> list[SessionEvent]:
        """As the port."""
        files = self._find(session)
        if files is None:
            return []
        try:
            return last_turn(self._drafts(Path(files.path)))
        except OSError as error:
            log(logging.WARNING, "harness_failed", "%s cannot be read: %s", files.path, error)
            return []

    def _find(self, session: str) -> SessionFiles | None:
        # Gemini's file names hold the first eight characters of the id alone.
        found = [files for files in self._sessions() if session == files.session or session.startswith(files.session)]
        return max(found, key=lambda files: (len(files.session), _modified(files.path)), default=None)

    def _sessions(self) -> list[SessionFiles]:
        return self._dialect.layout.sessions([path for root in self._roots for path in _files_below(root)])

    def _drafts(self, path: Path) -> Iterator[SessionEvent]:
        normalizer = self._dialect.normalizer()
        records = RecordStream(self._dialect.likeness, MAX_LINE_BYTES)
        with path.open("rb") as stream:
            for line in read_lines(stream):
                if line.data is None:
                    continue
                for piece in records.feed(line.number, line.start, line.data, whole=line.whole):
                    if isinstance(piece, Found):
                        try:
                            yield from normalizer.feed(piece.value).drafts
                        except DialectError:
                            continue
        for piece in records.close():
            if isinstance(piece, Found):
                yield from normalizer.feed(piece.value).drafts
        if isinstance(normalizer, Finishing):
            yield from normalizer.finish().drafts  # its harness is dead


def _files_below(root: Path) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        yield from [f"{folder}/{name}" for name in names]


def _modified(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return 0.0
